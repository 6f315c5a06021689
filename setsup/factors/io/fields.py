"""One column of foreign values: the sorts of its values, and the factor they make.

Only the distinct values of a block are looked at one by one, never its rows. The rules are those of
:mod:`setsup.factors.io.infer`.
"""

import logging
from typing import Any, NoReturn

import numpy as np

from setsup.arrays import Array
from setsup.errors import FactorError, abbreviate, advice
from setsup.factors.factor import Factor, Kind, level_sort
from setsup.factors.io.distinct import Sort, distinct, point_decimals, value_sorts
from setsup.factors.io.encoding import COMMA, ColumnEncoder, Commas, level_reader, unchanged

__all__ = ["ROLE_OF", "Field", "refuse_mixture"]

_log = logging.getLogger("setsup")
_FAMILY = {Sort.TEXT: "strings", Sort.IDENTIFIER: "strings", Sort.TRUTH: "booleans"}
_TEXTS = {Sort.TEXT, Sort.IDENTIFIER}
ROLE_OF = {"id": "key", "path": "key", "split": "split", "part": "part"}


class Field:
    """A column as far as it has been read."""

    def __init__(self, name: str, factor: Factor | None, kind: Kind | None, written: bool, commas: Commas) -> None:
        self.name = name
        self.role = ROLE_OF.get(name, "variation")
        self.declared = factor is not None
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
        if self.declared:
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
        kinds = advice(f"kinds={{{self.name!r}: 'nominal'}}", f"--kinds {self.name}=nominal")
        refuse_mixture(
            self.name,
            firsts,
            f"correct the values, leave unknown ones empty, or read the column as strings with {kinds}",
        )

    def encoder(self) -> ColumnEncoder:
        """Encoder of the given factor, or of the one that the values make: its levels are those that were seen."""
        if self._factor is not None:
            sort = "number" if self._factor.levels is None else level_sort(self._factor.levels[0])
            return ColumnEncoder(self._factor, sort, self._written, self._commas, declared=True)
        sort = self._sort()
        if self._comma is not None and sort in ("number", "integer"):
            self._check_commas(self._comma)
        kinds = {"string": Kind.NOMINAL, "boolean": Kind.NOMINAL, "integer": Kind.ORDINAL}
        kind = self._kind or kinds.get(sort, Kind.CONTINUOUS)
        factor = self._continuous(sort) if kind is Kind.CONTINUOUS else self._discrete(kind, sort)
        return ColumnEncoder(factor, sort, self._written, self._commas, declared=False)

    def _continuous(self, sort: str) -> Factor:
        if sort in ("string", "boolean"):
            row, value = next(self._seen[sort] for sort in _FAMILY if sort in self._seen)
            raise FactorError(
                f"column {self.name!r} cannot be continuous: row {row} (counting from 0) has {abbreviate(value)}; "
                "choose another kind, or leave unknown values empty"
            )
        return Factor(self.name, Kind.CONTINUOUS, role=self.role)

    def _discrete(self, kind: Kind, sort: str) -> Factor:
        if sort == "nothing":
            raise FactorError(
                f"column {self.name!r} cannot be {kind}, because it has no known value and therefore no levels; fill "
                "in values, or leave out the column"
            )
        read, seen = level_reader(sort, self._written, self._commas), self._distinct or set()
        levels = seen if read is unchanged else {read(value) for value in seen} - {None}
        known: Any = (False, True) if sort == "boolean" else tuple(sorted(levels))
        factor = Factor(self.name, kind, known, role=self.role)
        if sort == "string" and kind is not Kind.NOMINAL and len(known) > 1:
            self._warn(factor)
        if sort == "string" and self._written and self._kind is None and all(map(COMMA.fullmatch, known)):
            nominal = advice(f"kinds={{{self.name!r}: 'nominal'}}", f"--kinds {self.name}=nominal")
            _log.warning(
                "the values of column %r, such as %r, are read as strings; if they are numbers, write them with "
                "decimal points, or if they are names, pass %s",
                *(self.name, known[0], nominal),
            )
        return factor

    def _check_commas(self, comma: tuple[int, str]) -> None:
        """Refuse numbers whose commas may be something else than the decimal point."""
        row, value = comma
        if self._point is not None:
            raise FactorError(
                f"column {self.name!r} mixes decimal points and commas: row {self._point[0]} has "
                f"{abbreviate(self._point[1])}, row {row} has {abbreviate(value)} (rows are counted from 0); write all "
                "numbers in the same notation"
            )
        if self._commas == "unsure" and self._thousands:
            raise FactorError(
                f"row {row} (counting from 0) of column {self.name!r} has {abbreviate(value)}, in which the comma "
                "may be a decimal comma or a thousands separator; write the numbers without commas, or read the "
                "column as strings with "
                + advice(f"kinds={{{self.name!r}: 'nominal'}}", f"--kinds {self.name}=nominal")
            )
        _log.info("commas in the numbers of column %r are read as decimal commas: %r", self.name, value)

    def _warn(self, factor: Factor) -> None:
        """Warn that strings are in alphabetical order, which is rarely the intended one."""
        shown = ",".join(map(str, (factor.levels or ())[:6])) + (",…" if len(factor) > 6 else "")
        ordered = f"{factor.kind}:low,mid,high"
        option = advice(
            f"kinds={{{self.name!r}: {ordered!r}}}, or a Factor with its levels", f"--kinds {self.name}={ordered}"
        )
        _log.warning(
            "the strings of column %r are %s in alphabetical order, %s; pass their own order, as in %s",
            *(self.name, factor.kind, shown, option),
        )


def refuse_mixture(name: str, firsts: dict[str, tuple[int, Any]], fix: str) -> NoReturn:
    """Refuse a column of several types; the first row and value of each are given."""
    by_row = sorted((row, value, family) for family, (row, value) in firsts.items())
    rows = ", ".join(f"row {row} has {abbreviate(value)}" for row, value, _ in by_row)
    raise FactorError(
        f"column {name!r} mixes {' and '.join(family for _, _, family in by_row)}: {rows} (rows are counted from 0); "
        f"{fix}"
    )
