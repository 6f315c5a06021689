"""Operations on neighbourhoods and on single pixels: blur, edges, noise."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from setsup.arrays import Floats, Reals, Words
from setsup.checks import check_number, is_integer
from setsup.errors import DataError, SetsupError
from setsup.loading.crops import check_range
from setsup.loading.transforms.by_image import Image, cv2, room
from setsup.loading.transforms.operations.base import (
    Photometric,
    Ranged,
    Shape,
    check_probability,
    per_image,
    set_field,
)
from setsup.loading.transforms.operations.noise import TABLE, image_pick, normal, pick, quantiles
from setsup.loading.transforms.slots import Slots

__all__ = ["Blur", "Noise", "SaltAndPepper", "Sobel"]


@dataclass(frozen=True)
class Blur(Photometric):
    """Gaussian blur with a square kernel; the image is mirrored at its outermost pixels.

    Parameters
    ----------
    kernel : int
        Pixels along a side of the kernel, odd.
    sigma : (low, high)
        Range of the standard deviation in pixels, which is uniform; 0 < low ≤ high.

    Notes
    -----
    Weights are exp(−x²/2σ²) at whole x, over their sum. With images of 8 bits, sums are rounded, halves to the even
    level, as torchvision does.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images, slots = torch.rand(2, 3, 8, 8), Slots(np.arange(2, dtype=np.uint64))
    >>> bool(Blur(5, sigma=(1, 1))(images, slots).std() < images.std())
    True

    """

    kernel: int
    sigma: tuple[float, float]

    def __post_init__(self) -> None:
        if not is_integer(self.kernel) or self.kernel < 1 or not self.kernel % 2:
            raise SetsupError(f"Blur: kernel must be a positive odd number of pixels, not {self.kernel!r}")
        set_field(self, "sigma", check_range(self.sigma, "Blur: sigma", positive=True))

    def _drawn(self, slots: Slots, shape: Shape) -> Floats:
        """Weights of the middle of each kernel and of what lies to one side, (n, 1 + radius)."""
        radius = self.kernel // 2
        if radius >= min(shape[-2:]):
            raise DataError(
                f"Blur: a kernel of {self.kernel} pixels requires larger images than {tuple(shape)}; pass a smaller "
                "kernel"
            )
        weights = np.exp(-0.5 * (np.arange(radius + 1) / slots.uniform(*self.sigma)[:, None]) ** 2)
        return (weights / (weights[:, :1] + 2 * weights[:, 1:].sum(1, keepdims=True))).astype(np.float32)

    def _batch(self, images: Tensor, drawn: Floats) -> Tensor:
        taps = list(per_image(drawn, images)[:, :, None].unbind(1))
        padded = pad(images, (self.kernel // 2,) * 4, mode="reflect")
        return _smoothed(_smoothed(padded, taps, -2), taps, -1).clamp_(max=1)

    def _image(self, half: Floats, image: Image) -> Image:
        taps = np.concatenate([half[:0:-1], half])
        # not cv2.GaussianBlur, which rounds weights of 8 bits to 1/256
        blurred = cv2.sepFilter2D(image, cv2.CV_32F, taps, taps, borderType=cv2.BORDER_REFLECT_101)
        return cv2.convertScaleAbs(blurred) if image.dtype == np.uint8 else np.minimum(blurred, 1, out=blurred)


def _smoothed(images: Tensor, taps: list[Tensor], axis: int) -> Tensor:
    """Weighted sums of neighbours along an axis, which becomes shorter by the reach of the taps at either end."""
    reach = len(taps) - 1
    length = images.shape[axis] - 2 * reach
    total = images.narrow(axis, reach, length) * taps[0]
    for offset in range(1, reach + 1):
        pair = images.narrow(axis, reach - offset, length) + images.narrow(axis, reach + offset, length)
        total.addcmul_(pair, taps[offset])
    return total


@dataclass(frozen=True)
class Sobel(Ranged):
    """Adds a multiple of the Sobel edges to images: the magnitude of the gradient of each channel.

    Parameters
    ----------
    low, high : float
        The multiple is uniform between them; a negative one darkens edges.

    Notes
    -----
    The gradient is the change per pixel: the kernels are ⅛ of the outer product of (1, 2, 1) and (−1, 0, 1), with the
    outermost pixels repeated beyond the image.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> ramp = torch.linspace(0, 0.7, 8).expand(1, 1, 8, 8)
    >>> edged = Sobel(1, 1)(ramp, Slots(np.arange(1, dtype=np.uint64)))
    >>> (edged - ramp)[0, 0, 4]
    tensor([0.0500, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.0500])

    """

    def _batch(self, images: Tensor, drawn: Reals) -> Tensor:
        return torch.addcmul(images, _edges(images), per_image(drawn * math.sqrt(2) / 8, images)).clamp_(0, 1)

    def _image(self, amount: float, image: Image) -> Image:
        across, down = (
            cv2.Sobel(image, cv2.CV_32F, x, y, room(image), scale=1 / 8, borderType=cv2.BORDER_REPLICATE)
            for x, y in ((1, 0), (0, 1))
        )
        # not cv2.magnitude, whose last bit depends on where arrays lie in memory
        squares = cv2.add(cv2.multiply(across, across, dst=across), cv2.multiply(down, down, dst=down), dst=across)
        edges = np.sqrt(squares, out=squares)
        if image.dtype == np.uint8:
            return cv2.addWeighted(edges, amount, image, 1, 0, dtype=cv2.CV_8U)
        return np.clip(cv2.scaleAdd(edges, amount, image, dst=image), 0, 1, out=image)


def _edges(images: Tensor) -> Tensor:
    """Length of the Sobel gradient, times 8/√2.

    Both kernels are a box of 2 × 2 followed by the sum, or the difference, of differences along the two diagonals: so
    the squared length is twice the sum of the squares of those.
    """
    padded = pad(images, (1, 1, 1, 1), mode="replicate")
    boxes = padded[..., 1:, :] + padded[..., :-1, :]
    boxes = boxes[..., 1:] + boxes[..., :-1]
    falling = boxes[..., 1:, 1:] - boxes[..., :-1, :-1]
    rising = boxes[..., :-1, 1:] - boxes[..., 1:, :-1]
    return falling.square_().addcmul_(rising, rising).sqrt_()


@dataclass(frozen=True)
class Noise(Photometric):
    """Normal noise, independent in each pixel and channel.

    Parameters
    ----------
    sigma : float
        Standard deviation, not negative.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images, slots = torch.full((2, 3, 64, 64), 0.5), Slots(np.arange(2, dtype=np.uint64))
    >>> bool((Noise(0.05)(images, slots).std() - 0.05).abs() < 0.001)
    True

    """

    sigma: float

    def __post_init__(self) -> None:
        check_number(self.sigma, "Noise: sigma", SetsupError, 0)

    def _drawn(self, slots: Slots, shape: Shape) -> Words:
        return slots.bits()

    def _batch(self, images: Tensor, drawn: Words) -> Tensor:
        noise = normal(drawn, images.shape[1:], images.device)
        return torch.add(images, noise, alpha=self.sigma, out=noise).clamp_(0, 1)

    def _image(self, key: np.uint64, image: Image) -> Image:
        eight_bit, channels = image.dtype == np.uint8, 1 if image.ndim == 2 else image.shape[2]
        table = quantiles(255 * self.sigma if eight_bit else self.sigma)
        noise = image_pick(key, (channels, *image.shape[:2]), table)
        if eight_bit:
            return cv2.add(noise, image, dtype=cv2.CV_8U)
        return np.clip(cv2.add(image, noise, dst=image), 0, 1, out=image)


@dataclass(frozen=True)
class SaltAndPepper(Photometric):
    """A share of the pixels turned black or white, all channels together, either equally likely.

    Parameters
    ----------
    share : float
        0 … 1, to the nearest of 32,768 steps.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images, slots = torch.full((2, 3, 64, 64), 0.5), Slots(np.arange(2, dtype=np.uint64))
    >>> SaltAndPepper(0.1)(images, slots).unique()
    tensor([0.0000, 0.5000, 1.0000])

    """

    share: float

    def __post_init__(self) -> None:
        check_probability(self.share, "SaltAndPepper: share")

    def _drawn(self, slots: Slots, shape: Shape) -> Words:
        return slots.bits()

    def _batch(self, images: Tensor, drawn: Words) -> Tensor:
        grains = torch.from_numpy(_grains(self.share)).to(images.device, torch.float32)
        # one less is black and one more is white, whatever was there; the rest keeps its bits
        return torch.add(images, pick(drawn, (1, *images.shape[2:]), grains)).clamp_(0, 1)

    def _image(self, key: np.uint64, image: Image) -> Image:
        grains, image = image_pick(key, (1, *image.shape[:2]), _grains(self.share)), image.copy()
        image[grains < 0], image[grains > 0] = 0, 255 if image.dtype == np.uint8 else 1
        return image


@lru_cache(maxsize=4)
def _grains(share: float) -> npt.NDArray[np.int8]:
    """A table of −1 for black, 1 for white."""
    grains = round(share * TABLE / 2)
    return np.repeat(np.array([-1, 0, 1], np.int8), [grains, TABLE - 2 * grains, grains])
