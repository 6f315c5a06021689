"""Frames of captures with their cameras, undistorted as they are read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.camera_frames import CameraFrames, FrameMaps
from setsup.datasets.adapters.camera_paths import around_upright, fit_intrinsics, pose_factors
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.fetching import read_distinct, sample_headers
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.lens_distortion import undistort_pixels
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.formats.source import Source
from setsup.datasets.images import common_channels, decode, resize
from setsup.datasets.originals import Original
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["CaptureFrames", "capture_table"]

_LOOKED_AT = 16


class CaptureFrames(CameraFrames):
    """Frames of captures, with ``image``, ``pose`` (camera to world) and ``intrinsics`` (pixels), and maps.

    Parameters
    ----------
    name : str
        Name of the dataset.
    factors : FactorTable
        ``scene``, ``frame`` and others.
    images : MemberImages
        The images.
    poses : (n, 4, 4) float32
        From the camera's coordinates (x right, y down, z forward) to the world.
    intrinsics : (n, 3, 3) float32, pixels
        Of images of the heights and widths `sizes`, with centres of pixels at integers.
    sizes : (n, 2) int64, pixels
        Height and width that cameras are calibrated for.
    distortion : (n, 8) float64
        OpenCV's k1, k2, p1, p2, k3, k4, k5, k6.
    size : (height, width), optional
        What images are resized to cover, and cropped to.
    undistort : bool
        Whether images, maps and observations are undistorted; else ``distortion`` is a modality, where there is any.
    maps : mapping of str to FrameMaps, optional
        Depth and masks.

    """

    pair_factors = ("scene",)
    """Factors in which the views of a scene agree."""

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        images: MemberImages,
        poses: npt.NDArray[np.float32],
        intrinsics: npt.NDArray[np.float32],
        sizes: Rows,
        distortion: npt.NDArray[np.float64],
        size: tuple[int, int] | None = None,
        undistort: bool = True,
        maps: Mapping[str, FrameMaps] | None = None,
    ) -> None:
        bent = np.asarray(distortion.any(axis=1), bool).reshape(-1)
        more: dict[str, tuple[Modality, Array]] = {}
        if bent.any() and not undistort:
            more["distortion"] = Modality((8,), "float32"), distortion.astype(np.float32)
        self._distortion = distortion
        self._bent: npt.NDArray[np.bool_] = bent & np.bool_(undistort)
        channels = common_channels(sample_headers(images, _LOOKED_AT))
        super().__init__(name, factors, images, poses, intrinsics, sizes, size, maps, more, channels)

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None for other modalities, and where images are undistorted."""
        encoded = super().originals(rows, name)
        return None if self._bent[rows].any() else encoded

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        if name != "image" or not self._bent[rows].any():
            return super()._read(name, rows, out)
        filled = np.empty((len(rows), *self._fetched_size(rows), self._channels), np.uint8) if out is None else out

        def take(distinct: Rows) -> list[tuple[Source, str, int]]:
            items = self._images.take(distinct)
            return [(*item, row) for item, row in zip(items, distinct.tolist(), strict=True)]

        def put(item: tuple[Source, str, int], slot: int) -> None:
            source, label, row = item
            filled[slot] = self._undistorted(decode(source, label, self._channels), row)

        read_distinct(rows, [filled], take, put)
        return filled

    def _undistorted(self, pixels: npt.NDArray[np.uint8], row: int) -> npt.NDArray[np.uint8]:
        """An image as it is fetched: resized before it is undistorted, since that is what takes long."""
        if not self._bent[row]:
            return resize(pixels, self._size)
        camera, own = self._scaled(np.array([row]))
        if self._size is not None:
            scale = (np.array(self._size) / own[0]).max()
            height, width = np.maximum(np.rint(own[0] * scale), 1).astype(int).tolist()
            pixels, camera = resize(pixels, (height, width)), fit_intrinsics(camera, own, (height, width))
        return self._pinhole(pixels, camera[0], row)

    def _fit_map(self, pixels: Array, row: int) -> Array:
        if not self._bent[row]:
            return super()._fit_map(pixels, row)
        return self._pinhole(pixels, self._scaled(np.array([row]))[0][0], row, nearest=True)

    def _pinhole(self, pixels: Array, camera: Array, row: int, nearest: bool = False) -> Array:
        """What the camera of a row shows without distortion; `camera` (3, 3) is that of the pixels."""
        rows = np.array([row])
        target, size = self._fitted(rows)[0].astype(np.float64), self._fetched_size(rows)
        return undistort_pixels(pixels, camera.astype(np.float64), self._distortion[row], target, size, nearest)


def capture_table(
    scenes: Sequence[str],
    scene: Rows,
    poses: npt.NDArray[np.float32],
    splits: Sequence[str | None] = (),
) -> FactorTable:
    """Make the factors of frames that are ordered by scene.

    `scenes` are the names, in order; `scene` (n,) int64 the position of each frame's among them; `poses` (n, 4, 4);
    `splits`, where there are any, each frame's own, None for none.
    """
    starts = np.flatnonzero(np.append(True, np.diff(scene) != 0))
    frame = np.arange(len(scene)) - np.repeat(starts, np.diff(np.append(starts, len(scene))))
    order = [name for name in ("train", "val", "test") if name in splits]
    columns: list[tuple[Factor, Any]] = [
        (Factor("scene", Kind.NOMINAL, tuple(scenes)), scene),
        (Factor("frame", Kind.ORDINAL, tuple(range(int(frame.max()) + 1)), within="scene", role="key"), frame),
        *pose_factors(poses, scene, around_upright),
    ]
    if order:
        columns.append(nominal("split", splits, role="split", levels=order))
    return table_of(columns)
