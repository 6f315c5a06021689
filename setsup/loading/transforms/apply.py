"""What steps do to images: by torch a whole batch at a time, on a CPU by OpenCV one image after the other."""

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile, zip_longest
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setsup.arrays import Rows
from setsup.checks.values import show_value
from setsup.errors import SetsupError
from setsup.loading.transforms.by_image import Kernel, blocks, by_array, interleaved, put, run, spread, to_levels
from setsup.loading.transforms.choices import Move, Paint, Steps
from setsup.loading.transforms.resampling.images import finish, floats, kernels
from setsup.loading.transforms.resampling.warp import warp
from setsup.loading.transforms.slots import Slots

__all__ = ["apply_steps", "mapped"]

_CHUNK = 1 << 19  # numbers a thread, so that a chain of operations works in the caches of a CPU, not in its memory


def apply_steps(images: Tensor, steps: Steps, source: Rows, rows: Rows, fill: float, eight_bit: bool) -> Tensor:
    """Apply steps to images.

    `images` (m, C, H, W); result k is made of image `source[k]` by the steps of row `rows[k]`. Returns
    (n, C′, H′, W′) float32, or uint8 with ``eight_bit``; no memory is shared with the images.
    """
    known = all(isinstance(step, Move) or hasattr(step.operation, "kernels") for step in steps)
    if known and len(rows) and by_array(images):
        return _by_image(images, steps, source, rows, fill, eight_bit)
    return _by_batch(images, steps, source, rows, fill, eight_bit)


def _by_image(images: Tensor, steps: Steps, source: Rows, rows: Rows, fill: float, eight_bit: bool) -> Tensor:
    channels, size = images.shape[1], (int(images.shape[2]), int(images.shape[3]))
    chains: list[list[Kernel]] = [[] for _ in range(int(rows.max()) + 1)]
    for step, following in zip_longest(steps, steps[1:]):
        chosen = np.arange(len(chains))
        if isinstance(step, Move):
            all_next = isinstance(following, Paint) and following.chosen is None and following.operation
            levels = eight_bit or getattr(all_next, "on_levels", False)  # what is rounded next is moved in 8 bits
            made: Any = [
                () if kernel is None else (kernel,)
                for kernel in kernels(step.matrices[: len(chains)], size, step.size, fill, levels)
            ]
            size = step.size
        else:
            if step.chosen is not None:
                chosen = np.flatnonzero(step.chosen)
            made = step.operation.kernels(step.slots.take(chosen), (channels, *size)) if len(chosen) else ()
            after = getattr(step.operation, "channels", channels)
            if after != channels and len(chosen) < len(chains):
                raise _other_channels(channels, after)
            channels = after
        for row, more in zip(chosen.tolist(), made, strict=True):
            chains[row].extend(more)
    # what starts all chains is done once to an image, whose results are made one after the other
    head = [first for first, *_ in takewhile(_common, zip(*chains, strict=False))] if len(rows) > len(images) else []
    order = np.argsort(source, kind="stable").tolist()
    # numpy has pages of 2 MB where the system gives them: to touch new memory takes a third of the time
    arrays, planes = images.numpy(), np.empty((len(rows), channels, *size), np.uint8 if eight_bit else np.float32)

    def some(numbers: range) -> None:
        last = -1
        for number in order[numbers.start : numbers.stop]:
            if source[number] != last:
                last = source[number]
                begun = interleaved(arrays[last])
                for kernel in head:
                    begun = kernel(to_levels(begun) if eight_bit else begun)
            put(run(begun, chains[rows[number]][len(head) :], eight_bit), list(planes[number]))

    spread(some, blocks(len(rows), max(math.prod(size), math.prod(images.shape[2:]))))
    return torch.from_numpy(planes)


def _common(kernels: Sequence[Kernel]) -> bool:
    """Whether kernels are one, which leaves its argument as it is."""
    return getattr(kernels[0], "levels", False) and all(kernel is kernels[0] for kernel in kernels)


def _by_batch(images: Tensor, steps: Steps, source: Rows, rows: Rows, fill: float, eight_bit: bool) -> Tensor:
    first = steps[0] if steps else None
    if isinstance(first, Move) and len(rows) > len(images) > 0 and (first.matrices == first.matrices[0]).all():
        # what happens to all images alike happens before they are copied
        images, steps = warp(images, first.matrices[: len(images)], first.size, "color", fill, eight_bit), steps[1:]
    sizes = [images.shape[2:], *(step.size for step in steps if isinstance(step, Move))]
    parts = [
        _some(images, steps, source[some], rows[some], fill, eight_bit)
        for some in _chunks(images, len(rows), images.shape[1] * max(math.prod(size) for size in sizes))
    ]
    channels = {part.shape[1] for part in parts}
    if len(channels) > 1:
        raise _other_channels(*channels)
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _chunks(values: Tensor, count: int, numbers: int) -> Iterator[slice]:
    """Results of so many numbers each that are made together: on a device all; on a CPU what its caches hold."""
    cpu = values.device.type == "cpu"
    together = max(1, torch.get_num_threads() * _CHUNK // max(1, numbers) if cpu else count)
    return (slice(start, start + together) for start in range(0, max(1, count), together))


def _some(images: Tensor, steps: Steps, source: Rows, rows: Rows, fill: float, eight_bit: bool) -> Tensor:
    results = finish(images.index_select(0, torch.from_numpy(source).to(images.device)), eight_bit)
    for step in steps:
        if isinstance(step, Move):
            results = warp(results, step.matrices[rows], step.size, "color", fill, eight_bit)
        elif step.chosen is None or step.chosen[rows].all():
            results = finish(_called(step.operation, floats(results), step.slots.take(rows)), eight_bit)
        elif step.chosen[rows].any():
            some = np.flatnonzero(step.chosen[rows])
            which = torch.from_numpy(some).to(results.device)
            part = _called(step.operation, floats(results[which]), step.slots.take(rows[some]))
            if part.shape[1] != results.shape[1]:
                raise _other_channels(results.shape[1], part.shape[1])
            results = results.index_copy(0, which, finish(part, eight_bit))
    return results


def _other_channels(before: int, after: int) -> SetsupError:
    made = f"{before} and {after}"
    return SetsupError(
        f"an operation changes the channels of only some images ({made}); apply the operation to all images"
    )


def mapped(values: Tensor, move: Move, kind: str, copies: int, fill: float) -> Tensor:
    """Anything but images (n, H, W, …) moved; (n · copies, H′, W′, …), the copies of one next to each other."""
    numbers = max(math.prod(move.size), math.prod(values.shape[1:3])) * math.prod(values.shape[3:]) * copies
    parts = []
    for some in _chunks(values, len(values), numbers):
        part = values[some].repeat_interleave(copies, dim=0)
        rows = slice(some.start * copies, some.start * copies + len(part))
        parts.append(warp(part, move.matrices[rows], move.size, kind, fill))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _called(operation: Any, images: Tensor, slots: Slots) -> Tensor:
    result = operation(images, slots)
    if not isinstance(result, Tensor) or result.dtype != torch.float32 or result.ndim != 4:
        raise SetsupError(
            f"{operation!r} must return a float32 tensor of shape (n, channels, height, width), not "
            f"{show_value(result)}"
        )
    if (result.shape[0], *result.shape[2:]) != (images.shape[0], *images.shape[2:]):
        raise SetsupError(
            f"{operation!r} changed the shape {tuple(images.shape)} to {tuple(result.shape)}, but an operation must "
            "keep the number and size of images; implement operations that change sizes as geometric operations, with "
            "a homography"
        )
    return result
