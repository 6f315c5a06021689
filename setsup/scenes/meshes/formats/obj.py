"""Wavefront OBJ files: positions, texture coordinates, normals and colours of polygons that are cut into triangles.

Own reading rather than trimesh's, which loses without a word the second list of materials, colours of vertices beside
materials, and the texture of a material of which one face has no texture coordinates; which refuses numbers that are
counted backwards, and fans polygons over what is outside of them.

Convention
----------
Faces count vertices from 1, or backwards from −1, which is the last one that stands before the face.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from setsup.arrays import Integers, Reals
from setsup.errors import DataError
from setsup.files.numbers import numbers, refuse
from setsup.scenes.meshes.polygons import triangulate

__all__ = ["Obj", "read_obj"]

_FORMS = (b"d", b"d/d", b"d//d", b"d/d/d")
_KINDS = ("vertex", "texture coordinate", "normal")
_NAMES = (b"v", b"vt", b"vn")


@dataclass(frozen=True, slots=True, eq=False)
class Obj:
    """Content of an OBJ file.

    Attributes
    ----------
    vertices, uv, normals : (n, 3), (m, 2), (k, 3) float64
        As they stand there.
    colors : (n, 3) float64 or None
        Of the vertices, 0 … 1; white where some have none.
    corners : (t, 3, 3) int64
        Of each triangle, of each of its corners: vertex, texture coordinate and normal, −1 where it has none.
    material : (t,) int64
        Number in ``names`` of each triangle's material; −1 before the first.
    names : list of str
        Materials, in the order of their first use.
    libraries : list of str
        What stands behind each ``mtllib``.

    """

    vertices: Reals
    uv: Reals
    normals: Reals
    colors: Reals | None
    corners: Integers
    material: Integers
    names: list[str]
    libraries: list[str]


def read_obj(content: bytes, label: str) -> Obj:
    """Read an OBJ file."""
    if b"\0" in content:
        refuse(label, "contains zero bytes, so it is not an OBJ file")
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\\\n", b" ")
    lists = [_lines(content, name) for name in _NAMES]
    tables = [_vectors(lines, name, least, label) for lines, name, least in zip(lists, _NAMES, (3, 1, 3), strict=True)]
    if not len(tables[0]):
        refuse(label, "is not an OBJ file with vertices")
    starts, polygons = _lines(content, b"f")
    if not polygons:
        _without_faces(content, label)
    faces = b"\n".join(polygons)
    lengths = np.array([len(line.split()) for line in polygons], np.int64)
    if lengths.min() < 3:
        refuse(label, "has a face of fewer than three corners")
    given = _corners(faces, label)
    for column, (lines, what) in enumerate(zip(lists, _KINDS, strict=True)):
        _count_from_zero(given[:, column], np.array(lines[0]), np.repeat(starts, lengths), what, label)
    corners = np.where(np.isnan(given), -1, given).astype(np.int64)
    chosen, polygon = triangulate(tables[0][:, :3], corners[:, 0], lengths)
    material, names = _materials(content, np.array(starts))
    return Obj(
        tables[0][:, :3],
        np.concatenate([tables[1][:, :2], np.zeros((len(tables[1]), max(0, 2 - tables[1].shape[1])))], axis=1),
        tables[2][:, :3],
        _colors(tables[0]),
        corners[chosen],
        material[polygon],
        names,
        [_text(line) for line in re.findall(rb"^[ \t]*mtllib[ \t]+([^\n]*)", content, re.MULTILINE)],
    )


def _lines(content: bytes, name: bytes) -> tuple[list[int], list[bytes]]:
    """Where lines of a name begin, and what stands behind it."""
    matches = [
        (match.start(), match[1]) for match in re.finditer(rb"^[ \t]*" + name + rb"[ \t]+([^#\n]*)", content, re.M)
    ]
    return [start for start, _ in matches], [text for _, text in matches]


def _vectors(lines: tuple[list[int], list[bytes]], name: bytes, least: int, label: str) -> Reals:
    """Numbers of lines of vectors, (n, columns), which must be finite; NaN where a line has fewer than others."""
    if not lines[1]:
        return np.zeros((0, 3))
    values = numbers(b"\n".join(lines[1]), label)
    widths = np.array([len(line.split()) for line in lines[1]])
    most = min(int(widths.max()), 8)
    vectors = np.full((len(widths), most), np.nan)
    firsts = np.cumsum(widths) - widths
    for column in range(most):
        some = widths > column
        vectors[some, column] = values[firsts[some] + column]
    if widths.min() < least or not np.isfinite(vectors[:, :least]).all() or len(values) != widths.sum():
        refuse(label, f"has a line {name.decode()!r} with fewer than {least} finite numbers")
    return vectors if name == b"v" else np.nan_to_num(vectors)


def _colors(vertices: Reals) -> Reals | None:
    """Colours that stand behind positions, of 0 … 1 or of bytes."""
    if vertices.shape[1] < 6:
        return None
    colors = np.where(np.isfinite(vertices[:, 3:6]).all(axis=1, keepdims=True), vertices[:, 3:6], np.nan)
    if np.isnan(colors).all():
        return None
    colors = colors / 255 if 1 < np.nanmax(colors) <= 255 else colors
    return np.nan_to_num(colors, nan=1.0)


def _without_faces(content: bytes, label: str) -> NoReturn:
    kinds = (("lines", rb"l"), ("points", rb"p"), ("curves and surfaces", rb"curv2?|surf"))
    other = [name for name, key in kinds if re.search(rb"^[ \t]*(?:" + key + rb")[ \t]", content, re.MULTILINE)]
    if not other and not re.search(rb"^[ \t]*f(?![^ \t\n\\])", content, re.MULTILINE):
        other = ["points"]
    if other:
        raise DataError(f"{label} has no faces, only {' and '.join(other)}, which cannot be rendered; add faces")
    refuse(label, "has no faces")


def _corners(faces: bytes, label: str) -> Reals:
    """Vertex, texture coordinate and normal of all corners, as they are counted there; NaN where one is not there."""
    if faces.translate(None, b"0123456789+-/ \t\n"):
        refuse(label, "has a face with corners that are not integers")
    faces = re.sub(rb"/+(?=[ \t\n]|\Z)", b"", faces)
    forms = set(re.sub(rb"[-+]?[0-9]+", b"d", faces).split())
    if not forms <= set(_FORMS):
        refuse(
            label,
            f"has a face with an unsupported corner of the form {min(forms - set(_FORMS))[:20]!r}, where d is an "
            "integer",
        )
    if len(forms) > 1:
        # all in the longest form, with words for what is not there
        words = [word.split(b"/") for word in faces.split()]
        faces = b" ".join(b" ".join([*(part or b"nan" for part in word), b"nan", b"nan"][:3]) for word in words)
        return numbers(faces, label).reshape(-1, 3)
    (form,) = forms
    values = numbers(faces.replace(b"/", b" "), label)
    columns = [column for column, part in enumerate(form.split(b"/")) if part]
    corners = np.full((len(values) // len(columns), 3), np.nan)
    corners[:, columns] = values.reshape(-1, len(columns))
    return corners


def _count_from_zero(values: Reals, lines: Integers, faces: Integers, what: str, label: str) -> None:
    """Turn numbers that count from 1, or backwards, into rows, in place."""
    count = len(lines)
    behind = values < 0
    rows = values - 1
    if behind.any():
        rows[behind] = np.searchsorted(lines, faces[behind]) + values[behind]
    if not count:
        values[:] = np.nan  # there are none, whatever the faces name
    wrong = (values == 0) | (rows < 0) | (rows >= count) if count else np.zeros(0, bool)
    if wrong.any():
        refuse(label, f"has a face that refers to {what} {values[int(np.argmax(wrong))]:.0f}, but only {count:,} exist")
    if count:
        values[:] = rows


def _materials(content: bytes, faces: Integers) -> tuple[Integers, list[str]]:
    """Number of each face's material, and their names."""
    matches = list(re.finditer(rb"^[ \t]*usemtl(?:[ \t]+([^\n]*))?$", content, re.MULTILINE))
    names: dict[str, int] = {}
    numbered = [names.setdefault(_text(match[1] or b""), len(names)) for match in matches]
    last = np.searchsorted(np.array([match.start() for match in matches], np.int64), faces)
    return np.array([-1, *numbered])[last], list(names)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace").strip()
