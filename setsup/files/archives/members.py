"""Random access by name to the files of a folder, a zip or a tar."""

import os
import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Places
from setsup.errors import DataError, RowError, did_you_mean
from setsup.files.archives.archive import Archive
from setsup.files.archives.listing import as_numpy, find_matches
from setsup.files.archives.member_index import KEPT_FROM, About, Index, find_kept_index, load_index
from setsup.files.archives.names import as_bytes, shown
from setsup.files.archives.plain_files import read_file, read_file_stretch, too_long

__all__ = ["MemberIndex", "open_members"]


_HASHED_FROM = 0.01  # names sought for each file there is, from which a hash of all costs less than bisection
_NEAR = 500  # names before and after the place of a missing one, among which close ones are sought
_SPECIAL = re.compile(r"([\\^$.|?*+(){}\[\]])")


class MemberIndex:
    r"""Files below a folder, or in a zip or tar; made by :func:`open_members`.

    Files are numbered by their place, 0 … n − 1, sorted by the bytes of their names. The object is thread-safe, can be
    used after a fork, and is pickled as its path.

    Names are relative, with ``/``. Bytes of a name that are not UTF-8 are written ``\xe9``.

    Attributes
    ----------
    source : Path
        The folder or archive.
    prefix : str
        Folder inside it to which names are relative: empty, or ending in ``/``.
    sizes : (n,) int64, bytes, read-only
        Sizes of the files when they were listed. Files of a folder may have changed since.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "list.txt").write_text("a car\n"), (folder / "1.mat").write_bytes(bytes(8))
    >>> members = open_members(folder)
    >>> members.names.to_pylist(), members.sizes
    (['1.mat', 'list.txt'], array([8, 6]))
    >>> members.read(members.place("list.txt"))
    b'a car\n'

    """

    def __init__(
        self, source: Path, top: bytes, index: Index, archive: Archive | None, prefix: str, start: int, stop: int
    ) -> None:
        self.source = source
        self.prefix = prefix
        self.sizes = index.sizes[start:stop]
        self._top, self._index, self._archive = top, index, archive
        self._start, self._stop = start, stop
        self._names: Any = None

    def __repr__(self) -> str:
        """Show the number of files, and where they are."""
        return f"MemberIndex({len(self):,} files of {self._shown(self.prefix)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path, where the index is mapped; with it the index of a folder of few files, which is not kept."""
        about = self._index.about
        if about.kind == "folder" and len(self._index) < KEPT_FROM:
            return _unpacked, (os.fsdecode(self._top), self.prefix, about, self._index.batch)
        return _reopen, (
            os.fsdecode(self._top),
            self.prefix,
            self._index.digest,
            about.nested,
            about.hidden,
            about.inside,
        )

    def __len__(self) -> int:
        """Count the files."""
        return self._stop - self._start

    def __contains__(self, name: object) -> bool:
        """Whether there is a file of that name."""
        return isinstance(name, str) and self._find(name) >= 0

    @property
    def names(self) -> Any:
        """Names of all files, a pyarrow large_string array, sorted by their bytes."""
        if self._names is None:
            import pyarrow.compute as pc

            whole = self._index.names.slice(self._start, len(self))
            self._names = pc.utf8_slice_codeunits(whole, len(self.prefix)) if self.prefix else whole
        return self._names

    def place(self, name: str) -> int:
        """Find the place of a file.

        Parameters
        ----------
        name : str
            Its name.

        Raises
        ------
        DataError
            The file does not exist; the message suggests similar names.

        """
        place = self._find(name)
        if place < 0:
            nearest = self._bisected(name)
            around = self.names[max(0, nearest - _NEAR) : nearest + _NEAR].to_pylist()
            raise DataError(f"{shown(self.prefix + name)} not found in {self._shown('')}{did_you_mean(name, around)}")
        return place

    def places(self, names: Sequence[str] | Any) -> Places:
        """Find the places of many files.

        Parameters
        ----------
        names : sequence of str, or pyarrow array of texts
            Their names.

        Returns
        -------
        (len(names),) int64
            Their places; −1 for names without a file.

        """
        if len(names) < _HASHED_FROM * len(self):
            texts = names.to_pylist() if hasattr(names, "to_pylist") else names
            return np.array([self._find(name) for name in texts], np.int64)
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(names, pa.ChunkedArray):
            names = names.combine_chunks()
        sought = names if isinstance(names, pa.Array) else pa.array(names, pa.large_string())
        places = pc.index_in(sought.cast(pa.large_string()), value_set=self.names)
        return as_numpy(pc.fill_null(places, -1)).astype(np.int64)

    def under(self, folder: str) -> "MemberIndex":
        """Select the files below a folder, with names relative to it; none where there is no such folder.

        Parameters
        ----------
        folder : str
            Name of the folder, with or without ``/`` at the end.

        """
        below = folder.rstrip("/") + "/" if folder.strip("/") else ""
        # "0" is the letter after "/"
        first, last = (self._bisected(below[:-1] + end) for end in "/0") if below else (0, len(self))
        return self._slice(self.prefix + below, self._start + first, self._start + last)

    def above(self) -> "MemberIndex":
        """Select the files of the folder that contains this one, with names relative to it; all where there is none."""
        outer = self.prefix.rstrip("/").rpartition("/")[0]
        return self._slice("", 0, len(self._index)).under(outer)

    def matching(self, pattern: str) -> tuple[Places, dict[str, Any]]:
        """Find all files whose whole name matches.

        Parameters
        ----------
        pattern : str
            Regular expression in the syntax of RE2 (neither look-around nor back references).

        Returns
        -------
        places : (m,) int64
            Places of the files, ascending.
        groups : dict of str to pyarrow array of m strings
            Matches of the named groups of the expression, ``""`` where a group did not match.

        """
        import pyarrow.compute as pc

        names = self._index.names.slice(self._start, len(self))
        whole = f"^{_quoted(self.prefix)}(?:{pattern})$"
        if "(?P<" not in pattern:
            return find_matches(names, whole), {}
        matches = pc.extract_regex(names, whole)
        places = pc.indices_nonzero(matches.is_valid())
        kept = matches.take(places)
        groups = {field.name: pc.struct_field(kept, field.name) for field in matches.type}
        return as_numpy(places).astype(np.int64), groups

    def read(self, place: int, limit: int | None = None) -> bytes:
        """Read a whole file; its checksum in a zip is verified when a process first reads it.

        Parameters
        ----------
        place : int
            Place of the file.
        limit : int or None, bytes
            Maximum size to read.

        Raises
        ------
        DataError
            The file is larger, missing, unreadable, damaged or encrypted.
        RowError
            The place is out of range.

        """
        if self._archive is None:
            return read_file(self._path(place), limit)
        whole = self._checked(place)
        row = self._index.row(whole)
        if limit is not None and row.size > limit:
            raise too_long(self.label(place), row.size, limit)
        return self._archive.read(whole, row, partial(self.label, place))

    def stretch(self, place: int, offset: int, length: int) -> bytes | None:
        """Read some bytes of a file; checksums are not verified.

        Parameters
        ----------
        place : int
            Place of the file.
        offset, length : int, bytes
            Offset of the bytes in the file, and their number.

        Returns
        -------
        bytes or None
            Fewer where the file ends before; None where the file is deflated and must be read whole.

        Raises
        ------
        DataError
            The file is missing, unreadable or encrypted, or the archive has changed.
        RowError
            The place is out of range, or `offset` or `length` is negative.

        """
        if offset < 0 or length < 0:
            raise RowError(f"offset and length must be 0 or more, not {offset} and {length}")
        if self._archive is None:
            return read_file_stretch(self._path(place), offset, length)
        row = self._index.row(self._checked(place))
        return self._archive.stretch(row, offset, length, partial(self.label, place))

    def begin(self, place: int, length: int) -> bytes:
        """Read the first bytes of a file, fewer where it ends before; a large one is not unpacked for them."""
        if self._archive is None:
            return read_file_stretch(self._path(place), 0, length)
        row = self._index.row(self._checked(place))
        return self._archive.begin(row, length, partial(self.label, place))

    def label(self, place: int) -> str:
        """Name of a file in messages: its path, or the archive and its name there."""
        return self._shown(self._index.name(self._checked(place)).decode())

    def path(self, place: int) -> Path | None:
        """Path of a file on the disk, None inside an archive."""
        path = self._path(place)
        return Path(os.fsdecode(path)) if self._archive is None else None

    @property
    def identity(self) -> tuple[int, str]:
        """Checksum of all files of the source, and the folder inside it: another listing has others."""
        return self._index.digest, self.prefix

    def _slice(self, prefix: str, start: int, stop: int) -> "MemberIndex":
        return MemberIndex(self.source, self._top, self._index, self._archive, prefix, start, stop)

    def _shown(self, name: str) -> str:
        between = os.sep if self._archive is None else ": "
        return f"{shown(str(self.source))}{between}{shown(name)}" if name else shown(str(self.source))

    def _checked(self, place: int) -> int:
        """Place in the whole index."""
        if not 0 <= place < len(self):
            raise RowError(f"place {place} is out of range: {self!r} has places 0 to {len(self) - 1}")
        return self._start + int(place)

    def _path(self, place: int) -> bytes:
        return self._top + b"/" + as_bytes(self._index.name(self._checked(place)))

    def _bisected(self, name: str) -> int:
        """Place that a file of that name has, or would have."""
        whole = (self.prefix + name).encode("utf-8", "surrogatepass")
        return bisect_left(range(self._start, self._stop), whole, key=self._index.name)

    def _find(self, name: str) -> int:
        place = self._bisected(name)
        whole = (self.prefix + name).encode("utf-8", "surrogatepass")
        return place if place < len(self) and self._index.name(self._start + place) == whole else -1


