"""Posterize, equalize and autocontrast on floats."""

import numpy as np
import pytest

from setsup import random
from setsup.errors import SetsupError

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms.operations.tones import AutoContrast, Equalize, Posterize
from setsup.loading.transforms.slots import Slots


def slots_for(n: int) -> Slots:
    return Slots(random.fold(random.stream_key(0, "tones"), np.arange(n, dtype=np.uint64)))


def pictures(n: int = 4, channels: int = 3) -> torch.Tensor:
    found = torch.rand(n, channels, 23, 19, generator=torch.Generator().manual_seed(2)) ** 2
    return found * 0.8 + 0.1


@pytest.mark.parametrize("bits", range(1, 9))
def test_posterize_keeps_the_upper_bits_of_the_nearest_level(bits: int) -> None:
    images = pictures()
    levels = np.rint(images.double().numpy() * 255).astype(int)
    wanted = (levels >> (8 - bits)) << (8 - bits)
    np.testing.assert_allclose(Posterize(bits)(images, slots_for(4)).numpy() * 255, wanted, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_equalized_tones_are_uniform(channels: int) -> None:
    n = 96
    images = torch.rand(2, channels, n, n, generator=torch.Generator().manual_seed(3)) ** 3
    found = Equalize()(images, slots_for(2)).numpy().reshape(2 * channels, -1)
    for plane in found:
        counts, _ = np.histogram(plane, bins=8, range=(0, 1))
        # dark tones lie so densely that one level holds up to an eighth of all
        assert np.abs(np.cumsum(counts) / n**2 - np.arange(1, 9) / 8).max() < 0.13
        assert plane.max() == 1
    order = images.reshape(2 * channels, -1).argsort(-1)
    assert (np.diff(np.take_along_axis(found, order.numpy(), -1)) >= 0).all()


def test_autocontrast_is_linear_by_channel() -> None:
    images = pictures()
    images[1, 2] = 0.3  # uniform
    found = AutoContrast()(images, slots_for(4)).double().numpy()
    for image, result in zip(images.double().numpy(), found, strict=True):
        for channel, stretched in zip(image, result, strict=True):
            low, high = channel.min(), channel.max()
            wanted = (channel - low) / (high - low) if high > low else channel
            np.testing.assert_allclose(stretched, wanted, atol=1e-6)


@pytest.mark.parametrize("bits", [0, 9, 4.0, "4", True, None])
def test_bits_are_one_to_eight(bits: object) -> None:
    with pytest.raises(SetsupError, match="Posterize: bits must be an integer from 1 to 8"):
        Posterize(bits)
