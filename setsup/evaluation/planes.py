"""Matches between images of a plane, which a homography relates: accuracy of matches and of estimated homographies.

References
----------
.. [1] M. Dusmanu et al., "D2-Net: a trainable CNN for joint description and detection of local features", CVPR 2019
   (arXiv 1905.03561), section 5.1: mean matching accuracy on HPatches.
.. [2] P.-E. Sarlin, D. DeTone, T. Malisiewicz, A. Rabinovich, "SuperGlue: learning feature matching with graph neural
   networks", CVPR 2020 (arXiv 1911.11763), section 5.1: error of corners, and area under its cumulative curve.

"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.errors import DataError, imported

__all__ = ["corner_error", "error_auc", "estimate_homography", "matching_accuracy"]

_FEWEST = 4  # matches that determine a homography


def matching_accuracy(errors: Sequence[npt.ArrayLike], thresholds: npt.ArrayLike = range(1, 11)) -> Reals:
    """Mean matching accuracy (MMA) [1]_: share of the matches of a pair whose error is at most t, mean over pairs.

    Parameters
    ----------
    errors : sequence of (m,) float, pixels
        Distance of each match of a pair of images from its true place. A pair without matches counts as 0.
    thresholds : (t,) float, pixels
        1 to 10 by default.

    Returns
    -------
    (t,) float64

    Raises
    ------
    DataError
        When there is no pair, an error is negative or NaN, or the shapes are wrong.

    Examples
    --------
    >>> matching_accuracy([[0.5, 2.0], []], [1, 3]).tolist()
    [0.25, 0.5]

    """
    limits, pairs = np.asarray(thresholds, np.float64), [np.asarray(pair, np.float64) for pair in errors]
    if not pairs or limits.ndim != 1:
        raise DataError(f"errors must be those of one or more pairs, and thresholds a list, not {len(pairs)} pairs")
    for number, pair in enumerate(pairs):
        if pair.ndim != 1 or not (pair >= 0).all():
            raise DataError(f"pair {number}: errors must be a list of numbers of at least 0, not of shape {pair.shape}")
    shares = [(pair[:, None] <= limits).mean(axis=0) if len(pair) else np.zeros(len(limits)) for pair in pairs]
    return np.asarray(np.mean(shares, axis=0))


def corner_error(estimated: npt.ArrayLike | None, truth: npt.ArrayLike, size: tuple[int, int]) -> float:
    """Mean distance of the four corners of an image, moved by an estimated homography, from their true places [2]_.

    Parameters
    ----------
    estimated : (3, 3) float, optional
        Homography from the first image to the second; None where the estimation failed.
    truth : (3, 3) float
        The true one, in pixels whose centres are integers.
    size : (int, int)
        Height and width of the first image.

    Returns
    -------
    float, pixels
        Infinite where the estimation failed, or moves a corner to infinity.

    Raises
    ------
    DataError
        When a shape is wrong, or the true homography is not finite or moves a corner to infinity.

    Examples
    --------
    >>> corner_error([[1, 0, 3], [0, 1, 4], [0, 0, 1]], np.eye(3), (480, 640))
    5.0

    """
    height, width = size
    corners = np.array([[0, 0, 1], [width - 1, 0, 1], [0, height - 1, 1], [width - 1, height - 1, 1]], np.float64)
    wanted = _moved(truth, corners, "truth")
    if wanted is None:
        raise DataError("the true homography must be finite, and must not move a corner to infinity")
    found = None if estimated is None else _moved(estimated, corners, "estimated")
    return float("inf") if found is None else float(np.linalg.norm(found - wanted, axis=1).mean())


def estimate_homography(
    points1: npt.ArrayLike,
    points2: npt.ArrayLike,
    *,
    threshold: float = 3.0,
    iterations: int = 2000,
    confidence: float = 0.995,
) -> Reals | None:
    """Estimate the homography between matched points by OpenCV's RANSAC.

    ``cv2.findHomography`` draws four matches at a time, counts the matches whose reprojection error is at most the
    threshold, and refines the best homography on these. Its random numbers begin with the same state in every call, so
    equal matches give equal homographies.

    Parameters
    ----------
    points1, points2 : (n, 2) float, pixels
        Matched points of the two images.
    threshold : float, pixels
        Largest reprojection error of an inlier.
    iterations : int
        Largest number of draws.
    confidence : float
        Sampling ends when, with this probability, at least one draw contained only inliers.

    Returns
    -------
    (3, 3) float64, or None
        From pixels of the first image to those of the second; None if there are fewer than four matches, or if they
        determine no homography.

    Raises
    ------
    DataError
        When the shapes disagree, or a point is not finite.
    LibraryError
        When OpenCV is not installed.

    Examples
    --------
    >>> points = np.array([[0, 0], [9, 0], [0, 7], [9, 7], [4, 3]])
    >>> (estimate_homography(points, points + [3, 4]).round(6) + 0.0).tolist()
    [[1.0, 0.0, 3.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]

    """
    cv2 = imported("cv2", "opencv")
    source, target = np.asarray(points1, np.float64), np.asarray(points2, np.float64)
    if source.ndim != 2 or source.shape[1:] != (2,) or source.shape != target.shape:
        raise DataError(f"points1 and points2 must have the same shape (n, 2), not {source.shape} and {target.shape}")
    if not (np.isfinite(source).all() and np.isfinite(target).all()):
        raise DataError("matched points must be finite; leave out matches with unknown positions")
    if len(source) < _FEWEST:
        return None
    found, _ = cv2.findHomography(source, target, cv2.RANSAC, threshold, maxIters=iterations, confidence=confidence)
    return None if found is None else np.asarray(found, np.float64)


def error_auc(errors: npt.ArrayLike, thresholds: npt.ArrayLike = (1.0, 3.0, 5.0)) -> Reals:
    """Area under the cumulative curve of errors up to each threshold, divided by the threshold [2]_.

    The curve passes through (0, 0) and, for the i-th of n sorted errors, through (error, i / n), linear between these
    points, and level from the last error below the threshold on. Failures have an infinite error.

    Parameters
    ----------
    errors : (n,) float
        Of all pairs, at least 0.
    thresholds : (t,) float
        Above 0.

    Returns
    -------
    (t,) float64

    Raises
    ------
    DataError
        When there is no error, one is negative or NaN, or a threshold is not positive.

    Examples
    --------
    >>> error_auc([0.0, 2.0, np.inf, np.inf], [4.0]).tolist()
    [0.4375]

    """
    given, limits = np.sort(np.asarray(errors, np.float64)), np.atleast_1d(np.asarray(thresholds, np.float64))
    if given.ndim != 1 or not len(given) or not (given >= 0).all() or not ((limits > 0) & (limits < np.inf)).all():
        raise DataError("errors must be one or more numbers of at least 0, and thresholds positive numbers")
    areas = []
    for limit in limits:
        below = given[given < limit]
        reached = np.arange(len(below) + 1) / len(given)
        areas.append(np.trapezoid([*reached, reached[-1]], [0.0, *below, limit]) / limit)
    return np.array(areas)


def _moved(homography: npt.ArrayLike, corners: Reals, name: str) -> Reals | None:
    """Corners (4, 3) moved by a homography, as (4, 2); None where that is not finite."""
    matrix = np.asarray(homography, np.float64)
    if matrix.shape != (3, 3):
        raise DataError(f"{name} must be a homography of shape (3, 3), not {matrix.shape}")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        moved = corners @ matrix.T
        places = moved[:, :2] / moved[:, 2:]
    return places if np.isfinite(places).all() else None
