"""Colours of what rays met, in numpy: materials, textures, vertex colours, lights and shadows.

Convention
----------
Everything is added up in linear light (:mod:`setsup.scenes.color`). The albedo of a point is the colour of its
material, times its texture, times its vertex colours, each in linear light. Textures are sampled bilinearly in linear
light, between the centres of texels, and go on outside 0 … 1 as their material says; there are no smaller copies of
them (mipmaps), so that a texture seen from far away is not averaged: ask for more samples a pixel.

Light falls on a surface by Lambert's cosine with the interpolated normal, where the mesh has normals, turned to the
side of the triangle from which it is seen. Surfaces are opaque, but for the holes of their materials: what a light with
shadows reaches must see it, from the side from which it is seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats, Numbers
from setsup.scenes.camera import Camera
from setsup.scenes.color import LINEAR
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.meshes.wrapping import folded, wrap_numbers
from setsup.scenes.scene import Ambient, Directional, Lamp, Light, Placement, Scene

__all__ = ["Seen", "Surfaces", "albedo", "light", "normals", "units"]

Blocked = Callable[[npt.NDArray[np.float64], Floats, float], npt.NDArray[np.bool_]]

_LINEAR = LINEAR.astype(np.float32)
_HALF = np.float32(0.5)
_MARGIN = 2.0**-19  # of the largest coordinate: sixteen steps of float32


@dataclass(frozen=True, slots=True)
class Seen:
    """Points on surfaces, as rays from one camera met them.

    Attributes
    ----------
    triangle : (n,) int32
        Numbered as :attr:`Scene.triangles`.
    distance : (n,) float32
        In multiples of the ray.
    u, v : (n,) float32
        Shares of the triangle's second and third corner.
    ray : (n, 3) float32
        In the world's frame.

    """

    triangle: Numbers
    distance: Floats
    u: Floats
    v: Floats
    ray: Floats


class Surfaces:
    """Tables of what shading needs of every triangle of a scene.

    Attributes
    ----------
    instance : (n,) int32
        As in images of instances.
    flat : (n, 3) float32
        Unit normals of the triangles, in the world, on either side.
    smooth : (n,) int32 or None
        Row of ``normals``; −1 for triangles of meshes without.
    normals : (m, 3, 3) float32
        Unit normals of corners, in the world.
    material : (n,) int32
        Row of ``colors`` and ``textures``.
    colors : (k, 3) float32
        Of materials, in linear light.

    """

    def __init__(self, scene: Scene) -> None:
        triangles = scene.triangles
        self.instance = triangles.instance
        a, b, c = (triangles.corners[:, corner] for corner in range(3))
        self.flat = units(np.cross(b - a, c - a)).astype(np.float32)
        meshes = [placement.mesh for placement in scene.placements]
        smooth = [
            None if mesh.normals is None else _corner_normals(placement, mesh.normals)
            for placement, mesh in zip(scene.placements, meshes, strict=True)
        ]
        counts = [len(mesh.faces) for mesh in meshes]
        self.smooth, self.normals = _gathered(smooth, counts, np.float32)
        self.painted, self.paint = _gathered(
            [None if mesh.colors is None else mesh.colors[mesh.faces] for mesh in meshes], counts, np.uint8
        )
        self.mapped, self.uv = _gathered(
            [None if mesh.uv is None else mesh.uv[mesh.faces] for mesh in meshes], counts, np.float32
        )
        before = np.cumsum([0, *(len(mesh.materials) for mesh in meshes)])
        which = [
            np.zeros(len(mesh.faces), np.int32) if mesh.material is None else mesh.material.astype(np.int32)
            for mesh in meshes
        ]
        self.material: Numbers = np.concatenate(
            [np.empty(0, np.int32), *(own + np.int32(first) for own, first in zip(which, before, strict=False))]
        )
        materials = [material for mesh in meshes for material in mesh.materials]
        self.colors: Floats = _LINEAR[np.array([material.color for material in materials], np.intp).reshape(-1, 3)]
        self.textures = _Textures(materials)


class _Textures:
    """Textures of materials, texel after texel in one array."""

    def __init__(self, materials: Sequence[Material]) -> None:
        textures = [material.texture for material in materials]
        self._wraps = wrap_numbers(materials)
        self.any = any(texture is not None for texture in textures)
        starts: dict[int, int] = {}  # materials often share one
        parts = [np.empty((0, 3), np.uint8)]
        first = [-1] * len(textures)
        self.height, self.width = np.ones(len(textures), np.int32), np.ones(len(textures), np.int32)
        size = 0
        for row, texture in enumerate(textures):
            if texture is None:
                continue
            self.height[row], self.width[row] = texture.shape[:2]
            if id(texture) not in starts:
                starts[id(texture)] = size
                parts.append(texture.reshape(-1, 3))
                size += len(parts[-1])
            first[row] = starts[id(texture)]
        self.first: npt.NDArray[np.integer[Any]] = np.array(first, np.int32 if size < 1 << 31 else np.int64)
        texels = np.zeros((size, 4), np.uint8)
        np.concatenate(parts, out=texels[:, :3])
        self._texels = texels.view(np.uint32)[:, 0]  # one number is fetched faster than three

    def sample(self, which: Numbers, uv: Floats) -> Floats:
        """Linear light of textures at texture coordinates, (n, 3)."""
        height, width, first = self.height.take(which), self.width.take(which), self.first.take(which)
        wraps = None if self._wraps is None else self._wraps[which].T
        if wraps is not None:
            uv = np.stack([folded(coordinate, wrap) for coordinate, wrap in zip(uv.T, wraps, strict=True)], axis=1)
        across = (uv[:, 0] - np.floor(uv[:, 0])) * width - _HALF
        down = (np.ceil(uv[:, 1]) - uv[:, 1]) * height - _HALF
        left, top = np.floor(across), np.floor(down)
        across -= left
        down -= top
        x, y = left.astype(np.int32), top.astype(np.int32)
        right, bottom = x + 1, y + 1
        if wraps is not None:
            # beyond its outermost texels a texture that does not repeat has these again
            sideways, upwards = wraps > 0
            np.maximum(x, 0, out=x, where=sideways)
            np.maximum(y, 0, out=y, where=upwards)
            np.minimum(right, width - 1, out=right, where=sideways)
            np.minimum(bottom, height - 1, out=bottom, where=upwards)
        right[right == width] = 0
        bottom[bottom == height] = 0
        np.add(x, width, out=x, where=x < 0)
        np.add(y, height, out=y, where=y < 0)
        upper, lower = y * width + first, bottom * width + first
        share = across[:, None]
        above, below = (_between(self._light(row + x), self._light(row + right), share) for row in (upper, lower))
        return _between(above, below, down[:, None])[:, :3]

    def _light(self, texels: npt.NDArray[np.integer[Any]]) -> Floats:
        """Linear light of texels, (n, 4), of which the last column has no meaning."""
        return _LINEAR.take(self._texels.take(texels).view(np.uint8)).reshape(-1, 4)


def _between(before: Floats, after: Floats, share: Floats) -> Floats:
    after -= before
    after *= share
    after += before
    return after


def normals(surfaces: Surfaces, seen: Seen) -> tuple[Floats, Floats]:
    """Unit normals in the world, turned to the side from which the surface is seen.

    Returns `flat, shading` (n, 3) float32.
    """
    flat = surfaces.flat.take(seen.triangle, axis=0)
    flat *= -np.copysign(np.float32(1), np.einsum("ij,ij->i", flat, seen.ray))[:, None]
    if surfaces.smooth is None:
        return flat, flat
    rows = surfaces.smooth[seen.triangle]
    some = np.flatnonzero(rows >= 0)
    shading = flat.copy()
    smooth = _mixed(surfaces.normals.take(rows[some], axis=0), seen, some)
    length = np.sqrt(np.einsum("ij,ij->i", smooth, smooth))
    side = np.copysign(length, np.einsum("ij,ij->i", smooth, flat[some]))
    usable = length > 1e-6
    shading[some[usable]] = smooth[usable] / side[usable, None]
    return flat, shading


def albedo(surfaces: Surfaces, seen: Seen) -> Floats:
    """Share of the light that comes back from each point, (n, 3) float32 in linear light."""
    which = surfaces.material[seen.triangle]
    colors = surfaces.colors.take(which, axis=0)
    if surfaces.textures.any and surfaces.mapped is not None:
        rows = surfaces.mapped[seen.triangle]
        some = np.flatnonzero((rows >= 0) & (surfaces.textures.first[which] >= 0))
        colors[some] *= surfaces.textures.sample(which[some], _mixed(surfaces.uv.take(rows[some], axis=0), seen, some))
    if surfaces.painted is not None:
        rows = surfaces.painted[seen.triangle]
        some = np.flatnonzero(rows >= 0)
        colors[some] *= _mixed(_LINEAR.take(surfaces.paint.take(rows[some], axis=0)), seen, some)
    return colors


def light(
    lights: Sequence[Light], camera: Camera, seen: Seen, flat: Floats, shading: Floats, blocked: Blocked, size: float
) -> Floats:
    """Light that falls on each point, (n, 3) float32, read-only.

    `flat, shading` (n, 3) float32.
    """
    total = np.zeros((1, 1), np.float32)  # one column while all lights are white or grey, which most are
    points = None
    for source in lights:
        color = np.asarray(source.color[:1] if len(set(source.color)) == 1 else source.color, dtype=np.float32)
        if isinstance(source, Ambient):
            total = total + color
            continue
        if isinstance(source, Directional):
            way = -_unit(source.direction)
            towards: Floats = (way @ camera.rotation if source.of_camera else way).astype(np.float32)
            share = np.maximum(shading @ towards, 0)
            reach = np.inf
        else:
            if points is None:
                points = seen.ray * seen.distance[:, None]  # about the camera, where float32 is finest
            towards, share = _from_lamp(source, camera, points, shading)
            reach = 1.0
        if source.shadow:
            lit = np.flatnonzero(share > 0)
            if points is None:
                points = seen.ray * seen.distance[:, None]
            start = camera.centre + points[lit] + flat[lit].astype(np.float64) * (size * _MARGIN)
            to = towards[lit] if towards.ndim == 2 else np.broadcast_to(towards, (len(lit), 3))
            hidden = blocked(start, to, reach) | (np.einsum("ij,ij->i", flat[lit], to) <= 0)
            share[lit[hidden]] = 0
        total = total + share[:, None] * color
    return np.broadcast_to(total, (len(flat), 3))


def _from_lamp(lamp: Lamp, camera: Camera, points: Floats, shading: Floats) -> tuple[Floats, Floats]:
    """Way to the lamp, (n, 3), and share of its light that arrives, (n,)."""
    towards = (np.asarray(lamp.position, dtype=np.float64) - camera.centre).astype(np.float32) - points
    square = np.maximum(np.einsum("ij,ij->i", towards, towards), np.float32(1e-30))
    distance = np.sqrt(square)
    share = np.maximum(np.einsum("ij,ij->i", shading, towards) / distance, 0)
    if lamp.axis is not None:
        along = -(towards @ _unit(lamp.axis).astype(np.float32)) / distance
        share *= np.where(along > 0, np.maximum(along, 0) ** np.float32(lamp.exponent), 0)
    if lamp.reach is not None:
        share *= np.float32(lamp.reach**2) / square
    return towards, share


def _gathered(
    parts: Sequence[npt.NDArray[Any] | None], counts: Sequence[int], dtype: type
) -> tuple[Numbers | None, npt.NDArray[Any]]:
    """Rows of those that have some, one after the other; and which row each triangle has, None where none has."""
    if all(part is None for part in parts):
        return None, np.empty((0, 3, 3), dtype)
    rows, first = [], 0
    for part, count in zip(parts, counts, strict=True):
        rows.append(np.full(count, -1, np.int32) if part is None else np.arange(first, first + count, dtype=np.int32))
        first += 0 if part is None else count
    values = np.concatenate([part for part in parts if part is not None])
    return np.concatenate(rows), values.astype(dtype, copy=False)


def _corner_normals(placement: Placement, normals: Floats) -> npt.NDArray[np.float64]:
    """Unit normals of the corners of triangles in the world, (n, 3, 3), from those of the vertices of their mesh."""
    turned = units(units(normals.astype(np.float64)) / placement.scale) @ placement.rotation.T
    return np.asarray(turned[placement.mesh.faces])


def _mixed(corners: npt.NDArray[Any], seen: Seen, some: npt.NDArray[np.intp]) -> Floats:
    """Interpolate what the three corners have, (n, 3, …), by the shares of the corners."""
    u, v = seen.u[some], seen.v[some]
    shares = np.stack([1 - u - v, u, v], axis=1)
    return np.asarray(np.einsum("ij,ijk->ik", shares, corners))


def units(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Vectors (n, 3) of length 1; those without length stay so."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))


def _unit(vector: Sequence[float]) -> npt.NDArray[np.float64]:
    way = np.asarray(vector, dtype=np.float64)
    way = way / np.abs(way).max()  # so that no square is too small or too large
    return np.asarray(way / np.linalg.norm(way))
