"""The files of a gzipped tar, read from its beginning to its end, since there is no other way."""

import gzip
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from setsup.errors import DamagedFile, DataError
from setsup.files.archives.listing import SPARSE
from setsup.files.archives.names import shown
from setsup.files.archives.plain_files import too_long
from setsup.files.archives.tars import walk
from setsup.files.disk import need_readable, read_errors
from setsup.progress import Advance

__all__ = ["stream_files", "stream_tar"]

_PIECE = 1 << 20
_MOST_AFTER = 16  # pieces read after the end of the tar


def stream_tar(
    archive: Path, limit_of: Callable[[str], int | None], advance: Advance | None = None
) -> Generator[tuple[str, bytes], None, None]:
    """Read the files of a gzipped tar for which `limit_of` gives the most bytes that they may have; skip the others."""
    need_readable(archive, "a gzipped tar archive")
    for name, size, content in stream_files(archive, advance):
        limit = limit_of(name)
        if limit is not None:
            if size > limit:
                raise too_long(f"{archive}: {name}", size, limit)
            yield name, b"".join(content)


def stream_files(archive: Path, advance: Advance | None = None) -> Iterator[tuple[str, int, Iterator[bytes]]]:
    """Read the files of a gzipped tar: name, size, and the content in pieces, which may be skipped."""
    with read_errors(archive), archive.open("rb") as packed, gzip.open(packed) as file:
        tape = _Tape(file)
        done = 0
        for stretch in walk(tape.read, archive, at_once=1):
            files = stretch.listing(archive)
            columns = files.names.to_pylist(), files.offsets.tolist(), files.sizes.tolist(), files.methods
            for name, start, size, method in zip(*columns, strict=True):
                if method == SPARSE:
                    raise DataError(f"{archive}: {shown(name)} is stored as a sparse file; unpack the archive with tar")
                yield name, size, _pieces(tape, start, size, archive)
            if advance is not None:
                advance(packed.tell() - done)
            done = packed.tell()
        tape.finish()


def _pieces(tape: "_Tape", start: int, size: int, archive: Path) -> Iterator[bytes]:
    with read_errors(archive):
        for offset in range(start, start + size, _PIECE):
            count = min(_PIECE, start + size - offset)
            piece = tape.read(offset, count)
            if len(piece) < count:
                raise DamagedFile(f"{archive} is truncated")
            yield piece


class _Tape:
    """Reads a packed file forwards."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._at = 0

    def read(self, offset: int, size: int) -> bytes:
        """Skip to an offset, and read from there."""
        while self._at < offset:
            skipped = len(self._file.read(min(offset - self._at, _PIECE)))
            self._at += skipped
            if not skipped:
                return b""
        content = self._file.read(size)
        self._at += len(content)
        return content

    def finish(self) -> None:
        """Read on to the checksum at the very end; zeros without an end are left alone."""
        for _ in range(_MOST_AFTER):
            if not self._file.read(_PIECE):
                break
