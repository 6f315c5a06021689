"""Correspondences of depth pictures beside traced ones, and of recorded frames in the true format."""

import numpy as np
import pytest

from setsup.correspondence import Status, spatial
from setsup.correspondence.from_depth import from_depth, recorded_camera
from setsup.datasets.benchmarks.scenenn import frames as scenenn_frames
from setsup.errors import SetsupError
from setsup.scenes import Camera
from tests.correspondence.brute_force import check_depth, furnished, quaternion
from tests.true_files import scenenn_frames as true

VISIBLE, OCCLUDED, OUTSIDE, NO_SURFACE, UNKNOWN = Status


@pytest.fixture(scope="module")
def views():
    """Cameras of the furnished room, traced pairs, and exact depth of both views."""
    scene, camera1, camera2 = furnished()
    traced = spatial(scene, camera1, camera2), spatial(scene, camera2, camera1)
    depths = []
    for camera, pairs in zip((camera1, camera2), traced, strict=True):
        depth = (pairs.xyz @ camera.rotation.T + camera.translation)[:, 2]
        depths.append(depth.reshape(camera.height, camera.width))
    return camera1, camera2, traced[0], depths


def shares(found, traced):
    """Wrong among those called visible, missed among the visible."""
    wrong = (found.visible & ~traced.visible).sum() / max(found.visible.sum(), 1)
    return wrong, (traced.visible & ~found.visible).sum() / traced.visible.sum()


def test_exact_depth():
    check_depth()


def test_what_the_tolerance_does(views):
    """As documented: too small misses, too large sees through."""
    camera1, camera2, traced, depths = views
    found = {tolerance: from_depth(*depths, camera1, camera2, tolerance=tolerance) for tolerance in (1e-3, 1e-2, 5e-2)}
    wrong, missed = zip(*(shares(one, traced) for one in found.values()), strict=True)
    assert missed[0] > 0.3
    assert missed[1] < 0.3
    assert missed[2] < 0.05
    assert missed[0] > missed[1] > missed[2]
    assert wrong[0] <= wrong[1] <= wrong[2] < 0.1
    for one in found.values():
        np.testing.assert_allclose(one.points2, traced.points2, atol=1e-6)
        assert ((one.status == OUTSIDE) == (traced.status == OUTSIDE)).all()


def test_depth_in_millimetres(views):
    camera1, camera2, traced, depths = views
    rounded = [np.rint(depth * 1000) / 1000 for depth in depths]
    found = from_depth(*rounded, camera1, camera2, tolerance=0.02)
    both = found.visible & traced.visible
    away = np.linalg.norm(found.points2 - traced.points2, axis=1)[both]
    assert both.sum() > 1000
    assert np.median(away) < 0.05
    assert away.max() < 1


def test_holes_and_instances(views):
    camera1, camera2, _, (depth1, depth2) = views
    depth1, depth2 = depth1.astype(np.float32), depth2.astype(np.float32)
    whole = from_depth(depth1, depth2, camera1, camera2, tolerance=0.02)
    assert (whole.instance == -1).all()
    instances = np.arange(depth1.size).reshape(depth1.shape)
    depth1[:10], depth1[10], depth1[11] = 0, np.nan, -1
    found = from_depth(depth1, depth2, camera1, camera2, tolerance=0.02, instances1=instances)
    assert (found.status[: 12 * 80] == NO_SURFACE).all()
    assert np.isnan(found.xyz[: 12 * 80]).all()
    assert np.array_equal(found.status[12 * 80 :], whole.status[12 * 80 :])
    assert np.array_equal(found.instance, np.where(found.status == NO_SURFACE, -1, instances.ravel()))
    for hole in (0, -1, np.nan, np.inf):
        nothing = from_depth(depth1, np.full_like(depth2, hole), camera1, camera2)
        assert np.array_equal(nothing.status == UNKNOWN, np.isin(found.status, (VISIBLE, OCCLUDED)))
        assert set(nothing.status.tolist()) == {UNKNOWN, OUTSIDE, NO_SURFACE}


def test_a_hole_of_frame_2_hides_nothing(views):
    """Where frame 2 measured nothing a pixel is neither visible nor occluded; all others are as before."""
    camera1, camera2, _, (depth1, depth2) = views
    whole, holes = from_depth(depth1, depth2, camera1, camera2), depth2.copy()
    holes[:30] = 0
    found = from_depth(depth1, holes, camera1, camera2)
    beyond = np.isin(whole.status, (VISIBLE, OCCLUDED)) & (np.rint(whole.points2[:, 1]) < 30)
    assert 100 < beyond.sum() < len(whole) - 100
    assert np.array_equal(found.status, np.where(beyond, UNKNOWN, whole.status))
    assert np.array_equal(found.points2, whole.points2, equal_nan=True)
    assert "UNKNOWN" in repr(found)
    assert "UNKNOWN" not in repr(whole)
    # a crop that the point leaves is outside, known or not
    cut = found.carried(np.eye(3), np.eye(3), (60, 80), (20, 64)).status
    inside = whole.points2[:, 1] < 19.5
    assert (cut[beyond & ~inside] == OUTSIDE).all()
    assert (cut[beyond & inside] == UNKNOWN).all()


