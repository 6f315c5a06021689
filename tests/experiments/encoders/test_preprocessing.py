"""Preprocessing against Pillow, which torchvision and transformers resize by."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from PIL import Image  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments.encoders import Preprocessing  # noqa: E402
from setsup.experiments.encoders.preprocessing import IMAGENET_MEAN, IMAGENET_STD, as_rgb  # noqa: E402

PLAIN = {"mean": (0.0,) * 3, "std": (1.0,) * 3}
SIZES = [(64, 64), (97, 150), (301, 203)]


def noise(height: int, width: int, channels: int = 3) -> torch.Tensor:
    dice = np.random.default_rng(height)
    return torch.from_numpy(dice.integers(0, 256, (2, channels, height, width), dtype=np.uint8))


def by_pillow(image: torch.Tensor, size: int, how: Image.Resampling) -> np.ndarray:
    """The shorter edge to a length, as torchvision's documentation has it: int(size * longer / shorter)."""
    pillow = Image.fromarray(image.permute(1, 2, 0).numpy())
    shorter = min(pillow.size)
    return np.asarray(pillow.resize(tuple(int(size * side / shorter) for side in pillow.size), how))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
def test_resizing_is_pillows_within_a_level(size: tuple[int, int], how: str) -> None:
    images = noise(*size)
    found = Preprocessing(resize=96, interpolation=how, **PLAIN)(images) * 255
    for image, one in zip(images, found, strict=True):
        expected = by_pillow(image, 96, Image.Resampling[how.upper()])
        assert one.shape == (3, *expected.shape[:2])
        assert np.abs(one.permute(1, 2, 0).numpy() - expected).max() < 1.01


def test_imagenet_is_resized_cropped_and_normalised() -> None:
    images = noise(300, 407)
    found = Preprocessing(resize=256, crop=(224, 224))(images)
    assert found.shape == (2, 3, 224, 224)
    whole = by_pillow(images[0], 256, Image.Resampling.BILINEAR)
    assert whole.shape[:2] == (256, 347)
    # 61.5 columns are left at each side: torchvision rounds halves to even numbers
    expected = (whole[16:240, 62:286] / 255 - IMAGENET_MEAN) / IMAGENET_STD
    assert np.abs(found[0].permute(1, 2, 0).numpy() - expected).max() < 1.01 / 255 / min(IMAGENET_STD)
    down = Preprocessing(resize=256, crop=(224, 224), half="down")(images)
    expected = (whole[16:240, 61:285] / 255 - IMAGENET_MEAN) / IMAGENET_STD
    assert np.abs(down[0].permute(1, 2, 0).numpy() - expected).max() < 1.01 / 255 / min(IMAGENET_STD)


@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
def test_floats_and_16_bits_give_what_bytes_give(how: str) -> None:
    """Bytes are rounded after resizing, by at most half a level in each of the two directions.

    Bicubic weights also leave 0 … 255, and bytes are clipped after the first direction; not those in the middle.
    """
    images = noise(50, 70) // 4 + 96
    preprocess = Preprocessing(resize=96, interpolation=how, **PLAIN)
    found = preprocess(images)
    floats = preprocess(images.double() / 255)
    wide = preprocess((images.int() * 257).to(torch.uint16))
    assert floats.dtype == found.dtype == torch.float32
    assert (floats - found).abs().max() < 1.6 / 255
    assert torch.allclose(floats, wide, atol=1e-6)
    assert 0 <= floats.min() <= floats.max() <= 1


def test_grey_images_have_three_equal_channels() -> None:
    grey = noise(40, 40, 1)
    preprocess = Preprocessing(resize=20, **PLAIN)
    assert torch.equal(preprocess(grey), preprocess(grey.repeat(1, 3, 1, 1)))


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (
            torch.zeros(1, 4, 8, 8, dtype=torch.uint8),
            r"images for an encoder must have the shape \(n, 1 or 3, height, width\), not 4 channels",
        ),
        (torch.zeros(8, 8, dtype=torch.uint8), r"images for an encoder must have the shape .*, not the shape \(8, 8\)"),
        (torch.full((1, 3, 8, 8), 200.0), r"for an encoder must be in \[0, 1\], not from 200 to 200"),
        (torch.full((1, 3, 8, 8), torch.nan), "not from nan to nan"),
        (torch.zeros(1, 3, 8, 8, dtype=torch.int32), "images for an encoder must be .*, not int32"),
    ],
)
def test_what_is_no_image_is_refused(images: torch.Tensor, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence):
        as_rgb(images)


def test_images_smaller_than_the_crop_are_refused() -> None:
    with pytest.raises(SetsupError, match="images of 8 × 30 pixels cannot be cropped to 16 × 16"):
        Preprocessing(crop=(16, 16))(noise(8, 30))
