"""One column of labels of any container as a factor and its codes, by numpy alone.

A list, an array or a tensor imports no other library; a column of pandas, Arrow or Hugging Face is read by what its own
library offers.

Convention
----------
None, NaN, NaT, pandas' NA, empty strings and masked rows are unknown. The values of a column of classes are its levels,
in order: strings and booleans make a nominal factor, numbers an ordinal one; numbers that are all whole are integers,
also where they came as floats. Dates and times are strings, ``2024-05-02 10:30:00.5``, to whatever unit they are
stored; with a time zone, in UTC: ``2024-05-02 08:30:00Z``. Of other columns, floats are numbers without levels.
"""

from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.errors import FactorError, SamplerError, abbreviate
from setsup.factors.column_storage import as_array, freeze
from setsup.factors.factor import PLURAL, Factor, Kind, level_sort
from setsup.factors.io.fields import ROLE_OF

__all__ = ["LABEL", "check_length", "encode_column", "has_length", "plain_weights"]

LABEL = "label"
"""Name of the factor of labels that are one column."""

_PLAIN = {str, int, float, bool, type(None)}


def encode_column(name: str, values: Any, classes: bool) -> tuple[Factor, Array]:
    """A column as a factor and its codes, -1 where unknown; or as numbers.

    `classes`: whether its values are classes, of which also floats are levels. Returns (rows,) integers or floats.
    """
    check_length(name, values)
    column = _plain(name, values)
    if isinstance(column, np.ndarray):
        return _numbers(name, column, classes)
    return _objects(name, column, classes)


def plain_weights(weights: Any) -> Any:
    """Weights as numpy takes them: a tensor may lie on a device, or have a gradient."""
    return as_array(weights, "weights") if hasattr(weights, "detach") else weights


def check_length(name: str, values: Any) -> int:
    """Number of rows of a column, or of whatever has one item per row; SamplerError where there are none."""
    if not has_length(values):
        raise _no_column(name, values)
    if not len(values):
        raise SamplerError("labels has no rows; pass one label per row")
    return len(values)


def has_length(values: Any) -> bool:
    """Whether this has one item per row: no string, no set, no array of a single number."""
    if isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__len__"):
        return False
    return getattr(values, "ndim", 1) != 0


# -- containers --------------------------------------------------------------------------------------------------------


def _plain(name: str, values: Any) -> Array | list[Any]:
    """A column as an array of numbers or booleans, or as a list."""
    if isinstance(values, list | tuple):
        return list(values)
    dtype = getattr(values, "dtype", None)
    if hasattr(values, "detach"):  # a tensor
        array = as_array(values, _of(name))
    elif isinstance(values, np.ndarray | range) or isinstance(dtype, np.dtype):
        array = np.asarray(values)
    else:
        return _of_library(name, values)
    if array.ndim != 1:
        raise SamplerError(
            f"{_of(name)} must be 1-D, one label per row, not of shape {array.shape}; of one-hot rows, pass the "
            "argmax of each; of several columns, a mapping"
        )
    plain = _texts(array) if array.dtype.kind == "M" else array if array.dtype.kind in "biuf" else array.tolist()
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values).tolist()
        return [None if hidden else value for hidden, value in zip(mask, plain, strict=True)]
    return plain


def _no_column(name: str, values: Any) -> SamplerError:
    return SamplerError(
        f"{_of(name)} must be a list, an array or a column, not {abbreviate(values)}; pass one label per row"
    )


