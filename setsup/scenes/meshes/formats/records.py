"""Records as PLY and PCD files hold them: rows of numbers, in binary or in words, some of them lists.

And what the readers of single meshes, clouds and grids share: where the bytes come from, and their sentences.
"""

import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DamagedFile
from setsup.files.lfs import refuse_pointer
from setsup.files.numbers import refuse

__all__ = [
    "Body",
    "Column",
    "Element",
    "Property",
    "alike_rows",
    "cast",
    "columns",
    "content",
    "past_rows",
    "vertex_numbers",
]

_STRUCT = MappingProxyType({"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "f4": "f", "f8": "d"})


class Property(NamedTuple):
    """Name and numpy type of a property; for a list, also the type of its length, which stands before the values."""

    name: str
    kind: str
    length: str | None = None


class Element(NamedTuple):
    """A name, the number of its rows, and what every row holds."""

    name: str
    rows: int
    properties: list[Property]


class Body(NamedTuple):
    """Where records stand: bytes, their order (``<``, ``>`` or ``=``), and what messages call the file."""

    data: npt.NDArray[np.uint8]
    order: str
    label: str


def content(source: Path | bytes, label: str) -> bytes:
    """Content of a file that is given by its path or as its content."""
    if isinstance(source, bytes):
        return source
    refuse_pointer(source)
    try:
        return source.read_bytes()
    except FileNotFoundError:
        raise DamagedFile(f"{label} is missing") from None
    except OSError as error:
        raise DamagedFile.unreadable(label, error) from error


def cast(rows: Array, dtype: np.dtype[Any], label: str) -> Array:
    """Copy records into a structured array of other types, integers into integers only where they fit."""
    result = np.empty(len(rows), dtype)
    for name in dtype.names or ():
        values, kind = rows[name], dtype[name].base
        if values.dtype.kind == "f" and kind.kind in "iu":
            limits = np.iinfo(kind)
            # the largest of 64 bits is no float, the number after it is
            if not ((values >= limits.min) & (values < float(limits.max + 1)) & (values == np.floor(values))).all():
                refuse(label, f"has a {name} that is not a {kind}")
        with np.errstate(over="ignore"):
            result[name] = values
    return result


def alike_rows(body: Body, at: int, element: Element) -> Array | None:
    """View all rows at once, where every one has lists as long as the first one's.

    Returns (rows,) structured array or None.
    """
    fields: list[tuple[Any, ...]] = []
    end = at
    for own in element.properties:
        if own.length:
            length = _length(body, end, own) if element.rows else 0
            fields.append((f"count {own.name}", body.order + own.length))
            end += _size(own.length) + length * _size(own.kind)
            if end > len(body.data):
                return None
            fields.append((own.name, body.order + own.kind, (length,)))
        else:
            end += _size(own.kind)
            fields.append((own.name, body.order + own.kind))
    if (end - at) * element.rows > len(body.data) - at:
        return None
    dtype = np.dtype(fields)
    rows = np.frombuffer(body.data, dtype, element.rows, at) if dtype.itemsize else np.empty(element.rows, dtype)
    for own in element.properties:
        if own.length and (rows[f"count {own.name}"] != rows[f"count {own.name}"][:1]).any():
            return None
    return rows


def past_rows(body: Body, at: int, element: Element) -> int:
    """Find where the rows of an element end."""
    rows = alike_rows(body, at, element)
    return _walk(body, at, element, ())[1] if rows is None else at + rows.nbytes


class Column(NamedTuple):
    """Values of one property, those of lists one list after the other, and how many each row has."""

    values: Array
    lengths: npt.NDArray[np.int64]


def columns(body: Body, at: int, element: Element, indices: Sequence[int]) -> tuple[list[Column], int]:
    """Values of some properties, by their indices, and where the rows end."""
    rows = alike_rows(body, at, element)
    if rows is not None:
        tables = [rows[element.properties[index].name] for index in indices]
        tables = [table if table.ndim == 2 else table[:, None] for table in tables]
        alike = [Column(table.reshape(-1), np.full(element.rows, table.shape[1])) for table in tables]
        return alike, at + rows.nbytes
    walked, end = _walk(body, at, element, indices)
    return [
        Column(_gathered(body, starts, lengths, element.properties[index].kind), lengths)
        for index, (starts, lengths) in zip(indices, walked, strict=True)
    ], end


def vertex_numbers(values: Array, label: str) -> npt.NDArray[np.int32]:
    """Vertex numbers as int32; unsigned ones that are too large become negative, which nobody accepts."""
    if values.dtype.kind == "f":
        if not ((np.abs(values) < 2**31) & (values == np.floor(values))).all():
            refuse(label, "has a face with a vertex index that is not an integer")
    return np.ascontiguousarray(values.astype(np.int32))


def _walk(
    body: Body, at: int, element: Element, indices: Sequence[int]
) -> tuple[list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]], int]:
    """Go through rows that differ: where the values at some places begin, how many they are, and the end."""
    spans = [(array("q"), array("q")) if index in indices else None for index in range(len(element.properties))]
    data, label = body.data.data, body.label
    steps = [
        (own.length and struct.Struct(body.order + _STRUCT[own.length]).unpack_from, _size(own.length or own.kind), own)
        for own in element.properties
    ]
    end = len(data)
    for _ in range(element.rows if steps else 0):
        for wanted, (unpack, size, own) in zip(spans, steps, strict=True):
            length = 1
            if unpack:
                if at + size > end:
                    refuse(label, f"ends before the last of its {element.rows:,} rows of {element.name}")
                length = _whole(unpack(data, at)[0], own, label)
                at += size
            if wanted:
                wanted[0].append(at)
                wanted[1].append(length)
            at += length * _size(own.kind)
    if at > end:
        refuse(label, f"ends before the last of its {element.rows:,} rows of {element.name}")
    kept = [spans[index] or (array("q"), array("q")) for index in indices]
    return [(np.array(starts, np.int64), np.array(lengths, np.int64)) for starts, lengths in kept], at


def _gathered(body: Body, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], kind: str) -> Array:
    """Lists that begin at the given bytes, one after the other."""
    gathered = np.empty(int(lengths.sum()), np.dtype(body.order + kind))
    firsts = np.cumsum(lengths) - lengths
    for length in np.unique(lengths).tolist():
        which = np.flatnonzero(lengths == length)
        if length:
            gathered[firsts[which][:, None] + np.arange(length)] = _gather(body, starts[which], length, kind)
    return gathered


def _gather(body: Body, starts: Array, length: int, kind: str) -> Array:
    """Lists of one length that begin at the given bytes, (n, length)."""
    dtype = np.dtype(body.order + kind)
    if len(starts) < length:  # few and long
        return np.stack([np.frombuffer(body.data, dtype, length, start) for start in starts.tolist()])
    gathered = np.empty((len(starts), length), dtype)
    for corner in range(length):
        bytes_at = starts[:, None] + np.arange(corner * dtype.itemsize, (corner + 1) * dtype.itemsize)
        gathered[:, corner] = body.data[bytes_at].view(dtype)[:, 0]
    return gathered


def _length(body: Body, at: int, own: Property) -> int:
    if at + _size(own.length or "u1") > len(body.data):
        refuse(body.label, f"ends before the last list of {own.name}")
    return _whole(struct.unpack_from(body.order + _STRUCT[own.length or "u1"], body.data.data, at)[0], own, body.label)


def _whole(length: float, own: Property, label: str) -> int:
    if not 0 <= length < 2**31 or int(length) != length:
        refuse(label, f"has a list {own.name} whose length is {length}")
    return int(length)


def _size(kind: str) -> int:
    return int(kind[1])
