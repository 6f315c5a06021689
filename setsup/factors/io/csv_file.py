"""Rows of a CSV file as Arrow batches of strings, and its errors as sentences."""

import csv
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from setsup.errors import DataError, FactorError, abbreviate
from setsup.factors.io.delimiters import find_delimiter, read_header
from setsup.factors.io.encoding import Commas
from setsup.factors.io.nested import check_count
from setsup.factors.io.text_file import LINE, TextFile, arrow_source, explain_errors, not_utf8

__all__ = ["CsvFile"]

BLOCK = LINE
"""Bytes read at a time; no line may be longer."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_IMAGE = re.compile(r".*[^\s./]\.(bmp|gif|jpe?g|png|ppm|tiff?|webp)", re.IGNORECASE)
_LABELLED = re.compile(r"\S+[ \t]+-?\d+")  # a path without ending, and a number
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_COMMAS: dict[str, Commas] = {",": "text", ";": "decimal"}


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A text file of separated values with a header line, surveyed by :meth:`of`.

    Attributes
    ----------
    text : TextFile
        The file.
    delimiter : str
        What separates its fields.
    header : list of str
        Names of all columns; the first is empty for a pandas index without a name.
    lines : int
        Lines up to the end of the header.

    """

    text: TextFile
    delimiter: str
    header: list[str]
    lines: int

    @classmethod
    def of(cls, path: Path) -> "CsvFile":
        """Read the header and see that the file is text."""
        with _explain_errors(path):
            text = TextFile.of(path)
            delimiter, above = find_delimiter(text)
            header, lines = read_header(text, delimiter, above)
            with text.open() as file:
                below = next(islice(file, lines, None), b"").decode("utf-8", "replace").strip()
        if header is None:
            raise DataError(f"{path} is empty; start the file with a header line of column names")
        header = [name.strip() for name in header]
        _check_header(path, header, delimiter, below)
        return cls(text, delimiter, header, lines)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.text.path

    @property
    def commas(self) -> Commas:
        """What a comma in a number means."""
        return _COMMAS.get(self.delimiter, "unsure")

    @property
    def names(self) -> list[str]:
        """Columns to use: all, but for a pandas index without a name."""
        return [name for name in self.header if name]

    def blocks(self) -> Iterator[Any]:
        """Read the rows from the first on, as Arrow record batches of strings."""
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        rows, last = 0, None
        with _explain_errors(self.path):
            source: AbstractContextManager[Any] = arrow_source(self.path) if self.text.plain else self.text.open()
            read = pa_csv.ReadOptions(
                use_threads=False, block_size=BLOCK, skip_rows=self.lines, column_names=self.header
            )
            parse = pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
            types = dict.fromkeys(self.names, pa.string())
            convert = pa_csv.ConvertOptions(column_types=types, include_columns=self.names)
            with source as file, pa_csv.open_csv(file, read, parse, convert) as reader:
                for batch in reader:
                    rows += batch.num_rows
                    last = batch if batch.num_rows else last
                    yield batch
        if last is None:
            raise _without_rows(self.path)
        if self.text.quotes % 2 and any(
            "\n" in str(value) for value in last.slice(last.num_rows - 1).to_pylist()[0].values()
        ):
            raise DataError(
                f"{self.path}: a quoted field is not closed, so it extends to the end of the file, row {rows - 1} "
                "(counting from 0); add the closing quote"
            )


def _without_rows(path: Path) -> DataError:
    return DataError(f"{path} contains a header, but no rows; add rows")


def _check_header(path: Path, header: list[str], delimiter: str, below: str) -> None:
    alone = len(header) == 1
    cells = [cell for name in header for cell in (name.split() if alone else [name]) if cell]
    numbers = bool(cells) and all(map(_NUMBER.fullmatch, cells))
    if numbers or any(map(_IMAGE.fullmatch, cells)) or (alone and all(map(_LABELLED.fullmatch, [header[0], below]))):
        spaced = ", and separate its fields by commas" if alone and len(cells) > 1 else ""
        raise DataError(
            f"{path} has no header: its first line is {abbreviate(delimiter.join(header))}; start the file with "
            f"column names, such as image,label{spaced}"
        )
    try:
        check_count(len(header))
    except FactorError as error:
        raise DataError(f"{path}: {error}") from None
    seen: set[str] = set()
    for index, name in enumerate(header):
        if name in seen:
            raise DataError(f"{path}: two columns have the name {name!r}; rename one")
        seen.add(name)
        if not name and (index or len(header) == 1):
            raise DataError(f"{path}: column {index} (counting from 0) has no name in the header; add a name")


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """Errors of the file or its parser as one sentence."""
    import pyarrow as pa

    try:
        with explain_errors(path):
            yield
    except csv.Error as error:
        raise DataError(f"{path} has no valid header line: {error}") from None
    except pa.ArrowException as error:
        raise _parse_error(path, str(error)) from None


def _parse_error(path: Path, message: str) -> DataError:
    if ragged := _RAGGED.search(message):
        line, expected, came = ragged.groups()
        return DataError(
            f"{path}, line {line} must have {expected} fields, as the header does, not {came}; correct that line"
        )
    if "UTF8" in message:
        return not_utf8(path)
    if "Could not skip" in message:
        return _without_rows(path)
    if "straddling" in message:
        return DataError(f"{path} contains a line longer than {BLOCK >> 20} MB; check whether a quote is not closed")
    return DataError(f"{path} could not be parsed as CSV: {' '.join(message.split())[:200]}")
