"""Rows whose listed files are missing: they are left out, with one warning that counts them.

A part of a release is worth opening, but a missing file must not go unnoticed. There are two exceptions: rows that have
other content, such as the keypoints of a mesh, are kept; and a user's own table raises an error, since other files
refer to its rows by number.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from setsup.arrays import Rows
from setsup.errors import DamagedFile, short
from setsup.files.archives.members import MemberIndex
from setsup.files.roots import some

__all__ = ["counting_left_out", "present_files", "refuse_twice", "warn_left_out"]

_log = logging.getLogger("setsup")
_counted: ContextVar[list[int] | None] = ContextVar("left out", default=None)


@contextmanager
def counting_left_out() -> Iterator[list[int]]:
    """Collect the counts reported by warnings, so that code that counts rows does not report them again."""
    counts: list[int] = []
    token = _counted.set(counts)
    try:
        yield counts
    finally:
        _counted.reset(token)


def refuse_twice(label: str, names: Sequence[str]) -> None:
    """Refuse a list that contains a file twice."""
    if len(set(names)) < len(names):
        twice, times = Counter(names).most_common(1)[0]
        raise DamagedFile(f"{label} lists {twice} {times} times; expected each file once")


def warn_left_out(where: object, what: str, lost: Sequence[str], total: int) -> None:
    """Warn once about listed files that are missing, with their number.

    Raises
    ------
    DamagedFile
        When no files are listed, or all of them are missing.

    """
    if not total:
        raise DamagedFile(f"{where}: the lists of the release contain no {what}")
    if not lost:
        return
    if len(lost) == total:
        raise DamagedFile(
            f"{where} contains none of the {total:,} listed {what}, such as {short(lost[0])}",
            "fetch or unpack the release again, or remove lists that belong to another release",
        )
    if (counted := _counted.get()) is not None:
        counted.append(len(lost))
    _log.warning(
        "%s: %s of the %s listed %s are missing (%s); they are left out",
        *(where, f"{len(lost):,}", f"{total:,}", what, some([short(name) for name in lost])),
    )


def present_files(members: MemberIndex, what: str, files: Sequence[str]) -> tuple[Rows, Rows]:
    """Rows (k,) of the listed files that a release has, and their places (k,); warns of the others."""
    places = members.places(files)
    lost = np.flatnonzero(places < 0).tolist()
    warn_left_out(members.source, what, [files[row] for row in lost], len(files))
    rows = np.flatnonzero(places >= 0)
    return rows, places[rows]
