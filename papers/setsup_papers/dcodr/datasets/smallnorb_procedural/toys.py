"""Made-up toys of the five categories of SmallNORB, as scenes without a background, evenly lit.

Convention
----------
World frame in metres: a toy stands on z = 0 around the origin, looks along +x and is about 1 m long. All light is
ambient, so that images show albedo; :mod:`.lighting` lights them.
"""

from collections.abc import Callable, Iterator

import numpy as np

from setsup.arrays import Reals
from setsup.scenes.cars.meshes import car_scene
from setsup.scenes.cars.traits import make_car
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.meshes.primitives import box, cylinder, sphere
from setsup.scenes.scene import Ambient, Placement, Scene
from setsup.scenes.traits import spread_traits

__all__ = ["CATEGORIES", "toy_scene"]

CATEGORIES = ("animal", "human", "airplane", "truck", "car")
"""Those of SmallNORB, in its order."""

Take = Callable[[float, float], float]

_LIGHT = (Ambient((1.0, 1.0, 1.0)),)


def toy_scene(seed: int, category: int, instance: int) -> Scene:
    """Scene of a toy, whichever others there are."""
    name = CATEGORIES[category]
    if name == "car":
        return Scene(tuple(_shrunk(car_scene(make_car(seed, 1000 + instance)).placements)), _LIGHT, None)
    traits = iter(spread_traits(seed, f"smallnorb-procedural {name}", instance).tolist())

    def take(low: float, high: float) -> float:
        return float(low + (high - low) * next(traits))

    grey = round(take(120, 215))
    build = {"animal": _animal, "human": _human, "airplane": _airplane, "truck": _truck}[name]
    return Scene(tuple(build(take, Material((grey, grey, grey)))), _LIGHT, None)


def _shrunk(parts: tuple[Placement, ...]) -> Iterator[Placement]:
    for part in parts:
        yield Placement(part.mesh, scale=np.full(3, 0.24))


def _ball(material: Material, at: tuple[float, float, float], radii: tuple[float, float, float]) -> Placement:
    return Placement(sphere(1.0, segments=32, material=material), translation=np.array(at), scale=np.array(radii))


def _block(material: Material, at: tuple[float, float, float], size: tuple[float, float, float]) -> Placement:
    return Placement(box(size, material=material), translation=np.array(at))


def _limb(
    material: Material, start: tuple[float, float, float], end: tuple[float, float, float], radius: float
) -> Placement:
    """A rod from one point to another."""
    begin, finish = np.array(start), np.array(end)
    length = float(np.linalg.norm(finish - begin))
    return Placement(
        cylinder(radius, length, segments=20, material=material),
        _upright((finish - begin) / length),
        (begin + finish) / 2,
    )


def _upright(way: Reals) -> Reals:
    """Rotation that takes z to a direction."""
    side = np.array([1.0, 0, 0]) if abs(way[0]) < 0.9 else np.array([0, 1.0, 0])
    right = np.cross(side, way)
    right /= np.linalg.norm(right)
    return np.stack([np.cross(right, way), right, way], axis=1)


def _wheel(material: Material, at: tuple[float, float, float], radius: float, wide: float) -> Placement:
    x, y, z = at
    return _limb(material, (x, y - wide / 2, z), (x, y + wide / 2, z), radius)


def _animal(take: Take, skin: Material) -> Iterator[Placement]:
    """Four legs, trunk, neck, head with ears or horns, tail."""
    long, thick, legs = take(0.28, 0.38), take(0.11, 0.19), take(0.16, 0.36)
    neck, rise, head = take(0.06, 0.34), take(0.3, 1.2), take(0.08, 0.13)
    tail, ears, horns, snout = take(0.08, 0.3), take(0.03, 0.12), take(0, 1), take(0.04, 0.14)
    leg, stride = take(0.025, 0.05), take(-0.08, 0.08)
    height = legs + 0.8 * thick
    yield _ball(skin, (0, 0, height), (long, 0.85 * thick, thick))
    for x, step in ((0.68 * long, stride), (-0.68 * long, -stride)):
        for y in (-0.55 * thick, 0.55 * thick):
            yield _limb(skin, (x, y, height), (x + np.sign(y) * step, y, 0.0), leg)
    top = (0.8 * long + neck * np.cos(rise), 0.0, height + 0.4 * thick + neck * np.sin(rise))
    yield _limb(skin, (0.6 * long, 0, height), top, 0.45 * thick)
    yield _ball(skin, top, (head, 0.8 * head, 0.85 * head))
    yield _ball(skin, (top[0] + head, 0, top[2] - 0.3 * head), (snout, 0.5 * head, 0.45 * head))
    for y in (-0.6 * head, 0.6 * head):
        yield _ball(skin, (top[0] - 0.4 * head, y, top[2] + 0.8 * head), (0.02, 0.3 * ears + 0.01, ears))
        if horns > 0.6:
            yield _limb(skin, (top[0], y, top[2] + 0.5 * head), (top[0] + 0.06, 2.4 * y, top[2] + 2.4 * head), 0.014)
    yield _limb(skin, (-0.9 * long, 0, height), (-long - 0.7 * tail, 0, height - 0.6 * tail), 0.02)


