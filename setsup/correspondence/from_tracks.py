"""Pixels of two images of a COLMAP model that show the same point: those at which both observe it.

Structure from motion finds a point where keypoints of several images were matched. These pixels are sparse, and the
model is silent about all others.
"""

from typing import Any

import numpy as np

from setsup.arrays import Reals
from setsup.correspondence import planar
from setsup.correspondence.pixel_pairs import OUTSIDE, UNKNOWN, VISIBLE, PixelPairs
from setsup.correspondence.recorded_frames import has_tracks, row_camera
from setsup.datasets.adapters.lens_distortion import distort_rays
from setsup.errors import SetsupError

__all__ = ["from_tracks"]


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
        Elsewhere, ``points2`` is the projection of the point, NaN where the lens shows it nowhere: OUTSIDE if that is
        not in image 2, else UNKNOWN. Nothing is OCCLUDED, and ``instance`` is −1.

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
    (pixels1, ids1), (pixels2, ids2) = (dataset.observations(row, shown=True) for row in (row1, row2))
    cloud, size = dataset.points(row1), _size(dataset, row2)
    xyz = cloud.xyz[cloud.find(ids1, f"row {row1} of {dataset.name}")]
    points2 = _project(dataset, row2, size, xyz)
    status = np.where(planar.inside(points2, *size), UNKNOWN, OUTSIDE)
    known, first = np.unique(ids2, return_index=True)
    at = np.minimum(np.searchsorted(known, ids1), max(len(known) - 1, 0))
    common = np.flatnonzero(known[at] == ids1) if len(known) else np.empty(0, np.int64)
    points2[common] = pixels2[first[at[common]]]
    status[common] = VISIBLE
    return PixelPairs(pixels1, points2, xyz, np.full(len(ids1), -1, np.int32), status, sparse=True)


def _size(dataset: Any, row: int) -> tuple[int, int]:
    """Height and width of an image as it is fetched."""
    height, width = dataset.modalities["image"].shape[:2]
    if height is None or width is None:
        height, width = np.shape(dataset.fetch(row, ["image"])["image"])[:2]
    return int(height), int(width)


def _project(dataset: Any, row: int, size: tuple[int, int], xyz: Reals) -> Reals:
    """Where an image as it is fetched shows points, (n, 2), with the distortion of its lens; NaN where it has none."""
    camera = row_camera(dataset, row, size, pinhole=False)
    pixels, _ = camera.project(xyz)
    if "distortion" in dataset.modalities:
        known = dataset.fetch(row, ["distortion"])["distortion"].astype(np.float64)
        coefficients = np.append(known, np.zeros(8 - len(known)))
        if coefficients.any():
            rays = (pixels - camera.k[:2, 2]) / camera.k[[0, 1], [0, 1]]
            pixels = distort_rays(rays, coefficients) * camera.k[[0, 1], [0, 1]] + camera.k[:2, 2]
    return pixels
