"""Errors of disks as one sentence, and the space that is left."""

import errno
import gzip
import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setsup.errors import DamagedFile, DataError
from setsup.files.cache import cache_folder
from setsup.files.lfs import refuse_pointer

__all__ = [
    "disk_errors",
    "existing_folder",
    "make_folder",
    "need_readable",
    "need_regular",
    "need_space",
    "need_writable",
    "read_errors",
    "readable_size",
    "write_error",
]

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota on this disk is exceeded",
    errno.EFBIG: "the file would be larger than this disk allows",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EEXIST: "a file exists where a folder is required",
    errno.EISDIR: "a folder of this name exists",
    errno.ENAMETOOLONG: "the name is too long for this disk",
    errno.EIO: "the disk reports an input/output error",
    errno.ESTALE: "the connection to the network disk was lost",
}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CUT = re.compile(r"\d+ requested and \d+ written")  # what numpy says of a full disk, without a number


@contextmanager
def disk_errors(path: Path | str) -> Iterator[None]:
    """Turn errors of the disk while `path` is written into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno is None and _CUT.fullmatch(str(error)):
            raise write_error(OSError(errno.ENOSPC, ""), path) from error
        if error.errno not in _REASONS or not _concerns(error, Path(path)):
            raise
        raise write_error(error, path) from error
    except RuntimeError as error:
        # of torch, which ends its archive when a write has failed, and fails in words of its own
        first = error.__context__
        if not isinstance(first, OSError) or first.errno not in _FULL or not _concerns(first, Path(path)):
            raise
        raise write_error(first, path) from error


@contextmanager
def read_errors(label: object) -> Iterator[None]:
    """Turn errors while a file, gzipped or not, is read into one sentence; a Git LFS pointer is refused first."""
    if isinstance(label, Path):
        refuse_pointer(label)
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        file = label if isinstance(label, os.PathLike) else None
        raise DamagedFile(f"{label} is truncated or damaged ({error})", file=file) from error
    except OSError as error:
        raise DamagedFile.unreadable(label, error) from error


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, where they are missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(error, folder) from error


def write_error(error: OSError, path: Path | str) -> DataError:
    """Make the sentence for a refused write.

    Examples
    --------
    >>> import errno
    >>> print(write_error(OSError(errno.ENOSPC, "No space left on device"), "/full/index.arrow"))
    cannot write /full/index.arrow: the disk is full; free some space there or choose another folder

    """
    path = Path(path)
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    fix = "free some space there or choose another folder" if error.errno in _FULL else "choose a writable folder"
    if path.absolute().is_relative_to(cache_folder()):
        fix += " (set SETSUP_CACHE to another folder for the cache)"
    return DataError(f"cannot write {path}: {reason}; {fix}", file=path)


def need_readable(path: Path, expected: str) -> None:
    """Raise unless a path is a readable file."""
    # os.path, since Path.is_file raises where a folder may not be entered
    if not os.path.isfile(path):
        state = "is not a file" if os.path.exists(path) else "does not exist"
        raise DataError(f"{path} {state}; expected {expected}", file=path)
    with read_errors(path):
        path.open("rb").close()


def need_regular(path: Path) -> None:
    """Raise for pipes, sockets and devices, some of which block forever; missing files pass.

    Examples
    --------
    >>> import tempfile
    >>> pipe = Path(tempfile.mkdtemp(), "shards.json")
    >>> os.mkfifo(pipe)
    >>> need_regular(pipe)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    setsup.errors.DataError: ...shards.json is a pipe, a socket or a device, not a file; remove it, or ...

    """
    try:
        kind = os.stat(path).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise DataError(f"{path} is a pipe, a socket or a device, not a file; remove it, or choose another folder")


def need_writable(path: Path) -> None:
    """Raise where a file cannot be written, before long work for it starts; nothing is left behind.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> need_writable(folder / "new" / "report.png"), list(folder.iterdir())
    (None, [])

    """
    if os.path.isdir(path):
        raise write_error(OSError(errno.EISDIR, ""), path)
    # tried, since rights do not tell of disks that are read-only, full or none at all, such as /proc
    tried = existing_folder(path.parent) / f".setsup-{secrets.token_hex(6)}.tmp"
    try:
        tried.open("xb").close()
        tried.unlink()
    except OSError as error:
        raise write_error(error, path) from error


def existing_folder(folder: Path) -> Path:
    """Find the nearest folder above that exists, or the folder itself."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if os.path.exists(path))


def need_space(folder: Path | str, size: int, what: str) -> None:
    """Raise an error if a disk has too little space.

    Parameters
    ----------
    folder : Path or str
        Folder of the files; it does not have to exist yet.
    size : int
        Bytes to write.
    what : str
        Description of the work, for the message.

    Raises
    ------
    DataError
        Fewer than `size` bytes are free.

    Examples
    --------
    >>> need_space(".", 1, "one byte")

    """
    free = shutil.disk_usage(existing_folder(Path(folder))).free
    if free < size:
        raise DataError(
            f"{what} requires {readable_size(size)} in {folder}, but only {readable_size(free)} are available; free "
            "some space there, or choose another folder"
        )


def readable_size(size: int) -> str:
    """Format a number of bytes, in powers of 1000.

    Examples
    --------
    >>> readable_size(267_573_662), readable_size(4_542), readable_size(512)
    ('267.6 MB', '4.5 kB', '512 bytes')

    """
    if size < 1000:
        return f"{size} bytes"
    amount = float(size)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} TB"


def _concerns(error: OSError, path: Path) -> bool:
    """Whether the error is about writing `path`, not about another file that was read meanwhile."""
    if error.filename is None:
        return True
    # of a copy the second; that a disk is full is never said of what was read
    names = (error.filename, error.filename2) if error.errno in _FULL else (error.filename,)
    named = [Path(os.fsdecode(name)).absolute() for name in names if isinstance(name, str | bytes | os.PathLike)]
    # "or" second: the parents of the path, where a folder cannot be made
    return any(name.is_relative_to(path.absolute().parent) or path.absolute().is_relative_to(name) for name in named)
