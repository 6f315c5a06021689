"""Where the release of a data set may lie, and the sentence about one that is not there."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from setsup.errors import DataError
from setsup.files.archives.archive_format import archive_kind
from setsup.files.release_root import readable
from setsup.files.roots import data_places, place_seen, root_option, some

__all__ = ["archives_in", "not_found", "sources", "worded"]

_MOST_ARCHIVES = 32
_LOOKED_AT = 1000  # files of a folder whose content is looked at
_ENDS = (".zip", ".tar")
_PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")


def sources(name: str, root: Path | str | None, archives: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """Folders and archives that may hold a release, best first."""
    places = data_places(name, root)
    if os.path.isfile(places[0]):
        yield places[0], True
        return
    # folders of the data set's name first: the other may be that of all data sets, and take long to list
    folders = [place for place in (*places[1:], places[0]) if os.path.isdir(place)] if root is not None else places
    for folder in folders:
        for each in (*archives, ""):
            if os.path.exists(folder / each):
                yield folder / each, True
    for folder in folders:
        for path in archives_in(folder, name):
            if path.name not in archives:
                yield path, False


def archives_in(folder: Path, name: str) -> list[Path]:
    """Zip and tar files that lie directly in a folder, at most 32."""
    there = _files(folder)
    ending = [each for each in there if each.lower().endswith(_ENDS)]
    found = sorted(ending, key=lambda each: name not in each.lower())[:_MOST_ARCHIVES]
    for each in [each for each in there if each not in found and not each.lower().endswith(_PACKED)][:_LOOKED_AT]:
        if len(found) < _MOST_ARCHIVES and _is_archive(folder / each):
            found.append(each)
    return [folder / each for each in found]


def worded(patterns: Iterable[str], holds: Mapping[str, str] | Sequence[str]) -> str:
    """Give what messages call some of the expressions of :func:`setsup.files.archives.members.find_members`."""
    return ", ".join(holds[each] if isinstance(holds, Mapping) else readable(each) for each in patterns)


def not_found(
    name: str, root: Path | str | None, words: str, empty: Sequence[str], notes: Sequence[str], apart: bool
) -> DataError:
    """Make the sentence about a release that is not there."""
    places = data_places(name, root)
    if os.path.isfile(places[0]):
        lacks = f"holds {words}, but not in one folder" if apart else f"holds no {words}"
        return DataError(
            f"{name}: {places[0]} {lacks}; name another archive, or the folder that holds the files (--root or root=), "
            f"or run `setsup fetch {name}`"
        )
    packed = [each for place in places for each in _files(place) if each.lower().endswith(_PACKED)]
    more = [f"; {note}" for note in notes]
    if empty:
        more.insert(0, f"; {some(empty)} there {'holds' if len(empty) == 1 else 'hold'} nothing of it")
    packed.sort(key=lambda each: name not in each.lower())
    if packed:
        more.append(f"; {packed[0]} there is packed as a whole: unpack it (tar -xf {shlex.quote(packed[0])})")
    return DataError(
        f"{name}: {words} not found{' in one folder' if apart else ''}; looked in "
        f"{', '.join(map(place_seen, places))}{''.join(more)}; run `setsup fetch {name}{root_option(root)}`, "
        "or name the folder that holds the files (--root or root=)"
    )


def _files(folder: Path) -> list[str]:
    """Names of the files in a folder that are not hidden, sorted."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_file())
    except (OSError, ValueError):
        return []


def _is_archive(path: Path) -> bool:
    try:
        return archive_kind(path) != "folder"
    except DataError:
        return False
