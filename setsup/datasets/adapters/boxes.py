"""Objects cropped from images by their boxes.

Convention
----------
A box is (left, top, right, bottom) in pixels as PASCAL VOC counts them, 1-based and inclusive: (1, 1, width, height)
is the whole image. Its *edges* are (left − 1, top − 1, right, bottom): distances from the image's upper left corner
to the outer sides of the pixels, where the image runs from 0 to its width and its height.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.random import fold, stream_key, uniform

__all__ = ["clipped", "crop", "edges", "jittered"]

Floats = npt.NDArray[np.floating[Any]]


def clipped(boxes: npt.ArrayLike, sizes: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Clip boxes to the image.

    `boxes` (..., 4) float, pixels; `sizes` (..., 2) float, pixels; returns (..., 4) float64.
    """
    cut = np.array(boxes, dtype=np.float64)
    size = np.broadcast_to(np.asarray(sizes, dtype=np.float64), (*cut.shape[:-1], 2))
    whole = np.isfinite(cut).all(axis=-1)
    cut[..., :2] = np.maximum(cut[..., :2], 1)
    cut[..., 2:] = np.minimum(cut[..., 2:], size[..., ::-1])
    with np.errstate(invalid="ignore"):
        inside = whole & (cut[..., 2:] >= cut[..., :2]).all(axis=-1)
    cut[~inside] = np.nan
    return cut


def edges(boxes: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the outer sides of boxes.

    `boxes` (..., 4) float, pixels; returns (..., 4) float64, pixels from the upper left corner.
    """
    sides = np.array(boxes, dtype=np.float64)
    sides[..., :2] -= 1
    return sides


def jittered(
    sides: npt.ArrayLike, rows: npt.NDArray[np.int64], margin: float, jitter: float, seed: int, stream: str
) -> npt.NDArray[np.float64]:
    """Return the edges of boxes with a margin, each side shifted at random: a pure function of the row and the seed.

    `sides` (n, 4) float, pixels; `rows` (n,) int64; returns (n, 4) float64, pixels; sides may lie outside the image.
    """
    moved = np.array(sides, dtype=np.float64)
    moves = np.broadcast_to(np.array([-margin, -margin, margin, margin]), moved.shape)
    if jitter:
        keys = fold(stream_key(seed, stream), rows.astype(np.uint64))
        bits = fold(keys[:, np.newaxis], np.arange(4, dtype=np.uint64))
        moves = moves + jitter * (2 * uniform(bits) - 1)
    lengths = moved[:, 2:] - moved[:, :2]
    moved += moves * np.concatenate([lengths, lengths], axis=1)
    return moved


def crop(pixels: npt.NDArray[np.uint8], sides: npt.ArrayLike, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Crop a box from an image and resize it, without preserving its aspect ratio.

    Uses Pillow's bilinear filter, antialiased when downsampling. Sides beyond the image are clipped.

    `pixels` (height, width, 3 or 4) uint8; `sides` (4,) float, pixels; `size` (height, width); returns uint8 of
    as many channels.
    """
    from PIL import Image

    height, width = pixels.shape[:2]
    left, top, right, bottom = np.clip(np.asarray(sides, dtype=np.float64), 0, [width, height, width, height]).tolist()
    first, last = (math.floor(left), math.floor(top)), (math.ceil(right), math.ceil(bottom))
    # cut first: Pillow would mix pixels from beyond the box into those at its sides
    image = Image.fromarray(np.ascontiguousarray(pixels[first[1] : last[1], first[0] : last[0]]))
    box = (left - first[0], top - first[1], right - first[0], bottom - first[1])
    return np.asarray(image.resize((size[1], size[0]), Image.Resampling.BILINEAR, box))
