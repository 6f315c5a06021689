"""Rows of a group without repeats, at a cost proportional to the rows drawn.

A *position* is a place in a group, a *slot* one in a set. Positions are drawn independently and the rare repeats
redrawn, which leaves every ordered choice equally likely: the rule treats all positions alike. A crowded group (fewer
than four rows per slot), and one where repeats remain after eight passes, takes the start of a keyed permutation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.random import fold, leading, mix, randint_below, spread, uniform

__all__ = [
    "CROWDED",
    "Keys",
    "by_weight",
    "distinct",
    "distinct_weighted",
    "order_by_weight",
    "pick_by_weight",
    "share_ends",
    "spread_words",
    "successive",
]

PASSES = 8
CROWDED = 4  # below this many rows per slot, a permutation is cheaper than redrawing

# key words below the step: set · 2⁴⁰ + purpose · 2³² + slot
GROUP, ANCHOR, ORDER, SUBSET, MIX, ROWS = 0, 1, 2, 3, 4, 16  # ROWS + pass for the passes of redrawing


def word(sets: Array | int, purpose: int, slots: Array | int) -> Words:
    """Key words of slots of sets for one purpose, broadcast."""
    high = np.asarray(sets, dtype=np.uint64) << np.uint64(40)
    return (high + np.uint64(purpose << 32)) + np.asarray(slots, dtype=np.uint64)


def spread_words(sets: int, words: int) -> Words:
    """Key words by which the group or the rows of each set of a step are chosen, spread: (sets, words) uint64."""
    return np.asarray(spread(word(np.arange(sets)[:, None], GROUP, np.arange(words))))


class Keys:
    """Key words of draws, step after step and set after set; flattened only where they are needed.

    `steps` (steps,) uint64; `sets` (sets,) uint64; `order` (draws,) uint64, optional; `rows` (draws, slots) uint64,
    optional; `draws` (draws,) int64, optional.
    """

    __slots__ = ("_draws", "_order", "_rows", "_sets", "_steps")

    def __init__(
        self,
        steps: Words,
        sets: Words,
        order: Words | None = None,
        rows: Words | None = None,
        draws: Rows | None = None,
    ) -> None:
        self._steps, self._sets, self._order, self._rows, self._draws = steps, sets, order, rows, draws

    def part(self, draws: Rows) -> "Keys":
        """Keys of some of these draws."""
        which = draws if self._draws is None else self._draws[draws]
        return Keys(self._steps, self._sets, self._order, self._rows, which)

    def bits(self, purpose: int, slots: int) -> Words:
        """(draws, slots) uint64 for one purpose."""
        if purpose == ROWS and self._rows is not None:
            return self._rows[:, :slots] if self._draws is None else self._rows[self._draws, :slots]
        steps, sets = self._flat()
        return mix(steps[:, None], spread(word(sets[:, None], purpose, np.arange(slots, dtype=np.uint64))))

    def order(self) -> Words:
        """(draws,) uint64: key of each draw's permutation."""
        if self._order is not None:
            return self._order if self._draws is None else self._order[self._draws]
        steps, sets = self._flat()
        return fold(steps, word(sets, ORDER, 0))

    def _flat(self) -> tuple[Words, Words]:
        draws = np.arange(len(self._steps) * len(self._sets)) if self._draws is None else self._draws
        return self._steps[draws // len(self._sets)], self._sets[draws % len(self._sets)]


def distinct(keys: Keys, sizes: Rows | int, slots: int) -> Rows:
    """Positions without repeats, uniform over all ordered choices.

    Returns (draws, slots) int64.
    """
    if isinstance(sizes, int):
        if sizes < CROWDED * slots:
            return leading(keys.order(), sizes, slots)
        return _redraw(keys, randint_below(keys.bits(ROWS, slots), sizes), sizes)
    crowded = sizes < CROWDED * slots
    if not crowded.any():
        return _redraw(keys, randint_below(keys.bits(ROWS, slots), sizes[:, None]), sizes)
    if crowded.all():
        return leading(keys.order(), sizes, slots)
    positions = np.empty((len(sizes), slots), dtype=np.int64)
    dense, sparse = np.flatnonzero(crowded), np.flatnonzero(~crowded)
    positions[dense] = leading(keys.part(dense).order(), sizes[dense], slots)
    part = keys.part(sparse)
    positions[sparse] = _redraw(part, randint_below(part.bits(ROWS, slots), sizes[sparse, None]), sizes[sparse])
    return positions


def _redraw(keys: Keys, positions: Rows, sizes: Rows | int) -> Rows:
    """Replace later repeats by fresh positions, pass after pass."""
    slots = positions.shape[1]
    for turn in range(1, PASSES + 1):
        ordered = positions.copy()
        ordered.sort(axis=1)  # half of what np.sort costs for one set
        equal = ordered[:, 1:] == ordered[:, :-1]
        if not np.count_nonzero(equal):  # a third of what any() costs for one set
            return positions
        draws = np.flatnonzero(equal.any(axis=1))
        part, own_sizes = keys.part(draws), sizes if isinstance(sizes, int) else sizes[draws]
        if turn == PASSES:
            positions[draws] = leading(part.order(), own_sizes, slots)
            return positions
        fresh = randint_below(
            part.bits(ROWS + turn, slots), own_sizes if isinstance(own_sizes, int) else own_sizes[:, None]
        )
        positions[draws] = np.where(_repeats(positions[draws]), fresh, positions[draws])
    return positions


def _repeats(positions: Rows) -> Bools:
    """Slots whose position an earlier slot has already."""
    order = np.argsort(positions, axis=1, kind="stable")
    ordered = np.take_along_axis(positions, order, axis=1)
    again = np.zeros(positions.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return again


def distinct_weighted(keys: Keys, ends: Array, weights: Array, start: Rows, sizes: Rows, slots: int) -> Rows:
    """Positions without repeats by successive sampling: each by weight among those that are left.

    `ends` (rows,) float64; `weights` (rows,) float64; `start` (draws,) int64; `sizes` (draws,) int64; returns (draws,
    slots) int64.
    """

    def listed(draw: int) -> tuple[Rows, Array]:
        return np.arange(sizes[draw]), weights[start[draw] : start[draw] + sizes[draw]]

    return successive(keys, slots, lambda bits, draws: by_weight(bits, ends, start[draws], sizes[draws]), listed)


def successive(
    keys: Keys, slots: int, pick: Callable[[Words, Any], Rows], listed: Callable[[int], tuple[Rows, Array]]
) -> Rows:
    """Values without repeats by successive sampling, (draws, slots) int64.

    `pick` gives values by weight, with repeats, from words (some draws, slots) and the numbers of these draws;
    `listed` all values of a draw, ascending, and their weights.
    """
    values_drawn = pick(keys.bits(ROWS, slots), Ellipsis)
    for turn in range(1, PASSES + 1):
        repeated = _repeats(values_drawn)
        draws = np.flatnonzero(repeated.any(axis=1))
        if not len(draws):
            break
        if turn == PASSES:
            for draw in draws.tolist():
                values, own = listed(draw)
                bits = keys.part(np.array([draw])).bits(ROWS + turn, slots)[0]
                values_drawn[draw] = values[_successive(np.searchsorted(values, values_drawn[draw]), own, bits)]
            break
        fresh = pick(keys.part(draws).bits(ROWS + turn, slots), draws)
        values_drawn[draws] = np.where(repeated[draws], fresh, values_drawn[draws])
    return values_drawn


def share_ends(weights: Array, start: Rows, sizes: Rows) -> tuple[Reals, Reals]:
    """Sums of weights of groups of rows, and running sums of the shares that rows have in their group's.

    The shares of a group add up to 1, so that heavy groups cost light ones no digits. `weights` (rows,) float64;
    `start`, `sizes` (groups,), no group empty.
    """
    totals = np.add.reduceat(weights, start) if len(start) else np.zeros(0)
    return totals, np.cumsum(weights / np.repeat(totals, sizes))


def by_weight(bits: Words, ends: Array, start: Rows, sizes: Rows) -> Rows:
    """Positions within groups by weight, with repeats; bits and result are (draws, slots)."""
    before = np.where(start > 0, ends[start - 1], 0.0)[:, None]
    total = ends[start + sizes - 1][:, None] - before
    positions = np.searchsorted(ends, before + uniform(bits) * total, side="right") - start[:, None]
    return np.asarray(np.clip(positions, 0, sizes[:, None] - 1), dtype=np.int64)


def pick_by_weight(bits: Words, ends: Array, start: Rows | int, sizes: Rows | int) -> Rows:
    """One position by weight in a group for each of the bits, with which `start` and `sizes` broadcast."""
    flat = [np.broadcast_to(array, bits.shape).reshape(-1) for array in (start, sizes)]
    return by_weight(bits.reshape(-1, 1), ends, *flat).reshape(bits.shape)


def order_by_weight(keys: Words, weights: Array, start: Rows, sizes: Rows, slots: int) -> Rows:
    """All positions of groups by successive sampling, followed by the first of them.

    `keys` (draws,) uint64; `weights` (rows,) float64; `start` (draws,) int64; `sizes` (draws,) int64, no more than the
    slots; returns (draws, slots) int64. One after the other, for logarithms of exponential times would be the
    platform's.
    """
    most, draw = int(sizes.max()), np.arange(len(sizes))
    position = np.arange(most)
    left = np.where(position < sizes[:, None], weights[np.minimum(start[:, None] + position, len(weights) - 1)], 0.0)
    chance = uniform(fold(keys[:, None], position))
    positions = np.empty((len(sizes), slots), dtype=np.int64)
    for slot in range(most):
        ends = np.cumsum(left, axis=1)
        point = np.minimum(chance[:, slot] * ends[:, -1], np.nextafter(ends[:, -1], 0.0))
        choice = np.minimum((ends <= point[:, None]).sum(axis=1), most - 1)
        left[draw, choice] = 0.0
        positions[:, slot] = choice
    return np.where(np.arange(slots) < sizes[:, None], positions, positions[:, :1])


def _successive(positions: Rows, weights: Array, bits: Words) -> Rows:
    """Replace positions that earlier slots have, slot after slot, by ones from the weights that these leave.

    Only earlier slots count: a later one whose position is taken meanwhile is redrawn in its turn.
    """
    left, result = weights.copy(), positions.copy()
    for slot, position in enumerate(positions.tolist()):
        if left[position] == 0:
            ends = np.cumsum(left)
            position = int(np.searchsorted(ends, uniform(bits[slot]) * ends[-1], side="right"))
            position = position if position < len(left) and left[position] > 0 else int(np.flatnonzero(left)[-1])
            result[slot] = position
        left[position] = 0.0
    return result
