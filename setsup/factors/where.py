"""Conditions on rows: ``"digit != 9 and split == 'train'"``.

An expression is Python's own grammar cut down to comparisons of factors with values or with each other, joined by
``and``, ``or``, ``not``; ``in`` takes a tuple, list or set. In place of a factor may stand ``count(identity)``, how
many rows of the table have the same known value as this one, and ``digit % 2``, the remainder of an integer. A name
that is no identifier, or is one of Python's keywords, is written in backticks, as in pandas: ```age (years)` > 30``; a
backtick within a name is doubled. An expression is parsed, checked and looked up, never executed.

Convention
----------
Unknown values follow Kleene's three-valued logic: a row whose value is unknown satisfies no comparison of that factor
and no negation of one; ``x is None`` and ``x is not None`` ask for it. Continuous factors are stored as float32, and
numbers that they are compared with are rounded alike, so that a value given as 0.7 is ``>= 0.7``. Levels may be
rounded to four decimals or more: the published number, such as 0.8214285714285714, stands for the level 0.8214, in
orders too, and a number that is merely close stands for none. Text levels of ordinal and cyclic factors compare by
their place among the levels, numbers as numbers: exactly, however large. Names are compared as Python compares
identifiers, by their NFKC normal form, unless a factor is called exactly so.
"""

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools
from setsup.checks import check_memory
from setsup.errors import FactorError, did_you_mean
from setsup.factors.column_tests import comparable_numbers, compare_columns, look_up, satisfy
from setsup.factors.columns import FactorColumns
from setsup.factors.counting import count_equal, with_outer
from setsup.factors.expression import Expression, clip, is_of_anchor
from setsup.factors.factor import PLURAL, Factor, Kind, Level, sort_of, stored_level

__all__ = ["evaluate", "holds", "shallow"]

_ORDERED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne, **_ORDERED}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_REFUSED = {
    ast.Call: "a function call",
    ast.Attribute: "an attribute",
    ast.Subscript: "an index",
    ast.BinOp: "arithmetic",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "an f-string",
    ast.IfExp: "if … else",
}
_FORM = {"number": "a number without quotes", "boolean": "True or False", "string": "a string in quotes"}


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


def holds(expression: Expression, node: ast.expr, wanted: bool, table: FactorColumns) -> Bools:
    """Rows for which it is known that a part of an expression is as wanted, as (rows,) bool."""
    found = _Condition(expression, table).holds(node, wanted)
    if not table.is_grid:
        return found
    _check_rows(table)
    return np.array(np.broadcast_to(found, [len(factor) for factor in table.factors])).reshape(-1)


def _check_rows(table: FactorColumns) -> None:
    """Refuse a grid of more rows than fit into memory as (rows,) bool."""
    check_memory(len(table), f"a condition on {len(table):,} rows", "the rows or levels of the grid", FactorError)


@contextmanager
def shallow(expression: Expression) -> Iterator[None]:
    """Report an expression that is nested too deeply, or needs too much memory, as an error of its own."""
    try:
        yield
    except RecursionError:
        raise FactorError(f"the expression is nested too deeply: {clip(expression.text)}") from None
    except MemoryError as error:
        if type(error) is MemoryError and not error.args:  # of the parser; numpy's says how much
            raise FactorError(f"the expression is nested too deeply: {clip(expression.text)}") from None
        raise FactorError(
            f"memory ran out for the expression ({error}): {clip(expression.text)}; reduce the rows or levels"
        ) from None


