"""Two domains and classes that both have: the support of an episode comes from one, its query from the other."""

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.checks import check_memory
from setsup.errors import SamplerError
from setsup.random import fold, randint_below
from setsup.samplers.groups.within import Keys, distinct

__all__ = ["DomainPairs"]

_PAIR, _CLASSES = 0, 1  # what a key is for
_CELLS = 1 << 17  # classes of steps looked at at a time


class DomainPairs:
    """Ordered pairs of domains, uniform over those that share enough classes; then classes, uniform without repeats.

    A pair shares a class when its first domain has enough rows of it for the support, and its second for the query.

    Attributes
    ----------
    most : int
        Classes that a pair shares at most, whether that is enough or not.
    pairs : int
        Pairs that can be drawn.
    domains : int
        Domains in all.
    widths : (fewest, most) int
        Classes that the pairs share that can be drawn; 0 where there is none.
    reached : (groups,) bool
        Groups that are drawn, as support or as query.
    unsupported, unqueried : (domains,) bool
        Domains that are never the support's, and never the query's.

    """

    def __init__(self, domain: Rows, label: Rows, support: Bools, query: Bools, ways: int) -> None:
        """Find the pairs; domain, label, and whether there are enough rows for support and query: (groups,) each."""
        self.domains, labels = int(domain.max()) + 1, int(label.max()) + 1
        cells = self.domains * max(self.domains, labels)
        check_memory(16 * cells, f"episodes across {self.domains:,} domains", "the number of domains", SamplerError)
        self._coordinates = domain, label
        self._groups = np.full((self.domains, labels), -1, dtype=np.int64)
        self._groups[domain, label] = np.arange(len(domain))
        self._support, self._query = (np.zeros(self._groups.shape, dtype=bool) for _ in range(2))
        self._support[domain, label], self._query[domain, label] = support, query
        self._ways = ways
        shared = np.rint(self._support.astype(np.float32) @ self._query.T.astype(np.float32)).astype(np.int32)
        np.fill_diagonal(shared, 0)
        feasible = shared >= ways
        self.most, self._feasible = int(shared.max()), np.flatnonzero(feasible)
        self.pairs = len(self._feasible)
        self._counts = shared[feasible].astype(np.int64)
        self.widths = (int(shared[feasible].min()), int(shared[feasible].max())) if self.pairs else (0, 0)
        self.unsupported, self.unqueried = ~feasible.any(axis=1), ~feasible.any(axis=0)
        self.reached = (
            self._support & _any_of(feasible, self._query) | self._query & _any_of(feasible.T, self._support)
        )[domain, label]

    def chances(self) -> tuple[Reals, Reals]:
        """Chance of each group to be in an episode, as support and as query: (groups,) float64 each."""
        support, query = self._support.astype(np.float64), self._query.astype(np.float64)
        shared = support @ query.T
        chance = np.zeros(self.domains**2)
        chance[self._feasible] = self._ways / (self.pairs * shared.reshape(-1)[self._feasible])
        pair = chance.reshape(shared.shape)
        return (support * (pair @ query))[self._coordinates], (query * (pair.T @ support))[self._coordinates]

    def draw(self, key: Words) -> tuple[Array, Array]:
        """Groups of support and of query, (steps, ways) each, of keys (steps,); their classes are the same."""
        pair = randint_below(fold(key, _PAIR), self.pairs)
        first, second = np.divmod(self._feasible[pair], self.domains)
        count = self._counts[pair]
        keys = Keys(fold(key, _CLASSES), np.zeros(1, dtype=np.uint64))
        chosen = distinct(keys, count, self._ways)
        # of so few steps at a time that what they share stays in the processor's cache
        block = max(_CELLS // self._support.shape[1], 1)
        for start in range(0, len(pair), block):
            chunk = slice(start, start + block)
            labels = np.nonzero(self._support[first[chunk]] & self._query[second[chunk]])[1]
            chosen[chunk] = labels[(np.cumsum(count[chunk]) - count[chunk])[:, None] + chosen[chunk]]
        return self._groups[first[:, None], chosen], self._groups[second[:, None], chosen]


def _any_of(feasible: Bools, other: Bools) -> Bools:
    """Whether each domain has a partner with each class, (domains, classes)."""
    return np.asarray(feasible.astype(np.float32) @ other.astype(np.float32) > 0)
