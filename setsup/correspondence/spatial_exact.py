"""Rays against triangles in float64: where they meet, and a tree of boxes for the few rays that float32 cannot decide.

References
----------
.. [1] S. Woop, C. Benthin, I. Wald, "Watertight Ray/Triangle Intersection", JCGT 2(1), 2013.
.. [2] T. Karras, "Maximizing Parallelism in the Construction of BVHs, Octrees, and k-d Trees", HPG 2012: boxes of
   triangles in the order of their Morton codes.

"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows

__all__ = ["Boxes", "affine_rows", "cross", "dot", "met"]


_BRANCHES = 8
_BRANCH = np.arange(_BRANCHES)
_TOP = 64  # boxes on the topmost level
_RAYS = 4096  # followed at a time, to bound the memory


def affine_rows(corners: Reals) -> Reals:
    """Three affine functions of each triangle: height above its plane, and shares u and v of its other corners.

    A point p has the height ``row[0] · (p, 1)`` in metres and lies over the triangle where ``u = row[1] · (p, 1)``,
    ``v = row[2] · (p, 1)`` and ``1 − u − v`` are not negative.

    `corners` (n, 3, 3) float64; returns (n, 3, 4) float64; NaN for triangles without area, which no comparison holds
    for.
    """
    a = corners[:, 0]
    ab, ac = corners[:, 1] - a, corners[:, 2] - a
    normal = cross(ab, ac)
    square = np.einsum("ij,ij->i", normal, normal)
    rows = np.empty((len(corners), 3, 4))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rows[:, 0, :3] = normal / np.sqrt(square)[:, None]
        rows[:, 1, :3] = cross(ac, normal) / square[:, None]
        rows[:, 2, :3] = cross(normal, ab) / square[:, None]
        rows[:, :, 3] = -np.einsum("ijk,ik->ij", rows[:, :, :3], a)
    rows[~np.isfinite(rows).all(axis=(1, 2))] = np.nan
    return rows


def met(rows: Reals, start: Reals, ways: Reals) -> tuple[Reals, Bools, Reals]:
    """Where rays meet the planes of triangles, one triangle a ray.

    `rows` (n, 3, 4) float64; `start` (3,) or (n, 3) float64; `ways` (n, 3) float64; returns `reach` (n,) float64;
    returns `within` (n,) bool; returns `slope` (n,) float64.
    """
    if start.ndim == 1:
        at = rows.reshape(-1, 4) @ np.append(start, 1.0)
        at = at.reshape(-1, 3)
    else:
        at = np.einsum("nij,nj->ni", rows[:, :, :3], start) + rows[:, :, 3]
    gain = np.einsum("nij,nj->ni", rows[:, :, :3], ways)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = -at[:, 0] / gain[:, 0]
        u, v = at[:, 1] + reach * gain[:, 1], at[:, 2] + reach * gain[:, 2]
        within = (u >= 0) & (v >= 0) & (u + v <= 1) & (reach > 0)
    return reach, within, gain[:, 0]


class Boxes:
    """A tree of boxes around triangles, eight to a box, for few rays and float64 answers.

    `corners` (n, 3, 3) float64; `rows` (n, 3, 4) float64.
    """

    def __init__(self, corners: Reals, rows: Reals) -> None:
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        pad = 1e-12 * max(float(np.abs(corners).max()), 1e-280)
        # the walls of a room apart from what stands in it: one large triangle makes its box, and all above, large
        extent = np.maximum((high - low).max(axis=1), pad)
        order = np.lexsort((_morton((low + high) / 2), np.floor(np.log2(extent) / 3)))
        # triangles in the order of the boxes, and some that nothing meets, so that every box has eight
        none = -len(order) % _BRANCHES
        self._triangle = np.concatenate([order, np.full(none, -1)])
        self._rows = np.concatenate([rows[order], np.full((none, 3, 4), np.nan)])
        # lowest and, negated, highest coordinates: of either the least is wanted
        box = np.concatenate([low, -high], axis=1)[order] - pad
        self._levels: list[Reals] = []
        while not self._levels or len(box) > _TOP:
            count = len(box)
            box = np.concatenate([box, np.full((-count % _BRANCHES, 6), np.inf)])
            if self._levels:
                self._levels[-1] = np.concatenate([box[:count], np.full((len(box) - count, 6), np.nan)])
            box = box.reshape(-1, _BRANCHES, 6).min(axis=1)
            self._levels.append(box)

    def first(self, start: Reals, ways: Reals, near: Reals, far: Reals) -> tuple[Rows, Reals]:
        """Nearest triangle that each ray meets between two multiples of its direction.

        `start` (3,) float64; `ways` (n, 3) float64; `near, far` (n,) float64; returns `triangle` (n,) int64; returns
        `reach` (n,) float64.
        """
        triangle, reach = np.full(len(ways), -1), np.full(len(ways), np.inf)
        for begin in range(0, len(ways), _RAYS):
            some = slice(begin, begin + _RAYS)
            along, least, most = ways[some], near[some], far[some]
            ray, leaf = self._passed(start, along, least, most)
            at, within, _ = met(self._rows.take(leaf, axis=0), start, along.take(ray, axis=0))
            keep = np.flatnonzero(within & (at > least.take(ray)) & (at < most.take(ray)))
            ray, which, at = ray[keep], self._triangle[leaf[keep]], at[keep]
            order = np.lexsort((which, at, ray))[::-1]
            # of several values for one place the last one stays: the nearest
            triangle[begin + ray[order]], reach[begin + ray[order]] = which[order], at[order]
        return triangle, reach

    def around(self, point: Reals, distance: float) -> Rows:
        """Triangles that come within a distance of a point, and perhaps some more."""
        most = np.concatenate([point, -point]) + distance

        def close(_: Rows, boxes: Reals) -> Bools:
            return np.asarray((boxes <= most).all(axis=1))

        leaf = self._descended(1, close)[1]
        beside = np.abs(self._rows[leaf, 0] @ np.append(point, 1.0)) <= 2 * distance
        return np.asarray(self._triangle[leaf[beside]])

    def _passed(self, start: Reals, ways: Reals, near: Reals, far: Reals) -> tuple[Rows, Rows]:
        """Rays and places of triangles whose boxes they pass between two reaches."""
        slow = 1e-150
        over = 1 / np.where(np.abs(ways) < slow, np.where(ways < 0, -slow, slow), ways)

        def passes(ray: Rows, boxes: Reals) -> Bools:
            inverse = over.take(ray, axis=0)
            lower, upper = (boxes[:, :3] - start) * inverse, (boxes[:, 3:] + start) * -inverse
            (x, y, z), (u, v, w) = np.minimum(lower, upper).T, np.maximum(lower, upper).T
            enter = np.maximum(np.maximum(x, y), np.maximum(z, near.take(ray)))
            leave = np.minimum(np.minimum(u, v), np.minimum(w, far.take(ray)))
            return np.asarray(enter <= leave)

        return self._descended(len(ways), passes)

    def _descended(self, count: int, test: Callable[[Rows, Reals], Bools]) -> tuple[Rows, Rows]:
        """Pairs of a query and a triangle's place in the order whose boxes pass the test on every level."""
        top = len(self._levels[-1])
        query, box = np.repeat(np.arange(count), top), np.tile(np.arange(top), count)
        for boxes in reversed(self._levels):
            keep = np.flatnonzero(test(query, boxes.take(box, axis=0)))
            query = np.repeat(query.take(keep), _BRANCHES)
            box = np.add.outer(box.take(keep) * _BRANCHES, _BRANCH).reshape(-1)
        return query, box


def _morton(points: Reals) -> npt.NDArray[np.uint64]:
    """Places along a curve that visits what is close together one after the other."""
    low = points.min(axis=0)
    extent = max(float((points.max(axis=0) - low).max()), 1e-300)
    cells = ((points - low) / extent * ((1 << 16) - 1)).astype(np.uint64)
    for shift, mask in ((16, 0x0000FF0000FF), (8, 0x00F00F00F00F), (4, 0x0C30C30C30C3), (2, 0x249249249249)):
        cells = (cells | (cells << np.uint64(shift))) & np.uint64(mask)
    return np.asarray((cells[:, 0] << np.uint64(2)) | (cells[:, 1] << np.uint64(1)) | cells[:, 2])


def dot(a: Reals, b: Reals) -> Reals:
    """Products of the first three numbers of rows, (n,), column by column: several times as fast as numpy's einsum."""
    found = a[:, 0] * b[:, 0]
    for axis in (1, 2):
        found += a[:, axis] * b[:, axis]
    return np.asarray(found)


def cross(a: Reals, b: Reals) -> Reals:
    """Cross products of rows, several times as fast as numpy's."""
    (x, y, z), (u, v, w) = a.T, b.T
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)
