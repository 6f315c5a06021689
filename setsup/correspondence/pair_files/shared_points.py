"""Points that both views of a pair show: sample pixels of the first view that the second one shows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Reals, Rows
from setsup.correspondence.overlaps.scenes import sample_views
from setsup.correspondence.overlaps.views import Source, View, ViewReader
from setsup.correspondence.pixel_pairs import VISIBLE
from setsup.samplers.overlap.table import TRACKS, OverlapTable

__all__ = ["SharedPoints", "find_points"]


class SharedPoints(NamedTuple):
    """Observations of points by pairs of views.

    Attributes
    ----------
    pair : (n,) int64
        Number of the pair, ascending.
    point : (n,) int64
        Number of the point; those of different first views differ.
    pixels1, pixels2 : (n, 2) float64
        Where the two views show it: (x, y), with centres of pixels at integers.
    depth1, depth2 : (n,) float64
        Along the optical axes.

    """

    pair: Rows
    point: Rows
    pixels1: Reals
    pixels2: Reals
    depth1: Reals
    depth2: Reals


def find_points(
    dataset: Any, table: OverlapTable, views: Rows, pairs: Rows, poses: Reals, most: int | None
) -> SharedPoints:
    """Points of each pair, up to `most`, as the overlaps were measured.

    `views` (v,) are rows, `pairs` (n, 2) positions among them, `poses` (v, 4, 4) from the world to the camera.
    """
    if table.source == TRACKS:
        return _observed(dataset, views, pairs, poses, most)
    settings = table.about["settings"]
    source = Source(dataset, table.about["source"], settings.get("tolerance", 0.0), settings.get("absolute", 0.0))
    reader = source.reader(int(views[0]))
    sampled = sample_views(reader, views, settings["pixels"], settings["seed"])
    return _shared(reader, views, sampled, pairs, settings["pixels"], most)


def _observed(dataset: Any, views: Rows, pairs: Rows, poses: Reals, most: int | None) -> SharedPoints:
    """Points that both views of each pair observe; they are numbered as in the dataset."""
    cloud = dataset.points(int(views[0]))
    seen = [dataset.observations(row, shown=True) for row in views.tolist()]
    parts = []
    for number, (one, two) in enumerate(pairs.tolist()):
        ids, at1, at2 = np.intersect1d(seen[one][1], seen[two][1], return_indices=True)
        ids, at1, at2 = ids[:most], at1[:most], at2[:most]
        xyz = cloud.xyz[cloud.find(ids, f"row {views[one]} of {dataset.name}")]
        depths = [xyz @ poses[view, 2, :3] + poses[view, 2, 3] for view in (one, two)]
        parts.append((np.full(len(ids), number), ids, seen[one][0][at1], seen[two][0][at2], *depths))
    return SharedPoints(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _shared(
    reader: ViewReader, views: Rows, sampled: Sequence[View], pairs: Rows, pixels: int, most: int | None
) -> SharedPoints:
    parts = []
    for second in np.unique(pairs[:, 1]).tolist():
        camera = sampled[second].camera
        numbers = np.flatnonzero(pairs[:, 1] == second)
        firsts = pairs[numbers, 0].tolist()
        points = np.concatenate([sampled[first].points for first in firsts])
        sizes = np.array([len(sampled[first].points) for first in firsts])
        pair, first = np.repeat(numbers, sizes), np.repeat(firsts, sizes)
        own = np.arange(len(points)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        status, _ = reader.statuses(int(views[second]), camera, points)
        seen = np.flatnonzero(status == VISIBLE)
        starts = np.searchsorted(pair[seen], pair[seen])
        if most is not None:
            seen = seen[np.arange(len(seen)) - starts < most]
        places, depth = camera.project(points[seen, :3])
        parts.append((pair[seen], first[seen], own[seen], points[seen, :3], places, depth))
    pair, first, own, xyz, pixels2, depth2 = (np.concatenate(column) for column in zip(*parts, strict=True))
    pixels1, depth1 = np.empty((len(pair), 2)), np.empty(len(pair))
    for view in np.unique(first).tolist():
        some = first == view
        places, depth1[some] = sampled[view].camera.project(xyz[some])
        pixels1[some] = np.rint(places)  # sample pixels have integer coordinates
    order = np.argsort(pair, kind="stable")
    return SharedPoints(
        pair[order],
        (first * pixels + own)[order],
        pixels1[order],
        pixels2[order],
        depth1[order],
        depth2[order],
    )
