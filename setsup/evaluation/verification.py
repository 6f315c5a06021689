"""Verification and retrieval of identities: the area under the ROC curve over all pairs, and top-1 with a gallery rule.

Convention
----------
A pair is *same* if both images are of one identity; its score is the negative distance. The area is the share of pairs
of a same and a different pair in which the same pair is closer, where equally close ones count one half. Distances are
float64 sums of squared differences.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.evaluation.agreement import Retrieved, precision
from setsup.evaluation.distances import as_compared, check_metric, exact, slack
from setsup.evaluation.inputs import check_embeddings, check_factors
from setsup.evaluation.resplits import check_known
from setsup.evaluation.retrieval import nearest, shared_keys

__all__ = ["Verified", "identity_retrieval", "verification_auc"]


_BLOCK = 1 << 22  # distances held at a time
_STORED = 1 << 26  # distances of the rarer kind of pairs held at a time, sorted


@dataclass(frozen=True, slots=True)
class Verified:
    """Area under the ROC curve over all unique pairs of images.

    Attributes
    ----------
    auc : float
        0.5 by chance, 1 if every same pair is closer than every different one.
    same : int
        Pairs of one identity.
    different : int
        Pairs of two identities.

    """

    auc: float
    same: int
    different: int


def verification_auc(embeddings: npt.ArrayLike, identities: npt.ArrayLike, *, metric: str = "l2sq") -> Verified:
    """Compute the exact area under the ROC curve of telling whether two images are of one identity, over all pairs.

    The distances of the rarer kind of pairs are held sorted, 2²⁶ at a time; those of the others are matrix products, a
    block at a time. Where a product is so close to a held distance that rounding could decide, it is computed from
    differences, so that the result is that of all distances computed so.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image.
    identities : (n,) integers
        Identity of each image, from 0 on.
    metric : {"l2sq", "cosine"}
        Euclidean distance of embeddings, or of embeddings scaled to length 1.

    Returns
    -------
    Verified

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, an identity is unknown, there are no pairs of one of both kinds,
        or the metric is unknown.

    Notes
    -----
    Beside the embeddings in float64, at most 1 GiB is used. Time is that of n² / 2 products of rows, and of d
    differences per pair of the rarer kind. Where many distances are equal, as of binary codes, most of all pairs are
    computed from differences, which takes longer.

    Examples
    --------
    Of the distances 1, 2 of same pairs and 2, 3, 4, 5 of different ones, one of eight comparisons is a tie:

    >>> verification_auc([[0.0], [1.0], [3.0], [5.0]], [0, 0, 1, 1])
    Verified(auc=0.9375, same=2, different=4)

    References
    ----------
    .. [1] T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 2006, section 8.

    """
    check_arguments(verification_auc, locals(), DataError)
    check_metric(metric)
    points = as_compared(check_embeddings(embeddings), metric)
    identity = check_known(identities, len(points), "identities")
    sizes = np.unique(identity, return_counts=True)[1].tolist()
    same = sum(size * (size - 1) // 2 for size in sizes)
    different = len(points) * (len(points) - 1) // 2 - same
    if not same or not different:
        raise DataError(
            f"verification requires pairs of the same identity and pairs of different identities, but {len(points):,} "
            f"images of {len(sizes):,} identities have {same:,} and {different:,}; pass at least two images of each "
            "of two identities"
        )
    held_same = same <= different
    twice, all_pairs = 0, 2 * same * different  # a comparison counts 2, and a tie 1
    for held in _held_distances(points, identity, held_same):
        twice += sum(_twice_below(points, identity, held, not held_same))
    return Verified((twice if held_same else all_pairs - twice) / all_pairs, same, different)


def identity_retrieval(
    embeddings: npt.ArrayLike, identities: npt.ArrayLike, conditions: npt.ArrayLike, *, metric: str = "l2sq"
) -> Retrieved:
    """Compute the share of images whose nearest image in the gallery has their identity, after easy images are removed.

    Each image is a query in a gallery of all images but those of its own identity that share one of its conditions.
    With illumination and view as conditions, as on Multi-PIE, images of the identity remain that differ in both.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image.
    identities : (n,) integers
        Identity of each image, from 0 on.
    conditions : (n, k) integers
        Conditions of each image, -1 where unknown, which is shared with no image.
    metric : {"l2sq", "cosine"}
        Euclidean distance of embeddings, or of embeddings scaled to length 1.

    Returns
    -------
    Retrieved
        Queries without an image of their identity in the gallery are left out.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, an identity is unknown, no query has an image of its identity in
        its gallery, or the metric is unknown.

    Examples
    --------
    Images 3 and 4 are nearest to each other, but of one view, so that each finds image 2, of the other identity:

    >>> points, identities = [[0.0], [0.1], [0.3], [1.0], [1.1], [9.0]], [0, 0, 0, 1, 1, 1]
    >>> views, lights = [0, 0, 1, 0, 0, 1], [0, 1, 2, 0, 1, 2]
    >>> identity_retrieval(points, identities, np.stack([views, lights], axis=1))
    Retrieved(value=0.6666666666666666, queries=6, left_out=0)

    """
    check_arguments(identity_retrieval, locals(), DataError)
    check_metric(metric)
    points = check_embeddings(embeddings)
    identity = check_known(identities, len(points), "identities")
    levels = check_factors(conditions, len(points), "conditions")
    factors = np.concatenate([identity[:, None], levels], axis=1)
    never = [shared_keys(factors, factors, [0, 1 + condition]) for condition in range(levels.shape[1])]
    rows, _ = nearest(points, points, metric=metric, own=np.arange(len(points)), never=never)
    right = (rows >= 0) & (identity[np.maximum(rows, 0)] == identity[:, None])
    return precision(right, _findable(identity, levels))


def _findable(identity: Codes, levels: Codes) -> npt.NDArray[np.bool_]:
    """Whether the gallery of each query (n,) has an image of its identity."""
    findable = np.zeros(len(identity), dtype=np.bool_)
    order = np.argsort(identity, kind="stable")
    bounds = np.flatnonzero(np.diff(identity[order])) + 1
    for own in np.split(order, bounds):
        step = max(1, _BLOCK // len(own))
        for start in range(0, len(own), step):
            some = own[start : start + step]
            barred = some[:, None] == own
            for column in levels.T:
                barred |= (column[some][:, None] == column[own]) & (column[own] >= 0)
            findable[some] = ~barred.all(axis=1)
    return findable


def _blocks(rows: int) -> Iterator[slice]:
    """Blocks of rows, each to be paired with all rows from its first one on."""
    start = 0
    while start < rows:
        stop = min(start + max(1, _BLOCK // (rows - start)), rows)
        yield slice(start, stop)
        start = stop


def _wanted(identity: Codes, block: slice, same: bool) -> npt.NDArray[np.bool_]:
    """Pairs of one kind of rows of a block with later rows, as a mask (block, rows from its first one on)."""
    mine, others = identity[block], identity[block.start :]
    wanted = (mine[:, None] == others) if same else (mine[:, None] != others)
    wanted[:, : len(mine)] &= np.triu(np.ones((len(mine), len(mine)), dtype=np.bool_), 1)
    return np.asarray(wanted)


def _held_distances(points: Reals, identity: Codes, same: bool) -> Iterator[Reals]:
    """Distances of all pairs of a kind, from differences: sorted ones of `_STORED` pairs or somewhat more at a time."""
    pieces, many = [], 0
    for block in _blocks(len(points)):
        query, row = np.nonzero(_wanted(identity, block, same))
        pieces.append(exact(points[block], points[block.start :], query, row))
        many += len(query)
        if many and (many >= _STORED or block.stop == len(points)):
            held = np.concatenate(pieces)
            pieces, many = [], 0
            held.sort()
            yield held


def _twice_below(points: Reals, identity: Codes, held: Reals, same: bool) -> Iterator[int]:
    """For each block, how many held distances are less than those of its pairs, twice, and how many are equal."""
    centred = points - points.mean(axis=0)  # products of short vectors are closer to the sums
    squares = (centred**2).sum(axis=1)
    doubt = slack(centred, centred)
    for block in _blocks(len(points)):
        wanted = _wanted(identity, block, same)
        about = centred[block] @ centred[block.start :].T
        about *= -2
        about += squares[block, None]
        about += squares[block.start :]
        limit = float(doubt[block].max())
        values = about[wanted]
        ordered = np.sort(values)
        below = np.searchsorted(held, ordered - limit)
        unclear = (below < len(held)) & (held[np.minimum(below, len(held) - 1)] <= ordered + limit)
        twice = 2 * int(below[~unclear].sum())
        if unclear.any():
            doubtful = ordered[unclear]
            position = np.minimum(np.searchsorted(doubtful, values), len(doubtful) - 1)
            pair = np.flatnonzero(wanted)[doubtful[position] == values]
            query, row = np.divmod(pair, wanted.shape[1])
            sums = exact(points[block], points[block.start :], query, row)
            twice += int(np.searchsorted(held, sums).sum() + np.searchsorted(held, sums, "right").sum())
        yield twice
