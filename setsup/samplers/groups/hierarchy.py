"""Nodes of a tree of groups: some children of each node, uniform without replacement among those that can be drawn.

The tree has a level for each list of factors, as domains and their classes; its leaves are groups of rows. A node can
be drawn when it has as many drawable children as are drawn of it.
"""

import math
from collections.abc import Sequence

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Words
from setsup.factors.counting import with_outer
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.random import fold
from setsup.samplers.groups.within import Keys, distinct

__all__ = ["Hierarchy", "values_of"]


def values_of(table: FactorTable, groups: Groups, names: Sequence[str]) -> Rows:
    """Number of the combination that the named factors have in each group, in the order of their codes; (groups,)."""
    wanted = with_outer(table, names)
    if wanted == groups.names:
        return np.arange(len(groups))
    keys = groups.keys()[:, [groups.names.index(name) for name in wanted]]
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1], dtype=np.int64).reshape(-1)


class Hierarchy:
    """Distribution over the leaves of a tree: ``counts[0]`` nodes, ``counts[1]`` children of each, and so on.

    Attributes
    ----------
    leaves : (leaves,) int64
        Groups that can be drawn, by their numbers.
    most : tuple of int
        Children of the root, and of the node of each further level that has the most; of those that can be drawn
        below, whether the node itself can be or not.

    """

    def __init__(self, values: Sequence[Rows], counts: Sequence[int], fits: Bools) -> None:
        """Build the tree of groups that fit; values (levels, groups) number what a group has at each level."""
        order = np.lexsort(values[::-1])
        self.leaves: Rows = order[fits[order]]
        self.counts, self.most = tuple(counts), (0,) * len(counts)
        for depth in range(len(counts) - 1, -1, -1):
            parents, children = _children(values, self.leaves, depth)
            self.most = (*self.most[:depth], int(children.max(initial=0)), *self.most[depth + 1 :])
            self.leaves = self.leaves[children[parents] >= counts[depth]]
        self._children: list[Rows] = []  # of each node of a depth
        for depth in range(len(counts)):
            self._children.append(_children(values, self.leaves, depth)[1])
        self._first = [np.cumsum(children) - children for children in self._children]
        # an int where all nodes are alike: a draw then costs less
        self._even = [
            int(children[0]) if len(children) and (children == children[0]).all() else None
            for children in self._children
        ]

    def draw(self, key: Words) -> Rows:
        """Groups (steps, product of the counts) of keys (steps,), in an order that is uniform at each level."""
        nodes = np.zeros((len(key), 1), dtype=np.int64)
        for depth, count in enumerate(self.counts):
            keys = Keys(fold(key, depth), np.arange(nodes.shape[1], dtype=np.uint64))
            flat, even = nodes.reshape(-1), self._even[depth]
            child = distinct(keys, self._children[depth][flat] if even is None else even, count)
            nodes = (self._first[depth][flat][:, None] + child).reshape(len(key), -1)
        return self.leaves[nodes]

    def shares(self) -> Reals:
        """Share of the drawn groups that each leaf is expected to have, (leaves,) float64."""
        chance = np.ones(1)
        for children in self._children:
            chance = np.repeat(chance / children, children)
        return chance

    def width(self, depth: int) -> tuple[int, int]:
        """Fewest and most children of a node of a depth that can be drawn; depth 0 is the root."""
        children = self._children[depth]
        return int(children.min()), int(children.max())

    @property
    def sets(self) -> int:
        """Groups of a draw."""
        return math.prod(self.counts)


def _children(values: Sequence[Rows], leaves: Rows, depth: int) -> tuple[Rows, Rows]:
    """Node of a depth that each leaf is below, (leaves,), and how many children each node has, (nodes,)."""
    parents = np.zeros(len(leaves), dtype=np.int64)
    fresh = np.zeros(len(leaves), dtype=bool)
    fresh[:1] = True
    for level in values[:depth]:
        fresh[1:] |= level[leaves[1:]] != level[leaves[:-1]]
    if len(leaves):
        parents = np.cumsum(fresh) - 1
    own = values[depth][leaves]
    fresh[1:] |= own[1:] != own[:-1]
    return parents, np.bincount(parents[fresh])
