"""Values of fields: columns of tables, parts of the names of files, and parts of JSON."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from setsup.datasets.formats.json_text import read_json
from setsup.datasets.own.croissant.files import Files
from setsup.datasets.own.croissant.nodes import Column, FileObject
from setsup.datasets.own.table_file import (
    TableFile,
    name_table,
    open_arrow,
    open_csv,
    open_json_lines,
    open_parquet,
    unify,
    unpack_table,
)
from setsup.errors import DataError, abbreviate, did_you_mean
from setsup.factors.io.distinct import is_usable
from setsup.factors.io.encoding import Commas
from setsup.factors.io.infer import arrow_array
from setsup.files.archives.members import MemberIndex

__all__ = ["Place", "Tables", "Values", "foreign_transform", "name_values", "place_of"]

Place = tuple[str, tuple[str, ...]]
"""What the rows of values are: a table or a set of files, and in JSON the steps to its objects."""

_LARGEST_JSON = 1 << 30
_LONGEST_PATTERN = 1000
_MOST_GROUPS = 9  # that RE2 replaces
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?:'(?P<quoted>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<all>\*)|(?P<at>\d+))\]")


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a field: a pyarrow array, and what a comma in a number means where they are those of a CSV file."""

    array: Any
    commas: Commas | None = None

    def take(self, rows: Any) -> "Values":
        """Values of some rows, unknown where a row is null."""
        return Values(self.array.take(rows), self.commas)


@dataclass(frozen=True, slots=True)
class _Table:
    """Columns of a table that fields name; names of all its columns, and the rows of each of its files."""

    columns: Any
    names: tuple[str, ...]
    rows: tuple[int, ...]
    commas: Commas | None


