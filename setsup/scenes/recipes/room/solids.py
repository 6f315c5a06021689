"""Solids of boxes and turned profiles, with texture coordinates: what procedural rooms and objects are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.random import fold, stream_key
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.portable import length, product, sin_cos
from setsup.scenes.recipes.room.patterns import PATTERNS, finish

__all__ = ["Part", "box", "build_mesh", "default_objects", "rectangle", "turned"]


@dataclass(frozen=True, slots=True)
class Part:
    """Quadrilaterals of one material.

    Attributes
    ----------
    corners : (n, 4, 3) float64, metres
        Going around each.
    uv : (n, 4, 2) float64
        Texture coordinates of the corners.
    normals : (n, 4, 3) float64
        Of the surface at the corners.
    material : Material

    """

    corners: Reals
    uv: Reals
    normals: Reals
    material: Material


def rectangle(
    start: npt.ArrayLike, across: npt.ArrayLike, up: npt.ArrayLike, material: Material, span: float = 1.0
) -> Part:
    """Flat rectangle from a corner along two sides, its texture repeated every ``span`` metres."""
    first, side, rise = (np.asarray(some, float) for some in (start, across, up))
    corners = np.stack([first, first + side, first + side + rise, first + rise])[None]
    # coordinates of the world, so that the texture goes on from one rectangle of a wall to the next
    along, upward = side / length(side), rise / length(rise)
    uv = np.stack([product(corners, along), product(corners, upward)], axis=-1) / span
    return Part(corners, uv, np.broadcast_to(np.cross(along, upward), corners.shape), material)


def box(low: Sequence[float], high: Sequence[float], material: Material, span: float = 1.0) -> list[Part]:
    """Six sides of a box between two corners, the texture of the upright ones upright."""
    ends = np.array([low, high], float)
    corners = ends[_BOX, (0, 1, 2)]
    uv = np.stack([corners[_SIDES, :, _ACROSS], corners[_SIDES, :, _UP]], axis=-1) / span
    return [Part(corners, uv, np.broadcast_to(_OUTWARD[:, None], corners.shape), material)]


_BOX = np.array(
    [
        [(0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1)],
        [(1, 1, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1)],
        [(0, 1, 0), (0, 0, 0), (0, 0, 1), (0, 1, 1)],
        [(1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1)],
        [(0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)],
        [(0, 1, 0), (1, 1, 0), (1, 0, 0), (0, 0, 0)],
    ]
)
"""Which end of each axis the corners of the sides have: −y, y, −x, x, z, −z."""
_OUTWARD = np.array([(0.0, -1, 0), (0, 1, 0), (-1, 0, 0), (1, 0, 0), (0, 0, 1), (0, 0, -1)])
_SIDES, _ACROSS, _UP = np.arange(6), np.array([0, 0, 1, 1, 0, 0]), np.array([2, 2, 2, 2, 1, 1])


def turned(
    profile: npt.ArrayLike,
    material: Material,
    *,
    centre: Sequence[float] = (0.0, 0.0, 0.0),
    segments: int = 24,
    span: float = 1.0,
    creased: bool = False,
) -> Part:
    """Turn a profile about the z axis.

    `profile` (m, 2) float, metres.
    """
    line = np.asarray(profile, float)
    pieces = np.diff(line, axis=0)
    lengths = np.linalg.norm(pieces, axis=1)
    outward = np.stack([pieces[:, 1], -pieces[:, 0]], axis=1) / lengths[:, None]
    starts, ends = outward, outward
    if not creased:
        closed = np.allclose(line[0], line[-1])
        before = np.concatenate([outward[-1:] if closed else outward[:1], outward[:-1]])
        after = np.concatenate([outward[1:], outward[:1] if closed else outward[-1:]])
        starts, ends = outward + before, outward + after
    turn = 2 * np.pi * np.arange(segments + 1) / segments
    turn[-1] = 0.0  # so that the seam closes to the last bit
    around = max(1, round(2 * np.pi * float(line[:, 0].max()) / span)) * np.arange(segments + 1) / segments
    along = np.concatenate([[0.0], np.cumsum(lengths)]) / span

    def swept(ends: Reals, column: int) -> Reals:
        """Turn radii and heights to one end of each segment, (m − 1, segments, 3)."""
        radius, height = ends.T
        sine, cosine = sin_cos(turn[column : segments + column])
        flat = radius[:, None] * cosine, radius[:, None] * sine
        return np.stack([*flat, np.broadcast_to(height[:, None], flat[0].shape)], axis=-1)

    order = ((0, 0), (0, 1), (1, 1), (1, 0))  # which end of the piece, which end of the segment
    points = [line[:-1], line[1:]]
    normals = [starts, ends]
    corners = np.stack([swept(points[end], column) for end, column in order], axis=2).reshape(-1, 4, 3)
    upright = np.stack([swept(normals[end], column) for end, column in order], axis=2).reshape(-1, 4, 3)
    uv = np.stack(
        [
            np.stack(
                np.broadcast_arrays(around[column : segments + column], along[end : len(line) - 1 + end, None]), -1
            )
            for end, column in order
        ],
        axis=2,
    ).reshape(-1, 4, 2)
    return Part(corners + np.asarray(centre, float), uv, upright, material)


def build_mesh(parts: Sequence[Part]) -> Mesh:
    """Join parts to one mesh; parts of one material object share it, and triangles without area are left out."""
    corners = np.concatenate([part.corners for part in parts]).reshape(-1, 3)
    first = 4 * np.arange(len(corners) // 4)[:, None]
    faces = (first[:, None] + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3)
    materials = list({id(part.material): part.material for part in parts}.values())
    number = {id(material): number for number, material in enumerate(materials)}
    which = np.repeat([number[id(part.material)] for part in parts], [2 * len(part.corners) for part in parts])
    sides = corners[faces[:, 1:]] - corners[faces[:, :1]]
    kept = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1) > 1e-12
    normals = np.concatenate([part.normals for part in parts]).reshape(-1, 3)
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    return Mesh(
        corners,
        faces[kept],
        (np.where(lengths > 1e-9, normals, (0, 0, 1)) / np.where(lengths > 1e-9, lengths, 1)).astype(np.float32),
        np.concatenate([part.uv for part in parts]).reshape(-1, 2).astype(np.float32),
        materials=tuple(materials),
        material=which[kept].astype(np.uint16),
    )


@lru_cache(maxsize=1)
def default_objects() -> dict[str, Mesh]:
    """Solids of a dozen shapes with several patterns each; the boxes around them have diagonals of 1 m."""
    objects = {}
    key = fold(stream_key(0, "room objects"), 0)
    for row, shape in enumerate(_SHAPES):
        for number in range(3):
            own = fold(key, 3 * row + number)
            first, second = (finish(fold(own, which), PATTERNS) for which in (0, 1))
            objects[f"{shape} {number + 1}"] = _normalised(build_mesh(_shape(shape, first, second)))
    return objects


_SHAPES = (
    "ball", "block", "bowl", "bottle", "chest", "column", "cone", "cross", "ring", "stairs", "stool", "vase",
)  # fmt: skip


def _shape(name: str, first: Material, second: Material) -> list[Part]:
    """Shapes about 1 m large, with a texture about 0.5 m large."""
    half = np.linspace(-np.pi / 2, np.pi / 2, 13)
    if name == "ball":
        return [turned(_arc(half, 0.5, 0.0, 0.0), first, span=0.8)]
    if name == "block":
        return box((-0.5, -0.3, 0), (0.5, 0.3, 0.4), first, 0.5)
    if name == "bowl":
        arc = np.linspace(-np.pi / 2, 0, 8)
        inside = np.flip(_arc(arc, 0.44, 0.0, 0.0), axis=0)
        return [
            turned(_arc(arc, 0.5, 0.0, 0.0), first, span=0.5),
            turned([(0.5, 0), (0.44, 0)], second, creased=True),
            turned(inside, second, span=0.5),
        ]
    if name == "bottle":
        return [
            turned([(0, 0), (0.2, 0), (0.2, 0.5)], first, span=0.5, creased=True),
            turned([(0.2, 0.5), (0.19, 0.56), (0.12, 0.66), (0.07, 0.72), (0.065, 0.9)], second, span=0.5),
            turned([(0.065, 0.9), (0.08, 0.9), (0.08, 1.0), (0, 1.0)], first, span=0.5, creased=True),
        ]
    if name == "chest":
        sine, cosine = sin_cos(half + np.pi / 2)
        lid = np.stack([0.25 * cosine, 0.5 + 0.2 * sine], axis=1)
        sides = [rectangle((-0.5, *start), (1, 0, 0), (0, *(end - start)), second, 0.5) for start, end in pairwise(lid)]
        ends = [_fan(x, lid, second) for x in (-0.5, 0.5)]
        return [*box((-0.5, -0.25, 0), (0.5, 0.25, 0.5), first, 0.5), *sides, *ends]
    if name == "column":
        return [turned([(0, 0), (0.3, 0), (0.3, 0.9), (0, 0.9)], first, span=0.5, creased=True)]
    if name == "cone":
        return [turned([(0, 0), (0.4, 0), (0, 0.9)], first, span=0.5, creased=True)]
    if name == "cross":
        arms = box((-0.5, -0.12, 0.5), (0.5, 0.12, 0.74), second, 0.5)
        return [*box((-0.13, -0.13, 0), (0.13, 0.13, 1.0), first, 0.5), *arms]
    if name == "ring":
        return [turned(_arc(np.linspace(0, 2 * np.pi, 17), 0.14, 0.36, 0.0), first, span=0.5, segments=32)]
    if name == "stairs":
        return [
            part
            for step in range(4)
            for part in box(
                (-0.3, 0.2 * step - 0.4, 0), (0.3, 0.2 * step - 0.2, 0.2 * step + 0.2), (first, second)[step % 2], 0.5
            )
        ]
    if name == "stool":
        legs = [
            part
            for x in (-0.25, 0.25)
            for y in (-0.25, 0.25)
            for part in box((x - 0.04, y - 0.04, 0), (x + 0.04, y + 0.04, 0.5), second, 0.5)
        ]
        return [turned([(0, 0.5), (0.4, 0.5), (0.4, 0.6), (0, 0.6)], first, span=0.5, creased=True), *legs]
    profile = [(0, 0), (0.18, 0), (0.3, 0.2), (0.33, 0.4), (0.26, 0.62), (0.13, 0.8), (0.12, 0.9), (0.2, 1.0)]
    return [turned(profile, first, span=0.5), turned([(0.2, 1.0), (0.17, 1.0), (0.08, 0.8), (0, 0.7)], second)]


def _arc(angles: Reals, radius: float, away: float, height: float) -> Reals:
    """Radius and height of points of a circle that stands ``away`` from the axis."""
    sine, cosine = sin_cos(angles)
    return np.stack([np.maximum(away + radius * cosine, 0), height + radius * sine], axis=1)


def _fan(x: float, line: Reals, material: Material) -> Part:
    """Flat end at x, from the middle of a line's ends to each of its pieces."""
    count = len(line) - 1
    middle = np.broadcast_to((line[0] + line[-1]) / 2, (count, 2))
    flat = np.stack([middle, line[:-1], line[1:], line[1:]], axis=1)
    corners = np.concatenate([np.full((count, 4, 1), x), flat], axis=2)
    return Part(corners, flat / 0.5, np.broadcast_to((1.0, 0.0, 0.0), corners.shape), material)


def _normalised(mesh: Mesh) -> Mesh:
    low, high = mesh.bounds
    vertices = (mesh.vertices - (low + high) / 2) / length(high - low)
    return Mesh(vertices, mesh.faces, mesh.normals, mesh.uv, materials=mesh.materials, material=mesh.material)
