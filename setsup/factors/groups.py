"""Rows that share the levels of some factors.

Groups are ordered lexicographically by level code, in the order of the table's factors; members are ordered by row.
Combinations without rows are not groups. A grid needs arithmetic only; columns get a compressed index (offsets and an
order: 4 bytes per row, 8 beyond 2³² rows). Both give the same groups for the same rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Rows
from setsup.checks import check_memory, is_integer
from setsup.errors import FactorError, RowError, abbreviate
from setsup.factors.columns import FactorColumns
from setsup.files.mapped import check_mapped

__all__ = ["GridLayout", "Groups", "IndexLayout", "terms"]


class Groups:
    """Partition of a table's rows by some of its factors, made by :meth:`FactorTable.group_by`.

    Attributes
    ----------
    names : tuple of str
        Factors that the members of a group share, in table order, including those in which they are nested.
    sizes : (groups,) int64
        Number of members of each group, at least 1.
    rows : int
        Number of rows that belong to a group.
    unknown : int
        Number of rows in no group because the value of a factor is unknown.
    excluded : int
        Number of rows that ``where`` left out.

    Examples
    --------
    >>> from setsup.factors import Factor, FactorTable, Kind
    >>> table = FactorTable([Factor("hue", Kind.NOMINAL, ("red", "blue")), Factor("size", Kind.ORDINAL, (1, 2, 3))])
    >>> groups = table.group_by(["hue"])
    >>> len(groups), groups.members(1)
    (2, array([3, 4, 5]))
    >>> groups.take([0, 1], [2, 0])
    array([2, 3])

    """

    def __init__(
        self,
        names: tuple[str, ...],
        sizes: Rows,
        layout: "GridLayout | IndexLayout",
        *,
        unknown: int = 0,
        excluded: int = 0,
    ) -> None:
        self.names = names
        self.sizes = sizes
        even = sizes.strides == (0,) and len(sizes) > 0  # of a grid, which may have more groups than can be added up
        self.rows = int(sizes[0]) * len(sizes) if even else int(sizes.sum())
        self.unknown = unknown
        self.excluded = excluded
        self.layout = layout

    def __len__(self) -> int:
        """Count the groups."""
        return len(self.sizes)

    def keys(self, groups: npt.ArrayLike | None = None) -> Rows:
        """Return the level codes that the members of groups share.

        Returns
        -------
        (..., factors) int64, factors in the order of ``names``; all groups by default

        """
        return self.layout.keys(np.arange(len(self)) if groups is None else np.asarray(groups, dtype=np.int64))

    def take(self, groups: npt.ArrayLike, positions: npt.ArrayLike) -> Rows:
        """Return the rows at the given positions of groups; unchecked, since every draw calls this.

        Parameters
        ----------
        groups : integer array
            0 ≤ group < ``len(groups)``.
        positions : integer array
            0 ≤ position < size of the group; broadcast against the groups.

        Returns
        -------
        int64 array of the broadcast shape

        """
        return self.layout.take(np.asarray(groups), np.asarray(positions))

    def members(self, group: int) -> Rows:
        """Return all rows of one group, ascending.

        Raises
        ------
        RowError
            If the group is out of range.

        """
        if not is_integer(group) or not 0 <= group < len(self):
            raise RowError(
                f"group {abbreviate(group)} is out of range: {', '.join(self.names)} have {len(self)} groups, "
                "numbered from 0"
            )
        return self.take(group, np.arange(self.sizes[group], dtype=np.int64))

    def of_rows(self) -> Rows:
        """Return the group of every row of the table, -1 for rows in no group; (rows of the table,) int64."""
        total = self.rows + self.unknown + self.excluded
        check_memory(32 * total, f"the group of each of {total:,} rows", "the rows", FactorError)
        groups = np.full(total, -1, dtype=np.int64)
        which = np.repeat(np.arange(len(self)), self.sizes)
        starts = np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        groups[self.take(which, np.arange(self.rows) - starts)] = which
        return groups

    def find(self, table: FactorColumns, rows: npt.ArrayLike) -> tuple[Rows, Rows]:
        """Return the groups of some rows, and their positions in them; O(log rows) each.

        Parameters
        ----------
        table : FactorTable
            Table of these groups.
        rows : (n,) integer array
            Row numbers.

        Returns
        -------
        groups : (n,) int64
            Groups, -1 where a value is unknown, or no row with these values is in a group.
        positions : (n,) int64
            Positions, -1 for rows in no group: those, and rows that ``where`` left out.

        Raises
        ------
        RowError
            If a row number is out of range.

        """
        rows = np.asarray(rows, dtype=np.int64)
        known = np.ones(len(rows), dtype=bool)
        codes = [table.codes(name, rows) for name in self.names]
        for column in codes:
            known &= column >= 0
        group = self.layout.number(codes, len(rows))
        known &= group < len(self)
        groups, positions = np.full(len(rows), -1, dtype=np.int64), np.full(len(rows), -1, dtype=np.int64)
        if not known.any():
            return groups, positions
        which = np.flatnonzero(known)
        if codes:
            right = (self.keys(group[which]) == np.stack(codes, axis=-1)[which]).all(axis=-1)
            which = which[right]
        inside, wanted = group[which], rows[which]
        groups[which] = inside
        sizes = self.sizes[inside]
        position = _bisect(
            np.zeros(len(inside), np.int64), sizes, lambda middle, some: self.take(inside[some], middle) < wanted[some]
        )
        present = position < sizes
        present[present] = self.take(inside[present], position[present]) == wanted[present]
        positions[which[present]] = position[present]
        return groups, positions

    def describe(self, table: FactorColumns, group: int) -> str:
        """Return the values that the members of a group share, such as ``"wall_hue = 0.3 turn, shape = cube"``."""
        parts = []
        for name, code in zip(self.names, self.keys(group), strict=True):
            factor = table[name]
            level = factor.levels[int(code)] if factor.levels is not None else "?"
            parts.append(f"{name} = {level}{' ' + factor.unit if factor.unit else ''}")
        return ", ".join(parts) or "all rows"


@dataclass(frozen=True, slots=True)
class GridLayout:
    """Groups of a grid: a group's number is its key in mixed radix, a member's the rest of the row's digits."""

    radix: tuple[int, ...]
    group_terms: "Terms"
    member_terms: "Terms"

    def keys(self, groups: Rows) -> Rows:
        """Level codes of groups, (..., factors)."""
        codes = np.empty((*groups.shape, len(self.radix)), dtype=np.int64)
        for axis in range(len(self.radix) - 1, -1, -1):
            codes[..., axis] = groups % self.radix[axis]
            groups = groups // self.radix[axis]
        return codes

    def number(self, codes: list[Array], count: int) -> Rows:
        """Numbers of the groups of some codes by factor; of no meaning where a code is negative."""
        numbers = np.zeros(count, dtype=np.int64)
        for column, size in zip(codes, self.radix, strict=True):
            numbers = numbers * size + column
        return numbers

    def take(self, groups: Array, positions: Array) -> Rows:
        """Rows at positions of groups."""
        return self.at(self.start(groups), positions)

    def start(self, groups: Array) -> Rows:
        """What :meth:`at` needs of groups: their first rows."""
        return _spread_out(groups, self.group_terms)

    def at(self, start: Rows, positions: Array) -> Rows:
        """Rows at positions of the groups that start there."""
        return start + _spread_out(positions, self.member_terms)


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """Groups of columns: members of group g start at ``offsets[g]`` in ``order``."""

    codes: Array  # (groups, factors)
    offsets: Rows  # (groups,)
    order: Array | None  # (rows in a group,); None where row and position are the same

    def keys(self, groups: Rows) -> Rows:
        """Level codes of groups, (..., factors)."""
        check_mapped(self.codes)
        return self.codes[groups].astype(np.int64)

    def number(self, codes: list[Array], count: int) -> Rows:
        """First groups whose codes are no less than some, by factor: the numbers of those that are equal."""
        check_mapped(self.codes)
        low, high = np.zeros(count, np.int64), np.full(count, len(self.codes), np.int64)
        for axis, column in enumerate(codes):

            def less(middle: Rows, some: Array, own: Array = self.codes[:, axis], wanted: Array = column) -> Array:
                return np.asarray(own[middle].astype(np.int64) < wanted[some])

            def no_more(middle: Rows, some: Array, own: Array = self.codes[:, axis], wanted: Array = column) -> Array:
                return np.asarray(own[middle].astype(np.int64) <= wanted[some])

            low, high = _bisect(low, high, less), _bisect(low, high, no_more)
        return low

    def take(self, groups: Array, positions: Array) -> Rows:
        """Rows at positions of groups."""
        return self.at(self.start(groups), positions)

    def start(self, groups: Array) -> Rows:
        """What :meth:`at` needs of groups: where their members start."""
        check_mapped(self.offsets)
        return self.offsets[groups]

    def at(self, start: Rows, positions: Array) -> Rows:
        """Rows at positions of the groups that start there."""
        index = start + positions
        if self.order is None:
            return index
        check_mapped(self.order)
        return self.order[index].astype(_ROW, copy=False)


