"""Where there is room in a room: free positions inside, and how far they are from whatever stands there.

As in the code of [1]_: positions are drawn evenly in the box of the room, and kept where nothing is nearer than 0.05 m
and at least three of four level rays, along x and y, hit something. Two things are added. The sides of the box and its
top count as surfaces when it comes to how open a position is: else the most open one of a scan without a ceiling would
be as high as can be, and everybody would look at the sky. And positions that cannot be reached from the most open one
in straight lines are left out, which are those inside of cupboards and walls.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks",
   arXiv:2512.04970, 2025; github.com/stefanradev93/oxels.

"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.errors import DataError
from setsup.random import fold, uniform
from setsup.scenes.rays import Rays

__all__ = ["CLEARANCE", "Space", "Surfaces", "distance_to_triangles", "free_space"]


CLEARANCE = 0.05
"""Metres that free positions keep from every surface."""

_SIDE, _MOST = 0.15, 200_000  # metres: surfaces are cut into pieces of at most this length; and about this many at most
_PIECES = 4  # that are nearest by their middles, of which the nearest triangle is taken
_CEILING, _WALL, _FLOOR = 0.1, 0.1, 0.01  # metres from the box of the room, in the paper's code


@dataclass(frozen=True, slots=True)
class Space:
    """Free positions of a room.

    Attributes
    ----------
    points : (n, 3) float64, metres
        At least one.
    clearance : (n,) float64, metres
        How far each is from the nearest surface: from the nearest of a few triangles that are near, where another may
        be a few centimetres nearer still, or from the top or a side of the room's box.

    """

    points: Reals
    clearance: Reals

    @property
    def centre(self) -> Reals:
        """The most open position, (3,) float64, metres."""
        return np.asarray(self.points[np.argmax(self.clearance)])


class Surfaces:
    """Middles of small pieces of all triangles of a room, which tell what is near."""

    def __init__(self, rays: Rays) -> None:
        from scipy.spatial import cKDTree  # slow to import, and the help of the command needs the recipe alone

        self.rays = rays
        corners = rays.scene.triangles.corners
        self._corners = corners
        middles, face, spread = _pieces(corners)
        self._face, self._spread = face, spread
        # none of these changes what is found: the first two make building twice as fast, the last asking by a quarter
        self._tree = cKDTree(middles, balanced_tree=False, compact_nodes=False, leafsize=32)

    def clearance(self, points: Reals) -> Reals:
        """How far points are from the nearest surface, (n,) metres; see :class:`Space`."""
        nearest = np.reshape(self._tree.query(points, k=min(_PIECES, len(self._face)))[1], (len(points), -1))
        away = [distance_to_triangles(points, self._corners[self._face[column]]) for column in nearest.T]
        return np.asarray(np.min(away, axis=0))

    def clear(self, points: Reals, about: Reals, least: float) -> npt.NDArray[np.bool_]:
        """Whether points are exactly farther than ``least`` from every triangle, (n,); ``about`` is their clearance."""
        free = about > least
        doubtful = np.flatnonzero(free & (about <= least + self._spread))
        near: Any = self._tree.query_ball_point(points[doubtful], least + self._spread)
        counts = np.array([len(some) for some in near], dtype=np.int64)
        pieces = np.concatenate([np.empty(0, np.int64), *near]).astype(np.int64)
        owner = np.repeat(doubtful, counts)
        away = distance_to_triangles(points[owner], self._corners[self._face[pieces]])
        free[owner[away <= least]] = False
        return free


def free_space(surfaces: Surfaces, key: npt.NDArray[np.uint64], *, count: int = 5000) -> Space:
    """Find free positions in a room whose floor is z = 0."""
    rays = surfaces.rays
    box = rays.scene.bounds
    low = np.array([box[0, 0] + _WALL, box[0, 1] + _WALL, _FLOOR])
    high = box[1] - (_WALL, _WALL, _CEILING)
    sides = " × ".join(f"{side:.3g}" for side in np.ptp(rays.scene.bounds, axis=0))
    if not (high > low).all():
        raise DataError(f"a room of {sides} m is too small for a camera; check that the unit of the mesh is the metre")
    points = low + (high - low) * uniform(fold(fold(key, np.arange(count))[:, None], np.arange(3)))
    about = surfaces.clearance(points)
    kept = surfaces.clear(points, about, CLEARANCE)
    points, about = points[kept], about[kept]
    level = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    hits = rays.hit(np.repeat(points, 4, axis=0), np.tile(level, (len(points), 1)))[0] >= 0
    inside = hits.reshape(-1, 4).sum(axis=1) >= 3
    points = points[inside]
    about = np.minimum(about[inside], np.minimum((box[1] - points).min(axis=1), (points - box[0])[:, :2].min(axis=1)))
    if not len(points):
        raise DataError(
            f"a room of {sides} m has no free position, with {CLEARANCE:g} m of empty space around it and walls "
            "on three of four sides; check that the mesh is closed on its sides, and that its unit is the metre"
        )
    open_ = _reached(rays, points, int(np.argmax(about)))
    return Space(points[open_], about[open_])


def distance_to_triangles(points: Reals, corners: Reals) -> Reals:
    """Distance of each point to its triangle.

    `points` (n, 3) float64, metres; `corners` (n, 3, 3) float64, metres; returns (n,) float64, metres.
    """
    least = np.full(len(points), np.inf)
    for corner, other in ((0, 1), (1, 2), (2, 0)):
        start, side = corners[:, corner], corners[:, other] - corners[:, corner]
        length = (side * side).sum(axis=1)
        along = ((points - start) * side).sum(axis=1) / np.where(length > 0, length, 1)
        nearest = start + np.clip(along, 0, 1)[:, None] * side
        least = np.minimum(least, np.linalg.norm(points - nearest, axis=1))
    # the plane counts only where a point stands over the triangle: on the inner side of all three edges
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1)
    over = length > 0
    for corner, other in ((0, 1), (1, 2), (2, 0)):
        inward = np.cross(normal, corners[:, other] - corners[:, corner])
        over &= (inward * (points - corners[:, corner])).sum(axis=1) >= 0
    away = np.abs(((points - corners[:, 0]) * normal).sum(axis=1)) / np.where(length > 0, length, 1)
    return np.asarray(np.where(over, away, least))


def _pieces(corners: Reals) -> tuple[Reals, npt.NDArray[np.int64], float]:
    """Middles of small pieces, the triangle that each is of, and how far from its middle a piece reaches."""
    sides = corners - np.roll(corners, 1, axis=1)
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1) / 2
    longest = np.linalg.norm(sides, axis=2).max(axis=1, initial=0.0)
    # a piece has at least a quarter of side², and one of a sliver half of side: so there are about _MOST at most
    side = max(_SIDE, 2 * float(np.sqrt(areas.sum() / _MOST)), 2 * float(longest.sum()) / _MOST)
    face = np.flatnonzero(areas > 0)
    pieces, middles, faces, spread = corners[face], [np.empty((0, 3))], [np.empty(0, np.int64)], 0.0
    while len(pieces):
        lengths = np.linalg.norm(pieces - np.roll(pieces, 1, axis=1), axis=2)  # of the side before each corner
        done = lengths.max(axis=1) <= side
        middles.append(pieces[done].mean(axis=1))
        spread = max(spread, float(np.linalg.norm(pieces[done] - middles[-1][:, None], axis=2).max(initial=0.0)))
        faces.append(face[done])
        # the others are halved across their longest side
        pieces, face, lengths = pieces[~done], face[~done], lengths[~done]
        end = lengths.argmax(axis=1)
        row = np.arange(len(pieces))
        first, second, far = (pieces[row, (end + turn) % 3] for turn in (2, 0, 1))
        half = (first + second) / 2
        pieces = np.concatenate([np.stack([first, half, far], axis=1), np.stack([half, second, far], axis=1)])
        face = np.concatenate([face, face])
    return np.concatenate(middles), np.concatenate(faces), spread


def _reached(rays: Rays, points: Reals, start: int) -> npt.NDArray[np.bool_]:
    """Which points can be reached from one of them in straight lines from point to point, (n,) bool."""
    from scipy.spatial import cKDTree

    reached = np.zeros(len(points), bool)
    reached[start] = True
    newest = np.array([start])
    while len(newest) and not reached.all():
        others = np.flatnonzero(~reached)
        seen = np.zeros(len(others), bool)
        nearest = np.reshape(cKDTree(points[newest]).query(points[others], k=min(4, len(newest)))[1], (len(others), -1))
        for column in nearest.T:
            origin = points[newest[column]]
            seen |= ~rays.blocked(origin, points[others] - origin)
        newest = others[seen]
        reached[newest] = True
    return reached
