"""Fields of a record set as columns of one length: those of the files that are its rows, others joined to them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from setsup.arrays import Places
from setsup.datasets.own.croissant.columns import Place, Tables, Values, foreign_transform, name_values, place_of
from setsup.datasets.own.croissant.files import Part
from setsup.datasets.own.croissant.nodes import Column, Field, FileSet, RecordSet
from setsup.errors import DataError
from setsup.factors.io.distinct import simplify
from setsup.files.archives.listing import as_numpy

__all__ = ["Joined", "join_fields", "match_rows"]

_log = logging.getLogger("setsup")
_MOST_VALUES = 1 << 32  # any number of fields may take their values from one column
_DEEPEST = 8  # fields that take their values from fields


@dataclass(frozen=True)
class Joined:
    """Rows of a record set.

    `base` is what its rows are: a set of files, or a table. `parts` has the files where it is a set of images;
    `columns` has the values of each field by its node, `left_out` why others have none.
    """

    base: Place
    parts: tuple[Part, ...]
    rows: int
    columns: Mapping[str, Values]
    left_out: Mapping[str, str]


def join_fields(records: RecordSet, tables: Tables, images: Sequence[Field]) -> Joined:
    """Values of all fields of a record set, by its rows; those of files without a row in a table are unknown."""
    import pyarrow as pa

    label = tables.files.label
    sources = {field.node: resolve(field.source, tables) for field in records.fields}
    base_source = next((one for field in (*images, *records.fields) if (one := sources[field.node]) is not None), None)
    if base_source is None:
        raise DataError(f"{label}: no field of {records.node!r} has a source that setsup reads")
    base = place_of(base_source, label)
    of_files = isinstance(tables.files.described.files.get(base[0]), FileSet) and not any(
        source is not None and source.node == base[0] and source.extract == "column" for source in sources.values()
    )
    parts = tuple(tables.files.parts(base[0])) if of_files else ()
    names = [name for part in parts for name in part.names()]
    rows = len(names) if of_files else tables.rows(base_source, f"{records.node!r} of {label}")
    if rows * len(records.fields) > _MOST_VALUES:
        raise DataError(
            f"{label}: {records.node!r} has {rows:,} rows of {len(records.fields):,} fields; expected at most "
            f"{_MOST_VALUES:,} values; leave out fields of the description"
        )

    def values(source: Column, where: str) -> Values:
        if source.extract != "fileProperty":
            return tables.values(source, where)
        if of_files and source.node == base[0]:
            return name_values(names, source, where)
        counts = tables.names(source.node)
        named = name_values([name for name, _ in counts], source, where)
        return named.take(np.repeat(np.arange(len(counts)), [count for _, count in counts]))

    columns: dict[str, Values] = {}
    left_out: dict[str, str] = {}
    joins: dict[Place, Places] = {base: np.arange(rows)}  # rows of other tables
    # those of the base first: their references say how other tables are joined
    fields = [(field, source) for field in records.fields if (source := sources[field.node]) is not None]
    fields = [(field, source) for field, source in fields if field not in images]
    for field, source in sorted(fields, key=lambda item: place_of(item[1], label) != base):
        where, place = f"{field.node!r} of {label}", place_of(source, label)
        if foreign := foreign_transform(source):
            left_out[field.node] = f"transform {foreign}"
        elif place not in joins:
            left_out[field.node] = "of other records" if place[0] == base[0] else f"no key of {place[0]!r}"
        elif source.extract == "fileProperty" and source.name == "content":
            left_out[field.node] = "content of files"
        else:
            found = values(source, where)
            if place == base and len(found.array) != rows:
                raise DataError(
                    f"{label}: {field.node!r} has {len(found.array):,} values, but its record set {rows:,} rows"
                )
            other = joins[place]
            columns[field.node] = found if place == base else found.take(pa.array(other, mask=other < 0))
        target = None if field.references is None else resolve(field.references, tables)
        if place != base or field.node not in columns or target is None or target.extract == "fileProperty":
            continue
        table = place_of(target, label)
        if table not in joins:
            joins[table] = match_rows(columns[field.node], tables.values(target, where), where)
            _warn_missing(joins[table], table[0], where)
    return Joined(base, parts, rows, columns, left_out)


def match_rows(keys: Values, others: Values, where: str) -> Places:
    """Row of a table for each key, −1 where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        strings, sought = (simplify(one.array).cast(pa.large_string()) for one in (others, keys))
        strings = pc.if_else(pc.equal(strings, ""), pa.scalar(None, pa.large_string()), strings)
    except pa.ArrowException as error:
        raise DataError(f"{where} cannot be compared with what it refers to: {error}") from None
    known = strings.drop_null()
    if len(known.unique()) < len(known):
        raise DataError(f"{where} refers to a column in which values repeat; expected one row for each key")
    found = pc.index_in(sought, value_set=strings, skip_nulls=True)
    return as_numpy(pc.fill_null(found, -1)).astype(np.int64)


def resolve(source: Column | None, tables: Tables) -> Column | None:
    """A source in a file: that of the field it names, with the transforms of both; None where there is none."""
    first = source
    transforms: tuple[tuple[str, str], ...] = ()
    for _ in range(_DEEPEST):
        if source is None:
            return None
        transforms = (*source.transforms, *transforms)
        if source.extract:
            return replace(source, transforms=transforms)
        source = tables.source(source.node)
    raise DataError(
        f"{tables.files.label}: the values of {'' if first is None else first.node!r} come from fields that lead in a "
        "circle"
    )


def _warn_missing(found: Places, table: str, where: str) -> None:
    """Say how many records have no row in a table; raises where none has one."""
    missing = int((found < 0).sum())
    if missing and missing == len(found):
        raise DataError(f"none of the {missing:,} values of {where} is in {table!r}; check the patterns and the table")
    if missing:
        _log.warning(
            "%s: %s of %s values are not in %r; their values are unknown",
            where,
            f"{missing:,}",
            f"{len(found):,}",
            table,
        )
