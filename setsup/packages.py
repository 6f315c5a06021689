"""What installed packages offer to setsup under entry-point groups: setsup's own papers, and those of third parties."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from setsup.errors import SetsupError

__all__ = ["load_entry", "offered_modules", "other_entries", "own_entries"]

_DISTRIBUTION = "setsup"


@cache
def own_entries(group: str) -> tuple[EntryPoint, ...]:
    """Entry points of setsup itself, sorted by name."""
    return tuple(sorted((entry for entry in entry_points(group=group) if _is_own(entry)), key=lambda entry: entry.name))


def other_entries(group: str) -> list[EntryPoint]:
    """Entry points of other packages; names that setsup itself offers are never replaced."""
    return list(_read_other_entries(group, entry_points, _folders()))


@lru_cache(maxsize=32)
def _read_other_entries(group: str, read: Callable[..., Any], folders: object) -> tuple[EntryPoint, ...]:
    """Read them once for each state of the folders: it takes milliseconds, and a report asks hundreds of times."""
    return tuple(entry for entry in read(group=group) if not _is_own(entry))


def _folders() -> tuple[tuple[str, int], ...]:
    """Folders where packages lie, and when each changed: a package that is installed meanwhile is found."""
    return tuple((folder, os.stat(folder or ".").st_mtime_ns) for folder in sys.path if os.path.isdir(folder or "."))


def load_entry(entry: EntryPoint, what: str) -> Any:
    """Load what an entry point names; SetsupError where its import fails, in whatever way."""
    try:
        return entry.load()
    except Exception as error:
        why = str(error) or type(error).__name__
        raise SetsupError(
            f"{what} {entry.name!r} ({entry.value}) cannot be imported: {why}; repair or uninstall the package "
            f"{entry.dist.name if entry.dist else entry.module}"
        ) from error


def offered_modules(group: str, what: str) -> Iterator[tuple[ModuleType, str]]:
    """Modules under a group and their names, setsup's own first; each is imported when its turn comes."""
    for entry in (*own_entries(group), *other_entries(group)):
        yield load_entry(entry, what), entry.value


def _is_own(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == _DISTRIBUTION
