"""Single-pixel contrast on views of scenes: what a step gets, and what measurements say of features that are known."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("embreex")
pytest.importorskip("sklearn")

from lightning.pytorch import LightningModule

import setsup
from setsup.correspondence import RenderedPairs, pair_table
from setsup.errors import DataError, SetsupError
from setsup.experiments import Data, RunConfig, TrainedRun, evaluate, find_preset, smoke, train
from setsup.experiments.configs import build_transform
from setsup.experiments.evaluations.view_pairs import draw_view_pairs
from setsup.loading import Loader
from setsup.rendered.writing import render
from setsup.scenes.recipes import Shapes3D
from setsup_papers.pixels import RoomMatches


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pairs of views with their partners."""
    folder = tmp_path_factory.mktemp("scenes") / "views"
    recipe = Shapes3D(size=(64, 96))
    views = RenderedPairs(recipe, pair_table(recipe, 12, seed=0), "embree")
    render(views, folder, ["image", "depth", "instances", "partners", "status"])
    return folder


def preset_of(scenes: Path):  # type: ignore[no-untyped-def]
    preset = find_preset("pixels/rooms-small")
    data = replace(preset.data, name=str(scenes))
    return replace(
        preset,
        data=data,
        datasets={"test": replace(preset.datasets["test"], name=str(scenes))},
        augmentation=replace(preset.augmentation, size=32),
        method=replace(preset.method, widths=(8, 8), blocks=(1, 1)),
    )


@pytest.mark.long("renderings")
def test_a_step_gets_windows_with_partners(scenes: Path) -> None:
    preset = preset_of(scenes)
    dataset = preset.data.open()
    loader = Loader(
        dataset,
        preset.sampler.build(dataset, 0),
        modalities=["image"],
        transform=build_transform(preset.augmentation, dataset, 0),
        workers=0,
    )
    batch = next(iter(loader))
    assert batch["view_1"].shape == batch["view_2"].shape == (8, 3, 32, 32)
    assert batch["partner"].shape == (8, 1024)
    assert 0 < batch["positive"].float().mean() < 0.125
    plain = build_transform(replace(preset.augmentation, colors=False), dataset, 0)
    shown = next(
        iter(Loader(dataset, preset.sampler.build(dataset, 0), modalities=["image"], transform=plain, workers=0))
    )
    windows = np.lib.stride_tricks.sliding_window_view(shown["image"][0, 0].numpy(), (32, 32), axis=(1, 2))
    assert (windows == shown["view_1"][0].numpy()[:, None, None]).all((0, 3, 4)).any()


def places(dataset, rows):  # type: ignore[no-untyped-def]
    """Where in the world the surface of each pixel lies: what perfect features would say."""
    found = []
    for row, depth in zip(rows.tolist(), dataset.fetch(rows, ["depth"])["depth"], strict=True):
        camera = dataset.camera(row)
        height, width = depth.shape
        pixels = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).reshape(-1, 2)
        world = camera.centre + depth.reshape(-1, 1) * camera.rays(pixels.astype(np.float64))
        found.append(world.reshape(height, width, 3))
    return np.stack(found)


def test_features_that_are_places_match_and_reject(scenes: Path) -> None:
    dataset = setsup.open(scenes)
    measure = RoomMatches(pairs=6, queries=200)
    pairs = draw_view_pairs(dataset, measure.pairs, measure.pair_seed)
    assert pairs.shape == (6, 2)
    assert len({tuple(sorted(pair)) for pair in pairs.tolist()}) == 6
    found = measure._measured(dataset, pairs, lambda rows: places(dataset, rows))
    assert np.mean(found["within 1 px"]) > 0.95
    assert np.nanmean(found["rejection"]) > 0.95
    noise = np.random.default_rng(0).normal(0, 1, (2, 64, 96, 4))
    chance = measure._measured(dataset, pairs, lambda rows: noise)
    assert np.mean(chance["within 5 px"]) < 0.1
    assert abs(np.nanmean(chance["rejection"]) - 0.5) < 0.1
    assert abs(np.mean(chance["instances"]) - 0.5) < 0.05


def test_features_that_are_instances_tell_these_apart(scenes: Path) -> None:
    dataset = setsup.open(scenes)
    measure = RoomMatches(pairs=3, queries=50)
    found = measure._measured(
        dataset, draw_view_pairs(dataset, 3, 0), lambda rows: dataset.fetch(rows, ["instances"])["instances"][..., None]
    )
    assert found["instances"] == [1.0, 1.0, 1.0]


@pytest.mark.long("trainings")
def test_from_training_to_values_beside_baselines(scenes: Path, tmp_path: Path) -> None:
    run = train(smoke(preset_of(scenes)), tmp_path / "run", config=RunConfig(workers=0))
    measured = evaluate(run, device="cpu")["rooms"]
    values = measured.values
    assert values["pairs"] == len(measured.curves["within 1 px"][0]) > 0
    assert set(measured.pictures) == {"trained", "untrained", "colors", "daisy"}
    for source in ("", "untrained: ", "colors: ", "daisy: "):
        for name in ("within 1 px", "within 5 px", "rejection", "instances", "edges"):
            assert 0 <= values[f"{source}{name}"] <= 1


def test_views_without_partners_are_refused(scenes: Path, tmp_path: Path) -> None:
    recipe = Shapes3D(size=(32, 32))
    views = RenderedPairs(recipe, pair_table(recipe, 2, seed=0), "embree")
    render(views, tmp_path / "images", ["image", "partners", "status"])
    preset = smoke(preset_of(tmp_path / "images"))
    preset = replace(preset, augmentation=replace(preset.augmentation, size=16))
    run = train(preset, tmp_path / "run", config=RunConfig(workers=0))
    with pytest.raises(
        SetsupError,
        match=r"lacks modalities \(depth, instances\); render the rooms again with `setsup render room",
    ):
        evaluate(run, device="cpu")


def test_the_commands_that_make_rooms_are_those_of_the_page() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "experiments" / "pixels.md").read_text(encoding="utf-8")
    for told in find_preset("pixels/rooms-small").missing.values():
        (command,) = re.findall("`(setsup render .*?)`", told)
        assert f"\n$ {command}\n" in page


def test_data_of_a_test_that_are_not_there_are_made_by_a_command_too(tmp_path: Path) -> None:
    preset = find_preset("pixels/rooms-small")
    data = {"data": Data("shapes3d-procedural"), "datasets": preset.datasets, "missing": preset.missing}
    trained = TrainedRun(preset.name, LightningModule(), 0, tmp_path, **data)
    with pytest.raises(
        DataError, match=r"^'test' of pixels/rooms-small has no data: rooms-test does not exist; render it"
    ):
        trained.open("test")
