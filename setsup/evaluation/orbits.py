"""Orbits in an embedding: distances within and between them, and whether members lead to their canonical one.

Convention
----------
Distances are Euclidean, of all pairs of the given rows, and rounded to float32. They come from one product of matrices,
whose rounding makes equal rows differ by about 1e-8 of their lengths: distances below 3e-7 of the lengths of the two
rows, measured from the mean of all, count as 0. An embedding in float32 resolves no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.evaluation.inputs import check_embeddings, check_labels

__all__ = [
    "QUANTILES",
    "CanonicalRetrieval",
    "Distances",
    "OrbitDistances",
    "canonical_retrieval",
    "orbit_distances",
    "peak_signal_to_noise",
]


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Those of :class:`Distances`."""

_BLOCK = 1 << 22  # distances computed at a time
_SAME = 1e-13  # of the sum of two squared lengths; see the convention


@dataclass(frozen=True, slots=True)
class Distances:
    """Distances of some pairs.

    Attributes
    ----------
    pairs : int
        How many.
    mean, root_mean_square : float
        Of the distances; NaN without any.
    quantiles : (5,) float64
        Those of :data:`QUANTILES`, interpolated linearly.

    """

    pairs: int
    mean: float
    root_mean_square: float
    quantiles: Reals


@dataclass(frozen=True, slots=True)
class OrbitDistances:
    """The result of :func:`orbit_distances`.

    Attributes
    ----------
    within, between : Distances
        Of pairs of one orbit, and of two.
    ratio : float
        Mean distance within, divided by that between: 0 for an embedding that is invariant in orbits.
    auc : float
        Probability that a pair of one orbit is closer than a pair of two; equal distances count half.
    orbits : (orbits,) int64
        Codes of the orbits, ascending.
    sizes : (orbits,) int64
        Rows of each.
    within_each : (orbits,) float64
        Mean distance of the pairs of each orbit; NaN where it has one row.
    between_each : (orbits,) float64
        Mean distance of its rows to those of all others.

    """

    within: Distances
    between: Distances
    ratio: float
    auc: float
    orbits: Codes
    sizes: Codes
    within_each: Reals
    between_each: Reals

    @property
    def single(self) -> int:
        """Orbits of one row, which have no distance within."""
        return int((self.sizes == 1).sum())


