"""The files of a zip, from its central directory; and the local header that precedes each file.

Convention
----------
Integers are little-endian. Names are UTF-8 where a flag or an extra field says so, or where they can be, else code page
437. An archive may be larger than 4 GiB (zip64), and may have something else before it (``shift``).
"""

import logging
import os
import stat
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Integers
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.archive import Archive, Label, Row
from setsup.files.archives.listing import DEFLATED, ENCRYPTED, STORED, Listing
from setsup.files.archives.names import as_text, clean_name, clean_names, shown
from setsup.files.archives.plain_files import read_range
from setsup.progress import progress

__all__ = ["ZipArchive", "has_end", "list_zip"]

_LOCAL = struct.Struct("<4s5H3I2H")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_LENGTHS = struct.Struct("<3H")
_ENTRY = np.dtype(
    [
        ("mark", "S4"),
        ("made", "<u2"),
        ("needed", "<u2"),
        ("flags", "<u2"),
        ("method", "<u2"),
        ("time", "<u4"),
        ("crc", "<u4"),
        ("stored", "<u4"),
        ("size", "<u4"),
        ("name", "<u2"),
        ("extra", "<u2"),
        ("comment", "<u2"),
        ("disk", "<u2"),
        ("inner", "<u2"),
        ("mode", "<u4"),
        ("offset", "<u4"),
    ]
)
_FULL, _FULL_SHORT = 0xFFFFFFFF, 0xFFFF
_UTF8 = 1 << 11
_LOCKED = 1 | 1 << 6 | 1 << 13  # encrypted, strongly, and with headers that hide what they say
_KINDS = {stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR}
_SLACK = 96  # bytes of extra fields that a local header seldom exceeds; they are not in the directory
_MOST = 1032  # times its size is the most that deflate can grow
_log = logging.getLogger("setsup")


def list_zip(file: int, size: int, source: Path) -> Listing:
    """List the files of a zip.

    Folders, links and devices are left out. What the directory says is checked against the size of the archive.
    """
    directory, start, shift, count = _directory(file, size, source)
    with progress(count, f"listing {source.name}", "files") as advance:
        begins = _places(directory, source)
        if len(begins) & _FULL_SHORT != count & _FULL_SHORT:
            raise _damaged(
                source, f"its central directory has {len(begins):,} entries, but its end record declares {count:,}"
            )
        entries = np.frombuffer(b"".join([directory[begin : begin + 46] for begin in begins]), _ENTRY)
        ends = np.array(begins, np.int64) + 46 + entries["name"]
        names = [directory[begin + 46 : end] for begin, end in zip(begins, ends.tolist(), strict=True)]
        stored, sizes, offsets = _wide(entries, directory, ends, source)
        _decode(names, entries, directory, ends)
        advance(len(begins))
    kept = _files(names, entries)
    links = len(names) - len(kept) - sum(name.endswith(b"/") for name in names)
    if links:
        _log.info("%s: %d links or devices are left out", source, links)
    offsets += shift
    methods = np.where(entries["flags"] & _LOCKED, ENCRYPTED, entries["method"].astype(np.uint32))
    _check(names, kept, offsets, stored, sizes, methods, start, source)
    return Listing(
        as_text(clean_names([names[row] for row in kept.tolist()], source)),
        offsets=offsets[kept],
        stored=stored[kept],
        sizes=sizes[kept],
        methods=methods[kept].astype(np.uint32),
        checks=entries["crc"][kept].astype(np.uint32),
    )


