"""Small text files of a benchmark, such as lists and annotations: in its release or next to it."""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from setsup.errors import DamagedFile
from setsup.files.disk import need_readable, read_errors

if TYPE_CHECKING:  # it imports numpy, which the help of subcommands does not need
    from setsup.files.archives.members import MemberIndex

__all__ = ["Place", "comma_separated", "content_of", "find_beside", "label_of", "read_beside", "text_of"]

Place = tuple["MemberIndex", int] | Path
"""A file in a release, or one next to it."""


def text_of(content: bytes, label: str, fix: str = "fetch it again") -> str:
    r"""Decode a text, which is UTF-8; the mark that some editors put at its beginning is no part of it."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DamagedFile(f"{label} is not UTF-8 text ({error.reason} at byte {error.start:,})", fix) from None


def comma_separated(content: bytes) -> bytes:
    r"""Give a table that was saved again between semicolons or tabs as it is published, between commas.

    Examples
    --------
    >>> comma_separated(b'y;name\n0;"tapir, wild"\n'), comma_separated(b"y,name\n0,a;b\n")
    (b'y,name\n0,"tapir, wild"\n', b'y,name\n0,a;b\n')

    """
    head = content[: content.find(b"\n") + 1 or len(content)]
    others = [mark for mark in (";", "\t") if mark.encode() in head]
    if b"," in head or len(others) != 1:
        return content
    try:
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        rows = list(csv.reader(text, delimiter=others[0]))
    except (UnicodeDecodeError, csv.Error):  # whoever reads it says what is wrong
        return content
    table = io.StringIO(newline="")
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue().encode()


def find_beside(members: "MemberIndex", folders: Iterable[Path], names: Sequence[str]) -> Place | None:
    """Find the first of some names: in the release, else in folders."""
    for name in names:
        if name in members:
            return members, members.place(name)
    return next((folder / name for folder in folders for name in names if os.path.isfile(folder / name)), None)


def label_of(place: Place) -> str:
    """Name of a file in messages."""
    return str(place) if isinstance(place, Path) else place[0].label(place[1])


def content_of(place: Place, most: int, what: str) -> bytes:
    """Read a file, in the release or next to it."""
    return read_beside(place, most, what) if isinstance(place, Path) else place[0].read(place[1], most)


def read_beside(path: Path, most: int, what: str) -> bytes:
    """Read a file of the disk; parameters and errors are those of :func:`content_of`."""
    need_readable(path, what)
    with read_errors(path):
        size = path.stat().st_size
        if size > most:
            raise DamagedFile(f"{path} has {size:,} bytes, more than the limit of {most:,} for {what}")
        return path.read_bytes()
