"""Correspondences by float64 brute force, every ray against every triangle, and the checks that stand on it.

Nothing here calls what it checks: positions, projections and rays are written out from the numbers of scenes and
cameras. The checks are functions, so that the test of planted errors can call the same ones.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from setsup.correspondence import PixelPairs, Status, partners, planar, spatial
from setsup.correspondence.from_depth import from_depth, recorded_camera
from setsup.scenes import Camera, Mesh, Placement, Scene
from setsup.scenes.meshes.primitives import box, cylinder, plane, sphere

LIMIT = 1 - 1e-4
EDGE_ON = 1e-9
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


def brute_force(scene, camera1, camera2, pixels, nudge=None, moved=((0, 0, 0), (0, 0, 0)), both_sides=False):
    """What correspondences are.

    ``nudge`` (n, 2) pixels moves the rays of view 1, and those back by as much; ``moved`` (2, 3) metres the cameras.
    """
    corners, instances = corners_of(scene)
    at = np.asarray(pixels, float) + (0 if nudge is None else nudge)
    centre1, centre2 = (
        -one.rotation.T @ one.translation + by for one, by in zip((camera1, camera2), moved, strict=True)
    )
    ways = (camera1.rotation.T @ np.linalg.inv(camera1.k) @ np.c_[at, np.ones(len(at))].T).T
    triangle, reach = first_met(corners, centre1, ways)
    seen = triangle >= 0
    xyz = np.full((len(at), 3), np.nan)
    xyz[seen] = centre1 + reach[seen, None] * ways[seen]
    flat = (camera2.k @ (camera2.rotation @ (xyz - moved[1]).T + camera2.translation[:, None])).T
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
    hidden = first_met(corners, centre2, back)[1] < LIMIT
    if not both_sides:
        a, b, c = np.moveaxis(corners[triangle[framed]], 1, 0)
        normal = np.cross(b - a, c - a)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        side1 = np.sign((normal * (centre1 - a)).sum(axis=1))
        height2 = (normal * (centre2 - xyz[framed])).sum(axis=1)
        hidden |= ~(side1 * height2 > EDGE_ON * np.linalg.norm(centre2 - xyz[framed], axis=1))
    status[framed] = np.where(hidden, Status.OCCLUDED, Status.VISIBLE)
    instance = np.full(len(at), -1)
    instance[seen] = instances[triangle[seen]]
    return Reference(points2, xyz, triangle, instance, status)


def compare(scene, camera1, camera2, pixels, found=None, both_sides=False):
    """Compare with brute force, but for pixels whose reference changes when rays or cameras move by a rounding error.

    Returns errors of partners, rows whose status or instance is wrong, what was found and what is right of all rows,
    and which rows do not count; the errors are of those that do.
    """
    found = spatial(scene, camera1, camera2, pixels, both_sides=both_sides) if found is None else found
    wanted = brute_force(scene, camera1, camera2, pixels, both_sides=both_sides)
    error, off = unlike(found, wanted, camera1, camera2)
    differs = (found.status != wanted.status) | (found.instance != wanted.instance)
    odd = np.flatnonzero(differs | (error > 1e-6) | (off > 1e-9))[:100]  # more are no matter of rounding
    flips = np.zeros(len(pixels), bool)
    some = Reference(*(column[odd] for column in vars(wanted).values()))
    for moved in movements(scene, camera1, camera2, pixels[odd], both_sides) if len(odd) else ():
        flips[odd] |= (moved.status != some.status) | (moved.instance != some.instance)
        flips[odd] |= (np.stack(unlike(moved, some, camera1, camera2)) > 1e-4).any(axis=0)
    return error[~flips], np.flatnonzero(differs & ~flips), found, wanted, flips


def unlike(found, wanted, camera1, camera2):
    """How far partners are apart, see :func:`apart`, and points, as a share of their distance from camera 1."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a point may lie in the camera
        off = np.linalg.norm(found.xyz - wanted.xyz, axis=1) / np.linalg.norm(wanted.xyz - camera1.centre, axis=1)
    return apart(camera2, found.points2, wanted.points2), np.nan_to_num(off)


