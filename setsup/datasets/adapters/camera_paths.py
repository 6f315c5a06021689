"""Cameras around an object: the position of each, as angles about an axis of their sequence.

Convention
----------
A pose (4, 4) takes camera coordinates (x right, y down, z forward) to the world of its sequence, whose axes and unit
are the reconstruction's own. Intrinsics are in pixels with centres at integers, as in :mod:`setsup.scenes.camera`.

The centre of a sequence's object is the point closest to all optical axes; its axis is the normal of the plane that
fits the camera positions best, oriented like the cameras' up vectors. Azimuth is the angle about that axis in degrees,
0 at the first frame with a pose and counter-clockwise seen from above; elevation is the angle above the plane through
the centre. Objects of different sequences are not aligned, so angles cannot be compared between sequences.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Floats, Rows
from setsup.factors import Factor, Kind

__all__ = [
    "angle_factors",
    "around",
    "around_upright",
    "fit_intrinsics",
    "nearest_fit",
    "pose_factors",
    "scale_intrinsics",
]

_LEAST = 3  # posed frames of a sequence that has a plane
_FLAT = 1e-4  # spread across a line, relative to that along it, below which cameras stand on one
_ROLLED = 0.05  # mean square of the x axes' parts along the vertical, beyond which there is none: sin² of 13 degrees
_LOOKING_AWAY = 0.1  # share of cameras behind which the centre may be


def around(poses: npt.ArrayLike) -> Array:
    """Azimuth and elevation (degrees) and distance of the cameras of one sequence, about its centre and axis.

    `poses` (n, 4, 4), NaN where unknown; returns (n, 3) float64, NaN where unknown. All values are NaN if fewer than
    three frames have a pose, the cameras are collinear, or their optical axes are parallel.

    Examples
    --------
    >>> cameras = np.tile(np.eye(4), (3, 1, 1))  # four steps around the origin, at the same height
    >>> for turn, camera in zip(np.deg2rad([0, 30, 60]), cameras, strict=True):
    ...     centre = np.array([np.cos(turn), np.sin(turn), 0.0])
    ...     camera[:3] = np.stack([[-np.sin(turn), np.cos(turn), 0], [0, 0, -1.0], -centre, 2 * centre], axis=1)
    >>> around(cameras).round(6).tolist()
    [[0.0, 0.0, 2.0], [30.0, 0.0, 2.0], [60.0, 0.0, 2.0]]

    """
    cameras = np.asarray(poses, np.float64)
    coordinates = np.full((len(cameras), 3), np.nan)
    known = np.flatnonzero(np.isfinite(cameras).all(axis=(1, 2)))
    if len(known) < _LEAST:
        return coordinates
    up, forward, positions = -cameras[known, :3, 1], cameras[known, :3, 2], cameras[known, :3, 3]
    across = np.eye(3) - forward[:, :, None] * forward[:, None, :]
    total = across.sum(axis=0)
    spread = positions - positions.mean(axis=0)
    _, lengths, axes = np.linalg.svd(spread, full_matrices=True)
    if lengths[1] <= _FLAT * lengths[0] or np.linalg.eigvalsh(total)[0] <= _FLAT * len(known):
        return coordinates
    middle = np.linalg.solve(total, np.einsum("nij,nj->i", across, positions))
    axis = axes[2] * (1 if (up @ axes[2]).mean() >= 0 else -1)
    coordinates[known] = _angles(positions, middle, axis)
    return coordinates


def around_upright(poses: npt.ArrayLike) -> Array:
    """Angles and distance as :func:`around` gives them, about the vertical of cameras that were held upright.

    The vertical is the direction to which all x axes of the cameras are closest to perpendicular, oriented like their
    up vectors: exact where cameras do not roll, however they are distributed. All values are NaN where fewer than three
    frames have a pose, the optical axes are parallel, more than a tenth of the cameras look away from the centre, or
    cameras roll too much to have a vertical.

    `poses` (n, 4, 4), NaN where unknown; returns (n, 3) float64, NaN where unknown.
    """
    cameras = np.asarray(poses, np.float64)
    coordinates = np.full((len(cameras), 3), np.nan)
    known = np.flatnonzero(np.isfinite(cameras).all(axis=(1, 2)))
    if len(known) < _LEAST:
        return coordinates
    right, up, forward = cameras[known, :3, 0], -cameras[known, :3, 1], cameras[known, :3, 2]
    positions = cameras[known, :3, 3]
    across = np.eye(3) - forward[:, :, None] * forward[:, None, :]
    total = across.sum(axis=0)
    spread, directions = np.linalg.eigh(right.T @ right / len(known))
    if np.linalg.eigvalsh(total)[0] <= _FLAT * len(known) or spread[0] > _ROLLED or spread[1] <= _FLAT:
        return coordinates
    middle = np.linalg.solve(total, np.einsum("nij,nj->i", across, positions))
    ahead = ((middle - positions) * forward).sum(axis=1) > 0
    if ahead.mean() < 1 - _LOOKING_AWAY:
        return coordinates
    axis = directions[:, 0] * (1 if (up @ directions[:, 0]).mean() >= 0 else -1)
    coordinates[known] = _angles(positions, middle, axis)
    return coordinates


def _angles(positions: Array, middle: Array, axis: Array) -> Array:
    """Azimuth, 0 at the first position, and elevation (degrees), and distance of positions (n, 3)."""
    away = positions - middle
    height = away @ axis
    level = away - height[:, None] * axis
    zero = level[0] / max(np.linalg.norm(level[0]), 1e-300)
    turned = np.rad2deg(np.arctan2(level @ np.cross(axis, zero), level @ zero))
    turned[0] = 0  # without its rounding
    azimuth = np.where(turned < 0, turned + 360, turned)
    elevation = np.rad2deg(np.arctan2(height, np.linalg.norm(level, axis=1)))
    return np.stack([azimuth, elevation, np.linalg.norm(away, axis=1)], axis=1)


def pose_factors(
    poses: Array, sequence: Rows, angles: Callable[[Array], Array] = around, unit: str = ""
) -> list[tuple[Factor, Array]]:
    """Make the factors ``azimuth``, ``elevation`` and ``distance`` of frames ordered by sequence.

    `poses` (n, 4, 4) float32; `sequence` (n,) int64, equal for the frames of one sequence; `angles` gives those of one;
    `unit` is that of lengths.
    """
    bounds = np.flatnonzero(np.diff(sequence)) + 1
    parts = [angles(part) for part in np.split(poses, bounds)]
    return angle_factors(np.concatenate(parts).astype(np.float32).T, unit)


def angle_factors(columns: Floats, unit: str) -> list[tuple[Factor, Array]]:
    """Make the factors ``azimuth``, ``elevation`` and ``distance`` of columns (3, n); `unit` is that of lengths."""
    columns[0, columns[0] >= 360] = 0  # what was just below in float64
    factors = (
        Factor("azimuth", Kind.CONTINUOUS, unit="deg", period=360),
        Factor("elevation", Kind.CONTINUOUS, unit="deg"),
        Factor("distance", Kind.CONTINUOUS, unit=unit),
    )
    return list(zip(factors, columns, strict=True))


def fit_intrinsics(intrinsics: Array, sizes: Rows, size: tuple[int, int] | None) -> Array:
    """Intrinsics of images that were resized until they just covered a size, and cropped to their centre.

    `intrinsics` (n, 3, 3); `sizes` (n, 2) height and width; `size` (height, width) or None for no change.
    """
    if size is None:
        return intrinsics
    scale = (np.array(size) / sizes).max(axis=1)
    fitted = intrinsics.astype(np.float64)
    cut = (sizes[:, ::-1] * scale[:, None] - size[::-1]) / 2
    fitted[:, :2] *= scale[:, None, None]
    fitted[:, :2, 2] += scale[:, None] / 2 - 0.5 - cut
    return fitted.astype(intrinsics.dtype)


def scale_intrinsics(intrinsics: Array, sizes: Rows, resized: Rows) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Intrinsics of images that were resized as a whole, and which of them were.

    `intrinsics` (n, 3, 3); `sizes, resized` (n, 2) height and width before and after. An image was resized as a whole
    if one ratio gives both lengths, each rounded to a pixel; others were cropped, rotated or stretched.

    Examples
    --------
    >>> lens = np.array([[[100, 0, 49.5], [0, 100, 29.5], [0, 0, 1]]])
    >>> scaled, whole = scale_intrinsics(lens, np.array([[60, 100]]), np.array([[30, 50]]))
    >>> scaled[0].tolist(), whole.tolist()
    ([[50.0, 0.0, 24.5], [0.0, 50.0, 14.5], [0.0, 0.0, 1.0]], [True])
    >>> scale_intrinsics(lens, np.array([[60, 100]]), np.array([[50, 50]]))[1].tolist()
    [False]

    """
    least, most = ((resized + step) / sizes for step in (-1, 1))
    whole = least.max(axis=1) < most.min(axis=1)
    scale = (resized / sizes)[:, ::-1]  # of x and y
    scaled = intrinsics.astype(np.float64)
    scaled[:, :2] *= scale[:, :, None]
    scaled[:, :2, 2] += scale / 2 - 0.5
    return scaled.astype(np.result_type(intrinsics, np.float32)), np.asarray(whole)


def nearest_fit(pixels: Array, size: tuple[int, int] | None) -> Array:
    """Resize a map of numbers like an image, by nearest neighbor: (height, width, …)."""
    if size is None or pixels.shape[:2] == size:
        return pixels
    scale = max(size[0] / pixels.shape[0], size[1] / pixels.shape[1])
    rows, columns = (
        ((np.arange(length) + 0.5 + (pixels.shape[axis] * scale - length) / 2) / scale).astype(np.int64)
        for axis, length in enumerate(size)
    )
    near = np.minimum(rows, pixels.shape[0] - 1)[:, None], np.minimum(columns, pixels.shape[1] - 1)
    return np.asarray(pixels[near])
