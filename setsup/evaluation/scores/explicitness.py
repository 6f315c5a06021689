"""DCI-ES: how small a learner suffices to read factors from codes, and how many codes there are.

References
----------
.. [1] C. Eastwood, A. L. Nicolicioiu, J. von Kügelgen, A. Kekić, F. Träuble, A. Dittadi, B. Schölkopf, "DCI-ES: an
   extended disentanglement framework with connections to identifiability", ICLR 2023, and its published code.

"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments
from setsup.errors import DataError, imported
from setsup.evaluation.held_out import held_out
from setsup.evaluation.inputs import check_embeddings, check_factors, select_known
from setsup.progress import progress

__all__ = ["Explicitness", "curve_explicitness", "explicitness"]

_TREES = 100


@dataclass(frozen=True, slots=True)
class Explicitness:
    """Explicitness and size, with the curves of loss over capacity.

    Attributes
    ----------
    value : float
        E: 1 where the smallest learner reads all that the largest reads, 0 where the loss falls evenly with the
        logarithm of the capacity, down to -1 where only the largest learner reads anything.
    size : float
        S: factors over codes, k / d.
    parts : (k,) float64
        Explicitness of each factor.
    capacities : (m,) float64
        Most leaves of a tree.
    losses : (m, k) float64
        Share of rows held out that are read wrongly, of each capacity and factor.
    baselines : (k,) float64
        Share of rows that are not of the most frequent level of each factor.
    left_out : (k,) int64
        Rows where each factor is unknown.

    """

    value: float
    size: float
    parts: Reals
    capacities: Reals
    losses: Reals
    baselines: Reals
    left_out: npt.NDArray[np.int64]


def curve_explicitness(capacities: npt.ArrayLike, losses: npt.ArrayLike, baselines: npt.ArrayLike) -> Reals:
    """Explicitness E of curves of loss over capacity [1]_.

    E = 1 − 2 A / ((ln c_m − ln c_1) l_b), where A is the area between the running minimum of the losses and its last
    value, over ln c by trapezoids, and l_b the loss without codes.

    Parameters
    ----------
    capacities : (m,) numbers
        Two or more, positive and rising: parameters or leaves of a learner.
    losses : (m, k) numbers
        Loss of each capacity and factor, 0 or more.
    baselines : (k,) numbers
        Loss of each factor without codes, above 0.

    Returns
    -------
    (k,) float64

    Raises
    ------
    DataError
        When shapes disagree, capacities do not rise, or an entry is out of its range.

    Examples
    --------
    >>> curve_explicitness([1, 10, 100], [[0.0, 0.8], [0.0, 0.4], [0.0, 0.0]], [0.8, 0.8])
    array([1., 0.])

    """
    sizes, curves, without = (np.asarray(value, np.float64) for value in (capacities, losses, baselines))
    if sizes.ndim != 1 or len(sizes) < 2 or not (sizes[0] > 0 and (np.diff(sizes) > 0).all() and sizes[-1] < np.inf):
        raise DataError(
            f"capacities must be two or more positive numbers that rise, of shape (m,), not {capacities!r:.80}"
        )
    if curves.ndim != 2 or without.ndim != 1 or curves.shape != (len(sizes), len(without)):
        raise DataError(
            f"losses must have shape ({len(sizes)}, k), and baselines (k,), not {curves.shape} and {without.shape}"
        )
    if not ((curves >= 0) & (curves < np.inf)).all() or not ((without > 0) & (without < np.inf)).all():
        raise DataError("losses must be finite numbers of at least 0, and baselines finite numbers above 0")
    least = np.minimum.accumulate(curves)
    logs = np.log(sizes)
    area = np.trapezoid(least - least[-1], logs, axis=0)
    return np.asarray(1 - 2 * area / ((logs[-1] - logs[0]) * without))


def explicitness(
    codes: npt.ArrayLike,
    factors: npt.ArrayLike,
    *,
    depths: tuple[int, ...] = (1, 2, 4, 6, 8, 12, 16),
    seed: int = 0,
) -> Explicitness:
    """Explicitness and size of codes [1]_, which extend :func:`dci` to DCI-ES.

    For each depth and factor, a random forest of 100 trees is fitted to 90 % of the rows, and its loss is the share of
    the other rows that it reads wrongly. The capacity of depth t is 2^t, the most leaves of a tree. The paper compares
    forests with networks and random Fourier features; values of different learners, depths or numbers of rows cannot be
    compared. With the largest forest the curve is taken to have converged: choose depths at which the loss has stopped
    falling.

    Parameters
    ----------
    codes : (n, d) numbers
        One row per image.
    factors : (n, k) integers
        Codes of levels, -1 where unknown.
    depths : tuple of int
        Two or more depths of trees, rising.
    seed : int
        Of the split and the forests, 0 ≤ seed < 2⁶⁴; each level of a factor is split alike.

    Returns
    -------
    Explicitness

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, depths do not rise, a factor has fewer than two known levels, or
        rows are too few for any to be held out.
    LibraryError
        When scikit-learn is not installed.

    Examples
    --------
    >>> factors = np.tile(np.indices((2, 2)).reshape(2, -1), 40).T
    >>> found = explicitness(factors * [1.0, -3.0], factors, depths=(2, 3))
    >>> found.value, found.size
    (1.0, 1.0)

    """
    check_arguments(explicitness, locals(), DataError)
    reals = check_embeddings(codes, "codes")
    levels = check_factors(factors, len(reals))
    if len(depths) < 2 or depths[0] < 1 or any(a >= b for a, b in pairwise(depths)):
        raise DataError(f"depths must be two or more integers of at least 1 that rise, not {depths}")
    forest = imported("sklearn.ensemble", "train").RandomForestClassifier
    losses, baselines = np.empty((len(depths), levels.shape[1])), np.empty(levels.shape[1])
    with progress(levels.shape[1] * len(depths), "DCI-ES", "forests") as advance:
        for column in range(levels.shape[1]):
            known, dense = select_known(levels, column)
            rows, test = reals[known], held_out(len(dense), seed, dense)
            baselines[column] = 1 - np.bincount(dense).max() / len(dense)
            for index, depth in enumerate(depths):
                model = forest(_TREES, max_depth=depth, random_state=seed % 2**32).fit(rows[~test], dense[~test])
                losses[index, column] = (model.predict(rows[test]) != dense[test]).mean()
                advance()
    capacities = 2.0 ** np.array(depths)
    parts = curve_explicitness(capacities, losses, baselines)
    return Explicitness(
        float(parts.mean()),
        levels.shape[1] / reals.shape[1],
        parts,
        capacities,
        losses,
        baselines,
        (levels < 0).sum(axis=0),
    )
