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

import numpy as np
import numpy.typing as npt

from setsup.checks import arguments
from setsup.errors import DataError
from setsup.evaluation.inputs import checked_embeddings, checked_factors, known_part
from setsup.evaluation.scores.information import contingency, discretised, entropies, mutual_information
from setsup.evaluation.scores.score import Score

__all__ = ["mig", "modularity", "sap"]

Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


def mig(codes: npt.ArrayLike, factors: npt.ArrayLike, bins: int = 20) -> Score:
    """Mutual information gap [1]_: for each factor, how much more the best code tells than the second best.

    MIG = mean over factors v of (I(z₁; v) − I(z₂; v)) / H(v), z₁ and z₂ the two codes of the most information about v.
    The paper takes I under the posterior of a variational autoencoder; for codes that are numbers, I is that of their
    frequencies in bins. Where there is one code, the second tells nothing.

    Parameters
    ----------
    codes : (n, d) numbers
        One row an image.
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
    arguments(mig, locals(), DataError)
    reals, levels = _checked(codes, factors)
    told = np.sort(mutual_information(discretised(reals, bins), levels), axis=0)
    second = told[-2] if len(told) > 1 else np.zeros_like(told[-1])
    return _score((told[-1] - second) / entropies(levels), levels)


def modularity(codes: npt.ArrayLike, factors: npt.ArrayLike, bins: int = 20) -> Score:
    """Modularity [2]_: how nearly each code tells about one factor only.

    For code i with information m_ij about factor j and θ_i = max_j m_ij, the deviation from a code of one factor is
    δ_i = Σ m_ij² / (θ_i² (k − 1)) over the other factors; the score is the mean of 1 − δ_i. A code that tells nothing
    of any factor counts as 0, which the paper leaves open.

    Parameters
    ----------
    codes : (n, d) numbers
        One row an image.
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
    arguments(modularity, locals(), DataError)
    reals, levels = _checked(codes, factors)
    if levels.shape[1] < 2:
        raise DataError("modularity tells codes of one factor from codes of several, and needs two factors, not one")
    told = mutual_information(discretised(reals, bins), levels)
    most = told.max(axis=1)
    share = told / np.where(most > 0, most, 1.0)[:, None]
    apart = ((share**2).sum(axis=1) - 1) / (levels.shape[1] - 1)
    return _score(np.where(most > 0, 1 - apart, 0.0), levels)


def sap(codes: npt.ArrayLike, factors: npt.ArrayLike, *, linear: bool = False, bins: int = 20) -> Score:
    """Separated attribute predictability [3]_: how much better the best code predicts a factor than the second best.

    The prediction from one code is, as in the paper, either by thresholds on it, scored by balanced accuracy, or
    ``linear``, scored by R², the squared correlation. Thresholds lie between bins, and each bin predicts the level that
    is most frequent in it relative to its own total; so the accuracy is (1/levels) Σ_bins max_v p(bin | v). It is at
    least 1/levels, so the gap of a perfect code is 1 − 1/levels, and that of a perfect ``linear`` one 1. Where there is
    one code, the second predicts as a constant does.

    Parameters
    ----------
    codes : (n, d) numbers
        One row an image. A constant code predicts nothing and scores 0 by R², 1/levels by thresholds.
    factors : (n, k) integers
        Codes of levels, -1 where unknown.
    linear : bool
        Whether levels are numbers in steps of one, to be predicted linearly.
    bins : int
        Of equal width for each code.

    Returns
    -------
    Score
        Its parts are the gaps of the factors.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, or a factor has fewer than two known levels.

    Examples
    --------
    >>> factors = np.indices((4, 4)).reshape(2, -1).T
    >>> sap(factors, factors).value, sap(factors, factors, linear=True).value
    (0.75, 1.0)

    """
    arguments(sap, locals(), DataError)
    reals, levels = _checked(codes, factors)
    binned = discretised(reals, bins)
    predicted = np.empty((reals.shape[1], levels.shape[1]))
    for column in range(levels.shape[1]):
        known, dense = known_part(levels, column)
        for code in range(reals.shape[1]):
            if linear:
                predicted[code, column] = _squared_correlation(reals[known, code], levels[known, column])
            else:
                predicted[code, column] = _balanced_accuracy(contingency(binned[known, code], dense))
    ranked = np.sort(predicted, axis=0)
    chance = np.zeros(levels.shape[1]) if linear else [1 / len(np.unique(c[c >= 0])) for c in levels.T]
    return _score(ranked[-1] - (ranked[-2] if len(ranked) > 1 else chance), levels)


def _balanced_accuracy(counts: Reals) -> float:
    return float((counts / counts.sum(axis=0)).max(axis=1).sum() / counts.shape[1])


def _squared_correlation(code: Reals, level: Codes) -> float:
    if not np.ptp(code):
        return 0.0
    x, y = code - code.mean(), level - level.mean()
    return float((x @ y) ** 2 / ((x @ x) * (y @ y)))


def _checked(codes: npt.ArrayLike, factors: npt.ArrayLike) -> tuple[Reals, Codes]:
    reals = checked_embeddings(codes, "codes")
    return reals, checked_factors(factors, len(reals))


def _score(parts: Reals, levels: Codes) -> Score:
    return Score(float(parts.mean()), parts, (levels < 0).sum(axis=0))
