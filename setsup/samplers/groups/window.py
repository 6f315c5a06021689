"""A continuous factor fixed within a tolerance: an anchor row, and rows whose values are near the anchor's.

Members of a group are sorted by value once; the rows near an anchor are then a run of that order (one that may wrap
around where the factor is periodic).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Reals, Rows
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.random import randint_below
from setsup.samplers.groups.members import fill_evenly
from setsup.samplers.groups.within import ANCHOR, Keys

__all__ = ["WindowMembers"]

_RESOLVED = 16  # no more than this part of a tolerance is left to rounding, lest neighbours in float32 be one
_UNITS = 62  # chances are added as integers of 2**-62; those of a group add up to 1 at most
_BLOCK = 1 << 14  # rows whose neighbourhoods are sought at a time: what that takes stays in the processor's cache


class WindowMembers:
    """Rows around an anchor; the anchor takes slot 0.

    `tolerance`: in the factor's unit, at least 0: members differ from the anchor by no more, but for the rounding
    of both values to float32 (half of a last place each, and no more than a sixteenth of the tolerance): so 0.3
    and 0.4 differ by 0.1. Where angles lie beyond their period, such that they lose digits as they are taken back
    into it, that of the largest counts for all.
    """

    def __init__(
        self, table: FactorTable, groups: Groups, name: str, tolerance: float, need: int, on_small_group: str
    ) -> None:
        self.name, self.totals = name, groups.sizes
        self._begin = np.cumsum(groups.sizes) - groups.sizes
        self._count = groups.sizes
        which = np.repeat(np.arange(len(groups)), groups.sizes)
        rows = groups.take(which, np.arange(groups.rows) - self._begin[which])
        values = table.column(name)[rows]
        period, self._coarse = table[name].period, 0.0
        if period is not None:
            errors = _half_place(values)
            values = np.mod(values.astype(np.float64), period)
            if (errors > _half_place(values)).any():
                self._coarse = float(errors.max())
        order = np.lexsort((values, which))
        self._rows = rows[order]
        self._values = values[order].astype(np.float64)
        self._column = table.column(name)
        self._first, self.widths = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            self._first[block], self.widths[block] = self._windows(which[block], self._values[block], tolerance, period)
        enough = np.ones(len(rows), bool) if on_small_group in ("short", "replace") else self.widths >= need
        self._anchors = np.flatnonzero(enough)
        bounds = np.searchsorted(self._anchors, np.append(self._begin, len(rows)))
        self._anchor_begin, self._anchor_count = bounds[:-1], np.diff(bounds)
        # a group is as large as its widest neighbourhood: that decides whether anything can be drawn from it
        self.sizes = np.maximum.reduceat(self.widths, self._begin) if len(groups) else np.zeros(0, np.int64)

    def crowded(self, slots: int) -> bool:
        """Never known: neighbourhoods differ in size."""
        return False

    def _windows(self, which: Rows, anchor: Reals, tolerance: float, period: float | None) -> tuple[Rows, Rows]:
        """First position within the group, and number, of the rows near rows of given groups and values."""
        begin = self._begin[which]
        end = begin + self._count[which]
        error = self._errors(anchor)

        def near(upper: Array, lower: Array, value: Array) -> Bools:
            """Whether ``upper`` exceeds ``lower`` by the tolerance at most, or did before both became float32."""
            slack = np.minimum(error + self._errors(value), tolerance / _RESOLVED)
            return np.asarray(upper - lower <= tolerance + slack)

        low = self._bound(begin, end, lambda value: near(anchor, value, value))
        high = self._bound(begin, end, lambda value: ~near(value, anchor, value))
        if period is None:
            return low - begin, high - low
        count = end - begin
        # near rows on the other side of the seam, above and below
        above = self._bound(begin, end, lambda value: near(anchor + period, value, value))
        below_seam = self._bound(begin, end, lambda value: ~near(value + period, anchor, value))
        width = (high - low) + (end - above) + (below_seam - begin)
        first = np.where(above < end, above, low) - begin
        whole = width >= count
        return np.where(whole, 0, first), np.where(whole, count, width)

    def _errors(self, values: Reals) -> Reals:
        """Largest errors that rounding to float32 left in values, which were taken into their period since."""
        return np.maximum(_half_place(values), self._coarse)

    def _bound(self, begin: Rows, end: Rows, reached: Any) -> Rows:
        """First position in begin … end at which a monotone condition on the value holds, for all rows at once."""
        low, high = begin.copy(), end.copy()
        while True:
            open_ = low < high
            if not open_.any():
                return low
            middle = np.where(open_, (low + high) // 2, begin)
            hit = reached(self._values[middle])
            high = np.where(open_ & hit, middle, high)
            low = np.where(open_ & ~hit, middle + 1, low)

    def draw(self, keys: Keys, groups: Rows, slots: int, on_small_group: str) -> tuple[Rows, Bools | None]:
        """Rows (draws, slots) around an anchor of the given groups, and which slots count."""
        turn = randint_below(keys.bits(ANCHOR, 1)[:, 0], self._anchor_count[groups])
        anchor = self._anchors[self._anchor_begin[groups] + turn]
        begin, count = self._begin[groups], self._count[groups]
        start, others = self._first[anchor], self.widths[anchor] - 1
        anchor_position = (anchor - begin - start) % count
        rows = np.repeat(self._rows[anchor][:, None], slots, axis=1)
        if slots == 1:
            return rows, None
        # an anchor alone has nothing to add to a short set
        draws = np.flatnonzero(others > 0) if on_small_group == "short" else np.arange(len(others))
        part = keys.part(draws)
        sizes = others[draws]
        # with repeats the anchor may come again: it is the position after the others
        position, counts = fill_evenly(sizes, slots - 1, on_small_group, part, more=1)
        again = position == sizes[:, None]
        position += position >= anchor_position[draws, None]
        near = self._rows[begin[draws, None] + (start[draws, None] + position) % count[draws, None]]
        if counts is not None:  # padding repeats the set's first member
            again |= ~counts
        rows[draws, 1:] = np.where(again, rows[draws, :1], near)
        mask = np.zeros(rows.shape, dtype=bool)
        mask[:, 0] = True
        mask[draws, 1:] = True if counts is None else counts
        return rows, mask if on_small_group == "short" else None

    def anchors(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Values of the anchors, given as drawn rows whose slot 0 they take; float32 as the table has them."""
        return self._column[rows[..., 0]]

    def unreachable(self, drawable: Rows) -> int:
        """Rows that no anchor of these groups has near."""
        anchors, _ = self._anchors_of(drawable)
        return int((self._covered(anchors, np.ones(len(anchors), dtype=np.int64)) == 0).sum())

    def chances(self, size: int, full: int, on_small_group: str, groups: Rows) -> tuple[Rows, Reals]:
        """Rows, ascending, and the chance of each to be in a set of ``size`` rows of its group, if that is given.

        `full`: rows that a draw has at other steps, where those beyond ``size`` are masked.
        """
        anchors, which = self._anchors_of(groups)
        others = np.maximum(self.widths[anchors] - 1, 1)
        chance = np.where(self.widths[anchors] > 1, np.minimum((size - 1) / others, 1.0), 0.0)
        if on_small_group == "replace":
            few = self.widths[anchors] < full
            chance = np.where(few, 1 - (1 - 1 / self.widths[anchors]) ** (size - 1), chance)
        share = 1 / self._anchor_count[which]
        amounts = np.rint(np.ldexp(chance * share, _UNITS)).astype(np.int64)
        chances = np.ldexp(self._covered(anchors, amounts).astype(np.float64), -_UNITS)
        chances[anchors] += share * (1 - chance)  # an anchor is always in its set
        order = np.argsort(self._rows)
        return self._rows[order], chances[order]

    def _anchors_of(self, groups: Rows) -> tuple[Rows, Rows]:
        """Anchors of given groups, as positions among all sorted rows, and the group of each."""
        drawn = np.zeros(len(self._begin), dtype=bool)
        drawn[groups] = True
        which = np.repeat(np.arange(len(self._begin)), self._count)[self._anchors]
        return self._anchors[drawn[which]], which[drawn[which]]

    def _covered(self, anchors: Rows, amounts: Rows) -> Rows:
        """Sum of the amounts of the anchors that each sorted row is near, (rows,).

        They are integers, whose sums take back exactly what they added: of numbers, a rest would stay behind each run.
        """
        which = np.repeat(np.arange(len(self._begin)), self._count)[anchors]
        # a run of positions covers: +1 where it starts, -1 behind its end, wrapped runs as two
        edges = np.zeros(len(self._rows) + 1, dtype=np.int64)
        begin, count = self._begin[which], self._count[which]
        first, width = self._first[anchors], self.widths[anchors]
        over = np.maximum(first + width - count, 0)
        np.add.at(edges, begin + first, amounts)
        np.add.at(edges, begin + first + width - over, -amounts)
        np.add.at(edges, begin, np.where(over > 0, amounts, 0))
        np.add.at(edges, begin + over, np.where(over > 0, -amounts, 0))
        return np.cumsum(edges[:-1])


def _half_place(values: Reals) -> Reals:
    """Largest error of numbers that were rounded to these float32 values."""
    return np.asarray(np.spacing(np.abs(values).astype(np.float32)), dtype=np.float64) / 2
