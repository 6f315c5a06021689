"""Single-pixel contrast on coloured digits: what a step gets, and what the measurements say of known features."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

import torch
from lightning.pytorch import LightningModule

from setsup.errors import SetsupError
from setsup.experiments import RunConfig, evaluate, find_preset, find_report, presets, smoke, train
from setsup.experiments.configs import build_transform
from setsup.experiments.trained_run import TrainedRun
from setsup.loading import Loader
from setsup_papers.pixels import PixelContrast, PixelContrastSettings, PixelUNet, between_loss, within_loss
from setsup_papers.pixels.colors import ColorSwap, PixelLabels
from tests.true_files import mnist

NAME = "pixels/colors-inf-100-small"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mnist")
    mnist.write(folder, per_split=1500)
    return folder


def first_batch(name: str, digits: Path, **change: object) -> dict:
    preset = find_preset(name)
    dataset = preset.data.open(digits)
    augmentation = type(preset.augmentation)(**change) if change else preset.augmentation
    transform = build_transform(augmentation, dataset, 0)
    return next(iter(Loader(dataset, preset.sampler.build(dataset, 0), transform=transform, workers=0)))


@pytest.mark.long("trainings")
def test_a_step_gets_two_views_of_fresh_colors(digits: Path) -> None:
    fresh, fixed = first_batch(NAME, digits), first_batch(NAME, digits, colors="fixed")
    assert fresh["view_1"].shape == fresh["view_2"].shape == (1, 64, 3, 32, 32)
    assert fresh["partner"].shape == (1, 64, 1024)
    assert 0.1 < fresh["positive"].float().mean() < 0.27
    dataset = find_preset(NAME).data.open(digits)
    own = torch.from_numpy(dataset.factors.codes("color", fixed["indices"][0].numpy()))
    for batch, colors in ((fresh, fresh["factors"]["color"][0]), (fixed, own)):
        empty = batch["view_2"][0].amax((2, 3)).argmin(1)  # of cyan the first channel, of magenta the second
        assert torch.equal(empty, colors.long())
    assert not torch.equal(fresh["factors"]["color"][0].long(), own.long())


@pytest.mark.filterwarnings("ignore:You are trying to `self.log")
def test_the_loss_is_the_weighted_sum(digits: Path) -> None:
    batch = first_batch(NAME, digits)
    torch.manual_seed(0)
    network = PixelUNet((8, 8), (1, 1), features=4)
    method = PixelContrast(PixelContrastSettings(within=0.3, norm="l1"), network).eval()
    one, two = (network(batch[name][0]).flatten(2) for name in ("view_1", "view_2"))
    partner, positive, valid = (batch[name][0] for name in ("partner", "positive", "valid"))
    wanted = 0.3 * within_loss(one, two, partner, positive, valid, norm="l1")
    wanted = wanted + 0.7 * between_loss(one, two, partner, valid, norm="l1")
    torch.testing.assert_close(method.loss(batch), wanted)
    alone = PixelContrast(PixelContrastSettings(within=1.0), network).eval()
    torch.testing.assert_close(alone.loss(batch), within_loss(one, two, partner, positive, valid))


def test_a_feature_map_for_each_image(digits: Path) -> None:
    batch = first_batch(NAME, digits)
    network = PixelUNet((8, 8), (1, 1), features=4).eval()
    maps = PixelContrast(PixelContrastSettings(), network).eval().embed(batch)
    assert maps.shape == (1, 64, 32, 32, 4)
    torch.testing.assert_close(
        maps[0, 3].movedim(-1, 0), network(batch["image"][0, 3:4] / 255)[0], rtol=1e-4, atol=1e-5
    )


def test_errors_name_what_is_missing() -> None:
    network = PixelUNet((8, 8), (1, 1))
    with pytest.raises(SetsupError, match=r"λ of the loss within pairs, must be in \[0, 1\], not 1.5"):
        PixelContrast(PixelContrastSettings(within=1.5), network)
    with pytest.raises(SetsupError, match=r"has no view_1, view_2, partner.*PlanarPairs or SpatialPairs"):
        PixelContrast(PixelContrastSettings(), network).loss({"image": torch.zeros(1, 2, 3, 32, 32)})


class Known(LightningModule):
    """Features that are the colour alone, or the ink alone."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.weight = torch.nn.Parameter(torch.ones(()))

    def embed(self, batch: dict) -> torch.Tensor:
        images = batch["image"].float() / 255
        ink = images.amax(-3)
        color = (images.amax((-2, -1))[..., 1] > images.amax((-2, -1))[..., 0]).float()  # cyan has no red
        said = color[..., None, None].expand_as(ink) if self.what == "color" else ink
        return torch.stack([said, said / 2], -1) * self.weight


def known(what: str, digits: Path, tmp_path: Path) -> TrainedRun:
    """A run whose method is known."""
    config = SimpleNamespace(build=lambda table, generator: Known(what))
    return TrainedRun(
        "mine/known", Known(what), seed=0, folder=tmp_path, data=find_preset(NAME).data, config=config, root=digits
    )


def test_a_swap_of_colors_moves_what_holds_the_color(digits: Path, tmp_path: Path) -> None:
    swap = ColorSwap(images=50)
    blind = swap.measure(known("ink", digits, tmp_path)).values
    assert blind["colour swapped"] == 0
    assert blind["random pixels"] > 0.02
    seeing = swap.measure(known("color", digits, tmp_path)).values
    assert seeing["colour swapped"] == pytest.approx(0.5)  # half the largest difference, which is 1
    assert seeing["ratio"] == pytest.approx(1)
    assert seeing["untrained: colour swapped"] == pytest.approx(0.5)


@pytest.mark.long("trainings")
def test_a_classifier_of_the_color_fails_where_it_means_the_opposite(digits: Path, tmp_path: Path) -> None:
    labels = PixelLabels(steps=120, images=300, stride=8, rate=1e-2)
    run = known("color", digits, tmp_path)
    measured = labels.measure(run)
    for name, split in (("ID", "test"), ("OOD", "ood")):
        dataset = run.open(split=split)
        agree = np.mean(dataset.factors.codes("label") == dataset.factors.codes("color"))
        assert measured.values[name] == pytest.approx(agree)
    assert measured.values["ID"] > 0.7
    assert measured.values["OOD"] < 0.2
    numbers, losses = measured.curves["loss of the classifier"]
    assert len(numbers) == len(losses) == 120


def test_the_grid_of_presets_and_its_report() -> None:
    found = {name for name in presets() if name.startswith("pixels/colors-") and not re.search("-d|-long", name)}
    assert len(found) == 2 * 3 * 7
    for small in ("", "-small"):
        report = find_report(f"pixels/colors{small}")
        assert {row.preset for row in report.rows} <= found
        assert report.references["the paper"]["l2, λ = 0.3", "OOD"] == (0.166, 0.188)
    whole = find_preset("pixels/colors-l1-030")
    assert (whole.steps, whole.seeds, whole.clip_value, whole.method.within, whole.method.norm) == (
        30_000,
        10,
        3.0,
        0.3,
        "l1",
    )


@pytest.mark.long("trainings")
def test_from_training_to_the_report(digits: Path, tmp_path: Path) -> None:
    preset = smoke(find_preset("pixels/colors-inf-030-small"))
    run = train(preset, tmp_path / "run", root=digits, config=RunConfig(workers=0))
    values = evaluate(run, device="cpu")
    assert {"ID", "OOD"} <= values["labels"].values.keys()
    assert values["swap"].values["random pixels"] > 0
