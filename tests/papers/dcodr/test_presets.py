"""Presets of DCoDR: all are whole, and run from files in the published formats to their tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
h5py = pytest.importorskip("h5py", reason="h5py is not installed")

import setsup  # noqa: E402
from setsup.datasets.benchmarks import edges2shoes as shoes  # noqa: E402
from setsup.datasets.benchmarks.edges2shoes import matching  # noqa: E402
from setsup.experiments import (  # noqa: E402
    Preset,
    RunConfig,
    evaluate,
    find_preset,
    presets,
    smoke,
    train,
)
from setsup.experiments.configs import build_eval_transform, build_transform  # noqa: E402
from setsup.loading import Loader  # noqa: E402
from tests.true_files import cars3d, celeba, edges2shoes, smallnorb, ut_zap50k  # noqa: E402

NAMES = sorted(name for name in presets() if name.startswith("dcodr/"))
DATASETS = ("cars3d", "smallnorb", "shapes3d", "celeba", "edges2shoes")
EPOCHS = {"cars3d": 123, "smallnorb": 341, "shapes3d": 390}


def write_shapes(folder: Path, rows: int = 960) -> None:
    """A file of Shapes3D with the first rows of the grid, in the layout of the published one."""
    whole = setsup.load("shapes3d-procedural")
    names = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
    table = whole.factors
    columns = [
        table.codes(name, np.arange(rows)).astype(float) if name == "shape" else table.values(name, np.arange(rows))
        for name in names
    ]
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        file["images"] = whole.fetch(np.arange(rows), ["image"])["image"]
        file["labels"] = np.stack(columns, axis=1).astype(np.float64)


def write_shoes(folder: Path) -> None:
    """Pairs, and beside them the catalogue that their labels come from."""
    edges2shoes.write(folder.parent)
    ut_zap50k.write(folder.parent / "ut-zap50k")


WRITERS: dict[str, Any] = {
    "cars3d": cars3d.write,
    "smallnorb": smallnorb.write,
    "shapes3d": write_shapes,
    "celeba": celeba.write,
    "edges2shoes": write_shoes,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of each dataset."""
    found = {name: tmp_path_factory.mktemp(name) / name for name in DATASETS}
    for name, folder in found.items():
        folder.mkdir()
        WRITERS[name](folder)
    return found


def first_batch(preset: Preset, root: Path) -> dict[str, Any]:
    dataset = preset.data.open(root)
    transform = build_transform(preset.augmentation, dataset, 0)
    sampler = preset.sampler.build(dataset, 0)
    return next(iter(Loader(dataset, sampler, modalities=preset.data.modalities, transform=transform, workers=0)))


@pytest.mark.long("rendered and decoded files")
@pytest.mark.parametrize("name", DATASETS)
def test_a_step_has_images_of_domains_and_their_copies(name: str, files: dict[str, Path]) -> None:
    preset = find_preset(f"dcodr/{name}")
    batch = first_batch(preset, files[name])
    sets = 2 if name == "edges2shoes" else 1 if name == "celeba" else 4
    channels = 1 if name == "smallnorb" else 3
    assert batch["image"].shape[2:] == batch["positive_image"].shape[2:] == (channels, 64, 64)
    assert len(batch["image"]) == min(sets, 4) or name == "celeba"
    assert batch["image"].dtype == batch["positive_image"].dtype == torch.uint8
    for factor in preset.sampler.domain:
        codes = batch["factors"][factor]
        assert all(len(set(one[keep].tolist())) == 1 for one, keep in zip(codes, batch["mask"], strict=True))
    assert preset.method.domain == preset.sampler.domain


@pytest.mark.long("rendered and decoded files")
@pytest.mark.parametrize("name", ["cars3d", "smallnorb"])
def test_large_images_are_averaged_and_equal_in_evaluations(name: str, files: dict[str, Path]) -> None:
    preset = find_preset(f"dcodr/{name}-norec")
    dataset = preset.data.open(files[name])
    found = first_batch(preset, files[name])
    plain = build_eval_transform(preset.eval_transform, preset.augmentation, dataset, 0)
    keep = found["mask"]
    stored = dataset.fetch(found["indices"][keep].numpy(), ["image"])["image"]
    images = torch.from_numpy(stored).movedim(-1, 1)
    again = plain({"image": images[None], "step": 0})["image"][0]
    assert torch.equal(again, found["image"][keep])
    if stored.shape[1] == 128:  # twice the side: near the means of blocks, which Pillow weighs by a triangle
        means = images.float().unflatten(2, (64, 2)).unflatten(4, (64, 2)).mean((3, 5))
        assert (again.float() - means).abs().mean() < 6


