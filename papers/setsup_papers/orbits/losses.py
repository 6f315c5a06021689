"""Losses on orbits: triplets with negatives mined from one matrix of distances, and rectification.

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders: learning from image
   transformation sets", 2017 (arXiv 1703.04775), section 3.
.. [2] F. Schroff, D. Kalenichenko, J. Philbin, "FaceNet: a unified embedding for face recognition and clustering",
   CVPR 2015, section 3.2.

"""

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from setsup.errors import DataError, SetsupError
from setsup.methods.embeddings import without_autocast

__all__ = ["Negatives", "mine_triplets", "rectification_loss", "triplet_loss"]

Negatives = Literal["hardest", "random"]


def triplet_loss(
    embeddings: Tensor,
    groups: Tensor,
    *,
    margin: float = 0.2,
    negatives: Negatives = "hardest",
    mask: Tensor | None = None,
) -> Tensor:
    """Mean over triplets of [d(a, p) + margin - d(a, n)]₊, where d is the squared L2 distance [1]_.

    Every image is an anchor a, with every other image of its group as a positive p. Each of these pairs gets one
    negative n, by the semi-hard rule [2]_: an image of another group that is farther from the anchor than the positive,
    ``"hardest"``: the nearest of these, ``"random"``: any of those inside of the margin. If none is inside, the term is
    0; if none is farther than the positive, n is the farthest image of another group. Among images at the same
    distance, the nearest is the first in the batch and the farthest the last. Which image is chosen has no gradient.

    Pairs without a negative, where a batch has one group only, are not triplets. Without triplets the loss is 0.

    Parameters
    ----------
    embeddings : (n, d) float
        Of a batch.
    groups : (n,) integers
        Orbit, or class, of each image; -1 where unknown, which is in no triplet.
    margin : float
        In units of squared distances.
    negatives : {"hardest", "random"}
        Which of the semi-hard ones; the random choice is torch's.
    mask : (n,) bool, optional
        False for images that are in no triplet, such as padding.

    Returns
    -------
    () float
        Of the embeddings' dtype.

    Raises
    ------
    DataError
        When the shapes disagree.
    SetsupError
        When the choice of negatives is unknown.

    Examples
    --------
    >>> points = torch.tensor([[0.0], [1.0], [1.05], [3.0]])
    >>> triplet_loss(points, torch.tensor([0, 0, 1, 1]), margin=0.2)  # terms 0.0975, 0, 2.9 and 0.0025
    tensor(0.7500)

    """
    if embeddings.ndim != 2 or groups.shape != embeddings.shape[:1]:
        raise DataError(
            f"embeddings must have the shape (n, d), and groups the shape (n,), not {tuple(embeddings.shape)} and "
            f"{tuple(groups.shape)}; flatten sets and positions first"
        )
    distances = _squared_distances(embeddings)
    anchor, near, far = mine_triplets(distances.detach(), groups, margin=margin, negatives=negatives, mask=mask)
    terms = (distances[anchor, near] + margin - distances[anchor, far]).relu()
    return terms.sum() / max(len(terms), 1)


