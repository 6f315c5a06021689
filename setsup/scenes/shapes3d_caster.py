"""A small ray caster for the Shapes3D scene: what every sample of an image sees, and how brightly.

Only hues colour the image; all else is one of 8 × 4 × 15 = 480 *states* (scale, shape, orientation). A state is cast
once into :func:`planes`, after which an image of any hues is a few additions of bytes (:func:`compose`).

Convention
----------
As in :mod:`setsup.scenes.shapes3d`. Sines and cosines are literals, and the rest is ``+ − × ÷ √`` in float64 without
sums whose order might vary: the bytes are the same on every machine.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setsup.scenes.shapes3d import FRAMING, SCALES, SHAPES, Framing
from setsup.scenes.shapes3d_rays import Array, Vector, dot, meet, unit

__all__ = ["FLOOR", "HUE_FIFTHS", "OBJECT", "SIDE", "SKY", "WALL", "Samples", "compose", "planes", "trace"]

SIDE = 64
"""Height and width of an image in pixels."""

SKY, FLOOR, WALL, OBJECT = range(4)
"""What a sample may see."""

HUE_FIFTHS = np.array(
    [
        *((5, 0, 0), (5, 3, 0), (4, 5, 0), (1, 5, 0), (0, 5, 2)),
        *((0, 5, 5), (0, 2, 5), (1, 0, 5), (4, 0, 5), (5, 0, 3)),
    ],
    dtype=np.intp,
)
"""(10, 3): RGB of the fully saturated hues 0, 0.1, … 0.9, in fifths."""

_SINES = (
    *(0.0, 0.07473009358642425, 0.14904226617617444, 0.2225209339563144),
    *(0.2947551744109042, 0.365341024366395, 0.4338837391175581, 0.5),
)
_COSINES = (
    *(1.0, 0.9972037971811801, 0.9888308262251285, 0.9749279121818236),
    *(0.9555728057861407, 0.9308737486442042, 0.9009688679024191, 0.8660254037844387),
)
"""Of k · 30/7 degrees: the middle orientation is code 7."""

_OFFSETS = (-0.4, 0.0, 0.4)
"""Where the 3 × 3 samples of a pixel lie, in pixels from its centre."""


@dataclass(frozen=True, slots=True)
class Samples:
    """What the samples of one image see; axis 0 runs over the samples of a pixel.

    `surface` (9, 64, 64) uint8; `light` (9, 64, 64) float64; `gloss` (9, 64, 64) float64.
    """

    surface: NDArray[np.uint8]
    light: Array
    gloss: Array


def trace(scale: int, shape: int, orientation: int, framing: Framing = FRAMING) -> Samples:
    """Cast every ray of one state."""
    # Sample by sample, so that the arrays fit the processor's cache.
    casts = [
        _cast(scale, shape, _rays(orientation - 7, across, down, framing), framing)
        for down in _OFFSETS
        for across in _OFFSETS
    ]
    surface, light, gloss = (np.stack(parts).reshape(-1, SIDE, SIDE) for parts in zip(*casts, strict=True))
    return Samples(surface.astype(np.uint8), light, gloss)


def _rays(turn: int, across: float, down: float, framing: Framing) -> tuple[Vector, Vector, Vector]:
    """Camera's position and axis, and the direction of one ray a pixel, of length 1 along the axis."""
    sine, cosine = (_SINES[turn] if turn >= 0 else -_SINES[-turn]), _COSINES[abs(turn)]
    pixels = np.arange(SIDE, dtype=np.float64) - (SIDE - 1) / 2
    right = np.tile((pixels + across) / framing.focal_length, SIDE)
    fall = np.repeat((pixels + down) / framing.focal_length, SIDE)
    eye = (framing.camera_radius * sine, -framing.camera_radius * cosine, framing.camera_height)
    return _vector(*eye), _vector(-sine, cosine, 0.0), (right * cosine - sine, right * sine + cosine, -fall)


def _vector(x: float, y: float, z: float) -> Vector:
    """One vector for all rays."""
    return np.array([x]), np.array([y]), np.array([z])


