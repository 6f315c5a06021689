"""Furniture of boxes and turned profiles, with patterns on everything: what stands in rooms that are made up.

Each piece is made of a key, a width and a height. The wall behind it is y = 0 and the floor z = 0; it begins at x = 0
and reaches into the room along y.
"""

from collections.abc import Callable, Sequence

import numpy as np

from setsup.arrays import Words
from setsup.random import fold, uniform
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.portable import sin_cos
from setsup.scenes.recipes.room.patterns import finish
from setsup.scenes.recipes.room.solids import Part, box, rectangle, turned

__all__ = ["FURNITURE", "chair", "legs", "picture"]


def legs(x: float, y: float, top: float, material: Material, thick: float = 0.05) -> list[Part]:
    """Four legs under the corners of a board from −x, −y to x, y."""
    return [
        part
        for a in (-x + 0.03, x - 0.03 - thick)
        for b in (-y + 0.03, y - 0.03 - thick)
        for part in box((a, b, 0.0), (a + thick, b + thick, top), material, 0.8)
    ]


def chair(wood: Material, key: Words) -> list[Part]:
    """A chair around the z axis, its back at +y."""
    cloth = finish(key, ("weave", "stripes", "plain", "dots"))
    return [
        *box((-0.21, -0.21, 0.42), (0.21, 0.21, 0.46), cloth, 0.5),
        *box((-0.21, 0.21, 0.42), (0.21, 0.245, 0.9), wood, 0.5),
        *legs(0.22, 0.22, 0.42, wood, 0.04),
    ]


def picture(key: Words, wide: float, height: float) -> list[Part]:
    """A picture over what is ``wide`` metres wide, in a room of a height."""
    at = uniform(fold(key, np.arange(3)))
    canvas = finish(fold(key, 3), ("checks", "dots", "marble", "stripes", "tiles"))
    frame = finish(fold(key, 4), ("plain",), "wood")
    half = min(0.2 + 0.25 * at[0], wide / 2)
    middle, low = wide / 2, 1.35 + 0.1 * at[1]
    high = min(low + 0.4 + 0.3 * at[2], height - 0.25)
    return [
        *box((middle - half, 0.0, low), (middle + half, 0.02, high), frame),
        *box((middle - half + 0.04, 0.02, low + 0.04), (middle + half - 0.04, 0.025, high - 0.04), canvas, 0.5),
    ]


def _shelf(key: Words, wide: float, tall: float) -> list[Part]:
    """Boards with books, and gaps among them."""
    wood = finish(fold(key, 0), ("planks", "plain"), "wood")
    parts = [
        *box((0, 0, 0), (wide, 0.02, tall), wood),
        *box((0, 0.02, 0), (0.025, 0.3, tall), wood),
        *box((wide - 0.025, 0.02, 0), (wide, 0.3, tall), wood),
    ]
    covers = [finish(fold(fold(key, 1), number), ("plain", "stripes", "dots"), size=64) for number in range(5)]
    boards = max(2, round(tall / 0.38))
    for board in range(boards + 1):
        low = (tall - 0.025) * board / boards
        parts += box((0.025, 0.02, low), (wide - 0.025, 0.3, low + 0.025), wood)
        at = uniform(fold(fold(fold(key, 2), board), np.arange(40))) if board < boards else np.empty(0)
        cursor = 0.03
        for number in range(0, len(at), 2):
            thick = 0.025 + 0.05 * at[number]
            if cursor + thick > wide - 0.03:
                break
            if at[number + 1] < 0.72:
                top = low + 0.025 + (0.17 + 0.1 * at[number]) * min(1.0, tall / boards / 0.38)
                cover = covers[int(at[number + 1] / 0.72 * len(covers))]
                parts += box((cursor, 0.06, low + 0.025), (cursor + thick - 0.003, 0.24, top), cover, 0.3)
            cursor += thick
    return parts


