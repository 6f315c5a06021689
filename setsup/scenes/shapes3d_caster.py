"""A small ray caster for the Shapes3D scene: what every sample of an image sees, and how brightly.

Only hues colour the image; all else is one of 8 × 4 × 15 = 480 *states* (scale, shape, orientation). A state is cast
once into :func:`planes`, after which an image of any hues is a few additions of bytes (:func:`compose`). The empty room
is cast once an orientation, and a state only where its object and its shadow may be.

Convention
----------
As in :mod:`setsup.scenes.shapes3d`. Sines and cosines are literals, and the rest is ``+ − × ÷ √`` in float64 without
sums whose order might vary: the bytes are the same on every machine.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setsup.scenes.shapes3d import FRAMING, SCALES, SHAPES
from setsup.scenes.shapes3d_rays import Array, meet, unit
from setsup.scenes.shapes3d_room import FLOOR, OBJECT, PLANES, SKY, WALL, Room, levels, lit, room
from setsup.scenes.shapes3d_views import SIDE, Window, object_window, shadow_window

__all__ = ["FLOOR", "HUE_FIFTHS", "OBJECT", "SIDE", "SKY", "WALL", "Samples", "compose", "planes", "trace"]

HUE_FIFTHS = np.array(
    [
        *((5, 0, 0), (5, 3, 0), (4, 5, 0), (1, 5, 0), (0, 5, 2)),
        *((0, 5, 5), (0, 2, 5), (1, 0, 5), (4, 0, 5), (5, 0, 3)),
    ],
    dtype=np.intp,
)
"""(10, 3): RGB of the fully saturated hues 0, 0.1, … 0.9, in fifths."""


@dataclass(frozen=True, slots=True)
class Samples:
    """What the samples of one image see; axis 0 runs over the samples of a pixel.

    `surface` (9, 64, 64) uint8; `light` (9, 64, 64) float64, 1 for the sky; `gloss` (9, 64, 64) float64.
    """

    surface: NDArray[np.uint8]
    light: Array
    gloss: Array


@dataclass(frozen=True, slots=True)
class _Thing:
    """The object's samples in a part of the image: (3, 3, rows, columns) each."""

    window: Window
    seen: NDArray[np.bool_]
    light: Array
    gloss: Array


@dataclass(frozen=True, slots=True)
class _Shadow:
    """Samples of the floor that the object hides from the lamp, in a part of the image."""

    window: Window
    seen: NDArray[np.bool_]


def _thing(scale: int, shape: int, empty: Room) -> _Thing:
    """Cast the rays that may meet the object."""
    rows, columns = object_window(scale, shape, empty.view)
    hit = meet(SHAPES[shape], SCALES[scale], FRAMING, empty.view.eye, empty.view.within((rows, columns)))
    seen = hit.distance < np.minimum(empty.ground[:, :, rows], empty.wall[..., columns])
    high, wide = _span(seen, (0, 1, 3)), _span(seen, (0, 1, 2))
    window = _inner(rows, high), _inner(columns, wide)
    seen = seen[:, :, high, wide]
    at = np.where(seen, hit.distance[:, :, high, wide], 0.0)
    x, y, z = (part[:, :, high, wide] for part in hit.normal)
    light, shed = lit(empty.view, empty.view.within(window), at, unit((x, y, z)))
    return _Thing(window, seen, np.where(seen, light, 0.0), np.where(seen & (shed > 0.0), FRAMING.gloss, 0.0))


def _span(seen: NDArray[np.bool_], others: tuple[int, ...]) -> slice:
    """From the first to the last place of an axis at which some sample sees the object."""
    positions = np.flatnonzero(np.any(seen, axis=others))
    return slice(int(positions[0]), int(positions[-1]) + 1)


def _inner(whole: slice, part: slice) -> slice:
    """A part of a part, as one of the whole."""
    return slice(whole.start + part.start, whole.start + part.stop)


