"""One image after the other, by OpenCV: how images on a CPU go through a chain of kernels.

A kernel takes an image and returns one: (height, width), or (height, width, channels) of more than one channel. With
8 bits, images are uint8 and a kernel leaves its argument as it is. Otherwise they are float32 in 0 … 1 and a kernel may
overwrite its argument. Those whose ``levels`` is true are also given uint8 that stands for 1/255; all may return it.
Kernels that change each value by itself are composed into one look-up table as long as an image is uint8.

Any installation of OpenCV does. Without one, ``cv2`` is None, and images on a CPU are changed by torch, as on a device.
"""

import importlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import torch

__all__ = [
    "LEVELS",
    "UNIT",
    "Image",
    "Kernel",
    "OnLevels",
    "Pointwise",
    "blend",
    "blocks",
    "by_array",
    "cv2",
    "interleaved",
    "own",
    "put",
    "real",
    "room",
    "run",
    "spread",
    "to_levels",
]

try:
    cv2: Any = importlib.import_module("cv2")
except ImportError:
    cv2 = None

Image = npt.NDArray[Any]
Kernel = Callable[[Image], Image]

LEVELS = np.arange(256, dtype=np.uint8)
UNIT = LEVELS / np.float32(255)
"""What 256 levels stand for."""

_BLOCKS = 4  # parts for each thread
_THREADED = 1 << 14  # pixels of an image, from which on threads take less time than one
_CHANNELS = 4  # OpenCV merges, splits and fills no more
_LONGEST = 1 << 15  # pixels along a side, which its warps do not reach

Part = TypeVar("Part")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A kernel that changes each value by itself, uint8 or float32, in arrays of any shape."""

    change: Kernel

    def __call__(self, values: Image) -> Image:
        """Values changed."""
        return self.change(values)


@dataclass(frozen=True, slots=True)
class OnLevels:
    """A kernel of uint8, to which images of float32 are rounded first."""

    change: Kernel

    levels: ClassVar[bool] = True

    def __call__(self, image: Image) -> Image:
        """The image changed, uint8."""
        return self.change(to_levels(image))


def run(image: Image, kernels: Iterable[Kernel], eight_bit: bool) -> Image:
    """An image after all kernels, uint8 with ``eight_bit`` and float32 otherwise; the image given stays as it is."""
    plain = LEVELS if eight_bit else UNIT
    if image.dtype != np.uint8:
        image = to_levels(np.ascontiguousarray(image)) if eight_bit else np.array(image, order="C")
    table = None
    for kernel in kernels:
        if isinstance(kernel, Pointwise) and image.dtype == np.uint8:
            table = kernel(plain if table is None else table)
            table = table if eight_bit or table.dtype != np.uint8 else UNIT[table]
            continue
        if table is not None:
            image, table = cv2.LUT(image, table, room(image, table.dtype)), None
        image = kernel(image if eight_bit or getattr(kernel, "levels", False) else real(image))
    if table is not None:
        return cv2.LUT(image, table, room(image, table.dtype))
    return image if eight_bit else real(image)


def real(image: Image) -> Image:
    """An image as float32: uint8 over 255."""
    return cv2.LUT(image, UNIT, room(image)) if image.dtype == np.uint8 else image


def interleaved(planes: Image) -> Image:
    """Planes (channels, height, width) as an image of its own layout, in their memory where that has it."""
    image = planes.transpose(1, 2, 0)
    if len(planes) == 1:
        return planes[0]
    return image if image.flags.c_contiguous else cv2.merge(list(planes))


def room(image: Image, dtype: npt.DTypeLike = np.float32) -> Image:
    """Where a result as large as an image goes: OpenCV asks for Python's lock once more to make it."""
    return np.empty(image.shape, dtype)


def put(image: Image, planes: Sequence[Image]) -> None:
    """Write an image as planes, (height, width) for each channel."""
    if image.ndim == 2:
        planes[0][:] = image
    else:
        cv2.split(image, planes)


def to_levels(image: Image) -> Image:
    """An image as uint8: float32 in 0 … 1 is rounded."""
    if image.dtype == np.uint8:
        return image
    return cv2.addWeighted(image, 255, image, 0, 0, dtype=cv2.CV_8U).reshape(image.shape)


def own(values: Image) -> Image | None:
    """Values, if a kernel may overwrite them: not levels, and not the table of an image yet to be changed."""
    return values if values.dtype != np.uint8 and values.ndim > 1 else None


def blend(values: Image, factor: Any, offset: Any = 0.0) -> Image:
    """Values times a factor plus an offset, cut to their range; levels are truncated, as Pillow does."""
    moved = np.multiply(values, np.float32(factor), out=own(values))
    if offset:
        moved += np.float32(offset)
    if values.dtype != np.uint8:
        return np.clip(moved, 0, 1, out=moved)
    return np.clip(moved, 0, 255, out=moved).astype(np.uint8)


def by_array(images: torch.Tensor) -> bool:
    """Whether images (n, C, H, W) go through OpenCV: where it is, on a CPU, and not for gradients."""
    plain = images.device.type == "cpu" and not images.requires_grad and len(images)
    return cv2 is not None and bool(plain) and images.shape[1] <= _CHANNELS and max(images.shape[2:]) < _LONGEST


def spread(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Results of parts, which are worked on by as many threads as torch has here; OpenCV itself has one meanwhile."""
    threads, user = min(torch.get_num_threads(), len(parts)), object()
    results: dict[int, Result] = {}
    left = iter(range(len(parts)))

    def some() -> None:
        for number in left:
            results[number] = work(parts[number])

    _enter(user)
    try:
        others = [_pool(threads - 1).submit(some) for _ in range(threads - 1)]
        some()
        for other in others:
            if not other.cancel():  # as it is where threads are busy, or are those that call this
                other.result()
    finally:
        _leave(user)
    return [results[number] for number in range(len(parts))]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads beside the calling one; they last, as to start one takes as long as some small images do."""
    return ThreadPoolExecutor(threads, "setsup-images")


def blocks(count: int, pixels: int) -> list[range]:
    """Numbers 0 … count − 1 of images in parts for :func:`spread`: some for each thread, as they take different times.

    Small images are one part: what OpenCV does to them is so short that threads wait for Python's lock instead.
    """
    threads = torch.get_num_threads()
    many = min(count, 1 if threads == 1 or pixels < _THREADED else _BLOCKS * threads)
    return [range(count * part // many, count * (part + 1) // many) for part in range(many)]


def _enter(user: object) -> None:
    """OpenCV with one thread of its own, until the last of those that asked for it at the same time is done."""
    global _threads
    with _lock:
        if not _users and cv2 is not None:
            _threads = cv2.getNumThreads()
            cv2.setNumThreads(1)
        _users.add(user)


def _leave(user: object) -> None:
    with _lock:
        _users.discard(user)
        if not _users and cv2 is not None:
            cv2.setNumThreads(_threads)


_users: set[object] = set()
_threads, _lock, _fork = 1, threading.Lock(), object()


def _before_fork() -> None:
    """End OpenCV's own threads, for which a child would wait forever, and wait until nobody changes them."""
    _enter(_fork)
    _lock.acquire()
    if cv2 is not None:
        for count in (2, 1):  # threads that were busy when it was given one are left, and end at a change alone
            cv2.setNumThreads(count)


def _after_in_parent() -> None:
    _lock.release()
    _leave(_fork)


def _after_in_child() -> None:
    """No users and no threads of the parent; OpenCV may start as many as it could there."""
    _pool.cache_clear()
    _users.clear()
    _after_in_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
