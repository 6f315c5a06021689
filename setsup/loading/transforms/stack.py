"""What steps do to a stack of images, a few at a time."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setsup.arrays import Rows
from setsup.errors import SetsupError
from setsup.loading.transforms.choices import Move, Paint, Steps
from setsup.loading.transforms.resampling.images import finish, real
from setsup.loading.transforms.resampling.warp import take, warp
from setsup.loading.transforms.slots import Slots

__all__ = ["apply_steps", "mapped", "repeat_steps"]

Size = tuple[int, int]

_CHUNK = 1 << 21  # bytes of float32 a thread: a chain of operations then works in the cores' caches, not in memory


def apply_steps(images: Tensor, steps: Steps, copies: int, fill: float, eight_bit: bool) -> Tensor:
    """Apply steps to images.

    `images` (n, C, H, W); returns (n · copies, C′, H′, W′) float32, or uint8 with ``eight_bit``; no memory is shared
    with the images.
    """
    before = (int(images.shape[2]), int(images.shape[3]))
    sizes = [before, *(step.size for step in steps if isinstance(step, Move))]
    together = _together(images, max(math.prod(size) for size in sizes) * images.shape[1])
    found: Tensor | None = None
    for rows, some in _groups(steps, len(images) * copies, before):
        for start in range(0, len(rows), together):
            chunk = rows[start : start + together]
            part = take(images, torch.from_numpy(chunk // copies).to(images.device))
            part = finish(part, eight_bit) if eight_bit else part
            for step in some:
                if isinstance(step, Move):
                    part = warp(part, step.matrices[chunk], step.size, "color", fill, eight_bit)
                else:
                    part = _called(step.operation, real(part), step.slots.take(chunk))
            part = finish(part, eight_bit)
            if found is None:
                found = torch.empty((len(images) * copies, *part.shape[1:]), dtype=part.dtype, device=part.device)
            _put(part, found, chunk)
    return finish(images.new_empty((0, images.shape[1], *sizes[-1])), eight_bit) if found is None else found


def repeat_steps(steps: Steps, frames: int) -> Steps:
    """The steps of n images for n · frames, the frames of one next to each other: all frames change alike."""
    found: Steps = []
    for step in steps:
        if isinstance(step, Move):
            found.append(Move(step.matrices.repeat(frames, axis=0), step.size))
        else:
            chosen = None if step.chosen is None else step.chosen.repeat(frames)
            found.append(Paint(step.operation, step.slots.take(np.arange(len(step.slots)).repeat(frames)), chosen))
    return found


def _groups(steps: Steps, count: int, size: Size) -> Iterator[tuple[Rows, Steps]]:
    """Images that the same steps change, and these steps: nobody pays for a step that is not for its image."""
    active = np.ones((len(steps), count), dtype=bool)
    for changes, step in zip(active, steps, strict=True):
        if isinstance(step, Paint):
            changes[:] = True if step.chosen is None else step.chosen
        elif step.size == size:
            changes[:] = (step.matrices != np.eye(3)).any(axis=(1, 2))
        size = step.size if isinstance(step, Move) else size
    kinds, group = np.unique(active, axis=1, return_inverse=True)
    for number, kind in enumerate(kinds.T):
        yield np.flatnonzero(group == number), [step for step, on in zip(steps, kind, strict=True) if on]


def _put(part: Tensor, found: Tensor, rows: Rows) -> None:
    """Write images where they belong."""
    if part.shape[1] != found.shape[1]:
        made = f"{found.shape[1]} and {part.shape[1]}"
        raise SetsupError(f"an operation changes the channels of some images only ({made}): apply it to all")
    if part.device.type != "cpu":
        found.index_copy_(0, torch.from_numpy(rows).to(found.device), part)
        return
    ends = np.flatnonzero(np.diff(rows) != 1) + 1
    for first, last in pairwise([0, *ends.tolist(), len(rows)]):  # on a CPU several times quicker than index_copy_
        found[rows[first] : rows[first] + last - first] = part[first:last]


def mapped(values: Tensor, move: Move, kind: str, copies: int, fill: float) -> Tensor:
    """Anything but images (n, H, W, …) moved; (n · copies, H′, W′, …), the copies of one next to each other."""
    pixels = max(math.prod(move.size), math.prod(values.shape[1:3]))
    together = _together(values, pixels * math.prod(values.shape[3:]) * copies)
    parts = []
    for start in range(0, max(1, len(values)), together):
        part = values[start : start + together]
        part = part[:, None].expand(-1, copies, *part.shape[1:]).flatten(0, 1)
        rows = slice(start * copies, start * copies + len(part))
        parts.append(warp(part, move.matrices[rows], move.size, kind, fill))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _together(images: Tensor, numbers: int) -> int:
    """Images of so many numbers that are processed together: on a GPU all."""
    if images.device.type != "cpu":
        return max(1, len(images))
    return max(1, torch.get_num_threads() * _CHUNK // (4 * numbers))


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
