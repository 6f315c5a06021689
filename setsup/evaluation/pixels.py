"""What features of pixels say: where a pixel is seen in another view, which object it shows, and where edges are."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals
from setsup.checks import check_integer
from setsup.correspondence.pixel_pairs import PixelPairs, Status
from setsup.errors import DataError
from setsup.evaluation.feature_neighbours import nearest_features

__all__ = ["NearestPixels", "edge_pixels", "mutual_pixels", "nearest_pixels", "separation", "separations"]


class NearestPixels(NamedTuple):
    """Pixels that :func:`nearest_pixels` finds.

    Attributes
    ----------
    places : (q, 2) int64
        x and y.
    distances : (q,) float64
        Euclidean, of features.
    second : (q,) float64
        Distance of the second nearest feature; infinite for an image of one pixel.

    """

    places: npt.NDArray[np.int64]
    distances: Reals
    second: Reals


def nearest_pixels(queries: npt.ArrayLike, features: npt.ArrayLike) -> NearestPixels:
    """Find the pixel of an image with the nearest feature.

    All pixels are candidates. Of equally near ones the first counts, row after row.

    Parameters
    ----------
    queries : (q, D) float
        Features of pixels, of another view.
    features : (h, w, D) float
        Of all pixels of the image.

    Returns
    -------
    NearestPixels

    Raises
    ------
    DataError
        When the shapes disagree, a feature is not finite, or the image has no pixel.

    Examples
    --------
    >>> image = np.arange(6.0).reshape(2, 3, 1)
    >>> nearest_pixels([[4.2], [0.0]], image).places.tolist()
    [[1, 1], [0, 0]]

    """
    wanted, candidates = (np.asarray(array, dtype=np.float64) for array in (queries, features))
    if wanted.ndim != 2 or candidates.ndim != 3 or wanted.shape[1] != candidates.shape[2] or not candidates.size:
        raise DataError(
            f"queries must have shape (q, D) and features (h, w, D), not {wanted.shape} and {candidates.shape}; pass "
            "features of pixels of one view, and the feature map of the other view"
        )
    for name, given in (("queries", wanted), ("features", candidates)):
        if not np.isfinite(given).all():
            raise DataError(
                f"{name} must contain only finite values to search for the nearest pixels; check the network that "
                "computed them"
            )
    width = candidates.shape[1]
    found = nearest_features(wanted, candidates.reshape(-1, candidates.shape[2]))
    places = np.stack([found.rows % width, found.rows // width], axis=1)
    return NearestPixels(places, found.distances, found.second)


def mutual_pixels(first: npt.ArrayLike, second: npt.ArrayLike, *, step: int = 4, back: float = 2.0) -> PixelPairs:
    """Match pixels of two images by their features, and keep those that are matched back to where they came from.

    Parameters
    ----------
    first, second : (h, w, D) float
        Features of all pixels of two images, which may differ in size.
    step : int
        Every so many pixels, in x and in y, one of the first image is matched.
    back : float, pixels
        How far the match of a match may be from the pixel.

    Returns
    -------
    PixelPairs
        ``points1`` and ``points2``, all of the status VISIBLE; ``xyz`` is NaN and ``instance`` -1.

    Raises
    ------
    DataError
        When the shapes disagree, a feature is not finite, or `step` is not 1 or more.

    Examples
    --------
    >>> image = np.random.default_rng(0).normal(size=(8, 12, 5))
    >>> found = mutual_pixels(image, np.roll(image, 2, axis=1), step=4)
    >>> (found.points2 - found.points1)[:2].tolist()
    [[2.0, 0.0], [2.0, 0.0]]

    """
    check_integer(step, "step", DataError, 1)
    maps1, maps2 = (np.asarray(features, dtype=np.float64) for features in (first, second))
    if maps1.ndim != 3 or maps2.ndim != 3 or maps1.shape[2] != maps2.shape[2]:
        raise DataError(
            f"features of two images must have shape (h, w, D) with the same D, not {maps1.shape} and {maps2.shape}"
        )
    across, down = (np.arange(min(step // 2, side - 1), side, step) for side in (maps1.shape[1], maps1.shape[0]))
    grid = np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2)
    there = nearest_pixels(maps1[grid[:, 1], grid[:, 0]], maps2).places
    again = nearest_pixels(maps2[there[:, 1], there[:, 0]], maps1).places
    kept = np.hypot(*(again - grid).T) <= back
    count = int(kept.sum())
    return PixelPairs(
        grid[kept].astype(np.float64),
        there[kept].astype(np.float64),
        np.full((count, 3), np.nan),
        np.full(count, -1),
        np.full(count, int(Status.VISIBLE), dtype=np.uint8),
    )


def edge_pixels(instances: npt.ArrayLike, depth: npt.ArrayLike, *, change: float = 0.05) -> Bools:
    """Pixels beside one, above, below, left or right, of another instance, or of a depth that differs by more.

    Parameters
    ----------
    instances : (h, w) integers
        What is seen at each pixel.
    depth : (h, w) float, metres
        How far away; 0 where there is nothing.
    change : float
        Share of the smaller of two depths by which these differ at an edge.

    Returns
    -------
    (h, w) bool

    Raises
    ------
    DataError
        When the shapes disagree.

    Examples
    --------
    >>> edge_pixels([[0, 0, 1, 1]], [[1.0, 1.0, 1.0, 1.2]]).tolist()
    [[False, True, True, True]]

    """
    numbers, far = np.asarray(instances), np.asarray(depth, dtype=np.float64)
    if numbers.ndim != 2 or numbers.shape != far.shape:
        raise DataError(f"instances and depth must have the same shape (h, w), not {numbers.shape} and {far.shape}")
    edges = np.zeros(numbers.shape, dtype=np.bool_)
    for first, second in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        near = np.minimum(far[first], far[second])
        changes = (numbers[first] != numbers[second]) | (np.abs(far[first] - far[second]) > change * near)
        edges[first] |= changes
        edges[second] |= changes
    return edges


def separation(values: npt.ArrayLike, truths: npt.ArrayLike) -> float:
    """Area under the ROC curve of telling true cases from others by a value that is larger for true ones.

    Parameters
    ----------
    values : (n,) float
        Of each case.
    truths : (n,) bool
        What is so.

    Returns
    -------
    float
        1 where all true cases have larger values, 0.5 by chance; NaN where all cases are alike.

    Raises
    ------
    DataError
        When values and truths are not as many, or a value is not finite.

    Examples
    --------
    >>> separation([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75

    """
    true, scores = np.asarray(truths, dtype=np.bool_), np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != true.shape:
        raise DataError(
            f"values must be a 1-D array with one value for each truth, not of shape {scores.shape} for truths of "
            f"shape {true.shape}"
        )
    if wrong := int(np.count_nonzero(~np.isfinite(scores))):
        raise DataError(f"{wrong:,} of {len(scores):,} values are not finite; leave out these values and their truths")
    return float(separations(scores[:, None], true)[0])


def separations(values: npt.NDArray[Any], truths: Bools) -> Reals:
    """:func:`separation` of each column of values (n, k), (k,) float64: of finite numbers, unchecked."""
    count = int(np.count_nonzero(truths))
    if count in (0, len(truths)):
        return np.full(values.shape[1], np.nan)
    areas = np.empty(values.shape[1])
    for column, numbers in enumerate(np.ascontiguousarray(values.T)):
        true, other = np.sort(numbers[truths]), np.sort(numbers[~truths])
        below = np.searchsorted(other, true, "left")
        twice = 2 * int(below.sum())
        if (other[np.minimum(below, len(other) - 1)] == true).any():  # equal values count half
            twice = int(below.sum()) + int(np.searchsorted(other, true, "right").sum())
        areas[column] = twice / (2 * count * len(other))
    return areas
