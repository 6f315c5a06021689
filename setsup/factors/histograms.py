"""Rows counted by the values of their factors, block by block: memory does not grow with the table."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Counts, Reals
from setsup.checks import check_integer, check_strings
from setsup.errors import FactorError
from setsup.factors.columns import FactorColumns
from setsup.factors.where import check_where, evaluate

__all__ = ["count_all", "count_joint", "count_values"]

Where = str | npt.NDArray[np.bool_]

_MOST_CELLS = 1 << 30  # combinations counted at once, 8 bytes each
_MOST_BINS = 1 << 20
_BLOCK = 1 << 16  # rows at a time: what that takes stays in the processor's cache
_SHORT = 1 << 14  # numbers at a time, which take several times more
_LONGEST = 1 << 27  # rows of a grid's column that is made
_DENSE = 1 << 13  # cells up to which a block is counted into an array of all cells
_FUSED = 1 << 14  # combinations that are counted to count each of several factors: their array stays in the cache


def count_joint(table: FactorColumns, names: Iterable[str], where: Where | None) -> Counts:
    """Rows of each combination of levels, one axis per factor in the order of ``names``."""
    names = check_strings(names, "the factors to count", FactorError)
    sizes = tuple(len(table[name]) for name in names)
    for name in names:
        if table[name].continuous:
            raise FactorError(
                f"factor {name!r} is continuous, so it has no levels to count; use table.binned({name!r}, …), or "
                f"table.histogram({name!r})"
            )
    cells = math.prod(sizes)
    if cells > _MOST_CELLS:
        raise FactorError(
            f"{', '.join(names)} have {cells:,} combinations of levels, too many to count each one; to count only "
            f"those that occur, use group_by({names!r}).sizes"
        )
    mask = rows_kept(table, where)
    if not names:
        return np.array(len(table) if mask is None else np.count_nonzero(mask), dtype=np.int64)
    if table.is_grid and mask is None:
        return np.full(sizes, len(table) // cells, dtype=np.int64)
    counts = np.zeros(cells, dtype=np.int64)
    # an array of all cells costs as much as they are many, so that blocks grow with them
    block = _BLOCK if cells <= _DENSE else min(max(cells, _BLOCK), 1 << 22)
    for columns, selected in _blocks(table, names, mask, block):
        key = _number(columns, sizes, selected)
        if cells <= 4 * block:
            counts += np.bincount(key, minlength=cells + 1)[:cells]
        else:
            numbers, rows = np.unique(key, return_counts=True)
            known = numbers < cells
            counts[numbers[known]] += rows[known]
    return counts.reshape(sizes)


def count_all(table: FactorColumns, names: Sequence[str], where: Where | None) -> dict[str, Counts]:
    """Rows of each level of discrete factors, (levels,) each, in one pass.

    Counting is dearer than combining codes, so that several factors are counted by their combinations, which are then
    summed; of a filter, the rows that it keeps are taken out of each block once for all factors.
    """
    sizes = {name: len(table[name]) for name in names}
    mask = rows_kept(table, where)
    if table.is_grid and mask is None:
        return {name: np.full(size, len(table) // max(size, 1), dtype=np.int64) for name, size in sizes.items()}
    counts: dict[str, Counts] = {}
    some = [name for name in names if sizes[name] < _FUSED]
    # with one more level, for what is unknown
    fused = [(part, np.zeros([sizes[name] + 1 for name in part], dtype=np.int64)) for part in _parts(some, sizes)]
    for columns, selected in _blocks(table, some, mask, _BLOCK):
        rows = None if selected is None else np.flatnonzero(selected)
        of = dict(zip(some, columns, strict=True))
        for part, cells in fused:
            codes = [of[name] if rows is None else of[name].take(rows) for name in part]
            cells += np.bincount(_fuse(codes, cells.shape), minlength=cells.size).reshape(cells.shape)
    for part, cells in fused:
        for axis, name in enumerate(part):
            others = tuple(other for other in range(cells.ndim) if other != axis)
            counts[name] = cells.sum(axis=others)[:-1]
    return {name: counts[name] if name in counts else count_joint(table, [name], mask) for name in names}


def _parts(names: Sequence[str], sizes: dict[str, int]) -> list[list[str]]:
    """Factors, in their order, in parts with few combinations of levels."""
    parts: list[list[str]] = []
    cells = _FUSED + 1
    for name in names:
        cells *= sizes[name] + 1
        if cells > _FUSED:
            parts.append([])
            cells = sizes[name] + 1
        parts[-1].append(name)
    return parts


def _fuse(codes: list[Array], sizes: tuple[int, ...]) -> Array:
    """Number of each row's combination, (rows,) uint16; the largest code of a dtype is the last of its size."""
    key = np.zeros(len(codes[0]), dtype=np.uint16)
    for column, size in zip(codes, sizes, strict=True):
        key *= np.uint16(size)
        np.add(key, np.minimum(column, column.dtype.type(size - 1)), out=key, casting="unsafe")
    return key


