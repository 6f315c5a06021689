"""One step of sets in few numpy calls, of which each costs more than its arithmetic where so little is drawn.

It is what :class:`~setsup.samplers.groups.plan.StepPlan` draws for a block of one step, where all sets fix the same
factors and no group is smaller than a set: a group for each set, and distinct rows of it.
"""

from collections.abc import Sequence

import numpy as np

from setsup.arrays import Words
from setsup.random import mix, spread
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import EvenMembers
from setsup.samplers.groups.within import CROWDED, GROUP, ORDER, ROWS, Keys, distinct, word

__all__ = ["SingleStep"]


class SingleStep:
    """Sets of one step, `sets` of `size` rows each; ``names`` are the factors to report."""

    def __init__(self, sampler: GroupSampler, sets: int, size: int, names: Sequence[str]) -> None:
        self._sampler, self._size, self._sizes = sampler, size, sampler.groups.sizes
        self._numbers = np.arange(sets, dtype=np.uint64)
        number, even = self._numbers[:, None], self._sizes[sampler.drawable]
        self._common = int(even[0]) if (even == even[0]).all() else None
        crowded = self._common is not None and self._common < CROWDED * size
        words = [word(number, GROUP, 0), word(number, ORDER, 0), word(number, ROWS, np.arange(0 if crowded else size))]
        self._spread, self._crowded = spread(np.concatenate(words, axis=1)), crowded
        self._places = [(name, sampler.groups.names.index(name)) for name in names]

    @classmethod
    def of(cls, sampler: GroupSampler, sets: int, size: int, names: Sequence[str]) -> "SingleStep | None":
        """Make one where all rows of a group are equally likely and every group is large enough; None otherwise."""
        if not isinstance(sampler.members, EvenMembers) or sampler.groups.sizes[sampler.drawable].min() < size:
            return None
        return cls(sampler, sets, size, names)

    def draw(self, key: Words) -> Draw:
        """Draw of a step, given its key."""
        bits = mix(key, self._spread)
        chosen = self._sampler.chooser.pick(bits[:, 0])
        groups = self._sampler.number(chosen)
        keys = Keys(key.reshape(1), self._numbers, bits[:, 1], None if self._crowded else bits[:, 2:])
        positions = distinct(keys, self._sizes[groups] if self._common is None else self._common, self._size)
        codes = self._sampler.keys[chosen]
        rows = self._sampler.groups.layout.take(groups[:, None], positions)
        return Draw(rows, {name: codes[:, place] for name, place in self._places})
