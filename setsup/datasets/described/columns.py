"""Columns of a release, from its tables joined by keys, with types, times, conditions and checks."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Places
from setsup.datasets.described.conditions import Encoded, condition_table, names_in
from setsup.datasets.described.schema import Layout
from setsup.datasets.described.texts import Text, read_text, refuse_second
from setsup.datasets.described.values import Type
from setsup.errors import DamagedFile
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.members import MemberIndex

__all__ = ["Columns", "add_times", "check_rows", "fill_template", "kept_rows", "read_tables"]

_INTEGER = "^-?[0-9]{1,18}$"
_NUMBER = r"^-?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?$"
_FORMS: dict[Type, tuple[str, Any, str]] = {
    "integer": (_INTEGER, int, "expected an integer"),
    "number": (_NUMBER, float, "expected a number"),
}
_LARGEST_32 = 3.4e38


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by name, pyarrow arrays of strings of one length, with the name of the file that each is of.

    A string is null where an incomplete table lacks the row, or no list has it.

    For messages: `rows`, where some were selected, are their numbers in the `tables` that follow one another.
    """

    values: Mapping[str, Any]
    labels: Mapping[str, str]
    types: Mapping[str, Type]
    rows: Places | None = None
    tables: tuple[Text, ...] = ()

    def __len__(self) -> int:
        """Count the rows."""
        return len(next(iter(self.values.values()), ()))

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of that name."""
        return name in self.values

    def take(self, rows: Places) -> "Columns":
        """Select rows."""
        values = {name: column.take(rows) for name, column in self.values.items()}
        return replace(self, values=values, rows=rows if self.rows is None else self.rows[rows])

    def spot(self, name: str, row: int) -> tuple[str, str]:
        """File of a value, and its row or line there, for messages."""
        number, label = row if self.rows is None else int(self.rows[row]), self.labels[name]
        for text in [text for text in self.tables if name in text.columns]:
            if number < len(text):
                return text.label, text.spot(number)
            number -= len(text)
        return label, f"row {number}"

    def encode(self, name: str) -> Encoded:
        """Give the different values of a column, of its type, and of each row which it has; null is :func:`lacks`.

        Raises
        ------
        DataError
            A value is not of the type of the column.

        """
        import pyarrow.compute as pc

        column = self.values[name].dictionary_encode()
        texts = column.dictionary.to_pylist()
        places = as_numpy(pc.fill_null(column.indices, len(texts))).astype(np.int64)
        if (kind := self.types.get(name)) is None:
            return [*texts, None] if column.null_count else texts, places
        form, make, expected = _FORMS[kind]
        fits = pc.match_substring_regex(column.dictionary, form).to_pylist()
        values = [make(text) if fit else None for text, fit in zip(texts, fits, strict=True)]
        wrong = [at for at, value in enumerate(values) if value is None or abs(value) > _LARGEST_32]
        if wrong:
            raise self.wrong(name, int(np.argmax(np.isin(places, wrong))), expected)
        return [*values, math.nan] if column.null_count else values, places

    def wrong(self, name: str, row: int, expected: str) -> DamagedFile:
        """Make the error for a value that is not as expected."""
        value = self.values[name][row].as_py()
        label, spot = self.spot(name, row)
        return DamagedFile(f"{label}: {name} of {spot} is {value!r:.40}; {expected}")


def read_tables(release: MemberIndex, layout: Layout) -> Columns:
    """Read the tables: rows are those of the first and of those without a key, one after the other.

    The columns of a table with a key are added to the rows of the same key.
    """
    texts = [(table, text) for table in layout.tables if (text := read_text(release, table)) is not None]
    rows = [text for number, (table, text) in enumerate(texts) if not number or table.key is None]
    values = {name: _joined([text.columns[name] for text in rows]) for name in (rows[0].columns if rows else ())}
    labels = dict.fromkeys(values, rows[0].label if rows else "")
    keyed = bool(texts) and texts[0][0].key is not None
    for number, (table, text) in enumerate(texts):
        if number and table.key is not None:
            if table.incomplete:
                refuse_second(text, table.key, among=values[table.key])
            at = _places_by_key(values[table.key], text, table.key, table.incomplete)
            if keyed and len(rows) == 1 and not table.incomplete:
                _places_by_key(text.columns[table.key], rows[0], table.key)
            values |= {name: column.take(at) for name, column in text.columns.items() if name != table.key}
            labels |= {name: text.label for name in text.columns if name != table.key}
    return Columns(values, labels, layout.types, tables=tuple(rows))


def _joined(parts: Sequence[Any]) -> Any:
    import pyarrow as pa

    return parts[0] if len(parts) == 1 else pa.concat_arrays([part.cast(pa.large_string()) for part in parts])


def _places_by_key(sought: Any, text: Text, key: str, incomplete: bool = False) -> Any:
    """Rows of a text that have the keys, null for one that it lacks, which an incomplete text alone may."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known, sought = (keys.cast(pa.large_string()).fill_null("") for keys in (text.columns[key], sought))
    rows = pc.index_in(sought, value_set=known)
    if rows.null_count and not incomplete:
        lost = sought[int(as_numpy(pc.indices_nonzero(pc.is_null(rows)))[0])].as_py()
        raise DamagedFile(
            f"{text.label} has no entry for {key} {lost[:80]}, which another list of the release contains"
        )
    return rows


