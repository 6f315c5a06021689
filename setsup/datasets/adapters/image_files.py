"""Releases of pictures: a file a row, and no other modality."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.image_sources import MemberImages, PartedImages, fetch_images
from setsup.datasets.dataset import Dataset, Modality, fetch_request, of_row
from setsup.datasets.images import header, parallel
from setsup.factors.table import FactorTable

__all__ = ["PictureFiles"]

Array = npt.NDArray[Any]

_LOOKED_AT = 16


class PictureFiles(Dataset):
    """What data sets share whose rows are picture files of a release.

    The one modality is ``image``, (height, width, 3) uint8 sRGB; where sizes differ and none is asked for, height and
    width are None, and only pictures of one size can be fetched together. The headers of at most 16 files, evenly
    spread over the rows, tell.

    `size` (height, width), optional; `crop` (height, width), optional.
    """

    computes = True

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        images: MemberImages | PartedImages,
        size: tuple[int, int] | None = None,
        crop: tuple[int, int] | None = None,
        lenient: bool = False,
    ) -> None:
        self.name, self.factors = name, factors
        self._images, self._size, self._crop, self._lenient = images, size, crop, lenient
        self.modalities = {"image": Modality((*(size or crop or _common(images)), 3), "uint8", color="srgb")}

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        return {name: self._decoded(rows, None) for name in names}

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Decode rows into arrays; see :meth:`setsup.datasets.Dataset.fetch_into`."""
        rows, names = fetch_request(self, indices, tuple(out))
        for name in names:
            self._decoded(rows, out[name])

    @of_row
    def paths(self, indices: npt.ArrayLike) -> list[str]:
        """Names of the files of the given rows in the release's folder or archive."""
        rows, _ = fetch_request(self, indices, ())
        return self._images.paths(rows.reshape(-1))

    def __repr__(self) -> str:
        """Show where the files are and the number of rows."""
        return f"{type(self).__name__}({self.name!r}, {str(self._images.source)!r}, {len(self):,} rows)"

    def _decoded(self, rows: npt.NDArray[np.int64], out: Array | None) -> Array:
        shape = self.modalities["image"].shape
        return fetch_images(self._images, rows, shape, self._size, out, self._crop, self._lenient)


def _common(images: MemberImages | PartedImages) -> tuple[int | None, int | None]:
    """Height and width that the pictures looked at have in common."""
    spread = np.unique(np.linspace(0, len(images) - 1, min(len(images), _LOOKED_AT)).astype(np.int64))
    sizes = {(found.height, found.width) for found in parallel(lambda item: header(*item), images.take(spread))}
    return sizes.pop() if len(sizes) == 1 else (None, None)