def _cupboard(key: Words, wide: float, tall: float) -> list[Part]:
    body = finish(fold(key, 0), ("planks", "plain", "plain"), "wood")
    front = finish(fold(key, 1), ("plain", "planks", "stripes", "tiles"), "any")
    parts = box((0, 0, 0), (wide, 0.45, tall), body)
    doors = max(2, round(wide / 0.5))
    for number in range(doors):
        left, right = wide * number / doors + 0.015, wide * (number + 1) / doors - 0.015
        parts += box((left, 0.45, 0.06), (right, 0.47, tall - 0.02), front, 0.8)
        grip = right - 0.06 if number % 2 == 0 else left + 0.03
        parts += box((grip, 0.47, 0.5 * tall), (grip + 0.03, 0.49, 0.5 * tall + 0.12), body)
    return parts


def _bed(key: Words, wide: float, tall: float) -> list[Part]:
    wood = finish(fold(key, 0), ("planks", "plain"), "wood")
    sheet = finish(fold(key, 1), ("stripes", "checks", "dots", "weave"), "any")
    pillow = finish(fold(key, 2), ("plain", "stripes"), "pale")
    return [
        *box((0, 0, 0.1), (wide, 0.95, 0.3), wood),
        *box((0, 0, 0.3), (0.05, 0.95, 0.85), wood),
        *box((0.06, 0.02, 0.3), (wide - 0.02, 0.93, tall), sheet, 0.7),
        *box((0.12, 0.2, tall), (0.5, 0.75, tall + 0.1), pillow, 0.5),
        *(
            part
            for x in (0.02, wide - 0.1)
            for y in (0.02, 0.85)
            for part in box((x, y, 0), (x + 0.08, y + 0.08, 0.1), wood)
        ),
    ]


def _sofa(key: Words, wide: float, tall: float) -> list[Part]:
    cloth = finish(fold(key, 0), ("weave", "plain", "stripes", "dots"), "any")
    cushion = finish(fold(key, 1), ("checks", "weave", "plain", "marble"), "any")
    parts = [
        *box((0, 0, 0.06), (wide, 0.22, tall), cloth, 0.6),
        *box((0, 0.22, 0.06), (0.16, 0.85, 0.58), cloth, 0.6),
        *box((wide - 0.16, 0.22, 0.06), (wide, 0.85, 0.58), cloth, 0.6),
        *box((0.16, 0.22, 0.06), (wide - 0.16, 0.82, 0.26), cloth, 0.6),
    ]
    seats = max(1, round((wide - 0.32) / 0.65))
    for number in range(seats):
        left = 0.17 + (wide - 0.34) * number / seats
        parts += box((left, 0.23, 0.26), (left + (wide - 0.34) / seats - 0.015, 0.84, 0.42), cushion, 0.6)
    return parts


def _desk(key: Words, wide: float, tall: float) -> list[Part]:
    """A desk with a screen, a lamp and a pot on it."""
    wood = finish(fold(key, 0), ("planks", "plain"), "wood")
    dark = finish(fold(key, 1), ("plain",), "any")
    parts = box((0, 0, tall - 0.03), (wide, 0.6, tall), wood, 0.8)
    parts += [_moved(part, (wide / 2, 0.3, 0)) for part in legs(wide / 2, 0.3, tall - 0.03, wood)]
    parts += box((wide / 2 - 0.25, 0.15, tall + 0.08), (wide / 2 + 0.25, 0.18, tall + 0.4), dark)
    parts += box((wide / 2 - 0.1, 0.12, tall), (wide / 2 + 0.1, 0.26, tall + 0.015), dark)
    parts += box((wide / 2 - 0.02, 0.13, tall + 0.015), (wide / 2 + 0.02, 0.15, tall + 0.25), dark)
    pot = finish(fold(key, 2), ("dots", "stripes", "checks"), "any")
    parts.append(turned([(0, 0), (0.06, 0), (0.08, 0.12), (0.05, 0.2)], pot, centre=(0.18, 0.3, tall), span=0.3))
    return parts


