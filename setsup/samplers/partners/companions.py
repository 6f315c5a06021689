"""Rows that go with an anchor: those of its neighbours that satisfy a constraint, or all rows that do."""

from collections.abc import Sequence

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.factors.constraint import Constraint
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import below_few
from setsup.samplers.groups.candidates import Candidates, both

__all__ = ["AllRows", "Nearest", "chance_of_rows"]

_BLOCK = 1 << 20  # neighbours looked at together


class Nearest:
    """Neighbours of each row that satisfy a constraint with it, nearest first; a row is never its own neighbour.

    `neighbours` (rows, ranks) integers, -1 for none; `where` (rows,) bool: rows that are drawn at all.

    Attributes
    ----------
    counts : (rows,) int64
        How many each row has.

    """

    def __init__(self, table: FactorTable, constraint: Constraint, neighbours: Array, where: Bools | None) -> None:
        count, ranks = neighbours.shape
        self.counts = np.zeros(count, dtype=np.int64)
        found = []
        step = max(1, _BLOCK // ranks)
        for start in range(0, count, step):
            others = np.asarray(neighbours[start : start + step], dtype=np.int64)
            anchors = np.arange(start, start + len(others))[:, None]
            valid = (others >= 0) & (others != anchors)
            valid &= constraint.holds(table, anchors, np.maximum(others, 0))
            if where is not None:
                valid &= where[anchors] & where[others]
            self.counts[start : start + step] = valid.sum(axis=1)
            found.append(others[valid].astype(np.int32 if count < 2**31 else np.int64))
        self._rows = np.concatenate(found)
        self._starts = np.cumsum(self.counts) - self.counts

    def take(self, anchors: Rows, bits: Words) -> Rows:
        """One for each anchor, uniform over those it has."""
        found = self._rows[self._starts[anchors] + below_few(bits, self.counts[anchors])]
        return np.asarray(found, dtype=np.int64)

    def pairs(self, anchors: Bools) -> tuple[Rows, Rows, Reals]:
        """Each of some anchors with each row that goes with it, and the chance of that row given the anchor."""
        some = np.where(anchors, self.counts, 0)
        anchor = np.repeat(np.arange(len(some)), some)
        return anchor, self._rows[np.repeat(anchors, self.counts)].astype(np.int64), 1 / self.counts[anchor]

    def drawn(self, anchors: Bools) -> Bools:
        """Rows of the table that go with any of some anchors."""
        found = np.zeros(len(anchors), dtype=bool)
        found[self._rows[np.repeat(anchors, self.counts)]] = True
        return found


class AllRows:
    """All rows that satisfy a constraint with each row; arguments as of :class:`Nearest`."""

    def __init__(self, table: FactorTable, constraint: Constraint, where: Bools | None) -> None:
        self._table, self._candidates = table, Candidates(table, constraint, both(where, constraint.rows))
        groups = group_by(table, constraint.names, both(where, constraint.anchors))
        self._found = self._candidates.find(groups.names, groups.keys())
        self._cells = groups.of_rows()
        self.counts = np.zeros(len(table), dtype=np.int64)
        anchors = np.flatnonzero(self._cells >= 0)
        self.counts[anchors] = self._candidates.others(self._found.at(self._cells[anchors]), anchors)

    def take(self, anchors: Rows, bits: Words) -> Rows:
        """One for each anchor, uniform over those it has."""
        found = self._found.at(self._cells[anchors])
        return self._candidates.take(found, anchors, below_few(bits, self.counts[anchors]))

    def drawn(self, anchors: Bools) -> Bools:
        """Rows of the table that go with any of some anchors."""
        constraint, mask = self._candidates.constraint, self._candidates.mask
        groups = group_by(self._table, constraint.names, mask)  # == and != mean the same from both ends
        reverse = Candidates(self._table, constraint, anchors)
        of_rows = groups.of_rows()
        rows = np.flatnonzero(of_rows >= 0)
        found = np.zeros(len(anchors), dtype=bool)
        found[rows] = reverse.others(reverse.find(groups.names, groups.keys()).at(of_rows[rows]), rows) > 0
        return found


def chance_of_rows(companions: Sequence[Nearest | AllRows], anchors: Bools) -> Reals:
    """Chance of each row to be an anchor, or to go with one, (rows,); NaN for rows whose chance is not counted.

    `anchors` (rows,) bool is where anchors are, uniform; of each of up to two companions one row is drawn.
    """
    count = int(anchors.sum())
    nearest = [one.pairs(anchors) for one in companions if isinstance(one, Nearest)]
    if len(nearest) < len(companions):
        reached = np.any([anchors, *(one.drawn(anchors) for one in companions)], axis=0)
        return np.where(reached, np.nan, 0.0)
    chance = anchors / count
    for _, rows, share in nearest:
        chance += np.bincount(rows, share / count, minlength=len(anchors))
    if len(nearest) == 2:  # one row may be both
        keys = [anchor * len(anchors) + rows for anchor, rows, _ in nearest]
        _, left, right = np.intersect1d(keys[0], keys[1], return_indices=True)
        (_, rows, share), (_, _, other) = nearest
        chance -= np.bincount(rows[left], share[left] * other[right] / count, minlength=len(anchors))
    return chance
