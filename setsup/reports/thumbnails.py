"""Images of any size brought to one small size."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.errors import DataError

__all__ = ["cell_size", "thumbnail"]

_CHANNELS = (1, 2, 3, 4)


def cell_size(shapes: Iterable[tuple[int, ...]], target: int) -> tuple[int, int]:
    """Size of a cell in which images of the given shapes are shown.

    Small images grow by a whole factor as long as their longer side stays within `target`; large ones shrink to
    1.75 times the target; those between stay as they are.

    Returns (width, height) int, pixels.
    """
    scaled = [_fit_size(shape[1], shape[0], target) for shape in set(shapes)]
    return max((width for width, _ in scaled), default=target), max((height for _, height in scaled), default=target)


def _fit_size(width: int, height: int, target: int) -> tuple[int, int]:
    longest, largest = max(width, height), target * 7 // 4
    if longest <= target:
        factor = target // longest
        return width * factor, height * factor
    if longest <= largest:
        return width, height
    return max(1, round(width * largest / longest)), max(1, round(height * largest / longest))


def thumbnail(pixels: npt.NDArray[Any], target: int) -> Image.Image:
    """Make a small image; transparent parts are shown on white.

    `pixels` (height, width, 1 to 4) uint8.
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in _CHANNELS or 0 in pixels.shape:
        raise DataError(
            f"a contact sheet shows uint8 images of shape (height, width, 1 to 4), not {pixels.dtype} {pixels.shape}"
        )
    if pixels.shape[2] == 2:
        pixels = np.pad(pixels, ((0, 0), (0, 0), (0, 1)))
    plane = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    image = Image.fromarray(np.ascontiguousarray(plane))
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = image.convert("RGB")
    size = _fit_size(*image.size, target)
    enlarged = size[0] >= image.size[0] and size[1] >= image.size[1]
    return image.resize(size, Image.Resampling.NEAREST if enlarged else Image.Resampling.LANCZOS)
