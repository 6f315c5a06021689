"""Find the release of a dataset: in folders, and in the archives there."""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from setsup.errors import DataError, advice
from setsup.files.archives.archive_format import archive_kind
from setsup.files.archives.members import MemberIndex, open_members
from setsup.files.archives.release_parts import join_parts, warn_of_others
from setsup.files.archives.release_root import find_top, readable, wanting
from setsup.files.expand_user import expanded
from setsup.files.roots import data_places, place_seen, root_option, some

__all__ = ["find_members"]

_MOST_ARCHIVES = 32
_LOOKED_AT = 1000  # files of a folder whose content is looked at
_ENDS = (".zip", ".tar")
_PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")


def find_members(
    name: str,
    root: Path | str | None,
    holds: Mapping[str, str] | Sequence[str],
    archives: Sequence[str] = (),
    nested: bool = False,
    parts: str | None = None,
    own: bool = False,
) -> MemberIndex:
    """Find the release of a dataset: a folder, an archive in that folder, or an archive given as root.

    For a release published in several archives, the index joins all archives in the folder and the files unpacked
    there. For any other release a single source is read, and a warning counts further files in other sources of the
    folder.

    Parameters
    ----------
    name : str
        Name of the dataset.
    root : Path, str or None
        As in :func:`data_places`, or the archive itself.
    holds : mapping of str to str, or sequence of str
        Regular expressions (RE2). Each must match the beginning of a file name relative to the top of the release,
        which is the shallowest folder for which all match. Values of a mapping describe the expressions in messages.
    archives : sequence of str
        File names of archives of the release, which take precedence over the other files of the folder. If neither
        contains the release, every zip and tar directly in the folder is tried, up to 32.
    nested : bool
        As in :func:`open_members`.
    parts : str, optional
        For a release published in several archives: a regular expression (RE2) for their file names.
    own : bool
        Whether the data are a user's own: they cannot be fetched, and links must stay inside their folder.

    Returns
    -------
    MemberIndex
        Names are relative to the top.

    Raises
    ------
    DataError
        The release is not found; the message lists the folders searched, missing files, the archives there, and the
        command that fetches it.

    """
    look = _look_inside(root, nested) if own else partial(open_members, nested=nested)
    refused: DataError | None = None
    missing, empty, notes = list(holds), list[str](), list[str]()
    if parts is not None:
        for folder in _folders(name, root):
            joined, paths = join_parts(folder, list(holds), archives, parts, look)
            if joined is not None:
                others = [each for each in _others(name, root, folder, archives) if each[0] not in paths]
                warn_of_others(name, joined, list(holds), others, look)
                return joined
    for source, named in _sources(name, root, archives):
        try:
            members = look(source)
        except DataError as error:
            if named:
                refused = refused or error
            else:
                notes.append(str(error).removeprefix(f"{source.parent}{os.sep}"))
            continue
        top = find_top(members.names, list(holds))
        if top is not None:
            release = members.under(top)
            if source != data_places(name, root)[0] or source.is_dir():  # no archive that was named
                warn_of_others(name, release, list(holds), _others(name, root, source, archives), look)
            return release
        lacks = wanting(members.names, list(holds))
        if named:
            missing = min(missing, lacks, key=len)
        elif len(lacks) == len(holds):
            empty.append(source.name)
        else:
            notes.append(
                f"{source.name} there {f'lacks {_list_patterns(lacks, holds)}' if lacks else 'has them in two folders'}"
            )
    if refused is not None:
        raise refused
    raise _not_found(name, root, _list_patterns(missing or holds, holds), empty, notes, apart=not missing, own=own)


def _look_inside(root: Path | str | None, nested: bool) -> Callable[[Path], MemberIndex]:
    """Make the function that opens a folder or archive below a root, unless a link leads out of it."""
    top = None if root is None else os.path.realpath(expanded(root))

    def look(path: Path) -> MemberIndex:
        target = os.path.realpath(path)
        if top is not None and target != top and not target.startswith(top.rstrip(os.sep) + os.sep):
            raise DataError(
                f"{path} links to a path outside {root}; pass the folder or archive that it links to "
                f"({advice('root=', '--root')})"
            )
        return open_members(path, nested=nested, inside=True)

    return look


