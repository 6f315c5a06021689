"""Draws in words and units: what a set holds, and what varies in it over how many levels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments, check_instance
from setsup.errors import DataError
from setsup.factors.factor import Factor, Level
from setsup.factors.table import FactorTable
from setsup.samplers.draw import Draw

__all__ = [
    "Change",
    "PairWords",
    "SetWords",
    "Variation",
    "describe",
    "describe_pairs",
    "describe_triplets",
    "number_words",
    "value_words",
]


@dataclass(frozen=True, slots=True)
class Variation:
    """The variation of a factor within a set.

    Attributes
    ----------
    distinct : int
        Different values among the members; unknown ones do not count.
    levels : int or None
        Levels the factor has in all, None for a continuous one.
    span : (lowest, highest) float, optional
        Of a continuous factor, in its unit.

    """

    distinct: int
    levels: int | None = None
    span: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class SetWords:
    """What is fixed in one set, what varies, and how many members it has (padding does not count)."""

    fixed: dict[str, Level]
    varies: dict[str, Variation]
    members: int

    def fixed_words(
        self,
        table: FactorTable,
        tolerance: Mapping[str, float] | None = None,
        legible: Callable[[str], bool] = lambda text: True,
    ) -> str:
        """Say what is fixed: ``wall_hue = 0.3 turn``; a level that is not ``legible`` is followed by its number."""
        near, listed = tolerance or {}, []
        for name, value in self.fixed.items():
            spelled = table[name].levels is None or legible(str(value))
            number = "" if spelled else f" (level {table[name].code(value)})"
            around = f" ± {near[name]:.4g}" if name in near else ""
            listed.append(f"{name} = {value_words(table[name], value)}{number}{around}")
        return ", ".join(listed) or "nothing"

    def varying_words(self, table: FactorTable) -> str:
        """Say what varies, and over how many of its levels: ``shape 4 of 4, scale 7 of 8``; one value does not vary."""
        varying = {name: variation for name, variation in self.varies.items() if variation.distinct != 1}
        return ", ".join(_variation_words(table[name], variation) for name, variation in varying.items()) or "no factor"


@dataclass(frozen=True, slots=True)
class Change:
    """Values of a factor in the two rows of a pair, and what is between them: ``→``, or ``≥`` or ``<`` where ranked."""

    first: Level | None
    second: Level | None
    sign: str


@dataclass(frozen=True, slots=True)
class PairWords:
    """In what the two rows of a pair are equal, and what is changed or ranked between them."""

    fixed: dict[str, Level]
    changed: dict[str, Change]

    def fixed_words(self, table: FactorTable) -> str:
        """Say what is equal: ``wall_hue = 0.3 turn``."""
        return (
            ", ".join(f"{name} = {value_words(table[name], value)}" for name, value in self.fixed.items()) or "nothing"
        )

    def changed_words(self, table: FactorTable) -> str:
        """Say what is changed: ``shape cube → sphere, scale 0.75 → 1.25``."""
        listed = (
            f"{name} {number_words(change.first)} {change.sign} {value_words(table[name], change.second)}"
            for name, change in self.changed.items()
        )
        return ", ".join(listed) or "nothing"


def describe(table: FactorTable, draw: Draw, most: int | None = None, without: Sequence[str] = ()) -> list[SetWords]:
    """Say for each set of a draw what is fixed and what varies; keys, such as paths, and splits are left out.

    Parameters
    ----------
    table : FactorTable
        The table of the sampler.
    draw : Draw
        One step.
    most : int, optional
        Sets described, from the first on.
    without : sequence of str
        Factors that are not listed among what varies, such as the one by whose weight rows are drawn.

    Returns
    -------
    list of SetWords, one per set

    Examples
    --------
    >>> import numpy as np
    >>> from setsup.factors import Factor, FactorTable, Kind
    >>> grid = FactorTable([Factor("hue", Kind.CYCLIC, (0.0, 0.5), unit="turn", period=1.0),
    ...                     Factor("size", Kind.ORDINAL, (1, 2, 3))])
    >>> described = describe(grid, Draw(np.array([[3, 5]]), {"hue": np.array([1])}))[0]
    >>> described.fixed_words(grid), described.varying_words(grid)
    ('hue = 0.5 turn', 'size 2 of 3')

    """
    check_arguments(describe, locals(), DataError)
    described = []
    for number, rows in enumerate(draw.indices[:most]):
        members = rows if draw.mask is None else rows[draw.mask[number]]
        fixed: dict[str, Level] = {}
        varies: dict[str, Variation] = {}
        for factor in table.factors:
            code = draw.inactive[factor.name][number] if factor.name in draw.inactive else None
            if code is not None and (not np.isnan(code) if factor.levels is None else code >= 0):
                fixed[factor.name] = float(code) if factor.levels is None else factor.levels[int(code)]
            elif factor.role not in ("key", "split") and factor.name not in without:
                varies[factor.name] = _variation(table, factor, members)
        described.append(SetWords(fixed, varies, len(members)))
    return described


def describe_triplets(
    table: FactorTable, draw: Draw, orbit: Sequence[str], most: int | None = None, without: Sequence[str] = ()
) -> list[SetWords]:
    """Say for each triplet what anchor and positive share, and in what they differ.

    Parameters
    ----------
    table : FactorTable
        The table of the sampler.
    draw : Draw
        One step of (triplets, 3) rows: anchor, positive, negative.
    orbit : sequence of str
        Factors that anchor and positive share.
    most : int, optional
        Triplets described, from the first on.
    without : sequence of str
        Factors that are not listed among what varies.

    Returns
    -------
    list of SetWords, one per triplet

    """
    check_arguments(describe_triplets, locals(), DataError)
    shared = {name: table.codes(name, draw.indices[:, 0]) for name in orbit}
    return describe(table, Draw(draw.indices[:, :2], shared), most, without)


def describe_pairs(
    table: FactorTable, draw: Draw, most: int | None = None, without: Sequence[str] = ()
) -> list[PairWords]:
    """Say for each pair in which factors it differs, and from which value to which.

    Parameters
    ----------
    table : FactorTable
        The table of the sampler.
    draw : Draw
        One step of (pairs, 2) rows. Of pairs with labels, as FactorPairSampler draws them, the factors of the labels
        are described; of others all factors but keys and splits.
    most : int, optional
        Pairs described, from the first on.
    without : sequence of str
        Factors that are not described where pairs have no labels.

    Returns
    -------
    list of PairWords, one per pair

    Examples
    --------
    >>> import setsup
    >>> table = setsup.load("shapes3d-procedural").factors
    >>> described = describe_pairs(table, setsup.FactorPairSampler(table, 3, k=1)[0])
    >>> [list(pair.changed) for pair in described], described[0].changed_words(table)
    ([['orientation'], ['orientation'], ['floor_hue']], 'orientation 4.286 → 25.71 deg')

    """
    check_arguments(describe_pairs, locals(), DataError)
    names = compared_names(table, without)
    described = []
    for number, rows in enumerate(draw.indices[:most]):
        values = [table.row(int(row)) for row in rows]
        described.append(_labelled(draw, number, *values) if draw.pair_labels else _compared(names, *values))
    return described


def compared_names(table: FactorTable, without: Sequence[str]) -> list[str]:
    """Factors in which rows are compared: neither keys nor splits."""
    return [
        factor.name for factor in table.factors if factor.role not in ("key", "split") and factor.name not in without
    ]


def _labelled(
    draw: Draw, number: int, first: Mapping[str, Level | None], second: Mapping[str, Level | None]
) -> PairWords:
    changed = {}
    for name, labels in draw.pair_labels.items():
        if name not in draw.inactive:
            changed[name] = Change(first[name], second[name], "≥" if labels[number] else "<")
        elif labels[number]:
            changed[name] = Change(first[name], second[name], "→")
    fixed: dict[str, Level] = {
        name: value
        for name, value in first.items()
        if value is not None and name in draw.inactive and draw.inactive[name][number] >= 0
    }
    return PairWords(fixed, changed)


def _compared(names: Sequence[str], first: Mapping[str, Level | None], second: Mapping[str, Level | None]) -> PairWords:
    """What two rows have in common; what is unknown in one of them is not."""
    fixed: dict[str, Level] = {}
    changed = {}
    for name in names:
        value = first[name]
        if value is not None and value == second[name]:
            fixed[name] = value
        else:
            changed[name] = Change(value, second[name], "→")
    return PairWords(fixed, changed)


def value_words(factor: Factor, value: Level | None) -> str:
    """Write a value with its unit; numbers have four digits.

    Examples
    --------
    >>> from setsup.factors import Factor, Kind
    >>> value_words(Factor("angle", Kind.CONTINUOUS, unit="deg"), -25.7142857)
    '-25.71 deg'

    """
    check_instance(factor, Factor, "the factor of a value", DataError)
    text = number_words(value)
    return f"{text} {factor.unit}" if factor.unit and value is not None else text


def number_words(value: Level | None) -> str:
    """Write a value without unit; what is not an integer has four digits."""
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _variation(table: FactorTable, factor: Factor, rows: npt.NDArray[np.int64]) -> Variation:
    codes = table.codes(factor.name, rows)
    if factor.levels is not None:
        return Variation(len(np.unique(codes[codes >= 0])), len(factor.levels))
    known = codes[~np.isnan(codes)]
    span = (float(known.min()), float(known.max())) if len(known) else None
    return Variation(len(np.unique(known)), None, span)


def _variation_words(factor: Factor, variation: Variation) -> str:
    if variation.levels is not None:
        return f"{factor.name} {variation.distinct} of {variation.levels:,}"
    if variation.span is None:
        return f"{factor.name} unknown"
    return f"{factor.name} {variation.span[0]:.4g} to {value_words(factor, variation.span[1])}"
