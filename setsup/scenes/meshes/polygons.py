"""Polygons cut into triangles: convex ones into fans, others by their ears ([1]_), so that nothing outside is covered.

Own code rather than mapbox_earcut's: faces lie in space, nearly all of them are convex, and what triangles of these are
called must not change. The few others are small.

References
----------
.. [1] G. H. Meisters, "Polygons have ears", American Mathematical Monthly 82, 1975.

"""

import math
import sys

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Integers, Reals
from setsup.errors import DataError

__all__ = ["MOST_CORNERS", "triangulate"]

MOST_CORNERS = 1 << 12
"""Corners that a polygon may have which is not convex: the time grows with their square."""

_FLAT = 1e-12
_ROUNDED = 1e-6
"""Of the extent of a polygon: more than coordinates of float32, or of six digits, are off by."""


def triangulate(points: Reals, corners: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """Cut polygons into triangles, in the order of the polygons.

    `points` (v, 3); `corners` (c,) their numbers, one polygon after the other; `lengths` (n,) at least 3; returns
    places in ``corners`` (t, 3), and the polygon of each triangle (t,).

    Examples
    --------
    >>> dart = np.array([[0, 0, 0], [2, 1, 0], [0, 2, 0], [0.5, 1, 0]])
    >>> triangulate(dart, np.arange(4), np.array([4]))[0].tolist()
    [[3, 0, 1], [3, 1, 2]]

    """
    firsts = np.cumsum(lengths) - lengths
    ends = np.cumsum(lengths - 2)
    starts = ends - (lengths - 2)
    total = int(ends[-1]) if len(ends) else 0
    chosen = np.empty((total, 3), np.int64)
    for length in np.unique(lengths).tolist():
        which = np.flatnonzero(lengths == length)
        rows = starts[which][:, None] + np.arange(length - 2)
        chosen[rows] = firsts[which][:, None, None] + _fan(length)
        if length == 3:
            continue
        for some in np.array_split(which, max(1, len(which) * length // (1 << 20))):
            at = points[corners[firsts[some][:, None] + np.arange(length)]]
            normals, reflex = _reflex(at)
            again = _repeats(at)
            # a corner that is there twice turns at neither place
            for row in np.flatnonzero(again.any(axis=1)).tolist():
                kept = ~again[row]
                reflex[row] = False
                if kept.sum() > 3:
                    reflex[row, kept] = _reflex(at[row, kept][None])[1][0]
            for row in np.flatnonzero(reflex.any(axis=1)).tolist():
                cut = _ears(_plane(at[row], normals[row]), reflex[row], again[row])
                chosen[starts[some[row]] : ends[some[row]]] = firsts[some[row]] + cut
    return chosen, np.repeat(np.arange(len(lengths)), lengths - 2)


def _fan(length: int) -> Integers:
    corner = np.arange(1, length - 1)
    return np.stack([0 * corner, corner, corner + 1], axis=1)


def _reflex(at: Reals) -> tuple[Reals, Bools]:
    """Normals of polygons (n, k, 3), as long as twice their area, and at which corners they turn the other way."""
    with np.errstate(over="ignore", invalid="ignore"):
        about = at - at.mean(axis=1, keepdims=True)
        normals = np.cross(about, np.roll(about, -1, axis=1)).sum(axis=1)
        edges = np.roll(at, -1, axis=1) - at
        turns = np.einsum("nki,ni->nk", np.cross(np.roll(edges, 1, axis=1), edges), normals)
        least = _FLAT * np.einsum("nki,nki->n", edges, edges) * np.sqrt(np.einsum("ni,ni->n", normals, normals))
        return normals, turns < -least[:, None]


def _repeats(at: Reals) -> Bools:
    """Corners of polygons (n, k, 3) that lie where the one before them does, as far as rounded numbers tell."""
    with np.errstate(over="ignore", invalid="ignore"):
        edges = at - np.roll(at, 1, axis=1)
        squares = np.einsum("nki,nki->nk", edges, edges)
        return np.asarray(squares <= _ROUNDED**2 * squares.sum(axis=1, keepdims=True))


def _plane(at: Reals, normal: Reals) -> Reals:
    """Corners of a polygon in a plane, where it runs counter-clockwise, (k, 2)."""
    axis = int(np.argmax(np.abs(normal)))
    flat = np.delete(at, axis, axis=1)
    if axis == 1:
        flat = flat[:, ::-1]
    return flat * [1.0, -1.0] if normal[axis] < 0 else flat


def _ears(flat: Reals, reflex: Bools, again: Bools) -> npt.NDArray[np.int64]:
    """Triangles of a polygon that is not convex, (k − 2, 3): ears are cut off until one triangle is left.

    An ear is a corner that turns the right way, in whose triangle no other corner lies; corners that only repeat the
    one before them (`again`) go first. Where corners are rounded, or meet, a cut may find none: from then on what is
    nearly flat is an ear, and what nearly lies on its border is not in it. Of a polygon that truly crosses itself some
    cut may still find none: then any corner goes.
    """
    if len(flat) > MOST_CORNERS:
        raise DataError(
            f"a face that is not convex has {len(flat):,} corners, more than the limit of {MOST_CORNERS:,} for faces "
            "of this kind; triangulate the mesh"
        )
    points = [(float(x), float(y)) for x, y in flat]
    before, after = list(range(-1, len(flat) - 1)), list(range(1, len(flat) + 1))
    before[0], after[-1] = len(flat) - 1, 0
    hollow = reflex.copy()
    slack = 0.0
    ears, at, misses, left = list[tuple[int, int, int]](), 0, 0, len(flat)
    if len(flat) == 4:
        at = int(after[int(np.argmax(reflex))])  # beside the notch
    for corner in np.flatnonzero(again).tolist():
        last, following = before[corner], after[corner]
        ears.append((last, corner, following))
        after[last], before[following] = following, last
        left -= 1
        if corner == at:
            at = following
    while left > 3:
        last, following = before[at], after[at]
        if misses > left and not slack:
            extent = max(max(axis) - min(axis) for axis in zip(*points, strict=True))
            slack, misses = max(_ROUNDED * extent, sys.float_info.min), 0
        if misses > left or _is_ear(flat, points, hollow, last, at, following, slack):
            ears.append((last, at, following))
            after[last], before[following] = following, last
            hollow[at] = False
            for own in (last, following):
                if hollow[own]:
                    hollow[own] = _turn(points[before[own]], points[own], points[after[own]]) < 0
            left -= 1
            misses = 0
            at = after[following] if left > 3 else following
        else:
            misses += 1
            at = following
    ears.append((before[at], at, after[at]))
    return np.array(ears)


def _is_ear(
    flat: Reals, points: list[tuple[float, float]], hollow: Bools, last: int, at: int, following: int, slack: float
) -> bool:
    a, b, c = points[last], points[at], points[following]
    ab, bc, ca = slack * math.dist(a, b), slack * math.dist(b, c), slack * math.dist(c, a)
    turn = _turn(a, b, c)
    if abs(turn) <= max(ab, bc, ca) or turn <= 0:
        return slack > 0 and turn >= -max(ab, bc, ca)
    others = np.flatnonzero(hollow)
    x, y = flat[others].T
    inside = (
        ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) >= ab)
        & ((c[0] - b[0]) * (y - b[1]) - (c[1] - b[1]) * (x - b[0]) >= bc)
        & ((a[0] - c[0]) * (y - c[1]) - (a[1] - c[1]) * (x - c[0]) >= ca)
    )
    # corners in the same place, as where a hole is bridged, do not lie within
    return not any(points[other] not in (a, b, c) for other in others[inside].tolist())


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
