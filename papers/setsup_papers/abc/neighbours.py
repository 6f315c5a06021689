"""Soft nearest neighbours: for each query the average of another set, weighted by likeness.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240.

"""

import torch
from torch import Tensor

from setsup.methods.embeddings import check_arguments, check_temperature, fill_padding, match_types, without_autocast
from setsup.methods.similarity import Similarity, logits, origin, recentre

__all__ = ["averages", "output_buffer", "soft_nearest_neighbours", "without_padding"]


def soft_nearest_neighbours(
    queries: Tensor,
    keys: Tensor,
    similarity: Similarity = "l2sq",
    temperature: float = 1.0,
    *,
    key_mask: Tensor | None = None,
) -> Tensor:
    """Average the keys, each by how alike it is to a query: Σ_j softmax_j(S(u_i, v_j)) v_j.

    Parameters
    ----------
    queries : (..., n, d) floating
        Embeddings u_i.
    keys : (..., m, d) floating
        Embeddings v_j of the other set.
    similarity : str or callable
        As for `similarities`.
    temperature : float
        τ > 0, in the unit of the similarity: a squared length for ``l2sq``.
    key_mask : (..., m) bool, optional
        False for a slot of the keys that is padding.

    Returns
    -------
    (..., n, d) float32, or float64 where one of the sets is; 0 where all keys are padding

    Raises
    ------
    DataError
        When shapes or types do not fit.
    SetsupError
        When no similarity has that name, or τ is not positive.

    Examples
    --------
    >>> soft_nearest_neighbours(torch.tensor([[0.0]]), torch.tensor([[-1.0], [1.0]]))
    tensor([[0.]])

    """
    check_arguments(soft_nearest_neighbours, locals())
    check_temperature(temperature)
    queries, keys = match_types(queries, keys)
    shape = queries.shape
    with without_autocast(queries):
        (queries, _), (keys, key_mask) = fill_padding(queries, None), fill_padding(keys, key_mask)
        at = origin(keys, similarity)
        queries, keys = recentre(at, queries, keys)
        back = None if at is None else -at
        return averages(queries, keys, similarity, temperature, key_mask, seen_from=back).reshape(shape)


def averages(
    queries: Tensor,
    keys: Tensor,
    similarity: Similarity,
    temperature: float,
    key_mask: Tensor | None,
    *,
    seen_from: Tensor | None = None,
) -> Tensor:
    """Soft nearest neighbours of sets that were checked, filled (`fill_padding`) and moved to their `origin`.

    `queries` (pairs, n, d) float32 or float64; `keys` (pairs, m, d) of the same type; `key_mask` (pairs, m) bool,
    optional; `seen_from` (pairs, 1, d) of that type, optional; returns (pairs, n, d) of that type.
    """
    scores = without_padding(logits(queries, keys, similarity, temperature), key_mask)
    weights = torch.softmax(scores, -1, out=output_buffer(scores))
    return torch.bmm(weights, keys) if seen_from is None else torch.baddbmm(seen_from, weights, keys, beta=-1)


def output_buffer(found: Tensor) -> Tensor | None:
    """Logits that a softmax may be written over, since no gradient is recorded; or None: write it elsewhere.

    Of 1,000 members they have 4 MB, and new memory of that size can take as long to get as the product that fills it.

    Examples
    --------
    >>> found = torch.zeros(1, 2)
    >>> output_buffer(found) is None
    True
    >>> with torch.no_grad():
    ...     torch.softmax(found, -1, out=output_buffer(found)) is found
    True

    """
    return None if torch.is_grad_enabled() else found


def without_padding(found: Tensor, mask: Tensor | None) -> Tensor:
    """Logits that give padding no weight; a set of nothing else keeps its own, against 0/0.

    `found` (pairs, n, m) floating; `mask` (pairs, m) bool, optional; returns (pairs, n, m) of that type.

    Examples
    --------
    >>> without_padding(torch.zeros(2, 1, 2), torch.tensor([[True, False], [False, False]]))
    tensor([[[0., -inf]],
    <BLANKLINE>
            [[0., 0.]]])

    """
    if mask is None:
        return found
    weightless = ~mask & mask.any(-1, keepdim=True)
    return found.masked_fill(weightless.unsqueeze(-2), -torch.inf)
