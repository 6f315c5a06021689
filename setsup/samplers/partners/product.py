"""Partners in a product of levels, such as a full grid: by arithmetic alone."""

import math
from dataclasses import dataclass

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.random import randint_below
from setsup.samplers.partners.cells import Axis, Cells

__all__ = ["ProductPartners"]


@dataclass(frozen=True, slots=True)
class _Choices:
    """Codes that the partner of a code may have, ascending.

    `listed` (codes, most) int64, None where all codes are, or all others; `counts` (codes,) int64.
    """

    listed: Rows | None
    counts: Rows
    must_differ: bool

    @classmethod
    def of(cls, axis: Axis, must_differ: bool) -> "_Choices":
        if axis.radius is None or axis.size == 1:
            return cls(None, np.full(axis.size, axis.size - must_differ, dtype=np.int64), must_differ)
        steps = np.array(axis.steps(must_differ), dtype=np.int64)
        codes, exists = axis.move(np.arange(axis.size)[:, None], steps)
        listed = np.sort(np.where(exists, codes, axis.size), axis=1)
        return cls(listed, exists.sum(axis=1), must_differ)

    def take(self, codes: Rows, positions: Rows) -> Rows:
        """Codes at places among the choices of others."""
        if self.listed is not None:
            return np.asarray(self.listed[codes, positions])
        return positions + (positions >= codes) if self.must_differ else positions


class ProductPartners:
    """Pairs of rows of a product that differ in given factors.

    Attributes
    ----------
    anchors : (subsets,) int64
        Rows that have a partner, by subset of factors.
    log_pairs : (subsets,) float64
        Natural logarithm of the number of ordered pairs, −∞ where there are none.
    lonely : int
        Rows that have no partner for any subset.
    paired : (cells,) bool
        Whether the rows of a cell have a partner for some subset.

    """

    def __init__(self, cells: Cells, subsets: Bools, must_differ: bool) -> None:
        self._cells, self._subsets = cells, subsets
        self._each = int(cells.groups.sizes[0]) if len(cells) else 1
        self._choices = [_Choices.of(axis, must_differ) for axis in cells.axes]
        vary = np.array([axis.size > 1 for axis in cells.axes])
        feasible = (vary | ~subsets).all(axis=1) if must_differ else (vary & subsets).any(axis=1)
        self.anchors: Rows = np.where(feasible, cells.groups.rows, 0)
        logs = [(math.log(max(axis.size, 1)), math.log(max(int(c.counts.sum()), 1))) for axis, c in self._paired()]
        changed = np.where(subsets, [log for _, log in logs], [log for log, _ in logs]).sum(axis=1)
        self.log_pairs: Reals = np.where(feasible, changed + 2 * math.log(self._each), -np.inf)
        self.paired: Bools = np.broadcast_to(np.bool_(feasible.any()), len(cells))
        self.lonely = 0 if feasible.any() else cells.groups.rows

    def _paired(self) -> list[tuple[Axis, _Choices]]:
        return list(zip(self._cells.axes, self._choices, strict=True))

    @property
    def even(self) -> bool:
        """Whether all rows have equally many partners: levels are not limited to a radius."""
        return all(choices.listed is None for choices in self._choices)

    def rows(self, subsets: Bools) -> Reals:
        """Rows that are equal to a row outside each of some subsets (subsets, factors), itself included."""
        sizes = np.array([axis.size for axis in self._cells.axes], dtype=np.float64)
        return np.asarray(np.prod(np.where(subsets, sizes, 1.0), axis=1) * self._each)

    def draw(self, which: Rows, first: Words, second: Words) -> tuple[Rows, Rows, Rows]:
        """Anchors and partners (pairs,) by the numbers of their subsets and a word each; and cells of the anchors."""
        groups = self._cells.groups
        cell, position = np.divmod(randint_below(first, groups.rows), self._each)
        codes: list[Rows] = []
        rest = cell
        for axis in reversed(self._cells.axes):
            rest, code = np.divmod(rest, axis.size)
            codes.append(code)
        codes.reverse()
        changed = self._subsets[which].T
        counts: list[Array] = [
            np.where(differs, choices.counts[code], 1)
            for differs, choices, code in zip(changed, self._choices, codes, strict=True)
        ]
        rest, partner_position = np.divmod(randint_below(second, math.prod(counts) * self._each), self._each)
        partner, stride = np.zeros_like(cell), 1
        for axis, differs, choices, code, count in reversed(
            list(zip(self._cells.axes, changed, self._choices, codes, counts, strict=True))
        ):
            rest, digit = np.divmod(rest, count)
            # where the factor stays, the only digit is 0, and what is taken for it does not matter
            partner += stride * np.where(differs, choices.take(code, digit), code)
            stride *= axis.size
        return groups.take(cell, position), groups.take(partner, partner_position), cell
