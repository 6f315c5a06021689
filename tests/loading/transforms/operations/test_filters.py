"""Blur, edges and noise on floats, against scipy and kornia."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, stats

from setsup import random
from setsup.errors import DataError, SetsupError

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms.operations.filters import Blur, Noise, SaltAndPepper, Sobel
from setsup.loading.transforms.slots import Slots

RARE = 1e-4  # every statistic below is a fixed number, for its key is


def slots_for(n: int, seed: int = 0) -> Slots:
    return Slots(random.fold(random.stream_key(seed, "filters"), np.arange(n, dtype=np.uint64)))


def pictures(n: int, channels: int = 3, height: int = 12, width: int = 15) -> torch.Tensor:
    return torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(4))


def smoothed(image: np.ndarray, kernel: int, sigma: float) -> np.ndarray:
    weights = np.array([math.exp(-(x**2) / (2 * sigma**2)) for x in range(-(kernel // 2), kernel // 2 + 1)])
    for axis in (-2, -1):
        image = ndimage.correlate1d(image, weights / weights.sum(), axis=axis, mode="mirror")
    return image


@settings(max_examples=40)
@given(st.sampled_from([1, 3]), st.integers(0, 5), st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32))
def test_blur_is_the_convolution_with_each_image_s_own_kernel(c: int, r: int, h: int, w: int, seed: int) -> None:
    images, slots = pictures(3, c, r + h, r + w), slots_for(3, seed)
    found = Blur(2 * r + 1, sigma=(0.3, 4.0))(images, slots)
    for image, sigma, result in zip(images.double().numpy(), slots.uniform(0.3, 4.0), found.numpy(), strict=True):
        np.testing.assert_allclose(result, smoothed(image, 2 * r + 1, sigma), atol=1e-6)


def test_blur_agrees_with_kornia() -> None:
    filters = pytest.importorskip("kornia", reason="kornia is not installed").filters
    images, slots = pictures(4), slots_for(4)
    sigma = torch.from_numpy(slots.uniform(1.0, 3.0)).float()[:, None].expand(4, 2)
    wanted = filters.gaussian_blur2d(images, (7, 7), sigma)
    torch.testing.assert_close(Blur(7, sigma=(1.0, 3.0))(images, slots), wanted, atol=1e-6, rtol=0)


def test_a_blurred_white_image_is_white_and_no_more() -> None:
    found = Blur(5, sigma=(0.5, 3.0))(torch.ones(64, 1, 8, 8), slots_for(64))
    assert found.max() <= 1
    assert found.min() > 1 - 1e-6


@pytest.mark.parametrize("channels", [1, 3])
def test_sobel_adds_the_length_of_the_gradient(channels: int) -> None:
    images, slots = pictures(5, channels), slots_for(5)
    found = Sobel(-0.9, 0.9)(images, slots)
    for image, weight, result in zip(images.double().numpy(), slots.uniform(-0.9, 0.9), found.numpy(), strict=True):
        for plane, edged in zip(image, result, strict=True):
            down, across = (ndimage.sobel(plane, axis=axis, mode="nearest") / 8 for axis in (0, 1))
            np.testing.assert_allclose(edged, np.clip(plane + weight * np.hypot(down, across), 0, 1), atol=1e-6)


def test_sobel_agrees_with_kornia() -> None:
    filters = pytest.importorskip("kornia", reason="kornia is not installed").filters
    images = pictures(3) / 2
    wanted = (images + 0.5 * filters.sobel(images, eps=0.0)).clamp(0, 1)
    torch.testing.assert_close(Sobel(0.5, 0.5)(images, slots_for(3)), wanted, atol=1e-6, rtol=0)


def test_noise_is_normal_in_every_pixel_and_channel_and_cut_off() -> None:
    images = torch.full((40, 3, 32, 32), 0.5)
    added = (Noise(0.05)(images, slots_for(40)) - 0.5).double().numpy() / 0.05
    assert stats.kstest(added.ravel(), "norm").pvalue > RARE
    assert stats.kstest(added.mean((1, 2, 3)) * math.sqrt(3 * 32 * 32), "norm").pvalue > RARE
    assert abs(np.corrcoef(added[:, 0].ravel(), added[:, 1].ravel())[0, 1]) < 4 / math.sqrt(40 * 1024)
    dark = Noise(0.05)(torch.zeros(10, 1, 32, 32), slots_for(10))
    assert dark.min() == 0
    assert abs(float((dark > 0).double().mean()) - 0.5) < 4 * 0.5 / math.sqrt(10 * 1024)


def test_noise_of_no_width_changes_nothing() -> None:
    images = pictures(2)
    assert torch.equal(Noise(0)(images, slots_for(2)), images)


def test_salt_and_pepper_strike_whole_pixels_in_equal_shares() -> None:
    images, share = pictures(50, 3, 32, 32) * 0.8 + 0.1, 0.07
    found = SaltAndPepper(share)(images, slots_for(50))
    struck = (found != images).any(1)
    colors = found.movedim(1, -1)[struck]
    assert ((colors == 0).all(-1) | (colors == 1).all(-1)).all()
    assert torch.equal(found.movedim(1, -1)[~struck], images.movedim(1, -1)[~struck])
    assert stats.binomtest(int(struck.sum()), struck.numel(), share).pvalue > RARE
    assert stats.binomtest(int((colors[:, 0] == 1).sum()), len(colors)).pvalue > RARE
    places = struck.sum(0).numpy()
    assert stats.chisquare(places.reshape(16, -1).sum(1)).pvalue > RARE


def test_salt_and_pepper_on_none_and_on_all() -> None:
    images = pictures(2) * 0.8 + 0.1
    assert torch.equal(SaltAndPepper(0)(images, slots_for(2)), images)
    assert set(SaltAndPepper(1)(images, slots_for(2)).unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("kernel", [0, 4, -3, 3.0, "3", True])
def test_kernels_are_odd(kernel: object) -> None:
    with pytest.raises(SetsupError, match="Blur: kernel must be a positive odd number of pixels"):
        Blur(kernel, sigma=(1, 1))


@pytest.mark.parametrize("sigma", [1.0, (1,), (0, 1), (2, 1), (-1, 1), ("a", 1), [2, 1], None])
def test_sigmas_are_positive(sigma: object) -> None:
    with pytest.raises(SetsupError, match=r"Blur: sigma must be two numbers \(low, high\) above 0 with low <= high"):
        Blur(3, sigma=sigma)


def test_a_kernel_must_fit_the_image() -> None:
    with pytest.raises(DataError, match=r"a kernel of 9 pixels requires larger images than \(3, 4, 20\)"):
        Blur(9, sigma=(1, 1))(pictures(2, 3, 4, 20), slots_for(2))


@pytest.mark.parametrize("sigma", [-0.1, float("nan"), "0.1", None])
def test_noise_has_a_width(sigma: object) -> None:
    with pytest.raises(SetsupError, match="Noise: sigma must be a finite number of at least 0"):
        Noise(sigma)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("inf"), "0.1"])
def test_a_share_is_of_one(share: object) -> None:
    with pytest.raises(SetsupError, match="SaltAndPepper: share must be a finite number from 0 to 1"):
        SaltAndPepper(share)
