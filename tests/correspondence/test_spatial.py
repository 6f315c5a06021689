"""Traced correspondences beside float64 brute force over all triangles, and where they are known by formulas."""

import gc
import itertools
import json
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from setsup.correspondence import Status, spatial
from setsup.correspondence.spatial import drawn_pixels
from setsup.correspondence.spatial_rays import exact_rays
from setsup.errors import SetsupError
from setsup.scenes import Camera, Mesh, Placement, Rays, Scene, load_mesh
from setsup.scenes.meshes.primitives import box, plane, sphere
from tests.correspondence.brute_force import (
    CHECKS,
    brute_force,
    check_brute_force,
    compare,
    corners_of,
    first_met,
    quaternion,
    random_scene,
    some_pixels,
)
from tests.scenes import pierced

VISIBLE, OCCLUDED, OUTSIDE, NO_SURFACE, _ = Status


def camera_at(eye, target, *, size=(48, 64), field=0.9, **how):
    return Camera.look_at(eye, target, height=size[0], width=size[1], field_of_view=field, **how)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_checks(check):
    check()


# beside brute force


@pytest.mark.long("renderings")
def test_a_hundred_random_scenes():
    errors, flipped, wrong, counts = [], 0, 0, np.zeros(4, int)
    for seed in range(100):
        scene, camera1, camera2 = random_scene(seed)
        error, bad, _, wanted, flips = compare(scene, camera1, camera2, some_pixels(camera1, 600, seed))
        errors.append(error)
        flipped += flips.sum()
        wrong += len(bad)
        counts += np.bincount(wanted.status, minlength=4)
    assert counts.min() > 5000
    assert wrong == 0
    assert flipped < 10
    assert np.quantile(np.concatenate(errors), 0.999) < 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_rays_that_graze_edges(seed):
    """Rays aimed at edges of either view, 10⁻³ px to 10⁻⁹ px beside: float32 alone is wrong on one in sixty."""
    scene, camera1, camera2 = random_scene(seed)
    rng = np.random.default_rng(seed)
    corners, _ = corners_of(scene)
    rows, sides, share = rng.integers(0, len(corners), 500), rng.integers(0, 3, 500), rng.random((500, 1))
    edges = corners[rows, sides] * (1 - share) + corners[rows, (sides + 1) % 3] * share

    def beside(camera):
        at, _ = camera.project(edges)
        at = at + rng.normal(size=at.shape) * 10 ** rng.uniform(-9, -3, size=(len(at), 1))
        return at[((at > -0.5) & (at < (camera.width - 0.5, camera.height - 0.5))).all(axis=1)]

    ways = camera2.rays(beside(camera2))
    _, reach = first_met(corners, camera2.centre, ways)
    behind, _ = camera1.project((camera2.centre + reach[:, None] * ways)[np.isfinite(reach)])
    pixels = np.concatenate([beside(camera1), behind[np.isfinite(behind).all(axis=1)]])
    error, wrong, *_, flips = compare(scene, camera1, camera2, pixels)
    assert not len(wrong)
    assert flips.mean() < 0.01
    if len(error):
        assert np.quantile(error, 0.99) < 1e-3


# also whole and half metres, at which surfaces, edges and corners lie
coordinate = st.floats(-2.5, 2.5).map(lambda value: round(value, 3)) | st.integers(-5, 5).map(lambda value: value / 2)
eyes = st.tuples(coordinate, coordinate, coordinate)


@pytest.mark.long("large or genuine files")
@given(eye1=eyes, eye2=eyes, target=eyes, field=st.floats(0.2, 2.2), seed=st.integers(0, 50))
# on the rim of the sheet, which rounding of the camera's place puts before or behind it
@example(eye1=(0, 1, 1), eye2=(0, 0, 1), target=(1, 0, 0), field=1.0, seed=0)
@example(eye1=(0, 1, 1), eye2=(0, 0, 0), target=(1, 0, 0), field=1.0, seed=0)
@example(eye1=(-1, 0.375, 2.5), eye2=(0, 0, 0), target=(-2.086, 0.5, 1), field=1.0, seed=0)
# along a wall in which camera 2 stands
@example(eye1=(1, 0, 0.5), eye2=(0, -1, 2.5), target=(0, 1, 2), field=1.0, seed=1)
@example(eye1=(0, 1.375, 0), eye2=(0, 0, -2.5), target=(0, -1, -2.5), field=0.5, seed=1)
@example(eye1=(-2, 0, 0), eye2=(-0.938, 2.5, 0), target=(0, 2, 0), field=0.5, seed=0)
# and partners in the plane of camera 2, whose depth is 0 but for rounding
@example(eye1=(0, 1, 1), eye2=(0, 0, 1), target=(1, 0, 0), field=1.0, seed=1)
@example(eye1=(0, 1, 1), eye2=(0, 0.5, 0), target=(0, 0, 0), field=1.0, seed=0)
@example(eye1=(0, 1, 1), eye2=(0, 0.5, 0), target=(1, 0, 0), field=1.0, seed=0)
@settings(max_examples=25)
def test_any_cameras_beside_brute_force(eye1, eye2, target, field, seed):
    """Also those on surfaces, along edges and in corners of what stands at whole and half metres."""
    if target in (eye1, eye2):
        return
    scene = Scene(
        (Placement(box((1, 1, 1))), Placement(box((5, 5, 5))), Placement(plane((2, 2)), translation=(0, 0, 1)))
    )
    camera1, camera2 = camera_at(eye1, target, field=field), camera_at(eye2, target)
    check_brute_force(scene, camera1, camera2, some_pixels(camera1, 60, seed))


