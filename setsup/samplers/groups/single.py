"""One step of sets in few numpy calls, of which each costs more than its arithmetic where so little is drawn.

It is what :class:`~setsup.samplers.groups.plan.StepPlan` draws for a block of one step, where all sets fix the same
factors and no group is smaller than a set: a group for each set, and distinct rows of it. Arrays are flat, slots of one
set after those of another: numbers per set cost less to take for each slot than to broadcast.
"""

import numpy as np

from setsup.arrays import Rows
from setsup.random import fold_integers, leading, mix, spread
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import EvenMembers
from setsup.samplers.groups.within import CROWDED, GROUP, ORDER, PASSES, ROWS, Keys, distinct, word

__all__ = ["SingleStep"]

# made once: a type costs as much as the call that needs it
_ROW, _WORD, _11 = np.dtype(np.int64), np.dtype(np.uint64), np.array(11, dtype=np.uint64)
_UNIT = 2.0**-53
_EXACT = 2**53


class SingleStep:
    """Sets of one step, `sets` of `size` rows each."""

    def __init__(self, sampler: GroupSampler, sets: int, size: int) -> None:
        self._chooser, self._layout = sampler.chooser, sampler.groups.layout
        self._names, self._codes = sampler.groups.names, sampler.keys
        self._shape, self._set = (sets, size), np.repeat(np.arange(sets), size)
        self._start, self._sizes = self._layout.start(sampler.drawable), sampler.groups.sizes[sampler.drawable]
        self._common = int(self._sizes[0]) if (self._sizes == self._sizes[0]).all() else None
        self._crowded = self._sizes.min() < CROWDED * size
        self._numbers = np.arange(sets, dtype=np.uint64)
        rows = word(self._numbers[:, None], ROWS, np.arange(size)).reshape(-1)
        words = [word(self._numbers, GROUP, 0), word(self._numbers, ORDER, 0), rows]
        self._spread, self._words = spread(np.concatenate(words)), rows.tolist()
        self._scale = np.repeat([self._chooser.total, 1, self._common or 1], [sets, sets, sets * size]) * _UNIT

    @classmethod
    def of(cls, sampler: GroupSampler, sets: int, size: int) -> "SingleStep | None":
        """Make one where all rows of a group are equally likely and every group is large enough; None otherwise."""
        sizes = sampler.groups.sizes[sampler.drawable]
        if not isinstance(sampler.members, EvenMembers) or not size <= sizes.min() <= sizes.max() <= _EXACT // sets:
            return None
        return cls(sampler, sets, size)

    def draw(self, key: int) -> Draw:
        """Draw of a step, given its key."""
        sets, size = self._shape
        bits = mix(np.array(key, _WORD), self._spread)
        points = (bits >> _11) * self._scale
        chosen = self._chooser.at(points[:sets])
        groups = chosen.take(self._set)
        start = self._start.take(groups)
        if self._crowded:
            keys = Keys(np.array([key], _WORD), self._numbers, bits[sets : 2 * sets], bits[2 * sets :].reshape(sets, size))
            rows = self._layout.at(start, distinct(keys, self._common or self._sizes[chosen], size).reshape(-1))
        else:
            points = points[2 * sets :]
            positions = (points if self._common else points * self._sizes.take(groups)).astype(_ROW)
            rows = self._layout.at(start, positions)
            ordered = rows.copy()
            ordered.sort()
            if np.count_nonzero(ordered[1:] == ordered[:-1]):  # a third of what any() costs
                rows = self._layout.at(start, self._redraw(key, positions, self._sizes.take(groups)))
        return Draw(rows.reshape(sets, size), dict(zip(self._names, self._codes.take(chosen, 0).T, strict=True)))

    def _redraw(self, key: int, positions: Rows, sizes: Rows) -> Rows:
        """Replace later repeats of each set by fresh positions, as :func:`distinct` does."""
        size, apart = self._shape[1], self._set * sizes.max()
        for turn in range(1, PASSES + 1):
            order = (positions + apart).argsort(kind="stable")
            ordered = (positions + apart)[order]
            again = order[1:][ordered[1:] == ordered[:-1]].tolist()
            if not again or turn == PASSES:
                break
            for place in again:
                bits = fold_integers(key, self._words[place] + (turn << 32))
                positions[place] = int((bits >> 11) * (float(sizes[place]) * _UNIT))
        for number in {place // size for place in again}:
            own = slice(number * size, (number + 1) * size)
            order = fold_integers(key, int(word(number, ORDER, 0)))
            positions[own] = leading(np.array([order], _WORD), int(sizes[own.start]), size)[0]
        return positions
