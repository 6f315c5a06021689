"""Structs as columns of their own: the field ``b`` of the struct ``a`` is the column ``a.b``, as ``datasets`` names it.

A struct of ``bytes`` and ``path`` is no such struct but an encoded file, as Hugging Face keeps images.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from setsup.errors import FactorError, short

__all__ = ["MOST_COLUMNS", "check_count", "flat_batch", "flat_name", "flat_object", "flat_schema", "is_encoded_file"]

MOST_COLUMNS = 1 << 16
"""Columns that a table may have; each of them costs a fraction of a millisecond and some kilobytes."""

_DEEPEST = 32  # structs within structs
_FILE = {"bytes", "path"}  # fields of an encoded file


def flat_name(path: Sequence[str]) -> str:
    """Name of the column of a field."""
    return ".".join(path)


def is_encoded_file(fields: Collection[str]) -> bool:
    """Whether a struct with these fields is an encoded file."""
    return "bytes" in fields and set(fields) <= _FILE


def check_count(columns: int) -> None:
    """Refuse a table of more columns than anybody fixes or varies."""
    if columns > MOST_COLUMNS:
        raise FactorError(
            f"it has {columns:,} columns; expected at most {MOST_COLUMNS:,}; keep the columns that are factors"
        )


def flat_schema(schema: Any) -> Any:
    """Arrow schema with a field for each field of its structs; its names are unique."""
    import pyarrow as pa

    fields = [pa.field(flat_name(path), kind) for path, kind in _leaves(schema)]
    check_count(len(fields))
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise FactorError(f"two columns have the name {short(field.name)!r}; rename one")
        seen.add(field.name)
    return pa.schema(fields, schema.metadata)


def flat_batch(batch: Any, names: Sequence[str]) -> Any:
    """Columns of a record batch by their flat names; null where a struct around the value is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    paths = {flat_name(path): path for path, _ in _leaves(batch.schema)}
    columns = []
    for name in names:
        path = paths[name]
        column = batch.column(path[0])
        columns.append(pc.struct_field(column, list(path[1:])) if path[1:] else column)
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def flat_object(row: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values of a JSON object by their flat names, and the flat names of the objects in it."""
    if dict not in map(type, row.values()):
        return row, []
    values: dict[str, Any] = {}
    objects: list[str] = []
    waiting = deque((name, inner, 0) for name, inner in row.items())
    while waiting:
        name, value, depth = waiting.popleft()
        if type(value) is dict and depth < _DEEPEST:
            objects.append(name)
            waiting.extendleft((f"{name}.{key}", inner, depth + 1) for key, inner in reversed(value.items()))
        elif name in values:
            raise FactorError(f"two values have the name {short(name)!r}; rename one")
        else:
            values[name] = value
    return values, objects


def _leaves(fields: Any, outer: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Path and type of each column, of the fields of a struct in place of it."""
    import pyarrow as pa

    for field in fields:
        path = (*outer, field.name)
        inner = field.type
        named = [part.name for part in inner] if pa.types.is_struct(inner) else []
        if len(set(named)) == len(named) > 0 and not is_encoded_file(named) and len(path) <= _DEEPEST:
            yield from _leaves(inner, path)
        else:
            yield path, inner
