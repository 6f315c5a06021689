"""Linear probes: how well a linear function of the embedding predicts a factor, on rows it was not fitted to.

Fits are scikit-learn's, on embeddings standardised by the mean and standard deviation of the rows of the fit. Every fit
is the minimum of a convex function, without random numbers. Rows of unknown label or value take no part.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_array, is_integer
from setsup.errors import DataError, SetsupError, abbreviate, imported
from setsup.evaluation.held_out import assign_folds, held_out
from setsup.evaluation.inputs import check_embeddings, check_labels

__all__ = ["Classified", "Regressed", "fit_logistic", "fit_ridge", "fit_standardized", "logistic_probe", "ridge_probe"]


_STILL = 1e-8  # gradient, in nats for a standardised embedding, that ends a descent
_STEPS = 10_000
_LEAST = 1e-300  # scikit-learn refuses the infinite penalty that a large one times the rows may be


@dataclass(frozen=True, slots=True)
class Classified:
    """Scores of a probe that predicts classes of held-out rows.

    Attributes
    ----------
    accuracy : float
        Share of rows with the right class.
    majority : float
        Share of the most frequent class of the fit among them: the accuracy without any embedding.
    nats : float
        Cross-entropy, mean of −ln q(class | embedding).
    entropy : float
        Cross-entropy of the shares that classes had in the fit: the nats without any embedding. ``entropy − nats``
        estimates information from below.
    rows : int
        Held out.
    left_out : int
        Rows of unknown class.

    """

    accuracy: float
    majority: float
    nats: float
    entropy: float
    rows: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Regressed:
    """Scores of a probe that predicts a number.

    Attributes
    ----------
    r2 : float
        Mean over folds of 1 − Σ(y − ŷ)² / Σ(y − ȳ)², sums and ȳ over the fold's rows held out; at most 1, and below 0
        where the mean would have been better.
    folds : (folds,) float64
        R² of each.
    left_out : int
        Rows of unknown value.

    """

    r2: float
    folds: Reals
    left_out: int


def logistic_probe(
    embeddings: npt.ArrayLike, labels: npt.ArrayLike, *, penalty: float = 1e-4, seed: int = 0
) -> Classified:
    """Fit a multinomial logistic regression to 90 % of the rows and test it on 10 %.

    It minimises mean −ln softmax(W x + b)_class + ½ · penalty · ‖W‖² over standardised x by scikit-learn's
    ``LogisticRegression``. The parts are drawn by :func:`setsup.factors.split`, stratified by class.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image.
    labels : (n,) integers
        Codes of classes, -1 where unknown; at least two classes.
    penalty : float
        Above 0.
    seed : int
        Of the split, 0 ≤ seed < 2⁶⁴.

    Returns
    -------
    Classified

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, fewer than two classes are known, rows are too few, or
        scikit-learn is not installed.

    Examples
    --------
    >>> angles = np.linspace(0, 6.28, 300)
    >>> circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    >>> logistic_probe(circle, angles > 3.14).accuracy
    1.0

    """
    for title, given in (("embeddings", embeddings), ("labels", labels)):
        check_array(given, title, DataError)
    reals, weight = check_embeddings(embeddings), _penalty(penalty, above=True)
    classes = check_labels(labels, len(reals))
    known = classes >= 0
    names, dense = np.unique(classes[known], return_inverse=True)
    if len(names) < 2:
        raise DataError(f"a probe requires at least two known classes, not {len(names)} among {len(classes):,} labels")
    reals, dense = reals[known], np.asarray(dense, dtype=np.int64)
    test = held_out(len(reals), seed, dense)
    model = fit_logistic(reals[~test], dense[~test], weight)
    chance = model.predict_log_proba(reals[test])
    wanted, shares = dense[test], np.bincount(dense[~test]) / (~test).sum()
    return Classified(
        accuracy=float((chance.argmax(axis=1) == wanted).mean()),
        majority=float((wanted == shares.argmax()).mean()),
        nats=float(-chance[np.arange(len(wanted)), wanted].mean()),
        entropy=float(-np.log(shares[wanted]).mean()),
        rows=len(wanted),
        left_out=int((~known).sum()),
    )


def ridge_probe(
    embeddings: npt.ArrayLike, values: npt.ArrayLike, *, penalty: float = 0.0, folds: int = 5, seed: int = 0
) -> Regressed:
    """Predict a number linearly, and test each of some folds of the rows by a fit to the others.

    It minimises mean (y − w·x − b)² + penalty · ‖w‖² over standardised x by scikit-learn's ``Ridge``, or without a
    penalty by its ``LinearRegression``, which takes the shortest w of several equal fits.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image.
    values : (n,) numbers
        What is predicted; NaN where unknown.
    penalty : float
        From 0 on.
    folds : int
        At least 2.
    seed : int
        Of the folds, drawn by :func:`setsup.factors.split`; 0 ≤ seed < 2⁶⁴.

    Returns
    -------
    Regressed

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, rows are too few, all values held out in a fold are equal, or
        scikit-learn is not installed.

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)
    >>> round(ridge_probe(np.stack([x, x**2], axis=1), 3 * x - x**2 + 7).r2, 9)
    1.0

    """
    for title, given in (("embeddings", embeddings), ("values", values)):
        check_array(given, title, DataError)
    reals, weight = check_embeddings(embeddings), _penalty(penalty, above=False)
    given = np.asarray(values)
    if given.shape != (len(reals),) or given.dtype.kind not in "iufb":
        raise DataError(
            f"values must be a numeric array of shape ({len(reals)},), one value for each embedding, not "
            f"{given.dtype} of shape {given.shape}"
        )
    if np.isinf(given).any():
        raise DataError("values must not be infinite; use NaN for unknown values")
    known = ~np.isnan(given)
    reals, wanted = reals[known], given[known].astype(np.float64)
    if is_integer(folds) and folds > len(reals):
        raise DataError(f"{len(reals)} rows are too few for {folds} folds; pass more rows, or use fewer folds")
    fold = assign_folds(len(reals), folds, seed)
    r2 = np.empty(folds)
    for which in range(folds):
        test = fold == which
        if not np.ptp(wanted[test]):
            raise DataError(
                f"the {int(test.sum())} values held out in fold {which} are equal, so R² is undefined; pass more rows, "
                "or use fewer folds"
            )
        missed = wanted[test] - fit_ridge(reals[~test], wanted[~test], weight).predict(reals[test])
        r2[which] = 1 - (missed**2).sum() / ((wanted[test] - wanted[test].mean()) ** 2).sum()
    return Regressed(float(r2.mean()), r2, int((~known).sum()))


def _penalty(penalty: float, above: bool) -> float:
    number = isinstance(penalty, int | float | np.integer | np.floating) and not isinstance(penalty, bool)
    if not number or not 0 <= penalty < math.inf or (above and not penalty):
        raise SetsupError(
            f"penalty must be a number {'above 0' if above else 'of at least 0'}, not {abbreviate(penalty)}"
        )
    return float(penalty)


def fit_logistic(reals: Reals, classes: npt.NDArray[np.int64], penalty: float) -> Any:
    """A logistic regression of standardised embeddings."""
    strength = penalty * len(reals)
    if classes.max() == 1:  # of two classes scikit-learn fits the difference of the two rows of W
        strength /= 2
    linear = imported("sklearn.linear_model", "train")
    return fit_standardized(
        linear.LogisticRegression(C=max(1 / strength, _LEAST), tol=_STILL, max_iter=_STEPS), reals, classes
    )


def fit_ridge(reals: Reals, values: Reals, penalty: float) -> Any:
    """A linear regression of standardised embeddings."""
    linear = imported("sklearn.linear_model", "train")
    model = linear.Ridge(min(penalty * len(reals), 1 / _LEAST), solver="svd") if penalty else linear.LinearRegression()
    return fit_standardized(model, reals, values)


def fit_standardized(model: Any, reals: Reals, wanted: npt.NDArray[Any]) -> Any:
    """A model of scikit-learn, fitted to standardised embeddings."""
    scaler = imported("sklearn.preprocessing", "train").StandardScaler()
    return imported("sklearn.pipeline", "train").make_pipeline(scaler, model).fit(reals, wanted)
