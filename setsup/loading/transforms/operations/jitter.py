"""Brightness, contrast, saturation and hue in any order."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup import random
from setsup.checks import check_number
from setsup.errors import SetsupError
from setsup.loading.transforms.operations.amounts import Photometric, check_channels
from setsup.loading.transforms.operations.photometry import Brightness, Contrast, Hue, Saturation
from setsup.loading.transforms.slots import Slots

__all__ = ["Jitter"]

_ORDER = 4  # parameter of the order, after those of the four operations


@dataclass(frozen=True)
class Jitter:
    """Brightness, contrast, saturation and hue one after the other, in a random order per image.

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
        """Check the amounts."""
        for name, most in (("brightness", math.inf), ("contrast", math.inf), ("saturation", math.inf), ("hue", 0.5)):
            check_number(getattr(self, name), f"Jitter: {name}", SetsupError, 0, most)

    def __call__(self, images: Tensor, slots: Slots) -> Tensor:
        """Apply each operation once."""
        check_channels(self, images)
        steps = self._steps()
        if not steps:
            return images
        orders = random.leading(slots.bits(_ORDER), len(steps), len(steps))
        rows = np.arange(len(images))  # of the images, sorted at each step by their next operation
        for place in range(len(steps)):
            sorting = np.argsort(orders[rows, place], kind="stable")
            rows, images = rows[sorting], _ordered(images, sorting)
            ends = np.searchsorted(orders[rows, place], np.arange(len(steps) + 1))
            images = torch.cat(
                [
                    operation(images[first:last], slots.take(rows[first:last]).at(number))
                    for (number, operation), first, last in zip(steps, ends[:-1], ends[1:], strict=True)
                    if first < last
                ]
            )
        return _ordered(images, np.argsort(rows))

    def _steps(self) -> list[tuple[int, Photometric]]:
        """Operations that are active, and the number of each among the four."""
        amounts = (self.brightness, self.contrast, self.saturation, self.hue)
        brightness, contrast, saturation = ((max(0.0, 1 - amount), 1 + amount) for amount in amounts[:3])
        four: tuple[Photometric, ...] = (
            Brightness(*brightness),
            Contrast(*contrast),
            Saturation(*saturation),
            Hue(-self.hue, self.hue),
        )
        return [(number, operation) for number, operation in enumerate(four) if amounts[number]]


def _ordered(images: Tensor, order: npt.NDArray[np.int64]) -> Tensor:
    # faster than indexing or a copy to places
    return images.index_select(0, torch.from_numpy(order).to(images.device))
