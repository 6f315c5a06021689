"""Rows of a rendered folder that is being filled, by any number of processes, which may be killed at any moment.

The arrays of a row are written in place. Once the disk has them, bits of the row are set in the progress file. The
bytes of a row depend on the row alone, so two processes may render the same one.

Machines that share the folder over a network need more care: where a part of a page was written, Linux' NFS client may
send the whole page, with older bytes of rows that another machine has written. It does not for files that are open for
synchronous writes (``O_DSYNC``) [1]_, which `shared` requests; rows are then written in few and long pieces, since each
waits for the disk.

References
----------
.. [1] Linux, ``fs/nfs/write.c``, ``nfs_can_extend_write``.

"""

import hashlib
import json
import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DataError
from setsup.files import disk_errors, written
from setsup.files.builds import write_all
from setsup.files.mapped import check_mapped
from setsup.files.prepared import HEADER
from setsup.rendered.layout import CAMERA, PARTS, PROGRESS, Layout
from setsup.rendered.modalities import BITS
from setsup.scenes import Camera, Scene

__all__ = ["RowFiles"]

Put = Callable[[int, Mapping[str, Array]], object]

_SECONDS = 1.0  # between two flushes; rows since the last one are lost by a kill


class RowFiles:
    """The files of one folder, open for reading and writing in one process."""

    def __init__(self, folder: Path, layout: Layout, shared: bool = False) -> None:
        self.folder, self.layout = folder, layout
        self._files: dict[str, int] = {}
        self._held: dict[str, dict[int, bytes]] = {name: {} for name in layout.arrays} if shared else {}
        self._waiting: dict[int, int] = {}  # bits of rows that are not in the progress file yet
        # a finished folder has no progress file, and is only read
        self.finished = not (folder / PROGRESS).exists()
        self._close = weakref.finalize(self, _close, self._files, self._held, self._waiting, layout.entry.itemsize)
        how = os.O_RDWR | os.O_CLOEXEC | (os.O_DSYNC if shared else 0)
        with disk_errors(folder):
            for name in () if self.finished else layout.arrays:
                self._files[name] = os.open(folder / f"{name}.npy", how)
            if not self.finished:
                self._files[PROGRESS] = os.open(folder / PROGRESS, how)
        self._maps: dict[str, Array] = {}
        if not self.finished:  # at once, since the file is removed when the folder is finished
            self._maps[PROGRESS] = np.asarray(np.memmap(folder / PROGRESS, layout.entry, "r", shape=layout.rows))
        self._named: set[int] = set()
        self._lock, self._flushed = Lock(), time.monotonic()

    def done(self, rows: npt.ArrayLike, bits: int) -> npt.NDArray[np.bool_]:
        """Which rows have all modalities of `bits`, (n,) bool."""
        index = np.asarray(rows, np.int64)
        if self.finished:
            return np.full(len(index), self.layout.full & bits == bits)
        check_mapped(self._maps[PROGRESS])
        there = self._maps[PROGRESS][index].astype(np.int64)
        with self._lock:
            waiting = np.array([self._waiting.get(row, 0) for row in index.tolist()], np.int64)
        return np.asarray((there | waiting) & bits == bits)

    def read(self, rows: Sequence[int], names: Sequence[str], put: Put) -> list[int]:
        """Pass the rows that are there to a function; returns the others."""
        if not self.layout.modalities.keys() >= set(names):
            return list(rows)
        bits = sum(BITS[name] for name in names)
        done = self.done(rows, bits)
        for name in names:
            if name not in self._maps:
                self._maps[name] = self.layout.arrays[name].map(self.folder / f"{name}.npy")
            check_mapped(self._maps[name])
        for row, there in zip(rows, done.tolist(), strict=True):
            if there:
                put(row, {name: self._maps[name][row] for name in names})
        return [row for row, there in zip(rows, done.tolist(), strict=True) if not there]

    def keep(self, row: int, arrays: Mapping[str, Array], camera: Camera, scene: Scene) -> None:
        """Write a row: some of its modalities, its camera, and the names of its instances."""
        if self.finished or not (self.folder / PROGRESS).exists():  # another process may have finished it
            return
        told = {name: array for name, array in arrays.items() if name in self.layout.modalities}
        cameras = {f"camera_{name}": getattr(camera, name) for name in CAMERA}
        for name, array in (*told.items(), *cameras.items(), ("names", np.uint64(self._names_key(scene)))):
            self._write(name, row, array)
        with self._lock:
            self._waiting[row] = self._waiting.get(row, 0) | sum(BITS[name] for name in told)
        if time.monotonic() - self._flushed > _SECONDS:
            self.flush()

    def mark(self, rows: npt.ArrayLike) -> None:
        """Mark rows as complete that other processes of this machine have written, once the disk has them."""
        with self._lock:
            self._waiting |= dict.fromkeys(np.asarray(rows, np.int64).tolist(), self.layout.full)
        self.flush()

    def flush(self) -> None:
        """Wait until the disk has the rows written so far, and mark them in the progress file."""
        with self._lock, disk_errors(self.folder / PROGRESS):
            _flush(self._files, self._held, self._waiting, self.layout.entry.itemsize)
            self._flushed = time.monotonic()

    def close(self) -> None:
        """Flush, and close the files."""
        with disk_errors(self.folder / PROGRESS):
            self._close()

    def _write(self, name: str, row: int, array: Any) -> None:
        about = self.layout.arrays[name]
        value = np.asarray(array)
        if value.shape != about.shape or value.dtype != about.dtype:
            raise DataError(
                f"{name} of row {row} was rendered as {value.dtype} {value.shape}, not {about.dtype} {about.shape}"
            )
        if self._held:
            with self._lock:
                self._held[name][row] = value.tobytes()
            return
        path = self.folder / f"{name}.npy"
        with disk_errors(path):
            write_all(self._files[name], memoryview(value.tobytes()), HEADER + row * about.row_bytes)

    def _names_key(self, scene: Scene) -> int:
        """Key of the names of a scene, which the first process that has them writes."""
        content = json.dumps({str(number): name for number, name in sorted(scene.names.items())}, ensure_ascii=False)
        digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
        key = int.from_bytes(digest, "big")
        if key not in self._named:
            path = self.folder / PARTS / f"{key:016x}.json"
            if not path.exists():
                with written(path) as part:
                    part.write_text(content, encoding="utf-8")
            self._named.add(key)
        return key


