"""Rooms made of nothing: walls with windows and a door, and furniture along them.

So that the recipe works where no scanned rooms are at hand. A room is 4 … 7 m by 3.6 … 6 m and 2.4 … 3.1 m high, stands
on z = 0 around the z axis, and is a function of its key. Everything in it is a placement of its own, with a name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from setsup.arrays import Reals, Words
from setsup.random import fold, randint_below, uniform
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.portable import length, product, sin_cos
from setsup.scenes.recipes.room.furniture import FURNITURE, chair, legs, picture
from setsup.scenes.recipes.room.patterns import finish
from setsup.scenes.recipes.room.solids import Part, box, build_mesh, rectangle
from setsup.scenes.scene import Placement, Scene

__all__ = ["MOST_PLACEMENTS", "SKY", "made_room"]


SKY = (190, 214, 240)
"""What is seen through windows, sRGB bytes."""

_ALONG = 8  # pieces of furniture along a wall that are tried
MOST_PLACEMENTS = 3 + 3 + 4 * 2 * _ALONG + 6
"""Walls, floor and ceiling; two windows and a door; furniture with pictures; a rug, and a table with chairs."""

_GAP = 0.02  # metres between furniture and wall, so that no two surfaces lie in one plane
_CORNER = 1.0  # metres that the furniture of the shorter walls keeps from their ends


def made_room(key: Words) -> Scene:
    """Build a room."""
    at = uniform(fold(key, np.arange(4)))
    width, depth, height = 4.0 + 3.0 * at[0], 3.6 + 2.4 * at[1], 2.4 + 0.7 * at[2]
    walls = _walls(width, depth)
    openings = _openings(fold(key, 10), walls, height)
    placements = list(_shell(fold(key, 11), walls, openings, width, depth, height))
    for number, wall in enumerate(walls):
        placements += _along(fold(fold(key, 12), number), wall, openings[number], height)
    placements += _middle(fold(key, 13), width, depth)
    return Scene(tuple(placements), background=SKY)


@dataclass(frozen=True, slots=True)
class _Wall:
    """A wall seen from inside: its left lower corner, the way along it to the right, and its length."""

    start: Reals
    along: Reals
    length: float

    @property
    def inward(self) -> Reals:
        return np.array([-self.along[1], self.along[0], 0.0])


@dataclass(frozen=True, slots=True)
class _Opening:
    """A window or door: where it is along and up a wall."""

    name: str
    left: float
    right: float
    bottom: float
    top: float


def _walls(width: float, depth: float) -> list[_Wall]:
    """The four walls, the one at −y first, on from left to right as seen from inside looking out."""
    x, y = width / 2, depth / 2
    corners = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]])
    walls = []
    for number in range(4):
        way = corners[(number + 1) % 4] - corners[number]
        far = float(length(way))
        walls.append(_Wall(corners[number], way / far, far))
    return walls


def _openings(key: Words, walls: Sequence[_Wall], height: float) -> list[list[_Opening]]:
    """One or two windows, and a door; at most one opening a wall."""
    openings: list[list[_Opening]] = [[] for _ in walls]
    first = int(randint_below(fold(key, 0), 4))
    windows = 1 + int(randint_below(fold(key, 1), 2))
    for number in range(windows + 1):
        wall = (first + number) % 4
        at = uniform(fold(fold(key, 2 + number), np.arange(3)))
        door = number == windows
        wide = 0.95 if door else 1.1 + 0.9 * at[0]
        left = 0.4 + (walls[wall].length - wide - 0.8) * at[1]
        bottom, top = (0.0, 2.05) if door else (0.8 + 0.2 * at[2], min(2.1, height - 0.2))
        openings[wall].append(_Opening("door" if door else "window", left, left + wide, bottom, top))
    return openings


def _shell(
    key: Words,
    walls: Sequence[_Wall],
    openings: Sequence[Sequence[_Opening]],
    width: float,
    depth: float,
    height: float,
) -> Iterator[Placement]:
    paper = finish(fold(key, 0), ("plain", "plain", "stripes", "bricks", "dots", "weave"), "pale", 256)
    accent = finish(fold(key, 1), ("plain", "stripes", "bricks", "checks", "marble", "planks"), "pale", 256)
    special = int(randint_below(fold(key, 2), 5))  # the wall that differs; none for the last
    white = finish(fold(key, 3), ("plain",), "white")
    wood = finish(fold(key, 4), ("planks", "plain"), "wood")
    sides: list[Part] = []
    for number, (wall, holes) in enumerate(zip(walls, openings, strict=True)):
        sides += _pierced(
            wall, [hole for hole in holes if hole.name == "window"], height, accent if number == special else paper
        )
    yield Placement(build_mesh(sides), name="walls")
    ground = finish(fold(key, 5), ("planks", "planks", "tiles", "checks", "weave"), "wood", 256)
    x, y = width / 2, depth / 2
    yield Placement(build_mesh([rectangle((-x, -y, 0), (width, 0, 0), (0, depth, 0), ground, 1.6)]), name="floor")
    yield Placement(build_mesh([rectangle((-x, -y, height), (width, 0, 0), (0, depth, 0), white, 2.0)]), name="ceiling")
    for wall, holes in zip(walls, openings, strict=True):
        for hole in holes:
            parts = _window(hole, white) if hole.name == "window" else _door(hole, wood, white)
            yield _against(wall, 0.0, 0.0, parts, hole.name)


def _pierced(wall: _Wall, holes: Sequence[_Opening], height: float, material: Material) -> list[Part]:
    """A wall cut at the edges of its holes, so that all pieces share whole sides."""
    across = [0.0, *(edge for hole in holes for edge in (hole.left, hole.right)), wall.length]
    up = sorted({0.0, *(edge for hole in holes for edge in (hole.bottom, hole.top)), height})
    pieces = []
    for left, right in pairwise(across):
        for bottom, top in pairwise(up):
            if not any(hole.left <= left < hole.right and hole.bottom <= bottom < hole.top for hole in holes):
                start = wall.start + left * wall.along + (0, 0, bottom)
                pieces.append(rectangle(start, (right - left) * wall.along, (0, 0, top - bottom), material, 1.5))
    return pieces


def _window(hole: _Opening, material: Material) -> list[Part]:
    """Frame, bars and sill; y points into the room."""
    left, right, bottom, top = hole.left, hole.right, hole.bottom, hole.top
    middle, high = (left + right) / 2, bottom + 0.62 * (top - bottom)
    return [
        *box((left - 0.06, -0.08, bottom - 0.05), (right + 0.06, 0.14, bottom), material),
        *box((left - 0.06, -0.08, top), (right + 0.06, 0.03, top + 0.06), material),
        *box((left - 0.06, -0.08, bottom), (left, 0.03, top), material),
        *box((right, -0.08, bottom), (right + 0.06, 0.03, top), material),
        *box((middle - 0.025, -0.06, bottom), (middle + 0.025, -0.02, top), material),
        *box((left, -0.055, high - 0.02), (right, -0.025, high + 0.02), material),
    ]


def _door(hole: _Opening, wood: Material, white: Material) -> list[Part]:
    left, right, top = hole.left, hole.right, hole.top
    return [
        *box((left, 0.0, 0.005), (right, 0.03, top), wood, 0.8),
        *box((left - 0.08, 0.0, 0.0), (left, 0.05, top + 0.08), white),
        *box((right, 0.0, 0.0), (right + 0.08, 0.05, top + 0.08), white),
        *box((left, 0.0, top), (right, 0.05, top + 0.08), white),
        *box((left + 0.06, 0.03, 1.0), (left + 0.2, 0.09, 1.03), white),
        *(
            part
            for low in (0.2, 1.2)
            for part in box((left + 0.18, 0.03, low), (right - 0.18, 0.04, low + 0.7), wood, 0.5)
        ),
    ]


def _against(wall: _Wall, at: float, away: float, parts: Sequence[Part], name: str) -> Placement:
    """Put parts with x along a wall and y into the room where they belong."""
    rotation = np.stack([wall.along, wall.inward, (0.0, 0.0, 1.0)], axis=1)
    return Placement(build_mesh(parts), rotation, wall.start + at * wall.along + away * wall.inward, name=name)


def _along(key: Words, wall: _Wall, holes: Sequence[_Opening], height: float) -> Iterator[Placement]:
    """Furniture from the left of a wall to its right, and pictures above what is low."""
    short = abs(wall.along[0]) < 0.5
    cursor, end = (_CORNER, wall.length - _CORNER) if short else (0.05, wall.length - 0.05)
    for number in range(_ALONG):
        own = fold(key, number)
        numbers = uniform(fold(own, np.arange(6)))
        name = tuple(FURNITURE)[int(randint_below(fold(own, 6), len(FURNITURE)))]
        wide, tall, make = FURNITURE[name]
        wide, tall = wide * (0.9 + 0.3 * numbers[0]), tall * (0.9 + 0.2 * numbers[1])
        cursor += 0.5 * float(numbers[2]) ** 2
        if cursor + wide > end:
            continue  # something narrower may still fit
        meets = [hole for hole in holes if cursor < hole.right + 0.1 and cursor + wide > hole.left - 0.1]
        if any(hole.name == "door" or tall > hole.bottom - 0.05 for hole in meets):
            cursor = max([cursor, *(hole.right + 0.12 for hole in meets if hole.name == "door")])
            continue
        yield _against(wall, cursor, _GAP, make(fold(own, 7), wide, tall), name)
        if tall < 1.0 and not meets and numbers[3] < 0.7:
            yield _against(wall, cursor, 0.0, picture(fold(own, 8), wide, height), "picture")
        cursor += wide + 0.05


def _middle(key: Words, width: float, depth: float) -> Iterator[Placement]:
    """Perhaps a rug, and perhaps a table with chairs, off the middle."""
    at = uniform(fold(key, np.arange(8)))
    if at[0] < 0.7:
        rug = finish(fold(key, 8), ("weave", "stripes", "checks", "dots", "marble"))
        x, y = 0.9 + 0.4 * at[1], 0.6 + 0.4 * at[2]
        yield Placement(build_mesh(box((-x, -y, 0.0), (x, y, 0.012), rug, 1.0)), _turned(0.4 * at[3] - 0.2), name="rug")
    if at[4] < 0.55 and width > 4.6:
        wood = finish(fold(key, 9), ("planks", "plain"), "wood")
        spot = np.array([(width / 2 - 1.9) * (1 if at[5] < 0.5 else -1), (depth / 2 - 1.8) * (2 * at[6] - 1), 0.0])
        turn = _turned(0.5 * at[7] - 0.25)
        top = box((-0.6, -0.4, 0.7), (0.6, 0.4, 0.735), wood, 0.8)
        yield Placement(build_mesh([*top, *legs(0.6, 0.4, 0.7, wood)]), turn, spot, name="table")
        seats = uniform(fold(fold(key, 10), np.arange(8)))
        for number in range(4):
            if seats[number] < 0.7:
                side, end = (-1, 1)[number % 2], (-0.3, 0.3)[number // 2]
                there = spot + product((end, side * (0.5 + 0.2 * seats[4 + number]), 0.0), turn.T)
                facing = product(turn, _turned(0.0 if side > 0 else np.pi))
                yield Placement(build_mesh(chair(wood, fold(key, 11))), facing, there, name="chair")


def _turned(angle: float) -> Reals:
    sine, cosine = sin_cos(angle)
    return np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
