"""Invariance within sets: how much of the variance of embeddings remains where a factor is fixed."""

import numpy as np
import numpy.typing as npt

from setsup.checks import check_array
from setsup.errors import DataError
from setsup.evaluation.inputs import check_embeddings, check_labels

__all__ = ["within_set_variance"]


def within_set_variance(embeddings: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Share of the variance of embeddings that lies within sets of one label.

    For n rows of known label with the mean m, in L sets of equal label with the means m_g, it is
    ``[Σ ‖x − m_g‖² / (n − L)] / [Σ ‖x − m‖² / (n − 1)]``,
    that is 1 − R², adjusted for degrees of freedom, of a regression of the embedding on the levels of a factor (one-way
    analysis of variance, summed over dimensions). 0: rows of a set have one embedding, which is invariant to everything
    that varies in the set. 1: the factor does not move the mean of the embedding; as sums are divided by their degrees
    of freedom, this is the expectation for labels that have nothing to do with the embedding, however many there are,
    and one estimate may be a little larger. Shifts, rotations and one common scale of the embedding change nothing.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image.
    labels : (n,) integers
        Codes of a factor's levels, -1 where unknown; such rows are left out.

    Returns
    -------
    float
        W, at least 0; NaN where all embeddings are equal.

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, fewer than two labels are known, or each occurs only once.

    Examples
    --------
    >>> within_set_variance([[0.0], [0.0], [4.0], [4.0]], [0, 0, 1, 1])
    0.0
    >>> round(within_set_variance([[0.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1]), 3)
    0.3

    """
    for title, given in (("embeddings", embeddings), ("labels", labels)):
        check_array(given, title, DataError)
    reals = check_embeddings(embeddings)
    codes = check_labels(labels, len(reals))
    reals, codes = reals[codes >= 0], codes[codes >= 0]
    levels, dense = np.unique(codes, return_inverse=True)
    if not 2 <= len(levels) < len(reals):
        raise DataError(
            "variance within sets requires at least two labels, at least one of which occurs twice, but the "
            f"{len(reals):,} rows with a known label have {len(levels):,} different labels"
        )
    centred = reals - reals[0]  # exactly 0 where all are equal
    centred -= centred.mean(axis=0)
    sums = np.zeros((len(levels), reals.shape[1]))
    np.add.at(sums, dense, centred)
    means = sums / np.bincount(dense)[:, None]
    within = np.square(centred - means[dense]).sum() / (len(reals) - len(levels))
    total = np.square(centred).sum() / (len(reals) - 1)
    return float(within / total) if total > 0 else float("nan")
