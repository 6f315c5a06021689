"""What retrieved rows have in common with their queries: accuracy, precision, average precision, attributes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Codes, Reals
from setsup.checks import check_arguments, check_integer
from setsup.errors import DataError, SetsupError
from setsup.evaluation.inputs import check_embeddings, check_factors, check_labels
from setsup.evaluation.retrieval import Keys, nearest, rank

__all__ = ["Retrieved", "accuracy", "matches", "mean_average_precision", "precision", "vote"]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A mean over queries.

    Attributes
    ----------
    value : float
        The mean.
    queries : int
        Over how many.
    left_out : int
        Queries that could not count: without a label, or without a row to find.

    """

    value: float
    queries: int
    left_out: int


def precision(right: npt.ArrayLike, known: npt.ArrayLike | None = None) -> Retrieved:
    """Precision at k: the mean share of right ones among the k neighbours of a query; for k = 1 the accuracy.

    Parameters
    ----------
    right : (q, k) bool
        Whether each neighbour is right, as by ``matches(…).all(axis=2)``; a place without a neighbour is not.
    known : (q,) bool, optional
        Queries that count.

    Returns
    -------
    Retrieved

    Raises
    ------
    DataError
        When shapes disagree or no query counts.

    Examples
    --------
    >>> precision([[True, False], [True, True], [False, False]], known=[True, True, False])
    Retrieved(value=0.75, queries=2, left_out=1)

    """
    check_arguments(precision, locals(), DataError)
    truths = np.asarray(right)
    counted = np.ones(len(truths), dtype=np.bool_) if known is None else np.asarray(known)
    if truths.ndim != 2 or 0 in truths.shape or truths.dtype != np.bool_:
        raise DataError(
            f"right must be a boolean array of shape (queries, k), not {truths.dtype} of shape {truths.shape}"
        )
    if counted.shape != (len(truths),) or counted.dtype != np.bool_:
        raise DataError(
            f"known must be a boolean array of shape ({len(truths)},), one value per query, not {counted.dtype} of "
            f"shape {counted.shape}"
        )
    return _mean(truths.mean(axis=1)[counted], len(truths))


def matches(
    query_factors: npt.ArrayLike,
    gallery_factors: npt.ArrayLike,
    rows: npt.ArrayLike,
    *,
    tolerance: Mapping[int, int] | None = None,
    period: Mapping[int, int] | None = None,
) -> Bools:
    """Whether neighbours have the factors of their queries.

    Parameters
    ----------
    query_factors : (q, m) integers
        Codes of levels, -1 where unknown.
    gallery_factors : (g, m) integers
        The same factors of the gallery.
    rows : (q, k) integers
        Neighbours, from :func:`~setsup.evaluation.retrieval.nearest`; -1 where there is none.
    tolerance : mapping of int to int, optional
        Levels by which a factor, given by its number, may differ; 0 where it is not named.
    period : mapping of int to int, optional
        Number of levels after which a factor repeats: codes 0 and period − 1 differ by 1.

    Returns
    -------
    (q, k, m) bool
        False where one of both is unknown, and where there is no neighbour.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, a factor is unknown, or a tolerance or period is out of range.

    Examples
    --------
    Azimuths in 18 steps, right within 2; the elevation has to be exact:

    >>> matches([[17, 3]], [[1, 3], [14, 3]], [[0, 1]], tolerance={0: 2}, period={0: 18}).tolist()
    [[[True, True], [False, True]]]

    """
    check_arguments(matches, locals(), DataError)
    factors = check_factors(query_factors, len(np.asarray(query_factors)), "query factors")
    others = check_factors(gallery_factors, len(np.asarray(gallery_factors)), "gallery factors")
    numbers = _rows(rows, len(factors), len(others))
    if factors.shape[1] != others.shape[1]:
        raise DataError(
            f"queries and gallery must have the same number of factors, not {factors.shape[1]} and {others.shape[1]}"
        )
    for name, given in (("tolerance", tolerance or {}), ("period", period or {})):
        for column, value in given.items():
            if not 0 <= column < factors.shape[1]:
                raise SetsupError(
                    f"{name} contains factor {column}, but factors are numbered from 0 to {factors.shape[1] - 1}"
                )
            check_integer(value, f"the {name} of factor {column}", SetsupError, 0 if name == "tolerance" else 2)
    wanted, got = factors[:, None, :], others[np.maximum(numbers, 0)]
    apart = np.abs(wanted - got)
    for column, length in (period or {}).items():
        if max(factors[:, column].max(initial=-1), others[:, column].max(initial=-1)) >= length:
            raise DataError(
                f"factor {column} has codes of {length} or more, but codes must be below the period {length}; correct "
                "the codes or the period"
            )
        apart[..., column] = np.minimum(apart[..., column], length - apart[..., column])
    limits = np.zeros(factors.shape[1], dtype=np.int64)
    for column, value in (tolerance or {}).items():
        limits[column] = value
    return np.asarray((apart <= limits) & (wanted >= 0) & (got >= 0) & (numbers >= 0)[..., None])


