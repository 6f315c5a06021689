"""Rows of a CSV file as Arrow batches of text, and what can be wrong with such a file, each in one sentence."""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setsup.errors import DamagedFile, DataError

__all__ = ["CsvFile"]

BLOCK = 16 << 20
"""Bytes read at a time; no line may be longer."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A comma-separated UTF-8 file with a header line, surveyed by :meth:`of`.

    Attributes
    ----------
    path : Path
        Where it is.
    header : list of str
        Names of all columns; the first is empty where a pandas index without a name stands.
    lines : int
        Lines up to the end of the header.
    open_quote : bool
        Quotes are odd in number, so one may be open.

    """

    path: Path
    header: list[str]
    lines: int
    open_quote: bool

    @classmethod
    def of(cls, path: Path) -> "CsvFile":
        """Read the header and see that the file is text."""
        with _sentences(path):
            quotes = _survey(path)
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file)
                header = next((record for record in reader if record), None)
        if header is None:
            raise DataError(f"{path} is empty; a CSV file starts with a header line of column names")
        header = [name.strip() for name in header]
        _check_header(path, header)
        return cls(path, header, reader.line_num, quotes % 2 == 1)

    @property
    def names(self) -> list[str]:
        """Columns to use: all, but for a pandas index without a name."""
        return [name for name in self.header if name]

    def blocks(self) -> Iterator[Any]:
        """Read the rows from the first on, as Arrow record batches of text."""
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        rows, last = 0, None
        with _sentences(self.path):
            reader = pa_csv.open_csv(
                self.path,
                pa_csv.ReadOptions(use_threads=False, block_size=BLOCK, skip_rows=self.lines, column_names=self.header),
                pa_csv.ParseOptions(newlines_in_values=True),
                pa_csv.ConvertOptions(column_types=dict.fromkeys(self.names, pa.string()), include_columns=self.names),
            )
            for batch in reader:
                rows += batch.num_rows
                last = batch if batch.num_rows else last
                yield batch
        if last is None:
            raise _without_rows(self.path)
        if self.open_quote and any(
            "\n" in str(value) for value in last.slice(last.num_rows - 1).to_pylist()[0].values()
        ):
            raise DataError(
                f"{self.path}: a quote is not closed; its text runs to the end of the file, row {rows - 1} (from 0)"
            )


def _without_rows(path: Path) -> DataError:
    return DataError(f"{path} has a header, but no rows")


def _survey(path: Path) -> int:
    """Count quotes; refuse NUL bytes, of which text has none."""
    quotes = lines = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            if (place := block.find(b"\0")) >= 0:
                line = lines + block[:place].count(b"\n") + 1
                raise DataError(f"{path}, line {line}: there is a NUL byte, so this is no UTF-8 text or it is damaged")
            quotes += block.count(b'"')
            lines += block.count(b"\n")
    return quotes


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) == 1 and (other := next((mark for mark in ";\t|" if mark in header[0]), None)):
        raise DataError(f"{path} is separated by {other!r}; write it with commas")
    if all(_NUMBER.fullmatch(name) for name in header if name) and any(header):
        raise DataError(
            f"{path} has no header: its first line is {','.join(header)[:80]!r}; start it with column names"
        )
    for place, name in enumerate(header):
        if name in header[:place]:
            raise DataError(f"{path}: two columns have the name {name!r}; rename one")
        if not name and (place or len(header) == 1):
            raise DataError(f"{path}: column {place} (from 0) has no name in the header; give it one")


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Say in one sentence what the file or its parser complains of."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, not a CSV file") from None
    except OSError as error:
        raise DamagedFile.unreadable(path, error) from error
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except csv.Error as error:
        raise DataError(f"{path} has no proper header line: {error}") from None
    except pa.ArrowException as error:
        raise _parse_error(path, str(error)) from None


def _parse_error(path: Path, message: str) -> DataError:
    if ragged := _RAGGED.search(message):
        line, expected, came = ragged.groups()
        return DataError(f"{path}, line {line}: {came} fields, but the header names {expected}; correct that line")
    if "UTF8" in message:
        return _not_utf8(path)
    if "Could not skip" in message:
        return _without_rows(path)
    if "straddling" in message:
        return DataError(f"{path}: a line is longer than {BLOCK >> 20} MB; perhaps a quote is not closed")
    return DataError(f"{path} is no CSV file that can be read: {' '.join(message.split())[:200]}")


def _not_utf8(path: Path) -> DataError:
    with path.open("rb") as file:
        for line, text in enumerate(file, 1):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                wrong = text[error.start : error.start + 1]
                return DataError(f"{path}, line {line}: the byte {wrong!r} is not UTF-8; save the file as UTF-8")
    return DataError(f"{path} is not UTF-8; save it as UTF-8")
