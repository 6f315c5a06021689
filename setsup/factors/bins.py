"""Binning of numbers in bins of equal width."""

import math
from decimal import Decimal
from typing import TypeVar

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_number
from setsup.errors import FactorError
from setsup.factors.columns import FactorColumns
from setsup.factors.factor import Factor, Kind, Level

__all__ = ["add_bins"]

T = TypeVar("T", bound=FactorColumns)

_MOST_BINS = 1_000_000


def add_bins(table: T, name: str, width: float) -> T:
    """Return a table with the factor ``<name>_bin``: numbers in bins of equal width, each with its lower edge.

    Bins start at integer multiples of the width; their levels are the lower edges, all from the lowest to the highest
    that occurs. With a period, numbers are wrapped into it, the bins fill it and the factor is cyclic. Unknown stays
    unknown. Since numbers are stored as float32, edges are rounded alike: 0.7 is in the bin that starts at 0.7.
    """
    factor = table[name]
    name = factor.name
    if f"{name}_bin" in table:
        raise FactorError(f"the table already has a factor '{name}_bin'; drop it first with without(['{name}_bin'])")
    check_number(width, f"the width of the bins of factor {name!r}", FactorError, positive=True)
    numbers = _numbers(table, factor)
    bins, levels = _cut(factor, numbers, width)
    if factor.levels is not None:
        bins = np.append(bins, -1)[table.codes(name)]
    kind = Kind.ORDINAL if factor.period is None else Kind.CYCLIC
    cut = Factor(f"{name}_bin", kind, levels, factor.unit, factor.period, factor.within, factor.role)
    return table.with_factor(cut, bins)


def _numbers(table: FactorColumns, factor: Factor) -> Array:
    """Numbers to be cut: one per row, or one per level."""
    if factor.levels is None:
        return table.column(factor.name)
    if factor.kind is Kind.NOMINAL or isinstance(factor.levels[0], str | bool):
        raise FactorError(
            f"factor {factor.name!r} cannot be binned, because its values are not ordered numbers; choose another "
            "factor"
        )
    return np.array(factor.levels, dtype=np.float64)


def _cut(factor: Factor, numbers: Array, width: float) -> tuple[Array, tuple[Level, ...]]:
    """Bin of each number, -1 where it is unknown, and the lower edges of all bins."""
    known = ~np.isnan(numbers)
    if not known.any():
        raise FactorError(
            f"factor {factor.name!r} cannot be binned, because it has no known value; choose another factor"
        )
    finite = numbers[known].astype(np.float64)
    if factor.period is None:
        low, high = float(finite.min()) / width, float(finite.max()) / width
        if not (high - low < _MOST_BINS and max(-low, high) < 2**53):
            raise FactorError(
                f"a width of {width!r} divides factor {factor.name!r} into too many bins; choose a larger width"
            )
        lowest, highest = math.floor(low), math.floor(high) + 1
    else:
        lowest, highest = 0, round(min(factor.period / width, _MOST_BINS)) - 1
        if highest < 0 or abs(factor.period / width - (highest + 1)) > 1e-9:
            raise FactorError(
                f"bins of width {width!r} do not divide the period {factor.period!r} of factor {factor.name!r} "
                f"evenly; choose a divisor of the period, such as {factor.period / max(highest + 1, 1)!r}"
            )
        finite = np.mod(finite, factor.period)
    # exact decimal products, so that three bins of 0.1 end at 0.3 and not at 0.30000000000000004
    edges = [float(number * Decimal(repr(float(width)))) for number in range(lowest, highest + 1)]
    rounded = np.array(edges).astype(numbers.dtype)
    bin_numbers = np.searchsorted(rounded, finite.astype(numbers.dtype), side="right") - 1
    first, last = (int(bin_numbers.min()), int(bin_numbers.max())) if factor.period is None else (0, highest)
    bins = np.full(len(numbers), -1, dtype=np.int64)
    bins[known] = np.maximum(bin_numbers, 0) - first
    whole = all(edge.is_integer() for edge in edges)
    return bins, tuple(int(edge) if whole else edge for edge in edges[first : last + 1])
