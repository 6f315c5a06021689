"""Errors that say what is wrong, where, and what to do next.

All errors derive from :class:`SetsupError`; the command prints the message and exits with 2. A traceback of another
kind is a bug.
"""

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import Any

from setsup.optional import command, extra_command, installed

__all__ = [
    "DamagedFile",
    "DataError",
    "EndlessError",
    "FactorError",
    "LibraryError",
    "RowError",
    "SamplerError",
    "SetsupError",
    "UsageError",
    "abbreviate",
    "about_file",
    "advice",
    "advised_for_command",
    "close_matches",
    "command_options",
    "did_you_mean",
    "imported",
    "listed",
    "require_modules",
    "short",
    "spell_name",
    "suggest",
]

_SHOWN = 16
_LETTERS = 80
PATH_LETTERS = 400
"""Letters of a path, or of a name in an archive, that a message shows; an archive may have names of 65,535."""
_LONGEST = 2400  # letters of a sentence
_ALSO = {"jpg": "jpeg", "opengl": "gl", "egl": "gl", "download": "fetch", "list": "datasets", "ls": "datasets"}
"""Other names of what setsup calls so; no letters are missing in them."""
_COMMAND = re.compile(r"\(([^()]*`[^`]*`[^()]*)\)$|: (`[^`]*`)$")
"""A command at the end of a sentence: in parentheses, or after a colon."""
_SOUGHT = 2000  # names among which close matches are sought: the search takes long over a million paths


class SetsupError(Exception):
    """Base class of all errors: one sentence that says what is wrong, where, and what to do next.

    Parameters
    ----------
    *args : object
        The sentence.
    file : path-like, optional
        The file, folder or archive at fault, if the error is about one.

    Attributes
    ----------
    file : str or None
        That file.

    Examples
    --------
    >>> from pathlib import Path
    >>> error = SetsupError("a.csv has no rows; add some", file=Path("a.csv"))
    >>> error.file, error.hint
    ('a.csv', 'add some')

    """

    def __init__(self, *args: object, file: "str | os.PathLike[str] | None" = None) -> None:
        super().__init__(*(_abridged(one) if isinstance(one, str) else one for one in args))
        self.file = None if file is None else os.fspath(file)

    @property
    def hint(self) -> str | None:
        """The end of the sentence that says what to do: after its last semicolon, or a command at its end."""
        sentence = str(self)
        _, semicolon, told = sentence.partition("\n")[0].rpartition("; ")
        if not semicolon:
            found = _COMMAND.search(sentence)
            told = found[1] or found[2] if found else ""
        return told or None


class DataError(SetsupError):
    """A file, folder or download is missing, damaged or invalid."""


class DamagedFile(DataError):
    """A file cannot be read, or is damaged.

    Parameters
    ----------
    what : str
        Which file it is, and what is wrong with it.
    fix : str
        What to do about it.
    file : path-like, optional
        Its path.

    Examples
    --------
    >>> print(DamagedFile("labels.gz is truncated"))
    labels.gz is truncated; fetch it again

    """

    def __init__(self, what: str, fix: str = "fetch it again", *, file: "str | os.PathLike[str] | None" = None) -> None:
        # both are arguments, so that a pickled error keeps its one remedy
        super().__init__(what, fix, file=file)

    def __str__(self) -> str:
        """Write one sentence."""
        return "; ".join(self.args)

    @property
    def hint(self) -> str:
        """What to do about it."""
        return str(self.args[1])

    @classmethod
    def unreadable(cls, label: object, error: OSError, fix: str = "check its path and permissions") -> "DamagedFile":
        """Make the error for a file that the system refuses to read."""
        file = label if isinstance(label, os.PathLike) else error.filename
        named = isinstance(file, str | os.PathLike)  # not a number or bytes
        return cls(f"{label} cannot be read: {error.strerror or error}", fix, file=file if named else None)


class FactorError(SetsupError):
    """A factor, a level or an expression over factors is unknown or ill-formed."""


class LibraryError(DataError):
    """An optional library is not installed."""

    @property
    def hint(self) -> str | None:
        """The command that installs it."""
        return str(self).partition(" not installed: ")[2] or super().hint


class RowError(SetsupError, IndexError):
    """A row number or a step is out of range."""


class SamplerError(SetsupError):
    """A sampler cannot fulfil its arguments."""


class EndlessError(SamplerError, TypeError):
    """An infinite sampler has no length; a TypeError, too, as for any object without a length."""


class UsageError(SetsupError, TypeError):
    """An argument or a method of torch is used where setsup has another one; a TypeError, too."""


@contextmanager
def about_file(file: "str | os.PathLike[str]") -> Iterator[None]:
    """Name the file at fault in errors about data that name none."""
    try:
        yield
    except LibraryError:
        raise
    except DataError as error:
        if error.file is None:
            error.file = os.fspath(file)
        raise


