"""Headers of ``.npy`` files, read without numpy's own reader, which evaluates them and may unpickle the content.

A ``.npy`` is a magic number, the version, the length of a header, the header (a Python literal with the dtype, the
order and the shape) and the elements. Only numbers, dates and strings are read: an array of Python objects is a pickle,
which can run any program.
"""

import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from setsup.arrays import Array
from setsup.datasets.formats.array_file import ArrayFile, Head
from setsup.errors import DamagedFile, DataError

__all__ = ["LONGEST_HEAD", "NUMBERS", "VALUES", "npy_head", "read_npy", "read_npy_head"]

NUMBERS = "biuf"
"""Kinds of numpy's types that are numbers or booleans."""

VALUES = f"{NUMBERS}USM"
"""Kinds that are numbers, booleans, strings or dates."""

LONGEST_HEAD = (1 << 16) + 16
"""Bytes from the beginning of a file among which the header ends."""

_MAGIC = b"\x93NUMPY"
_MOST_AXES = 32
# numpy has always written the keys in this order; Python 2 wrote an L behind a long integer
_HEAD = re.compile(
    rb"\s*\{\s*'descr':\s*(?P<descr>'[^']*'|\[.*\]),\s*'fortran_order':\s*(?P<order>True|False),"
    rb"\s*'shape':\s*\((?P<shape>[\dL,\s]*)\),?\s*\}\s*",
    re.DOTALL,
)
_LENGTH = re.compile(rb"\d{1,18}L?")
_TYPE = re.compile(r"[<>|=]?(?:[biuf][0-9]{1,2}|[US][0-9]{1,7}|M8\[[0-9]{0,4}[A-Za-z]{1,2}\]|\?)")
_OBJECT = re.compile(r"[<>|=]?O[0-9]{0,2}")


def npy_head(begin: bytes, label: str, kinds: str = NUMBERS) -> Head:
    """Type, shape, and bytes before the first element, from the beginning of a file.

    `kinds` are the accepted kinds of dtypes, ``"O"`` for the header of an array of objects.
    """
    wide = 2 if begin[6:7] == b"\x01" else 4
    length = int.from_bytes(begin[8 : 8 + wide], "little")
    text = begin[8 + wide : 8 + wide + length]
    if not begin.startswith(_MAGIC) or begin[6:7] not in (b"\x01", b"\x02", b"\x03"):
        raise DamagedFile(f"{label} is not a .npy file: it begins with {begin[:6]!r}")
    match = _HEAD.fullmatch(text)
    if len(text) != length or match is None:
        raise DamagedFile(f"{label} has a damaged header")
    words = [word.strip() for word in match["shape"].split(b",") if word.strip()]
    if len(words) > _MOST_AXES or not all(map(_LENGTH.fullmatch, words)):
        raise DamagedFile(f"{label} has a damaged header")
    shape = tuple(int(word.rstrip(b"L")) for word in words)
    if match["order"] == b"True" and len(shape) > 1:
        raise DataError(f"{label} contains an array in Fortran order; save numpy.ascontiguousarray(array) instead")
    return _dtype(match["descr"], label, kinds), shape, 8 + wide + length


def read_npy_head(file: BinaryIO, path: Path) -> Head:
    """Header of a ``.npy`` of numbers, dates or strings, as :class:`ArrayFile` takes it."""
    return npy_head(file.read(LONGEST_HEAD), str(path), VALUES)


def read_npy(path: Path) -> Array:
    """Map a whole ``.npy`` of numbers, dates or strings; DataError if the file is damaged or of another type."""
    return ArrayFile(path, read_npy_head).array()


def _dtype(told: bytes, label: str, kinds: str) -> np.dtype[Any]:
    text = told.decode("latin-1").strip("'")
    if _OBJECT.fullmatch(text):
        if "O" in kinds:
            return np.dtype(object)
        raise DataError(
            f"{label} contains pickled Python objects, which setsup never reads; save an array of numbers or strings"
        )
    try:
        # numpy reads a small language here, with errors and warnings of its own
        dtype = np.dtype(text) if _TYPE.fullmatch(text) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.kind not in kinds or not dtype.itemsize:
        wanted = "numbers or strings" if "U" in kinds else "numbers"
        raise DataError(f"{label} has the dtype {text[:40]!r}; expected an array of {wanted}")
    return dtype
