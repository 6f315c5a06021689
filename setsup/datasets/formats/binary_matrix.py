"""The binary matrix format of SmallNORB: one array per file, little-endian, gzipped or not.

Convention
----------
An int32 for the dtype, an int32 for the number of axes, an int32 per length (at least three, whatever the number of
axes), then the elements in C order.
"""

import struct
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np

from setsup.datasets.formats.array_file import ArrayFile, Head
from setsup.errors import DamagedFile
from setsup.files import need_readable

__all__ = ["BinaryMatrix"]

_DTYPES = MappingProxyType(
    {0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8", 0x1E3D4C54: "<i4", 0x1E3D4C55: "u1", 0x1E3D4C56: "<i2"}
)
_PACKED = 0x1E3D4C52
_MOST_AXES = 8
_LEAST_LENGTHS = 3


class BinaryMatrix(ArrayFile):
    """A binary matrix file whose header has been checked; its array is read on first use, once per process.

    Its attributes and methods are those of :class:`~setsup.datasets.formats.array_file.ArrayFile`.
    """

    def __init__(self, path: Path | str) -> None:
        need_readable(Path(path), "a binary matrix file")
        super().__init__(Path(path), _head)


def _head(file: BinaryIO, path: Path) -> Head:
    start = file.read(8)
    if len(start) < 8:
        raise DamagedFile(f"{path} is truncated: it ends after {len(start)} bytes, inside the header")
    magic, axes = struct.unpack("<2i", start)
    if magic == _PACKED:
        raise DamagedFile(f"{path} is a packed binary matrix, which setsup cannot read")
    if magic not in _DTYPES:
        if int.from_bytes(start[:4], "big") in _DTYPES:
            raise DamagedFile(f"{path} is in big-endian byte order; expected little-endian, as in the published files")
        raise DamagedFile(
            f"{path} is not a binary matrix: it begins with {start[:4]!r}; expected a number from 0x1e3d4c51 to "
            "0x1e3d4c56, little-endian"
        )
    if not 1 <= axes <= _MOST_AXES:
        raise DamagedFile(f"{path}: the number of axes in the header is {axes}; expected 1 to {_MOST_AXES}")
    count = max(_LEAST_LENGTHS, axes)
    lengths = file.read(4 * count)
    if len(lengths) < 4 * count:
        raise DamagedFile(f"{path} is truncated: it ends inside the header, before the lengths of all axes ({axes})")
    shape = struct.unpack(f"<{count}i", lengths)[:axes]
    if min(shape) < 1:
        raise DamagedFile(f"{path}: the header specifies the shape {shape}, which has no elements")
    return np.dtype(_DTYPES[magic]), shape, 8 + 4 * count
