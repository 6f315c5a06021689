"""Arrays mapped from files, looked at again before they are read, and given their space before they are written.

A process that reads a page of a map which its file no longer has is killed by SIGBUS, without a message, and so is one
that writes a page for which the disk has no space. A look at the size before each read makes one sentence of it in all
cases but one: the file is cut off between the look and the read.
"""

import errno
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError

__all__ = ["MappedFile", "check_mapped", "new_array"]

_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_PIECE = 1 << 20


class MappedFile(mmap.mmap):
    """A whole file, mapped read-only; knows its name, as ``numpy.memmap`` does.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "numbers.bin"
    >>> _ = path.write_bytes(bytes(range(8)))
    >>> np.frombuffer(MappedFile.open(path), np.uint8)[5]
    np.uint8(5)

    """

    filename: Path

    @classmethod
    def open(cls, path: Path) -> "MappedFile":
        """Map a file that is not empty."""
        with path.open("rb") as file:
            mapped = cls(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.filename = path
        return mapped


def check_mapped(array: npt.NDArray[np.generic]) -> None:
    """Refuse an array that is mapped from a file which has become shorter; all other arrays pass.

    `array` array.
    """
    base: object = array
    while type(base) is np.ndarray:
        base = base.base
    if base is None:  # nearly all are in memory
        return
    name, offset = None, 0
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            name, offset = base.filename, base.offset
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if not isinstance(base, mmap.mmap):
        return
    # a map begins at a page, somewhat before its array
    expected = offset - offset % mmap.ALLOCATIONGRANULARITY + len(base)
    size = base.size()
    if size < expected:
        label = name or getattr(base, "filename", "a mapped file")
        raise DataError(
            f"{label} was truncated while it was read: it has {size:,} bytes, not {expected:,}; restore the file and "
            "open it again"
        )


def new_array(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> np.memmap[tuple[int, ...], np.dtype[Any]]:
    """Create a ``.npy`` file of zeros, and map it to be written; an OSError where the disk has no space for it.

    Returns an array of `shape`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "zeros.npy"
    >>> new_array(path, np.float32, (2, 3))[1, 2] = 1
    >>> np.load(path)
    array([[0., 0., 0.],
           [0., 0., 1.]], dtype=float32)

    """
    array: Any = np.lib.format.open_memmap(path, "w+", dtype, shape)
    with path.open("r+b") as file:
        _reserve(file.fileno(), array.offset, array.nbytes)
    return array  # type: ignore[no-any-return]


def _reserve(file: int, start: int, size: int) -> None:
    """Have the disk set aside the space of zeros that a file has as a hole."""
    if hasattr(os, "posix_fallocate") and size:  # macOS has none
        try:
            return os.posix_fallocate(file, start, size)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    zeros = memoryview(bytes(_PIECE))
    while size:
        count = os.pwrite(file, zeros[: min(size, _PIECE)], start)
        start, size = start + count, size - count
