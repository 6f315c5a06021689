"""Rotations of objects: their angles, the angle between two of them, and errors of poses. All angles are in degrees.

Convention
----------
A rotation is a (3, 3) matrix that takes directions of the object to those of a camera with x right, y up and z towards
the viewer; the object has z up and its front at −y. Azimuth, elevation and theta are those of Pascal3D+, and the matrix
is the one of ABC's evaluation: R = Rz(−theta)·Rx(elevation − 90°)·Rz(−azimuth), or scipy's
``Rotation.from_euler("zxz", [-azimuth, elevation - 90, -theta], degrees=True)``. KeypointNet's renderings have y up:
:func:`to_pascal3d` changes their axes.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, tables 1 and 2, and its published evaluation of poses.
.. [2] Y. Xiang, R. Mottaghi, S. Savarese, "Beyond PASCAL: a benchmark for 3D object detection in the wild", WACV 2014.

"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals
from setsup.checks import check_array
from setsup.datasets.benchmarks.pascal3d.pose import geodesic, rotation
from setsup.datasets.benchmarks.shapenet_renderings.poses import to_pascal3d
from setsup.errors import DataError

__all__ = [
    "PoseErrors",
    "are_rotations",
    "euler_from_rotation",
    "geodesic_error",
    "pose_errors",
    "rotation_from_euler",
    "to_pascal3d",
]

_ORTHONORMAL = 1e-3
"""Largest entry of RᵀR − 1 of what counts as a rotation: matrices of float16 pass, scaled or mirrored ones do not."""

_LEVEL = 1e-6
"""Cosine of the elevation below which azimuth and theta turn about one axis."""


@dataclass(frozen=True, slots=True)
class PoseErrors:
    """The result of :func:`pose_errors`.

    Attributes
    ----------
    count : int
        Errors that are known.
    median : float
        Degrees.
    accuracy15, accuracy30 : float
        Share of errors below 15 and below 30 degrees.

    """

    count: int
    median: float
    accuracy15: float
    accuracy30: float


def rotation_from_euler(azimuth: npt.ArrayLike, elevation: npt.ArrayLike, theta: npt.ArrayLike = 0.0) -> Reals:
    """Rotations of poses as annotated in Pascal3D+.

    Parameters
    ----------
    azimuth, elevation, theta : float arrays, degrees
        Broadcast against each other. Theta is negated, as in ABC's evaluation.

    Returns
    -------
    (..., 3, 3) float64
        NaN where an angle is.

    Raises
    ------
    DataError
        When the angles are not numbers, or their shapes do not fit.

    Examples
    --------
    >>> from_the_side = rotation_from_euler([0, 90], 0)[1]
    >>> np.allclose(from_the_side @ [0, -1, 0], [-1, 0, 0])  # where the front points left
    True

    """
    angles = [
        _numbers(given, title) for given, title in ((azimuth, "azimuth"), (elevation, "elevation"), (theta, "theta"))
    ]
    _broadcast(*(angle.shape for angle in angles))
    return rotation(*angles)


def euler_from_rotation(rotations: npt.ArrayLike) -> tuple[Reals, Reals, Reals]:
    """Angles of rotations: the inverse of :func:`rotation_from_euler`.

    Where the camera looks straight down or up, at an elevation of ±90, azimuth and theta are one turn, which is given
    as azimuth; theta is 0 there.

    Parameters
    ----------
    rotations : (..., 3, 3) float
        See the convention.

    Returns
    -------
    azimuth : (...) float64, degrees
        From 0 on, below 360.
    elevation : (...) float64, degrees
        From −90 to 90.
    theta : (...) float64, degrees
        From −180 to 180.

    Raises
    ------
    DataError
        When these are not rotations. Matrices with NaN give NaN.

    Examples
    --------
    >>> azimuth, elevation, theta = euler_from_rotation(rotation_from_euler(350, 20, -5))
    >>> azimuth.round(6).item(), elevation.round(6).item(), theta.round(6).item()
    (350.0, 20.0, -5.0)

    """
    matrices = _rotations(rotations, "rotations")
    x, y, z = np.moveaxis(matrices[..., 2, :], -1, 0)
    across = np.hypot(x, y)
    elevation = np.rad2deg(np.arctan2(z, across))
    azimuth = np.rad2deg(
        np.where(across < _LEVEL, np.arctan2(matrices[..., 0, 1], matrices[..., 0, 0]), np.arctan2(x, -y))
    )
    # what is left when azimuth and elevation are undone is a turn about z, also where the azimuth is chosen
    left = matrices @ np.swapaxes(rotation(azimuth, elevation), -1, -2)
    theta = np.rad2deg(np.arctan2(left[..., 0, 1] - left[..., 1, 0], left[..., 0, 0] + left[..., 1, 1]))
    azimuth = azimuth % 360.0
    # an angle just below 0 becomes 360 in rounding
    return np.where(azimuth >= 360.0, 0.0, azimuth), elevation, theta


def geodesic_error(one: npt.ArrayLike, other: npt.ArrayLike) -> Reals:
    """Angle of the rotation that takes one rotation into another: arccos((tr(R₁R₂ᵀ) − 1) / 2).

    It is exact to rounding at every angle, where the arccosine loses half of the digits near 0 and 180 degrees.

    Parameters
    ----------
    one, other : (..., 3, 3) float
        Rotations of one convention, broadcast against each other.

    Returns
    -------
    (...) float64, degrees
        From 0 to 180; NaN where a matrix has NaN.

    Raises
    ------
    DataError
        When these are not rotations, or their shapes do not fit.

    Examples
    --------
    >>> truth = rotation_from_euler([0, 40], 20)
    >>> geodesic_error(rotation_from_euler(180, 20), truth).round(3).tolist()
    [180.0, 140.0]

    """
    first, second = _rotations(one, "rotations"), _rotations(other, "the other rotations")
    _broadcast(first.shape, second.shape)
    return np.asarray(geodesic(first, second), np.float64)


def pose_errors(errors: npt.ArrayLike) -> PoseErrors:
    """Median and shares below 15 and 30 degrees, as ABC's tables have them.

    Parameters
    ----------
    errors : (...) float, degrees
        Such as :func:`geodesic_error` gives; NaN where unknown, which is left out.

    Returns
    -------
    PoseErrors

    Raises
    ------
    DataError
        When no error is known, or one is not from 0 to 180.

    Examples
    --------
    >>> pose_errors([2.0, 14.0, 30.0, 170.0])
    PoseErrors(count=4, median=22.0, accuracy15=0.5, accuracy30=0.5)

    """
    known = _numbers(errors, "errors")
    known = known[~np.isnan(known)]
    if not len(known):
        raise DataError("the median requires at least one error that is not NaN")
    if known.min() < 0 or known.max() > 180:
        raise DataError(
            f"errors must be between 0 and 180 degrees, as geodesic_error returns them, not from {known.min():g} to "
            f"{known.max():g}"
        )
    return PoseErrors(len(known), float(np.median(known)), float((known < 15).mean()), float((known < 30).mean()))


def are_rotations(matrices: Reals) -> Bools:
    """Whether the columns of matrices (..., 3, 3) are orthogonal, of length 1 and not mirrored, (...) bool.

    Examples
    --------
    >>> are_rotations(np.stack([np.eye(3), 2 * np.eye(3), -np.eye(3)])).tolist()
    [True, False, False]

    """
    # those too large are left out of products, which could overflow
    small = np.where((np.abs(matrices) <= 2).all(axis=(-2, -1), keepdims=True), matrices, 0.0)
    squares = np.swapaxes(small, -1, -2) @ small
    near = (np.abs(squares - np.eye(3)) <= _ORTHONORMAL).all(axis=(-2, -1))
    return np.asarray(near & (np.linalg.det(small) > 0))


def _numbers(given: npt.ArrayLike, title: str) -> Reals:
    numbers: Reals = check_array(given, title, DataError, np.float64)
    if np.isinf(numbers).any():
        raise DataError(f"{title} must be finite angles in degrees, or NaN where unknown, not infinite")
    return numbers


def _rotations(given: npt.ArrayLike, title: str) -> Reals:
    """As float64; DataError where a matrix without NaN is not a rotation."""
    matrices = check_array(given, title, DataError)
    if matrices.shape[-2:] != (3, 3) or matrices.dtype.kind not in "fiu":
        raise DataError(f"{title} must be numbers of shape (…, 3, 3), not {matrices.dtype} of shape {matrices.shape}")
    rotations = matrices.astype(np.float64)
    known = rotations[~np.isnan(rotations).any(axis=(-2, -1))].reshape(-1, 3, 3)
    sound = are_rotations(known)
    if not sound.all():
        raise DataError(
            f"{title} contain a matrix that is not a rotation: {known[np.argmin(sound)].round(3).tolist()}; columns "
            "must be orthogonal, of length 1 and not mirrored; for a (4, 4) camera matrix, pass [:3, :3] without the "
            "scale"
        )
    return rotations


def _broadcast(*shapes: tuple[int, ...]) -> None:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise DataError(f"shapes {' and '.join(map(str, shapes))} cannot be broadcast together") from None
