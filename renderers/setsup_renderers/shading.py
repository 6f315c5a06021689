"""Colours of what rays met, in numpy: lights and shadows.

Convention
----------
Everything is added up in linear light (:mod:`setsup.scenes.color`). The albedo of a point is that of
:mod:`setsup.scenes.surfaces.appearance`.

Light falls on a surface by Lambert's cosine with the interpolated normal, where the mesh has normals, turned to the
side of the triangle from which it is seen. Surfaces are opaque, but for the holes of their materials: what a light with
shadows reaches must see it, from the side from which it is seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats, Numbers
from setsup.scenes.camera import Camera
from setsup.scenes.scene import Ambient, Directional, Lamp, Light, Placement, Scene
from setsup.scenes.surfaces.appearance import appearance_of, gathered, mixed

__all__ = ["Seen", "Surfaces", "light", "normals", "units"]

Blocked = Callable[[npt.NDArray[np.float64], Floats, float], npt.NDArray[np.bool_]]

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
    appearance : Appearance
        Albedo of points on the triangles.

    """

    def __init__(self, scene: Scene) -> None:
        triangles = scene.triangles
        self.instance = triangles.instance
        self.appearance = appearance_of(scene)
        a, b, c = (triangles.corners[:, corner] for corner in range(3))
        self.flat = units(np.cross(b - a, c - a)).astype(np.float32)
        meshes = [placement.mesh for placement in scene.placements]
        smooth = [
            None if mesh.normals is None else _corner_normals(placement, mesh.normals)
            for placement, mesh in zip(scene.placements, meshes, strict=True)
        ]
        counts = [len(mesh.faces) for mesh in meshes]
        self.smooth, self.normals = gathered(smooth, counts, np.float32)


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
    smooth = mixed(surfaces.normals.take(rows[some], axis=0), seen.u[some], seen.v[some])
    length = np.sqrt(np.einsum("ij,ij->i", smooth, smooth))
    side = np.copysign(length, np.einsum("ij,ij->i", smooth, flat[some]))
    usable = length > 1e-6
    shading[some[usable]] = smooth[usable] / side[usable, None]
    return flat, shading


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


def _corner_normals(placement: Placement, normals: Floats) -> npt.NDArray[np.float64]:
    """Unit normals of the corners of triangles in the world, (n, 3, 3), from those of the vertices of their mesh."""
    turned = units(units(normals.astype(np.float64)) / placement.scale) @ placement.rotation.T
    return np.asarray(turned[placement.mesh.faces])


def units(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Vectors (n, 3) of length 1; those without length stay so."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))


def _unit(vector: Sequence[float]) -> npt.NDArray[np.float64]:
    way = np.asarray(vector, dtype=np.float64)
    way = way / np.abs(way).max()  # so that no square is too small or too large
    return np.asarray(way / np.linalg.norm(way))
