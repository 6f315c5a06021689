"""The nearest and the second nearest of many features, exact in float64 and in blocks of bounded memory.

Squared distances come from matrix products, whose rounding is bounded. Where it could decide between two candidates,
they are compared again by sums of squared differences, so results depend neither on blocks nor on the library of the
product.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.errors import DataError
from setsup.evaluation.distances import slack

__all__ = ["NEAR", "NearestFeatures", "nearest_features"]

NEAR = 1e-5
"""Relative difference of two distances below which a match counts as a near tie."""

_QUERIES = 1024  # that are compared at a time
_DISTANCES = 1 << 22  # that are kept at a time
_SHARP = 1e5  # times the slack, above which a squared distance by products is accurate to one in a hundred thousand
_DIFFERENCES = 1 << 22  # numbers of exact differences that are kept at a time


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
    middle = known.mean(axis=0)  # differences of large squares would be rounded
    first, copies = _distinct(known)
    distinct = known[first]
    rows, distances, second = np.empty(len(wanted), np.int64), np.empty(len(wanted)), np.empty(len(wanted))
    for start in range(0, len(wanted), _QUERIES):
        part = slice(start, start + _QUERIES)
        found = _two_nearest(wanted[part], distinct, middle)
        rows[part], distances[part], second[part] = first[found[0]], found[1], found[2]
        tied = copies[found[0]]
        second[part][tied] = distances[part][tied]
    return NearestFeatures(rows, distances, second)


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


def _two_nearest(queries: Reals, candidates: Reals, middle: Reals) -> tuple[Rows, Reals, Reals]:
    """Rows and distances of the nearest candidates, and distances of the second nearest, of distinct candidates."""
    wanted, known = queries - middle, candidates - middle
    lengths, own = np.square(known).sum(axis=1), np.square(wanted).sum(axis=1)
    # two columns: the nearest and the second nearest so far, by products
    least, rows = np.full((len(wanted), 2), np.inf), np.zeros((len(wanted), 2), dtype=np.int64)
    step = max(1, _DISTANCES // max(len(wanted), 1))
    held = np.empty((len(wanted), min(step, len(known))))
    every = np.arange(len(wanted))
    for start in range(0, len(known), step):
        part = known[start : start + step]
        apart = held if len(part) == held.shape[1] else np.empty((len(wanted), len(part)))
        np.matmul(wanted, part.T, out=apart)
        apart *= -2
        apart += lengths[start : start + step]
        values, places = [least], [rows]
        for _ in range(min(2, len(part))):
            nearest = apart.argmin(axis=1)
            values.append(apart[every, nearest][:, None])
            places.append(nearest[:, None] + start)
            apart[every, nearest] = np.inf
        merged, named = np.concatenate(values, axis=1), np.concatenate(places, axis=1)
        order = np.argsort(merged, axis=1, kind="stable")[:, :2]
        least, rows = np.take_along_axis(merged, order, axis=1), np.take_along_axis(named, order, axis=1)
    distances = np.sqrt(np.square(queries - candidates[rows[:, 0]]).sum(axis=1))
    second = np.sqrt(np.square(queries - candidates[rows[:, 1]]).sum(axis=1))
    if len(candidates) == 1:
        return rows[:, 0], distances, np.full(len(queries), np.inf)
    unsure = slack(wanted, known)
    doubtful = (least[:, 1] - least[:, 0] <= unsure) | (least[:, 1] + own <= _SHARP * unsure)
    best = rows[:, 0].copy()
    again, step = np.flatnonzero(doubtful), max(1, _DISTANCES // len(known))
    for start in range(0, len(again), step):
        some = again[start : start + step]
        within = lengths - 2 * (wanted[some] @ known.T) <= (least[some, 1] + unsure[some])[:, None]
        for query, close in zip(some.tolist(), map(np.flatnonzero, within), strict=True):
            exact = _exact(queries[query], candidates, close)
            at = int(exact.argmin())
            best[query], distances[query] = close[at], np.sqrt(exact[at])
            exact[at] = np.inf
            second[query] = np.sqrt(exact.min())
    return best, distances, second


def _exact(query: Reals, candidates: Reals, rows: Rows) -> Reals:
    """Squared distances of a query to some candidates, by differences."""
    step = max(1, _DIFFERENCES // candidates.shape[1])
    parts = [
        np.square(query - candidates[rows[start : start + step]]).sum(axis=1) for start in range(0, len(rows), step)
    ]
    return np.concatenate(parts)
