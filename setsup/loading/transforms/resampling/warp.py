"""Resampling of a stack of images by matrices, each kind of modality by its own rule.

A pixel (x′, y′) of the result shows H⁻¹ (x′, y′, 1) of its source. Where that is outside −½ … W − ½ or −½ … H − ½, the
pixel is filled.

==========  ===========================================================================================================
``color``   Copied where a matrix only mirrors and moves by integers. Where it moves by parts of a pixel: bilinear, of 8
            bits the nearest level. Where it also resizes: as Pillow's bilinear resize, averaging when it shrinks, which
            rounds 8 bits after each axis. Otherwise bilinear, without averaging, as Pillow's transform, which
            truncates 8 bits.
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

from setsup.arrays import Matrices, Size
from setsup.correspondence import planar
from setsup.loading.transforms.resampling import images
from setsup.loading.transforms.resampling.taps import TIE

__all__ = ["carried", "warp"]

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
    results = parts[0][1].new_empty((len(values), *parts[0][1].shape[1:]))
    for some, part in parts:
        results.index_copy_(0, torch.from_numpy(some).to(values.device), part)
    return results


def _one_way(
    way: int, values: Tensor, matrices: Matrices, size: Size, kind: str, fill: float, eight_bit: bool
) -> Tensor:
    """Resample images whose matrices all do the same."""
    if kind == "color":
        return images.resample(way, values, matrices, size, fill, eight_bit)
    if way == images.SAME:
        return values.clone()
    return _mapped(values, matrices, size, kind, fill, way == images.COPIED)


def _mapped(values: Tensor, matrices: Matrices, size: Size, kind: str, fill: float, copy: bool = False) -> Tensor:
    """Labels, depths, normals or flow by matrices (n, 3, 3) that are all affine, or all not.

    `values` (n, H, W) or (n, H, W, k); `matrices` (n, 3, 3) float64; `size` (height, width); returns (n, height, width,
    …) of the values' dtype.
    """
    height, width = values.shape[1:3]
    x, y = images.sources(np.asarray(np.linalg.inv(matrices)), size, values.device, torch.float64)
    column = torch.floor(x.clamp(-2, width + 2) + (0.5 + TIE)).to(torch.int64)
    row = torch.floor(y.clamp(-2, height + 2) + (0.5 + TIE)).to(torch.int64)
    outside = (column < 0) | (column >= width) | (row < 0) | (row >= height)
    results = _at(values, row.clamp_(0, height - 1), column.clamp_(0, width - 1))
    if kind != "label" and not copy:
        results = _mixed(values, x, y, results, kind)
    if kind == "normal":
        results = _turned(results, planar.turning(matrices, (width - 1) / 2, (height - 1) / 2))
    if kind == "flow":
        results = _led(results, matrices, x, y)
    return results.masked_fill_(outside.reshape(*outside.shape, *[1] * (values.ndim - 3)), fill)


def carried(points: Tensor, matrices: Matrices, size: Size) -> tuple[Tensor, Tensor]:
    """Where matrices take points (n, k, 2), float64, and whether that is on the result, (n, k).

    As :func:`setsup.correspondence.planar.carried` and ``inside``, on the points' device.
    """
    by = torch.from_numpy(matrices).to(points.device)
    moved = points.to(torch.float64) @ by[:, :, :2].transpose(1, 2) + by[:, None, :, 2]
    depth = moved[..., 2:]
    ends = moved[..., :2] / torch.where(depth > 0, depth, torch.nan)
    limits = torch.tensor([size[1] - 0.5, size[0] - 0.5], dtype=torch.float64, device=points.device)
    return ends, ((ends >= -0.5) & (ends < limits)).all(dim=-1)


def _at(values: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Values at pixels (n, height, width), of which rows may be one column, and columns one row."""
    n, height, width = values.shape[:3]
    image = torch.arange(n, device=values.device)[:, None, None]
    pixel = (image * height + row) * width + column
    flat = values.reshape(n * height * width, *values.shape[3:])
    return flat.index_select(0, pixel.reshape(-1)).reshape(*pixel.shape, *values.shape[3:])


def _mixed(values: Tensor, x: Tensor, y: Tensor, nearest: Tensor, kind: str) -> Tensor:
    """Bilinear where all four neighbours hold something, the nearest pixel elsewhere."""
    height, width = values.shape[1:3]
    x, y = x.clamp(0, width - 1), y.clamp(0, height - 1)
    left, top = x.floor(), y.floor()
    more = [1] * (values.ndim - 3)
    across, down = (x - left).to(values.dtype), (y - top).to(values.dtype)
    across, down = across.reshape(*x.shape, *more), down.reshape(*y.shape, *more)
    columns = [(left + k).clamp_(max=width - 1).to(torch.int64) for k in (0, 1)]
    rows = [(top + k).clamp_(max=height - 1).to(torch.int64) for k in (0, 1)]
    corners = [_at(values, row, column) for row in rows for column in columns]
    held = torch.ones((), dtype=torch.bool, device=values.device)
    for corner in corners:
        something = corner.isfinite()
        if kind != "flow":  # where no motion is a motion, and nothing is not a number
            something = something & (corner != 0)
        held = held & (something.any(dim=-1, keepdim=True) if kind == "normal" else something)
    upper, lower = (left * (1 - across) + other * across for left, other in (corners[:2], corners[2:]))
    return torch.where(held, upper * (1 - down) + lower * down, nearest)


def _led(fields: Tensor, matrices: Matrices, x: Tensor, y: Tensor) -> Tensor:
    """Flow (n, h, w, 2k) that was read at pixels x, y, between the places to which matrices take its two ends.

    With p′ the pixel of the result and w = h·p + h₀ its depth, f at p becomes H(p + f) − H(p) = (A f − p′ (h·f)) /
    (w + h·f), and NaN where the field leads beyond the horizon. Of an affine matrix that is A f.
    """
    by = torch.from_numpy(matrices).to(fields.device)[:, :, :, None, None, None]
    u, v = (fields[..., axis::2].to(torch.float64) for axis in (0, 1))
    across, down, towards = (by[:, row, 0] * u + by[:, row, 1] * v for row in range(3))
    if not (matrices[:, 2] == [0, 0, 1]).all():
        column = torch.arange(fields.shape[2], dtype=torch.float64, device=fields.device)[:, None]
        row = torch.arange(fields.shape[1], dtype=torch.float64, device=fields.device)[:, None, None]
        depth = by[:, 2, 0] * x[..., None] + by[:, 2, 1] * y[..., None] + by[:, 2, 2] + towards
        depth = torch.where(depth > 0, depth, torch.nan)
        across, down = (across - column * towards) / depth, (down - row * towards) / depth
    return torch.stack([across, down], dim=-1).flatten(-2).to(fields.dtype)


def _turned(normals: Tensor, turns: Matrices) -> Tensor:
    """Normals turned in the image's plane by (n, 2, 2), and of length one; (0, 0, 0) stays."""
    turn = torch.from_numpy(turns).to(normals.device, normals.dtype)[:, None]
    flat = normals[..., :2] @ turn.transpose(-1, -2)
    turned = torch.cat([flat, normals[..., 2:]], dim=-1)
    length = turned.norm(dim=-1, keepdim=True)
    return turned.div_(torch.where(length > 0, length, 1))
