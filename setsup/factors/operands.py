"""What the parts of an expression stand for, factors and values, and the errors where they stand for nothing."""

import ast
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from setsup.errors import did_you_mean
from setsup.factors.columns import FactorColumns
from setsup.factors.expression import Expression, is_of_anchor
from setsup.factors.factor import PLURAL, Factor, Kind, Level, level_sort

__all__ = ["Operands"]

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


@dataclass(frozen=True, slots=True)
class Operands:
    """Factors and values that the nodes of an expression on a table spell."""

    expression: Expression
    table: FactorColumns

    def factor(self, node: ast.Name | ast.Attribute) -> Factor:
        """Factor of a name, or of ``anchor.NAME``."""
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name not in self.table:
            self.refuse(node, f"unknown factor {name!r}{did_you_mean(name, self.table.names)}")
        return self.table[name]

    def value(self, node: ast.expr, factor: Factor | None = None) -> Level:
        """Value that a node spells."""
        match node:
            case ast.Constant(value=str() | bool() | int() | float() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if value is not True:
                return -value
            case ast.Constant(value=None):
                self.refuse(node, 'None is not a level; write "is None" or "is not None" to test for unknown values')
            case ast.Name() if factor is not None:
                self.refuse_word(node, factor)
            case ast.Tuple() | ast.List() | ast.Set():
                self.refuse(node, "several values are allowed only after 'in'")
        self.refuse_kind(node)

    def number(self, node: ast.expr, factor: Factor, value: Any) -> np.float32:
        """Value that a continuous factor is compared with, rounded as its column is."""
        if level_sort(value) != "number":
            self.refuse(node, f"factor {factor.name!r} is continuous; compare it with a number, not {value!r}")
        with np.errstate(over="ignore"):
            try:
                return np.float32(value)
            except OverflowError:  # an integer beyond all floats
                return np.float32(np.inf if value > 0 else -np.inf)

    def need_order(self, node: ast.expr, factor: Factor) -> None:
        """Refuse a factor whose levels have no order."""
        levels = factor.levels or ()
        if factor.kind is Kind.NOMINAL or level_sort(levels[0]) == "boolean":
            self.refuse(node, f"the levels of factor {factor.name!r} have no order; compare with ==, != or in")

    def plain_number(self, node: ast.expr) -> Any:
        """Number that a count or a remainder is compared with."""
        value = self.value(node)
        if level_sort(value) != "number":
            self.refuse(node, f"expected a number, not {value!r}")
        return value

    def refuse_word(self, node: ast.Name, factor: Factor) -> NoReturn:
        """Refuse a name where a value of a factor belongs."""
        if node.id in self.table:
            self.refuse(node, f"{node.id!r} is a factor; only values are allowed here")
        texts = [level for level in factor.levels or () if isinstance(level, str)]
        if node.id in (factor.levels or ()):
            self.refuse(node, f"{node.id!r} is a level of factor {factor.name!r}; put it in quotes, {node.id!r}")
        close = did_you_mean(node.id, [*self.table.names, *texts])
        self.refuse(node, f"{node.id!r} is not a factor, and a string must be in quotes{close}")

    def refuse_value(self, node: ast.expr, factor: Factor, value: Level) -> NoReturn:
        """Refuse a value that is no level of a factor."""
        levels, name = factor.levels or (), factor.name
        sort, known = level_sort(value), level_sort(levels[0])
        if sort != known:
            self.refuse(node, f"factor {name!r} has {PLURAL[known]} as levels; write {_FORM[known]}, not {value!r}")
        hint = _near_numbers(value, levels) if sort == "number" else did_you_mean(value, levels)
        self.refuse(node, f"factor {name!r} has no level {value!r}{hint}")

    def refuse_kind(self, node: ast.AST) -> NoReturn:
        """Refuse a part of Python's grammar that expressions lack."""
        if is_of_anchor(node):
            self.refuse(node, "anchor is allowed only in constraints between rows, not in an expression")
        what = _REFUSED.get(type(node), "this")
        self.refuse(node, f"{what} is not allowed in an expression{self.expression.hint()}")

    def refuse(self, node: ast.AST, sentence: str) -> NoReturn:
        """Raise an error that points at a node."""
        self.expression.refuse(node, sentence)


def _near_numbers(value: Any, levels: tuple[Any, ...]) -> str:
    below = max((level for level in levels if level < value), default=None)
    above = min((level for level in levels if level > value), default=None)
    near = [str(level) for level in (below, above) if level is not None]
    return f"; the nearest {'is' if len(near) == 1 else 'are'} {' and '.join(near)}"
