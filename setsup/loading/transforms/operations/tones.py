"""Operations on the distribution of tones: fewer levels, equal shares of all, the whole range.

They follow Pillow's ``ImageOps``, which have 256 levels. Images of 0 … 1 are rounded to the nearest level first,
except by :class:`AutoContrast`, which needs none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from kornia.enhance import equalize
from torch import Tensor

from setsup.checks import check_integer
from setsup.errors import SetsupError
from setsup.loading.transforms.by_image import LEVELS, Image, cv2
from setsup.loading.transforms.operations import eight_bit
from setsup.loading.transforms.operations.base import Photometric

__all__ = ["AutoContrast", "Equalize", "Posterize"]


@dataclass(frozen=True)
class Posterize(Photometric):
    """Keeps the upper bits of each of 256 levels and sets the others to 0.

    kornia's version truncates products of floats, which can be one level too low.

    Parameters
    ----------
    bits : int
        1 … 8.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images = torch.tensor([0.0, 100, 200, 255]).div(255).view(1, 1, 2, 2)
    >>> Posterize(2)(images, Slots(np.arange(1, dtype=np.uint64))).mul(255).flatten().tolist()
    [0.0, 64.0, 192.0, 192.0]

    """

    bits: int

    pointwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_integer(self.bits, "Posterize: bits", SetsupError, 1, 8)

    def _levels(self, levels: Tensor, drawn: Any) -> Tensor:
        step = 1 << (8 - self.bits)
        return levels.mul_(1 / step).floor_().mul_(step)

    def _image(self, value: Any, image: Image) -> Image:
        return image & np.uint8(256 - (1 << (8 - self.bits)))


@dataclass(frozen=True)
class Equalize(Photometric):
    """Equalizes the histogram of each channel.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> dark = torch.rand(1, 1, 64, 64) / 4
    >>> bool((Equalize()(dark, Slots(np.arange(1, dtype=np.uint64))).mean() - 0.5).abs() < 0.1)
    True

    """

    def _levels(self, levels: Tensor, drawn: Any) -> Tensor:
        return eight_bit.to_levels(equalize(eight_bit.to_images(levels)))

    def _image(self, value: Any, image: Image) -> Image:
        return _toned(_equal, image)


def _toned(table: Callable[[Image], Image], image: Image) -> Image:
    """An image of 8 bits by a table of levels for each channel, made from its counts of levels."""
    return _by_plane(
        lambda plane: cv2.LUT(plane, table(cv2.calcHist([plane], [0], None, [256], [0, 256])[:, 0])), image
    )


def _by_plane(change: Callable[[Image], Image], image: Image) -> Image:
    return change(image) if image.ndim == 2 else cv2.merge([change(plane) for plane in cv2.split(image)])


def _equal(counts: Image) -> Image:
    """Pillow's ``ImageOps.equalize``."""
    total, used = counts.astype(np.int64), np.flatnonzero(counts)
    step = int(total.sum() - total[used[-1]]) // 255
    if not step:
        return LEVELS
    return np.minimum((np.cumsum(total) - total + step // 2) // step, 255).astype(np.uint8)


def _stretched(counts: Image) -> Image:
    """Pillow's ``ImageOps.autocontrast``."""
    lowest, highest = np.flatnonzero(counts)[[0, -1]].tolist()
    if lowest == highest:
        return LEVELS
    scale = 255 / (highest - lowest)
    return np.clip(np.floor(LEVELS * scale - lowest * scale), 0, 255).astype(np.uint8)


@dataclass(frozen=True)
class AutoContrast(Photometric):
    """Stretches each channel so that its minimum is 0 and its maximum 1; a uniform channel is unchanged.

    kornia's version sets uniform channels to 0.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images = torch.tensor([0.2, 0.3, 0.3, 0.4]).view(1, 1, 2, 2)
    >>> AutoContrast()(images, Slots(np.arange(1, dtype=np.uint64))).flatten().round(decimals=3).tolist()
    [0.0, 0.5, 0.5, 1.0]

    """

    def _batch(self, images: Tensor, drawn: Any) -> Tensor:
        lowest, highest = _ends(images)
        flat = highest <= lowest
        width = torch.where(flat, 1.0, highest - lowest)
        return images.sub(torch.where(flat, 0.0, lowest)).div_(width).clamp_(0, 1)

    def _levels(self, levels: Tensor, drawn: Any) -> Tensor:
        lowest, highest = (ends.double() for ends in _ends(levels))
        flat = highest <= lowest
        # in double precision, whose rounding decides what truncation makes of integers; and divided by a tensor, as
        # torch takes a number over a tensor for its product with the reciprocal
        scale = torch.full_like(lowest, 255).div_((highest - lowest).clamp_min_(1)).masked_fill_(flat, 1)
        offset = (-lowest * scale).masked_fill_(flat, 0)
        return levels.double().mul_(scale).add_(offset).floor_().clamp_(0, 255).float()

    def _image(self, value: Any, image: Image) -> Image:
        if image.dtype == np.uint8:
            return _toned(_stretched, image)
        return _by_plane(_wide, image)


def _wide(plane: Image) -> Image:
    lowest, highest, *_ = cv2.minMaxLoc(plane)
    if highest > lowest:
        plane -= np.float32(lowest)
        plane /= np.float32(highest) - np.float32(lowest)
    return plane


def _ends(images: Tensor) -> tuple[Tensor, Tensor]:
    """The lowest and the highest value of each channel."""
    return images.amin((-2, -1), keepdim=True), images.amax((-2, -1), keepdim=True)
