"""Linear probes that are fitted to some rows and tested on others, such as those of another split.

Fits are scikit-learn's, on embeddings standardised by the mean and standard deviation of the rows of the fit. Nothing
is chosen on the rows of the test.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.checks import check_arguments, check_choice, check_number
from setsup.errors import DataError, SetsupError, imported
from setsup.evaluation.held_out import held_out
from setsup.evaluation.inputs import check_embeddings, check_labels
from setsup.evaluation.probes import Regressed, fit_logistic, fit_ridge, fit_standardized

__all__ = ["LinearProbe", "linear_classifier", "linear_regression"]


_LOSSES = ("logistic", "squared_hinge")
_PENALTY = 1e-4  # of logistic_probe
_TOLERANCE, _STEPS = 1e-6, 10_000


@dataclass(frozen=True, slots=True)
class LinearProbe:
    """Scores of a linear classifier on held-out rows.

    Attributes
    ----------
    accuracy : float
        Share of the tested rows with the right class.
    majority : float
        Share of the most frequent class of the fit among them: the accuracy without any embedding.
    c : float or None
        Inverse strength of the penalty, if one was passed or chosen.
    held_out : tuple of float
        Accuracy of each candidate on the rows on which it was chosen; empty if there was no choice.
    rows : int
        Tested.
    left_out : int
        Rows of unknown class, of fit and test.

    """

    accuracy: float
    majority: float
    c: float | None
    held_out: tuple[float, ...]
    rows: int
    left_out: int


def linear_classifier(
    embeddings: npt.ArrayLike,
    labels: npt.ArrayLike,
    test_embeddings: npt.ArrayLike,
    test_labels: npt.ArrayLike,
    *,
    loss: Literal["logistic", "squared_hinge"] = "logistic",
    c: Sequence[float] = (),
    copies: Sequence[npt.ArrayLike] = (),
    seed: int = 0,
) -> LinearProbe:
    """Fit a linear classifier to some rows and test it on others.

    ``logistic`` is a multinomial logistic regression, scikit-learn's ``LogisticRegression``. ``squared_hinge`` is a
    support vector machine, its ``LinearSVC``: one class against the rest, ½‖w‖² + C Σ max(0, 1 − y (w·x + b))², the
    library's default loss. It is smooth, so that the primal problem is solved, without random numbers; the hinge
    itself needs the dual one, which draws rows. Intercepts are penalised there, as part of w.

    Of several candidates, the one with the best accuracy on a tenth of the rows of the fit is taken, the smallest of
    equal ones; the classifier is then fitted to all of them. The tenth is drawn by :func:`setsup.factors.split`,
    stratified by class. The rows of the test take no part in the choice.

    Parameters
    ----------
    embeddings, test_embeddings : (n, d) and (m, d) numbers
        Rows of the fit, and of the test.
    labels, test_labels : (n,) and (m,) integers
        Codes of classes, -1 where unknown; at least two classes in the fit. A class that only the test has is never
        found.
    loss : {"logistic", "squared_hinge"}
        Which classifier.
    c : sequence of float
        Candidates for the inverse strength of the penalty, scikit-learn's ``C``, with losses summed over rows. With
        none it is 1 for ``squared_hinge``, and for ``logistic`` the penalty of
        :func:`~setsup.evaluation.logistic_probe`.
    copies : sequence of (n, d) numbers
        Embeddings of augmented images of the same rows, which the fit sees too; never those of held-out rows.
    seed : int
        Of the tenth, 0 ≤ seed < 2⁶⁴.

    Returns
    -------
    LinearProbe

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, fewer than two classes are known, rows are too few, an option is
        out of range, or scikit-learn is not installed.

    Examples
    --------
    >>> angles = np.linspace(0, 6.28, 300)
    >>> circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    >>> found = linear_classifier(circle[::2], angles[::2] > 3.14, circle[1::2], angles[1::2] > 3.14, c=(0.01, 1, 100))
    >>> round(found.accuracy, 2), found.c
    (0.99, 0.01)

    """
    check_arguments(linear_classifier, locals(), DataError)
    check_choice(loss, _LOSSES, "loss", SetsupError)
    candidates = [check_number(candidate, "c", SetsupError, positive=True) for candidate in c]
    fit = _rows(embeddings, labels, copies, "embeddings")
    test = _rows(test_embeddings, test_labels, (), "test embeddings")
    _check_dimensions(fit.points[0], test.points[0])
    names, dense = np.unique(fit.labels, return_inverse=True)
    if len(names) < 2:
        raise DataError(f"a probe requires at least two known classes among the labels to fit, not {len(names)}")
    dense = np.asarray(dense, dtype=np.int64)
    if not len(test.labels):
        raise DataError("all test labels are unknown; pass rows with known classes")
    shares: tuple[float, ...] = ()
    chosen = candidates[0] if candidates else None
    if len(candidates) > 1:
        away = held_out(len(dense), seed, dense)
        kept = [points[~away] for points in fit.points]
        shares = tuple(
            float((_fit(loss, candidate, kept, dense[~away]).predict(fit.points[0][away]) == dense[away]).mean())
            for candidate in candidates
        )
        chosen = min(candidate for candidate, share in zip(candidates, shares, strict=True) if share == max(shares))
    position = np.minimum(np.searchsorted(names, test.labels), len(names) - 1)
    wanted = np.where(names[position] == test.labels, position, -1)
    predicted = _fit(loss, chosen, fit.points, dense).predict(test.points[0])
    return LinearProbe(
        accuracy=float((predicted == wanted).mean()),
        majority=float((wanted == np.bincount(dense).argmax()).mean()),
        c=chosen,
        held_out=shares,
        rows=len(wanted),
        left_out=fit.left_out + test.left_out,
    )


def linear_regression(
    embeddings: npt.ArrayLike,
    values: npt.ArrayLike,
    test_embeddings: npt.ArrayLike,
    test_values: npt.ArrayLike,
    *,
    penalty: float = 0.0,
    copies: Sequence[npt.ArrayLike] = (),
) -> Regressed:
    """Fit a linear function to the values of some rows and test it on others.

    Parameters
    ----------
    embeddings, test_embeddings : (n, d) and (m, d) numbers
        Rows of the fit, and of the test.
    values, test_values : (n,) and (m,) numbers
        What is predicted; NaN where unknown.
    penalty : float
        From 0 on, as for :func:`~setsup.evaluation.ridge_probe`.
    copies : sequence of (n, d) numbers
        Embeddings of augmented images of the same rows, which the fit sees too.

    Returns
    -------
    Regressed
        With one fold, the rows of the test.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, no value or only one is known, or scikit-learn is not installed.

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> round(linear_regression(x[::2], 3 * x[::2, 0], x[1::2], 3 * x[1::2, 0]).r2, 9)
    1.0

    """
    check_arguments(linear_regression, locals(), DataError)
    weight = check_number(penalty, "penalty", SetsupError, 0)
    fit = _rows(embeddings, values, copies, "embeddings", numbers=True)
    test = _rows(test_embeddings, test_values, (), "test embeddings", numbers=True)
    _check_dimensions(fit.points[0], test.points[0])
    if not len(fit.labels) or len(test.labels) < 2 or not np.ptp(test.labels):
        raise DataError(
            f"R² requires at least two different known test values and one known value to fit, but {len(test.labels)} "
            f"test values and {len(fit.labels)} values to fit are known; pass more rows"
        )
    model = fit_ridge(np.concatenate(fit.points), np.tile(fit.labels, len(fit.points)), weight)
    missed = test.labels - model.predict(test.points[0])
    r2 = 1 - float((missed**2).sum() / ((test.labels - test.labels.mean()) ** 2).sum())
    return Regressed(r2, np.array([r2]), fit.left_out + test.left_out)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows with a known label: their embeddings and those of their copies, (n, d) each, and labels (n,)."""

    points: list[Reals]
    labels: npt.NDArray[Any]
    left_out: int


