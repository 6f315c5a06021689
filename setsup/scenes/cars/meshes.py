"""Made-up cars as scenes: a body, a cabin with windows, wheels and lamps, and what some cars have besides.

Convention
----------
World frame in metres: the car stands on z = 0, looks along +x and has its middle at x = 0. Every part is its own mirror
image in y = 0, or stands there with its mirror image; nothing else about a car is symmetric: lamps are white in front
and red behind. Light comes from above, from all around and from the camera, so that it has the same mirror plane.
"""

from collections.abc import Iterator

import numpy as np

from setsup.scenes.cars.traits import Car
from setsup.scenes.meshes.lofts import loft, mirrored, outline
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.meshes.primitives import box, cylinder
from setsup.scenes.scene import Ambient, Directional, Placement, Scene

__all__ = ["car_scene"]

_GLASS = Material((48, 58, 70))
_TYRE, _HUB, _DARK = Material((28, 28, 30)), Material((176, 178, 184)), Material((40, 40, 44))
_WHITE, _RED, _PLATE = Material((252, 248, 220)), Material((204, 16, 24)), Material((232, 232, 228))
_LIGHTS = (
    Ambient((0.45, 0.45, 0.45)),
    Directional((0, 0, -1), (0.30, 0.30, 0.30)),
    Directional((0, 0, 1), (0.40, 0.40, 0.40), of_camera=True),
)


def car_scene(car: Car) -> Scene:
    """Scene of a car, on white."""
    parts = [_body(car), _cabin(car), *_wheels(car), *_lamps(car), *_extras(car)]
    return Scene(tuple(Placement(mesh) for mesh in parts), _LIGHTS, (255, 255, 255))


def _body(car: Car) -> Mesh:
    """Lower body: bumpers, hood, flanks and trunk, or the bed of a pickup."""
    half, wide, low = car.length / 2, car.width / 2, car.clearance
    waist = low + 0.45 * (car.hood - low)
    rear, front = car.cabin[0] * car.length, car.cabin[3] * car.length
    tops = [
        (-half, 0.88 * car.trunk, 0.90),
        (-half + 0.10, car.trunk, 0.97),
        (min(rear, -half + 0.12), car.trunk, 1.0),
        (front, car.shoulder, 1.0),
        (half - 0.18, car.hood, 0.96),
        (half, 0.72 * car.hood, 0.84),
    ]
    stations = [
        outline([0.92 * wide * part, wide * part, 0.94 * wide * part], [low, waist, top], x) for x, top, part in tops
    ]
    lower = Material(car.second if car.two_tone else car.paint)
    strips = np.ones((len(stations) - 1, 4), np.uint16)
    strips[:, :2] = 0
    return loft(stations, (lower, Material(car.paint)), strips)


def _cabin(car: Car) -> Mesh:
    """Cabin: windows on all sides, the roof painted."""
    rear, roof_rear, roof_front, front = (car.length * share for share in car.cabin)
    foot, top = 0.92 * car.width / 2, car.narrowing * 0.92 * car.width / 2
    low, high = min(car.shoulder, car.trunk) - 0.04, car.roof
    stations = [
        outline([foot, foot], [low, low + 0.05], rear),
        outline([foot, top], [low, high - 0.02], roof_rear),
        outline([foot, top], [low, high], (roof_rear + roof_front) / 2),
        outline([foot, top], [low, high - 0.02], roof_front),
        outline([foot, foot], [low, low + 0.05], front),
    ]
    strips = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]], np.uint16)
    return loft(stations, (_GLASS, Material(car.second if car.two_tone else car.paint)), strips)


def _wheels(car: Car) -> Iterator[Mesh]:
    wide = car.width / 2
    for axle in (car.front_axle, car.rear_axle):
        x = axle * car.length
        yield _turned(cylinder(car.wheel, 0.22, segments=32, material=_TYRE), (x, wide - 0.09, car.wheel))
        yield _turned(cylinder(0.55 * car.wheel, 0.24, segments=24, material=_HUB), (x, wide - 0.09, car.wheel))


def _lamps(car: Car) -> Iterator[Mesh]:
    half, side = car.length / 2, 0.62 * car.width / 2
    height = car.clearance + 0.5 * (car.hood - car.clearance)
    yield _pair((0.16, 0.28, car.lamps), (half - 0.05, side, height + 0.03), _WHITE)
    yield _pair((0.10, 0.22, 1.3 * car.lamps), (-half + 0.03, 1.05 * side, height + 0.08), _RED)
    yield _middle((0.06, 0.62, 0.7 * car.lamps), (half - 0.01, height - 0.02), _DARK)
    yield _middle((0.04, 0.46, 0.12), (-half - 0.01, height - 0.06), _PLATE)


def _extras(car: Car) -> Iterator[Mesh]:
    half = car.length / 2
    _, roof_rear, roof_front, front = (car.length * share for share in car.cabin)
    if car.kind == "pickup":  # the open bed
        end = car.length * car.cabin[0] - 0.12
        yield _middle((end + half - 0.14, 0.76 * car.width, 0.04), ((end - half + 0.14) / 2, car.trunk + 0.012), _DARK)
    if car.stripe:
        hood = half - 0.18 - front
        red, green, blue = car.paint
        paint = Material((255 - red, 255 - green, 255 - blue))
        stations = [outline([0.16], [top + 0.015], x) for x, top in ((front, car.shoulder), (front + hood, car.hood))]
        yield loft(stations, (paint,))
        yield _middle((roof_front - roof_rear, 0.32, 0.03), ((roof_front + roof_rear) / 2, car.roof), paint)
    if car.spoiler and car.kind != "pickup":
        top = car.roof if car.cabin[0] < -0.45 else car.trunk + 0.20
        yield _middle((0.22, 0.94 * car.width, 0.05), (-half + 0.12, top + 0.02), Material(car.second))
        if top != car.roof:
            yield _pair((0.10, 0.06, 0.24), (-half + 0.12, 0.36 * car.width, car.trunk + 0.10), Material(car.second))
    if car.rack and car.kind != "coupe":
        size = (0.7 * (roof_front - roof_rear), 0.5 * car.width, 0.16)
        yield _middle(size, ((0.35 * roof_front + 0.65 * roof_rear), car.roof + 0.08), Material(car.second))


def _moved(mesh: Mesh, to: tuple[float, float, float]) -> Mesh:
    return Mesh(mesh.vertices + np.array(to), mesh.faces, mesh.normals, materials=mesh.materials)


def _pair(size: tuple[float, float, float], at: tuple[float, float, float], material: Material) -> Mesh:
    """A box on either side."""
    return mirrored(_moved(box(size, material=material), at))


def _middle(size: tuple[float, float, float], at: tuple[float, float], material: Material) -> Mesh:
    """A box across the middle, made of two halves; `at` is x and z of its centre."""
    length, width, height = size
    return _pair((length, width / 2, height), (at[0], width / 4, at[1]), material)


def _turned(upright: Mesh, at: tuple[float, float, float]) -> Mesh:
    """A body whose axis is turned from z to y, on either side."""
    turn = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    normals = None if upright.normals is None else (upright.normals @ turn.T).astype(np.float32)
    return mirrored(Mesh(upright.vertices @ turn.T + np.array(at), upright.faces, normals, materials=upright.materials))
