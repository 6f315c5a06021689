"""Scenes that all renderers draw, and what is compared between their frames."""

import math
from pathlib import Path

import numpy as np

from setsup.scenes import (
    STUDIO,
    Ambient,
    Camera,
    Directional,
    Frame,
    Lamp,
    Light,
    Material,
    Mesh,
    Placement,
    Scene,
    load_mesh,
)
from setsup.scenes.meshes.primitives import box, capsule, cylinder, plane, sphere

AMBIENT: tuple[Light, ...] = (Ambient(),)
LIT: tuple[Light, ...] = (
    Ambient((0.2, 0.25, 0.3)),
    Directional((1, 2, -3), (0.5, 0.4, 0.3)),
    Directional((0.2, 0, 1), (0.1, 0.1, 0.2), of_camera=True),
    Lamp((0.5, -1.5, 2.5), (0.4, 0.4, 0.4), axis=(0, 0.4, -1), exponent=2, reach=2.0),
)
"""No shadows, and only what all renderers draw alike."""
COLORS = ((128, 128, 128), (200, 30, 30), (30, 160, 60), (40, 60, 190), (230, 200, 60), (90, 20, 120), (255, 255, 255))
MODELS = {
    "cow": "meshes/pytorch3d/cow.obj",
    "bunny": "meshes/trimesh/bunny.ply",
    "teapot": "meshes/trimesh/teapot.stl",
    "suzanne": "meshes/trimesh/suzanne.ply",
    "chair": "keypointnet/models/03001627/88382b877be91b2a572f8e1c1caad99e/models/model_normalized.obj",
}