def count_values(
    table: FactorColumns,
    name: str,
    bins: int,
    within: tuple[float, float] | None,
    where: Where | None,
    *,
    wrap: bool = True,
) -> tuple[Counts, Reals]:
    """Rows of each of some bins of equal width of a continuous factor, (bins,), and their edges, (bins + 1,).

    Edges are numbers that a column can hold, so that comparing with them, as an expression does, counts the same rows.
    Cyclic values are wrapped into their period; without `wrap` they are counted as they are, which an expression also
    does: from 0 to the period where all are within, else from the least to the largest.
    """
    factor = table[name]
    if not factor.continuous:
        raise FactorError(f"factor {name!r} has levels; to count the rows of each level, use counts({name!r})")
    bins = check_integer(bins, "bins", FactorError, 1, _MOST_BINS)
    mask = rows_kept(table, where)
    column = table.column(name)
    period = factor.period if within is None else None
    low, high = _range(column, period if wrap else None) if within is None else within
    if period is not None and low >= 0.0 and high <= period:
        low, high = 0.0, float(period)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise FactorError(f"within must be two finite numbers, the lower first, not {within!r}")
    if within is None or low == high:
        low, high = _widen(low, high, bins)
    edges, width = np.linspace(low, high, bins + 1), (high - low) / bins
    exact, edges = edges, edges.astype(np.float32).astype(np.float64)
    if not (np.abs(edges - exact) <= width / 5).all():
        raise FactorError(
            f"{bins} bins from {low!r} to {high!r} are narrower than float32 can distinguish; choose fewer bins"
        )
    counts = np.zeros(bins + 2, dtype=np.int64)
    starts = np.append(edges, np.inf)
    starts[bins] = np.nextafter(edges[-1], np.inf)  # the last bin has its upper edge, too
    for start in range(0, len(column), _SHORT):
        values = column[start : start + _SHORT].astype(np.float64)
        if period is not None and wrap:
            values = _wrap(values, period)
        bin_numbers = _find_bins(values, starts, low, 1.0 / width)
        if mask is not None:
            bin_numbers *= mask[start : start + _SHORT]
        counts += np.bincount(bin_numbers, minlength=bins + 2)
    return counts[1:-1], edges


def _find_bins(values: Reals, starts: Reals, low: float, per: float) -> Array:
    """Place of each value among the starts of bins of about one width: 0 before the first, and for NaN.

    Starts are within a fifth of it where bins of one width have them: a place computed a quarter of a bin too low is
    right, or one too few, which one comparison tells.
    """
    positions = values * per
    positions += 0.75 - low * per
    np.fmax(positions, 0.0, out=positions)
    np.minimum(positions, len(starts) - 2, out=positions)
    bin_numbers = positions.astype(np.intp)
    bin_numbers += values >= starts.take(bin_numbers)
    return bin_numbers


def _wrap(values: Reals, period: float) -> Reals:
    """Numbers of a cycle within its first period; the remainder is taken only where there is one."""
    if np.fmin.reduce(values) >= 0.0 and np.fmax.reduce(values) < period:
        return values
    wrapped: Reals = np.mod(values, period)
    return wrapped


def rows_kept(table: FactorColumns, where: Where | None) -> Bools | None:
    """Rows that are counted, (rows,) bool; None for all."""
    check_where(where, len(table))
    return evaluate(where, table) if isinstance(where, str) else where


def _blocks(
    table: FactorColumns, names: list[str], mask: Bools | None, block: int
) -> Iterator[tuple[list[Array], Bools | None]]:
    """Stored codes of blocks of rows, and which of them are counted (None: all)."""
    # columns of a grid are made, which is faster than dividing each row's number; arithmetic where they are too long
    whole = None if table.is_grid and len(table) > _LONGEST else [table.column(name) for name in names]
    for start in range(0, len(table), block):
        some = slice(start, min(start + block, len(table)))
        selected = None if mask is None else mask[some]
        if selected is None or selected.any():
            rows = np.arange(some.start, some.stop) if whole is None else None
            yield [column[some] for column in whole] if whole else [table.codes(name, rows) for name in names], selected


def _number(columns: list[Array], sizes: tuple[int, ...], selected: Bools | None) -> Array:
    """Number of each row's combination; one beyond all for rows with an unknown level, or not to be counted.

    Such rows are not taken out, which would cost several times what counting does.
    """
    key = columns[0].astype(np.intp)
    unknown: Bools | None = None
    for index, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        if index:
            key *= size
            np.add(key, column, out=key, casting="unsafe")
        if column.max() >= size:
            unknown = column >= size if unknown is None else unknown | (column >= size)
    cells = math.prod(sizes)
    if unknown is not None:
        np.putmask(key, unknown, cells)
    if selected is not None:  # rows that a filter leaves out are many and scattered: a sum does not branch
        key += np.multiply(~selected, cells, dtype=np.intp)
    return key


def _range(column: Array, period: float | None) -> tuple[float, float]:
    """Least and largest of the known numbers; a whole period where they are cyclic, and 0 to 1 where there is none."""
    if period is not None:
        return 0.0, float(period)
    low, high = math.inf, -math.inf
    for start in range(0, len(column), _BLOCK):
        values = column[start : start + _BLOCK]
        low, high = min(low, float(np.fmin.reduce(values))), max(high, float(np.fmax.reduce(values)))
    return (low, high) if low <= high else (0.0, 1.0)


def _widen(low: float, high: float, bins: int) -> tuple[float, float]:
    """A range in which float32 has edges of that many bins, about the same middle."""
    least = max(4 * bins * float(np.spacing(np.float32(max(abs(low), abs(high))))), float(low == high))
    missing = max(least - (high - low), 0.0)
    return low - missing / 2, high + missing / 2
