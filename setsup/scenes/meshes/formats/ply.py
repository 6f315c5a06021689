"""The PLY format: vertices with any properties, faces as triangles; ascii, little- and big-endian.

Own parsing rather than trimesh's: SceneNN and Pascal3D+ clouds are read without the extra ``meshes``, every property of
a vertex is kept with its type, and every count is checked against the file before memory is taken for it.

Convention
----------
Face indices count vertices from 0. A convex polygon with corners a, b, c, d, … becomes the triangles (a, b, c),
(a, c, d), … in the place of the polygon, others are cut within their outlines; strips of triangles follow after them.
Frame and unit are the file's own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.files.numbers import numbers, refuse
from setsup.scenes.meshes.formats.records import (
    Body,
    Element,
    Property,
    alike_rows,
    cast,
    columns,
    content,
    past_rows,
    vertex_numbers,
)
from setsup.scenes.meshes.polygons import triangulate

__all__ = ["Ply", "read_ply"]


_TYPES = MappingProxyType(
    {
        **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
        **{"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"},
        **{"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"},
    }
)
_ORDERS = MappingProxyType({"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"})
_LONGEST_HEADER = 1 << 16
_INDICES = ("vertex_indices", "vertex_index")
_COLORS = ("red", "green", "blue")
_TEXTURE = re.compile(rb"(?i)comment[ \t]+texturefile[ \t]+([^\r\n]*)")


@dataclass(frozen=True, slots=True, eq=False)
class Ply:
    """Content of a PLY file.

    `vertices` (n,) structured array; `faces` (m, 3) int32; `face_colors` (m, 3) of the triangles as stored, or None;
    `corner_uv` (m, 3, 2) texture coordinates of their corners, or None; `textures`, the files that comments name.
    """

    vertices: Array
    faces: npt.NDArray[np.int32]
    face_colors: Array | None = None
    corner_uv: Array | None = None
    textures: tuple[str, ...] = ()

    @property
    def points(self) -> Array:
        """Positions, (n, 3) float32 or float64 as stored (integers as float64)."""
        kind = np.result_type(*(self.vertices.dtype[name] for name in "xyz"))
        return self._columns("xyz", kind if kind.kind == "f" and kind.itemsize <= 8 else np.dtype("f8"))

    @property
    def colors(self) -> npt.NDArray[np.uint8] | None:
        """Colours, (n, 3) uint8 sRGB; None where the vertices have no ``red``, ``green``, ``blue`` of 8 bits."""
        names, kept = ("red", "green", "blue"), self.vertices.dtype
        if any(name not in (kept.names or ()) or kept[name] != np.uint8 for name in names):
            return None
        return self._columns(names, np.dtype("u1"))

    def table(self, *names: str) -> Array | None:
        """Properties of the vertices of one type, (n, c); None where there is not each of them."""
        if any(name not in (self.vertices.dtype.names or ()) for name in names):
            return None
        return self._columns(names, np.result_type(*(self.vertices.dtype[name] for name in names)))

    def _columns(self, names: Sequence[str], dtype: np.dtype[Any]) -> Array:
        table = np.empty((len(self.vertices), len(names)), dtype)
        for column, name in enumerate(names):
            table[:, column] = self.vertices[name]
        return table


def read_ply(source: Path | bytes, label: str) -> Ply:
    r"""Read a PLY file."""
    data = content(source, label)
    order, declared, at = _header(data, label)
    textures = tuple(name.decode("utf-8", "replace").strip() for name in _TEXTURE.findall(data, 0, at))
    body, elements = Body(np.frombuffer(data, np.uint8), order, label), declared
    if not order:
        # the numbers of an ascii file are one more binary file, in which everything is a double
        body, at = Body(numbers(data[at:], label).view(np.uint8), "=", label), 0
        elements = [element._replace(properties=[_double(own) for own in element.properties]) for element in declared]
    vertices, faces, strips = np.empty(0, "V0"), _Faces(np.empty((0, 3), np.int32)), list[npt.NDArray[np.int32]]()
    for element, wanted in zip(elements, declared, strict=True):
        _check_room(body, at, element)
        if element.name == "vertex":
            vertices, at = _vertices(body, at, element, wanted)
        elif element.name == "face" and _index_place(element) >= 0:
            faces, at = _faces(body, at, element, wanted, vertices)
        elif element.name == "tristrips" and _index_place(element) >= 0:
            read, at = columns(body, at, element, [_index_place(element)])
            strips.append(_strips(vertex_numbers(read[0].values, label), read[0].lengths))
            _check_faces(strips[-1], len(vertices), label)
        else:
            at = past_rows(body, at, element)
    if body.data[at:].tobytes().strip():
        refuse(label, "contains further data after the rows that its header declares")
    if strips and len(strips[0]):
        # what the faces have beside stands for nothing of the strips
        return Ply(vertices, np.concatenate([faces.triangles, *strips]), textures=textures)
    return Ply(vertices, faces.triangles, faces.colors, faces.uv, textures)


class _Faces(NamedTuple):
    triangles: npt.NDArray[np.int32]
    colors: Array | None = None
    uv: Array | None = None


def _faces(body: Body, at: int, element: Element, declared: Element, vertices: Array) -> tuple[_Faces, int]:
    """Triangles of the polygons, and what each of them has beside."""
    names = [own.name for own in element.properties]
    wanted = [_index_place(element)]
    texcoord = next(
        (index for index, own in enumerate(element.properties) if own.length and own.name == "texcoord"), -1
    )
    painted = all(name in names and not element.properties[names.index(name)].length for name in _COLORS)
    wanted += [texcoord] * (texcoord >= 0) + [names.index(name) for name in _COLORS if painted]
    read, end = columns(body, at, element, wanted)
    corners, lengths = vertex_numbers(read[0].values, body.label), read[0].lengths
    if len(lengths) and lengths.min() < 3:
        refuse(body.label, "has a face of fewer than three corners")
    if (lengths == 3).all():
        _check_faces(corners.reshape(-1, 3), len(vertices), body.label)
        chosen, polygon = np.arange(len(corners)).reshape(-1, 3), np.arange(len(lengths))
    else:
        _check_faces(corners[:, None], len(vertices), body.label)
        points = np.stack([vertices[name].astype(np.float64) for name in "xyz"], axis=1)
        chosen, polygon = triangulate(points, corners.astype(np.int64), lengths)
    uv = colors = None
    if texcoord >= 0 and (read[1].lengths == 2 * lengths).all():
        uv = read[1].values.reshape(-1, 2)[chosen]
    if painted:
        kinds = [np.dtype(declared.properties[index].kind) for index in wanted[-3:]]
        channels = [_as(channel.values, kind) for channel, kind in zip(read[-3:], kinds, strict=True)]
        colors = np.stack(channels, axis=1)[polygon]
    return _Faces(corners[chosen], colors, uv), end


def _as(values: Array, kind: np.dtype[Any]) -> Array:
    """Values of an ascii file in the type that is declared."""
    limits = None if kind.kind == "f" else np.iinfo(kind)
    return (values if limits is None else np.clip(values, limits.min, limits.max)).astype(kind)


def _strips(corners: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Triangles of strips, which also end at −1; every other one is turned round."""
    ends = np.zeros(len(corners) + 1, bool)
    ends[np.cumsum(lengths)] = True
    # a strip's corners are numbered from 0 on; a triangle ends where the number is 2 or more
    begins = ends[:-1].copy()
    begins[:1] = True
    begins[1:] |= corners[:-1] == -1
    first = np.maximum.accumulate(np.where(begins, np.arange(len(corners)), 0)) if len(corners) else np.zeros(0, int)
    number = np.arange(len(corners)) - first
    last = np.flatnonzero((number >= 2) & (corners != -1))
    triangles = np.stack([corners[last - 2], corners[last - 1], corners[last]], axis=1)
    turned = number[last] % 2 == 1
    triangles[turned] = triangles[turned][:, [1, 0, 2]]
    return triangles


