"""Objects cut out with a margin around their box, transparent beyond the image."""

import math

import numpy as np
import numpy.typing as npt

from setsup.arrays import Pixels
from setsup.datasets.adapters.boxes import crop, edges
from setsup.datasets.benchmarks.shapenet_renderings.poses import crop_to_alpha, interpolate
from setsup.errors import DataError

__all__ = ["alpha_edges", "box_margin", "crop_photo", "crop_rendering", "crop_with_margin"]

Size = tuple[int, int]


def box_margin(size: int, share: float = 0.1) -> int:
    """Pixels around a box of so many: a share of them, rounded up."""
    return math.ceil(round(share * size, 6))


def crop_rendering(image: Pixels, size: Size, margin: Size) -> Pixels:
    """A rendering cut to its object: without a margin as :func:`crop_to_alpha` does, in the published evaluation.

    `image` (H, W, 4) uint8; `size` and `margin` (rows, columns) of the box and around it; returns uint8.
    """
    if margin == (0, 0):
        return np.asarray(crop_to_alpha(image, size))
    return crop_with_margin(image, alpha_edges(image), size, margin)


def crop_photo(photo: Pixels, box: npt.NDArray[np.floating], size: Size, margin: Size) -> Pixels:
    """A photograph cut to a box of 1-based inclusive pixels, which is clipped to the image first; opaque within it.

    Without a margin pixels are taken as the published evaluation does, by ``tf.image.crop_and_resize``: row i between
    rows at ``top − 1 + i·(bottom − top)/(height − 1)``, linearly, so that the first and the last row of the box are the
    first and the last of the result; columns likewise. Nothing is smoothed where the image shrinks.

    `photo` (H, W, 3) uint8; `box` (4,) pixels; returns (h, w, 4) uint8.
    """
    height, width = photo.shape[:2]
    sides = np.clip(edges(box), 0, [width, height, width, height])
    _need_area(sides)
    if margin == (0, 0):
        left, top, right, bottom = sides.tolist()
        cropped = interpolate(photo, _between(top, bottom - 1, size[0], height), axis=0)
        cropped = np.rint(interpolate(cropped, _between(left, right - 1, size[1], width), axis=1)).astype(np.uint8)
        return np.concatenate([cropped, np.full((*size, 1), 255, np.uint8)], axis=2)
    opaque = np.concatenate([photo, np.full((height, width, 1), 255, np.uint8)], axis=2)
    return crop_with_margin(opaque, sides, size, margin)


def _between(first: float, last: float, count: int, length: int) -> npt.NDArray[np.float64]:
    """Places from the first to the last, both included, within an image; the middle where there is but one."""
    positions = np.linspace(first, last, count) if count > 1 else np.array([(first + last) / 2])
    return np.asarray(np.clip(positions, 0, length - 1))


def _need_area(sides: npt.NDArray[np.float64]) -> None:
    left, top, right, bottom = sides.tolist()
    if not (right > left and bottom > top):
        raise DataError(
            f"the box (left, top, right, bottom) = {tuple(sides.tolist())} has no area inside the image; exclude the "
            "image"
        )


def alpha_edges(image: Pixels) -> npt.NDArray[np.float64]:
    """Outer sides of the box around what is not transparent: left, top, right, bottom, (4,) float64, pixels."""
    solid = image[..., 3] > 0
    if not solid.any():
        raise DataError("the image is fully transparent, so no box can be found around an object; exclude the image")
    rows, columns = np.flatnonzero(solid.any(axis=1)), np.flatnonzero(solid.any(axis=0))
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], np.float64)


def crop_with_margin(image: Pixels, sides: npt.NDArray[np.float64], size: Size, margin: Size) -> Pixels:
    """The region whose middle `size` pixels show a box, with `margin` pixels on each side; bilinear, antialiased.

    `image` (H, W, 4) uint8; `sides` (4,) left, top, right, bottom, pixels from the upper left corner; `size` and
    `margin` (rows, columns); returns (rows + 2 · margin, columns + 2 · margin, 4) uint8, transparent beyond the image.
    """
    _need_area(sides)
    left, top, right, bottom = sides.tolist()
    down, across = (bottom - top) * margin[0] / size[0], (right - left) * margin[1] / size[1]
    region = np.array([left - across, top - down, right + across, bottom + down])
    height, width = image.shape[:2]
    over = np.ceil(np.maximum([-region[1], region[3] - height, -region[0], region[2] - width], 0)).astype(int)
    padded = np.pad(image, ((over[0], over[1]), (over[2], over[3]), (0, 0)))
    region += [over[2], over[0], over[2], over[0]]
    return crop(padded, region, (size[0] + 2 * margin[0], size[1] + 2 * margin[1]))