# known by formulas


def test_a_box_hides_what_is_behind_it():
    wall = Placement(plane((20, 20)), quaternion((1, 1, 0, 0)), (0, 4, 0))  # y = 4
    cube = Placement(box((1, 1, 1)), translation=(2, 2, 0))  # x 1.5 … 2.5, y 1.5 … 2.5
    camera1 = camera_at((0, 0, 0), (0, 4, 0), field=0.3)
    camera2 = camera_at((4, 0, 0), (0, 4, 0), field=1.6)
    found = spatial(Scene((wall, cube)), camera1, camera2)
    assert (found.instance == 0).all()
    # the line from camera 2 to (x, 4) passes y at x₂ + (x − 4) (y / 4): through the cube's side or front
    x = found.xyz[:, 0]
    enters = (4 + (x - 4) * 2.5 / 4 < 2.5) & (4 + (x - 4) * 1.5 / 4 > 1.5) & (np.abs(found.xyz[:, 2]) * 2.5 / 4 < 0.5)
    near_edge = np.abs(np.abs(found.xyz[:, 2]) - 0.8) < 0.3
    sure = ~near_edge & (np.abs(found.status.astype(int) - 2) > 0)
    assert (found.status[sure] == np.where(enters[sure], OCCLUDED, VISIBLE)).all()
    assert (found.status[sure] == OCCLUDED).any()


def test_points_behind_camera_2_have_no_partner():
    wall = Placement(plane((20, 20)), quaternion((1, 1, 0, 0)), (0, 4, 0))
    camera1, past = camera_at((0, 0, 0), (0, 4, 0)), camera_at((0, 5, 0), (0, 9, 0))
    found = spatial(Scene((wall,)), camera1, past)
    assert (found.status == OUTSIDE).all()
    assert np.isnan(found.points2).all()
    assert np.allclose(found.xyz[:, 1], 4)


def test_places_beside_view_2_are_told():
    wall = Placement(plane((20, 20)), quaternion((1, 1, 0, 0)), (0, 4, 0))
    camera1, camera2 = camera_at((0, 0, 0), (0, 4, 0)), camera_at((6, 0, 0), (6, 4, 0))
    found = spatial(Scene((wall,)), camera1, camera2)
    assert (found.status == OUTSIDE).all()
    focal = camera1.k[0, 0]
    np.testing.assert_allclose(found.points2, found.points1 - [6 * focal / 4, 0], atol=1e-9)


def test_a_camera_outside_a_closed_box_does_not_show_its_inside():
    scene = Scene((Placement(box((1, 1, 1))), Placement(box((6, 6, 6)))))
    inside, outside = camera_at((0.1, 0, 0), (0.4, 0.1, 0)), camera_at((2.5, 0, 0), (0, 0, 0))
    found, either = (spatial(scene, inside, outside, both_sides=both) for both in (False, True))
    assert (found.instance == 0).all()
    assert (found.status == OCCLUDED).all()
    assert set(either.status.tolist()) <= {VISIBLE, OCCLUDED}
    shown = np.isclose(either.xyz[:, 0], 0.5)  # the side towards camera 2, seen from either side
    assert (either.visible == shown).all()


