"""Releases that lie in several folders and archives: joined, or said to be left out."""

import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from setsup.arrays import Places
from setsup.errors import DataError, advice
from setsup.files.archives.joined_members import join_members
from setsup.files.archives.listing import find_matches
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.release_root import find_top, find_tops

__all__ = ["join_parts", "warn_of_others"]

_NAMED = re.compile(r"\(\?P<\w+>")
_DEEPEST = 4  # folders around one of several parts of a release

_log = logging.getLogger("setsup")


def join_parts(
    folder: Path, holds: Sequence[str], archives: Sequence[str], parts: str, look: Callable[[Path], MemberIndex]
) -> tuple[MemberIndex | None, list[Path]]:
    """Join what is unpacked in a folder and all archives of a release there; None where that is no release.

    Unpacked files come first. Returns the paths of the archives, too. Parameters are those of
    :func:`setsup.files.find_members`; `look` opens a folder or an archive.

    Raises
    ------
    DataError
        An archive is damaged, and nothing is unpacked beside it.

    """
    whole = look(folder)
    packed = whole.matching(rf"(?:[^/]+/){{0,2}}(?:{parts})")[0].tolist()
    paths = [path for path in map(whole.path, packed) if path is not None]
    paths += [folder / each for each in archives if os.path.isfile(folder / each)]
    paths = list(dict.fromkeys(paths))
    members = _find_parts(whole, holds)
    for path in paths:
        try:
            members += _find_parts(look(path), holds)
        except DataError as error:
            if not members or members[0].source != folder:
                raise
            _log.warning("%s; it is left out, and the files unpacked in %s are read", error, folder)
    if not members:
        return None, paths
    if members[0].source != folder:
        members.append(whole)  # which has what lies beside the archives
    joined = join_members(members)
    return (joined if find_top(joined.names, holds) == "" else None), paths


def warn_of_others(
    name: str,
    release: MemberIndex,
    holds: Sequence[str],
    others: Iterable[tuple[Path, bool]],
    look: Callable[[Path], MemberIndex],
) -> None:
    """Warn of files of a release that lie in other folders and archives than the one that is read.

    `others` are their paths; with False where one counts only if most of its files are of the release, or it has one
    as a whole.
    """
    depth = release.prefix.count("/")
    left = {release.source: _tops_in(look(release.source), holds, [depth]) if depth else []}
    for path, named in others:
        try:
            members = look(path)
        except DataError:
            continue  # whatever is wrong with it, it is not what was opened
        parts = _find_parts(members, holds)
        if not named and 2 * sum(len(_release_files(part, holds)) for part in parts) < len(members):
            # a few names, such as that of a list, are those of other releases as well
            parts = _tops_in(members, holds, range(_DEEPEST))
        left[path] = parts
    mine = os.path.realpath(release.source / release.prefix)
    for path, parts in left.items():
        more = [
            file
            for part in parts
            if os.path.realpath(path / part.prefix) != mine
            for file in _more(part, release, holds)
        ]
        if more:
            _log.warning(
                "%s: %s contains files of the dataset that are not in %s (%s, such as %s); they are left out; unpack "
                "them into that folder, or pass another folder (%s)",
                *(name, path, release.source, f"{len(more):,}", more[0], advice("root=", "--root")),
            )


def _tops_in(members: MemberIndex, holds: Sequence[str], depths: Iterable[int]) -> list[MemberIndex]:
    return [members.under(top) for top in find_tops(members.names, holds, depths)]


def _find_parts(members: MemberIndex, holds: Sequence[str]) -> list[MemberIndex]:
    """Folders in which any of the files of a release lie."""
    return _tops_in(members, [_either(holds)], range(_DEEPEST))


def _release_files(part: MemberIndex, holds: Sequence[str]) -> Places:
    return find_matches(part.names, f"^(?:{_either(holds)})")


def _either(holds: Sequence[str]) -> str:
    return "|".join(f"(?:{_NAMED.sub('(?:', pattern)})" for pattern in holds)  # a name may stand in several of them


def _more(part: MemberIndex, release: MemberIndex, holds: Sequence[str]) -> list[str]:
    """Names of the files of a release that one part has and another lacks."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = part.names.take(pa.array(_release_files(part, holds)))
    mine, theirs, new = release.names, names, np.ones(len(names), bool)
    for _ in range(_DEEPEST):
        # the same file may lie in more folders in one than in the other
        for candidates, known in ((theirs, release.names), (names, mine)):
            new &= np.asarray(pc.is_null(pc.index_in(candidates, value_set=known)))
        mine, theirs = (pc.replace_substring_regex(each, "^[^/]*/", "") for each in (mine, theirs))
    return [names[row].as_py() for row in np.flatnonzero(new).tolist()]
