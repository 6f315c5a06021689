"""What installed packages offer to setsup under entry-point groups: setsup's own papers, and those of third parties."""

from collections.abc import Iterator
from functools import cache
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
    return [entry for entry in entry_points(group=group) if not _is_own(entry)]


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
