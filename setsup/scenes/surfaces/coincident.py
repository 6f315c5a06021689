"""Triangles in the same place: which of them is seen, so that images do not depend on who wins by chance.

Models of ShapeNet often have every triangle twice, once for each side, with different materials. Of triangles that have
the same corners, the one is seen whose winding faces the viewer: whose corners go round counterclockwise as one sees
them; of several such, or where none does, the one with the lowest number.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Numbers, Reals
from setsup.random import mix
from setsup.scenes.scene import Scene
from setsup.scenes.surfaces.holes import holes_of
from setsup.scenes.surfaces.per_scene import PerScene

__all__ = ["hidden_sides", "joined", "seen", "shown_sides", "shown_sides_of"]


def shown_sides(
    vertices: Reals, faces: npt.NDArray[np.integer[Any]], masks: npt.NDArray[np.int32] | None = None
) -> Numbers | None:
    """Which triangle is seen where a ray meets a triangle from its front or from its back.

    `vertices` (v, 3) float64; `faces` (n, 3) int; `masks` (n,) int32, optional; returns (n, 2) int32 or None.
    """
    words = _words(vertices)[faces]
    if masks is not None:
        words = mix(words, masks[:, None].astype(np.uint64))
    some = _alike(words.sum(axis=1, dtype=np.uint64))
    if not len(some):
        return None
    sides = some[_sides(vertices[faces[some]], words[some])]
    if (sides == some[:, None]).all():  # words were alike by chance
        return None
    shown = np.repeat(np.arange(len(faces), dtype=np.int32)[:, None], 2, axis=1)
    shown[some] = sides
    return shown


def joined(scene: Scene) -> tuple[Reals, Numbers]:
    """Vertices of all placements in the world, (v, 3), and all triangles of the scene by them, (n, 3).

    The scene has at least one placement.
    """
    firsts = np.cumsum([0, *(len(placement.mesh.vertices) for placement in scene.placements)]).tolist()
    vertices = [placement.placed(placement.mesh.vertices) for placement in scene.placements]
    faces = [placement.mesh.faces + first for placement, first in zip(scene.placements, firsts, strict=False)]
    return np.concatenate(vertices), np.concatenate(faces).astype(np.int32, copy=False)


def hidden_sides(scene: Scene) -> npt.NDArray[np.bool_]:
    """Which triangles of a scene are hidden by others in their places, from their front and from their back.

    Returns (n, 2) bool.
    """
    shown = shown_sides_of(scene)
    if shown is None:
        return np.zeros((len(scene.triangles.face), 2), bool)
    return np.asarray(shown != np.arange(len(shown))[:, None])


def _shown_sides_of(scene: Scene) -> Numbers | None:
    if not scene.placements:
        return None
    holes = holes_of(scene)
    return shown_sides(*joined(scene), None if holes is None else holes.masks)


shown_sides_of: PerScene[Numbers | None] = PerScene(_shown_sides_of)
"""What :func:`shown_sides` finds for the triangles of a scene."""


def _words(vertices: Reals) -> npt.NDArray[np.uint64]:
    """Hashes of places, (v,)."""
    bits = np.ascontiguousarray(vertices + 0.0).view(np.uint64)  # −0 and 0 are one place
    # one coordinate after the other: of a sum, the signs of two coordinates would cancel
    words = mix(0, bits[:, 0])
    for axis in (1, 2):
        words = mix(words, bits[:, axis])
    return words


def _alike(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """Which of many words come more than once."""
    order = words.argsort(kind="stable")
    same = words[order[1:]] == words[order[:-1]]
    return np.sort(order[np.append(same, False) | np.append(False, same)])


def _sides(corners: Reals, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Which of some triangles is seen from either side of each, (n, 2)."""
    count = len(corners)
    ranks = words.argsort(axis=1, kind="stable")
    # a triangle is turned against its sorted corners when their order is an odd permutation
    odd = np.isin(ranks @ [9, 3, 1], [0 * 9 + 2 * 3 + 1, 1 * 9 + 0 * 3 + 2, 2 * 9 + 1 * 3 + 0]).astype(np.int64)
    _, first, group = np.unique(words.sum(axis=1, dtype=np.uint64), return_index=True, return_inverse=True)
    ordered = np.take_along_axis(corners, ranks[..., None], axis=1) + 0.0
    alone = (ordered != ordered[first[group]]).any(axis=(1, 2))  # words may be alike by chance
    group[alone] = len(first) + np.arange(np.count_nonzero(alone))
    lowest = np.full((int(group.max()) + 1, 2), count, np.int64)  # of each group: lowest number of each turn
    np.minimum.at(lowest, (group, odd), np.arange(count))
    lowest = np.where(lowest < count, lowest, lowest.min(axis=1, keepdims=True))
    return np.stack([lowest[group, odd], lowest[group, 1 - odd]], axis=1)


def seen(shown: Numbers | None, corners: Reals, triangle: Numbers, directions: Any) -> Numbers:
    """Replace triangles that rays have met by those that are seen in their places.

    `shown` (n, 2) int32 or None; `corners` (n, 3, 3) float64; `triangle` (k,) int32; `directions` (k, 3) float; returns
    (k,) int32.
    """
    if shown is None:
        return triangle
    shown_triangle = triangle.copy()
    twice = np.flatnonzero((triangle >= 0) & (shown[triangle] != triangle[:, None]).any(axis=1))
    if len(twice):
        hit = triangle[twice]
        at = corners[hit]
        normal = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
        away = (normal * np.asarray(directions)[twice]).sum(axis=1) > 0
        shown_triangle[twice] = shown[hit, away.astype(np.int64)]
    return shown_triangle