def abbreviate(value: object) -> str:
    """Write a value for a message, on one line of at most 80 letters.

    Examples
    --------
    >>> import numpy as np
    >>> abbreviate("three"), abbreviate(np.eye(2))
    ("'three'", 'array([[1., 0.], [0., 1.]])')

    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # integers that are too long for Python, or whatever a user's class raises
        text = f"a {type(value).__name__}"
    return short(text)


def short(text: str, letters: int = _LETTERS) -> str:
    """Cut a name for a message where it has more letters than that.

    Examples
    --------
    >>> short("a.png"), len(short("a" * 5000))
    ('a.png', 81)

    """
    return text if len(text) <= letters else text[:letters] + "…"


def listed(names: Iterable[object], most: int = _SHOWN, letters: int = _LETTERS) -> str:
    """List names for a message: the first `most`, each cut after so many letters, and how many there are.

    Examples
    --------
    >>> listed(["a", "b"]), listed(range(100))[-18:]
    ('a, b', '15, … (100 in all)')

    """
    known = [str(name) for name in names]
    first = ", ".join(short(name, letters) for name in known[:most])
    return first + (f", … ({len(known):,} in all)" if len(known) > most else "")


def _abridged(sentence: str) -> str:
    """A sentence without its middle where it is too long to be read; it ends in what to do."""
    if len(sentence) <= _LONGEST:
        return sentence
    return f"{sentence[: _LONGEST * 2 // 3]} … {sentence[-_LONGEST // 3 :]}"


_OPTIONS = "SETSUP_OPTION_NAMES"
"""Environment variable of the command and its worker processes: JSON of its options by names of arguments."""


@contextmanager
def advised_for_command(options: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Write errors for the command line, in this process and in those that it starts.

    `options` are the command's options by names of arguments of Python; other arguments are written as in Python.

    Examples
    --------
    >>> with advised_for_command({"on_small_group": "--small"}):
    ...     command_options()
    {'on_small_group': '--small'}

    """
    import json

    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = json.dumps(dict(options))
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_OPTIONS, None)
        else:
            os.environ[_OPTIONS] = before


def command_options() -> dict[str, str] | None:
    """The command's options by names of arguments, as :func:`advised_for_command` was given them; None in Python."""
    import json

    try:
        options = json.loads(os.environ.get(_OPTIONS, "null"))
    except (ValueError, RecursionError):  # set by someone else: an error is written for Python, not lost
        return None
    return {str(name): str(option) for name, option in options.items()} if isinstance(options, dict) else None


def spell_name(name: str) -> str:
    """Write the name of an argument, in Python or as an option of the command.

    Examples
    --------
    >>> spell_name("size")
    'size'
    >>> with advised_for_command({"size": "--size"}):
    ...     spell_name("size")
    '--size'

    """
    return (command_options() or {}).get(name, name)


def advice(python: str, command: str) -> str:
    """Return what to do next, in Python or on the command line.

    Examples
    --------
    >>> advice("pass flow=True", "give --option flow=true")
    'pass flow=True'
    >>> with advised_for_command():
    ...     advice("pass flow=True", "give --option flow=true")
    'give --option flow=true'

    """
    return python if command_options() is None else command


def imported(module: str, extra: str) -> Any:
    """Import an optional library; LibraryError, with the command that installs it, where it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise LibraryError(f"{name} is required but not installed: {extra_command(extra)}") from error


def require_modules(what: str, *modules: str) -> None:
    """Raise where optional libraries are missing; none is imported."""
    if missing := [module for module in modules if not installed(module)]:
        listed = " and ".join([*([", ".join(missing[:-1])] if missing[:-1] else []), missing[-1]])
        are = "are" if len(missing) > 1 else "is"
        raise LibraryError(f"{what} {listed}, which {are} not installed: {command(missing)}")


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """Suggest close matches: ``"; did you mean 'wall_hue'?"``, or list the known names when nothing is close.

    Examples
    --------
    >>> did_you_mean("wall_heu", ["wall_hue", "scale"])
    "; did you mean 'wall_hue'?"
    >>> did_you_mean("zzz", ["wall_hue", "scale"])
    '; choose from wall_hue, scale'

    """
    names = [str(name) for name in known]
    if close := close_matches(word, names):
        return suggest(close)
    return f"; choose from {listed(names)}" if names else "; none are available"


def suggest(close: Iterable[str]) -> str:
    """Ask whether one of some names was meant: ``"; did you mean 'wall_hue'?"``."""
    return "; did you mean " + " or ".join(short(repr(name)) for name in close) + "?"


def close_matches(word: object, names: Sequence[str], alike: float = 0.6) -> list[str]:
    """At most three names that are similar to a word, the most similar first; case does not count.

    ``alike`` is the least similarity, from 0 to 1.

    Examples
    --------
    >>> close_matches("Mnits", ["mnist", "emnist", "coco"])
    ['mnist', 'emnist']

    """
    sought = {name.lower(): name for name in reversed(names[:_SOUGHT])}
    asked = str(word).lower()
    same = [one for one in (asked, asked.replace("-", "_"), asked.replace("_", "-"), _ALSO.get(asked)) if one in sought]
    return [sought[name] for name in same[:1] or difflib.get_close_matches(asked, sought, n=3, cutoff=alike)]
