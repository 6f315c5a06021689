r"""Similarity of every embedding of a set with every embedding of another.

A similarity is a name of the table below, or a function of x (n, d) and y (m, d) that gives (n, m): the larger, the
more alike. Losses give a function of one's own queries first, or soft neighbours, and then what these pick from.

========== =================================== =============================================================
name       s(x, y)                             unit of a temperature that divides it
========== =================================== =============================================================
``l2sq``   −‖x − y‖²                           a squared length
``l2``     −√(‖x − y‖² + 10⁻⁹)                 a length; 10⁻⁹ keeps the gradient finite where x = y
``l1``     −Σ\|x − y\|                         a length
``linf``   −max \|x − y\|                      a length
``cosine`` x·y / (‖x‖ ‖y‖)                     none; 0 where x or y is 0, with no gradient to that vector
========== =================================== =============================================================

The squares are sums over the dimensions, not means. ``l2sq`` and ``l2`` are computed as ‖x‖² + ‖y‖² − 2 x·y, that is,
by a product of matrices. This loses digits where x and y are far from 0 and near each other, so both are first moved by
the mean of y, which changes no distance; what is left is an error of about ε times the largest squared distance from
that mean, ε = 10⁻⁷ for float32.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240.

"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.linalg import vecdot, vector_norm

from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.methods.embeddings import check_arguments, match_types, without_autocast

__all__ = ["Similarity", "check_similarity", "logits", "origin", "recentre", "similarities"]

Similarity = str | Callable[[Tensor, Tensor], Tensor]
"""A name (``l2sq``, ``l2``, ``l1``, ``linf``, ``cosine``) or a function of (n, d) and (m, d) that gives (n, m)."""

NAMES = ("l2sq", "l2", "l1", "linf", "cosine")
DISTANCES = ("l2sq", "l2", "l1", "linf")


def similarities(x: Tensor, y: Tensor, similarity: Similarity = "l2sq") -> Tensor:
    """Every x with every y of the same set pair.

    Parameters
    ----------
    x : (..., n, d) floating
        Embeddings.
    y : (..., m, d) floating
        Others, with the same leading axes.
    similarity : str or callable
        One of the table above, or a function of (n, d) and (m, d) that gives (n, m).

    Returns
    -------
    (..., n, m) float32, or float64 where x or y is

    Raises
    ------
    DataError
        When the shapes or types do not fit.
    SetsupError
        When no similarity has that name.

    Examples
    --------
    >>> similarities(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]), "l2sq")
    tensor([[-25.,  -1.]])

    """
    check_arguments(similarities, locals())
    x, y = match_types(x, y)
    with without_autocast(x):
        left, right = x.reshape(-1, *x.shape[-2:]), y.reshape(-1, *y.shape[-2:])
        left, right = recentre(origin(right, similarity), left, right)
        result = -_squares(left, right) if similarity == "l2sq" else logits(left, right, similarity, 1.0)
        return result.reshape(*x.shape[:-1], y.shape[-2])


def logits(x: Tensor, y: Tensor, similarity: Similarity, temperature: float) -> Tensor:
    """s(x, y)/τ up to a term that depends on x alone, for a softmax over y.

    The term is −‖x‖²/τ of ``l2sq``: it is the same for every y, so that it cancels in a softmax over y, and ``l2sq`` is
    one product of matrices and a row that is added. What lies far from 0 should be moved there first (`origin`).

    Parameters
    ----------
    x : (pairs, n, d) float32 or float64
        Embeddings.
    y : (pairs, m, d) of the same type
        Others.
    similarity : str or callable
        As for `similarities`.
    temperature : float
        τ, in the unit of the similarity.

    Returns
    -------
    (pairs, n, m) of that type

    Examples
    --------
    >>> logits(torch.tensor([[[2.0]]]), torch.tensor([[[1.0], [3.0]]]), "l2sq", 1.0) - 2.0**2
    tensor([[[-1., -1.]]])

    """
    if similarity == "l2sq":
        lengths = vecdot(y, y).unsqueeze(-2)
        return torch.baddbmm(lengths, x, y.mT, beta=-1 / temperature, alpha=2 / temperature)
    if similarity == "cosine":
        return torch.bmm(_directions(x, temperature), _directions(y).mT)
    if similarity == "l2":
        return (_squares(x, y) + 1e-9).sqrt() / -temperature
    if similarity == "l1" or similarity == "linf":
        return torch.cdist(x, y, p=1.0 if similarity == "l1" else torch.inf) / -temperature
    if callable(similarity):
        return torch.stack([_called(similarity, *pair) for pair in zip(x, y, strict=True)]) / temperature
    raise _unknown(similarity)


def check_similarity(similarity: Similarity) -> None:
    """Raise SetsupError unless a similarity is a function, or there is one of that name.

    Examples
    --------
    >>> check_similarity("cosine")

    """
    if not callable(similarity) and similarity not in NAMES:
        raise _unknown(similarity)


def _unknown(similarity: object) -> SetsupError:
    return SetsupError(f"unknown similarity {similarity!r}{did_you_mean(str(similarity), NAMES)}; or pass a function")


def origin(y: Tensor, similarity: Similarity) -> Tensor | None:
    """Return an offset to subtract before `logits`, so that matrix products lose no digits: the mean of y.

    What depends on differences only does not change with it. So the derivative of all that follows with respect to the
    origin is 0, and it needs no gradient of its own. Cosines and functions of one's own may depend on where 0 is, which
    stays there for them.

    Parameters
    ----------
    y : (pairs, m, d) floating
        Embeddings.
    similarity : str or callable
        As for `similarities`.

    Returns
    -------
    (pairs, 1, d) of that type, or None where 0 stays

    Examples
    --------
    >>> y = torch.tensor([[[7.0], [9.0]]])
    >>> origin(y, "l2sq"), origin(y, "cosine")
    (tensor([[[8.]]]), None)

    """
    return y.detach().mean(-2, keepdim=True) if similarity in DISTANCES else None


def recentre(at: Tensor | None, *sets: Tensor) -> tuple[Tensor, ...]:
    """Sets as seen from their `origin`.

    Examples
    --------
    >>> recentre(torch.tensor([[[8.0]]]), torch.tensor([[[7.0], [9.0]]]))
    (tensor([[[-1.],
             [ 1.]]]),)

    """
    return sets if at is None else tuple(some - at for some in sets)


def _squares(x: Tensor, y: Tensor) -> Tensor:
    """‖x − y‖² (pairs, n, m), never below 0."""
    lengths = vecdot(x, x).unsqueeze(-1) + vecdot(y, y).unsqueeze(-2)
    return torch.baddbmm(lengths, x, y.mT, alpha=-2).clamp_min(0)


def _directions(x: Tensor, by: float = 1.0) -> Tensor:
    """Vectors of length 1/by; 0 stays 0 and has no gradient: dividing by some small number would give a vast one."""
    # an infinite length replaces 0, in one operation whose own derivative is 0 there
    lengths = torch.threshold(vector_norm(x, dim=-1, keepdim=True), 0, torch.inf)
    return x / (lengths if by == 1 else by * lengths)


def _called(similarity: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    result = similarity(x, y)
    if result.shape != (len(x), len(y)):
        given, wanted = tuple(result.shape), (len(x), len(y))
        raise DataError(
            f"similarity must return a tensor of shape {wanted} for x of shape {tuple(x.shape)} and y of shape "
            f"{tuple(y.shape)}, not of shape {given}"
        )
    return result
