"""Checks of arguments that all packages share: each returns the value as a plain type, or raises one sentence.

``what`` names the argument in the message, and ``error`` is the class that the caller's package raises.
"""

import inspect
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeGuard, TypeVar, Union, get_args, get_origin

from setsup.errors import SetsupError, UsageError, did_you_mean, short

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "check_arguments",
    "check_array",
    "check_boolean",
    "check_choice",
    "check_image_size",
    "check_instance",
    "check_integer",
    "check_mapping",
    "check_memory",
    "check_number",
    "check_path",
    "check_rates",
    "check_string",
    "check_strings",
    "explains_foreign",
    "is_integer",
    "is_number",
    "refuse_foreign",
]

P = ParamSpec("P")
T = TypeVar("T")
Error = type[SetsupError]


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether this is an integer of Python or numpy, and no boolean."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a number of Python or numpy, and neither a boolean nor NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def check_integer(value: Any, what: str, error: Error, low: int = 0, high: int | None = None) -> int:
    """Check an integer in a range, both ends included."""
    if not is_integer(value) or value < low or (high is not None and value > high):
        span = f"an integer from {low:,} on" if high is None else f"an integer from {low:,} to {high:,}"
        raise error(f"{what} must be {span}, not {_shown(value)}")
    return int(value)


def check_number(
    value: Any, what: str, error: Error, low: float = -math.inf, high: float = math.inf, *, positive: bool = False
) -> float:
    """Check a finite number in a range, both ends included; ``positive`` excludes 0."""
    try:
        found = float(value) if is_number(value) else math.nan
    except OverflowError:
        found = math.nan
    if not (math.isfinite(found) and low <= found <= high) or (positive and found <= 0):
        ends = [f"from {low:g}"] if low > -math.inf else ["above 0"] if positive else []
        ends += [f"to {high:g}"] if high < math.inf else ["on"] if low > -math.inf else []
        raise error(f"{what} must be a {' '.join(['finite number', *ends])}, not {_shown(value)}")
    return found


def check_rates(**rates: float) -> None:
    """Check learning rates, by the names of their settings: finite numbers above 0."""
    for name, rate in rates.items():
        check_number(rate, f"{name}, a learning rate,", SetsupError, positive=True)


def check_choice(value: Any, choices: Sequence[str], what: str, error: Error) -> str:
    """Check one of some strings."""
    if not isinstance(value, str) or value not in choices:
        raise error(f"{what} must be one of {', '.join(choices)}, not {_shown(value)}{did_you_mean(value, choices)}")
    return value


def check_boolean(value: Any, what: str, error: Error) -> bool:
    """Check a boolean of Python or numpy."""
    if not _is_boolean(value):
        raise error(f"{what} must be True or False, not {_shown(value)}")
    return bool(value)


def check_string(value: Any, what: str, error: Error) -> str:
    """Check a string that UTF-8 can encode."""
    if not isinstance(value, str):
        raise error(f"{what} must be a string, not {_shown(value)}")
    if half := _SURROGATE.search(value):
        raise error(f"{what} holds {half[0]!r}, half of a surrogate pair, not a character")
    return value


_SURROGATE = re.compile(r"[\ud800-\udfff]")


def check_strings(value: Any, what: str, error: Error) -> list[str]:
    """Check several strings, in any iterable but a string."""
    try:
        found = None if isinstance(value, _NO_LIST) else list(value)
    except TypeError:  # no iterable, or an array or a tensor without an axis
        found = None
    if found is None:
        raise error(f"{what} must be a list of strings, not {_shown(value)}")
    for one in found:
        if not isinstance(one, str):
            raise error(f"{what} must be a list of strings, but holds {_shown(one)}")
    return found


_NO_LIST = (str, bytes, Mapping)


def check_array(value: Any, what: str, error: Error, dtype: Any = None) -> "npt.NDArray[Any]":
    """Convert to an array; ragged lists, and tensors with a gradient or on a GPU, are refused."""
    import numpy as np

    try:
        return np.asarray(value, dtype)
    except _NO_ARRAY as wrong:
        reason = " ".join(str(wrong).split())[:200]
        raise error(f"{what} must be an array: {reason or type(wrong).__name__}") from None


_NO_ARRAY = (TypeError, ValueError, RuntimeError, OverflowError)
"""What numpy, and torch's tensors, raise where they make no array."""


def check_mapping(value: Any, what: str, error: Error) -> Mapping[str, Any]:
    """Check a mapping whose keys are strings."""
    if not isinstance(value, Mapping):
        raise error(f"{what} must be a mapping of names, not {_shown(value)}")
    for key in value:
        if not isinstance(key, str):
            raise error(f"{what} must be a mapping of names, which are strings, but has the key {_shown(key)}")
    return value


