"""Arguments of operations, checked at construction and stored in one form, and what they are given to change."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.checks import check_image_size, check_number, is_integer, is_number
from setsup.errors import DataError, SetsupError
from setsup.loading.transforms.by_image import Image, Kernel, Pointwise
from setsup.loading.transforms.slots import Slots

__all__ = [
    "Kernels",
    "Photometric",
    "Range",
    "Ranged",
    "Shape",
    "Size",
    "Sized",
    "check_box",
    "check_channels",
    "check_probability",
    "check_range",
    "pair",
    "per_image",
    "set_field",
]

Size = tuple[int, int]
Range = tuple[float, float]
Shape = tuple[int, int, int]
"""Channels, height and width."""

Kernels = Iterable[Sequence[Kernel]]
"""For each image the kernels that change it, one after the other."""


class Photometric(Protocol):
    """An operation on values, not positions: a callable of images (n, C, H, W) and their slots.

    One that also has ``kernels(slots, shape)``, which returns :data:`Kernels` for images of one :data:`Shape`, does the
    same to single images on a CPU. Its results have as many channels as the images, or as its attribute ``channels``.
    """

    def __call__(self, images: Tensor, slots: Slots) -> Tensor:
        """Images of the same shape, in 0 … 1."""
        ...


@dataclass(frozen=True)
class Sized:
    """An operation whose results have a size."""

    size: int | Size

    def __post_init__(self) -> None:
        """Check the size."""
        set_field(self, "size", check_box(self.size, type(self).__name__))


def check_probability(p: Any, what: str) -> None:
    """Raise unless a number is from 0 to 1."""
    check_number(p, what, SetsupError, 0, 1)


def set_field(operation: Any, name: str, value: Any) -> None:
    """Set a field of a frozen dataclass under construction."""
    object.__setattr__(operation, name, value)


def pair(size: int | Size) -> Size:
    """Height and width of a checked size."""
    return (size, size) if isinstance(size, int) else size


def check_box(size: Any, operation: str) -> Size:
    """Height and width of a size: a number of pixels, or (height, width)."""
    try:
        return check_image_size((size, size) if is_integer(size) else size, "size", SetsupError)
    except SetsupError:
        raise SetsupError(f"{operation}: size must be a number of pixels or (height, width), not {size!r}") from None


def check_range(
    ends: Any, what: str, low: float = -math.inf, high: float = math.inf, *, positive: bool = False
) -> Range:
    """Two finite numbers in order, within bounds; ``positive`` leaves 0 out."""
    numbers = isinstance(ends, tuple | list) and len(ends) == 2 and all(is_number(end) for end in ends)
    if not numbers or not max(low, -1e300) <= ends[0] <= ends[1] <= min(high, 1e300) or (positive and ends[0] <= 0):
        limits = " above 0" if positive else f" from {low:g} on" if low > -math.inf else ""
        limits += f" and at most {high:g}" if high < math.inf else ""
        raise SetsupError(f"{what} must be two numbers (low, high){limits}, low first, not {ends!r}")
    return float(ends[0]), float(ends[1])


def check_channels(owner: object, channels: int) -> None:
    """Refuse images of other than one or three channels."""
    if channels not in (1, 3):
        hint = ": put Background before it, which makes three of four" if channels == 4 else ""
        raise DataError(f"{type(owner).__name__} takes images of 1 or 3 channels, not {channels}{hint}")


def per_image(amounts: npt.NDArray[np.float64], images: Tensor) -> Tensor:
    """Amounts (n,), or (n, k), of images as float32 on their device, (n, 1, 1, 1) or (n, k, 1, 1)."""
    # rounded here: so does whoever hands a Python float to a C function of single precision
    rounded = amounts.astype(np.float32).reshape(len(images), -1, 1, 1)
    return torch.from_numpy(rounded).to(images.device, non_blocking=True)


@dataclass(frozen=True)
class Ranged:
    """An operation on colours with an amount per image, uniform between two numbers.

    A subclass has ``__call__``, the kernel of batches, and ``image``, that of an image by its amount.
    """

    low: float
    high: float

    least: ClassVar[float] = -math.inf
    pointwise: ClassVar[bool] = False  # whether each value changes by itself
    colors_only: ClassVar[bool] = False  # whether grey images stay as they are

    def __post_init__(self) -> None:
        """Check the range."""
        check_range((self.low, self.high), f"{type(self).__name__}: low and high", self.least)

    def kernels(self, slots: Slots, shape: Shape) -> Kernels:
        """The operation on single images."""
        check_channels(self, shape[0])
        if self.colors_only and shape[0] == 1:
            return [()] * len(slots)
        made = (partial(self.image, amount) for amount in slots.uniform(self.low, self.high).tolist())
        return [(Pointwise(kernel) if self.pointwise else kernel,) for kernel in made]

    @staticmethod
    def image(amount: float, image: Image) -> Image:
        """Change an image."""
        raise NotImplementedError