def _flush(files: Mapping[str, int], held: Mapping[str, dict[int, bytes]], waiting: dict[int, int], size: int) -> None:
    """Write what is held, and then the bits of rows that wait, in entries of a size in bytes."""
    if not waiting:
        return
    for name, rows in held.items():
        for first, content in _runs(rows):
            write_all(files[name], memoryview(content), HEADER + first * len(rows[first]))
        rows.clear()
    for name, file in files.items():
        if name != PROGRESS:
            os.fsync(file)
    progress = {}
    for row, bits in waiting.items():
        there = int.from_bytes(os.pread(files[PROGRESS], size, row * size), "little")
        progress[row] = (there | bits).to_bytes(size, "little")
    for first, content in _runs(progress):
        write_all(files[PROGRESS], memoryview(content), first * size)
    waiting.clear()


def _runs(rows: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Join rows that follow one another: number of the first, and their content."""
    parts: list[bytes] = []
    first = 0
    for row in sorted(rows):
        if row != first + len(parts):
            if parts:
                yield first, b"".join(parts)
            first, parts = row, []
        parts.append(rows[row])
    if parts:
        yield first, b"".join(parts)


def _close(files: dict[str, int], held: Mapping[str, dict[int, bytes]], waiting: dict[int, int], size: int) -> None:
    try:
        _flush(files, held, waiting, size)
    finally:
        while files:
            os.close(files.popitem()[1])
