"""The PCD format, version 0.7: point clouds with named fields, ascii or binary.

Convention
----------
Frame and unit are the file's own. Color is one 32-bit word, (red << 16) | (green << 8) | blue, stored as an unsigned
integer or, by older tools, as the float with the same bits.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DataError
from setsup.files.numbers import numbers, refuse
from setsup.scenes.meshes.formats.records import cast, content

__all__ = ["Pcd", "read_pcd"]


_LONGEST_HEADER = 1 << 14
_MOST_FIELDS = 256
_KEYS = ("VERSION", "FIELDS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT", "POINTS", "DATA")
_TYPES = MappingProxyType(
    {("F", 4): "f4", ("F", 8): "f8", **{(t, n): f"{t.lower()}{n}" for t in "IU" for n in (1, 2, 4, 8)}}
)


@dataclass(frozen=True, slots=True, eq=False)
class Pcd:
    """Content of a PCD file.

    `records` (n,) structured array.
    """

    records: Array

    @property
    def points(self) -> npt.NDArray[np.float32]:
        """Positions, (n, 3) float32."""
        return np.stack([self.records[name] for name in "xyz"], axis=1).astype(np.float32)

    @property
    def colors(self) -> npt.NDArray[np.uint8] | None:
        """Colors, (n, 3) uint8 sRGB; None where the file has no field ``rgb`` or ``rgba`` of 32 bits."""
        for name in ("rgb", "rgba"):
            if name in (self.records.dtype.names or ()) and self.records.dtype[name].str[1:] in ("f4", "u4", "i4"):
                words = np.ascontiguousarray(self.records[name]).view(np.uint32)
                return np.stack([words >> 16, words >> 8, words], axis=1).astype(np.uint8)
        return None


def read_pcd(source: Path | bytes, label: str) -> Pcd:
    r"""Read a PCD file."""
    data = content(source, label)
    header, start = _header(data, label)
    dtype, count = _layout(header, label)
    ascii_words = header["DATA"] == ["ascii"]
    if ascii_words:
        values = numbers(data[start:], label)
        width = sum(int(np.prod(dtype[name].shape)) for name in dtype.names or ())
        if len(values) != count * width:
            refuse(
                label,
                f"contains {len(values):,} numbers, but its header specifies {count:,} points of {width} numbers each",
            )
        doubled = np.dtype([(name, "f8", dtype[name].shape) for name in dtype.names or ()])
        records = cast(values.view(doubled), dtype, label)
    elif header["DATA"] == ["binary"]:
        if len(data) - start != count * dtype.itemsize:
            what = f"{len(data) - start:,} bytes of points, but its header specifies {count * dtype.itemsize:,}"
            refuse(label, f"contains {what}")
        records = np.frombuffer(data, dtype.newbyteorder("<"), count, start).astype(dtype)
    else:
        raise DataError(
            f"{label} has the DATA format {' '.join(header['DATA'])[:40]!r}; expected ascii or binary; convert the file"
        )
    for name in "xyz":
        finite = np.isfinite(records[name])
        if not finite.all():
            refuse(label, f"has a non-finite {name} at point {int(np.argmin(finite))}")
    return Pcd(records)


def _header(data: bytes, label: str) -> tuple[dict[str, list[str]], int]:
    """Words of each line of the header, and where the points begin."""
    end = re.compile(rb"^DATA[ \t]+\S+[ \t]*(\r\n|\n|\Z)", re.MULTILINE).search(data, 0, _LONGEST_HEADER)
    if end is None:
        refuse(label, f"is not a PCD file: it has no line DATA in its first {_LONGEST_HEADER:,} bytes")
    header: dict[str, list[str]] = {}
    for line in data[: end.end()].decode("utf-8", "replace").splitlines():
        words = line.split("#")[0].split()
        if words and (words[0] not in _KEYS or words[0] in header):
            refuse(label, f"has the header line {line[:80]!r}, which is not valid in a PCD file")
        if words:
            header[words[0]] = words[1:]
    if header.get("VERSION", [".7"]) not in (["0.7"], [".7"]):
        refuse(label, f"has the version {' '.join(header['VERSION'])[:20]!r}; expected .7")
    return header, end.end()


def _layout(header: dict[str, list[str]], label: str) -> tuple[np.dtype[Any], int]:
    """Type of a point, and number of the points."""
    names = header.get("FIELDS", [])
    sizes, counts = (_whole(header.get(key, ["1"] * len(names)), key, label) for key in ("SIZE", "COUNT"))
    kinds = header.get("TYPE", [])
    if not len(names) == len(sizes) == len(counts) == len(kinds) <= _MOST_FIELDS or len(set(names)) < len(names):
        refuse(
            label,
            "has contradictory header lines FIELDS, SIZE, TYPE and COUNT; expected one entry per field, with distinct "
            "names",
        )
    if not {"x", "y", "z"} <= set(names):
        refuse(label, f"has the fields {names[:8]}; expected x, y and z among them")
    fields: list[Any] = []
    for name, kind, size, count in zip(names, kinds, sizes, counts, strict=True):
        if (kind, size) not in _TYPES or not 1 <= count <= 1 << 16 or (name in ("x", "y", "z") and count != 1):
            refuse(label, f"has a field {name} of type {kind}, size {size} and count {count}, which is not supported")
        fields.append((name, _TYPES[kind, size]) if count == 1 else (name, _TYPES[kind, size], (count,)))
    width, height = (_whole(header.get(key, ["1"]), key, label) for key in ("WIDTH", "HEIGHT"))
    points = _whole(header.get("POINTS", []), "POINTS", label) or [width[0] * height[0]]
    if points[0] != width[0] * height[0]:
        refuse(label, f"specifies {points[0]:,} points, but a width and height of {width[0]:,} and {height[0]:,}")
    return np.dtype(fields), points[0]


def _whole(words: list[str], key: str, label: str) -> list[int]:
    """Whole numbers of a line of the header."""
    if not all(re.fullmatch("[0-9]{1,10}", word) for word in words) or (not words and key in ("WIDTH", "HEIGHT")):
        refuse(label, f"has the header line {f'{key} ' + ' '.join(words)[:60]!r}; expected integers")
    return [int(word) for word in words]
