"""The OFF format: vertices and polygons in text, as in the CAD models of Pascal3D+ and ModelNet.

Own parsing rather than trimesh's: CAD models are read without the extra ``meshes``, and every count is checked against
the file before memory is taken for it.

Convention
----------
Face indices count vertices from 0. A polygon with corners a, b, c, d, … becomes the triangles (a, b, c), (a, c, d), …
in the place of the polygon, if it is convex; others are cut within their outlines. Frame and unit are the file's own.
"""

import io
import re
import warnings
from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.errors import DamagedFile, DataError
from setsup.scenes.meshes.formats.records import content
from setsup.scenes.meshes.polygons import triangulate

__all__ = ["Off", "read_off"]

Triangles = npt.NDArray[np.int32]

_START = re.compile(
    rb"\s*(?P<kind>(?:ST)?C?N?4?n?)OFF(?P<binary>[^\S\n]+BINARY)?\s*(?P<vertices>\d{1,10})\s+(?P<faces>\d{1,10})"
    rb"(?:[^\S\n]+\d+)?[^\S\n]*(?:\n|\Z)"
)
_TEXT = re.compile(rb"[0-9+\-.eE\s]*")
_LINE = 1 << 16  # bytes; a polygon of more corners than fit is refused
_LEAST_VERTEX, _LEAST_FACE = 6, 6  # bytes: "0 0 0\n", "1 0 \n" and the like


@dataclass(frozen=True, slots=True, eq=False)
class Off:
    """Content of an OFF file.

    `vertices` (n, 3) float64; `faces` (m, 3) int32; `normals` (n, 3), `colors` (n, 3) and `face_colors` (m, 3) float64
    of 0 … 1, or None where the file has none; where some vertices or faces have a color, the others are white.
    """

    vertices: Reals
    faces: Triangles
    normals: Reals | None = None
    colors: Reals | None = None
    face_colors: Reals | None = None


def read_off(source: Path | bytes, label: str) -> Off:
    r"""Read an OFF file."""
    data = content(source, label)
    if b"#" in data:
        data = re.sub(rb"#[^\n]*", b"", data)
    start = _START.match(data)
    if start is None:
        raise DamagedFile(
            f"{label} is not an OFF file: it begins with {data[:20]!r}, but must begin with OFF and the numbers of "
            "vertices and faces"
        )
    if start["binary"]:
        raise DataError(f"{label} is a binary OFF file, which is not supported; convert it to text")
    kind = start["kind"].decode()
    if "4" in kind or "n" in kind:
        raise DataError(
            f"{label} has vertices of four or more dimensions ({kind}OFF), but only three are supported; convert it"
        )
    vertices, faces = int(start["vertices"]), int(start["faces"])
    body = data[start.end() :]
    if vertices * _LEAST_VERTEX + faces * _LEAST_FACE > len(body) + 1:
        raise DamagedFile(
            f"{label}: its header declares {vertices:,} vertices and {faces:,} faces, more than its {len(body):,} "
            "bytes can contain"
        )
    polygons = None if kind else _triangles_only(body, vertices, faces)
    polygons = polygons or _line_by_line(body, vertices, faces, kind, label)
    _check(polygons, label)
    return polygons


