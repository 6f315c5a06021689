"""Local copies of ranges of shards in a store: bounded, shared by all processes of the user.

Convention
----------
A shard has one sparse file, ``<key>`` in the folder ``shards`` of the cache: the bytes of the shard, followed by a byte
for each of its blocks of 512 bytes, 1 if the block is present. A tar consists of such blocks (POSIX ``pax``, *ustar
interchange format*), so a member read with the rest of its last block is present as a whole, without knowledge of the
members. A block is marked after it was written, so readers never see a partial block. There are no locks; two processes
that fetch the same block write the same bytes.

If more than the bound is allocated on the disk, whole files are removed, the least recently used first. A process that
has such a file open can still read it, and writes no more to it; the space is free once all processes have closed it,
which they do when they look for space themselves.
"""

import errno
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from setsup.files import readable_size

__all__ = ["BLOCK", "DEFAULT_BYTES", "Copy", "ShardCache"]

BLOCK = 512
"""Bytes per block."""

DEFAULT_BYTES = 16 << 30
"""Default bound on the bytes of all copies."""

_OPEN = 128  # open copies, each with a descriptor; many systems allow 1,024 per process
_SHARE = 64  # a process checks the total each time it has written this fraction of the bound
_TOUCHED = 30.0  # seconds between updates of the time of use
_log = logging.getLogger("setsup")


class ShardCache:
    """Copies of shards in a folder.

    A full or read-only disk is no error: nothing more is cached, which is logged once.
    """

    def __init__(self, folder: Path, bound: int) -> None:
        self.folder, self.bound = folder, bound
        self._copies: dict[str, Copy] = {}
        # minus what processes write between checks
        self._room = bound - bound // _SHARE - bound // 16
        self._unseen = bound  # bytes written since the last check; the first is before the first write
        self._writes = True

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder, self.bound)

    def open(self, key: str, size: int) -> "Copy | None":
        """Open the copy of a shard; create it if there is none."""
        copy = self._copies.pop(key, None)  # and back at the end: the least recently used come first
        if copy is None or copy.gone:
            copy = self._opened(key, size)
        if copy is not None:
            copy.touch()
            self._copies[key] = copy
            for first in list(self._copies)[:-_OPEN]:
                self._copies.pop(first, None)  # its file is closed after the last read
        return copy

    def keep(self, copy: "Copy", start: int, content: bytes | memoryview) -> None:
        """Store bytes of a shard, except those of partial blocks."""
        if not self._writes or not copy.writable or len(content) > self._room:
            return
        if self._unseen + len(content) > self.bound // _SHARE:
            self._evict(len(content))
            self._unseen = 0
        if copy.gone:  # removed just now, or by another process
            return
        try:
            self._unseen += copy.write(start, content)
        except OSError as error:
            self._stop(error)

    def drop(self, key: str) -> None:
        """Remove the copy of a shard, if there is one."""
        self._copies.pop(key, None)
        with suppress(OSError):
            (self.folder / key).unlink(missing_ok=True)

    def _opened(self, key: str, size: int) -> "Copy | None":
        path = self.folder / key
        try:
            if self._writes:
                self.folder.mkdir(parents=True, exist_ok=True)
                try:
                    return Copy(path, size, os.O_RDWR | os.O_CREAT)
                except ValueError:  # of another program, or truncated
                    self.drop(key)
                    return Copy(path, size, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._copies.clear()
                return None
            self._stop(error)
        except ValueError:
            return None
        try:  # in a folder that is read-only
            return Copy(path, size, os.O_RDONLY)
        except (OSError, ValueError):
            return None

    def _stop(self, error: OSError) -> None:
        """Stop writing, with a warning."""
        if self._writes:
            self._writes = False
            _log.warning(
                "cannot write to %s (%s): ranges of remote files are no longer cached; free some space, or set "
                "SETSUP_CACHE to another folder",
                self.folder,
                error.strerror or error,
            )

    def _evict(self, coming: int) -> None:
        """Remove copies until there is space; safe in several processes at once."""
        copies = sorted(self._listed())
        total = sum(size for _, size, _ in copies)
        for _, size, path in copies:
            if total + coming <= self._room:
                break
            with suppress(OSError):
                path.unlink(missing_ok=True)
            total -= size
            _log.info("%s was removed (%s) to make room", path, readable_size(size))
        for key, copy in list(self._copies.items()):
            if copy.gone:  # its space is free only when it is closed
                self._copies.pop(key, None)

    def _listed(self) -> Iterator[tuple[float, int, Path]]:
        """Time of last use, bytes on disk and path of each copy."""
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    if len(entry.name) == 64 and entry.is_file(follow_symlinks=False):
                        yield about.st_mtime, about.st_blocks * 512, Path(entry.path)


class Copy:
    """The cached blocks of one shard."""

    __slots__ = ("_file", "_touched", "size", "writable")

    def __init__(self, path: Path, size: int, flags: int) -> None:
        self.size, self.writable, self._touched = size, bool(flags & os.O_RDWR), 0.0
        self._file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        whole = size + _blocks(size)
        length = os.fstat(self._file).st_size
        if not length and self.writable:
            os.ftruncate(self._file, whole)  # like any process that creates it at the same time
        elif length != whole:
            raise ValueError

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # modules may be gone at shutdown
        try:
            close(self._file)
        except (AttributeError, OSError):  # it was never opened, or at shutdown
            pass

    @property
    def gone(self) -> bool:
        """Whether the file was removed."""
        return os.fstat(self._file).st_nlink == 0

    def touch(self) -> None:
        """Update the time of use."""
        now = time.monotonic()
        if self.writable and now - self._touched > _TOUCHED:
            self._touched = now
            with suppress(OSError):
                os.utime(self._file)

    def read(self, start: int, stop: int) -> bytes | None:
        """Bytes ``start … stop − 1`` of the shard; None unless all are present."""
        first, last = start // BLOCK, _blocks(stop)
        try:
            if os.pread(self._file, last - first, self.size + first).count(1) < last - first:
                return None
            content = os.pread(self._file, stop - start, start)
        except OSError:  # a failing disk counts as a miss
            return None
        return content if len(content) == stop - start else None

    def write(self, start: int, content: bytes | memoryview) -> int:
        """Store the whole blocks of some bytes; returns the number of bytes written."""
        stop = start + len(content)
        first, last = _blocks(start), _blocks(stop) if stop == self.size else stop // BLOCK
        if last <= first:
            return 0
        view = memoryview(content)[first * BLOCK - start : last * BLOCK - start]
        _write_all(self._file, view, first * BLOCK)
        _write_all(self._file, memoryview(bytes([1]) * (last - first)), self.size + first)
        return len(view)


def _blocks(size: int) -> int:
    """Number of blocks that some bytes occupy."""
    return -(-size // BLOCK)


def _write_all(file: int, content: memoryview, start: int) -> None:
    done = 0
    while done < len(content):  # a disk that fills up writes a part, then fails
        done += os.pwrite(file, content[done:], start + done)
