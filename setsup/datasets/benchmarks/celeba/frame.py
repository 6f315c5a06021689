"""Visible part of an aligned face: a resized central crop, and the positions of points in it.

Convention
----------
Points are (x, y) in pixels, x to the right, y down, (0, 0) is the centre of the first pixel. The published landmarks
are assumed to follow this convention.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.images import check_size, corner
from setsup.errors import DataError

__all__ = ["ALIGNED", "Frame"]

Size = tuple[int, int]

ALIGNED = (218, 178)
"""Height and width of an aligned image."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A resized crop about the centre of an aligned image.

    `crop` (height, width) or None, pixels; `size` (height, width) or None, pixels.
    """

    crop: Size | None = None
    size: Size | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("crop", "size"):
            object.__setattr__(self, name, check_size(getattr(self, name), name))
        if self.crop is not None and (self.crop[0] > ALIGNED[0] or self.crop[1] > ALIGNED[1]):
            raise DataError(
                f"crop={self.crop} is larger than the aligned images (218 × 178, height × width); choose a smaller crop"
            )

    @property
    def shape(self) -> Size:
        """Height and width of the result."""
        return self.size or self.crop or ALIGNED

    @property
    def whole(self) -> bool:
        """Whether aligned images are unchanged."""
        return self.crop in (None, ALIGNED) and self.shape == ALIGNED

    def apply(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Crop and resize an aligned image, (218, 178, 3) uint8; returns (*shape, 3) uint8."""
        from PIL import Image, ImageOps

        height, width = self.crop or ALIGNED
        top, left = self._corner()
        cut = np.ascontiguousarray(pixels[top : top + height, left : left + width])
        if self.shape == (height, width):
            return cut
        image = Image.fromarray(cut)
        block = self._block()
        if block is not None:
            return np.asarray(image.reduce(block))
        return np.asarray(ImageOps.fit(image, (self.shape[1], self.shape[0]), Image.Resampling.BICUBIC))

    def points(self, points: Array, seen_in: "Frame | None" = None) -> npt.NDArray[np.float64]:
        """Transform points with the image.

        `points` (..., 2) float; returns (..., 2) float64.
        """
        scale, origin = self._map()
        theirs, their_origin = (1.0, np.zeros(2)) if seen_in is None else seen_in._map()
        edges = np.asarray(points, np.float64) + 0.5
        return np.asarray((edges / theirs + (their_origin - origin)) * scale - 0.5)

    def _corner(self) -> Size:
        """Row and column of the crop's first pixel; LORD and DCoDR, whose crop is 128 × 128, cut there too."""
        return corner(ALIGNED, self.crop or ALIGNED)

    def _block(self) -> tuple[int, int] | None:
        """Columns and rows of the blocks that become a pixel; None where they are no whole squares."""
        (height, width), (tall, wide) = self.crop or ALIGNED, self.shape
        factor = height // tall
        return (factor, factor) if factor > 0 and (height, width) == (tall * factor, wide * factor) else None

    def _map(self) -> tuple[float, npt.NDArray[np.float64]]:
        """Scale, and where the frame's upper left corner lies in the aligned image, (x, y) of pixel edges."""
        (height, width), (tall, wide) = self.crop or ALIGNED, self.shape
        scale = max(tall / height, wide / width)
        rest = (np.array([width, height]) - np.array([wide, tall]) / scale) / 2
        return scale, np.array(self._corner()[::-1]) + rest
