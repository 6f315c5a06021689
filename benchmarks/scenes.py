"""Scenes that renderers, rays and correspondences are timed on: one furnished room, coarse or dense."""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.scenes import Ambient, Camera, Directional, Lamp, Light, Material, Mesh, Placement, Scene
from setsup.scenes.scene import STUDIO

__all__ = ["dense_room", "simple_room", "views"]

Array = npt.NDArray[Any]

SHADOWS: tuple[Light, ...] = (
    Ambient((0.3, 0.3, 0.3)),
    Lamp((0.6, -0.4, 2.6), (0.5, 0.48, 0.45), shadow=True),
    Directional((0.5, 0.9, -1.2), (0.4, 0.4, 0.4), shadow=True),
)
"""Lights that throw shadows: two shadow rays a pixel."""

_WIDTH, _DEPTH, _HEIGHT = 6.0, 5.0, 2.8
_COLORS = ((200, 60, 50), (60, 120, 200), (220, 180, 60), (70, 160, 90), (150, 90, 180), (230, 130, 60))


def dense_room(*, textures: bool = False, smooth: bool = False, shadows: bool = False) -> Scene:
    """A room of 225,012 triangles in 11 objects: the room's shell, and ten bumpy solids of about 22,500 each."""
    return _room(150, textures, smooth, shadows)


def simple_room(*, textures: bool = False, smooth: bool = False, shadows: bool = False) -> Scene:
    """The same room with coarse solids: 1,452 triangles in 11 objects."""
    return _room(12, textures, smooth, shadows)


def views(height: int, width: int, count: int = 2) -> list[Camera]:
    """Cameras that stand in the room and look at the middle of it: the first two overlap by more than half."""
    turns = np.pi * np.array([-0.62, -0.5, 0.15, 0.4, 0.05, -0.25])[np.arange(count) % 6]
    turns += 0.01 * (np.arange(count) // 6)
    field = np.radians(50)
    found = []
    for number, turn in enumerate(turns.tolist()):
        eye = (2.3 * np.cos(turn), 2.0 * np.sin(turn), 1.5 + 0.1 * (number % 3))
        found.append(Camera.look_at(eye, (0.1, 0.1, 0.5), height=height, width=width, field_of_view=field))
    return found


def _room(around: int, textures: bool, smooth: bool, shadows: bool) -> Scene:
    rng = np.random.default_rng(5)
    picture = _checks(rng) if textures else None
    placements = [Placement(_shell(Material((205, 200, 190), picture)), name="room")]
    for number in range(10):
        material = Material((255, 255, 255) if textures else _COLORS[number % 6], _checks(rng) if textures else None)
        turn = np.pi * (3 - 5**0.5) * number
        away = 0.25 + 0.42 * number**0.6
        size = rng.uniform(0.25, 0.42)
        at = np.array([min(away, 2.4) * np.cos(turn), min(away, 1.9) * np.sin(turn), size * 1.3])
        solid = _solid(around, number, material, smooth)
        placements.append(
            Placement(solid, translation=np.array(at), scale=np.full(3, size), name=f"object {number + 1}")
        )
    return Scene(tuple(placements), SHADOWS if shadows else STUDIO)


def _solid(around: int, number: int, material: Material, smooth: bool) -> Mesh:
    """Ring or ball with bumps, of ``around · around`` triangles."""
    along = around // 2
    u, v = np.meshgrid(np.arange(around + 1) / around, np.arange(along + 1) / along, indexing="ij")
    phi = 2 * np.pi * u
    bump = 1 + 0.08 * np.sin((3 + number % 4) * phi) * np.sin(2 * np.pi * v * (2 + number % 3))
    if number % 2:
        theta = 2 * np.pi * v
        radius = 0.8 + 0.4 * bump * np.cos(theta)
        height = 0.4 * bump * np.sin(theta)
    else:
        theta = np.pi * (0.001 + 0.998 * v)  # open at the poles by less than a hair, so that no triangle is degenerate
        radius, height = bump * np.sin(theta), bump * np.cos(theta)
    points = np.stack([radius * np.cos(phi), radius * np.sin(phi), height], axis=-1)
    corner = np.arange((around + 1) * (along + 1)).reshape(around + 1, along + 1)
    a, b, c, d = corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]
    faces = np.concatenate([np.stack(three, axis=-1).reshape(-1, 3) for three in ((a, b, c), (a, c, d))])
    normals = None
    if smooth:
        normals = np.cross(np.gradient(points, axis=0), np.gradient(points, axis=1)).reshape(-1, 3)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    uv = np.stack([4 * u, 2 * v], axis=-1).reshape(-1, 2)
    return Mesh(points.reshape(-1, 3), faces, normals, uv.astype(np.float32), materials=(material,))


def _shell(material: Material) -> Mesh:
    """The six sides of the room, two triangles each, seen from inside; textured once a metre."""
    half = np.array([_WIDTH / 2, _DEPTH / 2, _HEIGHT / 2])
    corners: list[Array] = []
    uv: list[Array] = []
    faces: list[list[int]] = []
    for axis in range(3):
        across, up = [other for other in range(3) if other != axis]
        for side in (-1, 1):
            start = len(corners) * 4
            square = np.zeros((4, 3))
            square[:, axis] = side
            square[:, across], square[:, up] = (-1, 1, 1, -1), (-1, -1, 1, 1)
            corners.append(square * half + (0, 0, half[2]))
            uv.append(corners[-1][:, [across, up]])
            faces += [[start, start + 1, start + 2], [start, start + 2, start + 3]]
    return Mesh(
        np.concatenate(corners), np.array(faces), uv=np.concatenate(uv).astype(np.float32), materials=(material,)
    )


def _checks(rng: np.random.Generator) -> Array:
    """A texture of 256 × 256 bytes: checks of two shades with noise."""
    y, x = np.mgrid[:256, :256] // 32
    shades = rng.integers(60, 240, (2, 3))
    found: Array = np.clip(shades[(x + y) % 2] + rng.integers(-12, 13, (256, 256, 1)), 0, 255).astype(np.uint8)
    return found