def movements(scene, camera1, camera2, pixels, both_sides=False):
    """What is right where rays move by 10⁻⁹ of the focal length, and cameras by the rounding of their places."""
    nudges = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]]) * 1e-9 * max(camera1.k[0, 0], 1)
    # cameras are given by R and t, and stand at −Rᵀt
    rounding = 4 * np.finfo(float).eps * max(np.abs(camera.translation).max() for camera in (camera1, camera2))
    octants = rounding * np.stack(np.meshgrid(*[[-1, 1]] * 3), axis=-1).reshape(-1, 3)
    moves = [np.zeros((2, 3)), *(np.stack([one, turn * one]) for one in octants for turn in (1, -1))]
    for nudge, moved in product(nudges, moves):
        yield brute_force(scene, camera1, camera2, pixels, np.tile(nudge, (len(pixels), 1)), moved, both_sides)


def apart(camera, one, two):
    """Angles between places of a picture as the camera sees them, (n,), in pixels of its middle.

    In pixels of their own, places whose depth is 0 but for rounding may be 10¹⁷ apart, or one of them none (NaN).
    """
    focal, middle = camera.k[[0, 1], [0, 1]], camera.k[:2, 2]
    length1, length2 = (np.sqrt(1 + (((places - middle) / focal) ** 2).sum(axis=1)) for places in (one, two))
    with np.errstate(invalid="ignore"):
        found = np.linalg.norm(one - two, axis=1) / length2**2
    # none is 90° or more from the axis: at least so far is the other one from there
    none1, none2 = np.isnan(length1), np.isnan(length2)
    found = np.where(none1, focal[0] / length2, np.where(none2, focal[0] / length1, found))
    return np.where(none1 & none2, 0, found)


def turned(rng):
    """A uniform rotation."""
    return quaternion(rng.normal(size=4))


