"""Tracks of still cameras."""

import numpy as np

from setsup.exports.tracks import follow
from setsup.scenes import Camera


def test_a_still_camera_sees_what_hides_a_still_point() -> None:
    camera = Camera(2, 4, np.array([[3.1, 0, 1.5], [0, 3.1, 0.5], [0, 0, 1]]), np.eye(3), np.zeros(3))
    depth = np.full((2, 2, 4), 7.3, np.float32)
    instances = np.zeros((2, 2, 4), np.int32)
    depth[1, :, :2], instances[1, :, :2] = 3, 1  # it comes between
    poses = np.tile(np.eye(4), (2, 2, 1, 1))
    pixels = np.array([[x, y] for y in range(2) for x in range(4)])
    points, shown = follow(np.zeros(8, np.int64), pixels, [camera, camera], depth, instances, poses)
    np.testing.assert_allclose(points[:, 1], pixels, atol=1e-6)
    assert shown[:, 1].reshape(2, 4).tolist() == [[False, False, True, True]] * 2
