"""InfoMEC: modularity, explicitness and compactness of codes, all as shares of information.

References
----------
.. [1] K. Hsu, W. Dorrell, J. C. R. Whittington, J. Wu, C. Finn, "Disentanglement via latent quantization", NeurIPS 2023
   (arXiv 2305.18378), and its published code.

"""

import logging
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.checks import check_arguments
from setsup.errors import DataError, imported
from setsup.evaluation.inputs import check_embeddings, check_factors, select_known
from setsup.evaluation.scores.information import entropies, mutual_information

__all__ = ["InfoMEC", "infomec"]

_log = logging.getLogger(__name__)

_INACTIVE = 1 / 20  # of the largest range: codes that move less count as constant
_NEIGHBOURS = 10
_STEPS = 100


@dataclass(frozen=True, slots=True)
class InfoMEC:
    """The three scores, with the information of which they are made.

    Attributes
    ----------
    modularity : float
        InfoM: 1 where each active code tells about one factor only, 0 where it tells about all alike.
    explicitness : float
        InfoE: 1 where a linear classifier of all codes predicts every factor, 0 where it predicts as without codes.
    compactness : float
        InfoC: 1 where one active code tells about each factor, 0 where all tell alike.
    information : (d, k) float64
        Of each code about each factor, as a share of the factor's entropy.
    active : (d,) bool
        Codes that count for modularity and compactness.
    explained : (k,) float64
        Explicitness of each factor.
    left_out : (k,) int64
        Rows where each factor is unknown.

    """

    modularity: float
    explicitness: float
    compactness: float
    information: Reals
    active: npt.NDArray[np.bool_]
    explained: Reals
    left_out: npt.NDArray[np.int64]


def infomec(codes: npt.ArrayLike, factors: npt.ArrayLike, *, discrete: bool = False) -> InfoMEC:
    """Modularity, explicitness and compactness by information [1]_.

    N_ij = I(z_i; s_j) / H(s_j) is the share of the entropy of factor j that code i tells. Over the L active codes and K
    factors,

    InfoM = (mean_i max_j N_ij / Σ_j N_ij − 1/K) / (1 − 1/K),
    InfoC = (mean_j max_i N_ij / Σ_i N_ij − 1/L) / (1 − 1/L),
    InfoE = mean_j (H_∅ − H_z) / H_∅,

    where H_z is the log-loss of a logistic regression on all codes, and H_∅ that of one on zeros. The regression has no
    penalty, weighs all levels alike, and takes at most 100 steps; both losses are those of the rows that it was fitted
    to.

    A code is active if its range is above 1/20 of the largest range of a code, or, if codes are discrete, if it is not
    constant. With fewer than two active codes InfoM and InfoC are 0, with a warning. Codes and factors of which nothing
    is told count as 0, where the published code gives no number.

    I is the estimate by 10 nearest neighbours of scikit-learn's ``mutual_info_classif`` on standardised codes, with its
    random numbers fixed. For discrete codes I is that of the frequencies, and the regression takes one column for each
    value of a code.

    Parameters
    ----------
    codes : (n, d) numbers
        One row per image.
    factors : (n, k) integers
        Codes of levels of two or more factors, -1 where unknown.
    discrete : bool
        Whether each code has few values that recur.

    Returns
    -------
    InfoMEC

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, there is one factor only, or a factor has fewer than two known
        levels.
    LibraryError
        When scikit-learn is not installed.

    Examples
    --------
    >>> factors = np.tile(np.indices((4, 5)).reshape(2, -1), 40).T
    >>> found = infomec(factors * [1.0, -3.0], factors, discrete=True)
    >>> round(found.modularity, 6), round(found.compactness, 6), round(found.explicitness, 2)
    (1.0, 1.0, 1.0)

    """
    check_arguments(infomec, locals(), DataError)
    reals = check_embeddings(codes, "codes")
    levels = check_factors(factors, len(reals))
    if levels.shape[1] < 2:
        raise DataError(f"InfoMEC requires two or more factors, not {levels.shape[1]}; pass more columns of factors")
    information = (_exact(reals, levels) if discrete else _estimated(reals, levels)) / entropies(levels)
    ranges = np.ptp(reals, axis=0)
    active = ranges > (0 if discrete else ranges.max() * _INACTIVE)
    told = information[active]
    if len(told) < 2:
        _log.warning("InfoM and InfoC are 0, because %d of %d codes are active", len(told), reals.shape[1])
    inputs = _one_hot(reals) if discrete else _standardised(reals)
    explained = _explained(inputs, levels)
    return InfoMEC(
        _concentration(told) if len(told) > 1 else 0.0,
        float(explained.mean()),
        _concentration(told.T) if len(told) > 1 else 0.0,
        information,
        active,
        explained,
        (levels < 0).sum(axis=0),
    )


def _concentration(shares: Reals) -> float:
    """Mean of the largest share of each row, from 0 where all are alike to 1 where there is one only."""
    total, even = shares.sum(axis=1), 1 / shares.shape[1]
    largest = np.where(total > 0, shares.max(axis=1) / np.where(total > 0, total, 1.0), even)
    return float((largest.mean() - even) / (1 - even))


def _exact(codes: Reals, levels: Codes) -> Reals:
    """Information (d, k) by frequencies of values, in nats."""
    return mutual_information(np.stack([np.unique(code, return_inverse=True)[1] for code in codes.T], axis=1), levels)


def _estimated(codes: Reals, levels: Codes) -> Reals:
    """Information (d, k) by nearest neighbours, in nats."""
    estimate = imported("sklearn.feature_selection", "train").mutual_info_classif
    found, standard = np.empty((codes.shape[1], levels.shape[1])), _standardised(codes)
    for column in range(levels.shape[1]):
        known, dense = select_known(levels, column)
        for code in range(codes.shape[1]):
            found[code, column] = estimate(
                standard[known, code, None], dense, discrete_features=False, n_neighbors=_NEIGHBOURS, random_state=0
            )[0]
    return found


def _explained(inputs: Reals, levels: Codes) -> Reals:
    """Share (k,) by which inputs lower the log-loss of each factor."""
    found = np.empty(levels.shape[1])
    for column in range(levels.shape[1]):
        known, dense = select_known(levels, column)
        without = _log_loss(np.zeros((len(dense), 1)), dense)
        found[column] = (without - _log_loss(inputs[known], dense)) / without
    return found


def _log_loss(inputs: Reals, dense: Codes) -> float:
    """Mean of −ln p of the right level, by a logistic regression on the rows that it is fitted to, in nats."""
    model = imported("sklearn.linear_model", "train").LogisticRegression(
        C=np.inf, class_weight="balanced", max_iter=_STEPS
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", imported("sklearn.exceptions", "train").ConvergenceWarning)
        model.fit(inputs, dense)
    chances = model.predict_proba(inputs)[np.arange(len(dense)), dense]
    return float(-np.log(np.maximum(chances, np.finfo(np.float64).eps)).mean())


def _standardised(codes: Reals) -> Reals:
    """Codes of mean 0 and standard deviation 1; constant ones are 0."""
    deviation = codes.std(axis=0)
    return np.asarray((codes - codes.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def _one_hot(codes: Reals) -> Reals:
    """One column for each value of each code."""
    return np.concatenate([code[:, None] == np.unique(code) for code in codes.T], axis=1).astype(np.float64)
