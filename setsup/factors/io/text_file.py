"""Files of text, as UTF-8 whatever their encoding and compression."""

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from setsup.errors import DamagedFile, DataError
from setsup.files.lfs import refuse_pointer

__all__ = ["LINE", "PARQUET", "SHEETS", "TABLES", "TextFile", "arrow_source", "ending", "explain_errors", "not_utf8"]

LINE = 16 << 20
"""Bytes that a line of text may have."""

TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
"""Endings of tables that are text, each also with ``.gz``."""

PARQUET = (".parquet", ".pq")
"""Endings of tables that are Parquet files."""

SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
"""Endings of spreadsheets, which are refused with a sentence."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"
_MOST, _FREE = 200, 64 << 20  # a table is rarely packed to less than a hundredth; small ones may be

_OTHERS = {
    b"PK\x03\x04": "is a spreadsheet or a zip archive, not text; save it as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "is an Excel spreadsheet, not text; save it as CSV",
    b"PAR1": "is a Parquet file; name it .parquet",
    b"ARROW1": "is an Arrow file; open it with FactorTable.open",
    b"BZh": "is compressed with bzip2; decompress it, or use gzip",
    b"\xfd7zXZ": "is compressed with xz; decompress it, or use gzip",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; decompress it, or use gzip",
}
"""First bytes of files that are often taken for text."""


@contextmanager
def arrow_source(path: Path) -> Iterator[Any]:
    """Give Arrow a file: its path, which is read fastest, or an open file where the path is no UTF-8."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        with path.open("rb") as file:
            yield file
    else:
        yield path


def ending(path: Path) -> str:
    """Ending of a table's name, in lower case and without ``.gz``."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file, looked through by :meth:`of`.

    Attributes
    ----------
    path : Path
        Where it is.
    size : int
        Bytes of its text as UTF-8.
    quotes : int
        How many double quotes it has.
    plain : bool
        It is UTF-8 that can be read as it is: neither compressed nor UTF-16.

    """

    path: Path
    size: int
    quotes: int
    plain: bool

    @classmethod
    def of(cls, path: Path) -> "TextFile":
        """See that a file is text; NUL bytes, of which text has none, are refused."""
        if ending(path) in SHEETS:
            raise DataError(f"{path} is a spreadsheet; save it as CSV (UTF-8), and pass that file")
        refuse_pointer(path)
        with explain_errors(path), path.open("rb") as raw:
            head = raw.read(8)
            for mark, what in _OTHERS.items():
                if head.startswith(mark):
                    raise DataError(f"{path} {what}")
            most = max(_FREE, _MOST * path.stat().st_size)
            size = quotes = lines = 0
            with _open(path) as file:
                while block := file.read(_BLOCK):
                    if (nul := block.find(b"\0")) >= 0:
                        line = lines + block[:nul].count(b"\n") + 1
                        raise DataError(
                            f"{path}, line {line} contains a NUL byte, so the file is damaged or not UTF-8 text; save "
                            "it again as UTF-8"
                        )
                    size += len(block)
                    if size > most:
                        raise DataError(
                            f"{path} decompresses to more than {_MOST} times its size, which is unlikely for a table; "
                            "if this is expected, decompress the file first"
                        )
                    quotes += block.count(b'"')
                    lines += block.count(b"\n")
        return cls(path, size, quotes, not head.startswith((_GZIP, *_UTF16)))

    def open(self) -> BinaryIO:
        """Read its text as UTF-8, from the start."""
        return _open(self.path)


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
    file: BinaryIO = cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")
    mark = file.read(2)
    file.seek(0)
    return io.BufferedReader(_AsUtf8(file), _BLOCK) if mark in _UTF16 else file


class _AsUtf8(io.RawIOBase):
    """UTF-16 with a byte order mark, as Excel writes "Unicode text"."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        while not self._left:
            block = self._file.read(_BLOCK)
            self._left = self._decoder.decode(block, final=not block).encode()
            if not block:
                break
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Errors of reading text as one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, not a table; pass the path of a file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is a damaged or truncated gzip file: {error}; copy or compress it again") from None
    except OSError as error:
        raise DamagedFile.unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise not_utf8(path, error.encoding) from None


def not_utf8(path: Path, encoding: str = "utf-8") -> DataError:
    """Error that names the line of the first byte that is not UTF-8."""
    if encoding.startswith("utf-16"):
        return DataError(f"{path} is a damaged or truncated UTF-16 file; save the file as UTF-8")
    with _open(path) as file:
        for line, text in enumerate(file, 1):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                wrong = text[error.start : error.start + 1]
                return DataError(
                    f"{path}, line {line}: the byte {wrong!r} is not valid UTF-8; save the file as UTF-8 (CSV UTF-8 "
                    "in Excel)"
                )
    return DataError(f"{path} is not valid UTF-8; save it as UTF-8")
