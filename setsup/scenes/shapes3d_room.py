"""The empty Shapes3D room from each of its 15 views: what a sample sees, how brightly, and its planes.

Convention
----------
As in :mod:`setsup.scenes.shapes3d_views`.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from setsup.scenes.shapes3d import FRAMING
from setsup.scenes.shapes3d_rays import Array, Vector, dot, unit, vector
from setsup.scenes.shapes3d_views import SIDE, View, view

__all__ = ["FLOOR", "OBJECT", "PLANES", "SKY", "WALL", "Room", "levels", "lit", "room"]

SKY, FLOOR, WALL, OBJECT = range(4)
"""What a sample may see."""

_FIFTHS = np.arange(6) / 5

PLANES = {FLOOR: (slice(0, 6), _FIFTHS), WALL: (slice(6, 12), _FIFTHS), SKY: (slice(18, 21), np.array(FRAMING.sky))}
"""Planes of each surface of the room, and the colours that they stand for."""


@dataclass(frozen=True, slots=True)
class Room:
    """What one view shows where no object hides it or throws its shadow.

    `ground` (3, 1, 64, 1), distances to the floor, inf above the horizon; `wall` (1, 3, 1, 64), distances to the walls;
    `surface` (3, 3, 64, 64) uint8; `light` (3, 3, 64, 64) float64, 1 for the sky; `shown` pixels that
    show some of SKY, FLOOR and WALL, (3, 64, 64) bool; `planes` (21, 64, 64) uint8.
    """

    view: View
    ground: Array
    wall: Array
    surface: NDArray[np.uint8]
    light: Array
    shown: NDArray[np.bool_]
    planes: NDArray[np.uint8]


@lru_cache(maxsize=15)
def room(orientation: int) -> Room:
    """Cast the room as an orientation's code shows it."""
    seen = view(orientation)
    (x, y, z), eye, half = seen.rays, seen.eye, FRAMING.room_half_side
    with np.errstate(divide="ignore"):
        side = (np.copysign(half, x) - eye[0]) / x
        back = (np.copysign(half, y) - eye[1]) / y
        ground = np.where(z < 0.0, -eye[2] / z, np.inf)
    wall, by_side = np.minimum(side, back), side < back
    floor = ground < wall
    high = ~floor & (eye[2] + wall * z > FRAMING.wall_height)
    surface = np.where(floor, np.uint8(FLOOR), np.where(high, np.uint8(SKY), np.uint8(WALL)))
    light = np.ones(surface.shape)
    inward = np.where(by_side, -np.sign(x), 0.0), np.where(by_side, 0.0, -np.sign(y)), np.zeros(1)
    for number, at, normal in ((FLOOR, ground, vector(0.0, 0.0, 1.0)), (WALL, wall, inward)):
        rows = _rows(surface, number)
        share, _ = lit(seen, (x, y, z[:, :, rows]), at[:, :, rows] if number == FLOOR else at, normal)
        np.copyto(light[:, :, rows], share, where=surface[:, :, rows] == number)
    shown = np.stack([(surface == number).any(axis=(0, 1)) for number in (SKY, FLOOR, WALL)])
    empty = Room(seen, ground, wall, surface, light, shown, np.zeros((21, SIDE, SIDE), np.uint8))
    for number, (planes, colors) in PLANES.items():
        rows = _rows(surface, number)
        bright = np.where(surface[:, :, rows] == number, light[:, :, rows], 0.0)
        empty.planes[planes, rows] = levels(bright.reshape(9, -1), colors).reshape(len(colors), -1, SIDE)
    return empty


def _rows(surface: NDArray[np.uint8], number: int) -> slice:
    """Rows of the image between the first and the last that show a surface."""
    some = np.flatnonzero((surface == number).any(axis=(0, 1, 3)))
    return slice(int(some[0]), int(some[-1]) + 1)


def lit(seen: View, rays: Vector, at: Array, normal: Vector) -> tuple[Array, Array]:
    """Light of surfaces that rays meet at some distance, and what of it the lamp sheds."""
    x, y, z = (start + at * step for start, step in zip(seen.eye, rays, strict=True))
    shed = _lamp((FRAMING.lamp[0] - x, FRAMING.lamp[1] - y, FRAMING.lamp[2] - z), normal)
    facing = np.maximum(-dot(normal, seen.axis), 0.0)
    return FRAMING.ambient_light + FRAMING.camera_light * facing + FRAMING.lamp_light * shed, shed


def _lamp(to_lamp: Vector, normal: Vector) -> Array:
    """Light that the lamp sheds on surfaces: cosine of incidence, faded off the lamp's axis; 0 from behind."""
    ray = unit(to_lamp)
    light = np.maximum(dot(ray, normal), 0.0)
    off = np.maximum(ray[2], 0.0)
    for _ in range(FRAMING.lamp_exponent):
        light *= off
    return light


def levels(light: Array, colors: Array, gloss: Array | float = 0.0) -> Array:
    """What a surface adds to each pixel in some colours, 0 … 255: a mean over samples, added in a fixed order.

    `light` (9, pixels), 0 where another surface is seen; `gloss` likewise; `colors` (k,); returns (k, pixels).
    """
    bright = light * colors[:, None, None] + gloss
    np.minimum(bright, 1.0, out=bright)
    total = bright[:, 0]
    for sample in range(1, 9):
        total += bright[:, sample]
    # rounded to the nearest where a pixel shows nothing else, and down where surfaces share it
    return np.floor(total * 255.0 / 9 + np.where((light > 0.0).all(axis=0), 0.5, 0.0))
