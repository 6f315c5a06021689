"""shapes3d: the scene of Shapes3D as meshes, for any renderer.

Convention
----------
As in :mod:`setsup.scenes.shapes3d`: levels and framing are those of the set, one room unit is a metre. Instances are
0 for the floor, 1 for the walls and 2 for the object.

Light
-----
The ray caster of ``shapes3d-procedural`` was fitted to the published images, whose light it states in displayed values:
``byte = colour · (ambient + camera + lamp) + gloss``. Renderers add light up in linear light and have no gloss, so the
strengths here are others: fitted to the caster's pixels of all 480 states (least absolute differences, over channels
as full as hues have them), then rounded. The lamp's exponent is 16 instead of 10, since linear light falls faster than
displayed values. What is left, in bytes of 255 where a pixel sees one surface: 0.8 on the floor, 2.8 on walls, 9.6 on
the object, 2.3 in all with the sky. On the object 6.6 of these are the gloss. On walls light of the camera and from
everywhere do not add up alike in the two models: no sum of lamps falls off as displayed values do. That colours are
multiplied in linear light makes 0.3 at most. Edges, where a pixel's samples are averaged, differ by 22.
"""

import colorsys
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from setsup.checks import check_image_size
from setsup.errors import SetsupError
from setsup.scenes.camera import Camera
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.meshes.primitives import box, capsule, cylinder, plane, sphere
from setsup.scenes.portable import sin_cos
from setsup.scenes.recipes.values import LARGEST, level, number
from setsup.scenes.scene import Ambient, Directional, Lamp, Light, Placement, Scene
from setsup.scenes.shapes3d import FRAMING, SHAPES, factors

__all__ = ["LIGHTS", "Shapes3D"]

LIGHTS: tuple[Light, ...] = (
    Ambient((0.1,) * 3),
    Directional((0, 0, 1), (0.845,) * 3, of_camera=True),
    Lamp(FRAMING.lamp, (1.64,) * 3, axis=(0, 0, -1), exponent=16, shadow=True),
)
"""What lights the room, in linear light; see the module for how it was found."""

Color = tuple[int, int, int]
_LARGEST = 5.0  # a larger object would reach the camera


@dataclass(frozen=True)
class Shapes3D:
    """The six factors of Shapes3D, rendered with the camera of the published images.

    The grid of the factors has the 480,000 rows of ``shapes3d`` and ``shapes3d-procedural``, in their order. Values
    between the levels are drawn, too: any hue, any orientation, any scale up to 5.

    Parameters
    ----------
    size : (height, width)
        Image size, in pixels; the horizontal field of view is that of the published images.

    Raises
    ------
    SetsupError
        When the size is none.

    Examples
    --------
    >>> recipe = Shapes3D(size=(128, 128))
    >>> row = {"floor_hue": 0.0, "wall_hue": 0.5, "object_hue": 0.25, "scale": 1.0, "shape": "cube", "orientation": 0.0}
    >>> scene = recipe.scene(row)
    >>> scene.names, scene.placements[2].mesh.materials[0].color
    ({0: 'floor', 1: 'wall', 2: 'cube'}, (128, 255, 0))
    >>> recipe.camera(row, scene).project([0, 0, 0.6575])[0].round(9).tolist()
    [63.5, 63.5]

    """

    size: tuple[int, int] = (64, 64)

    name = "shapes3d"
    factors = factors()
    scene_factors = ("floor_hue", "wall_hue", "object_hue", "scale", "shape")
    instances = 3

    def __post_init__(self) -> None:
        """Check the size."""
        object.__setattr__(self, "size", check_image_size(self.size, "size", SetsupError, LARGEST))

    @property
    def key(self) -> str:
        """Name, size, framing and lights."""
        return f"shapes3d size={self.size!r} {FRAMING!r} lights={LIGHTS!r}"

    def scene(self, values: Mapping[str, Any]) -> Scene:
        """Build floor, walls and object; see :meth:`setsup.scenes.Recipe.scene`.

        Raises
        ------
        FactorError
            When a value is missing, no number, or no shape.

        """
        floor, wall, thing = (_color(values, name) for name in ("floor_hue", "wall_hue", "object_hue"))
        scale = number(values, "scale", 1e-3, _LARGEST)
        shape = level(values, "shape", SHAPES)
        return Scene((_floor(floor), _walls(wall), _object(shape, thing, scale)), LIGHTS, _bytes(FRAMING.sky))

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        """Place the camera; see :meth:`setsup.scenes.Recipe.camera`.

        Raises
        ------
        FactorError
            When the orientation is missing or no number.

        """
        return _camera(self.size, number(values, "orientation", unit="degrees"))


# Cameras and placements are shared by all rows that have them: building one takes longer than a GPU takes to draw it.


@lru_cache(1024)
def _camera(size: tuple[int, int], orientation: float) -> Camera:
    sine, cosine = sin_cos(math.radians(orientation))
    return Camera.look_at(
        FRAMING.camera_radius * np.array([sine, -cosine, 0]) + [0, 0, FRAMING.camera_height],
        (0, 0, FRAMING.camera_height),
        height=size[0],
        width=size[1],
        focal_length=FRAMING.focal_length * size[1] / 64,
    )


def _color(values: Mapping[str, Any], name: str) -> Color:
    """Fully saturated sRGB bytes of a hue."""
    return _bytes(colorsys.hsv_to_rgb(number(values, name, unit="turns") % 1.0, 1.0, 1.0))


def _bytes(parts: tuple[float, float, float]) -> Color:
    red, green, blue = (math.floor(255 * part + 0.5) for part in parts)
    return red, green, blue


@lru_cache(64)
def _floor(color: Color) -> Placement:
    side = 2 * FRAMING.room_half_side
    return Placement(plane((side, side), material=Material(color)), name="floor")


@lru_cache(64)
def _walls(color: Color) -> Placement:
    """Four walls without thickness, seen from both sides."""
    half, top = FRAMING.room_half_side, FRAMING.wall_height
    feet = np.array([[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]])
    vertices = np.concatenate([feet, feet + np.array([0, 0, top])])
    here, there = np.arange(4), (np.arange(4) + 1) % 4
    faces = np.concatenate([np.stack([there, here, here + 4], 1), np.stack([there, here + 4, there + 4], 1)])
    return Placement(Mesh(vertices, faces, materials=(Material(color),)), name="wall")


@lru_cache(4096)
def _object(shape: str, color: Color, scale: float) -> Placement:
    mesh = _mesh(shape, color)
    foot = float(mesh.bounds[0, 2])
    return Placement(mesh, translation=np.array([0, 0, -foot * scale]), scale=np.full(3, scale), name=shape)


@lru_cache(512)
def _mesh(shape: str, color: Color) -> Mesh:
    """Body of scale 1, centred; those of all colours share their arrays."""
    return replace(_body(shape), materials=(Material(color),))


@lru_cache
def _body(shape: str) -> Mesh:
    if shape == "cube":
        return box((2 * FRAMING.cube_half_side,) * 3)
    if shape == "cylinder":
        return cylinder(FRAMING.cylinder_radius, FRAMING.cylinder_height)
    if shape == "sphere":
        return sphere(FRAMING.sphere_radius)
    return capsule(FRAMING.capsule_radius, FRAMING.capsule_straight)
