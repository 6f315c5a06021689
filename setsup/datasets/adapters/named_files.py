"""Which of many named files exist, without a question to the disk for each."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

__all__ = ["find_missing", "with_slashes"]

_LISTED = 32  # names in a folder from which the folder is listed
_MORE = 16  # times as many entries as names are looked through in a folder
_ASKED = 256  # names that one thread asks for at a time
_THREADS = 16  # that ask, since a network disk takes long for each answer


def find_missing(folder: str, names: Iterable[str]) -> list[str]:
    """Names, relative to a folder, that are no files, in the given order and each once.

    Folders that many names lie in are listed, and only what is not in the list is asked for.
    """
    wanted = dict.fromkeys(names)
    inside: dict[str, list[str]] = {}
    for name in wanted:
        cut = name.rfind("/") + 1
        inside.setdefault(name[:cut], []).append(name[cut:])
    left: set[str] = set()
    missing: set[str] = set()
    for place, those in inside.items():
        known: set[str] | None = set()
        if len(those) >= _LISTED:
            known = _files_of(os.path.join(folder, place), _MORE * len(those))
        (missing if known is None else left).update(place + last for last in those if not known or last not in known)
    # what a list does not have may be a link, or a name that the disk takes for another
    missing |= _absent(folder, list(left))
    return [name for name in wanted if name in missing] if missing else []


def with_slashes(name: str) -> str:
    r"""Write a path of Windows, ``a\001.jpg``, as all systems read it."""
    return name.replace("\\", "/")


def _files_of(folder: str, most: int) -> set[str] | None:
    """Names of the files in a folder, among its first entries, without links; None where there is no such folder."""
    found: set[str] = set()
    try:
        with os.scandir(folder or ".") as entries:
            found.update(entry.name for entry in islice(entries, most) if entry.is_file(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return set()
    return found


def _absent(folder: str, names: list[str]) -> set[str]:
    def ask(start: int) -> list[str]:
        some = names[start : start + _ASKED]
        return [name for name in some if not os.path.isfile(os.path.join(folder, name))]

    starts = range(0, len(names), _ASKED)
    if len(starts) < 2:
        return {name for start in starts for name in ask(start)}
    with ThreadPoolExecutor(_THREADS) as pool:
        return {name for some in pool.map(ask, starts) for name in some}
