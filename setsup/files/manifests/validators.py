"""Readers of the values in a manifest; each raises ValueError with what it expected."""

import re
from collections.abc import Callable
from datetime import date
from pathlib import PurePosixPath
from typing import Any

__all__ = [
    "address",
    "any_text",
    "anything",
    "counts_by_option",
    "counts_of_parts",
    "day",
    "digest",
    "levels",
    "mapping",
    "matching",
    "one_of",
    "positive",
    "relative",
    "rows",
    "shares",
    "text",
    "texts",
    "whole",
    "words",
    "yes",
]


def text(value: Any) -> str:
    """A string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a non-empty string")
    return value.strip()


def anything(value: Any) -> Any:
    """A value that others check."""
    return value


def mapping(value: Any) -> dict[str, Any]:
    """A mapping, whose values others check."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ValueError("a mapping of names to values")
    return value


def any_text(value: Any) -> str:
    """A string, which may be empty."""
    if not isinstance(value, str):
        raise ValueError("a string")
    return value


def texts(value: Any) -> dict[str, str]:
    """Strings by their names."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise ValueError("a mapping of names to strings")
    return dict(value)


def whole(value: Any) -> int:
    """An integer of at least 0."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError("an integer of at least 0")
    return value


def positive(value: Any) -> float:
    """A number above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e300:
        raise ValueError("a number above 0")
    return float(value)


def matching(pattern: str, expected: str) -> Callable[[Any], str]:
    """Make a reader of texts that a regular expression matches as a whole."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(expected)
        return value

    return read


def one_of(names: tuple[str, ...]) -> Callable[[Any], str]:
    """One of some words."""
    return matching("|".join(names), "one of " + ", ".join(names))


def digest(length: int) -> Callable[[Any], str]:
    """Hexadecimal digits of a given number."""
    # upper case is refused too, so that digests compare as texts
    return matching(f"[0-9a-f]{{{length}}}", f"{length} lower-case hexadecimal digits in quotes")


def address(value: Any) -> str:
    """An address of the web."""
    return matching(r"https?://[^\s/]+(/\S*)?", "a URL that begins with https:// or http://")(value)


def day(value: Any) -> str:
    """A date."""
    if type(value) is not date:
        raise ValueError("a date such as 2026-11-23")
    return value.isoformat()


def relative(value: Any) -> str:
    """A path that stays inside the folder it is relative to."""
    expected = "a path inside the dataset folder, with / as separator and without .."
    if not isinstance(value, str) or not value or not value.isprintable() or re.search(r'[\\:*?"<>|]', value):
        raise ValueError(expected)
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or str(path) != value or value == "." or value.startswith("~"):
        raise ValueError(expected)
    return value


def levels(value: Any) -> tuple[str | int | float, ...] | int:
    """Levels of a factor, or their number."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63:
        return value
    if isinstance(value, list) and value and all(isinstance(level, str | int | float) for level in value):
        listed = tuple(value)
        if len(set(listed)) == len(listed) and not any(level != level for level in listed):
            return listed
    raise ValueError("the number of levels or a list of distinct levels")


def rows(value: Any) -> tuple[int, int]:
    """First row, and the row after the last."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("a list [first row, row after the last]")
    start, stop = whole(value[0]), whole(value[1])
    if start > stop:
        raise ValueError("a list [first row, row after the last]")
    return start, stop


def words(value: Any) -> tuple[str, ...]:
    """A string, or a list of strings."""
    return tuple(text(word) for word in (value if isinstance(value, list) else [value]))


def shares(value: Any) -> tuple[tuple[str, float], ...]:
    """Names of parts and the share of each."""
    expected = "a mapping of two or more parts to shares above 0 whose sum is at most 1"
    if not isinstance(value, dict) or len(value) < 2:
        raise ValueError(expected)
    try:
        parts = tuple((text(name), positive(share)) for name, share in value.items())
    except ValueError:
        raise ValueError(expected) from None
    if sum(share for _, share in parts) > 1 + 1e-9:
        raise ValueError(expected)
    return parts


def yes(value: Any) -> bool:
    """A boolean."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def counts_of_parts(value: Any) -> int | tuple[tuple[str | int | float, tuple[int, ...]], ...]:
    """Number of samples of every part, or a number or numbers for each level."""
    expected = "a number of samples, or a mapping of levels to numbers of samples or lists of them"
    if not isinstance(value, dict):
        return _whole(value, expected)
    if not value or not all(isinstance(level, str | int | float) for level in value):
        raise ValueError(expected)
    listed = ((level, counts if isinstance(counts, list) and counts else [counts]) for level, counts in value.items())
    return tuple((level, tuple(_whole(count, expected) for count in counts)) for level, counts in listed)


def counts_by_option(value: Any) -> tuple[tuple[str, tuple[tuple[str | int | float, int], ...]], ...]:
    """Numbers of samples for values of options."""
    expected = "a mapping of options to mappings (possibly empty, {}) of values to numbers of samples"
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        raise ValueError(expected)
    if not all(isinstance(name, str) for name in value):
        raise ValueError(expected)
    return tuple(
        (option, tuple((each, _whole(count, expected)) for each, count in known.items()))
        for option, known in value.items()
    )


def _whole(value: Any, expected: str) -> int:
    try:
        return whole(value)
    except ValueError:
        raise ValueError(expected) from None
