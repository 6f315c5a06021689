"""Groups for the sets of a step of which no two are the same: each by the one distribution among those not yet taken.

The cost grows with the sets as that of sorting them does. Where all groups are alike, a set's word is the rank of its
group among those that are left, and ranks become numbers two halves at a time. Otherwise one set follows the other,
for all steps at once, and what is taken is kept in a few sorted runs, so that no set looks at all those before it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows, Words
from setsup.random import below_few, uniform

__all__ = ["Different"]

_NONE = np.iinfo(np.int64).max  # number of nothing, behind all others
_ENDS = np.array([0, 1])
_FEW = 32  # elements that are compared one by one, and runs that are joined whatever the other's length
_PAIRS = 1 << 13


@dataclass(frozen=True, slots=True)
class Different:
    """Sequential choice without repeats.

    `edges` (groups + 1,) float64, optional.
    """

    firsts: list[Rows]
    edges: Array | None = None

    def pick(self, bits: Words) -> Rows:
        """Pairwise different groups.

        `bits` (steps, sets, words) uint64; returns (steps, sets) int64.
        """
        if self.edges is not None:
            return _by_rows(bits[:, :, 0], self.edges)
        if len(self.firsts) == 1:
            return _numbers(below_few(bits[:, :, 0], self.firsts[0][-1] - np.arange(bits.shape[1])))
        return self._descend(bits)

    def _descend(self, bits: Words) -> Rows:
        steps, sets, _ = bits.shape
        taken, groups = [_Taken() for _ in self.firsts], np.empty((steps, sets), dtype=np.int64)
        for set_index in range(sets):
            node, path = np.zeros(steps, dtype=np.int64), []
            for depth, (first, taken_nodes) in enumerate(zip(self.firsts, taken, strict=True)):
                ends = first[node[:, None] + _ENDS]
                ends -= taken_nodes.length_before(ends)
                left = ends[:, 1] - ends[:, 0]
                node = taken_nodes.find(ends[:, 0] + below_few(bits[:, set_index, depth], left))
                path.append((node, left == 1))
            groups[:, set_index] = node
            if set_index == sets - 1:
                break  # nothing comes after it
            used_up = np.ones(steps, dtype=bool)  # a group is, and a node is with its last child
            for taken_nodes, (node, last) in zip(reversed(taken), reversed(path), strict=True):
                if not used_up.any():
                    break
                taken_nodes.take(np.where(used_up, node, _NONE))
                used_up &= last
        return groups


def _by_rows(bits: Words, edges: Array) -> Rows:
    taken, groups = _Taken(), np.empty(bits.shape, dtype=np.int64)
    count, left = len(edges) - 1, np.full(len(bits), edges[-1])
    for set_index in range(bits.shape[1]):
        point = taken.find(uniform(bits[:, set_index]) * left)
        group = np.minimum(np.searchsorted(edges, point, side="right") - 1, count - 1)
        # rounding may leave a point on the edge of a taken group: step to the next free one
        while (clash := (groups[:, :set_index] == group[:, None]).any(axis=1)).any():
            group = np.where(clash, (group + 1) % count, group)
        begin = edges[group]
        size = edges[group + 1] - begin
        taken.take(group, begin, size)
        left -= size
        groups[:, set_index] = group
    return groups


def _numbers(ranks: Rows) -> Rows:
    """Numbers (steps, sets): each is the rank-th, from 0, of those that no earlier one of its step has."""
    steps, sets = ranks.shape
    numbers = np.zeros((steps, 1 << (sets - 1).bit_length()), dtype=np.int64)
    numbers[:, :sets] = ranks
    width = 1
    while width < sets:  # the first half of each stretch is right; the second passes over what the first has
        halves = numbers.reshape(-1, 2, width)
        halves[:, 1] += _count(np.sort(halves[:, 0], axis=1) - np.arange(width), halves[:, 1])
        width *= 2
    return numbers[:, :sets]


class _Taken:
    """Stretches of a line that are taken, one more in each step at a time, for many steps at once."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[_Run] = []  # each at least as long as the next, save short ones

    def find(self, point: Array) -> Array:
        """Position on the whole line of points (steps,) of what is left of it."""
        for run in reversed(self._runs):
            point = point + run.length_of(_count(run.left, point[:, None]))[:, 0]
        return point

    def length_before(self, numbers: Rows) -> Any:
        """Total length of the taken stretches with lower numbers, of the shape (steps, some) of the numbers, or 0."""
        return sum(run.length_of(_count(run.number, numbers - 1)) for run in self._runs)

    def take(self, number: Rows, begin: Array | None = None, length: Array | None = None) -> None:
        """Take one stretch in each step; without `begin` and `length`, the unit at its number, or _NONE for none."""
        arrays = [array[:, None] for array in (number, begin, length) if array is not None]
        while self._runs and self._runs[-1].width <= max(arrays[0].shape[1], _FEW - arrays[0].shape[1]):
            older = self._runs.pop()
            arrays = [np.concatenate(pair, axis=1) for pair in zip(older.arrays, arrays, strict=True)]
        if len(arrays) == 1:
            arrays[0].sort(axis=1)
        else:
            order = np.argsort(arrays[0], axis=1)
            arrays = [array[np.arange(len(order))[:, None], order] for array in arrays]
        self._runs.append(_Run(arrays, self.length_before(arrays[0])))


class _Run:
    """Taken stretches in the order of their numbers.

    `before` (steps, width) array or 0.
    """

    __slots__ = ("_sums", "arrays", "left", "number")

    def __init__(self, arrays: list[Array], before: Any) -> None:
        self.arrays, self.number = arrays, arrays[0]
        self._sums: Array | None = None
        shorter: Array = np.arange(self.width)
        if len(arrays) > 1:
            self._sums = np.zeros((len(self.number), self.width + 1))
            np.cumsum(arrays[2], axis=1, out=self._sums[:, 1:])
            shorter = self._sums[:, :-1]
        begin = arrays[1] if len(arrays) > 1 else self.number
        self.left = begin - before - shorter
        """Where each is when older runs and those before it are cut out."""

    @property
    def width(self) -> int:
        return int(self.number.shape[1])

    def length_of(self, count: Rows) -> Array:
        """Total length of the first stretches, so many as said, of the shape (steps, some)."""
        return count if self._sums is None else self._sums[np.arange(len(count))[:, None], count]


def _count(ordered: Array, points: Array) -> Rows:
    """Elements of each row (rows, width) that are no larger than each of its points (rows, some)."""
    rows, width = ordered.shape
    if width <= _FEW // 2 or width * points.size <= _PAIRS:
        return np.asarray((ordered[:, None] <= points[:, :, None]).sum(axis=2))
    flat, base = ordered.reshape(-1), (np.arange(rows) * width - 1)[:, None]
    counts = np.zeros(points.shape, dtype=np.int64)
    for power in range(width.bit_length() - 1, -1, -1):  # bit by bit: one more element than found is no larger
        more = counts + (1 << power)
        counts = np.where((more <= width) & (flat[base + np.minimum(more, width)] <= points), more, counts)
    return counts