def _rows(
    embeddings: npt.ArrayLike, labels: npt.ArrayLike, copies: Sequence[npt.ArrayLike], name: str, numbers: bool = False
) -> _Rows:
    """Check embeddings and labels, and keep rows of known label."""
    reals = check_embeddings(embeddings, name)
    if numbers:
        known_labels: npt.NDArray[Any] = np.asarray(labels)
        if known_labels.shape != (len(reals),) or known_labels.dtype.kind not in "iufb" or np.isinf(known_labels).any():
            raise DataError(
                f"values of {name} must be a numeric array of shape ({len(reals)},), finite or NaN where unknown, not "
                f"{known_labels.dtype} of shape {known_labels.shape}"
            )
        known_labels = known_labels.astype(np.float64)
        known = ~np.isnan(known_labels)
    else:
        known_labels = check_labels(labels, len(reals), f"labels of {name}")
        known = known_labels >= 0
    points = [reals[known]]
    for copy in copies:
        others = check_embeddings(copy, f"copies of {name}")
        if others.shape != reals.shape:
            raise DataError(f"copies of {name} must have the same shape as {name}, {reals.shape}, not {others.shape}")
        points.append(others[known])
    return _Rows(points, known_labels[known], int((~known).sum()))


def _check_dimensions(fit: Reals, test: Reals) -> None:
    if fit.shape[1] != test.shape[1]:
        raise DataError(
            f"embeddings and test embeddings must have the same number of dimensions, not {fit.shape[1]} and "
            f"{test.shape[1]}; embed both with the same network"
        )


def _fit(loss: str, c: float | None, points: Sequence[Reals], classes: Codes) -> Any:
    reals, wanted = np.concatenate(points), np.tile(classes, len(points))
    if loss == "squared_hinge":
        svm = imported("sklearn.svm", "train")
        model = svm.LinearSVC(loss=loss, dual=False, C=1.0 if c is None else c, tol=_TOLERANCE, max_iter=_STEPS)
        with warnings.catch_warnings():
            # few images per class are meant, and classes are not numbers
            warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
            return fit_standardized(model, reals, wanted)
    # c sums losses over rows, and of two classes scikit-learn fits the difference of the two rows of W
    weight = _PENALTY if c is None else (2 if classes.max() == 1 else 1) / (c * len(reals))
    return fit_logistic(reals, wanted, weight)
