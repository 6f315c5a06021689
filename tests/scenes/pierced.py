"""Scenes with masks, and the same with the solid texels as squares of their own: what all that looks must agree on."""

import numpy as np

from setsup.scenes import Ambient, Camera, Directional, Lamp, Material, Mesh, Placement, Scene
from setsup.scenes.meshes.primitives import plane, sphere

DICE = np.random.default_rng(7)
MASK = DICE.random((7, 9)) < 0.6
LIGHTS = (
    Ambient((0.3, 0.3, 0.3)),
    Directional((0.3, 0.4, -1), (0.4, 0.4, 0.4), shadow=True),
    Lamp((1, -1, 2), (0.3, 0.2, 0.1), shadow=True),
)
CAMERA = Camera.look_at((0.73, -2.57, 2.51), (0, 0, 0), height=75, width=100, field_of_view=0.8)
OTHER = Camera.look_at((-1.63, -1.98, 1.87), (0, 0, 0), height=80, width=90, field_of_view=0.9)
BELOW = Camera.look_at((0.31, -1.13, -3.07), (0, 0, 0), height=75, width=100, field_of_view=0.8)


def sheet(mask, times=(1, 1), color=(200, 120, 40)):
    """A square of 2 m whose texture repeats, with holes."""
    mesh = plane((2, 2))
    return Mesh(mesh.vertices, mesh.faces, uv=mesh.uv * times, materials=(Material(color, mask=mask),))


def cut_out(mask, times=(1, 1), color=(200, 120, 40)):
    """The same as a square for each solid texel."""
    tiled = np.tile(mask, times[::-1])
    rows, columns = np.nonzero(tiled)
    height, width = tiled.shape
    x, y = -1 + 2 * columns / width, 1 - 2 * rows / height  # row 0 is at the top
    corners = np.stack([x, y, 0 * x], axis=-1)[:, None] + np.array(
        [[0, -2 / height, 0], [2 / width, -2 / height, 0], [2 / width, 0, 0], [0, 0, 0]]
    )
    faces = 4 * np.arange(len(x))[:, None, None] + np.array([[0, 1, 2], [0, 2, 3]])
    return Mesh(corners.reshape(-1, 3), faces.reshape(-1, 3), materials=(Material(color),))


def scene(make, background=(90, 120, 160)):
    """Two sheets with holes over a ball and a floor; ``make`` is :func:`sheet` or :func:`cut_out`."""
    turned = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    return Scene(
        (
            Placement(plane((5, 5), material=Material((180, 180, 180))), translation=(2.2, 1.2, -0.9)),
            Placement(make(MASK), translation=(0.01, 0.02, 0)),
            Placement(sphere(0.4, material=Material((200, 40, 40))), translation=(0.3, 0.2, -0.45)),
            Placement(make(MASK[:5, :4], (3, 2), (40, 90, 200)), turned, (0.2, 0.1, 0.4), (0.7, 0.9, 1)),
        ),
        LIGHTS,
        background,
    )
