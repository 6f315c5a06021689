"""The idx format of MNIST and its relatives: one array a file, gzipped or not.

Convention
----------
Big-endian throughout: two zero bytes, a byte for the dtype, one for the number of axes, an uint32 a length, then the
elements in C order.
"""

import gzip
import math
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError

__all__ = ["IdxFile"]

Array = npt.NDArray[Any]

_DTYPES = MappingProxyType({0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"})
_MOST_AXES = 16
# deflate packs at most 258 bytes into 2 bits, so a gzip file cannot hold more than this many times its size
_MOST_RATIO = 1032
_BLOCK = 1 << 20
_MEND = "remove it and fetch it again"


class IdxFile:
    """An idx file whose header has been checked; its array is read on first use, once a process.

    A plain file is mapped into memory, a gzipped one is unpacked there. Pickling carries the path, not the array.

    Parameters
    ----------
    path : Path or str
        The file; it is gzip where its name ends in ``.gz``, and only there.

    Attributes
    ----------
    path : Path
        The file.
    shape : tuple of int
        Shape of the array, from the header.
    dtype : numpy.dtype
        Type of its elements, big-endian as in the file.

    Raises
    ------
    DataError
        When the file cannot be read, is no idx file, or its size is not what its header says.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "labels.idx1-ubyte"
    >>> _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> IdxFile(file).array()
    array([7, 2, 1], dtype=uint8)

    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._packed = self.path.suffix == ".gz"
        self._array: Array | None = None
        self._locks: dict[int, threading.Lock] = {}
        with self._open() as file:
            self._check_start()
            self.dtype, self.shape = self._header(file)
            self._offset = 4 + 4 * len(self.shape)
            self._bytes = math.prod(self.shape) * self.dtype.itemsize
            self._check_size()

    def __len__(self) -> int:
        """Length of the first axis."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Show the path and what it holds."""
        return f"IdxFile({str(self.path)!r}, {self.dtype} {self.shape})"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the array and the locks, which belong to this process."""
        return {**self.__dict__, "_array": None, "_locks": {}}

    def array(self) -> Array:
        """Read the array on the first call of a process, and give the same one from then on.

        Returns
        -------
        read-only array of ``shape`` and ``dtype``

        Raises
        ------
        DataError
            When a gzip file is cut off, damaged, or holds more or less than its header says.

        """
        if self._array is None:
            # a lock a process: after a fork, one that another thread of the parent held would stay locked for ever
            with self._locks.setdefault(os.getpid(), threading.Lock()):
                if self._array is None:
                    self._array = self._unpacked() if self._packed else self._mapped()
        return self._array

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        """Give the content, unpacked; whatever goes wrong in reading it becomes one sentence."""
        try:
            if self.path.exists() and not self.path.is_file():
                raise DataError(f"{self.path} is not a file; an idx file was expected")
            with cast(BinaryIO, gzip.open(self.path)) if self._packed else self.path.open("rb") as file:
                yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{self.path} is cut off or damaged ({error}); {_MEND}") from error
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except MemoryError as error:
            raise DataError(f"{self.path} needs {self._bytes:,} bytes of memory, more than there are") from error

    def _check_start(self) -> None:
        with self.path.open("rb") as raw:
            start = raw.read(4)
        gzipped = start[:2] == b"\x1f\x8b"
        if self._packed and not gzipped:
            mend = "drop the .gz of its name" if start[:2] == b"\0\0" else _MEND
            raise DataError(f"{self.path} is not gzip, though its name ends in .gz (it begins with {start!r}); {mend}")
        if gzipped and not self._packed:
            raise DataError(f"{self.path} is gzip, though its name does not end in .gz; unpack it or add the .gz")

    def _header(self, file: BinaryIO) -> tuple[np.dtype[Any], tuple[int, ...]]:
        start = file.read(4)
        if len(start) < 4:
            raise DataError(f"{self.path} ends after {len(start)} bytes, inside the idx header; {_MEND}")
        if start[:2] != b"\0\0" or start[2] not in _DTYPES or not 1 <= start[3] <= _MOST_AXES:
            raise DataError(
                f"{self.path} is no idx file: it begins with {start!r}, where two zero bytes, a dtype "
                f"({', '.join(f'{code:#04x}' for code in _DTYPES)}) and 1 to {_MOST_AXES} axes were expected; {_MEND}"
            )
        lengths = file.read(4 * start[3])
        if len(lengths) < 4 * start[3]:
            raise DataError(f"{self.path} ends inside the idx header of {start[3]} axes; {_MEND}")
        shape = struct.unpack(f">{start[3]}I", lengths)
        if 0 in shape:
            raise DataError(f"{self.path} is empty: its header gives the shape {shape}")
        return np.dtype(_DTYPES[start[2]]), shape

    def _check_size(self) -> None:
        size = self.path.stat().st_size
        expected = self._offset + self._bytes
        if not self._packed and size != expected:
            raise self._wrong_size(f"the file has {size:,} bytes")
        if self._packed and expected > size * _MOST_RATIO:
            raise self._wrong_size(f"a gzip file of {size:,} bytes cannot hold that")
        if self._packed and self._stated_size() != expected % 2**32:
            # right where the file is several gzip streams in a row; all else ends here with an error
            self._array = self._unpacked()

    def _stated_size(self) -> int:
        """Size of the content modulo 2**32, as the last bytes of a gzip stream state it."""
        with self.path.open("rb") as raw:
            raw.seek(-4, os.SEEK_END)
            return int.from_bytes(raw.read(4), "little")

    def _wrong_size(self, what: str) -> DataError:
        return DataError(
            f"{self.path}: its header gives the shape {self.shape} of {self.dtype}, "
            f"{self._offset + self._bytes:,} bytes in all, but {what}; {_MEND}"
        )

    def _mapped(self) -> Array:
        try:
            return np.asarray(np.memmap(self.path, self.dtype, "r", self._offset, self.shape))
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path} cannot be mapped into memory: {error}") from error

    def _unpacked(self) -> Array:
        with self._open() as file:
            content = np.empty(self._bytes, np.uint8)
            view = content.data
            file.read(self._offset)
            filled = 0
            while filled < self._bytes:
                count = cast(Any, file).readinto(view[filled : filled + _BLOCK])
                if not count:
                    raise self._wrong_size(f"its content ends after {self._offset + filled:,}")
                filled += count
            # one byte beyond the end is asked for, never more; it also makes gzip compare its checksum
            if file.read(1):
                raise self._wrong_size("its content goes on after them")
        array = content.view(self.dtype).reshape(self.shape)
        array.flags.writeable = False
        return array
