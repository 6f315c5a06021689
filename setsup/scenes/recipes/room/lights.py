"""Lights of rooms: a mode for each room, with its brightness, colour and shadows drawn from a key.

No light is so bright that a white wall would often be cut to white: lights that fall on one surface add up to about 1.
"""

import numpy as np

from setsup.arrays import Reals, Words
from setsup.random import fold, randint_below, uniform
from setsup.scenes.portable import sin_cos
from setsup.scenes.rays import Rays
from setsup.scenes.recipes.room.space import Space
from setsup.scenes.scene import Ambient, Directional, Lamp, Light

__all__ = ["MODES", "room_lights"]


MODES = ("even", "headlight", "lamp", "lamp with shadows", "lamps with shadows", "sun with shadows")
"""Each as likely as the others."""

_SUNS, _LOOKED_AT = 16, 300  # directions, and free positions by which they are compared


def room_lights(key: Words, rays: Rays, space: Space) -> tuple[str, tuple[Light, ...]]:
    """Draw the lights of a room."""
    mode = MODES[int(randint_below(fold(key, 0), len(MODES)))]
    at = uniform(fold(key, np.arange(1, 9)))
    tint = np.array([1.0, 0.96 + 0.04 * at[0], 0.86 + 0.14 * at[1]])  # from lamp light to white
    if mode == "even":
        return mode, (Ambient(_color(tint * (0.75 + 0.25 * at[2]))),)
    base = 0.25 + 0.15 * at[2]
    ambient = Ambient(_color(base * np.ones(3)))
    if mode == "headlight":
        return mode, (ambient, Directional((0, 0, 1), _color((0.95 - base) * tint), of_camera=True))
    if mode == "sun with shadows":
        fill = Lamp(_high(fold(key, 20), space), _color(0.3 * np.ones(3)), (0, 0, -1), 0.5)
        return mode, (ambient, fill, Directional(_sun(fold(key, 30), rays, space), _color(0.9 * tint), shadow=True))
    count = 2 + int(randint_below(fold(key, 10), 2)) if mode == "lamps with shadows" else 1
    shadow = mode != "lamp"
    each = _color((1.0 - base) * tint * (0.65 if count > 1 else 1.0))
    # lamps that shine downwards and a little to all sides, so that the ceiling above them is not burnt out
    lamps = [
        Lamp(_high(fold(key, 20 + number), space), each, (0, 0, -1), 0.4, shadow=shadow) for number in range(count)
    ]
    return mode, (ambient, *lamps)


def _sun(key: Words, rays: Rays, space: Space) -> tuple[float, float, float]:
    """Way of the light of the sun, 25° … 60° above the horizon."""
    at = uniform(fold(fold(key, np.arange(_SUNS))[:, None], np.arange(2)))
    turn, rise = 2 * np.pi * at[:, 0], np.radians(25 + 35 * at[:, 1])
    (turned, ahead), (falling, level) = sin_cos(turn), sin_cos(rise)
    ways = np.stack([ahead * level, turned * level, -falling], axis=1)
    points = space.points[:_LOOKED_AT]
    hits = rays.hit(np.repeat(points, _SUNS, axis=0), np.tile(-ways, (len(points), 1)))[0]
    x, y, z = ways[np.argmax((hits < 0).reshape(len(points), _SUNS).sum(axis=0))].tolist()
    return x, y, z


def _high(key: Words, space: Space) -> tuple[float, float, float]:
    """One of the free positions in the upper quarter of what free positions there are."""
    heights = space.points[:, 2]
    rows = np.flatnonzero(heights >= 0.75 * heights.max())
    x, y, z = space.points[rows[randint_below(key, len(rows))]].tolist()
    return x, y, z


def _color(light: Reals) -> tuple[float, float, float]:
    red, green, blue = light.tolist()
    return red, green, blue
