"""Cameras around an object: angles of known rings, in any world; intrinsics of resized images by their pixels."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from setsup.datasets.adapters.camera_paths import around, fit_intrinsics, nearest_fit
from setsup.datasets.images import resize
from tests.true_files.rings import project, ring


@pytest.mark.parametrize("seed", range(4))
def test_angles_do_not_depend_on_the_world(seed):
    """A world that is turned, shifted and scaled: COLMAP's are."""
    chance = np.random.Generator(np.random.PCG64(seed))
    angles = chance.uniform(0, 360, 9)
    poses = np.concatenate([ring(angles[:5], 10), ring(angles[5:], 40, 2)])
    turn, shift, scale = Rotation.random(random_state=seed).as_matrix(), chance.normal(size=3) * 9, 3.5
    moved = poses.copy()
    moved[:, :3, :3] = turn @ poses[:, :3, :3]
    moved[:, :3, 3] = scale * poses[:, :3, 3] @ turn.T + shift
    plain, found = around(poses), around(moved)
    assert np.allclose((found[:, 0] - plain[:, 0] + 180) % 360, 180, atol=1e-6)
    assert np.allclose(found[:, 1], plain[:, 1], atol=1e-6)
    assert np.allclose(found[:, 2], scale * plain[:, 2])


def test_a_level_ring():
    angles = np.array([30.0, 75, 120, 300, 10])
    found = around(ring(angles, 35, 2.5))
    assert np.allclose(found, np.stack([(angles - 30) % 360, np.full(5, 35), np.full(5, 2.5)], axis=1))


def test_cameras_without_an_axis():
    poses = ring([0, 20, 40, 60])
    poses[1:3] = np.nan
    assert np.isnan(around(poses)).all(), "two poses have no plane"
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[:, 0, 3] = range(4)
    assert np.isnan(around(poses)).all(), "cameras on a line, which look in parallel"
    poses = ring([0, 20, 40, 60])
    poses[1] = np.nan
    assert np.isnan(around(poses)).any(axis=1).tolist() == [False, True, False, False]


@pytest.mark.parametrize("size", [(40, 40), (60, 90), (30, 20)])
def test_intrinsics_follow_a_resized_image(size):
    """A disc stands where the new camera says, in an image resized by Pillow and in a map."""
    height, width = 120, 200
    k = np.array([[150.0, 0, 97], [0, 140, 64], [0, 0, 1]])
    pose = ring([15.0], 20)[0]
    point = np.array([[0.1, 0.05, 0.08]])
    (x, y), *_ = project(point, pose, k)
    v, u = np.mgrid[:height, :width]
    disc = (255 * (np.hypot(u - x, v - y) < 9)).astype(np.uint8)
    kept = fit_intrinsics(k[None], np.array([[height, width]]), size)[0]
    (expected_x, expected_y), *_ = project(point, pose, kept)
    for image in (resize(disc[..., None], size)[..., 0], nearest_fit(disc, size)):
        v, u = np.mgrid[: size[0], : size[1]]
        weights = image / image.sum(dtype=float)
        assert abs((weights * u).sum() - expected_x) < 0.3
        assert abs((weights * v).sum() - expected_y) < 0.3
    assert fit_intrinsics(k[None], np.array([[height, width]]), None)[0] is not None
