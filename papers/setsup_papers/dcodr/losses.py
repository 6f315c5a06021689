"""The contrastive loss of DCoDR: images of one domain are told apart, so that embeddings need not tell domains apart.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A contrastive objective for learning disentangled representations", ECCV 2022
   (arXiv 2203.11284), section 4, and its published code.

"""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from setsup.errors import DataError, SetsupError
from setsup.methods.embeddings import check_temperature, without_autocast

__all__ = ["NegativeSource", "ShortDomains", "domain_contrast_loss"]

NegativeSource = Literal["domain", "batch"]
ShortDomains = Literal["all", "replace"]

_MOST = 64
"""Negatives that the published code draws at most where it draws them."""


def domain_contrast_loss(
    embeddings: Tensor,
    positives: Tensor | None,
    domains: Tensor,
    *,
    temperature: float = 0.2,
    negatives: NegativeSource = "domain",
    short: ShortDomains = "all",
    decoupled: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """Mean over images of -z·z⁺/τ + log(exp(z·z⁺/τ) + Σ exp(z·z⁻/τ)), with negatives z⁻ of the image's domain [1]_.

    Embeddings z and z⁺ are scaled to length 1. The images themselves are anchors and negatives, and z⁺ is one augmented
    copy of each, as in the published code; for the text of the paper, in which both are augmented copies, pass those of
    another copy as `embeddings`. The anchor itself is not a negative, and augmented copies are neither. There is no
    stop-gradient.

    An image without a negative, the only one of its domain, has the loss 0, or is left out if `decoupled`.

    Parameters
    ----------
    embeddings : (n, d) float
        Of the images of a batch, of any length above 0.
    positives : (n, d) float, optional
        Of an augmented copy of each. Without them, z·z⁺ is the constant 1, as in the ablation "no positives".
    domains : (n,) integers
        Domain of each image; -1 where unknown, which is in no term unless negatives are of the batch.
    temperature : float
        τ.
    negatives : {"domain", "batch"}
        All other images of the domain, or of the batch, whatever the domain is, as in the ablation "no domain
        negatives".
    short : {"all", "replace"}
        What to do if domains have different numbers of images. ``"all"`` takes the other images as they are;
        ``"replace"`` does as the published code: all anchors get one number of negatives, that of the average domain
        less 1 and at most 64, drawn by torch's random numbers, with replacement if the smallest domain has fewer. The
        two differ only if domains differ in size or have more than 65 images, and not with negatives of the batch.
    decoupled : bool
        Whether z·z⁺ is left out of the sum in the logarithm, as equations 5 and 7 of the paper can be read. The code
        has it there.
    mask : (n,) bool, optional
        False for images that are in no term, such as padding.

    Returns
    -------
    () float32 or float64, nats

    Raises
    ------
    DataError
        When the shapes disagree.
    SetsupError
        When the choice is unknown, or the temperature is not positive.

    Examples
    --------
    >>> z = torch.sin(1 + 3 * torch.arange(6.0)[:, None] + 7 * torch.arange(4.0))
    >>> copies = z + 0.2 * torch.cos(2 * torch.arange(6.0)[:, None] + torch.arange(4.0))
    >>> domains = torch.tensor([0, 0, 0, 1, 1, 1])
    >>> domain_contrast_loss(z, copies, domains)
    tensor(0.4347)
    >>> domain_contrast_loss(z, copies, domains, negatives="batch")
    tensor(0.9417)
    >>> domain_contrast_loss(z, None, domains)
    tensor(0.4089)

    """
    _check(embeddings, positives, domains, negatives, short, mask)
    check_temperature(temperature)
    here = domains >= 0 if negatives == "domain" else torch.ones_like(domains, dtype=torch.bool)
    here = here if mask is None else here & mask
    candidates = here[:, None] & here
    if negatives == "domain":
        candidates = candidates & (domains[:, None] == domains)
    candidates = candidates.fill_diagonal_(False)
    with without_autocast(embeddings):
        z = _unit(embeddings, here)
        similarities = z @ z.T / temperature
        near = torch.full_like(z[:, 0], 1 / temperature)
        if positives is not None:
            near = (z * _unit(positives, here)).sum(1) / temperature
    if short == "replace" and negatives == "domain":
        similarities, candidates = _drawn(similarities, candidates, domains, here)
    if decoupled:
        here = here & candidates.any(1)
        # rows without a negative have no finite logarithm, nor gradient
        candidates = candidates | ~here[:, None]
    far = similarities.masked_fill(~candidates, -torch.inf)
    terms = (far if decoupled else torch.cat([near[:, None], far], 1)).logsumexp(1) - near
    return torch.where(here, terms, 0).sum() / here.sum().clamp(min=1)


def _unit(embeddings: Tensor, here: Tensor) -> Tensor:
    """Of length 1, in float32 or float64; those in no term are 0, as gradients would take up their NaN otherwise."""
    exact = embeddings if embeddings.dtype == torch.float64 else embeddings.float()
    return functional.normalize(exact.masked_fill(~here[:, None], 0), dim=1)


def _drawn(similarities: Tensor, candidates: Tensor, domains: Tensor, here: Tensor) -> tuple[Tensor, Tensor]:
    """Similarities of one number of drawn negatives for each anchor, and which of them are some."""
    sizes = torch.unique(domains[here], return_counts=True)[1]
    if len(sizes) == 0:
        return similarities, candidates
    least, number = int(sizes.min()) - 1, min(_MOST, int(sizes.sum()) // len(sizes) - 1)
    if number < 1 or (least == number and least == int(sizes.max()) - 1):
        return similarities, candidates
    some = candidates.any(1, keepdim=True)
    weights = (candidates | ~some).to(similarities.dtype)
    places = torch.multinomial(weights, number, replacement=least < number)
    return similarities.gather(1, places), some.expand(-1, number)


def _check(
    embeddings: Tensor,
    positives: Tensor | None,
    domains: Tensor,
    negatives: str,
    short: str,
    mask: Tensor | None,
) -> None:
    shape = tuple(embeddings.shape)
    if embeddings.ndim != 2 or domains.shape != embeddings.shape[:1]:
        raise DataError(
            f"embeddings must have the shape (n, d), and domains the shape (n,), not {shape} and "
            f"{tuple(domains.shape)}; flatten sets and positions first"
        )
    if positives is not None and positives.shape != embeddings.shape:
        raise DataError(
            f"positives must have the shape {shape} of the embeddings, not {tuple(positives.shape)}; pass one copy of "
            "each image"
        )
    if mask is not None and (mask.dtype != torch.bool or mask.shape != domains.shape):
        raise DataError(
            f"mask must be a torch.bool tensor of shape {tuple(domains.shape)}, not {mask.dtype} of shape "
            f"{tuple(mask.shape)}"
        )
    if negatives not in get_args(NegativeSource):
        raise SetsupError(f"negatives must be one of {', '.join(get_args(NegativeSource))}, not {negatives!r}")
    if short not in get_args(ShortDomains):
        raise SetsupError(f"short must be one of {', '.join(get_args(ShortDomains))}, not {short!r}")
