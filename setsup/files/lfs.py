"""Git LFS pointers: what a repository that was cloned without Git LFS has in the place of its large files."""

import os
import stat
from pathlib import Path

from setsup.errors import DataError

__all__ = ["LARGEST_POINTER", "is_pointer", "pointer_error", "refuse_pointer"]

_MARK = b"version https://git-lfs"

LARGEST_POINTER = 1024
"""Bytes that a pointer may have, by its specification."""


def is_pointer(content: bytes) -> bool:
    r"""Whether a file with these first bytes is a pointer.

    Examples
    --------
    >>> is_pointer(b"version https://git-lfs.github.com/spec/v1\noid sha256:1f..."), is_pointer(b"version 2")
    (True, False)

    """
    return content.startswith(_MARK)


def pointer_error(label: object) -> DataError:
    """Make the error for a pointer that was given for a file."""
    file = label if isinstance(label, os.PathLike) else None
    return DataError(
        f"{label} is a Git LFS pointer, not the file itself; run `git lfs pull` in its repository",
        file=file,
    )


def refuse_pointer(path: Path) -> None:
    """Raise where a file is a pointer; what cannot be read passes, since its reader says why."""
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_POINTER:
            return
        with open(path, "rb") as file:
            head = file.read(len(_MARK))
    except OSError:
        return
    if is_pointer(head):
        raise pointer_error(path)
