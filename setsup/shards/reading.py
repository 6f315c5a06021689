"""Bytes of shards: what gives them, and the tars of a folder mapped into memory."""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.files.archives.tar_headers import BLOCK, header_check
from setsup.files.lfs import refuse_pointer
from setsup.shards.layout import CRC32C, HEADER, Catalogue

__all__ = ["MAPS", "OPEN", "LocalReader", "Reader", "checksums", "remedy"]

MAPS = 4096
"""Tars that a reader maps at once; Linux allows a process 65,530 maps of all kinds."""

OPEN = 64
"""Tars of which a reader keeps a descriptor, which tells their size five times as fast as their path does."""


class Reader(Protocol):
    """Gives stretches of shards; may be called from several threads, and survives pickling and forks."""

    def read(
        self, shards: npt.NDArray[np.integer[Any]], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> list[memoryview]:
        """Bytes of shards, in the order asked for.

        `shards` (n,) integer array; `starts, sizes` (n,) int64, bytes.
        """
        ...

    def drop(self, shard: int) -> None:
        """Forget what is kept of a shard, since it is not what the index says."""
        ...


class LocalReader:
    """Tars of a folder, mapped into memory when they are first read.

    Of more than :data:`MAPS` tars those stay mapped that were read last; one that is let go of stays as long as
    somebody reads in it. The size of each is looked at again before a read, since a process that reads a page which a
    tar no longer has is killed by SIGBUS. Nothing here is locked, so that a fork finds all as it was; at worst two
    threads map the same tar.
    """

    def __init__(self, folder: Path, catalogue: Catalogue) -> None:
        self.folder, self.catalogue = folder, catalogue
        self._open: WeakSet[_Tar] = WeakSet()
        self._map = lru_cache(maxsize=MAPS)(partial(_map, folder, catalogue, self._open))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the maps, which belong to this process."""
        return LocalReader, (self.folder, self.catalogue)

    def __repr__(self) -> str:
        """Show the folder."""
        return f"LocalReader({str(self.folder)!r}, {len(self.catalogue.shards):,} shards)"

    def read(
        self, shards: npt.NDArray[np.integer[Any]], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> list[memoryview]:
        """Bytes of shards; see :meth:`Reader.read`."""
        numbers = shards.tolist()
        contents = {number: self._content(number) for number in set(numbers)}
        stretches = zip(numbers, starts.tolist(), (starts + sizes).tolist(), strict=True)
        return [contents[number][start:stop] for number, start, stop in stretches]

    def drop(self, shard: int) -> None:
        """Map the tars again; see :meth:`Reader.drop`."""
        self._map.cache_clear()

    def _content(self, shard: int) -> memoryview:
        """All bytes of a tar that is as long as when it was mapped."""
        tar = self._map(shard)
        if not tar.is_same():
            self.drop(shard)
            tar = self._map(shard)  # which says what is wrong, unless the file was put back meanwhile
        return tar.content


def remedy(check: str) -> str:
    """What to do where a tar is not the one that was indexed."""
    if check == CRC32C:
        return "fetch the tar again, or remove it and run the same `setsup shard` again"
    return "index it again with `setsup index`, or fetch it again"


class _Tar:
    """A tar that is mapped, and what tells whether it is still as long: a descriptor, or its path."""

    __slots__ = ("__weakref__", "_file", "_path", "_state", "content")

    def __init__(self, path: Path, content: memoryview, about: os.stat_result, file: int | None) -> None:
        self.content, self._file = content, file
        self._path, self._state = path, _state(about)

    def is_same(self) -> bool:
        """Whether the file that was mapped is as long as it was; without a descriptor, that of its name."""
        try:
            if self._file is not None:
                return os.lseek(self._file, 0, os.SEEK_END) == self._state[0]  # nobody else uses its position
            return _state(os.stat(self._path)) == self._state
        except OSError:
            return False

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # modules may be gone when this is called
        if self._file is not None:
            try:  # not `suppress`, which may be gone
                close(self._file)
            except OSError:
                pass


def _state(about: os.stat_result) -> tuple[int, int, int]:
    return about.st_size, about.st_ino, about.st_dev


def _map(folder: Path, catalogue: Catalogue, opened: "WeakSet[_Tar]", number: int) -> _Tar:
    """Map a tar, which must have the size that was indexed."""
    import pyarrow as pa

    path, size, advice = folder / catalogue.shards[number].name, catalogue.shards[number].size, remedy(catalogue.check)
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            raise DataError(f"{path} is not a file, but the catalogue lists a shard of this name; {advice}")
        if about.st_size != size:
            raise _changed(path, about.st_size, size, advice)
        # mapped by Arrow, since maps of the standard library keep a descriptor each
        with pa.memory_map(str(path)) as file:
            if file.size() != size:
                raise _changed(path, file.size(), size, advice)
            # one byte holds the whole map; to ask for all would have the system read the file ahead
            held = file.read_buffer(1)
    except FileNotFoundError:
        ours = catalogue.check == CRC32C
        fix = "run the same `setsup shard` again" if ours else "index the others again with `setsup index`"
        raise DataError(f"{path}, a shard listed in the catalogue, is missing; fetch it again, or {fix}") from None
    except OSError as error:
        if error.errno is None:  # it was opened, but not mapped
            raise DataError(
                f"{path} cannot be mapped into memory ({' '.join(str(error).split())}); copy it to another disk, or "
                "check the limits of memory maps (vm.max_map_count, ulimit -v)"
            ) from error
        raise DataError(f"{path} cannot be read: {os.strerror(error.errno)}") from error
    content = memoryview(pa.foreign_buffer(held.address, size, held)).cast("B") if size else memoryview(b"")
    kept = None
    if len(opened) < OPEN:
        with suppress(OSError):  # the path does as well
            kept = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    tar = _Tar(path, content, about, kept)
    if kept is not None:
        opened.add(tar)
    return tar


def _changed(path: Path, length: int, size: int, advice: str) -> DataError:
    refuse_pointer(path)
    return DataError(f"{path} has changed since it was indexed: it has {length:,} bytes, not {size:,}; {advice}")


def checksums(contents: Sequence[memoryview], check: str) -> list[int]:
    """Checksums of members, as an index has them."""
    if check == HEADER:
        return [header_check(bytes(content[:BLOCK])) for content in contents]
    from google_crc32c import value

    byte, array = np.dtype(np.uint8), np.frombuffer
    return [value(array(content, byte)) for content in contents]  # of a memoryview it would want a copy
