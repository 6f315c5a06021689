"""Poses of Pascal3D+: rotation matrices, the published projection, and the angle between two poses.

Convention
----------
Model frame: z up, the object's front towards −y. Angles in degrees: azimuth 0 has the camera on the −y axis, where it
sees the front, 90 on +x; elevation is the camera's height above the xy plane; theta turns the image in its plane.
Camera frame: x right, y up, z towards the viewer, so visible points have negative z. Pixels: x right, y down, 1-based
as annotated.

A pose is R = Rz(t)·Rx(e − 90°)·Rz(−a), which is scipy's ``Rotation.from_euler("zxz", [-a, e - 90, t])``. The sign of t
differs between uses. ABC's evaluation of poses takes t = −theta, and :func:`rotation` follows it, so errors are
comparable with published ones. The published projection rotates the image by +theta, and so does :func:`project`; the
rotation of its camera is ``rotation(azimuth, elevation, -theta)``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.errors import DataError

__all__ = ["geodesic", "project", "rotation"]


def rotation(azimuth: npt.ArrayLike, elevation: npt.ArrayLike, theta: npt.ArrayLike = 0.0) -> Reals:
    """Rotation matrices of poses, with the sign of theta of ABC's evaluation: Rz(−theta)·Rx(e − 90°)·Rz(−a).

    Parameters
    ----------
    azimuth, elevation, theta : float arrays, degrees
        Broadcast against each other.

    Returns
    -------
    (..., 3, 3) float64
        Maps directions from the model frame to the camera frame; NaN where an angle is NaN.

    Examples
    --------
    >>> rotation(0, 0).round(6).tolist()  # seen from the front: x right, z up
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]

    """
    a, e, t = np.broadcast_arrays(*(np.deg2rad(np.asarray(angle, np.float64)) for angle in (azimuth, elevation, theta)))
    matrix: Reals = _turn(-t, 0, 1) @ _turn(e - np.pi / 2, 1, 2) @ _turn(-a, 0, 1)
    return matrix


def _turn(angle: Reals, first: int, second: int) -> Reals:
    """Matrices that turn the axis `first` towards the axis `second`."""
    matrices = np.zeros((*angle.shape, 3, 3))
    matrices[..., range(3), range(3)] = 1
    matrices[..., first, first] = matrices[..., second, second] = np.cos(angle)
    matrices[..., second, first] = np.sin(angle)
    matrices[..., first, second] = -matrices[..., second, first]
    return matrices


def project(
    points: npt.ArrayLike,
    azimuth: float,
    elevation: float,
    distance: float,
    theta: float = 0.0,
    px: float = 0.0,
    py: float = 0.0,
    viewport: float = 3000.0,
    focal: float = 1.0,
) -> Reals:
    """Project points of the model frame into the image, as published.

    The camera's centre is C = d·(cos e·sin a, −cos e·cos a, sin e). A point of the camera frame, R·(X − C), becomes
    viewport·focal·(x, y) / −z, is turned by theta, flipped to point down, and moved to (px, py).

    Parameters
    ----------
    points : (..., 3) float
        In units of the CAD model.
    azimuth, elevation, theta : float, degrees
        The pose.
    distance : float
        From the camera to the origin, in units of the CAD model; positive.
    px, py : float, pixels
        Position of the origin of the model in the image.
    viewport, focal : float
        Their product is the number of pixels per unit at distance 1.

    Returns
    -------
    (..., 2) float64, pixels x and y

    Raises
    ------
    DataError
        When points do not have three coordinates.

    Examples
    --------
    >>> project([[0, 0, 0], [0.1, 0, 0], [0, 0, 0.1]], 0, 0, 10, px=200, py=100).round(6).tolist()
    [[200.0, 100.0], [230.0, 100.0], [200.0, 70.0]]

    """
    model = np.asarray(points, dtype=np.float64)
    if model.ndim == 0 or model.shape[-1] != 3:
        raise DataError(f"points to project must have the shape (..., 3), not {model.shape}")
    a, e, t = np.deg2rad([azimuth, elevation, theta])
    centre = distance * np.array([np.cos(e) * np.sin(a), -np.cos(e) * np.cos(a), np.sin(e)])
    camera = (model - centre) @ rotation(azimuth, elevation).T
    with np.errstate(divide="ignore", invalid="ignore"):
        flat = viewport * focal * camera[..., :2] / -camera[..., 2:]
    turned = flat @ np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
    projected: Reals = turned * np.array([1.0, -1.0]) + np.array([px, py], dtype=np.float64)
    return projected


def geodesic(first: npt.ArrayLike, second: npt.ArrayLike) -> Any:
    """Angle between rotations, arccos((tr(R₁ᵀR₂) − 1) / 2), in degrees.

    Computed as the arctangent of its sine and cosine, which, unlike the arccosine, is exact to rounding also near 0 and
    180 degrees.

    Parameters
    ----------
    first, second : (..., 3, 3) float
        Rotation matrices, broadcast against each other.

    Returns
    -------
    (...) float64, degrees from 0 to 180; NaN where a matrix has NaN

    Examples
    --------
    >>> round(float(geodesic(rotation(10, 20), rotation(25, 20))), 6)
    15.0

    """
    between = np.swapaxes(np.asarray(first, dtype=np.float64), -1, -2) @ np.asarray(second, dtype=np.float64)
    skew = [between[..., i, j] - between[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]
    # twice the sine and twice the cosine of the angle
    sine = np.sqrt(skew[0] ** 2 + skew[1] ** 2 + skew[2] ** 2)
    return np.rad2deg(np.arctan2(sine, np.trace(between, axis1=-2, axis2=-1) - 1))
