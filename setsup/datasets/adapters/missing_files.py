"""Rows whose files are listed and not there: they are left out, with one warning that counts them.

A part of a release is worth opening, and a lost file must not go unnoticed. Two cases differ: rows that hold something
without the missing file stay, such as the keypoints of a mesh, and a user's own table is refused, since other files
know its rows by their numbers.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from setsup.errors import DamagedFile
from setsup.files.roots import some

__all__ = ["counting_left_out", "refuse_twice", "warn_left_out"]

_log = logging.getLogger("setsup")
_counted: ContextVar[list[int] | None] = ContextVar("left out", default=None)


@contextmanager
def counting_left_out() -> Iterator[list[int]]:
    """Collect the numbers that warnings within tell, so that whoever counts rows does not tell them again."""
    counts: list[int] = []
    token = _counted.set(counts)
    try:
        yield counts
    finally:
        _counted.reset(token)


def refuse_twice(label: str, names: Sequence[str]) -> None:
    """Refuse a list that has one file twice."""
    if len(set(names)) < len(names):
        twice, times = Counter(names).most_common(1)[0]
        raise DamagedFile(f"{label} lists {twice} {times} times; expected it once")


def warn_left_out(where: object, what: str, lost: Sequence[str], total: int) -> None:
    """Warn once of listed files that are not there, with their number; nothing is said where none is.

    Raises
    ------
    DamagedFile
        Nothing is listed, or nothing of it is there.

    """
    if not total:
        raise DamagedFile(f"{where}: the lists of the release contain no {what}")
    if not lost:
        return
    if len(lost) == total:
        raise DamagedFile(
            f"{where} contains none of the {total:,} listed {what}, such as {lost[0]}",
            "fetch or unpack the release again, or remove the lists of another release",
        )
    if (counted := _counted.get()) is not None:
        counted.append(len(lost))
    _log.warning(
        "%s: %s of the %s listed %s are missing (%s); they are left out",
        *(where, f"{len(lost):,}", f"{total:,}", what, some(lost)),
    )