class Tables:
    """Tables of a description, each read once: by identifier, the files of a set one after the other."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._read: dict[str, _Table] = {}
        self._documents: dict[str, Any] = {}
        self._sources: dict[str, Column | None] = {}
        self._named: dict[str, dict[str, None]] = {}  # columns of each table
        for field in (field for records in files.described.records.values() for field in records.fields):
            self._sources[field.node] = field.source
            for source in (field.source, field.references):
                if source is not None and source.extract == "column":
                    self._named.setdefault(source.node, {})[source.name] = None

    def source(self, node: str) -> Column | None:
        """Source of a field of any record set."""
        return self._sources.get(node)

    def values(self, source: Column, label: str) -> Values:
        """Values of a source in a table or in JSON, after its transforms; of lists and objects the type alone."""
        if source.extract == "jsonPath":
            found = _follow(self._document(source.node), source.name, label)
            values = Values(_json_array(found, source.name, label))
        else:
            values = self._column(source, label)
        if not source.transforms or not is_usable(values.array.type):
            return values
        return Values(_strings(transform(values.array.to_pylist(), source, label)), values.commas)

    def images(self, source: Column) -> Any:
        """Column of encoded images, a pyarrow ``ChunkedArray``."""
        import pyarrow as pa

        table = self._find(source)
        known = source.name in table.columns.column_names
        return table.columns.column(source.name) if known else pa.chunked_array([_unread(sum(table.rows))])

    def rows(self, source: Column, label: str) -> int:
        """Rows of what a source is in."""
        if source.extract == "jsonPath":
            return len(_follow(self._document(source.node), source.name, label))
        return sum(self._table(source.node).rows)

    def names(self, node: str) -> list[tuple[str, int]]:
        """For each file of a table its name, and its rows."""
        chosen = self.files.described.files.get(node)
        if isinstance(chosen, FileObject):
            names = [chosen.url]
        else:
            names = [name for part in self.files.parts(node) for name in part.names()]
        return list(zip(names, self._table(node).rows, strict=True))

    def _column(self, source: Column, label: str) -> Values:
        table = self._find(source)
        if source.name not in table.columns.column_names:
            return Values(_unread(sum(table.rows)))
        with name_table(None, label):
            array = table.columns.column(source.name).combine_chunks()
        return Values(array, table.commas)

    def _find(self, source: Column) -> _Table:
        """The table of a source; of a key of JSON lines that has objects, only its fields are columns."""
        table = self._table(source.node)
        if not any(name == source.name or name.startswith(f"{source.name}.") for name in table.names):
            raise DataError(
                f"{self.files.label}: table {source.node!r} has no column {source.name!r}"
                f"{did_you_mean(source.name, table.names)}"
            )
        return table

    def _table(self, node: str) -> _Table:
        if node not in self._read:
            self._read[node] = self._read_table(node)
        return self._read[node]

    def _read_table(self, node: str) -> _Table:
        import pyarrow as pa

        files: list[list[Any]] = []
        names: list[str] | None = None
        commas = set()
        for source in self.files.sources(node):
            with _on_disk(source) as (path, label), name_table(path, label):
                table = self._open(node, path)
                read = [name for name in self._named.get(node, {}) if name in table.schema.names]
                files.append(table.read(read))
            names = [name for name in table.names if names is None or name in names]
            commas.add(table.commas)
        if len(commas) > 1:
            raise DataError(
                f"{self.files.label}: the files of {node!r} have different delimiters or formats; unify them"
            )
        rows = tuple(sum(batch.num_rows for batch in batches) for batches in files)
        batches = [batch for batches in files for batch in batches]
        common = [name for name in names or () if all(name in batch.schema.names for batch in batches)]
        with name_table(None, f"{self.files.label}: table {node!r}"):
            whole = pa.Table.from_batches(
                unify([batch.select(common) for batch in batches]), *([] if batches else [pa.schema([])])
            )
        return _Table(whole, tuple(names or ()), rows, commas.pop() if commas else None)

    def _open(self, node: str, path: Path) -> TableFile:
        formats = " ".join(self.files.described.files[node].formats).lower()
        name = path.name.lower().removesuffix(".gz")
        if "parquet" in formats or name.endswith((".parquet", ".pq")):
            return open_parquet(path)
        if "arrow" in formats or name.endswith(".arrow"):
            return open_arrow(path)
        if any(one in formats for one in ("csv", "tab-separated", "tsv")) or name.endswith((".csv", ".tsv")):
            return open_csv(path)
        if any(one in formats for one in ("jsonl", "json-lines", "ndjson")) or name.endswith((".jsonl", ".ndjson")):
            named = self._named.get(node, {})
            return open_json_lines(path, lambda rows: [one for one in rows.names if one in named] or rows.names[:1])
        raise DataError(
            f"{path} has the format {formats or 'none'}; setsup reads Parquet, Arrow, CSV, TSV and JSON lines of a "
            "description; convert the file, or open another record set"
        )

    def _document(self, node: str) -> Any:
        if node not in self._documents:
            [source, *more] = self.files.sources(node)
            if more:
                raise DataError(f"{self.files.label}: {node!r} is a set of JSON files; expected one file")
            with _on_disk(source) as (path, label):
                if path.stat().st_size > _LARGEST_JSON:
                    raise DataError(f"{label} has more bytes than the limit of {_LARGEST_JSON:,} for a JSON file")
                self._documents[node] = read_json(path.read_bytes(), label)
        return self._documents[node]


def place_of(source: Column, label: str) -> Place:
    """What the rows of a source are: records at two JSON paths are the same up to their last ``[*]``."""
    if source.extract != "jsonPath":
        return source.node, ()
    steps = _steps(source.name, label)
    last = max((at for at, step in enumerate(steps, 1) if step is None), default=0)
    return source.node, tuple(map(repr, steps[:last]))


def name_values(names: Sequence[str], source: Column, label: str) -> Values:
    """Values of files by their names: the whole one or the last part, as transforms leave them."""
    if source.name not in ("fullpath", "filename"):
        raise DataError(
            f"{label} is the {source.name!r} of files; expected their fullpath or filename, or the content of images"
        )
    texts = [PurePosixPath(name).name if source.name == "filename" else name for name in names]
    return Values(_strings(transform(texts, source, label)))


def foreign_transform(source: Column) -> str:
    """The first transform of a source that setsup does not apply, empty where it applies all."""
    return next((kind for kind, _ in source.transforms if kind != "regex"), "")


def transform(values: Sequence[Any], source: Column, label: str) -> list[Any]:
    """Values after the regular expressions of a source, strings; those that do not match are unknown.

    As in ``mlcroissant``, an expression gives the first of its groups that took part in the match.
    """
    if foreign := foreign_transform(source):
        raise DataError(f"{label} has the transform {foreign!r}; setsup supports regex only; choose another record set")
    changed = list(values)
    for _, pattern in source.transforms:
        changed = _first_groups(changed, pattern, label)
    return changed


def _first_groups(values: list[Any], pattern: str, label: str) -> list[str | None]:
    """First group of an expression that matches where each value begins; by RE2, whose time is linear."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        groups = re.compile(pattern).groups if len(pattern) <= _LONGEST_PATTERN else 0
        strings = _strings([None if value is None else str(value) for value in values])
        unknown = pa.scalar(None, pa.large_string())
        known = pc.if_else(pc.match_substring_regex(strings, f"^(?:{pattern})"), strings, unknown)
        found = [
            pc.replace_substring_regex(known, f"^(?:{pattern})(?s:.*)$", f"\\{group}")
            for group in range(1, min(groups, _MOST_GROUPS) + 1)
        ]
        # RE2 gives an empty string for a group that took no part
        first = pc.coalesce(unknown, *(pc.if_else(pc.equal(one, ""), unknown, one) for one in found))
    except (re.error, RecursionError, OverflowError, ValueError, pa.ArrowException) as error:
        why = " ".join(str(error).split())[:200]
        raise DataError(f"{label}: the regular expression {abbreviate(pattern)} cannot be used: {why}") from None
    if not 0 < groups <= _MOST_GROUPS:
        raise DataError(
            f"{label}: the regular expression {abbreviate(pattern)} has no group of a value, more than {_MOST_GROUPS}, "
            f"or more than {_LONGEST_PATTERN:,} characters"
        )
    return list(first.to_pylist())


