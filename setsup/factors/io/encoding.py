"""Values of a column as codes of its factor, or as numbers.

Only the distinct values of a block are looked at one by one, never its rows.
"""

import re
from collections.abc import Callable
from typing import Any, Literal, NoReturn

import numpy as np

from setsup.arrays import Array
from setsup.errors import FactorError, abbreviate, did_you_mean
from setsup.factors.column_storage import check_finite, code_dtype
from setsup.factors.factor import Factor
from setsup.factors.io.distinct import (
    BLANKS,
    Sort,
    distinct,
    is_text,
    point_decimals,
    simplify,
    to_doubles,
    value_sorts,
)

__all__ = ["COMMA", "ColumnEncoder", "Commas", "level_reader", "unchanged"]

Commas = Literal["text", "decimal", "unsure"]
"""What a comma in a written number is: text, the decimal point, or that unless it may separate thousands."""

COMMA = re.compile(r"-?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
"""A number with a decimal comma."""


class ColumnEncoder:
    """Codes of the values of a column, block after block.

    `sort` is that of the levels; ``written``: strings may be numbers; ``declared``: the factor is not inferred.
    """

    def __init__(self, factor: Factor, sort: str, written: bool, commas: Commas, declared: bool) -> None:
        self.factor = factor
        self._written, self._commas, self._declared = written, commas, declared
        self._read = level_reader(sort, written, commas)
        self._code_by_level: dict[Any, int] = {level: code for code, level in enumerate(factor.levels or ())}
        if sort == "number" and not written:  # a level 0.1 that came as float32 is another number
            rounded = {float(np.float32(level)): code for level, code in self._code_by_level.items()}
            self._code_by_level = rounded | self._code_by_level
        self._rows = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the codes."""
        return np.dtype(np.float32) if self.factor.continuous else code_dtype(len(self.factor))

    def codes(self, array: Any) -> Array:
        """Codes of the values of the next block, (rows,) as a table stores them."""
        if self.factor.continuous:
            codes = self._numbers(array)
        else:
            values, indices = distinct(array, self._written, self.factor.levels or ())
            unknown = np.iinfo(self.dtype).max
            known = list(map(self._code_by_level.get, values.to_pylist())) if self._read is unchanged else [None]
            if None in known:
                known = [self._code(value, index, indices) for index, value in enumerate(values.to_pylist())]
            stored = [unknown if code is None else code for code in known]
            codes = np.array([*stored, unknown], dtype=self.dtype)[indices]
        self._rows += len(codes)
        return codes

    def _code(self, value: Any, index: int, indices: Array) -> int | None:
        level = self._read(value)
        if level is None:
            return None
        if level not in self._code_by_level:
            self._refuse(value, int(np.argmax(indices == index)))
        return self._code_by_level[level]

    def _refuse(self, value: Any, row: int) -> NoReturn:
        """Refuse a value that is no level."""
        if not self._declared:
            row += self._rows
            raise FactorError(
                f"column {self.factor.name!r} changed while it was being read: row {row} now contains "
                f"{abbreviate(value)}; try again when the data no longer changes"
            )
        raise self._wrong(value, row, f"a level{did_you_mean(value, self.factor.levels or ())}")

    def _wrong(self, value: Any, row: int, expected: str) -> FactorError:
        """Make the error for a value in a row of the block."""
        where = f"row {row + self._rows} (counting from 0) of column {self.factor.name!r}"
        return FactorError(f"{where} has {abbreviate(value)}, which is not {expected}")

    def _numbers(self, array: Any) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        simple = simplify(array)
        if is_text(simple.type):
            values, index = distinct(simple, self._written)
            pointed = values if self._commas == "text" else point_decimals(values)[0]
            sorts = value_sorts(pointed, True)
            wrong = np.append(np.isin(sorts, (Sort.TEXT, Sort.TRUTH)), False)[index]
            if wrong.any():
                row = int(np.argmax(wrong))
                raise self._wrong(values[int(index[row])].as_py(), row, "a number")
            known = pc.if_else(
                pa.array(sorts == Sort.BLANK), pa.scalar(None, pa.string()), pc.cast(pointed, pa.string())
            )
            numbers = np.append(to_doubles(pc.cast(known, pa.float64())), np.nan)[index]
        else:
            numbers = to_doubles(simple.cast(pa.float64(), safe=False))
        with np.errstate(over="ignore"):
            single = numbers.astype(np.float32)
        check_finite(self.factor.name, numbers, single, self._rows)
        return single


def level_reader(sort: str, written: bool, commas: Commas) -> Callable[[Any], Any]:
    """Function from a value to a level of a sort; to None where it is unknown, to the value itself where it is none."""
    read = _plain_reader(sort, written)
    if commas == "text" or sort not in ("integer", "number"):
        return read
    return lambda text: read(text.replace(",", ".") if COMMA.fullmatch(text) else text)


def _plain_reader(sort: str, written: bool) -> Callable[[Any], Any]:
    if not written or sort == "string":
        return int if sort == "integer" else unchanged
    return {"boolean": _boolean, "integer": _integer}.get(sort, _number)


def unchanged(value: Any) -> Any:
    """Give the value itself: the reader of strings."""
    return value


def _boolean(text: str) -> bool | str | None:
    return {"true": True, "false": False}.get(text.lower(), None if text in BLANKS else text)


def _integer(text: str) -> int | None:
    number = _number(text)
    return int(number) if isinstance(number, int | float) else None


def _number(text: str) -> int | float | str | None:
    if text in BLANKS:
        return None
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text
