"""Operations that cut out and resize: for each image of a batch a box, and a matrix that takes it to the result."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from setsup.arrays import Bools, Matrices, Rows, Size
from setsup.correspondence import planar
from setsup.errors import SetsupError
from setsup.loading.crops import TRIES, Range, check_range, largest_box
from setsup.loading.transforms.operations.base import Sized, pair, set_field
from setsup.loading.transforms.slots import Slots

__all__ = ["CenterCrop", "Crop", "Resize", "ResizedCrop", "random_sides"]


@dataclass(frozen=True)
class Crop(Sized):
    """A box of fixed size at a uniformly random integer position.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the box.

    Examples
    --------
    >>> Crop(64)
    Crop(size=(64, 64))

    """

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        rows, columns = _fitting(self.size, height, width, "Crop")
        return planar.crop(slots.below(width - columns + 1, 0), slots.below(height - rows + 1, 1)), (rows, columns)


@dataclass(frozen=True)
class CenterCrop(Sized):
    """A box of fixed size in the centre, at the position of torchvision's ``CenterCrop``.

    If it cannot be exactly centred, the margins at the top and on the left are rounded to an even number.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the box.

    Examples
    --------
    >>> CenterCrop((128, 96))
    CenterCrop(size=(128, 96))

    """

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        rows, columns = _fitting(self.size, height, width, "CenterCrop")
        matrix = planar.crop(round((width - columns) / 2), round((height - rows) / 2))
        return np.broadcast_to(matrix, (len(slots), 3, 3)), (rows, columns)


@dataclass(frozen=True)
class Resize(Sized):
    """The whole image at another size.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the result; a single number is used for both.

    Examples
    --------
    >>> Resize(64)
    Resize(size=(64, 64))

    """

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        rows, columns = pair(self.size)
        matrix = planar.resize(height, width, rows, columns)
        return np.broadcast_to(matrix, (len(slots), 3, 3)), (rows, columns)


@dataclass(frozen=True)
class ResizedCrop(Sized):
    """A box of random area and shape, resized to one size.

    The distribution is that of Inception's crops as in torchvision: up to ten times, a share of the area uniform in
    ``area`` and a ratio of width to height log-uniform in ``aspect`` are drawn, with sides rounded to integers, until
    the box fits; its position is uniform over integers. If none of the ten fits, the result is the largest centred box
    whose ratio is in ``aspect``.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the result.
    area : (low, high)
        Share of the image's area, 0 < low ≤ high ≤ 1.
    aspect : (low, high)
        Ratio of width to height, 0 < low ≤ high.

    References
    ----------
    .. [1] C. Szegedy et al., "Going deeper with convolutions", CVPR 2015 (arXiv 1409.4842), section 6.

    Examples
    --------
    >>> ResizedCrop(64, area=(0.5, 1))
    ResizedCrop(size=(64, 64), area=(0.5, 1.0), aspect=(0.75, 1.3333333333333333))

    """

    area: Range = (0.08, 1.0)
    aspect: Range = (3 / 4, 4 / 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "area", check_range(self.area, "ResizedCrop: area", high=1, positive=True))
        set_field(self, "aspect", check_range(self.aspect, "ResizedCrop: aspect", positive=True))

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        left, top, rows, columns = self.boxes(slots, height, width)
        size = pair(self.size)
        return planar.fit(left, top, rows, columns, *size), size

    def boxes(self, slots: Slots, height: int, width: int) -> tuple[Rows, ...]:
        """Left, top, height and width of the boxes, each (n,) int64."""
        middle = largest_box(height, width, self.aspect)

        def fits(tall: Rows, wide: Rows) -> Bools:
            return (0 < tall) & (tall <= height) & (0 < wide) & (wide <= width)

        rows, columns = random_sides(slots, height * width, self.area, self.aspect, fits)
        missing = rows == 0
        rows[missing], columns[missing] = middle
        left, top = slots.below(width - columns + 1, 2 * TRIES), slots.below(height - rows + 1, 2 * TRIES + 1)
        left[missing], top[missing] = (width - middle[1]) // 2, (height - middle[0]) // 2
        return left, top, rows, columns


def random_sides(
    slots: Slots, pixels: int, area: Range, aspect: Range, fits: Callable[[Rows, Rows], Bools]
) -> tuple[Rows, Rows]:
    """Two sides per image, (n,) int64: the first that fit of some attempts; 0 if none does.

    Their product is a share in `area` of the pixels, and the second over the first a ratio in `aspect`.
    """
    sides = np.zeros((2, len(slots)), dtype=np.int64)
    missing = np.ones(len(slots), dtype=bool)
    low, high = (math.log(ratio) for ratio in aspect)
    for attempt in range(TRIES):
        product = pixels * slots.uniform(*area, parameter=2 * attempt)
        ratio = np.exp(slots.uniform(low, high, parameter=2 * attempt + 1))
        candidates = np.rint(np.sqrt([product / ratio, product * ratio])).astype(np.int64)
        good = missing & fits(*candidates)
        sides[:, good] = candidates[:, good]
        missing &= ~good
        if not missing.any():
            break
    return sides[0], sides[1]


def _fitting(size: int | Size, height: int, width: int, operation: str) -> Size:
    rows, columns = pair(size)
    if rows > height or columns > width:
        raise SetsupError(
            f"{operation} of {rows} × {columns} pixels is larger than the images, {height} × {width}; pass a smaller "
            "size, or apply Resize first"
        )
    return rows, columns
