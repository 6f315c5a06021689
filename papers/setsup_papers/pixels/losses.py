"""Losses on single pixels: within a pair of views, and between the pairs of a batch [1]_; and InfoNCE of matches.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), and its published code.

"""

import math
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from setsup.errors import DataError, SetsupError
from setsup.methods.embeddings import check_temperature, without_autocast

__all__ = ["Balance", "Norm", "between_loss", "match_loss", "pixel_distances", "within_loss"]

Norm = Literal["inf", "l1", "l2"]
Balance = Literal["pooled", "per_part"]

_ORDERS = {"inf": math.inf, "l1": 1.0, "l2": 2.0}


def pixel_distances(first: Tensor, second: Tensor, norm: Norm = "inf") -> Tensor:
    """Distances of features, as the losses have them: half the maximum, the mean or the mean square over channels.

    With e = first - second and D channels these are ½ max |e_c| (``"inf"``), 1/(2D) Σ |e_c| (``"l1"``) and
    1/(2D) Σ e_c² (``"l2"``), as in the published code of [1]_. The text has p-norms without the factors; for ``"inf"``
    that is another scale of features.

    Parameters
    ----------
    first, second : (n, D, …) float
        Features of pixels that are compared one by one.
    norm : {"inf", "l1", "l2"}
        Which distance.

    Returns
    -------
    (n, …) float
        Of the features' dtype, 0 or more.

    Raises
    ------
    SetsupError
        When the norm is unknown.

    Examples
    --------
    >>> one, two = torch.tensor([[1.0, -3.0]]), torch.zeros(1, 2)
    >>> [pixel_distances(one, two, norm).item() for norm in ("inf", "l1", "l2")]
    [1.5, 1.0, 2.5]

    """
    _check_norm(norm)
    apart = first - second
    if norm == "inf":
        return apart.abs().amax(1) / 2
    return (apart.abs() if norm == "l1" else apart.square()).mean(1) / 2


def within_loss(
    first: Tensor,
    second: Tensor,
    partner: Tensor,
    positive: Tensor,
    valid: Tensor | None = None,
    *,
    norm: Norm = "inf",
    balance: Balance = "pooled",
) -> Tensor:
    """Loss within pairs of views: partners that show the same place at distance 0, random partners at distance ½ [1]_.

    A pixel at distance d from its partner has d² + d if the partner shows the same place, and d² - d if it is random.
    ``"pooled"`` is the mean of these over the pixels of a pair, plus (1 - f)/4 with f the share of positive ones among
    all of its pixels, as in the published code: where all pixels count, f · E[d² + d] + (1 - f) · E[(d - ½)²].
    ``"per_part"`` is E[d² + d] + E[(d - ½)²], the mean of each part by itself, as in the text but for the constant.
    Pairs of views have equal weight.

    Parameters
    ----------
    first, second : (n, D, p) float
        Features of the pixels of view 1 and of view 2, of n pairs.
    partner : (n, p) int64
        For each pixel of view 1 a pixel of view 2.
    positive : (n, p) bool
        Whether the partner shows the same place.
    valid : (n, p) bool, optional
        False for pixels that do not count.
    norm : {"inf", "l1", "l2"}
        As for :func:`pixel_distances`.
    balance : {"pooled", "per_part"}
        Weight of the two parts.

    Returns
    -------
    () float
        0 or more where all pixels count.

    Raises
    ------
    DataError
        When the shapes disagree.
    SetsupError
        When there is no such norm or balance.

    Examples
    --------
    >>> features = torch.tensor([[[0.0, 1.0]]])  # one pair of views, one channel, two pixels
    >>> partner, positive = torch.tensor([[0, 0]]), torch.tensor([[True, False]])
    >>> within_loss(features, features, partner, positive)
    tensor(0.)

    """
    if balance not in get_args(Balance):
        raise SetsupError(f"balance must be one of {', '.join(get_args(Balance))}, not {balance!r}")
    counted = _check_pixels(first, second, partner, positive, valid)
    moved = _moved(second, partner)
    if valid is not None:  # NaN of a pixel that does not count would be in the gradient of those that do
        first, moved = (features.masked_fill(~counted[:, None], 0) for features in (first, moved))
    distances = pixel_distances(first, moved, norm)
    terms = distances.square() + torch.where(positive, distances, -distances)
    if balance == "pooled":
        return (_mean(terms, counted) + (~positive).float().mean(1) / 4).mean()
    parts = [_mean(terms, counted & positive), _mean(terms + 0.25, counted & ~positive)]
    return (parts[0] + parts[1]).mean()


