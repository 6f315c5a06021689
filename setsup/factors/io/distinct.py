"""Columns of other formats as distinct values, their sorts, and their index in every row."""

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools
from setsup.factors.factor import Level
from setsup.files.archives.listing import as_numpy

__all__ = [
    "BLANKS",
    "Sort",
    "distinct",
    "is_text",
    "is_usable",
    "point_decimals",
    "simplify",
    "to_doubles",
    "value_sorts",
]

_NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_IDENTIFIER = r"^-?(0[0-9].*|[0-9]{19,})$"  # among numbers: those that would lose digits
_COMMA = r"^-?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?$"
_THOUSANDS = r"^-?[1-9][0-9]{0,2},[0-9]{3}$"
_WHOLE = r"^-?[0-9]+$"
_TRUTH = r"^([Tt]rue|TRUE|[Ff]alse|FALSE)$"
BLANKS = ("nan", "NaN", "NAN", "NA", "N/A", "null", "None")
"""Unknown among numbers and booleans, strings among strings."""
_BLANK = f"^({'|'.join(BLANKS)})$"


class Sort(IntEnum):
    """What a single value looks like."""

    TEXT = 0
    IDENTIFIER = 1
    """Digits that a number would lose: 007, or more than 18 of them."""
    TRUTH = 2
    WHOLE = 3
    DECIMAL = 4
    """An integer written as 3.0, or stored as a float."""
    FRACTION = 5
    BLANK = 6
    """Unknown among numbers and booleans, a string among strings: NA, None."""


def is_usable(kind: Any) -> bool:
    """Whether values of an Arrow type can be a factor: strings, booleans, numbers, dates, nulls."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return is_usable(kind.value_type)
    return is_text(kind) or any(
        test(kind)
        for test in (
            pa.types.is_boolean,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_decimal,
            pa.types.is_temporal,
            pa.types.is_null,
        )
    )


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is a string."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def simplify(array: Any) -> Any:
    """Bring an Arrow array to one of few types: strings, booleans, integers, floats, nulls."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        return simplify(array.dictionary_decode())
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return array.cast(pa.float64())
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        return array.cast(pa.string())
    if pa.types.is_duration(kind):
        return array.cast(pa.int64())
    return array.cast(pa.large_string()) if pa.types.is_string_view(kind) else array


def to_doubles(array: Any) -> Array:
    """Arrow float64 as numpy, NaN where null."""
    return _filled(array, np.float64, np.nan)


def _filled(array: Any, dtype: npt.DTypeLike, unknown: float) -> Array:
    """Arrow numbers as numpy, with a number in place of null; Arrow's own way imports pandas first."""
    numbers = as_numpy(array).astype(dtype)
    if array.null_count:
        numbers[~_truths(array.is_valid())] = unknown
    return numbers


def _truths(array: Any) -> Bools:
    """Arrow booleans without nulls as numpy."""
    import pyarrow as pa

    return as_numpy(array.cast(pa.uint8())).view(np.bool_)


def distinct(array: Any, written: bool, levels: tuple[Level, ...] = (), repeated: bool = False) -> tuple[Any, Array]:
    """Find the distinct values of an Arrow array, and which of them each row has; ``repeated`` lets floats be so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = simplify(array)
    floating = pa.types.is_floating(array.type)
    if floating:
        array = pc.if_else(pc.is_nan(array), pa.nulls(1, array.type)[0], array)  # pa.scalar imports pandas
    if pa.types.is_null(array.type):
        return array.cast(pa.string())[:0], np.full(len(array), -1, dtype=np.int64)
    if repeated and floating:
        known = _truths(pc.is_valid(array))
        return array.drop_null(), np.where(known, np.cumsum(known) - 1, -1)
    encoded = array.dictionary_encode()
    values = encoded.dictionary
    index = _filled(encoded.indices, np.int64, -1)
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values) if written else values
        empty = as_numpy(pc.binary_length(values)) == 0
        if empty.any() and "" not in levels:
            index = np.append(np.where(empty, -1, np.cumsum(~empty) - 1), -1)[index]
            values = values.filter(pa.array(~empty))
    return values, index


def point_decimals(values: Any) -> tuple[Any, Bools, Bools, Bools]:
    """Strings with points in place of decimal commas; which had one; could be thousands; have a point themselves.

    `values` (n,) Arrow strings; returns (n,) Arrow strings and (n,) bool three times.
    """
    import pyarrow.compute as pc

    with_comma = pc.match_substring_regex(values, _COMMA)
    pointed = pc.if_else(with_comma, pc.replace_substring(values, ",", "."), values)
    thousands, points = pc.match_substring_regex(values, _THOUSANDS), pc.match_substring(values, ".")
    return pointed, _truths(with_comma), _truths(thousands), _truths(points)


def value_sorts(values: Any, written: bool) -> npt.NDArray[np.int8]:
    """Sort of each value, as a number of :class:`Sort`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if is_text(kind):
        return _written_sorts(values) if written else np.full(len(values), Sort.TEXT, dtype=np.int8)
    if pa.types.is_floating(kind):
        return _float_sorts(to_doubles(pc.cast(values, pa.float64())))
    return np.full(len(values), Sort.TRUTH if pa.types.is_boolean(kind) else Sort.WHOLE, dtype=np.int8)


def _written_sorts(values: Any) -> npt.NDArray[np.int8]:
    import pyarrow as pa
    import pyarrow.compute as pc

    def matched(some: Any, pattern: str) -> Array:
        return _truths(pc.match_substring_regex(some, pattern))

    sorts = np.full(len(values), Sort.TEXT, dtype=np.int8)
    numeric = matched(values, _NUMBER)
    words = values.filter(pa.array(~numeric))
    sorts[~numeric] = np.select([matched(words, _TRUTH), matched(words, _BLANK)], [Sort.TRUTH, Sort.BLANK], Sort.TEXT)
    numbers = values.filter(pa.array(numeric))
    sorts[numeric] = np.select(
        [matched(numbers, _IDENTIFIER), matched(numbers, _WHOLE)],
        [Sort.IDENTIFIER, Sort.WHOLE],
        _float_sorts(to_doubles(pc.cast(numbers, pa.float64()))),
    )
    return sorts


def _float_sorts(numbers: Array) -> npt.NDArray[np.int8]:
    whole = (np.floor(numbers) == numbers) & (np.abs(numbers) < 2.0**53)
    return np.where(whole, Sort.DECIMAL, Sort.FRACTION).astype(np.int8)
