"""Groups for the sets of a step of which no two are the same: each by the one distribution among those not yet taken.

The cost grows with the sets as that of sorting them does. Where all groups are alike, a set's word is the rank of its
group among those that are left, and ranks become numbers two halves at a time. Otherwise one set follows the other,
for all steps at once, and what is taken is kept in a few sorted runs, so that no set looks at all those before it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.random import below, uniform

__all__ = ["Different"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_NONE = np.iinfo(np.int64).max  # number of nothing, behind all others
_FAR = 2**62  # where nothing lies, behind all positions
_FEW = 32  # elements that are compared one by one, and runs that are joined whatever the other's length
_PAIRS = 1 << 13


@dataclass(frozen=True, slots=True)
class Different:
    """Sequential choice without repeats.

    Parameters
    ----------
    firsts : list of (nodes + 1,) int64
        For ``levels`` and ``groups``: first child of each node, one array a depth of the tree of keys; nodes of a
        depth, and the groups below the last one, are numbered left to right.
    ends : (groups,) float64, optional
        For ``rows``: running sum of the groups' rows or weights.

    """

    firsts: list[Rows]
    ends: Array | None = None

    def pick(self, bits: Words) -> Rows:
        """Pairwise different groups.

        Parameters
        ----------
        bits : (steps, sets, words) uint64

        Returns
        -------
        (steps, sets) int64

        """
        if self.ends is not None:
            return _by_rows(bits[:, :, 0], self.ends)
        if len(self.firsts) == 1:
            return _numbers(below(bits[:, :, 0], self.firsts[0][-1] - np.arange(bits.shape[1])))
        return self._descend(bits)

    def _descend(self, bits: Words) -> Rows:
        steps, sets, _ = bits.shape
        taken, found = [_Taken() for _ in self.firsts], np.empty((steps, sets), dtype=np.int64)
        for place in range(sets):
            node, path = np.zeros(steps, dtype=np.int64), []
            for depth, (first, gone) in enumerate(zip(self.firsts, taken, strict=True)):
                edges = np.stack([first[node], first[node + 1]], axis=1)
                edges -= gone.length_before(edges)
                left = edges[:, 1] - edges[:, 0]
                node = gone.find(edges[:, 0] + below(bits[:, place, depth], left))
                path.append((node, left == 1))
            found[:, place] = node
            used_up = np.ones(steps, dtype=bool)  # a group is, and a node is with its last child
            for gone, (node, last) in zip(reversed(taken), reversed(path), strict=True):
                if not used_up.any():
                    break
                number = np.where(used_up, node, _NONE)
                gone.take(number, np.where(used_up, node, _FAR), used_up.astype(np.int64))
                used_up &= last
        return found


def _by_rows(bits: Words, ends: Array) -> Rows:
    begin = np.concatenate([[0.0], ends[:-1]])
    gone, found = _Taken(), np.empty(bits.shape, dtype=np.int64)
    left = np.full(len(bits), ends[-1])
    for place in range(bits.shape[1]):
        point = gone.find(uniform(bits[:, place]) * left)
        group = np.minimum(np.searchsorted(ends, point, side="right"), len(ends) - 1)
        # rounding may leave a point on the edge of a taken group: step to the next free one
        while (clash := gone.holds(group)).any():
            group = np.where(clash, (group + 1) % len(ends), group)
        size = ends[group] - begin[group]
        gone.take(group, begin[group], size)
        left -= size
        found[:, place] = group
    return found


def _numbers(ranks: Rows) -> Rows:
    """Numbers (steps, sets): each is the rank-th, from 0, of those that no earlier one of its step has."""
    steps, sets = ranks.shape
    found = np.zeros((steps, 1 << (sets - 1).bit_length()), dtype=np.int64)
    found[:, :sets] = ranks
    width = 1
    while width < sets:  # the first half of each stretch is right; the second passes over what the first has
        halves = found.reshape(-1, 2, width)
        halves[:, 1] += _count(np.sort(halves[:, 0], axis=1) - np.arange(width), halves[:, 1])
        width *= 2
    return found[:, :sets]


class _Taken:
    """Stretches of a line that are taken, one more in each step at a time, for many steps at once."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[_Run] = []  # each at least as long as the next, save short ones

    def find(self, point: Array) -> Array:
        """Position on the whole line of points (steps,) of what is left of it."""
        for run in reversed(self._runs):
            point = point + run.sum_of(_count(run.left, point[:, None]))[:, 0]
        return point

    def length_before(self, numbers: Rows) -> Any:
        """Total length of the taken stretches with lower numbers, of the shape (steps, some) of the numbers, or 0."""
        return sum(run.sum_of(_count(run.number, numbers - 1)) for run in self._runs)

    def holds(self, number: Rows) -> npt.NDArray[np.bool_]:
        """Whether stretches (steps,) are taken."""
        found = np.zeros(len(number), dtype=bool)
        for run in self._runs:
            low, high = _count(run.number, np.stack([number - 1, number], axis=1)).T
            found |= low < high
        return found

    def take(self, number: Rows, begin: Array, length: Array) -> None:
        """Take one stretch in each step; one of no length, and far away, where there is none."""
        start = begin - self.length_before(number[:, None])[:, 0] if self._runs else begin
        run = _run(number[:, None], start[:, None], length[:, None])
        while self._runs and self._runs[-1].width <= max(run.width, _FEW - run.width):
            run = self._runs.pop().joined(run)
        self._runs.append(run)


@dataclass(frozen=True, slots=True)
class _Run:
    """Taken stretches in order, each array (steps, width), and where they lie once all older runs are cut out."""

    number: Rows
    start: Array
    length: Array
    sums: Array
    """(steps, width + 1) lengths summed up to each."""
    left: Array
    """Where each is when those before it are cut out, too."""

    @property
    def width(self) -> int:
        return int(self.number.shape[1])

    def sum_of(self, count: Rows) -> Array:
        """Total length of the first stretches, so many as said, of the shape (steps, some)."""
        return np.take_along_axis(self.sums, count, axis=1)

    def joined(self, newer: "_Run") -> "_Run":
        """One run of this and of the next one."""
        start = newer.start + self.sum_of(_count(self.number, newer.number - 1))
        number = np.concatenate([self.number, newer.number], axis=1)
        order = np.argsort(number, axis=1, kind="stable")
        arrays = (
            number,
            np.concatenate([self.start, start], axis=1),
            np.concatenate([self.length, newer.length], axis=1),
        )
        return _run(*(np.take_along_axis(array, order, axis=1) for array in arrays))


def _run(number: Rows, start: Array, length: Array) -> _Run:
    sums = np.zeros((len(length), length.shape[1] + 1), dtype=length.dtype)
    np.cumsum(length, axis=1, out=sums[:, 1:])
    return _Run(number, start, length, sums, start - sums[:, :-1])


def _count(ordered: Array, points: Array) -> Rows:
    """Elements of each row (rows, width) that are no larger than each of its points (rows, some)."""
    rows, width = ordered.shape
    if width <= _FEW // 2 or width * points.size <= _PAIRS:
        return np.asarray(np.count_nonzero(ordered[:, None] <= points[:, :, None], axis=2), dtype=np.int64)
    flat, base = ordered.reshape(-1), (np.arange(rows) * width - 1)[:, None]
    found = np.zeros(points.shape, dtype=np.int64)
    for power in range(width.bit_length() - 1, -1, -1):  # bit by bit: one more element than found is no larger
        more = found + (1 << power)
        found = np.where((more <= width) & (flat[base + np.minimum(more, width)] <= points), more, found)
    return found
