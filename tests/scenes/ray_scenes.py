"""Scenes for rays, and the brute force that they are compared with: every ray against every triangle, in float64."""

import numpy as np

from setsup.scenes import Mesh, Placement, Scene
from setsup.scenes.meshes.primitives import box, sphere


def ball_and_boxes():
    return Scene(
        (
            Placement(sphere(0.5, segments=48), translation=(1.5, 0, 0.5)),
            Placement(box((4, 4, 0.125)), translation=(0, 0, -0.25)),
            Placement(box(), translation=(-1, 1, 0.5)),
        )
    )


def soup(seed, count):
    """Triangles of all sizes, anywhere."""
    dice = np.random.default_rng(seed)
    corners = dice.normal(size=(count, 1, 3)) + dice.normal(size=(count, 3, 3)) * dice.uniform(0.1, 1, (count, 1, 1))
    return Scene((Placement(Mesh(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))),))


def fine_box(parts):
    """A cube of side 1 whose faces are divided; neighbours share corners to the bit."""
    line = np.linspace(-0.5, 0.5, parts + 1)
    x, y = (axis.ravel() for axis in np.meshgrid(line, line, indexing="ij"))
    first = (np.arange(parts)[:, None] * (parts + 1) + np.arange(parts)).ravel()
    quads = np.stack([first, first + 1, first + parts + 2, first + parts + 1], axis=1)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    sides = [
        np.roll(np.stack([x, y, np.full_like(x, at)], axis=1), turn, axis=1) for turn in range(3) for at in (-0.5, 0.5)
    ]
    faces = np.concatenate([triangles + number * len(x) for number in range(6)])
    return Mesh(np.concatenate(sides), faces)


def ways(count):
    return np.random.default_rng(7).normal(size=(count, 3))


def first_by_brute_force(scene, origins, directions):
    """Triangle (−1 for none), distance, and whether both would stay the same if everything moved by a 1e-5th."""
    corners = scene.triangles.corners
    a, b, c = (corners[None, :, corner] for corner in range(3))
    start, way = np.broadcast_to(origins, directions.shape)[:, None], directions[:, None]
    normal = np.cross(b - a, c - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = ((a - start) * normal).sum(axis=2) / (way * normal).sum(axis=2)
        point = start + distance[..., None] * way
        area = (normal**2).sum(axis=2)
        shares = np.stack([(np.cross(q - p, point - p) * normal).sum(axis=2) for p, q in ((a, b), (b, c), (c, a))])
        inside = (shares / area).min(axis=0)
    ahead = np.where((inside >= 0) & (distance >= 0), distance, np.inf)
    order = np.sort(ahead, axis=1)
    triangle, nearest = ahead.argmin(axis=1), ahead.min(axis=1)
    slack = 1e-4 * (1 + np.abs(distance))
    close = (np.abs(inside) < 1e-3) & (distance > -slack) & (distance <= nearest[:, None] + slack)
    grazing = np.abs((way * normal).sum(axis=2)) < 1e-2 * np.linalg.norm(way, axis=2) * np.sqrt(area)
    sure = ~(close | (grazing & (inside > -0.1)) | ((np.abs(distance) < 1e-3) & (inside > -0.1))).any(axis=1)
    if order.shape[1] > 1:
        with np.errstate(invalid="ignore"):
            sure &= ~(order[:, 1] - order[:, 0] < 1e-3)
    return np.where(np.isfinite(nearest), triangle, -1), nearest, sure


def first_hits(origins, ways, corners):
    """How far along each ray the first triangle is, in float64 [Möller, Trumbore 1997]; inf where there is none."""
    one, two = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    found = np.full(len(origins), np.inf)
    for row, (origin, way) in enumerate(zip(origins, ways, strict=True)):
        across = np.cross(way, two)
        from_corner = origin - corners[:, 0]
        over = np.cross(from_corner, one)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = (one * across).sum(axis=1)
            u, v, t = (from_corner * across).sum(axis=1) / scale, over @ way / scale, (two * over).sum(axis=1) / scale
            met = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0)
        found[row] = t[met].min(initial=np.inf)
    return found