@pytest.mark.parametrize("tilt", [0.0, 0.3])
@pytest.mark.parametrize("thick", [0.0, 1e-7, 1e-5, 1e-4])
def test_the_two_sides_of_a_sheet_are_not_the_same_point(tilt, thick):
    """Seen by one camera from above and by the other from below, at 2 m, however thin it is."""
    mesh = box((1.4, 1.4, thick)) if thick else plane((1.4, 1.4))
    turned = quaternion((1, tilt, 0.1, 0))
    scene = Scene((Placement(mesh, turned),))
    above, below = camera_at((0.1, 0.2, 2), (0, 0, 0), size=(26, 26)), camera_at((0, 0.1, -2), (0, 0, 0), size=(26, 26))
    other = camera_at((0.5, -0.2, 2), (0, 0, 0), size=(26, 26))
    for one, two in ((above, below), (below, above)):
        found, either = (spatial(scene, one, two, both_sides=both) for both in (False, True))
        assert either.visible.sum() > 200
        assert not found.visible.any()
        assert (found.status[either.visible] == OCCLUDED).all()
        assert np.array_equal(found.status[~either.visible], either.status[~either.visible])
    assert spatial(scene, above, other).visible.sum() > 200


def test_a_surface_that_camera_2_sees_edge_on_is_hidden_there():
    sheet = Placement(plane((2, 2)), translation=(0, 0, 1))
    above, beside = camera_at((0, 0.3, 3), (0, 0, 1)), camera_at((3, 0, 1), (0, 0, 1))
    found = spatial(Scene((sheet,)), above, beside)
    assert (found.status[found.status != NO_SURFACE] == OCCLUDED).all()
    lifted = camera_at((3, 0, 1.001), (0, 0, 1))
    assert spatial(Scene((sheet,)), above, lifted).visible.sum() > 100


@pytest.mark.parametrize("off", [0.0, 1e-12, -1e-12, 1e-8, -1e-8, 1e-6, -1e-6])
def test_a_camera_in_the_plane_of_a_wall(off):
    """A wall through the camera's centre is met nowhere; one before or behind it by a hair, where it is."""
    scene = Scene((Placement(box((6, 6, 6))),))
    camera1 = camera_at((3 + off, 0.3, 0.2), (0, 0.1, 0.1))
    camera2 = camera_at((-1, 0.5, 0), (3, 0, 0), field=1.4)
    wanted = brute_force(scene, camera1, camera2, camera1.pixels())
    found = spatial(scene, camera1, camera2)
    if off:
        assert (found.status == wanted.status).mean() == 1
        np.testing.assert_allclose(found.xyz, wanted.xyz, atol=1e-9)
    back = spatial(scene, camera2, camera1, some_pixels(camera2, 300, 0))
    truth = brute_force(scene, camera2, camera1, back.points1)
    if off:
        assert (back.status == truth.status).all()


def test_faces_that_are_there_twice_do_not_hide_themselves():
    cube = box((1, 1, 1))
    twice = Mesh(cube.vertices, np.concatenate([cube.faces, cube.faces[:, ::-1]]))
    camera1, camera2 = camera_at((2, 1, 1), (0, 0, 0)), camera_at((2, -0.5, 1.2), (0, 0, 0))
    once = spatial(Scene((Placement(cube),)), camera1, camera2)
    found = spatial(Scene((Placement(twice),)), camera1, camera2)
    assert (found.status == once.status).all()
    assert once.visible.sum() > 100


def test_triangles_without_area_are_never_seen():
    wall = plane((20, 20))
    degenerate = Mesh(
        np.concatenate([wall.vertices, [[0, 0, 1], [1, 1, 1], [2, 2, 1]]]),
        np.concatenate([[[4, 5, 6], [0, 0, 0], [4, 4, 5]], wall.faces]),
    )
    camera1, camera2 = camera_at((0.1, 0, 3), (0, 0, 0)), camera_at((1, 0, 3), (0, 0, 0))
    plain, found = (spatial(Scene((Placement(mesh),)), camera1, camera2) for mesh in (wall, degenerate))
    assert np.array_equal(found.status, plain.status)
    np.testing.assert_allclose(found.points2, plain.points2, atol=1e-9)


@pytest.mark.parametrize(("scale", "away"), [(1e-3, 0), (1, 1e5), (1e3, 0), (30, 5e5)])
def test_small_large_and_far_scenes(scale, away):
    scene = Scene(
        tuple(
            Placement(mesh, quaternion((1, 0.2, 0.1, 0.4)), np.array(at) * scale + away, (scale,) * 3)
            for mesh, at in ((box((1, 1, 1)), (0, 0, 0)), (sphere(0.4, segments=12), (0.8, 0.9, 0.1)))
        )
    )
    camera1, camera2 = (camera_at(np.array(eye) * scale + away, (away,) * 3) for eye in ((2, 3, 1), (3, 1, 1)))
    check_brute_force(scene, camera1, camera2, some_pixels(camera1, 500, 1))


