"""Cameras of the views: where they stand, and images that are cut to the object's box as the pose protocol of ABC does.

Convention
----------
Angles in degrees as in Pascal3D+: azimuth 0 sees the front, 90 the left side of the object; theta turns the camera.
The box of an object, the smallest that holds the projections of all its corners, is stretched to the middle of the
image, proportions not kept; a margin lies around it. So the pixels of an image are neither square nor centred.
"""

import math
from typing import NamedTuple

import numpy as np

from setsup.arrays import Reals
from setsup.datasets.benchmarks.pascal3d.pose import rotation
from setsup.random import fold, stream_key, uniform
from setsup.scenes.camera import Camera
from setsup_papers.abc.pose.datasets.abc_pose.factors import HIGHEST
from setsup_papers.abc.pose.datasets.abc_pose_procedural.models import TO_PASCAL3D, Model

__all__ = ["Poses", "fit_camera", "real_poses", "rendered_poses"]

_REAL = {"car": (7.0, 6.0, -2.0, 28.0), "chair": (16.0, 11.0, -2.0, 60.0)}
"""Of real images: mean and deviation of the elevation, and its range, degrees."""

_CLOSE = {"car": (1.3, 3.0), "chair": (1.6, 3.5)}
"""Distance of real cameras from the middle of the object, in parts of its diagonal."""

_FAR = 8.0  # of the cameras of renderings


class Poses(NamedTuple):
    """Where cameras stand: `azimuth`, `elevation`, `theta` (n,) float64, degrees, `distance` (n,) in diagonals."""

    azimuth: Reals
    elevation: Reals
    theta: Reals
    distance: Reals


def rendered_poses(seed: int, category: str, number: int, views: int) -> Poses:
    """Directions uniform on the upper hemisphere below the elevation's filter, without roll."""
    turn, rise = _uniform(seed, f"views of {category} {number}", views, 2)
    elevation = np.degrees(np.arcsin(rise * math.sin(math.radians(HIGHEST[category]))))
    return Poses(360 * turn, elevation, np.zeros(views), np.full(views, _FAR))


def real_poses(seed: int, category: str, number: int, views: int) -> Poses:
    """As photographers stand: azimuth uniform, elevation normal about a low one, a little roll, near."""
    turn, *rest, roll, near = _uniform(seed, f"photographs of {category} {number}", views, 8)
    mean, deviation, lowest, highest = _REAL[category]
    normal = (sum(rest) - 2.5) / math.sqrt(5 / 12)  # of five uniform numbers
    low, high = _CLOSE[category]
    elevation = np.clip(mean + deviation * normal, lowest, highest)
    return Poses(360 * turn, elevation, 8 * (roll - 0.5), low + (high - low) * near)


def fit_camera(model: Model, pose: tuple[float, ...], size: int, margin: int) -> Camera:
    """Camera whose image has the object's box in its middle `size` pixels, with `margin` pixels around it.

    `pose` is azimuth, elevation and theta in degrees, and the distance from the middle of the object in diagonals.
    """
    azimuth, elevation, theta, distance = pose
    turn = np.diag([1.0, -1.0, -1.0]) @ rotation(azimuth, elevation, theta) @ TO_PASCAL3D
    low, high = model.scene.bounds
    away = distance * float(np.linalg.norm(high - low))
    shift = np.array([0.0, 0.0, away]) - turn @ ((low + high) / 2)
    seen = model.vertices @ turn.T + shift
    flat = seen[:, :2] / seen[:, 2:]
    first, last = flat.min(axis=0), flat.max(axis=0)
    focal = size / (last - first)
    centre = margin - 0.5 - focal * first
    k = np.array([[focal[0], 0.0, centre[0]], [0.0, focal[1], centre[1]], [0.0, 0.0, 1.0]])
    side = size + 2 * margin
    return Camera(side, side, k, turn, shift)


def _uniform(seed: int, name: str, count: int, rows: int) -> Reals:
    bits = fold(stream_key(seed, f"abc-pose-procedural {name}"), np.arange(rows * count, dtype=np.uint64))
    return uniform(bits).reshape(rows, count)
