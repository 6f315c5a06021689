"""The arithmetic of Pillow on images of 8 bits, which truncates after every enhancement and has 8-bit hues.

Tensors hold levels, float32 of the integers 0 … 255, and results are Pillow's bit for bit. All sums are of integers
below 2²⁴, where float32 is exact; divisions and products are rounded where Pillow's are. Functions of arrays, whose
names begin with ``image_``, take uint8 (height, width, 3): OpenCV rounds a half to the even level, where Pillow rounds
it up, which changes the luma of 1 in 10⁵ pixels by a level.
"""

import functools

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.loading.transforms.by_image import Image, cv2

__all__ = ["blend", "grey", "image_grey", "image_hue_turned", "mean_grey", "to_images", "to_levels", "turn_hue"]

_SIDE = 511  # differences of two levels
_LUMA = np.array([[19595, 38470, 7471]], dtype=np.float32) / 65536


def to_levels(images: Tensor) -> Tensor:
    """A new tensor of levels: images of 0 … 1, to the nearest of 256."""
    return images.mul(255).round_()


def to_images(levels: Tensor) -> Tensor:
    """Images of 0 … 1, in the place of their levels."""
    # on a GPU torch divides by a number as it multiplies by its reciprocal, which is rounded; by a tensor it divides
    return levels.div_(levels.new_full((), 255))


def grey(levels: Tensor) -> Tensor:
    """Luma of ITU-R 601 in 16-bit fixed point, rounded, as Pillow converts colors to grey.

    `levels` (n, 3, height, width) float32; returns (n, 1, height, width) float32.
    """
    red, green, blue = levels.unbind(1)
    luma = red.mul(19595).add_(green, alpha=38470).add_(blue, alpha=7471)[:, None]
    return luma.add_(1 << 15).mul_(2.0**-16).floor_()


def image_grey(image: Image) -> Image:
    """Luma of an image, (height, width) uint8; that of a grey image is itself."""
    return image if image.ndim == 2 else cv2.transform(image, _LUMA)


def mean_grey(levels: Tensor) -> Tensor:
    """Mean of the grey image, rounded, halves up: (n, 1, 1, 1) float32."""
    lumas = grey(levels) if levels.shape[1] == 3 else levels
    pixels = levels.shape[-2] * levels.shape[-1]
    sums = lumas.sum(-1).long().sum(-1)  # a row's sum is exact in float32, that of a large image is not
    return (2 * sums + pixels).div_(2 * pixels, rounding_mode="floor").float()[..., None, None]


def blend(levels: Tensor, base: Tensor | None, factor: Tensor) -> Tensor:
    """Base + factor · (levels − base), cut to 0 … 255 and truncated, in place: Pillow's ``Image.blend``.

    `levels` (n, channels, height, width) float32; `factor` (n, 1, 1, 1) float32.
    """
    moved = levels.mul_(factor) if base is None else levels.sub_(base).mul_(factor).add_(base)
    return moved.clamp_(0, 255).floor_()


