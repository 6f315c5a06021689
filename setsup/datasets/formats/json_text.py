"""JSON from untrusted files: bounded in size, without NaN, with errors in one sentence."""

import json
import math
from collections import Counter
from typing import Any, NoReturn, TypeGuard

from setsup.checks import is_number
from setsup.errors import DamagedFile, abbreviate

__all__ = ["is_finite", "read_json"]

_MOST_DIGITS = 300


def read_json(content: bytes, label: str, unique: bool = False) -> Any:
    """Parse JSON; with `unique`, refuse objects that have a key twice.

    Examples
    --------
    >>> read_json(b'{"levels": [1, 2]}', "levels.json")
    {'levels': [1, 2]}

    """
    try:
        hook = _unique if unique else None
        return json.loads(content, parse_int=_integer, parse_constant=_constant, object_pairs_hook=hook)
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise DamagedFile(f"{label} could not be parsed as JSON: {why}") from error


def is_finite(value: Any) -> TypeGuard[float]:
    """Whether a value of JSON is a finite number.

    Examples
    --------
    >>> [is_finite(value) for value in json.loads('[1, 2.5, 1e999, true, "1"]')]
    [True, True, False, False, False]

    """
    return is_number(value) and math.isfinite(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has the key {abbreviate(twice)} twice")
    return found


def _constant(word: str) -> NoReturn:
    raise ValueError(f"it contains {word}")


def _integer(digits: str) -> int:
    """Refuse an integer that is too large for a float."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it contains an integer of {len(digits):,} digits")
    return int(digits)
