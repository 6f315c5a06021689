"""How the dataset of a page is opened: an expression of Python, and words of a command."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setsup.errors import DataError
from setsup.opening import path_options
from setsup.pages.places import Places

__all__ = ["Opening"]

_OPTIONS = ("root", "split")
"""Arguments of :func:`setsup.open` that commands have as options of their own."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What :func:`setsup.open` was given.

    Attributes
    ----------
    source : str
        The source; empty for data that no command opens.
    given : mapping of str to object
        The other arguments, by name.

    Examples
    --------
    >>> opening = Opening("photos.csv", {"split": "train", "size": (64, 64)})
    >>> opening.python
    "setsup.open('photos.csv', split='train', size=(64, 64))"
    >>> opening.words()
    ['photos.csv', '--split', 'train', '--option', 'size=64,64']

    """

    source: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def python(self) -> str:
        """An expression that opens the dataset."""
        if not self.source:
            return "setsup.open(...)  # the data that this page shows"
        values = {name: str(value) if isinstance(value, Path) else value for name, value in self.given.items()}
        return (
            f"setsup.open({', '.join([repr(self.source), *(f'{name}={value!r}' for name, value in values.items())])})"
        )

    def words(self) -> list[str] | None:
        """Words of a command that open the dataset; None where none do."""
        if not self.source or "where" in self.given:
            return None
        arguments, options = [self.source], []
        for name, value in self.given.items():
            word = _word(value)
            if word is None:
                return None
            if name in _OPTIONS:
                arguments += [] if value is None else [f"--{name}", word]
            else:
                options.append(f"{name}={word}")
        return [*arguments, *(["--option", *options] if options else [])]

    def passed_on(self, places: Places) -> "Opening":
        """The same without places of this machine."""
        paths = {"root"}
        with suppress(DataError):
            paths |= path_options(self.source, self.given.get("kind"))
        given = {name: _passed_on(value, name in paths, places) for name, value in self.given.items()}
        return Opening(places.source(self.source), given)


def _word(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float | Path):
        return str(value)
    parts = [_word(part) for part in value] if isinstance(value, Sequence) else []
    return ",".join(map(str, parts)) if len(parts) > 1 and all(part and "," not in part for part in parts) else None


def _passed_on(value: Any, is_path: bool, places: Places) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_passed_on(part, is_path, places) for part in value)
    if isinstance(value, Mapping):
        return {name: _passed_on(part, is_path, places) for name, part in value.items()}
    if isinstance(value, str) and "://" in value:
        return places.source(value)
    looks = isinstance(value, str) and (os.path.isabs(value) or value.startswith("~"))
    return places.path(value) if isinstance(value, Path) or looks or (is_path and isinstance(value, str)) else value
