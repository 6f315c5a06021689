"""Linear probes: how much of a factor a linear function of the embedding tells, on rows it was not fitted to.

Embeddings are standardised by the mean and standard deviation of the rows of the fit; dimensions that are constant
there are left out. Every fit is the one minimum of a convex function, so that no library's version and no start can
move a result by more than the tolerance of the descent. Rows of unknown label or value take no part.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import fmin_l_bfgs_b
from scipy.special import logsumexp

from setsup.checks import check_array, is_integer
from setsup.errors import DataError, SetsupError, brief
from setsup.evaluation.held_out import folds_of, held_out
from setsup.evaluation.inputs import checked_embeddings, checked_labels

__all__ = ["Classified", "Regressed", "logistic_probe", "ridge_probe"]

Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_STILL = 1e-8  # gradient, in nats for a standardised embedding, that ends a descent
_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class Classified:
    """How well a probe tells classes on the rows held out.

    Attributes
    ----------
    accuracy : float
        Share of rows whose class is found.
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
    """How well a probe predicts a number.

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
    """Fit a multinomial logistic regression to 90 % of the rows and judge it on 10 %.

    It minimises mean −ln softmax(W x + b)_class + ½ · penalty · (‖W‖² + ‖b‖²) over standardised x by L-BFGS, to a
    gradient of 1e-8. The parts are drawn by :func:`setsup.factors.split`, each class alike, so that a fit knows all.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row an image.
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
        When shapes disagree, an entry is not finite, fewer than two classes are known, or rows are too few.

    Examples
    --------
    >>> angles = np.linspace(0, 6.28, 300)
    >>> circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    >>> logistic_probe(circle, angles > 3.14).accuracy
    1.0

    """
    for what, given in (("embeddings", embeddings), ("labels", labels)):
        check_array(given, what, DataError)
    reals, weight = checked_embeddings(embeddings), _penalty(penalty, above=True)
    classes = checked_labels(labels, len(reals))
    known = classes >= 0
    names, dense = np.unique(classes[known], return_inverse=True)
    if len(names) < 2:
        raise DataError(f"{len(names)} class is known among {len(classes):,} labels, and a probe tells two or more")
    reals, dense = reals[known], np.asarray(dense, dtype=np.int64)
    test = held_out(len(reals), seed, dense)
    fitted = _standardised(reals, ~test)
    logits = fitted[test] @ _logistic(fitted[~test], dense[~test], len(names), weight)
    wanted, shares = dense[test], np.bincount(dense[~test]) / (~test).sum()
    nats = logsumexp(logits, axis=1) - logits[np.arange(len(wanted)), wanted]
    return Classified(
        accuracy=float((logits.argmax(axis=1) == wanted).mean()),
        majority=float((wanted == shares.argmax()).mean()),
        nats=float(nats.mean()),
        entropy=float(-np.log(shares[wanted]).mean()),
        rows=len(wanted),
        left_out=int((~known).sum()),
    )


def ridge_probe(
    embeddings: npt.ArrayLike, values: npt.ArrayLike, *, penalty: float = 0.0, folds: int = 5, seed: int = 0
) -> Regressed:
    """Predict a number linearly, and judge each of some folds of the rows by a fit to the others.

    It minimises mean (y − w·x − b)² + penalty · ‖w‖² over standardised x by singular values. Without a penalty this is
    linear regression, where several fits are equal the shortest w.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row an image.
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
        When shapes disagree, an entry is not finite, rows are too few, or all values held out in a fold are equal.

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)
    >>> round(ridge_probe(np.stack([x, x**2], axis=1), 3 * x - x**2 + 7).r2, 9)
    1.0

    """
    for what, given in (("embeddings", embeddings), ("values", values)):
        check_array(given, what, DataError)
    reals, weight = checked_embeddings(embeddings), _penalty(penalty, above=False)
    given = np.asarray(values)
    if given.shape != (len(reals),) or given.dtype.kind not in "iufb" or np.isinf(given).any():
        raise DataError(
            f"values must be finite numbers ({len(reals):,},), NaN where unknown, not {given.dtype} {given.shape}"
        )
    known = ~np.isnan(given)
    reals, wanted = reals[known], given[known].astype(np.float64)
    if is_integer(folds) and folds > len(reals):
        raise DataError(f"{len(reals)} rows are too few for {folds} folds; give more rows, or fewer folds")
    fold = folds_of(len(reals), folds, seed)
    found = np.empty(folds)
    for which in range(folds):
        test = fold == which
        if not np.ptp(wanted[test]):
            raise DataError(
                f"the {int(test.sum())} values held out in fold {which} are equal and R² has no meaning; "
                "give more rows, or fewer folds"
            )
        fitted = _standardised(reals, ~test)
        weights = _ridge(fitted[~test], wanted[~test], weight)
        missed = wanted[test] - fitted[test] @ weights
        found[which] = 1 - (missed**2).sum() / ((wanted[test] - wanted[test].mean()) ** 2).sum()
    return Regressed(float(found.mean()), found, int((~known).sum()))


def _penalty(penalty: float, above: bool) -> float:
    number = isinstance(penalty, int | float | np.integer | np.floating) and not isinstance(penalty, bool)
    if not number or not 0 <= penalty < math.inf or (above and not penalty):
        raise SetsupError(f"penalty must be a number {'above 0' if above else 'from 0 on'}, not {brief(penalty)}")
    return float(penalty)


def _standardised(reals: Reals, fit: npt.NDArray[np.bool_]) -> Reals:
    """Embeddings in units of the fit's rows, and a last column of ones, (n, dimensions that vary + 1)."""
    varied = reals[:, np.ptp(reals[fit], axis=0) > 0]
    scaled = (varied - varied[fit].mean(axis=0)) / varied[fit].std(axis=0)
    return np.concatenate([scaled, np.ones((len(reals), 1))], axis=1)


def _ridge(fitted: Reals, wanted: Reals, penalty: float) -> Reals:
    """Weights, the last for the column of ones, which no penalty holds back."""
    left, lengths, right = np.linalg.svd(fitted[:, :-1], full_matrices=False)
    kept = lengths > lengths.max(initial=0.0) * max(fitted.shape) * np.finfo(np.float64).eps
    scale = np.where(kept, lengths, 0.0) / np.where(kept, lengths**2 + penalty * len(wanted), 1.0)
    return np.append(right.T @ (scale * (left.T @ (wanted - wanted.mean()))), wanted.mean())


def _logistic(fitted: Reals, dense: Codes, classes: int, penalty: float) -> Reals:
    """Weights (dimensions + 1, classes)."""
    rows = len(fitted)
    truth = np.zeros((rows, classes))
    truth[np.arange(rows), dense] = 1.0

    def loss(flat: Reals) -> tuple[float, Reals]:
        weights = flat.reshape(-1, classes)
        logits = fitted @ weights
        total = logsumexp(logits, axis=1)
        nats = float((total - (logits * truth).sum(axis=1)).mean())
        slope = fitted.T @ (np.exp(logits - total[:, None]) - truth) / rows + penalty * weights
        return nats + 0.5 * penalty * float(flat @ flat), slope.ravel()

    start = np.zeros(fitted.shape[1] * classes)
    found, _, _ = fmin_l_bfgs_b(loss, start, factr=0.0, pgtol=_STILL, maxiter=_STEPS, maxfun=4 * _STEPS)
    return np.asarray(found).reshape(-1, classes)
