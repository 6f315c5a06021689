"""Storage of the arrays of a dataset: in memory, mapped from a file, or compressed in an ``.npz``.

Each of them pickles without the content of a file, so worker processes map or read the file themselves.
"""

import mmap
import threading
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from setsup.arrays import Array, Rows
from setsup.checks import check_memory
from setsup.datasets.copying import gather
from setsup.datasets.formats.npz import NpzArray
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, DataError
from setsup.files.mapped import check_mapped

__all__ = ["HeldArray", "MappedArray", "NpzColumn", "StoredArray", "hold", "take_rows"]


class StoredArray(Protocol):
    """An array of a dataset: its shape and dtype, and a method to get it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def array(self) -> Array:
        """Give the array itself."""
        ...


class HeldArray:
    """An array in memory."""

    def __init__(self, array: Array) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self._array = array

    def array(self) -> Array:
        """Give the array."""
        return self._array


class MappedArray:
    """An array mapped from a file; pickling stores only its offset in the file."""

    def __init__(self, array: Array, path: Path, offset: int) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self._path, self._offset, self._strides = path, offset, array.strides
        self._array: Array | None = array

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the array; it is mapped again."""
        return {**self.__dict__, "_array": None}

    def array(self) -> Array:
        """Give the array, mapped again in another process."""
        if self._array is None:
            try:
                whole = np.memmap(self._path, np.uint8, "r")
                self._array = np.ndarray(self.shape, self.dtype, whole, self._offset, self._strides)
            except OSError as error:
                raise DamagedFile.unreadable(
                    self._path, error, "restore the file, and open the dataset again"
                ) from error
            except (TypeError, ValueError) as error:
                raise DataError(f"{self._path} was truncated after it was mapped; restore the complete file") from error
        return self._array


def hold(array: Array) -> HeldArray | MappedArray:
    """Keep an array of the user's, without a copy."""
    mapping = _place_in_file(array)
    return HeldArray(array) if mapping is None else MappedArray(array, *mapping)


class NpzColumn:
    """An array of an ``.npz``: mapped if it is uncompressed, otherwise read on first use in a process."""

    def __init__(self, stored: NpzArray) -> None:
        self.shape, self.dtype = stored.shape, stored.dtype
        self._stored = stored
        self._array: Array | None = None

    @per_process
    def _lock(self) -> threading.Lock:
        return threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the array, which belongs to this process."""
        return {**self.__dict__, "_array": None}

    def array(self) -> Array:
        """Map or read the array on the first call, and give the same one from then on."""
        if self._array is None:
            with self._lock:
                if self._array is None:
                    self._array = self._read() if self._stored.packed else self._stored.map()
        return self._array

    def _read(self) -> Array:
        stored = self._stored
        count = int(np.prod(stored.shape, dtype=np.int64)) * stored.dtype.itemsize
        check_memory(count, str(stored), "it by saving with numpy.savez, which is mapped", DataError)
        column = np.empty(stored.shape, stored.dtype)
        with stored.rows() as fill:
            fill(0, len(stored), column)
        column.flags.writeable = False
        return column


def take_rows(array: Array, rows: Rows, out: Array | None = None) -> Array:
    """Copy rows of any array, in the byte order of this machine; `out` is filled where that is fastest.

    `array` (n, ...); `rows` (m,) int64, valid; returns (m, ...), C-contiguous.
    """
    if not array.flags.c_contiguous:
        # take would make the whole array contiguous first
        check_mapped(array)
        return np.ascontiguousarray(array[rows], array.dtype.newbyteorder("="))
    if array.dtype.isnative and array.flags.aligned:
        return gather(array, rows, out)
    # likewise for one that is not aligned, as in most npz: its bytes always are
    width = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    pieces = gather(array.reshape(-1).view(np.uint8).reshape(len(array), width), rows)
    taken = pieces.reshape(-1).view(array.dtype).reshape(len(rows), *array.shape[1:])
    return taken.astype(array.dtype.newbyteorder("="), copy=False)


def _place_in_file(array: Array) -> tuple[Path, int] | None:
    """Path and offset of an array that is mapped from a file; None of any other."""
    base: Any = array
    mapped: Any = None
    while isinstance(base, np.ndarray):
        mapped = base if isinstance(base, np.memmap) else mapped
        base = base.base
    # what was written to a copy-on-write map is in memory alone
    if mapped is None or not isinstance(base, mmap.mmap) or mapped.filename is None or mapped.mode == "c":
        return None
    begin = mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY
    address = np.frombuffer(base, np.uint8).__array_interface__["data"][0]
    return Path(mapped.filename).absolute(), begin + array.__array_interface__["data"][0] - address
