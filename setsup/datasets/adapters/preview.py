"""Images of point clouds and meshes, for datasets without images.

A preview shows a row on contact sheets and pages. It is not a rendering: it is orthographic, without shadows or
surfaces, and points are flat dots. To train on images, render the meshes.

Convention
----------
Azimuth 0 looks at the front, which is −z where y is up and −y where z is up; a positive azimuth moves the camera
anti-clockwise as seen from above (with z up, 90 is on +x). Elevation 0 is level, positive from above. Degrees.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Pixels
from setsup.errors import DataError
from setsup.random import fold, stream_key, uniform

__all__ = ["splat", "surface"]


_MARGIN = 0.06  # of the frame, on each side
_FINER = 2  # times as many pixels along each side are painted, and averaged
_COVER = 3.2  # area of all dots together, in frames: dots of a closed surface then leave few gaps
_LIGHT = (-0.35, 0.5, 0.79)  # right, up, towards the camera
_AMBIENT = 0.45
_LARGEST, _MARK = 0.05, 0.045  # diameters of a dot and of a mark, in frames


def splat(
    points: npt.ArrayLike,
    colors: npt.ArrayLike,
    size: tuple[int, int] = (128, 128),
    azimuth: float = 30.0,
    elevation: float = 25.0,
    up: Literal["y", "z"] = "y",
    normals: npt.ArrayLike | None = None,
    marks: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> Pixels:
    """Render a colored point cloud, fitted to the frame, on white.

    Parameters
    ----------
    points : (n, 3) float
        Positions, any unit; those that are not finite are left out.
    colors : (n, 3) uint8
        sRGB.
    size : (height, width)
        Of the image, pixels.
    azimuth, elevation : float
        Direction from which the cloud is seen, degrees.
    up : str
        Axis that points up in the image, ``"y"`` or ``"z"``.
    normals : (n, 3) float, optional
        Surface normals of any length and either sign, used for shading.
    marks : pair of (m, 3) float and (m, 3) uint8, optional
        Positions and colors of highlighted points: larger dots on top of all others, even if those are closer.

    Returns
    -------
    (height, width, 3) uint8 sRGB; identical on every machine up to rounding of positions

    Raises
    ------
    DataError
        When shapes do not match, or `up` is not ``"y"`` or ``"z"``.

    Examples
    --------
    >>> corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    >>> image = splat(corners, np.full((8, 3), 40, np.uint8), size=(32, 48))
    >>> image.shape, image.dtype, int(image.min())
    ((32, 48, 3), dtype('uint8'), 40)

    """
    where, paint = _check(points, colors)
    axes = _axes(azimuth, elevation, up)
    if normals is not None:
        paint = _shade(paint, np.asarray(normals, np.float64) @ axes.T)
    marked, ink = _check(*marks) if marks else (where[:0], paint[:0])
    fine = (_FINER * size[0], _FINER * size[1])
    image = np.full((*fine, 3), 255, np.uint8)
    seen = np.concatenate([where, marked])
    finite = np.isfinite(seen).all(axis=1)
    if finite.any():
        seen[finite] = _frame(seen[finite] @ axes.T, fine)
        cloud, over = np.split(seen, [len(where)])
        first, then = np.split(finite, [len(where)])
        diameter = _diameter(int(first.sum()), fine)
        _paint(image, cloud[first], paint[first], diameter)
        largest = max(diameter + 2, round(_MARK * np.sqrt(fine[0] * fine[1])))
        _paint(image, over[then], ink[then] // 3, largest + 2)  # a dark rim
        _paint(image, over[then], ink[then], largest)
    blocks = image.reshape(size[0], _FINER, size[1], _FINER, 3)
    return np.asarray(blocks.mean(axis=(1, 3)).round().astype(np.uint8))


def surface(
    vertices: npt.ArrayLike, faces: npt.ArrayLike, count: int, seed: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Sample points evenly on the surface of a mesh: one in each of `count` equal parts of its area.

    `vertices` (v, 3) float; `faces` (f, 3) int; returns `points` (count, 3) float64; returns `face` (count,) int64;
    returns `weights` (count, 3) float64.
    """
    corners = np.asarray(vertices, np.float64).reshape(-1, 3)[np.asarray(faces, np.int64).reshape(-1, 3)]
    if not len(corners):
        return np.empty((0, 3)), np.empty(0, np.int64), np.empty((0, 3))
    # fitted to the unit box first, so that areas of neither atoms nor mountains leave the range of numbers
    unit = corners / (np.abs(corners).max() or 1.0)
    areas = np.linalg.norm(np.cross(unit[:, 1] - unit[:, 0], unit[:, 2] - unit[:, 0]), axis=1)
    total = np.cumsum(areas if areas.any() else np.ones(len(areas)))
    bits = fold(stream_key(seed, "surface"), np.arange(3 * count, dtype=np.uint64)).reshape(3, count)
    along, root, side = uniform(bits)
    face = np.searchsorted(total, (np.arange(count) + along) / max(count, 1) * total[-1], side="right")
    face = np.minimum(face, np.flatnonzero(areas)[-1] if areas.any() else len(areas) - 1)
    root = np.sqrt(root)
    weights = np.stack([1 - root, root * (1 - side), root * side], axis=1)
    return (weights[:, :, None] * corners[face]).sum(axis=1), face, weights


