"""Rows that satisfy a constraint with an anchor: how many there are, and any of them by its rank.

The rows are sorted by the factors that must be equal, then into *cells* of rows that no comparison tells apart. Rows
that go with an anchor are those of a run of cells, without the cells that agree with the anchor in a factor that must
differ. How many of these come before a place is known by inclusion and exclusion over the subsets of those factors (at
most seven), each by a binary search in a sorted table; so a rank is found by binary search, too, and nothing is
drawn and rejected. One factor's cells are neighbours, and are cut out of the run.

With weights, rows are counted in :class:`Units` of weight in place of one each, so that a rank is a point of a row's
weight. Units are integers: what is left of a run without its heavy cells is exact, and never less than its light rows.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Words
from setsup.checks import check_memory
from setsup.errors import SamplerError
from setsup.factors.constraint import Constraint
from setsup.factors.counting import with_outer
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import randint_below
from setsup.samplers.groups.units import Units

__all__ = ["CandidateRuns", "Candidates", "Ranks"]

_CELL = 64  # bytes that a cell takes in each table


class Ranks:
    """Combinations of some columns of keys, numbered in lexicographic order; a missing one has the next number.

    `keys` (cells, factors) int64; `sizes`: levels of each factor.
    """

    def __init__(self, keys: Rows, columns: Sequence[int], sizes: Sequence[int]) -> None:
        self._steps = []
        self.numbers = np.zeros(len(keys), dtype=np.int64)
        """(cells,) int64."""
        self.count = min(len(keys), 1)
        for column in columns:  # renumbered at each turn, so that no product overflows
            known, self.numbers = np.unique(self.numbers * sizes[column] + keys[:, column], return_inverse=True)
            self._steps.append((sizes[column], known))
            self.count = len(known)

    def find(self, columns: Sequence[Rows], length: int) -> Rows:
        """Numbers (length,) of combinations given by their columns; ``count`` for those that do not occur."""
        number, exists = np.zeros(length, dtype=np.int64), np.full(length, self.count > 0)
        for (size, known), column in zip(self._steps, columns, strict=True):
            wanted = number * size + column
            number = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
            exists &= known[number] == wanted if len(known) else False
        return np.where(exists, number, self.count)


class _Agreeing:
    """Cells sorted by the factors in which they agree with an anchor: how many rows agree, before any cell.

    `numbers` (cells,): what each cell agrees in, from :class:`Ranks`, in the order of the run; `sizes` (cells,) rows.
    """

    def __init__(self, ranks: Ranks, order: Rows, sizes: Rows) -> None:
        self.ranks, self.cells = ranks, len(order)
        numbers = ranks.numbers[order]
        self.order = np.argsort(numbers, kind="stable")
        self._line = numbers[self.order] * self.cells + self.order
        self._ends = np.concatenate([[0], np.cumsum(sizes[self.order])])  # of units: see there
        # one more than there are, for combinations that do not occur
        self._first = np.append(np.searchsorted(numbers[self.order], np.arange(ranks.count + 1)), self.cells)

    def total(self, numbers: Rows) -> Rows:
        """Rows that agree."""
        return np.asarray(self._ends[self._first[numbers + 1]] - self._ends[self._first[numbers]])

    def before(self, numbers: Rows, cells: Rows) -> Rows:
        """Rows that agree, in the cells before some."""
        position = np.searchsorted(self._line, numbers * self.cells + cells)
        return np.asarray(self._ends[position] - self._ends[self._first[numbers]])

    def first(self, numbers: Rows) -> Rows:
        """First cell that agrees; the last one of all where none does."""
        return np.asarray(self.order[np.minimum(self._first[numbers], self.cells - 1)])


@dataclass(frozen=True, slots=True)
class CandidateRuns:
    """Where the rows are that go with anchors; every array is (anchors,) int64, or (anchors' cells,).

    `start`: rows before the run; `first`, `last`: cells of the run; `counts`: rows that go with the anchor, the anchor
    itself included where nothing must differ; `agreeing`: numbers of each table. Units in place of rows with weights.
    """

    start: Rows
    first: Rows
    last: Rows
    counts: Rows
    agreeing: tuple[Rows, ...]

    def at(self, which: Rows) -> "CandidateRuns":
        """Those of some anchors."""
        agreeing = tuple(numbers[which] for numbers in self.agreeing)
        return CandidateRuns(self.start[which], self.first[which], self.last[which], self.counts[which], agreeing)


class Candidates:
    """Rows of a table that go with anchors by a constraint.

    `mask` (rows,) bool: the rows that are looked at, None for all; `weights` (rows,) float64, optional: positive in
    these, and what they are drawn by.
    """

    def __init__(
        self, table: FactorTable, constraint: Constraint, mask: Bools | None, weights: Reals | None = None
    ) -> None:
        self._table, self.constraint, self.mask = table, constraint, mask
        check_cells(table, constraint.names)
        self._groups = group_by(table, constraint.names, mask)
        names, keys = self._groups.names, self._groups.keys()
        sizes = [len(table[name]) for name in names]
        self._equal = with_outer(table, constraint.equal)
        self._runs = Ranks(keys, [names.index(name) for name in self._equal], sizes)
        self._order = np.argsort(self._runs.numbers, kind="stable")
        rows = self._groups.sizes[self._order]
        self._units = None
        if weights is not None:
            self._units = Units(self._groups, self._order, self._runs.numbers[self._order], weights)
            rows = self._units.totals
        self._ends = np.concatenate([[0], np.cumsum(rows)])
        first = np.searchsorted(self._runs.numbers[self._order], np.arange(self._runs.count + 1))
        self._first = np.append(first, len(self._order))
        self._names: list[tuple[str, ...]] = []
        self._tables: list[_Agreeing] = []
        self._signs: list[int] = []
        for count in range(1, len(constraint.differ) + 1):
            for subset in itertools.combinations(constraint.differ, count):
                agreed = with_outer(table, [*constraint.equal, *subset])
                ranks = Ranks(keys, [names.index(name) for name in agreed], sizes)
                self._names.append(agreed)
                self._tables.append(_Agreeing(ranks, self._order, rows))
                self._signs.append((-1) ** count)

    @property
    def may_be_itself(self) -> bool:
        """Whether an anchor is among the rows that are equal to it, where nothing must differ."""
        return not self.constraint.differ

    def find(self, names: Sequence[str], keys: Rows) -> CandidateRuns:
        """Find the rows that go with anchors, given by known levels `keys` (anchors, factors) of the named factors."""
        columns = dict(zip(names, keys.T, strict=True))
        run = self._runs.find([columns[name] for name in self._equal], len(keys))
        first, last = self._first[run], self._first[run + 1]
        start = self._ends[first]
        counts = self._ends[last] - start
        agreeing = []
        for names_agreed, agreed, sign in zip(self._names, self._tables, self._signs, strict=True):
            numbers = agreed.ranks.find([columns[name] for name in names_agreed], len(keys))
            counts = counts + sign * agreed.total(numbers)
            agreeing.append(numbers)
        return CandidateRuns(start, first, last, counts, tuple(agreeing))

    def others(self, runs: CandidateRuns, anchors: Rows) -> Rows:
        """Count the rows, or their units, that go with anchors, themselves not among them."""
        if not self.may_be_itself:
            return runs.counts
        if self._units is not None:
            return np.asarray(runs.counts - self._units.of_rows(anchors))
        return np.asarray(runs.counts - (1 if self.mask is None else self.mask[anchors]))

    def take(self, runs: CandidateRuns, anchors: Rows, ranks: Rows) -> Rows:
        """Rows that go with anchors, by their ranks below the count of others; all of one shape."""
        if self._units is not None:
            return self._take_by_weight(self._units, runs, anchors, ranks)
        if self.may_be_itself:
            rows = self._row(runs.start + ranks)
            # the last row of the run stands in for the anchor
            return np.where(rows == anchors, self._row(runs.start + runs.counts - 1), rows)
        if len(self._tables) > 1:
            cells, left = self._search(runs, ranks)
            return self._groups.take(self._order[cells], left)
        cell = self._tables[0].first(runs.agreeing[0])
        size = self._tables[0].total(runs.agreeing[0])
        position = runs.start + ranks
        return self._row(position + np.where(position >= self._ends[cell], size, 0))

    def pick(self, runs: CandidateRuns, anchors: Rows, bits: Words) -> Rows:
        """One row for each anchor, uniform over the rows that go with it, or by weight; all of one shape."""
        return self.take(runs, anchors, randint_below(bits, self.others(runs, anchors)))

    def _take_by_weight(self, units: Units, runs: CandidateRuns, anchors: Rows, ranks: Rows) -> Rows:
        """Rows by the units before them, without those of the anchor, or of the cells that agree with it."""
        if len(self._tables) > 1:
            cells, left = self._search(runs, ranks)
            return units.take(cells, cells + 1, left)
        if self.may_be_itself:
            before, own = units.before(runs.first, anchors), units.of_rows(anchors)
        else:
            cell = self._tables[0].first(runs.agreeing[0])
            before, own = self._ends[cell] - runs.start, self._tables[0].total(runs.agreeing[0])
        return units.take(runs.first, runs.last, ranks + np.where(ranks >= before, own, 0))

    def _search(self, runs: CandidateRuns, ranks: Rows) -> tuple[Rows, Rows]:
        """Find the last cell of the run before which no more rows than the rank are left, and the rank in it."""
        low, high = runs.first, runs.last
        before = np.zeros_like(ranks)
        while np.count_nonzero(high - low > 1):
            middle = (low + high) // 2
            left = self._ends[middle] - runs.start
            for agreed, numbers, sign in zip(self._tables, runs.agreeing, self._signs, strict=True):
                left = left + sign * agreed.before(numbers, middle)
            fits = left <= ranks
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
            before = np.where(fits, left, before)
        return low, ranks - before

    def _row(self, positions: Rows) -> Rows:
        """Rows at positions among those of all runs, one run after the other."""
        cell = np.searchsorted(self._ends, positions, side="right") - 1
        return self._groups.take(self._order[cell], positions - self._ends[cell])


def check_cells(table: FactorTable, names: Sequence[str]) -> None:
    """Refuse a grid of more combinations than there is memory for; columns have no more than rows."""
    if table.is_grid:
        compared = with_outer(table, names)
        cells = math.prod(len(table[name]) for name in compared)
        check_memory(_CELL * cells, f"an index of {', '.join(compared)}", "the factors that are compared", SamplerError)
