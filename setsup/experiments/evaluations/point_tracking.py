"""Points tracked through videos by the nearest feature, as TAP-Vid scores them.

The point of a query is found in each other frame at the grid point of the largest cosine. It counts as occluded there
unless the way back is cycle-consistent: of the feature found, the nearest grid point in the query's frame must lie
within 16 pixels of the query, in pixels of a frame of 256 × 256. The benchmark leaves this rule to the method.

References
----------
.. [1] C. Doersch et al., "TAP-Vid: a benchmark for tracking any point in a video", NeurIPS 2022 (arXiv 2211.03726),
   section 3, and its published code.

"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.datasets import Dataset
from setsup.errors import DataError
from setsup.evaluation.feature_points import Between
from setsup.evaluation.feature_tracks import inconsistent, track_features
from setsup.evaluation.point_tracks import TrackQueries, TrackScores, track_queries, track_scores
from setsup.experiments.evaluations.measured import ALL, Encode, Example, Measured, fetch_rgb
from setsup.random import permute, stream_key

__all__ = [
    "MAIN",
    "METHOD",
    "TrackingTask",
    "choose",
    "describe",
    "examples",
    "main_value",
    "measure",
    "score",
    "track_video",
]

METHOD = 1
"""Version of the measure: results of another one are measured again."""
MAIN = "queries first: AJ"
"""What is shown by groups."""

Mode = Literal["first", "strided"]

_MODES: tuple[Mode, ...] = get_args(Mode)
_SIDE = 256.0  # pixels of the frames that scores refer to
_CYCLE = 16.0  # pixels of them within which the way back must end
_LIMITS = (1, 2, 4, 8, 16)
_RIGHT = 8.0  # pixels of an error that is right on a sheet


@dataclass(frozen=True, slots=True, eq=False)
class TrackingTask:
    """The videos that are measured.

    Attributes
    ----------
    videos : sequence of (t,) int64
        Rows of the frames of each video, in order.
    names : sequence of str
        Of the videos.
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
        """What the numbers depend on, as JSON values."""
        return {"videos": [rows.tolist() for rows in self.videos], "step": self.step}


def choose(dataset: Dataset, *, most: int | None, seed: int, where: str | None = None, step: int = 4) -> TrackingTask:
    """Choose videos.

    Parameters
    ----------
    dataset : Dataset
        Videos with tracks of points.
    most : int, optional
        Draw at most so many videos by the seed; all by default.
    seed : int
        Of the draw.
    where : str, optional
        Expression over the factors that frames satisfy; a video is tracked through those that are left.
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
    if most is not None and most < total:
        drawn = np.sort(permute(stream_key(seed, "videos"), total, np.arange(most)))
        videos = [videos[number] for number in drawn.tolist()]
    names = [str(table.values("video", chosen[:1])[0]) for chosen in videos]
    return TrackingTask(videos, names, total, step)


def describe(task: TrackingTask, features: Between) -> list[str]:
    """Lines of the report."""
    drawn = f"{len(task):,}" if len(task) == task.total else f"{len(task):,} (drawn by --seed) of {task.total:,}"
    grid = f"every {task.step} pixels" if features == "pixels" else "the centers of cells"
    return [
        f"{drawn} videos; a point is found in each frame at the largest cosine of features among grid points: {grid}; "
        f"it counts as occluded where the largest cosine back in the frame of the query is more than {_CYCLE:g} px "
        "from it",
        f"pixels are those of frames of {_SIDE:g} × {_SIDE:g}; means over videos",
        "OA: share of right flags of occlusion; δ: share of visible points less than 1, 2, 4, 8 and 16 px away, mean "
        "of the five; AJ: mean of the five Jaccard indices; queries: in the first visible frame (first), or in every "
        "fifth frame (strided)",
    ]


def track_video(
    dataset: Any, encode: Encode, rows: Rows, points: Reals, queries: TrackQueries, features: Between, step: int
) -> tuple[Reals, Bools]:
    """Where the points of queries are found in the frames of rows, (q, t, 2) pixels, and where they count as occluded.

    `rows` (t,), `points` (n, t, 2) pixels of the frames as they are fetched.
    """
    height, width = fetch_rgb(dataset, int(rows[0])).shape[:2]
    starts = points[queries.tracks, queries.frames]
    found = track_features(
        lambda frame: encode(fetch_rgb(dataset, int(rows[frame]))),
        (height, width),
        len(rows),
        starts,
        queries.frames,
        between=features,
        step=step,
    )
    return found.points, inconsistent(found, starts, np.array([width, height]) * (_CYCLE / _SIDE))


def measure(
    dataset: Dataset,
    encode: Encode,
    task: TrackingTask,
    features: Between = "pixels",
    on_part: Callable[[], Any] | None = None,
) -> list[Measured]:
    """Track the points of videos, and score the tracks, with both kinds of queries.

    Parameters
    ----------
    dataset : Dataset
        Videos with tracks of points.
    encode : callable
        Features of an image.
    task : TrackingTask
        From :func:`choose`.
    features : {"pixels", "grid"}
        As of :func:`track_video`.
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
        whole = TrackQueries(*(np.concatenate([one[part] for one in queries.values()]) for part in range(2)))
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
    """Means over videos of their scores, and those of each video.

    Parameters
    ----------
    scores : dict of str to list of TrackScores
        By mode, those of each video.
    names : sequence of str
        Of the videos.

    Returns
    -------
    list of Measured
        Values ``"queries first: AJ"``, ``"queries first: δ"``, ``"queries first: OA"``, ``"queries first, δ: 1 px"``
        and ``"queries first, Jaccard: 1 px"`` to 16 px; the same of ``strided``. Counts are videos for the group
        ``"all"``, and points for those such as ``"video goat"``. Videos where a value is undefined are left out of its
        mean.

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
    """The value that is shown by groups."""
    return MAIN


def examples(dataset: Dataset, encode: Encode, task: TrackingTask, features: Between, count: int) -> list[Example]:
    """Pairs of frames for a sheet: that with the most queries and a later one; right: within 8 px of 256 × 256."""
    shown = []
    for number in np.unique(np.linspace(0, len(task) - 1, min(count, len(task))).round().astype(np.int64)).tolist():
        rows = task.videos[number]
        points, occluded = _truth(dataset, rows)
        visible = ~occluded
        pairs = visible[:, :-1].T.astype(np.int64) @ visible[:, 1:]  # points that both of two frames show
        first = int(visible[:, : max(1, len(rows) // 2)].sum(axis=0).argmax())
        second = min(len(rows) - 1, first + max(1, len(rows) // 4))
        if not pairs[first, second - 1]:
            continue
        tracks = np.flatnonzero(visible[:, first] & visible[:, second])
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
