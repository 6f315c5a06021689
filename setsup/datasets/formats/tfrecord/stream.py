"""TFRecord files that are gzipped as a whole: their records one after the other, with every checksum verified."""

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from setsup.datasets.formats.tfrecord.records import masked_crc32c
from setsup.errors import DamagedFile
from setsup.files.disk import read_errors

__all__ = ["stream_records"]

_HEAD = struct.Struct("<QI")
_MOST = 1 << 28  # bytes of a record


def stream_records(path: Path) -> Iterator[bytes]:
    """Read the records of a file, gzipped or not; DataError if it is damaged or truncated.

    See :mod:`setsup.datasets.formats.tfrecord.records` for the framing.
    """
    with read_errors(path), path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with read_errors(path), cast(BinaryIO, gzip.open(path) if packed else path.open("rb")) as file:
        number = 0
        while head := file.read(_HEAD.size):
            if len(head) < _HEAD.size:
                raise _cut_off(path, number)
            length, checksum = _HEAD.unpack(head)
            if masked_crc32c(head[:8]) != checksum or length > _MOST:
                raise DamagedFile(f"{path}: the checksum of the length of record {number:,} does not match")
            data = file.read(length + 4)
            if len(data) < length + 4:
                raise _cut_off(path, number)
            record = data[:-4]
            if masked_crc32c(record) != int.from_bytes(data[-4:], "little"):
                raise DamagedFile(f"{path}: the checksum of record {number:,} does not match")
            yield record
            number += 1


def _cut_off(path: Path, number: int) -> DamagedFile:
    return DamagedFile(f"{path} is truncated: it ends inside record {number:,}")
