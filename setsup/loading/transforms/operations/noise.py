"""Keyed numbers for single pixels: the same bits on every device, four of them from one word.

Numbers 4b … 4b + 3 of an image come from ``setsup.random.fold(key, b)``, from its 16 lowest bits up. Each part of 16
bits picks one entry of a table of 65,536 equally likely values. So any distribution costs one look-up a number, and no
device evaluates a logarithm or a square root in its own way.

Words are computed by torch in int64, whose sums and products wrap around as those of uint64 do; only a shift to the
right needs a mask.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtri
from torch import Tensor

from setsup import random
from setsup.loading.transforms.by_image import Image, cv2, interleaved, room

__all__ = ["TABLE", "image_pick", "normal", "pick", "quantiles"]

TABLE = 1 << 16  # entries of a table

_PARTS = 4  # of 16 bits in a word
_GOLDEN, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # of setsup.random


def pick(keys: npt.NDArray[np.uint64], shape: Sequence[int], table: Tensor) -> Tensor:
    """Independent uniform picks from a table.

    `keys` (n,) uint64; `table` (65536,) tensor; returns (n, *shape) tensor of the table's dtype.
    """
    count = math.prod(shape)
    words = _words(keys, -(-count // _PARTS), table.device)
    # int32, the narrowest index that torch takes
    index = words.view(torch.uint16)[:, :count].to(torch.int32).reshape(-1)
    return table.index_select(0, index).view(len(keys), *shape)


def normal(keys: npt.NDArray[np.uint64], shape: Sequence[int], device: torch.device) -> Tensor:
    """Independent standard normal numbers, quantised to 65,536 equally likely values.

    The values are the quantiles at (i + ½)/65536. The largest is 4.32, and the variance falls short of one by 2 · 10⁻⁵.

    `keys` (n,) uint64; returns (n, *shape) float32.
    """
    return pick(keys, shape, _on_device(device))


def image_pick(key: Any, shape: Sequence[int], table: Image) -> Image:
    """:func:`pick` for an image of so many (channels, height, width), with a table that is an array."""
    count = math.prod(shape)
    words = random.mix(key, _spread(-(-count // _PARTS)))
    index = interleaved(words.view(np.uint16)[:count].reshape(shape))
    return (
        cv2.LUT(index, table, room(index, table.dtype)) if _looks_up_16_bits() else np.take(table, index, mode="clip")
    )


@functools.cache
def _looks_up_16_bits() -> bool:
    """Whether this OpenCV does, in half of numpy's time: older ones take 8 bits alone."""
    try:
        cv2.LUT(np.zeros((1, 1), np.uint16), np.zeros(TABLE, np.float32))
    except cv2.error:
        return False
    return True


@functools.lru_cache(maxsize=4)
def _spread(count: int) -> npt.NDArray[np.uint64]:
    bits: npt.NDArray[np.uint64] = random.spread(np.arange(count, dtype=np.uint64))
    return bits


@functools.lru_cache(maxsize=4)
def quantiles(sigma: float) -> npt.NDArray[np.float32]:
    """The values of :func:`normal` times a number."""
    return ndtri((np.arange(TABLE) + 0.5) / TABLE).astype(np.float32) * np.float32(sigma)


@functools.cache
def _on_device(device: torch.device) -> Tensor:
    return torch.from_numpy(quantiles(1.0)).to(device)


def _words(keys: npt.NDArray[np.uint64], count: int, device: torch.device) -> Tensor:
    """``setsup.random.fold(keys[:, None], 0 … count − 1)``, as int64 of the same bits."""
    key = torch.from_numpy(keys.view(np.int64)).to(device)
    spread = torch.arange(1, count + 1, device=device).mul_(_signed(_GOLDEN))
    z = key[:, None] + spread
    shifted = torch.empty_like(z)
    for shift, factor in ((30, _M1), (27, _M2), (31, None)):
        torch.bitwise_right_shift(z, shift, out=shifted)
        z.bitwise_xor_(shifted.bitwise_and_((1 << (64 - shift)) - 1))
        if factor is not None:
            z.mul_(_signed(factor))
    return z


def _signed(word: int) -> int:
    """The int64 of the same bits."""
    return word - (1 << 64) if word >> 63 else word