@dataclass(frozen=True, slots=True)
class _Condition:
    """Conditions on a table: (rows,) bool; of a grid, with an axis for each factor, of length 1 unless it matters."""

    expression: Expression
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
                factor = self._factor(node)
                self._refuse(node, f"factor {factor.name!r} alone is not a condition; compare it with a value")
        self._refuse_kind(node)

    def _join(self, masks: Iterator[Bools], every: bool) -> Bools:
        found = next(masks)
        for mask in masks:
            if found.shape != mask.shape:  # of a grid
                _check_rows(self.table)
                found = found & mask if every else found | mask
            elif every:
                found &= mask
            else:
                found |= mask
        return found

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
                    self._refuse_word(word, self.table[other.id])
            return self._compare_two(left, type(link), right, wanted)
        if isinstance(left, ast.Name):
            return self._compare_one(left, type(link), right, wanted)
        if isinstance(right, ast.Name):
            return self._compare_one(right, mirrored, left, wanted)
        for side in (left, right):
            self._constant(side)
        self._refuse(left, "this comparison names no factor; names of factors have no quotes")

    def _compare_one(self, name: ast.Name, link: type[ast.cmpop], node: ast.expr, wanted: bool) -> Bools:
        """Compare a factor with a value."""
        factor = self._factor(name)
        if link not in _ORDERED:
            return self._among(factor, [node], wanted == (link is ast.Eq))
        compare = _ORDERED[link]
        value = stored_level(self._constant(node, factor), factor.levels or ())
        if factor.levels is None:
            number = self._number(node, factor, value)
            return satisfy(self.table.column(factor.name), lambda column: compare(column, number), wanted)
        if sort_of(factor.levels[0]) != "number":
            self._need_order(node, factor)
            if value not in factor.levels:
                self._refuse_value(node, factor, value)
            chosen = compare(np.arange(len(factor)), factor.levels.index(value))
        elif sort_of(value) == "number":
            chosen = np.array([compare(level, value) for level in factor.levels])
        else:
            self._refuse_value(node, factor, value)
        return self._look_up(factor, chosen if wanted else ~chosen)

    def _compare_calculated(self, node: ast.expr, link: type[ast.cmpop], other: ast.expr, wanted: bool) -> Bools:
        """Compare what follows from a factor's level with a number."""
        match node:
            case ast.Call(func=ast.Name(id="count"), args=[ast.Name() as name], keywords=[]):
                factor = self._factor(name)
                if factor.levels is None:
                    self._refuse(name, f"factor {factor.name!r} is continuous: it has no levels to count the rows of")
                if self.table.is_grid:  # as many rows of each level, and of each that it is nested in
                    cells = math.prod(len(self.table[one]) for one in with_outer(self.table, [factor.name]))
                    numbers = self._on_axis(factor, np.full(len(factor), len(self.table) // cells))
                else:
                    numbers = count_equal(self.table, factor.name)
            case ast.Call(func=ast.Name(id="count")):
                self._refuse(node, "count takes one factor, as in count(identity) >= 20")
            case ast.BinOp(ast.Name() as name, ast.Mod(), ast.Constant(int() as by)) if by > 0 and by is not True:
                factor = self._factor(name)
                whole = [level for level in factor.levels or () if type(level) is int]
                if not whole or len(whole) != len(factor):
                    self._refuse(name, f"factor {factor.name!r} has no integers as levels, which % needs")
                value = self._number_of(other)
                return self._look_up(factor, np.array([(_COMPARED[link](n % by, value)) == wanted for n in whole]))
            case ast.BinOp(op=ast.Mod()):
                self._refuse(node, "% takes a factor and an integer above 0, as in digit % 2 == 0")
            case _:
                self._refuse_kind(node)
        value = self._number_of(other)
        return np.asarray((_COMPARED[link](numbers, value) == wanted) & (numbers > 0))

    def _number_of(self, node: ast.expr) -> Any:
        """Number that a count or a remainder is compared with."""
        value = self._constant(node)
        if sort_of(value) != "number":
            self._refuse(node, f"this is compared with a number, not {value!r}")
        return value

    def _find_in(self, name: ast.expr, node: ast.expr, wanted: bool) -> Bools:
        """Find a factor among the values of a tuple, list or set."""
        if not isinstance(name, ast.Name):
            if isinstance(name, ast.BinOp | ast.Call):
                self._refuse(
                    name, "a remainder or a count is compared with one number by ==, != or an order, not by in"
                )
            self._constant(name)
            self._refuse(name, "before 'in' there must be a factor, without quotes")
        factor = self._factor(name)
        if not isinstance(node, ast.Tuple | ast.List | ast.Set):
            self._refuse(node, "after 'in' there must be a tuple such as ('a', 'b'); one value needs a comma: (9,)")
        return self._among(factor, node.elts, wanted)

    def _among(self, factor: Factor, nodes: Sequence[ast.expr], wanted: bool) -> Bools:
        """Find a factor among values."""
        pairs = [(node, stored_level(self._constant(node, factor), factor.levels or ())) for node in nodes]
        if factor.levels is None:
            numbers = np.array([self._number(node, factor, value) for node, value in pairs], dtype=np.float32)
            return satisfy(self.table.column(factor.name), lambda column: np.isin(column, numbers), wanted)
        codes = {(sort_of(level), level): code for code, level in enumerate(factor.levels)}
        chosen = np.full(len(factor), not wanted)
        for node, value in pairs:
            if (code := codes.get((sort_of(value), value))) is None:
                self._refuse_value(node, factor, value)
            chosen[code] = wanted
        return self._look_up(factor, chosen)

    def _unknown(self, name: ast.expr, node: ast.expr, wanted: bool) -> Bools:
        if not isinstance(name, ast.Name) or not (isinstance(node, ast.Constant) and node.value is None):
            self._refuse(node, "'is' asks for unknown values only, as in \"factor is None\"; compare values with ==")
        factor = self._factor(name)
        if self.table.is_grid:
            return self._on_axis(factor, np.full(len(factor), not wanted))
        column = self.table.column(factor.name)
        if factor.continuous:
            return np.equal(np.isnan(column), wanted)
        return np.equal(np.equal(column, np.iinfo(column.dtype).max), wanted)

    def _compare_two(self, left: ast.Name, link: type[ast.cmpop], right: ast.Name, wanted: bool) -> Bools:
        """Compare two factors by their values."""
        one, two = self._factor(left), self._factor(right)
        sorts = [("number" if factor.levels is None else sort_of(factor.levels[0])) for factor in (one, two)]
        if sorts[0] != sorts[1]:
            self._refuse(
                right,
                f"{one.name!r} has {PLURAL[sorts[0]]} and {two.name!r} {PLURAL[sorts[1]]}, which never compare",
            )
        if link in _ORDERED and sorts[0] != "number":
            self._need_order(left, one)
            self._need_order(right, two)
            if one.levels != two.levels:
                self._refuse(
                    right, f"{one.name!r} and {two.name!r} have different levels, so these have no common order"
                )
        values = comparable_numbers(one, two)
        if self.table.is_grid:
            _check_rows(self.table)
            # no value is unknown, and the last number of each is that of unknown ones
            a, b = (
                self._on_axis(factor, np.arange(len(factor)) if value is None else value[:-1])
                for factor, value in zip((one, two), values, strict=True)
            )
            return np.asarray(_COMPARED[link](a, b) == wanted)
        columns = [self.table.column(factor.name) for factor in (one, two)]
        return compare_columns(columns, values, _COMPARED[link], wanted)

    def _look_up(self, factor: Factor, chosen: Bools) -> Bools:
        """Rows whose level is among the chosen ones; an unknown value is never."""
        if self.table.is_grid:
            return self._on_axis(factor, chosen)
        return look_up(self.table.column(factor.name), chosen)

    def _on_axis(self, factor: Factor, levels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What is known of the levels of a factor of a grid, along its axis."""
        return levels.reshape([len(one) if one is factor else 1 for one in self.table.factors])

    # -- values ----------------------------------------------------------------------------------------------------

    def _factor(self, node: ast.Name) -> Factor:
        if node.id not in self.table:
            self._refuse(node, f"unknown factor {node.id!r}{did_you_mean(node.id, self.table.names)}")
        return self.table[node.id]

    def _constant(self, node: ast.expr, factor: Factor | None = None) -> Level:
        """Value that a node spells."""
        match node:
            case ast.Constant(value=str() | bool() | int() | float() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if value is not True:
                return -value
            case ast.Constant(value=None):
                self._refuse(node, 'None is not a level; write "is None" or "is not None" to ask for unknown values')
            case ast.Name() if factor is not None:
                self._refuse_word(node, factor)
            case ast.Tuple() | ast.List() | ast.Set():
                self._refuse(node, "several values are allowed after 'in' only")
        self._refuse_kind(node)

    def _number(self, node: ast.expr, factor: Factor, value: Any) -> np.float32:
        if sort_of(value) != "number":
            self._refuse(node, f"factor {factor.name!r} is continuous; compare it with a number, not {value!r}")
        with np.errstate(over="ignore"):
            try:
                return np.float32(value)
            except OverflowError:  # an integer beyond all floats
                return np.float32(np.inf if value > 0 else -np.inf)

    def _need_order(self, node: ast.expr, factor: Factor) -> None:
        levels = factor.levels or ()
        if factor.kind is Kind.NOMINAL or sort_of(levels[0]) == "boolean":
            self._refuse(node, f"the levels of factor {factor.name!r} have no order; compare with ==, != or in")

    # -- errors ----------------------------------------------------------------------------------------------------

    def _refuse_word(self, node: ast.Name, factor: Factor) -> NoReturn:
        if node.id in self.table:
            self._refuse(node, f"{node.id!r} is a factor; only values are allowed here")
        texts = [level for level in factor.levels or () if isinstance(level, str)]
        if node.id in (factor.levels or ()):
            self._refuse(node, f"{node.id!r} is a level of factor {factor.name!r}: put it in quotes, {node.id!r}")
        close = did_you_mean(node.id, [*self.table.names, *texts])
        self._refuse(node, f"{node.id!r} is not a factor, and a string needs quotes{close}")

    def _refuse_value(self, node: ast.expr, factor: Factor, value: Level) -> NoReturn:
        levels, name = factor.levels or (), factor.name
        sort, known = sort_of(value), sort_of(levels[0])
        if sort != known:
            self._refuse(node, f"factor {name!r} has {PLURAL[known]} as levels: write {_FORM[known]}, not {value!r}")
        hint = _near_numbers(value, levels) if sort == "number" else did_you_mean(value, levels)
        self._refuse(node, f"factor {name!r} has no level {value!r}{hint}")

    def _refuse_kind(self, node: ast.AST) -> NoReturn:
        if is_of_anchor(node):
            self._refuse(node, "there is no anchor here: constraints between rows have one, and an expression does not")
        what = _REFUSED.get(type(node), "this")
        self._refuse(node, f"{what} is not allowed in an expression{self.expression.hint()}")

    def _refuse(self, node: ast.AST, sentence: str) -> NoReturn:
        self.expression.refuse(node, sentence)


def _near_numbers(value: Any, levels: tuple[Any, ...]) -> str:
    below = max((level for level in levels if level < value), default=None)
    above = min((level for level in levels if level > value), default=None)
    near = [str(level) for level in (below, above) if level is not None]
    return f"; the nearest {'is' if len(near) == 1 else 'are'} {' and '.join(near)}"
