"""The OFF format: vertices and polygons in text, as in the CAD models of Pascal3D+ and ModelNet.

Own parsing rather than trimesh's: CAD models are read without the extra ``meshes``, and every count is checked against
the file before memory is taken for it.

Convention
----------
Face indices count vertices from 0. A polygon with corners a, b, c, d, … becomes the triangles (a, b, c), (a, c, d), …
in the place of the polygon. What stands behind a polygon on its line, such as a colour, is left out. Frame and unit are
the file's own.
"""

import io
import re
import warnings
from array import array
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.datasets.formats.geometry.records import content
from setsup.errors import DamagedFile

__all__ = ["Off", "read_off"]

Triangles = npt.NDArray[np.int32]

_START = re.compile(rb"\s*OFF\s*(\d{1,10})\s+(\d{1,10})(?:[^\S\n]+\d+)?[^\S\n]*(?:\n|\Z)")
_TEXT = re.compile(rb"[0-9+\-.eE\s]*")
_LINE = 1 << 16  # bytes; a polygon of more corners than fit is refused
_LEAST_VERTEX, _LEAST_FACE = 6, 6  # bytes: "0 0 0\n", "1 0 \n" and the like


@dataclass(frozen=True, slots=True, eq=False)
class Off:
    """Content of an OFF file.

    `vertices` (n, 3) float64; `faces` (m, 3) int32.
    """

    vertices: Reals
    faces: Triangles


def read_off(source: Path | bytes, label: str) -> Off:
    r"""Read an OFF file."""
    data = content(source, label)
    if b"#" in data:
        data = re.sub(rb"#[^\n]*", b"", data)
    start = _START.match(data)
    if start is None:
        raise DamagedFile(
            f"{label} is no OFF file: it begins with {data[:20]!r}, where OFF and the numbers of vertices and faces "
            f"were expected"
        )
    vertices, faces = int(start[1]), int(start[2])
    body = data[start.end() :]
    if vertices * _LEAST_VERTEX + faces * _LEAST_FACE > len(body) + 1:
        raise DamagedFile(
            f"{label}: its header gives {vertices:,} vertices and {faces:,} faces, more than {len(body):,} bytes can "
            f"hold"
        )
    found = _triangles_only(body, vertices, faces) or _line_by_line(body, vertices, faces, label)
    _check(found, label)
    return found


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


def _line_by_line(body: bytes, vertices: int, faces: int, label: str) -> Off:
    positions = np.empty((vertices, 3))
    triangles = array("i")  # flat: an object a face would take many times the file's size
    lines = io.BytesIO(body)
    for turn in range(vertices):
        words = _words(lines, label, f"vertex {turn} of {vertices:,}")
        positions[turn] = _numbers(words, 3, 3, label, f"vertex {turn}")
    for turn in range(faces):
        words = _words(lines, label, f"face {turn} of {faces:,}")
        count = _numbers(words, 1, len(words), label, f"face {turn}")[0]
        if not 3 <= count < len(words) or count != int(count):
            raise DamagedFile(f"{label}: face {turn} has {words[0]!r} corners and {len(words) - 1} numbers")
        corners = _numbers(words[1 : 1 + int(count)], int(count), int(count), label, f"face {turn}")
        if (corners != np.floor(corners)).any() or (np.abs(corners) > 2**31 - 1).any():
            raise DamagedFile(f"{label}: face {turn} names vertices by {words[1:4]}, which are not indices")
        fan = corners.astype(int).tolist()
        for second, third in pairwise(fan[1:]):
            triangles.extend((fan[0], second, third))
    if lines.read().strip():
        raise DamagedFile(f"{label} continues after its {vertices:,} vertices and {faces:,} faces")
    return Off(positions, np.array(triangles, dtype=np.int32).reshape(-1, 3))


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
        raise DamagedFile(f"{label}: {what} is {shown!r}, where {least} numbers were expected") from None


def _check(mesh: Off, label: str) -> None:
    if not np.isfinite(mesh.vertices).all():
        vertex = int(np.argmin(np.isfinite(mesh.vertices).all(axis=1)))
        raise DamagedFile(f"{label}: vertex {vertex} has a coordinate that is not a finite number")
    if len(mesh.faces) and not 0 <= mesh.faces.min() <= mesh.faces.max() < len(mesh.vertices):
        raise DamagedFile(
            f"{label}: its faces name the vertices {mesh.faces.min()} to {mesh.faces.max()}, but there are "
            f"{len(mesh.vertices):,}"
        )
