"""Resampling along rows and columns: where a matrix only moves, mirrors and resizes, x and y go their own ways.

A pixel of the result is a weighted sum of a few *taps*, pixels of one row or column of the source. The weights are
those of Pillow's bilinear resize: a triangle as wide as the distance of two pixels of the source, or of the result
where that is larger (so that shrinking averages), cut off at the box that is resized, and summing to one. The sums are
made of gathered pixels, tap after tap in one order, and not as products with weight matrices: an image's result is the
same bits whatever images stand beside it and however many threads run, and the cost grows with the taps only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.arrays import Reals

__all__ = ["Axis", "axis", "separable", "single", "whole_axis"]

Pick = Callable[[Tensor, npt.NDArray[np.int64]], Tensor]

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

    @property
    def taps(self) -> int:
        """Taps of a pixel."""
        return int(self.index.shape[1])


def axis(scale: Reals, shift: Reals, source: int, length: int) -> Axis:
    """Taps that take pixel q of the source to scale · q + shift of the result.

    `scale, shift` (n,) float64.
    """
    scale, shift = scale[:, None], shift[:, None]
    centre = (np.arange(length) - shift) / scale
    reach = np.maximum(1 / np.abs(scale), 1.0)  # of the triangle, to either side
    edges = (np.array([-0.5, length - 0.5]) - shift) / scale
    first = np.clip(np.floor(edges.min(axis=1, keepdims=True) + 0.5 + _EDGE), 0, source - 1)
    last = np.clip(np.ceil(edges.max(axis=1, keepdims=True) - 0.5 - _EDGE), 0, source - 1)
    begin, end = np.floor(centre - reach + 1), np.floor(centre + reach)  # first and last tap
    taps = begin[:, None] + np.arange(int((end - begin).max()) + 1)[:, None]
    weight = np.maximum(0.0, 1 - np.abs(taps - centre[:, None]) / reach[:, None])
    weight[(taps < first[:, None]) | (taps > last[:, None])] = 0
    total = weight.sum(axis=1, keepdims=True)
    weight /= np.where(total > 0, total, 1)
    inside = (centre >= -0.5) & (centre < source - 0.5)
    return Axis(np.clip(taps, first[:, None], last[:, None]).astype(np.int64), weight, inside)


def whole_axis(scale: Reals, shift: Reals, source: int, length: int) -> Axis:
    """One tap a pixel, for scales of 1 or −1 and whole shifts."""
    place = (np.arange(length) - shift[:, None]) * scale[:, None]
    inside = (place >= 0) & (place < source)
    return Axis(np.clip(place, 0, source - 1).astype(np.int64)[:, None], inside[:, None].astype(np.float64), inside)


def single(images: Tensor, rows: Axis, columns: Axis) -> Tensor:
    """Pixels at the first taps, (n, C, height, width) of the images' dtype: no arithmetic is done on them."""
    picked, index = _rows(images, rows.index[:, 0]), columns.index[:, 0]
    steps = np.unique(np.diff(index[0]))
    if len(steps) == 1 and abs(steps[0]) == 1 and (index == index[0]).all():  # no gather for what is a slice
        cut = picked[..., index[0].min() : index[0].max() + 1]
        return cut if steps[0] == 1 else cut.contiguous().flip(-1)
    return _columns(picked, index)


def separable(images: Tensor, rows: Axis, columns: Axis) -> Tensor:
    """Weighted sums of taps along both axes.

    `images` (n, C, H, W) float32 or uint8; returns (n, C, height, width) of the images' dtype.
    """
    if images.dtype != torch.uint8:
        return _sum(_columns, _sum(_rows, images, rows), columns)
    start = rows.index.min(axis=(1, 2))  # only rows that are taps later, for columns cost more than rows
    count = int((rows.index.max(axis=(1, 2)) - start).max()) + 1
    window = np.minimum(start[:, None] + np.arange(count), images.shape[2] - 1)
    moved = Axis(rows.index - start[:, None, None], rows.weight, rows.inside)
    return _sum_whole(_rows, _sum_whole(_columns, _rows(images, window), columns), moved)


def _sum(pick: Pick, images: Tensor, along: Axis) -> Tensor:
    """Sum of taps in float32; products and sums are rounded one by one, the same on every device."""
    parts = _parts(pick, images, along.index)
    if along.taps == 1:
        return next(parts)
    weight = _spread(along.weight, images, pick, torch.float32)
    total = next(parts) * weight[:, 0]
    for tap, part in enumerate(parts, start=1):
        total.add_(part * weight[:, tap])
    return total


def _sum_whole(pick: Pick, images: Tensor, along: Axis) -> Tensor:
    """Sum of taps of 8 bits in fixed point, rounded half up."""
    weight = _spread(np.floor(along.weight * 2**_BITS + 0.5), images, pick, torch.int32)
    parts = _parts(pick, images, along.index)
    total = (next(parts) * weight[:, 0]).add_(1 << (_BITS - 1))
    for tap, part in enumerate(parts, start=1):
        total.add_(part * weight[:, tap])
    return total.bitwise_right_shift_(_BITS).clamp_(0, 255).to(torch.uint8)


def _parts(pick: Pick, images: Tensor, index: npt.NDArray[np.int64]) -> Iterator[Tensor]:
    """Pixels at each tap in turn."""
    taps, length = index.shape[1:]
    if taps > 1 and (index[:, 1:, :-1] == index[:, :-1, 1:]).all():
        # the next tap of a pixel is this tap of the next pixel, as where nothing is resized: all are one line
        line = pick(images, np.concatenate([index[:, 0], index[:, 1:, -1]], axis=1))
        along = 2 if pick is _rows else 3
        yield from (line.narrow(along, tap, length) for tap in range(taps))
    else:
        yield from (pick(images, index[:, tap]) for tap in range(taps))


def _spread(weight: Reals, like: Tensor, pick: Pick, dtype: torch.dtype) -> Tensor:
    """Weights (n, taps, length) that broadcast along the axis that is picked, (n, taps, 1, 1, length) or so."""
    found = torch.from_numpy(weight).to(like.device, dtype)
    return found[:, :, None, :, None] if pick is _rows else found[:, :, None, None, :]


def _rows(images: Tensor, index: npt.NDArray[np.int64]) -> Tensor:
    """Rows index (n, length) of images (n, C, H, W), whole rows at a time, in the images' own order of memory."""
    n, channels, height, width = images.shape
    length = index.shape[1]
    if channels > 1 and images.movedim(1, -1).is_contiguous():
        flat = (index + np.arange(n)[:, None] * height).reshape(-1)
        lines = images.movedim(1, -1).reshape(n * height, width * channels)
        return _select(lines, flat).view(n, length, width, channels).movedim(-1, 1)
    flat = (index[:, None] + np.arange(n * channels).reshape(n, channels, 1) * height).reshape(-1)
    lines = images.reshape(n * channels * height, width)
    return _select(lines, flat).view(n, channels, length, width)


def _select(lines: Tensor, index: npt.NDArray[np.int64]) -> Tensor:
    return lines.index_select(0, torch.from_numpy(index).to(lines.device))


def _columns(images: Tensor, index: npt.NDArray[np.int64]) -> Tensor:
    """Columns index (n, length) of images (n, C, H, W); the result is contiguous."""
    n, channels, height, _ = images.shape
    where = torch.from_numpy(index).to(images.device)
    return torch.gather(images, 3, where[:, None, None, :].expand(n, channels, height, index.shape[1]))
