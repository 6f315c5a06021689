"""Triangles that overlap in one plane: rays, images and correspondences see the one that the rule names."""

import numpy as np
import pytest

from setsup.correspondence import spatial
from setsup.scenes import Camera, Mesh, Placement, Rays, Scene
from setsup.scenes.meshes.primitives import box, capsule, cylinder, plane, sphere
from setsup.scenes.surfaces.coplanar import coplanar_of
from setsup_renderers.embree import EmbreeRenderer

SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
SHEETS = {
    "one diagonal": Mesh(SQUARE, [[0, 1, 2], [0, 2, 3]]),
    "the other": Mesh(SQUARE, [[0, 1, 3], [1, 2, 3]]),
    "turned over": Mesh(SQUARE, [[0, 3, 1], [1, 3, 2]]),
    "a fan": Mesh(np.concatenate([SQUARE, [[0.1, 0.23, 0]]]), [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]),
    "a rug": Mesh(SQUARE * 0.6 + [0.13, 0.2, 0], [[0, 2, 1], [0, 3, 2]]),
    "two sides": Mesh(SQUARE, [[0, 1, 2], [0, 2, 3], [2, 1, 0], [3, 2, 0]]),
}
PAIRS = [
    ("one diagonal", "the other"), ("the other", "one diagonal"), ("a fan", "one diagonal"), ("turned over", "a fan"),
    ("one diagonal", "turned over"), ("a rug", "the other"), ("the other", "a rug"), ("two sides", "the other"),
    ("the other", "two sides"), ("a rug", "two sides"), ("a fan", "a rug", "the other"),
]  # fmt: skip


def turned(dice):
    q, _ = np.linalg.qr(dice.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def by_the_rule(scene, origin, ways):
    """Of the triangles that a ray meets where it meets the first, one that faces it, then the lowest; −1 for none."""
    a, b, c = np.moveaxis(scene.triangles.corners, 1, 0)
    normal = np.cross(b - a, c - a)
    found, clear = np.full(len(ways), -1), np.ones(len(ways), bool)
    for number, way in enumerate(ways):
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = ((a - origin) * normal).sum(1) / (normal @ way)
        point = origin + reach[:, None] * way
        sides = [np.einsum("ij,ij->i", np.cross(q - p, point - p), normal) for p, q in ((a, b), (b, c), (c, a))]
        least = np.min(sides, axis=0) / (normal**2).sum(1)
        clear[number] = (np.abs(least) > 1e-5).all()  # not on an edge
        met = (least > 0) & (reach > 0)
        if met.any():
            together = np.flatnonzero(met & (reach < reach[met].min() + 1e-9))
            found[number] = min(together, key=lambda one: (bool(normal[one] @ way > 0), int(one)))
    return found, clear


@pytest.mark.long("Ray clusters")
@pytest.mark.parametrize("names", PAIRS, ids=" and ".join)
def test_rays_images_and_correspondences_see_the_same(names):
    dice = np.random.default_rng(len("".join(names)))
    for rotation, at, scale in ((np.eye(3), np.zeros(3), 1.0), (turned(dice), dice.normal(size=3), 2.3)):
        scene = Scene(tuple(Placement(SHEETS[name], rotation, at, (scale,) * 3) for name in names))
        for side in (2.5, -2.5):
            eye = rotation @ (np.array([0.43, 0.91, side]) * scale) + at
            camera = Camera.look_at(eye, at, height=20, width=22, field_of_view=0.9)
            wanted, clear = by_the_rule(scene, camera.centre, camera.rays())
            assert clear.sum() > 400
            assert len(set(wanted[clear].tolist())) >= 3
            triangle = Rays(scene).hit(camera.centre, camera.rays())[0]
            assert np.array_equal(triangle[clear], wanted[clear])
            renderer = EmbreeRenderer()
            renderer.load(scene)
            frame = renderer.render(camera)
            assert np.array_equal(frame.triangle.ravel()[clear], wanted[clear])
            instance = np.append(scene.triangles.instance, -1)[wanted]
            assert np.array_equal(spatial(scene, camera, camera).instance[clear], instance[clear])


def test_where_a_triangle_is_met_is_told_of_the_one_that_is_seen():
    scene = Scene((Placement(SHEETS["a fan"]), Placement(SHEETS["the other"])))
    ways = np.c_[np.random.default_rng(0).uniform(-0.9, 0.9, (200, 2)), np.full(200, -2.0)]
    for one in (scene, Scene(scene.placements[::-1])):
        hits = Rays(one).trace((0, 0, 2), ways)
        shares = np.stack([1 - hits.u - hits.v, hits.u, hits.v], axis=1)
        points = np.einsum("ij,ijk->ik", shares, one.triangles.corners[hits.triangle])
        np.testing.assert_allclose(points, ways + np.array([0, 0, 2]), atol=1e-6)


@pytest.mark.parametrize("tilt", [False, True])
def test_neighbours_do_not_overlap(tilt):
    dice = np.random.default_rng(3)
    rotation = turned(dice) if tilt else np.eye(3)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 31), np.linspace(0, 1, 31), [0.0], indexing="ij"), axis=-1)
    corner = np.arange(30 * 31).reshape(30, 31)[:, :-1].ravel()
    faces = np.concatenate([corner[:, None] + [0, 1, 31], corner[:, None] + [1, 32, 31]])
    tiles = [Placement(plane((1, 1)), rotation, rotation @ [x, y, 3.0]) for x in range(4) for y in range(4)]
    for mesh in (box(), sphere(), cylinder(), capsule(), plane(), Mesh(grid.reshape(-1, 3), faces)):
        assert coplanar_of(Scene((Placement(mesh, rotation, dice.normal(size=3)), *tiles))) is None


def test_what_is_a_little_apart_is_not_in_one_plane():
    sheets = [Placement(SHEETS[name], translation=(0, 0, 1e-5 * n)) for n, name in enumerate(SHEETS)]
    scene = Scene(tuple(sheets))
    assert coplanar_of(scene) is None
    triangle, _ = Rays(scene).hit((0.3, 0.2, 0.5), [[0.01, 0.02, -1]])
    assert scene.triangles.instance[triangle].tolist() == [len(SHEETS) - 1]
