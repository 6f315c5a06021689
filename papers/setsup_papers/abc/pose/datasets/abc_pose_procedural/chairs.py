"""Made-up chairs as meshes: legs, seat, back and arms of several kinds.

Convention
----------
World frame in metres: a chair stands on z = 0, who sits on it looks along +x, and the middle of the seat is at x = 0.
Every part is its own mirror image in y = 0, or stands there with its mirror image; the back tells front from rear.
"""

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.traits import spread_traits
from setsup_papers.abc.pose.datasets.abc_pose_procedural.solids import across, bar, bars, disc, pair

__all__ = ["BACKS", "LEGS", "Chair", "chair_parts", "draw_chair"]

LEGS = ("square", "round", "splayed", "pedestal", "sled", "block")
BACKS = ("solid", "slats", "rungs", "frame", "hoop", "low")


@dataclass(frozen=True, slots=True)
class Chair:
    """A chair: lengths in metres, angles in radians, colours of sRGB bytes.

    `rise` and `recline` are the height of the back above the seat and its tilt to the rear; `count` is how many slats,
    rungs or spindles a back has; `leg` is the radius of a leg; `frame`, `cover` and `second` are colours.
    """

    legs: str
    back: str
    width: float
    depth: float
    height: float
    thickness: float
    rise: float
    recline: float
    count: int
    leg: float
    arms: str
    cushion: bool
    frame: tuple[int, int, int]
    cover: tuple[int, int, int]
    second: tuple[int, int, int]


def draw_chair(seed: int, number: int) -> Chair:
    """Chair number `number` of a seed, whichever others there are."""
    take = iter(spread_traits(seed, "abc-pose-procedural chair", number).tolist())

    def between(low: float, high: float) -> float:
        return float(low + (high - low) * next(take))

    legs, back = LEGS[int(next(take) * len(LEGS))], BACKS[int(next(take) * len(BACKS))]
    arms = ("none", "none", "posts", "panels")[int(next(take) * 4)]
    return Chair(
        legs=legs,
        back=back,
        width=between(0.40, 0.58) + 0.12 * (legs == "block"),
        depth=between(0.38, 0.52) + 0.08 * (legs == "block"),
        height=between(0.38, 0.50),
        thickness=between(0.03, 0.07) + 0.06 * (legs == "block"),
        rise=between(0.36, 0.62) * (0.55 if back == "low" else 1.0),
        recline=between(0.04, 0.30),
        count=3 + int(4 * next(take)),
        leg=between(0.016, 0.03),
        arms=arms,
        cushion=next(take) > 0.55,
        frame=_wood(next(take), next(take)) if next(take) > 0.4 else _paint(next(take), next(take), next(take)),
        cover=_paint(next(take), next(take), next(take)),
        second=_paint(next(take), 1.0, next(take)),
    )


def chair_parts(chair: Chair) -> list[Mesh]:
    """Meshes of a chair."""
    frame = Material(chair.frame)
    return [*_legs(chair, frame), *_seat(chair, frame), *_back(chair, frame), *_arms(chair, frame)]


def _legs(chair: Chair, frame: Material) -> Iterator[Mesh]:
    x, y, top = chair.depth / 2 - 0.03, chair.width / 2 - 0.03, chair.height - chair.thickness / 2
    metal = Material((168, 170, 176) if chair.count % 2 else (52, 52, 56))
    if chair.legs == "pedestal":
        yield disc(0.03, top - 0.08, (0.0, 0.0, (top + 0.08) / 2), metal)
        for turn in np.pi * np.array([0.0, 0.4, 0.8]):  # five feet: one ahead, two on either side
            foot = (0.29 * float(np.cos(turn)), 0.29 * float(np.sin(turn)), 0.035)
            yield bars((0.0, 0.0, 0.10), foot, 0.02, metal) if turn else bar((0.0, 0.10), foot[::2], 0.02, metal)
            yield disc(0.03, 0.05, (foot[0], foot[1], 0.025), Material((30, 30, 32)))
    elif chair.legs == "sled":
        for end in (-1, 1):
            yield bars((end * x, y, top), (end * x, y, 0.02), 0.014, metal)
        yield bars((-x, y, 0.02), (x, y, 0.02), 0.014, metal)
    elif chair.legs == "block":
        yield across(
            (chair.depth, chair.width, chair.height - 0.08), (0.0, chair.height / 2 + 0.02), Material(chair.cover)
        )
        for end in (-1, 1):
            yield pair((0.05, 0.05, 0.08), (end * x, y, 0.04), frame)
    elif chair.legs == "square":
        for end in (-1, 1):
            yield pair((2 * chair.leg, 2 * chair.leg, top), (end * x, y, top / 2), frame)
        if chair.count > 4:
            yield pair((2 * x, 0.02, 0.03), (0.0, y, 0.4 * top), frame)
    else:
        out = 0.06 if chair.legs == "splayed" else 0.0
        for end in (-1, 1):
            yield bars((end * x, y, top), (end * (x + out), y + out, 0.02), chair.leg, frame)


