"""Read regular files of a disk, whole or in part, with one error for whatever goes wrong."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setsup.errors import DamagedFile, DataError
from setsup.files.archives.names import shown
from setsup.files.lfs import LARGEST_POINTER, is_pointer, pointer_error

__all__ = ["open_file", "read_file", "read_file_stretch", "read_range", "too_long", "unreadable"]

_FARTHEST = (1 << 63) - 1  # bytes; systems refuse other offsets
_MOST = 1 << 30  # bytes requested from the system at once; Linux returns 2 GiB at most


@contextmanager
def open_file(source: Path | bytes, problem: str = "") -> Iterator[tuple[int, int]]:
    """Open a file for reading; its descriptor, and its size in bytes; `problem` is the error where it is not a file."""
    # no waiting for a pipe
    file = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            neither = f"{source!s} is neither a folder nor a file; pass the folder or the archive of the dataset"
            raise DataError(problem or neither)
        if about.st_size <= LARGEST_POINTER and is_pointer(os.pread(file, LARGEST_POINTER, 0)):
            raise pointer_error(Path(os.fsdecode(source)))
        yield file, about.st_size
    finally:
        os.close(file)


def read_file(path: bytes, limit: int | None) -> bytes:
    """Read a file whole."""
    label = shown(os.fsdecode(path))
    with _opened(path, label) as (file, size):
        if limit is not None and size > limit:
            raise too_long(label, size, limit)
        content = read_range(file, 0, size)
    if len(content) != size:
        raise DamagedFile(f"{label} was truncated while it was read")
    return content


def read_file_stretch(path: bytes, offset: int, length: int) -> bytes:
    """Read bytes of a file, fewer where it ends before."""
    with _opened(path, shown(os.fsdecode(path))) as (file, size):
        return read_range(file, offset, max(0, min(length, size - offset)))


def read_range(file: int, offset: int, size: int) -> bytes:
    """Read bytes of an open file, fewer where it ends before."""
    if offset > _FARTHEST:
        return b""
    content = os.pread(file, min(size, _MOST), offset)
    if len(content) == size or not content:
        return content
    parts, got = [content], len(content)
    while got < size and (part := os.pread(file, min(size - got, _MOST), offset + got)):
        parts.append(part)
        got += len(part)
    return b"".join(parts)


def too_long(label: str, size: int, limit: int) -> DataError:
    """Make the error for a file of more bytes than a caller allows."""
    return DamagedFile(f"{label} has {size:,} bytes, more than the {limit:,} expected")


def unreadable(source: Path, error: OSError) -> DataError:
    """Make the error for a file that the system refuses to read."""
    if isinstance(error, FileNotFoundError):
        told = f"{shown(str(source))} does not exist; pass the folder or the archive of the dataset"
        return DataError(told, file=source)
    return DamagedFile.unreadable(shown(str(source)), error)


@contextmanager
def _opened(path: bytes, label: str) -> Iterator[tuple[int, int]]:
    try:
        with open_file(path, f"{label} is no longer a file") as opened:
            yield opened
    except OSError as error:
        raise unreadable(Path(os.fsdecode(path)), error) from error
