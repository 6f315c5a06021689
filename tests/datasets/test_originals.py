"""Boxes of encoded images: the right side up, and JPEG decoded at a reduced scale within the stated bound."""

import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from setsup.datasets.images import decode, jpeg_at_scale, jpeg_head
from setsup.datasets.originals import Original, resize_box
from setsup.errors import DataError
from tests.conftest import GENUINE
from tests.fuzzing import survives

ORIENTATION = 0x0112


def photograph(height: int, width: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    """Waves of several lengths, edges of full contrast, saturated areas, and noise as of a sensor."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width].astype(np.float64)
    pixels = np.zeros((height, width, 3))
    for channel in range(3):
        for length in (7, 23, 90, 400):
            angle, phase = random.uniform(0, 2 * np.pi, 2)
            pixels[..., channel] += 20 * np.sin((np.cos(angle) * x + np.sin(angle) * y) * 2 * np.pi / length + phase)
    pixels += 128 + random.normal(0, 4, pixels.shape)
    for _ in range(12):
        top, left = int(random.integers(height)), int(random.integers(width))
        pixels[top : top + height // 5, left : left + width // 7] = random.integers(0, 2, 3) * 255
    return pixels.clip(0, 255).astype(np.uint8)


def jpeg(pixels: npt.NDArray[np.uint8], orientation: int = 1, **options: Any) -> bytes:
    exif = Image.Exif()
    if orientation != 1:
        exif[ORIENTATION] = orientation
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", exif=exif, **{"quality": 92, **options})
    return file.getvalue()


def boxes(height: int, width: int, count: int, seed: int = 0) -> Iterator[tuple[float, float, float, float]]:
    random = np.random.default_rng(seed)
    for number in range(count):
        wide, tall = random.uniform(0.3, 1) * width, random.uniform(0.3, 1) * height
        left, top = random.uniform(0, width - wide), random.uniform(0, height - tall)
        box = (left, top, wide, tall)
        yield box if number % 2 else tuple(float(max(1, int(side))) for side in box)  # type: ignore[misc]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_of_a_turned_photograph_are_those_of_the_image_as_a_person_sees_it(orientation: int) -> None:
    content = jpeg(photograph(70, 90), orientation)
    upright = decode(content, "x", 3)
    image = Original(content, "x", 3).open()
    assert (image.height, image.width) == upright.shape[:2]
    for box in boxes(*upright.shape[:2], 6):
        np.testing.assert_array_equal(
            image.cut(box, (20, 30), "bilinear"), resize_box(upright, box, (20, 30), "bilinear")
        )
    # at a reduced scale, too, where the image is not a multiple of that
    content = jpeg(photograph(701, 907), orientation)
    upright = decode(content, "x", 3)
    image = Original(content, "x", 3).open()
    for box in boxes(*upright.shape[:2], 6):
        found = image.cut(box, (12, 9), "bilinear").astype(int)
        assert within_the_bound(np.abs(found - resize_box(upright, box, (12, 9), "bilinear")))


def test_a_reduced_scale_is_means_of_blocks() -> None:
    """The premise of the bound, for luminance: what libjpeg-turbo decodes at 1/2 … 1/8 are means of pixels."""
    grey = photograph(160, 240)[..., 0] // 2 + 64  # no value is cut off
    content = jpeg(grey)
    head = jpeg_head(content, "x")
    assert head is not None
    whole = jpeg_at_scale(content, "x", head[0], 1, False)[..., 0].astype(np.float64)
    for scale in (2, 4, 8):
        means = whole.reshape(160 // scale, scale, 240 // scale, scale).mean(axis=(1, 3))
        found = jpeg_at_scale(content, "x", head[0], scale, False)[..., 0]
        assert np.abs(found - means).max() <= 2
        assert np.abs(found - means).mean() <= 0.5


MOST, MEAN = 12, 1.0
"""Levels of 255 by which results of photographs that were decoded at a reduced scale differ at most, and on average."""


def within_the_bound(apart: npt.NDArray[np.int64]) -> bool:
    return bool(apart.max() <= MOST and apart.mean() <= MEAN)


def apart(content: bytes, size: tuple[int, int], interpolation: Any = "bilinear") -> npt.NDArray[np.int64]:
    """How far results of boxes are from those of the image decoded whole, where it is decoded at a reduced scale."""
    whole = decode(content, "x", 3)
    image, found = Original(content, "x", 3).open(), []
    for box in boxes(*whole.shape[:2], 8):
        if min(box[2] / size[1], box[3] / size[0]) >= 8:
            exact = resize_box(whole, box, size, interpolation).astype(np.int64)
            found.append(np.abs(image.cut(box, size, interpolation) - exact))
    assert found
    return np.stack(found)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize(("interpolation", "subsampling"), [("bilinear", 0), ("bilinear", 2), ("bicubic", 1)])
def test_reduced_scales_stay_within_the_bound_on_photographs(interpolation: str, subsampling: int) -> None:
    for seed, quality in ((0, 92), (1, 75)):
        content = jpeg(photograph(1200, 1600, seed), quality=quality, subsampling=subsampling)
        for size in ((56, 56), (24, 40), (10, 10)):
            assert within_the_bound(apart(content, size, interpolation))


def genuine() -> list[Path]:
    """Photographs and textures: those of the adapters' tests, and of libraries that happen to be installed."""
    files = [path for path in sorted(GENUINE.rglob("*.jpg")) if path.is_file()]
    for package, folder in (
        ("skimage", "data"),
        ("sklearn", "datasets/images"),
        ("matplotlib", "mpl-data/sample_data"),
    ):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            files += sorted((Path(spec.origin).parent / folder).glob("*.jpg"))
    return files


@pytest.mark.long("large or genuine files")
def test_reduced_scales_stay_within_the_bound_on_genuine_files() -> None:
    if not (files := genuine()):
        pytest.skip("no genuine file is there")
    for path in files:
        content = path.read_bytes()
        with Image.open(path) as image:
            short = min(image.size)
        for size in (short // 10, short // 20, short // 40):
            assert within_the_bound(apart(content, (size, size))), path


def weights(length: int, factor: float, centre: float) -> npt.NDArray[np.float64]:
    """Those of Pillow's bilinear resize for one pixel of a result."""
    found = np.maximum(0, 1 - np.abs(np.arange(length) + 0.5 - centre) / factor)
    return np.asarray(found / found.sum())


@pytest.mark.parametrize(("scale", "shrinks"), [(2, 8), (4, 24)])
def test_no_grey_image_is_further_apart_than_derived(scale: int, shrinks: int) -> None:
    """The image for which the two ways differ most: black where one weighs more, white where the other does."""
    count = 5
    length = shrinks * count
    direct = weights(length, shrinks, length / 2)
    means = np.repeat(weights(length // scale, shrinks / scale, length / scale / 2) / scale, scale)
    difference = np.outer(direct, direct) - np.outer(means, means)
    most = 127.5 * np.abs(difference).sum()
    assert most <= 22
    content = jpeg(np.where(difference > 0, np.uint8(255), np.uint8(0)), quality=100)
    whole = decode(content, "x", 1)
    box = (0.0, 0.0, float(length), float(length))
    found = Original(content, "x", 1).open().cut(box, (count, count), "bilinear").astype(int)
    far = np.abs(found - resize_box(whole, box, (count, count), "bilinear"))[1:-1, 1:-1]
    assert 0.6 * most <= far.max() <= most + 2


@pytest.mark.long("large or genuine files")
def test_no_synthetic_worst_case_is_much_further_apart_than_photographs() -> None:
    """Stripes and noise of full contrast, whose colors are sampled or not, at low and high quality."""
    random = np.random.default_rng(0)
    y, x = np.mgrid[:480, :640]
    worst = [
        random.integers(0, 2, (480 // block, 640 // block, 3)).repeat(block, 0).repeat(block, 1) for block in (1, 4, 8)
    ]
    for period in (2, 3, 5, 8, 16):
        stripes = [(x // period) % 2, (y // period) % 2, ((x + y) // period) % 2]
        worst += [np.stack([stripe] * 3, axis=-1) for stripe in stripes] + [np.stack(stripes, axis=-1)]
    for pattern in worst:
        for subsampling, quality in ((0, 95), (2, 95), (2, 30)):
            content = jpeg((pattern * 255).astype(np.uint8), subsampling=subsampling, quality=quality)
            for size in ((18, 24), (7, 8)):
                assert apart(content, size).max() <= 16


def test_images_that_shrink_less_are_decoded_whole() -> None:
    content = jpeg(photograph(700, 900))
    whole = decode(content, "x", 3)
    image = Original(content, "x", 3).open()
    for size in ((100, 100), (88, 120), (90, 80)):
        box = (0.0, 0.0, 900.0, 700.0)
        np.testing.assert_array_equal(image.cut(box, size, "bilinear"), resize_box(whole, box, size, "bilinear"))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 3000), (3000, 1), (2, 5)])
def test_small_and_narrow_images_are_resized(height: int, width: int, tmp_path: Path) -> None:
    pixels = photograph(height, width)
    for end in ("png", "jpg"):
        path = tmp_path / f"a.{end}"
        Image.fromarray(pixels).save(path)
        image = Original(path, "x", 3).open()
        assert (image.height, image.width) == (height, width)
        whole = decode(path, "x", 3)
        expected = Image.fromarray(whole).resize((8, 6), Image.Resampling.BILINEAR)
        found = image.cut((0.0, 0.0, float(width), float(height)), (6, 8), "bilinear")
        assert np.abs(found.astype(int) - np.asarray(expected)).max() <= MOST


def test_grey_color_and_alpha_are_those_of_the_dataset() -> None:
    grey, color = jpeg(photograph(40, 40)[..., 0]), jpeg(photograph(40, 40))
    for content, channels in ((grey, 1), (grey, 3), (color, 3), (color, 4)):
        image = Original(content, "x", channels).open()
        found = image.cut((0.0, 0.0, 40.0, 40.0), (40, 40), "bilinear")
        np.testing.assert_array_equal(found, decode(content, "x", channels))
    with pytest.raises(DataError, match=r"x is a color image, but the images sampled .* are grayscale"):
        Original(color, "x", 1).open().cut((0.0, 0.0, 40.0, 40.0), (8, 8), "bilinear")


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_damaged_photograph_is_read_or_refused_in_one_sentence(orientation: int) -> None:
    def read(content: bytes) -> None:
        image = Original(content, "x", 3).open()
        box = (0.0, 0.0, float(image.width), float(image.height))
        for size in ((20, 10), (4, 5)):  # whole, and at a reduced scale
            assert image.cut(box, size, "bilinear").shape == (*size, 3)

    assert survives(jpeg(photograph(90, 70), orientation), read, 300, head=200, slack=1 << 26) > 50
