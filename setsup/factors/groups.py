"""Rows that share the levels of some factors.

Groups are ordered lexicographically by level code, in the order in which the table lists the factors; members are
ordered by row; combinations that no row has are no groups. A grid needs arithmetic only; columns get a compressed
index (offsets and an order: 4 bytes per row, 8 beyond 2³² rows). Both give the same groups for the same rows.
"""

import hashlib
import json
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.checks import is_integer
from setsup.errors import FactorError, RowError, brief
from setsup.factors.columns import FactorColumns
from setsup.factors.counting import counting_sort, known_rows, number_cells, row_dtype, with_outer
from setsup.factors.types import Array, Mask, Rows
from setsup.factors.where import evaluate
from setsup.files import cache_folder, locked, written_folder
from setsup.files.atomic import clear
from setsup.files.mapped import check_mapped

__all__ = ["Groups", "group_by"]

CACHED_FROM = 50_000_000
"""Rows from which an index of columns is kept on disk."""

_VERSION = 1  # of the index on disk
_log = logging.getLogger("setsup")


class Groups:
    """Partition of a table's rows by some of its factors; made by :meth:`FactorTable.group_by`.

    Attributes
    ----------
    names : tuple of str
        The factors that the members of a group share, in table order; those they are nested in are among them.
    sizes : (groups,) int64
        Members of each group, at least 1.
    rows : int
        Rows that belong to a group.
    unknown : int
        Rows in no group because the value of a factor is unknown.
    excluded : int
        Rows that ``where`` left out.

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
        layout: "_Arithmetic | _Index",
        *,
        unknown: int = 0,
        excluded: int = 0,
    ) -> None:
        self.names = names
        self.sizes = sizes
        self.rows = int(sizes.sum())
        self.unknown = unknown
        self.excluded = excluded
        self._layout = layout

    def __len__(self) -> int:
        """Count the groups."""
        return len(self.sizes)

    def keys(self, groups: npt.ArrayLike | None = None) -> Rows:
        """Level codes that the members of groups share.

        Returns
        -------
        (..., factors) int64, factors in the order of ``names``; all groups by default

        """
        return self._layout.keys(np.arange(len(self)) if groups is None else np.asarray(groups, dtype=np.int64))

    def take(self, groups: npt.ArrayLike, positions: npt.ArrayLike) -> Rows:
        """Rows at the given positions of groups; unchecked, since every draw calls this.

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
        return self._layout.take(np.asarray(groups), np.asarray(positions))

    def members(self, group: int) -> Rows:
        """All rows of one group, ascending.

        Raises
        ------
        RowError
            When there is no such group.

        """
        if not is_integer(group) or not 0 <= group < len(self):
            raise RowError(f"group {brief(group)} is out of range: there are {len(self)} groups of {self.names}")
        return self.take(group, np.arange(self.sizes[group], dtype=np.int64))

    def of_rows(self) -> Rows:
        """Group of every row of the table, -1 for rows in none; (rows of the table,) int64."""
        found = np.full(self.rows + self.unknown + self.excluded, -1, dtype=np.int64)
        which = np.repeat(np.arange(len(self)), self.sizes)
        starts = np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        found[self.take(which, np.arange(self.rows) - starts)] = which
        return found

    def describe(self, table: FactorColumns, group: int) -> str:
        """Values that the members of a group share, as in ``"wall_hue = 0.3 turn, shape = cube"``."""
        parts = []
        for name, code in zip(self.names, self.keys(group), strict=True):
            factor = table[name]
            level = factor.levels[int(code)] if factor.levels is not None else "?"
            parts.append(f"{name} = {level}{' ' + factor.unit if factor.unit else ''}")
        return ", ".join(parts) or "all rows"


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """Groups of a grid: a group's number is its key in mixed radix, a member's the rest of the row's digits."""

    radix: tuple[int, ...]
    group_terms: "_Terms"
    member_terms: "_Terms"

    def keys(self, groups: Rows) -> Rows:
        codes = np.empty((*groups.shape, len(self.radix)), dtype=np.int64)
        for place in range(len(self.radix) - 1, -1, -1):
            codes[..., place] = groups % self.radix[place]
            groups = groups // self.radix[place]
        return codes

    def take(self, groups: Array, positions: Array) -> Rows:
        return _spread_out(groups, self.group_terms) + _spread_out(positions, self.member_terms)


@dataclass(frozen=True, slots=True)
class _Index:
    """Groups of columns: members of group g start at ``offsets[g]`` in ``order``."""

    codes: Array  # (groups, factors)
    offsets: Rows  # (groups,)
    order: Array | None  # (rows in a group,); None where row and position are the same

    def keys(self, groups: Rows) -> Rows:
        check_mapped(self.codes)
        return self.codes[groups].astype(np.int64)

    def take(self, groups: Array, positions: Array) -> Rows:
        check_mapped(self.offsets)
        if self.order is not None:
            check_mapped(self.order)
        index = self.offsets[groups] + positions
        return index if self.order is None else self.order[index].astype(np.int64, copy=False)