def turn_hue(levels: Tensor, shift: Tensor) -> Tensor:
    """Hue moved by some of its 256 levels, through Pillow's 8-bit hue, saturation and value and back.

    `levels` (n, 3, height, width) float32; `shift` (n, 1, 1) int32; returns (n, 3, height, width) float32.
    """
    hues, saturations, *shares = _tables_on(levels.device)
    red, green, blue = levels.unbind(1)
    highest = torch.maximum(torch.maximum(red, green), blue)
    lowest = torch.minimum(torch.minimum(red, green), blue)
    differences = torch.sub(red, green).mul_(_SIDE).add_(green).sub_(blue).add_(_SIDE * _SIDE // 2)
    saturation = _taken(saturations, highest.mul(256).add_(lowest))
    index = _taken(hues, differences).int().add_(shift).bitwise_and_(255).mul_(256).add_(saturation)
    planes = torch.stack([_taken(share, index) for share in shares], 1)
    return planes.mul_(highest[:, None]).add_(0.5).floor_()


def _taken(table: Tensor, index: Tensor) -> Tensor:
    return table.index_select(0, index.int().reshape(-1)).view(index.shape)


@functools.cache
def _tables_on(device: torch.device) -> list[Tensor]:
    return [torch.from_numpy(table).to(device) for table in _tables()]


def image_hue_turned(image: Image, shift: int) -> Image:
    """:func:`turn_hue` of an image."""
    hues, saturations, *shares = _tables()
    red, green, blue = cv2.split(image)
    highest, lowest = cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue)
    differences = np.multiply(cv2.subtract(red, green, dtype=cv2.CV_16S), _SIDE, dtype=np.intp)
    differences += cv2.subtract(green, blue, dtype=cv2.CV_16S)
    differences += _SIDE * _SIDE // 2
    hue = np.take(hues, differences, mode="clip")
    hue += np.uint8(shift & 255)
    index = _index(hue, np.take(saturations, _index(highest, lowest), mode="clip"))
    planes = [cv2.multiply(np.take(share, index, mode="clip"), highest, dtype=cv2.CV_8U) for share in shares]
    return cv2.merge(planes)


def _index(high: Image, low: Image) -> Image:
    """256 · high + low."""
    index = high.astype(np.intp)
    index <<= 8
    index |= low
    return index


@functools.cache
def _tables() -> tuple[Image, ...]:
    """Levels of hue by differences of channels, saturation by highest and lowest, shares by hue and saturation."""
    highest = np.arange(256, dtype=np.float32)[:, None]
    saturations = np.maximum(highest - highest.T, 0) / np.maximum(highest, 1) * np.float32(255)
    return tuple(table.reshape(-1) for table in (_hues(), saturations.astype(np.uint8), *_shares()))


def _hues() -> Image:
    """The level of the hue, uint8, by red − green and by green − blue, each −255 … 255.

    Pillow divides in single precision, adds in double, and rounds to single after each line.
    """
    red = np.arange(-255.0, 256)[:, None]
    blue = -np.arange(-255.0, 256)  # both less green
    highest = np.maximum(np.maximum(red, blue), 0)
    chroma = highest - np.minimum(np.minimum(red, blue), 0)
    of_red, of_green, of_blue = (_single((highest - channel) / np.maximum(chroma, 1)) for channel in (red, 0, blue))
    sixths = np.select(
        [red == highest, highest == 0], [of_blue - of_green, 2 + of_red - of_blue], 4 + of_green - of_red
    )
    turns = np.fmod(_single(sixths) / 6 + 1, 1)
    return np.where(chroma == 0, 0, _single(turns) * 255).astype(np.uint8)  # a grey has no hue


def _shares() -> tuple[Image, ...]:
    """For red, green and blue: share of the value, by levels of hue and of saturation, each 0 … 255.

    Products with all values, rounded, are those of the shares in double precision, which Pillow takes.
    """
    saturation = _single(np.arange(256) / 255)
    sixths = np.arange(256)[:, None] * 6 / 255
    part = _single(sixths - np.floor(sixths))
    falling = 1 - _single(saturation * part)  # of single precision, unlike the rising product
    rising = 1 - saturation * (1 - part)
    full, least = np.ones((256, 256)), np.broadcast_to(1 - saturation, (256, 256))
    sector = (np.floor(sixths) % 6).astype(np.int64)
    wheel = (full, falling, least, least, rising, full)  # of red; green and blue lag by two sectors and by four
    return tuple(
        np.choose(sector, [wheel[(number - lag) % 6] for number in range(6)]).astype(np.float32) for lag in (0, 2, 4)
    )


def _single(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Numbers rounded to single precision; of quotients and products of single ones, what C computes in it."""
    return numbers.astype(np.float32).astype(np.float64)
