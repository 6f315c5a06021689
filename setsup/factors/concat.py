"""Concatenation of tables."""

import string
from collections.abc import Iterator, Sequence
from itertools import count, islice, product
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_instance, check_strings
from setsup.errors import FactorError
from setsup.factors.column_storage import code_dtype, freeze
from setsup.factors.factor import Factor, Kind, Level, level_sort
from setsup.factors.table import FactorTable

__all__ = ["concat"]


def concat(tables: Sequence[FactorTable], parts: Sequence[str] | None = None) -> FactorTable:
    """Concatenate the rows of several tables.

    Factors are in the order in which they first appear, and so are the levels of a factor; ordered numeric levels are
    sorted. A factor that a table does not have is unknown in its rows. The factor ``part`` (role ``part``) says from
    which table a row is.

    Parameters
    ----------
    tables : sequence of FactorTable
        At least one table.
    parts : sequence of str, optional
        Names of the tables, the levels of ``part``; by default ``a``, ``b``, ….

    Raises
    ------
    FactorError
        If a factor means different things in two tables, or one has a factor ``part`` already.

    Examples
    --------
    >>> from setsup.factors import Factor, Kind
    >>> real = FactorTable([Factor("shape", Kind.NOMINAL, ("cube", "ball"))])
    >>> toys = FactorTable([Factor("shape", Kind.NOMINAL, ("cone", "ball")), Factor("size", Kind.ORDINAL, (1, 2))])
    >>> both = concat([real, toys])
    >>> both.row(0)
    {'shape': 'cube', 'size': None, 'part': 'a'}
    >>> both["shape"].levels, both.rows("part == 'b' and shape == 'ball'")
    (('cube', 'ball', 'cone'), array([4, 5]))

    """
    tables = list(tables) if isinstance(tables, Sequence) else [tables]
    for table in tables:
        check_instance(table, FactorTable, "each table to concatenate", FactorError)
    if not tables:
        raise FactorError("concat requires at least one table")
    part = _part(tables, parts)
    columns: dict[str, Array] = {}
    factors = []
    for name in dict.fromkeys(name for table in tables for name in table.names):
        factors.append(_unite([table[name] for table in tables if name in table]))
        columns[name] = _stack(tables, factors[-1])
    lengths = [len(table) for table in tables]
    columns["part"] = np.repeat(np.arange(len(tables), dtype=code_dtype(len(tables))), lengths)
    return FactorTable([*factors, part], columns)


def _part(tables: Sequence[FactorTable], parts: Sequence[str] | None) -> Factor:
    for index, table in enumerate(tables):
        if "part" in table:
            raise FactorError(f"table {index} already has a factor 'part'; drop it first with without(['part'])")
    names = tuple(islice(_letters(), len(tables)) if parts is None else check_strings(parts, "parts", FactorError))
    if len(names) != len(tables) or len(set(names)) != len(names):
        raise FactorError(f"parts must be {len(tables)} different names, one for each table, not {list(names)}")
    return Factor("part", Kind.NOMINAL, names, role="part")


def _letters() -> Iterator[str]:
    """Give a, b, … z, aa, ab and so on."""
    return ("".join(letters) for size in count(1) for letters in product(string.ascii_lowercase, repeat=size))


def _unite(factors: Sequence[Factor]) -> Factor:
    """One factor for all, with the levels of all."""
    first = factors[0]
    for factor in factors[1:]:
        for what in ("kind", "unit", "period", "within", "role"):
            mine, theirs = getattr(first, what), getattr(factor, what)
            if mine != theirs:
                raise FactorError(
                    f"factor {first.name!r} has the {what} {str(mine)!r} in one table and {str(theirs)!r} in another; "
                    f"use the same {what} in both tables, or rename one factor"
                )
        if first.levels and factor.levels and level_sort(first.levels[0]) != level_sort(factor.levels[0]):
            raise FactorError(
                f"factor {first.name!r} has the level {first.levels[0]!r} in one table and {factor.levels[0]!r} in "
                "another, but levels must be all strings, all numbers or all booleans; convert the levels of one "
                "table, or rename its factor"
            )
    if first.levels is None or all(factor.levels == first.levels for factor in factors):
        return first
    levels: list[Any] = list(dict.fromkeys(level for factor in factors for level in factor.levels or ()))
    if first.kind is not Kind.NOMINAL:
        if not isinstance(levels[0], str):
            levels.sort()
        else:
            _check_order(factors, levels)
    return Factor(first.name, first.kind, tuple(levels), first.unit, first.period, first.within, first.role)


def _check_order(factors: Sequence[Factor], levels: list[Level]) -> None:
    """Ordered strings must have the same order in all tables."""
    ranks = {level: rank for rank, level in enumerate(levels)}
    for factor in factors:
        order = [ranks[level] for level in factor.levels or ()]
        for index in range(1, len(order)):
            if order[index] < order[index - 1]:
                before, after = levels[order[index]], levels[order[index - 1]]
                raise FactorError(
                    f"factor {factor.name!r} lists the level {before!r} before {after!r} in one table, but after "
                    f"{after!r} in another; use the same order of levels in all tables"
                )


def _stack(tables: Sequence[FactorTable], factor: Factor) -> Array:
    """Column of all tables, in the codes of the united factor."""
    total = sum(len(table) for table in tables)
    dtype: Any = np.float32 if factor.levels is None else code_dtype(len(factor))
    unknown = np.nan if factor.levels is None else np.iinfo(dtype).max
    united = {level: code for code, level in enumerate(factor.levels or ())}
    stacked = np.full(total, unknown, dtype=dtype)
    start = 0
    for table in tables:
        if factor.name in table:
            column = table.column(factor.name)
            if factor.levels is not None:
                codes = [united[level] for level in table[factor.name].levels or ()]
                column = np.array([*codes, unknown], dtype=dtype).take(column, mode="clip")
            stacked[start : start + len(table)] = column
        start += len(table)
    return freeze(stacked)
