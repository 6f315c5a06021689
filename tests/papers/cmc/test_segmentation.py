"""Segmentation on top of encoders of views: tiles, classes that can be told, and what counts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

import torch

from setsup.errors import SetsupError
from setsup_papers.cmc.segmentation import Segmentation
from setsup_papers.cmc.settings import CMCSettings
from setsup_papers.cmc.tiles import tiles
from tests.papers.cmc.toys import run_of

CONFIG = CMCSettings(views=("grey",), encoder="nyu", width=0.05, objective="patch", projection=8, images=((1, 32, 32),))


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of three bands of brightness, whose class is 1, 2 or 3; a corner is unlabelled."""
    dice = np.random.default_rng(0)
    labels = np.sort(dice.integers(1, 4, (24, 12)), axis=1).repeat(6, axis=1)[:, :, None].repeat(80, axis=2)[:, :70]
    image = (labels * 70 + dice.integers(-12, 12, labels.shape)).astype(np.uint8)[..., None].repeat(3, axis=-1)
    labels[:, :8, :8] = 0
    path = tmp_path_factory.mktemp("scenes") / "scenes.npz"
    np.savez(path, image=image, labels=labels.astype(np.int32), number=np.arange(24))
    return path


def test_tiles_are_those_of_a_loop() -> None:
    batch = {
        "image": torch.arange(2 * 3 * 70 * 80).reshape(1, 2, 3, 70, 80),
        "depth": torch.rand(1, 2, 70, 80),
        "normals": torch.rand(1, 2, 70, 80, 3),
        "indices": torch.arange(2)[None],
        "step": 3,
    }
    found = list(tiles(batch, (70, 80), 32))
    wanted = [(y, x) for y in (3, 35) for x in (8, 40)]  # 70 = 3 + 64 + 3 and 80 = 8 + 64 + 8
    assert len(found) == len(wanted)
    for tile, (y, x) in zip(found, wanted, strict=True):
        assert torch.equal(tile["image"], batch["image"][..., y : y + 32, x : x + 32])
        assert torch.equal(tile["depth"], batch["depth"][..., y : y + 32, x : x + 32])
        assert torch.equal(tile["normals"], batch["normals"][..., y : y + 32, x : x + 32, :])
        assert torch.equal(tile["indices"], batch["indices"])
    with pytest.raises(SetsupError, match="too small for tiles of 96"):
        next(tiles(batch, (70, 80), 96))


@pytest.mark.long("trainings")
def test_classes_that_a_view_shows_are_told(scenes: Path, tmp_path: Path) -> None:
    run = run_of(scenes, CONFIG, 32, tmp_path)
    measure = Segmentation(classes=4, size=32, steps=60, baseline_steps=60, batch=8, rate=5e-3)
    values = measure.measure(run).values
    assert set(values) == {
        f"{source}grey: {name}" for source in ("", "untrained: ", "supervised: ") for name in ("mIoU", "pixel accuracy")
    }
    assert values["supervised: grey: mIoU"] > 0.8
    assert values["supervised: grey: pixel accuracy"] > 0.9
    again = Segmentation(classes=4, size=32, steps=60, batch=8, rate=5e-3, baselines=()).measure(
        run_of(scenes, CONFIG, 32, tmp_path)
    )
    assert again.values["grey: mIoU"] == values["grey: mIoU"]


def test_the_encoder_stays_as_it_is_and_unlabelled_pixels_do_not_count(scenes: Path, tmp_path: Path) -> None:
    run = run_of(scenes, CONFIG, 32, tmp_path)
    before = {name: value.clone() for name, value in run.method.state_dict().items()}
    measure = Segmentation(classes=4, size=32, steps=2, baseline_steps=2, batch=8)
    found = measure._measured(run, run.dataset, run.dataset, "grey", "supervised", 4, 2)
    assert all(torch.equal(before[name], value) for name, value in run.method.state_dict().items())
    confusion = np.array(found["confusion"])
    assert confusion[0].sum() == 0
    labels = run.dataset.fetch(np.arange(24), ["labels"])["labels"][:, 3:67, 8:72]
    np.testing.assert_array_equal(confusion.sum(1)[1:], [(labels == one).sum() for one in (1, 2, 3)])


def test_what_cannot_be_measured_is_refused(scenes: Path, tmp_path: Path) -> None:
    run = run_of(scenes, CONFIG, 32, tmp_path)
    with pytest.raises(SetsupError, match="has no class names; set classes"):
        Segmentation(size=32).measure(run)
    with pytest.raises(SetsupError, match="has no modality 'labels13'"):
        Segmentation(labels="labels13").measure(run)
    with pytest.raises(SetsupError, match=r"has no view 'gray' \(views: .*; did you mean 'grey'"):
        Segmentation(views=("gray",)).measure(run)
    with pytest.raises(SetsupError, match="dataset and split are mutually exclusive"):
        Segmentation(dataset="test", split="test")
    other = replace(CONFIG, encoder="small", objective="patch", patch_layer="conv2")
    with pytest.raises(SetsupError, match="mirrors the encoder for rooms"):
        Segmentation(classes=4, size=32, steps=1).measure(run_of(scenes, other, 32, tmp_path))


def measured(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, classes: int, logits: list[float]) -> float:
    """mIoU of a decoder that gives every pixel the same scores."""
    from setsup_papers.cmc.networks import dense_views

    class Same(torch.nn.Module):
        reads = ("conv6",)

        def __init__(self, encoder: object, classes: int) -> None:
            super().__init__()
            self.scores = torch.nn.Parameter(torch.tensor(logits[:classes]))

        def forward(self, layers: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.scores[:, None, None].expand(len(layers["conv6"]), -1, 32, 32)

    monkeypatch.setattr(dense_views, "ViewDecoder", Same)
    measure = Segmentation(classes=classes, size=32, steps=1, batch=24, rate=1e-9, baselines=())
    return measure.measure(run_of(path, CONFIG, 32, folder)).values["grey: mIoU"]


def test_no_pixel_is_told_to_be_unlabelled(scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest score is that of class 0, the next that of 2: a third of the pixels is right, of three classes."""
    found = measured(scenes, tmp_path, monkeypatch, 4, [9.0, 0.0, 5.0, 1.0])
    with np.load(scenes) as arrays:
        labels = arrays["labels"]
    tested = [labels[:, y : y + 32, x : x + 32] for y in (3, 35) for x in (8, 40)]
    pixels = np.concatenate([tile.ravel() for tile in tested])
    assert found == pytest.approx((pixels == 2).sum() / (pixels > 0).sum() / 3)


def test_classes_beyond_those_there_are_end_in_a_sentence(
    scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        SetsupError,
        match="'labels' contains the class 3, but class numbers must be at least 0 and below 3; set classes",
    ):
        measured(scenes, tmp_path, monkeypatch, 3, [0.0, 0.0, 0.0])
    with pytest.raises(SetsupError, match="including class 0, which is ignored, not 1; set classes to a larger number"):
        measured(scenes, tmp_path, monkeypatch, 1, [0.0])
