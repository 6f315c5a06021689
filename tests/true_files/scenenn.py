"""A small SceneNN in the published layout: rooms with toys on the floor, as annotated meshes.

Positions are metres, y up. What a scene holds is told by :func:`things`, which the frames of ``scenenn_frames`` show.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from tests.true_files.toys import toy_boxes

HELD = "label"

SCENES = ("005", "011", "015", "123", "207", "700")
ROOM = (3.0, 2.0, 3.0)  # m: width, height, depth; the floor's middle is the origin
TOY = 0.38  # m a unit of a toy
NAMES = (
    ("toy car", "otherprop"),
    ('Haus <groß> & "gelb" #1', "otherstructure"),
    ("plane", "unknown"),
    ("chair", "chair"),
)
# ids: one without a text, and one beyond a byte
UNNAMED, FLOOR, WALL, TOYS = 1, 2, 3, (12, 17, 40, 1203)


@dataclass(frozen=True)
class Thing:
    """A box in a room: its id, colour (0 … 1), centre and half lengths (m), turned about y by an angle (radians)."""

    id: int
    color: tuple[float, float, float]
    centre: tuple[float, float, float]
    half: tuple[float, float, float]
    angle: float = 0.0

    def axes(self) -> np.ndarray:
        """Rows are the box's own axes in the room's frame."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])


