"""Conditions on rows: ``"digit != 9 and split == 'train'"``.

An expression is a subset of Python's grammar: comparisons of factors with values or with each other, joined by
``and``, ``or``, ``not``; ``in`` takes a tuple, list or set. In place of a factor may stand ``count(identity)``, how
many rows of the table have the same known value as this one, and ``digit % 2``, the remainder of an integer. A name
that is no identifier, or is one of Python's keywords, is written in backticks, as in pandas: ```age (years)` > 30``; a
backtick within a name is doubled. Identifiers with dots between them, ``label.digit``, need none. An expression is
parsed, checked and looked up, never executed.

Convention
----------
Unknown values follow Kleene's three-valued logic: a row whose value is unknown satisfies no comparison of that factor
and no negation of one; ``x is None`` and ``x is not None`` ask for it. Continuous factors are stored as float32, and
numbers that they are compared with are rounded alike, so that a value given as 0.7 is ``>= 0.7``. Levels may be
rounded to four decimals or more: the published number, such as 0.8214285714285714, stands for the level 0.8214, in
orders too; a number that is only close does not. String levels of ordinal and cyclic factors compare by their order
among the levels, numbers as numbers: exactly, however large. Names are compared as Python compares identifiers, by
their NFKC normal form, unless a factor has exactly this name.
"""

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools
from setsup.checks import check_memory
from setsup.errors import FactorError
from setsup.factors.column_tests import comparable_numbers, compare_columns, look_up, satisfy
from setsup.factors.columns import FactorColumns
from setsup.factors.counting import count_equal, with_outer
from setsup.factors.expression import Expression, shallow
from setsup.factors.factor import PLURAL, Factor, level_sort, stored_level
from setsup.factors.operands import Operands

__all__ = ["check_where", "evaluate", "holds"]

_ORDERED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne, **_ORDERED}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


def evaluate(expression: str, table: FactorColumns) -> Bools:
    """Rows for which an expression is true.

    Returns (rows,) bool.

    `expression`: comparisons (``== != < <= > >= in``, ``not in``, chained ones too) of factors with values or
    other factors, joined by ``and``, ``or``, ``not``; ``factor is None`` asks for unknown values;
    ``count(factor)`` and ``factor % 2`` are compared with numbers.
    """
    text = Expression.of(expression, table.names)
    with shallow(text):
        return holds(text, text.parse(), True, table)


def check_where(where: object, rows: int) -> None:
    """Refuse what is neither an expression nor one boolean per row, nor None for all rows."""
    if where is None or isinstance(where, str):
        return
    if not isinstance(where, np.ndarray) or where.dtype != np.bool_ or where.shape != (rows,):
        what = f"{where.shape} {where.dtype}" if isinstance(where, np.ndarray) else f"a {type(where).__name__}"
        raise FactorError(f"where must be an expression or a boolean array of shape ({rows},), not {what}")


def holds(expression: Expression, node: ast.expr, wanted: bool, table: FactorColumns) -> Bools:
    """Rows for which it is known that a part of an expression is as wanted, as (rows,) bool."""
    rows = _Condition(Operands(expression, table), table).holds(node, wanted)
    if not table.is_grid:
        return rows
    _check_rows(table)
    return np.array(np.broadcast_to(rows, [len(factor) for factor in table.factors])).reshape(-1)


def _check_rows(table: FactorColumns) -> None:
    """Refuse a grid of more rows than fit into memory as (rows,) bool."""
    check_memory(len(table), f"a condition on {len(table):,} rows", "the rows or levels of the grid", FactorError)


