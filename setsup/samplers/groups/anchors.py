"""Anchors that have rows which satisfy constraints with them, and how one is drawn."""

import math
from collections.abc import Mapping

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.factors.constraint import Constraint
from setsup.factors.grouping import group_by
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.random import randint_below
from setsup.samplers.groups.candidates import Candidates, Ranks, check_cells
from setsup.samplers.groups.within import pick_by_weight, share_ends
from setsup.samplers.report import AnchorEntry, Partners, anchors_lost
from setsup.samplers.row_arguments import both

__all__ = ["Anchors"]

_LOOKED_AT = 1 << 28  # rows up to which the report looks at each of them


class Anchors:
    """Rows that have enough other rows for each of some constraints, in groups that share some factors.

    `names`: factors that the groups share; `constraints` by their role, such as ``"positive"``; `needs`: rows that an
    anchor must have, by role; `where` (rows,) bool: rows that are drawn at all.

    Attributes
    ----------
    names : tuple of str
        Factors that anchors of a group share, with those they are nested in.
    keys : (groups, factors) int64
        Level codes of the groups that have an anchor, in lexicographic order.
    counts : (groups,) int64
        Anchors of each.
    totals : (groups,) int64 or float64
        Their weights together, without weights ``counts``.

    """

    def __init__(
        self,
        table: FactorTable,
        names: tuple[str, ...],
        constraints: Mapping[str, Constraint],
        needs: Mapping[str, int],
        where: Bools | None,
        weights: Reals | None = None,
    ) -> None:
        self._table, self.names, self._weights, mask = table, names, weights, where
        for constraint in constraints.values():
            mask = both(mask, constraint.anchors)
        used = [*names, *(name for constraint in constraints.values() for name in constraint.names)]
        check_cells(table, used)
        groups = group_by(table, used, mask)
        self._unknown, self._excluded, self._lacking = groups.unknown, groups.excluded, {}
        self._candidates = {
            role: Candidates(table, constraint, both(where, constraint.rows))
            for role, constraint in constraints.items()
        }
        self._drawn = self._candidates
        if weights is not None:
            self._drawn = {
                role: Candidates(table, constraint, both(where, constraint.rows), weights)
                for role, constraint in constraints.items()
            }
        feasible, eligible = np.ones(len(groups), dtype=bool), None
        for role, candidates in self._candidates.items():
            counts = candidates.find(groups.names, groups.keys()).counts
            enough, alone = _enough(candidates, groups, counts, needs[role])
            self._lacking[role] = int(groups.sizes[~enough].sum()) + (0 if alone is None else int(alone.sum()))
            feasible &= enough
            eligible = both(eligible, None if alone is None else ~alone)
        if eligible is not None:
            of_rows = groups.of_rows()
            groups = group_by(table, used, eligible & (of_rows >= 0) & feasible[of_rows])
            feasible = np.ones(len(groups), dtype=bool)
        self._arrange(groups, np.flatnonzero(feasible))

    def _arrange(self, groups: Groups, cells: Rows) -> None:
        """Sort the cells of anchors by the groups that they are in."""
        keys = groups.keys(cells)
        columns = [groups.names.index(name) for name in self.names]
        ranks = Ranks(keys, columns, [len(self._table[name]) for name in groups.names])
        order = np.argsort(ranks.numbers, kind="stable")
        self._groups, self._cells, keys, number = groups, cells[order], keys[order], ranks.numbers[order]
        self._ranks = ranks
        self._ends = np.concatenate([[0], np.cumsum(groups.sizes[self._cells])])
        first = np.searchsorted(number, np.arange(ranks.count + 1))
        self._first = self._ends[first[:-1]]
        self.keys, self.counts = keys[first[:-1]][:, columns], np.diff(self._ends[first])
        self.totals: Array = self.counts
        self._runs = {role: candidates.find(groups.names, keys) for role, candidates in self._candidates.items()}
        self._drawn_runs = self._runs
        if self._weights is not None:
            self._drawn_runs = {role: candidates.find(groups.names, keys) for role, candidates in self._drawn.items()}
            sizes = groups.sizes[self._cells]
            which = np.repeat(np.arange(len(sizes)), sizes)
            rows = groups.take(self._cells[which], np.arange(len(which)) - self._ends[which])
            self.totals, self._share_ends = share_ends(self._weights[rows], self._first, self.counts)

    def __len__(self) -> int:
        """Count the anchors."""
        return int(self._ends[-1])

    def lost(self) -> str:
        """Say how many rows are no anchors, and why."""
        return anchors_lost(self._lacking, self._unknown, self._excluded)

    def number(self, keys: Rows) -> Rows:
        """Numbers of groups by their keys (some, factors); ``len(keys)`` of this where there is no anchor."""
        return self._ranks.find(list(keys.T), len(keys))

    def draw(self, groups: Rows, bits: Words) -> tuple[Rows, Rows]:
        """Anchors of groups, uniform over those of each or by weight: cells, and rows; of the shape of ``groups``."""
        first, counts = self._first[groups], self.counts[groups]
        if self._weights is None:
            position = first + randint_below(bits, counts)
        else:
            position = first + pick_by_weight(bits, self._share_ends, first, counts)
        cell = np.searchsorted(self._ends, position, side="right") - 1
        return cell, self._groups.take(self._cells[cell], position - self._ends[cell])

    def pick(self, role: str, cells: Rows, anchors: Rows, bits: Words) -> Rows:
        """One row of a role for each anchor, uniform or by weight; all broadcast."""
        return self._drawn[role].pick(self._drawn_runs[role].at(cells), anchors, bits)

    def others(self, role: str, cells: Rows, anchors: Rows) -> Rows:
        """Count the rows that anchors have for a role."""
        return self._candidates[role].others(self._runs[role].at(cells), anchors)

    def take(self, role: str, cells: Rows, anchors: Rows, ranks: Rows) -> Rows:
        """Rows that anchors have for a role, by their ranks; all broadcast."""
        return self._candidates[role].take(self._runs[role].at(cells), anchors, ranks)

    def entry(self) -> AnchorEntry:
        """Entry of a report, without the rows that are never drawn."""
        rows, counts = self._partners()
        weights = np.asarray(rows, dtype=np.float64)
        partners = {
            role: Partners(
                self._candidates[role].constraint.text,
                int(role_counts.min()),
                int(role_counts.max()),
                float(np.average(role_counts, weights=weights)),
            )
            for role, role_counts in counts.items()
        }
        product = np.prod([role_counts.astype(np.float64) for role_counts in counts.values()], axis=0)
        return AnchorEntry(
            ", ".join(self.names) or "nothing",
            len(self),
            len(self.counts),
            partners,
            dict(self._lacking),
            self._unknown,
            self._excluded,
            None,
            math.log10(float(weights @ product)),
        )

    def _partners(self) -> tuple[Array, dict[str, Rows]]:
        """How many anchors have how many rows for each role: both by cell, or by row where rows of a cell differ."""
        cells = np.arange(len(self._cells))
        sizes = self._groups.sizes[self._cells]
        if all(candidates.mask is None or not candidates.may_be_itself for candidates in self._candidates.values()):
            rows = self._groups.take(self._cells, np.zeros(len(cells), dtype=np.int64))
            return sizes, {role: self.others(role, cells, rows) for role in self._candidates}
        cells = np.repeat(cells, sizes)
        rows = self._groups.take(self._cells[cells], np.arange(len(cells)) - self._ends[cells])
        return np.ones(len(rows)), {role: self.others(role, cells, rows) for role in self._candidates}

    def never(self) -> int | None:
        """Rows of the table that are neither an anchor nor go with any; None where there are too many to look at."""
        reached = self.reached()
        return None if reached is None else len(self._table) - int(reached.sum())

    def reached(self) -> Bools | None:
        """Rows that are an anchor or go with one, (rows of the table,) bool; None where there are too many."""
        if len(self._table) > _LOOKED_AT:
            return None
        feasible = np.zeros(len(self._groups), dtype=bool)
        feasible[self._cells] = True
        of_rows = self._groups.of_rows()
        drawn = (of_rows >= 0) & feasible[of_rows]
        anchors = drawn.copy()
        for candidates in self._candidates.values():
            # == and != mean the same from both ends
            groups = group_by(self._table, candidates.constraint.names, candidates.mask)
            counts = Candidates(self._table, candidates.constraint, anchors).find(groups.names, groups.keys()).counts
            of_rows = groups.of_rows()
            drawn |= (of_rows >= 0) & (counts > 0)[of_rows]
        return np.asarray(drawn)


def _enough(candidates: Candidates, groups: Groups, counts: Rows, need: int) -> tuple[Bools, Bools | None]:
    """Cells of anchors that have enough rows; and those of their rows that lack one, since they count themselves."""
    if not candidates.may_be_itself:
        return counts >= need, None
    if candidates.mask is None:
        return counts > need, None
    enough, tight = counts >= need, counts == need
    if not tight.any():
        return enough, None
    of_rows = groups.of_rows()
    return enough, (of_rows >= 0) & tight[of_rows] & candidates.mask
