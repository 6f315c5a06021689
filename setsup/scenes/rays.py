"""Rays through a scene, by Embree: what they meet first, and whether anything is in their way.

Exactness
---------
Embree answers in float32. Positions are taken about the middle of the scene, in float64, before they are cut to it, so
that a room far from the origin is traced as well as one around it; :meth:`Rays.refined` gives float64 on the triangles
that were found. The same rays through the same scene give the same bits. Embree's robust mode is on: it costs about a
tenth of the speed, and without it one ray in twenty that is aimed exactly at a shared edge slips through; with it
none does. Of rays aimed exactly at a shared vertex one in a hundred still slips through (one in four without). Those
that start within the bounds of the scene and so meet nothing are traced once more, a millionth of their length aside.

References
----------
.. [1] I. Wald, S. Woop, C. Benthin, G. S. Johnson, M. Ernst, "Embree: A Kernel Framework for Efficient CPU Ray
   Tracing", ACM Transactions on Graphics 33(4), 2014.

"""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats, Numbers, Reals
from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError
from setsup.scenes.ray_engines import Hits, make_engine
from setsup.scenes.scene import Scene
from setsup.scenes.surfaces.coincident import joined, seen, shown_sides_of
from setsup.scenes.surfaces.coplanar import barycentric, coplanar_of
from setsup.scenes.surfaces.holes import PiercedEngine, holes_of
from setsup.scenes.surfaces.per_scene import PerScene

__all__ = ["Rays"]


_ASIDE = np.array([[1, 0.6, 0.3], [-0.5, 1, -0.7]], dtype=np.float32) * np.float32(2.0**-20)


class Rays:
    """A scene prepared for ray tracing; building the tree of 225,000 triangles takes about 0.15 s.

    The tree is built when it is first needed, once for a scene however many ``Rays`` it has, and goes with the scene.
    Safe to use from several threads, and after fork; another process that gets one pickled builds its own tree.

    Parameters
    ----------
    scene : Scene
        May be empty.

    Examples
    --------
    >>> from setsup.scenes import Mesh, Placement
    >>> rays = Rays(Scene((Placement(Mesh([[0, 0, 2], [4, 0, 2], [0, 4, 2]], [[0, 1, 2]])),)))
    >>> triangle, distance = rays.hit((1, 1, 0), [[0, 0, 1], [0, 0, -1]])
    >>> triangle.tolist(), distance.tolist()
    ([0, -1], [2.0, inf])
    >>> rays.blocked((1, 1, 0), [[0, 0, 1], [0, 0, 3]]).tolist()
    [False, True]

    """

    def __init__(self, scene: Scene) -> None:
        check_arguments(Rays.__init__, locals(), DataError)
        self.scene = scene

    def hit(self, origins: npt.ArrayLike, directions: npt.ArrayLike) -> tuple[Numbers, Floats]:
        """First triangle that each ray meets; of several in one place, that of :mod:`setsup.scenes.surfaces.coplanar`.

        Parameters
        ----------
        origins : (3,) or (n, 3) float, metres
            Where rays start.
        directions : (n, 3) float
            Of any length; float32 is taken as it is. A ray without length or with NaN meets nothing.

        Returns
        -------
        triangle : (n,) int32
            Numbered as :attr:`Scene.triangles`; −1 where a ray meets nothing.
        distance : (n,) float32
            In multiples of the ray's direction; inf where it meets nothing.

        Raises
        ------
        SetsupError
            When a shape is wrong.

        """
        hits = self.trace(origins, directions)
        return hits.triangle, hits.distance

    def trace(self, origins: npt.ArrayLike, directions: npt.ArrayLike, *, coplanar: bool = True) -> Hits:
        """First triangle that each ray meets, and where on it; otherwise as :meth:`hit`.

        Without ``coplanar`` any of the triangles that overlap in one plane is given.

        Examples
        --------
        >>> from setsup.scenes import Mesh, Placement
        >>> rays = Rays(Scene((Placement(Mesh([[0, 0, 2], [4, 0, 2], [0, 4, 2]], [[0, 1, 2]])),)))
        >>> hits = rays.trace((1, 2, 0), [[0, 0, 1]])
        >>> hits.u.tolist(), hits.v.tolist()
        ([0.25], [0.5])

        """
        way = _directions(directions)
        if not self.scene.placements or not len(way):
            nothing = np.zeros(len(way), np.float32)
            return Hits(np.full(len(way), -1, np.int32), np.full(len(way), np.inf, np.float32), nothing, nothing)
        tree = _tree(self.scene)
        start = tree.start(origins, len(way))
        hits = tree.engine.first(start, way)
        missed = np.flatnonzero(hits.triangle < 0)
        for aside in _ASIDE:
            missed = missed[tree.within(start[missed])] if len(missed) else missed
            if not len(missed):
                break
            nearby = way[missed]
            with np.errstate(invalid="ignore"):  # a direction may be infinite
                nearby += np.abs(nearby).max(axis=1, keepdims=True) * aside
            again = tree.engine.first(start[missed], nearby)
            for old, new in zip(hits, again, strict=True):
                old[missed] = new
            missed = missed[again.triangle < 0]
        tree.choose(hits, way)
        if coplanar:
            self._choose(hits, np.subtract(origins, tree.middle), np.asarray(directions, np.float64))
        return hits

    def _choose(self, hits: Hits, start: Reals, way: Reals) -> None:
        """Of triangles that overlap in one plane, put the one that is seen into the hits."""
        overlaps = coplanar_of(self.scene)
        if overlaps is None:
            return
        some = np.flatnonzero(overlaps.contested[hits.triangle])
        from_each = start if start.ndim == 1 else start[some]
        after, points = overlaps.seen(hits.triangle[some], from_each, way[some])
        hits.triangle[some] = after
        shares = barycentric(overlaps.corners[after], points)
        hits.u[some], hits.v[some] = shares[:, 1], shares[:, 2]

    def blocked(
        self, origins: npt.ArrayLike, directions: npt.ArrayLike, reach: npt.ArrayLike = 1.0
    ) -> npt.NDArray[np.bool_]:
        """Whether anything lies between the origins and ``origin + reach · direction``, (n,) bool.

        Parameters
        ----------
        origins : (3,) or (n, 3) float, metres
            Where rays start.
        directions : (n, 3) float
            Of any length.
        reach : float or (n,) float
            In multiples of the directions; inf looks without end.

        """
        way = _directions(directions)
        if not self.scene.placements or not len(way):
            return np.zeros(len(way), bool)
        tree = _tree(self.scene)
        most = np.broadcast_to(np.asarray(reach, np.float32), len(way))
        return tree.engine.blocked(tree.start(origins, len(way)), way, most)

    def refined(
        self, origins: npt.ArrayLike, directions: npt.ArrayLike, triangle: npt.NDArray[np.integer[Any]]
    ) -> Reals:
        """Where rays meet the planes of triangles, in float64.

        Parameters
        ----------
        origins : (3,) or (n, 3) float64, metres
            Where rays start.
        directions : (n, 3) float64
            Of any length.
        triangle : (n,) int
            Numbered as :attr:`Scene.triangles`; −1 for none.

        Returns
        -------
        (n,) float64
            In multiples of the directions; NaN where there is no triangle.

        """
        way = np.asarray(directions, dtype=np.float64)
        if not self.scene.placements:
            return np.full(len(way), np.nan)
        tree = _tree(self.scene)
        plane = tree.planes[triangle]
        start = np.asarray(origins, dtype=np.float64) - tree.middle
        normal = plane[:, :3]
        with np.errstate(divide="ignore", invalid="ignore"):
            towards = normal @ start if start.ndim == 1 else np.einsum("ij,ij->i", normal, start)
            return np.asarray((plane[:, 3] - towards) / np.einsum("ij,ij->i", normal, way))