def _sideboard(key: Words, wide: float, tall: float) -> list[Part]:
    """Drawers with a vase on top."""
    body = finish(fold(key, 0), ("planks", "plain"), "wood")
    front = finish(fold(key, 1), ("plain", "planks", "weave"), "any")
    vase = finish(fold(key, 2), ("stripes", "marble", "dots", "tiles"), "any")
    parts = box((0, 0, 0.08), (wide, 0.4, tall), body)
    for column in range(2):
        for row in range(3):
            left, low = wide * column / 2 + 0.015, 0.1 + (tall - 0.12) * row / 3
            parts += box((left, 0.4, low), (left + wide / 2 - 0.03, 0.415, low + (tall - 0.12) / 3 - 0.02), front, 0.6)
    parts += [_moved(part, (wide / 2, 0.2, 0)) for part in legs(wide / 2, 0.2, 0.08, body)]
    profile = [(0, 0), (0.05, 0), (0.09, 0.1), (0.08, 0.2), (0.04, 0.28), (0.06, 0.34)]
    parts.append(turned(profile, vase, centre=(wide * 0.7, 0.2, tall), span=0.3))
    return parts


def _lamp(key: Words, wide: float, tall: float) -> list[Part]:
    shade = finish(fold(key, 0), ("plain", "stripes", "dots"), "pale")
    dark = finish(fold(key, 1), ("plain",), "wood")
    at = (wide / 2, 0.2, 0.0)
    return [
        turned([(0, 0), (0.14, 0), (0.14, 0.03), (0.015, 0.03)], dark, centre=at, creased=True),
        turned([(0.015, 0.03), (0.015, tall - 0.2)], dark, centre=at, segments=12),
        turned([(0.18, tall - 0.3), (0.11, tall)], shade, centre=at, span=0.5),
    ]


def _plant(key: Words, wide: float, tall: float) -> list[Part]:
    pot = finish(fold(key, 0), ("bricks", "plain", "stripes", "tiles"), "any")
    green = Material((60, 120, 50), finish(fold(key, 1), ("marble", "weave"), "pale").texture)
    at = (wide / 2, 0.22, 0.0)
    parts = [
        turned([(0, 0), (0.13, 0), (0.17, 0.3), (0.15, 0.3), (0, 0.27)], pot, centre=at, creased=True, span=0.5),
        turned([(0.015, 0.27), (0.012, 0.5 * tall)], green, centre=at, segments=8),
    ]
    numbers = uniform(fold(fold(key, 2)[..., None], np.arange(24)))
    for leaf in range(8):
        turn = 2 * np.pi * (leaf + numbers[3 * leaf]) / 8
        low = np.array([at[0], at[1], (0.35 + 0.25 * numbers[3 * leaf + 1]) * tall])
        sine, cosine = sin_cos(turn)
        out = np.array([cosine, sine, 0.0])
        side = np.array([-out[1], out[0], 0.0]) * 0.05
        rise = 0.19 * out + (0, 0, (0.15 + 0.3 * numbers[3 * leaf + 2]) * tall)
        parts.append(rectangle(low - side, 2 * side, rise, green, 0.3))
    return parts


def _moved(part: Part, by: Sequence[float]) -> Part:
    return Part(part.corners + np.asarray(by), part.uv, part.normals, part.material)


FURNITURE: dict[str, tuple[float, float, Callable[[Words, float, float], list[Part]]]] = {
    "shelf": (0.9, 1.8, _shelf),
    "cupboard": (1.0, 1.9, _cupboard),
    "bed": (1.9, 0.5, _bed),
    "sofa": (1.7, 0.82, _sofa),
    "desk": (1.2, 0.74, _desk),
    "sideboard": (1.2, 0.75, _sideboard),
    "lamp": (0.4, 1.5, _lamp),
    "plant": (0.45, 1.0, _plant),
}
"""Name: width along the wall, height (both vary), and what makes it of a key, a width and a height."""
