"""Files that are built once: one process builds, the others wait; an interrupted build resumes or starts again.

:func:`build_once` holds the lock while a file is built, and removes what an interrupted process left. Long builds
write a partial file block by block, and a :class:`Journal` of the blocks that the disk has.
"""

import json
import logging
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from setsup.errors import DataError
from setsup.files.atomic import clear
from setsup.files.disk import disk_errors
from setsup.files.locks import lock_file, locked

__all__ = ["Journal", "build_cached", "build_once", "checksum", "write_all"]

Found = TypeVar("Found")

_log = logging.getLogger("setsup")
_PIECE = 1 << 20


def build_once(
    path: Path,
    find: Callable[[Path], Found | None],
    build: Callable[[Path], object],
    leaves: Sequence[Path] = (),
) -> Found:
    """Find a file, or build it and find it; of several processes one builds and the others wait.

    `find` returns None where there is no usable file. `leaves` are files that only an interrupted build leaves.
    """
    content = find(path)
    if content is not None and not any(map(os.path.exists, (lock_file(path), *leaves))):
        return content
    try:
        with locked(path):
            content = find(path)  # another process may have been faster
            clear(path)
            if content is None:
                build(path)
                content = find(path)
            with disk_errors(path):
                for left in leaves:
                    left.unlink(missing_ok=True)
    except DataError:
        if content is None:
            raise
    if content is None:
        raise DataError(f"{path} cannot be read, although it was just written; check the disk")
    return content


def build_cached(
    path: Path, find: Callable[[Path], Found | None], make: Callable[[], Found], save: Callable[[Found, Path], object]
) -> Found:
    """Find a file in the cache, or make its content and save it; the content alone where it is not saved."""
    made: list[Found] = []
    failed: list[DataError] = []

    def find_or_made(path: Path) -> Found | None:
        content = find(path)
        return made[0] if content is None and made else content

    def build(path: Path) -> None:
        try:
            made.append(make())
        except DataError as error:
            failed.append(error)
            raise
        save(made[0], path)

    try:
        return build_once(path, find_or_made, build)
    except DataError as error:
        if failed:
            raise
        _log.warning("%s; each process builds it again", error)
    return made[0] if made else make()


class Journal:
    """The blocks of a partial file that the disk has, with their checksums: a line of JSON each.

    The first line says what is built; a journal with another first line counts for nothing.
    """

    def __init__(self, path: Path, head: str) -> None:
        self.path, self._head = path, head

    def read(self) -> dict[int, int]:
        """Read the checksums of the blocks; a line that was cut off ends the reading."""
        try:
            lines = self.path.read_bytes().decode().split("\n")[:-1]
        except (FileNotFoundError, UnicodeDecodeError):
            return {}
        checksums: dict[int, int] = {}
        for line in lines[1:] if lines and lines[0] == self._head else ():
            try:
                entry = json.loads(line)
                checksums |= {int(entry["block"]): int(entry["crc32"])}
            except (ValueError, TypeError, LookupError):
                break
        return checksums

    def start(self, done: Mapping[int, int]) -> None:
        """Write the journal with the blocks that are kept."""
        lines = [self._head, *map(_line, done, done.values())]
        self.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def store(self, file: int, block: int, content: memoryview, offset: int) -> None:
        """Write a block to the partial file, and record it once the disk has it."""
        write_all(file, content, offset)
        os.fsync(file)
        with self.path.open("ab") as journal:
            journal.write(f"{_line(block, zlib.crc32(content))}\n".encode())
            journal.flush()
            os.fsync(journal.fileno())


def checksum(file: int, offset: int, size: int) -> int:
    """CRC-32 of bytes of an open file."""
    crc = 0
    for start in range(offset, offset + size, _PIECE):
        crc = zlib.crc32(os.pread(file, min(_PIECE, offset + size - start), start), crc)
    return crc


def write_all(file: int, content: memoryview, offset: int) -> None:
    """Write bytes at a place of an open file, however few the system takes at a time."""
    while content:
        count = os.pwrite(file, content, offset)
        content, offset = content[count:], offset + count


def _line(block: int, checksum: int) -> str:
    return json.dumps({"block": block, "crc32": checksum})
