"""Arguments of operations, checked at construction and stored in one form, and what operations on values share."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.arrays import Size
from setsup.checks import check_number
from setsup.errors import DataError, SetsupError
from setsup.loading.crops import check_box, check_range
from setsup.loading.transforms.by_image import Image, Kernel, OnLevels, Pointwise
from setsup.loading.transforms.operations import eight_bit
from setsup.loading.transforms.slots import Slots

__all__ = [
    "Kernels",
    "Photometric",
    "Ranged",
    "Shape",
    "Sized",
    "check_channels",
    "check_probability",
    "pair",
    "per_image",
    "set_field",
]

Shape = tuple[int, ...]
"""Channels, height and width."""

Kernels = Iterable[Sequence[Kernel]]
"""For each image the kernels that change it, one after the other."""


class Photometric(ABC):
    """An operation on values, not positions: what it draws, and its kernels for batches and for single images.

    ``_drawn(slots, shape)`` gives numbers for n images of one :data:`Shape`. By these ``_batch(images, drawn)`` changes
    tensors (n, C, height, width) float32 in 0 … 1; ``_levels(levels, drawn)`` those of 8 bits, where it is not
    ``_batch`` rounded; and ``_image(value, image)`` an array as :mod:`setsup.loading.transforms.by_image` has it. An
    operation that has no ``_batch`` works on levels, to which images of 0 … 1 are rounded.
    """

    pointwise: ClassVar[bool] = False  # whether each value changes by itself
    colors_only: ClassVar[bool] = False  # whether grey images stay as they are
    alpha: ClassVar[bool] = False  # whether images have four channels, and not one or three

    def __call__(self, images: Tensor, slots: Slots) -> Tensor:
        """Images (n, C, height, width) float32 in 0 … 1, changed; those given stay as they are."""
        if self._skips(images.shape[1]):
            return images
        drawn = self._drawn(slots, tuple(images.shape[1:]))
        if not slots.eight_bit:
            return self._batch(images, drawn)
        return eight_bit.to_images(self._levels(eight_bit.to_levels(images), drawn))

    def kernels(self, slots: Slots, shape: Shape) -> Kernels:
        """The operation on single images."""
        if self._skips(shape[0]):
            return [()] * len(slots)
        drawn = self._drawn(slots, shape)
        if drawn is None:  # one kernel, so that it is seen that copies have it in common
            return [(self._kernel(None),)] * len(slots)
        return [(self._kernel(value),) for value in drawn]

    @property
    def on_levels(self) -> bool:
        """Whether images of 0 … 1 are rounded to 256 levels first."""
        return type(self)._batch is Photometric._batch

    def _kernel(self, value: Any) -> Kernel:
        kernel: Kernel = partial(self._image, value)
        kernel = OnLevels(kernel) if self.on_levels else kernel
        return Pointwise(kernel) if self.pointwise else kernel

    def _skips(self, channels: int) -> bool:
        """Whether images of so many channels stay as they are."""
        if self.alpha and channels != 4:
            name = type(self).__name__
            raise DataError(f"{name} requires images of 4 channels, of which the last is alpha, not {channels}")
        if not self.alpha:
            check_channels(self, channels)
        return self.colors_only and channels == 1

    def _drawn(self, slots: Slots, shape: Shape) -> Any:
        return None

    def _batch(self, images: Tensor, drawn: Any) -> Tensor:
        return eight_bit.to_images(self._levels(eight_bit.to_levels(images), drawn))

    def _levels(self, levels: Tensor, drawn: Any) -> Tensor:
        return eight_bit.to_levels(self._batch(eight_bit.to_images(levels), drawn))

    @abstractmethod
    def _image(self, value: Any, image: Image) -> Image: ...


@dataclass(frozen=True)
class Ranged(Photometric):
    """An operation on values with an amount per image, uniform between two numbers."""

    low: float
    high: float

    least: ClassVar[float] = -math.inf

    def __post_init__(self) -> None:
        check_range((self.low, self.high), f"{type(self).__name__}: low and high", self.least)

    def _drawn(self, slots: Slots, shape: Shape) -> npt.NDArray[np.float64]:
        return slots.uniform(self.low, self.high)


@dataclass(frozen=True)
class Sized:
    """An operation whose results have a size."""

    size: int | Size

    def __post_init__(self) -> None:
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


def check_channels(owner: object, channels: int) -> None:
    """Refuse images of other than one or three channels."""
    if channels not in (1, 3):
        hint = "; apply Background first to remove the alpha channel" if channels == 4 else ""
        raise DataError(f"{type(owner).__name__} requires images of 1 or 3 channels, not {channels}{hint}")


def per_image(amounts: npt.NDArray[Any], images: Tensor) -> Tensor:
    """Amounts (n,), or (n, k), of images as float32 on their device, (n, 1, 1, 1) or (n, k, 1, 1)."""
    # rounded here: so does whoever hands a Python float to a C function of single precision
    rounded = amounts.astype(np.float32).reshape(len(images), math.prod(amounts.shape[1:]), 1, 1)
    return torch.from_numpy(rounded).to(images.device, non_blocking=True)
