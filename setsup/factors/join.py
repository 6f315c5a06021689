"""Tables joined by the levels of a factor."""

from typing import TypeVar

import numpy as np

from setsup.arrays import Array
from setsup.errors import FactorError
from setsup.factors.column_storage import freeze
from setsup.factors.columns import FactorColumns
from setsup.factors.factor import PLURAL, Factor, level_sort

__all__ = ["join"]

T = TypeVar("T", bound=FactorColumns)


def join(table: T, other: FactorColumns, on: str) -> T:
    """Table with the factors of another one, whose rows are matched by the values of one factor."""
    mine, theirs = table[on], other[on]
    if mine.levels is None or theirs.levels is None:
        raise FactorError(
            f"factor {on!r} is continuous, so rows cannot be matched by it; bin the factor in both tables first"
        )
    sorts = [level_sort(factor.levels[0]) for factor in (mine, theirs) if factor.levels]
    if sorts[0] != sorts[1]:
        raise FactorError(
            f"factor {on!r} has {PLURAL[sorts[0]]} in one table and {PLURAL[sorts[1]]} in the other, so their rows "
            "never match; convert the factor in one table"
        )
    shared = [name for name in other.names if name != on and name in table]
    if shared:
        raise FactorError(
            f"both tables have the factors {', '.join(map(repr, shared))} besides {on!r}; drop these factors from one "
            "table with without()"
        )
    row_by_level = dict(zip(theirs.levels, _match(other, theirs).tolist(), strict=True))
    rows = np.array([*(row_by_level.get(level, -1) for level in mine.levels), -1])[table.codes(on)]
    columns = {name: table.column(name) for name in table.names}
    added = [factor for factor in other.factors if factor.name != on]
    for factor in added:
        columns[factor.name] = _rows_or_unknown(other.column(factor.name), rows)
    return type(table)([*table.factors, *added], columns)


def _match(other: FactorColumns, on: Factor) -> Array:
    """Row of each level, -1 where there is none; no level may have two."""
    codes = other.codes(on.name)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise FactorError(
            f"row {row} of the table to join has no known value of {on.name!r}; select only the rows with a known value"
        )
    counts = np.bincount(codes, minlength=len(on))
    if (counts > 1).any():
        level = (on.levels or ())[int(np.argmax(counts > 1))]
        raise FactorError(
            f"the table to join has {counts.max()} rows with {on.name} = {level!r}, but each value may occur only "
            "once; select one row per value"
        )
    rows = np.full(len(on), -1, dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    return rows


def _rows_or_unknown(column: Array, rows: Array) -> Array:
    unknown = np.nan if column.dtype.kind == "f" else np.iinfo(column.dtype).max
    return freeze(np.append(column, column.dtype.type(unknown))[rows])
