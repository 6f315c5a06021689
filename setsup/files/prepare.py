"""Convert an array block by block; an interrupted conversion resumes where it was.

Blocks are written to ``<target>.part``, and recorded in ``<target>.journal`` with their checksums. A later run keeps
the recorded blocks that have their checksum and converts the others. Where the source or the array changed, it starts
again.
"""

import json
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np

from setsup.arrays import Array
from setsup.errors import DataError, SetsupError
from setsup.files.atomic import clear, settle, written
from setsup.files.builds import Journal, build_once, checksum, write_all
from setsup.files.disk import disk_errors, need_space
from setsup.files.prepared import HEADER, PreparedArray, SourceIdentity, beside, npy_header
from setsup.progress import Advance

__all__ = ["Check", "Fill", "prepare_array"]


Fill = Callable[[int, int, Array], None]
"""``fill(start, stop, out)`` writes rows ``start`` to ``stop − 1`` of the source into ``out``, (stop − start, ...)."""

Check = Callable[[int, int, Array], None]
"""``check(start, stop, written)`` compares those rows, mapped from the disk, with the source; DataError tells."""

_log = logging.getLogger("setsup")


def prepare_array(
    array: PreparedArray, rows: int, fill: Fill, check: Check | None = None, advance: Advance | None = None
) -> Path:
    """Convert an array out of its container, `rows` rows a block, unless that was done already.

    Two blocks are held in memory: one is filled while the one before is written. Other processes that prepare the
    same array wait for this one.
    """
    target = array.find() or array.place()

    def convert(target: Path) -> None:
        with disk_errors(target):
            clear(beside(target))
            _remove_outdated(array, target)
            _Conversion(array, target, rows).run(fill, check, advance or _silent)

    return build_once(target, lambda _: array.find(), convert, (_part(target), _journal(target)))


def _silent(n: int = 1, /) -> None:
    """Report no progress."""


def _part(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _journal(target: Path) -> Path:
    return target.with_name(target.name + ".journal")


def _remove_outdated(array: PreparedArray, target: Path) -> None:
    if target.exists():
        _log.warning("%s does not match the current %s; converting it again", target, array.source)
    # the description first: a new array must never meet an old description, nor the reverse
    beside(target).unlink(missing_ok=True)
    target.unlink(missing_ok=True)


class _Conversion:
    """One run of the conversion of one array, under its lock."""

    def __init__(self, array: PreparedArray, target: Path, rows: int) -> None:
        self.array, self.target, self.rows = array, target, rows
        self.part = _part(target)
        self.blocks = -(-array.shape[0] // rows)
        self.source = SourceIdentity.of(*array.made_of)
        made_of = {"size": self.source.size, "sha256": self.source.sha256}
        head = json.dumps({**array.description(self.source), "source": made_of, "rows": rows})
        self.journal = Journal(_journal(target), head)

    def run(self, fill: Fill, check: Check | None, advance: Advance) -> None:
        """Convert what is left, check it, and give the file its name."""
        try:
            with disk_errors(self.part):
                self._write(fill, advance)
                if not self.source.unchanged(*self.array.made_of):
                    raise DataError(f"{self.array.source} was changed while it was being converted; start again")
                if check is not None:
                    for start, stop in map(self._span, range(self.blocks)):
                        # mapped again for each block, since pages that were looked at count as memory in use
                        check(start, stop, self.array.map(self.part, start, stop))
                # described first: without the array itself the description counts for nothing
                with written(beside(self.target)) as part:
                    self.array.describe(part, self.source)
                settle(self.part, self.target)
        except SetsupError:
            # what is killed resumes later; what cannot succeed leaves nothing behind
            for left in (self.part, self.journal.path, beside(self.target)):
                with suppress(OSError):
                    left.unlink(missing_ok=True)
            raise

    def _write(self, fill: Fill, advance: Advance) -> None:
        recorded = self.journal.read() if self.part.exists() else {}
        held = self.part.stat().st_blocks * 512 if recorded else 0
        if not recorded:
            self.part.unlink(missing_ok=True)
        need_space(self.target.parent, max(self.array.size - held, 0), f"preparing {self.array.source.name}")
        part = os.open(self.part, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            os.ftruncate(part, self.array.size)
            write_all(part, memoryview(npy_header(self.array.shape, self.array.dtype)), 0)
            done = self._verify(part, recorded, advance)
            self.journal.start(done)
            self._convert(part, [block for block in range(self.blocks) if block not in done], fill, advance)
        finally:
            os.close(part)

    def _span(self, block: int) -> tuple[int, int]:
        return block * self.rows, min((block + 1) * self.rows, self.array.shape[0])

    def _verify(self, part: int, recorded: dict[int, int], advance: Advance) -> dict[int, int]:
        """Find the recorded blocks that the file really has."""
        done = {}
        for block, expected in recorded.items():
            start, stop = self._span(block)
            offset, size = HEADER + start * self.array.row_bytes, (stop - start) * self.array.row_bytes
            if 0 <= block < self.blocks and checksum(part, offset, size) == expected:
                done[block] = expected
                advance(stop - start)
        return done

    def _convert(self, part: int, blocks: list[int], fill: Fill, advance: Advance) -> None:
        shape = (min(self.rows, self.array.shape[0]), *self.array.shape[1:])
        buffers = [np.empty(shape, self.array.dtype) for _ in blocks[:2]]
        with ThreadPoolExecutor(1, "setsup-write") as writer, ThreadPoolExecutor(1, "setsup-read") as reader:
            writing: Future[int] | None = None
            for turn, block in enumerate(blocks):
                start, stop = self._span(block)
                out = buffers[turn % 2][: stop - start]
                # not on this thread: a Ctrl-C inside the container's library is lost in a callback that Python ignores
                reader.submit(fill, start, stop, out).result()
                if writing is not None:
                    advance(writing.result())
                writing = writer.submit(self._store, part, block, out)
            if writing is not None:
                advance(writing.result())

    def _store(self, part: int, block: int, filled: Array) -> int:
        """Write one block; returns its rows."""
        content = filled.reshape(-1).view(np.uint8).data
        self.journal.store(part, block, content, HEADER + block * self.rows * self.array.row_bytes)
        return len(filled)
