"""Distances of images: VGG16 in torchvision's layout, with ReLUs in place as there, and the pyramid by its formula."""

import logging
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import DataError, SetsupError
from setsup_papers.dcodr import PerceptualDistance, PyramidDistance, vgg16_features

CONVOLUTIONS = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
"""Numbers of torchvision's convolutions, spelled out."""
WIDTHS = (3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)
POOLS = (4, 9, 16, 23, 30)


@cache
def _state() -> dict[str, Tensor]:
    dice = torch.Generator().manual_seed(0)
    found: dict[str, Tensor] = {}
    for number, before, after in zip(CONVOLUTIONS, WIDTHS[:-1], WIDTHS[1:], strict=True):
        found[f"features.{number}.weight"] = (
            torch.randn(after, before, 3, 3, generator=dice) * (2 / (9 * before)) ** 0.5
        )
        found[f"features.{number}.bias"] = 0.1 * torch.randn(after, generator=dice)
    for number in (0, 3, 6):
        found |= {f"classifier.{number}.weight": torch.zeros(2, 2), f"classifier.{number}.bias": torch.zeros(2)}
    return found


def state() -> dict[str, Any]:
    """What torchvision's file holds, the classifier with fewer numbers."""
    return dict(_state())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vgg") / "vgg16-397923af.pth"
    torch.save(state(), path)
    return path


def as_published(images: Tensor, targets: Tensor) -> Tensor:
    """The authors' loop over layers, whose ReLUs overwrite what it stored."""

    def stored(some: Tensor) -> list[Tensor]:
        weights, kept, found = state(), [], some
        for number in range(31):
            if number in CONVOLUTIONS:
                found = functional.conv2d(
                    found, weights[f"features.{number}.weight"], weights[f"features.{number}.bias"], padding=1
                )
            elif number in POOLS:
                found = functional.max_pool2d(found, 2)
            else:
                found = found.relu_()
            if number in (2, 7, 12, 21, 30):
                kept.append(found)
        return kept

    distance = (images - targets).abs().flatten(1).mean(1)
    for have, want in zip(stored(images), stored(targets), strict=True):
        distance = distance + (have - want).abs().flatten(1).mean(1)
    return distance


def pair(channels: int = 3, side: int = 32) -> tuple[Tensor, Tensor]:
    dice = torch.Generator().manual_seed(1)
    one, other = (torch.rand(2, channels, side, side, generator=dice) for _ in range(2))
    return one, other


def test_distances_are_those_of_the_published_loop(file: Path) -> None:
    images, targets = pair()
    found = PerceptualDistance(file)(images, targets)
    with torch.no_grad():
        torch.testing.assert_close(found, as_published(images, targets), rtol=1e-4, atol=1e-5)


def test_grey_images_are_repeated(file: Path) -> None:
    images, targets = pair(1)
    distance = PerceptualDistance(file)
    torch.testing.assert_close(
        distance(images, targets), distance(images.repeat(1, 3, 1, 1), targets.repeat(1, 3, 1, 1))
    )


def test_gradients_are_those_of_the_images_only(file: Path) -> None:
    images, targets = (one.requires_grad_() for one in pair())
    distance = PerceptualDistance(file)
    distance(images, targets).sum().backward()
    assert images.grad is not None
    assert images.grad.any()
    assert targets.grad is None
    step = torch.zeros_like(images)
    step[0, 1, 5, 7] = 2e-2
    with torch.no_grad():
        slope = (distance(images + step, targets) - distance(images - step, targets)).sum() / 4e-2
    assert images.grad[0, 1, 5, 7].item() == pytest.approx(slope.item(), rel=0.2)


def test_the_network_is_neither_trained_nor_kept_and_opened_at_first(file: Path, tmp_path: Path) -> None:
    holder = nn.Sequential(PerceptualDistance(tmp_path / "gone.pth"), nn.Linear(2, 2))
    assert len(list(holder.parameters())) == len(holder.state_dict()) == 2
    with pytest.raises(DataError, match=r"gone\.pth.*pass the path"):
        holder[0](*pair())
    opened = PerceptualDistance(file)
    opened(*pair())
    assert not list(opened.parameters())
    assert not opened.state_dict()


@pytest.mark.long("trainings")
def test_random_weights_are_the_same_ones_and_say_so(caplog: pytest.LogCaptureFixture) -> None:
    before = torch.random.get_rng_state()
    with caplog.at_level(logging.WARNING, "setsup"):
        found = [PerceptualDistance("random")(*pair()) for _ in range(2)]
    assert torch.equal(*found)
    assert torch.equal(before, torch.random.get_rng_state())
    assert "RANDOM WEIGHTS" in caplog.text
    assert (found[0] > 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"features.5.weight": torch.zeros(128, 64, 1, 1)},
            r"'features\.5\.weight' in .* has the shape \(128, 64, 1, 1\)",
        ),
        ({"features.31.weight": torch.zeros(1)}, r"'features\.31\.weight', which the network does not have"),
        (
            {"features.28.bias": torch.full((512,), torch.nan)},
            r"'features\.28\.bias' in .* has values that are not finite",
        ),
        ({"features.28.bias": [1.0]}, r"'features\.28\.bias' in .* must be a tensor, not a list"),
    ],
)
def test_files_of_other_networks_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        vgg16_features(state() | change, "vgg.pth")


def test_a_file_without_features_is_refused() -> None:
    with pytest.raises(DataError, match=r"vgg\.pth has no weights features"):
        vgg16_features({"fc.weight": torch.zeros(1)}, "vgg.pth")


def test_the_pyramid_equals_its_formula() -> None:
    images, targets = pair(2, 16)

    def pyramid(some: Tensor) -> list[Tensor]:
        levels = []
        for _ in range(2):
            lower = (some[..., ::2, ::2] + some[..., 1::2, ::2] + some[..., ::2, 1::2] + some[..., 1::2, 1::2]) / 4
            levels.append(some - lower.repeat_interleave(2, -1).repeat_interleave(2, -2))
            some = lower
        return [*levels, some]

    wanted = (images - targets).abs().mean((1, 2, 3))
    for have, want in zip(pyramid(images), pyramid(targets), strict=True):
        wanted = wanted + (have - want).abs().mean((1, 2, 3))
    torch.testing.assert_close(PyramidDistance(3)(images, targets), wanted)


def test_wrong_images_are_named(file: Path) -> None:
    images, targets = pair()
    for distance in (PerceptualDistance(file), PyramidDistance()):
        with pytest.raises(DataError, match=r"images have the shape \(2, 3, 32, 32\), but targets \(1, 3, 32, 32\)"):
            distance(images, targets[:1])
    with pytest.raises(SetsupError, match="cannot be halved 2 times"):
        PyramidDistance()(images[..., :6, :6], targets[..., :6, :6])
    with pytest.raises(SetsupError, match="must be 1 or more"):
        PyramidDistance(0)


@pytest.mark.parametrize("shape", [(1, 3, 31, 64), (1, 3, 64, 16), (1, 2, 32, 32), (1, 4, 32, 32)])
def test_images_that_vgg_does_not_take_are_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(SetsupError, match="32 × 32 pixels with 1 or 3 channels, not"):
        PerceptualDistance("random")(torch.zeros(shape), torch.zeros(shape))
