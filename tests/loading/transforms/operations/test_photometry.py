"""Brightness, contrast, saturation and hue on floats: published formulas, colorsys, kornia, scikit-image."""

import colorsys
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from setsup import random
from setsup.errors import SetsupError

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms.operations.photometry import AddBrightness, Brightness, Contrast, Gray, Hue, Saturation
from setsup.loading.transforms.slots import Slots

RARE = 1e-4  # every statistic below is a fixed number, for its key is
LUMA = np.array([0.299, 0.587, 0.114])


def slots_for(n: int, seed: int = 0) -> Slots:
    return Slots(random.fold(random.stream_key(seed, "photometry"), np.arange(n, dtype=np.uint64)))


def pictures(n: int, channels: int = 3, height: int = 13, width: int = 17) -> torch.Tensor:
    found = torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(1))
    found[:, :, 0] = found[:, :1, 0]  # some greys
    found[:, :, 1, :4] = torch.tensor([0.0, 1.0, 0.5, 0.25])
    if channels == 3:
        corners = torch.tensor([[r, g, b] for r in (0.0, 1.0) for g in (0.0, 1.0) for b in (0.0, 1.0)])
        found[:, :, 2, :8] = corners.T
    return found


def blended(image: np.ndarray, base: np.ndarray | float, factor: float) -> np.ndarray:
    return np.clip(factor * image + (1 - factor) * base, 0, 1)


def turned(image: np.ndarray, turns: float) -> np.ndarray:
    """Each pixel through colorsys."""

    def pixel(rgb: np.ndarray) -> tuple[float, float, float]:
        hue, saturation, value = colorsys.rgb_to_hsv(*rgb)
        return colorsys.hsv_to_rgb((hue + turns) % 1.0, saturation, value)

    return np.apply_along_axis(pixel, 0, image)


FORMULAS = {
    Brightness: lambda image, f: blended(image, 0.0, f),
    AddBrightness: lambda image, f: np.clip(image + f, 0, 1),
    Contrast: lambda image, f: blended(image, np.tensordot(LUMA, image, 1).mean(), f),
    Saturation: lambda image, f: blended(image, np.tensordot(LUMA, image, 1), f),
    Hue: turned,
}
RANGES = {
    Brightness: (0.2, 2.5),
    AddBrightness: (-0.6, 0.6),
    Contrast: (0.0, 3.0),
    Saturation: (0.0, 3.0),
    Hue: (-1.3, 1.3),
}


@pytest.mark.parametrize("kind", FORMULAS)
def test_each_image_by_the_formula_and_its_own_amount(kind: type) -> None:
    images, slots = pictures(6), slots_for(6)
    found = kind(*RANGES[kind])(images, slots)
    amounts = slots.uniform(*RANGES[kind])
    assert len(set(amounts)) == 6
    for image, amount, result in zip(images.double().numpy(), amounts, found.numpy(), strict=True):
        np.testing.assert_allclose(result, FORMULAS[kind](image, amount), atol=2e-6)


@pytest.mark.parametrize("kind", [Brightness, AddBrightness, Contrast])
def test_grey_images_by_the_same_formula(kind: type) -> None:
    images, slots = pictures(4, channels=1), slots_for(4)
    found = kind(*RANGES[kind])(images, slots)
    for image, amount, result in zip(images.double().numpy(), slots.uniform(*RANGES[kind]), found.numpy(), strict=True):
        formula = (lambda i, f: blended(i, i.mean(), f)) if kind is Contrast else FORMULAS[kind]
        np.testing.assert_allclose(result, formula(image, amount), atol=1e-6)


