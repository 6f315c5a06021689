"""Fields of a record set as columns of one length: those of the files that are its rows, others joined to them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Places
from setsup.datasets.own.croissant.columns import Tables, name_values, transformed
from setsup.datasets.own.croissant.files import Part
from setsup.datasets.own.croissant.nodes import Column, Field, FileSet, RecordSet
from setsup.errors import DataError

__all__ = ["Joined", "base_of", "join_fields", "match_rows"]

_log = logging.getLogger("setsup")


@dataclass(frozen=True)
class Joined:
    """Rows of a record set.

    `base` is what its rows are: a set of files, or a table. `parts` has the files where it is a set of images;
    `columns` has an array of pyarrow by the node of each field that has values.
    """

    base: str
    parts: tuple[Part, ...]
    rows: int
    columns: Mapping[str, Any]


def base_of(records: RecordSet, tables: Tables, images: Sequence[Field]) -> str:
    """What the rows of a record set are: the files of its first image, else the table of its first column."""
    fields = [*images, *records.fields]
    sources = [field.source for field in fields if field.source is not None and field.source.how]
    if not sources:
        raise DataError(f"{tables.files.label}: no field of {records.node!r} has a source that setsup reads")
    return sources[0].node


def join_fields(records: RecordSet, tables: Tables, images: Sequence[Field]) -> Joined:
    """Values of all fields of a record set, by its rows; those of files without a row in a table are unknown."""
    import pyarrow as pa

    label = tables.files.label
    base = base_of(records, tables, images)
    of_files = isinstance(tables.files.described.files.get(base), FileSet) and not any(
        field.source is not None and field.source.node == base and field.source.how == "column"
        for field in records.fields
    )
    parts = tuple(tables.files.parts(base)) if of_files else ()
    names = [name for part in parts for name in part.names()]
    rows = len(names) if of_files else _table_rows(records, tables, base)

    def local(source: Column, field: Field) -> Any:
        where = f"{field.node!r} of {label}"
        if source.how == "fileProperty":
            if of_files:
                return pa.array(name_values(names, source, where), pa.large_string())
            counts = tables.names(source.node)
            values = name_values([name for name, _ in counts], source, where)
            listed = np.repeat(np.arange(len(values)), [count for _, count in counts])
            return pa.array(values, pa.large_string()).take(listed)
        column = tables.column(source, where)
        return _changed(column, source, where)

    columns: dict[str, Any] = {}
    joins: dict[str, Places] = {}  # rows of other tables
    for field in records.fields:
        source, target = field.source, field.references
        if source is None or source.node != base or not source.how or field in images:
            continue
        if source.how == "fileProperty" and source.what == "content":
            continue
        values = local(source, field)
        if len(values) != rows:
            raise DataError(f"{label}: {field.node!r} has {len(values):,} values, but its record set {rows:,} rows")
        columns[field.node] = values
        if target is not None and target.node != base:
            outer = _resolved(target, tables)
            if outer is not None and outer.node not in joins and outer.node != base:
                where = f"{field.node!r} of {label}"
                joins[outer.node] = match_rows(values, tables.column(outer, where), where)
                _warn_missing(joins[outer.node], outer.node, where)
    for field in records.fields:
        source = field.source if field.source is None else _resolved(field.source, tables)
        if source is None or field.node in columns or source.node == base or field in images:
            continue
        if source.node not in joins:
            continue  # said by whoever asks for it
        where = f"{field.node!r} of {label}"
        column = _changed(tables.column(source, where), source, where)
        found = joins[source.node]
        columns[field.node] = column.take(pa.array(found, mask=found < 0))
    return Joined(base, parts, rows, columns)


def match_rows(keys: Any, others: Any, where: str) -> Places:
    """Row of a table for each key, −1 where there is none; `keys` and `others` pyarrow arrays."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, sought = (one.cast(pa.large_string()) for one in (others, keys))
    known = texts.drop_null()
    if len(known.unique()) < len(known):
        raise DataError(f"{where} refers to a column in which values repeat; expected one row for each key")
    found = pc.index_in(sought, value_set=texts, skip_nulls=True)
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)


def _warn_missing(found: Places, table: str, where: str) -> None:
    """Say how many records have no row in a table; raises where none has one."""
    missing = int((found < 0).sum())
    if missing and missing == len(found):
        raise DataError(f"none of the {missing:,} values of {where} is in {table!r}; check the patterns and the table")
    if missing:
        _log.warning(
            "%s: %s of %s values are not in %r; what it has is unknown there",
            where,
            f"{missing:,}",
            f"{len(found):,}",
            table,
        )


def _resolved(source: Column, tables: Tables) -> Column | None:
    """A source in a file: that of the field it names, where it names one; None where there is none."""
    for _ in range(8):
        if source.how:
            return source
        inner = next(
            (
                field.source
                for one in tables.files.described.records.values()
                for field in one.fields
                if field.node == source.node
            ),
            None,
        )
        if inner is None:
            return None
        source = inner
    raise DataError(f"{tables.files.label}: {source.node!r} takes its values from fields that lead in a circle")


def _table_rows(records: RecordSet, tables: Tables, base: str) -> int:
    source = next(one.source for one in records.fields if one.source is not None and one.source.node == base)
    if source.how == "jsonPath":
        return len(tables.column(source, f"{records.node!r} of {tables.files.label}"))
    return tables.rows(base)


def _changed(column: Any, source: Column, where: str) -> Any:
    import pyarrow as pa

    if not any(kind == "regex" for kind, _ in source.transforms):
        return column
    return pa.array(transformed(column.to_pylist(), source, where), pa.large_string())
