"""How much an operation does: ranges, checked when it is made, and one amount an image as a tensor."""

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.errors import DataError, SetsupError
from setsup.loading.transforms.operations.arguments import is_number
from setsup.loading.transforms.slots import Slots

__all__ = ["Photometric", "check_channels", "check_number", "check_range", "per_image"]


class Photometric(Protocol):
    """An operation on values, not positions: a callable of images (n, C, H, W) and their slots."""

    def __call__(self, images: Tensor, slots: Slots) -> Tensor:
        """Images of the same shape, in 0 … 1."""
        ...


def check_number(owner: object, name: str, value: float, least: float = -math.inf, most: float = math.inf) -> None:
    """Refuse what is no finite number from ``least`` to ``most``, and say whose argument it is."""
    if not is_number(value) or not least <= value <= most:
        bounds = f" from {least:g}" if least > -math.inf else ""
        bounds += f" to {most:g}" if most < math.inf else " on" if bounds else ""
        raise SetsupError(f"{type(owner).__name__}: {name} must be a number{bounds}, not {value!r}")


def check_range(owner: object, low: float, high: float, least: float = -math.inf, name: str = "") -> None:
    """Refuse what is no range of finite numbers from ``least`` on."""
    ends = (f"low {name}".rstrip(), f"high {name}".rstrip())
    for end, value in zip(ends, (low, high), strict=True):
        check_number(owner, end, value, least)
    if low > high:
        raise SetsupError(
            f"{type(owner).__name__}: {ends[0]} must not be above {ends[1]}, and {low!r} is above {high!r}"
        )


def check_channels(owner: object, images: Tensor) -> None:
    """Refuse images of other than one or three channels."""
    if images.shape[1] not in (1, 3):
        hint = ": put Background before it, which makes three of four" if images.shape[1] == 4 else ""
        raise DataError(f"{type(owner).__name__} takes images of 1 or 3 channels, not {images.shape[1]}{hint}")


def per_image(amounts: npt.NDArray[np.float64], images: Tensor) -> Tensor:
    """Amounts (n,), or (n, k), of images as float32 on their device, (n, 1, 1, 1) or (n, k, 1, 1)."""
    # rounded here: so does whoever hands a Python float to a C function of single precision
    rounded = amounts.astype(np.float32).reshape(len(images), -1, 1, 1)
    return torch.from_numpy(rounded).to(images.device, non_blocking=True)
