"""Datasets whose rows are image files of a release."""

import numpy.typing as npt

from setsup.datasets.adapters.fetching import common_size, fetch_images, sample_headers
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality, fetch_request, of_row
from setsup.datasets.originals import Original, originals_of, refuse_changed
from setsup.factors.table import FactorTable

__all__ = ["ImageFilesDataset", "ReleaseDataset"]

_LOOKED_AT = 16


class ReleaseDataset(BaseDataset):
    """Rows that each have an image file of a release; a subclass sets ``_images``."""

    cpu_bound = True
    _images: MemberImages

    @of_row
    def paths(self, indices: npt.ArrayLike) -> list[str]:
        """Names of the files of the given rows in the release's folder or archive.

        Parameters
        ----------
        indices : integer array of any shape
            Row numbers.

        """
        rows, _ = fetch_request(self, indices, ())
        return self._images.paths(rows.reshape(-1))

    def __repr__(self) -> str:
        """Show where the files are and the number of rows."""
        return f"{type(self).__name__}({self.name!r}, {str(self._images.source)!r}, {len(self):,} rows)"


class ImageFilesDataset(ReleaseDataset):
    """Rows that are image files of a release, with no other modality.

    The modality is ``image``, (height, width, 3) uint8 sRGB. If sizes differ and `size` is not given, height and width
    are None, and only images of one size can be fetched together. This is read from the headers of at most 16 files,
    evenly spread over the rows.

    `size` (height, width), optional; `crop` (height, width), optional.
    """

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        images: MemberImages,
        size: tuple[int, int] | None = None,
        crop: tuple[int, int] | None = None,
        lenient: bool = False,
    ) -> None:
        self.name, self.factors = name, factors
        self._images, self._size, self._crop, self._lenient = images, size, crop, lenient
        shape = size or crop or common_size(sample_headers(images, _LOOKED_AT))
        self.modalities = {"image": Modality((*shape, 3), "uint8", color="srgb")}

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None for other modalities."""
        if name != "image":
            return None
        refuse_changed(self.name, size=self._size, crop=self._crop)
        return originals_of(self._images.take(rows), 3, self._lenient)

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        shape = self.modalities[name].shape
        return fetch_images(self._images, rows, shape, self._size, out, self._crop, self._lenient)
