"""Scores that compare codes and factors two by two: MIG, modularity, SAP.

References
----------
.. [1] R. T. Q. Chen, X. Li, R. Grosse, D. Duvenaud, "Isolating sources of disentanglement in variational
   autoencoders", NeurIPS 2018 (arXiv 1802.04942).
.. [2] K. Ridgeway, M. C. Mozer, "Learning deep disentangled embeddings with the F-statistic loss", NeurIPS 2018
   (arXiv 1802.05312).
.. [3] A. Kumar, P. Sattigeri, A. Balakrishnan, "Variational inference of disentangled latent concepts from unlabeled
   observations", ICLR 2018 (arXiv 1711.00848).

"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.checks import check_arguments, check_choice
from setsup.errors import DataError, SetsupError
from setsup.evaluation.held_out import held_out
from setsup.evaluation.inputs import check_embeddings, check_factors, select_known
from setsup.evaluation.scores.information import contingency, discretise, entropies, mutual_information
from setsup.evaluation.scores.score import Score
from setsup.evaluation.scores.standard import fit_svm
from setsup.progress import progress

__all__ = ["mig", "modularity", "sap"]


def mig(codes: npt.ArrayLike, factors: npt.ArrayLike, bins: int = 20) -> Score:
    """Mutual information gap [1]_: for each factor, how much more the best code tells than the second best.

    MIG = mean over factors v of (I(z₁; v) − I(z₂; v)) / H(v), z₁ and z₂ the two codes of the most information about v.
    The paper takes I under the posterior of a variational autoencoder; for codes that are numbers, I is that of their
    frequencies in bins. Where there is one code, the second tells nothing.

    Parameters
    ----------
    codes : (n, d) numbers
        One row per image.
    factors : (n, k) integers
        Codes of levels, -1 where unknown.
    bins : int
        Of equal width for each code.

    Returns
    -------
    Score
        Its parts are the gaps of the factors, 0 … 1.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, or a factor has fewer than two known levels.

    Examples
    --------
    >>> factors = np.indices((4, 3)).reshape(2, -1).T
    >>> round(mig(factors * 0.5, factors).value, 6)
    1.0

    """
    check_arguments(mig, locals(), DataError)
    reals, levels = _check_inputs(codes, factors)
    information = np.sort(mutual_information(discretise(reals, bins), levels), axis=0)
    second = information[-2] if len(information) > 1 else np.zeros_like(information[-1])
    return _score((information[-1] - second) / entropies(levels), levels)


def modularity(codes: npt.ArrayLike, factors: npt.ArrayLike, bins: int = 20) -> Score:
    """Modularity [2]_: how nearly each code tells about one factor only.

    For code i with information m_ij about factor j and θ_i = max_j m_ij, the deviation from a code of one factor is
    δ_i = Σ m_ij² / (θ_i² (k − 1)) over the other factors; the score is the mean of 1 − δ_i. A code that tells nothing
    of any factor counts as 0, which the paper leaves open.

    Parameters
    ----------
    codes : (n, d) numbers
        One row per image.
    factors : (n, k) integers
        Codes of levels, -1 where unknown; k at least 2.
    bins : int
        Of equal width for each code.

    Returns
    -------
    Score
        Its parts are the codes' 1 − δ_i.

    Raises
    ------
    DataError, SetsupError
        When there is one factor only, shapes disagree, an entry is not finite, or a factor has fewer than two levels.

    Examples
    --------
    >>> factors = np.indices((4, 3)).reshape(2, -1).T
    >>> modularity(factors, factors).parts
    array([1., 1.])

    """
    check_arguments(modularity, locals(), DataError)
    reals, levels = _check_inputs(codes, factors)
    if levels.shape[1] < 2:
        raise DataError("modularity requires at least two factors, not one")
    information = mutual_information(discretise(reals, bins), levels)
    most = information.max(axis=1)
    share = information / np.where(most > 0, most, 1.0)[:, None]
    apart = ((share**2).sum(axis=1) - 1) / (levels.shape[1] - 1)
    return _score(np.where(most > 0, 1 - apart, 0.0), levels)


def sap(
    codes: npt.ArrayLike,
    factors: npt.ArrayLike,
    *,
    linear: bool = False,
    learner: Literal["svm", "thresholds"] = "svm",
    bins: int = 20,
    seed: int = 0,
) -> Score:
    """Separated attribute predictability [3]_: how much better the best code predicts a factor than the second best.

    The prediction from one code is ``linear``, scored by R², the squared correlation; or that of a learner, whose
    values cannot be compared with those of the other:

    ``svm``
        A linear support vector, scored by its accuracy on a tenth of the rows that it was not fitted to, as most
        published values were taken (:mod:`setsup.evaluation.scores.standard`). It does not tell levels in the middle of
        a code from those around them, so the gap of a perfect code of many levels is small.
    ``thresholds``
        Thresholds on the code, as in the paper, scored by balanced accuracy. They lie between bins, and each bin
        predicts the level that is most frequent in it relative to its own total; so the accuracy is (1/levels) Σ_bins
        max_v p(bin | v). It is at least 1/levels, so the gap of a perfect code is 1 − 1/levels, where that of a perfect
        ``linear`` one is 1.

    Where there is one code, the second predicts as a constant does.

    Parameters
    ----------
    codes : (n, d) numbers
        One row per image. A constant code predicts nothing and scores 0 by R², 1/levels by thresholds.
    factors : (n, k) integers
        Codes of levels, -1 where unknown.
    linear : bool
        Whether levels are numbers in steps of one, to be predicted linearly, by no learner.
    learner : {"svm", "thresholds"}
        See above.
    bins : int
        Of equal width for each code, of ``thresholds``.
    seed : int
        Of the rows held out, each level of a factor alike, of ``svm``; 0 ≤ seed < 2⁶⁴.

    Returns
    -------
    Score
        Its parts are the gaps of the factors.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, a factor has fewer than two known levels, or rows are too few for
        any to be held out.

    Examples
    --------
    >>> factors = np.indices((4, 4)).reshape(2, -1).T
    >>> sap(factors, factors, learner="thresholds").value, sap(factors, factors, linear=True).value
    (0.75, 1.0)

    """
    check_choice(learner, ("svm", "thresholds"), "the learner", SetsupError)
    check_arguments(sap, locals(), DataError)
    reals, levels = _check_inputs(codes, factors)
    binned = discretise(reals, bins)
    predicted, chance = np.empty((reals.shape[1], levels.shape[1])), np.zeros(levels.shape[1])
    with progress(predicted.size, "SAP", "fits") as advance:
        for column in range(levels.shape[1]):
            known, dense = select_known(levels, column)
            test = held_out(len(dense), seed, dense) if learner == "svm" and not linear else None
            for code in range(reals.shape[1]):
                if linear:
                    score = _squared_correlation(reals[known, code], levels[known, column])
                elif test is not None:
                    score = fit_svm(reals[known, code], dense, test)
                else:
                    score = _balanced_accuracy(contingency(binned[known, code], dense))
                predicted[code, column] = score
                advance()
            if not linear:
                chance[column] = 1 / (dense.max() + 1) if test is None else np.bincount(dense[test]).max() / test.sum()
    ranked = np.sort(predicted, axis=0)
    used = "correlation" if linear else learner
    return _score(ranked[-1] - (ranked[-2] if len(ranked) > 1 else chance), levels, used)


def _balanced_accuracy(counts: Reals) -> float:
    return float((counts / counts.sum(axis=0)).max(axis=1).sum() / counts.shape[1])


def _squared_correlation(code: Reals, level: Codes) -> float:
    if not np.ptp(code):
        return 0.0
    x, y = code - code.mean(), level - level.mean()
    return float((x @ y) ** 2 / ((x @ x) * (y @ y)))


def _check_inputs(codes: npt.ArrayLike, factors: npt.ArrayLike) -> tuple[Reals, Codes]:
    reals = check_embeddings(codes, "codes")
    return reals, check_factors(factors, len(reals))


def _score(parts: Reals, levels: Codes, learner: str = "") -> Score:
    return Score(float(parts.mean()), parts, (levels < 0).sum(axis=0), learner)
