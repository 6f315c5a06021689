"""Conditions on columns of texts, in the language of ``where``."""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.expression import Expression
from setsup.factors.factor import Level

__all__ = ["Encoded", "check_conditions", "condition_table", "lacks", "names_in"]

Encoded = tuple[list[Any], npt.NDArray[np.int64]]
"""Different values of a column, and of each row which one it has."""


def lacks(value: Any) -> bool:
    """Whether a value stands for rows that their table lacks: None among texts, NaN among numbers."""
    return value is None or value != value


def names_in(condition: str, known: Sequence[str]) -> list[str]:
    """Columns that a condition names, in order."""
    tree = Expression.of(condition, known).parse()
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return [name for name in dict.fromkeys(names) if name in known]


def condition_table(columns: Mapping[str, Encoded], conditions: Sequence[str]) -> FactorTable:
    """Make the table on which conditions are looked up.

    Values that they name are levels, whether or not a row has them. Empty texts and lacking rows are unknown.
    """
    named = [value for condition in conditions for value in _constants(condition, list(columns))]
    factors, codes = [], {}
    for name, (values, places) in columns.items():
        text = not values or isinstance(values[0], str | None)
        wanted = {value for value in named if isinstance(value, str) == text}
        levels = sorted({value for value in (*values, *wanted) if value != "" and not lacks(value)}) or ["unknown"]
        code = {level: number for number, level in enumerate(levels)}
        factors.append(Factor(name, Kind.NOMINAL if text else Kind.ORDINAL, tuple(levels)))
        codes[name] = np.array([code.get(value, -1) for value in values] or [-1], np.int64)[places]
    return FactorTable(factors, codes)


def check_conditions(conditions: Sequence[str], types: Mapping[str, str | None]) -> None:
    """Refuse conditions that are none, name no column, or compare a number with a text.

    Raises
    ------
    FactorError
        With the place in the condition.

    """
    row = np.zeros(1, np.int64)
    columns = {name: ([""] if kind is None else [0], row) for name, kind in types.items()}
    table = condition_table(columns, conditions)
    for condition in conditions:
        table.mask(condition)


def _constants(condition: str, known: Sequence[str]) -> list[Level]:
    """Texts and numbers in a condition; numbers with either sign."""
    tree = Expression.of(condition, known).parse()
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    finite = [value for value in numbers if abs(value) < 1e300]
    return [*texts, *finite, *(-value for value in finite)]
