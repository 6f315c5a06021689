"""Correspondences by float64 brute force, every ray against every triangle, and the checks that stand on it.

Nothing here calls what it checks: positions, projections and rays are written out from the numbers of scenes and
cameras. The checks are functions, so that the test of planted errors can call the same ones.
"""

from dataclasses import dataclass

import numpy as np

from setsup.correspondence import PixelPairs, Status, planar, spatial
from setsup.scenes import Camera, Mesh, Placement, Scene

LIMIT = 1 - 1e-4
CHUNK = 1 << 19


@dataclass
class Reference:
    points2: np.ndarray
    xyz: np.ndarray
    triangle: np.ndarray
    instance: np.ndarray
    status: np.ndarray


def corners_of(scene):
    """Corners of all triangles, and the instance of each, by the documented formula."""
    corners, instances = [np.empty((0, 3, 3))], [np.empty(0, int)]
    for number, one in enumerate(scene.placements):
        points = np.array([one.rotation @ (one.scale * p) + one.translation for p in one.mesh.vertices])
        corners.append(points[one.mesh.faces])
        instances.append(np.full(len(one.mesh.faces), number if one.instance is None else one.instance))
    return np.concatenate(corners), np.concatenate(instances)


def meetings(corners, origin, ways):
    """Where each ray meets each triangle (Möller–Trumbore), (n, f); inf where it does not."""
    a, ab, ac = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    p = np.cross(ways[:, None], ac[None])
    det = np.einsum("nfi,fi->nf", p, ab)
    s = origin - a
    q = np.cross(s, ab)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.einsum("nfi,fi->nf", p, s) / det
        v = (ways @ q.T) / det
        t = (ac * q).sum(1) / det
        met = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0) & (np.linalg.norm(np.cross(ab, ac), axis=1) > 0)
    return np.where(met, t, np.inf)


def first_met(corners, origin, ways):
    """Nearest triangle and reach of each ray; −1 and inf for none."""
    triangle, reach = np.full(len(ways), -1), np.full(len(ways), np.inf)
    if len(corners):
        step = max(1, CHUNK // len(corners))
        for start in range(0, len(ways), step):
            t = meetings(corners, origin, ways[start : start + step])
            nearest = t.argmin(axis=1)
            reach[start : start + step] = t[np.arange(len(t)), nearest]
            triangle[start : start + step] = np.where(np.isfinite(reach[start : start + step]), nearest, -1)
    return triangle, reach


def brute_force(scene, camera1, camera2, pixels, nudge=None):
    """What correspondences are; ``nudge`` (n, 2) pixels moves the rays of view 1, and those back by as much."""
    corners, instances = corners_of(scene)
    at = np.asarray(pixels, float) + (0 if nudge is None else nudge)
    centre1, centre2 = (-camera.rotation.T @ camera.translation for camera in (camera1, camera2))
    ways = (camera1.rotation.T @ np.linalg.inv(camera1.k) @ np.c_[at, np.ones(len(at))].T).T
    triangle, reach = first_met(corners, centre1, ways)
    seen = triangle >= 0
    xyz = np.full((len(at), 3), np.nan)
    xyz[seen] = centre1 + reach[seen, None] * ways[seen]
    flat = (camera2.k @ (camera2.rotation @ xyz.T + camera2.translation[:, None])).T
    points2 = np.full((len(at), 2), np.nan)
    front = flat[:, 2] > 0
    points2[front] = flat[front, :2] / flat[front, 2:]
    framed = front & (points2 >= -0.5).all(1) & (points2 < [camera2.width - 0.5, camera2.height - 0.5]).all(1)
    status = np.where(seen, Status.OUTSIDE, Status.NO_SURFACE)
    back = xyz[framed] - centre2
    if nudge is not None:
        back = back * (1 + 1e-9 * np.sign(nudge[framed, :1])) + 1e-9 * np.linalg.norm(back, axis=1)[:, None] * np.sign(
            np.c_[nudge[framed], nudge[framed, :1] * nudge[framed, 1:]]
        )
    status[framed] = np.where(first_met(corners, centre2, back)[1] < LIMIT, Status.OCCLUDED, Status.VISIBLE)
    instance = np.full(len(at), -1)
    instance[seen] = instances[triangle[seen]]
    return Reference(points2, xyz, triangle, instance, status)


def compare(scene, camera1, camera2, pixels, found=None):
    """Errors of partners in pixels, and the rows whose status is wrong, without those whose reference flips."""
    found = spatial(scene, camera1, camera2, pixels) if found is None else found
    wanted = brute_force(scene, camera1, camera2, pixels)
    with np.errstate(invalid="ignore"):
        error = np.linalg.norm(found.points2 - wanted.points2, axis=1)
    error[np.isnan(found.points2).all(1) & np.isnan(wanted.points2).all(1)] = 0
    error[np.isnan(error)] = np.inf
    odd = np.flatnonzero((found.status != wanted.status) | (error > 1e-6) | (found.instance != wanted.instance))
    flips = np.zeros(len(odd), bool)
    for nudge in np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]]) * 1e-9 * max(camera1.k[0, 0], 1):
        if len(odd):
            moved = brute_force(scene, camera1, camera2, pixels[odd], np.tile(nudge, (len(odd), 1)))
            with np.errstate(invalid="ignore"):
                far = np.linalg.norm(moved.points2 - wanted.points2[odd], axis=1) > 1e-4
            flips |= (moved.status != wanted.status[odd]) | (moved.instance != wanted.instance[odd]) | far
    stays = np.ones(len(pixels), bool)
    stays[odd[flips]] = False
    wrong = stays & (found.status != wanted.status)
    return error[stays], np.flatnonzero(wrong), found, wanted, int(flips.sum())


def check_brute_force(scene, camera1, camera2, pixels):
    """Statuses are those of brute force, partners agree to 10⁻⁶ px, points to 10⁻⁹ of their distance."""
    error, wrong, found, wanted, _ = compare(scene, camera1, camera2, pixels)
    assert not len(wrong), [(pixels[i], Status(found.status[i]), Status(int(wanted.status[i]))) for i in wrong[:5]]
    assert len(error) == 0 or np.quantile(error, 0.999) < 1e-6
    same = found.instance == wanted.instance
    assert same.mean() > 0.99
    with np.errstate(invalid="ignore"):
        off = np.linalg.norm(found.xyz - wanted.xyz, axis=1)[same]
    distance = np.linalg.norm(wanted.xyz - camera1.centre, axis=1)[same]
    assert np.nanquantile(off / distance, 0.99) < 1e-9 if np.isfinite(off).any() else True
    return found
