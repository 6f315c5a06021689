"""What random crops of loaders and of transforms share: their arguments, and the largest box. Without torch."""

import math
from typing import Any

from setsup.arrays import Size
from setsup.checks import check_image_size, is_integer, is_number
from setsup.errors import SetsupError

__all__ = ["TRIES", "Range", "check_box", "check_range", "largest_box"]

TRIES = 10
"""Boxes that are drawn until one fits, as published."""

Range = tuple[float, float]


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
        limits = " above 0" if positive else f" of at least {low:g}" if low > -math.inf else ""
        limits += f" and at most {high:g}" if high < math.inf else ""
        raise SetsupError(f"{what} must be two numbers (low, high){limits} with low <= high, not {ends!r}")
    return float(ends[0]), float(ends[1])


def largest_box(height: int, width: int, ratio: Range) -> Size:
    """Height and width of the largest box of an image whose ratio of width to height is allowed.

    Examples
    --------
    >>> largest_box(10, 100, (3 / 4, 4 / 3)), largest_box(30, 40, (3 / 4, 4 / 3))
    ((10, 13), (30, 40))

    """
    low, high = ratio
    if width < low * height:
        return max(1, min(height, round(width / low))), width
    if width > high * height:
        return height, max(1, min(width, round(height * high)))
    return height, width
