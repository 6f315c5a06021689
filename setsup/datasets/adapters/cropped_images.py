"""Images of a release from which objects are cropped by their :mod:`boxes <setsup.datasets.adapters.boxes>`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Pixels, Rows
from setsup.datasets.adapters.boxes import crop, edges, jittered
from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.adapters.image_files import ReleaseDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.formats.source import Source
from setsup.datasets.images import check_size, decode
from setsup.errors import DataError
from setsup.factors.column_storage import check_rows
from setsup.factors.table import FactorTable
from setsup.files.archives.members import MemberIndex

__all__ = ["BoxedDataset", "BoxedImages", "Crops"]


@dataclass(frozen=True, slots=True)
class Crops:
    """Parameters of the crop: size of the images, and margin and jitter as fractions of a box."""

    size: tuple[int, int] = (128, 128)
    margin: float = 0.0
    jitter: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        size = () if self.size is None else self.size  # boxes have no size of their own
        object.__setattr__(self, "size", check_size(size))
        if not 0 <= self.margin <= 10:
            raise DataError(f"margin must be from 0 to 10 (a fraction of the size of the box), not {self.margin!r}")
        if not 0 <= self.jitter < 0.5:
            raise DataError(
                f"jitter must be at least 0 and below 0.5 (a fraction of the size of the box), not {self.jitter!r}"
            )


class BoxedImages:
    """Images by row number, each with the box of one object.

    Pixels are used as stored, without the orientation noted by a camera, since boxes were annotated on them.

    `places` (rows,) integer array; `boxes` (rows, 4) float, pixels.
    """

    def __init__(
        self,
        members: MemberIndex,
        places: npt.ArrayLike,
        boxes: npt.NDArray[Any],
        crops: Crops,
        stream: str,
    ) -> None:
        self.images = MemberImages(members, places, upright=False)
        self.boxes = boxes.astype(np.float32)
        self.size = crops.size
        self._jitter = (crops.margin, crops.jitter, crops.seed, stream)

    def crops(self, rows: Rows, out: Pixels) -> Pixels:
        """Crop and resize the boxes of (n,) rows, each once.

        `out` (n, height, width, 3) uint8 sRGB.
        """

        def take(distinct: Rows) -> list[tuple[Source, str, Any]]:
            sides = jittered(edges(self.boxes[distinct]), distinct, *self._jitter)
            return [(*item, side) for item, side in zip(self.images.take(distinct), sides, strict=True)]

        def put(item: tuple[Source, str, Any], slot: int) -> None:
            source, label, sides = item
            out[slot] = _cut(decode(source, label, 3), sides, self.size, label)

        read_distinct(rows, [out], take, put)
        return out


class BoxedDataset(ReleaseDataset):
    """Rows that are boxes in image files of a release.

    The modalities are ``image``, (height, width, 3) uint8 sRGB, the box cropped and resized (bilinear, antialiased,
    without preserving the aspect ratio), and ``box``, (4,) float32, in pixels, as annotated.
    """

    def __init__(self, name: str, factors: FactorTable, boxed: BoxedImages) -> None:
        self.name, self.factors = name, factors
        self._boxed, self._images = boxed, boxed.images
        self.modalities = {
            "image": Modality((*boxed.size, 3), "uint8", color="srgb"),
            "box": Modality((4,), "float32", unit="px"),
        }

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        return self._boxed.boxes[rows] if name == "box" else self._boxed.crops(rows, out)

    @of_row
    def photo(self, row: int) -> Pixels:
        """Decode the whole image of a row, which contains its box, as stored.

        Returns (height, width, 3) uint8 sRGB.
        """
        [(source, label)] = self._images.take(check_rows([row], len(self)))
        return decode(source, label, 3)


def _cut(pixels: Pixels, sides: npt.NDArray[np.float64], size: tuple[int, int], label: str) -> Pixels:
    height, width = pixels.shape[:2]
    left, top, right, bottom = sides.tolist()
    if not (left < min(right, width) and top < min(bottom, height) and right > 0 and bottom > 0):
        raise DataError(
            f"{label}: the box (left, top, right, bottom) = ({left:g}, {top:g}, {right:g}, {bottom:g}) lies outside "
            f"the image of {width} × {height} pixels (width × height), so the image and the box do not belong "
            "together; fetch both again"
        )
    return crop(pixels, sides, size)
