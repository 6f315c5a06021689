"""Views of places in images: patches of a grid, pairs of patches.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849).

"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch

from setsup.checks import check_integer
from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.loading.batch import Batch
from setsup.loading.transforms.modalities import KINDS, get_images, get_tensor, has_slots, keyed_slots
from setsup.loading.views.names import add_views, check_names
from setsup.random import stream_key

__all__ = ["PatchPairs", "Patches"]

_CUT = ("color", "label", "depth", "normal")  # kinds that are cut


@dataclass(frozen=True)
class Patches:
    """All patches of each image on a grid, row by row: for 16 pixels every 8, as in [1]_, 49 from 64 × 64 pixels.

    The first patch begins in the upper left corner; pixels that remain on the right and at the bottom are left out.

    Parameters
    ----------
    size : int
        Side length of a patch, in pixels.
    stride : int
        Distance from one patch to the next, in pixels.
    image : str
        Modality to cut, of any type.
    into : str
        Name of the new modality.
    kind : str
        Kind of the modality: ``color``, images; ``label`` or ``depth``, (sets, size, height, width), not (…, k);
        ``normal``, (sets, size, height, width, 3).

    Returns
    -------
    batch
        With (sets, size, rows·columns, channels, size, size) of the image's type, where rows = ⌊(height − size) /
        stride⌋ + 1, and columns likewise; without channels, or with 3 at the end, depending on the kind. It is a view
        of the image's memory if the grid has one row or one column.

    Raises
    ------
    SetsupError
        When the modality is missing, an image is smaller than a patch, or the batch already has ``into``.

    Examples
    --------
    >>> import torch
    >>> from setsup.loading.views import Patches
    >>> tuple(Patches()({"image": torch.zeros(2, 4, 3, 64, 64)})["patches"].shape)
    (2, 4, 49, 3, 16, 16)

    """

    size: int = 16
    stride: int = 8
    image: str = "image"
    into: str = "patches"
    kind: Literal["color", "label", "depth", "normal"] = "color"

    def __post_init__(self) -> None:
        check_integer(self.size, "size", SetsupError, 1)
        check_integer(self.stride, "stride", SetsupError, 1)
        _check_kind(self.kind)

    def __call__(self, batch: Batch) -> Batch:
        """Add the patches."""
        planes, lead, restored = get_planes(batch, self.image, self.kind)
        _check_room(planes, self.image, self.size, f"patches of {self.size} pixels")
        # (images, channels, rows, columns, size, size)
        grid = planes.unfold(-2, self.size, self.stride).unfold(-2, self.size, self.stride)
        return add_views(batch, (self.into,), (restored(grid.movedim(1, 3).flatten(1, 2)),), lead)


@dataclass(frozen=True)
class PatchPairs:
    """Two patches of each image, the second shifted right and down by the same distance, as in figure 5 of [1]_.

    The first begins at (x, y), the second at (x + offset, y + offset); x and y are uniform over the positions where
    both are in the image. The larger the offset, the less they have in common.

    Parameters
    ----------
    size : int
        Side length of a patch, in pixels.
    offset : int
        Offset in x and y, in pixels: 64 … 384 in [1]_, on images 2,000 pixels wide.
    image : str
        Modality to cut, of any type.
    names : (str, str)
        Names of the two patches.
    kind : str
        Kind of the modality, as for :class:`Patches`.
    seed, stream : int, str
        0 ≤ seed < 2⁶⁴; two with the same seed draw the same x and y unless their streams differ.

    Returns
    -------
    batch
        With (sets, size, channels, size, size) of the image's type under each name, or the axes of its kind.

    Raises
    ------
    SetsupError
        When the modality or the step is missing, an image is too small, or the batch already has one of the names.

    Examples
    --------
    >>> import torch
    >>> from setsup.loading.views import PatchPairs
    >>> pairs = PatchPairs(size=64, offset=128)({"image": torch.zeros(1, 4, 3, 256, 256), "step": 0})
    >>> tuple(pairs["patch_1"].shape), tuple(pairs["patch_2"].shape)
    ((1, 4, 3, 64, 64), (1, 4, 3, 64, 64))

    """

    size: int = 64
    offset: int = 64
    image: str = "image"
    names: tuple[str, str] = ("patch_1", "patch_2")
    _: KW_ONLY
    kind: Literal["color", "label", "depth", "normal"] = "color"
    seed: int = 0
    stream: str = "PatchPairs"

    def __post_init__(self) -> None:
        check_integer(self.size, "size", SetsupError, 1)
        check_integer(self.offset, "offset", SetsupError)
        check_names(self.names, 2)
        _check_kind(self.kind)
        stream_key(self.seed, self.stream)

    def __call__(self, batch: Batch) -> Batch:
        """Add the two patches."""
        flat, lead, restored = get_planes(batch, self.image, self.kind)
        what = f"two patches of {self.size} pixels with an offset of {self.offset}"
        _check_room(flat, self.image, self.size + self.offset, what)
        height, width = flat.shape[-2:]
        slots = keyed_slots(batch, self.seed, self.stream, lead)
        x = torch.from_numpy(slots.below(width - self.size - self.offset + 1, 0)).to(flat.device)
        y = torch.from_numpy(slots.below(height - self.size - self.offset + 1, 1)).to(flat.device)
        number = torch.arange(len(flat), device=flat.device)
        # every place a patch may have, as a view: (images, channels, places in y, places in x, size, size)
        windows = flat.unfold(-2, self.size, 1).unfold(-2, self.size, 1)
        pair = [restored(windows[number, :, y + shift, x + shift]) for shift in (0, self.offset)]
        return add_views(batch, self.names, pair, lead)


def _check_kind(kind: str) -> None:
    if kind not in _CUT:
        raise SetsupError(f"unknown kind {kind!r} of the modality to cut{did_you_mean(kind, _CUT)}")


def _check_room(images: torch.Tensor, name: str, needed: int, what: str) -> None:
    height, width = images.shape[-2:]
    if min(height, width) < needed:
        raise SetsupError(
            f"{what} require images of at least {needed} x {needed} pixels, but {name!r} is {height} x {width} "
            "(height x width); use smaller patches, or larger images"
        )


def get_planes(
    batch: Batch, name: str, kind: str
) -> tuple[torch.Tensor, tuple[int, ...], Callable[[torch.Tensor], torch.Tensor]]:
    """A modality as planes of pixels, which are cut in one way whatever its kind.

    Returns `planes` (n, channels, height, width).

    `kind`: ``color`` as in :func:`get_images`; ``label`` and ``depth``, (sets, size, height, width); ``normal``,
    (sets, size, height, width, 3): with copies after the slots, or without slots, as images may be. A label or
    depth (…, height, width, k) is refused; what has copies is told from it by images, or ``homographies``, of
    as many.
    """
    values = get_images(batch, name) if kind == "color" else get_tensor(batch, name)
    after = 3 if kind in ("color", "normal") else 2
    if values.ndim - after not in (1, 2, 3) or (kind == "normal" and values.shape[-1] != 3):
        axes = KINDS[kind][1].split(" or ")[0]
        raise DataError(
            f"{name!r} of kind {kind} must have shape {axes}, optionally with an axis of copies after size, or "
            f"without the axis size, not {tuple(values.shape)}"
        )
    lead = tuple(values.shape[:-after])
    axes_of_sets = 2 if has_slots(batch, name, kind, values) else 1
    if after == 2 and len(lead) > axes_of_sets and not _copied(batch, name, lead, values):
        raise DataError(
            f"{name!r} has shape {tuple(values.shape)}, one axis more than images of kind {kind}, but its extra axis "
            "is not the axis of copies of any images in the batch; cut each of the k planes (…, height, width) "
            "separately, under its own name"
        )
    flat = values.flatten(0, len(lead) - 1)
    if kind == "color":
        return flat, lead, lambda planes: planes
    if kind == "normal":
        return flat.movedim(-1, 1), lead, lambda planes: planes.movedim(-3, -1)
    return flat[:, None], lead, lambda planes: planes.squeeze(-3)


def _copied(batch: Batch, name: str, lead: tuple[int, ...], values: torch.Tensor) -> bool:
    """Whether the last axis of a lead is that of copies: those of matrices, or of images of the same size."""
    matrices = batch.get("homographies", {}).get(name)
    if matrices is not None and tuple(matrices.shape[:-2]) == lead:
        return True
    size = tuple(values.shape[-2:])
    tensors = (value for value in batch.values() if isinstance(value, torch.Tensor) and value.ndim == len(lead) + 3)
    return any(tuple(tensor.shape[: len(lead)]) == lead and tuple(tensor.shape[-2:]) == size for tensor in tensors)
