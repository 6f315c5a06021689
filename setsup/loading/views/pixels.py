"""Pairs of pixels: two views of each image, and which pixel of the one is which pixel of the other."""

from dataclasses import KW_ONLY, dataclass, fields

import numpy as np
import torch

from setsup.arrays import Size, Words
from setsup.checks import check_integer
from setsup.correspondence import planar
from setsup.correspondence.pairs import AffinePairs, affine_pairs
from setsup.errors import DataError, SetsupError
from setsup.loading.batch import Batch
from setsup.loading.crops import check_box
from setsup.loading.transforms.apply import apply_steps
from setsup.loading.transforms.by_image import blocks, spread
from setsup.loading.transforms.choices import Move, Steps
from setsup.loading.transforms.modalities import get_images, keyed_slots
from setsup.loading.transforms.operations.base import check_probability, pair
from setsup.loading.views.names import add_views, check_names
from setsup.random import stream_key

__all__ = ["PlanarPairs"]


@dataclass(frozen=True)
class PlanarPairs:
    """Two views of each image, and a partner in the second for every pixel of the first: single-pixel contrast.

    View 1 is the image warped about a random centre: rotated by any angle, with noise of standard deviation 0.1 on
    every entry of the 2 × 2 matrix. View 2 is cropped around a centre shifted by whole pixels. An image that is too
    small for both is resized first: with ``size=32``, a digit becomes 49 × 49 pixels. Resampling is bilinear, and
    colors are unchanged. The distribution is that of :func:`setsup.correspondence.pairs.affine_pairs`, after [1]_.

    Other operations that move pixels must come before; after it, only photometric operations may change the views.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of both views, h × w.
    keep : float
        0 … 1: positive share of the pixels whose partner is strictly inside view 2. All others get a random partner.
        The paper uses 0.125, and 0.25 for Coloured MNIST, where about 0.18 of all pixels are then positive.
    shift : int, optional
        Maximum shift of the second centre in x and y, in pixels; a quarter of the views' height by default.
    image : str
        Modality to make views of: uint8, or float32 in 0 … 1.
    names : tuple of five str
        Names of the new modalities.
    seed, stream : int, str
        0 ≤ seed < 2⁶⁴; two with the same seed draw the same pairs unless their streams differ.

    Returns
    -------
    batch
        With ``view_1`` and ``view_2``, (sets, size, channels, h, w) float32 in 0 … 1, zero outside the image; and
        for the pixels of view 1, row by row, (sets, size, h·w) each: ``partner``, int64, a pixel y · w + x of
        view 2; ``positive``, bool, whether the partner shows the same place; ``valid``, bool, False where the pixel
        is outside the image. View 2 is always inside.

    Raises
    ------
    SetsupError
        When the modality or the step is missing, or the batch already has one of the names.
    DataError
        When the images are neither uint8 nor float32.

    References
    ----------
    .. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
       (arXiv 2512.04970), first experiment, and its published code.

    Examples
    --------
    >>> import torch
    >>> from setsup.loading.views import PlanarPairs
    >>> batch = PlanarPairs(size=32, keep=0.25)({"image": torch.rand(1, 8, 3, 64, 64), "step": 0})
    >>> tuple(batch["view_1"].shape), tuple(batch["partner"].shape)
    ((1, 8, 3, 32, 32), (1, 8, 1024))

    Features of both views, (n, features, h, w) each, as features of pairs:

    >>> one, two = (batch[name].flatten(0, 1).flatten(2) for name in ("view_1", "view_2"))
    >>> partner = batch["partner"].flatten(0, 1)[:, None].expand_as(two)
    >>> (one - two.gather(2, partner)).shape
    torch.Size([8, 3, 1024])

    """

    size: int | Size = 32
    keep: float = 0.125
    shift: int | None = None
    image: str = "image"
    names: tuple[str, ...] = ("view_1", "view_2", "partner", "positive", "valid")
    _: KW_ONLY
    seed: int = 0
    stream: str = "PlanarPairs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_box(self.size, "PlanarPairs"))
        check_probability(self.keep, "PlanarPairs: keep")
        if self.shift is not None:
            check_integer(self.shift, "shift", SetsupError)
        check_names(self.names, 5)
        stream_key(self.seed, self.stream)

    def __call__(self, batch: Batch) -> Batch:
        """Add the views and what belongs to their pixels."""
        images, size = get_images(batch, self.image), pair(self.size)
        if images.dtype not in (torch.uint8, torch.float32):
            raise DataError(f"{self.image!r} must be uint8 or float32 in 0 … 1, not {images.dtype}")
        *lead, _, height, width = images.shape
        keys = keyed_slots(batch, self.seed, self.stream, lead).keys
        drawn = _drawn(keys, (height, width), size, self.shift, self.keep)
        matrices = np.concatenate([drawn.to_view_1, drawn.to_view_2])
        steps: Steps = [Move(matrices, size)]
        if drawn.source != (height, width):
            larger = planar.resize(height, width, *drawn.source)
            steps.insert(0, Move(np.broadcast_to(larger, matrices.shape), drawn.source))
        rows = np.arange(len(matrices))
        both = apply_steps(images.flatten(0, -4), steps, rows % max(1, len(keys)), rows, 0.0, eight_bit=False)
        views = both[: len(keys)], both[len(keys) :]
        maps = [torch.from_numpy(array).to(images.device) for array in (drawn.partner, drawn.positive, drawn.valid)]
        return add_views(batch, self.names, (*views, *maps), lead)


def _drawn(keys: Words, image: Size, size: Size, shift: int | None, keep: float) -> AffinePairs:
    """What :func:`affine_pairs` draws for all keys, in several threads."""
    parts = [numbers.start for numbers in blocks(len(keys), size[0] * size[1])][1:]
    drawn = spread(lambda some: affine_pairs(some, image, size, shift=shift, keep=keep), np.split(keys, parts))
    names = [field.name for field in fields(AffinePairs) if field.name != "source"]
    joined = {name: np.concatenate([getattr(pairs, name) for pairs in drawn]) for name in names}
    return AffinePairs(source=drawn[0].source, **joined)
