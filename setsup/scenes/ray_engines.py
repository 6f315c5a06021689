"""Engines that trace rays: Embree through embreex, or trimesh's own where embreex has no wheel, many times slower.

Either is imported when a scene is first traced.
"""

import logging
import os
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats, Numbers, Reals
from setsup.errors import DataError, SetsupError, imported

__all__ = ["Engine", "Hits", "make_engine"]


_RAYS = 1024  # per block of trimesh's engine
# bytes: upper bounds of what Embree allocates per scene, with the stack of a thread that starts late, and per triangle
_TREE, _TRIANGLE = 1 << 25, 512
_log = logging.getLogger("setsup")


class Hits(NamedTuple):
    """First hits of rays.

    Attributes
    ----------
    triangle : (n,) int32
        Numbered as :attr:`Scene.triangles`; −1 if the ray hits nothing.
    distance : (n,) float32
        In multiples of the ray's direction; inf if it hits nothing.
    u, v : (n,) float32
        Barycentric coordinates of the triangle's second and third corner: ``(1 − u − v) a + u b + v c``.

    """

    triangle: Numbers
    distance: Floats
    u: Floats
    v: Floats


class Engine(Protocol):
    """Traces rays, in coordinates relative to the centre of a scene."""

    def first(self, start: Floats, way: Floats) -> Hits:
        """First hit of each ray."""
        ...

    def blocked(self, start: Floats, way: Floats, reach: Floats) -> npt.NDArray[np.bool_]:
        """Whether each ray hits anything within its reach."""
        ...


class _Embree:
    """Embree, called through embreex."""

    def __init__(self, vertices: Reals, faces: Numbers) -> None:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        _check_memory(len(faces))
        self._scene = EmbreeScene(_device(os.getpid()), robust=True)
        # corners are shared: half as many numbers to hand over, one by one, as with each triangle's own
        TriangleMesh(self._scene, vertices.astype(np.float32), faces)
        self.first(np.zeros((1, 3), np.float32), np.zeros((1, 3), np.float32))  # builds; two threads must not

    def first(self, start: Floats, way: Floats) -> Hits:
        hits = self._scene.run(start, way, output=True)
        triangle, distance = hits["primID"], hits["tfar"]
        distance[triangle < 0] = np.inf
        return Hits(triangle, distance, hits["u"], hits["v"])

    def blocked(self, start: Floats, way: Floats, reach: Floats) -> npt.NDArray[np.bool_]:
        # a copy: Embree writes into what it is given
        return np.asarray(self._scene.run(start, way, dists=np.array(reach), query="OCCLUDED") >= 0)


@cache
def _device(process: int) -> Any:
    """Embree's device of a process, shared by all its scenes.

    Each device holds one of the 1,024 keys for thread-local storage that a process has. Without any left, Embree makes
    none, and embreex passes on a null pointer: the process would end in a segmentation fault.
    """
    from embreex.rtcore import EmbreeDevice

    return EmbreeDevice()


def _check_memory(triangles: int) -> None:
    """Refuse where memory is limited, as by ``ulimit -v``: embreex would end in a segmentation fault."""
    needed = _TREE + _TRIANGLE * triangles
    try:
        np.empty(needed, np.uint8)  # reserved and given back, never written to
    except MemoryError as error:
        raise SetsupError(
            f"tracing a scene of {triangles:,} triangles may take {needed / 2**20:,.0f} MiB, more than this process "
            "may use; raise its limit (ulimit -v), or use a scene with fewer triangles"
        ) from error


class _Trimesh:
    """Trimesh's ray engine, in float64."""

    def __init__(self, vertices: Reals, faces: Numbers) -> None:
        imported("rtree", "render")
        self._corners = vertices[faces]
        # its tolerances are lengths: a scene about as large as 1 suits them
        self._scale = 1 / max(float(np.abs(vertices).max()), 1e-30)
        mesh = imported("trimesh", "render").Trimesh(vertices * self._scale, faces, process=False)
        self._rays = imported("trimesh.ray.ray_triangle", "render").RayMeshIntersector(mesh)
        self._rays.intersects_id(np.zeros((1, 3)), np.ones((1, 3)))  # builds; two threads must not

    def first(self, start: Floats, way: Floats) -> Hits:
        distance, u, v = np.zeros((3, len(way)), np.float32)
        distance[:] = np.inf
        hits = Hits(np.full(len(way), -1, np.int32), distance, u, v)
        for ray, *values in self._met(start, way):
            order = np.lexsort((values[0], values[1], ray))
            which, first = np.unique(ray[order], return_index=True)
            for column, value in zip(hits, values, strict=True):
                column[which] = value[order[first]]
        return hits

    def blocked(self, start: Floats, way: Floats, reach: Floats) -> npt.NDArray[np.bool_]:
        hidden = np.zeros(len(way), bool)
        for ray, _, distance, _, _ in self._met(start, way):
            hidden[ray[distance <= reach[ray]]] = True
        return hidden

    def _met(self, start: Floats, way: Floats) -> Iterator[tuple[Any, ...]]:
        """All that is met, some rays at a time: number of the ray, triangle, distance, u, v."""
        able = np.flatnonzero(np.isfinite(way).all(axis=1) & (way != 0).any(axis=1))
        for first in range(0, len(able), _RAYS):
            some = able[first : first + _RAYS]
            begin, along = start[some].astype(np.float64), way[some].astype(np.float64)
            length = np.linalg.norm(along, axis=1, keepdims=True)
            triangle, which = self._rays.intersects_id(begin * self._scale, along / length)
            a, b, c = (self._corners[triangle, corner] for corner in range(3))
            begin, along = begin[which], along[which]
            normal = np.cross(b - a, c - a)
            square = (normal**2).sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                distance = ((a - begin) * normal).sum(axis=1) / (along * normal).sum(axis=1)
                point = begin + distance[:, None] * along - a
                u = (np.cross(point, c - a) * normal).sum(axis=1) / square
                v = (np.cross(b - a, point) * normal).sum(axis=1) / square
            keep = distance >= 0
            yield some[which[keep]], triangle[keep], distance[keep], u[keep], v[keep]


def make_engine(vertices: Reals, faces: Numbers) -> Engine:
    """Embree, or trimesh's engine where it is not installed."""
    try:
        return _Embree(vertices, faces)
    except ImportError as error:
        try:
            engine = _Trimesh(vertices, faces)
        except DataError:
            imported("embreex", "render")  # raises: it is what should be installed, not what it stands in for
            raise
        _say_slow(str(error))
        return engine


@cache
def _say_slow(why: str) -> None:
    """Warn, once a process."""
    _log.warning(
        "rays are traced by trimesh, which is many times slower than embreex; embreex is not available: %s", why
    )
