"""Values on the command line, and dataset options such as ``size=64,64``: converted and described by their types."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from inspect import Parameter
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from cyclopts import CycloptsError, convert

from setsup.errors import DataError
from setsup.files.disk import need_writable

__all__ = [
    "alternatives",
    "check_image",
    "convert_words",
    "describe_options",
    "is_convertible",
    "is_readable",
    "is_sequence",
    "metavar",
    "read_options",
    "split_names",
    "write_literal",
    "write_options",
    "write_value",
]

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
    return all(member in _METAVARS if member is kind else is_convertible(member) for member in alternatives(kind))


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
    if kind is Path and not word:
        raise ValueError  # Path("") is the current folder
    if kind is float and not isfinite(value):
        raise ValueError
    return value


def split_names(words: Iterable[str] | None) -> list[str] | None:
    """Names that are separated by spaces or commas; None stays.

    Examples
    --------
    >>> split_names(["image,depth", "normals"])
    ['image', 'depth', 'normals']

    """
    return None if words is None else [name for word in words for part in word.split(",") if (name := part.strip())]


def check_image(path: Path) -> None:
    """Raise an error if an image cannot be written to a file."""
    if path.suffix.lower() != ".png":
        raise DataError(f"--out must be a file with the suffix .png, not {path}")
    need_writable(path)


def metavar(kind: Any, separator: str = " ") -> str:
    """What stands for a value in help, such as ``N N`` or ``TEXT|none``."""
    if get_origin(kind) is Literal:
        return "|".join(map(write_value, get_args(kind)))
    if is_sequence(kind):
        *parts, last = get_args(kind) or (str, Ellipsis)
        if get_origin(kind) is tuple and last is not Ellipsis:
            return separator.join(metavar(part, separator) for part in (*parts, last))
        member = metavar(last if last is not Ellipsis else parts[0], separator)
        return f"[{member} ...]" if separator == " " else f"{member}{separator}…"
    kinds = alternatives(kind)
    if len(kinds) == 1:
        return _METAVARS.get(kind, "TEXT")
    shown = [member for member in kinds if member is not NoneType and not (member is str and Path in kinds)]
    shown += [NoneType] if NoneType in kinds else []
    return "|".join(dict.fromkeys(metavar(member, separator) for member in shown))


def write_value(value: Any, separator: str = " ") -> str:
    """Write a value as the command line takes it."""
    if isinstance(value, tuple | list):
        return separator.join(write_value(item, separator) for item in value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def write_literal(value: Any) -> str:
    """A value of Python, in double quotes where that is possible, since the shell needs the single ones."""
    text = repr(value)
    return text if '"' in text or "\\" in text else text.replace("'", '"')


# -- dataset options ---------------------------------------------------------------------------------------------------

_ORDER = (NoneType, bool, int, float, str, Path)
"""Scalars in the order in which they are tried: a string before a path, which a run's settings could not keep."""


def read_options(words: Sequence[str], known: Mapping[str, Parameter], name: str) -> dict[str, Any]:
    """Convert words such as ``size=64,64`` by the types of parameters."""
    values: dict[str, Any] = {}
    for word in words:
        option, equals, value = word.partition("=")
        if not (option and equals):
            example = next(iter(describe_options(known)), "size=64,64").partition("|")[0]
            raise DataError(f"--option must be NAME=VALUE, such as {example}, not {word!r}")
        if option not in known:
            there = ", ".join(describe_options(known)) or "none"
            raise DataError(f"--option {word}: {name} has no option {option!r}; its options: {there}")
        if option in values:
            raise DataError(f"--option {option}=… is specified twice; specify it once")
        try:
            values[option] = _convert(value, _type(known[option]))
        except (CycloptsError, ValueError):
            raise DataError(f"--option {word}: {name} expects {_describe(known[option])}") from None
    return values


def write_options(options: Mapping[str, Any]) -> list[str]:
    """Words from which :func:`read_options` reads these values, quoted for a shell."""
    return [shlex.quote(f"{name}={write_value(value, ',')}") for name, value in options.items()]


def describe_options(known: Mapping[str, Parameter]) -> list[str]:
    """Each option with its type, such as ``"size=N,N"``."""
    return [_describe(parameter) for parameter in known.values()]


def is_readable(parameter: Parameter) -> bool:
    """Whether words can be converted to the type of an option."""
    return is_convertible(_type(parameter))


def _describe(parameter: Parameter) -> str:
    return f"{parameter.name}={metavar(_type(parameter), ',')}"


def _type(parameter: Parameter) -> Any:
    """The declared type, or that of the default where none is declared."""
    if parameter.annotation is not Parameter.empty:
        return parameter.annotation
    return str if parameter.default in (None, Parameter.empty) else type(parameter.default)


def _convert(text: str, kind: Any) -> Any:
    """Convert a text to a type: to a sequence where it has a comma, or where nothing else is possible."""
    kinds = alternatives(kind)
    scalars = [alternative for alternative in _ORDER if alternative in kinds]
    scalars += [alternative for alternative in kinds if alternative not in scalars and not is_sequence(alternative)]
    if "," in text or not scalars:
        for sequence in filter(is_sequence, kinds):
            try:
                return convert_words(_as_tuple(sequence), text.split(",") if text else [])
            except (CycloptsError, ValueError):
                continue
    if not scalars:
        raise ValueError
    return convert_words(Union[tuple(scalars)], [text])  # noqa: UP007


def _as_tuple(sequence: Any) -> Any:
    if get_origin(sequence) is tuple:
        return sequence
    return tuple[get_args(sequence)[0] if get_args(sequence) else str, ...]  # type: ignore[misc]
