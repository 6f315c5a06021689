"""Images of a release from which objects are cropped by their :mod:`boxes <setsup.datasets.adapters.boxes>`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.boxes import crop, edges, jittered
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.dataset import Dataset, Modality, fetch_request, of_row
from setsup.datasets.images import checked_size, decode, parallel
from setsup.errors import DataError
from setsup.factors.stored import check_rows
from setsup.factors.table import FactorTable
from setsup.files.archives.members import MemberIndex

__all__ = ["BoxedImages", "BoxedPictures", "check_crop"]

Rows = npt.NDArray[np.int64]
Pictures = npt.NDArray[np.uint8]


class BoxedImages:
    """Pictures by row number, each with the box of one object.

    Pixels are taken as they are stored: boxes were annotated on them, whatever a camera noted of its orientation.

    `places` (rows,) integer array; `boxes` (rows, 4) float, pixels; `size` (height, width).
    """

    def __init__(
        self,
        members: MemberIndex,
        places: npt.ArrayLike,
        boxes: npt.NDArray[Any],
        size: tuple[int, int],
        margin: float,
        jitter: float,
        seed: int,
        stream: str,
    ) -> None:
        self._images = MemberImages(members, places, upright=False)
        self.boxes = boxes.astype(np.float32)
        self.size = size
        self._jitter = (margin, jitter, seed, stream)

    def crops(self, rows: Rows) -> Pictures:
        """Cut out and resize the boxes of any rows, each once.

        Returns (*rows.shape, height, width, 3) uint8 sRGB.
        """
        distinct, inverse = np.unique(rows.reshape(-1), return_inverse=True)
        sides = jittered(edges(self.boxes[distinct]), distinct, *self._jitter)
        items = list(zip(self._images.take(distinct), sides, strict=True))
        found = parallel(lambda item: _cut(decode(*item[0], 3), item[1], self.size, item[0][1]), items)
        stacked = np.stack(found) if found else np.empty((0, *self.size, 3), np.uint8)
        return np.asarray(stacked[inverse.reshape(-1)].reshape(*rows.shape, *self.size, 3))

    def whole(self, row: int) -> Pictures:
        """Decode the whole picture of a row, as it is stored.

        Returns (height, width, 3) uint8 sRGB.
        """
        [(source, label)] = self._images.take(np.array([row], np.int64))
        return decode(source, label, 3)


class BoxedPictures(Dataset):
    """What data sets share whose rows are boxes in picture files of a release.

    The modalities are ``image``, (height, width, 3) uint8 sRGB, the box cut out and resized (proportions not kept,
    bilinear, antialiased), and ``box``, (4,) float32, in pixels, as annotated.
    """

    computes = True

    def __init__(self, name: str, factors: FactorTable, images: BoxedImages, source: Path) -> None:
        self.name, self.factors = name, factors
        self._images, self._source = images, source
        self.modalities = {
            "image": Modality((*images.size, 3), "uint8", color="srgb"),
            "box": Modality((4,), "float32", unit="px"),
        }

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, npt.NDArray[Any]]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        return {name: self._images.crops(rows) if name == "image" else self._images.boxes[rows] for name in names}

    @of_row
    def photo(self, row: int) -> Pictures:
        """Whole picture of a row, in which its box lies.

        Returns (height, width, 3) uint8 sRGB.
        """
        return self._images.whole(int(check_rows([row], len(self))[0]))

    def __repr__(self) -> str:
        """Show where the release lies and the number of rows."""
        return f"{type(self).__name__}({str(self._source)!r}, {len(self):,} rows)"


def check_crop(size: tuple[int, int], margin: float, jitter: float) -> tuple[int, int]:
    """Check the options with which a data set cuts out boxes.

    `size` (height, width); returns (height, width), as plain integers.

    Examples
    --------
    >>> check_crop([64, 64], 0.1, 0.0)
    (64, 64)

    """
    shape = checked_size(() if size is None else size)  # boxes have no size of their own
    if not 0 <= margin <= 10:
        raise DataError(f"margin must be a fraction of the box from 0 to 10, not {margin!r}")
    if not 0 <= jitter < 0.5:
        raise DataError(f"jitter must be a fraction of the box from 0 to below 0.5, not {jitter!r}")
    return shape


def _cut(pixels: Pictures, sides: npt.NDArray[np.float64], size: tuple[int, int], label: str) -> Pictures:
    height, width = pixels.shape[:2]
    left, top, right, bottom = sides.tolist()
    if not (left < min(right, width) and top < min(bottom, height) and right > 0 and bottom > 0):
        raise DataError(
            f"{label} has {width} × {height} pixels, but its box {left:g}, {top:g}, {right:g}, {bottom:g} lies outside "
            "of them; the picture belongs to other annotations, or either is damaged: fetch them again"
        )
    return crop(pixels, sides, size)
