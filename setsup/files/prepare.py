"""Make a prepared array, block by block: killed at any moment and started again, it goes on where it was.

Blocks are written to ``<target>.part``; after each the journal, ``<target>.journal``, gets a line with its checksum.
A later run checks the recorded blocks against their checksums, keeps those that agree and makes the others. The
journal's first line says what is made of what; where it differs, the work starts anew. At the end neither is left.
"""

import json
import logging
import os
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, SetsupError
from setsup.files.atomic import clear, settle, written
from setsup.files.disk import disk_errors, need_space
from setsup.files.locks import lock_file, locked
from setsup.files.prepared import HEADER, PreparedArray, SourceIdentity, beside, npy_header
from setsup.progress import Advance

__all__ = ["Check", "Fill", "prepare_array"]

Array = npt.NDArray[Any]

Fill = Callable[[int, int, Array], None]
"""``fill(start, stop, out)`` writes rows ``start`` to ``stop − 1`` of the source into ``out``, (stop − start, ...)."""

Check = Callable[[int, int, Array], None]
"""``check(start, stop, written)`` compares those rows, mapped from the disk, with the source; DataError tells."""

_log = logging.getLogger("setsup")
_PIECE = 1 << 20


def prepare_array(
    array: PreparedArray, rows: int, fill: Fill, check: Check | None = None, advance: Advance | None = None
) -> Path:
    """Convert an array out of its container, unless that was done already.

    Two blocks are held in memory: one is filled while the one before is written. Other processes that prepare the
    same array wait for this one.
    """
    found = array.find()
    # a kill right at the end leaves these
    if found is not None and not _journal(found).exists() and not lock_file(found).exists():
        return found
    target = array.place()
    with disk_errors(target), locked(target):
        try:
            # another process may have finished while this one waited
            found = array.find()
            if found is None:
                _remove_outdated(array, target)
                _Conversion(array, target, rows).run(fill, check, advance or _silent)
                found = target
            for left in (_part(target), _journal(target)):
                left.unlink(missing_ok=True)
            clear(beside(found))
        finally:
            # still held: whoever waits notices that the name is gone, makes a new lock, and looks again
            with suppress(OSError):
                lock_file(target).unlink(missing_ok=True)
    return found


def _silent(n: int = 1, /) -> None:
    """Tell nobody."""


