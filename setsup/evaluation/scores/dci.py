"""Disentanglement, completeness, informativeness: which codes a learner uses for which factor.

References
----------
.. [1] C. Eastwood, C. K. I. Williams, "A framework for the quantitative evaluation of disentangled representations",
   ICLR 2018.

"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_choice
from setsup.errors import DataError, SetsupError
from setsup.evaluation.held_out import held_out
from setsup.evaluation.inputs import check_embeddings, check_factors, select_known
from setsup.evaluation.scores.additive import fit_additive
from setsup.evaluation.scores.information import discretise
from setsup.evaluation.scores.standard import fit_boosting
from setsup.progress import progress

__all__ = ["DCI", "dci"]


@dataclass(frozen=True, slots=True)
class DCI:
    """The three scores, with importances and accuracies.

    Attributes
    ----------
    disentanglement : float
        1 where each code matters for one factor, 0 where it matters for all alike.
    completeness : float
        1 where one code matters for each factor, 0 where all matter alike.
    informativeness : float
        Mean over the factors of the accuracy on rows held out.
    importance : (d, k) float64
        Of each code for each factor, 0 … 1.
    accuracy : (k,) float64
        Of each factor on rows held out.
    left_out : (k,) int64
        Rows where each factor is unknown.
    learner : str
        By which it was taken.

    """

    disentanglement: float
    completeness: float
    informativeness: float
    importance: Reals
    accuracy: Reals
    left_out: npt.NDArray[np.int64]
    learner: str


def dci(
    codes: npt.ArrayLike,
    factors: npt.ArrayLike,
    *,
    learner: Literal["boosting", "additive"] = "boosting",
    bins: int = 20,
    seed: int = 0,
) -> DCI:
    """Disentanglement, completeness and informativeness [1]_.

    With R_ij ≥ 0 the importance of code i for factor j, the disentanglement of code i is 1 minus the entropy, to the
    base k, of R_ij / Σ_j R_ij, and the score is the mean of these weighted by Σ_j R_ij. The completeness of factor j is
    1 minus the entropy, to the base d, of R_ij / Σ_i R_ij, and the score is their mean. A code or a factor without any
    importance counts as 0; where there is one factor only, or one code, those with importance count as 1.

    The paper leaves the learner open, and values of different learners cannot be compared:

    ``boosting``
        Gradient boosting with scikit-learn's defaults, as most published values were taken
        (:mod:`setsup.evaluation.scores.standard`). It sees what only several codes together tell, such as an exclusive
        or. Importances of codes that tell nothing are small and not 0, and those of codes that tell the same, or
        something only together, are divided in a way that may change with a few rows. It takes minutes for many codes
        and factors of many levels.
    ``additive``
        A lasso over functions of binned codes (:mod:`setsup.evaluation.scores.additive`): convex and without random
        numbers or a tuned penalty, so that its importances cannot move with a library; codes that tell nothing get
        exactly 0, and of two codes that say the same the first gets all. It adds functions of single codes, and does
        not see what only several together tell.

    Informativeness is the accuracy of the same learner, where the paper gives the error of a regression.

    Parameters
    ----------
    codes : (n, d) numbers
        One row per image.
    factors : (n, k) integers
        Codes of levels, -1 where unknown.
    learner : {"boosting", "additive"}
        See above.
    bins : int
        Of equal width for each code, of ``additive``.
    seed : int
        Of the split in 90 % for the fit and 10 % held out, each level of a factor alike; 0 ≤ seed < 2⁶⁴.

    Returns
    -------
    DCI

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, a factor has fewer than two known levels, or rows are too few for
        any to be held out.

    Examples
    --------
    >>> factors = np.tile(np.indices((4, 5)).reshape(2, -1), 40).T
    >>> found = dci(factors * [1.0, -3.0], factors, learner="additive")
    >>> found.disentanglement, found.completeness, found.informativeness
    (1.0, 1.0, 1.0)

    """
    check_choice(learner, ("boosting", "additive"), "the learner", SetsupError)
    check_arguments(dci, locals(), DataError)
    reals = check_embeddings(codes, "codes")
    levels = check_factors(factors, len(reals))
    binned = discretise(reals, bins)
    importance = np.empty((reals.shape[1], levels.shape[1]))
    accuracy = np.empty(levels.shape[1])
    with progress(levels.shape[1], "DCI", "factors") as advance:
        for column in range(levels.shape[1]):
            known, dense = select_known(levels, column)
            test = held_out(len(dense), seed, dense)
            if learner == "boosting":
                importance[:, column], accuracy[column] = fit_boosting(reals[known], dense, test)
            else:
                rows = binned[known]
                fit = fit_additive(rows[~test], dense[~test], bins, int(dense.max()) + 1)
                importance[:, column] = fit.importance
                accuracy[column] = (fit.predict(rows[test]) == dense[test]).mean()
            advance()
    by_code = importance.sum(axis=1)
    weight = by_code / by_code.sum() if by_code.any() else by_code
    return DCI(
        float((weight * _concentration(importance)).sum()),
        float(_concentration(importance.T).mean()),
        float(accuracy.mean()),
        importance,
        accuracy,
        (levels < 0).sum(axis=0),
        learner,
    )


def _concentration(importance: Reals) -> Reals:
    """1 minus the entropy of each row's shares, to the base of their number; 0 for a row of zeros."""
    total = importance.sum(axis=1, keepdims=True)
    share = importance / np.where(total > 0, total, 1.0)
    nats = -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=1)
    most = np.log(importance.shape[1]) if importance.shape[1] > 1 else 1.0
    return np.where(total[:, 0] > 0, 1 - nats / most, 0.0)
