"""Groups of cells by many lists of factors, each with its cells in order."""

import itertools
import math
from collections.abc import Mapping

import numpy as np

from setsup.arrays import Array, Bools, Rows
from setsup.checks import check_memory
from setsup.errors import SamplerError, spell_name
from setsup.factors.counting import number_cells
from setsup.samplers.partners.cells import Cells
from setsup.samplers.partners.windows import Windows

__all__ = ["Groupings"]


class Groupings:
    """Groups of cells that agree in the factors of each list, numbered over all lists.

    `equal` (lists, factors) bool: factors of each list; `near` (some,) int64: places of the factors that pairs step in.

    Attributes
    ----------
    number : (lists, cells) int32 or int64
        Group of each cell.
    sorted : (lists · cells,) int64
        The cells of all groups, group after group, as group · cells + cell.
    ends : (lists · cells + 1,) int64 or None
        Rows, or units of weight, before each of these; None where each has one row.
    totals : (groups,) int64
        Rows of each group.

    """

    def __init__(self, cells: Cells, equal: Bools, near: Rows) -> None:
        self._cells, self._equal, self._near = cells, equal, near
        count, lists = len(cells), len(equal)
        sizes: Rows = np.asarray(cells.groups.sizes)
        load = sizes if cells.units is None else cells.units.totals
        unit = cells.units is None and bool((sizes == 1).all())
        need = lists * count * ((32 if unit else 48) + (40 if len(self._near) else 0))
        what = f"the groups of {count:,} combinations of levels by {lists:,} lists of factors"
        check_memory(need, what, "k or among", SamplerError)
        radix = [axis.size for axis in cells.axes]
        self._weights = [math.prod(radix[index + 1 :]) for index in range(len(radix))]
        self._span = math.prod(radix)
        whole = self._span * lists < 2**62
        if len(self._near) and not whole:
            names = ", ".join(cells.axes[index].name for index in self._near)
            raise SamplerError(
                f"{spell_name('radius')} of {names} requires fewer than 2**62 combinations of levels; compare fewer "
                "factors"
            )
        self.sorted = np.empty(lists * count, dtype=np.int64)
        self.number = np.empty((lists, count), dtype=np.int32 if lists * count < 2**31 else np.int64)
        ends = None if unit else np.zeros(lists * count + 1, dtype=np.int64)
        totals, known, first = [], [], 0
        for list_index, same in enumerate(equal):
            columns = list(itertools.compress(zip(cells.columns, self._weights, radix, strict=True), same))
            if whole:
                key = sum((column * weight for column, weight, _ in columns), np.zeros(count, dtype=np.int64))
            else:
                key = number_cells([column for column, _, _ in columns], [size for _, _, size in columns])[0]
            order = np.argsort(key, kind="stable")
            ordered = key[order]
            starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            number = np.repeat(np.arange(first, first + len(starts)), np.diff(starts, append=count))
            self.number[list_index, order] = number
            self.sorted[list_index * count : (list_index + 1) * count] = number * count + order
            if ends is not None:
                ends[list_index * count + 1 : (list_index + 1) * count + 1] = load[order]
            totals.append(np.add.reduceat(sizes[order], starts))
            if len(self._near):
                known.append(ordered[starts] + list_index * self._span)
            first += len(starts)
        self.ends = None if ends is None else np.cumsum(ends)  # units may wrap around, which their sums undo
        self.totals = np.concatenate(totals)
        self._known = np.concatenate(known) if known else None

    def find(self, lists: Array, cells: Array, steps: Array) -> tuple[Rows, Bools | None]:
        """Groups of cells, steps away, by their lists; and which there are (None: all)."""
        if self._known is None or not steps.any():
            return np.asarray(self.number[lists, cells], dtype=np.int64), None
        moved = dict(zip(self._near.tolist(), np.moveaxis(steps, -1, 0), strict=True))
        key, exists = self.keys(lists, cells, moved)
        number = np.minimum(np.searchsorted(self._known, key), len(self._known) - 1)
        return number, exists & (self._known[number] == key)

    def keys(
        self, lists: Array, cells: Array, moves: Mapping[int, Array | int], without: int | None = None
    ) -> tuple[Rows, Bools]:
        """Keys of cells, some steps away, by their lists, without one factor; and which there can be."""
        key: Array = np.asarray(lists * self._span)
        exists: Bools = np.ones((), dtype=bool)
        for index, (axis, column) in enumerate(zip(self._cells.axes, self._cells.columns, strict=True)):
            if index == without:
                continue
            codes = column[cells]
            if index in moves:
                codes, step_exists = axis.move(codes, moves[index])
                exists = exists & step_exists
            key = key + np.where(self._equal[lists, index], codes * self._weights[index], 0)
        return key, exists

    def windows(self, index: int) -> Windows:
        """Groups of all lists in the order of the other factors, then of one."""
        known: Array = np.zeros(0, dtype=np.int64) if self._known is None else self._known
        return Windows.of(self._cells.axes[index], self._weights[index], known, self.totals)
