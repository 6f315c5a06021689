"""Texts of numbers: lines with one value a column, and matrices."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Array, Reals
from setsup.errors import DamagedFile, short
from setsup.files.archives.listing import as_numpy
from setsup.files.texts import text_of

__all__ = ["Column", "read_columns", "read_matrix"]

_SHOWN = 60


class Column(NamedTuple):
    """A column of numbers: its dtype, and the smallest and the largest number in it."""

    dtype: type[np.generic]
    low: float
    high: float


def read_columns(
    content: bytes,
    label: str,
    columns: Mapping[str, Column],
    meaning: str,
    unread: Sequence[str] = (),
    further: int = 0,
) -> dict[str, Array]:
    """Read lines of numbers between blanks, such as ``1 15 215.0 194.0 1``, millions of them.

    Lines have a value for each of the columns, then one for each of the `unread`, then at most as many as `further`.
    The order of the rows is not that of the lines if lines have further values.

    `meaning`: what a line is, in messages. Returns (lines,) arrays by name.
    """
    import pyarrow as pa
    from pyarrow import csv

    body = _plain(content)
    if not body:
        raise DamagedFile(f"{label} is empty; expected {meaning} in each line")
    if not body.isascii():  # the parser cannot hand such a line over
        raise _wrong_line(body, label, columns, meaning, len(unread), further, "it is not ASCII text")
    names = [*columns, *unread]
    longer: list[list[str]] = []

    def keep(row: Any) -> str:
        words = row.text.split()
        if not len(names) < len(words) <= len(names) + further:
            return "error"
        longer.append(words)
        return "skip"

    types = {name: pa.from_numpy_dtype(np.dtype(column.dtype)) for name, column in columns.items()}
    try:
        with csv.open_csv(
            pa.BufferReader(body),
            csv.ReadOptions(use_threads=False, column_names=names),
            csv.ParseOptions(delimiter=" ", quote_char=False, invalid_row_handler=keep),
            csv.ConvertOptions(
                column_types=types, include_columns=list(columns), null_values=[], strings_can_be_null=False
            ),
        ) as blocks:
            parts = [[as_numpy(block.column(name)) for name in columns] for block in blocks]
        kinds = [column.dtype for column in columns.values()]
        parts.append([np.array([words[place] for words in longer], kind) for place, kind in enumerate(kinds)])
        found = {name: np.concatenate([part[place] for part in parts]) for place, name in enumerate(columns)}
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise _wrong_line(body, label, columns, meaning, len(unread), further, str(error)) from None
    if not all(((found[name] >= column.low) & (found[name] <= column.high)).all() for name, column in columns.items()):
        raise _wrong_line(body, label, columns, meaning, len(unread), further, "a number is out of range")
    return found


def read_matrix(content: bytes, label: str, columns: int, low: float, high: float) -> Reals:
    """Read a matrix of numbers from `low` to `high`, a row a line: (lines, columns) float64."""
    lines = text_of(content, label).split("\n")
    rows = [(number, words) for number, line in enumerate(lines, 1) if (words := line.split())]
    values = np.empty((len(rows), columns))
    for place, (number, words) in enumerate(rows):
        if len(words) != columns:
            raise DamagedFile(f"{label}: line {number} has {len(words)} columns; expected {columns}")
        try:
            values[place] = [float(word) for word in words]
        except ValueError:
            values[place] = np.nan
        if not ((values[place] >= low) & (values[place] <= high)).all():
            wrong = next(word for word in words if not _fits(word, Column(np.float64, low, high)))
            raise DamagedFile(
                f"{label}: line {number} has {short(wrong, _SHOWN)!r}; expected numbers from {low:g} to {high:g}"
            )
    return values


def _plain(content: bytes) -> bytes:
    """Text with one blank where there are more, and none at the ends of lines; each copy is made only if needed."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    for some, plain in ((b"\r\n", b"\n"), (b"\t", b" "), (b"  ", b" "), (b" \n", b"\n"), (b"\n ", b"\n")):
        while some in content:
            content = content.replace(some, plain)
    return content.strip()


def _fits(word: str, column: Column) -> bool:
    """Whether a word is a number of a column."""
    try:
        number = int(word) if np.issubdtype(column.dtype, np.integer) else float(word)
    except ValueError:
        return False
    return column.low <= number <= column.high


def _wrong_line(
    body: bytes, label: str, columns: Mapping[str, Column], meaning: str, unread: int, further: int, why: str
) -> DamagedFile:
    """Make the error for the first line that is not as expected."""
    fewest = len(columns) + unread
    for number, line in enumerate(body.split(b"\n"), 1):
        words = line.decode("utf-8", "replace").split()
        fitting = all(_fits(word, column) for word, column in zip(words, columns.values(), strict=False))
        if words and not (fitting and line.isascii() and fewest <= len(words) <= fewest + further):
            text = short(" ".join(words), _SHOWN)
            return DamagedFile(f"{label}: line {number} is {text!r}; expected {meaning}")
    return DamagedFile(f"{label} could not be parsed as lines of numbers: {' '.join(why.split())[:200]}")
