"""Weights as integers: their sums and differences are exact, and no row of positive weight is lost beside a heavy one.

Sums run over all runs and wrap around beyond 2⁶³; differences within a run, which has fewer than 2⁶² units, do not.
"""

import numpy as np

from setsup.arrays import Reals, Rows
from setsup.factors.groups import Groups

__all__ = ["Units", "last_before", "to_units"]

_DIGITS = 61  # of the sum of a run


def to_units(weights: Reals, totals: Reals) -> Rows:
    """Weights as multiples of a power of two by which their total is below 2⁶¹, rounded, and at least 1.

    Exact where weights are multiples of that unit, as integers with a sum below 2⁶¹ are. `weights` (rows,) float64,
    positive; `totals` float64, of all rows or of each row's run.
    """
    _, exponent = np.frexp(totals)
    units: Rows = np.maximum(np.rint(np.ldexp(weights, _DIGITS - exponent)), 1.0).astype(np.int64)
    return units


def last_before(ends: Rows, low: Rows, high: Rows, ranks: Rows) -> Rows:
    """Last place of low … high − 1 before which, counted from low on, there are no more units than the rank.

    `ends` (places + 1,) int64, sums of units that may wrap around; others broadcast.
    """
    start, low = ends[low], low + np.zeros_like(ranks)
    high = high + np.zeros_like(ranks)
    while np.count_nonzero(high - low > 1):
        middle = (low + high) // 2
        fits = ends[middle] - start <= ranks
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


class Units:
    """Rows of cells in a line, with their units of weight.

    `cells` (cells,): numbers of groups in the order of the line; `runs` (cells,): the run of each, ascending; `weights`
    (rows of the table,) float64, positive in the rows of the groups.

    Attributes
    ----------
    totals : (cells,) int64
        Units of each cell.

    """

    def __init__(self, groups: Groups, cells: Rows, runs: Rows, weights: Reals) -> None:
        sizes = groups.sizes[cells]
        self._first = np.concatenate([[0], np.cumsum(sizes)])
        which = np.repeat(np.arange(len(cells)), sizes)
        self._rows = groups.take(cells[which], np.arange(len(which)) - self._first[which])
        row_weights, run = weights[self._rows], runs[which]
        totals: Reals = np.bincount(run, row_weights).astype(np.float64)
        self._units = to_units(row_weights, totals[run])
        self._ends = np.concatenate([[0], np.cumsum(self._units)])
        self.totals = np.diff(self._ends[self._first])
        self._position = np.full(len(weights), -1, dtype=np.int64)
        self._position[self._rows] = np.arange(len(self._rows))

    def of_rows(self, rows: Rows) -> Rows:
        """Units of rows of the table; 0 for those that are in no cell."""
        position = self._position[rows]
        return np.where(position >= 0, self._units[position], 0)

    def before(self, cells: Rows, rows: Rows) -> Rows:
        """Units from the beginning of cells to rows behind it."""
        return np.asarray(self._ends[self._position[rows]] - self._ends[self._first[cells]])

    def take(self, first: Rows, last: Rows, ranks: Rows) -> Rows:
        """Rows of the cells first … last − 1, by the units before them."""
        return np.asarray(self._rows[last_before(self._ends, self._first[first], self._first[last], ranks)])