def orbit_distances(embeddings: npt.ArrayLike, orbits: npt.ArrayLike) -> OrbitDistances:
    """Distances of all pairs of rows, within orbits and between them.

    Pairs count alike, so that orbits of many rows weigh more. An orbit of one row has no pair within, and counts
    between. Divided by ``between.root_mean_square``, distances do not depend on the scale of an embedding.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image. All n · (n − 1) / 2 distances are kept, 4 bytes each.
    orbits : (n,) integers
        Orbit of each row, -1 where unknown; such rows are left out. Orbits may differ in size.

    Returns
    -------
    OrbitDistances

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, there are fewer than two orbits, or none of two rows.

    Examples
    --------
    >>> found = orbit_distances([[0.0], [1.0], [5.0], [8.0], [20.0]], [0, 0, 1, 1, 2])
    >>> found.within.mean, found.between.pairs, found.single, found.within_each.tolist()
    (2.0, 8, 1, [1.0, 3.0, nan])
    >>> found.auc  # 3, within, is less than all distances between: 4, 5, 7, 8, 12, …
    1.0

    """
    check_arguments(orbit_distances, locals(), DataError)
    reals = check_embeddings(embeddings)
    codes = check_labels(orbits, len(reals))
    reals, codes = reals[codes >= 0], codes[codes >= 0]
    names, own, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    if len(names) < 2 or sizes.max(initial=0) < 2:
        raise DataError(
            "distances within and between orbits require at least two orbits, and one orbit with at least two rows, "
            f"but there are {len(names):,} orbits with {len(codes):,} rows in total"
        )
    order = np.argsort(own, kind="stable")
    reals, own = _centred(reals[order]), own[order]
    sums = np.zeros((2, len(names)))
    parts: tuple[list[npt.NDArray[np.float32]], ...] = ([], [])
    height = max(1, _BLOCK // len(reals))
    for start in range(0, len(reals), height):
        block = slice(start, start + height)
        distances = _distances(reals[block], reals)
        same = own[block, None] == own
        later = np.arange(len(reals)) > np.arange(start, start + len(distances))[:, None]  # each pair once
        for kind, wanted in enumerate((same, ~same)):
            parts[kind].append(distances[wanted & later])
            np.add.at(sums[kind], own[block], np.where(wanted, distances, 0).sum(axis=1, dtype=np.float64))
    sorted_parts = [np.sort(np.concatenate(part)) for part in parts]
    within, between = map(_summary, sorted_parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        within_each = sums[0] / (sizes * (sizes - 1))
        between_each = sums[1] / (sizes * (len(reals) - sizes))
    return OrbitDistances(
        within=within,
        between=between,
        ratio=within.mean / between.mean if between.mean else float("nan"),
        auc=_closer(*sorted_parts),
        orbits=names,
        sizes=sizes.astype(np.int64),
        within_each=within_each,
        between_each=between_each,
    )


@dataclass(frozen=True, slots=True)
class CanonicalRetrieval:
    """The result of :func:`canonical_retrieval`.

    Attributes
    ----------
    share : float
        Of the members that are nearest to the canonical embedding of their own orbit.
    chance : float
        1 divided by the number of canonical embeddings.
    nearest : (n,) int64
        Number of the canonical embedding nearest to each member, the first of several equally near.
    own : (n,) float64
        1 where that is the one of the own orbit, 0 where it is not, 1/k where that is one of k equally near.

    """

    share: float
    chance: float
    nearest: Codes
    own: Reals


def canonical_retrieval(members: npt.ArrayLike, canonicals: npt.ArrayLike, orbits: npt.ArrayLike) -> CanonicalRetrieval:
    """Whether the canonical embedding nearest to a member is the one of its orbit.

    Parameters
    ----------
    members : (n, d) numbers
        Embeddings; without those of the canonical members, which are at no distance from themselves.
    canonicals : (k, d) numbers
        Embeddings of the canonical members, one per orbit.
    orbits : (n,) integers
        Which of the canonical embeddings belongs to the orbit of each member, 0 to k − 1.

    Returns
    -------
    CanonicalRetrieval

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, or an orbit has no canonical embedding.

    Examples
    --------
    >>> found = canonical_retrieval([[0.1], [2.0], [0.4]], [[0.0], [3.0]], [0, 1, 1])
    >>> found.nearest.tolist(), round(found.share, 3), found.chance
    ([0, 1, 0], 0.667, 0.5)

    """
    check_arguments(canonical_retrieval, locals(), DataError)
    points, targets = check_embeddings(members, "members"), check_embeddings(canonicals, "canonicals")
    own = check_labels(orbits, len(points), "orbits")
    if points.shape[1] != targets.shape[1]:
        raise DataError(
            f"members and canonicals must have embeddings with the same number of dimensions, not {points.shape[1]} "
            f"and {targets.shape[1]}; embed both with the same network"
        )
    if own.min() < 0 or own.max() >= len(targets):
        raise DataError(
            f"orbits must contain row numbers of canonicals from 0 to {len(targets) - 1}, not numbers from "
            f"{own.min()} to {own.max()}; leave out members of orbits without a canonical row"
        )
    together = _centred(np.concatenate([targets, points]))
    targets, points = together[: len(targets)], together[len(targets) :]
    height = max(1, _BLOCK // len(targets))
    nearest, shares = np.empty(len(points), np.int64), np.empty(len(points))
    for start in range(0, len(points), height):
        block = slice(start, start + height)
        distances = _distances(points[block], targets)
        nearest[block] = distances.argmin(axis=1)
        equal = distances == distances.min(axis=1, keepdims=True)
        shares[block] = np.take_along_axis(equal, own[block, None], axis=1)[:, 0] / equal.sum(axis=1)
    return CanonicalRetrieval(float(shares.mean()), 1 / len(targets), nearest, shares)


def peak_signal_to_noise(error: float) -> float:
    """Peak signal-to-noise ratio of images in [0, 1], in decibels, of their mean squared error per pixel.

    −10 · log₁₀ of the error, infinite for 0.

    Raises
    ------
    DataError
        When the error is negative.

    Examples
    --------
    >>> peak_signal_to_noise(0.01)
    20.0

    """
    if error < 0:
        raise DataError(f"a mean squared error must be 0 or more, not {error}")
    return float(-10 * np.log10(error)) if error else float("inf")


def _centred(reals: Reals) -> Reals:
    """Rows less their mean, exactly 0 where all are equal."""
    shifted: Reals = reals - reals[0]
    shifted -= shifted.mean(axis=0)
    return shifted


def _distances(points: Reals, others: Reals) -> npt.NDArray[np.float32]:
    lengths = np.square(points).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
    squares = lengths - 2 * (points @ others.T)
    squares[squares < _SAME * lengths] = 0
    return np.asarray(np.sqrt(squares), dtype=np.float32)


def _summary(distances: npt.NDArray[np.float32]) -> Distances:
    squares = np.einsum("i,i", distances, distances, dtype=np.float64) / len(distances)
    return Distances(
        pairs=len(distances),
        mean=float(distances.mean(dtype=np.float64)),
        root_mean_square=float(np.sqrt(squares)),
        quantiles=_quantiles(distances, QUANTILES),
    )


def _quantiles(ascending: npt.NDArray[np.float32], shares: Sequence[float]) -> Reals:
    """Quantiles of sorted numbers."""
    places = np.asarray(shares) * (len(ascending) - 1)
    below = places.astype(np.int64)
    above = np.minimum(below + 1, len(ascending) - 1)
    lower, upper = ascending[below].astype(np.float64), ascending[above].astype(np.float64)
    return np.asarray(lower + (places - below) * (upper - lower))


def _closer(within: npt.NDArray[np.float32], between: npt.NDArray[np.float32]) -> float:
    """Probability that one of the first is smaller than one of the second, both sorted; equal ones count half."""
    reached = np.searchsorted(between, within, "left").sum() + np.searchsorted(between, within, "right").sum()
    return float(1 - reached / (2 * len(within) * len(between)))
