"""A file with one array after a short header, gzipped or not: checked when it is opened, read on first use."""

import gzip
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from setsup.arrays import Array
from setsup.errors import DamagedFile, DataError
from setsup.files.disk import read_errors

__all__ = ["ArrayFile", "Head", "ReadHead"]

Head = tuple[np.dtype[Any], tuple[int, ...], int]
"""Content of a header: dtype, shape, and number of bytes before the first element."""

ReadHead = Callable[[BinaryIO, Path], Head]
"""Reads the header from the start of an unpacked file; the path is for messages."""

# deflate packs at most 258 bytes into 2 bits, so a gzip file cannot hold more than this many times its size
_MOST_RATIO = 1032
_BLOCK = 1 << 20


class ArrayFile:
    """An array in a file whose header has been checked; it is read on first use, once per process.

    A plain file is mapped into memory; a gzipped file (recognized by its first bytes, not by its name) is unpacked into
    memory. Pickling stores the path, not the array.

    Attributes
    ----------
    path : Path
        The file.
    shape : tuple of int
        Shape of the array, from the header.
    dtype : numpy.dtype
        Type of its elements, in the byte order of the file.
    packed : bool
        Whether it is gzip.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "three.bin"
    >>> _ = file.write_bytes(bytes([3, 7, 2, 1]))
    >>> ArrayFile(file, lambda file, path: (np.dtype("u1"), (file.read(1)[0],), 1)).array()
    array([7, 2, 1], dtype=uint8)

    """

    def __init__(self, path: Path, head: ReadHead) -> None:
        self.path = path
        self._array: Array | None = None
        self._locks: dict[int, threading.Lock] = {}
        self._bytes = 0
        with self._errors():
            with self.path.open("rb") as raw:
                self.packed = raw.read(2) == b"\x1f\x8b"
            with self._open() as file:
                self.dtype, self.shape, self._offset = head(file, path)
        self._bytes = math.prod(self.shape) * self.dtype.itemsize
        self._check_size()

    def __len__(self) -> int:
        """Length of the first axis."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Show the path, dtype and shape."""
        return f"{type(self).__name__}({str(self.path)!r}, {self.dtype} {self.shape})"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the array and the locks, which belong to this process."""
        return {**self.__dict__, "_array": None, "_locks": {}}

    @property
    def ready(self) -> bool:
        """Whether the array is available without reading: mapped, or already unpacked in this process."""
        return not self.packed or self._array is not None

    def array(self) -> Array:
        """Read the array on the first call in a process, and return the same array afterwards."""
        if self._array is None:
            # a lock a process: after a fork, one that another thread of the parent held would stay locked for ever
            with self._locks.setdefault(os.getpid(), threading.Lock()):
                if self._array is None:
                    self._array = self._unpacked() if self.packed else self._mapped()
        return self._array

    @contextmanager
    def rows(self) -> Iterator[Callable[[int, int, Array], None]]:
        """Open the file to read rows block by block, in order, with only one block in memory."""
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
        """Convert errors of reading to a DataError."""
        try:
            with read_errors(self.path):
                yield
        except MemoryError as error:
            raise DataError(
                f"{self.path} requires {self._bytes:,} bytes of memory, more than is available; end other programs, "
                "or use a machine with more memory"
            ) from error

    def _check_size(self) -> None:
        size, expected = self.path.stat().st_size, self._offset + self._bytes
        if not self.packed and size != expected:
            raise self._wrong_size(f"the file has {size:,} bytes")
        if self.packed and expected > size * _MOST_RATIO:
            raise self._wrong_size(f"a gzip file of {size:,} bytes cannot contain that much data")
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
                    raise self._wrong_size("the file contains more")
            if count < self._offset + self._bytes:
                raise self._wrong_size(f"the file ends after {count:,} bytes")

    def _wrong_size(self, what: str) -> DataError:
        return DamagedFile(
            f"{self.path}: the header specifies the shape {self.shape} and dtype {self.dtype} "
            f"({self._offset + self._bytes:,} bytes in total), but {what}"
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
                raise self._wrong_size(f"the file ends after {position + filled:,} bytes")
            filled += count

    def _end(self, file: BinaryIO) -> None:
        # one byte beyond the end is asked for, never more; it also makes gzip compare its checksum
        if file.read(1):
            raise self._wrong_size("the file contains more")