def _steps(path: str, label: str) -> list[str | int | None]:
    """Steps of a path of names, numbers and ``[*]``, such as ``$.images[*].id``; None for the last."""
    text = path.removeprefix("$")
    found = list(_STEP.finditer(text))
    if "".join(step[0] for step in found) != text:
        raise DataError(f"{label} has the JSON path {path!r}; setsup reads names and [*], as in $.images[*].id")
    return [
        None
        if step["all"]
        else int(step["at"])
        if step["at"]
        else step["name"] or step["quoted"] or step["double"] or ""
        for step in found
    ]


def _follow(document: Any, path: str, label: str) -> list[Any]:
    """Values at a path; those that a record lacks are null."""
    values = [document]
    for step in _steps(path, label):
        found: list[Any] = []
        for value in values:
            if step is None and isinstance(value, list):
                found += value
            elif isinstance(step, int) and isinstance(value, list) and step < len(value):
                found.append(value[step])
            elif isinstance(step, str) and isinstance(value, Mapping):
                found.append(value.get(step))
            else:
                shown = "[*]" if step is None else repr(step)
                raise DataError(f"{label}: {path!r} leads to {abbreviate(value)}, which has no {shown}")
        values = found
    return values


def _json_array(values: list[Any], path: str, label: str) -> Any:
    """Arrow array of values of JSON; of lists and objects the type alone."""
    if any(isinstance(value, list | dict) for value in values):
        return _unread(len(values))
    with name_table(None, label):
        return arrow_array(path, values)


def _unread(rows: int) -> Any:
    """Values that are no factor, such as lists."""
    import pyarrow as pa

    return pa.nulls(rows, pa.list_(pa.null()))


def _strings(values: Sequence[str | None]) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.large_string())


@contextmanager
def _on_disk(source: tuple[MemberIndex, int] | Path) -> Iterator[tuple[Path, str]]:
    """Path of a file, and what it is called in messages."""
    if isinstance(source, Path):
        yield source, str(source)
    else:
        with unpack_table(*source) as path:
            yield path, source[0].label(source[1])
