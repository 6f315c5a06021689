"""Tar archives that were gzipped as a whole: read from begin to end, since there is no other way."""

import gzip
from collections.abc import Callable, Generator
from pathlib import Path

from setsup.errors import DamagedFile
from setsup.files import need_readable
from setsup.files.disk import read_errors
from setsup.progress import Advance

__all__ = ["is_gzip", "stream_tar"]

_BLOCK = 512
_PIECE = 1 << 20
_FILES = b"0\0"  # type flags of plain files; all else (folders, links, long names) is passed over


def is_gzip(path: Path) -> bool:
    """Whether a file is there and begins as gzip does.

    Examples
    --------
    >>> is_gzip(Path("/nowhere/data.tar.gz"))
    False

    """
    try:
        with path.open("rb") as file:
            return file.read(2) == b"\x1f\x8b"
    except OSError:
        return False


def stream_tar(
    path: Path, limit_of: Callable[[str], int | None], advance: Advance | None = None
) -> Generator[tuple[str, bytes], None, None]:
    """Read files out of a gzipped tar, in the order in which they stand there.

    Yields (str, bytes).
    """
    need_readable(path, "a gzipped tar archive")
    with read_errors(path), path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as file:
        told = 0
        while header := _header(path, file):
            name, size, plain = header
            limit = limit_of(name) if plain else None
            if limit is not None and size > limit:
                raise DamagedFile(f"{path}: {name} has {size:,} bytes, more than the {limit:,} expected")
            padding = -size % _BLOCK
            if limit is None:
                _pass(path, file, size + padding)
            else:
                content = _take(path, file, size)
                _pass(path, file, padding)
                yield name, content
            if advance is not None:
                advance(raw.tell() - told)
                told = raw.tell()
        # to the last byte, where gzip compares its checksum
        while file.read(_PIECE):
            pass


def _header(path: Path, file: gzip.GzipFile) -> tuple[str, int, bool] | None:
    """Name, size and whether it is a plain file; None at the end of the archive."""
    block = file.read(_BLOCK)
    if block == bytes(_BLOCK):
        return None
    if len(block) < _BLOCK:
        raise DamagedFile(f"{path} is cut off: its tar ends without an end mark")
    try:
        told, size = (int(field.split(b"\0")[0].strip() or b"0", 8) for field in (block[148:156], block[124:136]))
    except ValueError:
        told = size = -1
    if size < 0 or told != sum(block[:148]) + 8 * ord(" ") + sum(block[156:]):
        raise DamagedFile(f"{path} is damaged or no tar archive: a header has a wrong checksum")
    parts = [block[345:500]] if block[257:262] == b"ustar" and block[257:265] != b"ustar  \0" else []
    names = [part.split(b"\0")[0].decode("utf-8", "surrogateescape") for part in [*parts, block[:100]]]
    return "/".join(filter(None, names)).removeprefix("./"), size, block[156] in _FILES


def _take(path: Path, file: gzip.GzipFile, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        piece = file.read(min(_PIECE, size - len(content)))
        if not piece:
            raise DamagedFile(f"{path} is cut off: a file of {size:,} bytes ends after {len(content):,}")
        content += piece
    return bytes(content)


def _pass(path: Path, file: gzip.GzipFile, size: int) -> None:
    while size:
        piece = file.read(min(_PIECE, size))
        if not piece:
            raise DamagedFile(f"{path} is cut off: {size:,} bytes are missing at its end")
        size -= len(piece)
