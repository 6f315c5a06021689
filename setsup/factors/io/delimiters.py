"""Which character separates the fields of a table, found from its first lines."""

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice

from setsup.errors import DataError
from setsup.factors.io.text_file import TextFile, ending

__all__ = ["DELIMITERS", "find_delimiter", "read_header"]

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""Characters that may separate fields, and what they are called."""

_LOOKED_AT = 100  # lines below the header that are divided
_DECLARED = re.compile(r'"?sep=(.)"?[\r\n]*')


def find_delimiter(text: TextFile) -> tuple[str, int]:
    """Delimiter of a file, and how many lines stand above its header.

    It is the one that divides the header and the lines below it into equally many fields, more than one; of several,
    none is guessed. Excel's first line ``sep=;`` declares it.
    """
    with _lines(text) as lines:
        declared = _DECLARED.fullmatch(next(lines, ""))
        header = next(lines, "")
    if declared is not None and declared[1] in DELIMITERS and declared[1] in header:
        return declared[1], 1
    divided = {mark: records for mark in DELIMITERS if len((records := _divide(text, mark))[0]) > 1}
    if len(divided) < 2:
        return next(iter(divided), ","), 0
    if "\t" in divided and ending(text.path) == ".tsv":
        return "\t", 0
    even = [mark for mark, (head, *rows) in divided.items() if rows and all(len(row) == len(head) for row in rows)]
    # a quote within a name is the sign of a quoted name that was cut
    even = [mark for mark in even if not any('"' in name for name in divided[mark][0])] or even
    if len(even) > 1:
        names = " or ".join(DELIMITERS[mark] for mark in even)
        raise DataError(
            f"the delimiter of {text.path} is ambiguous: its first lines divide evenly at "
            f"{names}; put quotes around the column names that contain one of them"
        )
    # where none divides the lines evenly, reading names the first line that is uneven
    return (even or sorted(divided, key=lambda mark: -len(divided[mark][0])))[0], 0


def read_header(text: TextFile, delimiter: str, above: int) -> tuple[list[str] | None, int]:
    """Fields of the first line that is not empty, None without one, and the number of lines up to its end."""
    with _lines(text) as lines:
        skipped = sum(1 for _ in islice(lines, above))
        reader = csv.reader(lines, delimiter=delimiter)
        header = next((record for record in reader if record), None)
        return header, reader.line_num + skipped


def _lines(text: TextFile) -> io.TextIOWrapper:
    return io.TextIOWrapper(text.open(), encoding="utf-8-sig", newline="")


def _divide(text: TextFile, delimiter: str) -> list[list[str]]:
    """Header and first lines as fields; an empty header where there is none."""
    with _lines(text) as lines:
        records = list(islice(_records(csv.reader(lines, delimiter=delimiter)), 1 + _LOOKED_AT))
    return records or [[]]


def _records(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from (record for record in reader if record)
    except csv.Error:
        return
