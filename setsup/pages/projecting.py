"""Embeddings as points of a plane, and their nearest neighbours, in blocks: a million of them fit beside the rest.

Convention
----------
Points are in the order in which they are drawn: a keyed permutation of the embedded rows, so that no level of a factor
lies above the others, and the first so many are a uniform sample of all.
"""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Floats, Reals, Rows
from setsup.errors import DataError
from setsup.evaluation import nearest, principal_components
from setsup.random import fold, permute, stream_key

__all__ = ["MOST", "drawing_order", "neighbours", "project"]

MOST = 1_000_000
"""Points of a plot."""

_FITTED = 1 << 22  # numbers of the embeddings that components are fitted to
_BLOCK = 1 << 24  # numbers of embeddings that are looked at together

Embeddings = npt.NDArray[np.number]


def drawing_order(embeddings: Embeddings, most: int = MOST) -> tuple[Rows, int]:
    """Embeddings that are shown, in the order in which they are drawn, and how many others are not finite.

    Parameters
    ----------
    embeddings : (n, d) numbers
        May be an ``np.memmap``.
    most : int
        How many at most.

    Returns
    -------
    (k,) int64, int
        Positions in `embeddings`.

    Examples
    --------
    >>> order, left_out = drawing_order(np.array([[0.0], [np.nan], [2.0]]))
    >>> sorted(order.tolist()), left_out
    ([0, 2], 1)

    """
    known: Bools = np.empty(len(embeddings), dtype=np.bool_)
    for part in _blocks(embeddings):
        known[part] = np.isfinite(embeddings[part]).all(axis=1)
    finite = np.flatnonzero(known)
    count = len(finite)
    kept = permute(fold(stream_key(0, "explore embeddings"), 0), count, np.arange(min(count, most), dtype=np.int64))
    return np.asarray(finite[kept], dtype=np.int64), len(known) - count


def project(embeddings: Embeddings, order: Rows) -> tuple[Floats, str]:
    """Embeddings in two dimensions, and how they were brought there, in words.

    Two dimensions stay as they are, one has the rows of the dataset beside it, and more are projected onto their first
    two principal components (:func:`setsup.evaluation.principal_components`), which are fitted to the first of the
    rows if these are many.

    Parameters
    ----------
    embeddings : (n, d) numbers
        Finite where they are asked for.
    order : (k,) int64
        Which of them.

    Returns
    -------
    (k, 2) float32, str

    Raises
    ------
    DataError
        When all of them are equal, or there is none.

    Examples
    --------
    >>> points, words = project(np.array([[3, 0, 0], [-3, 0, 0], [0, 1, 0], [0, -1, 0]]), np.arange(4))
    >>> np.abs(points).round(6).tolist()
    [[3.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    >>> words
    'the first two principal components, with 90 % and 10 % of the variance'

    """
    if not len(order):
        raise DataError("none of the embeddings is finite; embed again with finite weights")
    dimensions = embeddings.shape[1]
    points = np.empty((len(order), 2), dtype=np.float32)
    if dimensions == 1:
        points[:, 0] = embeddings[order, 0]
        points[:, 1] = order * (float(np.ptp(points[:, 0])) or 1.0) / (2 * max(1, len(embeddings) - 1))
        return points, "the one dimension from left to right, the rows upwards"
    if dimensions == 2:
        points[:] = embeddings[order]
        return points, "the two dimensions as they are"
    some = order[: max(2, _FITTED // dimensions)]
    if len(some) < 2:
        return np.zeros_like(points), "a single embedding"
    components = principal_components(np.asarray(embeddings[np.sort(some)]), 2)
    for part in _blocks(embeddings, len(order)):
        points[part] = components.project(embeddings[order[part]])
    first, second = (f"{100 * share:.3g} %" for share in components.explained)
    fitted = "" if len(some) == len(order) else f" of {len(some):,} rows"
    return points, f"the first two principal components{fitted}, with {first} and {second} of the variance"


def neighbours(embeddings: Embeddings, order: Rows, places: Rows, k: int) -> tuple[Rows, Reals]:
    """Nearest neighbours among embeddings that are shown, exact, by the L2 distance in all dimensions.

    Parameters
    ----------
    embeddings : (n, d) numbers
        Of all rows.
    order : (m,) int64
        Those that are shown.
    places : (q,) int64
        Places in `order` whose neighbours are sought.
    k : int
        Neighbours of each.

    Returns
    -------
    (q, k) int64, (q, k) float64
        Places in `order`, nearest first, without the place itself, of equal ones the first; and distances. -1 and
        infinity where there are fewer.

    Examples
    --------
    >>> found, distances = neighbours(np.array([[0.0], [1.0], [3.0]]), np.arange(3), np.array([0]), 2)
    >>> found.tolist(), distances.tolist()
    ([[1, 2]], [[1.0, 3.0]])

    """
    asked = np.asarray(embeddings[order[places]])
    best = np.full((len(places), k), -1, dtype=np.int64)
    squares = np.full((len(places), k), np.inf)
    for part in _blocks(embeddings, len(order)):
        inside = (places >= part.start) & (places < part.stop)
        own = np.where(inside, places - part.start, -1)
        rows, apart = nearest(asked, np.asarray(embeddings[order[part]]), k, own=own)
        # earlier blocks stand first, so that of equal distances the first place wins
        both = np.concatenate([best, np.where(rows < 0, -1, rows + part.start)], axis=1)
        apart = np.concatenate([squares, apart], axis=1)
        chosen = np.argsort(apart, axis=1, kind="stable")[:, :k]
        best, squares = np.take_along_axis(both, chosen, axis=1), np.take_along_axis(apart, chosen, axis=1)
    return best, np.sqrt(squares)


def _blocks(embeddings: Embeddings, count: int | None = None) -> list[slice]:
    rows = len(embeddings) if count is None else count
    step = max(1, _BLOCK // max(1, embeddings.shape[1]))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
