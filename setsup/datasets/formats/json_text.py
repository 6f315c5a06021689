"""JSON from untrusted files: bounded in size, without NaN, with errors in one sentence."""

import json
from typing import Any, NoReturn

from setsup.errors import DamagedFile

__all__ = ["read_json"]

_MOST_DIGITS = 300


def read_json(content: bytes, label: str) -> Any:
    """Parse JSON.

    Examples
    --------
    >>> read_json(b'{"levels": [1, 2]}', "levels.json")
    {'levels': [1, 2]}

    """
    try:
        return json.loads(content, parse_int=_integer, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise DamagedFile(f"{label} could not be parsed as JSON: {why}") from error


def _constant(word: str) -> NoReturn:
    raise ValueError(f"it contains {word}")


def _integer(digits: str) -> int:
    """Refuse an integer that is too large for a float."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it contains an integer of {len(digits):,} digits")
    return int(digits)
