"""Arguments of samplers that select and weigh rows, for all sets of a step or for each: ``where`` and ``weights``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Reals
from setsup.checks import check_array, check_memory
from setsup.errors import SamplerError, abbreviate
from setsup.factors.table import FactorTable
from setsup.samplers.spelling import spell, spell_keyword, spell_name

__all__ = [
    "Weights",
    "Where",
    "both",
    "drawable_rows",
    "is_column",
    "is_listed",
    "is_per_set",
    "per_set",
    "row_mask",
    "row_weights",
    "weight_names",
    "weight_words",
    "where_words",
    "with_weight",
]

Where = str | Sequence[bool] | Sequence[int] | Array
"""Rows that may be drawn: an expression, one boolean per row, or row numbers."""

Weights = str | Sequence[float] | Array
"""Relative probability of each row, or the factor that has it."""


def row_mask(table: FactorTable, where: Where | None, option: str = "where") -> Bools | None:
    """Rows that may be drawn, (rows,) bool, from an expression, booleans or row numbers; None for all."""
    if where is None or isinstance(where, str):
        return None if where is None else table.mask(where)
    option = spell_name(option)
    selection = check_array(where, f"{option} (an expression, one boolean per row, or row numbers)", SamplerError)
    if selection.dtype == np.bool_:
        if selection.shape != (len(table),):
            raise SamplerError(f"{option} must have shape ({len(table)},), one boolean per row, not {selection.shape}")
        return selection
    if selection.ndim != 1 or (selection.dtype.kind not in "iu" and selection.size):
        raise SamplerError(
            f"{option} must be an expression, one boolean per row, or row numbers, not {abbreviate(where)}"
        )
    if selection.size and not 0 <= selection.min() <= selection.max() < len(table):
        wrong = selection[(selection < 0) | (selection >= len(table))][0]
        raise SamplerError(
            f"row {wrong} of {option} is out of range: the table has {len(table):,} rows, numbered from 0"
        )
    check_memory(len(table), f"{option} of {len(table):,} rows", "the rows or levels of the table", SamplerError)
    mask = np.zeros(len(table), dtype=bool)
    mask[selection.astype(np.int64)] = True
    if int(mask.sum()) < selection.size:
        rows, times = np.unique(selection, return_counts=True)
        raise SamplerError(
            f"{option} lists row {rows[times > 1][0]} twice; list each row once, and pass {spell_keyword('weights')} "
            "to draw it more often"
        )
    return mask


def row_weights(table: FactorTable, weights: str | npt.ArrayLike | None) -> Reals | None:
    """Weight of every row, from a factor of numbers or an array; NaN (unknown) counts as 0."""
    if weights is None:
        return None
    if isinstance(weights, str):
        factor = table[weights]
        if factor.levels is not None and any(isinstance(level, str) for level in factor.levels):
            raise SamplerError(
                f"{spell(weights=weights)} is a factor whose levels are strings, but weights must be numbers; choose "
                "a factor of numbers, or pass one number per row"
            )
        numbers = np.array(table.values(weights), dtype=np.float64)
    else:
        array = check_array(weights, f"{spell_name('weights')}, one number per row,", SamplerError)
        if array.dtype.kind not in "biufO":
            raise SamplerError(f"{spell_name('weights')} must be one number per row, not {abbreviate(weights)}")
        numbers = check_array(array, f"{spell_name('weights')}, one number per row,", SamplerError, np.float64)
    if numbers.shape != (len(table),):
        raise SamplerError(
            f"{spell_name('weights')} must have shape ({len(table)},), one number per row, not {numbers.shape}"
        )
    numbers = np.nan_to_num(numbers, nan=0.0, posinf=np.inf)
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers < np.inf)))
    if wrong.size or not numbers.any():
        where = f"; row {wrong[0]:,} has {numbers[wrong[0]]}" if wrong.size else "; all of them are 0"
        raise SamplerError(
            f"{spell_name('weights')} must be finite and non-negative, and not all 0 (NaN, which means unknown, "
            f"counts as 0){where}"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(numbers.sum()):
            raise SamplerError("the sum of the weights overflows; divide all weights by the largest one")
    return numbers


def drawable_rows(
    table: FactorTable, where: Where | None, weights: Weights | None
) -> tuple[Bools | None, Reals | None]:
    """Rows that ``where`` keeps and whose weight is positive, (rows,) bool or None for all; and the weights."""
    row_weight = row_weights(table, weights)
    return with_weight(row_mask(table, where), row_weight), row_weight


def with_weight(rows: Bools | None, weights: Reals | None) -> Bools | None:
    """Of some rows, those whose weight is positive; None for all."""
    return both(rows, None if weights is None else weights > 0)


def both(mask: Bools | None, other: Bools | None) -> Bools | None:
    """Rows that two masks keep, where None keeps all."""
    if mask is None or other is None:
        return other if mask is None else mask
    return mask & other


def is_listed(value: Any) -> bool:
    """Whether this is a list, a tuple or an array."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def is_per_set(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether ``where`` or ``weights`` is a list with one for each set, and not one for all of them."""
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(item is None or isinstance(item, str) or is_listed(item) or is_column(item) for item in value)
    )


def is_column(value: Any) -> bool:
    """Whether this converts to an array, as a column of pandas does, without being one."""
    return hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic)


def per_set(value: Any, sets: int, option: str, read: Callable[[Any], Any]) -> list[Any]:
    """What each set reads from an option with one for each set, or one for all; equal ones are read once."""
    if not is_per_set(value):
        return [read(value)] * sets
    if len(value) != sets:
        raise SamplerError(
            f"{spell_name(option)} has {len(value)} items for {spell(sets=sets)}; pass one per set, or one for all sets"
        )
    read_by_item: dict[Any, Any] = {}
    for item in value:
        key = item if isinstance(item, str) else id(item)
        if key not in read_by_item:
            read_by_item[key] = read(item)
    return [read_by_item[item if isinstance(item, str) else id(item)] for item in value]


def weight_names(arguments: Any) -> list[str]:
    """Factors that weights are of, also those of samplers within this one; `arguments` are plain data."""
    if isinstance(arguments, list | tuple):
        return list(dict.fromkeys(name for item in arguments for name in weight_names(item)))
    if not isinstance(arguments, Mapping):
        return []
    weights = arguments.get("weights")
    factors = [weight for weight in (weights if is_per_set(weights) else [weights]) if isinstance(weight, str)]
    return list(
        dict.fromkeys([*factors, *weight_names([value for name, value in arguments.items() if name != "weights"])])
    )


def weight_words(weights: Any) -> str:
    """What weights are, in words, for one sampler: ``importance``; empty where there are none."""
    if weights is None:
        return ""
    if not is_per_set(weights):
        return weights if isinstance(weights, str) else "a number for each row"
    words = [weight_words(weight) or "none" for weight in weights]
    return (
        words[0] if len(set(words)) == 1 else ", ".join(f"{word} (set {number})" for number, word in enumerate(words))
    )


def where_words(where: Any) -> str:
    """What ``where`` says, in few words: the expression, or the number of rows that are listed."""
    if is_per_set(where):
        return "; ".join(
            f"set {number}: {'all rows' if selection is None else where_words(selection)}"
            for number, selection in enumerate(where)
        )
    if isinstance(where, str):
        return where
    selection = np.asarray(where)
    return f"{int(selection.sum()) if selection.dtype == np.bool_ else selection.size:,} rows are listed"
