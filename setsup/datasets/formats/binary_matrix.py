"""The binary matrix format of SmallNORB: one array a file, little-endian, gzipped or not.

Convention
----------
An int32 that tells the dtype, an int32 for the number of axes, an int32 a length (at least three of them, whatever the
number of axes), then the elements in C order.
"""

import gzip
import math
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.files import need_readable

__all__ = ["BinaryMatrix"]

Array = npt.NDArray[Any]

_DTYPES = MappingProxyType(
    {0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8", 0x1E3D4C54: "<i4", 0x1E3D4C55: "u1", 0x1E3D4C56: "<i2"}
)
_PACKED = 0x1E3D4C52
_MOST_AXES = 8
_LEAST_LENGTHS = 3
# deflate packs at most 258 bytes into 2 bits, so a gzip file cannot hold more than this many times its size
_MOST_RATIO = 1032
_BLOCK = 1 << 20
_MEND = "fetch it again"


class BinaryMatrix:
    """A binary matrix file whose header has been checked; its array is read on first use, once a process.

    A plain file is mapped into memory, a gzipped one (told by its first bytes, not by its name) is unpacked there.
    Pickling carries the path, not the array.

    Parameters
    ----------
    path : Path or str
        The file.

    Attributes
    ----------
    path : Path
        The file.
    shape : tuple of int
        Shape of the array, from the header.
    dtype : numpy.dtype
        Type of its elements.
    packed : bool
        Whether it is gzip.

    Raises
    ------
    DataError
        When the file cannot be read, is no binary matrix, or its size is not what its header says.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "cat.mat"
    >>> _ = file.write_bytes(struct.pack("<5i3B", 0x1E3D4C55, 1, 3, 1, 1, 4, 0, 2))
    >>> BinaryMatrix(file).array()
    array([4, 0, 2], dtype=uint8)

    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        need_readable(self.path, "a binary matrix file")
        self._array: Array | None = None
        self._locks: dict[int, threading.Lock] = {}
        self._bytes = 0
        with self._errors():
            with self.path.open("rb") as raw:
                self.packed = raw.read(2) == b"\x1f\x8b"
            with self._open() as file:
                self.dtype, self.shape = self._header(file)
        self._offset = 8 + 4 * max(_LEAST_LENGTHS, len(self.shape))
        self._bytes = math.prod(self.shape) * self.dtype.itemsize
        self._check_size()

    def __len__(self) -> int:
        """Length of the first axis."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Show the path and what it holds."""
        return f"BinaryMatrix({str(self.path)!r}, {self.dtype} {self.shape})"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the array and the locks, which belong to this process."""
        return {**self.__dict__, "_array": None, "_locks": {}}

    @property
    def ready(self) -> bool:
        """Whether the array costs nothing: it is mapped from a plain file, or was unpacked in this process."""
        return not self.packed or self._array is not None

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
                    self._array = self._unpacked() if self.packed else self._mapped()
        return self._array

    @contextmanager
    def rows(self) -> Iterator[Callable[[int, int, Array], None]]:
        """Open the file to read rows block by block, in order, without holding more than a block.

        Yields
        ------
        callable
            ``fill(start, stop, out)`` writes rows ``start`` to ``stop − 1`` into ``out``, C-contiguous, of the shape
            ``(stop − start, *shape[1:])``. Blocks that come in ascending order are read in one pass.

        Raises
        ------
        DataError
            When the file is cut off, damaged, or goes on after its last row.

        """
        width = self._bytes // self.shape[0]
        with self._errors():
            file = self._open()
        with file:

            def fill(start: int, stop: int, out: Array) -> None:
                with self._errors():
                    file.seek(self._offset + start * width)
                    self._read(file, out.reshape(-1).view(np.uint8).data, self._offset + start * width)
                    if stop == self.shape[0]:
                        self._end(file)

            yield fill

    def _open(self) -> BinaryIO:
        return cast(BinaryIO, gzip.open(self.path)) if self.packed else self.path.open("rb")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn whatever goes wrong in reading into one sentence."""
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{self.path} is cut off or damaged ({error}); {_MEND}") from error
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except MemoryError as error:
            raise DataError(f"{self.path} needs {self._bytes:,} bytes of memory, more than there are") from error

    def _header(self, file: BinaryIO) -> tuple[np.dtype[Any], tuple[int, ...]]:
        start = file.read(8)
        if len(start) < 8:
            raise DataError(f"{self.path} ends after {len(start)} bytes, inside its header; {_MEND}")
        magic, axes = struct.unpack("<2i", start)
        if magic == _PACKED:
            raise DataError(f"{self.path} is a packed binary matrix, which setsup does not read; {_MEND}")
        if magic not in _DTYPES:
            if int.from_bytes(start[:4], "big") in _DTYPES:
                raise DataError(
                    f"{self.path} is in big-endian byte order; the published files are little-endian; {_MEND}"
                )
            raise DataError(
                f"{self.path} is no binary matrix: it begins with {start[:4]!r}, where a number from 0x1e3d4c51 to "
                f"0x1e3d4c56, little-endian, was expected; {_MEND}"
            )
        if not 1 <= axes <= _MOST_AXES:
            raise DataError(f"{self.path}: its header gives {axes} axes; 1 to {_MOST_AXES} were expected; {_MEND}")
        count = max(_LEAST_LENGTHS, axes)
        lengths = file.read(4 * count)
        if len(lengths) < 4 * count:
            raise DataError(f"{self.path} ends inside its header of {axes} axes; {_MEND}")
        shape = struct.unpack(f"<{count}i", lengths)[:axes]
        if min(shape) < 1:
            raise DataError(f"{self.path}: its header gives the shape {shape}, which holds nothing; {_MEND}")
        return np.dtype(_DTYPES[magic]), shape

    def _check_size(self) -> None:
        size, expected = self.path.stat().st_size, self._offset + self._bytes
        if not self.packed and size != expected:
            raise self._wrong_size(f"the file has {size:,} bytes")
        if self.packed and expected > size * _MOST_RATIO:
            raise self._wrong_size(f"a gzip file of {size:,} bytes cannot hold that")
        if self.packed and self._stated_size() != expected % 2**32:
            # right where the file is several gzip streams in a row; all else ends here, before memory is taken
            self._count()

    def _stated_size(self) -> int:
        """Size of the content modulo 2**32, as the last bytes of a gzip stream state it."""
        with self._errors(), self.path.open("rb") as raw:
            raw.seek(-4, os.SEEK_END)
            return int.from_bytes(raw.read(4), "little")

    def _count(self) -> None:
        with self._errors(), self._open() as file:
            count = 0
            while block := file.read(_BLOCK):
                count += len(block)
                if count > self._offset + self._bytes:
                    raise self._wrong_size("its content goes on after them")
            if count < self._offset + self._bytes:
                raise self._wrong_size(f"its content ends after {count:,}")

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
        with self._errors(), self._open() as file:
            content = np.empty(self._bytes, np.uint8)
            file.read(self._offset)
            self._read(file, content.data, self._offset)
            self._end(file)
        array = content.view(self.dtype).reshape(self.shape)
        array.flags.writeable = False
        return array

    def _read(self, file: BinaryIO, view: memoryview, position: int) -> None:
        filled = 0
        while filled < len(view):
            count = cast(Any, file).readinto(view[filled : filled + _BLOCK])
            if not count:
                raise self._wrong_size(f"its content ends after {position + filled:,}")
            filled += count

    def _end(self, file: BinaryIO) -> None:
        # one byte beyond the end is asked for, never more; it also makes gzip compare its checksum
        if file.read(1):
            raise self._wrong_size("its content goes on after them")
