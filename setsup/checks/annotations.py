"""Check of all arguments of a function by its annotations."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from setsup.checks.values import NO_ARRAY, NO_LIST, SURROGATE, Error, is_boolean, is_integer, is_number, show_value
from setsup.errors import SetsupError, spell_name

__all__ = ["check_arguments"]

Test = Callable[[Any], bool]


def check_arguments(function: Any, given: Mapping[str, Any], error: Error = SetsupError) -> None:
    """Check the arguments of a public function against its annotations: types, not ranges.

    Called with ``locals()`` as its first statement. Numbers of numpy pass for those of Python, arrays and lists for
    tuples and sequences; booleans and NaN are no numbers.
    """
    for name, hint in function.__annotations__.items():
        if name in given and not _test(hint)(given[name]):
            option = spell_name(name)
            of = f" of {function.__qualname__.removesuffix('.__init__')}" if option == name else ""
            raise error(f"{option}{of} must be {_describe(hint)}, not {show_value(given[name])}")


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
        tests = [_is_path_string if part is str and Path in inner else _test(part) for part in inner]
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
    tests = [_test(part) for part in inner]

    def listed(value: Any) -> bool:
        if isinstance(value, NO_LIST) or not hasattr(value, "__len__"):
            return False
        try:
            elements = list(value)
        except TypeError:  # an array or a tensor without an axis
            return False
        if fixed:
            return len(elements) == len(tests) and all(
                test(element) for test, element in zip(tests, elements, strict=True)
            )
        return not tests or all(map(tests[0], elements))

    return listed


def _test_of_mappings(kind: type[Mapping[Any, Any]], key: Test, content: Test) -> Test:
    return lambda value: isinstance(value, kind) and all(key(k) and content(v) for k, v in value.items())


def _is_iterable(value: Any) -> bool:
    """Whether this can be iterated over, which arrays and tensors without an axis only seem to."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) != 0


def _is_small_integer(value: Any) -> bool:
    return is_integer(value) and -(2**63) <= value < 2**64


def _is_string(value: Any) -> bool:
    return isinstance(value, str) and SURROGATE.search(value) is None


def _is_path_string(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(os.fsencode(value) or True)
    except UnicodeEncodeError:
        return False


_PLAIN: dict[type, tuple[str, Test]] = {
    int: ("an integer below 2**64", _is_small_integer),
    float: ("a number", is_number),
    bool: ("True or False", is_boolean),
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
        array = np.asarray(value)
    except NO_ARRAY:
        return False
    return array.dtype.kind in "biuf" and (array.ndim > 0 or single)


_MANY = {int: "integers", float: "numbers", str: "strings", bool: "booleans"}


def _describe(hint: Any) -> str:
    """What an annotation asks for, in words."""
    inner, origin = get_args(hint), get_origin(hint)
    if hint is None or hint is NoneType:
        return "None"
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint][0]
    if _is_array(hint, inner):
        return "an array of numbers" + (" or None" if NoneType in inner else "")
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_describe, inner)))
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
    words = [_MANY.get(part) if part is not NoneType else "None" for part in get_args(hint) or (hint,)]
    return "" if None in words else " or ".join(map(str, words))
