"""Views of images: colour channels, patches of a grid, pairs of patches.

A view is a callable that takes a batch of tensors and gives the batch with more modalities; what was there stays as it
was. The views are those of contrastive multiview coding [1]_.

Convention
----------
Images are (sets, size, channels, height, width), or (sets, size, copies, channels, height, width), or (sets, channels,
height, width) where there is one a set, such as ``canonical_image``. Positions are keyed by (seed, stream, step, set,
slot, copy): two views of one class with one seed take the same positions unless their streams differ.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849).

"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch

from setsup.checks import check_integer
from setsup.errors import DataError, SetsupError, near
from setsup.loading.batch import Batch
from setsup.loading.transforms.by_image import Image, blocks, by_array, interleaved, put, spread
from setsup.loading.transforms.colors import array_in_color_space, color_space, in_color_space
from setsup.loading.transforms.modalities import add_views, check_names, images_of, keyed_slots, planes_of
from setsup.random import stream_key

__all__ = ["ColorViews", "PatchPairs", "Patches"]

_CUT = ("color", "label", "depth", "normal")  # kinds that are cut
_CHUNK = 1 << 18  # values of images converted at a time, so that what lies between two operations stays in the cache


@dataclass(frozen=True)
class ColorViews:
    """Images in another colour space, split into a view of one channel and a view of two, as in figure 5 of [1]_.

    Both views show the same pixels: put what crops or flips before this.

    Parameters
    ----------
    space : str
        One of :data:`setsup.loading.transforms.colors.SPACES`, such as ``"lab"`` or ``"ycbcr"``.
    image : str
        Modality to convert: uint8, or float in 0 … 1, sRGB.
    normalize : bool
        Whether channels are brought to about −1 … 1 by the published means and standard deviations of the space, or by
        its range where none are published.
    names : (str, str), optional
        Of the two views; the channels' names by default: ``("L", "ab")``, ``("Y", "CbCr")``, ``("H", "SV")`` …

    Returns
    -------
    batch
        With (sets, size, 1, height, width) and (sets, size, 2, height, width) float32 under the two names.

    Raises
    ------
    SetsupError
        When there is no such space or modality, or the batch has one of the names already.
    DataError
        When the images are no colour images.

    Examples
    --------
    >>> import setsup
    >>> from setsup.loading.transforms.views import ColorViews
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2)
    >>> batch = next(iter(setsup.loader(shapes, sets, transform=ColorViews("lab"))))
    >>> tuple(batch["L"].shape), tuple(batch["ab"].shape)
    ((2, 4, 1, 64, 64), (2, 4, 2, 64, 64))

    """

    space: str
    image: str = "image"
    normalize: bool = True
    names: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        color_space(self.space)
        if self.names is not None:
            check_names(self.names, 2)

    def __call__(self, batch: Batch) -> Batch:
        """Add the two views."""
        images = images_of(batch, self.image)
        *lead, channels, height, width = images.shape
        flat = images.flatten(0, -4)
        both = [
            torch.empty((len(flat), count, height, width), dtype=torch.float32, device=images.device)
            for count in (1, 2)
        ]
        if by_array(flat) and channels == 3 and flat.dtype in (torch.uint8, torch.float32):
            self._by_array(flat.numpy(), *(view.numpy() for view in both))
        else:
            values = max(1, math.prod(images.shape[-3:]))
            count = max(1, _CHUNK // values if images.device.type == "cpu" else len(flat))
            for some, one, two in zip(*(torch.split(stack, count) for stack in (flat, *both)), strict=True):
                converted = self._converted(some)
                one.copy_(converted[:, :1])
                two.copy_(converted[:, 1:])
        return add_views(batch, self.names or color_space(self.space).views, both, lead)

    def _by_array(self, images: Image, first: Image, others: Image) -> None:
        def some(numbers: range) -> None:
            for number in numbers:
                image = interleaved(images[number])
                values = array_in_color_space(image, self.space, normalize=self.normalize)
                put(values, [*first[number], *others[number]])

        spread(some, blocks(len(images), math.prod(images.shape[-2:])))

    def _converted(self, images: torch.Tensor) -> torch.Tensor:
        try:
            return in_color_space(images, self.space, normalize=self.normalize)
        except DataError as error:
            raise DataError(f"{self.image!r}: {error}") from None


@dataclass(frozen=True)
class Patches:
    """All patches of each image on a grid, row after row: with 16 pixels every 8, as in [1]_, 49 of 64 × 64 pixels.

    The first patch begins in the upper left corner; what the stride leaves over on the right and below is in no patch.

    Parameters
    ----------
    size : int
        Pixels of a patch's side.
    stride : int
        Pixels from one patch to the next.
    image : str
        Modality to cut, of any type.
    into : str
        Modality to add.
    kind : str
        What it is: ``color``, images; ``label`` or ``depth``, (sets, size, height, width), not (…, k); ``normal``,
        (sets, size, height, width, 3).

    Returns
    -------
    batch
        With (sets, size, rows·columns, channels, size, size) of the image's type, where rows = ⌊(height − size) /
        stride⌋ + 1, and columns likewise; without channels, or with 3 at the end, as the kind has it. It is a view of
        the image's memory where the grid has one row or one column.

    Raises
    ------
    SetsupError
        When there is no such modality, an image is smaller than a patch, or the batch has ``into`` already.

    Examples
    --------
    >>> import torch
    >>> from setsup.loading.transforms.views import Patches
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
        planes, lead, restored = planes_of(batch, self.image, self.kind)
        _check_room(planes, self.image, self.size, f"patches of {self.size} pixels")
        # (images, channels, rows, columns, size, size)
        grid = planes.unfold(-2, self.size, self.stride).unfold(-2, self.size, self.stride)
        return add_views(batch, (self.into,), (restored(grid.movedim(1, 3).flatten(1, 2)),), lead)


