"""Resampling along rows and columns: where a matrix only moves, mirrors and resizes, x and y go their own ways.

A pixel of the result is a weighted sum of a few *taps*, pixels of one row or column of the source. The weights are
those of Pillow's bilinear resize: a triangle as wide as the distance of two pixels of the source, or of the result
where that is larger (so that shrinking averages), cut off at the box that is resized, and summing to one. The sums are
made of gathered pixels, tap after tap in one order, and not as products with weight matrices: an image's result is the
same bits whatever images stand beside it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.arrays import Reals

__all__ = ["TIE", "Axis", "axis", "separable", "source_range"]

TIE = 2.0**-30  # pixels: of two pixels as equally near as this, the one to the right or below is the nearest
_BITS = 22  # of the fixed-point weights with which Pillow resizes images of 8 bits
_EDGE = 1e-6  # pixels: a box that ends this near to an edge of a pixel ends there


Axis = tuple[npt.NDArray[np.int64], Reals, npt.NDArray[np.bool_]]
"""Along one axis, for each image: pixels of the source and weights, (n, taps, length), and what is inside, (n, length).

Weights sum to one, or are all zero outside; a pixel of the result is inside where its centre lies on the source.
"""


def axis(scale: Reals, shift: Reals, source: int, length: int) -> Axis:
    """Taps that take pixel q of the source to scale · q + shift of the result.

    `scale, shift` (n,) float64.
    """
    first, last = (end[:, None, None] for end in source_range(scale, shift, source, length))
    scale, shift = scale[:, None], shift[:, None]
    centre = (np.arange(length) - shift) / scale
    reach = np.maximum(1 / np.abs(scale), 1.0)  # of the triangle, to either side
    begin, end = np.floor(centre - reach + 1), np.floor(centre + reach)  # first and last tap
    taps = begin[:, None] + np.arange(int((end - begin).max()) + 1)[:, None]
    weight = np.maximum(0.0, 1 - np.abs(taps - centre[:, None]) / reach[:, None])
    weight[(taps < first) | (taps > last)] = 0
    total = weight.sum(axis=1, keepdims=True)
    weight /= np.where(total > 0, total, 1)
    inside = (centre >= -0.5 - TIE) & (centre < source - 0.5 - TIE)
    used = np.flatnonzero(weight.any(axis=(0, 2)))
    used = used if len(used) else np.zeros(1, np.int64)
    return np.clip(taps, first, last).astype(np.int64)[:, used], weight[:, used], inside


def source_range(scale: Reals, shift: Reals, source: int, length: int) -> tuple[Reals, Reals]:
    """First and last pixel of the source that the result touches, each (n,) float64."""
    edges = (np.array([[-0.5], [length - 0.5]]) - shift) / scale
    first = np.clip(np.floor(edges.min(axis=0) + 0.5 + _EDGE), 0, source - 1)
    return first, np.clip(np.ceil(edges.max(axis=0) - 0.5 - _EDGE), 0, source - 1)


def separable(images: Tensor, rows: Axis, columns: Axis, once: bool = False) -> Tensor:
    """Weighted sums of taps along both axes; images (n, C, H, W) float32, or uint8.

    Sums of uint8 are rounded half up after each axis, as by Pillow, so that one in six is a level away from the
    rounded value; or, with `once`, rounded at the end, half to even as by OpenCV.
    """
    if once and images.dtype == torch.uint8:
        return separable(images.float(), rows, columns).round_().to(torch.uint8)
    for (index, weight, _), at in ((columns, 3), (rows, 2)):
        if images.dtype != torch.uint8 or index.shape[1] == 1:
            images = _sum(images, index, weight.astype(np.float32), at)
        else:
            total = _sum(images, index, np.floor(weight * 2**_BITS + 0.5).astype(np.int32), at)
            images = total.add_(1 << (_BITS - 1)).bitwise_right_shift_(_BITS).to(torch.uint8)
    return images


def _sum(images: Tensor, index: npt.NDArray[np.int64], weight: npt.NDArray[Any], at: int) -> Tensor:
    """Sum of taps along an axis; products and sums are rounded one by one, the same on every device."""
    sides, shape = list(images.shape), [len(images), 1, 1, 1]
    sides[at] = shape[at] = index.shape[2]
    taps, weights = (torch.from_numpy(array).to(images.device) for array in (index, weight))
    if at == 2 and (index == index[:1]).all():  # rows of all images alike: whole ones are copied, in half of the time
        picked = (images.index_select(at, tap) for tap in taps[0])
    else:
        picked = (images.gather(at, tap.reshape(shape).expand(sides)) for tap in taps.unbind(1))
    if index.shape[1] == 1:  # a copy: what is outside has the weight 0, and is filled
        return next(picked)
    each = zip(picked, weights.unbind(1), strict=True)
    products = (values.to(weights.dtype).mul_(amount.reshape(shape)) for values, amount in each)
    total = next(products)
    for product in products:
        total += product
    return total
