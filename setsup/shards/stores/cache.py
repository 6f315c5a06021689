"""Local copies of what was read from shards in a store: bounded, shared by all processes of this user.

Convention
----------
A shard has one sparse file, ``<key>`` in the folder ``shards`` of the cache: as long as the shard, then a byte for each
of its blocks of 512 bytes, 1 where the block is there. A tar is made of such blocks (POSIX ``pax``, *ustar interchange
format*), so that a member which is read together with the rest of its last block is there as a whole, and nothing has
to be known of the members. A block is marked after it was written: whoever reads it in between sees that it is not
there. Nothing is locked; two that fetch the same block write the same bytes.

When more than the bound is allocated on the disk, whole files are removed, those first that were not used for longest.
Who has such a file open can read it on, and writes no more to it; the disk has its room back once each process that
writes has closed it, which it does when it looks for room itself.
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
"""Bytes that are kept together."""

DEFAULT_BYTES = 16 << 30
"""Bytes of all copies at most, where nothing else is said."""

_OPEN = 128  # copies, each with a descriptor, of which a process has 1,024 on many systems
_SHARE = 64  # a process looks at what all have written each time it has written this part of the bound
_TOUCHED = 30.0  # seconds after which a use is noted again
_log = logging.getLogger("setsup")


class ShardCache:
    """Copies of shards in a folder.

    A disk that is full or read-only is no error: what cannot be kept is not kept, which is said once in the log.
    """

    def __init__(self, folder: Path, bound: int) -> None:
        self.folder, self.bound = folder, bound
        self._copies: dict[str, Copy] = {}
        # less what this process and others write before they look again
        self._room = bound - bound // _SHARE - bound // 16
        self._unseen = bound  # bytes written since the folder was looked at: it is before anything is written
        self._writes = True

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder, self.bound)

    def open(self, key: str, size: int) -> "Copy | None":
        """Open the copy of a shard; it is made where there is none."""
        copy = self._copies.pop(key, None)  # and back at the end: the first in order are those not used for longest
        if copy is None or copy.gone:
            copy = self._opened(key, size)
        if copy is not None:
            copy.touch()
            self._copies[key] = copy
            for first in list(self._copies)[:-_OPEN]:
                self._copies.pop(first, None)  # its file is closed when nobody reads it any more
        return copy

    def keep(self, copy: "Copy", start: int, content: bytes | memoryview) -> None:
        """Keep bytes of a shard; those of blocks that are there in part only are not."""
        if not self._writes or not copy.writable or len(content) > self._room:
            return
        if self._unseen + len(content) > self.bound // _SHARE:
            self._evict(len(content))
            self._unseen = 0
        if copy.gone:  # just now, to make room, or by another process
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
                except ValueError:  # another program's, or cut off
                    self.drop(key)
                    return Copy(path, size, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._copies.clear()
                return None
            self._stop(error)
        except ValueError:
            return None
        try:  # in a folder that somebody else fills
            return Copy(path, size, os.O_RDONLY)
        except (OSError, ValueError):
            return None

    def _stop(self, error: OSError) -> None:
        """Write no more."""
        if self._writes:
            self._writes = False
            _log.warning(
                "%s cannot be written (%s): what is read from stores is not kept there any more; free some space, or "
                "name another folder with SETSUP_CACHE=/path/to/folder",
                self.folder,
                error.strerror or error,
            )

    def _evict(self, coming: int) -> None:
        """Remove copies until there is room; every process may do so at once."""
        found = sorted(self._listed())
        held = sum(size for _, size, _ in found)
        for _, size, path in found:
            if held + coming <= self._room:
                break
            with suppress(OSError):
                path.unlink(missing_ok=True)
            held -= size
            _log.info("%s was removed (%s) to make room", path, readable_size(size))
        for key, copy in list(self._copies.items()):
            if copy.gone:  # by this process or another; as long as it is open, the disk does without its room
                self._copies.pop(key, None)

    def _listed(self) -> Iterator[tuple[float, int, Path]]:
        """When each copy was used last, what it takes on the disk, and where it is."""
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    if len(entry.name) == 64 and entry.is_file(follow_symlinks=False):
                        yield about.st_mtime, about.st_blocks * 512, Path(entry.path)


class Copy:
    """What is there of one shard."""

    __slots__ = ("_file", "_touched", "size", "writable")

    def __init__(self, path: Path, size: int, flags: int) -> None:
        self.size, self.writable, self._touched = size, bool(flags & os.O_RDWR), 0.0
        self._file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        whole = size + _blocks(size)
        found = os.fstat(self._file).st_size
        if not found and self.writable:
            os.ftruncate(self._file, whole)  # as whoever makes it at the same moment does
        elif found != whole:
            raise ValueError

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # modules may be gone when this is called
        try:
            close(self._file)
        except (AttributeError, OSError):  # it was never opened; the system ends
            pass

    @property
    def gone(self) -> bool:
        """Whether the file was removed."""
        return os.fstat(self._file).st_nlink == 0

    def touch(self) -> None:
        """Note that it is used."""
        now = time.monotonic()
        if self.writable and now - self._touched > _TOUCHED:
            self._touched = now
            with suppress(OSError):
                os.utime(self._file)

    def read(self, start: int, stop: int) -> bytes | None:
        """Bytes ``start … stop − 1`` of the shard, None where they are not all there."""
        first, last = start // BLOCK, _blocks(stop)
        try:
            if os.pread(self._file, last - first, self.size + first).count(1) < last - first:
                return None
            content = os.pread(self._file, stop - start, start)
        except OSError:  # a disk that fails is as good as none
            return None
        return content if len(content) == stop - start else None

    def write(self, start: int, content: bytes | memoryview) -> int:
        """Keep the whole blocks of some bytes; how many bytes were written."""
        stop = start + len(content)
        first, last = _blocks(start), _blocks(stop) if stop == self.size else stop // BLOCK
        if last <= first:
            return 0
        view = memoryview(content)[first * BLOCK - start : last * BLOCK - start]
        _written(self._file, view, first * BLOCK)
        _written(self._file, memoryview(bytes([1]) * (last - first)), self.size + first)
        return len(view)


def _blocks(size: int) -> int:
    """How many blocks so many bytes begin."""
    return -(-size // BLOCK)


def _written(file: int, content: memoryview, start: int) -> None:
    done = 0
    while done < len(content):  # a disk that fills up takes a part, and then refuses
        done += os.pwrite(file, content[done:], start + done)
