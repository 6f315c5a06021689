"""A folder as the recipe writes it: crops of three drawn heads that turn, in tracks of unlike lengths, and a table."""

import csv
import functools
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from tests.kept import kept

HELD = "track"
SIZE = 96

Color = tuple[int, int, int]
Looks = tuple[Color, Color, float]
"""Skin, hair, width of the head."""

PEOPLE: dict[str, Looks] = {
    "ann": ((214, 168, 140), (58, 42, 34), 1.0),
    "bob": ((150, 104, 76), (24, 20, 18), 1.08),
    "cem": ((232, 196, 170), (150, 104, 52), 0.94),
}
# video, shot, number in the shot, who, first frame, yaw of each frame
TRACKS = [
    ("late/monday.mp4", 0, 0, "ann", 3, (-40, -30, -20, -10, 2, 12, 22)),
    ("late/monday.mp4", 2, 1, "bob", 90, (30, 16, 4, -4)),
    ("tuesday.mkv", 1, 0, "cem", 40, (-12, 1, 14, 26, 38)),
]
COLUMNS = "file video shot track frame time left top right bottom score yaw canonical".split()

# (centre, radii, colour): x to the right of the picture, y down, z towards the viewer; None: skin, "hair": hair
_PARTS = [
    ((0, 0.02, 0), (0.80, 1.02, 0.88), None),
    ((0, -0.42, -0.16), (0.86, 0.75, 0.86), "hair"),
    ((0, 0.16, 0.86), (0.13, 0.26, 0.22), None),
    ((0, 0.33, 0.92), (0.17, 0.10, 0.16), None),
    ((-0.31, -0.16, 0.72), (0.20, 0.10, 0.12), (120, 84, 70)),
    ((0.31, -0.16, 0.72), (0.20, 0.10, 0.12), (120, 84, 70)),
    ((-0.31, -0.15, 0.78), (0.14, 0.065, 0.08), (240, 240, 240)),
    ((0.31, -0.15, 0.78), (0.14, 0.065, 0.08), (240, 240, 240)),
    ((-0.31, -0.15, 0.83), (0.065, 0.065, 0.05), (30, 24, 24)),
    ((0.31, -0.15, 0.83), (0.065, 0.065, 0.05), (30, 24, 24)),
    ((-0.31, -0.33, 0.76), (0.22, 0.05, 0.10), (50, 36, 30)),
    ((0.31, -0.33, 0.76), (0.22, 0.05, 0.10), (50, 36, 30)),
    ((0, 0.58, 0.70), (0.27, 0.065, 0.14), (150, 62, 62)),
    ((-0.82, 0.02, -0.02), (0.10, 0.22, 0.14), None),
    ((0.82, 0.02, -0.02), (0.10, 0.22, 0.14), None),
    ((0, 1.10, -0.20), (0.42, 0.60, 0.42), None),
]
# both eyes, the tip of the nose, the corners of the mouth
_POINTS = np.array(
    [(-0.31, -0.15, 0.83), (0.31, -0.15, 0.83), (0, 0.30, 1.06), (-0.24, 0.58, 0.75), (0.24, 0.58, 0.75)]
)
_REACH = 1.5  # the picture shows -1.5 … 1.5


def _turned(yaw: float) -> npt.NDArray[np.float64]:
    sin, cos = math.sin(math.radians(yaw)), math.cos(math.radians(yaw))
    return np.array([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]])


@functools.cache
def head(who: str | Looks, yaw: float, size: int) -> npt.NDArray[np.uint8]:
    """Head of shaded ellipsoids, each met by a ray through every pixel; (size, size, 4), transparent around it."""
    skin, hair, wide = PEOPLE[who] if isinstance(who, str) else who
    count = 2 * size
    y, x = (np.mgrid[0:count, 0:count] + 0.5) / count * 2 * _REACH - _REACH
    color, depth = np.zeros((count, count, 3)), np.full((count, count), -9.0)
    light = np.array([-0.35, -0.5, 0.8]) / np.linalg.norm([-0.35, -0.5, 0.8])
    turn = _turned(yaw)
    for centre, radii, paint in _PARTS:
        where = turn @ (np.array(centre) * (wide, 1, 1))
        form = turn @ np.diag(1 / np.square(np.array(radii) * (wide, 1, 1))) @ turn.T
        dx, dy = x - where[0], y - where[1]
        half = form[0, 2] * dx + form[1, 2] * dy
        rest = form[0, 0] * dx**2 + form[1, 1] * dy**2 + 2 * form[0, 1] * dx * dy - 1
        inside = half**2 - form[2, 2] * rest
        dz = (-half + np.sqrt(np.maximum(inside, 0))) / form[2, 2]
        front = (inside > 0) & (dz + where[2] > depth)
        normal = np.stack([dx, dy, dz], -1) @ form
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-9
        shade = 0.38 + 0.62 * np.clip(normal @ light, 0, 1)
        rgb = np.array({"hair": hair, None: skin}.get(paint, paint), float)
        color[front] = rgb * shade[front][:, None]
        depth[front] = (dz + where[2])[front]
    opaque = 255.0 * (depth > -9)
    picture = np.concatenate([color, opaque[..., None]], -1)
    small = picture.reshape(size, 2, size, 2, 4).mean((1, 3))
    small[..., :3] = np.where(small[..., 3:] > 0, small[..., :3] * 255 / np.maximum(small[..., 3:], 1), 0)
    return np.clip(small.round(), 0, 255).astype(np.uint8)


def points(yaw: float, size: int) -> npt.NDArray[np.float64]:
    """Where the five points of a head of :func:`head` stand in its picture, (5, 2); right eye first."""
    return ((_POINTS @ _turned(yaw).T)[:, :2] + _REACH) / (2 * _REACH) * size


def face_box(size: int) -> npt.NDArray[np.float64]:
    """Left, top, right and bottom of the skull from the middle of the forehead to the chin, in its picture."""
    return (np.array([-0.8, -0.75, 0.8, 1.04]) + _REACH) / (2 * _REACH) * size


def pasted(ground: npt.NDArray[np.uint8], picture: npt.NDArray[np.uint8], left: int, top: int) -> None:
    """Lay a picture with transparency onto another."""
    size = len(picture)
    part = ground[top : top + size, left : left + size]
    alpha = picture[..., 3:] / 255
    part[...] = (part * (1 - alpha) + picture[..., :3] * alpha).round().astype(np.uint8)


@kept
def write(folder: Path) -> None:
    rows = []
    for video, shot, number, who, first, yaws in TRACKS:
        best = min(range(len(yaws)), key=lambda at: abs(yaws[at]))
        for at, yaw in enumerate(yaws):
            track = f"{video}/{shot:04}-{number:02}"
            picture = np.full((SIZE, SIZE, 3), (70 + 20 * shot, 80, 95), np.uint8)
            pasted(picture, head(who, yaw, SIZE), 0, 0)
            path = folder / "tracks" / track / f"{first + at:06}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(path)
            box = [f"{10.0 + at:.2f}", "20.00", f"{106.0 + at:.2f}", "116.00"]
            time, score = f"{(first + at) / 25:.6f}", f"{0.95 - 0.01 * at:.6f}"
            name = f"tracks/{track}/{path.name}"
            mark = "true" if at == best else "false"
            rows.append([name, video, shot, track, first + at, time, *box, score, f"{yaw:.4f}", mark])
    with (folder / "orbits.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    (folder / "recipe.json").write_text('{\n "version": 1\n}\n')
