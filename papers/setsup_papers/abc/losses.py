"""Losses of approximate bijective correspondence (ABC) between two sets of embeddings.

With S(x, y) = s(x, y)/τ for a similarity s of `setsup.methods.similarity` and a temperature τ, an embedding u_i of a
set U has its soft nearest neighbour in V, ũ_i = Σ_j softmax_j(S(u_i, v_j)) v_j, which should pick u_i again among U::

    L(U, V) = −(1/n) Σ_i log( exp S(u_i, ũ_i) / Σ_j exp S(u_j, ũ_i) )

Gradients flow through queries, weights, averages, and candidates. Embeddings are normalised within the cosine only; the
average is over unnormalised v_j.

All functions take sets of any two sizes, with leading axes for several pairs, over which they take the mean. Sets of
unlike sizes are padded and come with masks: a slot that is False is not a query, has no weight in an average, and is no
candidate, whatever its values. A pair with an empty set counts for nothing: the mean is over the others, and 0 where
there are none. Half precision is computed in float32, under autocast, too.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240.

"""

from typing import Literal

import torch
from torch import Tensor

from setsup.errors import DataError, SetsupError
from setsup.methods.embeddings import check_arguments, check_temperature, fill_padding, match_types, without_autocast
from setsup.methods.similarity import Similarity, logits, origin, recentre
from setsup_papers.abc.neighbours import averages, output_buffer, without_padding

__all__ = [
    "augmentation_loss",
    "correspondence_loss",
    "directed_loss",
    "double_augmentation_loss",
]


def directed_loss(
    queries: Tensor,
    keys: Tensor,
    similarity: Similarity = "l2sq",
    temperature: float = 1.0,
    *,
    candidates: Tensor | None = None,
    query_mask: Tensor | None = None,
    key_mask: Tensor | None = None,
) -> Tensor:
    """L(U, V): the soft nearest neighbour of each query among the keys should pick the query among its own set.

    Parameters
    ----------
    queries : (..., n, d) floating
        Embeddings u_i of the set where the way begins and ends.
    keys : (..., m, d) floating
        Embeddings v_j of the other set.
    similarity : str or callable
        As for `similarities`.
    temperature : float
        τ > 0, in the unit of the similarity; the same for both softmaxes.
    candidates : (..., n, d) floating, optional
        What the soft neighbours pick from: another augmentation of each query. The queries themselves by default.
    query_mask, key_mask : (..., n) and (..., m) bool, optional
        False for a slot that is padding. The candidates have the mask of the queries.

    Returns
    -------
    () float32 or float64, nats: the mean over queries and pairs

    Raises
    ------
    DataError
        When shapes or types do not fit.
    SetsupError
        When no similarity has that name, or τ is not positive.

    Examples
    --------
    >>> u, v = torch.tensor([[0.0], [9.0]]), torch.tensor([[1.0], [8.0], [9.0]])
    >>> directed_loss(u, v).round(decimals=3)
    tensor(0.)

    """
    check_arguments(directed_loss, locals())
    check_temperature(temperature)
    if candidates is not None and candidates.shape != queries.shape:
        given = f"{tuple(candidates.shape)} and {tuple(queries.shape)}"
        raise DataError(f"candidates are augmented copies of the queries and must have the same shape, not {given}")
    sets = (queries, keys) if candidates is None else (queries, keys, candidates)
    with without_autocast(queries):
        queries, keys, *copies = match_types(*sets)
        (queries, flat_mask), (keys, key_mask) = fill_padding(queries, query_mask), fill_padding(keys, key_mask)
        queries, keys, *copies = recentre(
            origin(keys, similarity), queries, keys, *(fill_padding(copy, query_mask)[0] for copy in copies)
        )
        candidates = copies[0] if copies else queries
        at = origin(candidates, similarity)
        proxies = averages(queries, keys, similarity, temperature, key_mask, seen_from=at)
        (candidates,) = recentre(at, candidates)
        return _picking(proxies, candidates, similarity, temperature, flat_mask, key_mask)


def correspondence_loss(
    u: Tensor,
    v: Tensor,
    similarity: Similarity = "l2sq",
    temperature: float = 1.0,
    *,
    u_mask: Tensor | None = None,
    v_mask: Tensor | None = None,
) -> Tensor:
    """L(U, V) + L(V, U), the sum of both directions.

    On single images without augmentation this is also the base loss of temporal cycle consistency (TCC), with which ABC
    is compared; TCC as it was published divides similarities by d as well, which a temperature of τ·d does here.

    Parameters
    ----------
    u, v : (..., n, d) and (..., m, d) floating
        Embeddings of two sets.
    similarity : str or callable
        As for `similarities`.
    temperature : float
        τ > 0, in the unit of the similarity: a squared length for ``l2sq``.
    u_mask, v_mask : (..., n) and (..., m) bool, optional
        False for a slot that is padding.

    Returns
    -------
    () float32 or float64, nats: the mean over pairs of the sum

    Raises
    ------
    DataError
        When shapes or types do not fit.
    SetsupError
        When no similarity has that name, or τ is not positive.

    Examples
    --------
    Where all embeddings are one, nothing tells 64 candidates apart, and the loss is 2 ln 64:

    >>> u = torch.ones(4, 64, 8)  # four pairs
    >>> correspondence_loss(u, u)
    tensor(8.3178)

    """
    check_arguments(correspondence_loss, locals())
    there = directed_loss(u, v, similarity, temperature, query_mask=u_mask, key_mask=v_mask)
    return there + directed_loss(v, u, similarity, temperature, query_mask=v_mask, key_mask=u_mask)


