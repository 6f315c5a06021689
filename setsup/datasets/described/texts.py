"""Lists and tables of a release, read as columns of texts, a million rows at once."""

import io
import re
from collections.abc import Sequence
from csv import reader as csv_rows
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.described.schema import Table
from setsup.datasets.described.values import named_groups
from setsup.errors import DamagedFile, did_you_mean
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.members import MemberIndex
from setsup.files.texts import comma_separated, text_of

__all__ = ["Text", "read_text", "refuse_second"]

_MOST = 1 << 30


@dataclass(frozen=True, slots=True)
class Text:
    """Columns of a text, pyarrow arrays of strings by name; `lines` (rows,), from 1, where it is a list of lines."""

    label: str
    columns: dict[str, Any]
    lines: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Count the rows."""
        return len(next(iter(self.columns.values())))

    def spot(self, row: int) -> str:
        """Position of a row, for messages."""
        return f"row {row}" if self.lines is None else f"line {self.lines[row]}"


def read_text(release: MemberIndex, table: Table) -> Text | None:
    """Read a table of the release; None if it is optional and missing.

    Raises
    ------
    DataError
        When the table is missing, or differs from its manifest.

    """
    name = next((name for name in table.files if name in release), None)
    if name is None and table.optional:
        return None
    member = release.place(name or table.files[0])
    content, label = release.read(member, _MOST), release.label(member)
    text = _read_table(content, label, table) if table.comma else _read_list(content, label, table)
    _check_forms(text, table)
    columns = dict(text.columns)
    for column, form in table.columns.items():
        columns |= _groups(text.columns[column], form)
    for column, value in table.constants.items():
        columns[column] = _repeated(value, len(text))
    if table.number is not None:
        columns[table.number] = _row_numbers(len(text))
    text = Text(label, columns, text.lines)
    if table.key is not None and not table.incomplete:
        refuse_second(text, table.key)
    return text


def _read_comma_separated(content: bytes, label: str, columns: Sequence[str], header: bool = True) -> Any:
    """Read some columns of a table between commas, as texts: a ``pyarrow.Table`` with rows."""
    import pyarrow as pa
    from pyarrow import csv

    content = comma_separated(content)
    try:
        first = re.match(rb"[^\r\n]*", content)
        head = (first[0] if first else b"").decode("utf-8-sig")
        names = next(csv_rows([head]), [])
        lacks = [column for column in columns if column not in names] if header else []
        if lacks:
            raise DamagedFile(f"{label} has no column {lacks[0]!r}{did_you_mean(lacks[0], names)}")
        if twice := [column for column in columns if names.count(column) > 1 and header]:
            raise DamagedFile(f"{label} has more than one column {twice[0]!r}")
        rows: Any = csv.read_csv(
            io.BytesIO(content),
            read_options=csv.ReadOptions(column_names=None if header else list(columns)),
            parse_options=csv.ParseOptions(newlines_in_values=b'"' in content),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError, ValueError) as error:
        raise DamagedFile(f"{label} could not be parsed as CSV: {' '.join(str(error).split())[:200]}") from error
    if not rows.num_rows:
        raise DamagedFile(f"{label} has no rows")
    return rows


def _read_table(content: bytes, label: str, table: Table) -> Text:
    rows = _read_comma_separated(content, label, list(table.columns), table.header)
    return Text(label, {name: rows[name].combine_chunks() for name in table.columns})


def _read_list(content: bytes, label: str, table: Table) -> Text:
    """Lines that are split at white space; the last column takes the rest of its line."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = pc.utf8_trim_whitespace(pa.array(text_of(content, label).splitlines(), pa.large_string()))
    numbers = as_numpy(pc.indices_nonzero(pc.not_equal(lines, ""))).astype(np.int64)
    lines, numbers = lines.take(pa.array(numbers)), numbers + 1
    heads = table.counted + table.header
    _check_heads(lines[:heads].to_pylist(), len(lines) - heads, label, table)
    lines, numbers, width = lines[heads:], numbers[heads:], len(table.columns)
    if not heads and not len(lines):
        raise DamagedFile(f"{label} is empty")
    if width == 1:
        return Text(label, dict.fromkeys(table.columns, lines), numbers)
    words = pc.utf8_split_whitespace(lines, max_splits=width - 1)
    wrong = as_numpy(pc.indices_nonzero(pc.not_equal(pc.list_value_length(words), width)))
    if len(wrong):
        raise _wrong_line(label, table, int(numbers[wrong[0]]), lines[int(wrong[0])].as_py())
    return Text(label, {name: pc.list_element(words, at) for at, name in enumerate(table.columns)}, numbers)


