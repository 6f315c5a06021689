"""Unpack an untrusted archive into a folder."""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from setsup.errors import DamagedFile, DataError
from setsup.files.archives.archive import Archive
from setsup.files.archives.archive_format import is_gzip
from setsup.files.archives.member_index import Index, load_index
from setsup.files.archives.names import as_bytes, is_unwanted, shown
from setsup.files.archives.streams import stream_files
from setsup.files.atomic import written_folder
from setsup.files.disk import need_space
from setsup.progress import Advance, progress

__all__ = ["unpack"]


def unpack(archive: Path | str, folder: Path | str, limit: int | None = None) -> None:
    """Unpack a zip, a tar or a gzipped tar; the folder appears complete, or not at all.

    Nothing is written outside the folder. Links, devices, and files of operating systems (``__MACOSX``, ``.DS_Store``,
    ``._*``) are left out. If a name occurs twice, the last file is used. Modification times and permissions are not
    restored.

    Parameters
    ----------
    archive : Path or str
        The archive; its content determines the format.
    folder : Path or str
        Folder for the files; must be missing or empty.
    limit : int, optional, bytes
        Maximum total size of the files. No file may be larger than the archive states.

    Raises
    ------
    DataError
        The archive is unreadable, damaged, encrypted, larger than the limit, or has names that lead out of the
        folder; the folder is not empty; the disk is full or not writable.

    Examples
    --------
    >>> import tempfile, zipfile
    >>> place = Path(tempfile.mkdtemp())
    >>> with zipfile.ZipFile(place / "cars.zip", "w") as file:
    ...     file.writestr("cars/list.txt", "a car")
    >>> unpack(place / "cars.zip", place / "unpacked")
    >>> (place / "unpacked" / "cars" / "list.txt").read_text()
    'a car'

    """
    archive, folder = Path(archive), Path(folder)
    _need_empty(folder)
    what = f"unpacking {archive.name}"
    if is_gzip(archive):
        # how much it holds is not known before, but seldom less than it takes
        need_space(folder, archive.stat().st_size, what)
        with progress(archive.stat().st_size, what, "B") as advance:
            _write(_in_passing(archive, limit, advance), folder)
        return
    index = None if archive.is_dir() else load_index(archive)
    opened = None if index is None else index.archive(archive)
    if index is None or opened is None:
        raise DataError(f"{archive} is a folder; pass the archive to unpack")
    total = int(index.sizes.sum())
    if limit is not None and total > limit:
        raise _too_much(archive, limit)
    if int(index.stored.sum()) > index.about.size:
        raise DataError(f"{archive} contains files that overlap; it is damaged or malicious")
    need_space(folder, total, what)
    with progress(total, what, "B") as advance:
        _write(_by_place(opened, index, advance), folder)


Files = Iterable[tuple[bytes, Iterable[bytes]]]
"""Names, and the content of each in pieces, which is taken before the next name is."""


def _write(files: Files, folder: Path) -> None:
    with written_folder(folder) as part:
        top = os.fsencode(part)
        made = {top}
        for name, content in files:
            path = os.path.join(top, as_bytes(name))
            parent = os.path.dirname(path)
            if parent not in made:
                os.makedirs(parent, exist_ok=True)
                made.add(parent)
            # no link is ever made here, and none would be followed
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            with open(file, "wb") as out:
                out.writelines(content)


def _by_place(archive: Archive, index: Index, advance: Advance) -> Files:
    """Files of a zip or a plain tar, in the order of their offsets."""
    for row in np.argsort(index.offsets, kind="stable").tolist():
        file = index.row(row)
        yield file.name, archive.pieces(file, partial(_label, archive.path, file.name))
        advance(file.size)


def _in_passing(archive: Path, limit: int | None, advance: Advance) -> Files:
    """Files of a gzipped tar, in one pass from its beginning to its end."""
    taken = 0
    for name, size, content in stream_files(archive, advance):
        if is_unwanted(name):
            continue
        taken += size
        if limit is not None and taken > limit:
            raise _too_much(archive, limit)
        yield name.encode(), content


def _need_empty(folder: Path) -> None:
    try:
        free = not os.path.lexists(folder) or not os.listdir(folder)
    except OSError:
        free = False
    if not free:
        raise DataError(f"{folder} is not empty; remove it, or unpack into another folder")


def _too_much(archive: Path, limit: int) -> DataError:
    return DamagedFile(f"{archive} contains more than the expected {limit:,} bytes")


def _label(archive: Path, name: bytes) -> str:
    return f"{archive}: {shown(name.decode())}"
