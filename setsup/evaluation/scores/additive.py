"""The learner of DCI: each code gives each level of a factor a function of its bin, and few codes do.

Convention
----------
The n rows have d codes in bins and a factor of K levels of shares p_k. The target of a row of level v is the vector
y_k = (1[v = k] − p_k) / √(p_k (K − 1)), whose mean is 0 and whose mean square length is 1. The model is Σ_j f_j(bin_j),
each f_j a table (bins, K) of mean 0, and minimises

    ½ · mean ‖y − Σ_j f_j‖² + Σ_j λ_j ‖f_j‖,    ‖f_j‖² = mean of ‖f_j(bin_j)‖² over the rows,

which is convex [1]_. The minimum over one f_j is (1 − λ_j/‖s‖)₊ s, with s the mean over each bin of what the other
tables leave; so for a lone code ‖s‖ is Cramér's V of bins and levels (for at least as many bins as levels), and V − λ_j
its importance. Nothing is tuned: for a code that is independent of the factor, n (K − 1) ‖s‖² is Pearson's χ² with
(bins − 1)(K − 1) degrees of freedom, and λ_j is what √χ² of m such codes rarely exceeds,

    λ_j = [√((bins_j − 1)(K − 1)) + √(2 ln m)] / √(n (K − 1)),

the universal threshold of [2]_ with m = d.

References
----------
.. [1] P. Ravikumar, J. Lafferty, H. Liu, L. Wasserman, "Sparse additive models", Journal of the Royal Statistical
   Society B 71(5), 2009.
.. [2] D. L. Donoho, I. M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81(3), 1994.

"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from setsup.arrays import Codes, Reals

__all__ = ["Additive", "fit_additive"]


_SWEEPS = 1000
_ROUNDING = 1e-12  # by which a duplicate of a code that is used may seem to exceed the threshold
_STILL = 1e-8  # of the target's length: smaller changes end the descent


@dataclass(frozen=True, slots=True)
class Additive:
    """A fitted model.

    Attributes
    ----------
    tables : (d, bins, K) float64
        What each bin of each code adds to the targets.
    shares : (K,) float64
        Of the levels among the rows of the fit.
    importance : (d,) float64
        ‖f_j‖: the share of the target's length that code j carries.

    """

    tables: Reals
    shares: Reals
    importance: Reals

    def predict(self, binned: Codes) -> Codes:
        """Level of the greatest modelled frequency, the first of equals, for bins (n, d), as (n,) int64."""
        targets = sum(table[column] for table, column in zip(self.tables, binned.T, strict=True))
        return np.asarray(np.argmax(self.shares + targets * _scale(self.shares), axis=1))


def fit_additive(binned: Codes, levels: Codes, bins: int, kinds: int) -> Additive:
    """Fit the model of one factor.

    `binned` (n, d) int64; `levels` (n,) int64.
    """
    rows, codes = binned.shape
    shares = np.bincount(levels, minlength=kinds) / rows
    places = (binned + np.arange(codes) * bins).ravel()
    hot = sparse.csr_array((np.ones(places.size), places, np.arange(rows + 1) * codes), shape=(rows, codes * bins))
    counts = np.asarray(hot.sum(axis=0)).reshape(codes, bins)
    per_bin = np.where(counts > 0, 1 / np.maximum(counts, 1), 0.0)
    # means over the rows of each bin: of the other codes' bins, and of the targets
    together = (hot.T @ hot).toarray().reshape(codes, bins, codes * bins) * per_bin[:, :, None]
    target = (np.eye(kinds)[levels] - shares) / _scale(shares)
    wanted = np.asarray(hot.T @ target).reshape(codes, bins, kinds) * per_bin[:, :, None]
    freedom = np.sqrt((np.count_nonzero(counts, axis=1) - 1) * (kinds - 1.0))
    limits = (freedom + math.sqrt(2 * math.log(codes))) / math.sqrt(rows * (kinds - 1))
    tables, importance = _descend(together, wanted, counts / rows, limits)
    return Additive(tables, shares, importance)


def _scale(shares: Reals) -> Reals:
    """√(p_k (K − 1)), the unit of targets in frequencies."""
    return np.asarray(np.sqrt(shares * (len(shares) - 1)))


def _descend(together: Reals, wanted: Reals, weight: Reals, limits: Reals) -> tuple[Reals, Reals]:
    """Block coordinate descent from zero, code after code, until no table changes."""
    tables, importance = np.zeros_like(wanted), np.zeros(len(wanted))
    flat = tables.reshape(-1, wanted.shape[2])
    for _ in range(_SWEEPS):
        moved = 0.0
        for code, limit in enumerate(limits):
            before = tables[code].copy()
            left = wanted[code] - together[code] @ flat + before
            length = math.sqrt(float(((left**2).sum(axis=1) * weight[code]).sum()))
            shrunk = 1 - limit / length if length > limit * (1 + _ROUNDING) else 0.0
            tables[code] = shrunk * left
            importance[code] = shrunk * length
            moved = max(moved, float((((tables[code] - before) ** 2).sum(axis=1) * weight[code]).sum()))
        if moved <= _STILL**2:
            break
    return tables, importance
