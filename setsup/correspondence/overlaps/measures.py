"""Overlap, angle and scale of pairs of views, from the statuses of the first views' sample pixels in the second."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from setsup.arrays import Array, Bytes, Floats, Numbers, Reals, Rows
from setsup.correspondence.overlaps.views import ViewReader, focal_length
from setsup.correspondence.pixel_pairs import UNKNOWN, VISIBLE
from setsup.samplers.overlap.table import LEAST
from setsup.scenes.camera import Camera

__all__ = [
    "DTYPES",
    "Measures",
    "Samples",
    "SceneOverlaps",
    "group_medians",
    "join_measures",
    "measure",
    "median_angles",
]

DTYPES = {
    "pairs": "<i8", "overlap": "<f4", "angle": "<f4", "scale": "<f4", "unknown": "<f4", "decided": "<i4",
}  # fmt: skip
"""Types of pairs, (n, 2), and of their measures."""

_POINTS = 1 << 18  # points that are looked at together
_SIGN = np.uint32(1 << 31)


class Samples(NamedTuple):
    """Sample pixels of several views.

    Attributes
    ----------
    points : (n, 4) or (n, 8) float64
        Of all views, one after another; see :class:`setsup.correspondence.overlaps.views.View`.
    starts : (views + 1,) int64
        Where those of each view begin.
    centres : (views, 3) float64, metres
        Where the cameras stand.

    """

    points: Array
    starts: Rows
    centres: Reals


class Measures(NamedTuple):
    """Columns of :class:`setsup.samplers.overlap.table.OverlapTable`, (n,) each."""

    overlap: Floats
    angle: Floats
    scale: Floats
    unknown: Floats
    decided: Numbers


class SceneOverlaps(NamedTuple):
    """Pairs of a scene.

    Attributes
    ----------
    pairs : (n, 2) int64
        Rows of the two views.
    measures : Measures
        Of these pairs.
    sampled : (views,) int64
        Number of sample pixels of each view, or of points that it observes.
    excluded : int
        Number of pairs that certainly do not overlap.
    bits : (bytes,) uint8
        Matrix of them, packed; empty where every pair is measured.

    """

    pairs: Rows
    measures: Measures
    sampled: Rows
    excluded: int
    bits: Bytes


def measure(reader: ViewReader, samples: Samples, firsts: Rows, row: int, camera: Camera) -> Measures:
    """Measures of pairs with one second view.

    `firsts` (n,) int64, places of the first views in the samples; `row` of the second view, and its `camera`.
    """
    sizes = np.diff(samples.starts)[firsts]
    parts = []
    start = 0
    while start < len(firsts):
        # as many views as have so many points, at least one
        stop = start + max(1, int(np.searchsorted(np.cumsum(sizes[start:]), _POINTS, side="right")))
        parts.append(_measure_block(reader, samples, firsts[start:stop], row, camera))
        start = stop
    return Measures(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _measure_block(reader: ViewReader, samples: Samples, firsts: Rows, row: int, camera: Camera) -> Measures:
    sizes = np.diff(samples.starts)[firsts]
    ends = np.cumsum(sizes)
    of_view = np.repeat(np.arange(len(firsts)), sizes)
    points = samples.points.take(np.arange(len(of_view)) + (samples.starts[firsts] - ends + sizes)[of_view], axis=0)
    status, depth = reader.statuses(row, camera, points)
    shared = np.flatnonzero(status == VISIBLE)
    which = of_view.take(shared)
    visible = np.bincount(which, minlength=len(firsts))
    unknown = np.bincount(of_view[status == UNKNOWN], minlength=len(firsts))
    decided = sizes - unknown
    with np.errstate(invalid="ignore", divide="ignore"):
        overlap = np.where((decided < LEAST) | (2 * unknown > sizes), np.nan, visible / decided)
        share = unknown / sizes
    place, coarse1 = points.take(shared, axis=0)[:, :4].T[:3], points[:, 3].take(shared)
    here = samples.centres[firsts].T.take(which, axis=1)
    coarse2 = depth.take(shared) / focal_length(camera)
    return Measures(
        overlap.astype(np.float32),
        median_angles(here - place, camera.centre[:, None] - place, which, visible),
        group_medians(coarse2 / coarse1, which, visible).astype(np.float32),
        share.astype(np.float32),
        decided.astype(np.int32),
    )


def median_angles(one: Reals, two: Reals, groups: Rows, sizes: Rows) -> Floats:
    """Median angle, in degrees, between the vectors (3, n) of each group; otherwise as :func:`group_medians`."""
    (x, y, z), (u, v, w) = one, two
    across = np.sqrt((y * w - z * v) ** 2 + (z * u - x * w) ** 2 + (x * v - y * u) ** 2)
    along = x * u + y * v + z * w
    # rises from 0 to 2 with the angle, and is computed faster: only the medians become angles
    total = across + np.abs(along)
    with np.errstate(invalid="ignore", divide="ignore"):
        turn = np.where(along > 0, across, total - along) / total
    low, high = _middle(turn, groups, sizes)
    degrees = [np.degrees(np.arctan2(np.minimum(one, 2 - one), 1 - one)) for one in (low, high)]
    return np.asarray((degrees[0] + degrees[1]) / 2, np.float32)


def group_medians(values: Reals, groups: Rows, sizes: Rows) -> Floats:
    """Median of the values of each group, as float32; NaN of those without any.

    `groups` (n,) from 0; `sizes` (groups,): how many values each group has.
    """
    low, high = _middle(values, groups, sizes)
    return np.asarray((low + high) / 2, np.float32)


def _middle(values: Reals, groups: Rows, sizes: Rows) -> tuple[Reals, Reals]:
    """Both middle values of each group, rounded to float32; NaN of those without any."""
    bits = values.astype(np.float32).view(np.uint32)
    # floats in the order of integers, and groups before them: one sort of words, which is much faster than of pairs
    rank = np.where(bits >> 31, ~bits, bits | _SIGN)
    words = np.sort((groups.astype(np.uint64) << np.uint64(32)) | rank)
    starts = np.cumsum(sizes) - sizes
    some = np.flatnonzero(sizes)
    found = []
    for at in ((sizes - 1) // 2, sizes // 2):
        rank = words[(starts + at)[some]].astype(np.uint32)
        middle = np.full(len(sizes), np.nan)
        middle[some] = np.where(rank >> 31, rank ^ _SIGN, ~rank).view(np.float32)
        found.append(middle)
    return found[0], found[1]


def join_measures(parts: Sequence[Measures]) -> Measures:
    """Measures of several lists of pairs, one after another."""
    if not parts:
        none = np.empty(0, np.float32)
        return Measures(none, none, none, none, np.empty(0, np.int32))
    return Measures(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