class ZipArchive(Archive):
    """A zip whose files are read."""

    has_checksums = True

    def header(self, row: Row) -> tuple[int, int]:
        """Where the local header of a file begins, and how many bytes of it to read."""
        return row.offset, _LOCAL.size + len(row.name) + _SLACK

    def check_header(self, file: int, head: bytes, row: Row, label: Label) -> int:
        """Compare a local header with the listing; returns the bytes from its beginning to the content."""
        if len(head) < _LOCAL.size or not head.startswith(b"PK\x03\x04"):
            raise self.moved(label)
        _, _, flags, method, *_, length, extra = _LOCAL.unpack_from(head)
        name_end = _LOCAL.size + length
        if method != row.method:
            raise self.moved(label)
        if head[_LOCAL.size : name_end] != row.name:
            # written in another way than the listing writes it, or another file
            if len(head) < name_end + extra:
                head = read_range(file, row.offset, name_end + extra)
            name = clean_name(
                _decoded(head[_LOCAL.size : name_end], flags, head[name_end : name_end + extra]), self.path
            )
            if name.decode("utf-8", "backslashreplace").encode() != row.name:
                raise self.moved(label)
        return int(name_end + extra)


def has_end(file: int, size: int) -> bool:
    """Whether a file ends as zips do, whatever it begins with."""
    return b"PK\x05\x06" in os.pread(file, _END.size + _FULL_SHORT, max(0, size - _END.size - _FULL_SHORT))


def _directory(file: int, size: int, source: Path) -> tuple[bytes, int, int, int]:
    """Read the central directory; with where it starts, how far all offsets are shifted, and its entries."""
    tail = os.pread(file, _END.size + _FULL_SHORT, max(0, size - _END.size - _FULL_SHORT))
    mark = tail.rfind(b"PK\x05\x06", 0, max(0, len(tail) - _END.size + 4))
    if mark < 0:
        raise DamagedFile(f"{source} is truncated: the central directory of the zip is missing")
    end = size - len(tail) + mark
    _, disk, first, _, count, length, offset, _ = _END.unpack_from(tail, mark)
    wide = _wide_end(file, end)
    if wide is not None:
        end, disk, first, count, length, offset = wide
    elif _FULL in (length, offset):
        raise _damaged(source, "the end record of its central directory is missing")
    if disk or first:
        raise DataError(f"{source} is the last part of a split zip; join the parts first (zip -s 0 … --out …)")
    start = end - length
    shift = start - offset
    if start < 0 or shift < 0:
        raise _damaged(
            source, f"its central directory of {length:,} bytes is not at the offset that its end record declares"
        )
    directory = os.pread(file, length, start)
    if len(directory) != length:
        raise _damaged(source, f"its central directory of {length:,} bytes cannot be read")
    return directory, start, shift, count


def _wide_end(file: int, end: int) -> tuple[int, int, int, int, int, int] | None:
    """Find the zip64 record before the end: its own place, and what it says in place of the end."""
    if end < _LOCATOR.size + _END64.size:
        return None
    mark, _, told, _ = _LOCATOR.unpack(os.pread(file, _LOCATOR.size, end - _LOCATOR.size))
    if mark != b"PK\x06\x07":
        return None
    # where the locator says; else right before the locator, since something may precede the whole archive
    for begin in (told, end - _LOCATOR.size - _END64.size):
        head = os.pread(file, _END64.size, begin) if 0 <= begin < end else b""
        if len(head) == _END64.size and head.startswith(b"PK\x06\x06"):
            *_, disk, first, _, count, length, offset = _END64.unpack(head)
            return begin, disk, first, count, length, offset
    return None


def _places(directory: bytes, source: Path) -> list[int]:
    """Find where each entry of the directory begins."""
    begins = []
    begin, last = 0, len(directory) - _ENTRY.itemsize
    while begin <= last:
        if directory[begin : begin + 4] != b"PK\x01\x02":
            break
        begins.append(begin)
        name, extra, comment = _LENGTHS.unpack_from(directory, begin + 28)
        begin += 46 + name + extra + comment
    if begin != len(directory):
        raise _damaged(source, f"entry {len(begins):,} of its central directory is truncated or invalid")
    return begins


