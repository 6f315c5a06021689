"""Arguments of operations: checked when an operation is made, and kept in one form."""

import math
from typing import Any

import numpy as np

from setsup.errors import SetsupError

__all__ = ["checked_probability", "checked_range", "checked_size", "is_number", "keep", "pair"]

Size = tuple[int, int]
Range = tuple[float, float]


def checked_probability(p: Any, operation: str, name: str = "p") -> None:
    """SetsupError unless a number is from 0 to 1."""
    if not is_number(p) or not 0 <= p <= 1:
        raise SetsupError(f"{operation}'s {name} must be a number from 0 to 1, not {p!r}")


def keep(operation: Any, name: str, value: Any) -> None:
    """Keep a checked value in a frozen dataclass that is under construction."""
    object.__setattr__(operation, name, value)


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return real and math.isfinite(value)


def pair(size: int | Size) -> Size:
    """Height and width of a checked size."""
    return (size, size) if isinstance(size, int) else size


def checked_size(size: Any, operation: str) -> Size:
    """Height and width; SetsupError unless a size is a number of pixels or two."""
    sides = (size, size) if isinstance(size, int | np.integer) and not isinstance(size, bool) else size
    whole = isinstance(sides, tuple | list) and all(isinstance(n, int | np.integer) for n in sides)
    if not whole or len(sides) != 2 or min(sides) < 1:
        raise SetsupError(f"{operation}'s size must be a number of pixels or (height, width), not {size!r}")
    return int(sides[0]), int(sides[1])


def checked_range(ends: Any, operation: str, name: str, above: float = -math.inf, to: float = math.inf) -> Range:
    """Low and high; SetsupError unless they are two numbers in order, above one bound and up to the other."""
    pair = isinstance(ends, tuple | list) and len(ends) == 2 and all(is_number(end) for end in ends)
    if not pair or not above < ends[0] <= ends[1] <= to:
        limits = (f" above {above:g}" if above > -math.inf else "") + (f" and at most {to:g}" if to < math.inf else "")
        raise SetsupError(f"{operation}'s {name} must be two numbers (low, high){limits}, low first, not {ends!r}")
    return float(ends[0]), float(ends[1])
