"""Which group a set is drawn from: a distribution over the drawable groups.

``levels`` takes the held factors in table order, each uniform over the levels that still have a drawable group; it is
a walk down the tree of keys. ``groups`` is uniform over the groups, ``rows`` proportional to their rows. All agree on
a full grid.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import one_of
from setsup.errors import SamplerError
from setsup.random import below, uniform

__all__ = ["CHOICES", "Chooser", "level_probabilities"]

CHOICES = ("levels", "groups", "rows")

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_NONE = np.iinfo(np.int64).max


def level_probabilities(keys: Rows) -> npt.NDArray[np.float64]:
    """Probability of each group when factors are chosen one after the other, uniformly over levels.

    Parameters
    ----------
    keys : (groups, factors) int64
        Distinct level codes in lexicographic order.

    Returns
    -------
    (groups,) float64

    Examples
    --------
    >>> import numpy as np
    >>> level_probabilities(np.array([[0, 0], [1, 0], [1, 1]])).tolist()
    [0.5, 0.25, 0.25]

    """
    chance = np.ones(len(keys))
    parent = np.zeros(len(keys), dtype=np.int64)
    for node in _nodes(keys):
        first = np.unique(node, return_index=True)[1]
        children = np.bincount(parent[first])
        chance /= children[parent]
        parent = node
    return chance


def _nodes(keys: Rows) -> list[Rows]:
    """Node of each key in the tree, one array a depth below the root; nodes of a depth are numbered left to right."""
    found = []
    fresh = np.zeros(len(keys), dtype=bool)
    for place in range(keys.shape[1]):
        fresh[1:] |= keys[1:, place] != keys[:-1, place]
        found.append(np.cumsum(fresh))
    return found


@dataclass(frozen=True, slots=True)
class _Depth:
    """One step down the tree: from nodes of a depth to their children."""

    first: Rows  # (nodes + 1,) first child of each node
    ancestor: Rows  # (groups,) child in whose subtree each group lies
    leaves: Rows  # (children,) groups below each child


class Chooser:
    """Distribution over groups, drawn from with one word a set, or one a depth when groups must differ.

    Parameters
    ----------
    keys : (groups, factors) int64
        Level codes of the drawable groups in lexicographic order.
    sizes : (groups,) float64 or int64
        Rows, or total weight, of each.
    choose : str
        ``levels``, ``groups`` or ``rows``.

    """

    def __init__(self, keys: Rows, sizes: Array, choose: str) -> None:
        one_of(choose, CHOICES, "choose", SamplerError)
        self.count = len(sizes)
        self._keys, self._sizes, self._choose = keys, sizes, choose
        weights = _weights(keys, sizes, choose)
        flat = weights is None or bool((weights == weights[0]).all())
        self._ends = None if flat or weights is None else np.cumsum(weights)

    def probabilities(self) -> npt.NDArray[np.float64]:
        """Chance of each group to be chosen for one set, (groups,) float64."""
        if self._ends is None:
            return np.full(self.count, 1 / self.count)
        return np.asarray(np.diff(self._ends, prepend=0.0) / self._ends[-1], dtype=np.float64)

    def pick(self, bits: Words) -> Rows:
        """One group for each word, independently."""
        if self._ends is None:
            return below(bits, self.count)
        # a product rounded up to the last end would fall beyond it
        found = np.searchsorted(self._ends, uniform(bits) * self._ends[-1], side="right")
        return np.asarray(np.minimum(found, self.count - 1), dtype=np.int64)

    @property
    def words(self) -> int:
        """Words a set that :meth:`Different.pick` needs."""
        return max(self._keys.shape[1], 1) if self._choose == "levels" else 1

    def different(self) -> "Different":
        """Prepare for draws in which no two sets may share a group."""
        if self._choose == "rows":
            return Different([], np.cumsum(self._sizes))
        nodes = _nodes(self._keys) if self._choose == "levels" and self._keys.shape[1] else []
        if self._choose == "groups" or not nodes:
            nodes = [np.arange(self.count)]
        depths, parent = [], np.zeros(self.count, dtype=np.int64)
        for node in nodes:
            start = np.unique(node, return_index=True)[1]
            first = np.concatenate([[0], np.cumsum(np.bincount(parent[start]))])
            depths.append(_Depth(first, node, np.bincount(node)))
            parent = node
        return Different(depths, None)


def _weights(keys: Rows, sizes: Array, choose: str) -> Array | None:
    if choose == "groups" or not len(sizes):
        return None
    if choose == "rows":
        return sizes
    return level_probabilities(keys)


@dataclass(frozen=True, slots=True)
class Different:
    """Sequential choice without repeats: each set by the same law among the groups not yet taken."""

    depths: list[_Depth]
    ends: Array | None  # (groups,) cumulative sizes for choose="rows"

    def pick(self, bits: Words) -> Rows:
        """Pairwise different groups.

        Parameters
        ----------
        bits : (steps, sets, words) uint64

        Returns
        -------
        (steps, sets) int64

        """
        steps, sets, _ = bits.shape
        taken = np.empty((steps, sets), dtype=np.int64)
        for place in range(sets):
            before = taken[:, :place]
            taken[:, place] = (
                self._descend(bits[:, place], before)
                if self.ends is None
                else self._by_rows(bits[:, place, 0], before, self.ends)
            )
        return taken

    def _descend(self, bits: Words, taken: Rows) -> Rows:
        node = np.zeros(len(bits), dtype=np.int64)
        for place, depth in enumerate(self.depths):
            first, children = depth.first[node], depth.first[node + 1] - depth.first[node]
            gone = depth.ancestor[taken]
            used_up = (gone[:, :, None] == gone[:, None, :]).sum(-1) == depth.leaves[gone]
            local = gone - first[:, None]
            blocked = np.where(used_up & (local >= 0) & (local < children[:, None]), local, _NONE)
            blocked.sort(axis=1)
            blocked[:, 1:][blocked[:, 1:] == blocked[:, :-1]] = _NONE
            blocked.sort(axis=1)
            child = below(bits[:, place], children - (blocked < _NONE).sum(axis=1))
            for column in range(blocked.shape[1]):
                child += blocked[:, column] <= child
            node = first + child
        return node

    def _by_rows(self, bits: Words, taken: Rows, ends: Array) -> Rows:
        begin = np.concatenate([[0], ends[:-1]])
        order = np.sort(taken, axis=1)
        size = ends[order] - begin[order]
        point = uniform(bits) * (ends[-1] - size.sum(axis=1))
        for column in range(order.shape[1]):
            point = point + np.where(point >= begin[order[:, column]], size[:, column], 0)
        found = np.minimum(np.searchsorted(ends, point, side="right"), len(ends) - 1)
        return _off_taken(found, order, len(ends))


def _off_taken(found: Rows, taken: Rows, count: int) -> Rows:
    """Rounding of weights may leave a point on the edge of a taken group: step to the next free one."""
    for _ in range(taken.shape[1]):
        clash = (found[:, None] == taken).any(axis=1)
        if not clash.any():
            break
        found = np.where(clash, (found + 1) % count, found)
    return found
