"""Files of one release that lies in several folders and archives, as one index."""

import os
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from setsup.errors import DataError
from setsup.files.archives.member_index import Index, load_joined
from setsup.files.archives.members import MemberIndex

__all__ = ["join_members"]


class JoinedMembers(MemberIndex):
    """Files of several folders and archives; made by :func:`join_members`.

    ``source`` is the folder that all of them lie in.
    """

    def __init__(self, parts: tuple[MemberIndex, ...], index: Index, prefix: str, start: int, stop: int) -> None:
        folder = os.path.commonpath([part.source.absolute() for part in parts])
        source = next((part.source for part in parts if str(part.source.absolute()) == folder), None)
        source = parts[0].source.parent if source is None else source
        super().__init__(source, os.fsencode(folder), index, None, prefix, start, stop)
        self._parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts."""
        return _rejoin, (self._parts, self.prefix, self._index.digest)

    def read(self, place: int, limit: int | None = None) -> bytes:
        """Read a whole file."""
        part, inner = self._part(place)
        return part.read(inner, limit)

    def stretch(self, place: int, offset: int, length: int) -> bytes | None:
        """Read some bytes of a file."""
        part, inner = self._part(place)
        return part.stretch(inner, offset, length)

    def label(self, place: int) -> str:
        """Name of a file in messages, with the folder or archive that it is in."""
        part, inner = self._part(place)
        return part.label(inner)

    def path(self, place: int) -> Any:
        """Path of a file on the disk, None inside an archive."""
        part, inner = self._part(place)
        return part.path(inner)

    def _part(self, place: int) -> tuple[MemberIndex, int]:
        row = self._index.row(self._checked(place))
        return self._parts[row.method], row.offset

    def _slice(self, prefix: str, start: int, stop: int) -> MemberIndex:
        return JoinedMembers(self._parts, self._index, prefix, start, stop)


def join_members(parts: Sequence[MemberIndex]) -> MemberIndex:
    """Give one index of the files of several; of files of one name, the one of the first part counts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from setsup.files import open_members
    >>> folders = [Path(tempfile.mkdtemp()) for _ in range(2)]
    >>> for number, folder in enumerate(folders):
    ...     _ = (folder / f"{number}.txt").write_text(f"part {number}")
    >>> members = join_members([open_members(folder) for folder in folders])
    >>> members.names.to_pylist(), members.read(1)
    (['0.txt', '1.txt'], b'part 1')

    """
    if len(parts) == 1:
        return parts[0]
    whole = tuple(parts)
    digest = sha256(repr([(str(part.source.absolute()), *part.identity) for part in whole]).encode()).hexdigest()
    index = load_joined(digest[:32], lambda: [(part.names, np.asarray(part.sizes)) for part in whole])
    return JoinedMembers(whole, index, "", 0, len(index))


def _rejoin(parts: tuple[MemberIndex, ...], prefix: str, digest: int) -> MemberIndex:
    """Open in this process what was pickled in another one."""
    members = join_members(parts)
    if members._index.digest != digest:
        raise DataError(f"{members.source} has changed since the dataset was opened; open it again")
    return members.under(prefix)
