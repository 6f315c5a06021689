"""Files with one JSON object per line as Arrow batches, and their errors as sentences."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setsup.errors import DataError, abbreviate
from setsup.factors.io.infer import arrow_array
from setsup.factors.io.nested import check_count, flat_object
from setsup.factors.io.text_file import LINE, TextFile, explain_errors

__all__ = ["JsonLines"]

ROWS = 1 << 16
"""Rows of a block."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A text file with one JSON object per line, surveyed by :meth:`of`.

    Attributes
    ----------
    text : TextFile
        The file.
    names : list of str
        Keys of all lines whose values can be factors, in the order in which they appear; ``a.b`` for the key ``b`` of
        an object ``a``.
    nested : list of str
        Keys with lists, or with objects in some lines and other values in others, which are left out.
    large : set of str
        Keys with integers beyond 64 bits, whose digits are read as strings, as in CSV.

    """

    text: TextFile
    names: list[str]
    nested: list[str]
    large: frozenset[str]

    @classmethod
    def of(cls, path: Path) -> "JsonLines":
        """Find the keys of all lines."""
        text = TextFile.of(path)
        lists: dict[str, bool] = {}  # by name, whether a value is a list
        filled: set[str] = set()  # with another value than null
        objects: set[str] = set()
        large: set[str] = set()
        rows = 0
        for rows, row in enumerate(_objects(text), 1):  # noqa: B007  the last number counts the rows
            values, within = flat_object(row)
            objects.update(within)
            for name, value in values.items():
                lists[name] = lists.get(name, False) or type(value) in (list, dict)
                if value is not None and name not in filled:
                    filled.add(name)
                if type(value) is int and not -(2**63) <= value < 2**63:
                    large.add(name)
            check_count(len(lists))
        if not rows:
            raise DataError(f"{path} has no rows; expected a JSON object on each line")
        names = [name for name in lists if name not in objects or name in filled]
        nested = [name for name in names if lists[name] or name in objects]
        return cls(text, [name for name in names if name not in set(nested)], nested, frozenset(large))

    def blocks(self) -> Iterator[Any]:
        """Read the rows from the first on, as Arrow record batches."""
        rows: list[dict[str, Any]] = []
        first = 0
        for row in _objects(self.text):
            rows.append(flat_object(row)[0])
            if len(rows) == ROWS:
                yield self._batch(rows, first)
                first, rows = first + ROWS, []
        if rows:
            yield self._batch(rows, first)

    def _batch(self, rows: list[dict[str, Any]], first: int) -> Any:
        import pyarrow as pa

        columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in self.names}
        for name in self.large.intersection(columns):
            columns[name] = [str(value) if type(value) is int else value for value in columns[name]]
        arrays = [arrow_array(name, column, first) for name, column in columns.items()]
        return pa.RecordBatch.from_arrays(arrays, names=self.names)


def _objects(text: TextFile) -> Iterator[dict[str, Any]]:
    path, number = text.path, 0
    with explain_errors(path), text.open() as file:
        while line := file.readline(LINE + 1):
            number += 1
            if len(line) > LINE:
                raise DataError(f"{path}, line {number} is longer than {LINE >> 20} MB; write one object per line")
            line = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
            if not line:
                continue
            try:
                value = json.loads(line.decode())
            except UnicodeDecodeError:
                raise
            except (ValueError, RecursionError) as error:
                raise DataError(
                    f"{path}, line {number} could not be parsed as a JSON object ({str(error)[:80]}); write one "
                    "object per line"
                ) from None
            if type(value) is not dict:
                hint = ", as pandas does with orient='records', lines=True" if type(value) is list else ""
                raise DataError(
                    f"{path}, line {number}: {abbreviate(value)} is not a JSON object; write one object per line{hint}"
                )
            yield value
