"""How rows of a chosen group are drawn: uniformly or by weight, with a policy for small groups."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.checks import check_choice, check_memory
from setsup.errors import SamplerError, abbreviate, advice
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.random import permute, randint_below, uniform
from setsup.samplers.groups.within import (
    CROWDED,
    ROWS,
    Keys,
    by_weight,
    distinct,
    distinct_weighted,
    order_by_weight,
    share_ends,
)
from setsup.samplers.spelling import spell, spell_name

__all__ = [
    "REFUSALS",
    "SMALL",
    "EvenMembers",
    "GroupMembers",
    "WeightedMembers",
    "check_refusal",
    "check_small",
    "drawable_groups",
]

SMALL = ("error", "drop", "short", "replace")
REFUSALS = ("error", "drop")  # where a smaller group cannot be drawn from, whatever else is done


class GroupMembers(Protocol):
    """Rows of groups, drawn from one distribution."""

    sizes: Rows
    """(groups,) int64: rows that a draw from each group can have without repeats."""

    totals: Array
    """(groups,) int64 or float64: by what groups are chosen with ``choose="rows"``."""

    def crowded(self, slots: int) -> bool:
        """Whether every draw of so many rows needs a permutation, and no bits for rows."""

    def draw(self, keys: Keys, groups: Rows, slots: int, on_small_group: str) -> tuple[Rows, Bools | None]:
        """Rows (draws, slots) of the given groups (draws,), and which slots count (None: all)."""

    def unreachable(self, drawable: Rows) -> int:
        """Known rows that are never drawn, where these groups are."""


class EvenMembers:
    """Every row of a group is equally likely.

    Attributes
    ----------
    common : int or None
        Rows of every group where all are alike, as in a grid.

    """

    def __init__(self, groups: Groups) -> None:
        self.sizes = self.totals = sizes = groups.sizes
        self._groups = groups
        self.common = int(sizes[0]) if len(sizes) and sizes.strides == (0,) else None

    def crowded(self, slots: int) -> bool:
        """Whether every draw of so many rows needs a permutation, and no bits for rows."""
        return self.common is not None and slots <= self.common < CROWDED * slots

    def draw(self, keys: Keys, groups: Rows, slots: int, on_small_group: str) -> tuple[Rows, Bools | None]:
        """Rows (draws, slots) of the given groups, and which slots count."""
        if self.common is not None and self.common >= slots:
            positions, mask = distinct(keys, self.common, slots), None
        else:
            positions, mask = fill_evenly(self.sizes[groups], slots, on_small_group, keys)
        return self._groups.take(groups[:, None], positions), mask

    def unreachable(self, drawable: Rows) -> int:
        """Rows of groups that are not drawn."""
        return self._groups.rows - int(self.sizes[drawable].sum())


class WeightedMembers:
    """Rows of a group by weight; without repeats by successive sampling.

    `weights` (rows of the table,) float64.
    """

    def __init__(self, groups: Groups, weights: Reals) -> None:
        self.sizes = groups.sizes
        self._groups = groups
        self._start = np.cumsum(groups.sizes) - groups.sizes
        which = np.repeat(np.arange(len(groups)), groups.sizes)
        rows = groups.take(which, np.arange(groups.rows) - np.repeat(self._start, groups.sizes))
        self._weights = weights[rows]
        self.totals, self._ends = share_ends(self._weights, self._start, groups.sizes)
        # both ways, for what is left without a heavy group is no difference of large sums
        self._until = np.cumsum(self.totals)
        self._after = np.cumsum(self.totals[::-1])[::-1]

    def crowded(self, slots: int) -> bool:
        """Never: weighted draws begin with bits for every row."""
        return False

    def draw(self, keys: Keys, groups: Rows, slots: int, on_small_group: str) -> tuple[Rows, Bools | None]:
        """Rows (draws, slots) of the given groups, and which slots count."""
        start, sizes = self._start[groups], self.sizes[groups]
        positions, mask = fill(
            sizes,
            slots,
            on_small_group,
            keys,
            lambda part, draws: distinct_weighted(part, self._ends, self._weights, start[draws], sizes[draws], slots),
            lambda part, draws: by_weight(part.bits(ROWS, slots), self._ends, start[draws], sizes[draws]),
            lambda part, draws: order_by_weight(part.order(), self._weights, start[draws], sizes[draws], slots),
        )
        return self._groups.take(groups[:, None], positions), mask

    def unreachable(self, drawable: Rows) -> int:
        """Rows of groups that are not drawn."""
        return self._groups.rows - int(self.sizes[drawable].sum())

    def shares(self, group: int) -> Reals:
        """Weights of the rows of a group, in their order, as shares of its total."""
        start = int(self._start[group])
        return np.asarray(self._weights[start : start + int(self.sizes[group])] / self.totals[group])

    def weight(self, groups: Rows, positions: Rows) -> Reals:
        """Weights of rows at positions of groups."""
        return np.asarray(self._weights[self._start[groups] + positions])

    def other_group(self, bits: Words, groups: Rows) -> Rows:
        """Another group than the given one, by total weight; of the shape of the bits."""
        last = len(self.totals) - 1
        before = np.where(groups > 0, self._until[groups - 1], 0.0)
        after = np.where(groups < last, self._after[np.minimum(groups + 1, last)], 0.0)
        point = uniform(bits) * (before + after)
        low = np.searchsorted(self._until, point, side="right")
        # of what comes after the group, the distance from the end decides
        high = last - np.searchsorted(self._after[::-1], before + after - point, side="left")
        return np.asarray(np.where(point < before, np.minimum(low, groups - 1), np.clip(high, groups + 1, last)))

    def pick(self, bits: Words, groups: Rows) -> Rows:
        """A row of each of the given groups by weight; of the shape of the bits."""
        flat = groups.reshape(-1)
        positions = by_weight(bits.reshape(-1, 1), self._ends, self._start[flat], self.sizes[flat])
        return self._groups.take(flat[:, None], positions).reshape(bits.shape)


Drawn = Callable[[Keys, Any], Rows]


def fill(
    sizes: Rows,
    slots: int,
    on_small_group: str,
    keys: Keys,
    draw_distinct: Drawn,
    draw_with_repeats: Drawn,
    draw_in_order: Drawn | None = None,
) -> tuple[Rows, Bools | None]:
    """Positions for groups of which some have fewer rows than slots.

    ``draw_in_order`` gives all positions of small groups in their order, a uniform one by default.

    `sizes` (draws,) int64; returns `positions` (draws, slots) int64; returns `mask` (draws, slots) bool or None.
    """
    few = sizes < slots
    if not few.any():
        return draw_distinct(keys, Ellipsis), None
    scarce, ample = np.flatnonzero(few), np.flatnonzero(~few)
    positions = np.empty((len(sizes), slots), dtype=np.int64)
    if len(ample):
        positions[ample] = draw_distinct(keys.part(ample), ample)
    part = keys.part(scarce)
    if on_small_group == "replace":
        positions[scarce] = draw_with_repeats(part, scarce)
        return positions, None
    slot = np.arange(slots)
    counts = slot < sizes[scarce, None]
    if draw_in_order is None:
        positions[scarce] = permute(part.order(), sizes[scarce], np.where(counts, slot, 0))
    else:
        positions[scarce] = draw_in_order(part, scarce)
    mask = np.ones(positions.shape, dtype=bool)
    mask[scarce] = counts
    return positions, mask


def fill_evenly(sizes: Rows, slots: int, on_small_group: str, keys: Keys, more: int = 0) -> tuple[Rows, Bools | None]:
    """Uniform positions as of :func:`fill`; with replacement, ``more`` positions than a group has."""
    return fill(
        sizes,
        slots,
        on_small_group,
        keys,
        lambda part, draws: distinct(part, sizes[draws], slots),
        lambda part, draws: randint_below(part.bits(ROWS, slots), sizes[draws][:, None] + more),
    )


def check_small(on_small_group: str) -> str:
    """The policy for small groups, if there is one of that name; SamplerError otherwise."""
    return check_choice(on_small_group, SMALL, spell_name("on_small_group"), SamplerError)


def check_refusal(on_small_group: str, why: str = "") -> None:
    """Refuse a policy for small groups that draws from them; ``why`` says what they lack."""
    if not isinstance(on_small_group, str) or on_small_group not in REFUSALS:
        reason = f", because {why}" if why else ""
        name = spell_name("on_small_group")
        raise SamplerError(f"{name} must be 'error' or 'drop', not {abbreviate(on_small_group)}{reason}")


def drawable_groups(
    table: FactorTable,
    groups: Groups,
    sizes: Rows,
    need: int,
    on_small_group: str,
    nearby: str = "",
    policies: Sequence[str] = SMALL,
) -> Rows:
    """Numbers of the groups that may be chosen.

    ``nearby`` says what else limits their ``sizes``, ``policies`` which ``on_small_group`` an error may offer.
    """
    names = ", ".join(groups.names) or "nothing"
    if not len(groups):
        filters = advice("where= and weights=", "--where and --weights")
        if groups.excluded and not groups.unknown:
            raise SamplerError(
                f"{filters} leave none of the {groups.excluded:,} rows for groups of {names}; draw from more rows"
            )
        raise SamplerError(
            f"no groups of {names} found: {groups.unknown:,} rows have unknown values, and {filters} exclude "
            f"{groups.excluded:,}; draw from more rows"
        )
    check_memory(9 * len(groups), f"a sampler of {len(groups):,} groups of {names}", "the factors", SamplerError)
    few = sizes < need
    if on_small_group in ("short", "replace"):
        return np.flatnonzero(sizes > 0)
    if few.any() and (on_small_group == "error" or few.all()):
        smallest = np.argsort(sizes, kind="stable")[:5]
        examples = "; ".join(f"{groups.describe(table, int(g))}: {sizes[g]}" for g in smallest)
        fewer = ", fix fewer factors" if len(groups.names) > 1 else ""  # without the last one, nothing would be fixed
        short, again = spell(on_small_group="short"), spell(on_small_group="replace")
        if nearby:
            fix = f"widen the tolerance or lower {spell_name('size')}"
        elif "short" not in policies:
            fix = f"pass {spell(on_small_group='drop')} to leave them out"
            if few.all():
                fix = "choose fewer factors" if fewer else "choose another factor"
        elif few.all():
            fix = f"lower {spell_name('size')}{fewer}, or pass {short} or {again}"
        else:
            drop = spell(on_small_group="drop")
            fix = f"lower {spell_name('size')}, or pass {drop} to leave them out, {short} or {again}"
        raise SamplerError(
            f"{int(few.sum()):,} of {len(groups):,} groups of {names} have fewer than the {need} rows{nearby} that a "
            f"draw requires (smallest: {examples}); {fix}"
        )
    return np.flatnonzero(~few)