def things(scene: int) -> list[Thing]:
    """All boxes of a scene: floor, two walls, a box that nobody named, and four toys."""
    width, height, depth = ROOM
    found = [
        Thing(FLOOR, (0.55, 0.45 + 0.05 * (scene % 3), 0.35), (0, -0.05, 0), (width / 2, 0.05, depth / 2)),
        Thing(WALL, (0.8, 0.8, 0.7), (0, height / 2, -depth / 2 - 0.05), (width / 2, height / 2, 0.05)),
        Thing(WALL, (0.7, 0.8, 0.8), (-width / 2 - 0.05, height / 2, 0), (0.05, height / 2, depth / 2)),
        Thing(UNNAMED, (0.3, 0.3, 0.3), (1.2, 0.1, 1.2), (0.1, 0.1, 0.1)),
    ]
    for kind in range(4):
        angle = 0.4 * scene + 0.9 * kind
        place = 0.75 * np.array([(-1) ** (kind + scene), 0, (-1) ** (kind // 2)])
        boxes = toy_boxes(kind)
        low = min(centre[2] - half[2] for centre, half, _ in boxes)
        turn = Thing(0, (0, 0, 0), (0, 0, 0), (0, 0, 0), angle).axes()
        for (x, y, z), (a, b, c), offset in boxes:
            centre = place + turn.T @ (TOY * np.array([x, z - low, -y]))
            hue = (0.15 * scene + 0.25 * kind + offset) % 1.0
            found.append(Thing(TOYS[kind], _color(hue), tuple(centre), tuple(TOY * np.array([a, c, b])), angle))
    return found


def _color(hue: float) -> tuple[float, float, float]:
    import colorsys

    return colorsys.hsv_to_rgb(hue, 0.75, 0.95)


def box_mesh(thing: Thing, steps: int = 8) -> tuple[np.ndarray, ...]:
    """Vertices, normals, colours and triangles of a box whose faces are grids."""
    grid = np.linspace(-1, 1, steps)
    u, v = (plane.reshape(-1) for plane in np.meshgrid(grid, grid, indexing="ij"))
    corner = np.arange(steps * steps).reshape(steps, steps)
    a, b, c, d = (part.reshape(-1) for part in (corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]))
    vertices, normals, triangles = [], [], []
    for axis in range(3):
        for sign in (-1, 1):
            face = np.empty((len(u), 3))
            face[:, axis], face[:, (axis + 1) % 3], face[:, (axis + 2) % 3] = sign, u, v
            normal = np.zeros(3)
            normal[axis] = sign
            quads = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
            triangles.append((quads if sign > 0 else quads[:, ::-1]) + len(u) * len(vertices))
            vertices.append(face * thing.half @ thing.axes() + thing.centre)
            normals.append(np.tile(normal @ thing.axes(), (len(u), 1)))
    normals = np.concatenate(normals)
    shade = 0.7 + 0.3 * normals @ np.array([0.36, 0.8, 0.48])
    colors = np.clip(np.rint(255 * shade[:, None] * np.array(thing.color)), 0, 255).astype(np.uint8)
    return np.concatenate(vertices), normals, colors, np.concatenate(triangles)


def scene_mesh(scene: int) -> tuple[np.ndarray, ...]:
    """Vertices, normals, colours, labels and triangles of a whole scene."""
    parts, labels, start = [], [], 0
    for thing in things(scene):
        vertices, normals, colors, triangles = box_mesh(thing)
        parts.append((vertices, normals, colors, triangles + start))
        labels.append(np.full(len(vertices), thing.id))
        start += len(vertices)
    vertices, normals, colors, triangles = (np.concatenate(part) for part in zip(*parts, strict=True))
    return vertices, normals, colors, np.concatenate(labels), triangles


def ply(vertices, normals, colors, labels, triangles) -> bytes:
    """A binary little-endian PLY with positions, normals, colours and labels."""
    names = [f"property float {name}" for name in ("x", "y", "z", "nx", "ny", "nz")]
    names += [f"property uchar {name}" for name in ("red", "green", "blue")]
    head = ["ply", "format binary_little_endian 1.0", f"element vertex {len(vertices)}", *names, "property int label"]
    head += [f"element face {len(triangles)}", "property list uchar int vertex_indices", "end_header", ""]
    body = [
        struct.pack("<6f3Bi", *where, *normal, *color, label)
        for where, normal, color, label in zip(
            vertices.tolist(), normals.tolist(), colors.tolist(), labels.tolist(), strict=True
        )
    ]
    body += [struct.pack("<B3i", 3, *triangle) for triangle in triangles.tolist()]
    return "\n".join(head).encode() + b"".join(body)


def xml(scene: int, classes: bool = True) -> bytes:
    """The annotation of a scene."""
    vertices, _, _, labels, _ = scene_mesh(scene)
    told = {UNNAMED: ("", "unknown"), FLOOR: ("floor", "floor"), WALL: ("wall", "wall")}
    told |= dict(zip(TOYS, NAMES, strict=True))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<annotation>", '  <scan format="ply"/>']
    for number, (text, nyu_class) in told.items():
        own = vertices[labels == number]
        angle = next(thing.angle for thing in things(scene) if thing.id == number)
        axes = Thing(0, (0, 0, 0), (0, 0, 0), (0, 0, 0), angle).axes()
        low, high = (own @ axes.T).min(axis=0), (own @ axes.T).max(axis=0)
        obb = [*((low + high) / 2 @ axes), *(high - low), 0, np.sin(angle / 2), 0, np.cos(angle / 2)]
        attributes = {
            "id": str(number),
            "color": "255 0 0",
            "text": text,
            **({"nyu_class": nyu_class} if classes else {}),
            "aabbox": " ".join(f"{value:.6f}" for value in [*own.min(axis=0), *own.max(axis=0)]),
            "obbox": " ".join(f"{value:.6f}" for value in obb),
        }
        lines.append(f"  <label {' '.join(f'{name}={quoteattr(value)}' for name, value in attributes.items())}/>")
    return "\n".join([*lines, "</annotation>", ""]).encode()


def write(folder: Path, scenes: int = len(SCENES)) -> None:
    """Write the meshes and annotations of a few scenes."""
    for scene, name in enumerate(SCENES[:scenes]):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{name}.ply").write_bytes(ply(*scene_mesh(scene)))
        (folder / name / f"{name}.xml").write_bytes(xml(scene))
