"""Names of the arguments of samplers: in messages as in Python or as options of a command, and in files."""

from collections.abc import Container, Mapping
from typing import Any

from setsup.errors import command_options, spell_name

__all__ = ["OPTION_NAMES", "PYTHON_NAMES", "python_arguments", "spell", "spell_keyword", "spell_name"]

OPTION_NAMES = {"on_small_group": "small", "num_fixed": "random", "must_differ": "differ"}
"""Options of ``setsup sample``, and names in files, of the arguments that have other ones in Python."""

PYTHON_NAMES = {option: name for name, option in OPTION_NAMES.items()}
"""Names in Python of these options."""


def spell(**argument: Any) -> str:
    """Write an argument and its value, in Python or as an option of the command.

    Examples
    --------
    >>> spell(on_small_group="drop")
    "on_small_group='drop'"
    >>> from setsup.errors import advised_for_command
    >>> with advised_for_command({"on_small_group": "--small"}):
    ...     spell(on_small_group="drop")
    '--small drop'

    """
    ((name, value),) = argument.items()
    option = (command_options() or {}).get(name)
    if option is None:
        return f"{name}={value!r}"
    # an expression keeps its quotes, as the shell needs them
    return f"{option} {value if str(value).isidentifier() else repr(value)}"


def spell_keyword(name: str) -> str:
    """Write the name of an argument where it would otherwise read as an English word.

    Examples
    --------
    >>> spell_keyword("across")
    'across='

    """
    return (command_options() or {}).get(name, f"{name}=")


def python_arguments(arguments: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """Arguments by their names in Python, from those of options or files; `known` are the names that a sampler takes.

    Examples
    --------
    >>> python_arguments({"size": 8, "small": "drop"}, ("size", "on_small_group"))
    {'size': 8, 'on_small_group': 'drop'}

    """
    return {_python_name(name, known): value for name, value in arguments.items()}


def _python_name(name: str, known: Container[str]) -> str:
    renamed = PYTHON_NAMES.get(name, name)
    return renamed if name not in known and renamed in known else name
