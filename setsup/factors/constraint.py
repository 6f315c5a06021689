"""Constraints between two rows: ``"id == anchor.id and camera != anchor.camera and quality > 2"``.

A constraint selects rows relative to another row, the *anchor*. It is an expression as in
:mod:`setsup.factors.where`, in which ``anchor.id`` is the anchor's value of the factor ``id``: terms joined by ``and``,
each of which compares a factor with the anchor's by ``==`` or ``!=``, or is any condition of the row alone
(``quality > 2``) or of the anchor alone (``anchor.split == 'query'``). At most three factors may be compared by ``!=``.

Convention
----------
An unknown value, of the row or of the anchor, satisfies neither ``==`` nor ``!=``. A nested factor is compared together
with the factors in which it is nested, as in grouping: instance 3 of one category is not instance 3 of another.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools
from setsup.checks import check_string
from setsup.errors import FactorError, advice
from setsup.factors.columns import FactorColumns
from setsup.factors.counting import with_outer
from setsup.factors.expression import ANCHOR, Expression, is_of_anchor, shallow
from setsup.factors.operands import Operands
from setsup.factors.where import holds

__all__ = ["MOST_DIFFERENT", "Constraint", "read_constraint"]

MOST_DIFFERENT = 3
"""Factors compared with the anchor's by ``!=``: the rows to leave out are counted for each subset of them."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """Factors in which a row must agree with an anchor or differ from it, and other conditions on both.

    Attributes
    ----------
    text : str
        The expression.
    equal, differ : tuple of str
        Factors compared by ``==`` and by ``!=``.
    rows, anchors : (rows,) bool, optional
        Rows and anchors that satisfy the other terms; None without such terms.

    """

    text: str
    equal: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    rows: Bools | None = field(default=None, repr=False)
    anchors: Bools | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Factors compared with the anchor's."""
        return (*self.equal, *self.differ)

    def holds(self, table: FactorColumns, anchors: npt.ArrayLike, rows: npt.ArrayLike) -> Bools:
        """Return whether rows satisfy the constraint with anchors, row by row.

        Parameters
        ----------
        table : FactorTable
            Table for which the constraint was read.
        anchors, rows : integer arrays
            Row numbers, broadcast against each other.

        Returns
        -------
        bool array of the broadcast shape; a row may satisfy the constraint with itself

        """
        anchor, row = np.broadcast_arrays(np.asarray(anchors), np.asarray(rows))
        satisfied = np.ones(anchor.shape, dtype=np.bool_)
        for names, wanted in [(self.equal, True), *(((name,), False) for name in self.differ)]:
            equal = np.ones(anchor.shape, dtype=np.bool_)
            for name in with_outer(table, names):
                mine, theirs = table.codes(name, anchor), table.codes(name, row)
                satisfied &= (mine >= 0) & (theirs >= 0)
                equal &= mine == theirs
            satisfied &= equal == wanted
        for mask, which in ((self.anchors, anchor), (self.rows, row)):
            if mask is not None:
                satisfied &= mask[which]
        return satisfied


def read_constraint(text: str, table: FactorColumns, option: str = "a constraint") -> Constraint:
    """Read a constraint for the rows of a table.

    Parameters
    ----------
    text : str
        The expression.
    table : FactorTable
        Table whose factors it names.
    option : str
        Name of the constraint in errors.

    Raises
    ------
    FactorError
        If the text is not a constraint; the error points at the wrong part.

    Examples
    --------
    >>> from setsup.factors import FactorTable
    >>> table = FactorTable.from_values({"id": ["a", "a", "b", "a"], "camera": [1, 2, 2, 1]})
    >>> constraint = read_constraint("id == anchor.id and camera != anchor.camera", table)
    >>> constraint.equal, constraint.differ, constraint.holds(table, 0, [0, 1, 2, 3]).tolist()
    (('id',), ('camera',), [False, True, False, False])

    """
    expression = Expression.of(check_string(text, option, FactorError), table.names)
    with shallow(expression):
        reader = _Reader(expression, table)
        for node, wanted in _terms(expression.parse(), True):
            reader.add(node, wanted)
    return reader.constraint()