def _check(points: npt.ArrayLike, colors: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], Pixels]:
    where, paint = np.asarray(points, np.float64), np.asarray(colors, np.uint8)
    if where.ndim != 2 or where.shape[1:] != (3,) or paint.shape != where.shape:
        raise DataError(f"points and colors must have the same shape (n, 3), not {where.shape} and {paint.shape}")
    return where, paint


def _axes(azimuth: float, elevation: float, up: str) -> npt.NDArray[np.float64]:
    """Right, up and towards the camera, as rows in the frame of the points."""
    a, e = np.deg2rad([azimuth, elevation])
    towards = np.array([np.cos(e) * np.sin(a), -np.cos(e) * np.cos(a), np.sin(e)])
    right = np.array([np.cos(a), np.sin(a), 0.0])
    axes = np.stack([right, np.cross(towards, right), towards])
    if up == "z":
        return axes
    if up == "y":
        return np.asarray(axes @ np.array([[-1.0, 0, 0], [0, 0, 1], [0, 1, 0]]))  # −z, the front, becomes −y
    raise DataError(f"up must be 'y' or 'z', not {up!r}")


def _shade(paint: Pixels, normals: npt.NDArray[np.float64]) -> Pixels:
    length = np.linalg.norm(normals, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        # either side is lit alike: the winding of published meshes cannot be trusted
        cosine = np.abs(normals @ np.array(_LIGHT)) / length / np.linalg.norm(_LIGHT)
    light = np.where(np.isfinite(cosine), _AMBIENT + (1 - _AMBIENT) * cosine, 1.0)
    return np.rint(paint * np.minimum(light, 1.0)[:, None]).astype(np.uint8)


def _frame(seen: npt.NDArray[np.float64], size: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Column and row (pixels) of points, and their coordinate towards the camera."""
    largest = np.abs(seen).max()
    seen = seen / (largest if 0 < largest < np.inf else 1.0)
    low, high = seen.min(axis=0), seen.max(axis=0)
    room = np.array([size[1], size[0]]) * (1 - 2 * _MARGIN)
    with np.errstate(divide="ignore"):
        scale = np.min(room / (high - low)[:2])
    flat = (seen - (low + high) / 2) * (scale if np.isfinite(scale) else 0.0)
    return np.stack([flat[:, 0] + size[1] / 2, size[0] / 2 - flat[:, 1], seen[:, 2]], axis=1)


def _diameter(count: int, size: tuple[int, int]) -> int:
    pixels = size[0] * size[1]
    return int(np.clip(np.rint(np.sqrt(_COVER * pixels / max(count, 1))), 1, max(1, _LARGEST * np.sqrt(pixels))))


def _paint(image: Pixels, seen: Array, paint: Pixels, diameter: int) -> None:
    """Draw dots on an image, the closest on top."""
    order = np.argsort(seen[:, 2], kind="stable")
    height, width = image.shape[:2]
    away = np.arange(diameter) - (diameter - 1) / 2
    offsets = np.argwhere(away[:, None] ** 2 + away**2 <= max(diameter**2 / 4, 0.5))
    first = np.floor(seen[order, :2] - (diameter - 1) / 2).astype(np.int64)
    columns, rows = (first[:, None] + offsets).transpose(2, 0, 1)  # (dots, pixels of a dot), in the order of painting
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    which, _ = np.nonzero(inside)
    # numpy keeps the last of repeated places, which is the nearest point
    image.reshape(-1, 3)[rows[inside] * width + columns[inside]] = paint[order][which]
