"""Headers of a tar: one file's name, size and kind, and what headers of other kinds tell of the next file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DamagedFile

__all__ = [
    "ABOUT_NEXT",
    "BARE",
    "BLOCK",
    "FILES",
    "TELLING",
    "BadHeader",
    "Headers",
    "decimal",
    "file_names",
    "find_files",
    "from_digits",
    "header_check",
    "is_header",
    "number",
    "octal",
    "parse_extra",
    "sparse_size",
    "verify_headers",
]

Headers = npt.NDArray[Any]

BLOCK = 512
FILES = frozenset((0, ord("0"), ord("7"), ord("S")))
"""Files of the oldest format, of later ones, in one piece, and with holes that are left out."""
_IS_FILE = np.isin(np.arange(256), list(FILES))
BARE = frozenset(b"123456")
"""Links, devices, folders and pipes: no content follows, whatever the size says."""
ABOUT_NEXT = frozenset(b"xXgLK")
"""Kinds that tell of the file that comes next, or of all."""
TELLING = (b"path=", b"size=", b"GNU.sparse.")
"""One of these is in all records that tell what matters here."""
_HEADER = np.dtype(
    [
        ("name", "S100"),
        ("numbers", "V48"),
        ("check", "S8"),
        ("kind", "S1"),
        ("link", "S100"),
        ("magic", "S6"),
        ("owner", "V82"),
        ("prefix", "S155"),
        ("rest", "V12"),
    ]
)
_SAME, _SIX = np.uint64(0xDFDFF8F8F8F8F8F8), np.uint64(0x303030303030)  # bits of six digits and two blanks or NUL
_JOINS = tuple(
    (np.uint64(bits), np.uint64(power), np.uint64(mask))
    for bits, power, mask in ((8, 3, 0x00FF00FF00FF00FF), (16, 6, 0x0000FFFF0000FFFF), (32, 12, 0x00000000FFFFFFFF))
)
_FEW = 16  # headers for which numpy takes longer to start than to count
_KIND, _PREFIX = 156, 345  # where these begin
_SHORT, _LONG = 32, 100  # bytes of most names, and of all


class BadHeader(Exception):
    """What is wrong with a header, in a few words."""


def is_header(block: bytes) -> bool:
    """Whether a block is the header of a tar, or the zeros of an empty one."""
    if len(block) < BLOCK:
        return False
    return not any(block) or bool(_right(np.frombuffer(block[:BLOCK], _HEADER))[0])


def header_check(block: bytes) -> int:
    """Checksum that a header says it has."""
    return int(octal(np.frombuffer(block, _HEADER)["check"])[0])


def parse_extra(kind: int, content: bytes) -> dict[bytes, bytes]:
    """What a header before a file's own tells of it, as far as it matters here."""
    if kind == ord("L"):
        return {b"path": content.split(b"\0", 1)[0]}
    if kind == ord("K") or not any(key in content for key in TELLING):
        return {}
    told = {}
    at = 0
    while at < len(content):
        digits, _, _ = content[at : at + 20].partition(b" ")
        length = decimal(digits)
        record = content[at + len(digits) + 1 : at + length]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n") or at + length > len(content):
            raise BadHeader("invalid record of an extended header")
        if key in (b"path", b"size") or key.startswith(b"GNU.sparse."):
            told[key] = value[:-1]
        at += length
    return told


def sparse_size(told: Mapping[bytes, bytes]) -> int | None:
    """Size of a file in which holes are left out, None for all others."""
    if not any(key.startswith(b"GNU.sparse.") for key in told):
        return None
    return decimal(told.get(b"GNU.sparse.realsize") or told.get(b"GNU.sparse.size") or b"0")


def number(digits: bytes) -> int:
    """Number of a header: octal, or binary where the first bit is set."""
    if digits[0] == 0x80:
        value = int.from_bytes(digits[1:], "big")
    else:
        try:
            value = int(digits.split(b"\0", 1)[0].strip() or b"0", 8)
        except ValueError:
            raise BadHeader(f"invalid size {digits!r}") from None
    if not 0 <= value < 1 << 60:
        raise BadHeader(f"invalid size {digits!r}")
    return value


