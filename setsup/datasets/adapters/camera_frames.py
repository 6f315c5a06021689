"""Frames of sequences with their cameras: image, pose and intrinsics, and optional maps of numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Places, Rows
from setsup.datasets.adapters.camera_paths import fit_intrinsics, nearest_fit, scale_intrinsics
from setsup.datasets.adapters.fetching import fetch_images, read_distinct
from setsup.datasets.adapters.image_files import ReleaseDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.formats.source import Source
from setsup.datasets.images import header, parallel
from setsup.datasets.originals import Original, originals_of, refuse_changed
from setsup.errors import DataError
from setsup.factors import FactorTable
from setsup.files.archives.members import MemberIndex

__all__ = ["CameraFrames", "FrameMaps"]

_LOOKED_AT = 16


@dataclass(frozen=True, slots=True, eq=False)
class FrameMaps:
    """A map for each frame, such as depth: `places` (n,) int64 among the files, −1 for none.

    ``read(source, label, row, (height, width))`` gives a frame's (height, width).
    """

    files: MemberIndex
    places: Places
    dtype: str
    read: Callable[[Source, str, int, tuple[int, int]], Array]
    unit: str = ""
    images: MemberImages = field(init=False)

    def __post_init__(self) -> None:
        """Find the files; those of frames without a map are never read."""
        object.__setattr__(self, "images", MemberImages(self.files, np.maximum(self.places, 0)))


class CameraFrames(ReleaseDataset):
    """Frames of sequences, with ``image``, ``pose`` (camera to world, NaN where unknown) and ``intrinsics`` (pixels).

    `poses` (n, 4, 4) float32; `intrinsics` (n, 3, 3) float32 of images of the height and width `sizes` (n, 2) int64, as
    annotated; with None, of those of the files. A copy may have smaller images: if one ratio resized both axes,
    intrinsics are scaled to the image's own size; other images raise an error. With `size` (height, width), images are
    resized until they cover it and cropped to their centre, intrinsics are adjusted, and maps are resized to the
    nearest pixel. `more` contains other modalities, as arrays of all rows; `channels` are those of the images.
    """

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        images: MemberImages,
        poses: npt.NDArray[np.float32],
        intrinsics: npt.NDArray[np.float32],
        sizes: Rows | None,
        size: tuple[int, int] | None = None,
        maps: Mapping[str, FrameMaps] | None = None,
        more: Mapping[str, tuple[Modality, Array]] | None = None,
        channels: int = 3,
    ) -> None:
        self.name, self.factors = name, factors
        self._images, self._size, self._maps = images, size, dict(maps or {})
        self._sizes, self._intrinsics, self._channels = sizes, intrinsics, channels
        self._seen: Rows | None = None
        self._arrays = {"pose": poses, **{name: array for name, (_, array) in (more or {}).items()}}
        sampled = np.unique(np.linspace(0, len(images) - 1, min(len(images), _LOOKED_AT)).astype(np.int64))
        self._fitted(sampled)  # which refuses what cannot be right
        found = np.unique(self._own_sizes(sampled), axis=0)
        shape = size or (tuple(found[0].tolist()) if len(found) == 1 else (None, None))
        self.modalities = {
            "image": Modality((*shape, channels), "uint8", color="grey" if channels == 1 else "srgb"),
            "pose": Modality((4, 4), "float32"),
            "intrinsics": Modality((3, 3), "float32", unit="pixel"),
            **{name: modality for name, (modality, _) in (more or {}).items()},
            **{name: Modality(shape, each.dtype, unit=each.unit) for name, each in self._maps.items()},
        }

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None for other modalities."""
        if name != "image":
            return None
        refuse_changed(self.name, size=self._size)
        return originals_of(self._images.take(rows), self._channels)

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        if name == "image":
            return fetch_images(self._images, rows, self.modalities[name].shape, self._size, out)
        if name == "intrinsics":
            return self._fitted(rows)
        if name in self._arrays:
            return np.asarray(self._arrays[name][rows])
        return self._map(name, rows, out)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what this process has read of the files."""
        return {**self.__dict__, "_seen": None}

    def _own_sizes(self, rows: Rows) -> Rows:
        """Height and width of the image files of some rows; each file is read once per process."""
        if self._seen is None:
            self._seen = np.zeros((len(self), 2), np.int64)
        seen = self._seen
        new = np.unique(rows[seen[rows, 0] == 0])

        def look(item: tuple[int, tuple[Source, str]]) -> None:
            head = header(*item[1])
            seen[item[0]] = head.height, head.width

        parallel(look, list(zip(new.tolist(), self._images.take(new), strict=True)))
        return seen[rows]

    def _scaled(self, rows: Rows) -> tuple[npt.NDArray[np.float32], Rows]:
        """Intrinsics of the images as they are stored, and their heights and widths."""
        own = self._own_sizes(rows)
        if self._sizes is None:
            return self._intrinsics[rows], own
        scaled, whole = scale_intrinsics(self._intrinsics[rows], self._sizes[rows], own)
        wrong = np.flatnonzero(~whole & np.isfinite(self._intrinsics[rows, 0, 0]))
        if len(wrong):
            row, (height, width), (tall, wide) = rows[wrong[0]], own[wrong[0]], self._sizes[rows[wrong[0]]]
            raise DataError(
                f"{self.name}: {self.paths([row])[0]} (row {row}) is {height} × {width} pixels (height × width), but "
                f"its camera was calibrated for {tall} × {wide}: the image was cropped or stretched, so its intrinsics "
                "are unknown; use the published images, or resize them without changing the aspect ratio"
            )
        return scaled, own

    def _fitted(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Intrinsics of the images as they are fetched."""
        fitted: npt.NDArray[np.float32] = fit_intrinsics(*self._scaled(rows), self._size)
        return fitted

    def _fetched_size(self, rows: Rows) -> tuple[int, int]:
        """Height and width of the images of some rows as they are fetched, which must be equal."""
        own = self._own_sizes(rows)
        sizes = np.unique(own, axis=0) if self._size is None else np.array([self._size])
        if len(sizes) > 1:
            raise DataError(
                f"{self.name}: images of different sizes cannot be stacked, such as {sizes[0].tolist()} and "
                f"{sizes[1].tolist()} (height, width); open the dataset with size=(height, width)"
            )
        height, width = sizes[0].tolist() if len(sizes) else (0, 0)
        return height, width

    def _fit_map(self, pixels: Array, row: int) -> Array:
        """A frame of a map as it is fetched."""
        return nearest_fit(pixels, self._size)

    def _map(self, name: str, rows: Rows, out: Array | None) -> Array:
        maps = self._maps[name]
        lacks = rows[maps.places[rows] < 0]
        if len(lacks):
            raise DataError(
                f"{self.name}: row {int(lacks[0])} ({self.paths([lacks[0]])[0]}) has no {name}; select other rows or "
                "modalities"
            )
        filled = np.empty((len(rows), *self._fetched_size(rows)), maps.dtype) if out is None else out

        def take(distinct: Rows) -> list[tuple[Source, str, int]]:
            return [(*item, row) for item, row in zip(maps.images.take(distinct), distinct.tolist(), strict=True)]

        def put(item: tuple[Source, str, int], slot: int) -> None:
            height, width = self._own_sizes(np.array([item[2]]))[0].tolist()
            filled[slot] = self._fit_map(maps.read(*item, (height, width)), item[2])

        read_distinct(rows, [filled], take, put)
        return filled
