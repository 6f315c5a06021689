"""The nearest and the second nearest of many features, exact in float64 and in blocks of bounded memory.

Squared distances come from matrix products, whose rounding is bounded. Where it could decide between two candidates,
they are compared again by sums of squared differences, so results depend neither on blocks nor on the library of the
product.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.errors import DataError

__all__ = ["NEAR", "NearestFeatures", "mutual_neighbours", "nearest_features"]

NEAR = 1e-5
"""Relative difference of two distances below which a match counts as a near tie."""

_DISTANCES = 1 << 23  # that are kept at a time
_CLOSE = 16  # candidates per query, on average, that are compared exactly after products in float32
_DIFFERENCES = 1 << 22  # numbers of exact differences that are kept at a time


_NOTHING = np.zeros(0, np.int64), np.zeros(0, np.int64)


class NearestFeatures(NamedTuple):
    """What :func:`nearest_features` finds.

    Attributes
    ----------
    rows : (q,) int64
        Row of the nearest candidate, the first of several equally near ones.
    distances : (q,) float64
        Euclidean distance to it.
    second : (q,) float64
        Distance to the nearest of the other candidates, equal where these tie; infinite where there is no other one.

    """

    rows: Rows
    distances: Reals
    second: Reals

    @property
    def near_ties(self) -> Bools:
        """Where the two distances differ by at most :data:`NEAR` of the larger one, (q,) bool."""
        known = np.isfinite(self.second)
        second = np.where(known, self.second, 0)
        return np.asarray(known & (second - np.where(known, self.distances, 0) <= NEAR * second))


def nearest_features(queries: npt.ArrayLike, candidates: npt.ArrayLike) -> NearestFeatures:
    """Find the nearest candidate of each query, and the distance of the second nearest.

    Parameters
    ----------
    queries : (q, D) float
        Features.
    candidates : (c, D) float
        Features among which the nearest one is searched.

    Returns
    -------
    NearestFeatures

    Raises
    ------
    DataError
        When the shapes disagree, a feature is not finite, or there is no candidate.

    Examples
    --------
    >>> found = nearest_features([[0.9, 0.0], [5.0, 0.0]], [[0.0, 0.0], [1.0, 0.0], [4.0, 0.0], [4.0, 0.0]])
    >>> found.rows.tolist(), found.second.round(3).tolist(), found.near_ties.tolist()
    ([1, 2], [0.9, 1.0], [False, True])

    """
    wanted, known = (np.asarray(array, dtype=np.float64) for array in (queries, candidates))
    if wanted.ndim != 2 or known.ndim != 2 or wanted.shape[1] != known.shape[1] or not known.size:
        raise DataError(
            f"queries and candidates must have the shapes (q, D) and (c, D) with c ≥ 1, not {wanted.shape} and "
            f"{known.shape}"
        )
    for name, given in (("queries", wanted), ("candidates", known)):
        if not np.isfinite(given).all():
            raise DataError(
                f"{name} must contain only finite values to search for the nearest ones; check the network that "
                "computed them"
            )
    first, copies = _distinct(known)
    rows, distances, second = _two_nearest(wanted, known if len(first) == len(known) else known[first])
    tied = copies[rows]
    second[tied] = distances[tied]
    return NearestFeatures(first[rows], distances, second)


def mutual_neighbours(first: npt.ArrayLike, second: npt.ArrayLike) -> Rows:
    """Pairs of features of two sets that are mutual nearest neighbours.

    Parameters
    ----------
    first, second : (n, D) and (m, D) float
        Features; either set may be empty.

    Returns
    -------
    (k, 2) int64
        Rows of the first and of the second set, in the order of the first. Of equally near features, the first row
        counts.

    Raises
    ------
    DataError
        As of :func:`nearest_features`.

    Examples
    --------
    >>> mutual_neighbours([[0.0], [5.0], [9.0]], [[8.0], [0.5], [7.9]]).tolist()
    [[0, 1], [2, 0]]

    """
    if not len(np.asarray(first)) or not len(np.asarray(second)):
        return np.zeros((0, 2), np.int64)
    there = nearest_features(first, second).rows
    asked, where = np.unique(there, return_inverse=True)
    back = nearest_features(np.asarray(second)[asked], first).rows
    mutual = np.flatnonzero(back[where] == np.arange(len(there)))
    return np.stack([mutual, there[mutual]], axis=1)


def _distinct(features: Reals) -> tuple[Rows, Bools]:
    """The first row of each distinct feature, ascending, and whether it has copies.

    Copies are found by equal products with one vector; if rounding hides one, it stays a candidate of its own.
    """
    marks = features @ np.cos(np.arange(1.0, features.shape[1] + 1))
    order = np.argsort(marks, kind="stable")
    close = np.flatnonzero(marks[order][1:] == marks[order][:-1])
    same = np.zeros(len(order), dtype=np.bool_)  # as the one before it in this order
    same[close + 1] = (features[order[close + 1]] == features[order[close]]).all(axis=1)
    group = np.cumsum(~same) - 1
    leading = np.flatnonzero(~same)
    first = order[leading]  # stable: the first row of a group leads it
    copies = np.bincount(group) > 1
    ascending = np.argsort(first)
    return first[ascending].astype(np.int64), copies[ascending]


def _two_nearest(queries: Reals, candidates: Reals) -> tuple[Rows, Reals, Reals]:
    """Rows and distances of the nearest candidates, and distances of the second nearest, of distinct candidates."""
    middle = candidates.mean(axis=0)  # differences of large squares would be rounded
    known, wanted = candidates - middle, queries - middle
    scale = float(np.sqrt(np.einsum("ij,ij->i", known, known).max())) or 1.0
    known /= scale  # at most of length 1, so that no square overflows
    wanted /= scale
    rows, distances, second = np.empty(len(queries), np.int64), np.empty(len(queries)), np.empty(len(queries))
    small, large = _Products(known.astype(np.float32)), None
    step = max(1, _DISTANCES // len(candidates))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        pairs = small.close(wanted[part], _CLOSE)
        if not len(pairs[0]):  # float32 leaves too much open
            large = large or _Products(known)
            pairs = large.close(wanted[part])
        apart = _exact(queries[part], candidates, *pairs)
        order = np.lexsort((pairs[1], apart, pairs[0]))  # by query, then by distance, then by row
        starts = np.searchsorted(pairs[0][order], np.arange(len(wanted[part])))
        rows[part], distances[part] = pairs[1][order[starts]], apart[order[starts]]
        second[part] = apart[order[starts + 1]] if len(candidates) > 1 else np.inf
    return rows, distances, second


class _Products:
    """Squared distances of candidates of at most length 1 by products of matrices, in one type of numbers."""

    def __init__(self, candidates: npt.NDArray[Any]) -> None:
        self._candidates = candidates
        self._lengths = np.square(candidates).sum(axis=1)
        self._held = np.empty((0, len(candidates)), dtype=candidates.dtype)

    def close(self, queries: Reals, most: int | None = None) -> tuple[Rows, Rows]:
        """Pairs of a query and a candidate that contain the two nearest candidates of each query, by query.

        Empty where they are more than so many per query on average, or a query is out of the range of the type.
        """
        (count, size), kind = self._candidates.shape, self._held.dtype
        with np.errstate(over="ignore"):
            wanted = queries.astype(kind)
        lengths = np.sqrt(np.square(queries).sum(axis=1))
        if not (lengths < 1e15).all() and kind == np.float32:
            return _NOTHING
        if len(self._held) < len(wanted):
            self._held = np.empty((len(wanted), count), dtype=kind)
        apart = self._held[: len(wanted)]
        np.matmul(wanted * kind.type(-2), self._candidates.T, out=apart)
        apart += self._lengths
        every = np.arange(len(wanted))
        nearest = apart.argmin(axis=1)
        least = apart[every, nearest].copy()
        apart[every, nearest] = np.inf
        second = apart.min(axis=1) if count > 1 else least
        apart[every, nearest] = least
        # twice the bound of the error of a product of D terms, of the rounding of its factors, and of the sum
        unsure = 4 * (size + 8) * float(np.finfo(kind).eps) / 2 * (lengths + 1)
        most_apart = np.nextafter((second + unsure).astype(kind), kind.type(np.inf))
        pairs = np.divmod(np.flatnonzero(apart <= most_apart[:, None]), count)
        if most is not None and len(pairs[0]) > most * len(wanted):
            return _NOTHING
        return pairs[0].astype(np.int64), pairs[1].astype(np.int64)


def _exact(queries: Reals, candidates: Reals, query: Rows, row: Rows) -> Reals:
    """Distances of pairs, by differences."""
    apart = np.empty(len(query))
    step = max(1, _DIFFERENCES // candidates.shape[1])
    for start in range(0, len(query), step):
        part = slice(start, start + step)
        apart[part] = np.square(queries[query[part]] - candidates[row[part]]).sum(axis=1)
    return np.sqrt(apart)
