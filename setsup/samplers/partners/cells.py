"""Cells: the rows with equal levels of all compared factors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from setsup.arrays import Bools, Reals, Rows
from setsup.checks import check_memory
from setsup.errors import SamplerError
from setsup.factors.counting import number_cells
from setsup.factors.factor import Kind
from setsup.factors.grouping import group_by
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.samplers.groups.units import Units

__all__ = ["Axis", "Cells", "cells_of"]


@dataclass(frozen=True, slots=True)
class Axis:
    """One compared factor: how many codes it has, whether they close a cycle, and how far pairs may step.

    A nested factor has a code for each of its levels within each level of what it is nested in.
    """

    name: str
    size: int
    cyclic: bool
    radius: int | None

    def steps(self, must_differ: bool) -> list[int]:
        """Steps within the radius, each leading to another code; without 0 where the code must differ."""
        first, last = self.window
        return [step for step in range(first, last + 1) if step or not must_differ]

    @property
    def window(self) -> tuple[int, int]:
        """First and last step within the radius."""
        reach = self.size - 1 if self.radius is None else min(self.radius, self.size - 1)
        if self.cyclic:  # half a cycle is the farthest, and the same both ways
            return max(-reach, -((self.size - 1) // 2)), min(reach, self.size // 2)
        return -reach, reach

    def move(self, codes: Rows, steps: Rows | int) -> tuple[Rows, Bools]:
        """Codes so many steps on, and which of them there are."""
        moved = codes + steps
        if self.cyclic:
            return moved % self.size, np.ones(moved.shape, dtype=bool)
        exists = (moved >= 0) & (moved < self.size)
        return np.where(exists, moved, 0), exists


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of the rows that may be drawn, in lexicographic order of their codes.

    Attributes
    ----------
    groups : Groups
        Rows of each cell.
    axes : tuple of Axis
        Compared factors in table order; those of a product have the codes that occur only, and no gaps.
    columns : list of (cells,) int64
        Codes of the cells, by axis; none for a product.
    product : bool
        Whether every combination of codes is a cell, and all cells have equally many rows, without weights.
    units : Units, optional
        Rows of the cells by weight.

    """

    groups: Groups
    axes: tuple[Axis, ...]
    columns: list[Rows]
    product: bool
    units: Units | None = None

    def __len__(self) -> int:
        """Count the cells."""
        return len(self.groups)

    @property
    def varying(self) -> list[int]:
        """Places of the factors of which more than one level occurs."""
        if self.product:
            return [index for index, axis in enumerate(self.axes) if axis.size > 1]
        return [index for index, column in enumerate(self.columns) if (column != column[:1]).any()]


def cells_of(
    table: FactorTable,
    names: Sequence[str],
    radius: Mapping[str, int],
    where: Bools | None,
    weights: Reals | None = None,
) -> Cells:
    """Cells of a table by the named factors; rows with an unknown value are in none.

    `weights` (rows,) float64, positive in the rows that ``where`` keeps.
    """
    groups = group_by(table, names, where)
    factors = [table[name] for name in groups.names]
    axes = [Axis(factor.name, len(factor), factor.kind is Kind.CYCLIC, radius.get(factor.name)) for factor in factors]
    if weights is None and groups.sizes.strides == (0,) and not any(factor.within for factor in factors):
        return Cells(groups, tuple(axes), [], True)
    check_memory(24 * len(groups) * len(axes), f"{len(groups):,} combinations of levels", "the factors", SamplerError)
    keys = np.ascontiguousarray(groups.keys().T)
    columns = [_with_outer(table, groups.names, keys, index) for index in range(len(axes))]
    present = [np.unique(column) for column in columns]
    even = weights is None and bool((groups.sizes == groups.sizes[:1]).all())
    # where levels within a radius do not occur, steps lead out of what would be a product
    whole = all(axis.radius is None or len(codes) == axis.size for axis, codes in zip(axes, present, strict=True))
    if not len(groups) or (even and whole and math.prod(map(len, present)) == len(groups)):
        axes_of_cells = [
            Axis(axis.name, len(codes), axis.cyclic, axis.radius) for axis, codes in zip(axes, present, strict=True)
        ]
        return Cells(groups, tuple(axes_of_cells), [], True)
    axes_of_cells = [
        Axis(axis.name, max(axis.size, int(codes[-1]) + 1 if len(codes) else 1), axis.cyclic, axis.radius)
        for axis, codes in zip(axes, present, strict=True)
    ]
    units = None
    if weights is not None:
        every = np.arange(len(groups))
        units = Units(groups, every, np.zeros_like(every), weights)
    return Cells(groups, tuple(axes_of_cells), columns, False, units)


def _with_outer(table: FactorTable, names: tuple[str, ...], keys: Rows, index: int) -> Rows:
    """Codes of a factor; of a nested one, a number for each combination with the levels it is nested in."""
    outer = table.outer(names[index])
    if not outer:
        return np.asarray(keys[index])
    whole = [names.index(name) for name in (*reversed(outer), names[index])]
    numbers = number_cells([keys[i] for i in whole], [len(table[names[i]]) for i in whole])[0]
    return np.asarray(numbers, dtype=np.int64)