def _folders(name: str, root: Path | str | None) -> list[Path]:
    """Folders that may hold a release, best first."""
    folders = data_places(name, root)
    # folders of the dataset's name first: the other may be that of all datasets, and take long to list
    ordered = (*folders[1:], folders[0]) if root is not None else folders
    return [folder for folder in ordered if os.path.isdir(folder)]


def _others(name: str, root: Path | str | None, source: Path, archives: Sequence[str]) -> list[tuple[Path, bool]]:
    """Other folders and archives in which more of a release may lie, and whether they are named for it."""
    folder = source if source.is_dir() and source.name not in archives else source.parent
    zips = [folder / each for each in _files(folder, (".zip",))[:_MOST_ARCHIVES]]
    # an unpacked part may lie in a folder of the dataset's name, and the archive around it
    around = [folder, *(path for path in _folders(name, root) if path == folder.parent)]
    named = [path / each for path in around for each in archives if os.path.exists(path / each)]
    sources = dict.fromkeys([folder, *zips], False) | dict.fromkeys(named, True)
    return [(other, each) for other, each in sources.items() if other not in (source, folder.parent / source.name)]


def _sources(name: str, root: Path | str | None, archives: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """Folders and archives that may hold a release, best first."""
    paths = data_places(name, root)
    if os.path.isfile(paths[0]):
        yield paths[0], True
        return
    folders = _folders(name, root)
    for folder in folders:
        for each in (*archives, ""):
            if os.path.exists(folder / each):
                yield folder / each, True
    for folder in folders:
        for path in _archives_in(folder, name):
            if path.name not in archives:
                yield path, False


def _archives_in(folder: Path, name: str) -> list[Path]:
    """Zip and tar files directly in a folder, at most 32."""
    files = _files(folder)
    ending = [each for each in files if each.lower().endswith(_ENDS)]
    archives = sorted(ending, key=lambda each: name not in each.lower())[:_MOST_ARCHIVES]
    for each in [each for each in files if each not in archives and not each.lower().endswith(_PACKED)][:_LOOKED_AT]:
        if len(archives) < _MOST_ARCHIVES and _is_archive(folder / each):
            archives.append(each)
    return [folder / each for each in archives]


def _list_patterns(patterns: Iterable[str], holds: Mapping[str, str] | Sequence[str]) -> str:
    """Write expressions of :func:`setsup.files.find_members` for messages."""
    return ", ".join(holds[each] if isinstance(holds, Mapping) else readable(each) for each in patterns)


def _not_found(
    name: str,
    root: Path | str | None,
    words: str,
    empty: Sequence[str],
    notes: Sequence[str],
    apart: bool,
    own: bool,
) -> DataError:
    """Make the sentence about a release that is not there."""
    paths = data_places(name, root)
    if os.path.isfile(paths[0]):
        lacks = f"contains {words}, but not in one folder" if apart else f"does not contain {words}"
        return DataError(
            f"{name}: {paths[0]} {lacks}; pass another archive, or the folder that contains the files "
            f"({advice('root=', '--root')}){'' if own else f', or run `setsup fetch {name}`'}"
        )
    packed = [each for path in paths for each in _files(path) if each.lower().endswith(_PACKED)]
    more = [f"; {note}" for note in notes]
    if empty:
        more.insert(
            0, f"; {some(empty)} there {'does' if len(empty) == 1 else 'do'} not contain any files of the dataset"
        )
    fetched = "" if own else f"run `setsup fetch {name}{root_option(root)}`, or "
    packed.sort(key=lambda each: name not in each.lower())
    if packed:
        more.append(f"; {packed[0]} there is compressed as a whole: unpack it (tar -xf {shlex.quote(packed[0])})")
    return DataError(
        f"{name}: {words} not found{' in one folder' if apart else ''}; looked in "
        f"{', '.join(map(place_seen, paths))}{''.join(more)}; {fetched}"
        f"pass the folder that contains the files ({advice('root=', '--root')})"
    )


def _files(folder: Path, ends: tuple[str, ...] = ("",)) -> list[str]:
    """Names of the files in a folder that are not hidden, sorted; those with some endings."""
    try:
        with os.scandir(folder) as entries:
            # the name first, which costs nothing
            named = (each for each in entries if not each.name.startswith(".") and each.name.lower().endswith(ends))
            return sorted(entry.name for entry in named if entry.is_file())
    except (OSError, ValueError):
        return []


def _is_archive(path: Path) -> bool:
    try:
        return archive_kind(path) != "folder"
    except DataError:
        return False
