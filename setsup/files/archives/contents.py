"""Bytes of single files out of a folder, a zip or a tar, checked against what the listing says of them."""

import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from setsup.errors import DamagedFile, DataError
from setsup.files.archives.archive_format import unreadable
from setsup.files.archives.listing import DEFLATED, ENCRYPTED, SPARSE, STORED
from setsup.files.archives.names import shown
from setsup.files.archives.tar_headers import BLOCK, header_check
from setsup.files.archives.zips import LOCAL, local_name

__all__ = [
    "ArchiveFile",
    "Row",
    "pieces",
    "read_file",
    "read_file_stretch",
    "read_member",
    "read_range",
    "read_stretch",
    "stored_start",
    "too_long",
]

_SLACK = 96  # bytes of extra fields that a local header seldom exceeds; they are not in the directory
_PIECE = 1 << 20
_MOST = 1 << 30  # bytes asked of the system at once; Linux gives 2 GiB at most
_METHODS = {1: "shrink", 6: "implode", 9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz", 98: "ppmd"}


Label = Callable[[], str]


class Row(NamedTuple):
    """What a listing says of one file; columns as in :class:`setsup.files.archives.listing.Listing`."""

    name: bytes
    offset: int
    stored: int
    size: int
    method: int
    check: int


class ArchiveFile:
    """An archive that is opened when it is first read, and closed with the last that uses it.

    A forked process goes on with the descriptor that it inherits: places are always told, never sought.
    """

    def __init__(self, path: Path, size: int, mtime_ns: int, files: int) -> None:
        self.path = path
        # a checksum takes as long as the reading: once a process is enough to know what lies on the disk
        self.verified = bytearray(files)
        self._about = (size, mtime_ns)
        self._open: dict[str, int] = {}

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # modules may be gone when this is called
        for descriptor in self._open.values():
            try:
                close(descriptor)
            except OSError:
                pass

    def descriptor(self) -> int:
        """Open the archive, unless it is."""
        if "file" in self._open:
            return self._open["file"]
        try:
            mine = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            about = os.fstat(mine)
        except OSError as error:
            raise unreadable(self.path, error) from error
        if (about.st_size, about.st_mtime_ns) != self._about:
            os.close(mine)
            raise DataError(f"{self.path} has changed since it was listed; open it again")
        # of two threads that come here at once, one closes what it opened
        found = self._open.setdefault("file", mine)
        if found != mine:
            os.close(mine)
        return found


def read_file(path: bytes, limit: int | None) -> bytes:
    """Read a file of a folder, whole."""
    file, size = _opened(path)
    try:
        if limit is not None and size > limit:
            raise too_long(shown(os.fsdecode(path)), size, limit)
        content = read_range(file, 0, size)
    except OSError as error:
        raise unreadable(Path(os.fsdecode(path)), error) from error
    finally:
        os.close(file)
    if len(content) != size:
        raise DamagedFile(f"{shown(os.fsdecode(path))} was cut off while it was read")
    return content


def read_file_stretch(path: bytes, offset: int, length: int) -> bytes:
    """Read bytes of a file of a folder, fewer where it ends before; errors as for :func:`read_file`."""
    file, size = _opened(path)
    try:
        return read_range(file, offset, max(0, min(length, size - offset)))
    except OSError as error:
        raise unreadable(Path(os.fsdecode(path)), error) from error
    finally:
        os.close(file)


def read_member(archive: ArchiveFile, place: int, kind: str, row: Row, label: Label) -> bytes:
    """Read a file of a zip or tar, whole."""
    _need_plain(row, label)
    file = archive.descriptor()
    try:
        if kind == "tar":
            return _read_tar(file, row, archive.path, label)
        packed = _read_zip(file, row, archive.path, label)
    except OSError as error:
        raise DamagedFile.unreadable(label(), error) from error
    content = packed if row.method == STORED else _inflated(packed, row.size, label)
    if not archive.verified[place]:
        if zlib.crc32(content) != row.check:
            raise _damaged(label, "its content has another checksum")
        archive.verified[place] = 1
    return content


def read_stretch(archive: ArchiveFile, kind: str, row: Row, offset: int, length: int, label: Label) -> bytes | None:
    """Read bytes of a file of a zip or tar that is stored as it is; None where it is deflated."""
    _need_plain(row, label)
    if row.method != STORED:
        return None
    wanted = max(0, min(length, row.size - offset))
    file = archive.descriptor()
    try:  # as _reading does, which takes a tenth of the time of a short stretch
        start = stored_start(file, kind, row, archive.path, label)
        found = read_range(file, start + offset, wanted)
    except OSError as error:
        raise DamagedFile.unreadable(label(), error) from error
    if len(found) != wanted:
        raise _damaged(label, "the archive ends inside it")
    return found


def pieces(archive: ArchiveFile, kind: str, row: Row, label: Label) -> Iterator[bytes]:
    """Read a file of a zip or tar piece by piece; errors as for :func:`read_member`."""
    _need_plain(row, label)
    file = archive.descriptor()
    with _reading(label):
        start = stored_start(file, kind, row, archive.path, label)
        spans = range(start, start + row.stored, _PIECE)
        parts = (read_range(file, place, min(_PIECE, start + row.stored - place)) for place in spans)
        check = size = 0
        for part in parts if row.method == STORED else _grown(parts, label):
            size += len(part)
            if size > row.size:
                raise _damaged(label, f"it holds more than its {row.size:,} bytes")
            check = zlib.crc32(part, check) if kind == "zip" else row.check
            yield part
    if size != row.size:
        raise _damaged(label, f"it holds {size:,} bytes, not {row.size:,}")
    if kind == "zip" and check != row.check:
        raise _damaged(label, "its content has another checksum")


def stored_start(file: int, kind: str, row: Row, path: Path, label: Label) -> int:
    """Where in the archive the bytes of a file begin; refuses one in which another file lies there."""
    if kind == "zip":
        head = read_range(file, row.offset, LOCAL.size + len(row.name) + _SLACK)
        return row.offset + _content_start(file, head, row, path, label)
    _check_header(read_range(file, row.offset - BLOCK, BLOCK), row, path, label)
    return row.offset


def read_range(file: int, offset: int, size: int) -> bytes:
    """Read bytes of an open file, fewer where it ends before."""
    found = os.pread(file, min(size, _MOST), offset)
    if len(found) == size or not found:
        return found
    parts, got = [found], len(found)
    while got < size and (part := os.pread(file, min(size - got, _MOST), offset + got)):
        parts.append(part)
        got += len(part)
    return b"".join(parts)


def too_long(label: str, size: int, limit: int) -> DataError:
    """Make the sentence about a file of more bytes than a caller allows."""
    return DamagedFile(f"{label} has {size:,} bytes, more than the {limit:,} expected")


# -- inside ------------------------------------------------------------------------------------------------------------


def _read_tar(file: int, row: Row, path: Path, label: Label) -> bytes:
    """Content of a file in a tar, and its header with it in one go, unless it is large."""
    small = row.size <= _PIECE
    whole = read_range(file, row.offset - BLOCK, BLOCK + (row.size if small else 0))
    _check_header(whole, row, path, label)
    content = whole[BLOCK:] if small else read_range(file, row.offset, row.size)
    if len(content) != row.size:
        raise _damaged(label, "the archive ends inside it")
    return content


def _check_header(head: bytes, row: Row, path: Path, label: Label) -> None:
    """Refuse a tar in which another file lies where this one was listed."""
    try:
        same = int(head[148:156].strip(b" \0"), 8) == row.check
    except ValueError:
        same = len(head) >= BLOCK and header_check(head[:BLOCK]) == row.check
    if not same:
        raise _swapped(path, label)


def _read_zip(file: int, row: Row, path: Path, label: Label) -> bytes:
    """Bytes of a file as they lie in a zip, and its header with them in one go, unless they are large."""
    small = row.stored <= _PIECE
    whole = read_range(file, row.offset, LOCAL.size + len(row.name) + _SLACK + (row.stored if small else 0))
    start = _content_start(file, whole, row, path, label)
    end = start + row.stored
    packed = whole[start:end] if end <= len(whole) else read_range(file, row.offset + start, row.stored)
    if len(packed) != row.stored:
        raise _damaged(label, "the archive ends inside it")
    return packed


def _content_start(file: int, head: bytes, row: Row, path: Path, label: Label) -> int:
    """Bytes from the local header to the content; refuses a zip in which another file lies there."""
    if len(head) < LOCAL.size or not head.startswith(b"PK\x03\x04"):
        raise _swapped(path, label)
    _, _, _, method, *_, length, extra = LOCAL.unpack_from(head)
    name_end = LOCAL.size + length
    if method != row.method:
        raise _swapped(path, label)
    if head[LOCAL.size : name_end] != row.name:
        # written in another way than the listing writes it, or another file
        if len(head) < name_end + extra:
            head = read_range(file, row.offset, name_end + extra)
        if local_name(head, path) != row.name:
            raise _swapped(path, label)
    return int(name_end + extra)


def _opened(path: bytes) -> tuple[int, int]:
    """Open a file of a folder; its descriptor, which the caller closes, and its size in bytes."""
    try:
        # no waiting for a pipe that took a file's place
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        about = os.fstat(file)
    except OSError as error:
        raise unreadable(Path(os.fsdecode(path)), error) from error
    if not stat.S_ISREG(about.st_mode):
        os.close(file)
        raise DataError(f"{shown(os.fsdecode(path))} is no file any more")
    return file, about.st_size


@contextmanager
def _reading(label: Label) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DamagedFile.unreadable(label(), error) from error


def _need_plain(row: Row, label: Label) -> None:
    if row.method in (STORED, DEFLATED):
        return
    mend = "unpack the archive, and name the folder"
    if row.method == ENCRYPTED:
        raise DataError(f"{label()} needs a password; {mend}")
    if row.method == SPARSE:
        raise DataError(f"{label()} is stored with its holes left out (a sparse file); {mend}")
    raise DataError(f"{label()} is packed with {_METHODS.get(row.method, f'method {row.method}')}; {mend}")


def _inflated(packed: bytes, size: int, label: Label) -> bytes:
    """What deflated bytes hold: exactly so many bytes, or an error before there are more."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflate.decompress(packed, max(size, 1))
        more = b"" if inflate.eof else inflate.decompress(inflate.unconsumed_tail, 1)
    except zlib.error as error:
        raise _damaged(label, str(error)) from None
    if len(content) != size or more or not inflate.eof:
        raise _damaged(label, f"it does not hold its {size:,} bytes")
    return content


def _grown(parts: Iterable[bytes], label: Label) -> Iterator[bytes]:
    """What deflated bytes hold, piece by piece."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    for piece in chain(parts, [b""]):
        part = b"more"
        while part and not inflate.eof:
            try:
                part = inflate.decompress(piece, _PIECE)
            except zlib.error as error:
                raise _damaged(label, str(error)) from None
            piece = inflate.unconsumed_tail
            yield part
    if not inflate.eof:
        raise _damaged(label, "it is cut off")


def _damaged(label: Label, what: str) -> DataError:
    return DamagedFile(f"{label()} is damaged: {what}")


def _swapped(path: Path, label: Label) -> DataError:
    return DataError(f"{label()} is no longer where it was listed; {path} has changed: open it again")
