"""Tar archives that were gzipped as a whole: read from begin to end, since there is no other way."""

import gzip
import zlib
from collections.abc import Callable, Generator
from pathlib import Path

from setsup.errors import DataError
from setsup.files import need_readable
from setsup.progress import Advance

__all__ = ["stream_tar"]

_BLOCK = 512
_PIECE = 1 << 20
_FILES = b"0\0"  # type flags of plain files; all else (folders, links, long names) is passed over
_MEND = "fetch it again"


def stream_tar(
    path: Path, limit_of: Callable[[str], int | None], advance: Advance | None = None
) -> Generator[tuple[str, bytes], None, None]:
    """Read files out of a gzipped tar, in the order in which they stand there.

    Yields (str, bytes).
    """
    need_readable(path, "a gzipped tar archive")
    try:
        with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as file:
            told = 0
            while header := _header(path, file):
                name, size, plain = header
                limit = limit_of(name) if plain else None
                if limit is not None and size > limit:
                    raise DataError(f"{path}: {name} has {size:,} bytes, more than the {limit:,} expected; {_MEND}")
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
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is cut off or damaged ({error}); {_MEND}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _header(path: Path, file: gzip.GzipFile) -> tuple[str, int, bool] | None:
    """Name, size and whether it is a plain file; None at the end of the archive."""
    block = file.read(_BLOCK)
    if block == bytes(_BLOCK):
        return None
    if len(block) < _BLOCK:
        raise DataError(f"{path} is cut off: its tar ends without an end mark; {_MEND}")
    try:
        told, size = (int(field.split(b"\0")[0].strip() or b"0", 8) for field in (block[148:156], block[124:136]))
    except ValueError:
        told = size = -1
    if size < 0 or told != sum(block[:148]) + 8 * ord(" ") + sum(block[156:]):
        raise DataError(f"{path} is damaged or no tar archive: a header has a wrong checksum; {_MEND}")
    parts = [block[345:500]] if block[257:262] == b"ustar" and block[257:265] != b"ustar  \0" else []
    names = [part.split(b"\0")[0].decode("utf-8", "surrogateescape") for part in [*parts, block[:100]]]
    return "/".join(filter(None, names)).removeprefix("./"), size, block[156] in _FILES


def _take(path: Path, file: gzip.GzipFile, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        piece = file.read(min(_PIECE, size - len(content)))
        if not piece:
            raise DataError(f"{path} is cut off: a file of {size:,} bytes ends after {len(content):,}; {_MEND}")
        content += piece
    return bytes(content)


def _pass(path: Path, file: gzip.GzipFile, size: int) -> None:
    while size:
        piece = file.read(min(_PIECE, size))
        if not piece:
            raise DataError(f"{path} is cut off: {size:,} bytes are missing at its end; {_MEND}")
        size -= len(piece)
