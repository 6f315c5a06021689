"""Arguments that samplers share: the table, the factors that sets fix, tolerances, numbers of sets and rows."""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setsup.checks import check_instance, check_integer, check_memory, check_number
from setsup.errors import SamplerError, abbreviate, advice
from setsup.factors.factor import Factor
from setsup.factors.table import FactorTable
from setsup.samplers.row_arguments import is_column, is_per_set
from setsup.samplers.spelling import spell_keyword, spell_name

__all__ = [
    "MOST_ROWS",
    "MOST_SETS",
    "check_draw_memory",
    "check_names",
    "check_nesting",
    "check_sets",
    "check_size",
    "check_table",
    "check_tolerance",
    "copy_arguments",
    "inactive_factors",
    "plain_data",
]

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
    options = "".join(spell_name(name) for name in re.split("(, | or )", reduce))
    check_memory(rows * each, f"{what} with {rows:,} rows", options, SamplerError)


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
    return np.array(value) if is_column(value) else copy.deepcopy(value)


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
        raise SamplerError(
            f"{spell_name(option)} must be a list of at least one factor name, not {abbreviate(factors)}"
        )
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
            f"{spell_keyword('inactive')} and {spell_keyword('active')} are mutually exclusive; pass only one"
        )
    if inactive is not None:
        return tuple(dict.fromkeys(table[name].name for name in _check_list(inactive, "inactive")))
    if active is None:
        names = ", ".join(factor.name for factor in table.factors if _is_fixable(factor, tolerance))
        raise SamplerError(
            f"no factors to fix are specified (the table has {names}); pass {spell_keyword('inactive')} with the "
            f"factors that sets fix, or {spell_keyword('active')} with those that vary"
        )
    varying = {table[name].name for name in _check_list(active, "active")}
    chosen = tuple(f.name for f in table.factors if f.name not in varying and _is_fixable(f, tolerance))
    for name in chosen:
        if outer := [other for other in table.outer(name) if other in varying]:
            raise SamplerError(
                f"{outer[0]!r} cannot be active while {name!r} is fixed, because {name!r} is nested in {outer[0]!r}; "
                f"add {name!r} to {spell_name('active')}"
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


def check_nesting(description: Any) -> None:
    """Refuse a description of samplers that stand too deep in each other."""
    stack = [(description, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, Mapping):
            depth += "sampler" in node
            if depth > _DEEPEST:
                raise SamplerError(
                    f"samplers are nested more than {_DEEPEST} levels deep; pass the inner samplers to one Zip directly"
                )
            stack += [(value, depth) for value in node.values()]
        elif isinstance(node, list | tuple) and any(isinstance(item, Mapping) for item in node):
            stack += [(item, depth) for item in node]