@dataclass(frozen=True, slots=True)
class _Condition:
    """Conditions on a table: (rows,) bool; of a grid, with an axis for each factor, of length 1 unless it matters."""

    operands: Operands
    table: FactorColumns

    def holds(self, node: ast.expr, wanted: bool) -> Bools:
        """Rows for which it is known that a condition is as wanted."""
        match node:
            case ast.BoolOp():
                masks = (self.holds(value, wanted) for value in node.values)
                return self._join(masks, isinstance(node.op, ast.And) == wanted)
            case ast.UnaryOp(op=ast.Not()):
                return self.holds(node.operand, not wanted)
            case ast.Compare():
                sides = [node.left, *node.comparators]
                links = zip(sides, node.ops, sides[1:], strict=False)
                return self._join((self._compare(*link, wanted) for link in links), wanted)
            case ast.Name():
                factor = self.operands.factor(node)
                self._refuse(node, f"factor {factor.name!r} alone is not a condition; compare it with a value")
        self.operands.refuse_kind(node)

    def _join(self, masks: Iterator[Bools], every: bool) -> Bools:
        joined = next(masks)
        for mask in masks:
            if joined.shape != mask.shape:  # of a grid
                _check_rows(self.table)
                joined = joined & mask if every else joined | mask
            elif every:
                joined &= mask
            else:
                joined |= mask
        return joined

    def _compare(self, left: ast.expr, link: ast.cmpop, right: ast.expr, wanted: bool) -> Bools:
        if isinstance(link, ast.In | ast.NotIn):
            return self._find_in(left, right, wanted == isinstance(link, ast.In))
        if isinstance(link, ast.Is | ast.IsNot):
            return self._unknown(left, right, wanted == isinstance(link, ast.Is))
        mirrored = _MIRRORED.get(type(link), type(link))
        if isinstance(left, ast.Call | ast.BinOp):
            return self._compare_calculated(left, type(link), right, wanted)
        if isinstance(right, ast.Call | ast.BinOp):
            return self._compare_calculated(right, mirrored, left, wanted)
        if isinstance(left, ast.Name) and isinstance(right, ast.Name):
            for word, other in ((left, right), (right, left)):
                if word.id not in self.table and other.id in self.table:
                    self.operands.refuse_word(word, self.table[other.id])
            return self._compare_two(left, type(link), right, wanted)
        if isinstance(left, ast.Name):
            return self._compare_one(left, type(link), right, wanted)
        if isinstance(right, ast.Name):
            return self._compare_one(right, mirrored, left, wanted)
        for side in (left, right):
            self.operands.value(side)
        self._refuse(left, "this comparison contains no factor; write names of factors without quotes")

    def _compare_one(self, name: ast.Name, link: type[ast.cmpop], node: ast.expr, wanted: bool) -> Bools:
        """Compare a factor with a value."""
        factor = self.operands.factor(name)
        if link not in _ORDERED:
            return self._among(factor, [node], wanted == (link is ast.Eq))
        compare = _ORDERED[link]
        value = stored_level(self.operands.value(node, factor), factor.levels or ())
        if factor.levels is None:
            number = self.operands.number(node, factor, value)
            return satisfy(self.table.column(factor.name), lambda column: compare(column, number), wanted)
        if level_sort(factor.levels[0]) != "number":
            self.operands.need_order(node, factor)
            if value not in factor.levels:
                self.operands.refuse_value(node, factor, value)
            chosen = compare(np.arange(len(factor)), factor.levels.index(value))
        elif level_sort(value) == "number":
            chosen = np.array([compare(level, value) for level in factor.levels])
        else:
            self.operands.refuse_value(node, factor, value)
        return self._look_up(factor, chosen if wanted else ~chosen)

    def _compare_calculated(self, node: ast.expr, link: type[ast.cmpop], other: ast.expr, wanted: bool) -> Bools:
        """Compare what follows from a factor's level with a number."""
        match node:
            case ast.Call(func=ast.Name(id="count"), args=[ast.Name() as name], keywords=[]):
                factor = self.operands.factor(name)
                if factor.levels is None:
                    self._refuse(name, f"factor {factor.name!r} is continuous, so it has no levels to count")
                if self.table.is_grid:  # as many rows of each level, and of each that it is nested in
                    cells = math.prod(len(self.table[outer]) for outer in with_outer(self.table, [factor.name]))
                    numbers = self._on_axis(factor, np.full(len(factor), len(self.table) // cells))
                else:
                    numbers = count_equal(self.table, factor.name)
            case ast.Call(func=ast.Name(id="count")):
                self._refuse(node, "count expects one factor, such as count(identity) >= 20")
            case ast.BinOp(ast.Name() as name, ast.Mod(), ast.Constant(int() as by)) if by > 0 and by is not True:
                factor = self.operands.factor(name)
                whole = [level for level in factor.levels or () if type(level) is int]
                if not whole or len(whole) != len(factor):
                    self._refuse(name, f"% requires integer levels, which factor {factor.name!r} does not have")
                value = self.operands.plain_number(other)
                return self._look_up(factor, np.array([(_COMPARED[link](n % by, value)) == wanted for n in whole]))
            case ast.BinOp(op=ast.Mod()):
                self._refuse(node, "% expects a factor and an integer above 0, such as digit % 2 == 0")
            case _:
                self.operands.refuse_kind(node)
        value = self.operands.plain_number(other)
        return np.asarray((_COMPARED[link](numbers, value) == wanted) & (numbers > 0))

    def _find_in(self, name: ast.expr, node: ast.expr, wanted: bool) -> Bools:
        """Find a factor among the values of a tuple, list or set."""
        if not isinstance(name, ast.Name):
            if isinstance(name, ast.BinOp | ast.Call):
                self._refuse(
                    name,
                    "a remainder or a count can be compared only with one number, using ==, !=, < or >, not with in",
                )
            self.operands.value(name)
            self._refuse(name, "expected a factor before 'in', without quotes")
        factor = self.operands.factor(name)
        if not isinstance(node, ast.Tuple | ast.List | ast.Set):
            self._refuse(
                node, "expected a tuple such as ('a', 'b') after 'in'; write a comma after a single value, as in (9,)"
            )
        return self._among(factor, node.elts, wanted)

    def _among(self, factor: Factor, nodes: Sequence[ast.expr], wanted: bool) -> Bools:
        """Find a factor among values."""
        pairs = [(node, stored_level(self.operands.value(node, factor), factor.levels or ())) for node in nodes]
        if factor.levels is None:
            numbers = np.array([self.operands.number(node, factor, value) for node, value in pairs], dtype=np.float32)
            return satisfy(self.table.column(factor.name), lambda column: np.isin(column, numbers), wanted)
        codes = {(level_sort(level), level): code for code, level in enumerate(factor.levels)}
        chosen = np.full(len(factor), not wanted)
        for node, value in pairs:
            if (code := codes.get((level_sort(value), value))) is None:
                self.operands.refuse_value(node, factor, value)
            chosen[code] = wanted
        return self._look_up(factor, chosen)

    def _unknown(self, name: ast.expr, node: ast.expr, wanted: bool) -> Bools:
        if not isinstance(name, ast.Name) or not (isinstance(node, ast.Constant) and node.value is None):
            self._refuse(node, "'is' tests only for unknown values, as in \"factor is None\"; compare values with ==")
        factor = self.operands.factor(name)
        if self.table.is_grid:
            return self._on_axis(factor, np.full(len(factor), not wanted))
        column = self.table.column(factor.name)
        if factor.continuous:
            return np.equal(np.isnan(column), wanted)
        return np.equal(np.equal(column, np.iinfo(column.dtype).max), wanted)

    def _compare_two(self, left: ast.Name, link: type[ast.cmpop], right: ast.Name, wanted: bool) -> Bools:
        """Compare two factors by their values."""
        first, second = self.operands.factor(left), self.operands.factor(right)
        sorts = [("number" if factor.levels is None else level_sort(factor.levels[0])) for factor in (first, second)]
        if sorts[0] != sorts[1]:
            self._refuse(
                right,
                f"{first.name!r} has {PLURAL[sorts[0]]} and {second.name!r} {PLURAL[sorts[1]]}, which cannot be "
                "compared",
            )
        if link in _ORDERED and sorts[0] != "number":
            self.operands.need_order(left, first)
            self.operands.need_order(right, second)
            if first.levels != second.levels:
                self._refuse(
                    right, f"{first.name!r} and {second.name!r} have different levels, so they have no common order"
                )
        values = comparable_numbers(first, second)
        if self.table.is_grid:
            _check_rows(self.table)
            # no value is unknown, and the last number of each is that of unknown ones
            a, b = (
                self._on_axis(factor, np.arange(len(factor)) if value is None else value[:-1])
                for factor, value in zip((first, second), values, strict=True)
            )
            return np.asarray(_COMPARED[link](a, b) == wanted)
        columns = [self.table.column(factor.name) for factor in (first, second)]
        return compare_columns(columns, values, _COMPARED[link], wanted)

    def _look_up(self, factor: Factor, chosen: Bools) -> Bools:
        """Rows whose level is among the chosen ones; an unknown value is never."""
        if self.table.is_grid:
            return self._on_axis(factor, chosen)
        return look_up(self.table.column(factor.name), chosen)

    def _on_axis(self, factor: Factor, levels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What is known of the levels of a factor of a grid, along its axis."""
        return levels.reshape([len(other) if other is factor else 1 for other in self.table.factors])

    def _refuse(self, node: ast.AST, sentence: str) -> NoReturn:
        self.operands.refuse(node, sentence)
