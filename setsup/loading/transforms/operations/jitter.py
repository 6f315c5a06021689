"""Brightness, contrast, saturation and hue in any order."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setsup import random
from setsup.arrays import Rows
from setsup.checks import check_number
from setsup.errors import SetsupError
from setsup.loading.transforms.operations.base import Kernels, Shape, check_channels
from setsup.loading.transforms.operations.photometry import Brightness, Contrast, Hue, Saturation
from setsup.loading.transforms.slots import Slots

__all__ = ["Jitter"]

_ORDER = 4  # parameter of the order, after those of the four operations


@dataclass(frozen=True)
class Jitter:
    """Brightness, contrast, saturation and hue in a random order per image.

    The distribution is that of torchvision's ``ColorJitter``: factors uniform in 1 ± amount, clipped at 0, turns of
    the hue uniform in ± amount, and all orders equally likely.

    Parameters
    ----------
    brightness, contrast, saturation : float
        Amounts, not negative; 0 leaves the operation out.
    hue : float
        Turns, 0 … 0.5.

    Examples
    --------
    >>> Jitter(brightness=0.4, hue=0.1)
    Jitter(brightness=0.4, contrast=0.0, saturation=0.0, hue=0.1)

    """

    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0

    def __post_init__(self) -> None:
        for name, most in (("brightness", math.inf), ("contrast", math.inf), ("saturation", math.inf), ("hue", 0.5)):
            check_number(getattr(self, name), f"Jitter: {name}", SetsupError, 0, most)

    def __call__(self, images: Tensor, slots: Slots) -> Tensor:
        """Apply each operation once."""
        check_channels(self, images.shape[1])
        steps = self._steps()
        if not steps:
            return images
        images, orders = images.clone(), self._orders(slots, len(steps))
        for chosen in orders.T:
            for which, (number, operation) in enumerate(steps):
                rows = np.flatnonzero(chosen == which)
                if len(rows):
                    some = torch.from_numpy(rows).to(images.device)
                    part = operation(images.index_select(0, some), slots.take(rows).at(number))
                    images.index_copy_(0, some, part)
        return images

    def kernels(self, slots: Slots, shape: Shape) -> Kernels:
        """The same to images."""
        check_channels(self, shape[0])
        steps = self._steps()
        each = [operation.kernels(slots.at(number), shape) for number, operation in steps]
        orders = self._orders(slots, len(steps)) if steps else np.zeros((len(slots), 0), np.int64)
        return [
            [kernel for which in order for kernel in given[which]]
            for order, *given in zip(orders.tolist(), *each, strict=True)
        ]

    def _orders(self, slots: Slots, count: int) -> Rows:
        """For each image, which operation comes first, second …, (n, count)."""
        return random.leading(slots.bits(_ORDER), count, count)

    def _steps(self) -> list[tuple[int, Any]]:
        """Operations that are active, and the number of each among the four."""
        amounts = (self.brightness, self.contrast, self.saturation, self.hue)
        brightness, contrast, saturation = ((max(0.0, 1 - amount), 1 + amount) for amount in amounts[:3])
        four: tuple[Any, ...] = (
            Brightness(*brightness),
            Contrast(*contrast),
            Saturation(*saturation),
            Hue(-self.hue, self.hue),
        )
        return [(number, operation) for number, operation in enumerate(four) if amounts[number]]