def test_a_telescope():
    """Cameras a thousand times as far as the scene is large."""
    scene = Scene((Placement(box((1, 1, 1))), Placement(sphere(0.5, segments=20), translation=(0, 0.9, 0.6))))
    camera1, camera2 = (
        camera_at((900, 700, 300), (0, 0, 0), field=0.003),
        camera_at((900, 0, 500), (0, 0, 0), field=0.003),
    )
    found = check_brute_force(scene, camera1, camera2, some_pixels(camera1, 800, 2))
    assert found.visible.sum() > 50


def test_a_small_thing_in_a_vast_scene():
    """A ground of 2 km and a cube of 1 m: float32 is coarse there."""
    ground = Placement(plane((2000, 2000)), translation=(700, 700, 0))
    scene = Scene((ground, Placement(box((1, 1, 1)), quaternion((1, 0, 0, 0.3)), (0, 0, 0.5))))
    camera1, camera2 = camera_at((3, 2, 2), (0, 0, 0.5)), camera_at((3, -1, 1.5), (0, 0, 0.5))
    check_brute_force(scene, camera1, camera2, some_pixels(camera1, 800, 3))


# zero matches are an answer


def test_nothing_to_see():
    camera = camera_at((0, 0, 0), (0, 4, 0))
    found = spatial(Scene(), camera, camera)
    assert (found.status == NO_SURFACE).all()
    assert (found.instance == -1).all()
    assert np.isnan(found.points2).all()
    assert np.isnan(found.xyz).all()
    behind = Scene((Placement(box((1, 1, 1)), translation=(0, -3, 0)),))
    assert (spatial(behind, camera, camera).status == NO_SURFACE).all()


def test_two_views_without_overlap():
    scene = Scene((Placement(box((6, 6, 6))),))
    found = spatial(scene, camera_at((0, 0, 0), (2, 0, 0)), camera_at((0, 0, 0), (-2, 0, 0)))
    assert (found.status == OUTSIDE).all()
    assert not found.visible.any()


def test_no_pixels():
    scene, camera1, camera2 = random_scene(0)
    for none in ([], np.empty((0, 2))):
        assert len(spatial(scene, camera1, camera2, none)) == 0
    assert len(spatial(scene, camera1, camera2, fraction=0, key=1)) == 0


# how it is asked


@pytest.mark.parametrize(("height", "width", "fraction", "count"), [
    (48, 64, 1 / 8, 384), (7, 9, 1 / 8, 7), (10, 10, 0.29, 29), (5, 5, 1, 25), (3, 3, 0.1, 0), (480, 640, 1 / 8, 38400),
])  # fmt: skip
def test_a_drawn_share_of_the_pixels(height, width, fraction, count):
    drawn = drawn_pixels(height, width, fraction, 3)
    flat = drawn @ (1, width)
    assert len(drawn) == count
    assert (np.diff(flat) > 0).all()
    assert ((drawn >= 0) & (drawn < (width, height))).all()
    assert np.array_equal(drawn, drawn.round())


def test_every_pixel_is_drawn_equally_often():
    counts = np.zeros(400)
    for key in range(800):
        counts[(drawn_pixels(20, 20, 1 / 8, key) @ (1, 20)).astype(int)] += 1
    # 100 ± 9.4 each
    assert counts.sum() == 800 * 50
    assert 5 < counts.std() < 13


def test_a_fraction_finds_what_the_pixels_find():
    scene, camera1, camera2 = random_scene(3)
    drawn = drawn_pixels(camera1.height, camera1.width, 1 / 8, 11)
    one, two = (
        spatial(scene, camera1, camera2, drawn),
        spatial(scene, camera1, camera2, fraction=1 / 8, key=np.uint64(11)),
    )
    for name in ("points1", "points2", "xyz", "instance", "status"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name != "instance" and name != "status")
    other = spatial(scene, camera1, camera2, fraction=1 / 8, key=12)
    assert not np.array_equal(other.points1, two.points1)


def test_the_same_from_rays_from_threads_and_from_a_pickle():
    scene, camera1, camera2 = random_scene(7)
    wanted = spatial(scene, camera1, camera2)
    again = pickle.loads(pickle.dumps(scene))
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(spatial, one, camera1, camera2) for one in (Rays(scene), again, again, again)]
    for job in jobs:
        assert np.array_equal(job.result().points2, wanted.points2, equal_nan=True)
        assert np.array_equal(job.result().status, wanted.status)


def test_what_was_built_for_a_scene_goes_with_it():
    scene, camera1, camera2 = random_scene(5)
    spatial(scene, camera1, camera2, [[3, 4]])
    built = weakref.ref(exact_rays(scene))
    assert exact_rays(scene) is built()
    del scene
    gc.collect()
    assert built() is None