def check_path(value: Any, what: str, error: Error) -> Path:
    """Check a path, from a string or a path-like object."""
    try:
        path = Path(value)
        if "\0" in os.fspath(path):
            raise ValueError
        os.fsencode(path)
    except (TypeError, ValueError):
        raise error(f"{what} must be the path of a file or folder, not {_shown(value)}") from None
    return path


def check_image_size(value: Any, what: str, error: Error, high: int | None = None) -> tuple[int, int]:
    """A (height, width) of integers from 1 on."""
    row = (isinstance(value, Sequence) and not isinstance(value, str)) or getattr(value, "shape", None) == (2,)
    sides = list(value) if row else []
    if len(sides) != 2 or not all(is_integer(side) and 1 <= side <= (high or side) for side in sides):
        span = "from 1 on" if high is None else f"from 1 to {high:,}"
        raise error(f"{what} must be (height, width), two integers {span}, not {_shown(value)}")
    return int(sides[0]), int(sides[1])


def check_instance(value: Any, kind: type[T], what: str, error: Error, hint: str = "") -> T:
    """Check an instance of a class; ``hint`` says where to get one."""
    if not isinstance(value, kind):
        raise error(f"{what} must be a {kind.__name__}, not {_shown(value)}{f'; {hint}' if hint else ''}")
    return value


def check_memory(needed: int, what: str, reduce: str, error: Error) -> None:
    """Refuse arrays that do not fit into memory, before they are allocated."""
    if needed < _SMALL:
        return
    there = _memory()
    if needed > there:
        raise error(f"{what} needs {needed:,} bytes of memory, and {there:,} are there; reduce {reduce}")


_SMALL = 1 << 26  # bytes below which memory is not checked


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


def check_arguments(function: Any, given: Mapping[str, Any], error: Error = SetsupError) -> None:
    """Check the arguments of a public function against its annotations: types, not ranges.

    Called with ``locals()`` as its first statement. Numbers of numpy pass for those of Python, arrays and lists for
    tuples and sequences; booleans and NaN are no numbers.
    """
    for name, hint in function.__annotations__.items():
        if name in given and not _test(hint)(given[name]):
            called = function.__qualname__.removesuffix(".__init__")
            raise error(f"{name} of {called} must be {_words(hint)}, not {_shown(given[name])}")


_ELSEWHERE = {
    "batch_size": "the sampler says how many rows a batch has, with size= and, where it draws several sets, sets=",
    "shuffle": "samplers draw at random by seed=; EpochSampler passes over all rows, each time in another order",
    "num_workers": "setsup.loader takes workers=",
    "drop_last": 'EpochSampler takes partial="drop" or "pad"',
    "collate_fn": "setsup.loader takes transform=, a function of whole batches",
    "prefetch_factor": "setsup.loader takes prefetch=, a number of batches",
    "pin_memory": 'setsup.loader takes to="cuda", and gives batches on that device',
    "worker_init_fn": "draws depend on no state of a worker, so that there is nothing to seed",
    "generator": "samplers take seed=, and depend on it and the step alone",
    "batch_sampler": "setsup.loader takes the sampler as its second argument",
    "fixed": "factors that are fixed in each set are named by inactive=",
    "varying": "factors that vary are named by active=",
}
"""What serves here for arguments that torch and others have."""


def refuse_foreign(function: Any, given: Mapping[str, Any], fix: str = "") -> None:
    """Refuse arguments that a function does not have: say what serves for those of torch, and what is close to others.

    Parameters
    ----------
    function : callable
        One without arguments of any name, or nothing is refused.
    given : mapping of str to object
        Keyword arguments.
    fix : str
        What is said of all of torch's arguments, in place of what serves for each.

    """
    parameters = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    known = [name for name in parameters if name != "self"]
    for name in given:
        if name not in known:
            called = function.__qualname__.removesuffix(".__init__")
            if name in _ELSEWHERE:
                raise UsageError(f"{called} takes no {name}=; {fix or _ELSEWHERE[name]}")
            raise UsageError(f"{called} takes no {name}={did_you_mean(name, known)}")


