"""Pixels of two views of one image that show the same point: whatever homographies made the views."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments, check_image_size
from setsup.correspondence import planar
from setsup.correspondence.pixel_pairs import PixelPairs, Status, check_pixels
from setsup.errors import DataError, SetsupError

__all__ = ["HOMOGRAPHIES", "planar_pairs"]

HOMOGRAPHIES = (
    "homographies: for views 1.png, 2.png, … of a scene, text files H_1_2, …, each with the 3 × 3 numbers that map "
    "pixels (x, y) of 1.png to those of the other view (docs/correspondences.md, Photographs with homographies)"
)
"""What photographs need so that their pixels are paired."""

_SINGULAR = 1e14  # condition of a matrix whose inverse in float64 says nothing


def planar_pairs(
    to_view_1: npt.ArrayLike,
    to_view_2: npt.ArrayLike,
    source: Sequence[int],
    size1: Sequence[int],
    size2: Sequence[int],
    pixels: npt.ArrayLike | None = None,
) -> PixelPairs:
    """Partners in view 2 of pixels of view 1, where both were made of one image.

    Parameters
    ----------
    to_view_1, to_view_2 : (3, 3) float
        From pixels of the image to those of the views, as in :mod:`setsup.correspondence.planar`. kornia's
        augmentations keep such a matrix as ``transform_matrix``, and it holds to the pixel (kornia 0.9), but for
        ``RandomResizedCrop(align_corners=False)``, whose pixels lie up to a twentieth off.
    source : (height, width)
        Of the image.
    size1, size2 : (height, width)
        Of the views.
    pixels : (n, 2) float, optional
        Pixels (x, y) of view 1; all of them, row after row, by default.

    Returns
    -------
    PixelPairs
        One per pixel. ``xyz`` is the pixel of the image, with z = 0; ``status`` is NO_SURFACE where view 1 shows what
        lies beside the image (the validity mask is ``status != NO_SURFACE``), and OUTSIDE where view 2 does not show
        the point. Nothing is ever occluded.

    Raises
    ------
    SetsupError
        When a matrix is singular, or a shape does not fit.

    Examples
    --------
    >>> from setsup.correspondence import planar
    >>> pairs = planar_pairs(planar.flip_x(8), planar.crop(4, 0), (4, 8), (4, 8), (4, 4), [[1, 2], [5, 2], [9, 2]])
    >>> pairs.points2.tolist(), [Status(one).name for one in pairs.status]
    ([[2.0, 2.0], [-2.0, 2.0], [nan, nan]], ['VISIBLE', 'OUTSIDE', 'NO_SURFACE'])

    """
    check_arguments(planar_pairs, locals(), DataError)
    matrix1, matrix2 = _matrix(to_view_1, "to_view_1"), _matrix(to_view_2, "to_view_2")
    height, width = check_image_size(size1, "size1", SetsupError)
    size2 = check_image_size(size2, "size2", SetsupError)
    if pixels is None:
        y, x = np.mgrid[:height, :width]
        pixels = np.stack([x.ravel(), y.ravel()], axis=-1)
    points1 = check_pixels(pixels)
    at = planar.carried(points1, np.linalg.inv(matrix1))
    there = planar.inside(at, *check_image_size(source, "source", SetsupError))
    at[~there] = np.nan
    points2 = planar.carried(at, matrix2)
    status = np.where(planar.inside(points2, *size2), Status.VISIBLE, Status.OUTSIDE)
    status[~there] = Status.NO_SURFACE
    xyz = np.concatenate([at, np.where(there, 0.0, np.nan)[:, None]], axis=1)
    return PixelPairs(points1, points2, xyz, np.full(len(at), -1), status.astype(np.uint8))


def _matrix(matrix: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    entries = np.asarray(matrix)
    if entries.shape != (3, 3) or entries.dtype.kind not in "fiu" or not np.isfinite(entries).all():
        first_only = f", one at a time: {name}[0]" if entries.ndim == 3 else ""
        raise SetsupError(
            f"{name} must be a 3 × 3 matrix of finite numbers, not {entries.dtype} of shape {entries.shape}{first_only}"
        )
    # a far translation alone is no matter: a crop at (30,000, 0) has a condition of 10⁹
    if np.linalg.cond(entries) > _SINGULAR:
        raise SetsupError(f"{name} must be invertible, but is singular: {entries.tolist()}")
    return entries.astype(np.float64)
