"""Nearest neighbours in a gallery, and what they have in common with the query.

Convention
----------
Distances are squared L2, ‖q − g‖², or ``cosine``, 1 − cos(q, g). They are compared as float64 sums of squared
differences (for cosine, of embeddings scaled to length 1), and of equal ones the gallery's first row comes first. Work
goes in blocks, so that memory does not grow with queries × gallery.

A gallery row may be kept from a query: ``own`` names the row that is the query itself, and each pair of keys in
``never`` keeps rows whose key equals the query's, unless it is -1. :func:`shared_keys` makes such a pair of factors.

"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.checks import check_arguments, check_integer
from setsup.errors import DataError, SetsupError
from setsup.evaluation.distances import approximate, as_compared, check_metric, exact, slack
from setsup.evaluation.inputs import check_embeddings, check_factors, check_labels

__all__ = ["nearest", "rank", "shared_keys"]

Keys = Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]

_BLOCK = 1 << 22  # distances held at a time


def nearest(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    k: int = 1,
    *,
    metric: str = "l2sq",
    own: npt.ArrayLike | None = None,
    never: Keys = (),
) -> tuple[Codes, Reals]:
    """Rows of the gallery nearest to each query, nearest first.

    Parameters
    ----------
    queries : (q, d) numbers
        Embeddings.
    gallery : (g, d) numbers
        Embeddings among which neighbours are sought.
    k : int
        Neighbours of each, at least 1.
    metric : str
        ``l2sq`` or ``cosine``.
    own : (q,) integers, optional
        Gallery row that is the query itself, -1 where none is.
    never : sequence of pairs of (q,) and (g,) integers
        Keys of queries and of gallery rows; equal ones are kept apart.

    Returns
    -------
    (q, k) int64, (q, k) float64
        Gallery rows and distances; -1 and infinity where fewer than k rows are left.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, an embedding has no direction and the metric is ``cosine``, or the
        metric is unknown.

    Examples
    --------
    >>> points = [[0.0], [1.0], [3.0]]
    >>> rows, distances = nearest(points, points, k=2, own=[0, 1, 2])
    >>> rows.tolist(), distances.tolist()
    ([[1, 2], [0, 2], [1, 0]], [[1.0, 9.0], [1.0, 4.0], [4.0, 9.0]])

    """
    check_arguments(nearest, locals(), DataError)
    points, others = _check_pair(queries, gallery, metric)
    check_integer(k, "k", SetsupError, 1)
    kept = min(k, len(others))
    nearest_rows = np.full((len(points), k), -1, dtype=np.int64)
    distances = np.full((len(points), k), np.inf)
    doubt = slack(points, others)
    for block, barred in _blocks(len(points), len(others), own, never):
        about = approximate(points[block], others)
        about[barred] = np.inf
        # despite rounding, the k nearest are among the rows this close
        limit = np.partition(about, kept - 1, axis=1)[:, kept - 1] + doubt[block]
        query, row = np.nonzero((about <= limit[:, None]) & ~barred)
        sums = exact(points[block], others, query, row)
        order = np.lexsort((row, sums, query))
        query, row, sums = query[order], row[order], sums[order]
        position = np.arange(len(query)) - np.searchsorted(query, query)
        near_by = position < kept
        at = query[near_by] + block.start, position[near_by]
        nearest_rows[at], distances[at] = row[near_by], sums[near_by]
    return nearest_rows, distances if metric == "l2sq" else distances / 2


def rank(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    *,
    metric: str = "l2sq",
    own: npt.ArrayLike | None = None,
    never: Keys = (),
) -> Iterator[tuple[slice, Codes]]:
    """All gallery rows in order of distance, for a block of queries at a time."""
    from scipy.spatial.distance import cdist

    points, others = _check_pair(queries, gallery, metric)
    for block, barred in _blocks(len(points), len(others), own, never):
        distances = cdist(points[block], others, "sqeuclidean")
        distances[barred] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")
        order[np.take_along_axis(barred, order, axis=1)] = -1
        yield block, order


def shared_keys(
    query_factors: npt.ArrayLike, gallery_factors: npt.ArrayLike, columns: Sequence[int]
) -> tuple[Codes, Codes]:
    """Keys that are equal where a query and a gallery row have the same levels of some factors.

    Parameters
    ----------
    query_factors : (q, m) integers
        Codes of levels, -1 where unknown.
    gallery_factors : (g, m) integers
        The same factors of the gallery.
    columns : sequence of int
        Factors that must all agree.

    Returns
    -------
    (q,) int64, (g,) int64
        -1 where one of the factors is unknown.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, or a factor is unknown.

    Examples
    --------
    Keep apart what has the same identity (factor 0) under the same light (1), and under the same view (2):

    >>> queries, gallery = [[5, 0, 1]], [[5, 0, 2], [5, 3, 1], [5, 3, 2], [6, 0, 1]]
    >>> never = [shared_keys(queries, gallery, [0, 1]), shared_keys(queries, gallery, [0, 2])]
    >>> nearest([[0.0]], [[0.1], [0.2], [0.3], [0.4]], never=never)[0].item()
    2

    """
    check_arguments(shared_keys, locals(), DataError)
    factors = check_factors(query_factors, len(np.asarray(query_factors)), "query factors")
    others = check_factors(gallery_factors, len(np.asarray(gallery_factors)), "gallery factors")
    wrong = [c for c in columns if not isinstance(c, int | np.integer) or not 0 <= c < factors.shape[1]]
    if factors.shape[1] != others.shape[1] or wrong or not len(columns):
        raise SetsupError(
            "columns must contain at least one number of a factor that both queries and gallery have, not "
            f"{list(columns)} for {factors.shape[1]} factors of the queries and {others.shape[1]} of the gallery"
        )
    both = np.concatenate([factors, others])[:, list(columns)]
    keys = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    keys[(both < 0).any(axis=1)] = -1
    return keys[: len(factors)], keys[len(factors) :]


def _check_pair(queries: npt.ArrayLike, gallery: npt.ArrayLike, metric: str) -> tuple[Reals, Reals]:
    check_metric(metric)
    points, others = check_embeddings(queries, "queries"), check_embeddings(gallery, "gallery")
    if points.shape[1] != others.shape[1]:
        raise DataError(
            f"queries and gallery must have embeddings with the same number of dimensions, not {points.shape[1]} and "
            f"{others.shape[1]}; embed both with the same network"
        )
    return as_compared(points, metric, "queries"), as_compared(others, metric, "gallery")


def _blocks(
    queries: int, gallery: int, own: npt.ArrayLike | None, never: Keys
) -> Iterator[tuple[slice, npt.NDArray[np.bool_]]]:
    """Blocks of queries, and which gallery rows are kept from each, (block, g)."""
    selves = None if own is None else check_labels(own, queries, "own")
    if selves is not None and selves.max(initial=-1) >= gallery:
        raise DataError(
            f"own must contain row numbers of the gallery from 0 to {gallery - 1}, or -1, not {selves.max()}"
        )
    pairs = [(check_labels(q, queries, "keys"), check_labels(g, gallery, "keys")) for q, g in never]
    step = max(1, _BLOCK // gallery)
    for start in range(0, queries, step):
        block = slice(start, min(start + step, queries))
        barred = np.zeros((block.stop - start, gallery), dtype=np.bool_)
        if selves is not None:
            some = np.flatnonzero(selves[block] >= 0)
            barred[some, selves[block][some]] = True
        for points, others in pairs:
            keys = points[block][:, None]
            barred |= (keys == others) & (keys >= 0)
        yield block, barred