def _part(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _journal(target: Path) -> Path:
    return target.with_name(target.name + ".journal")


def _remove_outdated(array: PreparedArray, target: Path) -> None:
    if target.exists():
        _log.warning("%s does not belong to %s as it is now; it is made anew", target, array.source)
    # the description first: a new array must never meet an old description, nor the reverse
    beside(target).unlink(missing_ok=True)
    target.unlink(missing_ok=True)


class _Conversion:
    """One run of the work on one array, under its lock."""

    def __init__(self, array: PreparedArray, target: Path, rows: int) -> None:
        self.array, self.target, self.rows = array, target, rows
        self.part, self.journal = _part(target), _journal(target)
        self.source = SourceIdentity.of(*array.made_of)
        made_of = {"size": self.source.size, "sha256": self.source.sha256}
        self.head = json.dumps({**array.description(self.source), "source": made_of, "rows": rows})

    def run(self, fill: Fill, check: Check | None, advance: Advance) -> None:
        """Do what is left to do, check it, and give the file its name."""
        try:
            with disk_errors(self.part):
                self._write(fill, advance)
                if not self.source.unchanged(*self.array.made_of):
                    raise DataError(f"{self.array.source} was changed while it was converted; start again")
                if check is not None:
                    self._compare(check)
                self._finish()
        except SetsupError:
            # what is killed goes on later; what cannot succeed leaves nothing behind
            for left in (self.part, self.journal, beside(self.target)):
                with suppress(OSError):
                    left.unlink(missing_ok=True)
            raise

    def _write(self, fill: Fill, advance: Advance) -> None:
        recorded = self._recorded()
        held = self.part.stat().st_blocks * 512 if recorded else 0
        if not recorded:
            self.part.unlink(missing_ok=True)
        need_space(self.target.parent, max(self.array.size - held, 0), f"preparing {self.array.source.name}")
        part = os.open(self.part, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            os.ftruncate(part, self.array.size)
            _write_all(part, memoryview(npy_header(self.array.shape, self.array.dtype)), 0)
            done = self._verified(part, recorded, advance)
            lines = [self.head, *map(_line, done, done.values())]
            self.journal.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            self._convert(part, [block for block in range(self._blocks()) if block not in done], fill, advance)
        finally:
            os.close(part)

    def _blocks(self) -> int:
        return -(-self.array.shape[0] // self.rows)

    def _span(self, block: int) -> tuple[int, int]:
        return block * self.rows, min((block + 1) * self.rows, self.array.shape[0])

    def _recorded(self) -> dict[int, int]:
        """Checksums of the blocks that an earlier run wrote; a line that was cut off ends the reading."""
        try:
            lines = self.journal.read_bytes().decode().split("\n")[:-1]
        except (FileNotFoundError, UnicodeDecodeError):
            return {}
        if not self.part.exists() or not lines or lines[0] != self.head:
            return {}
        found = {}
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                block, checksum = int(entry["block"]), int(entry["crc32"])
            except (ValueError, TypeError, LookupError):
                break
            if 0 <= block < self._blocks():
                found[block] = checksum
        return found

    def _verified(self, part: int, recorded: dict[int, int], advance: Advance) -> dict[int, int]:
        """Those of the recorded blocks that the file really holds."""
        done = {}
        for block, checksum in recorded.items():
            start, stop = self._span(block)
            offset, size = HEADER + start * self.array.row_bytes, (stop - start) * self.array.row_bytes
            if _checksum(part, offset, size) == checksum:
                done[block] = checksum
                advance(stop - start)
        return done

    def _convert(self, part: int, blocks: list[int], fill: Fill, advance: Advance) -> None:
        if not blocks:
            return
        shape = (min(self.rows, self.array.shape[0]), *self.array.shape[1:])
        buffers = [np.empty(shape, self.array.dtype) for _ in blocks[:2]]
        with (
            self.journal.open("ab") as journal,
            ThreadPoolExecutor(1, "setsup-write") as writer,
            ThreadPoolExecutor(1, "setsup-read") as reader,
        ):
            writing: Future[int] | None = None
            for turn, block in enumerate(blocks):
                start, stop = self._span(block)
                out = buffers[turn % 2][: stop - start]
                # not on this thread: a Ctrl-C inside the container's library is lost in a callback that Python ignores
                reader.submit(fill, start, stop, out).result()
                if writing is not None:
                    advance(writing.result())
                writing = writer.submit(self._store, part, journal.fileno(), block, out)
            if writing is not None:
                advance(writing.result())

    def _store(self, part: int, journal: int, block: int, filled: Array) -> int:
        """Write one block, and then its line in the journal; gives its rows."""
        content = filled.reshape(-1).view(np.uint8).data
        _write_all(part, content, HEADER + block * self.rows * self.array.row_bytes)
        os.fsync(part)
        line = memoryview(f"{_line(block, zlib.crc32(content))}\n".encode())
        os.write(journal, line)
        os.fsync(journal)
        return len(filled)

    def _compare(self, check: Check) -> None:
        for start, stop in map(self._span, range(self._blocks())):
            # mapped anew for each block, since pages that were looked at count as memory in use
            check(start, stop, self.array.map(self.part, start, stop))

    def _finish(self) -> None:
        # described first: without the array itself the description counts for nothing
        with written(beside(self.target)) as fresh:
            fresh.write_text(json.dumps(self.array.description(self.source), indent=1) + "\n", encoding="utf-8")
        settle(self.part, self.target)


def _line(block: int, checksum: int) -> str:
    return json.dumps({"block": block, "crc32": checksum})


def _checksum(file: int, offset: int, size: int) -> int:
    checksum = 0
    for start in range(offset, offset + size, _PIECE):
        checksum = zlib.crc32(os.pread(file, min(_PIECE, offset + size - start), start), checksum)
    return checksum


def _write_all(file: int, content: memoryview, offset: int) -> None:
    while content:
        count = os.pwrite(file, content, offset)
        content, offset = content[count:], offset + count
