"""Overlap, angle and scale of pairs of views, from the statuses of the first views' sample pixels in the second."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from setsup.arrays import Array, Bools, Bytes, Floats, Numbers, Reals, Rows
from setsup.correspondence.overlap_views import ViewReader
from setsup.correspondence.pixel_pairs import UNKNOWN, VISIBLE
from setsup.samplers.partners.overlap_table import LEAST
from setsup.scenes.camera import Camera

__all__ = ["DTYPES", "Found", "Measures", "Samples", "angles", "group_medians", "measure", "stacked"]

DTYPES = {
    "pairs": "<i8", "overlap": "<f4", "angle": "<f4", "scale": "<f4", "unknown": "<f4", "decided": "<i4",
}  # fmt: skip
"""Types of pairs, (n, 2), and of their measures."""

_POINTS = 1 << 18  # points that are looked at together


class Samples(NamedTuple):
    """Sample pixels of several views.

    Attributes
    ----------
    points : (n, 4) or (n, 8) float64
        Of all views, one after another; see :class:`setsup.correspondence.overlap_views.View`.
    starts : (views + 1,) int64
        Where those of each view begin.
    centres : (views, 3) float64, metres
        Where the cameras stand.

    """

    points: Array
    starts: Rows
    centres: Reals


class Measures(NamedTuple):
    """Columns of :class:`setsup.samplers.partners.overlap_table.OverlapTable`, (n,) each."""

    overlap: Floats
    angle: Floats
    scale: Floats
    unknown: Floats
    decided: Numbers


class Found(NamedTuple):
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
        parts.append(_measured(reader, samples, firsts[start:stop], row, camera))
        start = stop
    return Measures(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _measured(reader: ViewReader, samples: Samples, firsts: Rows, row: int, camera: Camera) -> Measures:
    sizes = np.diff(samples.starts)[firsts]
    ends = np.cumsum(sizes)
    of_view = np.repeat(np.arange(len(firsts)), sizes)
    points = np.asarray(samples.points[np.arange(len(of_view)) + (samples.starts[firsts] - ends + sizes)[of_view]])
    status, depth = reader.statuses(row, camera, points)
    visible = np.bincount(of_view[status == VISIBLE], minlength=len(firsts))
    unknown = np.bincount(of_view[status == UNKNOWN], minlength=len(firsts))
    decided = sizes - unknown
    with np.errstate(invalid="ignore", divide="ignore"):
        overlap = np.where((decided < LEAST) | (2 * unknown > sizes), np.nan, visible / decided)
        share = unknown / sizes
    shared: Bools = status == VISIBLE
    which, xyz = of_view[shared], points[shared, :3]
    angle = np.degrees(angles(samples.centres[firsts][which] - xyz, camera.centre - xyz))
    coarseness = depth[shared] / np.sqrt(abs(camera.k[0, 0] * camera.k[1, 1]))
    scale = coarseness / points[shared, 3]
    return Measures(
        overlap.astype(np.float32),
        group_medians(angle, which, visible).astype(np.float32),
        group_medians(scale, which, visible).astype(np.float32),
        share.astype(np.float32),
        decided.astype(np.int32),
    )


def angles(one: Reals, two: Reals) -> Reals:
    """Angles between vectors (n, 3), radians; exact also where they are small."""
    return np.asarray(np.arctan2(np.linalg.norm(np.cross(one, two), axis=1), (one * two).sum(axis=1)))


def group_medians(values: Reals, groups: Rows, sizes: Rows) -> Reals:
    """Median of the values of each group; NaN of those without any.

    `groups` (n,) from 0; `sizes` (groups,): how many values each group has.
    """
    found = np.full(len(sizes), np.nan)
    some = np.flatnonzero(sizes)
    ordered = values[np.lexsort((values, groups))]
    starts = np.cumsum(sizes) - sizes
    low, high = starts[some] + (sizes[some] - 1) // 2, starts[some] + sizes[some] // 2
    found[some] = (ordered[low] + ordered[high]) / 2
    return found


def stacked(parts: Sequence[Measures]) -> Measures:
    """Measures of several lists of pairs, one after another."""
    if not parts:
        none = np.empty(0, np.float32)
        return Measures(none, none, none, none, np.empty(0, np.int32))
    return Measures(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