def _terms(node: ast.expr, wanted: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Conditions that all must be as wanted; ``not`` is taken into what it negates."""
    match node:
        case ast.BoolOp(op=op) if isinstance(op, ast.And) == wanted:
            for value in node.values:
                yield from _terms(value, wanted)
        case ast.UnaryOp(op=ast.Not()):
            yield from _terms(node.operand, not wanted)
        case ast.Compare() if wanted and len(node.ops) > 1:
            sides = [node.left, *node.comparators]
            for left, link, right in zip(sides, node.ops, sides[1:], strict=False):
                part = ast.copy_location(ast.Compare(left, [link], [right]), left)
                part.end_lineno, part.end_col_offset = right.end_lineno, right.end_col_offset
                yield part, True
        case _:
            yield node, wanted


class _Reader:
    """Terms of a constraint, sorted by what they compare."""

    def __init__(self, expression: Expression, table: FactorColumns) -> None:
        self._expression, self._table = expression, table
        self._operands = Operands(expression, table)
        self._compared: dict[bool, dict[str, None]] = {True: {}, False: {}}  # factors by whether they are equal
        self._masks: dict[bool, Bools | None] = {True: None, False: None}  # by whether of the anchor

    def constraint(self) -> Constraint:
        equal, differ = (tuple(self._compared[wanted]) for wanted in (True, False))
        return Constraint(self._expression.text, equal, differ, self._masks[False], self._masks[True])

    def add(self, node: ast.expr, wanted: bool) -> None:
        """Take in one term."""
        of_anchor, of_row = _mentions(node)
        for name in of_row:
            if name.id == ANCHOR and ANCHOR not in self._table:
                self._refuse(name, f"expected a factor after 'anchor', as in anchor.{self._table.names[0]}")
        if of_anchor and of_row:
            self._compare(node, wanted)
            return
        for part in of_anchor:
            self._operands.factor(part)
        plain = _Plain().visit(copy.deepcopy(node)) if of_anchor else node
        mask, known = holds(self._expression, plain, wanted, self._table), self._masks[bool(of_anchor)]
        self._masks[bool(of_anchor)] = mask if known is None else known & mask

    def _compare(self, node: ast.expr, wanted: bool) -> None:
        """Take in a comparison with the anchor."""
        match node:
            case ast.Compare(left=left, ops=[link], comparators=[right]):
                pass
            case ast.BoolOp():
                self._refuse(node, "comparisons with the anchor can be combined only with 'and'")
            case _:
                self._refuse(
                    node,
                    "'not' applied to several comparisons with the anchor means 'or', which constraints do not support",
                )
        sides: list[ast.expr] = [left, right]
        name, other = reversed(sides) if is_of_anchor(left) else sides
        if not isinstance(name, ast.Name) or not is_of_anchor(other):
            self._refuse(node, "expected a comparison of a factor with the anchor's, such as id == anchor.id")
        factor = self._operands.factor(name).name
        if self._operands.factor(other).name != factor:
            self._refuse(other, f"{factor!r} must be compared with the anchor's {factor!r}; write anchor.{factor}")
        if not isinstance(link, ast.Eq | ast.NotEq):
            self._refuse(node, "only == and != can compare a factor with the anchor's")
        if self._table[factor].continuous:
            how = advice(
                f"compare its bins, which table.binned({factor!r}, …) adds", f"declare --kinds {factor}=ordinal"
            )
            self._refuse(name, f"factor {factor!r} is continuous; {how}")
        same = isinstance(link, ast.Eq) == wanted
        if factor in self._compared[not same]:
            self._refuse(
                node,
                f"no row can satisfy both comparisons of {factor!r} with the anchor's {factor!r}; remove one of them",
            )
        self._compared[same][factor] = None
        if len(self._compared[False]) > MOST_DIFFERENT:
            self._refuse(node, f"at most {MOST_DIFFERENT} factors may be compared with the anchor's using !=")

    def _refuse(self, node: ast.AST, sentence: str) -> NoReturn:
        self._operands.refuse(node, sentence)


class _Plain(ast.NodeTransformer):
    """``anchor.FACTOR`` as ``FACTOR``."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not is_of_anchor(node):
            return node
        return ast.copy_location(ast.Name(node.attr, ast.Load()), node)


def _mentions(node: ast.AST) -> tuple[list[ast.Attribute], list[ast.Name]]:
    """Factors of the anchor and of the row that a term names; ``count`` is a function."""
    of_anchor = [part for part in ast.walk(node) if is_of_anchor(part)]
    skipped = {id(part.value) for part in of_anchor}
    skipped |= {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    of_row = [part for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in skipped]
    return of_anchor, of_row
