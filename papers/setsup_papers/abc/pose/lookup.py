"""Look-up of poses: the rendering of a codebook whose embedding is most like that of a photograph.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, section on pose, and the evaluation that its authors published.

"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Floats, Reals, Rows
from setsup.checks import check_arguments, check_integer
from setsup.errors import DataError, SetsupError
from setsup.random import fold, permute, stream_key

__all__ = ["draw_codebooks", "look_up"]

_BLOCK = 1 << 21  # similarities of queries and renderings held at a time
_SLICE = 512  # dimensions of a product that rounds: shorter sums have smaller errors
_PAIRS = 1 << 22  # entries of exact products held at a time
_UNIT = float(np.finfo(np.float32).eps) / 2


def draw_codebooks(rows: npt.ArrayLike, codebooks: int = 10, size: int = 1800, seed: int = 0) -> Rows:
    """Draw random codebooks, each some of the rows without repeats.

    Parameters
    ----------
    rows : (n,) int
        Row numbers of renderings.
    codebooks : int
        How many.
    size : int
        Renderings of each, at most all.
    seed : int
        0 ≤ seed < 2⁶⁴. Codebook i is a function of seed, i and the rows.

    Returns
    -------
    (codebooks, k) int64
        k = min(size, n) rows each, ascending.

    Raises
    ------
    SetsupError
        When there are no rows, they are not integers, or a count is below 1.

    Examples
    --------
    >>> draw_codebooks(range(100, 200), codebooks=2, size=3).shape
    (2, 3)

    """
    check_arguments(draw_codebooks, locals())
    pool = _integers(rows, "rows of renderings").reshape(-1)
    check_integer(codebooks, "codebooks", SetsupError, 1)
    count = min(check_integer(size, "the size of codebooks", SetsupError, 1), len(pool))
    if not count:
        raise SetsupError("at least one rendering is required to draw codebooks")
    keys = fold(stream_key(seed, "pose codebooks"), np.arange(codebooks, dtype=np.uint64))
    drawn = [pool[permute(int(key), len(pool), np.arange(count))] for key in keys]
    return np.sort(np.stack(drawn), axis=1)


def look_up(queries: npt.ArrayLike, renderings: npt.ArrayLike, codebooks: npt.ArrayLike) -> Rows:
    """Find, in each codebook, the rendering whose embedding has the largest cosine similarity with each query [1]_.

    Embeddings are scaled to length 1 and rounded to float32. Cosines of these are computed in float32 with a bound on
    their error; where two are closer than that, they are computed again in float64. So results do not depend on blocks
    or threads. Of equal cosines the lowest row number wins; those that differ by less than the rounding of the
    embeddings, some 10⁻⁷, may be taken in either order.

    Parameters
    ----------
    queries : (q, d) numbers
        Embeddings of photographs.
    renderings : (n, d) numbers
        Embeddings of renderings.
    codebooks : (c, k) int
        Rows of renderings, as of :func:`draw_codebooks`.

    Returns
    -------
    (c, q) int64
        Rows of renderings.

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, or an embedding is zero, which has no direction.

    Examples
    --------
    >>> found = look_up([[0.0, 2.0]], [[1.0, 1.0], [1.0, 3.0], [0.0, 5.0]], [[0, 1], [0, 2]])
    >>> found.tolist()
    [[1], [2]]

    """
    check_arguments(look_up, locals(), DataError)
    points, others = _embeddings(queries, "queries"), _embeddings(renderings, "renderings")
    if points.shape[1] != others.shape[1]:
        raise DataError(
            f"queries and renderings must have embeddings of the same length, not {points.shape[1]} and "
            f"{others.shape[1]}; embed both with the same network"
        )
    books = _integers(codebooks, "codebooks")
    if books.ndim != 2 or not books.size or books.min() < 0 or books.max() >= len(others):
        numbered = books.ndim == 2 and books.size
        found = f"numbers from {books.min()} to {books.max()}" if numbered else f"the shape {books.shape}"
        raise DataError(
            "codebooks must be a non-empty array of shape (codebooks, size) with row numbers of the renderings, from 0 "
            f"to {len(others) - 1:,}, not {found}"
        )
    books = np.sort(books, axis=1)
    used, places = _shared(books)
    gallery = _directions(others[used], "renderings")
    nearest = np.empty((len(books), len(points)), dtype=np.int64)
    step = max(1, _BLOCK // len(used))
    for start in range(0, len(points), step):
        block = slice(start, min(start + step, len(points)))
        some = _directions(points[block], "queries", start)
        about = _cosines(some, gallery)
        for number, book in enumerate(places):
            within = about[:, book]
            nearest[number, block] = used[book][_largest(within, some, gallery, book)]
    return nearest


def _shared(books: Rows) -> tuple[Rows, list[Any]]:
    """Rows whose cosines are computed, and where among them those of each codebook are.

    What several codebooks share is computed once, if it is much: to gather it takes time, too.
    """
    used, places = np.unique(books, return_inverse=True)
    if 2 * len(used) < books.size:
        return used, list(places.reshape(books.shape))
    count = books.shape[1]
    return books.reshape(-1), [slice(start, start + count) for start in range(0, books.size, count)]


def _largest(within: Floats, some: Floats, gallery: Floats, book: Any) -> Rows:
    """Column with the largest cosine, (q,)."""
    lines, doubt = np.arange(len(within)), _doubt(some.shape[1])
    best = within.argmax(axis=1)
    top = within[lines, best]
    # the largest that is not this one tells whether rounding may have chosen
    within[lines, best] = -np.inf
    close = np.flatnonzero(within.max(axis=1) >= top - doubt)
    within[lines, best] = top
    if len(close):
        numbers = np.arange(len(gallery))[book]
        line, candidate = np.nonzero(within[close] >= (top[close] - doubt)[:, None])
        order = np.lexsort((candidate, -_exact(some, gallery, close[line], numbers[candidate]), line))
        line, candidate = line[order], candidate[order]
        best[close] = candidate[np.searchsorted(line, np.arange(len(close)))]
    return np.asarray(best)


def _doubt(dimensions: int) -> float:
    """By how much two cosines of float32 may be in the wrong order."""
    return 4 * (min(dimensions, _SLICE) + dimensions / _SLICE + 4) * _UNIT


def _cosines(some: Floats, gallery: Floats) -> Floats:
    """Products of unit vectors, (q, n), of a slice of the dimensions after the other."""
    products = some[:, :_SLICE] @ gallery[:, :_SLICE].T
    for start in range(_SLICE, some.shape[1], _SLICE):
        products += some[:, start : start + _SLICE] @ gallery[:, start : start + _SLICE].T
    return np.asarray(products)


def _exact(some: Floats, gallery: Floats, query: Rows, row: Rows) -> Reals:
    """Cosines of pairs, in float64, of vectors as they are in float32."""
    cosines = np.empty(len(query))
    step = max(1, _PAIRS // some.shape[1])
    for start in range(0, len(query), step):
        part = slice(start, start + step)
        first, second = some[query[part]].astype(np.float64), gallery[row[part]].astype(np.float64)
        lengths = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
        cosines[part] = (first * second).sum(axis=1) / lengths
    return cosines


def _integers(given: npt.ArrayLike, name: str) -> Rows:
    integers = np.asarray(given)
    if integers.size and integers.dtype.kind not in "iu":
        raise DataError(f"{name} must be integers, not {integers.dtype}")
    if integers.size and int(integers.max()) > np.iinfo(np.int64).max:
        raise DataError(f"{name} must be row numbers below 2**63, not {integers.max()}")
    return integers.astype(np.int64)


def _embeddings(given: npt.ArrayLike, name: str) -> Array:
    array = np.asarray(given)
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "biuf":
        raise DataError(
            f"{name} must be a non-empty array of numbers of shape (n, d), not {array.dtype} of shape {array.shape}"
        )
    return array


def _directions(points: Array, name: str, first: int = 0) -> Floats:
    """Vectors of length 1, float32."""
    step = max(1, _PAIRS // points.shape[1])
    unit = np.empty(points.shape, dtype=np.float32)
    for start in range(0, len(points), step):
        part = points[start : start + step].astype(np.float64)
        lengths = np.sqrt((part**2).sum(axis=1))
        if not np.isfinite(lengths).all():
            row = first + start + int(np.argmin(np.isfinite(lengths)))
            raise DataError(f"{name}: the embedding of row {row} is not finite, or too large; embed the rows again")
        if not lengths.all():
            row = first + start + int(np.argmin(lengths))
            raise DataError(f"{name}: the embedding of row {row} is zero, so it has no direction; check the network")
        unit[start : start + step] = part / lengths[:, None]
    return unit
