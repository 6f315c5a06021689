"""Triangles that overlap in one plane: which of them is seen, so that images do not depend on rounding.

Two sheets in one place that are cut into triangles in different ways, or a rug that lies in the plane of the floor,
are met at one distance. Of such triangles that have the point in common, the one is seen whose winding faces the
viewer, of several such, or where none does, the one with the lowest number: the rule of
:mod:`setsup.scenes.surfaces.coincident`, which is for triangles of the same corners.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.scenes.scene import Scene
from setsup.scenes.surfaces.coincident import joined, shown_sides_of
from setsup.scenes.surfaces.holes import holes_of
from setsup.scenes.surfaces.per_scene import PerScene

__all__ = ["Coplanar", "coplanar_of"]


_ALIKE = 1e-9  # of the size of the scene: planes, and sides of triangles, that are no farther apart are one
_WIDER = 1e-6  # of the size of the scene
_MOST = 1 << 20  # pairs of one plane that are looked at: a plane of more, thousands of small triangles, is left alone
# directions without a meaning, so that planes that differ seldom are at one place along them
_WAYS = np.array([0.6180339887, 0.4142135623, 0.7320508075, 0.2360679775])


class Coplanar:
    """Overlapping triangles of a scene.

    `corners` (n, 3, 3) float64; `shown` (n, 2) int32 or None; `pairs` (m, 2) int64.

    Attributes
    ----------
    corners : (n, 3, 3) float64
        As above.
    contested : (n + 1,) bool
        Which triangles overlap others; the last is for −1.

    """

    def __init__(self, corners: Reals, shown: Any, pairs: Rows) -> None:
        self._shown, count = shown, len(corners)
        self.corners = corners
        # each triangle with itself and the others: those that may be seen in its place
        own = np.unique(pairs[:, 0])
        pairs = np.concatenate([pairs, np.stack([own, own], axis=1)])
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        self._others = pairs[:, 1]
        self._starts = np.searchsorted(pairs[:, 0], np.arange(count + 1))
        first = np.arange(count) if shown is None else shown.min(axis=1)
        self._first = np.append(first, -1)  # of triangles with the same corners; the last is for −1
        # boxes around the triangles, wider than any rounding
        wider = _WIDER * float(np.abs(corners).max(initial=0))
        self._low, self._high = corners.min(axis=1).T - wider, corners.max(axis=1).T + wider
        self.contested = np.append(np.diff(self._starts)[first] > 0, False)

    def seen(self, triangle: npt.NDArray[np.integer[Any]], start: Reals, ways: Reals) -> tuple[Rows, Reals]:
        """Replace contested triangles that rays have met by those that are seen there.

        `triangle` (k,) int; `start` (3,) or (k, 3) float64; `ways` (k, 3) float64; returns `triangle` (k,) int64;
        returns `points` (k, 3) float64.
        """
        a, b, c = np.moveaxis(self.corners[triangle], 1, 0)
        normal = np.cross(b - a, c - a)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = ((a - start) * normal).sum(axis=1) / (ways * normal).sum(axis=1)
        points = start + reach[:, None] * ways
        rows = self._first[triangle]
        counts = self._starts[rows + 1] - self._starts[rows]
        ray = np.repeat(np.arange(len(rows)), counts)
        other = self._others[np.arange(len(ray)) - np.repeat(np.cumsum(counts) - counts - self._starts[rows], counts)]
        for low, high, along in zip(self._low, self._high, points.T, strict=True):  # of many, few are near the point
            at = along[ray]
            near = ((low[other] <= at) & (at <= high[other])) | (other == rows[ray])
            ray, other = ray[near], other[near]
        shares = barycentric(self.corners[other], points[ray])
        within = (shares >= -_ALIKE).all(axis=1) | (other == rows[ray])
        ray, other = ray[within], other[within]
        if self._shown is not None:
            other = self._shown[other, self._away(other, ways[ray]).astype(np.int64)]
        order = np.lexsort((other, self._away(other, ways[ray]), ray))
        ray, other = ray[order], other[order]
        return np.asarray(other[np.searchsorted(ray, np.arange(len(rows)))], np.int64), points

    def _away(self, triangle: npt.NDArray[np.integer[Any]], ways: Reals) -> npt.NDArray[np.bool_]:
        """Whether rays see triangles from behind."""
        a, b, c = np.moveaxis(self.corners[triangle], 1, 0)
        return np.asarray((np.cross(b - a, c - a) * ways).sum(axis=1) > 0)


def barycentric(corners: Reals, points: Reals) -> Reals:
    """Shares of the corners of triangles (k, 3, 3) in points (k, 3) of their planes, (k, 3)."""
    a, b, c = np.moveaxis(corners, 1, 0)
    normal = np.cross(b - a, c - a)
    square = (normal * normal).sum(axis=1)
    v = (np.cross(b - a, points - a) * normal).sum(axis=1) / square
    u = (np.cross(points - a, c - a) * normal).sum(axis=1) / square
    return np.stack([1 - u - v, u, v], axis=1)


def _coplanar(scene: Scene) -> Coplanar | None:
    if not scene.placements:
        return None
    vertices, faces = joined(scene)
    vertices = vertices - scene.bounds.mean(axis=0)
    shown, holes = shown_sides_of(scene), holes_of(scene)
    corners = vertices[faces]
    use = np.ones(len(faces), bool) if shown is None else shown.min(axis=1) == np.arange(len(faces))
    if holes is not None:
        use[holes.triangles] = False
    some = np.flatnonzero(use)
    pairs = some[_overlaps(corners[some])]
    return Coplanar(corners, shown, np.concatenate([pairs, pairs[:, ::-1]])) if len(pairs) else None


def _overlaps(corners: Reals) -> Rows:
    """Pairs (m, 2) of triangles that have more than an edge in common."""
    size = float(np.abs(corners).max(initial=0)) or 1.0
    a = corners[:, 0]
    normal = np.cross(corners[:, 1] - a, corners[:, 2] - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        normal /= np.sqrt(np.einsum("ij,ij->i", normal, normal))[:, None]
        normal *= np.sign(normal @ _WAYS[:3])[:, None]
        plane = normal @ _WAYS[[3, 0, 1]] + np.einsum("ij,ij->i", normal, a) / size * _WAYS[2]
    order = np.argsort(plane, kind="stable")  # NaN, of no area, last
    order = order[: np.count_nonzero(np.isfinite(plane))]
    if not len(order):
        return np.empty((0, 2), np.int64)
    group = np.append(0, np.cumsum(np.diff(plane[order]) > _ALIKE))
    shared = np.bincount(group)[group] > 1
    order, group = order[shared], group[shared]
    if not len(order):
        return np.empty((0, 2), np.int64)
    # in the plane: along the two axes that are not closest to its normal
    firsts = np.searchsorted(group, group)
    axes = np.argsort(np.abs(normal[order[firsts]]), axis=1)[:, :2]
    flat = np.take_along_axis(corners[order], axes[:, None, :], axis=2) / size
    low, high = flat.min(axis=1), flat.max(axis=1)
    by = np.lexsort((low[:, 0], group))
    order, group, flat, low, high = order[by], group[by], flat[by], low[by], high[by]
    # groups one after the other on a line, each 4 long, where coordinates are −1 … 1
    along = 4.0 * group
    ends = np.searchsorted(along + low[:, 0], along + high[:, 0] - _ALIKE)
    counts = np.maximum(ends - np.arange(len(ends)) - 1, 0)
    counts[np.bincount(group, counts)[group] > _MOST] = 0
    first = np.repeat(np.arange(len(counts)), counts)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    beside = (low[first, 1] < high[second, 1] - _ALIKE) & (low[second, 1] < high[first, 1] - _ALIKE)
    first, second = first[beside], second[beside]
    apart = _apart(flat[first], flat[second]) | _apart(flat[second], flat[first])
    pairs = np.stack([order[first], order[second]], axis=1)[~apart]
    # planes were compared along one direction only
    height = np.einsum("ikj,ij->ik", corners[pairs[:, 1]] - a[pairs[:, 0], None], normal[pairs[:, 0]])
    return np.asarray(pairs[(np.abs(height) <= 4 * _ALIKE * size).all(axis=1)])


def _apart(first: Reals, second: Reals) -> npt.NDArray[np.bool_]:
    """Whether a side of triangles ``one`` (m, 3, 2) has ``two`` on its outer side."""
    apart = np.zeros(len(first), bool)
    for side in range(3):
        p, q, inner = (first[:, (side + step) % 3] for step in range(3))
        along = q - p
        length = np.sqrt(np.einsum("ij,ij->i", along, along))[:, None]
        across = np.stack([-along[:, 1], along[:, 0]], axis=1) / length
        across *= np.sign(np.einsum("ij,ij->i", across, inner - p))[:, None]
        apart |= (np.einsum("ikj,ij->ik", second - p[:, None], across) <= _ALIKE).all(axis=1)
    return apart


coplanar_of: PerScene[Coplanar | None] = PerScene(_coplanar)
"""Overlapping triangles of a scene, None where it has none."""
