"""Random splits into training, validation and test parts, as factor columns.

Convention
----------
The units that are dealt out are rows, or the groups of ``disjoint``; the strata are the groups of ``stratify``, or one
of all. In each stratum the units are in the order of a permutation keyed by the seed, the repeat and the stratum. A
unit goes to the part in whose share of the stratum's rows the middle of its own rows falls. So each part's rows differ
from its share by less than one unit, in every stratum, and the outcome depends on the rows' factors only. With
``rounding="table"`` the shares of the strata are rounded up in some and down in others, in a keyed order of the strata,
such that the parts of the whole table have their rounded shares too.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from setsup.arrays import Rows
from setsup.checks import check_arguments, check_choice, check_integer, is_number
from setsup.errors import FactorError, abbreviate
from setsup.factors.column_storage import code_dtype
from setsup.factors.factor import Factor, Kind
from setsup.factors.table import FactorTable
from setsup.random import fold, permute, stream_key

__all__ = ["ROUNDINGS", "check_disjoint", "split"]

_MOST = 10_000  # splits of one table


ROUNDINGS = ("strata", "table")
"""What the shares of a split are rounded for."""

_ORDER = 1 << 63  # key of the order of the strata, which none of them has as its number


def split(
    table: FactorTable,
    fractions: Mapping[str, float],
    seed: int,
    *,
    name: str = "split",
    stratify: str | Sequence[str] | None = None,
    disjoint: str | Sequence[str] | None = None,
    repeats: int = 1,
    rounding: Literal["strata", "table"] = "strata",
) -> FactorTable:
    """Return a table with a factor that divides its rows at random into parts of given shares.

    Parameters
    ----------
    table : FactorTable
        Grid or columns.
    fractions : mapping of str to float
        Share of each part, in the order of the levels; positive, with the sum 1.
    seed : int
        0 ≤ seed < 2⁶⁴.
    name : str
        Name of the new factor, whose role is ``split``.
    stratify : str or sequence of str, optional
        Factors: each combination of their levels is divided in these fractions.
    disjoint : str or sequence of str, optional
        Factors such as subjects, scenes or orbits: no combination of their levels is in two parts.
    repeats : int
        Number of independent splits to add, named ``<name>_0``, ``<name>_1``, … if there are several.
    rounding : {"strata", "table"}
        Which shares are rounded: those of each stratum by itself, or those of the whole table, of which each stratum
        then has its share rounded up or down, as in scikit-learn's ``train_test_split(stratify=…)``. A tenth of 183
        strata of 96 rows is 1,830 rows in the one way and 1,757 in the other.

    Returns
    -------
    FactorTable
        Table with the new factor. Rows where a factor of ``stratify`` or ``disjoint`` is unknown are in no part: their
        split is unknown.

    Raises
    ------
    FactorError
        If the shares are not positive or do not sum to 1, a part is empty, or a group of ``disjoint`` is in two strata.

    Examples
    --------
    >>> from setsup.factors import Factor, Kind
    >>> faces = FactorTable([Factor("subject", Kind.NOMINAL, tuple("abcde")), Factor("light", Kind.ORDINAL, (1, 2, 3))])
    >>> faces = split(faces, {"train": 0.6, "test": 0.4}, seed=0, disjoint="subject")
    >>> faces.counts("split")
    array([9, 6])
    >>> check_disjoint(faces, "split", "subject")

    """
    shares, key = _shares(fractions), stream_key(seed, "split")
    check_integer(repeats, "repeats", FactorError, 1, _MOST)
    check_choice(rounding, ROUNDINGS, "rounding", FactorError)
    check_arguments(split, locals(), FactorError)
    names = [name] if repeats == 1 else [f"{name}_{repeat}" for repeat in range(repeats)]
    for new in names:
        if new in table:
            raise FactorError(f"the table already has a factor {new!r}; pass another name=")
    units, strata = _make_units(table, _listed(stratify), _listed(disjoint))
    for repeat, new in enumerate(names):
        codes = _parts(units, strata, shares, int(fold(key, repeat)), whole=rounding == "table")
        _check_filled(codes, fractions, new)
        factor = Factor(new, Kind.NOMINAL, tuple(fractions), role="split")
        table = table.with_factor(factor, codes.astype(code_dtype(len(fractions))))
    return table


def check_disjoint(table: FactorTable, split: str, by: str | Sequence[str]) -> None:
    """Check that no combination of levels of some factors is in two parts of a split.

    Parameters
    ----------
    table : FactorTable
        Grid or columns.
    split : str
        Factor that divides the rows; rows where it is unknown are in no part.
    by : str or sequence of str
        Discrete factors.

    Raises
    ------
    FactorError
        If a combination is in two parts; the error names the first five with their parts.

    """
    check_arguments(check_disjoint, locals(), FactorError)
    groups = table.group_by(_listed(by))
    group, part = groups.of_rows(), table.codes(split)
    levels = table[split].levels
    if levels is None:
        raise FactorError(
            f"factor {split!r} is continuous, so it does not divide rows into parts; choose a factor with levels"
        )
    known = (group >= 0) & (part >= 0)
    pairs = np.unique(group[known] * len(levels) + part[known])
    group_of, counts = np.unique(pairs // len(levels), return_counts=True)
    shared = group_of[counts > 1]
    if len(shared):
        first = []
        for which in shared[:5].tolist():
            parts = [str(levels[int(pair) % len(levels)]) for pair in pairs[pairs // len(levels) == which]]
            first.append(f"{groups.describe(table, which)} ({', '.join(parts)})")
        more = "" if len(shared) <= 5 else f" and {len(shared) - 5:,} more"
        raise FactorError(
            f"{split!r} is not disjoint by {', '.join(groups.names)}: several parts contain {', '.join(first)}{more}"
        )


def _listed(names: str | Iterable[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _shares(fractions: Mapping[str, float]) -> list[Fraction]:
    """Upper ends of the parts' shares: exact, so that no rounding decides where a unit goes."""
    if not isinstance(fractions, Mapping):
        raise FactorError(
            "fractions must map the names of parts to their shares, such as {'train': 0.8}, not "
            f"{abbreviate(fractions)}"
        )
    shares = list(fractions.values())
    if not shares or not all(is_number(share) and 0 < share <= 1 for share in shares):
        raise FactorError(f"the shares of a split must be positive numbers that sum to 1, not {dict(fractions)}")
    ends = list(accumulate(Fraction(repr(float(share))) for share in shares))
    if abs(ends[-1] - 1) > Fraction(1, 10**9):
        raise FactorError(
            f"the shares of a split must sum to 1, but those in {dict(fractions)} sum to {float(ends[-1])!r}"
        )
    return [*ends[:-1], Fraction(1)]


