"""Arguments that samplers share: which factors sets fix, which rows are drawn, row weights, tolerances and limits."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Reals
from setsup.checks import check_array, check_instance, check_integer, check_memory, check_number
from setsup.errors import SamplerError, abbreviate, advice
from setsup.factors.factor import Factor
from setsup.factors.table import FactorTable
from setsup.samplers.spelling import spell, spell_keyword, spell_name

__all__ = [
    "MOST_ROWS",
    "MOST_SETS",
    "Weights",
    "Where",
    "both",
    "check_draw_memory",
    "check_names",
    "check_nesting",
    "check_sets",
    "check_size",
    "check_table",
    "check_tolerance",
    "copy_arguments",
    "drawable_rows",
    "inactive_factors",
    "is_listed",
    "is_per_set",
    "per_set",
    "plain_data",
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

MOST_ROWS = 2**31 - 1
"""Rows of a set."""

MOST_SETS = 1 << 24
"""Sets, or triplets, of a step: their numbers are 24 bits of the key words."""

_DEEPEST = 6  # samplers within each other: a Zip makes those in it twice, so that work doubles with each


def check_table(table: Any) -> FactorTable:
    """The table itself; SamplerError when it is something else, such as the dataset that it belongs to."""
    return check_instance(table, FactorTable, "the table of a sampler", SamplerError, "pass dataset.factors")


def check_sets(number: Any, what: str = "sets") -> int:
    """The number of sets of a step, or of what a sampler calls them; SamplerError otherwise."""
    return check_integer(number, what, SamplerError, 1, MOST_SETS)


def check_size(number: Any, what: str = "size") -> int:
    """The number of rows of a set; SamplerError otherwise."""
    return check_integer(number, what, SamplerError, 1, MOST_ROWS)


def check_draw_memory(rows: int, what: str, reduce: str, each: int = 48) -> None:
    """Refuse draws for which this machine has no memory; SamplerError says what to reduce.

    A row takes ``each`` bytes with all that is needed while it is drawn; samplers need 16 to 100.
    """
    check_memory(rows * each, f"{what} with {rows:,} rows", reduce, SamplerError)


def copy_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a constructor, from its ``locals()``: copied, so that no later change of a list reaches them."""
    copies = {}
    for key, value in arguments.items():
        if key in ("self", "table", "__class__"):
            continue
        try:
            copies[key] = _copy(value)
        except (TypeError, RuntimeError, copy.Error):  # generators, open files, tensors with a gradient
            raise SamplerError(
                f"{key} must be plain data, such as numbers, strings, lists or arrays, not a {type(value).__name__}"
            ) from None
    return copies


def _copy(value: Any) -> Any:
    """A copy; of what numpy takes for an array, such as a column of pandas, an array."""
    if is_per_set(value):
        return [_copy(item) for item in value]
    return np.array(value) if _is_column(value) else copy.deepcopy(value)


