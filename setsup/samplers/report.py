"""What a sampler will draw, and what it never can: known before any training."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.factors.table import FactorTable
from setsup.random import below, fold, stream_key, uniform
from setsup.samplers.groups.combinations import chance_of_any, log_combinations, log_sum
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import EvenMembers, WeightedMembers
from setsup.samplers.groups.window import WindowMembers

__all__ = ["Entry", "Report", "holding_report"]

Rows = npt.NDArray[np.int64]

_GROUPS = 200  # groups looked at for the expected number of distinct values, where not all are
_ROWS = 400_000  # rows looked at in all for it
_LEAST = 2_000  # rows looked at for each of many lists


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
    narrowest : int or None
        For a tolerance, rows of the smallest neighbourhood of a row.
    unreachable : int
        Known rows that are never drawn, because their group is too small or left out, or no anchor is near.
    unknown, excluded : int
        Rows with an unknown held value, and rows left out by ``where`` or weights.
    log10_sets : float
        Decimal logarithm of the number of distinct sets.
    shared_rows : float
        Rows that two sets of a step are expected to have in common, or where one set of a step holds this list, two
        of different steps.
    distinct : mapping of str to float
        Expected number of distinct values of each active factor within a set; factors that are constant in every
        group are left out.
    estimated : bool
        Whether ``distinct`` is an estimate, from some groups or rows, or from some draws.

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
    narrowest: int | None = None

    def lines(self) -> list[str]:
        """The entry in words."""
        span = f"{self.smallest:,}" if self.smallest == self.largest else f"{self.smallest:,} to {self.largest:,}"
        each = " each" if self.groups > 1 else ""
        drawable = "all" if self.drawable == self.groups else f"{self.drawable:,}"
        if self.narrowest is None:
            groups = f"groups of rows with equal held values: {self.groups:,}, of {span} rows{each}"
        else:
            least = "" if self.narrowest == self.largest else f"{self.narrowest:,} to "
            groups = f"groups: {self.groups:,}; {least}{self.largest:,} rows within the tolerance of a row"
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


def holding_report(
    table: FactorTable, holding: GroupSampler, size: int, sets: int = 1, values: str = "independent", lists: int = 1
) -> Entry:
    """Entry for the sets of a step that a holding draws."""
    groups, sizes = holding.groups, holding.members.sizes
    drawable, windows = holding.drawable, holding.members if isinstance(holding.members, WindowMembers) else None
    entry = Entry(
        holding.describe(),
        len(groups),
        len(drawable),
        int(sizes.min()),
        int(sizes.max()),
        unreachable=_never(holding),
        unknown=groups.unknown,
        excluded=groups.excluded,
        narrowest=None if windows is None else int(windows.widths.min()),
    )
    if isinstance(holding.members, WeightedMembers | WindowMembers):
        return entry
    sets_of = _Sets.of(holding, size, sets if values == "equal" else 1)
    chance, shares_known = holding.chooser.shares(sets if values == "different" else 1)
    budget = max(_ROWS // lists, _LEAST)
    distinct, seen = _distinct(table, holding, sets_of, chance, budget)
    return replace(
        entry,
        log10_sets=sets_of.log_number() / math.log(10),
        shared_rows=sets_of.shared(holding.chooser.probabilities(), values if sets > 1 else "independent"),
        distinct=distinct,
        estimated=bool(distinct) and not (seen and shares_known),
    )


def _never(holding: GroupSampler) -> int:
    """Known rows that no draw has."""
    if isinstance(holding.members, WindowMembers):
        return holding.members.unreachable(holding.drawable)
    return holding.groups.rows - int(holding.groups.sizes[holding.drawable].sum())


@dataclass(frozen=True, slots=True)
class _Sets:
    """What sets take from each drawable group; every array is (drawable groups,).

    A group that is dealt out to several sets, and too small for them, gives some of them one row more than the rest.
    """

    rows: Rows
    """Rows of the group."""
    most: Rows
    """Rows in a set."""
    least: Rows
    """Rows in the sets that have one less, where there are any."""
    longer: npt.NDArray[np.float64]
    """Share of the sets that have the most."""
    repeating: npt.NDArray[np.bool_]
    """Whether rows are drawn with repeats."""

    @classmethod
    def of(cls, holding: GroupSampler, size: int, together: int) -> "_Sets":
        """Sets of so many rows, so many of them together from one group."""
        rows = holding.groups.sizes[holding.drawable]
        few = rows < size * together
        repeating = few & (holding.small == "replace")
        most = np.where(few & ~repeating, -(-rows // together), size)
        least = np.where(few & ~repeating, rows // together, size)
        longer = np.where(most > least, rows % together / together, 1.0)
        return cls(rows, most, least, longer, np.asarray(repeating))

    def log_number(self) -> float:
        """Logarithm of the number of distinct sets, empty ones left out."""
        more = self.rows + (self.most - 1) * self.repeating  # C(n + k − 1, k) with repeats
        other = (self.least < self.most) & (self.least > 0)
        logs = [log_combinations(more, self.most), log_combinations(self.rows[other], self.least[other])]
        return log_sum(np.concatenate(logs))

    def shared(self, chance: npt.NDArray[np.float64], values: str) -> float:
        """Rows that two sets are expected to share: n times the squared chance of a row, if they have one group."""
        if values == "different":
            return 0.0
        drawn = np.where(self.repeating, 1 - (1 - 1 / self.rows) ** self.most, self.most / self.rows)
        shared = self.rows * drawn**2
        return float(chance**2 @ shared) if values == "independent" else float(chance @ (shared * self.repeating))

    def expected(self, which: Rows, counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Chance that a set of a group (by its number among the drawable ones) has any of so many of its rows."""
        rows, most, longer = self.rows[which], self.most[which], self.longer[which]
        repeated = 1 - (1 - counts / rows) ** most
        more = chance_of_any(rows, counts, np.minimum(most, rows))
        fewer = chance_of_any(rows, counts, np.minimum(self.least[which], rows))
        return np.asarray(np.where(self.repeating[which], repeated, longer * more + (1 - longer) * fewer))


