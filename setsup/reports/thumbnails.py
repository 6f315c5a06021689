"""Images of any size brought to one small size."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.errors import DataError

__all__ = ["cell_size", "filled", "fit_size", "thumbnail"]

_CHANNELS = (1, 2, 3, 4)


def cell_size(shapes: Iterable[tuple[int, ...]], target: int, exact: bool = False) -> tuple[int, int]:
    """Size of a cell in which images of the given shapes are shown, as :func:`fit_size` sizes them.

    Returns (width, height) int, pixels.
    """
    scaled = [fit_size(shape[1], shape[0], target, exact) for shape in set(shapes)]
    return max((width for width, _ in scaled), default=target), max((height for _, height in scaled), default=target)


def fit_size(width: int, height: int, target: int, exact: bool = False) -> tuple[int, int]:
    """Size at which an image is shown, (width, height) int, pixels.

    Small images grow by a whole factor as long as their longer side stays within `target`; large ones shrink to
    1.75 times the target; those between stay as they are. With `exact`, the longer side is the target.
    """
    longest, largest = max(width, height), target if exact else target * 7 // 4
    if longest <= target and not exact:
        factor = target // longest
        return width * factor, height * factor
    if longest <= largest and not exact:
        return width, height
    return max(1, round(width * largest / longest)), max(1, round(height * largest / longest))


def thumbnail(pixels: npt.NDArray[Any], target: int) -> Image.Image:
    """Make a small image; transparent parts are shown on white.

    `pixels` (height, width, 1 to 4) uint8.
    """
    image = _opened(pixels)
    return _resized(image, fit_size(*image.size, target))


def filled(pixels: npt.NDArray[Any], width: int, height: int) -> Image.Image:
    """Make an image of exactly this size; what exceeds its shape is cropped evenly, and nothing is distorted.

    `pixels` (height, width, 1 to 4) uint8.
    """
    image = _opened(pixels)
    across, down = round(image.width * height / image.height), round(image.height * width / image.width)
    cover = (max(width, across), height) if across >= width else (width, max(height, down))
    resized = _resized(image, cover)
    if resized.size == (width, height):
        return resized.copy() if resized.readonly else resized  # the caller's array may change later
    left, top = (resized.width - width) // 2, (resized.height - height) // 2
    return resized.crop((left, top, left + width, top + height))


def _opened(pixels: npt.NDArray[Any]) -> Image.Image:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in _CHANNELS or 0 in pixels.shape:
        raise DataError(
            f"images of a contact sheet must be uint8 arrays of shape (height, width, 1 to 4), not {pixels.dtype} of "
            f"shape {pixels.shape}"
        )
    if pixels.shape[2] == 2:
        pixels = np.pad(pixels, ((0, 0), (0, 0), (0, 1)))
    plane = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    image = Image.fromarray(np.ascontiguousarray(plane))
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _resized(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    if size == image.size:
        return image
    if size[0] < image.width or size[1] < image.height:
        return image.resize(size, Image.Resampling.LANCZOS)
    times = min(size[0] // image.width, size[1] // image.height)
    whole = image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
    if whole.size == size:
        return whole
    if times == 1:
        return image.resize(size, Image.Resampling.LANCZOS)
    # pixels of a small image stay squares, with edges as fine as the factor allows
    finer = image.resize((image.width * (times + 1), image.height * (times + 1)), Image.Resampling.NEAREST)
    return finer.resize(size, Image.Resampling.BOX)
