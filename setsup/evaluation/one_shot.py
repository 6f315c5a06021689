"""One-shot accuracy: nearest neighbours among one labelled image per class, over many re-splits at once.

Convention
----------
The queries of a re-split are all images that take part in it, but those of the orbits of its labelled images: an
embedding that is invariant on orbits would tell these by definition. Distances are float64 sums of squared differences,
and of labelled images at equal distance the first one is the nearest.
"""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Codes, Reals
from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.evaluation.distances import as_compared, check_metric, exact, slack
from setsup.evaluation.inputs import check_embeddings
from setsup.evaluation.resplits import check_known, check_mask

__all__ = ["one_shot_accuracy"]


_BLOCK = 1 << 21  # distances held at a time


def one_shot_accuracy(
    embeddings: npt.ArrayLike,
    labels: npt.ArrayLike,
    orbits: npt.ArrayLike,
    labelled: npt.ArrayLike,
    *,
    within: npt.ArrayLike | None = None,
    metric: str = "l2sq",
) -> Reals:
    """Accuracy of the nearest labelled image in each of many re-splits, as one batched computation.

    Distances between all images and those that are labelled in any re-split are matrix products, a block of images at
    a time; where these cannot tell which of two is less, both are computed from differences.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image.
    labels : (n,) integers
        Class of each image, from 0 on.
    orbits : (n,) integers
        Orbit of each image, from 0 on.
    labelled : (resplits, k) integers
        Labelled images of each re-split, from :func:`draw_labelled`; each of another class. A query of another class
        than these counts as wrong.
    within : (resplits, n) bool, optional
        Images that take part in each re-split, from :func:`draw_parts`; all by default.
    metric : {"l2sq", "cosine"}
        Euclidean distance of embeddings, or of embeddings scaled to length 1.

    Returns
    -------
    (resplits,) float64
        Share of queries whose nearest labelled image has their class.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, a class or orbit is unknown, two labelled images of a re-split
        are of one class, one of them does not take part, a re-split has no query, or the metric is unknown.

    Examples
    --------
    Two classes of two orbits; image 4, far from the others of its class, is mistaken for the first class:

    >>> from setsup.evaluation import draw_labelled
    >>> points, labels, orbits = [[0.0], [0.1], [1.0], [1.1], [0.4]], [0, 0, 1, 1, 1], [0, 1, 2, 2, 3]
    >>> one_shot_accuracy(points, labels, orbits, draw_labelled(labels, orbits, 2, candidates=[1, 0, 1, 0, 0]))
    array([0.5, 0.5])

    References
    ----------
    .. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
       self-supervised visual experience", NeurIPS 2018, table 2.

    """
    check_arguments(one_shot_accuracy, locals(), DataError)
    check_metric(metric)
    points = as_compared(check_embeddings(embeddings), metric)
    of_image = check_known(labels, len(points), "labels")
    orbit = check_known(orbits, len(points), "orbits")
    drawn = _check_labelled(labelled, of_image)
    part = None if within is None else check_mask(within, (len(drawn), len(points)), "within")
    if part is not None and not (inside := np.take_along_axis(part, drawn, axis=1).all(axis=1)).all():
        raise DataError(
            f"a labelled image of re-split {int(np.argmin(inside))} is not part of that re-split; draw labelled "
            "images within the parts"
        )
    centre = points.mean(axis=0)  # products of short vectors are closer to the sums
    images, column = np.unique(drawn, return_inverse=True)
    column, gallery = column.reshape(drawn.shape), points[images] - centre
    squares = (gallery**2).sum(axis=1)[:, None]
    right, queries = np.zeros(len(drawn), dtype=np.int64), np.zeros(len(drawn), dtype=np.int64)
    step = max(1, _BLOCK // max(len(images), len(drawn), points.shape[1]))
    for start in range(0, len(points), step):
        block = slice(start, min(start + step, len(points)))
        is_query = np.ones((len(drawn), block.stop - start), dtype=np.bool_) if part is None else part[:, block].copy()
        for orbits_drawn in orbit[drawn].T:
            is_query &= orbits_drawn[:, None] != orbit[block]
        centred = points[block] - centre
        about = squares - 2 * (gallery @ centred.T)  # without ‖q‖², which all have in common
        nearest, unclear = _nearest(about, column, slack(centred, gallery))
        split, query = np.nonzero(unclear & is_query)
        nearest[split, query] = _nearest_by_sums(points, drawn[split], query + start)
        predicted = np.take_along_axis(of_image[drawn], nearest, axis=1)
        right += np.count_nonzero((predicted == of_image[block]) & is_query, axis=1)
        queries += np.count_nonzero(is_query, axis=1)
    if not queries.all():
        raise DataError(
            f"re-split {int(np.argmin(queries))} has no query, because all its images belong to the orbits of "
            "labelled images; add orbits to the re-split"
        )
    return np.asarray(right / queries)


def _nearest(about: Reals, column: Codes, doubt: Reals) -> tuple[Codes, Bools]:
    """Place of the nearest labelled image of each re-split and query, and where another one may be as near.

    `about` (images, block) approximate distances, `column` (resplits, k) rows of these, `doubt` (block,).
    """
    least = about[column[:, 0]]
    second = np.full_like(least, np.inf)
    nearest = np.zeros(least.shape, dtype=np.int64)
    for position in range(1, column.shape[1]):
        other = about[column[:, position]]
        np.copyto(nearest, position, where=other < least)
        np.minimum(second, np.maximum(least, other), out=second)
        np.minimum(least, other, out=least)
    second -= least
    return nearest, second <= doubt


def _nearest_by_sums(points: Reals, labelled: Codes, query: Codes) -> Codes:
    """Place of the nearest of some labelled images (m, k) to each query (m,), the first of equal ones."""
    nearest = np.empty(len(query), dtype=np.int64)
    step = max(1, _BLOCK // labelled.shape[1])
    for start in range(0, len(query), step):
        some = labelled[start : start + step]
        queries = np.repeat(query[start : start + step], labelled.shape[1])
        nearest[start : start + step] = (
            exact(points, points, queries, some.reshape(-1)).reshape(some.shape).argmin(axis=1)
        )
    return nearest


def _check_labelled(labelled: npt.ArrayLike, labels: Codes) -> Codes:
    """Labelled images (resplits, k) int64 of different classes."""
    images = np.asarray(labelled)
    if images.ndim != 2 or 0 in images.shape or images.dtype.kind not in "iu":
        raise DataError(
            f"labelled must be an integer array of shape (resplits, classes), not {images.dtype} of shape "
            f"{images.shape}"
        )
    if images.min() < 0 or images.max() >= len(labels):
        raise DataError(
            f"labelled must contain numbers of images from 0 to {len(labels) - 1}, not numbers from {images.min()} to "
            f"{images.max()}"
        )
    of_drawn = np.sort(labels[images], axis=1)
    if (twice := (of_drawn[:, 1:] == of_drawn[:, :-1]).any(axis=1)).any():
        raise DataError(
            f"re-split {int(np.argmax(twice))} has two labelled images of the same class; draw one labelled image per "
            "class"
        )
    return images.astype(np.int64)