def vote(rows: npt.ArrayLike, gallery_labels: npt.ArrayLike) -> Codes:
    """Label that most of a query's neighbours have; of equals, the one whose nearest member is nearest.

    Parameters
    ----------
    rows : (q, k) integers
        Neighbours, nearest first; -1 where there is none.
    gallery_labels : (g,) integers
        Codes of classes; -1 where unknown, which does not vote.

    Returns
    -------
    (q,) int64
        -1 without a vote.

    Raises
    ------
    DataError
        When a row is not a row of the gallery.

    Examples
    --------
    >>> vote([[0, 1, 2], [1, 0, -1]], [7, 4, 4]).tolist()
    [4, 4]

    """
    check_arguments(vote, locals(), DataError)
    labels = check_labels(gallery_labels, len(np.asarray(gallery_labels)), "gallery labels")
    numbers = _rows(rows, None, len(labels))
    voted = np.where(numbers >= 0, labels[np.maximum(numbers, 0)], -1)
    most = np.zeros(len(numbers), dtype=np.int64)
    winner = np.full(len(numbers), -1, dtype=np.int64)
    for column in range(numbers.shape[1]):
        label = voted[:, column]
        count = np.where(label >= 0, (voted == label[:, None]).sum(axis=1), 0)
        better = count > most
        most[better], winner[better] = count[better], label[better]
    return winner


def mean_average_precision(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    query_labels: npt.ArrayLike,
    gallery_labels: npt.ArrayLike,
    *,
    metric: str = "l2sq",
    own: npt.ArrayLike | None = None,
    never: Keys = (),
) -> Retrieved:
    """Mean over queries of the average precision with which the whole gallery is ranked.

    The average precision of a query is the mean, over the gallery rows of its label, of the share of rows of its label
    among all up to that one. Queries without a label, or without a row of their label, are left out; gallery rows
    without a label are ranked and never right.

    Parameters
    ----------
    queries, gallery, metric, own, never
        As for :func:`~setsup.evaluation.retrieval.nearest`.
    query_labels, gallery_labels : (q,) and (g,) integers
        Codes of classes, -1 where unknown.

    Returns
    -------
    Retrieved

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, or no query counts.

    Examples
    --------
    >>> mean_average_precision([[0.0]], [[1.0], [2.0], [3.0]], [1], [1, 0, 1]).value.__round__(4)
    0.8333

    """
    check_arguments(mean_average_precision, locals(), DataError)
    reals, others = check_embeddings(queries, "queries"), check_embeddings(gallery, "gallery")
    wanted = check_labels(query_labels, len(reals), "query labels")
    labels = check_labels(gallery_labels, len(others), "gallery labels")
    precisions = np.full(len(reals), np.nan)
    for block, order in rank(reals, others, metric=metric, own=own, never=never):
        mine = wanted[block][:, None]
        right = (labels[np.maximum(order, 0)] == mine) & (order >= 0) & (mine >= 0)
        share = np.cumsum(right, axis=1) / np.arange(1, order.shape[1] + 1)
        total = right.sum(axis=1)
        precisions[block] = np.where(total > 0, (share * right).sum(axis=1) / np.maximum(total, 1), np.nan)
    return _mean(precisions[~np.isnan(precisions)], len(reals))


def accuracy(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    query_labels: npt.ArrayLike,
    gallery_labels: npt.ArrayLike,
    k: int = 1,
    *,
    metric: str = "l2sq",
    own: npt.ArrayLike | None = None,
    never: Keys = (),
) -> Retrieved:
    """Share of queries whose label is the one that most of their k nearest gallery rows have.

    Parameters
    ----------
    queries, gallery, k, metric, own, never
        As for :func:`~setsup.evaluation.retrieval.nearest`.
    query_labels, gallery_labels : (q,) and (g,) integers
        Codes of classes, -1 where unknown: such queries are left out, such gallery rows do not vote.

    Returns
    -------
    Retrieved

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, or no query counts.

    Examples
    --------
    >>> points, labels = [[0.0], [0.1], [0.2], [5.0], [5.1]], [0, 0, 0, 1, 1]
    >>> accuracy(points, points, labels, labels, own=range(5))
    Retrieved(value=1.0, queries=5, left_out=0)

    """
    check_arguments(accuracy, locals(), DataError)
    rows, _ = nearest(queries, gallery, k, metric=metric, own=own, never=never)
    wanted = check_labels(query_labels, len(rows), "query labels")
    right = vote(rows, check_labels(gallery_labels, len(np.asarray(gallery)), "gallery labels")) == wanted
    return _mean(right[wanted >= 0], len(rows))


def _rows(rows: npt.ArrayLike, queries: int | None, gallery: int) -> Codes:
    given = np.asarray(rows)
    if given.ndim != 2 or given.dtype.kind not in "iu" or (queries is not None and len(given) != queries):
        raise DataError(
            f"rows must be an integer array of shape (queries, k), as nearest returns it, not {given.dtype} of shape "
            f"{given.shape}"
        )
    if given.size and not -1 <= given.min() <= given.max() < gallery:
        raise DataError(
            f"rows must contain row numbers of the gallery from 0 to {gallery - 1}, or -1, not numbers from "
            f"{given.min()} to {given.max()}"
        )
    return given.astype(np.int64)


def _mean(values: Reals | Bools, queries: int) -> Retrieved:
    if not len(values):
        raise DataError(
            f"none of the {queries:,} queries has a known label with matches in the gallery; check the labels"
        )
    return Retrieved(float(np.mean(values)), len(values), queries - len(values))