def _shadow(scale: int, shape: int, empty: Room) -> _Shadow:
    """Cast the rays from the floor to the lamp that may meet the object.

    Only the floor lies in the shadow: walls are too far, and a convex object throws none on itself.
    """
    rows, columns = window = shadow_window(scale, shape, empty.view)
    at, rays = empty.ground[:, :, rows], empty.view.within(window)
    with np.errstate(invalid="ignore"):
        x, y, z = (start + at * step for start, step in zip(empty.view.eye, rays, strict=True))
        to_lamp = FRAMING.lamp[0] - x, FRAMING.lamp[1] - y, FRAMING.lamp[2] - z
        hit = meet(SHAPES[shape], SCALES[scale], FRAMING, (x, y, z), to_lamp)
    return _Shadow(window, (hit.distance < np.inf) & (empty.surface[:, :, rows, columns] == FLOOR))


def trace(scale: int, shape: int, orientation: int) -> Samples:
    """Cast every ray of one state."""
    empty = room(orientation)
    thing, shadow = _thing(scale, shape, empty), _shadow(scale, shape, empty)
    surface, light, gloss = empty.surface.copy(), empty.light.copy(), np.zeros(empty.light.shape)
    light[:, :, *shadow.window][shadow.seen] = FRAMING.ambient_light
    surface[:, :, *thing.window][thing.seen] = OBJECT
    light[:, :, *thing.window][thing.seen] = thing.light[thing.seen]
    gloss[:, :, *thing.window] = thing.gloss
    size = 9, SIDE, SIDE
    return Samples(surface.reshape(size), light.reshape(size), gloss.reshape(size))


def planes(scale: int, shape: int, orientation: int) -> NDArray[np.uint8]:
    """Everything an image of one state can be made of, whatever its hues.

    Planes 0 … 5 are what the floor adds to a channel in which its colour has 0 … 5 fifths, 6 … 11 the same of the
    walls, 12 … 17 of the object, and 18 … 20 what the sky adds to red, green and blue.

    Returns (21, 64, 64) uint8.
    """
    empty = room(orientation)
    thing, shadow = _thing(scale, shape, empty), _shadow(scale, shape, empty)
    hidden, dark = np.zeros((2, 9, SIDE * SIDE), np.bool_)
    hidden.reshape(3, 3, SIDE, SIDE)[:, :, *thing.window] = thing.seen
    dark.reshape(3, 3, SIDE, SIDE)[:, :, *shadow.window] = shadow.seen
    covered = hidden.all(axis=0)
    added = empty.planes.reshape(21, -1) * ~covered
    changed = (hidden | dark).any(axis=0) & ~covered
    surfaces, lights = empty.surface.reshape(9, -1), empty.light.reshape(9, -1)
    for surface, (rows, colors) in PLANES.items():
        pixels = np.flatnonzero(changed & empty.shown[surface].ravel())
        if len(pixels):
            light = np.where(dark[:, pixels], FRAMING.ambient_light, lights[:, pixels])
            light[(surfaces[:, pixels] != surface) | hidden[:, pixels]] = 0.0
            added[rows, pixels] = levels(light, colors)
    added = added.reshape(21, SIDE, SIDE)
    shown = levels(thing.light.reshape(9, -1), PLANES[FLOOR][1], thing.gloss.reshape(9, -1))
    added[12:18, *thing.window] = shown.reshape(6, *thing.light.shape[2:])
    return added


def compose(state: NDArray[np.uint8], floor: int, wall: int, thing: int) -> NDArray[np.uint8]:
    """Image of a state in the given hues.

    `state` (21, 64, 64) uint8; returns (64, 64, 3) uint8.
    """
    image: NDArray[np.uint8] = state[HUE_FIFTHS[floor]]
    image += state[6 + HUE_FIFTHS[wall]]
    image += state[12 + HUE_FIFTHS[thing]]
    image += state[18:]
    return image.transpose(1, 2, 0)
