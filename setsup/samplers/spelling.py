"""How messages write the arguments of samplers: as in Python, or as the options of a command that builds one."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["spell", "spell_name", "spelled_as_options"]

_OPTIONS: ContextVar[Mapping[str, str] | None] = ContextVar("options", default=None)
"""The command's options by names of arguments; None in Python."""


def spell(**argument: Any) -> str:
    """Write an argument and its value.

    Examples
    --------
    >>> spell(small="drop")
    "small='drop'"
    >>> with spelled_as_options({"small": "--small"}):
    ...     spell(small="drop")
    '--small drop'

    """
    ((name, value),) = argument.items()
    option = (_OPTIONS.get() or {}).get(name)
    if option is None:
        return f"{name}={value!r}"
    # an expression keeps its quotes, as the shell needs them
    return f"{option} {value if str(value).isidentifier() else repr(value)}"


def spell_name(name: str) -> str:
    """Write the name of an argument.

    Examples
    --------
    >>> spell_name("size")
    'size'

    """
    return (_OPTIONS.get() or {}).get(name, name)


@contextmanager
def spelled_as_options(options: Mapping[str, str]) -> Iterator[None]:
    """Write arguments as options of a command, given by the arguments' names; others as in Python."""
    token = _OPTIONS.set(options)
    try:
        yield
    finally:
        _OPTIONS.reset(token)
