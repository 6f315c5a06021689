"""Pixels of one view with their partners in another, what became of each, and how they follow the images.

Pixels are (x, y) with centres at integers, as in :mod:`setsup.correspondence.planar`. How pairs are found is told
elsewhere: :func:`setsup.correspondence.spatial` traces them in a scene, :func:`setsup.correspondence.from_depth` takes
them from recorded depth, :func:`setsup.correspondence.from_tracks` from the points of a COLMAP model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.checks import check_array, check_image_size
from setsup.correspondence import planar
from setsup.errors import SetsupError, abbreviate
from setsup.html import block, counted, never_raises, table

__all__ = [
    "NO_SURFACE",
    "OCCLUDED",
    "OUTSIDE",
    "UNKNOWN",
    "VISIBLE",
    "PixelPairs",
    "Status",
    "check_key",
    "check_pixels",
    "flat_pixels",
    "one_per_pixel",
]

Size = Sequence[int]


class Status(IntEnum):
    """The status of a pixel of view 1 in view 2: of the first four, the last that applies."""

    VISIBLE = 0
    """View 2 shows the same point."""
    OCCLUDED = 1
    """Something stands between the point and camera 2, or camera 2 sees the surface from its other side."""
    OUTSIDE = 2
    """The point is out of view 2's image, or behind camera 2."""
    NO_SURFACE = 3
    """View 1 shows nothing there."""
    UNKNOWN = 4
    """The point falls within view 2's image, but nothing says whether it is visible: no depth was measured there, or a
    COLMAP model does not list an observation."""


VISIBLE, OCCLUDED, OUTSIDE, NO_SURFACE, UNKNOWN = (np.uint8(status) for status in Status)
"""Statuses as arrays of them have them."""


@dataclass(frozen=True, slots=True, eq=False)
class PixelPairs:
    """Pixels of view 1, the points that they show, and where view 2 has these.

    Parameters
    ----------
    points1 : (n, 2) float64
        Pixels (x, y) of view 1.
    points2 : (n, 2) float64
        Pixels (x, y) of view 2, also of points that are hidden there or out of the image; NaN where there is no
        surface, or it is behind camera 2.
    xyz : (n, 3) float64, metres
        Points of the world; NaN where there is no surface.
    instance : (n,) int32
        Number of the thing that is seen, as in images of instances; −1 for none, or where it is not known.
    status : (n,) uint8
        A :class:`Status` each.
    sparse : bool
        Whether the pairs say nothing of other pixels of view 1, as the tracks of a COLMAP model do: these are neither
        positive nor negative in training. Other pairs are a share of all pixels, drawn at random.

    Raises
    ------
    SetsupError
        When shapes do not fit together, or a status is none.

    Examples
    --------
    >>> pairs = PixelPairs([[4, 7], [5, 7]], [[1, 7.5], [9, 7]], [[0, 0, 1], [1, 0, 1]], [3, 3], [0, 1])
    >>> pairs.visible.tolist(), pairs.select(pairs.visible).points2.tolist()
    ([True, False], [[1.0, 7.5]])

    """

    points1: Reals
    points2: Reals
    xyz: Reals
    instance: npt.NDArray[np.int32]
    status: npt.NDArray[np.uint8]
    sparse: bool = False

    def __post_init__(self) -> None:
        """Check the shapes, and keep arrays of the dtypes."""
        count = len(np.atleast_1d(check_array(self.status, "status of pixel pairs", SetsupError)))
        for name, dtype, shape in (
            ("points1", np.float64, (count, 2)),
            ("points2", np.float64, (count, 2)),
            ("xyz", np.float64, (count, 3)),
            ("instance", np.int32, (count,)),
            ("status", np.uint8, (count,)),
        ):
            values = check_array(getattr(self, name), f"{name} of pixel pairs", SetsupError, dtype)
            if values.shape != shape:
                raise SetsupError(f"{name} of pixel pairs must have shape {shape}, not {values.shape}")
            object.__setattr__(self, name, values)
        if count and self.status.max() > Status.UNKNOWN:
            raise SetsupError(
                f"the status of pixel pairs must be from 0 to {int(Status.UNKNOWN)}, not {self.status.max()}"
            )

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.status)

    def __repr__(self) -> str:
        """Show how many there are of each status."""
        return f"PixelPairs({', '.join(f'{count:,} {status.name}' for status, count in self._counts())})"

    @never_raises
    def _repr_html_(self) -> str:
        """Show how many there are of each status in a notebook."""
        rows = [(status.name.lower().replace("_", " "), f"{count:,}") for status, count in self._counts()]
        return block(counted(len(self), "pixel pair"), table(("status", "pairs"), rows))

    def _counts(self) -> list[tuple[Status, int]]:
        """How many pairs there are of each status; UNKNOWN only where there are some, as traced pairs have none."""
        counts = np.bincount(self.status, minlength=len(Status)).tolist()
        return [one for one in zip(Status, counts, strict=True) if one[1] or one[0] != Status.UNKNOWN]

    @property
    def visible(self) -> Bools:
        """Which pairs view 2 shows, (n,) bool."""
        return np.asarray(self.status == Status.VISIBLE)

    def select(self, rows: npt.ArrayLike) -> "PixelPairs":
        """Take some of the pairs.

        Parameters
        ----------
        rows : (n,) bool or (k,) int
            Mask or numbers, in whatever order.

        Raises
        ------
        SetsupError
            When a mask has another length, or a number is out of range.

        """
        which = np.asarray(rows)
        if which.dtype != np.bool_:
            which = which.astype(np.int64) if which.size == 0 else which
        if which.ndim != 1 or which.dtype.kind not in "biu":
            raise SetsupError(
                f"pairs must be selected with a 1-D boolean mask or 1-D integers, not {which.dtype} of shape "
                f"{which.shape}"
            )
        try:
            return PixelPairs(
                *(self.points1[which], self.points2[which], self.xyz[which]),
                *(self.instance[which], self.status[which], self.sparse),
            )
        except IndexError as error:
            raise SetsupError(f"cannot select from {len(self):,} pairs: {error}") from error

    def carried(self, matrix1: npt.ArrayLike, matrix2: npt.ArrayLike, size1: Size, size2: Size) -> "PixelPairs":
        """Follow both views through crops, flips, resizes and whatever else has a matrix; each view has its own.

        Pairs whose pixel leaves view 1 are left out; the others keep their order. One that was visible, occluded or
        unknown and whose partner leaves view 2 becomes OUTSIDE. What was OUTSIDE stays so, even if it falls within the
        new image: where a crop reaches beyond the old one, there is nothing to see.

        Parameters
        ----------
        matrix1, matrix2 : (3, 3)
            Of :mod:`setsup.correspondence.planar`, from pixels of the old image to those of the new.
        size1, size2 : (height, width)
            Of the new images.

        Examples
        --------
        >>> pairs = PixelPairs([[4, 7], [5, 7]], [[1, 7.5], [9, 7]], [[0, 0, 1], [1, 0, 1]], [3, 3], [0, 0])
        >>> moved = pairs.carried(planar.flip_x(10), planar.crop(4, 4), (8, 10), (6, 6))
        >>> moved.points1.tolist(), moved.points2.tolist(), moved.status.tolist()
        ([[5.0, 7.0], [4.0, 7.0]], [[-3.0, 3.5], [5.0, 3.0]], [2, 0])

        """
        height1, width1 = check_image_size(size1, "size1", SetsupError)
        height2, width2 = check_image_size(size2, "size2", SetsupError)
        first = planar.carried(self.points1, matrix1)
        second = planar.carried(self.points2, matrix2)
        left = (self.status != Status.NO_SURFACE) & ~planar.inside(second, height2, width2)
        status = np.where(left, np.uint8(Status.OUTSIDE), self.status)
        moved = PixelPairs(first, second, self.xyz, self.instance, status, self.sparse)
        return moved.select(planar.inside(first, height1, width1))