def plain_data(value: Any) -> Any:
    """An argument as plain data, which JSON can have."""
    if isinstance(value, Mapping):
        return {key: plain_data(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_data(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value


def check_names(factors: str | Sequence[str], option: str) -> list[str]:
    """Names of factors given as one or as a list, at least one; SamplerError otherwise."""
    names = [factors] if isinstance(factors, str) else list(_check_list(factors, option))
    if not names:
        raise SamplerError(f"{spell_name(option)} must name at least one factor")
    return names


def inactive_factors(
    table: FactorTable,
    inactive: Sequence[str] | None,
    active: Sequence[str] | None,
    tolerance: Mapping[str, float],
) -> tuple[str, ...]:
    """Names of the factors that sets fix, given by the inactive or by the active ones."""
    if inactive is not None and active is not None:
        raise SamplerError(
            f"{spell_keyword('inactive')} and {spell_keyword('active')} exclude each other; pass only one"
        )
    if inactive is not None:
        return tuple(dict.fromkeys(table[name].name for name in _check_list(inactive, "inactive")))
    if active is None:
        names = ", ".join(factor.name for factor in table.factors if _is_fixable(factor, tolerance))
        raise SamplerError(
            f"sets need factors to fix (this table has {names}); pass {spell_keyword('inactive')} with the factors "
            f"that sets fix, or {spell_keyword('active')} with those that vary"
        )
    varying = {table[name].name for name in _check_list(active, "active")}
    chosen = tuple(f.name for f in table.factors if f.name not in varying and _is_fixable(f, tolerance))
    for name in chosen:
        if outer := [other for other in table.outer(name) if other in varying]:
            raise SamplerError(
                f"{outer[0]!r} cannot be active while {name!r} is fixed, because {name!r} is nested in it; add "
                f"{name!r} to {spell_name('active')}"
            )
    return chosen


def _check_list(names: Sequence[str], option: str) -> Sequence[str]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise SamplerError(f"{spell_name(option)} must be a list of factor names, not {abbreviate(names)}")
    return names


def _is_fixable(factor: Factor, tolerance: Mapping[str, float]) -> bool:
    """Whether naming only the active factors fixes this one."""
    if factor.role != "variation" or factor.name in ("id", "path"):
        return False
    return not factor.continuous or factor.name in tolerance


def check_tolerance(table: FactorTable, tolerance: Mapping[str, float] | None) -> dict[str, float]:
    """Tolerances of continuous factors; SamplerError where a factor has levels."""
    if tolerance is not None and not isinstance(tolerance, Mapping):
        raise SamplerError(
            f"{spell_name('tolerance')} must map factors to numbers, such as {{'yaw': 5.0}}, not "
            f"{abbreviate(tolerance)}"
        )
    tolerances = {table[name].name: value for name, value in (tolerance or {}).items()}
    for name, value in tolerances.items():
        if not table[name].continuous:
            how = advice(f"kinds={{{name!r}: 'continuous'}}", f"--kinds {name}=continuous")
            raise SamplerError(
                f"factor {name!r} has levels, so sets fix it exactly; leave it out of {spell_name('tolerance')}, or "
                f"open the table with {name!r} as a continuous factor ({how})"
            )
        tolerances[name] = check_number(value, f"the tolerance of {name!r}", SamplerError, low=0)
    return tolerances


def row_weights(table: FactorTable, weights: str | npt.ArrayLike | None) -> Reals | None:
    """Weight of every row, from a factor of numbers or an array; NaN (unknown) counts as 0."""
    if weights is None:
        return None
    if isinstance(weights, str):
        factor = table[weights]
        if factor.levels is not None and any(isinstance(level, str) for level in factor.levels):
            raise SamplerError(
                f"{spell(weights=weights)} names a factor of strings; name a factor of numbers, or pass one number "
                "per row"
            )
        numbers = np.array(table.values(weights), dtype=np.float64)
    else:
        array = check_array(weights, "weights, one number per row,", SamplerError)
        if array.dtype.kind not in "biufO":
            raise SamplerError(f"weights must be one number per row, not {abbreviate(weights)}")
        numbers = check_array(array, "weights, one number per row,", SamplerError, np.float64)
    if numbers.shape != (len(table),):
        raise SamplerError(f"weights must have shape ({len(table)},), one number per row, not {numbers.shape}")
    numbers = np.nan_to_num(numbers, nan=0.0, posinf=np.inf)
    if not np.isfinite(numbers).all() or (numbers < 0).any() or not numbers.any():
        raise SamplerError("weights must be finite, at least 0 and not all 0 (NaN, for unknown, counts as 0)")
    with np.errstate(over="ignore"):
        if not np.isfinite(numbers.sum()):
            raise SamplerError("the sum of the weights overflows; divide all weights by the largest one")
    return numbers


def row_mask(table: FactorTable, where: Where | None, option: str = "where") -> Bools | None:
    """Rows that may be drawn, (rows,) bool, from an expression, booleans or row numbers; None for all."""
    if where is None or isinstance(where, str):
        return None if where is None else table.mask(where)
    selection = check_array(where, f"{option}, an expression, one boolean per row, or row numbers,", SamplerError)
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


def both(mask: Bools | None, other: Bools | None) -> Bools | None:
    """Rows that two masks keep, where None keeps all."""
    if mask is None or other is None:
        return other if mask is None else mask
    return mask & other


def check_nesting(description: Any) -> None:
    """Refuse a description of samplers that stand too deep in each other."""
    stack = [(description, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, Mapping):
            depth += "sampler" in node
            if depth > _DEEPEST:
                raise SamplerError(
                    f"samplers are nested more than {_DEEPEST} deep; pass the inner samplers to one Zip directly"
                )
            stack += [(value, depth) for value in node.values()]
        elif isinstance(node, list | tuple) and any(isinstance(item, Mapping) for item in node):
            stack += [(item, depth) for item in node]


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


def drawable_rows(
    table: FactorTable, where: Where | None, weights: Weights | None
) -> tuple[Bools | None, Reals | None]:
    """Rows that ``where`` keeps and whose weight is positive, (rows,) bool or None for all; and the weights."""
    row_weight = row_weights(table, weights)
    return with_weight(row_mask(table, where), row_weight), row_weight


def with_weight(rows: Bools | None, weights: Reals | None) -> Bools | None:
    """Of some rows, those whose weight is positive; None for all."""
    return both(rows, None if weights is None else weights > 0)


def is_listed(value: Any) -> bool:
    """Whether this is a list, a tuple or an array."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def is_per_set(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether ``where`` or ``weights`` is a list with one for each set, and not one for all of them."""
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(item is None or isinstance(item, str) or is_listed(item) or _is_column(item) for item in value)
    )


def _is_column(value: Any) -> bool:
    return hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic)


def per_set(value: Any, sets: int, option: str, read: Callable[[Any], Any]) -> list[Any]:
    """What each set reads from an option with one for each set, or one for all; equal ones are read once."""
    if not is_per_set(value):
        return [read(value)] * sets
    if len(value) != sets:
        raise SamplerError(
            f"{option} has {len(value)} items for {spell(sets=sets)}; pass one per set, or one for all sets"
        )
    read_by_item: dict[Any, Any] = {}
    for item in value:
        key = item if isinstance(item, str) else id(item)
        if key not in read_by_item:
            read_by_item[key] = read(item)
    return [read_by_item[item if isinstance(item, str) else id(item)] for item in value]


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
