"""Amounts of photometric operations, one per image, as tensors."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.errors import DataError
from setsup.loading.transforms.slots import Slots

__all__ = ["Photometric", "check_channels", "per_image"]


class Photometric(Protocol):
    """An operation on values, not positions: a callable of images (n, C, H, W) and their slots."""

    def __call__(self, images: Tensor, slots: Slots) -> Tensor:
        """Images of the same shape, in 0 … 1."""
        ...


def check_channels(owner: object, images: Tensor) -> None:
    """Refuse images of other than one or three channels."""
    if images.shape[1] not in (1, 3):
        hint = ": put Background before it, which makes three of four" if images.shape[1] == 4 else ""
        raise DataError(f"{type(owner).__name__} takes images of 1 or 3 channels, not {images.shape[1]}{hint}")


def per_image(amounts: npt.NDArray[np.float64], images: Tensor) -> Tensor:
    """Amounts (n,), or (n, k), of images as float32 on their device, (n, 1, 1, 1) or (n, k, 1, 1)."""
    # rounded here: so does whoever hands a Python float to a C function of single precision
    round_levels = amounts.astype(np.float32).reshape(len(images), -1, 1, 1)
    return torch.from_numpy(round_levels).to(images.device, non_blocking=True)