class _Tree:
    """What is built of a scene; it does not hold the scene, with which it goes."""

    def __init__(self, scene: Scene) -> None:
        self._corners = scene.triangles.corners
        bounds = scene.bounds
        self.middle: Reals = bounds.mean(axis=0)
        self._half = (bounds[1] - self.middle).astype(np.float32)
        vertices, corners = joined(scene)
        self._shown = shown_sides_of(scene)
        if self._shown is not None:
            others = (self._shown != np.arange(len(corners))[:, None]).any(axis=1)
            self._others = np.append(others, False)  # the last is for −1
        about, holes = vertices - self.middle, holes_of(scene)
        self.engine = (
            make_engine(about, corners) if holes is None else PiercedEngine(make_engine, about, corners, holes)
        )

    def start(self, origins: npt.ArrayLike, count: int) -> Floats:
        """Origins about the middle, (count, 3) float32."""
        start = np.asarray(origins)
        if start.shape not in {(3,), (count, 3)}:
            raise SetsupError(
                f"origins of {count} rays must be a numeric array of shape (3,) or ({count}, 3), not of shape "
                f"{start.shape}"
            )
        return np.broadcast_to(np.subtract(start, self.middle).astype(np.float32), (count, 3))

    def within(self, start: Floats) -> npt.NDArray[np.bool_]:
        """Which of the points about the middle lie in the bounds of the scene."""
        return np.asarray((np.abs(start) <= self._half).all(axis=1))

    def choose(self, hits: Hits, way: Floats) -> None:
        """Of triangles in the same place, put the one that is seen into the hits."""
        if self._shown is None:
            return
        some = np.flatnonzero(self._others[hits.triangle])
        before = hits.triangle[some]
        after = seen(self._shown, self._corners, before, way[some])
        changed = np.flatnonzero(before != after)
        some, before, after = some[changed], before[changed], after[changed]
        # its corners are the same, in another order
        u, v = hits.u[some], hits.v[some]
        shares = np.stack([1 - u - v, u, v], axis=1)
        same = (self._corners[after][:, :, None] == self._corners[before][:, None]).all(axis=3)
        shares = np.take_along_axis(shares, same.argmax(axis=2), axis=1)
        hits.triangle[some], hits.u[some], hits.v[some] = after, shares[:, 1], shares[:, 2]

    @cached_property
    def planes(self) -> Reals:
        """Normal, of any length, and its product with the points of the plane, (n + 1, 4); the last row is NaN."""
        a, b, c = (self._corners[:, corner] - self.middle for corner in range(3))
        rows = np.full((len(a) + 1, 4), np.nan)
        rows[:-1, :3] = np.cross(b - a, c - a)
        rows[:-1, 3] = np.einsum("ij,ij->i", rows[:-1, :3], a)
        return rows


def _directions(directions: npt.ArrayLike) -> Floats:
    way = np.asarray(directions, dtype=np.float32)
    if way.ndim != 2 or way.shape[1] != 3:
        raise SetsupError(f"directions of rays must be a numeric array of shape (n, 3), not of shape {way.shape}")
    return way


_tree = PerScene(_Tree)
"""What is built of each scene."""
