"""The TFRecord framing: positions of the records of a file, with every checksum verified.

Convention
----------
A record is a uint64 length, the masked CRC-32C of those eight bytes, the data, and the masked CRC-32C of the data, all
little-endian. With c the checksum, ``((c >> 15) | (c << 17)) + 0xa282ead8`` modulo 2**32 is the masked one.
"""

import logging
import struct
import warnings
from array import array
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DamagedFile, DataError

__all__ = ["masked_crc32c", "record_spans"]

_HEAD = struct.Struct("<QI")
_FOOT = struct.Struct("<I")
_MASK = 0xA282EAD8

_log = logging.getLogger("setsup")


def record_spans(content: bytes | memoryview, label: str) -> npt.NDArray[np.int64]:
    """Find the records of a TFRecord file, and compare the checksums of all of them.

    A length is used only after its checksum and the size of the file are verified; nothing is copied.

    Returns (records, 2) int64, bytes.
    """
    checksum = _crc32c()
    view = np.frombuffer(content, np.uint8)
    size = len(view)
    spans = array("q")
    at = 0
    while at < size:
        if size - at < _HEAD.size:
            raise _cut_off(label, spans, at, size)
        length, expected = _HEAD.unpack_from(content, at)
        actual = checksum(view[at : at + 8])
        if _mask(actual) != expected:
            raise _wrong("length", label, spans, at, _mask(actual), expected)
        start = at + _HEAD.size
        stop = start + length
        if stop + _FOOT.size > size:
            raise _cut_off(label, spans, at, size)
        (expected,) = _FOOT.unpack_from(content, stop)
        actual = checksum(view[start:stop])
        if _mask(actual) != expected:
            raise _wrong("data", label, spans, at, _mask(actual), expected)
        spans.append(start)
        spans.append(length)
        at = stop + _FOOT.size
    return np.frombuffer(spans, np.int64).reshape(-1, 2)


def masked_crc32c(content: bytes) -> int:
    """Compute the checksum as the file stores it."""
    return _mask(int(_crc32c()(content)))


def _mask(checksum: int) -> int:
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


@cache
def _crc32c() -> Callable[[Any], int]:
    """Return the checksum function of the compiled library; warn if the slow fallback is used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what it says of a missing compiled part is said below
        import google_crc32c
    value = google_crc32c.value
    if google_crc32c.implementation == "c":
        function: Callable[[Any], int] = value
        return function
    _log.warning(
        "google-crc32c was installed without its compiled extension, so checksums of TFRecord files take a thousand "
        "times longer; install its wheel: `pip install --force-reinstall google-crc32c`"
    )
    return lambda data: int(value(bytes(data)))


def _cut_off(label: str, spans: "array[int]", at: int, size: int) -> DataError:
    return DamagedFile(
        f"{label} is truncated: it ends after {size:,} bytes, inside record {len(spans) // 2:,}, which begins at "
        f"byte {at:,}"
    )


def _wrong(what: str, label: str, spans: "array[int]", at: int, actual: int, expected: int) -> DataError:
    number = len(spans) // 2
    no_record = "" if number or what == "data" else "it is not a TFRecord file, or it is damaged: "
    return DamagedFile(
        f"{label}: {no_record}the checksum of the {what} of record {number:,}, which begins at byte {at:,}, is "
        f"{actual:#010x}; expected {expected:#010x}"
    )
