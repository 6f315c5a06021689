"""Rows of a group without repeats, at a cost that follows the rows drawn.

Positions are drawn independently and the rare repeats redrawn, which leaves every ordered choice equally likely: the
rule treats all positions alike. A group that is crowded (fewer than four rows a slot), or where repeats outlast eight
passes, takes the first slots of a keyed permutation instead.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.random import below, fold, leading, mix, spread, uniform

__all__ = ["Keys", "by_weight", "distinct", "distinct_weighted"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

PASSES = 8
_CROWDED = 4  # below this many rows a slot, a permutation is cheaper than redrawing

# key words below the step: set · 2⁴⁰ + purpose · 2³² + slot
GROUP, ANCHOR, ORDER, SUBSET, MIX, ROWS = 0, 1, 2, 3, 4, 16  # ROWS + pass for the passes of redrawing


def word(sets: Array | int, purpose: int, slots: Array | int) -> Words:
    """Key words of slots of sets for one purpose, broadcast."""
    high = np.asarray(sets, dtype=np.uint64) << np.uint64(40)
    return (high + np.uint64(purpose << 32)) + np.asarray(slots, dtype=np.uint64)


class Keys:
    """Key words of draws, step after step and set after set; flattened only where they are needed.

    Parameters
    ----------
    steps : (steps,) uint64
        Folded with the step.
    sets : (sets,) uint64
        Numbers of the sets within a step.
    draws : (draws,) int64, optional
        Some of the steps × sets draws; all of them by default.

    """

    __slots__ = ("_draws", "_sets", "_steps")

    def __init__(self, steps: Words, sets: Words, draws: Rows | None = None) -> None:
        self._steps, self._sets, self._draws = steps, sets, draws

    def part(self, draws: Rows) -> "Keys":
        """Keys of some of these draws."""
        return Keys(self._steps, self._sets, draws if self._draws is None else self._draws[draws])

    def _flat(self) -> tuple[Words, Words]:
        draws = np.arange(len(self._steps) * len(self._sets)) if self._draws is None else self._draws
        return self._steps[draws // len(self._sets)], self._sets[draws % len(self._sets)]

    def bits(self, purpose: int, slots: int) -> Words:
        """(draws, slots) uint64 for one purpose."""
        steps, sets = self._flat()
        return mix(steps[:, None], spread(word(sets[:, None], purpose, np.arange(slots, dtype=np.uint64))))

    def order(self) -> Words:
        """(draws,) uint64: key of each draw's permutation."""
        steps, sets = self._flat()
        return fold(steps, word(sets, ORDER, 0))


def distinct(keys: Keys, sizes: Rows | int, slots: int, first: Words | None = None) -> Rows:
    """Positions without repeats, uniform over all ordered choices.

    Parameters
    ----------
    keys : Keys
        Of the draws.
    sizes : int or (draws,) int64
        Rows to draw from, at least ``slots`` each.
    slots : int
        Positions a draw.
    first : (draws, slots) uint64, optional
        The bits of the first pass, where the caller has them already.

    Returns
    -------
    (draws, slots) int64

    """
    if isinstance(sizes, int):
        if sizes < _CROWDED * slots:
            return leading(keys.order(), sizes, slots)
        return _redrawn(keys, below(keys.bits(ROWS, slots) if first is None else first, sizes), sizes)
    crowded = sizes < _CROWDED * slots
    if not crowded.any():
        return _redrawn(keys, below(keys.bits(ROWS, slots) if first is None else first, sizes[:, None]), sizes)
    if crowded.all():
        return leading(keys.order(), sizes, slots)
    found = np.empty((len(sizes), slots), dtype=np.int64)
    dense, loose = np.flatnonzero(crowded), np.flatnonzero(~crowded)
    found[dense] = leading(keys.part(dense).order(), sizes[dense], slots)
    part = keys.part(loose)
    found[loose] = _redrawn(part, below(part.bits(ROWS, slots), sizes[loose, None]), sizes[loose])
    return found


def _redrawn(keys: Keys, found: Rows, sizes: Rows | int) -> Rows:
    """Replace later repeats by fresh positions, pass after pass."""
    slots = found.shape[1]
    for turn in range(1, PASSES + 1):
        ordered = np.sort(found, axis=1)
        equal = ordered[:, 1:] == ordered[:, :-1]
        if not equal.any():
            return found
        draws = np.flatnonzero(equal.any(axis=1))
        part, some = keys.part(draws), sizes if isinstance(sizes, int) else sizes[draws]
        if turn == PASSES:
            found[draws] = leading(part.order(), some, slots)
            return found
        fresh = below(part.bits(ROWS + turn, slots), some if isinstance(some, int) else some[:, None])
        found[draws] = np.where(_repeats(found[draws]), fresh, found[draws])
    return found


def _repeats(found: Rows) -> npt.NDArray[np.bool_]:
    """Slots whose position an earlier slot has already."""
    order = np.argsort(found, axis=1, kind="stable")
    ordered = np.take_along_axis(found, order, axis=1)
    again = np.zeros(found.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return again


def distinct_weighted(keys: Keys, ends: Array, start: Rows, sizes: Rows, slots: int) -> Rows:
    """Positions without repeats by successive sampling: each by weight among those that are left.

    Parameters
    ----------
    keys : Keys
        Of the draws.
    ends : (rows,) float64
        Running sum of the positive weights, group after group.
    start : (draws,) int64
        Where each draw's group begins in ``ends``.
    sizes : (draws,) int64
        Rows of the group, at least ``slots``.
    slots : int
        Positions a draw.

    Returns
    -------
    (draws, slots) int64
        As a set, the first distinct values of an endless weighted sequence.

    """
    found = by_weight(keys.bits(ROWS, slots), ends, start, sizes)
    for turn in range(1, PASSES + 1):
        repeated = _repeats(found)
        draws = np.flatnonzero(repeated.any(axis=1))
        if not len(draws):
            break
        if turn == PASSES:
            for draw in draws:
                prior = ends[start[draw] - 1] if start[draw] else 0.0
                weights = np.diff(ends[start[draw] : start[draw] + sizes[draw]], prepend=prior)
                bits = keys.part(np.array([draw])).bits(ROWS + turn, slots)[0]
                found[draw] = _successive(found[draw], repeated[draw], weights, bits)
            break
        fresh = by_weight(keys.part(draws).bits(ROWS + turn, slots), ends, start[draws], sizes[draws])
        found[draws] = np.where(repeated[draws], fresh, found[draws])
    return found


def by_weight(bits: Words, ends: Array, start: Rows, sizes: Rows) -> Rows:
    """Positions within groups by weight, with repeats; bits and result are (draws, slots)."""
    before = np.where(start > 0, ends[start - 1], 0.0)[:, None]
    total = ends[start + sizes - 1][:, None] - before
    found = np.searchsorted(ends, before + uniform(bits) * total, side="right") - start[:, None]
    return np.asarray(np.clip(found, 0, sizes[:, None] - 1), dtype=np.int64)


def _successive(found: Rows, repeated: npt.NDArray[np.bool_], weights: Array, bits: Words) -> Rows:
    """Fill the repeated slots one by one from the weights that are left."""
    left = weights.copy()
    left[found[~repeated]] = 0.0
    filled = found.copy()
    for slot in np.flatnonzero(repeated):
        ends = np.cumsum(left)
        place = int(np.searchsorted(ends, uniform(bits[slot]) * ends[-1], side="right"))
        free = np.flatnonzero(left)
        place = place if place < len(left) and left[place] > 0 else int(free[-1])
        filled[slot] = place
        left[place] = 0.0
    return filled