def _human(take: Take, skin: Material) -> Iterator[Placement]:
    """A figure with legs and arms in some posture, a hat or a thing in its hand."""
    legs, trunk, wide, head = take(0.38, 0.5), take(0.26, 0.36), take(0.13, 0.20), take(0.075, 0.105)
    stride, left, right = take(-0.16, 0.16), take(-1.2, 1.4), take(-1.2, 1.4)
    arm, thick, hat, held, base = take(0.30, 0.38), take(0.045, 0.07), take(0, 1), take(0, 1), take(0.16, 0.24)
    yield Placement(cylinder(base, 0.03, segments=32, material=skin), translation=np.array([0, 0, 0.015]))
    for side, step in ((-1, stride), (1, -stride)):
        yield _limb(skin, (0, 0.5 * side * wide, legs), (step, 0.7 * side * wide, 0.02), thick)
        yield _ball(skin, (step + 0.04, 0.7 * side * wide, 0.05), (0.09, 0.05, 0.035))
    yield _ball(skin, (0, 0, legs + 0.5 * trunk), (0.7 * wide, wide, 0.62 * trunk))
    top = legs + trunk + 1.1 * head
    yield _ball(skin, (0, 0, top), (head, 0.85 * head, 1.1 * head))
    yield _ball(skin, (0.95 * head, 0, top), (0.25 * head, 0.16 * head, 0.2 * head))
    for side, swing in ((-1, left), (1, right)):
        shoulder = (0.0, 1.0 * side * wide, legs + 0.85 * trunk)
        hand = (arm * np.sin(swing), 1.5 * side * wide, shoulder[2] - arm * np.cos(swing))
        yield _limb(skin, shoulder, hand, 0.75 * thick)
        if side == 1 and held > 0.5:
            yield _limb(
                skin, (hand[0] - 0.12, hand[1], hand[2] - 0.05), (hand[0] + 0.30, hand[1], hand[2] + 0.12), 0.02
            )
    if hat > 0.45:
        yield Placement(
            cylinder(1.5 * head, 0.02, segments=32, material=skin), translation=np.array([0, 0, top + 0.6 * head])
        )
        yield Placement(
            cylinder(0.8 * head, 0.9 * head, segments=32, material=skin), translation=np.array([0, 0, top + head])
        )


