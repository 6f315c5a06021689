"""Factors of fields: those that setsup described as they were, others by their data types and enumerations."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from setsup.arrays import Array
from setsup.datasets.croissant.vocabulary import TERMS
from setsup.datasets.own.croissant.columns import Values
from setsup.datasets.own.croissant.nodes import Field, RecordSet
from setsup.datasets.own.table_file import name_table
from setsup.errors import DataError, SetsupError, abbreviate, did_you_mean
from setsup.factors import Factor, Kind
from setsup.factors.factor import level_sort
from setsup.factors.io.distinct import distinct, simplify
from setsup.factors.io.encoding import Commas, level_reader, unchanged
from setsup.factors.io.fields import ROLE_OF
from setsup.factors.io.infer import arrow_array, from_blocks

__all__ = ["Levels", "column_factor", "enumeration"]

_STRINGS = {"Text", "URL", "Date", "DateTime", "Time"}

Levels = tuple[dict[Any, Any], tuple[Any, ...]]
"""Levels by what the data have for them, and in their order."""


def enumeration(field: Field, records: Mapping[str, RecordSet], label: str) -> Levels | None:
    """Levels of the record set with inline data that a field refers to, None where there is none."""
    if field.references is None or field.references.extract:
        return None
    target = field.references.node
    for one in records.values():
        if one.data and any(other.node == target for other in one.fields):
            return _levels(one, target, label)
    return None


def _described_factor(
    field: Field, levels: tuple[Any, ...] | None, kind: Kind | str | None, label: str
) -> Factor | None:
    """Factor as setsup described it, or of the kind that is given; None where it is left to the values.

    A described factor has no levels where these are too many to be listed, so it needs those of the values.
    """
    about: dict[str, Any] = {key: field.annotations[term] for key, term in TERMS.items() if term in field.annotations}
    if "kind" not in about and field.name in ROLE_OF:
        about["role"] = ROLE_OF[field.name]
    if kind is not None:
        about["kind"] = kind
    elif levels is not None:
        about.setdefault("kind", Kind.NOMINAL)
    if "kind" not in about or (levels is None and about["kind"] != Kind.CONTINUOUS):
        return None
    if about["kind"] not in (Kind.CYCLIC, Kind.CONTINUOUS):
        about.pop("period", None)
    listed = {} if about["kind"] == Kind.CONTINUOUS else {"levels": list(levels or ())}
    try:
        return Factor.from_dict({"name": field.name, **about, **listed})
    except (SetsupError, TypeError, OverflowError) as error:
        raise DataError(f"{label}: the field {field.node!r} does not describe a factor: {error}") from None


def column_factor(
    field: Field, values: Values, levels: Levels | None, kind: Kind | str | None, label: str
) -> tuple[Factor, Array]:
    """Factor as it is described, else as its values make it, and its codes; `kind` is the one given."""
    import pyarrow as pa

    array, commas = simplify(values.array), values.commas
    if levels is not None:
        array, commas = _translate(array, commas, levels[0], field, label), None
    elif _STRINGS.intersection(field.types):  # their digits are no numbers
        array, commas = array.cast(pa.large_string()), None
    batch = pa.RecordBatch.from_arrays([array], names=[field.name])
    read = partial(from_blocks, lambda: [batch], [field.name], written=commas is not None, commas=commas or "text")
    ordered = isinstance(kind, str) and ":" in kind  # with its levels
    known = None if ordered else _described_factor(field, None if levels is None else levels[1], kind, label)
    if known is not None:
        return known, read([replace(known, within=None)]).column(field.name)  # the outer one is not in this table
    described = field.annotations.get(TERMS["kind"])
    wanted = kind or described
    table = read(kinds={} if wanted is None else {field.name: str(wanted)})
    [factor] = table.factors
    if not ordered and described is not None:
        factor = _described_factor(field, factor.levels, kind, label) or factor
    return factor, table.column(field.name)


def _translate(array: Any, commas: Commas | None, levels: Mapping[Any, Any], field: Field, label: str) -> Any:
    """Levels of the values of a column."""
    import pyarrow as pa

    values, rows = distinct(array, commas is not None, tuple(levels))
    read = unchanged if commas is None else level_reader(level_sort(next(iter(levels), "")), True, commas)
    names = []
    for value in map(read, values.to_pylist()):
        if value is not None and value not in levels:
            raise DataError(
                f"{label}: {field.node!r} has the value {abbreviate(value)}, which is none of the enumeration that it "
                f"refers to{did_you_mean(value, [*levels])}"
            )
        names.append(None if value is None else levels[value])
    with name_table(None, f"{label}: the levels of {field.node!r}"):
        return arrow_array(field.name, names).take(pa.array(rows, mask=rows < 0))


def _levels(one: RecordSet, target: str, label: str) -> Levels:
    """Levels of an enumeration: its values in their order, else its names, else what is referred to."""
    by_end = {field.node.rpartition("/")[2].lower(): field.node for field in one.fields}
    shown = by_end.get("value") or by_end.get("name") or by_end.get("label") or target
    order = by_end.get("order")
    rows = [row for row in one.data if target in row]
    if order is not None and all(isinstance(row.get(order), int) for row in rows):
        rows = sorted(rows, key=lambda row: row[order])
    known: dict[Any, Any] = {}
    for row in rows:
        level = row.get(shown, row[target])
        if not isinstance(level, str | int | float) or not isinstance(row[target], str | int | float):
            raise DataError(f"{label}: the data of {one.node!r} have {level!r}; expected strings, numbers or booleans")
        known[row[target]] = level
    return known, tuple(dict.fromkeys(known.values()))