def between_loss(
    first: Tensor, second: Tensor, partner: Tensor, valid: Tensor | None = None, *, norm: Norm = "inf"
) -> Tensor:
    """Loss between pairs of views: pixels of different images at distance ½ [1]_.

    For all a < b, pixel i of view 1 of pair a is compared with the partner of pixel i in view 2 of pair b: (d - ½)²,
    averaged over pixels, then over the n(n - 1)/2 combinations, as in the published code. Distances of one pixel in all
    pairs are one matrix, n × n, so that memory is p · n² numbers and not D times that.

    Parameters
    ----------
    first, second, partner, valid, norm
        As for :func:`within_loss`; `valid` is that of view 1 of pair a.

    Returns
    -------
    () float
        0 or more; 0 for a single pair.

    Raises
    ------
    DataError
        When the shapes disagree.
    SetsupError
        When the norm is unknown.

    Examples
    --------
    >>> features = torch.tensor([[[0.0]], [[1.0]]])  # two pairs of views, one channel, one pixel
    >>> between_loss(features, features, torch.tensor([[0], [0]]))
    tensor(0.)

    """
    _check_norm(norm)
    counted = _check_pixels(first, second, partner, partner, valid)
    pairs, channels, _ = first.shape
    moved = _moved(second, partner)
    if valid is not None:  # a weight of 0 times NaN would be NaN
        first = first.masked_fill(~counted[:, None], 0)
        moved = moved.masked_fill(~counted.any(0), 0)
    if pairs < 2:
        return first.sum() * 0
    # (p, n, D) float: cdist has neither halves nor bfloat16
    of_first, of_moved = (features.permute(2, 0, 1).float() for features in (first, moved))
    apart = torch.cdist(of_first, of_moved, _ORDERS[norm], compute_mode="donot_use_mm_for_euclid_dist")
    distances = {"inf": apart, "l1": apart / channels, "l2": apart.square() / channels}[norm] / 2
    terms = (distances - 0.5).square()  # (p, a, b)
    weight = counted / counted.sum(1, keepdim=True).clamp(min=1)
    with without_autocast(terms):
        means = torch.einsum("pab,ap->ab", terms, weight)
    if norm == "inf":  # cdist's maximum passes over NaN
        means = means + 0 * (of_first.detach().mean() + of_moved.detach().mean())
    return means.triu(1).sum() / (pairs * (pairs - 1) / 2)


def match_loss(first: Tensor, second: Tensor, places: Tensor, temperature: float = 0.1) -> Tensor:
    """InfoNCE of the matches of a pair of views, in both directions.

    Mean over pixels i of CE(cos(first_i, second_j) / temperature over j, i), averaged with the same from `second` to
    `first`. A match that ends at the same pixel of view 2 is not a negative. This is the loss of contrastive predictive
    coding [2]_ on pixels; [1]_ does not use it.

    Parameters
    ----------
    first, second : (k, D) float
        Features of k ≥ 2 pixels of view 1, and of the pixels of view 2 that show the same points.
    places : (k,) int64
        These pixels of view 2, as y · width + x.
    temperature : float
        Temperature, above 0.

    Returns
    -------
    () float32
        Loss, 0 or more.

    Raises
    ------
    DataError
        When the shapes disagree.
    SetsupError
        When the temperature is not above 0.

    References
    ----------
    .. [2] A. van den Oord, Y. Li, O. Vinyals, "Representation learning with contrastive predictive coding", 2018
       (arXiv 1807.03748).

    Examples
    --------
    >>> features = torch.eye(2)
    >>> match_loss(features, features, torch.tensor([5, 9]), temperature=1.0)  # log(1 + exp(-1))
    tensor(0.3133)
    >>> match_loss(features, features, torch.tensor([5, 5]), temperature=1.0)
    tensor(0.)

    """
    check_temperature(temperature)
    if first.ndim != 2 or first.shape != second.shape or len(first) < 2 or places.shape != first.shape[:1]:
        raise DataError(
            "features of matches must have the shape (k, D) in both views, k 2 or more, and places (k,), not "
            f"{tuple(first.shape)}, {tuple(second.shape)} and {tuple(places.shape)}"
        )
    with without_autocast(first):
        one, two = (functional.normalize(features.float(), dim=1) for features in (first, second))
        similar = one @ two.T / temperature
        same = (places[:, None] == places) & ~torch.eye(len(places), dtype=torch.bool, device=places.device)
        similar = similar.masked_fill(same, -math.inf)
        own = torch.arange(len(places), device=places.device)
        return (functional.cross_entropy(similar, own) + functional.cross_entropy(similar.T, own)) / 2


def _moved(second: Tensor, partner: Tensor) -> Tensor:
    """Features of the partners, (n, D, p)."""
    return second.gather(2, partner[:, None].expand(-1, second.shape[1], -1))


def _mean(terms: Tensor, counted: Tensor) -> Tensor:
    """Mean over the counted pixels of each pair, (n,); 0 where there are none."""
    return torch.where(counted, terms, 0).sum(1) / counted.sum(1).clamp(min=1)


def _check_norm(norm: str) -> None:
    if norm not in _ORDERS:
        raise SetsupError(f"norm must be one of {', '.join(_ORDERS)}, not {norm!r}")


def _check_pixels(first: Tensor, second: Tensor, partner: Tensor, flags: Tensor, valid: Tensor | None) -> Tensor:
    """Which pixels count, (n, p) bool."""
    if first.ndim != 3 or second.ndim != 3 or first.shape[:2] != second.shape[:2]:
        raise DataError(
            "features of both views must have the shape (n, D, pixels), with the same n and D, not "
            f"{tuple(first.shape)} and {tuple(second.shape)}; flatten height and width first"
        )
    wanted = (len(first), first.shape[2])
    for name, given in (("partner", partner), ("positive", flags), ("valid", valid)):
        if given is not None and tuple(given.shape) != wanted:
            raise DataError(
                f"{name} must have the shape {wanted}, one value per pixel of view 1, not {tuple(given.shape)}"
            )
    return torch.ones_like(partner, dtype=torch.bool) if valid is None else valid
