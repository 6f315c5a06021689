"""Operations on parts of images: erased rectangles, and backgrounds behind objects."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.arrays import Rows
from setsup.errors import DataError, SetsupError
from setsup.loading.crops import TRIES, check_range
from setsup.loading.transforms.by_image import Image, cv2
from setsup.loading.transforms.operations.base import Photometric, Shape, set_field
from setsup.loading.transforms.operations.crops import random_sides
from setsup.loading.transforms.slots import Slots

__all__ = ["Background", "Erase", "Premultiply"]


@dataclass(frozen=True)
class Erase(Photometric):
    """Sets one rectangle at a random position to 0.

    The distribution is that of the paper [1]_ as in torchvision: up to ten times, a share of the area uniform in
    ``area`` and a ratio of height to width log-uniform in ``aspect`` are drawn, with sides rounded to integers, until
    both fit the image; the position is uniform over integers. If none of the ten fits, the image is unchanged.

    Parameters
    ----------
    area : (low, high)
        Share of the image's area, 0 ≤ low ≤ high.
    aspect : (low, high)
        Ratio of height to width, 0 < low ≤ high.

    References
    ----------
    .. [1] Z. Zhong et al., "Random erasing data augmentation", AAAI 2020 (arXiv 1708.04896).

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> images, slots = torch.ones(2, 3, 32, 32), Slots(np.arange(2, dtype=np.uint64))
    >>> erased = Erase(area=(0.25, 0.25))(images, slots)
    >>> bool((erased.mean((1, 2, 3)) - 0.75).abs().max() < 0.02)
    True

    """

    area: tuple[float, float] = (0.02, 0.33)
    aspect: tuple[float, float] = (0.3, 3.3)

    def __post_init__(self) -> None:
        set_field(self, "area", check_range(self.area, "Erase: area", 0))
        set_field(self, "aspect", check_range(self.aspect, "Erase: aspect", positive=True))

    def _drawn(self, slots: Slots, shape: Shape) -> Rows:
        return np.stack(self.boxes(slots, *shape[1:]), axis=-1)

    def _batch(self, images: Tensor, drawn: Rows) -> Tensor:
        left, top, tall, wide = torch.from_numpy(drawn.T[..., None].copy()).to(images.device)
        y, x = (torch.arange(side, device=images.device) for side in images.shape[-2:])
        down, across = ((y >= top) & (y < top + tall)).float(), ((x >= left) & (x < left + wide)).float()
        # a product with 0 or 1 takes a twentieth of the time of a fill by a mask that broadcasts
        return images * (1 - down[:, :, None] * across[:, None, :])[:, None]

    def _image(self, box: Rows, image: Image) -> Image:
        left, top, tall, wide = box.tolist()
        image = image.copy()
        image[top : top + tall, left : left + wide] = 0
        return image

    def boxes(self, slots: Slots, height: int, width: int) -> tuple[npt.NDArray[np.int64], ...]:
        """Left, top, height and width of the rectangles, each (n,) int64; 0 high where none fits."""
        wide, tall = random_sides(
            slots, height * width, self.area, self.aspect, lambda wide, tall: (tall < height) & (wide < width)
        )
        left, top = slots.below(width - wide + 1, 2 * TRIES), slots.below(height - tall + 1, 2 * TRIES + 1)
        return left, top, tall, wide


@dataclass(frozen=True)
class Premultiply(Photometric):
    """Multiplies colors by alpha, for geometric operations between this and ``Background(…, premultiplied=True)``.

    Resampling mixes a pixel with its neighbours. Unless each is weighted by its alpha [1]_, the color of transparent
    pixels in the file, often black, bleeds into the outline of objects. Results have 8 bits, as in Pillow's mode RGBa.

    Raises
    ------
    DataError
        When images have no alpha channel.

    References
    ----------
    .. [1] T. Porter, T. Duff, "Compositing digital images", SIGGRAPH 1984, section 3.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> half = torch.tensor([0.2, 0.4, 1.0, 0.5]).reshape(1, 4, 1, 1)
    >>> Premultiply()(half, Slots(np.arange(1, dtype=np.uint64))).mul(255).flatten()
    tensor([ 26.,  51., 128., 128.])

    """

    alpha: ClassVar[bool] = True

    def _levels(self, levels: Tensor, drawn: Any) -> Tensor:
        return torch.cat([_over_255(levels[:, :3] * levels[:, 3:]), levels[:, 3:]], dim=1)

    def _image(self, value: Any, image: Image) -> Image:
        return cv2.cvtColor(image, cv2.COLOR_RGBA2mRGBA)


@dataclass(frozen=True, eq=False)
class Background(Photometric):
    """Composites images with alpha over random crops of images of a pool: four channels become three.

    Parameters
    ----------
    pool : (k, height, width, 3) uint8 array
        Backgrounds, at least as large as the images; may be mapped from a file.
    premultiplied : bool
        Whether colors have been multiplied by alpha with :class:`Premultiply`, which belongs before operations that
        move pixels before this one.

    Raises
    ------
    SetsupError
        When the pool has another shape or dtype.
    DataError
        When images have no alpha channel, or are larger than those of the pool.

    Notes
    -----
    Image and position are uniform. Results have 8 bits, and equal those of Pillow's ``Image.paste`` with a mask if
    colors are not premultiplied.

    Examples
    --------
    >>> from setsup.loading.transforms.slots import Slots
    >>> pool = np.full((2, 16, 16, 3), 255, dtype=np.uint8)
    >>> clear = torch.zeros(2, 4, 8, 8)
    >>> Background(pool)(clear, Slots(np.arange(2, dtype=np.uint64))).unique()
    tensor([1.])

    """

    pool: npt.NDArray[np.uint8] = field(repr=False)
    premultiplied: bool = False

    alpha: ClassVar[bool] = True
    channels: ClassVar[int] = 3  # of results

    def __post_init__(self) -> None:
        pool = self.pool
        if not isinstance(pool, np.ndarray) or pool.dtype != np.uint8 or pool.ndim != 4 or pool.shape[-1] != 3:
            given = f"{pool.dtype} {pool.shape}" if isinstance(pool, np.ndarray) else type(pool).__name__
            raise SetsupError(f"Background: pool must be a uint8 array of shape (k, height, width, 3), not {given}")
        if not pool.size:
            raise SetsupError("Background: the pool is empty; pass at least one image")

    def _drawn(self, slots: Slots, shape: Shape) -> list[Image]:
        """What is behind each image, (rows, columns, 3) uint8."""
        count, height, width, _ = self.pool.shape
        _, rows, columns = shape
        if rows > height or columns > width:
            raise DataError(
                f"Background: the images of the pool, {height} × {width} pixels, are smaller than the images of the "
                f"batch, {rows} × {columns}; pass larger images"
            )
        corners = (slots.below(count, 0), slots.below(height - rows + 1, 1), slots.below(width - columns + 1, 2))
        return [self.pool[n, y : y + rows, x : x + columns] for n, y, x in np.stack(corners, axis=-1).tolist()]

    def _levels(self, levels: Tensor, drawn: list[Image]) -> Tensor:
        colors, alpha = levels[:, :3], levels[:, 3:]
        pixels = np.stack(drawn) if drawn else np.empty((0, *levels.shape[-2:], 3), np.uint8)
        behind = torch.from_numpy(pixels).movedim(-1, 1).to(levels).contiguous().mul_(255 - alpha)
        if self.premultiplied:
            return _over_255(behind).add_(colors).clamp_(max=255)
        return _over_255(behind.addcmul_(colors, alpha))

    def _image(self, background: Image, image: Image) -> Image:
        alpha, colors = cv2.extractChannel(image, 3), cv2.cvtColor(image, cv2.COLOR_RGBA2RGB)
        if self.premultiplied:
            clear = cv2.cvtColor(cv2.bitwise_not(alpha, alpha), cv2.COLOR_GRAY2RGB)
            return cv2.add(colors, cv2.multiply(background, clear, clear, 1 / 255), colors)
        alpha, above = cv2.cvtColor(alpha, cv2.COLOR_GRAY2RGB), cv2.subtract(colors, background, dtype=cv2.CV_32F)
        return cv2.add(cv2.multiply(above, alpha, scale=1 / 255, dtype=cv2.CV_32F), background, dtype=cv2.CV_8U)


def _over_255(products: Tensor) -> Tensor:
    """Sums of products of levels over 255, rounded, in place: (t + t/256)/256 of t + 128, each truncated."""
    products.add_(128)
    return products.add_((products / 256).floor_()).div_(256).floor_()
