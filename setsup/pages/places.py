"""Places of this machine in what is passed on: paths that a reader understands, without absolute ones or user names."""

import getpass
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup.opening import find_kind

__all__ = ["FOLDER", "Places"]

FOLDER = "FOLDER"
"""Stands for a folder that is not below the working folder; the second one is ``FOLDER2``."""


@dataclass
class Places:
    """Writes places for others: as seen from the working folder, or below a word for a folder that is elsewhere.

    Examples
    --------
    >>> places = Places()
    >>> places.path("runs/seed-0"), places.path("/data/mine/photos.csv"), places.source("mnist")
    ('runs/seed-0', 'FOLDER/photos.csv', 'mnist')

    """

    here: Path = field(default_factory=Path.cwd)
    seen: bool = False
    folders: dict[str, str] = field(default_factory=dict)

    def source(self, source: str) -> str:
        """What opens a dataset: a name as it is, an address without who asks for it, or a path."""
        if "://" in source and not source.lower().startswith("file:"):
            parts = urlsplit(source)
            return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        with suppress(DataError):
            if not source or find_kind(source) in ("benchmark", "hub"):
                return source
        return self.path(urlsplit(source).path if "://" in source else source)

    def path(self, path: Path | str) -> str:
        """A path that does not say where on this machine it is."""
        self.seen = True
        full = _absolute(path)
        for start in (self.here, self.here.resolve()):
            if full.is_relative_to(start) and not _is_above_home(start):
                inner = full.relative_to(start)
                if not set(inner.parts) & _users():
                    return inner.as_posix()
        folder = self.folders.setdefault(str(full.parent), f"{FOLDER}{len(self.folders) + 1 if self.folders else ''}")
        return folder if full.name in _users() else f"{folder}/{full.name}"

    def text(self, text: str, known: Iterable[Path] = ()) -> str:
        """A text with some paths, and that of the home folder, written for others."""
        forms = {str(one): path for path in known for one in (path, path.absolute(), path.resolve())}
        for form in sorted(forms, key=len, reverse=True):
            text = re.sub(
                rf"(?<![\w./~-]){re.escape(form)}(?![\w-])", lambda _, form=form: self.path(forms[form]), text
            )
        home = Path.home()
        return text.replace(str(home), "~") if len(home.parts) > 1 else text

    @property
    def note(self) -> str:
        """What the words stand for; empty where there is none."""
        if not self.seen:
            return ""
        named = " and ".join(self.folders.values())
        said = "Paths in commands are from the folder in which the page was exported"
        return f"{said}; {named} {'stands' if len(self.folders) == 1 else 'stand'} for another place" if named else said


def _absolute(path: Path | str) -> Path:
    with suppress(DataError):
        path = expanded(path)
    return Path(os.path.abspath(path))


def _is_above_home(folder: Path) -> bool:
    """Whether paths from a folder go through the home folders of users."""
    return folder != Path.home() and Path.home().is_relative_to(folder)


def _users() -> set[str]:
    with suppress(OSError, KeyError, ImportError):
        return {getpass.getuser(), Path.home().name}
    return {Path.home().name}