def decimal(digits: bytes) -> int:
    """Number of a record."""
    if not digits.isdigit() or len(digits) > 18:
        raise BadHeader(f"invalid number {digits[:20]!r}")
    return int(digits)


def verify_headers(blocks: Sequence[bytes | memoryview], at: list[int], source: Path | str) -> Headers:
    """Headers of a stretch, all of them right."""
    headers = np.frombuffer(b"".join(blocks), _HEADER) if blocks else np.empty(0, _HEADER)
    wrong = np.flatnonzero(~_right(headers))
    if len(wrong):
        raise DamagedFile(f"{source} is damaged: the header at byte {at[wrong[0]]:,} has a wrong checksum")
    return headers


def _right(headers: Headers) -> npt.NDArray[np.bool_]:
    """Which headers have the checksum that they say: the sum of their bytes, with blanks in its own place."""
    said = octal(headers["check"])
    content = headers.view(np.uint8).reshape(len(headers), BLOCK)
    own = np.ascontiguousarray(headers["check"]).view(np.uint8).reshape(-1, 8)
    total = content.sum(axis=1, dtype=np.uint32) - own.sum(axis=1, dtype=np.uint32) + 8 * ord(" ")
    right: npt.NDArray[np.bool_] = total == said
    for row in np.flatnonzero(~right).tolist():  # some old writers took bytes as signed
        signed = np.delete(content[row].view(np.int8), np.s_[148:156]).sum(dtype=np.int64) + 8 * ord(" ")
        right[row] = signed == said[row]
        if not right[row]:
            break
    return right


def octal(digits: Headers) -> npt.NDArray[np.int64]:
    """Numbers of up to eight octal digits, with blanks and NUL around them."""
    if len(digits) < _FEW:
        return np.array([_octal(bytes(each)) for each in digits], np.int64)
    words = np.ascontiguousarray(digits).view("<u8")
    if (words & _SAME == _SIX).all():  # as nearly all programs write them
        return from_digits(words - _SIX << np.uint64(16)).astype(np.int64)
    columns = np.ascontiguousarray(digits).view(np.uint8).reshape(-1, 8).astype(np.int64).T
    values = np.zeros(columns.shape[1], np.int64)
    for column in columns:
        values = np.where((column >= ord("0")) & (column < ord("8")), 8 * values + column - ord("0"), values)
    return values


def from_digits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Numbers of eight octal digits (0 to 7) in the bytes of a word, the first one in the lowest.

    Digits are joined to pairs, then fours, then all eight.
    """
    for bits, power, mask in _JOINS:
        words = ((words << power) + (words >> bits)) & mask
    return words


def _octal(digits: bytes) -> int:
    plain = re.sub(rb"[^0-7]", b"", digits)
    return int(plain, 8) if plain else 0


def find_files(headers: Headers) -> list[int]:
    """Rows of the headers of files."""
    kinds = headers.view(np.uint8).reshape(len(headers), BLOCK)[:, _KIND]
    return np.flatnonzero(_IS_FILE[kinds]).tolist()


def file_names(headers: Headers, told: Mapping[int, bytes]) -> list[bytes]:
    """Names of files, from their headers or from what was told before them."""
    content = headers.view(np.uint8).reshape(len(headers), BLOCK)
    field = headers["name"]
    if not content[:, _SHORT:_LONG].any():
        field = field.astype(f"S{_SHORT}")  # the ends of which are found sooner
    names: list[bytes] = field.tolist()
    # a prefix only where the magic is POSIX's: GNU's headers have times in that place
    long = np.flatnonzero(content[:, _PREFIX])
    for row in long[headers["magic"][long] == b"ustar"].tolist():
        names[row] = bytes(headers["prefix"][row]).split(b"\0", 1)[0] + b"/" + names[row]
    if b"\0" in b"".join(names):
        names = [name.split(b"\0", 1)[0] for name in names]
    for row, name in told.items():
        names[row] = name
    return names
