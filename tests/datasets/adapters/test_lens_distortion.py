"""Lens distortion against OpenCV, which defines it."""

import cv2
import numpy as np
import pytest

from setsup.datasets.adapters.lens_distortion import distort_rays, undistort_pixels, undistort_rays

K = np.array([[90.0, 0, 63], [0, 80, 47], [0, 0, 1]])
LENSES = [
    [-0.2, 0.05, 0.002, -0.003, 0.01, 0, 0, 0],
    [0.15, -0.02, 0, 0, 0, 0, 0, 0],
    [-0.3, 0.1, 0.001, 0.002, -0.02, 0.05, -0.01, 0.002],
]


@pytest.mark.parametrize("lens", LENSES)
def test_rays(lens):
    chance = np.random.Generator(np.random.PCG64(0))
    lens = np.array(lens)
    rays = chance.uniform(-0.7, 0.7, (50, 4, 2))
    points = np.concatenate([rays, np.ones((50, 4, 1))], axis=2).reshape(-1, 3)
    expected, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), np.eye(3), lens)
    seen = distort_rays(rays, lens)
    assert np.allclose(seen, expected.reshape(rays.shape), atol=1e-12)
    assert np.allclose(undistort_rays(seen, lens), rays, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("lens", LENSES)
def test_images(lens, dtype):
    """OpenCV rounds positions to 1/32 of a pixel, so images are smooth here."""
    y, x = np.mgrid[:96, :128]
    image = np.stack([127 + 90 * np.sin(x / 9), 127 + 90 * np.cos(y / 7 + x / 15), x + y], axis=-1).astype(dtype)
    lens = np.array(lens)
    found = undistort_pixels(image, K, lens, K, (96, 128))
    expected = cv2.undistort(image, K, lens)
    inside = cv2.undistort(np.full((96, 128), 255, np.uint8), K, lens) == 255
    assert found.dtype == dtype
    assert inside.mean() > 0.8
    assert np.abs(found[inside].astype(float) - expected[inside]).max() <= 2
    nearest = undistort_pixels(image, K, lens, K, (96, 128), nearest=True)
    assert set(np.unique(nearest)) <= set(np.unique(image)) | {0}
    assert np.abs(nearest[inside].astype(float) - expected[inside]).max() <= 12


def test_another_size_and_camera():
    y, x = np.mgrid[:96, :128]
    image = (127 + 60 * np.sin(x / 20) + 60 * np.cos(y / 17)).astype(np.uint8)
    target, lens = np.array([[40.0, 0, 20], [0, 44, 25], [0, 0, 1]]), np.array(LENSES[0])
    maps = cv2.initUndistortRectifyMap(K, lens, np.eye(3), target, (50, 60), cv2.CV_32FC1)
    expected = cv2.remap(image, *maps, cv2.INTER_LINEAR)
    inside = cv2.remap(np.full((96, 128), 255, np.uint8), *maps, cv2.INTER_LINEAR) == 255
    found = undistort_pixels(image, K, lens, target, (60, 50))
    assert found.shape == (60, 50)
    assert inside.mean() > 0.5
    assert np.abs(found.astype(int) - expected)[inside].max() <= 2


def test_beyond_the_fold_nothing_is_seen():
    """A polynomial that turns back shows each point once."""
    lens = np.array([-0.3, 0, 0, 0, 0, 0, 0, 0])
    edge = np.sqrt(1 / 0.9)  # where r (1 − 0.3 r²) is largest
    rays = np.array([[0.99 * edge, 0], [1.01 * edge, 0], [0, 3]])
    seen = distort_rays(rays, lens)
    assert np.isnan(seen).any(axis=1).tolist() == [False, True, True]
    assert np.allclose(undistort_rays(seen[:1], lens), rays[:1])
    assert np.isnan(undistort_rays(np.array([[0.75, 0.0]]), lens)).all(), "beyond the largest radius"
    wide = np.array([[30.0, 0, 64], [0, 30, 48], [0, 0, 1]])
    found = undistort_pixels(np.full((96, 128), 9, np.uint8), wide, lens, wide, (96, 128))
    assert found[48, 64] == 9
    assert found[48, -1] == 0
