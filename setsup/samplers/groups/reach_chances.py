"""Chances of groups and rows to be drawn, over all seeds."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from setsup.arrays import Reals, Rows
from setsup.factors.table import FactorTable
from setsup.samplers.coverage import ReachedGroups, Reason, SetReach
from setsup.samplers.groups.anchored import AnchoredMembers
from setsup.samplers.groups.combinations import log_combinations
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import WeightedMembers
from setsup.samplers.groups.window import WindowMembers

__all__ = [
    "at_least_one",
    "dealt_reach",
    "inclusion",
    "inclusion_of_some",
    "is_estimated",
    "reached_groups",
    "set_reach",
]

_EXACT = 2  # rows of a set up to which successive sampling by weight is counted exactly
_FEW = 16  # numbers of rows, of which all are looked at


def at_least_one(chance: Reals, times: int) -> Reals:
    """Chance of at least one success in so many independent trials."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(times * np.log1p(-np.minimum(chance, 1.0))))


def is_estimated(sampler: GroupSampler, size: int) -> bool:
    """Whether chances of rows in sets of so many are an approximation."""
    weighted = isinstance(sampler.members, WeightedMembers) and size > _EXACT
    return weighted and bool((sampler.members.sizes[sampler.drawable] > size).any())


def reached_groups(
    table: FactorTable,
    sampler: GroupSampler,
    sets: Sequence[int],
    chance: Reals,
    *,
    estimated: bool = False,
    others: Sequence[tuple[Reason, Rows]] = (),
    option: str | None = None,
) -> ReachedGroups:
    """Groups of a sampler with the chance of each drawable one, and the reason why others are never drawn.

    `chance` (drawable,); `others`: reasons other than their size, with the groups that each is about; `option`: what
    reaches groups that are too small, where that is not one of the policies for them.
    """
    groups, members = sampler.groups, sampler.members
    whole = np.zeros(len(groups))
    whole[sampler.drawable] = chance
    reasons: list[Reason] = []
    if isinstance(members, AnchoredMembers):
        reasons.append(Reason("none of its rows has enough other rows that satisfy the constraint", "lower size"))
    elif isinstance(members, WindowMembers):
        text = f"no row has the {sampler.need} rows of a set within the tolerance of {members.name}"
        reasons.append(
            Reason(text, "widen tolerance=, lower size, or pass on_small_group='short' or on_small_group='replace'")
        )
    else:
        option = option or "lower size, or pass on_small_group='short' or on_small_group='replace'"
        reasons.append(Reason(f"it has fewer than the {sampler.need} rows that are drawn from it", option))
    which = np.zeros(len(groups), dtype=np.int8)
    for number, (reason, numbers) in enumerate(others, 1):
        reasons.append(reason)
        which[numbers] = number
    which[sampler.drawable] = -1
    if isinstance(members, WindowMembers):
        reasons.append(Reason("no anchor of its group is within the tolerance", "widen tolerance=, or lower size"))
    elif isinstance(members, AnchoredMembers):
        reasons.append(
            Reason("it is not an anchor, and satisfies the constraint with none", "lower size, or relax members=")
        )
    unreached = max(members.unreachable(sampler.drawable) - int(groups.sizes[which >= 0].sum()), 0)
    return ReachedGroups(
        sampler.describe(), tuple(sets), groups, whole, tuple(reasons), which, estimated, unreached, sampler.names
    )


def set_reach(
    table: FactorTable,
    sampler: GroupSampler,
    sets: Sequence[int],
    size: int,
    chance: Reals,
    *,
    together: bool = False,
    full: int | None = None,
) -> SetReach:
    """Chance of rows in sets of so many rows, given that of each drawable group.

    `full`: rows that a draw has at other steps, where those beyond ``size`` are masked.
    """
    full = size if full is None else full
    of_rows = _of_rows(table, sampler, chance, _inside(sampler, size, full))
    repeats = sampler.on_small_group == "replace" and not isinstance(sampler.members, WindowMembers | AnchoredMembers)
    thin = None
    if repeats and not together:
        slots = np.arange(full) < size

        def thin(rows: Rows, keep_probs: Sequence[float]) -> Reals:
            return _of_rows(table, sampler, chance, _at_slots(sampler, np.where(slots, keep_probs[0], 0.0)))(rows)

    return SetReach(tuple(sets), of_rows, together, thin)


def dealt_reach(
    table: FactorTable, sampler: GroupSampler, sets: Sequence[int], dealt: Sequence[Rows], full: int, chance: Reals
) -> SetReach:
    """Chance of rows in sets that share one group, given that of each drawable group.

    `dealt`: for each set, which of the ``full`` rows that are drawn from the group it has.
    """
    positions = np.concatenate(list(dealt))
    if isinstance(sampler.members, WindowMembers | AnchoredMembers):
        return set_reach(table, sampler, sets, len(positions), chance, together=True, full=full)

    def thin(rows: Rows, keep_probs: Sequence[float]) -> Reals:
        slots = np.zeros(full)
        slots[positions] = np.repeat(keep_probs, [len(of_set) for of_set in dealt])
        return _of_rows(table, sampler, chance, _at_slots(sampler, slots))(rows)

    draws_distinct = sampler.on_small_group != "replace" or bool(
        (sampler.members.sizes[sampler.drawable] >= full).any()
    )
    estimated = isinstance(sampler.members, WeightedMembers) and full > _EXACT and draws_distinct
    return SetReach(tuple(sets), lambda rows: thin(rows, [1.0] * len(dealt)), True, thin, estimated)


Inside = Callable[[Rows, Rows, Rows], Reals]
"""Chance of rows in a set of their group, by groups, positions in them, and row numbers."""


