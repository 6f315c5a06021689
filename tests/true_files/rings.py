"""Cameras that stand around a box, and what they see: frames whose poses are known."""

import io

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

Reals = npt.NDArray[np.float64]

HALF = np.array([0.5, 0.35, 0.25])
MARKS = {"red": (255, 0, 0), "lime": (0, 255, 0), "blue": (0, 0, 255)}
"""Colours of the discs at :func:`marks`."""


def marks() -> Reals:
    """Three points above the box, (3, 3) world coordinates."""
    return np.array([[0.6, 0.0, 0.45], [-0.6, 0.45, 0.55], [0.0, -0.6, 0.65]])


def ring(azimuths: npt.ArrayLike, elevation: float = 25.0, distance: float = 3.0) -> Reals:
    """Poses (n, 4, 4), camera to world, x right, y down, z forward, z of the world up, looking at the origin."""
    a, e = np.deg2rad(np.asarray(azimuths, float)), np.deg2rad(elevation)
    away = np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.full_like(a, np.sin(e))], axis=-1)
    right = np.stack([-np.sin(a), np.cos(a), np.zeros_like(a)], axis=-1)
    poses = np.tile(np.eye(4), (len(a), 1, 1))
    poses[:, :3] = np.stack([right, np.cross(-away, right), -away, distance * away], axis=-1)
    return poses


def project(points: Reals, pose: Reals, k: Reals) -> Reals:
    """Pixels (n, 2) with centres at integers, of points (n, 3) of the world."""
    seen = (points - pose[:3, 3]) @ pose[:3, :3]
    flat = seen @ k.T
    return flat[:, :2] / flat[:, 2:]


def seen(pose: Reals, k: Reals, size: tuple[int, int], hue: int = 0) -> tuple[Image.Image, Image.Image]:
    """What a camera sees, and the mask of it: the box, and discs at the marks."""
    picture = Image.new("RGB", (size[1], size[0]), (225, 222, 214))
    mask = Image.new("L", picture.size)
    faces = []
    for axis in range(3):
        for sign in (-1, 1):
            corners = np.array([[du, dv] for du, dv in ((-1, -1), (1, -1), (1, 1), (-1, 1))], float)
            points = np.empty((4, 3))
            points[:, axis], points[:, (axis + 1) % 3], points[:, (axis + 2) % 3] = sign, corners[:, 0], corners[:, 1]
            points *= HALF
            depth = ((points - pose[:3, 3]) @ pose[:3, 2]).mean()
            shade = 90 + 40 * axis + 12 * sign
            color = tuple(np.roll([shade, shade // 2, 60], hue).tolist())
            faces.append((depth, [tuple(pixel) for pixel in project(points, pose, k)], color))
    for _, flat, color in sorted(faces, key=lambda face: -face[0]):
        ImageDraw.Draw(picture).polygon(flat, fill=color)
        ImageDraw.Draw(mask).polygon(flat, fill=255)
    radius = 0.035 * k[0, 0]
    for (x, y), color in zip(project(marks(), pose, k), MARKS.values(), strict=True):
        for pen, fill in ((ImageDraw.Draw(picture), color), (ImageDraw.Draw(mask), 255)):
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
    return picture, mask


def jpeg(picture: Image.Image) -> bytes:
    """Bytes of a JPEG whose small discs keep their colours."""
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=95, subsampling=0)
    return file.getvalue()


def found_at_marks(image: npt.NDArray[np.uint8], pose: Reals, k: Reals) -> bool:
    """Whether the discs are where a camera says that they are."""
    pixels = np.rint(project(marks(), pose.astype(float), k.astype(float))).astype(int)
    colors = image[pixels[:, 1], pixels[:, 0]].astype(int)
    return bool(np.abs(colors - np.array(list(MARKS.values()))).max() < 100)
