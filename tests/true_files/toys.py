"""Pictures of toy cars and houses for files that tests write: what was drawn can be told from the picture."""

import colorsys

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

Picture = npt.NDArray[np.uint8]

# a toy: boxes (centre x, y, z; half lengths) in a frame with x right, y to the back, z up; hue offset of each
_TOYS = (
    (((0, 0, -0.15), (0.45, 0.9, 0.2), 0.0), ((0, 0.1, 0.2), (0.4, 0.45, 0.17), 0.08)),  # a car, its nose to −y
    (((0, 0, -0.1), (0.55, 0.55, 0.45), 0.0), ((0, 0, 0.5), (0.3, 0.3, 0.2), 0.45)),  # a house with a tower
    (
        ((0, 0, 0), (0.15, 0.9, 0.12), 0.0),
        ((0, 0.1, 0.05), (0.95, 0.2, 0.05), 0.1),
        ((0, 0.8, 0.3), (0.08, 0.1, 0.3), 0.5),
    ),  # a plane
    (
        ((0, 0, 0.15), (0.5, 0.5, 0.08), 0.0),
        ((0, 0.45, 0.55), (0.5, 0.06, 0.4), 0.05),
        ((0, 0, -0.35), (0.4, 0.4, 0.45), 0.5),
    ),  # a chair
)
_FACES = ((0, -1), (0, 1), (1, -1), (1, 1), (2, -1), (2, 1))


def toy_boxes(kind: int) -> list[tuple[tuple[float, ...], tuple[float, ...], float]]:
    """Boxes of a toy: centre, half lengths, hue offset."""
    return [tuple(box) for box in _TOYS[kind % len(_TOYS)]]


def toy(
    kind: int,
    hue: float,
    azimuth: float = 30.0,
    elevation: float = 25.0,
    *,
    size: tuple[int, int] = (128, 128),
    light: float = 1.0,
    alpha: bool = False,
    ground: tuple[int, int, int] = (255, 255, 255),
) -> Picture:
    """Draw a toy as seen from an azimuth (0: from the front, −y; 90: from +x) and an elevation, in degrees.

    Returns
    -------
    (height, width, 3) uint8, or 4 channels with `alpha`: transparent where the ground is

    """
    a, e = np.deg2rad([azimuth, elevation])
    forward = -np.array([np.cos(e) * np.sin(a), -np.cos(e) * np.cos(a), np.sin(e)])
    right = np.array([np.cos(a), np.sin(a), 0.0])
    up = np.cross(right, forward)
    scale = 0.36 * min(size)
    faces = []
    for centre, half, offset in toy_boxes(kind):
        for axis, sign in _FACES:
            normal = np.zeros(3)
            normal[axis] = sign
            if normal @ forward >= 0:
                continue
            u, v = ((axis + 1) % 3, (axis + 2) % 3)
            corners = []
            for du, dv in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                point = np.array(centre, float)
                point[axis] += sign * half[axis]
                point[u] += du * half[u]
                point[v] += dv * half[v]
                corners.append(point)
            corners = np.array(corners)
            shade = light * (0.45 + 0.5 * max(0.0, normal @ np.array([0.35, -0.6, 0.72])))
            rgb = colorsys.hsv_to_rgb((hue + offset) % 1.0, 0.75, min(1.0, shade))
            flat = np.stack([corners @ right * scale + size[1] / 2, size[0] / 2 - corners @ up * scale], 1)
            faces.append(((corners @ forward).mean(), flat, tuple(round(255 * part) for part in rgb)))
    picture = Image.new("RGBA", (size[1], size[0]), (*ground, 0))
    pen = ImageDraw.Draw(picture)
    for _, flat, color in sorted(faces, key=lambda face: -face[0]):
        pen.polygon([tuple(point) for point in flat], fill=(*color, 255), outline=(20, 20, 20, 255))
    if alpha:
        return np.asarray(picture)
    below = Image.new("RGBA", picture.size, (*ground, 255))
    return np.asarray(Image.alpha_composite(below, picture).convert("RGB"))


def toy_mesh(kind: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Vertices (n, 3) and triangles (m, 3) of a toy, counter-clockwise seen from outside."""
    vertices, triangles = [], []
    for centre, half, _ in toy_boxes(kind):
        for axis, sign in _FACES:
            u, v = ((axis + 1) % 3, (axis + 2) % 3)
            first = len(vertices)
            for du, dv in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                point = np.array(centre, float)
                point[axis] += sign * half[axis]
                point[u] += du * half[u]
                point[v] += dv * half[v]
                vertices.append(point)
            order = (0, 1, 2, 3) if sign > 0 else (3, 2, 1, 0)
            triangles += [[first + order[i] for i in (0, 1, 2)], [first + order[i] for i in (0, 2, 3)]]
    return np.array(vertices), np.array(triangles)