def open_members(
    source: Path | str, nested: bool = False, relist: bool = False, hidden: bool = False, inside: bool = False
) -> MemberIndex:
    """Open a folder, a zip or a tar; the content determines which.

    Its files are listed once, and the index is cached until the size or modification time of the source changes.
    Folders of fewer than 10,000 files are listed each time.

    Links are followed in a folder, and left out in an archive. Files and folders whose names begin with a dot are left
    out unless `hidden`; files of operating systems (``__MACOSX``, ``._*``, ``Thumbs.db``) are always left out. Deflated
    files are inflated when they are read.

    Parameters
    ----------
    source : Path or str
        Folder or archive.
    nested : bool
        Also list the files of tars inside a tar, as ``cars.tar/1.mat``.
    relist : bool
        List the files again, and replace the cached index: for file systems whose times do not show changes.
    hidden : bool
        Also list hidden files, and those in hidden folders.
    inside : bool
        Leave out links of a folder that lead out of it, with a warning.

    Raises
    ------
    DataError
        The source is missing, unreadable, damaged or compressed as a whole, or has names that lead out of it.

    Examples
    --------
    >>> import tempfile, zipfile
    >>> path = Path(tempfile.mkdtemp()) / "cars.zip"
    >>> with zipfile.ZipFile(path, "w") as file:
    ...     file.writestr("cars/list.txt", "a car")
    >>> members = open_members(path).under("cars")
    >>> members.names.to_pylist(), members.read(0)
    (['list.txt'], b'a car')

    """
    source = Path(source)
    return _of_index(source, load_index(source, nested, relist, hidden, inside))


def _of_index(source: Path, index: Index) -> MemberIndex:
    return MemberIndex(source, os.fsencode(source.absolute()), index, index.archive(source), "", 0, len(index))


def _reopen(source: str, prefix: str, digest: int, nested: bool, hidden: bool, inside: bool = False) -> MemberIndex:
    """Open in this process what was pickled in another one.

    The index that was kept then still holds for a folder into which more files were written, such as those of a run.
    """
    index = find_kept_index(Path(source), digest, nested, hidden, inside)
    if index is None:
        index = load_index(Path(source), nested, hidden=hidden, inside=inside)
    if index.digest != digest:
        raise DataError(f"{source} has changed since the dataset was opened; open it again")
    return _of_index(Path(source), index).under(prefix)


def _unpacked(source: str, prefix: str, about: About, batch: Any) -> MemberIndex:
    """Make in this process what was pickled in another one."""
    return _of_index(Path(source), Index(about, batch)).under(prefix)


def _quoted(text: str) -> str:
    """Text as an expression that matches it."""
    return _SPECIAL.sub(r"\\\1", text)