def turned(degrees: float, axis: int = 2) -> np.ndarray:
    """Rotation about an axis of the world."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    plane_of = [[1, 2], [2, 0], [0, 1]][axis]
    found = np.eye(3)
    found[np.ix_(plane_of, plane_of)] = [[c, -s], [s, c]]
    return found


def primitives(lights: tuple[Light, ...] = STUDIO, background: tuple[int, int, int] | None = (70, 130, 180)) -> Scene:
    """Every primitive on a floor, turned and stretched."""
    paints = [Material(color) for color in COLORS]
    return Scene(
        (
            Placement(plane((6, 6), material=paints[0]), name="floor"),
            Placement(box(material=paints[1]), turned(30), (-1.2, 0.3, 0.4), (0.6, 1.1, 0.8)),
            Placement(sphere(material=paints[2]), turned(40, 0), (0, 0.4, 0.6), (1.0, 0.7, 1.2)),
            Placement(cylinder(material=paints[3]), turned(-70, 0), (1.2, 0.2, 0.6)),
            Placement(capsule(material=paints[4]), turned(50, 1), (0.4, -1.0, 0.5), (0.7, 0.7, 0.7)),
            Placement(sphere(0.3, segments=12, material=paints[5]), translation=(-0.6, -1.0, 0.3), instance=300),
        ),
        lights,
        background,
    )


def room(lights: tuple[Light, ...] = STUDIO, size: float = 4.0) -> Scene:
    """Objects in a closed room, which is seen from within."""
    tiles = Material((255, 255, 255), checker(16, 16, (200, 180, 160), (90, 70, 60)))
    walls = box((size, size, 2.6), material=Material((190, 190, 180)))
    placements = [
        Placement(walls, translation=(0, 0, 1.3), name="walls"),
        Placement(plane((size - 0.02, size - 0.02), material=tiles), translation=(0, 0, 0.01), name="floor"),
    ]
    bodies = (box((0.7, 0.5, 0.9)), sphere(0.35), cylinder(0.3, 1.1), capsule(0.2, 0.6), box((1.2, 0.8, 0.05)))
    for number, body in enumerate(bodies):
        low = body.bounds[0, 2]
        painted = Mesh(body.vertices, body.faces, body.normals, body.uv, materials=(Material(COLORS[number + 1]),))
        angle = 2 * math.pi * number / len(bodies)
        at = (1.1 * math.cos(angle), 1.1 * math.sin(angle), 0.02 - low)
        placements.append(Placement(painted, turned(25 * number), at, name=f"body {number}"))
    return Scene(tuple(placements), lights)


def model(
    folder: Path, name: str, lights: tuple[Light, ...] = STUDIO, background: tuple[int, int, int] | None = None
) -> Scene:
    """One of the genuine meshes, 1 m long about the origin."""
    path = folder / MODELS[name]
    mesh = load_mesh(path, top=path.parents[1])
    low, high = mesh.bounds
    scale = 1 / (high - low).max()
    upright = turned(90, 0) if name in ("cow", "bunny", "chair") else np.eye(3)  # which of their axes is up
    return Scene((Placement(mesh, upright, -upright @ (scale * (low + high) / 2), (scale,) * 3),), lights, background)


def around(count: int, distance: float = 1.6, height: float = 0.7, pixels: int = 128) -> list[Camera]:
    """Cameras on a circle about the origin."""
    angles = 2 * math.pi * (np.arange(count) + 0.13) / count
    eyes = [(distance * math.cos(angle), distance * math.sin(angle), height) for angle in angles]
    return [Camera.look_at(eye, (0, 0, 0), height=pixels, width=pixels, field_of_view=0.75) for eye in eyes]


def within(pixels: int = 128) -> list[Camera]:
    """Cameras in the room."""
    eyes = [(-1.7, -1.6, 1.5), (1.6, -1.5, 1.2), (0.1, 1.8, 2.2)]
    return [Camera.look_at(eye, (0, 0, 0.5), height=pixels, width=pixels + 32, field_of_view=1.1) for eye in eyes]


def checker(
    rows: int,
    columns: int,
    one: tuple[int, int, int] = (255, 255, 255),
    other: tuple[int, int, int] = (0, 0, 0),
    texels: int = 8,
) -> np.ndarray:
    """Fields of two colours, each of texels × texels, (rows · texels, columns · texels, 3) uint8."""
    which = np.add.outer(np.arange(rows), np.arange(columns)) % 2
    fields = np.array([one, other], np.uint8)[which]
    return fields.repeat(texels, axis=0).repeat(texels, axis=1)


def alike(pictures: np.ndarray) -> np.ndarray:
    """Pixels (h, w) whose neighbourhood of 3 × 3 has one value; none on the rim, whose neighbours are not known."""
    found = np.zeros(pictures.shape, bool)
    windows = np.lib.stride_tricks.sliding_window_view(pictures, (3, 3)) if min(pictures.shape) > 2 else None
    if windows is not None:
        found[1:-1, 1:-1] = (windows == windows[..., 1:2, 1:2]).all(axis=(2, 3))
    return found


def angles(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Between unit vectors (..., 3), in degrees; exact for small ones."""
    apart = np.linalg.norm(one.astype(np.float64) - other, axis=-1)
    return np.degrees(2 * np.arcsin(np.minimum(apart / 2, 1)))


def compared(reference: Frame, frame: Frame) -> dict[str, float]:
    """Differences of the geometry of two frames, away from the silhouettes of the reference.

    ``depth`` and ``normal`` are the largest differences, relative and in degrees, where both saw the same triangle;
    ``off`` is the share of all pixels whose depth differs by more than 1e-4, or whose normal by more than 0.5 degrees
    though the reference has one triangle all around: at folds, the two may have seen either side.
    """
    inner = alike(reference.instance)
    seen = inner & (reference.triangle >= 0) & (frame.triangle >= 0)
    depth, turn = np.zeros(seen.shape), np.zeros(seen.shape)
    depth[seen] = np.abs(frame.depth[seen].astype(np.float64) / reference.depth[seen] - 1)
    turn[seen] = angles(reference.normal[seen], frame.normal[seen])
    same = seen & (reference.triangle == frame.triangle)
    return {
        "other instance": float(((reference.instance != frame.instance) & inner).sum() / max(inner.sum(), 1)),
        "other triangle": float((seen & ~same).sum() / max(seen.sum(), 1)),
        "depth": float(depth[same].max(initial=0)),
        "normal": float(turn[same].max(initial=0)),
        "off": float(((depth > 1e-4) | ((turn > 0.5) & alike(reference.triangle))).sum() / max(seen.sum(), 1)),
    }
