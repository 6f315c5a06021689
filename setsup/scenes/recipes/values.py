"""What recipes ask of the values of a row: that they are there, and are numbers in their range."""

import math
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

from setsup.errors import FactorError, SetsupError, near

__all__ = ["checked_size", "level", "number"]

_LARGEST = 1 << 15


def number(
    values: Mapping[str, Any], name: str, low: float = -math.inf, high: float = math.inf, unit: str = ""
) -> float:
    """Read a number of a row."""
    value = _found(values, name)
    real = isinstance(value, Real) and not isinstance(value, bool)
    found = float(value) if real else math.nan
    if not math.isfinite(found) or not low <= found <= high:
        bounded = math.isfinite(low) and math.isfinite(high)
        wanted = f"from {low:g} to {high:g}" if bounded else "a finite number" + " of" * bool(unit)
        raise FactorError(f"{name} must be {f'{wanted} {unit}'.strip()}, not {value!r}")
    return found + 0.0


def level(values: Mapping[str, Any], name: str, levels: Collection[str]) -> str:
    """Read a name out of a list."""
    value = _found(values, name)
    if not isinstance(value, str) or value not in levels:
        raise FactorError(f"{name} has no level {value!r}{near(value, levels)}")
    return value


def checked_size(size: Any) -> tuple[int, int]:
    """Check (height, width) in pixels."""
    given = tuple(size) if isinstance(size, tuple | list) else ()
    whole = all(isinstance(side, int) and not isinstance(side, bool) and 1 <= side <= _LARGEST for side in given)
    if len(given) != 2 or not whole:
        raise SetsupError(f"size must be (height, width), integers of pixels, 1 … {_LARGEST:,}, not {size!r}")
    return given[0], given[1]


def _found(values: Mapping[str, Any], name: str) -> Any:
    if name not in values:
        raise FactorError(f"the recipe needs the factor {name!r}, which the row lacks{near(name, values)}")
    return values[name]
