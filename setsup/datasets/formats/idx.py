"""The idx format of MNIST and its relatives: one array per file, gzipped or not.

Convention
----------
Big-endian: two zero bytes, a byte for the dtype, a byte for the number of axes, a uint32 per length, then the elements
in C order.
"""

import struct
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np

from setsup.datasets.formats.array_file import ArrayFile, Head
from setsup.errors import DamagedFile, DataError
from setsup.files.disk import read_errors

__all__ = ["IdxFile"]

_DTYPES = MappingProxyType({0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"})
_MOST_AXES = 16


class IdxFile(ArrayFile):
    """An idx file whose header has been checked; its array is read on first use, once per process.

    Its attributes and methods are those of :class:`~setsup.datasets.formats.array_file.ArrayFile`; the dtype is
    big-endian as in the file.
    """

    def __init__(self, path: Path | str) -> None:
        _check_name(Path(path))
        super().__init__(Path(path), _head)


def _check_name(path: Path) -> None:
    """Refuse a file whose name and content disagree about gzip."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is not a file; expected an IDX file")
    with read_errors(path), path.open("rb") as raw:
        start = raw.read(4)
    named = path.suffix == ".gz"
    gzipped = start[:2] == b"\x1f\x8b"
    if named and not gzipped:
        fix = "remove .gz from its name" if start[:2] == b"\0\0" else "fetch it again"
        raise DamagedFile(f"{path} is not a gzip file, although its name ends in .gz (it begins with {start!r})", fix)
    if gzipped and not named:
        raise DataError(
            f"{path} is a gzip file, although its name does not end in .gz; unpack it, or add .gz to its name"
        )


def _head(file: BinaryIO, path: Path) -> Head:
    start = file.read(4)
    if len(start) < 4:
        raise DamagedFile(f"{path} is truncated: it ends after {len(start)} bytes, inside the IDX header")
    if start[:2] != b"\0\0" or start[2] not in _DTYPES or not 1 <= start[3] <= _MOST_AXES:
        raise DamagedFile(
            f"{path} is not an IDX file: it begins with {start!r}; expected two zero bytes, a dtype code "
            f"({', '.join(f'{code:#04x}' for code in _DTYPES)}) and the number of axes from 1 to {_MOST_AXES}"
        )
    lengths = file.read(4 * start[3])
    if len(lengths) < 4 * start[3]:
        raise DamagedFile(
            f"{path} is truncated: it ends inside the IDX header, before the lengths of all axes ({start[3]})"
        )
    shape = struct.unpack(f">{start[3]}I", lengths)
    if 0 in shape:
        raise DataError(f"{path} contains no data: the header specifies the shape {shape}; fetch the published file")
    return np.dtype(_DTYPES[start[2]]), shape, 4 + 4 * len(shape)
