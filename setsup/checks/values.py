"""Checks of single values: each returns the value as a plain type, or raises one sentence."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from setsup.errors import SetsupError, did_you_mean, short, spell_name

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "NO_ARRAY",
    "NO_LIST",
    "SURROGATE",
    "Error",
    "check_array",
    "check_boolean",
    "check_choice",
    "check_image_size",
    "check_instance",
    "check_integer",
    "check_mapping",
    "check_number",
    "check_path",
    "check_rates",
    "check_string",
    "check_strings",
    "is_boolean",
    "is_integer",
    "is_number",
    "show_value",
]

T = TypeVar("T")
Error = type[SetsupError]

SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Halves of characters, which no UTF-8 encodes."""
NO_LIST = (str, bytes, Mapping)
"""Iterables that are not meant where a list is expected."""
NO_ARRAY = (TypeError, ValueError, RuntimeError, OverflowError)
"""What numpy, and torch's tensors, raise where they make no array."""


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether this is an integer of Python or numpy, and no boolean."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a number of Python or numpy, and neither a boolean nor NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def is_boolean(value: Any) -> bool:
    """Whether this is a boolean of Python or numpy."""
    return isinstance(value, bool) or (type(value).__module__, type(value).__name__) == ("numpy", "bool")


def check_integer(value: Any, what: str, error: Error, low: int = 0, high: int | None = None) -> int:
    """Check an integer in a range, both ends included."""
    if not is_integer(value) or value < low or (high is not None and value > high):
        span = f"an integer of at least {low:,}" if high is None else f"an integer from {low:,} to {high:,}"
        raise error(f"{spell_name(what)} must be {span}, not {show_value(value)}")
    return int(value)


def check_number(
    value: Any, what: str, error: Error, low: float = -math.inf, high: float = math.inf, *, positive: bool = False
) -> float:
    """Check a finite number in a range, both ends included; ``positive`` excludes 0."""
    try:
        number = float(value) if is_number(value) else math.nan
    except OverflowError:
        number = math.nan
    if not (math.isfinite(number) and low <= number <= high) or (positive and number <= 0):
        if -math.inf < low and high < math.inf:
            ends = [f"from {low:g} to {high:g}"]
        else:
            ends = [f"of at least {low:g}"] if low > -math.inf else ["above 0"] if positive else []
            ends += [f"up to {high:g}"] if high < math.inf else []
        raise error(f"{spell_name(what)} must be a {' '.join(['finite number', *ends])}, not {show_value(value)}")
    return number


def check_rates(**rates: float) -> None:
    """Check learning rates, by the names of their settings: finite numbers above 0."""
    for name, rate in rates.items():
        check_number(rate, f"{name}, a learning rate,", SetsupError, positive=True)


def check_choice(value: Any, choices: Sequence[str], what: str, error: Error) -> str:
    """Check one of some strings."""
    if not isinstance(value, str) or value not in choices:
        near = did_you_mean(value, choices)
        near = near if "did you mean" in near else ""  # the choices are listed before
        raise error(f"{spell_name(what)} must be one of {', '.join(choices)}, not {show_value(value)}{near}")
    return value


def check_boolean(value: Any, what: str, error: Error) -> bool:
    """Check a boolean of Python or numpy."""
    if not is_boolean(value):
        raise error(f"{spell_name(what)} must be True or False, not {show_value(value)}")
    return bool(value)


def check_string(value: Any, what: str, error: Error) -> str:
    """Check a string that UTF-8 can encode."""
    if not isinstance(value, str):
        raise error(f"{spell_name(what)} must be a string, not {show_value(value)}")
    if half := SURROGATE.search(value):
        raise error(f"{what} must not contain {half[0]!r}, which is half of a surrogate pair, not a character")
    return value


def check_strings(value: Any, what: str, error: Error) -> list[str]:
    """Check several strings, in any iterable but a string."""
    try:
        strings = None if isinstance(value, NO_LIST) else list(value)
    except TypeError:  # no iterable, or an array or a tensor without an axis
        strings = None
    if strings is None:
        raise error(f"{spell_name(what)} must be a list of strings, not {show_value(value)}")
    for string in strings:
        if not isinstance(string, str):
            raise error(f"{spell_name(what)} must be a list of strings, but contains {show_value(string)}")
    return strings


def check_array(value: Any, what: str, error: Error, dtype: Any = None) -> "npt.NDArray[Any]":
    """Convert to an array; ragged lists, and tensors with a gradient or on a GPU, are refused."""
    import numpy as np

    try:
        return np.asarray(value, dtype)
    except NO_ARRAY as wrong:
        reason = " ".join(str(wrong).split())[:200]
        raise error(f"{what} must be an array: {reason or type(wrong).__name__}") from None


def check_mapping(value: Any, what: str, error: Error) -> Mapping[str, Any]:
    """Check a mapping whose keys are strings."""
    if not isinstance(value, Mapping):
        raise error(f"{what} must be a mapping with strings as keys, not {show_value(value)}")
    for key in value:
        if not isinstance(key, str):
            raise error(f"{what} must be a mapping with strings as keys, but has the key {show_value(key)}")
    return value


def check_path(value: Any, what: str, error: Error) -> Path:
    """Check a path, from a string or a path-like object."""
    try:
        path = Path(value)
        if "\0" in os.fspath(path):
            raise ValueError
        os.fsencode(path)
    except (TypeError, ValueError):
        raise error(f"{spell_name(what)} must be the path of a file or folder, not {show_value(value)}") from None
    return path


def check_image_size(value: Any, what: str, error: Error, high: int | None = None) -> tuple[int, int]:
    """Check a (height, width) of integers of at least 1."""
    row = (isinstance(value, Sequence) and not isinstance(value, str)) or getattr(value, "shape", None) == (2,)
    sides = list(value) if row else []
    if len(sides) != 2 or not all(is_integer(side) and 1 <= side <= (high or side) for side in sides):
        span = "of at least 1" if high is None else f"from 1 to {high:,}"
        raise error(f"{spell_name(what)} must be (height, width), two integers {span}, not {show_value(value)}")
    return int(sides[0]), int(sides[1])


def check_instance(value: Any, kind: type[T], what: str, error: Error, hint: str = "") -> T:
    """Check an instance of a class; ``hint`` says where to get one."""
    if not isinstance(value, kind):
        raise error(f"{what} must be a {kind.__name__}, not {show_value(value)}{f'; {hint}' if hint else ''}")
    return value


def show_value(value: Any, depth: int = 2) -> str:
    """Show a value in few characters, or its type where it has no short form."""
    if isinstance(value, dict) and depth and 0 < len(value) <= 4:
        return "{" + ", ".join(f"{show_value(key)}: {show_value(item, depth - 1)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple | list) and depth and 0 < len(value) <= 4:
        first, last = "()" if isinstance(value, tuple) else "[]"
        return first + ", ".join(show_value(item, depth - 1) for item in value) + last
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"a {type(value).__name__} of {value.dtype}, shape {tuple(value.shape)}"
    if value is None or isinstance(value, bool | Integral | Real | str | bytes):
        text = repr(value) if not isinstance(value, int) or abs(value) < 2**200 else f"{value:#x}"
        return short(text)
    return f"a {type(value).__name__}"
