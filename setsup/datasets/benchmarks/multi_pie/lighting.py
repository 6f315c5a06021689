"""Light of the substitute: room light, and a flash that comes from one of 18 sides, on albedo and normals of a frame.

Convention
----------
Directions are unit vectors of the world, towards the light: z up, x to the right of the frontal image, and the face
looks along −y. Light is linear, 1 shows a color as it is.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from setsup.scenes.camera import Camera
from setsup.scenes.color import LINEAR, to_bytes
from setsup.scenes.frame import Frame

__all__ = ["FLASHES", "relit"]


def _towards(side: float, rise: float) -> tuple[float, float, float]:
    """Direction of what stands `side` degrees to the right of the frontal camera, and `rise` degrees up."""
    a, e = np.radians([side, rise])
    return float(np.sin(a) * np.cos(e)), float(-np.cos(a) * np.cos(e)), float(np.sin(e))


FLASHES: dict[int, tuple[float, float, float]] = {
    **{number: _towards(15.0 * (number - 7), 8.0) for number in range(1, 14)},
    **{number: _towards(35.0 * (number - 16), 48.0) for number in range(14, 19)},
}
"""Directions of the flashes: 1 to 13 at head height from the left of the frontal image to the right, 14 to 18 above."""

_ROOM, _ABOVE, _FLASH = 0.30, 0.25, 0.75
_LAMP = _towards(0.0, 65.0)
_AGAIN = 0.96  # shot 19 is room light once more, a little darker


def relit(
    frame: Frame, camera: Camera, shots: Iterable[int], exposure: float, ground: tuple[int, int, int]
) -> Iterator[npt.NDArray[np.uint8]]:
    """Images of a frame, drawn in ambient light, under the light of each shot, (H, W, 3) uint8; no shadows are cast."""
    there = np.flatnonzero(frame.triangle.reshape(-1) >= 0)
    albedo = LINEAR.astype(np.float32)[frame.rgb.reshape(-1, frame.rgb.shape[2])[there, :3]]
    normals = frame.normal.reshape(-1, 3)[there] @ camera.rotation.astype(np.float32)  # to the world
    room = _ROOM + _ABOVE * _facing(normals, _LAMP)
    for shot in shots:
        light = room + _FLASH * _facing(normals, FLASHES[shot]) if shot in FLASHES else room
        light = light * np.float32(exposure * (_AGAIN if shot == 19 else 1.0))
        image = np.full((*frame.triangle.shape, 3), ground, np.uint8)
        image.reshape(-1, 3)[there] = to_bytes(albedo * light[:, None])
        yield image


def _facing(normals: npt.NDArray[np.float32], way: tuple[float, float, float]) -> npt.NDArray[np.float32]:
    """Lambert's cosine."""
    return np.maximum(normals @ np.array(way, np.float32), 0)
