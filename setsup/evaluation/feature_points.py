"""Features at points of an image and on a grid, sampled from a map whose cells divide the image."""

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.checks import check_image_size, check_integer
from setsup.errors import DataError
from setsup.evaluation.dense_views import DenseView

__all__ = [
    "FeaturePoints",
    "Sampling",
    "axis_cells",
    "cell_features",
    "directions",
    "features_at",
    "grid_features",
    "interpolate",
]

Sampling = Literal["pixels", "grid"]
"""``pixels``: interpolate maps bilinearly. ``grid``: take the feature of the cell in which a point lies."""


_COARSE = 4  # pixels of a cell from which all cells are compared


class FeaturePoints(NamedTuple):
    """Points of an image with their features.

    Attributes
    ----------
    points : (n, 2) float64
        Pixels (x, y).
    directions : (n, D) float64
        Features scaled to length 1, whose products are cosines; those of zeros stay zero.

    """

    points: Reals
    directions: Reals


def grid_features(
    features: npt.NDArray[Any], size: tuple[int, int], sampling: Sampling, step: int = 4
) -> FeaturePoints:
    """Features on a grid over an image.

    Parameters
    ----------
    features : (rows, columns, D) float
        Map whose cells divide the image evenly: of its pixels, of patches, or of an image that was resized before.
    size : (height, width)
        Of the image.
    sampling : {"pixels", "grid"}
        ``pixels``: sample every `step`-th pixel in x and y, from ``step // 2`` on, by bilinear interpolation between
        the centres of cells. ``grid``: sample the centres of cells if these cover 4 pixels or more, else every
        `step`-th pixel.
    step : int
        Distance of grid points, pixels.

    Returns
    -------
    FeaturePoints
        Row after row.

    Raises
    ------
    DataError
        When shapes do not fit, or a feature is not finite.

    Examples
    --------
    >>> maps = np.random.default_rng(0).normal(size=(2, 3, 8))
    >>> grid_features(maps, (28, 42), "grid").points.tolist()[:2]
    [[6.5, 6.5], [20.5, 6.5]]
    >>> grid_features(maps, (28, 42), "pixels", 14).points.tolist()[:2]
    [[7.0, 7.0], [21.0, 7.0]]

    """
    check_integer(step, "step, the distance of grid points in pixels,", DataError, 1)
    maps, (height, width) = _checked(features, size)
    rows, columns = maps.shape[:2]
    if sampling == "grid" and rows * columns * _COARSE <= height * width:
        view = DenseView(maps, (height, width))
        return FeaturePoints(view.centres(np.arange(rows * columns)), directions(view.flat))
    y, x = (np.arange(min(step // 2, length - 1), length, step) for length in (height, width))
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2).astype(np.float64)
    return FeaturePoints(points, features_at(maps, (height, width), points, sampling))


def features_at(features: npt.NDArray[Any], size: tuple[int, int], points: npt.ArrayLike, sampling: Sampling) -> Reals:
    """Features at points of an image, scaled to length 1.

    Parameters
    ----------
    features : (rows, columns, D) float
        Map whose cells divide the image evenly.
    size : (height, width)
        Of the image.
    points : (n, 2) float
        Pixels (x, y); those beyond the outermost centres of cells count as these.
    sampling : {"pixels", "grid"}
        Interpolate bilinearly between the centres of cells, or take the cell in which a point lies.

    Returns
    -------
    (n, D) float64

    Raises
    ------
    DataError
        When shapes do not fit, or a feature or point is not finite.

    Examples
    --------
    >>> features_at(np.array([[[0.0, 1.0], [1.0, 0.0]]]), (2, 4), [[1.5, 0.5]], "pixels").round(3).tolist()
    [[0.707, 0.707]]

    """
    maps, (height, width) = _checked(features, size)
    places = np.asarray(points, np.float64)
    if places.ndim != 2 or places.shape[1] != 2 or not np.isfinite(places).all():
        raise DataError(f"points must be finite and of shape (n, 2), not of shape {places.shape}")
    sampled = cell_features if sampling == "grid" else interpolate
    return directions(sampled(maps, places, (height, width)))


def cell_features(features: npt.NDArray[Any], points: Reals, size: tuple[int, int]) -> Reals:
    """Features (n, D) float64 of the cells of a map (rows, columns, D) in which points (n, 2) lie; not scaled."""
    rows, columns = features.shape[:2]
    column, row = np.floor((points + 0.5) * [columns / size[1], rows / size[0]]).astype(np.int64).T
    return np.asarray(features[row.clip(0, rows - 1), column.clip(0, columns - 1)], dtype=np.float64)


def interpolate(features: npt.NDArray[Any], points: Reals, size: tuple[int, int]) -> Reals:
    """Features (n, D) float64 of a map (rows, columns, D) at points (n, 2), interpolated bilinearly; not scaled."""
    left, right, across = axis_cells(points[:, 0], features.shape[1], size[1])
    upper, lower, down = axis_cells(points[:, 1], features.shape[0], size[0])
    across, down = across[:, None], down[:, None]
    top = features[upper, left] * (1 - across) + features[upper, right] * across
    bottom = features[lower, left] * (1 - across) + features[lower, right] * across
    return np.asarray(top * (1 - down) + bottom * down, dtype=np.float64)


def axis_cells(places: Reals, cells: int, pixels: int) -> tuple[Rows, Rows, Reals]:
    """Cells before and after places along an axis, and the weight of the cell after; clamped at the ends."""
    at = ((places + 0.5) * cells / pixels - 0.5).clip(0, cells - 1)
    before = np.floor(at).astype(np.int64)
    return before, np.minimum(before + 1, cells - 1), at - before


def _checked(features: npt.NDArray[Any], size: tuple[int, int]) -> tuple[npt.NDArray[Any], tuple[int, int]]:
    maps, (height, width) = np.asarray(features), check_image_size(size, "size", DataError)
    if maps.ndim != 3 or not maps.size:
        raise DataError(f"features must have the shape (rows, columns, D), not {maps.shape}")
    return maps, (height, width)


def directions(features: npt.NDArray[Any]) -> Reals:
    """Scale features (n, D) to length 1, so that products are cosines; those of zeros stay zero."""
    reals = features.astype(np.float64)
    if not np.isfinite(reals).all():
        raise DataError("features must be finite; check the network that computed them")
    lengths = np.linalg.norm(reals, axis=1, keepdims=True)
    return np.asarray(reals / np.where(lengths > 0, lengths, 1))
