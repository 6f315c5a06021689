"""Tracking of points through videos by the most similar feature, scored as TAP-Vid does.

The point of a query is found in each other frame at the grid point of the largest cosine. It counts as occluded there
unless the match is cycle-consistent: the grid point of the query's frame that is most similar to the feature found must
lie within 16 pixels of the query, in pixels of a frame of 256 × 256. The benchmark leaves this rule to the method.

References
----------
.. [1] C. Doersch et al., "TAP-Vid: a benchmark for tracking any point in a video", NeurIPS 2022 (arXiv 2211.03726),
   section 3, and its published code.

"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.datasets import Dataset
from setsup.errors import DataError
from setsup.evaluation.feature_points import Sampling
from setsup.evaluation.feature_tracks import inconsistent, track_features
from setsup.evaluation.point_tracks import TrackQueries, TrackScores, track_queries, track_scores
from setsup.experiments.evaluations.measured import (
    ALL,
    Encode,
    Example,
    Measured,
    describe_count,
    draw_numbers,
    fetch_rgb,
    spread_numbers,
)

__all__ = [
    "METHOD",
    "TrackingTask",
    "choose",
    "content",
    "describe",
    "examples",
    "main_value",
    "measure",
    "score",
    "track_video",
]

METHOD = 1
"""Version of the measure; results stored by another version are measured again."""

Mode = Literal["first", "strided"]

_MODES: tuple[Mode, ...] = get_args(Mode)
_SIDE = 256.0  # side of the frames in whose pixels scores are defined
_CYCLE = 16.0  # largest distance of the match back from the query, in these pixels
_LIMITS = (1, 2, 4, 8, 16)  # thresholds of errors, in these pixels
_RIGHT = 8.0  # largest error of a point that a sheet shows as right, in these pixels


@dataclass(frozen=True, slots=True, eq=False)
class TrackingTask:
    """The videos that are measured.

    Attributes
    ----------
    videos : sequence of (t,) int64
        Rows of the frames of each video, in order.
    names : sequence of str
        Names of the videos.
    total : int
        Number of videos that they were drawn from.
    step : int
        Distance of grid points, pixels of the frames.

    """

    videos: Sequence[Rows]
    names: Sequence[str]
    total: int
    step: int

    def __len__(self) -> int:
        """Count the videos."""
        return len(self.videos)

    @property
    def about(self) -> dict[str, Any]:
        """Identify the frames and the grid in stored results, as JSON values."""
        return {"videos": [rows.tolist() for rows in self.videos], "step": self.step}


def choose(dataset: Dataset, *, most: int | None, seed: int, where: str | None = None, step: int = 4) -> TrackingTask:
    """Choose videos.

    Parameters
    ----------
    dataset : Dataset
        Videos with tracks of points.
    most : int, optional
        Draw at most so many videos; all by default.
    seed : int
        Random seed of the draw.
    where : str, optional
        Expression over the factors; points are tracked through the frames that satisfy it.
    step : int
        Distance of grid points, pixels of the frames.

    Returns
    -------
    TrackingTask

    Raises
    ------
    DataError, FactorError
        When no video of two frames is left, or the expression names no factor.

    """
    table = dataset.factors
    rows = np.arange(len(table)) if where is None else table.rows(where)
    codes, frames = (np.asarray(table.codes(name, rows), np.int64) for name in ("video", "frame"))
    videos = []
    for code in np.unique(codes).tolist():
        inside = np.flatnonzero(codes == code)
        _, first = np.unique(frames[inside], return_index=True)  # ascending; of a repeated frame the first row
        if len(first) > 1:
            videos.append(rows[inside[first]])
    if not videos:
        raise DataError(f"no video of two frames or more of {dataset.name} is left; choose more rows")
    total = len(videos)
    videos = [videos[number] for number in draw_numbers(total, most, seed, "videos").tolist()]
    names = [str(table.values("video", chosen[:1])[0]) for chosen in videos]
    return TrackingTask(videos, names, total, step)


def content(dataset: Any, task: TrackingTask) -> Iterator[npt.ArrayLike]:
    """Return what values depend on besides the encoder: frames and tracks."""
    for rows in task.videos:
        for row in rows.tolist():
            yield fetch_rgb(dataset, row)
        yield from _truth(dataset, rows)


def describe(task: TrackingTask, features: Sampling) -> list[str]:
    """Lines of the report."""
    drawn = describe_count(len(task), task.total, "video", "videos")
    grid = f"every {task.step} pixels" if features == "pixels" else "the centers of cells"
    return [
        f"{drawn}; a point is found in each frame at the largest cosine of features among grid points: {grid}; "
        f"it counts as occluded where the largest cosine back in the frame of the query is more than {_CYCLE:g} px "
        "from it",
        f"pixels are those of frames of {_SIDE:g} × {_SIDE:g}; means over videos",
        "OA: share of right flags of occlusion; δ: share of visible points less than 1, 2, 4, 8 and 16 px away, mean "
        "of the five; AJ: mean of the five Jaccard indices; queries: in the first visible frame (first), or in every "
        "fifth frame (strided)",
    ]


def track_video(
    dataset: Any, encode: Encode, rows: Rows, points: Reals, queries: TrackQueries, features: Sampling, step: int
) -> tuple[Reals, Bools]:
    """Find the points of queries in the frames of rows, (q, t, 2) pixels, and whether they count as occluded, (q, t).

    `rows` (t,), `points` (n, t, 2), pixels of the frames as they are fetched.
    """
    height, width = fetch_rgb(dataset, int(rows[0])).shape[:2]
    starts = points[queries.tracks, queries.frames]
    found = track_features(
        lambda frame: encode(fetch_rgb(dataset, int(rows[frame]))),
        (height, width),
        len(rows),
        starts,
        queries.frames,
        sampling=features,
        step=step,
    )
    return found.points, inconsistent(found, starts, np.array([width, height]) * (_CYCLE / _SIDE))


def measure(
    dataset: Dataset,
    encode: Encode,
    task: TrackingTask,
    features: Sampling = "pixels",
    on_part: Callable[[], Any] | None = None,
) -> list[Measured]:
    """Track the points of videos, and score the tracks, with both kinds of queries.

    Parameters
    ----------
    dataset : Dataset
        Videos with tracks of points.
    encode : callable
        Computes the features of an image.
    task : TrackingTask
        From :func:`choose`.
    features : {"pixels", "grid"}
        As `sampling` of :func:`setsup.evaluation.track_features`.
    on_part : callable, optional
        Called after each video.

    Returns
    -------
    list of Measured
        As :func:`score` returns them.

    Raises
    ------
    DataError
        When a feature is not finite.

    """
    found: dict[str, list[TrackScores]] = {mode: [] for mode in _MODES}
    for rows in task.videos:
        points, occluded = _truth(dataset, rows)
        queries = {mode: track_queries(occluded, mode) for mode in _MODES}
        whole = TrackQueries(
            np.concatenate([one.tracks for one in queries.values()]),
            np.concatenate([one.frames for one in queries.values()]),
        )
        places, hidden = track_video(dataset, encode, rows, points, whole, features, task.step)
        size = np.array(fetch_rgb(dataset, int(rows[0])).shape[1::-1])
        end = 0
        for mode, one in queries.items():
            part = slice(end, end + len(one.tracks))
            end = part.stop
            found[mode].append(
                track_scores(
                    _raster(points[one.tracks], size),
                    occluded[one.tracks],
                    _raster(places[part], size),
                    hidden[part],
                    one.frames,
                    mode,
                )
            )
        if on_part is not None:
            on_part()
    return score(found, task.names)


def score(scores: dict[str, list[TrackScores]], names: Sequence[str]) -> list[Measured]:
    """Collect the scores of each video, and their means over videos.

    Parameters
    ----------
    scores : dict of str to list of TrackScores
        Scores of each video, by mode of the queries.
    names : sequence of str
        Names of the videos.

    Returns
    -------
    list of Measured
        Values ``"queries first: AJ"``, ``"queries first: δ"``, ``"queries first: OA"``, ``"queries first, δ: 1 px"``
        and ``"queries first, Jaccard: 1 px"`` to 16 px; likewise for ``strided``. Counts are of videos for the group
        ``"all"``, and of points for groups such as ``"video goat"``. A mean leaves out the videos where its value is
        undefined.

    """
    measured = []
    for mode, found in scores.items():
        tables = [_values(f"queries {mode}", one) for one in found]
        for value in tables[0] if tables else ():
            numbers = np.array([table[value] for table in tables])
            known = ~np.isnan(numbers)
            mean = float(numbers[known].mean()) if known.any() else float("nan")
            measured.append(Measured(value, ALL, mean, int(known.sum())))
        for name, one, table in zip(names, found, tables, strict=True):
            measured += [Measured(value, f"video {name}", number, one.points) for value, number in table.items()]
    return measured


def main_value(measured: Sequence[Measured]) -> str:
    """Name of the value that tables show by groups."""
    return "queries first: AJ"


def examples(dataset: Dataset, encode: Encode, task: TrackingTask, features: Sampling, count: int) -> list[Example]:
    """Pairs of frames for a sheet; right: within 8 px of 256 × 256.

    Of videos that are evenly spread over the list: the frame of the first half with the most visible points, and one a
    quarter of the video later.
    """
    shown = []
    for number in spread_numbers(len(task), count).tolist():
        rows = task.videos[number]
        points, occluded = _truth(dataset, rows)
        visible = ~occluded
        first = int(visible[:, : max(1, len(rows) // 2)].sum(axis=0).argmax())
        second = min(len(rows) - 1, first + max(1, len(rows) // 4))
        tracks = np.flatnonzero(visible[:, first] & visible[:, second])
        if not len(tracks):
            continue
        queries = TrackQueries(tracks, np.zeros(len(tracks), np.int64))
        two = rows[[first, second]]
        found = track_video(dataset, encode, two, points[:, [first, second]], queries, features, task.step)[0][:, 1]
        views = fetch_rgb(dataset, int(two[0])), fetch_rgb(dataset, int(two[1]))
        maps = np.asarray(encode(views[0])), np.asarray(encode(views[1]))
        size = np.array(views[0].shape[1::-1])
        apart = (found - points[tracks, second]) * (_SIDE / size)
        frames = dataset.factors.values("frame", two).tolist()
        caption = (
            f"{task.names[number]}, frames {frames[0]} and {frames[1]}: points that both show\nright: within "
            f"{_RIGHT:g} px of {_SIDE:g} × {_SIDE:g}"
        )
        right = np.asarray(np.linalg.norm(apart, axis=1) <= _RIGHT)
        shown.append(Example(views, maps, points[tracks, first], found, right, caption))
    return shown


def _truth(dataset: Any, rows: Rows) -> tuple[Reals, Bools]:
    """Tracks (n, t, 2) in pixels, and where they are occluded, in the frames of rows."""
    tracks = dataset.video_tracks(int(rows[0]))
    frames = np.asarray(dataset.factors.values("frame", rows), np.int64)
    return tracks.points[:, frames], tracks.occluded[:, frames]


def _raster(points: Reals, size: npt.NDArray[np.int64]) -> Reals:
    """Pixels of frames of a size (width, height) as raster coordinates of 256 × 256, 0 at the left edge."""
    return np.asarray((points + 0.5) * (_SIDE / size))


def _values(title: str, one: TrackScores) -> dict[str, float]:
    values = {"AJ": one.average_jaccard, "δ": one.average_within, "OA": one.occlusion_accuracy}
    found = {f"{title}: {name}": number for name, number in values.items()}
    for name, shares in (("δ", one.within), ("Jaccard", one.jaccard)):
        found |= {f"{title}, {name}: {limit} px": share for limit, share in zip(_LIMITS, shares.tolist(), strict=True)}
    return found
