"""Canonical row of an orbit: the first, the least by a factor, or the first that has given levels."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from setsup.arrays import Bools, Reals, Rows
from setsup.checks import check_number
from setsup.errors import SamplerError, abbreviate, spell_name
from setsup.factors.factor import Level
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable

__all__ = ["canonical_rows"]


def canonical_rows(table: FactorTable, groups: Groups, canonical: str | Mapping[str, Level]) -> Rows:
    """Canonical row of each orbit, -1 where there is none.

    Returns (groups,) int64.
    """
    if isinstance(canonical, str) and canonical == "first":
        return groups.take(np.arange(len(groups)), 0)
    of_rows = groups.of_rows()
    if isinstance(canonical, Mapping):
        fits = of_rows >= 0
        for name, level in canonical.items():
            fits &= _equals(table, name, level)
        rows = np.flatnonzero(fits)
    elif isinstance(canonical, str) and canonical.startswith("argmin:"):
        values = _comparable(table, canonical.removeprefix("argmin:"))
        rows = np.flatnonzero((of_rows >= 0) & ~np.isnan(values))
        rows = rows[np.argsort(values[rows], kind="stable")]
    elif isinstance(canonical, str) and any(sign in canonical for sign in ("=", "<", ">", " ", "(")):  # no lone word
        rows = np.flatnonzero((of_rows >= 0) & table.mask(canonical))
    else:
        raise SamplerError(
            f"{spell_name('canonical')} must be 'first', 'argmin:FACTOR', {{FACTOR: level}} or an expression such as "
            f'"FACTOR == 0", not {abbreviate(canonical)}'
        )
    canonical_of_groups = np.full(len(groups), -1, dtype=np.int64)
    with_canonical, first = np.unique(of_rows[rows], return_index=True)
    canonical_of_groups[with_canonical] = rows[first]
    return canonical_of_groups


def _equals(table: FactorTable, name: str, level: Level) -> Bools:
    factor = table[name]
    if factor.continuous:
        number = check_number(level, f"the canonical value of the continuous factor {name!r}", SamplerError)
        with np.errstate(over="ignore"):
            return np.asarray(table.column(name) == np.float32(number))
    return np.asarray(table.column(name) == factor.code(level))


def _comparable(table: FactorTable, name: str) -> Reals:
    """Numbers of a factor, or the positions of its levels in their order; NaN where unknown."""
    factor = table[name]
    codes = table.codes(name)
    if factor.levels is None:
        return codes.astype(np.float64)
    order = np.arange(len(factor) + 1, dtype=np.float64)
    if not isinstance(factor.levels[0], str):  # Python orders whole numbers of any size exactly
        levels: Any = factor.levels
        order[sorted(range(len(factor)), key=levels.__getitem__)] = np.arange(len(factor))
    order[-1] = np.nan
    return order[codes]
