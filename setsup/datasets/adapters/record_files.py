"""Byte ranges of record files in a folder, in an uncompressed archive, or in a compressed zip.

Files in a folder, a tar or an uncompressed zip are read at random. Compressed files are unpacked whole into a small
cache per process: many ranges of few files are cheap, ranges of many files cost as much as unpacking them. ``prepare``
unpacks all of them once, one after the other, into an array next to the archive, which is then read at random too.
"""

import hashlib
import logging
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Places
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex
from setsup.files.disk import read_errors
from setsup.files.mapped import check_mapped
from setsup.files.prepared import PreparedArray

__all__ = ["RecordFiles"]

_KEPT = 128 << 20  # bytes of unpacked files that a process keeps
_BLOCK = 64 << 20  # bytes of the prepared array that are made at a time
_MOST_RATIO = 10  # of records in a zip: images are packed already

_log = logging.getLogger("setsup")


@dataclass(slots=True)
class _Held:
    """What one process has open."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    looked: bool = False
    prepared: npt.NDArray[Any] | None = None
    unpacked: OrderedDict[int, bytes] = field(default_factory=OrderedDict)
    misses: int = 0


class RecordFiles:
    """Record files of a release, read completely or in ranges.

    `places` (files,) int64.

    Attributes
    ----------
    sizes : (files,) int64, bytes
        Lengths of the files, unpacked.

    """

    def __init__(self, members: MemberIndex, places: Places) -> None:
        self._members = members
        self._places = places
        self.sizes: npt.NDArray[np.int64] = np.asarray(members.sizes)[places]
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self._held: dict[int, _Held] = {}
        # asked for with every stretch, and made again slower than one is read
        self._paths: dict[int, str | None] = {}
        self._labels: dict[int, str] = {}

    def __len__(self) -> int:
        """Count the files."""
        return len(self._places)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what this process has open."""
        return {**self.__dict__, "_held": {}, "_paths": {}, "_labels": {}}

    @property
    def source(self) -> Path:
        """The folder, or the archive."""
        return self._members.source

    def label(self, file: int) -> str:
        """Name of a file in messages."""
        label = self._labels.get(file)
        if label is None:
            label = self._labels[file] = self._members.label(int(self._places[file]))
        return label

    def content(self, file: int) -> bytes:
        """Read a whole file."""
        limit = None if os.path.isdir(self.source) else _MOST_RATIO * _state(self.source)[0]
        return self._members.read(int(self._places[file]), limit)

    def read(self, file: int, offset: int, length: int) -> bytes:
        """Read a range of a file."""
        path = self._path(file)
        if path is None:
            stretch = self._members.stretch(int(self._places[file]), offset, length)
            content = self._unpacked(file, offset, length) if stretch is None else stretch
        else:
            content = _of_file(path, offset, length)
        if len(content) != length:
            raise DataError(f"{self.label(file)} was truncated after it was opened; open the dataset again")
        return content

    def prepare(self) -> Path | None:
        """Unpack the compressed files of an archive once into an array next to it; do nothing if there are none."""
        from setsup.files.prepare import prepare_array
        from setsup.progress import progress

        if all(self._members.stretch(member, 0, 0) is not None for member in self._places.tolist()):
            return None
        last: tuple[int, bytes] = (-1, b"")

        def fill(start: int, stop: int, out: npt.NDArray[Any]) -> None:
            nonlocal last
            at = start
            while at < stop:
                file = int(np.searchsorted(self._starts, at, side="right")) - 1
                if last[0] != file:
                    last = file, self.content(file)
                begin = at - int(self._starts[file])
                piece = last[1][begin : begin + stop - at]
                if not piece:
                    raise DamagedFile(f"{self.label(file)} has fewer bytes than the header of its archive specifies")
                out[at - start : at - start + len(piece)] = np.frombuffer(piece, np.uint8)
                at += len(piece)

        with progress(int(self._starts[-1]), f"preparing {self.source.name}", "B") as advance:
            made = prepare_array(self._array(), _BLOCK, fill, advance=advance)
        self._held.clear()  # whoever reads next looks for the array
        return made

    def identity(self) -> str:
        """Identify this version of the files: their location, names, sizes and times of modification."""
        digest = hashlib.sha256(os.fsencode(self.source.resolve()))
        paths = [self._path(file) for file in range(len(self))]
        if None in paths:
            digest.update(" ".join(map(str, _state(self.source))).encode())
        for file, path in enumerate(paths):
            name = self.label(file).removeprefix(str(self.source))
            size, changed = (int(self.sizes[file]), 0) if path is None else _state(path)
            digest.update(f"\n{size} {changed} ".encode() + os.fsencode(name))
        return digest.hexdigest()[:32]

    def _path(self, file: int) -> str | None:
        """Where a file lies in a folder, None in an archive."""
        if file not in self._paths:
            path = self._members.path(int(self._places[file]))
            self._paths[file] = None if path is None else str(path)
        return self._paths[file]

    def _array(self) -> PreparedArray:
        return PreparedArray(self.source, "records", (int(self._starts[-1]),), "uint8")

    def _unpacked(self, file: int, offset: int, length: int) -> bytes:
        # keyed by process: after a fork, a lock that another thread of the parent held would stay locked for ever
        held = self._held.get(os.getpid()) or self._held.setdefault(os.getpid(), _Held())
        with held.lock:
            if not held.looked:
                held.prepared, held.looked = self._array().open(), True
            if held.prepared is not None:
                check_mapped(held.prepared)
                start = int(self._starts[file]) + offset
                return held.prepared[start : start + length].tobytes()
            content = held.unpacked.pop(file, None)
            if content is None:
                content = self.content(file)
                held.misses += 1
                if held.misses == len(self) + 1:
                    _log.warning(
                        "%s is compressed, so each view decompresses a whole file of records; run `setsup prepare "
                        "shapenet-renderings` once to unpack it (a folder or an uncompressed archive needs no "
                        "preparation)",
                        self.source,
                    )
            held.unpacked[file] = content
            while len(held.unpacked) > 1 and sum(map(len, held.unpacked.values())) > _KEPT:
                held.unpacked.popitem(last=False)
            return content[offset : offset + length]


def _state(path: Path | str) -> tuple[int, int]:
    """Size in bytes, and time of the last change in ns."""
    with read_errors(path):
        stat = os.stat(path)
    return stat.st_size, stat.st_mtime_ns


def _of_file(path: str, offset: int, length: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, length, offset)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise DamagedFile.unreadable(path, error) from error