def explains_foreign(fix: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function say of arguments that it does not have what :func:`refuse_foreign` says."""

    def with_sentence(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def explained(*args: P.args, **given: P.kwargs) -> T:
            refuse_foreign(function, given, fix)
            return function(*args, **given)

        return explained

    return with_sentence


Test = Callable[[Any], bool]


@cache
def _test(hint: Any) -> Test:
    """Test of values by an annotation; all pass where it says nothing of values."""
    origin, inner = get_origin(hint), get_args(hint)
    kind = origin or hint
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint][1]
    if hint is None or hint is NoneType:
        return lambda value: value is None
    if _is_array(hint, inner):
        return lambda value: _makes_array(value, float in inner) if value is not None else NoneType in inner
    if origin in (Union, UnionType):
        # a path may have bytes that are no UTF-8
        tests = [_is_path_string if one is str and Path in inner else _test(one) for one in inner]
        return lambda value: any(test(value) for test in tests)
    if origin is Literal:
        return lambda value: isinstance(value, str | int) and value in inner
    if kind in (tuple, list, Sequence, Collection):
        return _test_of_lists(inner, kind is tuple and bool(inner) and inner[-1] is not Ellipsis)
    if getattr(kind, "_is_protocol", False):  # its data tell it apart; of its methods some are inherited, or left out
        return lambda value: value is not None and all(hasattr(value, name) for name in kind.__annotations__)
    if kind is Any or not isinstance(kind, type):
        return lambda value: True
    if kind is Iterable:
        return _is_iterable
    if issubclass(kind, Mapping) and len(inner) == 2:
        return _test_of_mappings(kind, *map(_test, inner))
    return lambda value: isinstance(value, kind) and value is not None


def _test_of_lists(inner: tuple[Any, ...], fixed: bool) -> Test:
    """Test of sequences: of one kind of element, or, where `fixed`, of one element of each kind."""
    tests = [_test(one) for one in inner]

    def listed(value: Any) -> bool:
        if isinstance(value, _NO_LIST) or not hasattr(value, "__len__"):
            return False
        try:
            found = list(value)
        except TypeError:  # an array or a tensor without an axis
            return False
        if fixed:
            return len(found) == len(tests) and all(test(one) for test, one in zip(tests, found, strict=True))
        return not tests or all(map(tests[0], found))

    return listed


def _test_of_mappings(kind: type[Mapping[Any, Any]], key: Test, content: Test) -> Test:
    return lambda value: isinstance(value, kind) and all(key(k) and content(v) for k, v in value.items())


def _is_iterable(value: Any) -> bool:
    """Whether this can be iterated over, which arrays and tensors without an axis only seem to."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) != 0


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or (type(value).__module__, type(value).__name__) == ("numpy", "bool")


def _is_small_integer(value: Any) -> bool:
    return is_integer(value) and -(2**63) <= value < 2**64


def _is_string(value: Any) -> bool:
    return isinstance(value, str) and _SURROGATE.search(value) is None


def _is_path_string(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(os.fsencode(value) or True)
    except UnicodeEncodeError:
        return False


_PLAIN: dict[type, tuple[str, Test]] = {
    int: ("an integer below 2**64", _is_small_integer),
    float: ("a number", is_number),
    bool: ("True or False", _is_boolean),
    str: ("a string", _is_string),
}


def _is_array(hint: Any, inner: tuple[Any, ...]) -> bool:
    """Whether an annotation is ``npt.NDArray`` or ``npt.ArrayLike``."""
    origin = get_origin(hint)
    # from Python 3.12 on, ArrayLike is an alias, which a sequence of arrays has inside: only unions are looked into
    parts = (origin or hint, *(inner if origin in (Union, UnionType) else ()))
    return any(getattr(part, "__module__", "").startswith(("numpy._typing", "numpy._core")) for part in parts) or (
        getattr(parts[0], "__name__", "") == "ndarray"
    )


def _makes_array(value: Any, single: bool) -> bool:
    """Whether numpy makes an array of numbers or booleans of this; of one without axes, where single ones go."""
    import numpy as np

    try:
        found = np.asarray(value)
    except _NO_ARRAY:
        return False
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
        return f"{len(inner)} {_MANY[inner[0]] if len(set(inner)) == 1 and inner[0] in _MANY else 'values'}"
    if kind in (tuple, list, Sequence, Collection, Iterable):
        return "a list" + (f" of {_many(inner[0])}" if inner and _many(inner[0]) else "")
    name = getattr(kind, "__name__", str(kind))
    if name == "Mapping" and len(inner) == 2 and _many(inner[0]) and _many(inner[1]):
        return f"a mapping of {_many(inner[0])} to {_many(inner[1])}"
    return {"Mapping": "a mapping", "Callable": "a function", "Path": "a path"}.get(name, f"a {name}")


def _many(hint: Any) -> str:
    """Several of what an annotation asks for, in words; nothing where there are none."""
    found = [_MANY.get(one) if one is not NoneType else "None" for one in get_args(hint) or (hint,)]
    return "" if None in found else " or ".join(map(str, found))


def _shown(value: Any, depth: int = 2) -> str:
    """A value in few characters; of what has no short form, the type."""
    if isinstance(value, tuple | list | dict) and depth and 0 < len(value) <= 4:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{_shown(key)}: {_shown(one, depth - 1)}" for key, one in value.items()) + "}"
        first, last = "()" if isinstance(value, tuple) else "[]"
        return first + ", ".join(_shown(one, depth - 1) for one in value) + last
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"a {type(value).__name__} of {value.dtype}, shape {tuple(value.shape)}"
    if value is None or isinstance(value, bool | Integral | Real | str | bytes):
        text = repr(value) if not isinstance(value, int) or abs(value) < 2**200 else f"{value:#x}"
        return short(text)
    return f"a {type(value).__name__}"
