r"""Losses between views: noise-contrastive estimation, softmax over a memory bank, over a batch, and over places [1]_.

With features z of unit length and a temperature τ, the score of an anchor and a candidate is their dot product. In the
losses on scores, a line's first candidate is the positive and the others are m negatives, of N images.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), and its published code.
.. [2] R. D. Hjelm et al., "Learning deep representations by mutual information estimation and maximization", ICLR 2019.

"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from setsup.errors import DataError, SetsupError, abbreviate
from setsup.methods.embeddings import check_arguments, check_temperature, match_types, without_autocast

__all__ = ["in_batch_loss", "nce_loss", "patch_loss", "softmax_loss"]

_EPSILON = 1e-7
"""Added to denominators, as in the published code."""


def nce_loss(scores: Tensor, images: int, normaliser: float, temperature: float = 0.07) -> Tensor:
    """Noise-contrastive estimation: tell the positive from m negatives that are drawn uniformly from N images [1]_.

    With p = exp(s/τ)/Z and the noise m/N, the loss of an anchor is
    -log(p₀/(p₀ + m/N + ε)) - Σₖ log((m/N)/(pₖ + m/N + ε)), ε = 10⁻⁷: a sum over its negatives. The mean over anchors is
    returned.

    Parameters
    ----------
    scores : (n, 1 + m) floating
        Dot products of anchors with their candidates, the positive first.
    images : int
        N.
    normaliser : float
        Z, which the published code estimates as N · mean(exp(s/τ)) of the first batch, and keeps.
    temperature : float
        τ.

    Returns
    -------
    () float32, or float64 where scores are

    Raises
    ------
    DataError
        When scores are no (n, 1 + m) floating tensor.
    SetsupError
        When N, Z or τ is not positive.

    Examples
    --------
    >>> round(float(nce_loss(torch.tensor([[0.9, 0.1, -0.2]]), images=8, normaliser=1e6)), 4)
    0.5019

    """
    scores = _check_scores(nce_loss, locals())
    check_temperature(temperature)
    if images < 1 or not 0 < normaliser < math.inf:
        raise SetsupError(
            f"images (N) must be 1 or more, and normaliser (Z) positive and finite, not {images} and {normaliser}"
        )
    with without_autocast(scores):
        noise = (scores.shape[1] - 1) / images
        logarithms = scores / temperature - math.log(normaliser)  # log p
        first = logarithms[:, 0]
        positive = first - (first.exp() + (noise + _EPSILON)).log()
        # in this form the sum of thousands of tiny terms loses no digits
        negatives = torch.log1p((logarithms[:, 1:].exp() + _EPSILON) / noise).sum(1)
        return (negatives - positive).mean()


def softmax_loss(scores: Tensor, temperature: float = 0.07) -> Tensor:
    """Cross-entropy of choosing the positive among all candidates; the mean over anchors.

    Parameters
    ----------
    scores : (n, 1 + m) floating
        Dot products of anchors with their candidates, the positive first.
    temperature : float
        τ.

    Returns
    -------
    () float32, or float64 where scores are

    Raises
    ------
    DataError
        When scores are no (n, 1 + m) floating tensor.
    SetsupError
        When τ is not positive.

    Examples
    --------
    >>> round(float(softmax_loss(torch.tensor([[0.9, 0.1, -0.2]]), temperature=1.0)), 4)
    0.5778

    """
    scores = _check_scores(softmax_loss, locals())
    check_temperature(temperature)
    with without_autocast(scores):
        return functional.cross_entropy(scores / temperature, scores.new_zeros(len(scores), dtype=torch.int64))


def in_batch_loss(
    anchors: Tensor, candidates: Tensor, temperature: float = 0.07, groups: Tensor | None = None
) -> Tensor:
    """Cross-entropy of finding one's own other view among those of all images of the batch; the mean over anchors.

    Parameters
    ----------
    anchors : (n, d) floating
        Features of one view, of unit length.
    candidates : (n, d) floating
        Features of another view of the same images.
    temperature : float
        τ.
    groups : (n,) integer, optional
        Images of one group, such as clips of one video, are not negatives of each other.

    Returns
    -------
    () float32, or float64 where features are

    Raises
    ------
    DataError
        When the shapes do not fit.
    SetsupError
        When τ is not positive.

    Examples
    --------
    >>> anchors = torch.eye(3)
    >>> round(float(in_batch_loss(anchors, anchors, temperature=1.0)), 4)
    0.5514
    >>> round(float(in_batch_loss(anchors, anchors, temperature=1.0, groups=torch.tensor([0, 0, 1]))), 4)
    0.3927

    """
    check_arguments(in_batch_loss, locals())
    check_temperature(temperature)
    anchors, candidates = match_types(anchors, candidates)
    if anchors.ndim != 2 or anchors.shape != candidates.shape:
        raise DataError(
            f"features of the two views must have the same shape (n, d), not {tuple(anchors.shape)} and "
            f"{tuple(candidates.shape)}"
        )
    with without_autocast(anchors):
        logits = anchors @ candidates.T / temperature
        own = torch.arange(len(logits), device=logits.device)
        if groups is not None:
            logits = logits.masked_fill(_same(groups, len(own)).fill_diagonal_(False), -math.inf)
        return functional.cross_entropy(logits, own)


def patch_loss(vectors: Tensor, maps: Tensor, groups: Tensor | None = None) -> Tensor:
    """Cross-entropy of choosing each place of an image among it and all places of all other images [2]_.

    For image b and place l the positive is g_b · f_bl, and the negatives are g_b · f_b'l' of all places l' of the other
    images b'. Scores are plain dot products. The mean over places and images is returned.

    Parameters
    ----------
    vectors : (n, d) floating
        g, the features of whole images in one view.
    maps : (n, d, h, w) floating
        f, the features of places in another view of the same images, or in the same one.
    groups : (n,) integer, optional
        Images of one group are not negatives of each other.

    Returns
    -------
    () float32, or float64 where features are

    Raises
    ------
    DataError
        When the shapes do not fit.

    Examples
    --------
    >>> vectors, maps = torch.eye(2), torch.eye(2)[:, :, None, None].expand(2, 2, 1, 3)
    >>> round(float(patch_loss(vectors, maps)), 4)
    0.7437

    """
    check_arguments(patch_loss, locals())
    if maps.ndim != 4 or vectors.ndim != 2 or vectors.shape != maps.shape[:2]:
        raise DataError(
            f"features must have the shape (n, d), and maps the shape (n, d, h, w), not {tuple(vectors.shape)} "
            f"and {tuple(maps.shape)}"
        )
    vectors, places = match_types(vectors, maps.flatten(2).movedim(1, 2).flatten(0, 1))
    with without_autocast(vectors):
        scores = (vectors @ places.T).reshape(len(vectors), len(vectors), -1)  # (n, n, places)
        own = torch.arange(len(scores), device=scores.device)
        hidden = own == own[:, None] if groups is None else _same(groups, len(own))
        others = scores.masked_fill(hidden[:, :, None], -math.inf).flatten(1).logsumexp(1)
        positives = scores[own, own]
        loss: Tensor = (torch.logaddexp(positives, others[:, None]) - positives).mean()
        return loss


def _check_scores(function: object, given: dict[str, object]) -> Tensor:
    """Scores in float32 or float64."""
    check_arguments(function, given)  # type: ignore[arg-type]
    scores = given["scores"]
    if not isinstance(scores, Tensor) or scores.ndim != 2 or scores.shape[1] < 2 or not scores.is_floating_point():
        found = f"{scores.dtype} of shape {tuple(scores.shape)}" if isinstance(scores, Tensor) else abbreviate(scores)
        raise DataError(
            f"scores must be a floating-point tensor of shape (n, 1 + m) with at least one negative, not {found}"
        )
    return scores if scores.dtype == torch.float64 else scores.float()


def _same(groups: Tensor, count: int) -> Tensor:
    """Which images are of one group, (n, n) bool."""
    if tuple(groups.shape) != (count,):
        raise DataError(f"groups must have the shape ({count},), one number per image, not {tuple(groups.shape)}")
    return groups == groups[:, None]