def _of_rows(table: FactorTable, sampler: GroupSampler, chance: Reals, inside: Inside) -> Callable[[Rows], Reals]:
    """Chance of rows, by that of the drawable groups, and of rows in a set of their group."""
    whole = np.zeros(len(sampler.groups))
    whole[sampler.drawable] = chance

    def of_rows(rows: Rows) -> Reals:
        groups, positions = sampler.groups.find(table, rows)
        is_member = positions >= 0
        chances = np.zeros(len(rows))
        chances[is_member] = whole[groups[is_member]] * inside(groups[is_member], positions[is_member], rows[is_member])
        return chances

    return of_rows


def _inside(sampler: GroupSampler, size: int, full: int) -> Inside:
    members = sampler.members
    if isinstance(members, AnchoredMembers):
        reached = members.reached()
        if reached is None:
            return lambda groups, positions, rows: np.full(len(rows), np.nan)
        return lambda groups, positions, rows: np.where(reached[rows], np.nan, 0.0)
    if isinstance(members, WindowMembers):
        known_rows, shares = members.chances(size, full, sampler.on_small_group, sampler.drawable)
        return lambda groups, positions, rows: shares[np.searchsorted(known_rows, rows)]
    return _at_slots(sampler, (np.arange(full) < size).astype(np.float64))


def _at_slots(sampler: GroupSampler, keep_probs: Reals) -> Inside:
    """Chance of rows at any slot of a draw from their group, each of which counts with a probability.

    `keep_probs` (slots,) float64
    """
    members, full, replaces = sampler.members, len(keep_probs), sampler.on_small_group == "replace"
    if isinstance(members, WeightedMembers):
        cache: dict[int, Reals] = {}

        def by_weight(groups: Rows, positions: Rows, rows: Rows) -> Reals:
            chances = np.empty(len(groups))
            for group in np.unique(groups).tolist():
                if group not in cache:
                    shares = members.shares(group)
                    repeats = replaces and len(shares) < full
                    cache[group] = (
                        _inclusion_with_repeats(shares, keep_probs)
                        if repeats
                        else _inclusion_in_order(shares, keep_probs)
                    )
                in_group = groups == group
                chances[in_group] = cache[group][positions[in_group]]
            return chances

        return by_weight

    def evenly(groups: Rows, positions: Rows, rows: Rows) -> Reals:
        sizes = sampler.groups.sizes[groups]
        # a small group fills the first slots
        sums = np.concatenate([[0.0], np.cumsum(keep_probs)])
        even = np.minimum(sums[np.minimum(sizes, full)] / sizes, 1.0)
        few = sizes < full
        if not replaces or not few.any():
            return even
        even[few] = _inclusion_with_repeats(1 / sizes[few], keep_probs)
        return even

    return evenly


def _inclusion_with_repeats(shares: Reals, keep_probs: Reals) -> Reals:
    """Chance of rows at any slot, each filled by weight independently of the others."""
    missed = np.zeros(len(shares))
    with np.errstate(divide="ignore"):
        for value, count in zip(*np.unique(keep_probs[keep_probs > 0], return_counts=True), strict=True):
            missed += count * np.log1p(-np.minimum(value * shares, 1.0))
    return np.asarray(-np.expm1(missed))


def _inclusion_in_order(shares: Reals, keep_probs: Reals) -> Reals:
    """Chance of rows at any slot, filled one after the other by weight without repeats."""
    # a row is at slot j by the difference of its chances to be among the first j + 1 and the first j
    steps = keep_probs - np.append(keep_probs[1:], 0.0)
    chances = np.zeros(len(shares))
    for last in np.flatnonzero(steps).tolist():
        chances += steps[last] * inclusion(shares, last + 1)
    return chances


def inclusion(shares: Reals, size: int) -> Reals:
    """Chance of each row to be among so many drawn by weight without repeats, (rows,) float64.

    Exact for one and two rows, and for all; else Rosén's approximation [1]_ of successive sampling, 1 − exp(−λ·share)
    with the λ for which the chances add up to ``size``.

    `shares` (rows,) float64, positive, with sum 1.

    References
    ----------
    .. [1] B. Rosén, "Asymptotic theory for successive sampling with varying probabilities without replacement, I",
       Annals of Mathematical Statistics 43 (1972).

    """
    if size in (0, len(shares)) or size > len(shares):
        return np.full(len(shares), float(size > 0))
    if size == 1:
        return shares
    if size == _EXACT:
        first = shares / (1 - shares)
        return np.asarray(shares + shares * (first.sum() - first))
    low, high = 0.0, 1.0
    while -np.expm1(-high * shares).sum() < size:
        high *= 2
        if not math.isfinite(high):
            return np.ones(len(shares))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if -np.expm1(-middle * shares).sum() < size else (low, middle)
    return np.asarray(-np.expm1(-high * shares))


def inclusion_of_some(shares: Reals, most: int, p: float) -> Reals:
    """Chance of each row to be drawn by weight without repeats, where a binomial number of at most so many are."""
    if p in (0, 1):
        return inclusion(shares, most) if p else np.zeros(len(shares))
    # numbers that are far from likely ones are left out, and of very many, some are looked at, evenly spaced
    spread = 8 * math.sqrt(most * p * (1 - p)) + _FEW
    numbers = np.arange(max(math.floor(most * p - spread), 0), min(math.ceil(most * p + spread), most) + 1)
    numbers = numbers[:: -(-len(numbers) // (4 * _FEW))]
    logs = log_combinations(np.full(len(numbers), most), numbers)
    logs += numbers * math.log(p) + (most - numbers) * math.log1p(-p)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    return np.asarray(
        sum(chance * inclusion(shares, number) for number, chance in zip(numbers.tolist(), chances, strict=True))
    )