def _bisect(low: Rows, high: Rows, before: Callable[[Rows, Bools], Array]) -> Rows:
    """First places in low … high that are not before what is sought, all at once; ``before`` is given the open ones."""
    low, high = low.copy(), high.copy()
    while True:
        some = low < high
        if not some.any():
            return low
        middle = (low[some] + high[some]) // 2
        yes = before(middle, some)
        low[some], high[some] = np.where(yes, middle + 1, low[some]), np.where(yes, high[some], middle)


_ROW = np.dtype(np.int64)  # looked up once: the type costs as much as a call on a few rows
Terms = list[tuple[Array | None, Array | None]]


def terms(sizes: list[int], chosen: list[bool]) -> Terms:
    """Divisors and factors that turn a number m in mixed radix over chosen axes of a C-order grid into its row.

    With digits dᵢ = qᵢ − nᵢ·qᵢ₊₁ of the quotients qᵢ = m // (n₀⋯nᵢ₋₁), the row Σ dᵢ·strideᵢ is
    Σ qᵢ·(strideᵢ − nᵢ₋₁·strideᵢ₋₁): one division per run of neighbouring axes, and no remainder.
    """
    runs: list[tuple[int, int]] = []  # (size, stride) of neighbouring chosen axes joined, fastest first
    stride, previous = 1, False
    for size, here in zip(reversed(sizes), reversed(chosen), strict=True):
        if here and previous:
            runs[-1] = (runs[-1][0] * size, runs[-1][1])
        elif here:
            runs.append((size, stride))
        stride, previous = stride * size, here
    terms, divisor, before = [], 1, 0
    for size, step in runs:
        terms.append((_unless_one(divisor), _unless_one(step - before)))
        divisor, before = divisor * size, size * step
    return terms


def _unless_one(number: int) -> Array | None:
    """An array of no axis, with which arithmetic costs half of what it does with an int; None for 1."""
    return None if number == 1 else np.array(number, dtype=np.int64)


def _spread_out(number: Array, terms: Terms) -> Rows:
    if not terms:
        return np.zeros(number.shape, dtype=np.int64)
    rows: Rows | None = None
    for divisor, factor in terms:
        term = number if divisor is None else number // divisor
        if factor is not None:
            term = term * factor
        rows = term if rows is None else rows + term
    return np.asarray(rows, dtype=_ROW)