def double_augmentation_loss(
    u: tuple[Tensor, Tensor],
    v: tuple[Tensor, Tensor],
    similarity: Similarity = "l2sq",
    temperature: float = 1.0,
    *,
    neighbours: Literal["second", "first"] = "second",
    u_mask: Tensor | None = None,
    v_mask: Tensor | None = None,
) -> Tensor:
    """Both directions, each image augmented twice: copy 2 goes out, and its soft neighbour must pick copy 1.

    ::

        L(U, V) = −(1/n) Σ_i log( exp S(u_i⁽¹⁾, ũ_i⁽²⁾) / Σ_j exp S(u_j⁽¹⁾, ũ_i⁽²⁾) )

    with ũ_i⁽²⁾ the soft nearest neighbour of u_i⁽²⁾ in V; L(V, U) swaps the sets, not the copies.

    Parameters
    ----------
    u, v : pair of (..., n, d) and pair of (..., m, d) floating
        Embeddings of the first and the second copy of each set.
    similarity : str or callable
        As for `similarities`.
    temperature : float
        τ > 0, in the unit of the similarity.
    neighbours : {"second", "first"}
        Which copy of the other set the soft neighbours are made of. The paper leaves this open.
    u_mask, v_mask : (..., n) and (..., m) bool, optional
        False for a slot that is padding, in both copies.

    Returns
    -------
    () float32 or float64, nats: the mean over pairs of the sum of both directions

    Raises
    ------
    DataError
        When shapes or types do not fit.
    SetsupError
        When no similarity or copy has that name, or τ is not positive.

    Examples
    --------
    >>> u, v = torch.tensor([[0.0], [9.0]]), torch.tensor([[1.0], [8.0]])
    >>> double_augmentation_loss((u, u + 0.1), (v, v - 0.1)).round(decimals=3)
    tensor(0.)

    """
    check_arguments(double_augmentation_loss, locals())
    if neighbours not in ("second", "first"):
        raise SetsupError(
            "neighbours must be 'second' or 'first' (the copy from which soft neighbours are computed), not "
            f"{neighbours!r}"
        )
    of = 1 if neighbours == "second" else 0
    there = directed_loss(u[1], v[of], similarity, temperature, candidates=u[0], query_mask=u_mask, key_mask=v_mask)
    return there + directed_loss(
        v[1], u[of], similarity, temperature, candidates=v[0], query_mask=v_mask, key_mask=u_mask
    )


def augmentation_loss(
    queries: Tensor,
    candidates: Tensor,
    similarity: Similarity = "l2sq",
    temperature: float = 1.0,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """InfoNCE between two augmented copies of one set, in one direction: the baseline without a second set.

    ::

        −(1/n) Σ_i log( exp S(q_i, c_i) / Σ_j exp S(q_i, c_j) )

    Parameters
    ----------
    queries, candidates : (..., n, d) floating
        Embeddings of the two copies; the published experiment on Shapes3D asks with copy 1 among copy 2.
    similarity : str or callable
        As for `similarities`.
    temperature : float
        τ > 0, in the unit of the similarity.
    mask : (..., n) bool, optional
        False for a slot that is padding, in both copies.

    Returns
    -------
    () float32 or float64, nats: the mean over queries and pairs

    Raises
    ------
    DataError
        When shapes or types do not fit.
    SetsupError
        When no similarity has that name, or τ is not positive.

    Examples
    --------
    >>> augmentation_loss(torch.eye(3), torch.eye(3), "cosine") - (1 + 2 * torch.tensor(-1.0).exp()).log()
    tensor(0.)

    """
    check_arguments(augmentation_loss, locals())
    check_temperature(temperature)
    if queries.shape != candidates.shape:
        given = f"{tuple(queries.shape)} and {tuple(candidates.shape)}"
        raise DataError(f"queries and candidates are copies of one set and must have the same shape, not {given}")
    queries, candidates = match_types(queries, candidates)
    with without_autocast(queries):
        (queries, _), (candidates, mask) = fill_padding(queries, mask), fill_padding(candidates, mask)
        queries, candidates = recentre(origin(candidates, similarity), queries, candidates)
        return _picking(queries, candidates, similarity, temperature, mask, None)


def _picking(
    proxies: Tensor,
    candidates: Tensor,
    similarity: Similarity,
    temperature: float,
    mask: Tensor | None,
    other_mask: Tensor | None,
) -> Tensor:
    """Cross entropy of proxy i with candidate i, the mean over proxies and then over pairs that have members."""
    weighted = without_padding(logits(proxies, candidates, similarity, temperature), mask)
    losses = -torch.log_softmax(weighted, -1, out=output_buffer(weighted)).diagonal(dim1=-2, dim2=-1)
    if mask is None and other_mask is None:
        return losses.mean()
    if mask is None:
        mask = torch.ones_like(losses, dtype=torch.bool)
    counted = mask.any(-1) if other_mask is None else mask.any(-1) & other_mask.any(-1)
    of_pairs = losses.masked_fill(~mask, 0).sum(-1) / mask.sum(-1).clamp_min(1)
    return of_pairs.masked_fill(~counted, 0).sum() / counted.sum().clamp_min(1)
