"""Light on toys: six lightings out of albedo and normals of a frame; no shadows are cast.

Convention
----------
Lamps stand around the camera and turn with its azimuth, as if the toy were turned before them; their height is above
the ground. Light is linear, 1 shows albedo as it is. Grey is the luma of BT.601 of the displayed colour.
"""

import numpy as np
import numpy.typing as npt

from setsup.scenes.camera import Camera
from setsup.scenes.color import LINEAR, to_bytes
from setsup.scenes.frame import Frame

__all__ = ["LIGHTINGS", "lit"]

LIGHTINGS: tuple[tuple[float, float, float], ...] = (
    (-70.0, 25.0, 0.80),
    (-30.0, 60.0, 0.95),
    (0.0, 20.0, 0.70),
    (30.0, 60.0, 0.60),
    (70.0, 25.0, 0.80),
    (180.0, 55.0, 1.00),
)
"""Of each lighting, the lamp: degrees to the right of the camera, degrees above the ground, strength."""

_ROOM, _GROUND = 0.22, 190
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def lit(frame: Frame, camera: Camera, azimuth: float) -> npt.NDArray[np.uint8]:
    """Images of a frame, rendered in ambient light without a background, in each lighting, (6, H, W) uint8."""
    there = np.flatnonzero(frame.triangle.reshape(-1) >= 0)
    grey = frame.rgb.reshape(-1, frame.rgb.shape[2])[there, :3].astype(np.float32) @ _LUMA
    albedo = LINEAR.astype(np.float32)[np.round(grey).astype(np.int64)]
    normals = frame.normal.reshape(-1, 3)[there] @ camera.rotation.astype(np.float32)  # to the world
    images = np.empty((len(LIGHTINGS), *frame.triangle.shape), np.uint8)
    for image, (side, rise, strength) in zip(images, LIGHTINGS, strict=True):
        image[:] = round(_GROUND * (0.75 + 0.25 * strength))
        turn, height = np.radians([azimuth + side, rise])
        way = np.array([np.cos(turn) * np.cos(height), np.sin(turn) * np.cos(height), np.sin(height)], np.float32)
        light = np.float32(_ROOM) + np.float32(strength) * np.maximum(normals @ way, 0)
        image.reshape(-1)[there] = to_bytes((albedo * light)[:, None])[:, 0]
    return images
