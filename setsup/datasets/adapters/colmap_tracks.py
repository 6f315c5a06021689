"""Frames with cameras by COLMAP, and the 3D points that each image observes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.datasets.adapters.camera_frames import CameraFrames
from setsup.datasets.dataset import fetch_request, of_row
from setsup.datasets.formats.geometry.colmap_points import ColmapPoints, read_observations, read_points
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex

__all__ = ["ColmapModel", "ColmapTracks"]

_MOST = 1 << 32  # bytes of points3D.bin


@dataclass(frozen=True, slots=True, eq=False)
class ColmapModel:
    """Where the files of a model are: places of the lists of images and points, −1 for none, and which are text."""

    files: MemberIndex
    images: int
    text: bool
    points: int
    points_text: bool

    @property
    def folder(self) -> str:
        """The folder of the model."""
        label: str = self.files.label(self.images)
        return label.rpartition("images.")[0]


class ColmapTracks(CameraFrames):
    """Frames with cameras by COLMAP, and the 3D points that each image observes.

    Subclasses set `_stretches` (n, 2) int64, where the observations of each image are in the list of images, in bytes,
    and say which model a row belongs to.
    """

    _stretches: Rows

    @of_row
    def observations(self, row: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The 3D points that an image observes.

        Parameters
        ----------
        row : int
            Row of the image.

        Returns
        -------
        pixels : (n, 2) float64
            Positions (x, y) in the image as it is fetched, with centres of pixels at integers; undistorted if images
            are. Some may be outside, where `size` crops the image.
        ids : (n,) int64
            Numbers of the points, those of :meth:`points`.

        Raises
        ------
        DataError
            When the file is damaged, or has changed.

        """
        row = self._one(row)
        model = self._model_of(row)
        start, length = self._stretches[row].tolist()
        content = model.files.stretch(model.images, start, length)
        if content is None:
            content = model.files.read(model.images)[start : start + length]
        label = f"{model.files.label(model.images)}: the observations of row {row}"
        if len(content) < length:
            raise DamagedFile(f"{label} are missing: the file has changed since it was opened", "open it again")
        pixels, ids = read_observations(content, model.text, label)
        pixels, ids = pixels[ids >= 0], ids[ids >= 0]
        target = self._fitted(np.array([row]))[0].astype(np.float64)
        return self._rays(pixels, row) * [target[0, 0], target[1, 1]] + target[:2, 2], ids

    @of_row
    def observed(self, row: int) -> Rows:
        """Numbers of the 3D points that an image shows as it is fetched, (n,) int64, ascending, each once.

        Those of :meth:`observations`, without points that `size` crops away or that undistortion moves out of the
        image.
        """
        row = self._one(row)
        pixels, ids = ColmapTracks.observations(self, row)
        size = np.array(self._fetched_size(np.array([row]))[::-1])
        return np.unique(ids[((pixels >= -0.5) & (pixels <= size - 0.5)).all(axis=1)])

    @of_row
    def model(self, row: int) -> str:
        """The folder of the model of an image."""
        return self._model_of(self._one(row)).folder

    @of_row
    def points(self, row: int) -> ColmapPoints:
        """The 3D points of the model of an image, with ``ids``, ``xyz``, ``rgb``, ``errors`` and ``views``.

        Parameters
        ----------
        row : int
            Row of any image of the model.

        Raises
        ------
        DataError
            When the model has no points, or they are damaged.

        """
        model = self._model_of(self._one(row))
        if model.points < 0:
            raise DataError(f"{model.folder} has no points3D.bin or points3D.txt; add the file of the model's points")
        return read_points(model.files.read(model.points, _MOST), model.points_text, model.files.label(model.points))

    def _one(self, row: int) -> int:
        rows, _ = fetch_request(self, np.array([row]), ())
        return int(rows[0])

    def _rays(self, pixels: Reals, row: int) -> Reals:
        """Rays through pixels of the image that the camera of a row is calibrated for, of length 1 along the axis."""
        camera = self._intrinsics[row].astype(np.float64)
        return np.asarray((pixels - camera[:2, 2]) / [camera[0, 0], camera[1, 1]])

    def _model_of(self, row: int) -> ColmapModel:
        raise NotImplementedError
