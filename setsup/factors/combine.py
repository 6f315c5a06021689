"""Tables from tables: one below another, one beside another, and numbers cut in bins."""

import math
import string
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import count, islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_instance, check_number, check_strings
from setsup.errors import FactorError
from setsup.factors.factor import PLURAL, Factor, Kind, Level, sort_of
from setsup.factors.stored import code_dtype, owned
from setsup.factors.table import FactorTable

__all__ = ["binned", "concat", "join"]

Array = npt.NDArray[Any]

_MOST_BINS = 1_000_000


def concat(tables: Sequence[FactorTable], parts: Sequence[str] | None = None) -> FactorTable:
    """Rows of several tables, one table after another.

    Factors are united in the order in which they first appear, and so are the levels of a factor; numeric levels
    with an order are sorted. A factor that a table lacks is unknown in its rows. The factor ``part`` (role ``part``)
    says which table a row is from.

    Parameters
    ----------
    tables : sequence of FactorTable
        At least one.
    parts : sequence of str, optional
        Their names, the levels of ``part``; ``a``, ``b``, … by default.

    Raises
    ------
    FactorError
        When a factor means different things in two tables, or one has a factor ``part`` already.

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
        check_instance(table, FactorTable, "what is concatenated", FactorError)
    if not tables:
        raise FactorError("there is nothing to concatenate: give at least one table")
    part = _part(tables, parts)
    columns: dict[str, Array] = {}
    factors = []
    for name in dict.fromkeys(name for table in tables for name in table.names):
        factors.append(_united([table[name] for table in tables if name in table]))
        columns[name] = _stacked(tables, factors[-1])
    lengths = [len(table) for table in tables]
    columns["part"] = np.repeat(np.arange(len(tables), dtype=code_dtype(len(tables))), lengths)
    return FactorTable([*factors, part], columns)


def join(table: FactorTable, other: FactorTable, on: str) -> FactorTable:
    """Table with the factors of another one, whose rows are matched by the values of one factor."""
    check_instance(other, FactorTable, "what a table is joined with", FactorError)
    mine, theirs = table[on], other[on]
    if mine.levels is None or theirs.levels is None:
        raise FactorError(f"factor {on!r} is continuous, so rows cannot be matched by it; bin it in both tables first")
    sorts = [sort_of(factor.levels[0]) for factor in (mine, theirs) if factor.levels]
    if sorts[0] != sorts[1]:
        raise FactorError(
            f"factor {on!r} holds {PLURAL[sorts[0]]} in one table and {PLURAL[sorts[1]]} in the other, "
            "which never match"
        )
    shared = [name for name in other.names if name != on and name in table]
    if shared:
        raise FactorError(f"both tables have {', '.join(map(repr, shared))} besides {on!r}; drop one with without()")
    found = _match(other, theirs)
    places = {level: place for place, level in enumerate(theirs.levels)}
    matched = np.array([found[places[level]] if level in places else -1 for level in mine.levels] + [-1])
    rows = matched[table.codes(on)]
    columns = {name: table.column(name) for name in table.names}
    added = [factor for factor in other.factors if factor.name != on]
    for factor in added:
        columns[factor.name] = _rows_or_unknown(other.column(factor.name), rows)
    return FactorTable([*table.factors, *added], columns)


def binned(table: FactorTable, name: str, width: float) -> FactorTable:
    """Table with the factor ``<name>_bin``: numbers cut in bins of equal width, from their lower edge on.

    Bins start at whole multiples of the width; their levels are the lower edges, all from the lowest to the highest
    that occurs. With a period, numbers are wrapped into it, the bins fill it and the factor is cyclic. Unknown stays
    unknown. Since numbers are stored as float32, edges are rounded alike: 0.7 is in the bin that starts at 0.7.
    """
    factor = table[name]
    name = factor.name
    if f"{name}_bin" in table:
        raise FactorError(f"the table has a factor '{name}_bin' already; drop it first with without(['{name}_bin'])")
    check_number(width, f"the width of the bins of factor {name!r}", FactorError, positive=True)
    numbers = _numbers(table, factor)
    bins, levels = _cut(factor, numbers, width)
    if factor.levels is not None:
        bins = np.append(bins, -1)[table.codes(name)]
    kind = Kind.ORDINAL if factor.period is None else Kind.CYCLIC
    cut = Factor(f"{name}_bin", kind, levels, factor.unit, factor.period, factor.within, factor.role)
    return table.with_factor(cut, bins)


# -- concatenation -----------------------------------------------------------------------------------------------------


def _part(tables: Sequence[FactorTable], parts: Sequence[str] | None) -> Factor:
    for place, table in enumerate(tables):
        if "part" in table:
            raise FactorError(f"table {place} has a factor 'part' already; drop it first with without(['part'])")
    names = tuple(islice(_letters(), len(tables)) if parts is None else check_strings(parts, "parts", FactorError))
    if len(names) != len(tables) or len(set(names)) != len(names):
        raise FactorError(f"{len(tables)} tables need as many different names of parts, not {list(names)}")
    return Factor("part", Kind.NOMINAL, names, role="part")


def _letters() -> Iterator[str]:
    """Give a, b, … z, aa, ab and so on."""
    return ("".join(letters) for size in count(1) for letters in product(string.ascii_lowercase, repeat=size))


def _united(factors: Sequence[Factor]) -> Factor:
    """One factor for all, with the levels of all."""
    first = factors[0]
    for factor in factors[1:]:
        for what in ("kind", "unit", "period", "within", "role"):
            one, two = getattr(first, what), getattr(factor, what)
            if one != two:
                raise FactorError(
                    f"factor {first.name!r} has the {what} {str(one)!r} in one table and {str(two)!r} in another; "
                    "give them the same, or rename one"
                )
        if first.levels and factor.levels and sort_of(first.levels[0]) != sort_of(factor.levels[0]):
            raise FactorError(
                f"factor {first.name!r} has the level {first.levels[0]!r} in one table and {factor.levels[0]!r} in "
                "another; texts, numbers and truth values cannot be mixed"
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
    """Texts in an order must stand in the same order everywhere."""
    places = {level: place for place, level in enumerate(levels)}
    for factor in factors:
        order = [places[level] for level in factor.levels or ()]
        for place in range(1, len(order)):
            if order[place] < order[place - 1]:
                one, two = levels[order[place]], levels[order[place - 1]]
                raise FactorError(
                    f"factor {factor.name!r} has {one!r} before {two!r} in one table and behind it in another; "
                    "give all tables the same levels in the same order"
                )


def _stacked(tables: Sequence[FactorTable], factor: Factor) -> Array:
    """Column of all tables, in the codes of the united factor."""
    total = sum(len(table) for table in tables)
    dtype: Any = np.float32 if factor.levels is None else code_dtype(len(factor))
    unknown = np.nan if factor.levels is None else np.iinfo(dtype).max
    places = {level: place for place, level in enumerate(factor.levels or ())}
    stacked = np.full(total, unknown, dtype=dtype)
    start = 0
    for table in tables:
        if factor.name in table:
            column = table.column(factor.name)
            if factor.levels is not None:
                codes = [places[level] for level in table[factor.name].levels or ()]
                column = np.array([*codes, unknown], dtype=dtype).take(column, mode="clip")
            stacked[start : start + len(table)] = column
        start += len(table)
    return owned(stacked)


# -- matching ----------------------------------------------------------------------------------------------------------


def _match(other: FactorTable, on: Factor) -> Array:
    """Row of each level, -1 where there is none; no level may have two."""
    codes = other.codes(on.name)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise FactorError(f"row {row} of the joined table has no known {on.name!r}; select the rows that have one")
    counts = np.bincount(codes, minlength=len(on))
    if (counts > 1).any():
        level = (on.levels or ())[int(np.argmax(counts > 1))]
        raise FactorError(
            f"the joined table has {counts.max()} rows with {on.name} = {level!r}, but each value may stand there once"
        )
    rows = np.full(len(on), -1, dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    return rows


def _rows_or_unknown(column: Array, rows: Array) -> Array:
    unknown = np.nan if column.dtype.kind == "f" else np.iinfo(column.dtype).max
    return owned(np.append(column, column.dtype.type(unknown))[rows])


# -- bins --------------------------------------------------------------------------------------------------------------


def _numbers(table: FactorTable, factor: Factor) -> Array:
    """Numbers to be cut: one a row, or one a level."""
    if factor.levels is None:
        return table.column(factor.name)
    if factor.kind is Kind.NOMINAL or isinstance(factor.levels[0], str | bool):
        raise FactorError(f"factor {factor.name!r} has no numbers in an order, so it cannot be cut in bins")
    return np.array(factor.levels, dtype=np.float64)


def _cut(factor: Factor, numbers: Array, width: float) -> tuple[Array, tuple[Level, ...]]:
    """Bin of each number, -1 where it is unknown, and the lower edges of all bins."""
    known = ~np.isnan(numbers)
    if not known.any():
        raise FactorError(f"factor {factor.name!r} has no known value, so there are no bins")
    finite = numbers[known].astype(np.float64)
    if factor.period is None:
        low, high = float(finite.min()) / width, float(finite.max()) / width
        if not (high - low < _MOST_BINS and max(-low, high) < 2**53):
            raise FactorError(f"bins of {width!r} cut factor {factor.name!r} in too many; take wider ones")
        lowest, highest = math.floor(low), math.floor(high) + 1
    else:
        lowest, highest = 0, round(min(factor.period / width, _MOST_BINS)) - 1
        if highest < 0 or abs(factor.period / width - (highest + 1)) > 1e-9:
            raise FactorError(
                f"bins of {width!r} do not fill the period {factor.period!r} of factor {factor.name!r} a whole number "
                f"of times; {factor.period / max(highest + 1, 1)!r} would"
            )
        finite = np.mod(finite, factor.period)
    # exact decimal products, so that three bins of 0.1 end at 0.3 and not at 0.30000000000000004
    edges = [float(place * Decimal(repr(float(width)))) for place in range(lowest, highest + 1)]
    rounded = np.array(edges).astype(numbers.dtype)
    found = np.searchsorted(rounded, finite.astype(numbers.dtype), side="right") - 1
    first, last = (int(found.min()), int(found.max())) if factor.period is None else (0, highest)
    bins = np.full(len(numbers), -1, dtype=np.int64)
    bins[known] = np.maximum(found, 0) - first
    whole = all(edge.is_integer() for edge in edges)
    return bins, tuple(int(edge) if whole else edge for edge in edges[first : last + 1])
