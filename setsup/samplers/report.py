"""What a sampler will draw, and what it never can: known before any training."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.factors.table import FactorTable
from setsup.random import fold, stream_key
from setsup.samplers.holding import Holding
from setsup.samplers.members import EvenMembers, WeightedMembers
from setsup.samplers.window import WindowMembers

__all__ = ["Entry", "Report", "holding_report"]

Rows = npt.NDArray[np.int64]

_GROUPS = 200  # groups looked at for the expected number of distinct values
_ROWS = 400_000  # rows looked at in all for it


@dataclass(frozen=True)
class Entry:
    """One list of held factors.

    Attributes
    ----------
    held : str
        The factors in words.
    groups, drawable : int
        Groups, and those that can be drawn from.
    smallest, largest : int
        Rows of the smallest and of the largest group; for a tolerance, of their largest neighbourhood.
    unreachable : int
        Known rows that are never drawn, because their group is too small or left out, or no anchor is near.
    unknown, excluded : int
        Rows with an unknown held value, and rows left out by ``where`` or weights.
    log10_sets : float
        Decimal logarithm of the number of distinct sets.
    shared_rows : float
        Rows that two independent sets are expected to have in common.
    distinct : mapping of str to float
        Expected number of distinct values of each active factor within a set.
    estimated : bool
        Whether ``distinct`` looked at some groups or rows only.

    """

    held: str
    groups: int
    drawable: int
    smallest: int
    largest: int
    unreachable: int = 0
    unknown: int = 0
    excluded: int = 0
    log10_sets: float = math.nan
    shared_rows: float = math.nan
    distinct: Mapping[str, float] = field(default_factory=dict)
    estimated: bool = False

    def lines(self) -> list[str]:
        """The entry in words."""
        span = f"{self.smallest:,}" if self.smallest == self.largest else f"{self.smallest:,} to {self.largest:,}"
        each = " each" if self.groups > 1 else ""
        drawable = "all" if self.drawable == self.groups else f"{self.drawable:,}"
        groups = f"groups of rows with equal held values: {self.groups:,}, of {span} rows{each}"
        found = [f"held: {self.held}", f"  {groups}; {drawable} can be drawn"]
        lost = {
            "in groups too small or left out": self.unreachable,
            "with an unknown value": self.unknown,
            "left out by where or weights": self.excluded,
        }
        never = [f"{count:,} {why}" for why, count in lost.items() if count]
        found.append(f"  rows never drawn: {', '.join(never) or 'none'}")
        if not math.isnan(self.log10_sets):
            shared = "" if math.isnan(self.shared_rows) else f"; two sets share {self.shared_rows:.3g} rows on average"
            number = f"{10**self.log10_sets:,.0f}" if self.log10_sets < 6 else f"about 10^{self.log10_sets:.1f}"
            found.append(f"  distinct sets: {number}{shared}")
        if self.distinct:
            kind = "about " if self.estimated else ""
            values = ", ".join(f"{name} {kind}{count:.1f}" for name, count in self.distinct.items())
            found.append(f"  distinct values expected in a set: {values}")
        return found


@dataclass(frozen=True)
class Report:
    """What a sampler will draw; ``str`` puts it in words, :meth:`to_dict` in plain data."""

    title: str
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Title, entries and notes, a line each."""
        lines = [self.title]
        for entry in self.entries:
            lines += entry.lines()
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what is not known is None."""
        found = asdict(self)
        for entry in found["entries"]:
            entry.update({key: None for key, value in entry.items() if isinstance(value, float) and math.isnan(value)})
        return found


def holding_report(table: FactorTable, holding: Holding, size: int) -> Entry:
    """Entry for sets of ``size`` rows drawn by a holding."""
    groups, sizes = holding.groups, holding.members.sizes
    drawable = holding.drawable
    if isinstance(holding.members, WindowMembers):
        never = holding.members.unreachable(drawable)
    else:
        never = groups.rows - int(groups.sizes[drawable].sum())
    chance, again = holding.chooser.probabilities(), _repeating(holding)
    exact = not isinstance(holding.members, WeightedMembers | WindowMembers)
    distinct, estimated = _distinct(table, holding, size) if exact else ({}, False)
    return Entry(
        holding.describe(),
        len(groups),
        len(drawable),
        int(sizes.min()),
        int(sizes.max()),
        unreachable=never,
        unknown=groups.unknown,
        excluded=groups.excluded,
        log10_sets=_log10_sets(groups.sizes[drawable], again, size) if exact else math.nan,
        shared_rows=float(chance**2 @ _shared(groups.sizes[drawable], again, size)) if exact else math.nan,
        distinct=distinct,
        estimated=estimated,
    )


def _repeating(holding: Holding) -> npt.NDArray[np.bool_]:
    """Which drawable groups are drawn from with repeats."""
    sizes = holding.groups.sizes[holding.drawable]
    return np.asarray((sizes < holding.need) & (holding.small == "replace"))


def _shared(sizes: Rows, repeating: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.float64]:
    """Rows that two independent sets of one group are expected to share: n times the squared chance of a row."""
    chance = np.where(repeating, 1 - (1 - 1 / sizes) ** size, np.minimum(size, sizes) / sizes)
    return np.asarray(sizes * chance**2)


def _log10_sets(sizes: Rows, repeating: npt.NDArray[np.bool_], size: int) -> float:
    """Decimal logarithm of Σ C(n, k) over groups; C(n + k − 1, k) with repeats."""
    rows = np.where(repeating, size, np.minimum(size, sizes))
    pairs, counts = np.unique(np.stack([sizes + (rows - 1) * repeating, rows]), axis=1, return_counts=True)
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + math.log(count)
        for n, k, count in zip(pairs[0].tolist(), pairs[1].tolist(), counts.tolist(), strict=True)
    ]
    top = max(logs)
    return (top + math.log(sum(math.exp(log - top) for log in logs))) / math.log(10)


def _distinct(table: FactorTable, holding: Holding, size: int) -> tuple[dict[str, float], bool]:
    """Expected distinct values of each active factor in a set, averaged over groups as they are chosen."""
    names = [
        factor.name
        for factor in table.factors
        if not factor.continuous and factor.role == "variation" and factor.name not in holding.names
    ]
    groups, drawable = holding.groups, holding.drawable
    # a grid: every group looks the same
    uniform = isinstance(holding.members, EvenMembers) and holding.members.common is not None
    looked = drawable[:1] if uniform else drawable
    chance = np.ones(1) if uniform else holding.chooser.probabilities()
    if len(looked) > _GROUPS:
        words = fold(stream_key(0, "report"), np.arange(_GROUPS, dtype=np.uint64))
        looked, chance = drawable[holding.chooser.pick(words)], np.full(_GROUPS, 1 / _GROUPS)
    most = max(_ROWS // len(looked), 1)
    expected = dict.fromkeys(names, 0.0)
    estimated = not uniform and len(looked) < len(drawable)
    for group, weight in zip(looked.tolist(), chance.tolist(), strict=True):
        count = int(groups.sizes[group])
        estimated |= count > most
        positions = np.arange(count) if count <= most else np.arange(most) * count // most
        rows = groups.take(group, positions)
        for name in names:
            codes = table.codes(name, rows)
            levels = np.bincount(codes[codes >= 0])
            if holding.small == "replace" and count < holding.need:
                expected[name] += weight * float((1 - (1 - levels / count) ** size).sum())
            else:
                expected[name] += weight * _expected_levels(levels, len(rows), min(size, count))
    return expected, estimated


def _expected_levels(counts: Rows, rows: int, size: int) -> float:
    """Σ over levels of 1 − C(rows − count, size)/C(rows, size)."""
    counts = counts[counts > 0]
    size = min(size, rows)
    absent = np.ones(len(counts))
    for i in range(size):
        absent *= np.maximum(rows - counts - i, 0) / (rows - i)
    return float((1 - absent).sum())
