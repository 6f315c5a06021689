"""Arrays mapped from files, looked at again before they are read.

A process that reads a page of a map which its file no longer has is killed by SIGBUS, without a message. A look at the
size before each read makes one sentence of it in all cases but one: the file is cut off between the look and the read.
"""

import mmap
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError

__all__ = ["MappedFile", "check_mapped"]


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
            found = cls(file.fileno(), 0, access=mmap.ACCESS_READ)
        found.filename = path
        return found


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
    found = base.size()
    if found < expected:
        label = name or getattr(base, "filename", "a mapped file")
        raise DataError(
            f"{label} was cut off while it was read: it has {found:,} bytes, and {expected:,} were there "
            "before; put the whole file back, and open it again"
        )
