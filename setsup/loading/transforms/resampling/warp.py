"""Resampling of a stack of images by matrices, each kind of modality by its own rule.

A pixel (x′, y′) of the result shows H⁻¹ (x′, y′, 1) of its source. Where that is outside −½ … W − ½ or −½ … H − ½, the
pixel is filled.

==========  ===========================================================================================================
``color``   Copied where a matrix only mirrors and moves by whole pixels. Where it also resizes, or moves by parts of a
            pixel: as Pillow's bilinear resize, averaging when it shrinks. Otherwise bilinear, without averaging, as
            Pillow's transform; of 8 bits, the former rounds and the latter truncates.
``label``   The nearest pixel. Integers, or anything else that must not be mixed.
``depth``   Bilinear where none of the four neighbours is 0, which is *nothing*; otherwise the nearest pixel.
``normal``  As depth, with (0, 0, 0) for nothing; then turned by the orthogonal part of the matrix at the centre of the
            image (:func:`setsup.correspondence.planar.turning`), and of length one.
``flow``    Motion in pixels. Bilinear where all four neighbours are finite, otherwise the nearest pixel; then each
            vector leads from where the matrix takes its start to where it takes its end, so that it turns and grows
            with the image.
==========  ===========================================================================================================
"""

import numpy as np
import torch
from torch import Tensor

from setsup.arrays import Matrices
from setsup.loading.transforms.resampling import images, maps

__all__ = ["warp"]

Size = tuple[int, int]

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def warp(
    values: Tensor, matrices: Matrices, size: Size, kind: str = "color", fill: float = 0.0, eight_bit: bool = False
) -> Tensor:
    """Resample a stack of images.

    `matrices` (n, 3, 3) float64; `size` (height, width).
    """
    if values.dtype in _SIGNED:  # torch selects few unsigned integers; their bits are the same
        bits = values.view(_SIGNED[values.dtype])
        filler = int(torch.tensor(int(fill), dtype=values.dtype).view(bits.dtype))
        return warp(bits, matrices, size, kind, filler).view(values.dtype)
    if not len(values):  # none, of the size and dtype that one has
        blank = values.new_zeros((1, *values.shape[1:]))
        return warp(blank, np.eye(3)[None], size, kind, fill, eight_bit)[:0]
    height, width = values.shape[2:] if kind == "color" else values.shape[1:3]
    ways = images.ways(matrices, (height, width), size)
    several = np.unique(ways)
    if len(several) == 1:
        return _one_way(several[0], values, matrices, size, kind, fill, eight_bit)
    # an image is resampled in the way of its own matrix, so that its bits do not depend on its neighbours
    parts = []
    for way in several:
        some = np.flatnonzero(ways == way)
        part = values.index_select(0, torch.from_numpy(some).to(values.device))
        parts.append((some, _one_way(way, part, matrices[some], size, kind, fill, eight_bit)))
    found = parts[0][1].new_empty((len(values), *parts[0][1].shape[1:]))
    for some, part in parts:
        found.index_copy_(0, torch.from_numpy(some).to(values.device), part)
    return found


def _one_way(
    way: int, values: Tensor, matrices: Matrices, size: Size, kind: str, fill: float, eight_bit: bool
) -> Tensor:
    """Resample images whose matrices all do the same."""
    if kind == "color":
        return images.resample(way, values, matrices, size, fill, eight_bit)
    if way == images.SAME:
        return values.clone()
    return maps.resample(values, matrices, size, kind, fill, way == images.COPIED)
