"""Holes in surfaces, of materials with a mask: where they are, and rays that pass through them.

Surfaces with holes have an engine of their own beside that of all others: what lies behind a hole is found whatever
its distance, and only scenes that have any are traced twice.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Floats
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.meshes.wrapping import folded, wrap_numbers
from setsup.scenes.scene import Scene
from setsup.scenes.surfaces.per_scene import PerScene

__all__ = ["Holes", "PiercedEngine", "holes_of"]

Numbers = npt.NDArray[np.integer[Any]]

_STEP = 2.0**-19  # of the largest coordinate, sixteen steps of float32: by so much a ray goes on behind a hole


class Holes:
    """Holes of a scene.

    Attributes
    ----------
    masks : (n,) int32
        Number of the mask of each triangle, from 1 on; 0 for triangles without.
    triangles : (m,) int64
        Those with a mask, ascending.

    """

    def __init__(self, scene: Scene) -> None:
        numbers: dict[tuple[int, str, str], int] = {}  # of masks, by identity, and how they go on
        masks, uv, owners = [], [], list[Material]()
        for placement in scene.placements:
            mesh = placement.mesh
            for material in mesh.materials:
                if material.mask is not None and (id(material.mask), *material.wrap) not in numbers:
                    owners.append(material)
                    numbers[id(material.mask), *material.wrap] = len(owners)
            own = [
                0 if material.mask is None or mesh.uv is None else numbers[id(material.mask), *material.wrap]
                for material in mesh.materials
            ]
            materials = np.zeros(len(mesh.faces), np.uint16) if mesh.material is None else mesh.material
            masks.append(np.array(own, np.int32)[materials])
            if mesh.uv is not None:
                uv.append(mesh.uv[mesh.faces[masks[-1] > 0]].astype(np.float64))
        self.masks: npt.NDArray[np.int32] = np.concatenate(masks)
        self.triangles = np.flatnonzero(self.masks)
        sheets = [material.mask for material in owners if material.mask is not None]
        self._uv, self._solid = np.concatenate(uv), np.concatenate([sheet.ravel() for sheet in sheets])
        which = self.masks[self.triangles] - 1
        self._sizes = np.array([sheet.shape for sheet in sheets])[which]
        self._firsts = np.cumsum([0, *(sheet.size for sheet in sheets)])[which]
        wraps = wrap_numbers(owners)
        self._wraps = None if wraps is None else wraps[which]

    def at(self, rows: Numbers, u: npt.NDArray[Any], v: npt.NDArray[Any]) -> Bools:
        """Whether points lie in holes.

        `rows` (k,) int; `u, v` (k,) float.
        """
        shares = np.stack([1.0 - u - v, u, v], axis=1)
        uv = np.einsum("ij,ijk->ik", shares, self._uv[rows])
        height, width = self._sizes[rows].T
        if self._wraps is not None:
            for axis in range(2):
                uv[:, axis] = folded(uv[:, axis], self._wraps[rows, axis])
        x = np.minimum((uv[:, 0] - np.floor(uv[:, 0])) * width, width - 1).astype(np.int64)
        y = np.minimum((np.ceil(uv[:, 1]) - uv[:, 1]) * height, height - 1).astype(np.int64)
        return np.asarray(~self._solid[self._firsts[rows] + y * width + x])


def _holes(scene: Scene) -> Holes | None:
    meshes = (placement.mesh for placement in scene.placements)
    some = any(mesh.uv is not None and any(material.mask is not None for material in mesh.materials) for mesh in meshes)
    return Holes(scene) if some else None


holes_of: PerScene[Holes | None] = PerScene(_holes)
"""Holes of a scene, None where it has none."""


class PiercedEngine:
    """Traces rays about the middle of a scene, through its holes."""

    def __init__(
        self, make: Callable[..., Any], vertices: npt.NDArray[np.float64], faces: Numbers, holes: Holes
    ) -> None:
        self._holes = holes
        others = faces.copy()
        others[holes.triangles] = others[holes.triangles, :1]  # no area, so that nothing meets them
        self._others, self._pierced = make(vertices, others), make(vertices, faces[holes.triangles])
        self._step = _STEP * float(np.abs(vertices).max())

    def first(self, start: Floats, way: Floats) -> Any:
        """First triangle that each ray meets outside of holes."""
        hits = self._others.first(start, way)
        rays, passed = np.arange(len(way)), np.zeros(len(way))
        while len(rays):
            some, before = way[rays], passed[rays]
            begin = start[rays] + (before[:, None] * some).astype(np.float32)
            met = self._pierced.first(begin, some)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = self._step / np.sqrt(np.einsum("ij,ij->i", some, some, dtype=np.float64))
                distance = met.distance + before
                # of two in one place, that with the holes is seen: a decal on a wall
                ahead = np.flatnonzero((met.triangle >= 0) & (distance <= hits.distance[rays] + step))
            hole = self._holes.at(met.triangle[ahead], met.u[ahead], met.v[ahead])
            solid = ahead[~hole]
            there = rays[solid]
            hits.triangle[there] = self._holes.triangles[met.triangle[solid]]
            hits.distance[there] = distance[solid]
            hits.u[there], hits.v[there] = met.u[solid], met.v[solid]
            rays, on = rays[ahead[hole]], ahead[hole]
            passed[rays] = distance[on] + step[on]
        return hits

    def blocked(self, start: Floats, way: Floats, reach: Floats) -> Bools:
        """Whether anything but holes lies before a reach."""
        hidden: Bools = self._others.blocked(start, way, reach)
        left = np.flatnonzero(~hidden)
        met = self.first(start[left], way[left])
        hidden[left] = (met.triangle >= 0) & (met.distance <= reach[left])
        return hidden