def _header(data: bytes, label: str) -> tuple[str, list[Element], int]:
    """Byte order (nothing for ascii), elements, and where the body begins."""
    start = re.match(rb"ply[ \t]*(\r\n|\n|\r)", data)
    if start is None:
        refuse(label, f"is not a PLY file: it begins with {data[:8]!r}, not with 'ply'")
    # lines of a header may end in two ways; after a lone \r, a \n is a byte of the body
    line_end = rb"\r" if start[1] == b"\r" else rb"\r?\n"
    end = re.compile(rb"[\r\n]end_header[ \t]*" + line_end).search(data, 0, _LONGEST_HEADER)
    if end is None:
        refuse(label, f"has no end_header in its first {_LONGEST_HEADER:,} bytes")
    order, elements = None, list[Element]()
    for line in data[start.end() : end.start()].decode("utf-8", "replace").splitlines():
        words = line.split()
        # comments, and what some programs write without that word
        if not words or words[0] not in ("format", "element", "property"):
            continue
        own = _property(words)
        if words[0] == "format" and len(words) == 3 and words[1] in _ORDERS and words[2] == "1.0":
            order = _ORDERS[words[1]]
        elif words[0] == "element" and len(words) == 3 and re.fullmatch("[0-9]{1,10}", words[2]):
            elements.append(Element(words[1], int(words[2]), []))
        elif own is not None and elements:
            elements[-1].properties.append(own)
        else:
            refuse(label, f"has the header line {line[:80]!r}, which is not valid in PLY")
    if order is None:
        refuse(label, f"does not declare a format ({', '.join(_ORDERS)})")
    _check_elements(elements, label)
    return order, elements, end.end()


