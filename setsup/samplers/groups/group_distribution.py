"""Which group a set is drawn from: a distribution over the drawable groups.

``levels`` takes the inactive factors in table order, each uniform over the levels that still have a drawable group: a
walk down the tree of keys. ``groups`` is uniform over the groups, ``rows`` proportional to their rows. All agree on a
full grid.
"""

import numpy as np

from setsup.arrays import Array, Reals, Rows, Words
from setsup.checks import check_choice
from setsup.errors import SamplerError
from setsup.random import fold, randint_below, stream_key, uniform
from setsup.samplers.groups.different import Different

__all__ = ["CHOICES", "Chooser", "level_probabilities"]

CHOICES = ("levels", "groups", "rows")

_ROW = np.dtype(np.int64)
_TRIED = 100_000  # sets drawn to find what share of them a group has


def level_probabilities(keys: Rows) -> Reals:
    """Probability of each group when factors are chosen one after the other, uniformly over levels.

    `keys` (groups, factors) int64; returns (groups,) float64.
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
    nodes = []
    fresh = np.zeros(len(keys), dtype=bool)
    for column in range(keys.shape[1]):
        fresh[1:] |= keys[1:, column] != keys[:-1, column]
        nodes.append(np.cumsum(fresh))
    return nodes


class Chooser:
    """Distribution over groups, drawn from with one word a set, or one a depth when groups must differ.

    `keys` (groups, factors) int64; `sizes` (groups,) float64 or int64.
    """

    def __init__(self, keys: Rows, sizes: Array, choose: str) -> None:
        check_choice(choose, CHOICES, "choose", SamplerError)
        self.count = len(sizes)
        self._keys, self._sizes, self._choose = keys, sizes, choose
        weights = _weights(keys, sizes, choose)
        flat = weights is None or bool((weights == weights[0]).all())
        # as floats: a search among whole numbers would convert them all at each draw
        self._ends = None if flat or weights is None else np.cumsum(weights).astype(np.float64)
        self.total = float(self.count if self._ends is None else self._ends[-1])

    def probabilities(self) -> Reals:
        """Chance of each group to be chosen for one set, (groups,) float64."""
        if self._ends is None:
            return np.full(self.count, 1 / self.count)
        return np.asarray(np.diff(self._ends, prepend=0.0) / self._ends[-1], dtype=np.float64)

    def shares(self, sets: int) -> tuple[Reals, bool]:
        """Share of a step's sets that each group is expected to have where no two are the same; whether it is exact."""
        if sets == self.count:
            return np.full(self.count, 1 / self.count), True
        different = self.different()
        even = different.edges is None or self._ends is None
        # while nothing above the groups is used up, the groups below a node are all alike at every turn
        if sets == 1 or (even and (different.edges is not None or np.diff(different.firsts[-1]).min() >= sets)):
            return self.probabilities(), True
        steps = max(_TRIED // sets, 1)
        words = fold(stream_key(0, "shares"), np.arange(steps * sets * self.words, dtype=np.uint64))
        counts = np.bincount(different.pick(words.reshape(steps, sets, -1)).reshape(-1), minlength=self.count)
        return counts / counts.sum(), False

    def pick(self, bits: Words) -> Rows:
        """One group for each word, independently."""
        return randint_below(bits, self.count) if self._ends is None else self.at(uniform(bits) * self.total)

    def at(self, points: Reals) -> Rows:
        """Groups at points of 0 … ``total``, of which each has its share."""
        if self._ends is None:
            return points.astype(_ROW)
        # a product rounded up to the last end would fall beyond it
        groups = np.searchsorted(self._ends, points, side="right")
        return np.asarray(np.minimum(groups, self.count - 1), dtype=np.int64)

    @property
    def words(self) -> int:
        """Words a set that :meth:`Different.pick` needs."""
        return max(self._keys.shape[1], 1) if self._choose == "levels" else 1

    def different(self) -> Different:
        """Prepare for draws in which no two sets may share a group."""
        if self._choose == "rows":
            return Different([], np.concatenate([[0.0], np.cumsum(self._sizes)]))
        nodes = _nodes(self._keys) if self._choose == "levels" and self._keys.shape[1] else []
        if not nodes:
            return Different([np.array([0, self.count])])
        firsts, parent = [], np.zeros(self.count, dtype=np.int64)
        for node in nodes:
            start = np.unique(node, return_index=True)[1]
            firsts.append(np.concatenate([[0], np.cumsum(np.bincount(parent[start]))]))
            parent = node
        return Different(firsts)


def _weights(keys: Rows, sizes: Array, choose: str) -> Array | None:
    if choose == "groups" or not len(sizes):
        return None
    if choose == "rows":
        return sizes
    return level_probabilities(keys)
