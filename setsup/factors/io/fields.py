"""One column of foreign values: the sorts of its values, the factor they make, and its codes.

Only the distinct values of a block are looked at one by one, never its rows. The rules are those of
:mod:`setsup.factors.io.infer`.
"""

import logging
import re
from collections.abc import Callable
from typing import Any, Literal, NoReturn

import numpy as np

from setsup.arrays import Array
from setsup.errors import FactorError, abbreviate, advice, did_you_mean
from setsup.factors.column_storage import check_finite, code_dtype
from setsup.factors.factor import Factor, Kind, level_sort
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

__all__ = ["ROLE_OF", "Commas", "Field", "refuse_mixture"]

Commas = Literal["text", "decimal", "unsure"]
"""What a comma in a written number is: text, the decimal point, or that unless it may separate thousands."""

_log = logging.getLogger("setsup")
_FAMILY = {Sort.TEXT: "strings", Sort.IDENTIFIER: "strings", Sort.TRUTH: "booleans"}
_COMMA = re.compile(r"-?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_TEXTS = {Sort.TEXT, Sort.IDENTIFIER}
ROLE_OF = {"id": "key", "path": "key", "split": "split", "part": "part"}


class Field:
    """A column as far as it has been read."""

    def __init__(self, name: str, factor: Factor | None, kind: Kind | None, written: bool, commas: Commas) -> None:
        self.name = name
        self.role = ROLE_OF.get(name, "variation")
        self.given = factor is not None
        self._kind = kind
        self._written = written
        # whoever asks for names has them as they are written
        self._commas = "text" if kind is Kind.NOMINAL else commas
        self._comma: tuple[int, str] | None = None  # row and value of the first number with a comma
        self._point: tuple[int, str] | None = None  # and with a point
        self._thousands = True  # every comma may separate thousands
        self._seen: dict[Sort, tuple[int, Any]] = {}  # row and value of the first of each sort
        self._missing = False
        self._rows = 0
        self._distinct: set[Any] | None = set()
        self._as_text = False
        self._factor = factor
        self._code_by_level: dict[Any, int] = {}
        if factor is not None:
            self._settle(factor, "number" if factor.levels is None else level_sort(factor.levels[0]))

    # -- first pass: what is there ---------------------------------------------------------------------------------

    def see(self, array: Any) -> None:
        """Take note of the values of a block."""
        values, index = distinct(array, self._written, repeated=self._distinct is None)
        sorts = self._sorts(values, index)
        for sort in map(Sort, np.unique(sorts).tolist()):
            if sort not in self._seen:
                first = self._first(sorts == sort, values, index)
                if first is not None:
                    self._seen[sort] = first
        self._missing = self._missing or bool((index < 0).any())
        self._rows += len(index)
        if not self._as_text and not self._needs_levels():
            self._distinct = None
        elif self._distinct is not None:
            self._distinct.update(values.to_pylist())

    def _sorts(self, values: Any, index: Array) -> Array:
        """Sort of each value, where commas are decimal that of the number with a point."""
        if self._commas == "text":
            return value_sorts(values, self._written)
        pointed, commas, thousands, points = point_decimals(values)
        sorts = value_sorts(pointed, True)
        points = points & ((sorts == Sort.DECIMAL) | (sorts == Sort.FRACTION))
        self._comma = self._comma or self._first(commas, values, index)
        self._point = self._point or self._first(points, values, index)
        self._thousands = self._thousands and not (commas & ~thousands).any()
        return sorts

    def _first(self, chosen: Array, values: Any, index: Array) -> tuple[int, Any] | None:
        """Row and value of the first row that has one of the chosen values."""
        hits = np.append(chosen, False)[index] if chosen.any() else chosen
        if not hits.any():
            return None
        row = int(np.argmax(hits))
        return self._rows + row, values[int(index[row])].as_py()

    def _needs_levels(self) -> bool:
        """Whether distinct values may become levels; those of a continuous factor would fill the memory."""
        if self._kind is not None:
            return self._kind is not Kind.CONTINUOUS
        return self.name == "path" or Sort.FRACTION not in self._seen or bool(self._seen.keys() & _TEXTS)

    def incomplete(self) -> bool:
        """Whether values seen as numbers are strings, which needs another first pass; prepares for it."""
        if self.given:
            return False
        sort = self._sort()  # first, so that the first column that mixes sorts is named, whatever the blocks
        if self._distinct is not None or sort != "string" or self._kind is Kind.CONTINUOUS:
            return False
        self._as_text, self._distinct, self._rows = True, set(), 0
        return True

    def _sort(self) -> str:
        """Sort of all values of the column: string, boolean, integer, number, or nothing."""
        seen = self._seen.keys() - {Sort.BLANK}
        if not seen:
            return "nothing"
        if (self.name == "path" and self._written) or Sort.IDENTIFIER in seen:
            return "string"
        if seen <= {Sort.TEXT, Sort.TRUTH}:
            return "boolean" if seen == {Sort.TRUTH} else "string"
        if seen & {Sort.TEXT, Sort.TRUTH}:
            if self._kind is not Kind.NOMINAL and self.role != "key":
                self._refuse_mixture()
            return "string"
        if Sort.FRACTION in seen:
            return "number"
        return "number" if Sort.DECIMAL in seen and not self._unknown() else "integer"

    def _unknown(self) -> bool:
        return self._missing or Sort.BLANK in self._seen

    def _refuse_mixture(self) -> NoReturn:
        firsts: dict[str, tuple[int, Any]] = {}
        for sort, (row, value) in self._seen.items():
            family = _FAMILY.get(sort, "numbers")
            if sort is not Sort.BLANK and (family not in firsts or row < firsts[family][0]):
                firsts[family] = (row, value)
        kinds = f"kinds={{{self.name!r}: 'nominal'}} (--kinds)"
        refuse_mixture(self.name, firsts, f"correct them, leave unknown values empty, or read strings with {kinds}")

    def settle(self) -> Factor:
        """Factor that the values make; the levels are those that were seen."""
        if self._factor is not None:
            return self._factor
        sort = self._sort()
        if self._comma is not None and sort in ("number", "integer"):
            self._check_commas(self._comma)
        kind = self._kind or {"string": Kind.NOMINAL, "boolean": Kind.NOMINAL, "integer": Kind.ORDINAL}.get(
            sort, Kind.CONTINUOUS
        )
        if kind is Kind.CONTINUOUS:
            if sort in ("string", "boolean"):
                row, value = next(self._seen[sort] for sort in _FAMILY if sort in self._seen)
                raise FactorError(
                    f"column {self.name!r} cannot be continuous: row {row} (from 0) has {abbreviate(value)}"
                )
            factor = Factor(self.name, kind, role=self.role)
        else:
            if sort == "nothing":
                raise FactorError(f"column {self.name!r} has no known value, so it has no levels to be {kind}")
            read = self._reader(sort)
            distinct_values = self._distinct or set()
            levels = distinct_values if read is _same else {read(value) for value in distinct_values} - {None}
            known: Any = (False, True) if sort == "boolean" else tuple(sorted(levels))
            factor = Factor(self.name, kind, known, role=self.role)
            if sort == "string" and kind is not Kind.NOMINAL and len(known) > 1:
                self._warn(factor)
            if sort == "string" and self._written and self._kind is None and all(map(_COMMA.fullmatch, known)):
                _log.warning(
                    "the values of column %r, such as %r, are read as strings; write decimal points where they are "
                    "numbers, or say that they are names with kinds={%r: 'nominal'} (--kinds)",
                    *(self.name, known[0], self.name),
                )
        self._settle(factor, sort)
        return factor

    def _check_commas(self, comma: tuple[int, str]) -> None:
        """Refuse numbers whose commas may be something else than the decimal point."""
        row, value = comma
        if self._point is not None:
            raise FactorError(
                f"column {self.name!r} mixes decimal points and commas: row {self._point[0]} has "
                f"{abbreviate(self._point[1])}, row {row} has {abbreviate(value)} (rows count from 0); write "
                "all numbers in one way"
            )
        if self._commas == "unsure" and self._thousands:
            raise FactorError(
                f"row {row} (from 0) of column {self.name!r} has {abbreviate(value)}, whose comma may be decimal or "
                "separate thousands; write the numbers without commas, or read strings with "
                + advice(f"kinds={{{self.name!r}: 'nominal'}}", f"--kinds {self.name}=nominal")
            )
        _log.info("the commas in the numbers of column %r are decimal: %r", self.name, value)

    def _reader(self, sort: str) -> Callable[[Any], Any]:
        read = _reader(sort, self._written)
        if self._commas == "text" or sort not in ("integer", "number"):
            return read
        return lambda text: read(text.replace(",", ".") if _COMMA.fullmatch(text) else text)

    def _warn(self, factor: Factor) -> None:
        """Warn that strings are in alphabetical order, which is rarely the intended one."""
        shown = ",".join(map(str, (factor.levels or ())[:6])) + (",…" if len(factor) > 6 else "")
        _log.warning(
            "the strings of column %r are %s in alphabetical order, %s; give their own order, "
            "as in kinds={%r: '%s:low,mid,high'} (--kinds), or a Factor with its levels",
            *(self.name, factor.kind, shown, self.name, factor.kind),
        )

    def _settle(self, factor: Factor, sort: str) -> None:
        self._factor = factor
        self._read = self._reader(sort)
        self._code_by_level = {level: code for code, level in enumerate(factor.levels or ())}
        if sort == "number" and not self._written:  # a level 0.1 that came as float32 is another number
            rounded = {float(np.float32(level)): code for level, code in self._code_by_level.items()}
            self._code_by_level = rounded | self._code_by_level
        self._rows = 0

    # -- second pass: codes ----------------------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the codes, once settled."""
        return np.dtype(np.float32) if self._settled().continuous else code_dtype(len(self._settled()))

    def codes(self, array: Any) -> Array:
        """Codes of the values of the next block, (rows,) as a table stores them."""
        factor = self._settled()
        if factor.continuous:
            codes = self._numbers(array)
        else:
            values, indices = distinct(array, self._written, factor.levels or ())
            unknown = np.iinfo(self.dtype).max
            known = list(map(self._code_by_level.get, values.to_pylist())) if self._read is _same else [None]
            if None in known:
                known = [self._code(value, index, indices) for index, value in enumerate(values.to_pylist())]
            stored = [unknown if code is None else code for code in known]
            codes = np.array([*stored, unknown], dtype=self.dtype)[indices]
        self._rows += len(codes)
        return codes

    def _settled(self) -> Factor:
        if self._factor is None:
            raise FactorError(f"column {self.name!r} has not been read yet")
        return self._factor

    def _code(self, value: Any, index: int, indices: Array) -> int | None:
        level = self._read(value)
        if level is None:
            return None
        if level not in self._code_by_level:
            self._refuse(value, int(np.argmax(indices == index)))
        return self._code_by_level[level]

    def _refuse(self, value: Any, row: int) -> NoReturn:
        if not self.given:
            raise FactorError(
                f"column {self.name!r} changed while it was read: row {row + self._rows} has {abbreviate(value)} now"
            )
        known = did_you_mean(value, self._settled().levels or ())
        raise FactorError(
            f"row {row + self._rows} (from 0) of column {self.name!r} has {abbreviate(value)}, which is not "
            f"a level{known}"
        )

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
                text = values[int(index[row])].as_py()
                raise FactorError(
                    f"row {row + self._rows} (from 0) of column {self.name!r} has {abbreviate(text)}, which is not "
                    "a number"
                )
            known = pc.if_else(
                pa.array(sorts == Sort.BLANK), pa.scalar(None, pa.string()), pc.cast(pointed, pa.string())
            )
            numbers = np.append(to_doubles(pc.cast(known, pa.float64())), np.nan)[index]
        else:
            numbers = to_doubles(simple.cast(pa.float64(), safe=False))
        with np.errstate(over="ignore"):
            single = numbers.astype(np.float32)
        check_finite(self.name, numbers, single, self._rows)
        return single


def refuse_mixture(name: str, firsts: dict[str, tuple[int, Any]], fix: str) -> NoReturn:
    """Refuse a column of several types; the first row and value of each are given."""
    by_row = sorted((row, value, family) for family, (row, value) in firsts.items())
    rows = ", ".join(f"row {row} has {abbreviate(value)}" for row, value, _ in by_row)
    raise FactorError(
        f"column {name!r} mixes {' and '.join(family for _, _, family in by_row)}: {rows} (rows count from 0); {fix}"
    )


# -- values ------------------------------------------------------------------------------------------------------------


def _reader(sort: str, written: bool) -> Callable[[Any], Any]:
    """Turn a value into a level of a sort; None where it is unknown, the value itself where it is none."""
    if not written or sort == "string":
        return int if sort == "integer" else _same
    return {"boolean": _boolean, "integer": _integer}.get(sort, _number)


def _same(value: Any) -> Any:
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
