"""Pixels of two images of a COLMAP model that show the same point: those at which both observe it.

Structure from motion finds a point where keypoints of several images were matched. These pixels are sparse, and the
model is silent about all others.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from setsup.arrays import Reals, Rows
from setsup.correspondence import planar
from setsup.correspondence.from_depth import recorded_camera
from setsup.correspondence.pixel_pairs import OUTSIDE, UNKNOWN, VISIBLE, PixelPairs
from setsup.correspondence.recorded_frames import has_tracks
from setsup.errors import DataError, SetsupError
from setsup.scenes.camera import Camera

__all__ = ["from_tracks"]

_MODELS = 8  # whose points are kept
_read: "WeakKeyDictionary[Any, dict[str, tuple[Rows, Reals]]]" = WeakKeyDictionary()
"""Numbers and positions of the points of models, by dataset; reading them takes far longer than an image's."""


def from_tracks(dataset: Any, row1: int, row2: int) -> PixelPairs:
    r"""Partners in image 2 of the keypoints of image 1 that observe a 3D point.

    Parameters
    ----------
    dataset : Dataset
        A capture with a COLMAP model, opened by :func:`setsup.open`, or a selection of its rows.
    row1, row2 : int
        Rows of two images of one model.

    Returns
    -------
    PixelPairs
        One per keypoint of image 1 that is in the image as it is fetched, in the order of the model's file. VISIBLE
        where image 2 observes the point, too: ``points2`` is the keypoint there, the first one if there are several.
        Elsewhere, ``points2`` is the projection of the point: OUTSIDE if that is not in image 2, else UNKNOWN. Nothing
        is OCCLUDED, and ``instance`` is −1.

    Raises
    ------
    SetsupError
        If the dataset has no tracks, the images are of two models, or an image observes a point that the model lacks.

    Examples
    --------
    >>> import setsup, tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "images").mkdir(), (folder / "sparse" / "0").mkdir(parents=True)
    (None, None)
    >>> for name in "ab":
    ...     Image.new("RGB", (64, 48)).save(folder / "images" / f"{name}.png")
    >>> for name, text in {
    ...     "cameras": "1 PINHOLE 64 48 50 50 32 24",
    ...     "images": "1 1 0 0 0 0 0 0 1 a.png\n32 24 7 42 24 8\n2 1 0 0 0 -1 0 0 1 b.png\n22 24 7",
    ...     "points3D": "7 0 0 5 9 9 9 0.1 1 0 2 0\n8 1 0 5 9 9 9 0.1 1 1",
    ... }.items():
    ...     _ = (folder / "sparse" / "0" / f"{name}.txt").write_text(text + "\n")
    >>> pairs = from_tracks(setsup.open(folder), 0, 1)
    >>> pairs.points1.tolist(), pairs.points2.tolist()
    ([[31.5, 23.5], [41.5, 23.5]], [[21.5, 23.5], [31.5, 23.5]])
    >>> pairs
    PixelPairs(1 VISIBLE, 0 OCCLUDED, 0 OUTSIDE, 0 NO_SURFACE, 1 UNKNOWN)

    """
    if not has_tracks(dataset):
        raise SetsupError(
            f"{dataset.name} has no tracks of feature points; pass a capture with a COLMAP model, opened by setsup.open"
        )
    models = [dataset.model(row) for row in (row1, row2)]
    if models[0] != models[1]:
        raise SetsupError(
            f"rows {row1} and {row2} of {dataset.name} are of the models {models[0]} and {models[1]}, whose points "
            "have nothing in common; pass two images of one model"
        )
    pixels1, ids1 = _observations(dataset, row1, _size(dataset, row1))
    size = _size(dataset, row2)
    pixels2, ids2 = _observations(dataset, row2, size)
    xyz = _places(dataset, row1, models[0], ids1)
    points2, _ = _camera(dataset, row2, size).project(xyz)
    status = np.where(planar.inside(points2, *size), UNKNOWN, OUTSIDE)
    known, first = np.unique(ids2, return_index=True)
    at = np.minimum(np.searchsorted(known, ids1), max(len(known) - 1, 0))
    common = np.flatnonzero(known[at] == ids1) if len(known) else np.empty(0, np.int64)
    points2[common] = pixels2[first[at[common]]]
    status[common] = VISIBLE
    return PixelPairs(pixels1, points2, xyz, np.full(len(ids1), -1, np.int32), status, sparse=True)


def _observations(dataset: Any, row: int, size: tuple[int, int]) -> tuple[Reals, Rows]:
    """Pixels and points of an image, without those that are out of it as it is fetched."""
    pixels, ids = dataset.observations(row)
    inside = planar.inside(pixels, *size)
    return pixels[inside], ids[inside]


def _size(dataset: Any, row: int) -> tuple[int, int]:
    """Height and width of an image as it is fetched."""
    height, width = dataset.modalities["image"].shape[:2]
    if height is None or width is None:
        height, width = np.shape(dataset.fetch(row, ["image"])["image"])[:2]
    return int(height), int(width)


def _camera(dataset: Any, row: int, size: tuple[int, int]) -> Camera:
    found = dataset.fetch(row, ["pose", "intrinsics"])
    try:
        return recorded_camera(found["pose"], found["intrinsics"], *size)
    except SetsupError as error:
        raise SetsupError(f"row {row} of {dataset.name}: {error}; draw from other rows") from error


def _places(dataset: Any, row: int, model: str, ids: Rows) -> Reals:
    """Positions of points of a model, (n, 3)."""
    models = _read.setdefault(dataset, {})
    if model not in models:
        cloud = dataset.points(row)
        order = np.argsort(cloud.ids)
        if len(models) >= _MODELS:
            models.clear()
        models[model] = cloud.ids[order], cloud.xyz[order]
    known, xyz = models[model]
    at = np.minimum(np.searchsorted(known, ids), max(len(known) - 1, 0))
    lost = np.flatnonzero(known[at] != ids) if len(known) else np.arange(len(ids))
    if len(lost):
        raise DataError(
            f"row {row} of {dataset.name} observes the point {ids[lost[0]]}, but its model lacks it among its "
            f"{len(known):,} points; write the files of the model again"
        )
    return np.array(xyz[at])
