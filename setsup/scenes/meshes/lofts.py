"""Bodies that mirror images of themselves: outlines at several stations along x, given for y ≥ 0.

Convention
----------
x runs along the body, y to its left, z up. What is given is the half with y ≥ 0; the other half is its exact mirror
image, triangle by triangle, so that images of either side agree.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.scenes.meshes.mesh import Material, Mesh

__all__ = ["loft", "mirrored", "outline"]

_MIRROR = np.array([1.0, -1.0, 1.0])


def loft(stations: npt.ArrayLike, materials: Sequence[Material], strips: npt.ArrayLike | None = None) -> Mesh:
    """Flat-shaded body through outlines, with both ends closed; mirrored in y = 0.

    `stations` is (s, k, 3), metres: k points of the outline at each of s places, from y = 0 below to y = 0 above.
    `strips` (s − 1, k − 1) tells the material of each of its quads; the ends have the first material.
    """
    points = np.asarray(stations, np.float64)
    count, across = points.shape[:2]
    number = np.arange(count * across).reshape(count, across)
    here, beside, after, beyond = number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]
    quads = np.stack([np.stack([here, beside, beyond], -1), np.stack([here, beyond, after], -1)], 2)
    kinds = np.zeros((count - 1, across - 1), np.uint16) if strips is None else np.asarray(strips, np.uint16)
    ends = [(row[0], row[at], row[at + 1]) for row in (number[0], number[-1]) for at in range(1, across - 1)]
    faces = np.concatenate([quads.reshape(-1, 3), np.array(ends).reshape(-1, 3)]).astype(np.int32)
    material = np.concatenate([np.repeat(kinds.reshape(-1), 2), np.zeros(len(ends), np.uint16)])
    return mirrored(Mesh(points.reshape(-1, 3), faces, materials=tuple(materials), material=material))


def mirrored(half: Mesh) -> Mesh:
    """A mesh and its mirror image in the plane y = 0, as one."""
    count = len(half.vertices)
    return Mesh(
        np.concatenate([half.vertices, half.vertices * _MIRROR]),
        np.concatenate([half.faces, half.faces + np.int32(count)]),
        None if half.normals is None else np.concatenate([half.normals, half.normals * _MIRROR.astype(np.float32)]),
        materials=half.materials,
        material=None if half.material is None else np.concatenate([half.material] * 2),
    )


def outline(widths: Sequence[float], heights: Sequence[float], x: float) -> Reals:
    """Points of a half outline at x: half widths at heights, with a point on the axis below and above."""
    sides = [[x, width, height] for width, height in zip(widths, heights, strict=True)]
    return np.array([[x, 0.0, heights[0]], *sides, [x, 0.0, heights[-1]]])
