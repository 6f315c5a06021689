"""Rows of groups whose level of one factor lies within some steps, counted at a cost that no radius multiplies.

Groups that differ in the level of one factor only are neighbours in a line, so that those within a window are a run of
it, or two where the factor is cyclic: a difference of running sums each.
"""

from dataclasses import dataclass

import numpy as np

from setsup.arrays import Array, Bools, Rows
from setsup.samplers.partners.cells import Axis

__all__ = ["Windows"]


@dataclass(frozen=True, slots=True)
class Windows:
    """Groups in the order of their other factors, then of one.

    `heads` (heads,) int64: keys without that factor, ascending; `line` (groups,) int64: head · size + code, ascending;
    `sums` (groups + 1,) int64: rows before each.
    """

    axis: Axis
    heads: Rows
    line: Rows
    sums: Rows

    @classmethod
    def of(cls, axis: Axis, weight: int, keys: Rows, rows: Rows) -> "Windows":
        """From keys (groups,), in which the code of the factor has some weight, and the groups' rows."""
        codes = keys // weight % axis.size
        heads, head = np.unique(keys - codes * weight, return_inverse=True)
        line = head * axis.size + codes
        order = np.argsort(line, kind="stable")
        return cls(axis, heads, line[order], np.concatenate([[0], np.cumsum(rows[order])]))

    def count(self, keys: Array, codes: Array, must_differ: bool) -> Rows:
        """Rows within the window around codes of groups with these keys, in which the factor has code 0; broadcast."""
        head = np.minimum(np.searchsorted(self.heads, keys), max(len(self.heads) - 1, 0))
        base, size = head * self.axis.size, self.axis.size
        low, high = self.axis.window
        first, last = codes + low, codes + high
        rows = self._between(base + np.maximum(first, 0), base + np.minimum(last, size - 1))
        if self.axis.cyclic:  # what lies beyond one end comes from the other
            rows += self._between(base + np.minimum(first + size, size), base + size - 1)
            rows += self._between(base, base + np.maximum(last - size, -1))
        if must_differ:
            rows -= self._between(base + codes, base + codes)
        exists: Bools = self.heads[head] == keys
        return np.where(exists, rows, 0)

    def _between(self, first: Array, last: Array) -> Rows:
        """Rows of the line from one number to another, none where the last is before the first."""
        stop = np.searchsorted(self.line, last, side="right")
        return np.asarray(self.sums[stop] - self.sums[np.searchsorted(self.line, first)])