@dataclass(frozen=True)
class PatchPairs:
    """Two patches of each image, one right of and below the other by the same distance, as in figure 5 of [1]_.

    The first begins at (x, y), the second at (x + offset, y + offset); x and y are uniform over the places where both
    lie in the image. The further they are apart the less they have in common.

    Parameters
    ----------
    size : int
        Pixels of a patch's side.
    offset : int
        Pixels, in x and in y: 64 … 384 in [1]_, on images 2,000 pixels wide.
    image : str
        Modality to cut, of any type.
    names : (str, str)
        Of the two patches.
    kind : str
        What it is, as of :class:`Patches`.
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Two with one seed take the same x and y unless this differs.

    Returns
    -------
    batch
        With (sets, size, channels, size, size) of the image's type under each name, or the axes of its kind.

    Raises
    ------
    SetsupError
        When there is no such modality or no step, an image is too small, or the batch has one of the names already.

    Examples
    --------
    >>> import torch
    >>> from setsup.loading.transforms.views import PatchPairs
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
        flat, lead, restored = planes_of(batch, self.image, self.kind)
        what = f"two patches of {self.size} pixels with an offset of {self.offset}"
        _check_room(flat, self.image, self.size + self.offset, what)
        height, width = flat.shape[-2:]
        slots = keyed_slots(batch, self.seed, self.stream, lead)
        x = torch.from_numpy(slots.below(width - self.size - self.offset + 1, 0)).to(flat.device)
        y = torch.from_numpy(slots.below(height - self.size - self.offset + 1, 1)).to(flat.device)
        number = torch.arange(len(flat), device=flat.device)
        # every place a patch may have, as a view: (images, channels, places in y, places in x, size, size)
        places = flat.unfold(-2, self.size, 1).unfold(-2, self.size, 1)
        pair = [restored(places[number, :, y + shift, x + shift]) for shift in (0, self.offset)]
        return add_views(batch, self.names, pair, lead)


def _check_kind(kind: str) -> None:
    if kind not in _CUT:
        raise SetsupError(f"the kind of the cut is unknown, {kind!r}{near(kind, _CUT)}")


def _check_room(images: torch.Tensor, name: str, needed: int, what: str) -> None:
    height, width = images.shape[-2:]
    if min(height, width) < needed:
        raise SetsupError(
            f"{what} need images of at least {needed} x {needed} pixels, and {name!r} is {height} x {width} "
            "(height x width): take smaller ones, or larger images"
        )
