"""Accuracy of a linear classifier against the number of labelled images per class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.checks import check_arguments, check_integer
from setsup.errors import DataError, SetsupError
from setsup.evaluation.inputs import check_embeddings
from setsup.evaluation.linear import linear_classifier
from setsup.evaluation.resplits import check_known
from setsup.random import fold, permute, stream_key

__all__ = ["Resample", "accuracy_over_labels", "draw_resamples"]


@dataclass(frozen=True, slots=True)
class Resample:
    """Images of a fit and of its test, which share no orbit.

    Attributes
    ----------
    train : (classes, most) int64
        Images of each class in the order in which they are labelled: the first k of each row are a fit with k.
    test : (classes, test) int64
        Images of each class.

    """

    train: Codes
    test: Codes


def draw_resamples(
    labels: npt.ArrayLike, orbits: npt.ArrayLike, resamples: int, *, most: int = 20, test: int = 64, seed: int = 0
) -> list[Resample]:
    """Draw images for fits and tests of a classifier, with the same number of each class and no orbit in common.

    In each resample half of the orbits of a class, rounded down, are for the test. Images are drawn from those of
    either half without repeats, uniformly.

    Parameters
    ----------
    labels : (n,) integers
        Class of each image, from 0 on; at least two classes.
    orbits : (n,) integers
        Orbit of each image, from 0 on; all images of an orbit are of one class.
    resamples : int
        How many, at least 1.
    most : int
        Images per class of the largest fit.
    test : int
        Images per class of the test.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    list of Resample

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, a class or orbit is unknown, there is one class, an orbit has images of two classes, a
        class has one orbit or too few images, or a number is out of range.

    Examples
    --------
    >>> labels, orbits = np.arange(40) // 20, np.arange(40) // 5
    >>> drawn = draw_resamples(labels, orbits, 2, most=3, test=4)[0]
    >>> drawn.train.shape, drawn.test.shape, np.isin(orbits[drawn.train], orbits[drawn.test]).any().item()
    ((2, 3), (2, 4), False)

    """
    check_arguments(draw_resamples, locals(), DataError)
    for name, value in (("resamples", resamples), ("most", most), ("test", test)):
        check_integer(value, name, SetsupError, 1)
    of_image = check_known(labels, len(np.asarray(orbits)), "labels")
    orbit = check_known(orbits, len(of_image), "orbits")
    classes = np.unique(of_image)
    if len(classes) < 2:
        raise DataError(f"a classifier requires at least two classes, not {len(classes)}")
    names, first_image, dense = np.unique(orbit, return_index=True, return_inverse=True)
    if (mixed := of_image[first_image][dense] != of_image).any():
        image = int(np.argmax(mixed))
        raise DataError(
            f"orbit {orbit[image]} must contain images of only one class, not of classes "
            f"{of_image[first_image][dense[image]]} and {of_image[image]}"
        )
    key = int(stream_key(seed, "draw_resamples"))
    resamples_drawn = []
    for resample in range(resamples):
        keys = [int(fold(fold(key, resample), int(label))) for label in classes]
        halves = [_halves(class_key, label, of_image, dense) for class_key, label in zip(keys, classes, strict=True)]
        sides = []
        for side, count, part, option in ((0, most, "fit", "most"), (1, test, "test", "test")):
            images = []
            for class_key, label, half in zip(keys, classes, halves, strict=True):
                if len(half[side]) < count:
                    raise DataError(
                        f"class {label} has only {len(half[side])} of the {count} images required to {part} the "
                        f"classifier; reduce {option}, or leave out the class"
                    )
                images.append(half[side][_order(class_key, 1 + side, len(half[side]))[:count]])
            sides.append(np.stack(images))
        resamples_drawn.append(Resample(*sides))
    return resamples_drawn


def accuracy_over_labels(
    embeddings: npt.ArrayLike,
    labels: npt.ArrayLike,
    resamples: Sequence[Resample],
    counts: Sequence[int] = tuple(range(1, 21)),
    *,
    c: float = 1.0,
) -> Reals:
    """Accuracy of a linear support vector machine against the number of labelled images per class.

    The classifier is that of :func:`~setsup.evaluation.linear_classifier` with the squared hinge loss. A larger fit has
    all images of a smaller one.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image.
    labels : (n,) integers
        Class of each image, from 0 on.
    resamples : sequence of Resample
        From :func:`draw_resamples`.
    counts : sequence of int
        Labelled images per class.
    c : float
        Inverse strength of the penalty, scikit-learn's ``C``.

    Returns
    -------
    (resamples, counts) float64
        Share of the test images whose class is found.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, a class is unknown, a count is larger than was drawn, or
        scikit-learn is not installed.

    Examples
    --------
    >>> labels, orbits = np.arange(40) // 20, np.arange(40) // 5
    >>> points = labels[:, None] + np.sin(np.arange(40))[:, None] / 4
    >>> drawn = draw_resamples(labels, orbits, 1, most=2, test=10)
    >>> accuracy_over_labels(points, labels, drawn, counts=(1, 2)).tolist()
    [[1.0, 1.0]]

    References
    ----------
    .. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
       self-supervised visual experience", NeurIPS 2018, section 4.4.

    """
    check_arguments(accuracy_over_labels, locals(), DataError)
    points = check_embeddings(embeddings)
    of_image = check_known(labels, len(points), "labels")
    if not len(resamples) or not len(counts):
        raise SetsupError(f"at least one resample and one count are required, not {len(resamples)} and {len(counts)}")
    accuracies = np.empty((len(resamples), len(counts)))
    for row, drawn in enumerate(resamples):
        if max(drawn.train.max(), drawn.test.max()) >= len(points):
            raise DataError(
                f"resample {row} contains image {max(drawn.train.max(), drawn.test.max())}, but images are numbered "
                f"from 0 to {len(points) - 1}"
            )
        test = drawn.test.reshape(-1)
        for column, count in enumerate(counts):
            check_integer(count, "a count", SetsupError, 1, drawn.train.shape[1])
            fit = drawn.train[:, :count].reshape(-1)
            of_fit, of_test = (points[fit], of_image[fit]), (points[test], of_image[test])
            accuracies[row, column] = linear_classifier(*of_fit, *of_test, loss="squared_hinge", c=(c,)).accuracy
    return accuracies


def _halves(key: int, label: int, labels: Codes, orbits: Codes) -> tuple[Codes, Codes]:
    """Images of a class for the fit and for the test, by orbit."""
    images = np.flatnonzero(labels == label)
    own = np.unique(orbits[images])
    if len(own) < 2:
        raise DataError(
            f"class {label} has only one orbit, but training and test require one each; leave out the class, or pass "
            "more orbits"
        )
    tested = np.isin(orbits[images], own[_order(key, 0, len(own))[: len(own) // 2]])
    return images[~tested], images[tested]


def _order(key: int, use: int, count: int) -> Codes:
    """Random order of 0 … count − 1."""
    return permute(fold(key, use), count, np.arange(count))