def _wide(entries: Any, directory: bytes, ends: Integers, source: Path) -> tuple[Integers, Integers, Integers]:
    """Sizes and offsets; those of more than 32 bits are in an extra field."""
    stored, sizes, offsets = (entries[name].astype(np.int64) for name in ("stored", "size", "offset"))
    full = (sizes == _FULL) | (stored == _FULL) | (offsets == _FULL)
    for row in np.flatnonzero(full).tolist():
        extra = _extra(directory[ends[row] : ends[row] + int(entries["extra"][row])], 0x0001)
        columns = [column for column in (sizes, stored, offsets) if column[row] == _FULL]
        if extra is None or len(extra) < 8 * len(columns):
            raise _damaged(source, f"entry {row:,} of its central directory does not contain the size of the file")
        for column, value in zip(columns, struct.unpack_from(f"<{len(columns)}Q", extra), strict=True):
            column[row] = min(value, np.iinfo(np.int64).max // 4)
    if ((entries["disk"] != 0) & (entries["disk"] != _FULL_SHORT)).any():
        raise DataError(f"{source} is a part of a split zip; join the parts first (zip -s 0 … --out …)")
    return stored, sizes, offsets


def _extra(fields: bytes, wanted: int) -> bytes | None:
    """Find the content of an extra field."""
    at = 0
    while at + 4 <= len(fields):
        kind, length = struct.unpack_from("<2H", fields, at)
        if kind == wanted:
            return fields[at + 4 : at + 4 + length]
        at += 4 + length
    return None


def _decode(names: list[bytes], entries: Any, directory: bytes, ends: Integers) -> None:
    """Put names that are not plain ASCII into UTF-8."""
    for row, name in enumerate(names):
        if not name.isascii():
            extra = directory[ends[row] : ends[row] + int(entries["extra"][row])]
            names[row] = _decoded(name, int(entries["flags"][row]), extra)


def _decoded(name: bytes, flags: int, extra: bytes) -> bytes:
    if flags & _UTF8 or name.isascii():
        return name
    told = _extra(extra, 0x7075)  # the name in UTF-8, and the crc of the other one
    if told is not None and len(told) > 5 and told[1:5] == zlib.crc32(name).to_bytes(4, "little"):
        return told[5:]
    try:
        name.decode()  # what makes zips on Linux often forgets the flag; other texts are hardly ever valid UTF-8
    except UnicodeDecodeError:
        return name.decode("cp437").encode()
    return name


def _files(names: Sequence[bytes], entries: Any) -> Integers:
    """Rows of ordinary files."""
    kinds = (entries["mode"] >> 16) & 0o170000
    ordinary = ~np.isin(kinds, list(_KINDS))
    ordinary &= np.array([not name.endswith(b"/") for name in names], bool)
    return np.flatnonzero(ordinary)


def _check(
    names: Sequence[bytes],
    kept: Integers,
    offsets: Integers,
    stored: Integers,
    sizes: Integers,
    methods: npt.NDArray[Any],
    start: int,
    source: Path,
) -> None:
    """Refuse files that would be outside of the archive, or unpack to more than they can."""
    lengths = np.array([len(name) for name in names], np.int64)
    wrong = offsets + _LOCAL.size + np.minimum(lengths, 1) + stored > start
    wrong |= (methods == STORED) & (stored != sizes)
    wrong |= (methods == DEFLATED) & (sizes > _MOST * (stored + 1))
    bad = kept[wrong[kept]]
    if len(bad):
        row = int(bad[0])
        said = shown(names[row].decode("utf-8", "backslashreplace"))
        raise _damaged(
            source,
            f"the directory declares an impossible size or position of {said}: {stored[row]:,} bytes from byte "
            f"{offsets[row]:,} on for a file of {sizes[row]:,} bytes, where the directory starts at byte {start:,}",
        )


def _damaged(source: Path, what: str) -> DataError:
    return DamagedFile(f"{source} is damaged: {what}")
