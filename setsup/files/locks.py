"""Locks between processes and threads: a lock file next to the file that is written."""

import errno
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from setsup.errors import DataError
from setsup.files.cache import cache_folder
from setsup.files.disk import disk_errors, make_folder, write_error

if TYPE_CHECKING:
    from filelock import FileLock

__all__ = ["clear_lock", "lock_file", "locked"]

_log = logging.getLogger("setsup")
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold the lock of `path` while the body runs; other processes and threads wait for it.

    The lock is a ``flock`` on ``<path>.lock``, which the system releases when its holder exits for any reason. The file
    is removed at the end. If the folder is read-only, the lock file is in the cache folder. Waiting is logged once, at
    level INFO. A lock is not re-entrant.

    Parameters
    ----------
    path : Path or str
        The path to lock; its folder is created if it is missing.

    Raises
    ------
    DataError
        Neither the folder of `path` nor the cache folder can be written, or the disk does not support locks.

    Examples
    --------
    >>> import tempfile
    >>> with locked(Path(tempfile.mkdtemp()) / "index"):
    ...     pass

    """
    path = Path(path).absolute()
    lock = _acquired(path)
    try:
        yield
    finally:
        # still held: whoever waits notices that the name is gone, and makes a new lock
        with suppress(OSError):
            os.unlink(lock.lock_file)
        lock.release()


def lock_file(path: Path) -> Path:
    """Name the lock file of `path`, where its folder can be written."""
    return path.with_name(path.name + ".lock")


def clear_lock(path: Path) -> None:
    """Remove the lock file that a killed process left; one that another process holds stays."""
    if not os.path.exists(lock_file(path)):
        return
    from filelock import FileLock, Timeout

    lock = FileLock(lock_file(path))
    with suppress(Timeout, OSError):
        lock.acquire(blocking=False)
        os.unlink(lock.lock_file)
        lock.release()


def _acquired(path: Path) -> "FileLock":
    file = lock_file(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return _wait(file, path)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise write_error(error, path) from error
    # the same for every process that means the same thing, by whatever way it came there
    key = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    file = cache_folder() / "locks" / f"{key[:32]}.lock"
    make_folder(file.parent)
    with disk_errors(file):
        return _wait(file, path)


def _wait(file: Path, path: Path) -> "FileLock":
    from filelock import FileLock, Timeout

    # where no file can be made, as in /proc, filelock would try for ever
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
    lock = FileLock(file)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        _log.info("process %d is waiting for another process to write %s (%s)", os.getpid(), path, file)
        lock.acquire()
    except NotImplementedError as error:
        raise DataError(
            f"cannot lock {path}: its disk does not support locks; choose a folder on another disk"
        ) from error
    return lock
