"""Scenes as vertex buffers: plain arrays, three vertices a triangle. No GL here.

Positions are about the middle of the scene, taken off in float64: a scene far from the origin is as sharp as one at it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.scenes.color import LINEAR
from setsup.scenes.mesh import Mesh
from setsup.scenes.scene import Placement, Scene

__all__ = ["FLAT", "Surface", "surfaces"]

Array = npt.NDArray[Any]
Reals = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]

FLAT = np.dtype([("normal", "f4", 3), ("color", "f2", 4), ("number", "i4", 2)])
"""What is the same all over a triangle: its unit normal in the world, its material's colour in linear light, and its
instance and its own number."""

_LINEAR = LINEAR.astype(np.float32)


@dataclass(frozen=True, slots=True)
class Surface:
    """Triangles that are drawn at once.

    Attributes
    ----------
    positions : (n, 3, 3) float32, metres
        About the middle of the scene.
    flat : (n, 3) of FLAT
        The same three times.
    texture : (h, w, 3) uint8 or None
        sRGB, row 0 at the top.
    uv : (n, 3, 2) float32 or None
        Texture coordinates, where there is a texture.
    normals : (n, 3, 3) float32 or None
        Unit normals of the corners in the world.
    paint : (n, 3, 3) float32 or None
        Colours of the corners, linear light.

    """

    positions: Floats
    flat: Array
    texture: npt.NDArray[np.uint8] | None
    uv: Floats | None
    normals: Floats | None
    paint: Floats | None


def surfaces(scene: Scene) -> tuple[Reals, list[Surface]]:
    """Split a scene in what can be drawn at once; triangles without area are left out.

    Returns
    -------
    middle : (3,) float64, metres
        About which the positions are.
    surfaces : list of Surface
        One for each texture and each kind of mesh.

    """
    middle = scene.bounds.mean(axis=0)
    if not scene.placements:
        return middle, []
    corners = scene.triangles.corners - middle
    normal = _normals(corners)
    groups: dict[tuple[int, bool, bool], list[tuple[int, Placement, npt.NDArray[np.intp] | None, Array]]] = {}
    textures: dict[int, Array | None] = {}
    first = 0
    for placement in scene.placements:
        mesh = placement.mesh
        for rows, material in _parts(mesh):
            texture = None if mesh.uv is None else mesh.materials[material].texture
            textures[id(texture)] = texture
            key = (id(texture), mesh.normals is not None, mesh.colors is not None)
            color = _LINEAR[list(mesh.materials[material].color)]
            groups.setdefault(key, []).append((first, placement, rows, color))
        first += len(mesh.faces)
    found = []
    for (texture_id, smooth, painted), parts in groups.items():
        chosen, colors = [], []
        for start, placement, rows, color in parts:
            count = len(placement.mesh.faces)
            own = np.arange(start, start + count) if rows is None else start + rows
            own = own[np.isfinite(normal[own, 0])]
            chosen.append(own)
            colors.append(np.broadcast_to(color, (len(own), 3)))
        rows = np.concatenate(chosen)
        if not len(rows):
            continue
        picked: Any = slice(None) if len(rows) == len(corners) and len(parts) == len(scene.placements) == 1 else rows
        texture = textures[texture_id]
        each = list(zip(parts, chosen, strict=True))
        found.append(
            Surface(
                corners[picked].astype(np.float32),
                _flat(normal[picked], np.concatenate(colors), scene.triangles.instance[rows], rows),
                texture,
                None if texture is None else np.concatenate([one.mesh.uv[_faces(one, own, start)] for (start, one, _, _), own in each]),  # type: ignore[index]
                np.concatenate([_corner_normals(one)[_faces(one, own, start)] for (start, one, _, _), own in each]) if smooth else None,
                np.concatenate([_LINEAR[one.mesh.colors[_faces(one, own, start)]] for (start, one, _, _), own in each]) if painted else None,  # type: ignore[index]
            )
        )
    return middle, found


def _parts(mesh: Mesh) -> Iterator[tuple[npt.NDArray[np.intp] | None, int]]:
    """Triangles of each material of a mesh that has any; None for all."""
    if mesh.material is None or len(mesh.materials) == 1:
        yield None, 0
        return
    for material in np.unique(mesh.material).tolist():
        yield np.flatnonzero(mesh.material == material), material


def _faces(placement: Placement, own: npt.NDArray[np.intp], start: int) -> npt.NDArray[np.int32]:
    return placement.mesh.faces[own - start]


def _normals(corners: Reals) -> Floats:
    """Unit normals of triangles (n, 3, 3), NaN for those without area."""
    a, b, c = (corners[:, corner].T for corner in range(3))
    (ux, uy, uz), (vx, vy, vz) = b - a, c - a
    found = np.stack([uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx], axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return (found / np.sqrt(np.einsum("ij,ij->i", found, found))[:, None]).astype(np.float32)


def _corner_normals(placement: Placement) -> Floats:
    """Unit normals of the vertices of a mesh in the world, (v, 3); zero for those without length."""
    normals = placement.mesh.normals
    if normals is None:
        return np.zeros((0, 3), np.float32)
    turned = (_units(normals.astype(np.float64)) / placement.scale) @ placement.rotation.T
    return _units(turned).astype(np.float32)


def _units(vectors: Reals) -> Reals:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def _flat(normal: Floats, color: Floats, instance: Array, number: Array) -> Array:
    found = np.empty(len(number), FLAT)
    found["normal"] = normal
    found["color"][:, :3] = color
    found["color"][:, 3] = 1
    found["number"][:, 0] = instance
    found["number"][:, 1] = number
    return np.repeat(found, 3).reshape(-1, 3)