def _cast(
    scale: int, shape: int, view: tuple[Vector, Vector, Vector], framing: Framing
) -> tuple[NDArray[np.uint8], Array, Array]:
    """Surface, light and gloss that each ray meets."""
    eye, axis, rays = view
    distance, surface, normal = _room(eye, rays, framing)
    hit = meet(SHAPES[shape], SCALES[scale], framing, eye, rays)
    on_object = hit.distance < distance
    surface = np.where(on_object, np.uint8(OBJECT), surface)
    at = np.where(on_object, hit.distance, distance)
    x, y, z = (start + at * step for start, step in zip(eye, rays, strict=True))
    normal = unit(_where(on_object, hit.normal, normal))
    to_lamp = (framing.lamp[0] - x, framing.lamp[1] - y, framing.lamp[2] - z)
    lamp = _lamp(to_lamp, normal, framing)
    # Only the floor lies in the shadow: walls are too far, and a convex object throws none on itself.
    floor = np.flatnonzero(surface == FLOOR)
    shadow = meet(SHAPES[shape], SCALES[scale], framing, _take((x, y, z), floor), _take(to_lamp, floor))
    lamp[floor] = np.where(shadow.distance < np.inf, 0.0, lamp[floor])
    facing = np.maximum(-dot(normal, axis), 0.0)
    light = framing.ambient_light + framing.camera_light * facing + framing.lamp_light * lamp
    return surface, light, np.where(on_object & (lamp > 0.0), framing.gloss, 0.0)


def _room(eye: Vector, rays: Vector, framing: Framing) -> tuple[Array, NDArray[np.uint8], Vector]:
    """Distance, surface and inward normal of the room that surrounds the camera."""
    half = framing.room_half_side
    with np.errstate(divide="ignore"):
        side = (np.copysign(half, rays[0]) - eye[0]) / rays[0]
        back = (np.copysign(half, rays[1]) - eye[1]) / rays[1]
        ground = np.where(rays[2] < 0.0, -eye[2] / rays[2], np.inf)
    wall = np.minimum(side, back)
    floor = ground < wall
    high = ~floor & (eye[2] + wall * rays[2] > framing.wall_height)
    surface = np.where(floor, np.uint8(FLOOR), np.where(high, np.uint8(SKY), np.uint8(WALL)))
    by_side = ~floor & (side < back)
    by_back = ~floor & ~by_side
    normal = (
        np.where(by_side, -np.sign(rays[0]), 0.0),
        np.where(by_back, -np.sign(rays[1]), 0.0),
        np.where(floor, 1.0, 0.0),
    )
    return np.where(floor, ground, wall), surface, normal


def _where(first: NDArray[np.bool_], a: Vector, b: Vector) -> Vector:
    """Vectors of ``a`` where ``first`` holds, else of ``b``."""
    return np.where(first, a[0], b[0]), np.where(first, a[1], b[1]), np.where(first, a[2], b[2])


def _take(a: Vector, rays: NDArray[np.intp]) -> Vector:
    """Vectors of some rays."""
    return a[0][rays], a[1][rays], a[2][rays]


def _lamp(to_lamp: Vector, normal: Vector, framing: Framing) -> Array:
    """Light that the lamp sheds on surfaces: cosine of incidence, faded off the lamp's axis; 0 from behind."""
    ray = unit(to_lamp)
    light = np.maximum(dot(ray, normal), 0.0)
    off = np.maximum(ray[2], 0.0)
    for _ in range(framing.lamp_exponent):
        light = light * off
    return light


def planes(samples: Samples, sky: tuple[float, float, float] = FRAMING.sky) -> NDArray[np.uint8]:
    """Everything an image of one state can be made of, whatever its hues.

    Planes 0 … 5 are what the floor adds to a channel in which its colour has 0 … 5 fifths, 6 … 11 the same of the
    walls, 12 … 17 of the object, and 18 … 20 what the sky adds to red, green and blue.

    Returns (21, 64, 64) uint8.
    """
    found = np.empty((21, SIDE, SIDE), np.uint8)
    for surface, first in ((FLOOR, 0), (WALL, 6), (OBJECT, 12)):
        seen = samples.surface == surface
        for fifths in range(6):
            color = np.minimum(samples.light * (fifths / 5) + samples.gloss, 1.0)
            found[first + fifths] = _plane(np.where(seen, color, 0.0), seen)
    seen = samples.surface == SKY
    for channel in range(3):
        found[18 + channel] = _plane(np.where(seen, sky[channel], 0.0), seen)
    return found


def _plane(values: Array, seen: NDArray[np.bool_]) -> Array:
    """Mean over the samples of each pixel as an integer of 0 … 255, added in a fixed order."""
    total = values[0]
    for sample in values[1:]:
        total = total + sample
    rounded: Array = np.floor(total * 255.0 / len(values) + np.where(seen.all(axis=0), 0.5, 0.0))
    return rounded


def compose(state: NDArray[np.uint8], floor: int, wall: int, thing: int) -> NDArray[np.uint8]:
    """Image of a state in the given hues.

    `state` (21, 64, 64) uint8; returns (64, 64, 3) uint8.
    """
    image: NDArray[np.uint8] = state[HUE_FIFTHS[floor]]
    image += state[6 + HUE_FIFTHS[wall]]
    image += state[12 + HUE_FIFTHS[thing]]
    image += state[18:]
    return image.transpose(1, 2, 0)
