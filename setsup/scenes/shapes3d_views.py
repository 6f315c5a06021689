"""The rays of the 15 views of the Shapes3D scene, and where in an image a solid or its shadow can be.

Convention
----------
As in :mod:`setsup.scenes.shapes3d`. Arrays over the samples of an image have the axes (3, 3, rows, columns): samples
of a pixel from top to bottom and from left to right, then pixels. What depends on columns alone has the shape
(1, 3, 1, columns), and on rows alone (3, 1, rows, 1), so that most of a ray's arithmetic is done once a column or row.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from setsup.scenes.shapes3d import FRAMING, SCALES, SHAPES
from setsup.scenes.shapes3d_rays import Array, Vector, vector

__all__ = ["SIDE", "View", "Window", "object_window", "shadow_window", "view"]

SIDE = 64
"""Height and width of an image in pixels."""

Window = tuple[slice, slice]
"""Rows and columns of a part of the image."""

_SINES = (
    *(0.0, 0.07473009358642425, 0.14904226617617444, 0.2225209339563144),
    *(0.2947551744109042, 0.365341024366395, 0.4338837391175581, 0.5),
)
_COSINES = (
    *(1.0, 0.9972037971811801, 0.9888308262251285, 0.9749279121818236),
    *(0.9555728057861407, 0.9308737486442042, 0.9009688679024191, 0.8660254037844387),
)
"""Of k · 30/7 degrees: the middle orientation is code 7."""

_OFFSETS = np.array([-0.4, 0.0, 0.4])
"""Where the 3 × 3 samples of a pixel lie, in pixels from its centre."""

_CORNERS = 16
"""Corners of the polygons around round solids."""


@dataclass(frozen=True, slots=True)
class View:
    """Camera of one orientation, and the direction of each ray, of length 1 along the camera's axis.

    `eye` and `axis` (1,) each; `rays` x and y (1, 3, 1, 64), z (3, 1, 64, 1), float64.
    """

    eye: Vector
    axis: Vector
    rays: Vector

    def within(self, window: Window) -> Vector:
        """Rays of a part of the image."""
        rows, columns = window
        return self.rays[0][..., columns], self.rays[1][..., columns], self.rays[2][:, :, rows]


def view(orientation: int) -> View:
    """Camera and rays of an orientation's code."""
    turn = orientation - 7
    sine, cosine = (_SINES[turn] if turn >= 0 else -_SINES[-turn]), _COSINES[abs(turn)]
    pixels = np.arange(SIDE, dtype=np.float64) - (SIDE - 1) / 2
    steps = (pixels + _OFFSETS[:, None]) / FRAMING.focal_length
    right, fall = steps.reshape(1, 3, 1, SIDE), steps.reshape(3, 1, SIDE, 1)
    eye = vector(FRAMING.camera_radius * sine, -FRAMING.camera_radius * cosine, FRAMING.camera_height)
    return View(eye, vector(-sine, cosine, 0.0), (right * cosine - sine, right * sine + cosine, -fall))


def object_window(scale: int, shape: int, seen: View) -> Window:
    """Part of the image outside which no sample sees the object."""
    return _window(_outline(scale, shape), seen)


def shadow_window(scale: int, shape: int, seen: View) -> Window:
    """Part of the image outside which the object throws no shadow on the floor."""
    corners, lamp = _outline(scale, shape), np.array(FRAMING.lamp)
    return _window(lamp + (corners - lamp) * (lamp[2] / (lamp[2] - corners[:, 2:])), seen)


@lru_cache(maxsize=32)
def _outline(scale: int, shape: int) -> Array:
    """Corners of an upright prism around the object, (corners, 3)."""
    radius, height = {
        "cube": (FRAMING.cube_half_side, 2 * FRAMING.cube_half_side),
        "cylinder": (FRAMING.cylinder_radius, FRAMING.cylinder_height),
        "sphere": (FRAMING.sphere_radius, 2 * FRAMING.sphere_radius),
        "capsule": (FRAMING.capsule_radius, 2 * FRAMING.capsule_radius + FRAMING.capsule_straight),
    }[SHAPES[shape]]
    count = 4 if SHAPES[shape] == "cube" else _CORNERS
    angle = (np.arange(count) + 0.5) * (2 * np.pi / count)
    reach = radius / np.cos(np.pi / count)
    floor = np.stack([reach * np.cos(angle), reach * np.sin(angle), np.zeros(count)], axis=1)
    return np.concatenate([floor, floor + np.array([0.0, 0.0, height])]) * SCALES[scale]


def _window(corners: Array, seen: View) -> Window:
    """Pixels with a sample on the convex hull of some points, (points, 3), in front of the camera."""
    x, y, z = (corners - np.concatenate(seen.eye)).T
    forward = x * seen.axis[0] + y * seen.axis[1]
    columns = (x * seen.axis[1] - y * seen.axis[0]) / forward
    return _pixels(-z / forward), _pixels(columns)


def _pixels(steps: Array) -> slice:
    """Pixels between the outermost of some places along one axis of the image, and the next."""
    positions = steps * FRAMING.focal_length + (SIDE - 1) / 2
    first, last = int(np.floor(positions.min())), int(np.ceil(positions.max()))
    return slice(min(max(first, 0), SIDE), min(max(last + 1, 0), SIDE))
