"""Arguments of operations: checked at construction and stored in one form."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from setsup.checks import check_image_size, check_number, is_integer, is_number
from setsup.errors import SetsupError

__all__ = ["Range", "Ranged", "Size", "Sized", "check_box", "check_probability", "check_range", "pair", "set_field"]

Size = tuple[int, int]
Range = tuple[float, float]


@dataclass(frozen=True)
class Ranged:
    """An operation with an amount per image, uniform between two numbers."""

    low: float
    high: float

    least: ClassVar[float] = -math.inf

    def __post_init__(self) -> None:
        """Check the range."""
        check_range((self.low, self.high), f"{type(self).__name__}: low and high", self.least)


@dataclass(frozen=True)
class Sized:
    """An operation whose results have a size."""

    size: int | Size

    def __post_init__(self) -> None:
        """Check the size."""
        set_field(self, "size", check_box(self.size, type(self).__name__))


def check_probability(p: Any, what: str) -> None:
    """Raise unless a number is from 0 to 1."""
    check_number(p, what, SetsupError, 0, 1)


def set_field(operation: Any, name: str, value: Any) -> None:
    """Set a field of a frozen dataclass under construction."""
    object.__setattr__(operation, name, value)


def pair(size: int | Size) -> Size:
    """Height and width of a checked size."""
    return (size, size) if isinstance(size, int) else size


def check_box(size: Any, operation: str) -> Size:
    """Height and width of a size: a number of pixels, or (height, width)."""
    try:
        return check_image_size((size, size) if is_integer(size) else size, "size", SetsupError)
    except SetsupError:
        raise SetsupError(f"{operation}: size must be a number of pixels or (height, width), not {size!r}") from None


def check_range(
    ends: Any, what: str, low: float = -math.inf, high: float = math.inf, *, positive: bool = False
) -> Range:
    """Two finite numbers in order, within bounds; ``positive`` leaves 0 out."""
    numbers = isinstance(ends, tuple | list) and len(ends) == 2 and all(is_number(end) for end in ends)
    if not numbers or not max(low, -1e300) <= ends[0] <= ends[1] <= min(high, 1e300) or (positive and ends[0] <= 0):
        limits = " above 0" if positive else f" from {low:g} on" if low > -math.inf else ""
        limits += f" and at most {high:g}" if high < math.inf else ""
        raise SetsupError(f"{what} must be two numbers (low, high){limits}, low first, not {ends!r}")
    return float(ends[0]), float(ends[1])
