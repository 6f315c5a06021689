"""Checked values of a row for recipes."""

import math
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

from setsup.errors import FactorError, did_you_mean

__all__ = ["LARGEST", "level", "number"]

LARGEST = 1 << 15
"""Pixels per side of an image."""


def number(
    values: Mapping[str, Any], name: str, low: float = -math.inf, high: float = math.inf, unit: str = ""
) -> float:
    """Read a number of a row."""
    value = _need(values, name)
    real = isinstance(value, Real) and not isinstance(value, bool)
    checked = float(value) if real else math.nan
    if not math.isfinite(checked) or not low <= checked <= high:
        bounded = math.isfinite(low) and math.isfinite(high)
        wanted = f"from {low:g} to {high:g}" if bounded else "a finite number" + " of" * bool(unit)
        raise FactorError(f"{name} must be {f'{wanted} {unit}'.strip()}, not {value!r}")
    return checked + 0.0


def level(values: Mapping[str, Any], name: str, levels: Collection[str]) -> str:
    """Read a name out of a list."""
    value = _need(values, name)
    if not isinstance(value, str) or value not in levels:
        raise FactorError(f"{name} has no level {value!r}{did_you_mean(value, levels)}")
    return value


def _need(values: Mapping[str, Any], name: str) -> Any:
    if name not in values:
        raise FactorError(
            f"the recipe requires the factor {name!r}, which is missing from the row{did_you_mean(name, values)}"
        )
    return values[name]