def _make_units(table: FactorTable, stratify: list[str], disjoint: list[str]) -> tuple[Rows, Rows]:
    """Give the number of each row's unit, -1 where a factor is unknown, and the stratum of each unit."""
    stratum = table.group_by(stratify).of_rows() if stratify else np.zeros(len(table), dtype=np.int64)
    if not disjoint:
        known = stratum >= 0
        units = np.where(known, np.cumsum(known) - 1, -1)
        return units, stratum[known]
    groups = table.group_by(disjoint)
    group = groups.of_rows()
    known = (group >= 0) & (stratum >= 0)
    _, first, inverse = np.unique(group[known], return_index=True, return_inverse=True)
    strata = stratum[known][first]
    astray = np.flatnonzero(strata[inverse] != stratum[known])
    if len(astray):
        which = groups.describe(table, int(group[known][astray[0]]))
        raise FactorError(
            f"the rows of {which} have different values of {', '.join(stratify)}, so they cannot stay together in one "
            f"stratum; leave factors that vary within {which} out of stratify="
        )
    units = np.full(len(table), -1, dtype=np.int64)
    units[known] = inverse
    return units, strata


def _parts(units: Rows, strata: Rows, shares: list[Fraction], key: int, whole: bool) -> Rows:
    """Part of each row, -1 where it has no unit; `whole` where the shares of all strata together are rounded."""
    sizes = np.bincount(units[units >= 0], minlength=len(strata))
    part = np.empty(len(strata) + 1, dtype=np.int64)
    part[-1] = -1
    order = np.argsort(strata, kind="stable")
    starts = np.flatnonzero(np.diff(strata[order], prepend=-1))
    groups = [members for members in np.split(order, starts[1:]) if len(members)]
    if whole:
        groups = [groups[index] for index in permute(int(fold(key, _ORDER)), len(groups), np.arange(len(groups)))]
    before = 0
    for members in groups:
        stratum = fold(key, int(strata[members[0]]))
        dealt = members[permute(stratum, len(members), np.arange(len(members)))]
        ends = np.cumsum(sizes[dealt])
        total = int(ends[-1])
        # a unit's middle, twice, against the ends of the shares, twice: integers on both sides
        if whole:
            limits = [2 * (_round(share * (before + total)) - _round(share * before)) for share in shares[:-1]]
        else:
            limits = [-(-2 * total * share.numerator // share.denominator) for share in shares[:-1]]
        part[dealt] = np.searchsorted(np.array(limits, np.int64), 2 * ends - sizes[dealt], side="right")
        before += total
    return part[units]


def _round(number: Fraction) -> int:
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)


def _check_filled(codes: Rows, fractions: Mapping[str, float], name: str) -> None:
    counts: Any = np.bincount(codes[codes >= 0], minlength=len(fractions))
    for part, count in zip(fractions, counts, strict=True):
        if not count:
            raise FactorError(
                f"no row falls into the part {part!r} of {name!r} ({fractions[part]!r} of {counts.sum():,} rows); "
                "increase its share, or use fewer and larger strata"
            )
