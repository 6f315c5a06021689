"""Keypoints that were transferred from one image to another: the share of correct ones.

References
----------
.. [1] Y. Yang, D. Ramanan, "Articulated human detection with flexible mixtures of parts", PAMI 2013, section 6 (PCK).
.. [2] J. Min, J. Lee, J. Ponce, M. Cho, "SPair-71k: a large-scale benchmark for semantic correspondence", 2019
   (arXiv 1908.10543).

"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals
from setsup.errors import DataError

__all__ = ["KeypointAccuracy", "keypoint_accuracy", "keypoint_extent"]

_ALPHAS = (0.05, 0.1, 0.15)


class KeypointAccuracy(NamedTuple):
    """PCK at several thresholds.

    Attributes
    ----------
    per_image : (t,) float64
        Mean over pairs of images of the share of a pair's keypoints that are correct.
    per_point : (t,) float64
        Share of the keypoints of all pairs that are correct.
    pairs : int
        Pairs with a keypoint that counts.
    points : int
        Keypoints that count.

    """

    per_image: Reals
    per_point: Reals
    pairs: int
    points: int


def keypoint_accuracy(
    predicted: Sequence[npt.ArrayLike],
    truth: Sequence[npt.ArrayLike],
    scales: npt.ArrayLike,
    *,
    alphas: Sequence[float] = _ALPHAS,
) -> KeypointAccuracy:
    """Percentage of correct keypoints (PCK) [1]_, as a share: per image and per point, which papers mix up.

    A keypoint is correct if its distance from the truth is at most α · s. The scale s of a pair is the longer side of
    the object's box in the target image (``bbox``), the longer side of the target image (``img``), or
    :func:`keypoint_extent` where there are no boxes. Keypoints with a coordinate of NaN, in the prediction or the
    truth, are left out, and pairs without any other.

    Parameters
    ----------
    predicted, truth : sequence of (k, 2) float
        Keypoints of each pair of images, in pixels of the target image.
    scales : (pairs,) float, pixels
        s of each pair, in the same pixels.
    alphas : sequence of float
        Thresholds α.

    Returns
    -------
    KeypointAccuracy
        NaN where no keypoint counts.

    Raises
    ------
    DataError
        When the lengths or shapes disagree, a scale is not positive and finite, or alphas are not positive.

    Examples
    --------
    >>> found = keypoint_accuracy([[[0, 0], [9, 0]], [[5, 5]]], [[[0, 0], [0, 0]], [[5, 5]]], [100, 100], alphas=[0.05])
    >>> found.per_image.tolist(), found.per_point.round(3).tolist()
    ([0.75], [0.667])

    """
    sizes, limits = np.asarray(scales, np.float64), np.asarray(alphas, np.float64)
    if not len(predicted) == len(truth) == sizes.size or sizes.ndim != 1:
        raise DataError(
            f"predicted, truth and scales must have one entry for each pair, not {len(predicted)}, {len(truth)} and "
            f"shape {sizes.shape}"
        )
    if not ((sizes > 0) & (sizes < np.inf)).all() or limits.ndim != 1 or not ((limits > 0) & (limits < np.inf)).all():
        raise DataError("scales and alphas must be positive finite numbers")
    right, counts = np.zeros((len(sizes), len(limits))), np.zeros(len(sizes))
    for pair, (found, wanted) in enumerate(zip(predicted, truth, strict=True)):
        places, known = _known(found, wanted, pair)
        right[pair] = (np.linalg.norm(places, axis=1)[:, None] <= limits * sizes[pair]).sum(axis=0)
        counts[pair] = known.sum()
    some = counts > 0
    with np.errstate(invalid="ignore"):
        per_point = right.sum(axis=0) / counts.sum()
    per_image = (right[some] / counts[some, None]).mean(axis=0) if some.any() else np.full(len(limits), np.nan)
    return KeypointAccuracy(per_image, per_point, int(some.sum()), int(counts.sum()))


def keypoint_extent(points: npt.ArrayLike) -> float:
    """Longer side of the box around keypoints (k, 2), in pixels: the scale of PF-WILLOW; keypoints of NaN are left out.

    Raises DataError where no keypoint is left.

    Examples
    --------
    >>> keypoint_extent([[0, 0], [30, 10], [np.nan, 90]])
    30.0

    """
    places = np.asarray(points, np.float64)
    if places.ndim != 2 or places.shape[1] != 2 or not (known := np.isfinite(places).all(axis=1)).any():
        raise DataError(f"keypoints must have shape (k, 2) with at least one finite keypoint, not {places.shape}")
    return float(np.ptp(places[known], axis=0).max())


def _known(found: npt.ArrayLike, wanted: npt.ArrayLike, pair: int) -> tuple[Reals, Bools]:
    """Differences of the keypoints that count, and which these are."""
    places, truths = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if places.shape != truths.shape or places.ndim != 2 or places.shape[1] != 2:
        raise DataError(
            f"pair {pair}: predicted and true keypoints must have the same shape (k, 2), not {places.shape} and "
            f"{truths.shape}"
        )
    known: Bools = np.isfinite(np.concatenate([places, truths], axis=1)).all(axis=1)
    return places[known] - truths[known], known
