"""Places of this machine in what is passed on: paths that a reader understands, without absolute ones or user names."""

import getpass
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup.opening import find_kind

__all__ = ["FOLDER", "Places", "without_folders"]

FOLDER = "FOLDER"
"""Stands for a folder that is not below the working folder; the second one is ``FOLDER2``."""

_STARTS = re.compile(r"(?:file://|(?<![\w.:/~<-]))/(?=[^/\s])|~\w*/")
_PLAIN = re.compile(r"(?:file://|~\w*)?/(?:[^\s/'\"()]+/)*")
"""Where an absolute path begins, and its folders if their names have no blanks."""


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
    relative: bool = False
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
        full = _absolute(path)
        for start in (self.here, self.here.resolve()):
            if full.is_relative_to(start) and not _is_above_home(start):
                inner = full.relative_to(start)
                if not set(inner.parts) & _users():
                    self.relative = True
                    return inner.as_posix()
        folder = self.folders.setdefault(str(full.parent), f"{FOLDER}{len(self.folders) + 1 if self.folders else ''}")
        return folder if full.name in _users() else f"{folder}/{full.name}"

    def word(self, word: str) -> str:
        """A word of a command: a path is written for others."""
        return self.path(word) if os.path.isabs(word) or word.startswith(("~", "../")) else word

    def text(self, text: str, known: Iterable[Path] = ()) -> str:
        """A text with some paths, and that of the home folder, written for others."""
        forms = {str(form_of_path): path for path in known for form_of_path in (path, path.absolute(), path.resolve())}
        for form in sorted(forms, key=len, reverse=True):
            text = re.sub(rf"(?<![\w./~-]){re.escape(form)}(?![\w-])", partial(self._written, forms[form]), text)
        home = Path.home()
        return text.replace(str(home), "~") if len(home.parts) > 1 else text

    def _written(self, path: Path, _: "re.Match[str]") -> str:
        return self.path(path)

    def sentence(self, error: str) -> str:
        """An error without folders and names of users."""
        sentence = without_folders(error)
        for name in _users():
            sentence = re.sub(rf"(?<=[/~]){re.escape(name)}(?=/)", "…", sentence)
        return sentence

    @property
    def note(self) -> str:
        """What the words stand for; empty where there is none."""
        sentences = ["Paths in commands are relative to the folder in which it was exported."] if self.relative else []
        *first, last = self.folders.values() or ("",)
        if last:
            stand = f"{', '.join(first)} and {last} stand for folders" if first else f"{last} stands for a folder"
            sentences.append(
                f"In commands, {stand} on your machine: the page does not say where its author keeps the files."
            )
        return " ".join(sentences)


def without_folders(sentence: str) -> str:
    """A sentence in which absolute paths are their last parts, with blanks in folders that exist.

    Examples
    --------
    >>> without_folders("/data/mine/7.png (row 7) is missing; put it there, or take it out")
    '7.png (row 7) is missing; put it there, or take it out'

    """
    kept_to = at = 0
    parts = []
    for start in _STARTS.finditer(sentence):
        at, end = start.start(), start.end()
        if at < kept_to:
            continue
        plain = _PLAIN.match(sentence, at)
        end = plain.end() if plain else end
        while (slash := sentence.find("/", end)) >= 0 and os.path.isdir(sentence[at:slash]):
            end = slash + 1
        if sentence[at:end].count("/") > 1:
            parts.append(sentence[kept_to:at])
            kept_to = end
    return "".join([*parts, sentence[kept_to:]])


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