def _seat(chair: Chair, frame: Material) -> Iterator[Mesh]:
    material = Material(chair.cover) if chair.legs == "block" else frame
    if chair.back == "hoop":
        yield disc(chair.width / 2, chair.thickness, (0.0, 0.0, chair.height), material)
    else:
        yield across((chair.depth, chair.width, chair.thickness), (0.0, chair.height), material)
    if chair.cushion:
        size = (0.88 * chair.depth, 0.88 * chair.width, 0.05)
        yield across(size, (0.01, chair.height + chair.thickness / 2 + 0.02), Material(chair.second))


def _back(chair: Chair, frame: Material) -> Iterator[Mesh]:
    foot, rise = -chair.depth / 2 + 0.02, chair.rise
    low, lean = chair.height + chair.thickness / 2, chair.recline
    wide, material = chair.width, Material(chair.cover)

    def at(height: float) -> tuple[float, float]:
        """X and z at a part of the back's height."""
        return foot - height * rise * float(np.sin(lean)), low + height * rise * float(np.cos(lean))

    thick = 0.05 + 0.06 * (chair.legs == "block")
    if chair.back == "solid" or chair.legs == "block":
        yield across((thick, wide, rise), at(0.5), material, lean)
        return
    if chair.back == "low":
        yield across((0.05, wide, 0.7 * rise), at(0.75), material, lean)
        yield bars(_three(at(0.0), 0.32 * wide), _three(at(0.8), 0.32 * wide), 0.014, frame)
        return
    if chair.back == "hoop":
        turns = np.linspace(0.0, np.pi / 2, 7)
        places = [(0.46 * wide * float(np.cos(turn)), float(np.sin(turn))) for turn in turns]
        for (y, up), (beside, over) in pairwise(places):
            yield bars(_three(at(up), y), _three(at(over), beside), 0.016, frame)
        for number in range(1, chair.count):
            y = 0.4 * wide * number / chair.count
            top = float(np.sqrt(1 - (y / (0.46 * wide)) ** 2))
            yield bars(_three(at(0.0), y), _three(at(top), y), 0.01, frame)
        return
    edge = wide / 2 - 0.025
    yield bars(_three(at(0.0), edge), _three(at(1.0), edge), 0.018, frame)
    yield across((0.035, wide, 0.09), at(0.97), frame, lean)
    if chair.back == "slats":
        for number in range(chair.count):
            y = edge * (number + 0.5) / chair.count
            yield pair((0.014, 0.5 * edge / chair.count, 0.92 * rise), (at(0.5)[0], y, at(0.5)[1]), frame, lean)
    elif chair.back == "rungs":
        for number in range(chair.count - 1):
            height = 0.22 + 0.62 * number / (chair.count - 1)
            yield across((0.02, 2 * edge, 0.35 * rise / chair.count), at(height), frame, lean)
    else:
        yield across((0.04, 1.7 * edge, 0.7 * rise), at(0.52), material, lean)


def _arms(chair: Chair, frame: Material) -> Iterator[Mesh]:
    if chair.arms == "none" and chair.legs != "block":
        return
    high, y = chair.height + 0.20, chair.width / 2
    if chair.legs == "block":
        yield pair(
            (chair.depth, 0.10, chair.height + 0.14), (0.0, y + 0.03, (chair.height + 0.20) / 2), Material(chair.cover)
        )
    elif chair.arms == "posts":
        yield pair((0.8 * chair.depth, 0.045, 0.03), (-0.08 * chair.depth, y, high), frame)
        yield bars((0.28 * chair.depth, y, chair.height), (0.28 * chair.depth, y, high), 0.014, frame)
        yield bars((-0.42 * chair.depth, y, chair.height), (-0.42 * chair.depth, y, high), 0.014, frame)
    else:
        yield pair((0.9 * chair.depth, 0.03, 0.22), (-0.03, y, chair.height + 0.10), Material(chair.second))


def _three(corner: tuple[float, float], y: float) -> tuple[float, float, float]:
    return corner[0], y, corner[1]


def _wood(tone: float, value: float) -> tuple[int, int, int]:
    return _bytes(0.05 + 0.05 * tone, 0.35 + 0.35 * tone, 0.30 + 0.55 * value)


def _paint(hue: float, saturation: float, value: float) -> tuple[int, int, int]:
    """A colour: three in ten are white, grey or black."""
    if saturation < 0.3:
        return _bytes(hue, 0.0, 0.12 + 0.84 * value)
    return _bytes(hue, 0.25 + 0.65 * (saturation - 0.3) / 0.7, 0.35 + 0.6 * value)


def _bytes(hue: float, saturation: float, value: float) -> tuple[int, int, int]:
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue, saturation, value))
    return red, green, blue
