"""Pairs of images of one set, for methods that learn from images two by two."""

import torch
from torch import Tensor

from setsup.errors import DataError
from setsup.loading.batch import Batch
from setsup.methods.networks.images import unit_range

__all__ = ["pair_images"]


def pair_images(batch: Batch) -> tuple[Tensor, Tensor]:
    """Images 0 and 1 of each set, then 2 and 3 of each, and so on.

    Neighbours in the result are of different sets, the last and the first too, so that one rolled by a place has
    partners of other sets. Where padding is left out, pairs are put into another order for that: those of the sets with
    most pairs first, on every other place.

    Parameters
    ----------
    batch : dict
        ``image`` (sets, size, C, H, W) uint8, or float in [0, 1]; ``mask`` (sets, size) bool. Pairs with padding are
        left out.

    Returns
    -------
    two of (pairs, C, H, W) float32 in [0, 1]

    Raises
    ------
    DataError
        When there are no two sets, or their size is odd; when more than half of the pairs are of one set.

    """
    images, mask = batch["image"], batch["mask"]
    if images.ndim != 5 or len(images) < 2 or images.shape[1] % 2:
        raise DataError(
            "images must have the shape (sets, size, C, H, W) with at least two sets of an even size, not "
            f"{tuple(images.shape)}; draw such sets, for example with --sampler.sets 64 --sampler.size 2"
        )
    first, second = (images[:, side::2].transpose(0, 1).flatten(0, 1) for side in (0, 1))
    whole = (mask[:, 0::2] & mask[:, 1::2]).T.flatten()
    if int(whole.sum()) < 2:
        raise DataError("a batch must have at least two pairs of images that are not padding; draw larger sets")
    if whole.all():
        return unit_range(first), unit_range(second)
    order = torch.arange(len(images), device=whole.device).repeat(images.shape[1] // 2)[whole]
    kept = whole.nonzero().flatten()[_apart(order)]
    return unit_range(first[kept]), unit_range(second[kept])


def _apart(sets: Tensor) -> Tensor:
    """Order (n,) in which pairs of some sets (n,) have no neighbour of their own set."""
    counts = sets.bincount()[sets]
    if 2 * int(counts.max()) > len(sets):
        raise DataError(
            f"{int(counts.max())} of the {len(sets)} pairs of images in a batch come from one set, so adjacent pairs "
            "cannot all come from different sets; draw sets without padding, for example with --sampler.small drop"
        )
    # sets with most pairs first; those of one set stay together
    sort = (counts * (int(sets.max()) + 1) + sets).argsort(descending=True, stable=True)
    places = torch.arange(len(sets), device=sets.device)
    inverse = torch.empty_like(sort)
    inverse[torch.cat([places[0::2], places[1::2]])] = sort
    return inverse
