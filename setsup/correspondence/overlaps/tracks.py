"""Overlap of views by the 3D points that both observe, as a COLMAP model lists them.

Tracks under-count: a surface that two images show has a common point only where a keypoint was found in both, and
matched. Views without a common point have an overlap of 0, and are not listed: in a model of 10,000 images nearly all
pairs are such.
"""

import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Array, Reals, Rows
from setsup.correspondence.from_depth import recorded_camera
from setsup.correspondence.overlaps.measures import DTYPES, Measures, SceneOverlaps, group_medians, median_angles
from setsup.correspondence.overlaps.views import focal_length
from setsup.correspondence.overlaps.work import Work
from setsup.errors import DataError, SetsupError, advice
from setsup.jobs.units import Unit
from setsup.progress import progress
from setsup.samplers.overlap.table import LEAST

__all__ = ["measure_tracks"]

_VIEWS = 64  # first views in one unit of work


class _Tracks(NamedTuple):
    """Which views observe which points; views and points of all scenes are numbered one after another.

    Attributes
    ----------
    points, starts : (observations,) int64, (views + 1,) int64
        Of each view the points, ascending.
    views, tracks : (observations,) int64, (points + 1,) int64
        Of each point the views, ascending.
    xyz : (points, 3) float64
        In the world of its scene.
    cameras : (views, 8) float64
        Centre, a vector of 4 whose product with (x, y, z, 1) is the depth of a point, and the focal length in pixels.

    """

    points: Rows
    starts: Rows
    views: Rows
    tracks: Rows
    xyz: Reals
    cameras: Reals


def measure_tracks(dataset: Any, scenes: list[Rows], work: Work) -> list[SceneOverlaps]:
    """Pairs of each scene that have a common point."""
    rows = np.concatenate(scenes)
    cuts = np.cumsum([0, *map(len, scenes)])
    tracks = _observed(dataset, scenes)
    ends = [*range(0, len(rows), _VIEWS), len(rows)]
    units = [Unit(f"rows {rows[a]} to {rows[b - 1]}", (a, b), b - a) for a, b in pairwise(ends)]
    with tempfile.TemporaryDirectory(prefix="setsup-tracks-", dir=work.folder) as folder:
        for name, array in tracks._asdict().items():
            np.save(Path(folder, f"{name}.npy"), array)
        parts = work.run("pairs", partial(_compare, Path(folder)), units, DTYPES, "measuring overlaps", "views")
    columns = {name: np.concatenate([part[name] for part in parts]) for name in DTYPES}
    pairs, sizes = columns.pop("pairs"), np.diff(tracks.starts)
    bounds = np.searchsorted(pairs[:, 0], cuts)  # pairs are in order of their first views
    return [
        SceneOverlaps(
            rows[pairs[a:b]],
            Measures(**{name: column[a:b] for name, column in columns.items()}),
            sizes[cuts[scene] : cuts[scene + 1]],
            0,
            np.empty(0, np.uint8),
        )
        for scene, (a, b) in enumerate(pairwise(bounds.tolist()))
    ]


def _observed(dataset: Any, scenes: list[Rows]) -> _Tracks:
    """Read what the views of all scenes observe."""
    points: list[Rows] = []
    places: list[Reals] = []
    cameras: list[Reals] = []
    known = 0
    with progress(sum(map(len, scenes)), "reading observations", "views") as advance:
        for rows in scenes:
            _need_one_model(dataset, rows)
            cloud = dataset.points(int(rows[0]))
            order = np.argsort(cloud.ids)
            ids = cloud.ids[order]
            for row in rows.tolist():
                seen = dataset.observed(row)
                lost = seen[~np.isin(seen, ids, assume_unique=True)]
                if len(lost):
                    raise DataError(
                        f"row {row} of {dataset.name} observes the point {lost[0]}, but its model lacks it among its "
                        f"{len(ids):,} points; write the files of the model again"
                    )
                points.append(known + np.searchsorted(ids, seen))
                cameras.append(_camera(dataset, row))
                advance(1)
            places.append(cloud.xyz[order])
            known += len(ids)
    of_view = np.concatenate(points)
    sizes = [len(some) for some in points]
    order = np.argsort(of_view, kind="stable")
    return _Tracks(
        of_view,
        np.cumsum([0, *sizes]),
        np.repeat(np.arange(len(points)), sizes)[order],
        np.concatenate([[0], np.cumsum(np.bincount(of_view, minlength=known))]),
        np.concatenate(places),
        np.stack(cameras),
    )


def _need_one_model(dataset: Any, rows: Rows) -> None:
    """Refuse views of several models, whose points have nothing in common."""
    models = [dataset.model(row) for row in rows.tolist()]
    other = next((place for place, model in enumerate(models) if model != models[0]), 0)
    if other:
        raise SetsupError(
            f"rows {rows[0]} and {rows[other]} of {dataset.name} are of the models {models[0]} and {models[other]}, "
            "whose points have nothing in common; pass the factors in which the views of a scene agree with "
            f"{advice('scene=', '--scene')}"
        )


def _camera(dataset: Any, row: int) -> Reals:
    found = dataset.fetch(row, ["pose", "intrinsics"])
    try:
        camera = recorded_camera(found["pose"], found["intrinsics"], 1, 1)  # no pixel is asked for
    except SetsupError as error:
        left = advice("rows=", "--where")
        raise SetsupError(f"row {row} of {dataset.name}: {error}; leave the row out with {left}") from error
    return np.concatenate([camera.centre, camera.rotation[2], [camera.translation[2], focal_length(camera)]])


def _compare(folder: Path, views: tuple[int, int]) -> dict[str, Array]:
    """Pairs of some first views, with the numbers of both views."""
    tracks = _Tracks(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in _Tracks._fields))
    parts = [_partners(tracks, first) for first in range(*views)]
    return {name: np.concatenate([part[name] for part in parts]) for name in DTYPES}


def _partners(tracks: _Tracks, first: int) -> dict[str, Array]:
    """Pairs of one first view, by the second."""
    points = tracks.points[tracks.starts[first] : tracks.starts[first + 1]]
    sizes = tracks.tracks[points + 1] - tracks.tracks[points]
    ends = np.cumsum(sizes)
    point = np.repeat(points, sizes)
    second = np.asarray(tracks.views[np.arange(len(point)) + np.repeat(tracks.tracks[points] - ends + sizes, sizes)])
    other = second != first
    point, second = point[other], second[other]
    order = np.argsort(second, kind="stable")
    point, second = point[order], second[order]
    partners, group, shared = np.unique(second, return_inverse=True, return_counts=True)
    xyz, here, there = tracks.xyz[point], tracks.cameras[first], tracks.cameras[second]
    coarse1 = (xyz @ here[3:6] + here[6]) / here[7]
    coarse2 = ((xyz * there[:, 3:6]).sum(axis=1) + there[:, 6]) / there[:, 7]
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = coarse2 / coarse1
    share = shared / len(points) if len(points) >= LEAST else np.full(len(partners), np.nan)
    return {
        "pairs": np.stack([np.full(len(partners), first), partners], axis=1),
        "overlap": share,
        "angle": median_angles((here[:3] - xyz).T, (there[:, :3] - xyz).T, group, shared),
        "scale": group_medians(scale, group, shared),
        "unknown": np.zeros(len(partners)),
        "decided": np.full(len(partners), len(points)),
    }
