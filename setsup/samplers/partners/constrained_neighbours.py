"""Rows that go with an anchor: those of its neighbours that satisfy a constraint, or all rows that do."""

from collections.abc import Sequence

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.factors.constraint import Constraint
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import below_few
from setsup.samplers.groups.candidates import Candidates
from setsup.samplers.groups.within import pick_by_weight, share_ends
from setsup.samplers.row_arguments import both

__all__ = ["AllRows", "Nearest", "chance_of_rows"]

_BLOCK = 1 << 20  # neighbours looked at together


class Nearest:
    """Neighbours of each row that satisfy a constraint with it, nearest first; a row is never its own neighbour.

    `neighbours` (rows, ranks) integers, -1 for none; `where` (rows,) bool: rows that are drawn at all; `weights`
    (rows,) float64, positive in these.

    Attributes
    ----------
    counts : (rows,) int64
        How many each row has.

    """

    def __init__(
        self,
        table: FactorTable,
        constraint: Constraint,
        neighbours: Array,
        where: Bools | None,
        weights: Reals | None = None,
    ) -> None:
        count, ranks = neighbours.shape
        self.counts = np.zeros(count, dtype=np.int64)
        valid_rows = []
        step = max(1, _BLOCK // ranks)
        for start in range(0, count, step):
            others = np.asarray(neighbours[start : start + step], dtype=np.int64)
            anchors = np.arange(start, start + len(others))[:, None]
            valid = (others >= 0) & (others != anchors)
            valid &= constraint.holds(table, anchors, np.maximum(others, 0))
            if where is not None:
                valid &= where[anchors] & where[others]
            self.counts[start : start + step] = valid.sum(axis=1)
            valid_rows.append(others[valid].astype(np.int32 if count < 2**31 else np.int64))
        self._rows = np.concatenate(valid_rows)
        self._starts = np.cumsum(self.counts) - self.counts
        self._weights, self._ends = weights, None
        if weights is not None:
            anchors_with_rows = np.flatnonzero(self.counts)
            self._ends = share_ends(
                weights[self._rows], self._starts[anchors_with_rows], self.counts[anchors_with_rows]
            )[1]

    def take(self, anchors: Rows, bits: Words) -> Rows:
        """One for each anchor, uniform over those it has, or by weight."""
        start, counts = self._starts[anchors], self.counts[anchors]
        if self._ends is None:
            offset = below_few(bits, counts)
        else:
            offset = pick_by_weight(bits, self._ends, start, counts)
        return np.asarray(self._rows[start + offset], dtype=np.int64)

    def pairs(self, anchors: Bools) -> tuple[Rows, Rows, Reals]:
        """Each of some anchors with each row that goes with it, and the chance of that row given the anchor."""
        counts = np.where(anchors, self.counts, 0)
        anchor = np.repeat(np.arange(len(counts)), counts)
        rows = self._rows[np.repeat(anchors, self.counts)].astype(np.int64)
        if self._weights is None:
            return anchor, rows, 1 / self.counts[anchor]
        row_weights = self._weights[rows]
        return anchor, rows, row_weights / np.bincount(anchor, row_weights, len(counts))[anchor]

    def drawn(self, anchors: Bools) -> Bools:
        """Rows of the table that go with any of some anchors."""
        drawn = np.zeros(len(anchors), dtype=bool)
        drawn[self._rows[np.repeat(anchors, self.counts)]] = True
        return drawn


class AllRows:
    """All rows that satisfy a constraint with each row; arguments as of :class:`Nearest`."""

    def __init__(
        self, table: FactorTable, constraint: Constraint, where: Bools | None, weights: Reals | None = None
    ) -> None:
        mask = both(where, constraint.rows)
        self._table, self._candidates = table, Candidates(table, constraint, mask)
        groups = group_by(table, constraint.names, both(where, constraint.anchors))
        self._runs = self._candidates.find(groups.names, groups.keys())
        self._cells = groups.of_rows()
        self.counts = np.zeros(len(table), dtype=np.int64)
        anchors = np.flatnonzero(self._cells >= 0)
        self.counts[anchors] = self._candidates.others(self._runs.at(self._cells[anchors]), anchors)
        self._drawn, self._drawn_runs = self._candidates, self._runs
        if weights is not None:
            self._drawn = Candidates(table, constraint, mask, weights)
            self._drawn_runs = self._drawn.find(groups.names, groups.keys())

    def take(self, anchors: Rows, bits: Words) -> Rows:
        """One for each anchor, uniform over those it has, or by weight."""
        return self._drawn.pick(self._drawn_runs.at(self._cells[anchors]), anchors, bits)

    def drawn(self, anchors: Bools) -> Bools:
        """Rows of the table that go with any of some anchors."""
        constraint, mask = self._candidates.constraint, self._candidates.mask
        groups = group_by(self._table, constraint.names, mask)  # == and != mean the same from both ends
        reverse = Candidates(self._table, constraint, anchors)
        of_rows = groups.of_rows()
        rows = np.flatnonzero(of_rows >= 0)
        drawn = np.zeros(len(anchors), dtype=bool)
        drawn[rows] = reverse.others(reverse.find(groups.names, groups.keys()).at(of_rows[rows]), rows) > 0
        return drawn


def chance_of_rows(partners: Sequence[Nearest | AllRows], of_anchor: Reals) -> Reals:
    """Chance of each row to be an anchor, or to go with one, (rows,); NaN for rows whose chance is not counted.

    `of_anchor` (rows,): chance of each row to be the anchor; of each of up to two partners one row is drawn.
    """
    anchors = of_anchor > 0
    nearest = [partner.pairs(anchors) for partner in partners if isinstance(partner, Nearest)]
    if len(nearest) < len(partners):
        reached = np.any([anchors, *(partner.drawn(anchors) for partner in partners)], axis=0)
        return np.where(reached, np.nan, 0.0)
    chance = of_anchor.copy()
    for anchor, rows, share in nearest:
        chance += np.bincount(rows, share * of_anchor[anchor], minlength=len(anchors))
    if len(nearest) == 2:  # one row may be both
        keys = [anchor * len(anchors) + rows for anchor, rows, _ in nearest]
        _, left, right = np.intersect1d(keys[0], keys[1], return_indices=True)
        (anchor, rows, share), (_, _, other) = nearest
        both_roles = share[left] * other[right] * of_anchor[anchor[left]]
        chance -= np.bincount(rows[left], both_roles, minlength=len(anchors))
    return chance
