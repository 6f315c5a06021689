"""Flow by float64 brute force: every ray against every triangle, points carried by their shares of the corners.

Nothing here calls what it checks. A ray from o along w meets a triangle a, b, c as Möller and Trumbore have it; with
one origin, all of its products are linear in w, so a block of rays is tested by matrix products.
"""

from typing import NamedTuple

import numpy as np

from setsup.correspondence import Status
from setsup.scenes import Camera, Placement, Scene, Velocity, moved
from setsup.scenes.meshes.primitives import box, cylinder, plane, sphere

LIMIT = 1 - 1e-4
EDGE_ON = 1e-9
BLOCK = 1 << 21


class Reference(NamedTuple):
    flow: np.ndarray
    status: np.ndarray
    triangle: np.ndarray
    moved: np.ndarray


def corners_of(scene):
    """Corners of all triangles, by the documented formula."""
    corners = [np.empty((0, 3, 3))]
    for one in scene.placements:
        points = (one.mesh.vertices * one.scale) @ one.rotation.T + one.translation
        corners.append(points[one.mesh.faces])
    return np.concatenate(corners)


def first_met(corners, origin, ways):
    """Nearest triangle, reach, and shares u, v of each ray; −1, inf and NaN for none."""
    count = len(ways)
    triangle, reach = np.full(count, -1), np.full(count, np.inf)
    u, v = np.full(count, np.nan), np.full(count, np.nan)
    if not len(corners):
        return triangle, reach, u, v
    a, ab, ac = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    s = origin - a
    q = np.cross(s, ab)
    normal, sideways, height = np.cross(ac, ab), np.cross(ac, s), (ac * q).sum(axis=1)
    flat = np.linalg.norm(normal, axis=1) == 0
    step = max(1, BLOCK // len(corners))
    for start in range(0, count, step):
        some = ways[start : start + step]
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / (some @ normal.T)
            first, second, far = (some @ sideways.T) * inverse, (some @ q.T) * inverse, height * inverse
            met = (first >= 0) & (second >= 0) & (first + second <= 1) & (far > 0) & ~flat
        far = np.where(met, far, np.inf)
        nearest = far.argmin(axis=1)
        rows = np.arange(len(some))
        good = np.isfinite(far[rows, nearest])
        part = slice(start, start + len(some))
        triangle[part] = np.where(good, nearest, -1)
        reach[part] = far[rows, nearest]
        u[part] = np.where(good, first[rows, nearest], np.nan)
        v[part] = np.where(good, second[rows, nearest], np.nan)
    return triangle, reach, u, v


def brute_flow(scene1, camera1, scene2, camera2, pixels, nudge=(0.0, 0.0), swing=0.0):
    """Flow (n, 2), status, triangle, and whether the triangle has moved.

    ``nudge`` moves rays of view 1 by so many pixels; ``swing`` turns rays back by about so many radians.
    """
    corners1, corners2 = corners_of(scene1), corners_of(scene2)
    at = np.asarray(pixels, float) + nudge
    ways = np.c_[at, np.ones(len(at))] @ np.linalg.inv(camera1.k).T @ camera1.rotation
    centre1, centre2 = (-camera.rotation.T @ camera.translation for camera in (camera1, camera2))
    triangle, _, u, v = first_met(corners1, centre1, ways)
    a, b, c = np.moveaxis(corners2[triangle], 1, 0) if len(corners2) else np.zeros((3, len(at), 3))
    xyz = (1 - u - v)[:, None] * a + u[:, None] * b + v[:, None] * c
    seen = (xyz @ camera2.rotation.T + camera2.translation) @ camera2.k.T
    front = seen[:, 2] > 0
    places = np.full((len(at), 2), np.nan)
    places[front] = seen[front, :2] / seen[front, 2:]
    framed = front & (places >= -0.5).all(axis=1) & (places < [camera2.width - 0.5, camera2.height - 0.5]).all(axis=1)
    status = np.where(triangle >= 0, Status.OUTSIDE, Status.NO_SURFACE)
    back = xyz[framed] - centre2
    if swing:
        back = back + swing * np.linalg.norm(back, axis=1)[:, None] * [1.0, -0.7, 0.4]
    hidden = first_met(corners2, centre2, back)[1] < LIMIT
    sides = []
    for corners, centre in ((corners1, centre1), (corners2, centre2)):
        one, two, three = np.moveaxis(corners[triangle[framed]], 1, 0)
        normal = np.cross(two - one, three - one)
        sides.append(((centre - one) * normal).sum(axis=1) / np.linalg.norm(normal, axis=1))
    hidden |= ~(np.sign(sides[0]) * sides[1] > EDGE_ON * np.linalg.norm(back, axis=1))
    status[framed] = np.where(hidden, Status.OCCLUDED, Status.VISIBLE)
    moved = np.zeros(len(at), bool)
    some = triangle >= 0
    moved[some] = (corners1[triangle[some]] != corners2[triangle[some]]).any(axis=(1, 2))
    return Reference(places - np.asarray(pixels, float) - nudge, status, triangle, moved)


def compare(scene1, camera1, scene2, camera2, pixels, found, status):
    """Errors of flow in pixels (n,), rows of wrong status, and which rows lie in the band around edges.

    A pixel lies in the band where brute force itself gives another status or surface once the ray through the pixel
    moves by 10⁻⁶ px, or the ray back by 10⁻⁹ radians.
    """
    wanted = brute_flow(scene1, camera1, scene2, camera2, pixels)
    with np.errstate(invalid="ignore"):
        error = np.linalg.norm(found - wanted.flow, axis=1)
    both = np.isnan(found).any(axis=1) & np.isnan(wanted.flow).any(axis=1)
    error = np.where(both, 0.0, np.where(np.isnan(error), np.inf, error))
    odd = np.flatnonzero((error > 1e-3) | (status != wanted.status))
    band = np.zeros(len(pixels), bool)
    if len(odd):
        nudges = [((x, y), swing) for x in (-1e-6, 1e-6) for y in (-1e-6, 1e-6) for swing in (0.0, -1e-9, 1e-9)]
        for nudge, swing in nudges:
            other = brute_flow(scene1, camera1, scene2, camera2, pixels[odd], nudge, swing)
            jump = np.nan_to_num(np.linalg.norm(other.flow - wanted.flow[odd], axis=1), nan=0.0)
            band[odd] |= (other.status != wanted.status[odd]) | (jump > 1e-3)
    wrong = np.flatnonzero((status != wanted.status) & ~band)
    return error[~band], wrong, band, wanted


def moving_scene(seed):
    """A room of things that move: two scenes, and two cameras within."""
    rng = np.random.default_rng(seed)
    placements, motions = [Placement(box((6, 5, 4)), name="room")], {}
    meshes = (box((0.6, 0.4, 0.9)), sphere(0.4, segments=12), cylinder(0.3, 0.8, segments=12), plane((0.9, 0.7)))
    for number in range(1, 9):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn *= np.sign(np.linalg.det(turn))
        at = rng.uniform([-1.8, -1.4, -1.2], [1.8, 1.4, 1.2])
        placements.append(Placement(meshes[number % 4], turn, at, rng.uniform(0.6, 1.3, 3), name=f"thing {number}"))
        if number % 2:
            motions[number] = Velocity(turn, at, rng.normal(size=3) * 0.3, rng.normal(size=3))
    scenes = [Scene(tuple(placements))]
    scenes.append(moved(scenes[0], motions, 0.7))
    cameras = []
    for shift in (0.0, 0.2):
        eye = np.array([2.4, -2.0, 0.9]) + shift * rng.normal(size=3)
        target = rng.uniform(-0.3, 0.3, 3)
        cameras.append(Camera.look_at(eye, target, height=60, width=80, field_of_view=1.1))
    return scenes[0], cameras[0], scenes[1], cameras[1]
