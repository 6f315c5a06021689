"""Holes of materials beside the same surfaces cut out, triangle by triangle."""

import pickle
import sys

import numpy as np
import pytest

from setsup.errors import SetsupError
from setsup.scenes import Material, Mesh, Placement, Rays, Scene, load_scene, save_scene
from setsup.scenes.meshes.primitives import plane
from setsup.scenes.surfaces.coincident import hidden_sides
from tests.scenes.pierced import BELOW, CAMERA, MASK, OTHER, cut_out, scene, sheet

HALF = np.array([[True, False]])


def test_a_mask_is_part_of_a_material(tmp_path):
    plain, texture = Material((1, 2, 3)), np.zeros((2, 3, 3), np.uint8)
    # as before there were masks
    assert plain.digest == "d78d1c4dc60e5abeec4e7c4b10170499c3697205dd031c405770a782f8a9db27"
    assert Material((1, 2, 3), mask=np.ones((4, 4), bool)).digest == plain.digest
    found = [Material((1, 2, 3), texture, mask) for mask in (None, np.eye(2, 3, dtype=bool), ~np.eye(2, 3, dtype=bool))]
    assert len({one.digest for one in found}) == 3
    again = pickle.loads(pickle.dumps(found[1]))
    assert again.digest == found[1].digest
    assert not again.mask.flags.writeable
    whole = scene(sheet)
    save_scene(whole, tmp_path / "a.scene")
    loaded = load_scene(tmp_path / "a.scene")
    assert loaded.digest == whole.digest
    assert np.array_equal(loaded.placements[1].mesh.materials[0].mask, MASK)


@pytest.mark.parametrize("mask", [np.ones(3, bool), np.ones((2, 2)), np.zeros((0, 2), bool), np.zeros((3, 2), bool)])
def test_what_is_no_mask(mask):
    with pytest.raises(SetsupError, match="the mask of a material"):
        Material((1, 2, 3), np.zeros((2, 3, 3), np.uint8), mask)


@pytest.mark.long("Ray clusters")
@pytest.mark.parametrize("engine", ["embree", "trimesh"])
def test_rays_go_through_holes(engine, monkeypatch):
    if engine == "trimesh":
        pytest.importorskip("rtree")
        for name in ("embreex", "embreex.rtcore_scene", "embreex.mesh_construction"):
            monkeypatch.setitem(sys.modules, name, None)
    pierced, solid = scene(sheet), scene(cut_out)
    for camera in (CAMERA, BELOW, OTHER) if engine == "embree" else (CAMERA,):
        pixels = camera.pixels()[:: 1 if engine == "embree" else 61]
        one, two = (Rays(each).trace(camera.centre, camera.rays(pixels)) for each in (pierced, solid))
        instances = [
            np.append(each.triangles.instance, -1)[hits.triangle] for each, hits in ((pierced, one), (solid, two))
        ]
        assert (instances[0] != instances[1]).mean() < 2e-3
        assert len(set(instances[0].tolist())) > 3
        same = (instances[0] == instances[1]) & (instances[0] >= 0)
        np.testing.assert_allclose(one.distance[same], two.distance[same], rtol=1e-5)
        for reach in (0.5, 1.0, np.inf):
            blocked = [Rays(each).blocked(camera.centre, camera.rays(pixels) * 2.5, reach) for each in (pierced, solid)]
            assert (blocked[0] != blocked[1]).mean() < 2e-3


def test_far_and_gigantic_and_tiny_scenes():
    for size, away in ((1e-3, 0.0), (1.0, 1e5), (1e4, 0.0)):
        pair = [
            Scene((Placement(make(MASK), scale=(size,) * 3, translation=(away,) * 3),)) for make in (sheet, cut_out)
        ]
        origin = np.array([0.3, -0.4, 3.0]) * size + away
        across = np.random.default_rng(1).uniform(-1.2, 1.2, (500, 2))
        ways = np.c_[across * size, np.zeros(500)] + away - origin
        found = [Rays(each).hit(origin, ways)[0] >= 0 for each in pair]
        assert (found[0] != found[1]).sum() <= 2
        assert 100 < found[0].sum() < 400


def test_many_layers():
    """Rays through the holes of a hundred sheets meet the floor, and one that has none."""
    layers = [Placement(sheet(HALF), translation=(0, 0, -0.01 * number)) for number in range(100)]
    rays = Rays(Scene((*layers, Placement(plane((2, 2)), translation=(0, 0, -2)))))
    triangle, distance = rays.hit((0, 0, 1), [[0.5, 0.3, -1], [-0.5, 0.3, -1], [0.2, 0.1, -3], [0.5, 0, 1]])
    assert (triangle // 2).tolist() == [-1, 0, 100, -1]
    assert distance[[1, 2]].tolist() == pytest.approx([1, 1])
    ends = [[0.4, 0.2, -3], [-0.4, 0.2, -3]]
    assert rays.blocked((0, 0, 1), ends, 0.9).tolist() == [False, True]
    assert rays.blocked((0, 0, 1), ends, np.inf).tolist() == [True, True]


def test_a_mesh_without_texture_coordinates_has_no_holes():
    mesh = sheet(np.zeros((2, 2), bool))
    bare = Mesh(mesh.vertices, mesh.faces, materials=mesh.materials)
    assert Rays(Scene((Placement(bare),))).hit((0.1, 0.2, 1), [[0, 0, -1]])[0].tolist() != [-1]
    assert Rays(Scene((Placement(mesh),))).hit((0.1, 0.2, 1), [[0, 0, -1]])[0].tolist() == [-1]


def test_a_sheet_with_holes_shows_what_is_in_its_place():
    """A decal on a wall, of the same corners or of others: the wall is seen through its holes, the decal elsewhere."""
    wall = plane((2, 2))
    larger = plane((3, 3))
    for behind in (wall, larger):
        for order in (0, 1):
            placed = [Placement(behind, instance=0), Placement(sheet(HALF), instance=1)]
            one = Scene(tuple(placed[::-1] if order else placed))
            hit = Rays(one).hit((0, 0, 2), [[0.51, 0.3, -2], [-0.51, 0.3, -2]])[0]
            assert one.triangles.instance[hit].tolist() == [0, 1]
            assert not hidden_sides(one).any()


def test_the_two_sides_of_a_leaf():
    """Every triangle twice, with one mask and two colours: the side that faces the viewer is seen, and holes are."""
    mesh = sheet(HALF)
    leaf = Mesh(
        np.tile(mesh.vertices, (2, 1)),
        np.concatenate([mesh.faces, mesh.faces[:, ::-1] + 4]),
        uv=np.tile(mesh.uv, (2, 1)),
        materials=(
            Material((0, 200, 0), mask=mesh.materials[0].mask),
            Material((0, 90, 0), mask=mesh.materials[0].mask),
        ),
        material=[0, 0, 1, 1],
    )
    rays = Rays(Scene((Placement(leaf),)))
    for z, side in ((1, 0), (-1, 1)):
        triangle, _ = rays.hit((0, 0, z), [[-0.5, 0.3, -z], [0.5, 0.3, -z]])
        assert (triangle // 2).tolist() == [side, -1]