def _property(words: list[str]) -> Property | None:
    if words[0] == "property" and len(words) == 3 and words[1] in _TYPES:
        return Property(words[2], _TYPES[words[1]])
    if words[:2] == ["property", "list"] and len(words) == 5 and words[3] in _TYPES:
        count = _TYPES.get(words[2], "f")
        return None if count[0] == "f" else Property(words[4], _TYPES[words[3]], count)
    return None


def _double(own: Property) -> Property:
    return Property(own.name, "f8", own.length and "f8")


def _check_elements(elements: list[Element], label: str) -> None:
    names = [element.name for element in elements]
    if "vertex" not in names or len(set(names)) < len(names) or "face" in names[: names.index("vertex")]:
        refuse(label, f"has the elements {names[:8]}, but each must occur once, with vertex before face")
    for element in elements:
        properties = [own.name for own in element.properties]
        index = _index_place(element)
        if len(set(properties)) < len(properties):
            refuse(label, f"has a property of {element.name} twice")
        if index >= 0 and element.properties[index].kind[0] == "f":
            refuse(label, f"has vertex indices of type {element.properties[index].kind}, which must be integers")
    vertex = elements[names.index("vertex")].properties
    if not {"x", "y", "z"} <= {own.name for own in vertex} or any(own.length for own in vertex):
        refuse(label, "has vertices that contain a list, or lack x, y and z")


def _index_place(element: Element) -> int:
    """Place of the list of a face's vertices, whose name has variants if it is the only one; −1 where there is none."""
    lists = [index for index, own in enumerate(element.properties) if own.length]
    named = [index for index in lists if element.properties[index].name in _INDICES]
    if not named and element.name == "face" and len(lists) == 1 and element.properties[lists[0]].name != "texcoord":
        return lists[0]
    return named[0] if named else -1


def _check_room(body: Body, at: int, element: Element) -> None:
    """See that the rest of the file can hold the rows, lists empty."""
    least = sum(int((own.length or own.kind)[1]) for own in element.properties)
    if element.rows * least > len(body.data) - at:
        refuse(body.label, f"declares {element.rows:,} rows of {element.name}, more than it can contain")


def _vertices(body: Body, at: int, element: Element, declared: Element) -> tuple[Array, int]:
    rows = alike_rows(body, at, element)
    if rows is None:
        refuse(body.label, f"ends before the last of its {element.rows:,} vertices")
    dtype = np.dtype([(own.name, own.kind) for own in declared.properties])
    vertices = rows.copy() if rows.dtype == dtype else cast(rows, dtype, body.label)
    for name in "xyz":
        finite = np.isfinite(vertices[name])
        if not finite.all():
            refuse(body.label, f"has a value {name} of vertex {int(np.argmin(finite))} that is not finite")
    return vertices, at + rows.nbytes


def _check_faces(faces: npt.NDArray[np.int32], vertices: int, label: str) -> None:
    if len(faces) and (faces.min() < 0 or faces.max() >= vertices):
        worst = int(np.argmax(((faces < 0) | (faces >= vertices)).any(axis=1)))
        refuse(label, f"has {vertices:,} vertices, but triangle {worst} refers to {faces[worst].tolist()}")
