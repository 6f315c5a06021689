"""Tracking of points through the frames of a video by the most similar feature."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.errors import DataError
from setsup.evaluation.feature_points import FeaturePoints, Sampling, features_at, grid_features

__all__ = ["FeatureTracks", "inconsistent", "track_features"]

_EQUAL = 2e-7  # difference of cosines below which the first one counts: the rounding of directions in float32


class FeatureTracks(NamedTuple):
    """Where the points of queries are found.

    Attributes
    ----------
    points : (q, t, 2) float64
        Pixels (x, y) in each frame.
    returns : (q, t, 2) float64
        The match back: pixels (x, y) of the query's frame with the most similar feature to the one found.

    """

    points: Reals
    returns: Reals


def track_features(
    maps: Callable[[int], npt.NDArray[Any]],
    size: tuple[int, int],
    count: int,
    starts: npt.ArrayLike,
    frames: npt.ArrayLike,
    *,
    sampling: Sampling = "pixels",
    step: int = 4,
) -> FeatureTracks:
    """Find points in every frame of a video at the grid point with the largest cosine of features.

    Each frame is matched independently of the others. The map of each frame is computed once, in any order; for frames
    with queries, the features at grid points are kept as float32.

    Parameters
    ----------
    maps : callable
        Function from the number of a frame to its features, (rows, columns, D) float, whose cells divide it evenly.
    size : (height, width)
        Size of all frames, pixels.
    count : int
        Number of frames.
    starts : (q, 2) float
        Pixels (x, y) of the queries.
    frames : (q,) integers
        Frames of the queries.
    sampling : {"pixels", "grid"}
        Compare every `step`-th pixel, at which maps are interpolated, or the cells of the maps.
    step : int
        Distance of grid points, pixels.

    Returns
    -------
    FeatureTracks
        Of cosines that differ by less than 2 · 10⁻⁷, the first one in the order of rows counts.

    Raises
    ------
    DataError
        When shapes do not fit, a frame is not one of the video, or a feature is not finite.

    Examples
    --------
    >>> features = np.random.default_rng(0).normal(size=(6, 8, 16))
    >>> moved = lambda frame: np.roll(features, frame, axis=1)
    >>> found = track_features(moved, (6, 8), 3, [[2, 3]], [0], step=1)
    >>> found.points[0].tolist(), found.returns[0].tolist()
    ([[2.0, 3.0], [3.0, 3.0], [4.0, 3.0]], [[2.0, 3.0], [2.0, 3.0], [2.0, 3.0]])

    """
    places, query_frames = np.asarray(starts, np.float64).reshape(-1, 2), np.asarray(frames).reshape(-1)
    if len(query_frames) != len(places) or not np.isin(query_frames, np.arange(count)).all():
        raise DataError(f"frames must contain an integer from 0 to {count - 1} for each query, not {frames!r:.80}")
    queries = {frame: np.flatnonzero(query_frames == frame) for frame in np.unique(query_frames).tolist()}
    kept: dict[int, FeaturePoints] = {}
    sought: Reals | None = None
    for frame, numbers in queries.items():
        features = maps(frame)
        kept[frame] = _grid(features, size, sampling, step)
        found = features_at(features, size, places[numbers], sampling)
        sought = np.empty((len(places), found.shape[1])) if sought is None else sought
        sought[numbers] = found
    points, returns = np.empty((len(places), count, 2)), np.empty((len(places), count, 2))
    for frame in range(count if sought is not None else 0):
        grid = kept[frame] if frame in kept else _grid(maps(frame), size, sampling, step)
        cells = _nearest(np.asarray(sought), grid.directions)
        points[:, frame] = grid.points[cells]
        for query, numbers in queries.items():
            back = _nearest(grid.directions[cells[numbers]], kept[query].directions)
            returns[numbers, frame] = kept[query].points[back]
    return FeatureTracks(points, returns)


def inconsistent(tracks: FeatureTracks, starts: npt.ArrayLike, most: npt.ArrayLike) -> Bools:
    """Whether the match back is farther from the query than `most`, (q, t) bool.

    `starts` (q, 2), pixels; `most`: a number of pixels, or (x, y) for pixels that are not square.
    """
    apart = (tracks.returns - np.asarray(starts, np.float64).reshape(-1, 1, 2)) / np.asarray(most, np.float64)
    return np.asarray(np.linalg.norm(apart, axis=-1) > 1)


def _grid(features: npt.NDArray[Any], size: tuple[int, int], sampling: Sampling, step: int) -> FeaturePoints:
    grid = grid_features(np.asarray(features), size, sampling, step)
    return FeaturePoints(grid.points, grid.directions.astype(np.float32))


def _nearest(queries: npt.NDArray[Any], candidates: npt.NDArray[Any]) -> Rows:
    """Rows of the largest products; of those that differ by rounding, the first."""
    products = queries.astype(np.float64) @ candidates.astype(np.float64).T
    return np.asarray((products >= products.max(axis=1, keepdims=True) - _EQUAL).argmax(axis=1))
