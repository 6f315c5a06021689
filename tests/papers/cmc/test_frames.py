"""The preset of frames and their flow: a step on rendered frames, and what the augmentation makes of a batch."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("embreex")

import torch

import setsup
from setsup.correspondence import RenderedFrames
from setsup.errors import SetsupError
from setsup.experiments import RunConfig, find_preset, smoke, train
from setsup.experiments.settings import put
from setsup.rendered.writing import render
from setsup.scenes.recipes import RoomFrames
from setsup_papers.cmc.augmentations import FrameFlow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "frames"
    recipe = RoomFrames(rooms=2, frames=4, moving=1, count=(0, 1), size=(64, 80))
    render(RenderedFrames(recipe, renderer="embree"), path, ["image", "exact_flow", "labels"])
    return path


def test_frames_and_flow_are_cropped_together(folder: Path) -> None:
    frames = setsup.open(folder)
    sampler = setsup.EpochSampler(frames.factors, 4, seed=0)
    transform = FrameFlow(size=32).build(frames, 0)
    batch = next(iter(setsup.loader(frames, sampler, transform=transform, workers=0)))
    assert {name: tuple(batch[name].shape[2:]) for name in ("image", "flow", "labels")} == {
        "image": (3, 32, 32),
        "flow": (2, 32, 32),
        "labels": (32, 32),
    }
    whole = next(iter(setsup.loader(frames, sampler, transform=FrameFlow().build(frames, 0), workers=0)))
    # the crop of the flow is where that of the image is
    for image, flow, large, field in zip(
        batch["image"].flatten(0, 1),
        batch["flow"].flatten(0, 1),
        whole["image"].flatten(0, 1),
        whole["flow"].flatten(0, 1),
        strict=True,
    ):
        places = [
            (y, x)
            for y in range(33)
            for x in range(49)
            if torch.equal(large[:, y : y + 32, x : x + 32], image)
            and torch.equal(field[:, y : y + 32, x : x + 32], flow)
        ]
        assert len(places) == 1
    assert whole["flow"].abs().max() <= 1


def test_data_without_flow_are_refused() -> None:
    with pytest.raises(SetsupError, match="no modality 'exact_flow'"):
        FrameFlow().build(setsup.load("shapes3d-procedural"), 0)


@pytest.mark.long("trainings")
def test_the_preset_trains(folder: Path, tmp_path: Path) -> None:
    preset = smoke(find_preset("cmc/frames-small"))
    preset = put(preset, {"data.name": str(folder), "datasets.test.name": str(folder), "method.width": 0.125})
    train(preset, tmp_path / "run", config=RunConfig(workers=0, accelerator="cpu"))
    assert list((tmp_path / "run").iterdir())
