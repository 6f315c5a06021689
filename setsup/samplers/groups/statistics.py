"""Statistics of the sets that are drawn from groups, for a sampler's report."""

import math
from dataclasses import dataclass, replace

import numpy as np

from setsup.arrays import Bools, Reals, Rows
from setsup.factors.table import FactorTable
from setsup.random import fold, randint_below, stream_key, uniform
from setsup.samplers.groups.anchored import AnchoredMembers
from setsup.samplers.groups.combinations import chance_of_any, log_combinations, log_sum
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import EvenMembers, WeightedMembers
from setsup.samplers.groups.window import WindowMembers
from setsup.samplers.report import Entry

__all__ = ["counts_entry", "group_entry"]

_GROUPS = 200  # groups looked at for the expected number of distinct values, where not all are
_ROWS = 400_000  # rows looked at in all for it
_LEAST = 2_000  # rows looked at for each of many lists


def group_entry(
    table: FactorTable,
    sampler: GroupSampler,
    size: int,
    sets: int = 1,
    values: str = "independent",
    lists: int = 1,
    shares: Reals | None = None,
) -> Entry:
    """Entry of a report for the sets of a step that fix the same factors.

    ``shares`` (drawable,) says what share of the sets each drawable group has, where that is not by the chooser.
    """
    entry = counts_entry(sampler)
    if isinstance(sampler.members, WeightedMembers | WindowMembers | AnchoredMembers):
        return entry
    sets_of = _Sets.of(sampler, size, sets if values == "equal" else 1)
    chance, shares_known = (
        (shares, True) if shares is not None else sampler.chooser.shares(sets if values == "different" else 1)
    )
    budget = max(_ROWS // lists, _LEAST)
    distinct, is_complete = _count_distinct(table, sampler, sets_of, chance, budget)
    return replace(
        entry,
        log10_sets=sets_of.log_number() / math.log(10),
        shared_rows=sets_of.shared(
            sampler.chooser.probabilities() if shares is None else shares, values if sets > 1 else "independent"
        ),
        distinct=distinct,
        estimated=bool(distinct) and not (is_complete and shares_known),
    )


def counts_entry(sampler: GroupSampler) -> Entry:
    """Entry of a report that only says how many groups and rows there are, and which are never drawn."""
    groups, sizes = sampler.groups, sampler.members.sizes
    windows = sampler.members if isinstance(sampler.members, WindowMembers) else None
    sizes = groups.sizes if isinstance(sampler.members, AnchoredMembers) else sizes
    return Entry(
        sampler.describe(),
        len(groups),
        len(sampler.drawable),
        int(sizes.min()),
        int(sizes.max()),
        unreachable=sampler.members.unreachable(sampler.drawable),
        unknown=groups.unknown,
        excluded=groups.excluded,
        narrowest=None if windows is None else int(windows.widths.min()),
    )


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
    longer: Reals
    """Share of the sets that have the most."""
    repeating: Bools
    """Whether rows are drawn with repeats."""

    @classmethod
    def of(cls, sampler: GroupSampler, size: int, together: int) -> "_Sets":
        """Sets of so many rows, so many of them together from one group."""
        rows = sampler.groups.sizes[sampler.drawable]
        few = rows < size * together
        repeating = few & (sampler.on_small_group == "replace")
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

    def shared(self, chance: Reals, values: str) -> float:
        """Rows that two sets are expected to share: n times the squared chance of a row, if they have one group."""
        if values == "different":
            return 0.0
        drawn = np.where(self.repeating, 1 - (1 - 1 / self.rows) ** self.most, self.most / self.rows)
        shared = self.rows * drawn**2
        return float(chance**2 @ shared) if values == "independent" else float(chance @ (shared * self.repeating))

    def expected(self, which: Rows, counts: Reals) -> Reals:
        """Chance that a set of a group (by its number among the drawable ones) has any of so many of its rows."""
        rows, most, longer = self.rows[which], self.most[which], self.longer[which]
        repeated = 1 - (1 - counts / rows) ** most
        more = chance_of_any(rows, counts, np.minimum(most, rows))
        fewer = chance_of_any(rows, counts, np.minimum(self.least[which], rows))
        return np.asarray(np.where(self.repeating[which], repeated, longer * more + (1 - longer) * fewer))


def _count_distinct(
    table: FactorTable, sampler: GroupSampler, sets_of: _Sets, chance: Reals, budget: int
) -> tuple[dict[str, float], bool]:
    """Expected distinct values of each factor that varies within groups, and whether all rows were looked at."""
    factors = [
        factor
        for factor in table.factors
        if not factor.continuous and factor.role == "variation" and factor.name not in sampler.names
    ]
    if isinstance(sampler.members, EvenMembers) and sampler.members.common is not None:
        # a grid: in every group each level has equally many rows
        first, common = np.zeros(1, dtype=np.int64), sampler.members.common
        return {
            factor.name: len(factor) * float(sets_of.expected(first, np.array([common / len(factor)]))[0])
            for factor in factors
            if len(factor) > 1
        }, True
    looked, weights, rows_of, scale, whole = _sample_groups(sampler, chance, budget)
    which = np.repeat(np.arange(len(looked)), [len(rows) for rows in rows_of])
    rows = np.concatenate(rows_of)
    distinct = {}
    for factor in factors:
        codes = table.codes(factor.name, rows)
        known = codes >= 0
        cells, counts = np.unique(which[known] * len(factor) + codes[known], return_counts=True)
        group = cells // len(factor)
        if len(np.unique(group)) < len(group):  # else it is constant in all of them
            distinct[factor.name] = float(weights[group] @ sets_of.expected(looked[group], counts * scale[group]))
    return distinct, whole


def _sample_groups(sampler: GroupSampler, chance: Reals, budget: int) -> tuple[Rows, Reals, list[Rows], Reals, bool]:
    """Groups by their numbers among the drawable ones, weights, rows, how many rows each stands for; whether all."""
    groups, drawable = sampler.groups, sampler.drawable
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
    for index, number in enumerate(looked.tolist()):
        count = int(sizes[number])
        if count <= most:
            positions = np.arange(count)
        else:  # not evenly spaced ones, which may miss levels that follow the rows
            positions = randint_below(fold(fold(key, number), np.arange(most)), count)
            scale[index] = count / most
        rows.append(groups.take(int(drawable[number]), positions))
    return looked, weights, rows, scale, len(looked) == len(drawable) and bool((scale == 1).all())
