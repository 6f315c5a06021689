"""Values on the command line: how they are converted, described and written, by their types."""

from collections.abc import Collection, Iterable, Sequence
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from cyclopts import convert

from setsup.errors import DataError
from setsup.files.disk import need_writable

__all__ = ["alternatives", "check_image", "convert_words", "is_convertible", "is_sequence", "metavar", "write_value"]

_METAVARS = {bool: "true|false", int: "N", float: "NUMBER", str: "TEXT", Path: "PATH", NoneType: "none"}
_SEQUENCES = (tuple, list, Sequence, Collection, Iterable)
_BOOLEANS = {"true": True, "false": False}


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Members of a union; any other type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def is_sequence(kind: Any) -> bool:
    """Whether several values make one of the type."""
    return kind in _SEQUENCES or get_origin(kind) in _SEQUENCES


def is_convertible(kind: Any) -> bool:
    """Whether words can be converted to a type."""
    if is_sequence(kind):
        return all(is_convertible(part) for part in get_args(kind) if part is not Ellipsis)
    if get_origin(kind) is Literal:
        return True
    return all(one in _METAVARS if one is kind else is_convertible(one) for one in alternatives(kind))


def convert_words(kind: Any, words: Sequence[Any]) -> Any:
    """Convert words to a type."""
    return convert(kind, words, _convert_word)


def _convert_word(kind: Any, word: str) -> Any:
    """Convert one word strictly: cyclopts rounds 3.5 to an integer."""
    if kind in (bool, NoneType):
        known = _BOOLEANS if kind is bool else {"none": None}
        if word.lower() not in known:
            raise ValueError
        return known[word.lower()]
    value = kind(word)
    if kind is float and not isfinite(value):
        raise ValueError
    return value


def check_image(path: Path) -> None:
    """Raise an error if an image cannot be written to a file."""
    if path.suffix.lower() != ".png":
        raise DataError(f"--out {path} must be an image with the suffix .png")
    need_writable(path)


def metavar(kind: Any, separator: str = " ") -> str:
    """What stands for a value in help, such as ``N N`` or ``TEXT|none``."""
    if get_origin(kind) is Literal:
        return "|".join(map(write_value, get_args(kind)))
    if is_sequence(kind):
        *parts, last = get_args(kind) or (str, Ellipsis)
        if get_origin(kind) is tuple and last is not Ellipsis:
            return separator.join(metavar(part, separator) for part in (*parts, last))
        one = metavar(last if last is not Ellipsis else parts[0], separator)
        return f"[{one} ...]" if separator == " " else f"{one}{separator}…"
    kinds = alternatives(kind)
    if len(kinds) == 1:
        return _METAVARS.get(kind, "TEXT")
    shown = [one for one in kinds if one is not NoneType and not (one is str and Path in kinds)]
    shown += [NoneType] if NoneType in kinds else []
    return "|".join(dict.fromkeys(metavar(one, separator) for one in shown))


def write_value(value: Any, separator: str = " ") -> str:
    """Write a value as the command line takes it."""
    if isinstance(value, tuple | list):
        return separator.join(write_value(one, separator) for one in value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
