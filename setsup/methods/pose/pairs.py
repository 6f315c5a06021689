"""Pairs of images of one set, for methods that learn from images two by two."""

from torch import Tensor

from setsup.errors import DataError
from setsup.loading.batch import Batch
from setsup.methods.networks.images import unit_range

__all__ = ["pair_images"]


def pair_images(batch: Batch) -> tuple[Tensor, Tensor]:
    """Images 0 and 1 of each set, then 2 and 3 of each, and so on.

    Neighbours in the result are of different sets, so that one rolled by a place has partners of other sets.

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
        When there are no two sets, or their size is odd.

    """
    images, mask = batch["image"], batch["mask"]
    if images.ndim != 5 or len(images) < 2 or images.shape[1] % 2:
        raise DataError(
            f"images came as {tuple(images.shape)}, but pairs of images of one set need (sets, size, C, H, W) with two "
            "sets or more and an even size: draw so, as --sampler.sets 64 --sampler.size 2"
        )
    first, second = (images[:, place::2].transpose(0, 1).flatten(0, 1) for place in (0, 1))
    whole = (mask[:, 0::2] & mask[:, 1::2]).T.flatten()
    if int(whole.sum()) < 2:
        raise DataError("a batch has fewer than two pairs of images that are no padding: draw larger sets")
    return unit_range(first[whole]), unit_range(second[whole])
