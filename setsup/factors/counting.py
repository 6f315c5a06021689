"""Combinations of levels as numbers, and rows sorted by counting them."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from setsup.arrays import Array, Bools, Rows
from setsup.checks import check_strings
from setsup.errors import FactorError, advice
from setsup.factors.columns import FactorColumns
from setsup.optional import installed

__all__ = ["count_equal", "counting_sort", "known_rows", "number_cells", "row_dtype", "with_outer"]

SCIPY_FROM = 1 << 22
"""Rows from which scipy, half as fast again or more, outweighs its import."""

_STRETCH = 1 << 16  # rows packed at a time


def with_outer(table: FactorColumns, names: Iterable[str]) -> tuple[str, ...]:
    """Names and the factors they are nested in, in table order, checked to be discrete."""
    wanted: set[str] = set()
    for name in [names] if isinstance(names, str) else check_strings(names, "the factors to group by", FactorError):
        if table[name].continuous:
            if np.isnan(np.asarray(table.codes(name), np.float64)).all():
                raise FactorError(
                    f"factor {name!r} is unknown in every row, so it defines no groups; fill in its values, or choose "
                    "another factor"
                )
            how = advice(
                f"group by {name + '_bin'!r} after table.binned({name!r}, width), open the table with "
                f"kinds={{{name!r}: 'ordinal'}} if the factor has few distinct values, or, for sets, fix it within a "
                f"tolerance, as in tolerance={{{name!r}: …}}",
                f"declare it as ordinal if it has few distinct values (--kinds {name}=ordinal), or, for sets, fix it "
                f"within a tolerance (--tolerance {name}=NUMBER)",
            )
            raise FactorError(f"factor {name!r} is continuous, so it has no levels to group by; {how}")
        wanted |= {table[name].name, *table.outer(name)}
    return tuple(name for name in table.names if name in wanted)


def count_equal(table: FactorColumns, name: str) -> Rows:
    """Rows with the level of each row, and with those it is nested in: (rows,) int64, 0 where one is unknown."""
    names = with_outer(table, [name])
    columns = [table.column(name) for name in names]
    rows = known_rows(columns, None)
    known = columns if rows is None else [column[rows] for column in columns]
    cell, _, _ = number_cells(known, [len(table[name]) for name in names])
    counts = np.zeros(len(table), dtype=np.int64)
    counts[slice(None) if rows is None else rows] = np.bincount(cell)[cell]
    return counts


def known_rows(columns: list[Array], mask: Bools | None) -> Rows | None:
    """Numbers of the rows that the mask keeps and whose stored codes are all known, ascending; None for all rows."""
    known = mask
    for column in columns:
        unknown = np.iinfo(column.dtype).max
        if len(column) and column.max() == unknown:
            known = column != unknown if known is None else known & (column != unknown)
    return None if known is None else np.flatnonzero(known)


def number_cells(columns: list[Array], radix: list[int]) -> tuple[Array, int, bool]:
    """Number of each row's combination of levels, in lexicographic order, how many numbers, and whether they are ranks.

    Where there are far more combinations than rows, their ranks among those that occur.
    """
    cells = math.prod(radix)
    if cells <= max(4 * len(columns[0]), 1 << 20) and cells < 2**31:
        return _pack(columns, radix), cells, False
    return *_rank(columns, radix), True


def _pack(columns: list[Array], radix: list[int]) -> Array:
    """Number of each row's combination of levels, lexicographic: (rows,) uint32 below the product of ``radix``.

    A stretch of rows at a time stays in the processor's cache from factor to factor.
    """
    cell = np.empty(len(columns[0]), dtype=np.uint32)
    for start in range(0, len(cell), _STRETCH):
        part = cell[start : start + _STRETCH]
        part[:] = columns[0][start : start + _STRETCH]
        for column, size in zip(columns[1:], radix[1:], strict=True):
            part *= np.uint32(size)
            np.add(part, column[start : start + _STRETCH], out=part, casting="unsafe")
    return cell


def _rank(columns: list[Array], radix: list[int]) -> tuple[Array, int]:
    """Rank of each row's combination among those that occur, (rows,) int64, and how many occur."""
    cell = np.zeros(len(columns[0]), dtype=np.int64)
    cells = 1
    for column, size in zip(columns, radix, strict=True):
        if cells * size >= 2**62:
            levels, cell = np.unique(cell, return_inverse=True)
            cells = len(levels)
        cell = cell * size + column.astype(np.int64)
        cells *= size
    levels, cell = np.unique(cell, return_inverse=True)
    return cell, len(levels)


def counting_sort(cell: Array, cells: int) -> tuple[Rows, Array]:
    """Where each cell begins, (cells + 1,) int64, and the rows in the order of their cells, stable."""
    if len(cell) >= SCIPY_FROM and installed("scipy"):
        return _sort_by_scipy(cell, cells)
    offsets = np.zeros(cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(cell, minlength=cells), out=offsets[1:])
    return offsets, _as_rows(_order(cell, cells), len(cell))


def _order(cell: Array, cells: int) -> Rows:
    """Rows in the order of their cells, stable: numpy sorts 16 bits by counting, so this goes digit by digit."""
    order = np.argsort(cell.astype(np.uint16), kind="stable")
    for shift in range(16, max(cells - 1, 1).bit_length(), 16):
        digit = (cell >> shift).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def _sort_by_scipy(cell: Array, cells: int) -> tuple[Rows, Array]:
    """The same in compiled code: a sparse matrix turns coordinates (cell, row) into compressed lines."""
    from scipy.sparse import coo_array

    count = len(cell)
    index = np.int32 if max(count, cells) < 2**31 else np.int64
    matrix: Any = coo_array((cells, count), dtype=np.bool_)
    # one entry per row, in the line of its cell; set directly, since the constructor would check and copy
    line = cell.view(index) if cell.dtype.itemsize == np.dtype(index).itemsize else cell.astype(index)
    matrix.coords = (line, np.arange(count, dtype=index))
    matrix.data = np.ones(count, dtype=np.bool_)
    matrix.has_canonical_format = True  # no row occurs twice, so nothing is summed
    lines = matrix.tocsr()
    return lines.indptr.astype(np.int64), _as_rows(lines.indices, count)


def _as_rows(indices: Array, count: int) -> Array:
    dtype = row_dtype(count)
    return indices.view(dtype) if indices.dtype.itemsize == dtype.itemsize else indices.astype(dtype)


def row_dtype(rows: int) -> np.dtype[Any]:
    """Type that numbers so many rows: 4 bytes each up to 2³² of them, 8 beyond."""
    return np.dtype(np.uint32 if rows <= 2**32 else np.int64)
