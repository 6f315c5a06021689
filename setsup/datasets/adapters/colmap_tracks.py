"""Frames with cameras by COLMAP, and the 3D points that each image observes."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Places, Reals, Rows
from setsup.datasets.adapters.camera_frames import CameraFrames
from setsup.datasets.dataset import fetch_request, of_row
from setsup.datasets.formats.geometry.colmap_points import ColmapPoints, read_observations, read_points
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex

__all__ = ["ColmapModels", "ColmapTracks"]

_MOST = 1 << 32  # bytes of points3D.bin
_KEPT = 8  # models whose points are kept


@dataclass(frozen=True, slots=True, eq=False)
class ColmapModels:
    """The COLMAP models of frames, and where in them the observations of each frame are.

    `lists` (m, 2) are the places of each model's list of images and of its points, −1 for none, and `text` (m, 2) says
    which of these files are text; `of_row` (n,) is the model of each frame; `stretches` (n, 2) are the offset and the
    length of its observations in the list of images, in bytes.
    """

    files: MemberIndex
    lists: Places
    text: Bools
    of_row: Rows
    stretches: Rows


class ColmapTracks(CameraFrames):
    """Frames with cameras by COLMAP, and the 3D points that each image observes.

    Arguments are `models`, and those of the other class of frames that a subclass inherits from, or of
    :class:`setsup.datasets.adapters.camera_frames.CameraFrames`.
    """

    def __init__(self, *frames: Any, models: ColmapModels, **options: Any) -> None:
        super().__init__(*frames, **options)
        self._models = models
        self._points: dict[int, ColmapPoints] = {}  # replaced, never changed: threads read it

    @of_row
    def observations(self, row: int, shown: bool = False) -> tuple[Reals, npt.NDArray[np.int64]]:
        """The 3D points that an image observes.

        Parameters
        ----------
        row : int
            Row of the image.
        shown : bool
            Leave out observations that are not in the image as it is fetched, (h, w) pixels: those with x or y below
            −½, x of w − ½ and more, y of h − ½ and more, and those that undistortion moves to no pixel.

        Returns
        -------
        pixels : (n, 2) float64
            Positions (x, y) in the image as it is fetched, with centres of pixels at integers; undistorted if images
            are. Without `shown`, some may be outside, where `size` crops the image, or NaN.
        ids : (n,) int64
            Numbers of the points, those of :meth:`points`.

        Raises
        ------
        DataError
            When the image has no model, or the file is damaged or has changed.

        """
        row = self._one(row)
        models, model = self._models, self._model_of(row)
        place, text = int(models.lists[model, 0]), bool(models.text[model, 0])
        start, length = models.stretches[row].tolist()
        content = models.files.stretch(place, start, length)
        if content is None:
            content = models.files.read(place)[start : start + length]
        label = f"{models.files.label(place)}: the observations of row {row}"
        if len(content) < length:
            raise DamagedFile(f"{label} are missing: the file has changed since it was opened", "open it again")
        pixels, ids = read_observations(content, text, label)
        pixels, ids = pixels[ids >= 0], ids[ids >= 0]
        target = self._fitted(np.array([row]))[0].astype(np.float64)
        pixels = self._rays(pixels, row) * [target[0, 0], target[1, 1]] + target[:2, 2]
        if shown:
            height, width = self._fetched_size(np.array([row]))
            inside = ((pixels >= -0.5) & (pixels < [width - 0.5, height - 0.5])).all(axis=1)
            pixels, ids = pixels[inside], ids[inside]
        return pixels, ids

    @of_row
    def observed(self, row: int) -> Rows:
        """Numbers of the 3D points that an image shows as it is fetched, (n,) int64, ascending, each once.

        Those of :meth:`observations` with `shown`.
        """
        return np.unique(self.observations(row, shown=True)[1])

    @of_row
    def model(self, row: int) -> str:
        """The folder of the model of an image."""
        return self._folder(self._model_of(self._one(row)))

    @of_row
    def points(self, row: int) -> ColmapPoints:
        """The 3D points of the model of an image, with ``ids``, ``xyz``, ``rgb``, ``errors`` and ``views``.

        Arrays are read-only. Points of up to eight models are kept in memory.

        Parameters
        ----------
        row : int
            Row of any image of the model.

        Raises
        ------
        DataError
            When the model has no points, or they are damaged.

        """
        models, model = self._models, self._model_of(self._one(row))
        place, text = int(models.lists[model, 1]), bool(models.text[model, 1])
        if place < 0:
            folder = self._folder(model)
            raise DataError(f"{folder} has no points3D.bin or points3D.txt; add the file of the model's points")
        kept = self._points
        if place not in kept:
            read = read_points(models.files.read(place, _MOST), text, models.files.label(place))
            kept = {place: read, **dict(islice(kept.items(), _KEPT - 1))}
            self._points = kept
        return kept[place]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what this process has read of the files."""
        return {**super().__getstate__(), "_points": {}}

    def _one(self, row: int) -> int:
        rows, _ = fetch_request(self, np.array([row]), ())
        return int(rows[0])

    def _model_of(self, row: int) -> int:
        """Number of the model of a row."""
        model = int(self._models.of_row[row])
        if self._models.lists[model, 0] < 0:
            raise DataError(
                f"{self.name}: row {row} ({self.paths([row])[0]}) has no COLMAP model; choose rows with a known pose"
            )
        return model

    def _folder(self, model: int) -> str:
        label: str = self._models.files.label(self._models.lists[model, 0])
        return label.rpartition("images.")[0]

    def _rays(self, pixels: Reals, row: int) -> Reals:
        """Rays through pixels of the image that the camera of a row is calibrated for, of length 1 along the axis."""
        camera = self._intrinsics[row].astype(np.float64)
        return np.asarray((pixels - camera[:2, 2]) / [camera[0, 0], camera[1, 1]])