def fill_template(template: str, columns: Columns) -> Any:
    """Write a path for each row, with the columns in place of their names in braces."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_string()
    pieces = re.split(r"\{([^{}]+)\}", template)
    parts = [
        columns.values[piece].cast(kind).fill_null("") if at % 2 else pa.scalar(piece, kind)
        for at, piece in enumerate(pieces)
    ]
    if len(pieces) == 1:
        return pa.repeat(parts[0], len(columns))
    if len(pieces) == 3 and not pieces[0] and not pieces[2]:
        return parts[1]
    return pc.binary_join_element_wise(*parts, pa.scalar("", kind))


def kept_rows(columns: Columns, layout: Layout) -> npt.NDArray[np.bool_]:
    """Rows that the layout does not leave out by a condition, (rows,); all if it is on a table that is not there."""
    names = [] if layout.without is None else names_in(layout.without, layout.columns)
    if layout.without is None or not all(name in columns for name in names):
        return np.ones(len(columns), bool)
    table = condition_table({name: columns.encode(name) for name in names}, [layout.without])
    kept = ~table.mask(layout.without)
    if not kept.any():
        why = f"{columns.labels[names[0]]}: the condition {layout.without!r} of layout.without excludes every row"
        raise DamagedFile(why, "correct the data or the manifest")
    return kept


def add_times(columns: Columns, layout: Layout) -> Columns:
    """Add the parts of times, by UTC where a time has an offset, that the layout makes columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values, labels = dict(columns.values), dict(columns.labels)
    for name, parts in layout.times.items():
        if name not in columns:
            continue
        encoded = columns.values[name].dictionary_encode()
        times = [_read_time(text) for text in encoded.dictionary.to_pylist()]
        if None in times:
            row = int(np.argmax(as_numpy(pc.fill_null(encoded.indices, -1)) == times.index(None)))
            raise columns.wrong(name, row, "expected a time such as 2015-08-01T08:54:30Z")
        for part in parts:
            texts = pa.array([str(getattr(time, part)) for time in times], pa.large_string())
            values[part], labels[part] = texts.take(encoded.indices), labels[name]
    return replace(columns, values=values, labels=labels)


def _read_time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return time if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def check_rows(columns: Columns, layout: Layout) -> None:
    """Refuse rows for which a check of the layout does not hold; checks of tables that are not there are left out."""
    for check in layout.checks:
        names = names_in(check, layout.columns)
        if not all(name in columns for name in names):
            continue
        table = condition_table({name: columns.encode(name) for name in names}, [check])
        fails = ~table.mask(check)
        if fails.any():
            row = int(np.argmax(fails))
            key = next((table.key for table in layout.tables if table.key), None)
            label, spot = columns.spot(names[0], row)
            which = spot if key is None else f"{key} {columns.values[key][row].as_py()}"
            value = columns.values[names[0]][row].as_py() or ""
            raise DamagedFile(f"{label}: {names[0]} of {which} is {value[:80]}; expected {check}")