def _airplane(take: Take, skin: Material) -> Iterator[Placement]:
    """Fuselage, wings, tail, and engines or a propeller; it stands on its wheels."""
    long, thick = take(0.42, 0.52), take(0.05, 0.085)
    span, chord, sweep, root = take(0.34, 0.55), take(0.10, 0.18), take(-0.04, 0.26), take(-0.08, 0.12)
    height, fin, low, engines = take(0.14, 0.22), take(0.10, 0.22), take(-0.8, 0.8), take(0, 1)
    second = take(0, 1)
    yield _ball(skin, (0, 0, height), (long, thick, 1.1 * thick))
    yield _ball(skin, (0.45 * long, 0, height + 0.8 * thick), (0.12, 0.6 * thick, 0.6 * thick))
    wing = height + low * thick
    for side in (-1, 1):
        yield from _wing(skin, (root, wing), side, span, chord, sweep)
        yield from _wing(skin, (-0.86 * long, height + 0.3 * thick), side, 0.38 * span, 0.6 * chord, 0.6 * sweep)
        if second > 0.75:  # a biplane
            yield from _wing(skin, (root, wing + 0.16), side, span, chord, sweep)
            yield _limb(skin, (root, 0.6 * side * span, wing), (root, 0.6 * side * span, wing + 0.16), 0.012)
        if engines > 0.5:
            at = (root - 0.4 * sweep + 0.05, 0.45 * side * span, wing - 0.045)
            yield _limb(skin, (at[0] - 0.09, at[1], at[2]), (at[0] + 0.09, at[1], at[2]), 0.04)
        yield _wheel(skin, (0.05, 0.12 * side, 0.045), 0.045, 0.03)
        yield _limb(skin, (0.05, 0.12 * side, 0.045), (0.05, 0.6 * side * thick, height), 0.012)
    yield _block(skin, (-0.88 * long, 0, height + 0.5 * fin), (0.12, 0.02, fin))
    if engines <= 0.5:
        yield _block(skin, (long + 0.01, 0, height), (0.02, 0.26, 0.03))
    yield _wheel(skin, (0.7 * long, 0, 0.04), 0.04, 0.03)
    yield _limb(skin, (0.7 * long, 0, 0.04), (0.7 * long, 0, height), 0.012)


def _wing(
    skin: Material, at: tuple[float, float], side: int, span: float, chord: float, sweep: float, parts: int = 6
) -> Iterator[Placement]:
    """One wing as blocks that move back with the sweep and become narrower."""
    x, z = at
    step = span / parts
    for part in range(parts):
        along = (part + 0.5) / parts
        size = (chord * (1 - 0.5 * along), step, 0.022)
        yield _block(skin, (x - sweep * along, side * (part + 0.5) * step, z), size)


def _truck(take: Take, skin: Material) -> Iterator[Placement]:
    """Cab, bed with a box, a tank or a dump, and four or six wheels."""
    long, wide, radius = take(0.42, 0.52), take(0.15, 0.21), take(0.065, 0.095)
    cab, tall, kind = take(0.17, 0.26), take(0.22, 0.32), take(0, 1)
    load, nose, axles, lamp = take(0.18, 0.36), take(0, 0.12), take(0, 1), take(0, 1)
    floor = radius + 0.05
    yield _block(skin, (0, 0, floor), (2 * long, 1.7 * wide, 0.05))
    front = long - nose
    yield _block(skin, (front - cab / 2, 0, floor + tall / 2), (cab, 1.9 * wide, tall))
    yield _block(
        Material((40, 40, 40)), (front - 0.3 * cab, 0, floor + 0.7 * tall), (0.62 * cab, 1.93 * wide, 0.3 * tall)
    )
    if nose > 0.03:
        yield _block(skin, (long - nose / 2, 0, floor + 0.25 * tall), (nose, 1.5 * wide, 0.5 * tall))
    end, start = -long, front - cab - 0.03
    middle, length = (start + end) / 2, start - end
    if kind < 0.35:
        yield _block(skin, (middle, 0, floor + load / 2 + 0.02), (length, 2 * wide, load))
    elif kind < 0.6:
        yield _limb(skin, (end, 0, floor + 0.8 * wide), (start, 0, floor + 0.8 * wide), 0.85 * wide)
    elif kind < 0.85:  # a dump, open above
        for y in (-wide, wide):
            yield _block(skin, (middle, y, floor + 0.4 * load), (length, 0.03, 0.8 * load))
        for x in (start, end):
            yield _block(skin, (x, 0, floor + 0.4 * load), (0.03, 2 * wide, 0.8 * load))
    else:  # a crane
        yield _limb(skin, (middle, 0, floor), (middle, 0, floor + 0.16), 0.09)
        yield _limb(skin, (middle, 0, floor + 0.14), (end - 0.05, 0, floor + 0.14 + load), 0.035)
    if lamp > 0.6:
        yield _block(skin, (front - cab / 2, 0, floor + tall + 0.03), (0.05, wide, 0.06))
    for x in (0.72 * long, -0.66 * long, *([-0.36 * long] if axles > 0.5 else [])):
        for y in (-0.85 * wide, 0.85 * wide):
            yield _wheel(Material((60, 60, 60)), (x, y, radius), radius, 0.08)
