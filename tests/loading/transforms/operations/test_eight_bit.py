"""With eight_bit every operation is Pillow's, bit for bit: on noise, on rendered pictures, on all levels."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps
from scipy import ndimage

import setsup
from setsup import random

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms.operations import eight_bit
from setsup.loading.transforms.operations.filters import Blur, Noise, SaltAndPepper, Sobel
from setsup.loading.transforms.operations.photometry import AddBrightness, Brightness, Contrast, Gray, Hue, Saturation
from setsup.loading.transforms.operations.regions import Background, Erase, Premultiply
from setsup.loading.transforms.operations.tones import AutoContrast, Equalize, Posterize
from setsup.loading.transforms.slots import Slots

Bytes = np.ndarray  # (n, height, width, 3) uint8


def slots_for(n: int, seed: int = 0) -> Slots:
    return Slots(random.fold(random.stream_key(seed, "eight bit"), np.arange(n, dtype=np.uint64)), eight_bit=True)


@functools.cache
def rendered() -> Bytes:
    rows = np.arange(0, 480_000, 80_009)
    return setsup.load("shapes3d-procedural").fetch(rows)["image"]


def noise(n: int, height: int, width: int, levels: int = 256) -> Bytes:
    words = random.fold(np.arange(n * height * width * 3, dtype=np.uint64), 5)
    return (random.randint_below(words, levels) * (255 // (levels - 1))).astype(np.uint8).reshape(n, height, width, 3)


def gentle() -> Bytes:
    """Slow waves of colour, of few levels in dark parts, as photographs have them."""
    y, x = np.mgrid[0:48, 0:40] / 12
    waves = [np.sin(x * k + 1.3 * y + k) * np.cos(y * k - x) for k in (1, 1.5, 2)]
    lit = [middle + reach * np.stack(waves, -1) for middle, reach in ((128, 120), (30, 29), (220, 35))]
    return np.rint(np.stack(lit)).astype(np.uint8)


def uniform() -> Bytes:
    colors = np.array([[0, 0, 0], [255, 255, 255], [7, 7, 7], [200, 3, 90]], dtype=np.uint8)
    return np.tile(colors[:, None, None], (1, 8, 9, 1))


SETS = {
    "rendered": rendered,
    "noise": lambda: noise(5, 31, 29),
    "few levels": lambda: noise(3, 40, 40, levels=4),
    "gentle": gentle,
    "uniform": uniform,
    "one pixel": lambda: noise(6, 1, 1),
}


@pytest.fixture(params=SETS)
def pictures(request: pytest.FixtureRequest) -> Bytes:
    return SETS[request.param]()


def images_of(pictures: Bytes) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2))).float().div_(255)


def bytes_of(images: torch.Tensor) -> Bytes:
    """Bytes of images that are integers of 1/255, which is checked."""
    levels = images.mul(255).round()
    assert torch.equal(levels / 255, images)
    assert 0 <= levels.min() <= levels.max() <= 255
    return levels.byte().permute(0, 2, 3, 1).numpy()


def hue_by_pillow(image: Image.Image, turns: float) -> Image.Image:
    """As torchvision turns the hue of a picture of Pillow."""
    hue, saturation, value = image.convert("HSV").split()
    levels = np.array(hue)
    levels += np.array(int(turns * 255)).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(levels), saturation, value)).convert("RGB")


PILLOW = {
    Brightness: lambda image, f: ImageEnhance.Brightness(image).enhance(f),
    Contrast: lambda image, f: ImageEnhance.Contrast(image).enhance(f),
    Saturation: lambda image, f: ImageEnhance.Color(image).enhance(f),
    Hue: hue_by_pillow,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", PILLOW)
def test_enhancers_are_those_of_pillow(pictures: Bytes, kind: type, seed: int) -> None:
    ends = (-0.5, 0.5) if kind is Hue else (0.0, 3.0)
    slots = slots_for(len(pictures), seed)
    found = bytes_of(kind(*ends)(images_of(pictures), slots))
    for picture, amount, result in zip(pictures, slots.uniform(*ends), found, strict=True):
        np.testing.assert_array_equal(result, np.asarray(PILLOW[kind](Image.fromarray(picture), amount)))


@pytest.mark.parametrize("kind", [Brightness, Contrast])
def test_enhancers_of_grey_images(pictures: Bytes, kind: type) -> None:
    slots = slots_for(len(pictures))
    found = bytes_of(kind(0.0, 3.0)(images_of(pictures[..., :1]), slots))[..., 0]
    for picture, amount, result in zip(pictures, slots.uniform(0.0, 3.0), found, strict=True):
        np.testing.assert_array_equal(result, np.asarray(PILLOW[kind](Image.fromarray(picture[..., 0]), amount)))


@settings(max_examples=100)
@given(st.floats(0, 4), st.integers(0, 255))
def test_blends_of_all_levels(factor: float, other: int) -> None:
    levels = np.arange(256, dtype=np.uint8)[None]
    base = Image.new("L", (256, 1), other)
    wanted = np.asarray(Image.blend(base, Image.fromarray(levels), factor))
    found = eight_bit.blend(torch.arange(256.0), torch.tensor(float(other)), torch.tensor(factor, dtype=torch.float32))
    np.testing.assert_array_equal(found.numpy(), wanted[0])


def test_grey_of_many_colors_is_that_of_pillow() -> None:
    colors = np.arange(0, 1 << 24, 61)  # an odd stride meets all levels of each channel
    picture = np.stack([colors >> 16, (colors >> 8) & 255, colors & 255], -1).astype(np.uint8)[None, None]
    found = bytes_of(Gray()(images_of(picture), slots_for(1)))
    grey = np.asarray(Image.fromarray(picture[0]).convert("L"))
    np.testing.assert_array_equal(found[0], grey[..., None].repeat(3, -1))


@pytest.mark.parametrize("shift", [0, 1, 85, 128, 254])
def test_hue_of_many_colors_is_that_of_pillow(shift: int) -> None:
    colors = np.arange(shift, 1 << 24, 61)
    picture = np.stack([colors >> 16, (colors >> 8) & 255, colors & 255], -1).astype(np.uint8)[None, None]
    turn_hue = eight_bit.turn_hue(images_of(picture) * 255, torch.full((1, 1, 1), shift, dtype=torch.int32))
    hue, saturation, value = Image.fromarray(picture[0]).convert("HSV").split()
    moved = Image.fromarray(np.asarray(hue) + np.uint8(shift))
    wanted = Image.merge("HSV", (moved, saturation, value)).convert("RGB")
    np.testing.assert_array_equal(turn_hue[0].permute(1, 2, 0).numpy(), np.asarray(wanted))


@pytest.mark.long("large or genuine files")
def test_shares_of_the_value_in_single_precision_are_enough() -> None:
    """All levels of hue, saturation and value, back through Pillow."""
    shares = eight_bit._shares()
    hue, saturation = np.mgrid[0:256, 0:256].astype(np.uint8)
    for value in range(256):
        planes = [Image.fromarray(plane) for plane in (hue, saturation, np.full_like(hue, value))]
        wanted = np.asarray(Image.merge("HSV", planes).convert("RGB"))
        for channel, share in enumerate(shares):
            found = np.floor(share * np.float32(value) + np.float32(0.5))
            np.testing.assert_array_equal(found, wanted[..., channel])


@pytest.mark.parametrize(
    ("turns", "same"), [(0.81, -0.19), (0.63, -0.37), (1.3, 0.3), (-0.7, 0.3), (0.5, 0.5), (-0.5, -0.5)]
)
def test_turns_beyond_a_half_are_those_the_other_way(turns: float, same: float) -> None:
    picture = noise(1, 32, 32)
    found = bytes_of(Hue(turns, turns)(images_of(picture), slots_for(1)))
    np.testing.assert_array_equal(found[0], np.asarray(hue_by_pillow(Image.fromarray(picture[0]), same)))


@pytest.mark.parametrize(
    ("operation", "law"),
    [
        *((Posterize(bits), lambda image, bits=bits: ImageOps.posterize(image, bits)) for bits in range(1, 9)),
        (Equalize(), ImageOps.equalize),
        (AutoContrast(), ImageOps.autocontrast),
        (Gray(), lambda image: image.convert("L").convert("RGB")),
    ],
    ids=lambda part: "" if callable(part) and not hasattr(part, "__dataclass_fields__") else str(part),
)
def test_tones_are_those_of_pillow(pictures: Bytes, operation: object, law: object) -> None:
    found = bytes_of(operation(images_of(pictures), slots_for(len(pictures))))
    for picture, result in zip(pictures, found, strict=True):
        np.testing.assert_array_equal(result, np.asarray(law(Image.fromarray(picture))))


def test_autocontrast_of_all_ranges() -> None:
    ends = np.array(list(itertools.combinations(range(0, 256, 5), 2)))
    between = np.linspace(0, 1, 64)
    tones = np.rint(ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * between).astype(np.uint8)[:, None, :, None]
    found = bytes_of(AutoContrast()(images_of(tones), slots_for(len(tones))))
    for tone, result in zip(tones, found, strict=True):
        np.testing.assert_array_equal(result[..., 0], np.asarray(ImageOps.autocontrast(Image.fromarray(tone[..., 0]))))


@pytest.mark.parametrize(("kernel", "sigma"), [(5, 1.0), (3, 1.5), (7, 2.3)])
def test_blur_is_the_rounded_convolution(kernel: int, sigma: float) -> None:
    pictures = rendered()
    found = bytes_of(Blur(kernel, sigma=(sigma, sigma))(images_of(pictures), slots_for(len(pictures))))
    x = np.arange(kernel) - kernel // 2
    weights = np.exp(-(x**2) / (2 * sigma**2))
    weights /= weights.sum()
    exact = pictures.astype(np.float64)
    for axis in (1, 2):
        exact = ndimage.correlate1d(exact, weights, axis=axis, mode="mirror")
    clear = np.abs(exact - np.floor(exact) - 0.5) > 1e-3
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(found[clear], np.rint(exact)[clear])
    assert np.abs(found - exact).max() < 0.5 + 1e-3


def test_halves_are_rounded_to_even() -> None:
    halves = torch.arange(0.5, 8).div(255)
    assert eight_bit.to_images(eight_bit.to_levels(halves)).mul(255).round().tolist() == [0, 2, 2, 4, 4, 6, 6, 8]


def test_images_over_others_are_those_of_pillow() -> None:
    above, below = noise(1, 256, 257)[0], rendered()[0, :1, :1].repeat(256, 0).repeat(257, 1)
    alpha = np.arange(256, dtype=np.uint8)[:, None].repeat(257, 1)
    wanted = Image.fromarray(below)
    wanted.paste(Image.fromarray(above), mask=Image.fromarray(alpha))
    rgba = np.concatenate([above, alpha[..., None]], -1)
    found = bytes_of(Background(below[None])(images_of(rgba[None]), slots_for(1)))
    np.testing.assert_array_equal(found[0], np.asarray(wanted))


def test_colors_times_alpha_are_those_of_pillow() -> None:
    levels = np.arange(256, dtype=np.uint8)
    rgba = np.stack([*np.meshgrid(levels, levels)] * 2, -1)[..., [0, 0, 0, 1]]
    found = bytes_of(Premultiply()(images_of(rgba[None]), slots_for(1)))
    np.testing.assert_array_equal(found[0], np.asarray(Image.fromarray(rgba).convert("RGBa")))


@pytest.mark.parametrize(
    "operation", [AddBrightness(-0.3, 0.3), Sobel(-1, 1), Noise(0.1), SaltAndPepper(0.2), Erase()], ids=str
)
def test_what_pillow_has_no_distribution_for_is_near_the_float_result(operation: object) -> None:
    pictures = rendered()
    images, slots = images_of(pictures), slots_for(len(pictures))
    found = operation(images, slots)
    bytes_of(found)
    floats = operation(images, Slots(slots.keys))
    assert (found - floats).abs().max() <= (0.5 + 1e-3) / 255
