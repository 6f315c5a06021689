"""Dataset options: ``--option size=64,64``, converted by the types that the dataset's own ``open`` declares."""

import shlex
from collections.abc import Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Any, Union, get_args, get_origin

from cyclopts import CycloptsError

from setsup.errors import DataError
from setsup_cli.parsing.values import alternatives, convert_words, is_convertible, is_sequence, metavar, write_value

__all__ = ["describe_options", "is_readable", "read_options", "write_options"]

_ORDER = (NoneType, bool, int, float, str, Path)
"""Scalars in the order in which they are tried: a string before a path, which a run's settings could not keep."""


def read_options(words: Sequence[str], known: Mapping[str, Parameter], name: str) -> dict[str, Any]:
    """Convert words such as ``size=64,64`` by the types of parameters."""
    found: dict[str, Any] = {}
    for word in words:
        option, equals, value = word.partition("=")
        if not (option and equals):
            example = next(iter(describe_options(known)), "size=64,64")
            raise DataError(f"--option takes NAME=VALUE, such as {example}, not {word!r}")
        if option not in known:
            there = ", ".join(describe_options(known)) or "none"
            raise DataError(f"--option {word}: {name} has no option {option!r}; its options: {there}")
        if option in found:
            raise DataError(f"--option names {option!r} twice")
        try:
            found[option] = _convert(value, _type(known[option]))
        except (CycloptsError, ValueError):
            raise DataError(f"--option {word}: {name} takes {_describe(known[option])}") from None
    return found


def write_options(options: Mapping[str, Any]) -> list[str]:
    """Words from which :func:`read_options` reads these values, quoted for a shell."""
    return [shlex.quote(f"{name}={write_value(value, ',')}") for name, value in options.items()]


def describe_options(known: Mapping[str, Parameter]) -> list[str]:
    """Each option with its type, such as ``"size=N,N"``."""
    return [_describe(one) for one in known.values()]


def is_readable(one: Parameter) -> bool:
    """Whether words can be converted to the type of an option."""
    return is_convertible(_type(one))


def _describe(one: Parameter) -> str:
    return f"{one.name}={metavar(_type(one), ',')}"


def _type(one: Parameter) -> Any:
    """The declared type, or that of the default where none is declared."""
    if one.annotation is not Parameter.empty:
        return one.annotation
    return str if one.default in (None, Parameter.empty) else type(one.default)


def _convert(text: str, kind: Any) -> Any:
    """Convert a text to a type: to a sequence where it has a comma, or where nothing else is possible."""
    kinds = alternatives(kind)
    scalars = [one for one in _ORDER if one in kinds]
    scalars += [one for one in kinds if one not in scalars and not is_sequence(one)]
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