def _triangles_only(body: bytes, vertices: int, faces: int) -> Off | None:
    """Mesh of a file that holds nothing but numbers, three a vertex and four a triangle; None for any other."""
    if not _TEXT.fullmatch(body):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # what numpy says of text that is no number
        try:
            numbers = np.fromstring(body.decode("ascii"), np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    if len(numbers) != 3 * vertices + 4 * faces:
        return None
    polygons = numbers[3 * vertices :].reshape(faces, 4)
    corners = polygons[:, 1:]
    if (polygons[:, 0] != 3).any() or (corners != np.floor(corners)).any() or (np.abs(corners) > 2**31 - 1).any():
        return None
    return Off(numbers[: 3 * vertices].reshape(vertices, 3), corners.astype(np.int32))


def _line_by_line(body: bytes, vertices: int, faces: int, kind: str, label: str) -> Off:
    lines = io.BytesIO(body)
    positions, normals = np.empty((vertices, 3)), np.empty((vertices, 3)) if "N" in kind else None
    vertex_colors, face_colors = _Colors(vertices), _Colors(faces)
    before = 6 if normals is not None else 3
    for turn in range(vertices):
        words = _words(lines, label, f"vertex {turn} of {vertices:,}")
        extra = len(words) - before - 2 * kind.startswith("ST")
        wanted = before if extra not in (0, 3, 4) else len(words)
        given = _numbers(words, wanted, wanted, label, f"vertex {turn}")
        positions[turn] = given[:3]
        if normals is not None:
            normals[turn] = given[3:6]
        # beside a color, or alone, may stand two texture coordinates
        vertex_colors.add(turn, words[before : len(words) - 2 * kind.startswith("ST")])
    corners, lengths = array("q"), array("q")  # flat: an object a face would take many times the file's size
    for turn in range(faces):
        words = _words(lines, label, f"face {turn} of {faces:,}")
        count = _numbers(words, 1, len(words), label, f"face {turn}")[0]
        if not 3 <= count < len(words) or count != int(count):
            raise DamagedFile(f"{label}: face {turn} declares {words[0]!r} corners, but has {len(words) - 1} numbers")
        own = _numbers(words[1 : 1 + int(count)], int(count), int(count), label, f"face {turn}")
        if (own != np.floor(own)).any() or (np.abs(own) > 2**31 - 1).any():
            raise DamagedFile(f"{label}: face {turn} refers to vertices {words[1:4]}, which are not valid indices")
        corners.extend(own.astype(int).tolist())
        lengths.append(int(count))
        face_colors.add(turn, words[1 + int(count) :])
    if lines.read().strip():
        raise DamagedFile(f"{label} contains further data after its {vertices:,} vertices and {faces:,} faces")
    flat = np.array(corners, np.int64)
    _check(Off(positions, flat[:, None].astype(np.int32)), label)
    chosen, polygon = triangulate(positions, flat, np.array(lengths, np.int64))
    painted = face_colors.read()
    return Off(
        positions,
        flat[chosen].astype(np.int32).reshape(-1, 3),
        normals,
        vertex_colors.read(),
        None if painted is None else painted[polygon],
    )


class _Colors:
    """Colors behind vertices or faces: three or four integers up to 255, or floats up to 1."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._rows, self._values, self._floats = array("q"), array("d"), False

    def add(self, row: int, words: list[bytes]) -> None:
        """Keep a color; one number alone names a row of a color map, which the file does not have."""
        if len(words) not in (3, 4):
            return
        try:
            values = [float(word) for word in words[:3]]
        except ValueError:
            return
        if all(0 <= value <= 255 for value in values):
            self._rows.append(row)
            self._values.extend(values)
            self._floats |= any(b"." in word for word in words)

    def read(self) -> Reals | None:
        """Colors of all rows."""
        if not self._rows:
            return None
        values = np.array(self._values).reshape(-1, 3)
        colors = np.ones((self._count, 3))
        colors[np.array(self._rows)] = values if values.max() <= 1 and self._floats else values / 255
        return colors


def _words(lines: io.BytesIO, label: str, what: str) -> list[bytes]:
    while line := lines.readline(_LINE):
        if words := line.split():
            return words
    raise DamagedFile(f"{label} ends before {what}")


def _numbers(words: list[bytes], least: int, most: int, label: str, what: str) -> Reals:
    try:
        if not least <= len(words) <= most:
            raise ValueError
        return np.array([float(word) for word in words[:least]])
    except ValueError:
        shown = b" ".join(words)[:40]
        raise DamagedFile(f"{label}: {what} is {shown!r}, but must be {least} numbers") from None


def _check(mesh: Off, label: str) -> None:
    if not np.isfinite(mesh.vertices).all():
        vertex = int(np.argmin(np.isfinite(mesh.vertices).all(axis=1)))
        raise DamagedFile(f"{label}: vertex {vertex} has a coordinate that is not finite")
    if len(mesh.faces) and not 0 <= mesh.faces.min() <= mesh.faces.max() < len(mesh.vertices):
        raise DamagedFile(
            f"{label}: its faces refer to vertices {mesh.faces.min()} to {mesh.faces.max()}, but it has "
            f"{len(mesh.vertices):,} vertices"
        )