def group_by(table: FactorColumns, names: Iterable[str], where: str | Mask | None = None) -> Groups:
    """Partition rows by the levels of the named factors and of those they are nested in."""
    chosen = with_outer(table, names)
    if not isinstance(where, str | np.ndarray | None):
        raise FactorError(f"where must be an expression or (rows,) bool, not a {type(where).__name__}")
    if isinstance(where, np.ndarray) and (where.dtype != np.bool_ or where.shape != (len(table),)):
        raise FactorError(f"where must be an expression or ({len(table)},) bool, not {where.shape} {where.dtype}")
    if table.is_grid and where is None:
        return _of_grid(table, chosen)
    if len(table) >= CACHED_FROM and chosen and not isinstance(where, np.ndarray):
        return _find_or_index(table, chosen, where)
    return _index(table, chosen, evaluate(where, table) if isinstance(where, str) else where)


def _of_grid(table: FactorColumns, names: tuple[str, ...]) -> Groups:
    fixed = [factor.name in names for factor in table.factors]
    sizes = [len(factor) for factor in table.factors]
    radix = tuple(len(table[name]) for name in names)
    count = math.prod(radix)
    layout = _Arithmetic(radix, _terms(sizes, fixed), _terms(sizes, [not one for one in fixed]))
    return Groups(names, np.broadcast_to(np.int64(len(table) // count), (count,)), layout)


def _index(table: FactorColumns, names: tuple[str, ...], mask: Mask | None) -> Groups:
    excluded = 0 if mask is None else len(table) - int(np.count_nonzero(mask))
    columns, radix = [table.column(name) for name in names], [len(table[name]) for name in names]
    rows = known_rows(columns, mask)
    count = len(table) if rows is None else len(rows)
    if not names:
        sizes = np.array([count] if count else [], dtype=np.int64)
        layout = _Index(np.empty((len(sizes), 0), dtype=np.uint8), np.zeros(len(sizes), np.int64), rows)
        return Groups(names, sizes, layout, excluded=excluded)
    if rows is not None:
        columns = [column[rows] for column in columns]
    cell, cells, ranked = number_cells(columns, radix)
    offsets, order = counting_sort(cell, cells)
    sizes = np.diff(offsets)
    filled = np.flatnonzero(sizes)
    if ranked:
        first = order[offsets[filled]]
        codes = [column[first] for column in columns]
    else:
        digits = np.unravel_index(filled, radix)
        codes = [digit.astype(column.dtype) for digit, column in zip(digits, columns, strict=True)]
    if rows is not None:
        order = rows.astype(row_dtype(len(table)))[order]
    layout = _Index(np.stack(codes, axis=-1), offsets[filled], order)
    return Groups(names, sizes[filled], layout, unknown=len(table) - excluded - count, excluded=excluded)


_Terms = list[tuple[Array | None, Array | None]]


def _terms(sizes: list[int], chosen: list[bool]) -> _Terms:
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


def _spread_out(number: Array, terms: _Terms) -> Rows:
    if not terms:
        return np.zeros(number.shape, dtype=np.int64)
    rows: Rows | None = None
    for divisor, factor in terms:
        term = number if divisor is None else number // divisor
        if factor is not None:
            term = term * factor
        rows = term if rows is None else rows + term
    return np.asarray(rows, dtype=np.int64)


def _find_or_index(table: FactorColumns, names: tuple[str, ...], where: str | None) -> Groups:
    """Index of a large table from the cache on disk, built there first where it is missing or damaged."""
    identity = json.dumps([_VERSION, table.fingerprint, names, where])
    folder = cache_folder() / "groups" / hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
    found = _load(table, names, folder)
    if found is None:
        with locked(folder):
            found = _load(table, names, folder)  # another process may have been faster
            if found is None:
                _log.info("indexing %s rows by %s into %s", f"{len(table):,}", ", ".join(names), folder)
                found = _index(table, names, None if where is None else evaluate(where, table))
                clear(folder)
                _save(found, folder)
                found = _load(table, names, folder) or found  # mapped pages cost no memory of their own
    return found


def _save(groups: Groups, folder: Path) -> None:
    index = groups._layout
    if not isinstance(index, _Index) or index.order is None:
        raise FactorError("only the index of columns is kept on disk")
    arrays = {"sizes": groups.sizes, "codes": index.codes, "offsets": index.offsets, "order": index.order}
    with written_folder(folder) as temporary:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        counts = {"unknown": groups.unknown, "excluded": groups.excluded}
        (temporary / "counts.json").write_text(json.dumps(counts), encoding="utf-8")


def _load(table: FactorColumns, names: tuple[str, ...], folder: Path) -> Groups | None:
    """Index as it was stored; None where there is none, or an incomplete one."""
    if not folder.exists():
        return None

    def array(name: str) -> Array:
        return np.lib.format.open_memmap(folder / f"{name}.npy", mode="r").view(np.ndarray)

    try:
        counts = json.loads((folder / "counts.json").read_text(encoding="utf-8"))
        unknown, excluded = int(counts["unknown"]), int(counts["excluded"])
        codes, offsets, order = (array(name) for name in ("codes", "offsets", "order"))
        sizes = np.array(array("sizes"))  # in memory, as samplers keep as much of each group themselves
        whole = codes.shape == (len(sizes), len(names)) and sizes.shape == offsets.shape
        whole = whole and order.shape == (int(sizes.sum()),) and len(order) + unknown + excluded == len(table)
    except Exception as error:  # whatever is wrong with a cached file, it is rebuilt
        _log.warning("the index %s is damaged and will be rebuilt: %s", folder, error)
        return None
    if not whole:
        _log.warning("the index %s does not fit the table and will be rebuilt", folder)
        return None
    return Groups(names, sizes, _Index(codes, offsets, order), unknown=unknown, excluded=excluded)
