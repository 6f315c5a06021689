"""Checks of arguments that all packages share: each gives the value in its plain form, or raises one sentence.

``what`` names the argument in the sentence, and ``error`` is the kind that the caller's package raises.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from setsup.errors import SetsupError, near

__all__ = [
    "a_boolean",
    "a_mapping",
    "a_number",
    "a_path",
    "a_string",
    "an_instance",
    "an_integer",
    "is_integer",
    "memory_for",
    "one_of",
    "strings",
]

T = TypeVar("T")
Error = type[SetsupError]


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether this is an integer, Python's or numpy's; a boolean is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def an_integer(value: Any, what: str, error: Error, low: int = 0, high: int | None = None) -> int:
    """An integer in a range, both ends included."""
    if not is_integer(value) or value < low or (high is not None and value > high):
        span = f"an integer from {low:,} on" if high is None else f"an integer from {low:,} to {high:,}"
        raise error(f"{what} must be {span}, not {_shown(value)}")
    return int(value)


def a_number(
    value: Any, what: str, error: Error, low: float = -math.inf, high: float = math.inf, *, positive: bool = False
) -> float:
    """A finite number in a range, both ends included; ``positive`` leaves 0 out."""
    try:
        found = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        found = math.nan
    if not (math.isfinite(found) and low <= found <= high) or (positive and found <= 0):
        ends = [f"from {low:g}"] if low > -math.inf else ["above 0"] if positive else []
        ends += [f"to {high:g}"] if high < math.inf else ["on"] if low > -math.inf else []
        raise error(f"{what} must be a {' '.join(['finite number', *ends])}, not {_shown(value)}")
    return found


def one_of(value: Any, choices: Sequence[str], what: str, error: Error) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in choices:
        raise error(f"{what} must be one of {', '.join(choices)}, not {_shown(value)}{near(value, choices)}")
    return value


def a_boolean(value: Any, what: str, error: Error) -> bool:
    """True or False, Python's or numpy's; no other value stands for one."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise error(f"{what} must be True or False, not {_shown(value)}")
    return bool(value)


def a_string(value: Any, what: str, error: Error) -> str:
    """A string that UTF-8 can write."""
    if not isinstance(value, str):
        raise error(f"{what} must be a string, not {_shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as wrong:
        raise error(f"{what} holds {wrong.object[wrong.start]!r}, half of a surrogate pair, not a character") from None
    return value


def strings(value: Any, what: str, error: Error) -> list[str]:
    """Several strings, given as any iterable but a string."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise error(f"{what} must be a list of strings, not {_shown(value)}")
    found = list(value)
    for one in found:
        if not isinstance(one, str):
            raise error(f"{what} must be a list of strings, but holds {_shown(one)}")
    return found


def a_mapping(value: Any, what: str, error: Error) -> Mapping[str, Any]:
    """A mapping whose keys are strings."""
    if not isinstance(value, Mapping):
        raise error(f"{what} must be a mapping of names, not {_shown(value)}")
    for key in value:
        if not isinstance(key, str):
            raise error(f"{what} must be a mapping of names, which are strings, but has the key {_shown(key)}")
    return value


def a_path(value: Any, what: str, error: Error) -> Path:
    """A path, from a string or whatever stands for one."""
    try:
        path = Path(value)
        if "\0" in os.fspath(path):
            raise ValueError
        os.fsencode(path)
    except (TypeError, ValueError):
        raise error(f"{what} must be the path of a file or folder, not {_shown(value)}") from None
    return path


def an_instance(value: Any, kind: type[T], what: str, error: Error, hint: str = "") -> T:
    """A value of some class; ``hint`` says where one comes from."""
    if not isinstance(value, kind):
        raise error(f"{what} must be a {kind.__name__}, not {_shown(value)}{f'; {hint}' if hint else ''}")
    return value


def memory_for(needed: int, what: str, reduce: str, error: Error) -> None:
    """Refuse arrays that this machine cannot hold, before they are made.

    Parameters
    ----------
    needed : int
        Bytes.
    what, reduce : str
        What needs them, and what the user can make smaller.

    """
    if needed < _SMALL:
        return
    there = _memory()
    if needed > there:
        raise error(f"{what} needs {needed:,} bytes of memory, and {there:,} are there; reduce {reduce}")


_SMALL = 1 << 26  # bytes about which no machine is asked


def _memory() -> int:
    """Bytes that this process may use: the machine's memory, or the limit of its control group or its own, if less."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path("/sys/fs/cgroup", name).read_text()))
        except (OSError, ValueError):
            continue
    try:
        import resource

        sizes += [limit for limit in resource.getrlimit(resource.RLIMIT_AS) if limit > 0]
    except ImportError:
        pass
    return min(sizes)


def _shown(value: Any) -> str:
    """A value in few characters; of what has no short form, the type."""
    if value is None or isinstance(value, bool | Integral | Real | str | bytes):
        text = repr(value) if not isinstance(value, int) or abs(value) < 2**200 else f"{value:#x}"
        return text if len(text) <= 80 else text[:80] + "…"
    return f"a {type(value).__name__}"
