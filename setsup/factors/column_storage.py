"""How a column is stored: narrow unsigned codes with a mark for unknown, or float32; and how rows are checked."""

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.checks import check_array
from setsup.errors import FactorError, RowError
from setsup.factors.factor import Factor

__all__ = ["as_array", "check_finite", "check_rows", "code_dtype", "drop_signs", "freeze", "stored_column"]

_BLOCK = 1 << 20  # numbers looked at at a time, so that temporary arrays stay small


def code_dtype(levels: int) -> np.dtype[Any]:
    """Narrowest unsigned type that stores codes 0 … levels − 1 and, as its largest number, unknown."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        if levels <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    return np.dtype(np.uint64)


def check_rows(rows: npt.ArrayLike, length: int) -> Rows:
    """Row numbers as int64, checked to lie in 0 … length − 1."""
    index = rows if isinstance(rows, np.ndarray) else check_array(rows, "row numbers", RowError)
    if index.dtype.kind not in "iu":
        if index.size:
            fix = (
                "; for the rows that satisfy a condition, pass table.rows(expression)"
                if index.dtype == np.bool_
                else ""
            )
            fix = "; for the rows of a draw, pass draw.indices" if hasattr(rows, "indices") else fix
            raise RowError(f"row numbers must be integers, not {_dtype_or_type(rows, index)}{fix}")
        index = index.astype(np.int64)
    if index.size and (index.min() < 0 or index.max() >= length):
        wrong = int(index[(index < 0) | (index >= length)].flat[0])
        raise RowError(f"row {wrong} is out of range: the table has {length:,} rows, numbered from 0 to {length - 1}")
    return index.astype(np.int64, copy=False)


def as_array(values: Any, what: str) -> Array:
    """Array of what a user gives for one: a sequence, a numpy array, a torch tensor wherever it lies."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # a tensor, told without importing torch
        if getattr(values, "is_meta", False):
            raise FactorError(f"{what} is a tensor on the meta device, which has no values; pass one with values")
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # which numpy does not have, and 32 bits hold
            values = values.float()
    return check_array(values, what, FactorError)


def freeze(array: Array) -> Array:
    """Mark an array as read-only that nobody else writes to, so that a table keeps it rather than a copy."""
    array.flags.writeable = False
    return array


def stored_column(factor: Factor, values: Any) -> Array:
    """Column in its stored type, checked and read-only; a copy, unless the given array cannot be written to."""
    column = as_array(values, f"the column of factor {factor.name!r}")
    if column.ndim != 1:
        raise FactorError(f"the column of factor {factor.name!r} must be 1-D, not of shape {column.shape}")
    if factor.continuous:
        if column.dtype.kind not in "fiu":
            raise FactorError(
                f"the column of continuous factor {factor.name!r} must contain numbers, not {column.dtype}"
            )
        with np.errstate(over="ignore"):
            stored = column if column.dtype == np.float32 else freeze(column.astype(np.float32))
        check_finite(factor.name, column, stored)
    else:
        stored = _stored_codes(factor, column)
    stored = freeze(stored.copy() if _written_elsewhere(stored) else stored.view())
    return stored


def check_finite(name: str, numbers: Array, stored: Array, first: int = 0) -> None:
    """Refuse numbers that are infinite, or become so as float32; NaN is unknown.

    `numbers, stored` (rows,) array.
    """
    for rows in _blocks(len(stored)):
        wrong = np.isinf(stored[rows])
        if wrong.any():
            row = rows.start + int(np.argmax(wrong))
            raise FactorError(
                f"row {first + row} (counting from 0) of column {name!r} has {numbers[row]!s}; expected finite "
                "numbers up to 3.4e38, or NaN for unknown values"
            )


def drop_signs(column: Array) -> Iterator[Array]:
    """Blocks of a float32 column in which every NaN is the same one, and −0.0 is 0.0, as they compare."""
    for rows in _blocks(len(column)):
        part = column[rows]
        yield np.where(np.isnan(part), np.float32(np.nan), np.where(part == 0, np.float32(0), part))


def _dtype_or_type(rows: Any, index: Array) -> str:
    """Dtype of row numbers, or the type of an object."""
    if index.dtype != object:
        return str(index.dtype)
    return type(rows if index.ndim == 0 else index.flat[0]).__name__


def _blocks(length: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, length, _BLOCK))


def _written_elsewhere(array: Array) -> bool:
    """Whether somebody may write to the memory of an array: unless it is numpy's own, bytes, or a file's."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return True
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return not isinstance(base, bytes | mmap.mmap | None)  # a tensor, say, or a buffer of Arrow's that numpy filled


def _stored_codes(factor: Factor, column: Array) -> Array:
    if column.dtype.kind not in "iu":
        raise FactorError(f"the column of factor {factor.name!r} must contain integer codes, not {column.dtype}")
    dtype = code_dtype(len(factor))
    unknown = np.iinfo(dtype).max
    if column.dtype == dtype:
        wrong = (column >= len(factor)) & (column != unknown)
        stored = column
    else:
        signed = column.dtype.kind == "i"
        wrong = (column >= len(factor)) | ((column < -1) if signed else np.False_)
        if not signed:
            wrong &= column != np.iinfo(column.dtype).max
        stored = freeze(
            np.where((column == -1) | wrong if signed else column >= len(factor), unknown, column).astype(dtype)
        )
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FactorError(
            f"row {row} of factor {factor.name!r} has the code {column[row]}; expected codes 0 to {len(factor) - 1} of "
            f"its {len(factor)} levels, or -1 for unknown values"
        )
    return stored
