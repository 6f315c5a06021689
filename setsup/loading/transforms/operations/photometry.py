"""Operations on colors: brightness, contrast, saturation and hue.

A photometric operation is a frozen dataclass, called as ``operation(images, slots)``. Images are (n, C, height, width)
float32 in 0 … 1 of C = 1 or 3 channels, on any device; so is the result, and the images stay as they are. How much is
done to an image follows from its key alone. On grey images, operations on colors alone do nothing.

With ``slots.eight_bit`` images hold integers of 1/255 before and after. The result is then that of Pillow's
enhancers, which truncate, and of torchvision's rotation of the hue, bit for bit. What Pillow
has no rule for is rounded.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from kornia.enhance import adjust_brightness
from torch import Tensor

from setsup.arrays import Reals
from setsup.loading.transforms.by_image import Image, blend, cv2, own
from setsup.loading.transforms.operations import eight_bit
from setsup.loading.transforms.operations.base import Photometric, Ranged, per_image

__all__ = ["AddBrightness", "Brightness", "Contrast", "Gray", "Hue", "Saturation"]

_TINY = 1e-20  # chroma of a grey, to divide by
_TRUNCATE = 2.0**-12 - 0.5  # levels: with this, OpenCV's rounding truncates


@dataclass(frozen=True)
class Brightness(Ranged):
    """Multiplies images by a factor.

    Parameters
    ----------
    low, high : float
        The factor is uniform between them, 0 ≤ low ≤ high; 1 changes nothing.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images, slots = torch.full((2, 3, 8, 8), 0.5), Slots(np.arange(2, dtype=np.uint64))
    >>> Brightness(1.5, 1.5)(images, slots).unique()
    tensor([0.7500])

    """

    least: ClassVar[float] = 0
    pointwise: ClassVar[bool] = True

    def _batch(self, images: Tensor, drawn: Reals) -> Tensor:
        return torch.mul(images, per_image(drawn, images)).clamp_(0, 1)

    def _levels(self, levels: Tensor, drawn: Reals) -> Tensor:
        return eight_bit.blend(levels, None, per_image(drawn, levels))

    def _image(self, factor: float, image: Image) -> Image:
        return blend(image, factor)


@dataclass(frozen=True)
class AddBrightness(Ranged):
    """Adds a number to images.

    Parameters
    ----------
    low, high : float
        The number is uniform between them; −1 gives black, 1 white, 0 changes nothing.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images, slots = torch.full((2, 3, 8, 8), 0.5), Slots(np.arange(2, dtype=np.uint64))
    >>> AddBrightness(-0.25, -0.25)(images, slots).unique()
    tensor([0.2500])

    """

    pointwise: ClassVar[bool] = True

    def _batch(self, images: Tensor, drawn: Reals) -> Tensor:
        return adjust_brightness(images, per_image(drawn, images))

    def _image(self, amount: float, image: Image) -> Image:
        if image.dtype == np.uint8:
            return np.rint(np.clip(image + np.float32(255 * amount), 0, 255)).astype(np.uint8)
        moved = np.add(image, np.float32(amount), out=own(image))
        return np.clip(moved, 0, 1, out=moved)


@dataclass(frozen=True)
class Contrast(Ranged):
    """Changes the contrast: the distance of values from the mean of the grey image is multiplied by a factor.

    Parameters
    ----------
    low, high : float
        The factor is uniform between them, 0 ≤ low ≤ high: 0 gives a uniform grey, 1 changes nothing.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images, slots = torch.rand(2, 3, 8, 8), Slots(np.arange(2, dtype=np.uint64))
    >>> bool((Contrast(2, 2)(images, slots).std() > images.std()))
    True

    """

    least: ClassVar[float] = 0

    def _batch(self, images: Tensor, drawn: Reals) -> Tensor:
        # rows first: over a whole image at once, torch adds in an order that depends on the other images
        means, factor = images.mean(-1, keepdim=True).mean(-2, keepdim=True), per_image(drawn, images)
        grey = means if means.shape[1] == 1 else _luma(means)
        return torch.mul(images, factor).add_(grey * (1 - factor)).clamp_(0, 1)

    def _levels(self, levels: Tensor, drawn: Reals) -> Tensor:
        return eight_bit.blend(levels, eight_bit.mean_grey(levels), per_image(drawn, levels))

    def _image(self, factor: float, image: Image) -> Image:
        if image.dtype == np.uint8:
            mean = int(cv2.mean(eight_bit.image_grey(image))[0] + 0.5)
            return cv2.addWeighted(image, factor, image, 0, (1 - factor) * mean + _TRUNCATE)
        means = cv2.mean(image)
        grey = means[0] if image.ndim == 2 else 0.299 * means[0] + 0.587 * means[1] + 0.114 * means[2]
        return blend(image, factor, (1 - factor) * grey)


@dataclass(frozen=True)
class Saturation(Ranged):
    """Changes the saturation: the distance of colors from grey of the same luma is multiplied by a factor.

    Parameters
    ----------
    low, high : float
        The factor is uniform between them, 0 ≤ low ≤ high: 0 gives greys, 1 changes nothing.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images, slots = torch.rand(2, 3, 8, 8), Slots(np.arange(2, dtype=np.uint64))
    >>> torch.allclose(Saturation(0, 0)(images, slots), Gray()(images, slots))
    True

    """

    least: ClassVar[float] = 0
    colors_only: ClassVar[bool] = True

    def _batch(self, images: Tensor, drawn: Reals) -> Tensor:
        factor = per_image(drawn, images)
        return torch.mul(images, factor).add_(_luma(images).mul_(1 - factor)).clamp_(0, 1)

    def _levels(self, levels: Tensor, drawn: Reals) -> Tensor:
        return eight_bit.blend(levels, eight_bit.grey(levels), per_image(drawn, levels))

    def _image(self, factor: float, image: Image) -> Image:
        grey = cv2.cvtColor(_grey(image), cv2.COLOR_GRAY2RGB)
        if image.dtype == np.uint8:
            return cv2.addWeighted(image, factor, grey, 1 - factor, _TRUNCATE)
        return np.clip(cv2.addWeighted(image, factor, grey, 1 - factor, 0, dst=image), 0, 1, out=image)


def _grey(image: Image) -> Image:
    return eight_bit.image_grey(image) if image.dtype == np.uint8 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)


@dataclass(frozen=True)
class Hue(Ranged):
    """Rotates the hue; saturation and value of HSV [1]_ are unchanged.

    Parameters
    ----------
    low, high : float
        Turns, uniform between them. A turn more changes nothing: ``Hue(0.2, 0.8)`` is a turn by 0.2 … 0.5 either way.

    References
    ----------
    .. [1] A. R. Smith, "Color gamut transform pairs", SIGGRAPH 1978.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> red = torch.tensor([1.0, 0, 0]).view(1, 3, 1, 1)
    >>> Hue(1 / 3, 1 / 3)(red, Slots(np.arange(1, dtype=np.uint64))).flatten().tolist()  # green
    [0.0, 1.0, 0.0]

    """

    colors_only: ClassVar[bool] = True

    def _batch(self, images: Tensor, drawn: Reals) -> Tensor:
        # away from each channel's own hue, in sixths of a turn, −3 … 3
        offsets = np.remainder(np.array([0, 2, 4]) - 6 * drawn[:, None] + 3, 6) - 3
        return _turned(images, per_image(offsets, images))

    def _levels(self, levels: Tensor, drawn: Reals) -> Tensor:
        return eight_bit.turn_hue(levels, torch.from_numpy(_level_shifts(drawn)[:, None, None]).to(levels.device))

    def _image(self, turn: float, image: Image) -> Image:
        if image.dtype == np.uint8:
            return eight_bit.image_hue_turned(image, int(_level_shifts(np.asarray(turn))))
        hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV, dst=image)
        hsv = cv2.add(hsv, (360 * (turn % 1), 0, 0, 0), dst=hsv)
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB, dst=hsv)


def _level_shifts(turns: Reals) -> npt.NDArray[np.int32]:
    """Turns as levels of hue: to −½ … ½, then truncated towards nought, as torchvision does."""
    return (np.where(np.abs(turns) > 0.5, turns - np.rint(turns), turns) * 255).astype(np.int32)


def _turned(images: Tensor, offsets: Tensor) -> Tensor:
    """Hue turned by the closed form of the way to HSV and back, without a branch.

    Of channels less the lowest and over the chroma, 1 + g + b − r is the angle between a hue and red, in sixths of a
    turn, and the sign of g − b is its side. A channel whose own hue lies the angle x away is the lowest plus the chroma
    times 2 − |x|, cut to 0 … 1. For any −6 ≤ x ≤ 6 that is ||x| − 3| − 1, which knows that six sixths are none.
    """
    red, green, blue = images.unbind(1)
    lowest = torch.minimum(red, green)
    torch.minimum(lowest, blue, out=lowest)
    chroma = torch.maximum(red, green)
    torch.maximum(chroma, blue, out=chroma).sub_(lowest)
    hue = torch.add(chroma, green).add_(blue).sub_(red).sub_(lowest).div_(chroma.clamp_min(_TINY))
    hue.copysign_(green - blue)
    result = torch.sub(hue[:, None], offsets).abs_().sub_(3).abs_().clamp_(1, 2)
    torch.addcmul(lowest.sub_(chroma)[:, None], result, chroma[:, None], out=result)
    return result.clamp_(0, 1)


@dataclass(frozen=True)
class Gray(Photometric):
    """Replaces colors by grey of the same luma, with the same number of channels.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> grey = Gray()(torch.rand(2, 3, 8, 8), Slots(np.arange(2, dtype=np.uint64)))
    >>> torch.equal(grey[:, 0], grey[:, 2])
    True

    """

    colors_only: ClassVar[bool] = True

    def _batch(self, images: Tensor, drawn: Any) -> Tensor:
        return _luma(images).repeat(1, 3, 1, 1)

    def _levels(self, levels: Tensor, drawn: Any) -> Tensor:
        return eight_bit.grey(levels).repeat(1, 3, 1, 1)

    def _image(self, value: Any, image: Image) -> Image:
        return cv2.cvtColor(_grey(image), cv2.COLOR_GRAY2RGB)


def _luma(images: Tensor) -> Tensor:
    """Luma of ITU-R 601, (n, 1, height, width)."""
    red, green, blue = images.unbind(1)
    return red.mul(0.299).add_(green, alpha=0.587).add_(blue, alpha=0.114)[:, None]
