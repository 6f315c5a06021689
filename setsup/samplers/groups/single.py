"""One step of sets in few numpy calls, of which each costs more than its arithmetic where so little is drawn.

It is what :class:`~setsup.samplers.groups.plan.StepPlan` draws for a block of one step, where all sets fix the same
factors and no group is smaller than a set: a group for each set, and distinct rows of it. Arrays are flat, set after
set: to look a number of each set up for all its slots costs less than to broadcast it.
"""

import numpy as np

from setsup.arrays import Reals, Rows
from setsup.random import fold_integers, leading, mix, spread
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import EvenMembers
from setsup.samplers.groups.within import CROWDED, GROUP, ORDER, PASSES, ROWS, Keys, distinct, word

__all__ = ["SingleStep"]

# made once: np.int64 in place of its dtype costs as much as the call that it is for
_ROW, _WORD, _11 = np.dtype(np.int64), np.dtype(np.uint64), np.array(11, dtype=np.uint64)
_UNIT, _EXACT = 2.0**-53, 2**53


class SingleStep:
    """Sets of one step, `sets` of `size` rows each."""

    def __init__(self, sampler: GroupSampler, sets: int, size: int) -> None:
        self._chooser, self._codes, self._layout = sampler.chooser, sampler.keys, sampler.groups.layout
        self._columns = list(enumerate(sampler.groups.names))
        self._start = self._layout.start(sampler.drawable)
        # as doubles, which their products with fractions need
        self._sizes = sampler.groups.sizes[sampler.drawable].astype(np.float64)
        self._common = int(self._sizes[0]) if (self._sizes == self._sizes[0]).all() else None
        self._crowded = bool(self._sizes.min() < CROWDED * size)
        self._shape, self._numbers, count = (sets, size), np.arange(sets, dtype=np.uint64), sets * size
        rows = word(self._numbers[:, None], ROWS, np.arange(size)).reshape(-1)
        words = [word(self._numbers, GROUP, 0), rows, word(self._numbers, ORDER, 0)]
        self._spread, self._words = spread(np.concatenate(words)), rows.tolist()
        self._scale = np.repeat([self._chooser.total, self._common or 1, 1], [sets, count, sets]) * _UNIT
        self._set = np.repeat(np.arange(sets), size)
        self._labels = self._set * (int(self._sizes.max()) * count) + np.arange(count)

    @classmethod
    def of(cls, sampler: GroupSampler, sets: int, size: int) -> "SingleStep | None":
        """Make one where all rows of a group are equally likely and every group is large enough; None otherwise."""
        sizes = sampler.groups.sizes[sampler.drawable]
        if not isinstance(sampler.members, EvenMembers) or sizes.min() < size:
            return None
        # beyond, positions would not be products of doubles, or labels no integers of 64 bits
        return cls(sampler, sets, size) if int(sizes.max()) * (sets * size) ** 2 <= _EXACT else None

    def draw(self, key: int) -> Draw:
        """Draw of a step, given its key."""
        sets, size = self._shape
        bits = mix(key, self._spread)
        points = (bits >> _11) * self._scale
        chosen = self._chooser.at(points[:sets])
        groups = chosen.take(self._set)
        start = self._start.take(groups)
        if self._crowded:
            keys = Keys(np.array([key], _WORD), self._numbers, bits[-sets:], bits[sets:-sets].reshape(sets, size))
            sizes = self._common or self._sizes[chosen].astype(_ROW)
            rows = self._layout.at(start, distinct(keys, sizes, size).reshape(-1))
        else:
            points = points[sets:-sets]
            positions = (points if self._common else points * self._sizes.take(groups)).astype(_ROW)
            rows = self._layout.at(start, positions)
            ordered = rows.copy()
            ordered.sort()
            if np.count_nonzero(ordered[1:] == ordered[:-1]):  # a third of what any() costs
                rows = self._layout.at(start, self._redraw(key, positions, self._sizes.take(groups)))
        codes = self._codes.take(chosen, 0)
        return Draw(rows.reshape(sets, size), {name: codes[:, column] for column, name in self._columns})

    def _redraw(self, key: int, positions: Rows, sizes: Reals) -> Rows:
        """Replace later repeats of each set by fresh positions, as :func:`distinct` does."""
        count, size = len(positions), self._shape[1]
        for turn in range(1, PASSES + 1):
            labels = positions * count + self._labels  # of set, position and slot
            labels.sort()
            set_positions = labels // count
            again = (labels[1:][set_positions[1:] == set_positions[:-1]] % count).tolist()
            if not again or turn == PASSES:
                break
            for slot in again:
                bits = fold_integers(key, self._words[slot] + (turn << 32))
                positions[slot] = int((bits >> 11) * (float(sizes[slot]) * _UNIT))
        for number in {slot // size for slot in again}:
            own = slice(number * size, (number + 1) * size)
            order = fold_integers(key, int(word(number, ORDER, 0)))
            positions[own] = leading(np.array([order], _WORD), int(sizes[own.start]), size)[0]
        return positions
