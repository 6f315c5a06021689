"""Images (n, C, H, W), uint8 or float32 in 0 … 1: three ways to resample them, from the cheapest on.

Each way takes the images, matrices (n, 3, 3) from their pixels to those of the result, the result's (height, width),
what to fill with, and whether the result is uint8 or float32.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from setsup.arrays import Matrices
from setsup.correspondence import planar
from setsup.loading.transforms.operations.eight_bit import images_of
from setsup.loading.transforms.resampling.maps import sources
from setsup.loading.transforms.resampling.taps import Axis, axis, separable, single, whole_axis

__all__ = ["copy", "finish", "real", "slanted", "straight", "whole"]

Size = tuple[int, int]

_NOISE = 2.0**-12  # levels of 255: what float32 may lack of the integer that exact arithmetic gives


def real(images: Tensor) -> Tensor:
    """Images as float32, channels first in memory: uint8 over 255, float32 as they are."""
    if images.dtype == torch.uint8:
        return images_of(images.contiguous().to(torch.float32))
    return images.contiguous()


def whole(images: Tensor) -> Tensor:
    """Images as uint8: float32 times 255, rounded."""
    return images if images.dtype == torch.uint8 else images.mul(255).round_().clamp_(0, 255).to(torch.uint8)


def finish(images: Tensor, eight_bit: bool) -> Tensor:
    """Images as :func:`whole` or :func:`real` makes them."""
    return whole(images) if eight_bit else real(images)


def copy(images: Tensor, matrices: Matrices, size: Size, fill: float, eight_bit: bool) -> Tensor:
    """Moved by whole pixels and mirrored: as bytes where they are bytes, which is the least to move."""
    rows, columns = _axes(whole_axis, matrices, images, size)
    return _filled(finish(single(images, rows, columns), eight_bit), rows, columns, fill)


def straight(images: Tensor, matrices: Matrices, size: Size, fill: float, eight_bit: bool) -> Tensor:
    """Moved, mirrored and resized along rows and columns."""
    rows, columns = _axes(axis, matrices, images, size)
    return _filled(separable(finish(images, eight_bit), rows, columns), rows, columns, fill)


def slanted(images: Tensor, matrices: Matrices, size: Size, fill: float, eight_bit: bool) -> Tensor:
    """Bilinear, by matrices that are all affine, or all not.

    The grid is made in float64 and rounded once, so that sources are right to 2·10⁻⁴ px at 512 pixels. kornia's warps
    are grid_sample too, but give no grid, which tells what is outside; without it the image's edge would fade.
    """
    height, width = images.shape[2:]
    unit = planar.compose(planar.scaling(2 / width, 2 / height), planar.translate(1 / width - 1, 1 / height - 1))
    x, y = sources(planar.compose(np.linalg.inv(matrices), unit), size, images.device, torch.float32)
    grid = x.new_empty(*x.shape, 2)
    grid[..., 0], grid[..., 1] = x, y  # several times faster than stack
    found = functional.grid_sample(real(images), grid, mode="bilinear", padding_mode="border", align_corners=False)
    inside = (x >= -1) & (x < 1) & (y >= -1) & (y < 1)
    if eight_bit:  # Pillow's transforms truncate, and its resizes round
        found = found.mul_(255).add_(_NOISE).clamp_(0, 255).to(torch.uint8)
    return _masked(found, inside, fill)


def _axes(law: Callable[..., Axis], matrices: Matrices, images: Tensor, size: Size) -> tuple[Axis, Axis]:
    """Taps along y, which are rows, and along x."""
    y, x = (law(matrices[:, at, at], matrices[:, at, 2], images.shape[3 - at], size[1 - at]) for at in (1, 0))
    return y, x


def _filled(images: Tensor, rows: Axis, columns: Axis, fill: float) -> Tensor:
    if rows.inside.all() and columns.inside.all():
        return images
    down, across = (torch.from_numpy(along.inside).to(images.device) for along in (rows, columns))
    return _masked(images, down[:, :, None] & across[:, None, :], fill)


def _masked(images: Tensor, inside: Tensor, fill: float) -> Tensor:
    """Fill images (n, C, H, W) in place where they are not inside (n, H, W)."""
    if images.dtype == torch.uint8:
        return images.masked_fill_(~inside[:, None], round(fill * 255))
    # products with 0 and 1 change no bits, and take a fifth of the time of masked_fill_ with a mask that broadcasts
    images.mul_(inside[:, None].to(images.dtype))
    return images.add_((~inside[:, None]).to(images.dtype).mul_(fill)) if fill else images
