"""Find which of many named files exist, without a system call for each."""

import os
import unicodedata
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path

from setsup.datasets.formats.image_formats import KNOWN_ENDINGS
from setsup.errors import DataError
from setsup.files.archives.members import open_members

__all__ = ["find_instead", "find_missing", "with_slashes"]

_LISTED = 32  # names in a folder from which the folder is listed
_MORE = 16  # times as many entries as names are looked through in a folder
_ASKED = 256  # names that one thread asks for at a time
_BESIDE = 1000  # entries of a folder among which other spellings, folders and archives are sought
_ARCHIVES = (".zip", ".tar")
_THREADS = 16  # that ask, since a network disk takes long for each answer


def find_missing(folder: str, names: Iterable[str]) -> list[str]:
    """Names, relative to a folder, that are not files, in the given order and without duplicates.

    Folders with many of the names are listed, and only names outside the list are checked one by one.
    """
    wanted = dict.fromkeys(names)
    inside: dict[str, list[str]] = {}
    for name in wanted:
        cut = name.rfind("/") + 1
        inside.setdefault(name[:cut], []).append(name[cut:])
    left: set[str] = set()
    missing: set[str] = set()
    for below, those in inside.items():
        known: set[str] | None = set()
        if len(those) >= _LISTED:
            known = _list_files(os.path.join(folder, below), _MORE * len(those))
        (missing if known is None else left).update(below + last for last in those if not known or last not in known)
    # what a list does not have may be a link, or a name that the disk takes for another
    missing |= _absent(folder, list(left))
    return [name for name in wanted if name in missing] if missing else []


def with_slashes(name: str) -> str:
    r"""Write a path of Windows, ``a\001.jpg``, as all systems read it."""
    return name.replace("\\", "/")


def find_instead(folder: str, name: str) -> str:
    """Describe a file that could replace a missing one: another spelling, extension, folder, or an archive.

    Empty if there is none.
    """
    if "://" in name[:16]:
        return f"{name} is a URL, which setsup does not download; download the images, and list their paths"
    name = with_slashes(name)
    below, last = os.path.split(name)
    if similar := _other_spelling(os.path.join(folder, below), last):
        return f"{name} does not exist, but {os.path.join(below, similar)} does; correct the table"
    parts = [part for part in name.split("/") if part not in ("", ".", "..")] or [name]
    folders = ["", *(entry.name for entry in _entries(folder) if entry.is_dir() and not entry.name.startswith("."))]
    for cut in range(len(parts)):
        rest = "/".join(parts[cut:])
        for inner in folders:
            path = os.path.join(inner, rest)
            if path != name and os.path.isfile(os.path.join(folder, path)):
                return f"{name} does not exist, but {path} does; correct the table"
    for entry in _entries(folder):
        if entry.name.lower().endswith(_ARCHIVES) and _has_file(entry.path, parts[-1]):
            return f"{entry.name} contains {parts[-1]}; unpack it"
    return ""


def _other_spelling(folder: str, last: str) -> str | None:
    """A file of a folder whose name differs only in case, in the encoding of accents, or in its extension."""
    sought = _plain(last)
    names = [entry.name for entry in _entries(folder) if not entry.is_dir()]
    same = [name for name in names if _plain(name) == sought]
    bare = [name for name in names if _without_ending(name) in (sought, _without_ending(last))]
    return next(iter(same or bare), None)


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _without_ending(name: str) -> str:
    stem, ending = os.path.splitext(_plain(name))
    return stem if ending in KNOWN_ENDINGS else _plain(name)


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    with suppress(OSError, ValueError), os.scandir(folder or ".") as entries:
        return sorted(islice(entries, _BESIDE), key=lambda entry: entry.name)
    return []


def _has_file(archive: str, last: str) -> bool:
    try:
        names = open_members(Path(archive)).names.to_pylist()
    except DataError:
        return False
    return any(name.rpartition("/")[2] == last for name in names)


def _list_files(folder: str, most: int) -> set[str] | None:
    """Names of the files in a folder, among its first entries, without links; None if the folder does not exist."""
    names: set[str] = set()
    try:
        with os.scandir(folder or ".") as entries:
            names.update(entry.name for entry in islice(entries, most) if entry.is_file(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return set()
    return names


def _absent(folder: str, names: list[str]) -> set[str]:
    def ask(start: int) -> list[str]:
        some = names[start : start + _ASKED]
        return [name for name in some if not os.path.isfile(os.path.join(folder, name))]

    starts = range(0, len(names), _ASKED)
    if len(starts) < 2:
        return {name for start in starts for name in ask(start)}
    with ThreadPoolExecutor(_THREADS) as pool:
        return {name for some in pool.map(ask, starts) for name in some}
