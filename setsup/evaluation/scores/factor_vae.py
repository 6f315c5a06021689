"""The majority vote of FactorVAE: which code varies least while a factor is fixed.

References
----------
.. [1] H. Kim, A. Mnih, "Disentangling by factorising", ICML 2018 (arXiv 1802.05983).

"""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes
from setsup.checks import check_arguments, check_integer
from setsup.errors import DataError, SetsupError
from setsup.evaluation.inputs import check_embeddings, check_factors, select_known
from setsup.evaluation.scores.score import Score
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import SetSampler

__all__ = ["factor_vae"]


_BLOCK = 1 << 22  # numbers gathered at a time


def factor_vae(
    codes: npt.ArrayLike,
    factors: npt.ArrayLike,
    *,
    votes: int = 10_000,
    size: int = 64,
    seed: int = 0,
) -> Score:
    """Accuracy with which the code of the least variance tells what factor a set holds [1]_.

    A vote draws a factor, one of its levels and ``size`` rows of that level, all uniformly, and goes to the code whose
    variance over them is least relative to its variance over all rows; codes that are constant over all rows take no
    part, and of equals the first wins. Each code then predicts the factor that most of its votes had, the first of
    equals, and the score is the share of right votes among ``votes // 2`` further ones. Sets are drawn by
    :class:`~setsup.samplers.SetSampler` with stream ``"factor_vae"``: without repeats, except from levels of fewer rows
    than a set.

    Parameters
    ----------
    codes : (n, d) numbers
        One row per image.
    factors : (n, k) integers
        Codes of levels, -1 where unknown; such rows occur while another factor is fixed.
    votes : int
        From which codes get their factors, at least 2.
    size : int
        Rows of a set, at least 2.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    Score
        Its parts are the shares of right votes for the factors, NaN for a factor that was never drawn. Chance is 1/k;
        if all codes are constant, there are no votes and the score is 0.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, a factor has fewer than two known levels, or a level fewer than
        two rows, which have no variance.

    Examples
    --------
    >>> factors = np.indices((4, 3, 5)).reshape(3, -1).T
    >>> factor_vae(factors * [1.0, -20.0, 3.0], factors, votes=200, size=8).value
    1.0

    """
    check_arguments(factor_vae, locals(), DataError)
    reals = check_embeddings(codes, "codes")
    levels = check_factors(factors, len(reals))
    check_integer(votes, "votes", SetsupError, 2)
    check_integer(size, "size", SetsupError, 2)
    left_out = (levels < 0).sum(axis=0)
    kinds = levels.shape[1]
    sampler = SetSampler(
        _table(levels), [str(j) for j in range(kinds)], num_fixed=1, size=size, sets=1,
        on_small_group="replace", seed=seed, stream="factor_vae",
    )  # fmt: skip
    alive = np.flatnonzero(np.ptp(reals, axis=0) > 0)
    if not len(alive):
        return Score(0.0, np.zeros(kinds), left_out)
    scaled = (reals[:, alive] - reals[:, alive].mean(axis=0)) / reals[:, alive].std(axis=0)
    last = votes + votes // 2
    held, least = np.empty(last, dtype=np.int64), np.empty(last, dtype=np.int64)
    step = max(1, _BLOCK // (size * len(alive)))
    for start in range(0, last, step):
        stop = min(start + step, last)
        draw = sampler.block(start, stop)
        held[start:stop] = np.stack([draw.inactive[str(j)][:, 0] for j in range(kinds)]).argmax(axis=0)
        least[start:stop] = scaled[draw.indices[:, 0]].var(axis=1).argmin(axis=1)
    counts = np.zeros((len(alive), kinds), dtype=np.int64)
    np.add.at(counts, (least[:votes], held[:votes]), 1)
    right = counts.argmax(axis=1)[least[votes:]] == held[votes:]
    drawn = np.bincount(held[votes:], minlength=kinds)
    hits = np.bincount(held[votes:], weights=right, minlength=kinds)
    parts = np.where(drawn > 0, hits / np.maximum(drawn, 1), np.nan)
    return Score(float(right.mean()), parts, left_out)


def _table(levels: Codes) -> FactorTable:
    """Table of the factors, named by their numbers, with levels 0, 1, … without gaps."""
    factors, columns = [], {}
    for column in range(levels.shape[1]):
        known, dense = select_known(levels, column)
        counts = np.bincount(dense)
        if counts.min() < 2:
            level = int(levels[known, column][np.argmax(dense == counts.argmin())])
            raise DataError(
                f"level {level} of factor {column} has only one row, but its variance requires two; leave out that row"
            )
        codes = np.full(len(levels), -1, dtype=np.int64)
        codes[known] = dense
        factors.append(Factor(str(column), Kind.NOMINAL, tuple(range(len(counts)))))
        columns[str(column)] = codes
    return FactorTable(factors, columns)
