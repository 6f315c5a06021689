"""How a column is stored: narrow unsigned codes with a mark for unknown, or float32; and how rows are checked."""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import FactorError, RowError
from setsup.factors.factor import Factor

__all__ = ["check_rows", "code_dtype", "stored_column"]

Array = npt.NDArray[Any]


def code_dtype(levels: int) -> np.dtype[Any]:
    """Narrowest unsigned type that stores codes 0 … levels − 1 and, as its largest number, unknown."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        if levels <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    return np.dtype(np.uint64)


def check_rows(rows: npt.ArrayLike, length: int) -> npt.NDArray[np.int64]:
    """Row numbers as int64, checked to lie in 0 … length − 1.

    Raises
    ------
    RowError
        When one does not, or when they are no integers.

    """
    index = np.asarray(rows)
    if index.dtype.kind not in "iu":
        if index.size:
            mend = "; table.rows(expression) gives those of a condition" if index.dtype == np.bool_ else ""
            raise RowError(f"row numbers must be integers, not {index.dtype}{mend}")
        index = index.astype(np.int64)
    index = index.astype(np.int64, copy=False)
    if index.size and (index.min() < 0 or index.max() >= length):
        wrong = int(index[(index < 0) | (index >= length)].flat[0])
        raise RowError(f"row {wrong} is out of range: there are {length:,} rows, 0 to {length - 1}")
    return index


def stored_column(factor: Factor, values: npt.ArrayLike) -> Array:
    """Column in its stored type, checked and read-only."""
    column = np.asarray(values)
    if column.ndim != 1:
        raise FactorError(f"the column of factor {factor.name!r} must have one axis, not the shape {column.shape}")
    if factor.continuous:
        if column.dtype.kind not in "fiu":
            raise FactorError(f"the column of continuous factor {factor.name!r} must hold numbers, not {column.dtype}")
        stored = column.astype(np.float32, copy=False)
    else:
        stored = _stored_codes(factor, column)
    stored = stored.view()
    stored.flags.writeable = False
    return stored


def _stored_codes(factor: Factor, column: Array) -> Array:
    if column.dtype.kind not in "iu":
        raise FactorError(f"the column of factor {factor.name!r} must hold integer codes, not {column.dtype}")
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
        stored = np.where((column == -1) | wrong if signed else column >= len(factor), unknown, column).astype(dtype)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FactorError(
            f"row {row} of factor {factor.name!r} has the code {column[row]}; its {len(factor)} levels are coded "
            f"0 to {len(factor) - 1}, and -1 means unknown"
        )
    return stored
