"""Buffers that are reused as soon as nothing refers to their batch.

Copying rows into memory that was touched before costs half of what fresh memory costs. An array is free when only the
ring refers to it: views, and tensors that share its memory, keep a reference to it.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from setsup.arrays import Array

__all__ = ["Ring"]

Allocate = Callable[[tuple[int, ...], np.dtype[Any]], Array]

_KEPT = 32  # arrays per ring; consumers that hold more batches get fresh memory


def _holders(things: list[Any], index: int) -> int:
    return sys.getrefcount(things[index])


_FREE = _holders([object()], 0)  # with the list alone; differs between versions of Python


class Ring:
    """Arrays of one shape, reused without being returned explicitly."""

    def __init__(self, shape: tuple[int, ...], dtype: str, allocate: Allocate = np.empty) -> None:
        self._shape, self._dtype, self._allocate = shape, np.dtype(dtype), allocate
        self._arrays: list[Array] = []

    def __len__(self) -> int:
        """Number of arrays kept."""
        return len(self._arrays)

    def take(self) -> Array:
        """Return an array that nothing else refers to; a new one if all are in use."""
        for index in range(len(self._arrays)):
            if _holders(self._arrays, index) == _FREE:
                return self._arrays[index]
        array = self._allocate(self._shape, self._dtype)
        if len(self._arrays) < _KEPT:
            self._arrays.append(array)
        return array
