"""Models of the two categories, as scenes of albedo: all light is ambient, and :mod:`.shading` lights them.

Convention
----------
World frame in metres: models stand on z = 0 and face +x; y = 0 is their only mirror plane. :data:`TO_PASCAL3D` takes
directions of the world to the object axes of Pascal3D+, where z is up and the front at −y.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from setsup.arrays import Array, Floats, Reals
from setsup.scenes.cars.meshes import car_scene
from setsup.scenes.cars.traits import Car, make_car
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.scene import Ambient, Placement, Scene
from setsup.scenes.traits import spread_traits
from setsup_papers.abc.pose.datasets.abc_pose_procedural.chairs import chair_parts, draw_chair
from setsup_papers.abc.pose.datasets.abc_pose_procedural.solids import pair

__all__ = ["GLASS", "PAINT", "PLAIN", "TO_PASCAL3D", "Model", "draw_model", "mesh_model"]

GLASS, PAINT, PLAIN = 2, 1, 0
"""Kinds of surfaces, by what they reflect."""

TO_PASCAL3D = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
TO_PASCAL3D.flags.writeable = False

_LIGHT = (Ambient((1.0, 1.0, 1.0)),)
_GLASS = (48, 58, 70)  # colour of the windows of cars


@dataclass(frozen=True, eq=False)
class Model:
    """A model: its scene, and what its surfaces are like.

    `kinds` (triangles,) uint8: of each triangle; `texture` (4,) float32: strength of its albedo's texture, 0 … 1, and
    its waves per metre along x, y and z.
    """

    scene: Scene
    kinds: Array
    texture: Floats

    @cached_property
    def vertices(self) -> Reals:
        """Positions of all vertices, (n, 3) float64, metres."""
        placed = [placement.placed(placement.mesh.vertices) for placement in self.scene.placements]
        return np.unique(np.concatenate(placed), axis=0)


def draw_model(seed: int, category: str, number: int) -> Model:
    """Model number `number` of a category and a seed, whichever others there are."""
    if category == "chair":
        return _model(chair_parts(draw_chair(seed, number)), seed, category, number)
    car = make_car(seed, number)
    parts = [placement.mesh for placement in car_scene(car).placements]
    # of a car, the first two meshes are the body and the cabin, which shine
    return _model(parts + _details(car), seed, category, number, painted=2)


def mesh_model(path: Path) -> Model:
    """A model of a user's own mesh, which has y up and its front towards −z; scaled to 1 m and put on z = 0."""
    from setsup.scenes.meshes.importing import load_mesh

    mesh = load_mesh(path)
    turn = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # x, y, z of the file to this world
    low, high = mesh.bounds
    scale = 1.0 / max(float((high - low).max()), 1e-9)
    middle = np.array([(low[0] + high[0]) / 2, low[1], (low[2] + high[2]) / 2])
    placed = Placement(mesh, rotation=turn, translation=-scale * turn @ middle, scale=np.full(3, scale))
    scene = Scene((placed,), _LIGHT, None)
    return Model(scene, np.zeros(len(mesh.faces), np.uint8), np.zeros(4, np.float32))


def _model(parts: list[Mesh], seed: int, category: str, number: int, painted: int = 0) -> Model:
    scene = Scene(tuple(Placement(mesh) for mesh in parts), _LIGHT, None)
    kinds = [_kinds(mesh, index < painted) for index, mesh in enumerate(parts)]
    trait = spread_traits(seed, f"abc-pose-procedural texture of a {category}", number)
    strength = 0.0 if category == "car" and trait[0] < 0.5 else 0.10 + 0.35 * trait[1]
    waves = 4.0 + 20.0 * trait[2:5] if category == "chair" else 1.0 + 5.0 * trait[2:5]
    return Model(scene, np.concatenate(kinds), np.array([strength, *waves], np.float32))


def _kinds(mesh: Mesh, paint: bool) -> Array:
    own = np.array(
        [GLASS if material.color == _GLASS else PAINT if paint else PLAIN for material in mesh.materials], np.uint8
    )
    return own[np.zeros(len(mesh.faces), np.int64) if mesh.material is None else mesh.material]


def _details(car: Car) -> list[Mesh]:
    """Mirrors, bumpers and lines of the doors, which make the front differ from the rear on every side."""
    dark, paint = Material((36, 36, 40)), Material(car.second if car.two_tone else car.paint)
    front, wide = car.cabin[3] * car.length, car.width / 2
    waist = car.clearance + 0.45 * (car.hood - car.clearance)
    doors = [0.5 * (car.cabin[0] + car.cabin[3]) * car.length + 0.1, front - 0.05]
    return [
        pair((0.12, 0.16, 0.12), (front - 0.28, wide + 0.02, car.shoulder + 0.06), paint),
        pair((0.14, 0.88 * wide, 0.14), (car.length / 2 - 0.03, 0.44 * wide, car.clearance + 0.08), dark),
        *(pair((0.025, 0.02, 0.9 * (car.shoulder - car.clearance)), (x, wide, waist + 0.04), dark) for x in doors),
    ]
