"""Resampling along rows and columns: where a matrix only moves, mirrors and resizes, x and y go their own ways.

A pixel of the result is a weighted sum of a few *taps*, pixels of one row or column of the source. The weights are
those of Pillow's bilinear resize: a triangle as wide as the distance of two pixels of the source, or of the result
where that is larger (so that shrinking averages), cut off at the box that is resized, and summing to one. The sums are
made of gathered pixels, tap after tap in one order, and not as products with weight matrices: an image's result is the
same bits whatever images stand beside it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.arrays import Reals

__all__ = ["Axis", "axis", "box_of", "separable"]

_BITS = 22  # of the fixed-point weights with which Pillow resizes images of 8 bits
_EDGE = 1e-6  # pixels: a box that ends this near to an edge of a pixel ends there


@dataclass(frozen=True, slots=True)
class Axis:
    """Taps along one axis, for each image its own.

    Attributes
    ----------
    index : (n, taps, length) int64
        Pixels of the source.
    weight : (n, taps, length) float64
        Non-negative; they sum to one, or are all zero outside.
    inside : (n, length) bool
        Whether the centre of a pixel of the result lies on the source.

    """

    index: npt.NDArray[np.int64]
    weight: Reals
    inside: npt.NDArray[np.bool_]


def axis(scale: Reals, shift: Reals, source: int, length: int) -> Axis:
    """Taps that take pixel q of the source to scale · q + shift of the result.

    `scale, shift` (n,) float64.
    """
    first, last = (end[:, None, None] for end in box_of(scale, shift, source, length))
    scale, shift = scale[:, None], shift[:, None]
    centre = (np.arange(length) - shift) / scale
    reach = np.maximum(1 / np.abs(scale), 1.0)  # of the triangle, to either side
    begin, end = np.floor(centre - reach + 1), np.floor(centre + reach)  # first and last tap
    taps = begin[:, None] + np.arange(int((end - begin).max()) + 1)[:, None]
    weight = np.maximum(0.0, 1 - np.abs(taps - centre[:, None]) / reach[:, None])
    weight[(taps < first) | (taps > last)] = 0
    total = weight.sum(axis=1, keepdims=True)
    weight /= np.where(total > 0, total, 1)
    inside = (centre >= -0.5) & (centre < source - 0.5)
    return Axis(np.clip(taps, first, last).astype(np.int64), weight, inside)


def box_of(scale: Reals, shift: Reals, source: int, length: int) -> tuple[Reals, Reals]:
    """First and last pixel of the source that the result touches, each (n,) float64."""
    edges = (np.array([[-0.5], [length - 0.5]]) - shift) / scale
    first = np.clip(np.floor(edges.min(axis=0) + 0.5 + _EDGE), 0, source - 1)
    return first, np.clip(np.ceil(edges.max(axis=0) - 0.5 - _EDGE), 0, source - 1)


def separable(images: Tensor, rows: Axis, columns: Axis) -> Tensor:
    """Weighted sums of taps along both axes; images (n, C, H, W) float32, or uint8, rounded half up after each."""
    for along, at in ((columns, 3), (rows, 2)):
        whole = images.dtype == torch.uint8
        weight = np.floor(along.weight * 2**_BITS + 0.5) if whole else along.weight
        total = None
        for tap in range(along.index.shape[1]):
            where, amount = (torch.from_numpy(one[:, tap]).to(images.device) for one in (along.index, weight))
            shape = [len(images), 1, 1, 1]
            shape[at] = -1
            sides = [-1, *images.shape[1:]]
            sides[at] = where.shape[1]
            part = images.gather(at, where.reshape(shape).expand(sides))
            part = part * amount.to(torch.int32 if whole else torch.float32).reshape(shape)
            total = part if total is None else total.add_(part)
        assert total is not None
        images = total.add_(1 << (_BITS - 1)).bitwise_right_shift_(_BITS).to(torch.uint8) if whole else total
    return images
