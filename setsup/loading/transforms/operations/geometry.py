"""Geometric operations: for each image of a batch, one matrix that takes its pixels to those of the result.

An operation is a frozen dataclass with ``homography(slots, height, width)``, which gives matrices (n, 3, 3) of float64
and the (height, width) of the result, by the conventions of :mod:`setsup.correspondence.planar`. Nothing is resampled
here: :class:`setsup.loading.transforms.Augment` multiplies the matrices of consecutive operations and resamples once.
Here are those that keep the size of images; :mod:`setsup.loading.transforms.operations.crops` has the others.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from setsup.arrays import Matrices, Size
from setsup.checks import is_number
from setsup.correspondence import planar
from setsup.errors import SetsupError
from setsup.loading.crops import Range, check_range
from setsup.loading.transforms.operations.base import check_probability, set_field
from setsup.loading.transforms.slots import Slots

__all__ = ["Affine", "Flip", "Geometric", "Perspective", "Rotate", "Shift", "VerticalFlip", "where"]


@runtime_checkable
class Geometric(Protocol):
    """What is a geometric operation: whatever has this method."""

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices (n, 3, 3) from pixels of height × width images to pixels of the result, and the result's size."""
        ...


@dataclass(frozen=True)
class Flip:
    """Horizontal flip with probability p.

    Parameters
    ----------
    p : float
        0 … 1.

    Examples
    --------
    >>> Flip()
    Flip(p=0.5)

    """

    p: float = 0.5

    def __post_init__(self) -> None:
        check_probability(self.p, f"{type(self).__name__}: p")

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        return where(slots.uniform(0, 1) < self.p, self._mirror(height, width)), (height, width)

    def _mirror(self, height: int, width: int) -> Matrices:
        return planar.flip_x(width)


class VerticalFlip(Flip):
    """Vertical flip with probability p, 0 … 1.

    Examples
    --------
    >>> VerticalFlip(1.0)
    VerticalFlip(p=1.0)

    """

    def _mirror(self, height: int, width: int) -> Matrices:
        return planar.flip_y(height)


@dataclass(frozen=True)
class Rotate:
    """Rotation about the centre of the image by an angle uniform in a range.

    Parameters
    ----------
    degrees : (low, high)
        Range of the angle, counterclockwise.

    Examples
    --------
    >>> Rotate((-90, 90))
    Rotate(degrees=(-90.0, 90.0))

    """

    degrees: Range

    def __post_init__(self) -> None:
        set_field(self, "degrees", check_range(self.degrees, "Rotate: degrees"))

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        turn = planar.rotation(slots.uniform(*self.degrees))
        return planar.about_centre(turn, height, width), (height, width)


@dataclass(frozen=True)
class Affine:
    """Rotation, shear and scaling about the centre, then a translation; each number is uniform in a range.

    The order, and the ranges ±90°, ±0.3, 0.7 … 1.3 and ±15 px on a canvas of 40 × 40, are those of orbit sets of
    digits [1]_. To translate before rotating, put ``Affine(translate=…)`` before ``Affine(degrees=…)``: consecutive
    operations are resampled once.

    Parameters
    ----------
    degrees : (low, high)
        Rotation angle, counterclockwise.
    shear : (low, high)
        Shear in pixels to the right per pixel down.
    scale : (low, high)
        Scale factor in both directions, positive.
    translate : (low, high)
        Translation in pixels, drawn independently for x and y.

    References
    ----------
    .. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders", 2017 (arXiv 1703.04775).

    Examples
    --------
    >>> Affine(degrees=(-90, 90), shear=(-0.3, 0.3), scale=(0.7, 1.3), translate=(-15, 15)).scale
    (0.7, 1.3)

    """

    degrees: Range = (0.0, 0.0)
    shear: Range = (0.0, 0.0)
    scale: Range = (1.0, 1.0)
    translate: Range = (0.0, 0.0)

    def __post_init__(self) -> None:
        for name in ("degrees", "shear", "translate"):
            set_field(self, name, check_range(getattr(self, name), f"Affine: {name}"))
        set_field(self, "scale", check_range(self.scale, "Affine: scale", positive=True))

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        degrees, shear = slots.uniform(*self.degrees, parameter=0), slots.uniform(*self.shear, parameter=1)
        scale = slots.uniform(*self.scale, parameter=2)
        linear = planar.compose(planar.rotation(degrees), planar.shear(shear), planar.scaling(scale))
        x, y = (slots.uniform(*self.translate, parameter=number) for number in (3, 4))
        return planar.compose(planar.about_centre(linear, height, width), planar.translate(x, y)), (height, width)


@dataclass(frozen=True)
class Shift:
    """Translation by a random fraction of the image's sides, uniform and independent in x and y.

    The translation of bounding boxes by 0.1 × (height, width) of ABC's pose networks is ``Shift(0.1)`` [1]_.

    Parameters
    ----------
    fraction : float
        Maximum fraction, 0 … 1: x moves by up to ±fraction · width, y by up to ±fraction · height.

    References
    ----------
    .. [1] K. Murphy et al., "Learning ABCs", CVPR 2022 (arXiv 2103.03240), synthetic-to-real pose transfer.

    Examples
    --------
    >>> Shift(0.1)
    Shift(fraction=0.1)

    """

    fraction: float

    def __post_init__(self) -> None:
        check_probability(self.fraction, "Shift: fraction")

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        x, y = (slots.uniform(-self.fraction, self.fraction, parameter=number) for number in (0, 1))
        return planar.translate(x * width, y * height), (height, width)


@dataclass(frozen=True)
class Perspective:
    """Random perspective: each corner of the image moves inward, in x and y by uniform fractions of half the sides.

    Parameters
    ----------
    distortion : float
        Maximum fraction, 0 ≤ distortion < 2/3; from 2/3 on a quadrangle may be concave, which no homography produces.

    Examples
    --------
    >>> Perspective(0.5)
    Perspective(distortion=0.5)

    """

    distortion: float = 0.5

    def __post_init__(self) -> None:
        if not is_number(self.distortion) or not 0 <= self.distortion < 2 / 3:
            raise SetsupError(f"Perspective: distortion must be at least 0 and below 2/3, not {self.distortion!r}")

    def homography(self, slots: Slots, height: int, width: int) -> tuple[Matrices, Size]:
        """Matrices and size of the result."""
        corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * [width, height] - 0.5
        shares = np.stack([slots.uniform(0, self.distortion, parameter=number) for number in range(8)], axis=-1)
        inward = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * [width / 2, height / 2]
        return planar.four_points(corners, corners + inward * shares.reshape(-1, 4, 2)), (height, width)


def where(chosen: npt.NDArray[np.bool_], matrices: Matrices) -> Matrices:
    """Matrices (n, 3, 3) that are those given where chosen (n,), and leave the other images as they are."""
    return np.where(chosen[:, None, None], matrices, np.eye(3))
