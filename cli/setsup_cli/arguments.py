"""How options are declared: metavar and help stand beside the type.

Two habits keep ``--help`` fast, for tyro imports heavy parsers otherwise: help is given here and not in docstrings, and
what may be absent has one of the types below, unions of the old kind with None first.
"""

from pathlib import Path
from typing import Annotated, Any, Union

from tyro.conf import arg

__all__ = ["Json", "MaybeNumber", "MaybePath", "MaybeText", "MaybeWords", "option"]

MaybeText = Union[None, str]  # noqa: UP007
MaybeNumber = Union[None, int]  # noqa: UP007
MaybePath = Union[None, Path]  # noqa: UP007
MaybeWords = Union[None, tuple[str, ...]]  # noqa: UP007


def option(metavar: str | None, text: str, hint: str = "") -> Any:
    """Declare an option.

    Parameters
    ----------
    metavar : str, optional
        What stands for its value in the help; None where it takes none.
    text : str
        One sentence or two.
    hint : str
        Shown behind it, such as ``"(default: 0)"``.

    """
    return arg(metavar=metavar, help=text, help_behavior_hint=hint)


Json = Annotated[bool, option(None, "Print one JSON value in place of words.")]
"""The option ``--json`` that all verbs have."""
