"""Checks of arguments that all packages share: each gives the value in its plain form, or raises one sentence.

``what`` names the argument in the sentence, and ``error`` is the kind that the caller's package raises.
"""

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeGuard, TypeVar, Union, get_args, get_origin

from setsup.errors import SetsupError, near

__all__ = [
    "a_boolean",
    "a_mapping",
    "a_number",
    "a_path",
    "a_string",
    "an_instance",
    "an_integer",
    "arguments",
    "array_like",
    "is_integer",
    "is_number",
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


def arguments(function: Any, given: Mapping[str, Any], error: Error = SetsupError) -> None:
    """Check what a public function was given against its annotations: types, not ranges.

    Called with ``locals()`` as its first statement. Any number of numpy's goes for one of Python's, any array or list
    for a tuple or a sequence; a boolean is no number, and neither is NaN.

    Parameters
    ----------
    function : function or method
        The caller itself.
    given : mapping
        Its arguments by name.

    """
    for name, hint in function.__annotations__.items():
        if name in given and not _suits(given[name], hint):
            called = function.__qualname__.removesuffix(".__init__")
            raise error(f"{name} of {called} must be {_words(hint)}, not {_shown(given[name])}")


def _suits(value: Any, hint: Any) -> bool:
    """As :func:`_fits`; False where a value does not even let itself be looked at, as tensors without an axis."""
    try:
        return _fits(value, hint)
    except Exception:
        return False


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; true of annotations that say nothing of values."""
    if isinstance(hint, str | TypeVar):
        return True
    if value is None:
        return hint is None or hint in (NoneType, Any) or NoneType in get_args(hint)
    plain = _PLAIN.get(hint) if isinstance(hint, type) else None
    if plain is not None:
        return plain[1](value)
    origin, inner = get_origin(hint), get_args(hint)
    if _is_array(hint, inner):
        return _makes_array(value, float in inner)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner if one is not NoneType)
    if origin is Literal:
        return isinstance(value, str | int) and value in inner
    kind = origin or hint
    if not isinstance(kind, type):
        return True
    if kind in (tuple, list, Sequence, Collection):
        listed = hasattr(value, "__len__") and hasattr(value, "__iter__")
        if not listed or isinstance(value, str | bytes | Mapping):
            return False
        if kind is tuple and inner and inner[-1] is not Ellipsis:
            return len(value) == len(inner) and all(map(_fits, value, inner))
        return not inner or all(_fits(one, inner[0]) for one in value)
    if getattr(kind, "_is_protocol", False):  # its data tell it apart; of its methods some are inherited, or left out
        return all(hasattr(value, name) for name in kind.__annotations__)
    try:
        right = isinstance(value, kind) and not (kind is Iterable and isinstance(value, str | bytes))
    except TypeError:  # a protocol that cannot be asked at run time
        return True
    if right and isinstance(value, Mapping) and len(inner) == 2:
        return all(_fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items())
    return right


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or (type(value).__module__, type(value).__name__) == ("numpy", "bool")


def _is_below(value: Any) -> bool:
    return is_integer(value) and -(2**63) <= value < 2**64


def is_number(value: Any) -> bool:
    """Whether this is a number, Python's or numpy's; a boolean is none, nor is NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def _is_string(value: Any) -> bool:
    """Whether this is a string that UTF-8 can write."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


_PLAIN: dict[type, tuple[str, Callable[[Any], bool]]] = {
    int: ("an integer below 2**64", _is_below),
    float: ("a number", is_number),
    bool: ("True or False", _is_boolean),
    str: ("a string", _is_string),
}


def _is_array(hint: Any, inner: tuple[Any, ...]) -> bool:
    """Whether an annotation is ``npt.NDArray`` or ``npt.ArrayLike``."""
    parts = (get_origin(hint) or hint, *inner)
    return any(getattr(part, "__module__", "").startswith(("numpy._typing", "numpy._core")) for part in parts) or (
        getattr(parts[0], "__name__", "") == "ndarray"
    )


def _makes_array(value: Any, single: bool) -> bool:
    """Whether numpy makes an array of numbers or truth values of this; of one without axes, where single ones go."""
    import numpy as np

    found = np.asarray(value)
    return found.dtype.kind in "biuf" and (found.ndim > 0 or single)


_MANY = {int: "integers", float: "numbers", str: "strings", bool: "booleans"}


def _words(hint: Any) -> str:
    """What an annotation asks for, in words."""
    inner, origin = get_args(hint), get_origin(hint)
    if hint is None or hint is NoneType:
        return "None"
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint][0]
    if _is_array(hint, inner):
        return "an array of numbers" + (" or None" if NoneType in inner else "")
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_words, inner)))
    if origin is Literal:
        return "one of " + ", ".join(map(str, inner))
    kind = origin or hint
    if kind is tuple and inner and inner[-1] is not Ellipsis:
        return f"{len(inner)} values"
    if kind in (tuple, list, Sequence, Collection, Iterable):
        return "a list" + (f" of {_MANY[inner[0]]}" if inner and inner[0] in (int, float, str, bool) else "")
    name = getattr(kind, "__name__", str(kind))
    return {"Mapping": "a mapping", "Callable": "a function", "Path": "a path"}.get(name, f"a {name}")


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
    try:
        found = list(value)
    except TypeError:  # an array or a tensor without an axis
        raise error(f"{what} must be a list of strings, not {_shown(value)}") from None
    for one in found:
        if not isinstance(one, str):
            raise error(f"{what} must be a list of strings, but holds {_shown(one)}")
    return found


def array_like(value: Any, what: str, error: Error) -> None:
    """Refuse what numpy can make no array of: ragged lists, tensors that have a gradient or lie on a GPU."""
    import numpy as np

    try:
        np.asarray(value)
    except Exception:
        raise error(f"{what} must be an array, of rows of equal length, not {_shown(value)}") from None


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
