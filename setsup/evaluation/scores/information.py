"""Codes in bins, and the information between them and factors, in nats."""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.checks import check_integer
from setsup.errors import DataError, SetsupError
from setsup.evaluation.inputs import check_embeddings, check_factors, select_known

__all__ = ["contingency", "discretise", "entropies", "mutual_information"]


_ROUNDING = 1e-12  # nats: information below is what independent variables leave by rounding


def discretise(codes: npt.ArrayLike, bins: int = 20) -> Codes:
    """Number of the bin of each code: bins of equal width from its least to its greatest value.

    A bin has its lower edge and not its upper one, the last both. A constant code is in bin 0.

    `codes` (n, d) numbers; returns (n, d) int64, 0 ≤ bin < bins.
    """
    reals, count = check_embeddings(codes, "codes"), check_integer(bins, "bins", SetsupError, 2)
    low, extent = reals.min(axis=0), np.ptp(reals, axis=0)
    which = ((reals - low) / np.where(extent > 0, extent, 1.0) * count).astype(np.int64)
    return np.asarray(np.minimum(which, count - 1))


def contingency(first: Codes, second: Codes) -> Reals:
    """Table of how often two codes occur together, as (levels of first, levels of second) float64."""
    shape = int(first.max()) + 1, int(second.max()) + 1
    counts = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)


def mutual_information(binned: npt.ArrayLike, factors: npt.ArrayLike) -> Reals:
    """Information between each code and each factor, from their frequencies, without correction for bias.

    I = Σ p(b, v) ln [p(b, v) / p(b) p(v)] over the rows where the factor is known. Frequencies of n rows overestimate
    it, for independent variables by (bins − 1)(levels − 1) / 2n on average.

    `binned` (n, d) integers; `factors` (n, k) integers; returns (d, k) float64, nats; exactly 0 where rounding alone is
    left.
    """
    bins = np.asarray(binned)
    if bins.ndim != 2 or 0 in bins.shape or bins.dtype.kind not in "iu" or bins.min() < 0:
        raise DataError(
            f"bins must be a non-negative integer array of shape (n, d), not {bins.dtype} of shape {bins.shape}; "
            "compute it with discretise"
        )
    levels = check_factors(factors, len(bins))
    information = np.empty((bins.shape[1], levels.shape[1]))
    for column in range(levels.shape[1]):
        known, dense = select_known(levels, column)
        for code in range(bins.shape[1]):
            information[code, column] = _information(contingency(bins[known, code].astype(np.int64), dense))
    return information


def _information(counts: Reals) -> float:
    total = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0))
    seen = counts > 0
    nats = float((counts[seen] * np.log(counts[seen] * total / expected[seen])).sum() / total)
    return nats if nats > _ROUNDING else 0.0


def entropies(factors: Codes) -> Reals:
    """Entropy of each factor (n, k) over the rows where it is known, as (k,) float64 in nats."""
    entropy = np.empty(factors.shape[1])
    for column in range(factors.shape[1]):
        _, dense = select_known(factors, column)
        share = np.bincount(dense) / len(dense)
        entropy[column] = -(share * np.log(share)).sum()
    return entropy
