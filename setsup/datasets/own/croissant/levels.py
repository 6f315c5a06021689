"""Factors of fields: those that setsup described as they were, others by their data types and enumerations."""

from collections.abc import Mapping
from typing import Any

from setsup.datasets.croissant.vocabulary import TERMS
from setsup.datasets.own.croissant.nodes import Field, RecordSet
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, Kind

__all__ = ["Levels", "described_factor", "enumeration"]

Levels = tuple[dict[Any, Any], tuple[Any, ...]]
"""Levels by what the data have for them, and in their order."""


def enumeration(field: Field, records: Mapping[str, RecordSet], label: str) -> Levels | None:
    """Levels of the record set with inline data that a field refers to, None where there is none."""
    if field.references is None or field.references.how:
        return None
    target = field.references.node
    for one in records.values():
        if one.data and any(other.node == target for other in one.fields):
            return _levels(one, target, label)
    return None


def described_factor(field: Field, levels: Levels | None, name: str, label: str) -> Factor | None:
    """Factor as setsup described it, None where that is left to the values."""
    about = {key: field.about[term] for key, term in TERMS.items() if term in field.about}
    if "kind" not in about:
        return None if levels is None else Factor(name, Kind.NOMINAL, levels[1])
    if about["kind"] != Kind.CONTINUOUS and levels is None:
        return None
    listed = {} if about["kind"] == Kind.CONTINUOUS or levels is None else {"levels": list(levels[1])}
    try:
        return Factor.from_dict({"name": name, **about, **listed})
    except (SetsupError, TypeError) as error:
        raise DataError(f"{label}: the field {field.node!r} does not describe a factor: {error}") from None


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