def quaternion(q):
    """The rotation of a quaternion of any length."""
    w, x, y, z = np.array(q) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_scene(seed):
    """Solids, sheets and loose triangles of 1 cm to 100 m, near the origin or far; two cameras in and around."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-2, 2)
    away = rng.normal(size=3) * scale * rng.choice([0, 1, 100])
    placements = []
    for _ in range(rng.integers(1, 9)):
        kind = rng.integers(5)
        if kind == 0:
            mesh = box(rng.uniform(0.1, 1, 3))
        elif kind == 1:
            mesh = sphere(rng.uniform(0.1, 0.6), segments=int(rng.integers(4, 24)))
        elif kind == 2:
            mesh = plane(rng.uniform(0.3, 3, 2))
        elif kind == 3:
            mesh = cylinder(rng.uniform(0.05, 0.5), rng.uniform(0.1, 1.5), segments=int(rng.integers(3, 24)))
        else:
            mesh = Mesh(rng.normal(size=(30, 3)) * 0.5, rng.integers(0, 30, (40, 3)))
        at = away + scale * rng.uniform(-1.2, 1.2, 3)
        placements.append(Placement(mesh, turned(rng), at, scale * rng.uniform(0.5, 1.5, 3)))
    if rng.random() < 0.5:
        placements.append(Placement(box((6, 5, 4)), translation=away, scale=(scale,) * 3))
    cameras = []
    for _ in range(2):
        eye = away + scale * rng.uniform(-2.4, 2.4, 3) * (1, 0.9, 0.7)
        target = away + scale * rng.uniform(-0.7, 0.7, 3)
        height, width = (int(side) for side in rng.integers(40, 90, 2))
        cameras.append(Camera.look_at(eye, target, height=height, width=width, field_of_view=rng.uniform(0.4, 1.6)))
    return Scene(tuple(placements)), *cameras


def some_pixels(camera, count, seed):
    """Places all over a picture, between the centres of pixels."""
    rng = np.random.default_rng(seed)
    return np.c_[rng.uniform(-0.5, camera.width - 0.5, count), rng.uniform(-0.5, camera.height - 0.5, count)]


def furnished():
    """A room, a box and a ball, and two cameras that see most of them; everything turned a little."""
    rng = np.random.default_rng(4)
    scene = Scene(
        (
            Placement(box((6, 5, 3)), quaternion((1, 0.03, -0.02, 0.05)), name="room"),
            Placement(box((0.8, 0.5, 1.1)), turned(rng), (0.3, 0.2, -0.4), instance=7),
            Placement(sphere(0.5, segments=16), translation=(-0.7, -0.6, 0.1)),
        )
    )
    camera1 = Camera.look_at((1.5, -1.4, 0.6), (0, 0, -0.1), height=60, width=80, field_of_view=1.0)
    camera2 = Camera.look_at((0.4, -1.9, 0.9), (-0.1, 0, -0.2), height=72, width=64, field_of_view=1.2)
    skewed = np.array([[70.0, 1.5, 41.0], [0, 66.0, 27.0], [0, 0, 1]])
    return scene, Camera(60, 80, skewed, camera1.rotation, camera1.translation), camera2


def check_brute_force(scene, camera1, camera2, pixels, both_sides=False):
    """Statuses and instances are those of brute force, partners agree to 10⁻⁶ px, points to 10⁻⁹ of distances."""
    error, wrong, found, wanted, flips = compare(scene, camera1, camera2, pixels, both_sides=both_sides)
    assert not len(wrong), [(pixels[i], Status(found.status[i]), Status(int(wanted.status[i]))) for i in wrong[:5]]
    assert len(error) == 0 or np.quantile(error, 0.999) < 1e-6
    off = unlike(found, wanted, camera1, camera2)[1][~flips]
    assert len(off) == 0 or np.quantile(off, 0.99) < 1e-9
    return found


def check_scene():
    """A furnished room beside brute force, from skewed and unlike cameras."""
    scene, camera1, camera2 = furnished()
    found = check_brute_force(scene, camera1, camera2, some_pixels(camera1, 1500, 0))
    assert np.bincount(found.status, minlength=3)[:3].min() > 100


def boards():
    """A sheet, two thin boards, a sheet whose sides are triangles of their own, and a wall behind them."""
    sheet = plane((1.2, 0.8))
    twice = Mesh(sheet.vertices, np.concatenate([sheet.faces, sheet.faces[:, ::-1]]))
    upright = quaternion((1, 1, 0, 0))
    return Scene(
        (
            Placement(sheet, quaternion((1, 0.9, 0.1, 0.2)), (-0.8, 0.3, 0.1)),
            Placement(box((0.9, 1.0, 1e-4)), quaternion((1, 0.8, 0.2, -0.1)), (0.6, 0.2, 0.2)),
            Placement(twice, quaternion((1, -0.1, 0.3, 0.2)), (0.1, 0.4, -0.7)),
            Placement(box((0.7, 0.5, 0.02)), quaternion((1, 0.9, 0.1, 0.1)), (-0.1, 0.35, 0.5)),
            Placement(plane((4, 4)), upright, (0, 1.6, 0)),
        )
    )


def check_sides():
    """What camera 2 sees from the other side is hidden there; unless either side will do."""
    scene = boards()
    front = Camera.look_at((0.2, -2.5, 0.4), (0, 0.3, 0), height=60, width=80, field_of_view=1.0)
    beside = Camera.look_at((1.1, -2.2, -0.2), (0, 0.3, 0), height=60, width=80, field_of_view=1.0)
    behind = Camera.look_at((0.4, 3.4, 0.9), (0, 0.3, 0), height=60, width=80, field_of_view=1.2)
    between = Camera.look_at((-0.9, 1.2, 0.3), (0.2, 0.3, -0.2), height=60, width=80, field_of_view=1.4)
    for one, two, seen, more in ((front, beside, 500, 0), (front, between, 0, 100), (between, front, 0, 100)):
        pixels = some_pixels(one, 1200, 0)
        visible = check_brute_force(scene, one, two, pixels).visible
        either = check_brute_force(scene, one, two, pixels, both_sides=True).visible
        assert visible.sum() >= seen
        assert (either & ~visible).sum() >= more
        assert not (visible & ~either).any()
    assert not check_brute_force(scene, front, behind, some_pixels(front, 1200, 0)).visible.any()


def check_all_pixels():
    """By default all pixels are found, row after row, at their centres."""
    scene, camera1, camera2 = furnished()
    found = spatial(scene, camera1, camera2)
    y, x = np.divmod(np.arange(camera1.height * camera1.width), camera1.width)
    assert np.array_equal(found.points1, np.c_[x, y])
    some = np.arange(0, len(y), 7)
    wanted = brute_force(scene, camera1, camera2, np.c_[x, y][some])
    assert (found.status[some] == wanted.status).mean() > 0.999
    assert np.nanmax(np.abs(found.points2[some] - wanted.points2)) < 1e-6


def check_homography():
    """Partners on a plane are those of the homography that it induces, K₂ (R − t nᵀ / d) K₁⁻¹."""
    wall = Placement(plane((40, 40)), quaternion((1, 0.8, 0.1, 0.2)), (0.5, 6.0, 0.2))
    normal = wall.rotation[:, 2]
    camera1 = Camera.look_at((0, 0, 0), wall.translation, height=50, width=70, field_of_view=0.9)
    camera2 = Camera.look_at((1.0, 0.5, 0.7), wall.translation, height=60, width=60, field_of_view=1.1, up=(0.2, 0, 1))
    rotation = camera2.rotation @ camera1.rotation.T
    shift = camera2.translation - rotation @ camera1.translation
    # in the first camera's frame the plane is n · X = d
    inward = camera1.rotation @ normal
    away = normal @ wall.translation + inward @ camera1.translation
    matrix = camera2.k @ (rotation + np.outer(shift, inward) / away) @ np.linalg.inv(camera1.k)
    pixels = some_pixels(camera1, 300, 2)
    found = spatial(Scene((wall,)), camera1, camera2, pixels)
    wanted = np.c_[pixels, np.ones(len(pixels))] @ matrix.T
    assert (found.status != Status.NO_SURFACE).all()
    assert (found.status != Status.OCCLUDED).all()
    np.testing.assert_allclose(found.points2, wanted[:, :2] / wanted[:, 2:], atol=1e-8)


def check_there_and_back():
    """The partner of a partner is the pixel itself."""
    scene, camera1, camera2 = furnished()
    found = spatial(scene, camera1, camera2, some_pixels(camera1, 2000, 3))
    found = found.select(found.visible)
    back = spatial(scene, camera2, camera1, found.points2)
    near = np.linalg.norm(back.points2 - found.points1, axis=1) < 1e-7
    assert len(near) > 500
    assert near.mean() > 0.998  # what stands closer to a point than 10⁻⁴ of its distance does not hide it
    assert back.visible[near].all()


def check_windows():
    """Cameras of a window, or of another size, find what is found by carrying the pairs."""
    scene, camera1, camera2 = furnished()
    pixels = some_pixels(camera1, 1500, 4)
    pairs = spatial(scene, camera1, camera2, pixels)
    window1, window2 = camera1.windowed(11, 6, 40, 50), camera2.resized(36, 96)
    moved = pairs.carried(planar.crop(11, 6), planar.resize(72, 64, 36, 96), (40, 50), (36, 96))
    found = spatial(scene, window1, window2, moved.points1)
    assert np.array_equal(found.status, moved.status)
    assert len(found) > 300
    np.testing.assert_allclose(found.points2, moved.points2, atol=1e-7)


def coordinates(height, width):
    """A picture whose values are the places of its own pixels, (1, 2, h, w): x, then y."""
    y, x = torch.meshgrid(torch.arange(height) * 1.0, torch.arange(width) * 1.0, indexing="ij")
    return torch.stack([x, y])[None].double()


def resampled(picture, steps):
    """Apply crops (left, top, height, width), flips ("x", "y") and resizes (height, width), and tell their matrix."""
    matrix = np.eye(3)
    for step in steps:
        height, width = picture.shape[-2:]
        if step == "x":
            picture, one = picture.flip(-1), planar.flip_x(width)
        elif step == "y":
            picture, one = picture.flip(-2), planar.flip_y(height)
        elif len(step) == 4:
            left, top, high, wide = step
            picture, one = picture[..., top : top + high, left : left + wide], planar.crop(left, top)
        else:
            picture = torch.nn.functional.interpolate(picture, size=step, mode="bilinear", align_corners=False)
            one = planar.resize(height, width, *step)
        matrix = planar.compose(matrix, one)
    return picture, matrix


def check_resampling():
    """Pairs follow both views through crops, flips and resizes as pictures of coordinates do."""
    size1, size2 = (60, 80), (72, 64)
    steps1, steps2 = ["x", (10, 8, 40, 60), (100, 90)], [(4, 12, 50, 56), "y", (75, 28), (2, 3, 70, 24)]
    (pictured1, matrix1), (pictured2, matrix2) = (
        resampled(coordinates(*size1), steps1),
        resampled(coordinates(*size2), steps2),
    )
    # every pixel of the new view 1 is a pair whose place in the old picture the picture tells; so for view 2
    rng = np.random.default_rng(5)
    olds, news = [], []
    for picture in (pictured1, pictured2):
        height, width = picture.shape[-2:]
        # bilinear resizing repeats the border: places inside only
        y, x = rng.integers(3, height - 3, 400), rng.integers(3, width - 3, 400)
        olds.append(picture[0, :, y, x].T.numpy())
        news.append(np.c_[x, y])
    blank = np.zeros(400)
    pairs = PixelPairs(olds[0], olds[1], np.zeros((400, 3)), blank, blank)
    moved = pairs.carried(matrix1, matrix2, pictured1.shape[-2:], pictured2.shape[-2:])
    assert len(moved) == 400
    assert moved.visible.all()
    np.testing.assert_allclose(moved.points1, news[0], atol=1e-9)
    np.testing.assert_allclose(moved.points2, news[1], atol=1e-9)


def check_depth():
    """Partners by depth are those by tracing, where depth is exact; cameras come from poses."""
    scene, camera1, camera2 = furnished()
    depths = []
    for camera in (camera1, camera2):
        y, x = np.divmod(np.arange(camera.height * camera.width), camera.width)
        xyz = brute_force(scene, camera, camera, np.c_[x, y]).xyz
        depth = (xyz @ camera.rotation.T + camera.translation)[:, 2]
        depths.append(np.nan_to_num(depth).reshape(camera.height, camera.width))
    recorded = []
    for camera in (camera1, camera2):
        pose = np.linalg.inv(np.block([[camera.rotation, camera.translation[:, None]], [np.eye(4)[3:]]]))
        recorded.append(recorded_camera(pose, camera.k, camera.height, camera.width))
    found = from_depth(*depths, *recorded, tolerance=0.02)
    y, x = np.divmod(np.arange(60 * 80), 80)
    wanted = brute_force(scene, camera1, camera2, np.c_[x, y])
    seen = wanted.status != Status.NO_SURFACE
    assert seen.sum() > 3000
    assert np.array_equal(np.isfinite(found.xyz[:, 0]), seen)
    np.testing.assert_allclose(found.xyz[seen], wanted.xyz[seen], atol=1e-8)
    np.testing.assert_allclose(found.points2[seen], wanted.points2[seen], atol=1e-6)
    truly, called = wanted.status == Status.VISIBLE, found.visible
    assert (called & truly).sum() / truly.sum() > 0.9
    assert (called & ~truly).sum() / called.sum() < 0.05


def check_partners():
    """Flat indices lead from pixels of view 1 to the nearest pixel of view 2."""
    scene, camera1, camera2 = furnished()
    pairs = spatial(scene, camera1, camera2, fraction=1 / 4, key=5)
    found = partners(pairs, (60, 80), (72, 64), key=9)
    positive = {}
    for p, q, visible in zip(pairs.points1, pairs.points2, pairs.visible, strict=True):
        if visible:
            positive[int(p[1]) * 80 + int(p[0])] = round(q[1]) * 64 + round(q[0])
    assert len(positive) > 500
    assert np.flatnonzero(found.positive).tolist() == sorted(positive)
    assert found.partner[found.positive].tolist() == [positive[flat] for flat in sorted(positive)]
    # on the surface, neighbouring pixels of view 2 show what is near in space
    rays2 = brute_force(scene, camera2, camera1, np.stack(np.divmod(found.partner[found.positive], 64)[::-1], axis=1))
    where = dict(zip((pairs.points1 @ (1, 80)).astype(int).tolist(), pairs.xyz, strict=True))
    away = np.linalg.norm(rays2.xyz - np.array([where[flat] for flat in sorted(positive)]), axis=1)
    assert np.median(away) < 0.05


CHECKS = (
    check_scene,
    check_sides,
    check_all_pixels,
    check_homography,
    check_there_and_back,
    check_windows,
    check_resampling,
    check_depth,
    check_partners,
)