def _distinct(
    table: FactorTable, holding: GroupSampler, sets_of: _Sets, chance: npt.NDArray[np.float64], budget: int
) -> tuple[dict[str, float], bool]:
    """Expected distinct values of each factor that varies within groups, and whether all rows were looked at."""
    factors = [
        factor
        for factor in table.factors
        if not factor.continuous and factor.role == "variation" and factor.name not in holding.names
    ]
    if isinstance(holding.members, EvenMembers) and holding.members.common is not None:
        # a grid: in every group each level has equally many rows
        first, common = np.zeros(1, dtype=np.int64), holding.members.common
        return {
            factor.name: len(factor) * float(sets_of.expected(first, np.array([common / len(factor)]))[0])
            for factor in factors
            if len(factor) > 1
        }, True
    looked, weights, rows_of, scale, whole = _looked_at(holding, chance, budget)
    which = np.repeat(np.arange(len(looked)), [len(rows) for rows in rows_of])
    rows = np.concatenate(rows_of)
    found = {}
    for factor in factors:
        codes = table.codes(factor.name, rows)
        known = codes >= 0
        cells, counts = np.unique(which[known] * len(factor) + codes[known], return_counts=True)
        group = cells // len(factor)
        if len(np.unique(group)) < len(group):  # else it is constant in all of them
            found[factor.name] = float(weights[group] @ sets_of.expected(looked[group], counts * scale[group]))
    return found, whole


def _looked_at(
    holding: GroupSampler, chance: npt.NDArray[np.float64], budget: int
) -> tuple[Rows, npt.NDArray[np.float64], list[Rows], npt.NDArray[np.float64], bool]:
    """Groups by their numbers among the drawable ones, weights, rows, how many rows each stands for; whether all."""
    groups, drawable = holding.groups, holding.drawable
    sizes = groups.sizes[drawable]
    looked, weights = np.arange(len(drawable)), chance
    if sizes.sum() > budget and len(drawable) > _GROUPS:
        ends = np.cumsum(chance)
        words = uniform(fold(stream_key(0, "report"), np.arange(_GROUPS, dtype=np.uint64)))
        looked = np.minimum(np.searchsorted(ends, words * ends[-1], side="right"), len(drawable) - 1)
        weights = np.full(_GROUPS, 1 / _GROUPS)
    most = budget // len(looked) + 1
    if sizes[looked].sum() <= budget:
        most = int(sizes[looked].max())
    key = stream_key(0, "report rows")
    rows, scale = [], np.ones(len(looked))
    for place, number in enumerate(looked.tolist()):
        count = int(sizes[number])
        if count <= most:
            positions = np.arange(count)
        else:  # not evenly spaced ones, which may miss levels that follow the rows
            positions = below(fold(fold(key, number), np.arange(most)), count)
            scale[place] = count / most
        rows.append(groups.take(int(drawable[number]), positions))
    return looked, weights, rows, scale, len(looked) == len(drawable) and bool((scale == 1).all())
