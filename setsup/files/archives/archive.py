"""Single files of a zip or tar, checked against the listing of the archive."""

import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from setsup.errors import DamagedFile, DataError
from setsup.files.archives.listing import DEFLATED, ENCRYPTED, SPARSE, STORED
from setsup.files.archives.plain_files import read_range, unreadable
from setsup.files.lfs import is_pointer, pointer_error

__all__ = ["Archive", "Label", "Row"]

_PIECE = 1 << 20
_METHODS = {1: "shrink", 6: "implode", 9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz", 98: "ppmd"}


Label = Callable[[], str]
"""Gives the name of a file in messages."""


class Row(NamedTuple):
    """One file of a listing; columns as in :class:`setsup.files.archives.listing.Listing`."""

    name: bytes
    offset: int
    stored: int
    size: int
    method: int
    check: int


class Archive(ABC):
    """A zip or tar that is opened when it is first read, and closed with its last user.

    A forked process may use the descriptor that it inherits, since all reads name their offset.
    """

    has_checksums = False
    """Whether rows have the checksum of the content."""

    def __init__(self, path: Path, size: int, mtime_ns: int, files: int, listing: Path | None = None) -> None:
        self.path = path
        self._listing = listing
        # a checksum takes as long as the reading: once a process is enough
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
        file = self._open.setdefault("file", mine)
        if file != mine:
            os.close(mine)
        return file

    def read(self, place: int, row: Row, label: Label) -> bytes:
        """Read a file whole; its checksum is compared when it is first read."""
        _need_plain(row, label)
        file = self.descriptor()
        small = row.stored <= _PIECE  # read together with its header
        try:
            begin, length = self.header(row)
            head = read_range(file, begin, length + (row.stored if small else 0))
            start = self.check_header(file, head, row, label)
            end = start + row.stored
            content = head[start:end] if end <= len(head) else read_range(file, begin + start, row.stored)
        except OSError as error:
            raise DamagedFile.unreadable(label(), error) from error
        if len(content) != row.stored:
            raise damaged(label, "the archive ends within its content")
        if row.method != STORED:
            content = _inflated(content, row.size, label)
        if self.has_checksums and not self.verified[place]:
            if zlib.crc32(content) != row.check:
                raise damaged(label, "its checksum does not match")
            self.verified[place] = 1
        if is_pointer(content):  # archives that a host packs of a repository have pointers in them
            raise pointer_error(label())
        return content

    def stretch(self, row: Row, offset: int, length: int, label: Label) -> bytes | None:
        """Read bytes of a file that is stored as it is; None where it is deflated."""
        _need_plain(row, label)
        if row.method != STORED:
            return None
        wanted = max(0, min(length, row.size - offset))
        try:
            start = self.start(row, label)
            content = read_range(self.descriptor(), start + offset, wanted)
        except OSError as error:
            raise DamagedFile.unreadable(label(), error) from error
        if len(content) != wanted:
            raise damaged(label, "the archive ends within its content")
        return content

    def pieces(self, row: Row, label: Label) -> Iterator[bytes]:
        """Read a file piece by piece; its checksum is compared at the end."""
        _need_plain(row, label)
        file = self.descriptor()
        check = size = 0
        try:
            start = self.start(row, label)
            spans = range(start, start + row.stored, _PIECE)
            parts = (read_range(file, offset, min(_PIECE, start + row.stored - offset)) for offset in spans)
            for part in parts if row.method == STORED else _grown(parts, label):
                size += len(part)
                if size > row.size:
                    raise damaged(label, f"it has more than {row.size:,} bytes")
                check = zlib.crc32(part, check) if self.has_checksums else row.check
                yield part
        except OSError as error:
            raise DamagedFile.unreadable(label(), error) from error
        if size != row.size:
            raise damaged(label, f"it has {size:,} bytes, not {row.size:,}")
        if self.has_checksums and check != row.check:
            raise damaged(label, "its checksum does not match")

    def begin(self, row: Row, length: int, label: Label) -> bytes:
        """Read the first bytes of a file, fewer where it ends before, and no more of it than a piece."""
        content = self.stretch(row, 0, length, label)
        return next(self.pieces(row, label), b"")[:length] if content is None else content

    def start(self, row: Row, label: Label) -> int:
        """Where in the archive the bytes of a file begin; refuses an archive in which another file is there."""
        file = self.descriptor()
        begin, length = self.header(row)
        return begin + self.check_header(file, read_range(file, begin, length), row, label)

    def moved(self, label: Label) -> DataError:
        """Make the error for an archive in which another file is where this one was listed; it is listed again then."""
        if self._listing is not None:
            with suppress(OSError):
                self._listing.unlink(missing_ok=True)
        return DataError(
            f"{label()} is not at the position where it was listed, because the archive has changed; open it again"
        )

    @abstractmethod
    def header(self, row: Row) -> tuple[int, int]:
        """Where the header of a file begins, and how many bytes of it to read."""

    @abstractmethod
    def check_header(self, file: int, head: bytes, row: Row, label: Label) -> int:
        """Compare a header with the listing; returns the bytes from its beginning to the content."""


def _need_plain(row: Row, label: Label) -> None:
    if row.method in (STORED, DEFLATED):
        return
    fix = "unpack the archive and pass its folder"
    if row.method == ENCRYPTED:
        raise DataError(f"{label()} requires a password; {fix}")
    if row.method == SPARSE:
        raise DataError(f"{label()} is stored as a sparse file, which cannot be read in place; {fix}")
    raise DataError(
        f"{label()} is compressed with {_METHODS.get(row.method, f'method {row.method}')}, which is not supported; "
        f"{fix}"
    )


def _inflated(packed: bytes, size: int, label: Label) -> bytes:
    """What deflated bytes hold: exactly so many bytes, or an error before there are more."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflate.decompress(packed, max(size, 1))
        more = b"" if inflate.eof else inflate.decompress(inflate.unconsumed_tail, 1)
    except zlib.error as error:
        raise damaged(label, str(error)) from None
    if len(content) != size or more or not inflate.eof:
        raise damaged(label, f"it does not decompress to {size:,} bytes")
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
                raise damaged(label, str(error)) from None
            piece = inflate.unconsumed_tail
            yield part
    if not inflate.eof:
        raise damaged(label, "it is truncated")


def damaged(label: Label, what: str) -> DataError:
    """Make the error for a damaged file of an archive."""
    return DamagedFile(f"{label()} is damaged: {what}")
