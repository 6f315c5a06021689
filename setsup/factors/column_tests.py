"""Rows of a column of codes or numbers for which a test is known to hold: never those whose value is unknown."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools
from setsup.factors.factor import Factor, level_sort

__all__ = ["comparable_numbers", "compare_columns", "look_up", "satisfy"]

_BLOCK = 1 << 20  # rows at a time, so that temporary arrays stay small


def satisfy(column: npt.NDArray[Any], test: Callable[[npt.NDArray[Any]], Any], wanted: bool) -> Bools:
    """Known numbers for which a test gives the wanted result."""
    satisfied = np.empty(len(column), dtype=np.bool_)
    for rows in _blocks(len(column)):
        satisfied[rows] = (test(column[rows]) == wanted) & ~np.isnan(column[rows])
    return satisfied


def look_up(codes: npt.NDArray[Any], chosen: Bools) -> Bools:
    """Codes of chosen levels, (rows,) bool, where ``chosen`` has one boolean per level; that of unknown is never."""
    chosen = np.append(chosen, False)  # the code of unknown is clipped to this one
    selected = np.empty(len(codes), dtype=np.bool_)
    for rows in _blocks(len(codes)):
        chosen.take(codes[rows], mode="clip", out=selected[rows])
    return selected


def compare_columns(
    columns: Sequence[npt.NDArray[Any]],
    numbers: Sequence[npt.NDArray[Any] | None],
    compare: Callable[[Any, Any], Any],
    wanted: bool,
) -> Bools:
    """Rows for which two columns compare as wanted, by their :func:`comparable_numbers`; both values are known."""
    satisfied = np.empty(len(columns[0]), dtype=np.bool_)
    for rows in _blocks(len(satisfied)):
        a, b = (
            column[rows] if number is None else number.take(column[rows], mode="clip")
            for number, column in zip(numbers, columns, strict=True)
        )
        satisfied[rows] = (compare(a, b) == wanted) & ~(np.isnan(a) | np.isnan(b))
    return satisfied


def comparable_numbers(first: Factor, second: Factor) -> list[npt.NDArray[Any] | None]:
    """Numbers by which the levels of two factors compare, NaN behind the last one; None for numbers themselves."""
    if first.levels is None or second.levels is None:
        return [
            None if factor.levels is None else np.array([*factor.levels, np.nan], dtype=np.float32)
            for factor in (first, second)
        ]
    levels: Any = dict.fromkeys([*first.levels, *second.levels])
    if level_sort(first.levels[0]) == "number":
        levels = sorted(levels)  # by Python, which compares integers of any size exactly
    ranks = {level: rank for rank, level in enumerate(levels)}
    return [np.array([*(ranks[level] for level in factor.levels or ()), np.nan]) for factor in (first, second)]


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK, rows)) for start in range(0, rows, _BLOCK))
