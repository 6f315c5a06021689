"""Frames of sequences with the camera of each: image, pose and intrinsics, and maps of numbers where there are any."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.camera_paths import fit_intrinsics, nearest_fit
from setsup.datasets.adapters.fetching import common_size, fetch_images, read_distinct, sample_headers
from setsup.datasets.adapters.image_files import ReleaseDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.source import Source
from setsup.errors import DataError
from setsup.factors import FactorTable

__all__ = ["CameraFrames", "FrameMaps"]

_LOOKED_AT = 16


@dataclass(frozen=True, slots=True, eq=False)
class FrameMaps:
    """A map for each frame, such as depth: `places` (n,) int64, −1 for none.

    ``read(source, label, row, (height, width))`` gives a frame's (height, width).
    """

    images: MemberImages
    places: Rows
    dtype: str
    read: Callable[[Source, str, int, tuple[int, int]], Array]
    unit: str = ""


class CameraFrames(ReleaseDataset):
    """Frames of sequences, with ``image``, ``pose`` (camera to world, NaN where unknown) and ``intrinsics`` (pixels).

    `poses` (n, 4, 4) float32; `intrinsics` (n, 3, 3) float32; `sizes` (n, 2) int64, height and width of the images as
    published. With `size` (height, width), images are resized until they cover it and cut about their centre,
    intrinsics follow, and maps are resized to the nearest pixel. `more` are other modalities, as arrays of all rows.
    """

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        images: MemberImages,
        poses: npt.NDArray[np.float32],
        intrinsics: npt.NDArray[np.float32],
        sizes: Rows,
        size: tuple[int, int] | None = None,
        maps: Mapping[str, FrameMaps] | None = None,
        more: Mapping[str, tuple[Modality, Array]] | None = None,
    ) -> None:
        self.name, self.factors = name, factors
        self._images, self._size, self._maps = images, size, dict(maps or {})
        self._sizes = sizes
        self._arrays = {
            "pose": poses,
            "intrinsics": fit_intrinsics(intrinsics, sizes, size),
            **{name: array for name, (_, array) in (more or {}).items()},
        }
        shape = size or common_size(sample_headers(images, _LOOKED_AT))
        self.modalities = {
            "image": Modality((*shape, 3), "uint8", color="srgb"),
            "pose": Modality((4, 4), "float32"),
            "intrinsics": Modality((3, 3), "float32", unit="pixel"),
            **{name: modality for name, (modality, _) in (more or {}).items()},
            **{name: Modality(shape, each.dtype, unit=each.unit) for name, each in self._maps.items()},
        }

    def __repr__(self) -> str:
        """Show where the files are and the number of rows."""
        return f"{type(self).__name__}({self.name!r}, {str(self._images.source)!r}, {len(self):,} rows)"

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        if name == "image":
            return fetch_images(self._images, rows, self.modalities[name].shape, self._size, out)
        if name in self._arrays:
            return np.asarray(self._arrays[name][rows])
        return self._map(name, rows, out)

    def _map(self, name: str, rows: Rows, out: Array | None) -> Array:
        maps = self._maps[name]
        lacks = rows[maps.places[rows] < 0]
        if len(lacks):
            raise DataError(
                f"{self.name}: row {int(lacks[0])} ({self.paths([lacks[0]])[0]}) has no {name}; fetch the other "
                "modalities, or take the row out"
            )
        sizes = np.unique(self._sizes[rows], axis=0) if self._size is None else np.array([self._size])
        if len(sizes) > 1:
            raise DataError(
                f"{self.name}: images of several sizes cannot be fetched together, such as {sizes[0].tolist()} and "
                f"{sizes[1].tolist()} (height, width); open the dataset with size=(height, width)"
            )
        found = np.empty((len(rows), *(sizes[0] if len(sizes) else (0, 0))), maps.dtype) if out is None else out

        def take(distinct: Rows) -> list[tuple[Source, str, int]]:
            return [(*item, row) for item, row in zip(maps.images.take(distinct), distinct.tolist(), strict=True)]

        def put(item: tuple[Source, str, int], slot: int) -> None:
            height, width = self._sizes[item[2]].tolist()
            found[slot] = nearest_fit(maps.read(*item, (height, width)), self._size)

        read_distinct(rows, [found], take, put)
        return found
