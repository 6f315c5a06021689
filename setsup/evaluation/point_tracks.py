"""Tracks of points through a video: queries, and the scores of TAP-Vid.

References
----------
.. [1] C. Doersch et al., "TAP-Vid: a benchmark for tracking any point in a video", NeurIPS 2022 (arXiv 2211.03726),
   section 3, and its published code.

"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals
from setsup.checks import check_choice, check_integer
from setsup.errors import DataError

__all__ = ["TrackQueries", "TrackScores", "track_queries", "track_scores"]

Mode = Literal["first", "strided"]

_MODES = ("first", "strided")
_LIMITS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])  # pixels of a video of 256 × 256


class TrackQueries(NamedTuple):
    """Where tracks are asked for.

    Attributes
    ----------
    tracks : (q,) int64
        Track of each query.
    frames : (q,) int64
        Frame of each query, in which the point is visible.

    """

    tracks: npt.NDArray[np.int64]
    frames: npt.NDArray[np.int64]


class TrackScores(NamedTuple):
    """Scores of one video; those of a benchmark are their means over videos.

    Attributes
    ----------
    occlusion_accuracy : float
        Share of points whose prediction as occluded or visible is right.
    within : (5,) float64
        Share of visible points whose prediction is less than 1, 2, 4, 8 and 16 px away.
    jaccard : (5,) float64
        True positives over true visible points and false positives, at the same thresholds. A true positive is visible,
        predicted to be, and near enough; a false positive is predicted to be visible, and occluded or not near enough.
    points : int
        Points that count: frames of queries.

    """

    occlusion_accuracy: float
    within: Reals
    jaccard: Reals
    points: int

    @property
    def average_within(self) -> float:
        """δ: mean of `within`."""
        return float(self.within.mean())

    @property
    def average_jaccard(self) -> float:
        """AJ: mean of `jaccard`."""
        return float(self.jaccard.mean())


def track_queries(occluded: npt.ArrayLike, mode: Mode = "first", *, stride: int = 5) -> TrackQueries:
    """Queries of a video's tracks [1]_.

    Parameters
    ----------
    occluded : (n, t) bool
        Where each of n points is occluded, in t frames.
    mode : {"first", "strided"}
        ``first``: each point in its first visible frame; points that are never visible have no query. ``strided``: all
        points that are visible in frame 0, then those in frame `stride`, and so on.
    stride : int
        Frames between those of queries, of ``strided``.

    Returns
    -------
    TrackQueries

    Raises
    ------
    DataError
        When `occluded` is not such an array, or the stride is not positive.

    Examples
    --------
    >>> track_queries([[True, False, False], [False, False, True]])
    TrackQueries(tracks=array([0, 1]), frames=array([1, 0]))

    """
    check_choice(mode, _MODES, "mode", DataError)
    check_integer(stride, "stride", DataError, 1)
    visible = ~_flags(occluded, "occluded")
    if mode == "first":
        tracks = np.flatnonzero(visible.any(axis=1))
        return TrackQueries(tracks, visible[tracks].argmax(axis=1))
    frames, tracks = np.nonzero(visible[:, ::stride].T)
    return TrackQueries(tracks, frames * stride)


def track_scores(
    points: npt.ArrayLike,
    occluded: npt.ArrayLike,
    predicted: npt.ArrayLike,
    predicted_occluded: npt.ArrayLike,
    frames: npt.ArrayLike,
    mode: Mode = "first",
) -> TrackScores:
    """Occlusion accuracy, δ and Jaccard of predicted tracks [1]_.

    Frames that count are those after the query for ``first``, and all but the query's for ``strided``.

    Parameters
    ----------
    points, predicted : (q, t, 2) float, pixels
        True and predicted x, y of each query in each frame, scaled to a video of 256 × 256; 0 is the left edge of the
        first pixel. They do not count where the truth is occluded, and may be NaN there.
    occluded, predicted_occluded : (q, t) bool
        Where points are occluded.
    frames : (q,) integers
        Frame of each query.
    mode : {"first", "strided"}
        As for :func:`track_queries`.

    Returns
    -------
    TrackScores
        NaN where nothing counts.

    Raises
    ------
    DataError
        When the shapes disagree, a frame is not one of the video, or a true visible point is not finite.

    Examples
    --------
    >>> points = np.zeros((1, 3, 2))
    >>> found = track_scores(points, np.zeros((1, 3), bool), points + [3, 0], np.zeros((1, 3), bool), [0])
    >>> found.within.tolist(), found.average_jaccard
    ([0.0, 0.0, 1.0, 1.0, 1.0], 0.6)

    """
    check_choice(mode, _MODES, "mode", DataError)
    hidden, told = _flags(occluded, "occluded"), _flags(predicted_occluded, "predicted_occluded")
    truth, found, at = np.asarray(points, np.float64), np.asarray(predicted, np.float64), np.asarray(frames)
    if told.shape != hidden.shape or not truth.shape == found.shape == (*hidden.shape, 2):
        raise DataError(
            f"points and predicted must have shape (q, t, 2) where occluded has (q, t), not {truth.shape}, "
            f"{found.shape}, {hidden.shape} and {told.shape}"
        )
    count = hidden.shape[1]
    if at.shape != hidden.shape[:1] or at.dtype.kind not in "iu" or not ((at >= 0) & (at < count)).all():
        raise DataError(f"frames must contain an integer from 0 to {count - 1} for each query, not {frames!r:.80}")
    if not np.isfinite(truth[~hidden]).all():
        raise DataError("a visible point is not finite; correct it, or set it occluded")
    later = np.arange(count) - at[:, None]
    counts = later > 0 if mode == "first" else later != 0
    visible, shown = ~hidden & counts, ~told & counts
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.square(found - truth).sum(axis=-1)[..., None] < _LIMITS**2  # NaN is not near
        seen = np.float64(visible.sum())
        right = (near & visible[..., None]).sum(axis=(0, 1))
        true = (near & (visible & shown)[..., None]).sum(axis=(0, 1))
        false = (shown[..., None] & ~(near & visible[..., None])).sum(axis=(0, 1))
        accuracy = np.float64(((hidden == told) & counts).sum()) / counts.sum()
        return TrackScores(float(accuracy), right / seen, true / (seen + false), int(counts.sum()))


def _flags(given: npt.ArrayLike, name: str) -> Bools:
    flags = np.asarray(given)
    if flags.ndim != 2 or flags.dtype != np.bool_ or not flags.shape[1]:
        raise DataError(f"{name} must be a boolean array of shape (n, t), not {flags.dtype} of shape {flags.shape}")
    return flags