@pytest.mark.parametrize("operation", [Saturation(2, 3), Hue(0.1, 0.4), Gray()])
def test_grey_images_have_no_color_to_change(operation: object) -> None:
    images = pictures(3, channels=1)
    assert torch.equal(operation(images, slots_for(3)), images)


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (Brightness(1.4, 1.4), "adjust_brightness_accumulative"),
        (Contrast(1.4, 1.4), "adjust_contrast_with_mean_subtraction"),
        (Saturation(1.4, 1.4), "adjust_saturation_with_gray_subtraction"),
    ],
)
def test_kornia_agrees(operation: object, name: str) -> None:
    enhance = pytest.importorskip("kornia", reason="kornia is not installed").enhance
    images = pictures(3)
    torch.testing.assert_close(operation(images, slots_for(3)), getattr(enhance, name)(images, 1.4), atol=1e-6, rtol=0)


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3), st.floats(-3, 3))
def test_hue_is_that_of_colorsys(color: list[float], turns: float) -> None:
    found = Hue(turns, turns)(torch.tensor(color).view(1, 3, 1, 1), slots_for(1)).flatten().numpy()
    # a chroma that is nearly nought has any hue
    np.testing.assert_allclose(found, turned(np.array(color)[:, None, None], turns).ravel(), atol=1e-5)


@settings(max_examples=30)
@given(st.floats(-2, 2))
def test_a_hue_turned_back_is_the_image_and_keeps_saturation_and_value(turns: float) -> None:
    images = pictures(2)
    there = Hue(turns, turns)(images, slots_for(2))
    torch.testing.assert_close(there.amax(1), images.amax(1), atol=1e-6, rtol=0)
    torch.testing.assert_close(there.amin(1), images.amin(1), atol=1e-6, rtol=0)
    torch.testing.assert_close(Hue(-turns, -turns)(there, slots_for(2)), images, atol=5e-6, rtol=0)


def test_hue_agrees_with_scikit_image() -> None:
    color = pytest.importorskip("skimage.color", reason="scikit-image is not installed")
    images = pictures(1)
    hsv = color.rgb2hsv(images[0].permute(1, 2, 0).double().numpy())
    hsv[..., 0] = (hsv[..., 0] + 0.3) % 1
    found = Hue(0.3, 0.3)(images, slots_for(1))[0].permute(1, 2, 0).numpy()
    np.testing.assert_allclose(found, color.hsv2rgb(hsv), atol=5e-6)


def test_a_hue_turned_by_up_to_half_a_turn_but_not_by_little() -> None:
    n = 4000
    red = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1).expand(n, 3, 1, 1).contiguous()
    found = Hue(0.2, 0.8)(red, slots_for(n)).flatten(1).numpy()
    hues = np.array([colorsys.rgb_to_hsv(*color)[0] for color in found])
    away = np.minimum(hues, 1 - hues)
    assert away.min() > 0.2 - 1e-6
    assert stats.kstest(away, "uniform", args=(0.2, 0.3)).pvalue > RARE
    assert stats.binomtest(int((hues < 0.5).sum()), n).pvalue > RARE


def test_gray_is_luma_in_all_channels() -> None:
    images = pictures(3)
    found = Gray()(images, slots_for(3))
    wanted = np.einsum("c,nchw->nhw", LUMA, images.double().numpy())
    for channel in range(3):
        np.testing.assert_allclose(found[:, channel].numpy(), wanted, atol=1e-6)
    found[:, 0] = 0  # channels do not share memory
    assert found[:, 1].any()


def test_amounts_are_uniform() -> None:
    n = 3000
    found = Brightness(0.5, 1.5)(torch.full((n, 1, 1, 1), 0.5), slots_for(n)).flatten().double().numpy()
    assert stats.kstest(2 * found, "uniform", args=(0.5, 1.0)).pvalue > RARE


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize(("low", "high"), [(2, 1), (math.nan, 1), (0, math.inf), ("0", 1), (True, 1), (None, 1)])
def test_a_range_must_be_one(kind: type, low: object, high: object) -> None:
    with pytest.raises(SetsupError, match=f"{kind.__name__}: low and high must be two numbers"):
        kind(low, high)


@pytest.mark.parametrize("kind", [Brightness, Contrast, Saturation])
def test_factors_are_not_negative(kind: type) -> None:
    with pytest.raises(
        SetsupError, match=rf"{kind.__name__}: low and high must be two numbers .* of at least 0 .* not \(-0\.1, 1\)"
    ):
        kind(-0.1, 1)