def _of_library(name: str, values: Any) -> Array | list[Any]:
    """A column of pandas, polars, Arrow or Hugging Face, by what it offers itself."""
    if hasattr(values, "to_pylist"):  # Arrow
        zoned = getattr(values.type, "tz", None) is not None  # numpy has no time zones
        return list(values.to_pylist()) if values.null_count or zoned else _plain(name, np.asarray(values))
    for method in ("to_list", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    if hasattr(values, "__array__"):
        return _plain(name, np.asarray(values))
    if not isinstance(values, Sequence):
        raise _no_column(name, values)
    try:
        whole = values[:]
    except TypeError:  # a deque has no slices
        return list(values)
    return list(values) if type(whole) is type(values) else _plain(name, whole)


# -- values ------------------------------------------------------------------------------------------------------------


def _numbers(name: str, column: Array, classes: bool) -> tuple[Factor, Array]:
    if column.dtype.kind == "b":
        return _factor(name, Kind.NOMINAL, (False, True)), column.astype(np.uint8)
    if column.dtype.kind == "f" and not classes:
        return _factor(name, Kind.CONTINUOUS, None), column
    known = column == column
    levels, index = np.unique(column[known], return_inverse=True)
    codes = np.full(len(column), -1, np.int64)
    codes[known] = index
    return _factor(name, Kind.ORDINAL, _whole(name, levels.tolist())), freeze(codes)


def _objects(name: str, values: list[Any], classes: bool) -> tuple[Factor, Array]:
    kinds = set(map(type, values))
    if len(kinds) == 1 and isinstance(values[0], np.generic):
        array = np.asarray(values)
        if array.dtype.kind in "biufMU":
            return encode_column(name, array, classes)
    if not kinds <= _PLAIN:
        values = [value if type(value) in _PLAIN else _value(name, row, value) for row, value in enumerate(values)]
        kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= {bool, int, float}:
        array = np.asarray(values)
        if array.dtype.kind in "biuf" and (kinds != {int} or array.dtype.kind != "f"):  # not beyond 64 bits
            return _numbers(name, array, classes)
    known = [value for value in set(values) if not _is_unknown(value)]
    sorts = {level_sort(value) for value in known}
    mixed = bool in kinds and any(type(value) in (int, float) and not _is_unknown(value) for value in values)
    if len(sorts) > 1 or mixed:  # True and 1 are one element of a set
        raise _mixture(name, values)
    kind = Kind.ORDINAL if sorts == {"number"} else Kind.NOMINAL
    levels = (False, True) if sorts == {"boolean"} else sorted(known)
    if kind is Kind.ORDINAL:
        if not classes and not all(isinstance(value, int) for value in known):
            numbers = np.array([np.nan if _is_unknown(value) else value for value in values], np.float64)
            return _factor(name, Kind.CONTINUOUS, None), numbers
        levels = list(dict.fromkeys(_whole(name, levels)))
    factor = _factor(name, kind, levels)
    code_of = {level: code for code, level in enumerate(levels)}
    return factor, freeze(np.fromiter(map(code_of.get, values, repeat(-1)), np.int64, len(values)))


def _value(name: str, row: int, value: Any) -> Any:
    """A value as a string, a number, a boolean or None: numpy's scalars, tensors without an axis, decimals, times."""
    try:
        if isinstance(value, np.datetime64):
            return _texts(np.array([value]))[0]
        plain = value.item() if hasattr(value, "item") else value
        if _is_unknown(plain):
            return None
        if isinstance(plain, str | int | float):
            return plain
        if isinstance(plain, Real | Decimal):  # also a long double, whose item is one
            number: Any = plain
            return int(number) if int(number) == number else float(number)
        if isinstance(plain, datetime) and plain.tzinfo is not None:
            return _trim(plain.astimezone(UTC).replace(tzinfo=None).isoformat(" ")) + "Z"
        if isinstance(plain, date | time):
            return _trim(plain.isoformat(" ") if isinstance(plain, datetime) else plain.isoformat())
    except OverflowError:
        return np.inf
    except (ArithmeticError, NotImplementedError, RuntimeError, TypeError, ValueError):
        pass  # of an array, or a tensor without data
    how = "of one-hot rows, pass the argmax of each" if has_length(value) else "convert them, as with map(str, labels)"
    raise SamplerError(
        f"{_of(name)} must have one string, number, boolean, date or time per row, not {abbreviate(value)} in row "
        f"{row}; {how}"
    )


def _texts(times: Array) -> list[str | None]:
    """Dates and times of numpy as strings."""
    if np.datetime_data(times.dtype)[0] in ("h", "m"):
        times = times.astype("datetime64[s]")
    return [None if text == "NaT" else _trim(text.replace("T", " ")) for text in np.datetime_as_string(times).tolist()]


def _trim(text: str) -> str:
    """A time without the zeros behind its last decimal."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _factor(name: str, kind: Kind, levels: Sequence[Any] | None) -> Factor:
    if levels is not None and not len(levels):
        raise SamplerError(f"{_of(name)} has no known label; pass labels that are not all None or NaN")
    return Factor(name, kind, None if levels is None else tuple(levels), role=ROLE_OF.get(name, "variation"))


def _whole(name: str, levels: Sequence[Any]) -> list[Any]:
    """Numbers as integers, if all are whole."""
    if any(level in (np.inf, -np.inf) for level in levels):
        raise FactorError(f"{_of(name)} has an infinite label; expected finite numbers, or NaN for unknown labels")
    return list(map(int, levels)) if all(int(level) == level for level in levels) else list(map(float, levels))


def _is_unknown(value: Any) -> bool:
    """Whether a value is None, pandas' NA, NaN or an empty string."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value) or value == ""


def _mixture(name: str, values: list[Any]) -> SamplerError:
    firsts: dict[str, str] = {}
    for row, value in enumerate(values):
        if not _is_unknown(value):
            firsts.setdefault(PLURAL[level_sort(value)], f"{abbreviate(value)} in row {row}")
    parts = " and ".join(f"{sort} ({first})" for sort, first in firsts.items())
    return SamplerError(f"{_of(name)} has {parts}; expected labels of one type; make them all strings or all numbers")


def _of(name: str) -> str:
    return "labels" if name == LABEL else f"column {name!r} of labels"