def test_an_absolute_tolerance(views):
    camera1, camera2, _, depths = views
    found = from_depth(*depths, camera1, camera2, tolerance=0, absolute=0.03)
    seen = np.flatnonzero(np.isin(found.status, (VISIBLE, OCCLUDED)))
    column, row = np.rint(found.points2[seen]).T.astype(int)
    away = (found.xyz[seen] @ camera2.rotation.T + camera2.translation)[:, 2] - depths[1][row, column]
    assert np.array_equal(found.visible[seen], np.abs(away) <= 0.03)


def test_pixels_of_ones_own(views):
    camera1, camera2, _, depths = views
    whole = from_depth(*depths, camera1, camera2)
    found = from_depth(*depths, camera1, camera2, [[3, 4], [79, 59], [80, 4], [-1, 0], [10.4, 20.6]])
    assert np.array_equal(found.status[:2], whole.status[[4 * 80 + 3, 59 * 80 + 79]])
    assert found.status[2:4].tolist() == [NO_SURFACE] * 2
    # the ray of the place itself, with depth of the nearest pixel
    z = (found.xyz[4] @ camera1.rotation.T + camera1.translation)[2]
    assert z == pytest.approx(depths[0][21, 10])
    np.testing.assert_allclose(camera1.project(found.xyz[4])[0], [10.4, 20.6])


@pytest.mark.parametrize("bad", [
    {"depth1": np.zeros((5, 5))}, {"depth2": np.zeros((60, 80))}, {"depth1": "a"}, {"tolerance": -1},
    {"tolerance": np.nan}, {"tolerance": "wide"}, {"absolute": -0.1}, {"absolute": np.inf}, {"pixels": [[1]]},
    {"pixels": [[np.nan, 1]]}, {"instances1": np.zeros((5, 5), int)}, {"instances1": np.zeros((60, 80))},
])  # fmt: skip
def test_bad_requests(views, bad):
    camera1, camera2, _, (depth1, depth2) = views
    good = {"depth1": depth1, "depth2": depth2, "camera1": camera1, "camera2": camera2}
    with pytest.raises(SetsupError):
        from_depth(**{**good, **bad})


# recorded frames


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenenn")
    true.write(folder, scenes=2)  # the last one has no masks
    return scenenn_frames.open(folder)


@pytest.mark.long("large or genuine files")
def test_frames_of_scenenn(recorded):
    """Two frames of the true format: the points of one are on surfaces of the other, and show the same object."""
    got = recorded.fetch([0, 2], ["depth", "pose", "intrinsics", "instances"])
    camera1, camera2 = (recorded_camera(got["pose"][row], got["intrinsics"][row], 480, 640) for row in range(2))
    # the camera stands where the trajectory says, and looks where it says
    for row, camera in enumerate((camera1, camera2)):
        pose = true.pose(0, (1, 3)[row])
        np.testing.assert_allclose(camera.centre, pose[:3, 3], atol=1e-6)
        ahead, _ = camera.project(pose[:3, 3] + 2 * pose[:3, 2])
        np.testing.assert_allclose(ahead, true.CENTRE, atol=1e-3)
        below, _ = camera.project(pose[:3, 3] + 2 * pose[:3, 2] + 0.1 * pose[:3, 1])
        assert below[1] > true.CENTRE[1]
    found = from_depth(*got["depth"], camera1, camera2, tolerance=0.01, instances1=got["instances"][0])
    seen = found.select(found.visible)
    assert len(seen) > 0.3 * 480 * 640
    column, row = np.rint(seen.points2).astype(int).T
    same = got["instances"][1][row, column] == seen.instance
    assert same.mean() > 0.98
    # 14° on an arc of 2.6 m: pixels moved far, so that this is no accident
    assert np.median(np.linalg.norm(seen.points1 - seen.points2, axis=1)) > 15


@pytest.mark.long("large or genuine files")
def test_a_frame_that_was_not_tracked_has_no_camera(recorded):
    got = recorded.fetch([4], ["pose", "intrinsics"])
    with pytest.raises(SetsupError, match="pose"):
        recorded_camera(got["pose"][0], got["intrinsics"][0], 480, 640)


def test_recorded_rotations_are_made_rotations():
    rotation = quaternion((1, 0.2, -0.4, 0.1))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.round(3), (1, 2, 3)
    camera = recorded_camera(pose, Camera.intrinsics(48, 64, focal_length=60), 48, 64)
    np.testing.assert_allclose(camera.rotation, rotation.T, atol=1e-3)
    np.testing.assert_allclose(camera.rotation @ camera.rotation.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(camera.centre, (1, 2, 3), atol=1e-12)


@pytest.mark.parametrize("change", [
    lambda pose: pose[:3], lambda pose: pose * np.nan, lambda pose: pose.T + np.eye(4), lambda pose: 2 * pose,
    lambda pose: pose * [[1], [1], [-1], [1]], lambda pose: pose * [[2], [1], [1], [1]],
])  # fmt: skip
def test_bad_poses(change):
    pose = np.eye(4)
    pose[:3, 3] = 1, 2, 3
    with pytest.raises(SetsupError):
        recorded_camera(change(pose), np.eye(3), 48, 64)
