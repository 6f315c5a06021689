"""Scenes as vertex buffers: plain arrays, three vertices a triangle. No GL here.

Positions are about the middle of the scene, taken off in float64: a scene far from the origin is as sharp as one at it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Floats, Reals
from setsup.scenes.color import LINEAR
from setsup.scenes.meshes.mesh import Mesh, Wrap
from setsup.scenes.scene import Placement, Scene
from setsup.scenes.surfaces.coincident import hidden_sides
from setsup_renderers.shading import units

__all__ = ["FLAT", "Surface", "surfaces"]


FLAT = np.dtype([("normal", "f4", 3), ("number", "i4", 2), ("color", "f2", 4)])
"""What is the same all over a triangle: its unit normal in the world, its instance and its own number, and its
material's colour in linear light. The fourth of the colour says from where it is hidden by another one in its place: 1
from its front, 2 from its back, 3 from both."""

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
    mask : (h, w) bool or None
        Where the surface is, row 0 at the top.
    wrap : 2 of "repeat", "clamp", "mirror"
        How they go on outside 0 … 1.
    uv : (n, 3, 2) float32 or None
        Texture coordinates, where there is a texture or a mask.
    normals : (n, 3, 3) float32 or None
        Unit normals of the corners in the world.
    paint : (n, 3, 3) float32 or None
        Colours of the corners, linear light.
    coincident : bool
        Some triangles are hidden by others in their places.

    """

    positions: Floats
    flat: Array
    texture: npt.NDArray[np.uint8] | None
    mask: npt.NDArray[np.bool_] | None
    wrap: tuple[Wrap, Wrap]
    uv: Floats | None
    normals: Floats | None
    paint: Floats | None
    coincident: bool


def surfaces(scene: Scene) -> tuple[Reals, list[Surface]]:
    """Split a scene in what can be drawn at once; triangles without area are left out.

    Returns `middle` (3,) float64, metres.
    """
    middle = scene.bounds.mean(axis=0)
    if not scene.placements:
        return middle, []
    corners = scene.triangles.corners - middle
    normals = _normals(corners)
    seen = np.isfinite(normals[:, 0])
    table, which = _materials(scene)
    hidden = hidden_sides(scene) @ np.array([1, 2], np.uint8)
    drawn = np.array(table.group)[which] if len(table.groups) > 1 else None
    firsts = np.cumsum([0, *(len(placement.mesh.faces) for placement in scene.placements)])
    made = []
    for (_, _, wrap, smooth, painted), group in table.groups.items():
        rows = np.flatnonzero(seen if drawn is None else seen & (drawn == group))
        if not len(rows):
            continue
        some: Any = slice(None) if len(rows) == len(seen) else rows
        texture, mask = table.textures[group], table.masks[group]
        plain = texture is None and mask is None
        bounds = np.searchsorted(rows, firsts)
        parts = [
            (placement, placement.mesh.faces[rows[low:high] - first])
            for placement, first, low, high in zip(scene.placements, firsts, bounds, bounds[1:], strict=False)
            if high > low
        ]
        made.append(
            Surface(
                corners[some].astype(np.float32),
                _flat(normals[some], table.colors[which[some]], scene.triangles.instance[some], rows, hidden[some]),
                texture,
                mask,
                wrap,
                None if plain else np.concatenate([own.mesh.uv[faces] for own, faces in parts]),  # type: ignore[index]
                np.concatenate([_corner_normals(own)[faces] for own, faces in parts]) if smooth else None,
                np.concatenate([_LINEAR[own.mesh.colors[faces]] for own, faces in parts]) if painted else None,  # type: ignore[index]
                bool(hidden[some].any()),
            )
        )
    return middle, made


class _Table:
    """Materials of a scene: what is drawn at once with what.

    Attributes
    ----------
    groups : dict of (id of texture, id of mask, wrap, smooth, painted) to int
        Numbers of the groups.
    textures : list of (h, w, 3) uint8 or None
        Of each group.
    masks : list of (h, w) bool or None
        Of each group.
    group : list of int
        Of each material.
    colors : (k, 4) float16
        Of each material, in linear light.

    """

    def __init__(self) -> None:
        self.groups: dict[tuple[int, int, tuple[Wrap, Wrap], bool, bool], int] = {}
        self.textures: list[Array | None] = []
        self.masks: list[Array | None] = []
        self.group: list[int] = []
        self.colors: Array = np.ones((0, 4), np.float16)

    def add(self, mesh: Mesh) -> None:
        """Add the materials of a mesh."""
        for material in mesh.materials:
            texture = None if mesh.uv is None else material.texture
            mask = None if mesh.uv is None else material.mask
            wrap: tuple[Wrap, Wrap] = material.wrap
            if texture is None and mask is None:
                wrap = ("repeat", "repeat")
            key = (id(texture), id(mask), wrap, mesh.normals is not None, mesh.colors is not None)
            if key not in self.groups:
                self.groups[key] = len(self.groups)
                self.textures.append(texture)
                self.masks.append(mask)
            self.group.append(self.groups[key])


def _materials(scene: Scene) -> tuple[_Table, npt.NDArray[np.int32]]:
    """Materials of a scene, one placement's after the other's, and which of them each triangle has."""
    table, which = _Table(), []
    for placement in scene.placements:
        mesh, first = placement.mesh, np.int32(len(table.group))
        table.add(mesh)
        which.append(np.full(len(mesh.faces), first) if mesh.material is None else mesh.material + first)
    colors = [material.color for placement in scene.placements for material in placement.mesh.materials]
    table.colors = np.ones((len(colors), 4), np.float16)
    table.colors[:, :3] = _LINEAR[np.array(colors)]
    return table, np.concatenate(which)


def _normals(corners: Reals) -> Floats:
    """Unit normals of triangles (n, 3, 3), NaN for those without area."""
    a, b, c = (corners[:, corner].T for corner in range(3))
    (ux, uy, uz), (vx, vy, vz) = b - a, c - a
    normals = np.stack([uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx], axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        unit: Floats = (normals / np.sqrt(np.einsum("ij,ij->i", normals, normals))[:, None]).astype(np.float32)
    return unit


def _corner_normals(placement: Placement) -> Floats:
    """Unit normals of the vertices of a mesh in the world, (v, 3); zero for those without length."""
    normals = placement.mesh.normals
    if normals is None:
        return np.zeros((0, 3), np.float32)
    turned: Reals = (units(normals.astype(np.float64)) / placement.scale) @ placement.rotation.T
    return np.asarray(units(turned), np.float32)


def _flat(normal: Floats, color: Array, instance: Array, number: Array, hidden: Array) -> Array:
    corners = np.empty(len(number), FLAT)
    corners["normal"] = normal
    corners["color"] = color
    corners["color"][:, 3] = hidden
    corners["number"][:, 0] = instance
    corners["number"][:, 1] = number
    return np.repeat(corners, 3).reshape(-1, 3)
