"""Stacks of images in MATLAB files of version 7.3: HDF5 datasets with reversed axes.

Convention
----------
MATLAB's height × width × channels × N is stored in the file as (N, channels, width, height), and returned as (N,
height, width, channels); likewise without channels.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.copying import gather
from setsup.datasets.formats.h5.images import h5_dataset, h5_errors
from setsup.errors import DamagedFile, DataError

__all__ = ["MatlabStack"]


_FEW = 16  # rows read at once
_BLOCK = 64 << 20  # bytes of a block of a conversion, of which two are held, and most that is read at once
_COMPARED = 2  # rows per block that are compared in the end


class MatlabStack:
    """Images in an open MATLAB file; for one process only, any number of threads.

    Attributes
    ----------
    shape : tuple of int
        (N, height, width) or (N, height, width, channels).
    block_rows : int
        Best number of rows for :meth:`fill`.

    """

    def __init__(self, path: Path, file: Any, name: str, shape: tuple[int, ...], dtype: str) -> None:
        self._path, self._name = path, name
        self._stored = h5_dataset(path, file, name)
        self.dtype = np.dtype(dtype)
        with h5_errors(path):
            stored: tuple[int, ...] = self._stored.shape or ()
            # a big-endian type is as good: HDF5 converts it
            if stored[1:] != shape[::-1] or self._stored.dtype.newbyteorder("=") != self.dtype:
                sizes = ", ".join(map(str, shape[::-1]))
                raise DamagedFile(
                    f"{path}: {name!r} has dtype {self._stored.dtype} and shape {stored}; expected {dtype} of shape "
                    f"(N, {sizes}), as MATLAB stores it"
                )
            self._deep = self._stored.chunks[0] if self._stored.chunks else 1
        self.shape: tuple[int, ...] = (stored[0], *shape)
        fitting = max(1, _BLOCK // int(np.prod(shape) * self.dtype.itemsize))
        self.block_rows = max(fitting - fitting % self._deep, min(self._deep, fitting))
        # whole chunks where they fit, so that none is unpacked twice
        self._span = max(_FEW - _FEW % self._deep, min(self._deep, fitting))

    def take(self, rows: npt.NDArray[np.int64], out: Array | None = None) -> Array:
        """Read any rows.

        `out` array, optional; returns array of shape ``rows.shape + shape[1:]``.
        """
        single, back = np.unique(rows, return_inverse=True)
        out = np.empty(rows.shape + self.shape[1:], self.dtype) if out is None else out
        direct = out.flags.c_contiguous and np.array_equal(single, rows.reshape(-1))
        arrays = (out if direct else np.empty((len(single), *self.shape[1:]), self.dtype)).reshape(-1, *self.shape[1:])
        start = 0
        while start < len(single):
            first = single[start]
            # rows of the same chunks are read together, which then are unpacked once
            beyond = min(first - first % self._deep + self._deep, first + self._span)
            stop = int(np.searchsorted(single, beyond))
            block = self._read(int(first), int(single[stop - 1]) + 1)
            for slot in range(start, stop):
                _turn(block[single[slot] - first], arrays[slot])
            start = stop
        return out if direct else gather(arrays, back.reshape(rows.shape), out)

    def fill(self, start: int, stop: int, out: Array) -> None:
        """Read consecutive rows ``start`` to ``stop − 1`` into ``out``, (stop − start, height, width, …)."""
        for first in range(start, stop, self._span):
            block = self._read(first, min(first + self._span, stop))
            for slot, image in enumerate(block):
                _turn(image, out[first - start + slot])

    def check(self, start: int, stop: int, written: Array) -> None:
        """Compare some converted rows with the file.

        `written` (stop - start, height, width, …) array.
        """
        for row in np.unique(np.linspace(start, stop - 1, _COMPARED).astype(np.int64)).tolist():
            # as bytes, since NaN is not equal to itself
            if written[row - start].tobytes() != self.take(np.array(row)).tobytes():
                raise DataError(
                    f"row {row:,} of {self._name!r} in {self._path} differs after the conversion: the disk or the "
                    "memory of this machine may be faulty; run the conversion again"
                )

    def _read(self, start: int, stop: int) -> Array:
        """Consecutive rows as they lie in the file."""
        block = np.empty((stop - start, *self.shape[:0:-1]), self.dtype)
        with h5_errors(self._path):
            self._stored.read_direct(block, np.s_[start:stop])
        return block


def _turn(stored: Array, out: Array) -> None:
    """Copy an image out of the file's order: (width, height) or (channels, width, height)."""
    if stored.ndim == 2:
        out[...] = stored.T
        return
    for channel, plane in enumerate(stored):  # one by one: numpy is slow where the innermost axis is short
        out[..., channel] = plane.T