def mine_triplets(
    distances: Tensor,
    groups: Tensor,
    *,
    margin: float = 0.2,
    negatives: Negatives = "hardest",
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Anchors, positives and negatives of a batch, by the rule of :func:`triplet_loss`.

    Time grows as n² log n.

    Parameters
    ----------
    distances : (n, n) float
        Of all pairs.
    groups, negatives, mask
        As for :func:`triplet_loss`.
    margin : float
        In units of the distances.

    Returns
    -------
    three of (t,) int64
        Images of each triplet, in order of anchors and then of positives.

    Raises
    ------
    DataError
        When the shapes disagree.
    SetsupError
        When the choice of negatives is unknown.

    Examples
    --------
    >>> points = torch.tensor([0.0, 1.0, 1.05, 3.0])
    >>> found = mine_triplets((points[:, None] - points).square(), torch.tensor([0, 0, 1, 1]))
    >>> torch.stack(found, 1).tolist()
    [[0, 1, 2], [1, 0, 3], [2, 3, 0], [3, 2, 1]]

    """
    if distances.ndim != 2 or not groups.shape == distances.shape[:1] == distances.shape[1:]:
        raise DataError(
            f"distances must have the shape (n, n), and groups the shape (n,), not {tuple(distances.shape)} and "
            f"{tuple(groups.shape)}"
        )
    if negatives not in get_args(Negatives):
        raise SetsupError(f"negatives must be one of {', '.join(get_args(Negatives))}, not {negatives!r}")
    here = groups >= 0 if mask is None else (groups >= 0) & mask
    same, both = groups[:, None] == groups, here[:, None] & here
    others = (both & ~same).sum(1)
    positive = same & both & (others > 0)[:, None]
    anchor, near = positive.fill_diagonal_(False).nonzero(as_tuple=True)
    # each anchor's negatives in order of their distance; others come last
    apart = distances.masked_fill(same | ~both, torch.inf)
    order = _argsort(apart)
    ordered = apart.gather(1, order)
    first = _beyond(ordered, anchor, distances[anchor, near])
    if negatives == "random":
        end = _beyond(ordered, anchor, distances[anchor, near] + margin, equal=True)
        first = first + (torch.rand_like(distances[anchor, near]) * (end - first).clamp(min=1)).long()
    return anchor, near, order[anchor, torch.minimum(first, others[anchor] - 1)]


def rectification_loss(rectified: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean over images of ‖x - x_c‖², the squared L2 distance of rectified images and canonical ones [1]_.

    Parameters
    ----------
    rectified, targets : (n, C, H, W) float
        What a decoder gives for each image, and the canonical image of its orbit.
    mask : (n,) bool, optional
        False for images that do not count.

    Returns
    -------
    () float

    Examples
    --------
    >>> rectification_loss(torch.zeros(2, 1, 4, 4), torch.ones(2, 1, 4, 4))
    tensor(16.)

    """
    if rectified.shape != targets.shape:
        raise DataError(
            f"rectified images must have the shape {tuple(targets.shape)} of their targets, not "
            f"{tuple(rectified.shape)}; pass one target for each image"
        )
    distances = (rectified - targets).square().flatten(1).sum(1)
    return distances.mean() if mask is None else torch.where(mask, distances, 0).sum() / mask.sum().clamp(min=1)


def _squared_distances(points: Tensor) -> Tensor:
    """Squared L2 distances of all pairs, (n, n); from 0 on."""
    lengths = points.square().sum(1)
    with without_autocast(points):  # products in 16 bits would lose what is near
        return (torch.addmm(lengths, points, points.T, alpha=-2) + lengths[:, None]).clamp(min=0)


def _argsort(values: Tensor) -> Tensor:
    """Order of each row (n, n), stable, so that equal values have the same order on every machine.

    numpy sorts whole numbers eight times as fast as it argsorts floats in a stable way: the bits of a float32, turned
    so that they increase with its value, are followed by its column.
    """
    if values.device.type != "cpu" or values.dtype == torch.float64:
        return values.argsort(dim=1, stable=True)
    bits = (values.float() + 0.0).numpy().view(np.uint32)  # -0.0 becomes 0.0
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    keys = bits << np.uint64(32) | np.arange(values.shape[1], dtype=np.uint64)
    keys.sort(axis=1)
    return torch.from_numpy((keys & np.uint64(0xFFFFFFFF)).astype(np.int64))


def _beyond(ordered: Tensor, rows: Tensor, values: Tensor, *, equal: bool = False) -> Tensor:
    """Place (p,) in ordered rows (n, n) of the first number above each value, or not below it; rows are ascending."""
    count = torch.bincount(rows, minlength=len(ordered))
    position = torch.arange(len(rows), device=rows.device) - (count.cumsum(0) - count)[rows]
    asked = ordered.new_zeros(len(ordered), int(count.max()) if len(rows) else 0)
    asked[rows, position] = values
    return torch.searchsorted(ordered, asked, right=not equal)[rows, position]
