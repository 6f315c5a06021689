"""What steps do to a stack of pictures, a few at a time."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.errors import SetsupError
from setsup.loading.transforms.choices import Move, Paint, Steps
from setsup.loading.transforms.pictures import finished, real
from setsup.loading.transforms.slots import Slots
from setsup.loading.transforms.warp import take, warp

__all__ = ["mapped", "processed"]

_CHUNK = 1 << 21  # bytes of float32 a thread: a chain of operations then works in the cores' caches, not in memory


def processed(images: Tensor, steps: Steps, copies: int, fill: float, eight_bit: bool) -> Tensor:
    """Apply steps to pictures.

    Parameters
    ----------
    images : (n, C, H, W)
        uint8, or float32 in 0 … 1.
    steps : list
        For n · copies pictures, the copies of one next to each other.
    copies : int
        Of each picture.
    fill : float
        What stands outside of pictures that move.
    eight_bit : bool
        Whether pictures are whole numbers of 1/255 after every step.

    Returns
    -------
    (n · copies, C′, H′, W′) float32, or uint8 with ``eight_bit``; no memory is shared with the images

    Raises
    ------
    SetsupError
        When an operation returns anything but images of the same number and size.

    """
    sizes = [step.size for step in steps if isinstance(step, Move)]
    pixels = max(math.prod(size) for size in (*sizes, images.shape[2:]))
    together = _together(images, pixels * images.shape[1] * copies)
    parts = []
    for start in range(0, len(images), together):
        which = torch.arange(start, min(start + together, len(images)), device=images.device)
        part = take(images, which.repeat_interleave(copies) if copies > 1 else which)
        part = finished(part, eight_bit) if eight_bit else part
        rows = np.arange(start * copies, start * copies + len(part))
        for step in steps:
            if isinstance(step, Move):
                part = warp(part, step.matrices[rows], step.size, "color", fill, eight_bit)
            else:
                part = _painted(real(part), step, rows)
        parts.append(finished(part, eight_bit))
    return parts[0].contiguous() if len(parts) == 1 else torch.cat(parts)


def mapped(values: Tensor, move: Move, kind: str, copies: int, fill: float) -> Tensor:
    """Labels, depths or normals (n, H, W, …) moved; (n · copies, H′, W′, …), the copies of one next to each other."""
    pixels = max(math.prod(move.size), math.prod(values.shape[1:3]))
    together = _together(values, pixels * math.prod(values.shape[3:]) * copies)
    parts = []
    for start in range(0, len(values), together):
        part = values[start : start + together]
        part = part[:, None].expand(-1, copies, *part.shape[1:]).flatten(0, 1)
        rows = slice(start * copies, start * copies + len(part))
        parts.append(warp(part, move.matrices[rows], move.size, kind, fill))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _together(images: Tensor, numbers: int) -> int:
    """Images of so many numbers that are processed together: on a GPU all."""
    if images.device.type != "cpu":
        return len(images)
    return max(1, torch.get_num_threads() * _CHUNK // (4 * numbers))


def _painted(images: Tensor, step: Paint, rows: npt.NDArray[np.int64]) -> Tensor:
    """Apply a photometric operation to those that it changes of some images, which may be written on."""
    slots = step.slots.take(rows)
    if step.chosen is None or step.chosen[rows].all():
        return _called(step.operation, images, slots)
    chosen = np.flatnonzero(step.chosen[rows])
    if not len(chosen):
        return images
    which = torch.from_numpy(chosen).to(images.device)
    some = images.index_select(0, which)
    changed = _called(step.operation, some, slots.take(chosen))
    if changed.shape != some.shape:
        raise SetsupError(
            f"{step.operation!r} made {changed.shape[1]} channels of {some.shape[1]} in some images: apply it to all"
        )
    return images.index_copy_(0, which, changed)


def _called(operation: Any, images: Tensor, slots: Slots) -> Tensor:
    found = operation(images, slots)
    if not isinstance(found, Tensor) or found.dtype != torch.float32 or found.ndim != 4:
        raise SetsupError(f"{operation!r} must return float32 images (n, channels, height, width)")
    if (found.shape[0], *found.shape[2:]) != (images.shape[0], *images.shape[2:]):
        raise SetsupError(
            f"{operation!r} made {tuple(found.shape)} of {tuple(images.shape)}: an operation keeps the number and the "
            "size of images; what changes sizes is geometric, and has a homography"
        )
    return found