def flat_pixels(points: Reals, width: int) -> Rows:
    """Flat index y · width + x of the pixels nearest to points, half-way places going to the even one; (n,) int64."""
    nearest = np.rint(points).astype(np.int64)
    return np.asarray(nearest[:, 1] * int(width) + nearest[:, 0])


def one_per_pixel(points: Reals, width: int) -> Rows:
    """Select one point for each nearest pixel: the point nearest to its centre, or the first of equally near ones.

    Returns
    -------
    (m,) int64
        Their numbers, ascending.

    """
    away = ((points - np.rint(points)) ** 2).sum(axis=1)
    flat = flat_pixels(points, width)
    order = np.lexsort((away, flat))  # stable: of equally near ones the first stays first
    _, chosen = np.unique(flat[order], return_index=True)
    return np.asarray(np.sort(order[chosen]))


def check_key(key: Any) -> npt.NDArray[np.uint64]:
    """Check a key; returns it as a uint64 scalar array."""
    number = np.asarray(key)
    whole = number.shape == () and not isinstance(key, bool) and isinstance(number.item(), int)
    if not whole or not 0 <= number.item() < 1 << 64:
        raise SetsupError(
            f"key must be an integer from 0 to 2**64 - 1, for example from setsup.random.fold, not {abbreviate(key)}"
        )
    return number.astype(np.uint64)


def check_pixels(pixels: npt.ArrayLike) -> Reals:
    """Check positions in an image; returns a copy, (n, 2) float64. An empty list is allowed."""
    numbers = np.asarray(pixels)
    if numbers.shape == (0,):
        numbers = numbers.reshape(0, 2)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or numbers.dtype.kind not in "fiu":
        raise SetsupError(
            f"pixels must be a numeric array of shape (n, 2), one (x, y) per row, not {numbers.dtype} of shape "
            f"{numbers.shape}"
        )
    if len(bad := np.flatnonzero(~np.isfinite(numbers).all(axis=1))):
        raise SetsupError(f"pixels must be finite, but row {bad[0]} is {numbers[bad[0]].tolist()}")
    return np.array(numbers, dtype=np.float64)