@pytest.mark.parametrize("name", EPOCHS)
def test_training_is_200_epochs_with_a_decay_every_30(name: str) -> None:
    for end in ("", "-norec"):
        preset = find_preset(f"dcodr/{name}{end}")
        assert preset.steps == 200 * EPOCHS[name]
        assert preset.method.decay_every == 30 * EPOCHS[name]
    assert find_preset("dcodr/smallnorb-no-domain-negatives").steps == 200 * (43_740 // 64)


def test_settings_of_the_published_code() -> None:
    rows = {  # τ, head, rate with and without reconstruction, rate of the generator
        "cars3d": (0.2, False, 1e-4, 1e-4, 3e-4),
        "smallnorb": (0.2, True, 3e-4, 1e-4, 3e-4),
        "shapes3d": (0.1, False, 1e-4, 1e-4, 3e-4),
        "celeba": (0.2, False, 1e-3, 1e-4, 1e-3),
        "edges2shoes": (0.1, False, 1e-3, 1e-4, 1e-3),
    }
    for name, expected in rows.items():
        whole, short = (find_preset(f"dcodr/{name}{end}").method for end in ("", "-norec"))
        found = (whole.temperature, whole.head, whole.rate, short.rate, whole.generator_rate)
        assert found == expected
        assert (whole.reconstruction, short.reconstruction, whole.style_rate) == (0.3, 0, 3e-3)
        assert (short.temperature, short.head) == (whole.temperature, False)
    recipes = {name: find_preset(f"dcodr/{name}").augmentation.recipe for name in rows}
    assert recipes == {**dict.fromkeys(rows, "dcodr"), "edges2shoes": "dcodr-blur"}


def test_ablations_change_one_thing() -> None:
    for end in ("", "-norec"):
        base = find_preset(f"dcodr/smallnorb{end}")
        changed = {part: find_preset(f"{base.name}-{part}") for part in ("no-positives", "no-pre-training", "simsiam")}
        assert changed["no-positives"].method == replace(base.method, positives=False)
        assert changed["no-pre-training"].initial_run is None
        assert changed["no-pre-training"].method == base.method
        assert changed["simsiam"].augmentation.recipe == "dcodr-simsiam"
        shuffled = find_preset(f"{base.name}-no-domain-negatives")
        assert (shuffled.sampler.size, shuffled.method.negatives) == (64, "batch")


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-small")])
def test_small_presets_need_no_weights(name: str) -> None:
    preset = find_preset(name)
    assert preset.initial_run is None or preset.initial_run == f"{name.removesuffix('-small')}-latent-small"
    assert getattr(preset.method, "encoder", "small") == "small"
    assert getattr(preset.method, "perceptual", "pyramid") == "pyramid"
    assert getattr(preset.method, "generator_width", 32) == 32
    assert preset.data.substitute is not None


def trained(name: str, folder: Path, root: Path, **more: Any) -> dict[str, Any]:
    """Values of a preset that is shrunk, trained and measured, of factors that vary in few rows."""
    preset = smoke(find_preset(name))
    evaluations = dict(preset.evaluations)
    if "shapes3d" in name and "probes" in evaluations:
        evaluations["probes"] = replace(evaluations["probes"], attributes=("object_hue", "scale", "orientation"))
    if "celeba" in name:  # the test part of the toy has four images
        more["datasets"] = {"test": preset.data}
    run = train(replace(preset, **more), folder, root=root, config=RunConfig(workers=0, accelerator="cpu"))
    found = evaluate(run, replace(run.preset, evaluations=evaluations), device="cpu")
    return {key: measured.values for key, measured in found.items()}


@pytest.mark.long("trainings")
@pytest.mark.parametrize("name", DATASETS)
def test_genuine_files_lead_to_the_tables(
    name: str, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "FEW", 11)  # rows of a label, of 48 shoes
    if name == "edges2shoes":
        shoes.prepare(files[name])  # into the cache of this test
    values = trained(f"dcodr/{name}-norec", tmp_path / "runs" / "seed-0", files[name])
    assert 0 <= values["probes"]["domain"] <= 1
    assert 0 < values["probes"]["ideal"] <= 1
    assert values["time"]["seconds per epoch"] > 0
    if name == "celeba":
        assert values["landmarks"]["L1"] > 0
    else:
        assert values["retrieval"]["all"] <= values["retrieval"]["attainable"]
        assert 0 <= values["probes"]["informativeness"] <= 1


@pytest.mark.long("trainings")
def test_lord_s_second_stage_finds_the_first(files: dict[str, Path], tmp_path: Path) -> None:
    first = tmp_path / "latent"
    trained("dcodr/shapes3d-lord-latent-small", first, files["shapes3d"])
    values = trained("dcodr/shapes3d-lord-small", tmp_path / "lord", files["shapes3d"], initial_run=str(first))
    assert set(values) == {"time", "probes", "retrieval"}