@pytest.mark.parametrize("how", [
    {"pixels": [1, 2]}, {"pixels": [[1, 2, 3]]}, {"pixels": [[np.nan, 1]]}, {"pixels": [["a", "b"]]},
    {"fraction": 1 / 8}, {"key": 3}, {"pixels": [[1, 2]], "fraction": 0.5, "key": 1}, {"fraction": 1.5, "key": 1},
    {"fraction": -0.1, "key": 1}, {"fraction": np.nan, "key": 1}, {"fraction": "all", "key": 1},
    {"fraction": 0.5, "key": -1}, {"fraction": 0.5, "key": 1.5}, {"fraction": 0.5, "key": 1 << 64},
])  # fmt: skip
def test_bad_requests(how):
    scene, camera1, camera2 = random_scene(0)
    with pytest.raises(SetsupError):
        spatial(scene, camera1, camera2, **how)


# a genuine model


@pytest.fixture(scope="module")
def chair(genuine):
    """KeypointNet's chair with its keypoints, z up."""
    model = "88382b877be91b2a572f8e1c1caad99e"
    annotations = json.loads((genuine / "keypointnet" / "annotations" / "chair.json").read_bytes())
    points = next(one for one in annotations if one["model_id"] == model)["keypoints"]
    mesh = load_mesh(genuine / "keypointnet" / "models" / "03001627" / model / "models" / "model_normalized.ply")
    upright = quaternion((1, 1, 0, 0))  # y up becomes z up
    return Placement(mesh, upright), points


def test_genuine_keypoints_lie_on_their_faces(chair):
    placement, points = chair
    corners = placement.mesh.corners
    for point in points:
        where = np.array(point["mesh_info"]["face_uv"]) @ corners[point["mesh_info"]["face_index"]]
        np.testing.assert_allclose(where, point["xyz"], atol=1e-12)


def test_genuine_keypoints_land_on_partners_of_each_other(chair):
    placement, points = chair
    scene = Scene((placement,))
    keypoints = placement.placed([point["xyz"] for point in points])
    corners, _ = corners_of(scene)
    seen, errors, rounded = 0, [], []
    for turn in np.arange(0, 360, 30):
        cameras = []
        for angle in np.radians([turn, turn + 25]):
            eye = 1.6 * np.array([np.cos(angle), np.sin(angle), 0.5])
            cameras.append(camera_at(eye, (0, 0, -0.05), size=(256, 256), field=np.radians(50)))
        in_view = [camera.project(keypoints)[0] for camera in cameras]
        shown = [first_met(corners, camera.centre, keypoints - camera.centre)[1] > 1 - 1e-4 for camera in cameras]
        found = spatial(scene, *cameras, in_view[0])
        # a keypoint that view 1 shows is what its pixel shows; and view 2 shows it where it says
        same = shown[0] & (np.linalg.norm(found.xyz - keypoints, axis=1) < 1e-6)
        assert same.sum() >= shown[0].sum() - 1  # one within 10⁻⁴ of the way behind an edge
        assert np.array_equal(found.visible[same], shown[1][same])
        errors.append(np.linalg.norm(found.points2 - in_view[1], axis=1)[same])
        seen += (same & shown[1]).sum()
        # and whole pixels, as they are drawn: the partner of the nearest one is near
        nearest = spatial(scene, *cameras, in_view[0].round())
        both = same & nearest.visible & (np.linalg.norm(nearest.xyz - keypoints, axis=1) < 0.02)
        rounded.append(np.linalg.norm(nearest.points2 - in_view[1], axis=1)[both])
    assert seen > 30
    assert np.concatenate(errors).max() < 1e-6
    assert np.median(np.concatenate(rounded)) < 1
    assert np.concatenate(rounded).max() < 5


# holes


@pytest.mark.long("renderings")
@pytest.mark.parametrize("both_sides", [False, True])
def test_holes_are_looked_through_from_either_view(both_sides):
    """Partners are those of the same sheets cut out, beside brute force over all their triangles."""
    solid = pierced.scene(pierced.cut_out)
    for camera1, camera2 in itertools.permutations((pierced.CAMERA, pierced.OTHER, pierced.BELOW), 2):
        pixels = some_pixels(camera1, 250, 3)
        found = spatial(pierced.scene(pierced.sheet), camera1, camera2, pixels, both_sides=both_sides)
        error, wrong, *_ = compare(solid, camera1, camera2, pixels, found, both_sides=both_sides)
        assert not len(wrong)
        assert np.quantile(error, 0.99) < 1e-6
