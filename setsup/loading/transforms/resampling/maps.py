"""Maps (n, H, W) or (n, H, W, k) that are no images: labels, depths, normals, flow fields."""

import numpy as np
import torch
from torch import Tensor

from setsup.arrays import Matrices
from setsup.correspondence import planar

__all__ = ["carried", "resample", "sources"]

Size = tuple[int, int]

_TIE = 2.0**-30  # pixels: of two pixels as equally near as this, the one to the right or below is the nearest
_FAR = -1e9  # pixels: where nothing is


def resample(values: Tensor, matrices: Matrices, size: Size, kind: str, fill: float, copy: bool = False) -> Tensor:
    """Labels, depths, normals or flow by matrices (n, 3, 3) that are all affine, or all not.

    `values` (n, H, W) or (n, H, W, k); `matrices` (n, 3, 3) float64; `size` (height, width); returns (n, height, width,
    …) of the values' dtype.
    """
    height, width = values.shape[1:3]
    x, y = sources(np.asarray(np.linalg.inv(matrices)), size, values.device, torch.float64)
    column = torch.floor(x.clamp(-2, width + 2) + (0.5 + _TIE)).to(torch.int64)
    row = torch.floor(y.clamp(-2, height + 2) + (0.5 + _TIE)).to(torch.int64)
    outside = (column < 0) | (column >= width) | (row < 0) | (row >= height)
    found = _at(values, row.clamp_(0, height - 1), column.clamp_(0, width - 1))
    if kind != "label" and not copy:
        found = _mixed(values, x, y, found, kind)
    if kind == "normal":
        found = _turned(found, planar.turning(matrices, (width - 1) / 2, (height - 1) / 2))
    if kind == "flow":
        found = _led(found, matrices, x, y)
    return found.masked_fill_(outside.reshape(*outside.shape, *[1] * (values.ndim - 3)), fill)


def carried(points: Tensor, matrices: Matrices, size: Size) -> tuple[Tensor, Tensor]:
    """Where matrices take points (n, k, 2), float64, and whether that is on the result, (n, k).

    As :func:`setsup.correspondence.planar.carried` and ``inside``, on the points' device.
    """
    by = torch.from_numpy(matrices).to(points.device)
    moved = points.to(torch.float64) @ by[:, :, :2].transpose(1, 2) + by[:, None, :, 2]
    depth = moved[..., 2:]
    found = moved[..., :2] / torch.where(depth > 0, depth, torch.nan)
    limits = torch.tensor([size[1] - 0.5, size[0] - 0.5], dtype=torch.float64, device=points.device)
    return found, ((found >= -0.5) & (found < limits)).all(dim=-1)


def sources(inverse: Matrices, size: Size, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Where pixels of the result come from.

    `inverse` (n, 3, 3) float64; `size` (height, width); returns `x, y` (n, height, width).
    """
    u, v = np.arange(size[1], dtype=np.float64), np.arange(size[0], dtype=np.float64)
    across, down = inverse[:, :, :1] * u, inverse[:, :, 1:2] * v + inverse[:, :, 2:]  # (n, 3, length) each
    affine = bool((inverse[:, 2] == [0, 0, 1]).all())
    if affine and not inverse[:, (0, 1), (1, 0)].any():
        x, y = (
            torch.from_numpy(part[:, at]).to(device, dtype) for at, part in ((0, across + down[:, :, :1]), (1, down))
        )
        return x[:, None, :], y[:, :, None]
    terms = [torch.from_numpy(term).to(device, dtype if affine else torch.float64) for term in (across, down)]
    x, y, *depth = (terms[0][:, at, None, :] + terms[1][:, at, :, None] for at in range(2 if affine else 3))
    if affine:
        return x, y
    far = depth[0] <= 0
    return x.div_(depth[0]).masked_fill_(far, _FAR).to(dtype), y.div_(depth[0]).masked_fill_(far, _FAR).to(dtype)


def _at(values: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Values at pixels (n, height, width), of which rows may be one column, and columns one row."""
    n, height, width = values.shape[:3]
    image = torch.arange(n, device=values.device)[:, None, None]
    place = (image * height + row) * width + column
    flat = values.reshape(n * height * width, *values.shape[3:])
    return flat.index_select(0, place.reshape(-1)).reshape(*place.shape, *values.shape[3:])


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
    upper, lower = (one * (1 - across) + other * across for one, other in (corners[:2], corners[2:]))
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
