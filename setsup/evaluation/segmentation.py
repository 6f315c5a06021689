"""Segmentation: how well the class of every pixel is told, by intersection over union and by accuracy.

Convention
----------
Rows of a confusion matrix are true classes, columns are predicted ones. Pixels whose true class is ``ignored``, such as
those that no annotator labelled, count for nothing.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Counts
from setsup.checks import check_arguments, check_integer
from setsup.errors import DataError, SetsupError

__all__ = ["SegmentationScores", "confusion_matrix", "segmentation_scores"]


@dataclass(frozen=True, slots=True)
class SegmentationScores:
    """Scores of a segmentation.

    Attributes
    ----------
    mean_iou : float
        Mean of `iou` over classes that have some pixel, true or predicted.
    pixel_accuracy : float
        Share of the pixels whose class is right.
    iou : (k,) float64
        Intersection over union of each class: pixels of the class that are told so, by those that are of it or told to
        be; NaN for a class that no pixel has, neither in truth nor in the prediction.
    pixels : int
        Pixels that count.

    """

    mean_iou: float
    pixel_accuracy: float
    iou: npt.NDArray[np.float64]
    pixels: int


def confusion_matrix(
    labels: npt.ArrayLike, predicted: npt.ArrayLike, classes: int, *, ignored: int | None = None
) -> Counts:
    """Count pixels by their true class and the predicted one; counts of several images are added.

    Parameters
    ----------
    labels, predicted : (…) integers
        Classes from 0 to `classes` − 1, of one shape.
    classes : int
        k.
    ignored : int, optional
        Pixels whose true class this is are not counted; it need not be one of the classes, such as 255. Its row is 0.

    Returns
    -------
    (k, k) int64
        Rows are true classes.

    Raises
    ------
    DataError
        When shapes disagree, or a number is not a class.

    Examples
    --------
    >>> confusion_matrix([[0, 1], [2, 2]], [[0, 2], [2, 2]], 3).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 2]]

    """
    check_arguments(confusion_matrix, locals(), DataError)
    count = check_integer(classes, "classes", SetsupError, 1)
    true, guesses = np.asarray(labels), np.asarray(predicted)
    if true.shape != guesses.shape or true.dtype.kind not in "iub" or guesses.dtype.kind not in "iub":
        raise DataError(
            f"labels and predicted must be integer arrays of the same shape, not {true.dtype} of shape {true.shape} "
            f"and {guesses.dtype} of shape {guesses.shape}"
        )
    kept = np.ones(true.shape, bool) if ignored is None else true != ignored
    labelled, guessed = true[kept].astype(np.int64), guesses[kept].astype(np.int64)
    for name, codes in (("labels", labelled), ("predicted", guessed)):
        if codes.size and not 0 <= codes.min() <= codes.max() < count:
            wrong = codes.min() if codes.min() < 0 else codes.max()
            raise DataError(
                f"{name} contain the class {wrong}, but classes must be at least 0 and below {count}; pass "
                f"ignored={wrong} to ignore such pixels"
            )
    return np.bincount(labelled * count + guessed, minlength=count * count).reshape(count, count)


def segmentation_scores(confusion: npt.ArrayLike) -> SegmentationScores:
    """Compute scores of a confusion matrix.

    Parameters
    ----------
    confusion : (k, k) integers
        Rows are true classes; as :func:`confusion_matrix` gives it, summed over images.

    Returns
    -------
    SegmentationScores

    Raises
    ------
    DataError
        When it is no square of counts, or empty.

    Examples
    --------
    >>> found = segmentation_scores([[3, 1, 0], [0, 4, 0], [0, 0, 0]])
    >>> found.iou.round(2).tolist(), found.mean_iou, found.pixel_accuracy
    ([0.75, 0.8, nan], 0.775, 0.875)

    """
    counts = np.asarray(confusion)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise DataError(
            f"a confusion matrix must be a non-negative integer array of shape (k, k), not {counts.dtype} of shape "
            f"{counts.shape}"
        )
    if not counts.sum():
        raise DataError(
            "the confusion matrix contains no pixels: all labels were ignored, or no image was added; add images with "
            "labels that are not ignored"
        )
    right = np.diag(counts).astype(np.float64)
    union = counts.sum(axis=0) + counts.sum(axis=1) - right
    iou = np.divide(right, union, out=np.full(len(counts), np.nan), where=union > 0)
    return SegmentationScores(float(np.nanmean(iou)), float(right.sum() / counts.sum()), iou, int(counts.sum()))