def _check_heads(heads: list[str], rows: int, label: str, table: Table) -> None:
    """Refuse a list that does not begin with the number of its rows, or with the names of its columns."""
    names, words = list(table.columns), [line.split() for line in heads]
    header = not table.header or (len(words) > table.counted and words[table.counted] == names)
    if table.counted:
        if not words or len(words[0]) != 1 or not header:
            line = f" and the line {' '.join(names)}" if table.header else ""
            raise DamagedFile(f"{label} must begin with the number of rows{line}")
        if words[0] != [str(rows)]:
            raise DamagedFile(f"{label} specifies {words[0][0][:40]} rows in line 1, but has {rows:,}")
    elif not header:
        raise DamagedFile(f"{label} begins with {' '.join(heads)[:60]!r}; expected {' '.join(names)}")


def _check_forms(text: Text, table: Table) -> None:
    """Refuse a value that has not the form of its column."""
    import pyarrow.compute as pc

    for name, form in table.columns.items():
        if form is None:
            continue
        wrong = as_numpy(pc.indices_nonzero(pc.invert(pc.match_substring_regex(text.columns[name], f"^(?:{form})$"))))
        if not len(wrong):
            continue
        row = int(wrong[0])
        if text.lines is not None:
            line = " ".join(str(text.columns[column][row].as_py()) for column in table.columns)
            raise _wrong_line(text.label, table, int(text.lines[row]), line)
        value = text.columns[name][row].as_py()
        raise DamagedFile(f"{text.label}: {name} of row {row} is {value!r:.40}; expected a match of {form}")


def _wrong_line(label: str, table: Table, number: int, line: str) -> DamagedFile:
    meant = table.line or f"the columns {', '.join(table.columns)}"
    return DamagedFile(f"{label}: line {number} is {line[:60]!r}; expected {meant}")


def _groups(column: Any, form: str | None) -> dict[str, Any]:
    """Columns of the named groups of a form, which all values match."""
    import pyarrow.compute as pc

    names = named_groups(form)
    if not names:
        return {}
    groups = pc.extract_regex(column, f"^(?:{form})$")
    return {name: pc.struct_field(groups, name) for name in names}


def _repeated(value: str, rows: int) -> Any:
    import pyarrow as pa

    return pa.repeat(pa.scalar(value, pa.large_string()), rows)


def _row_numbers(rows: int) -> Any:
    import pyarrow as pa

    return pa.array(np.arange(rows)).cast(pa.large_string())


def refuse_second(text: Text, key: str, among: Any = None) -> None:
    """Refuse a table in which two rows have the same key or, with `among`, the same of these keys."""
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = text.columns[key].dictionary_encode()
    if len(encoded.dictionary) == len(text):
        return
    firsts = np.unique(as_numpy(encoded.indices), return_index=True)[1]
    rows = np.setdiff1d(np.arange(len(text)), firsts)
    if among is not None:
        kind = pa.large_string()
        keys = text.columns[key].take(rows).cast(kind)
        rows = rows[as_numpy(pc.indices_nonzero(pc.is_in(keys, value_set=among.cast(kind).unique())))]
    if len(rows):
        row = int(rows[0])
        value = text.columns[key][row].as_py()
        raise DamagedFile(f"{text.label}: {text.spot(row)} repeats the {key} {value[:80]}")
