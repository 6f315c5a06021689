"""Affine copies of small images: rotated, sheared, scaled and translated about the centre of a larger canvas.

Convention
----------
Positions are (x, y) in pixels relative to the centre of an image, x to the right and y down; pixel centres are one unit
apart. The centre of an image maps to the centre of the canvas.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Reals
from setsup.errors import DataError, did_you_mean

__all__ = ["ORDER", "affine_copies", "affine_maps"]


ORDER = ("rotate", "shear", "scale", "translate")
"""The four steps, the first one first."""

_CHUNK = 32  # images at a time, so that what lies between two operations stays in the cache


def affine_maps(
    rotation: npt.ArrayLike,
    shear: npt.ArrayLike,
    scale: npt.ArrayLike,
    translation_x: npt.ArrayLike,
    translation_y: npt.ArrayLike,
    order: Sequence[str] = ORDER,
) -> Reals:
    """Return the affine maps from positions in an image to positions on the canvas.

    Parameters
    ----------
    rotation : (n,) float
        Radians, counterclockwise as displayed.
    shear : (n,) float
        x becomes x + shear · y.
    scale : (n,) float
        Positive, the same in both directions.
    translation_x, translation_y : (n,) float
        Pixels of the canvas, to the right and down.
    order : sequence of str
        ``rotate``, ``shear``, ``scale`` and ``translate``, in the order in which they are applied. A translation before
        a rotation or scaling is rotated or scaled too.

    Returns
    -------
    (n, 2, 3) float64
        Matrices that map (x, y, 1) in the image to (x, y) on the canvas.

    Raises
    ------
    DataError
        When the order does not contain each of the four steps exactly once.

    Examples
    --------
    >>> turned = affine_maps([np.pi / 2], [0.0], [2.0], [3.0], [0.0])
    >>> (turned @ [1.0, 0.0, 1.0]).round(9) + 0.0
    array([[ 3., -2.]])

    """
    if isinstance(order, str) or sorted(map(str, order)) != sorted(ORDER):
        wrong = [] if isinstance(order, str) else [step for step in order if step not in ORDER]
        hint = did_you_mean(wrong[0], ORDER) if wrong else ""
        raise DataError(f"order must contain each of {', '.join(ORDER)} exactly once, not {order!r}{hint}")
    angle, slant, size, x, y = (
        np.asarray(values, np.float64) for values in (rotation, shear, scale, translation_x, translation_y)
    )
    cos, sin, one, zero = np.cos(angle), np.sin(angle), np.ones_like(angle), np.zeros_like(angle)
    linear = {
        "rotate": _matrix(cos, sin, -sin, cos),
        "shear": _matrix(one, slant, zero, one),
        "scale": _matrix(size, zero, zero, size),
    }
    maps = np.zeros((*angle.shape, 2, 3))
    maps[..., [0, 1], [0, 1]] = 1.0
    for step in order:
        if step == "translate":
            maps[..., 0, 2] += x
            maps[..., 1, 2] += y
        else:
            maps = linear[step] @ maps
    return np.asarray(maps)


def affine_copies(
    images: npt.NDArray[np.uint8], maps: Reals, side: int, out: npt.NDArray[np.uint8] | None = None
) -> npt.NDArray[np.uint8]:
    """Transform each image onto a canvas: bilinear interpolation, rounded, 0 outside the image.

    Parameters
    ----------
    images : (n, height, width) uint8
        Grayscale images, treated as 0 outside their borders.
    maps : (n, 2, 3) float64
        From :func:`affine_maps`; they must be invertible.
    side : int
        Side of the square canvas in pixels.
    out : (n, side, side) uint8 array, optional
        Array that receives the result.

    Returns
    -------
    (n, side, side) uint8

    Examples
    --------
    >>> image = np.array([[[0, 9], [0, 9]]], np.uint8)
    >>> affine_copies(image, affine_maps([0.0], [0.0], [1.0], [1.0], [0.0]), 4)[0].tolist()
    [[0, 0, 0, 0], [0, 0, 0, 9], [0, 0, 0, 9], [0, 0, 0, 0]]

    """
    drawn = np.empty((len(images), side, side), np.uint8) if out is None else out
    back = _inverse(maps)
    height, width = images.shape[1:]
    # from pixels of the canvas to those of the image, which gets a frame of nothing, one pixel above and on the left
    middle, centre = (side - 1) / 2, np.array([(width - 1) / 2 + 1, (height - 1) / 2 + 1])
    start = back[..., 2] - back[..., :2].sum(-1) * middle + centre
    for first in range(0, len(images), _CHUNK):
        some = slice(first, first + _CHUNK)
        _draw(images[some], back[some, :, :2].astype(np.float32), start[some].astype(np.float32), drawn[some])
    return drawn


def _draw(images: Array, back: Array, start: Array, out: Array) -> None:
    """Interpolate some images; pixel (column, row) of the canvas shows ``start + back @ (column, row)``."""
    count, height, width = images.shape
    # two pixels below and on the right: a place on the frame still has a neighbour beyond it
    framed = np.zeros((count, height + 3, width + 3), np.float32)
    framed[:, 1:-2, 1:-2] = images
    step = np.arange(out.shape[-1], dtype=np.float32)
    along, down = back[:, :, 0, None] * step, back[:, :, 1, None] * step + start[:, :, None]
    x = along[:, 0, None, :] + down[:, 0, :, None]
    y = along[:, 1, None, :] + down[:, 1, :, None]
    # whatever lies outside is brought to the frame, where nothing is
    np.clip(x, 0, width + 1, out=x)
    np.clip(y, 0, height + 1, out=y)
    column, row = x.astype(np.int32), y.astype(np.int32)
    x -= column
    y -= row
    row *= width + 3
    row += column
    row += (np.arange(count, dtype=np.int32) * ((height + 3) * (width + 3)))[:, None, None]
    pixel = row.astype(np.intp)
    flat = framed.reshape(-1)
    upper, right, lower, last = (flat[shift:].take(pixel, mode="clip") for shift in (0, 1, width + 3, width + 4))
    right -= upper
    right *= x
    upper += right
    last -= lower
    last *= x
    lower += last
    lower -= upper
    lower *= y
    upper += lower
    upper += 0.5
    out[...] = upper.astype(np.uint8)


def _matrix(a: Reals, b: Reals, c: Reals, d: Reals) -> Reals:
    return np.stack([np.stack([a, b], -1), np.stack([c, d], -1)], -2)


def _inverse(maps: Reals) -> Reals:
    """Invert (n, 2, 3) maps."""
    a, b, c, d = maps[..., 0, 0], maps[..., 0, 1], maps[..., 1, 0], maps[..., 1, 1]
    linear = _matrix(d, -b, -c, a) / (a * d - b * c)[..., None, None]
    return np.concatenate([linear, -(linear @ maps[..., 2:])], axis=-1)
