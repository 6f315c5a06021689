"""Options of a dataset as words such as ``size=64,64``, read by the types that its ``open`` declares."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from inspect import Parameter
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from setsup.errors import DataError

__all__ = ["describe_options", "is_readable", "read_options", "write_options"]

_WORDS = {bool: "true|false", int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}
_MANY = (tuple, list, Sequence, Collection, Iterable)
_TRUTH = {"true": True, "false": False}


def read_options(words: Sequence[str], known: Mapping[str, Parameter], name: str) -> dict[str, Any]:
    """Read words such as ``size=64,64`` by the types of parameters."""
    found: dict[str, Any] = {}
    for word in words:
        option, equals, value = word.partition("=")
        if not (option and equals):
            raise DataError(f"--option takes NAME=VALUE, such as {_example(known)}, not {word!r}")
        if option not in known:
            there = ", ".join(describe_options(known)) or "none"
            raise DataError(f"--option {word}: {name} has no option {option!r}; it takes {there}")
        if option in found:
            raise DataError(f"--option names {option!r} twice")
        try:
            found[option] = _value(value, _type(known[option]))
        except ValueError:
            raise DataError(f"--option {word}: {name} takes {_shown(known[option])}") from None
    return found


def write_options(options: Mapping[str, Any]) -> list[str]:
    """Words from which :func:`read_options` reads these values, as a shell takes them."""
    return [shlex.quote(f"{name}={_written(value)}") for name, value in options.items()]


def describe_options(known: Mapping[str, Parameter]) -> list[str]:
    """Options with what they take, such as ``"size=N,N"``."""
    return [_shown(one) for one in known.values()]


def is_readable(one: Parameter) -> bool:
    """Whether words can write the values of an option: numbers, booleans, texts, paths, and several of these."""
    return _readable(_type(one))


def _example(known: Mapping[str, Parameter]) -> str:
    return next(iter(describe_options(known)), "size=64,64")


def _shown(one: Parameter) -> str:
    return f"{one.name}={_words(_type(one))}"


def _type(one: Parameter) -> Any:
    """The declared type, or that of the default where none is declared."""
    if one.annotation is not Parameter.empty:
        return one.annotation
    return str if one.default in (None, Parameter.empty) else type(one.default)


def _readable(kind: Any) -> bool:
    if (parts := _parts(kind)) is not None:
        return all(map(_readable, parts))
    kinds = _alternatives(kind)
    return all(map(_readable, kinds)) if len(kinds) > 1 else get_origin(kind) is Literal or kind in (*_WORDS, NoneType)


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if (parts := _parts(kind)) is not None:
        return ",".join(map(_words, parts)) if _counted(kind) else f"{_words(parts[0])},…"
    kinds = _alternatives(kind)
    if len(kinds) == 1:
        return _WORDS.get(kind, "TEXT")
    one_of = [one for one in kinds if one is not NoneType and not (one is str and Path in kinds)]
    return "|".join([*dict.fromkeys(map(_words, one_of)), *(["none"] if NoneType in kinds else [])])


def _value(word: str, kind: Any) -> Any:
    """What a word means; ValueError where it is not of the type."""
    if len(_alternatives(kind)) > 1:
        return _any_of(word, _alternatives(kind))
    if get_origin(kind) is Literal:
        return next(one for one in get_args(kind) if str(one) == word) if word in map(str, get_args(kind)) else _no()
    if (parts := _parts(kind)) is not None:
        texts = word.split(",") if word else []
        if _counted(kind) and len(texts) != len(parts):
            return _no()
        return tuple(map(_value, texts, parts if _counted(kind) else parts * len(texts)))
    if kind is bool:
        return _TRUTH[word.lower()] if word.lower() in _TRUTH else _no()
    if kind is float and not isfinite(float(word)):
        return _no()
    return kind(word) if kind in (int, float, Path) else word


def _written(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(_written, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _any_of(word: str, kinds: Sequence[Any]) -> Any:
    if NoneType in kinds and word.lower() == "none":
        return None
    several = [kind for kind in kinds if _parts(kind) is not None]
    # numbers before texts, and a text before a path, which a run's settings could not keep; several with a comma only
    single = [kind for kind in (bool, int, float, str, Path) if kind in kinds]
    single += [kind for kind in kinds if get_origin(kind) is Literal]
    for kind in [*several, *single] if "," in word or not single else single:
        try:
            return _value(word, kind)
        except ValueError:
            continue
    return _no()


def _parts(kind: Any) -> tuple[Any, ...] | None:
    """Types inside a tuple or a sequence, None of others."""
    if kind in _MANY:
        return (str,)
    if get_origin(kind) in _MANY:
        return tuple(part for part in get_args(kind) if part is not Ellipsis) or (str,)
    return None


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Types in a union; any other type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _counted(kind: Any) -> bool:
    return get_origin(kind) is tuple and Ellipsis not in get_args(kind)


def _no() -> Any:
    raise ValueError
