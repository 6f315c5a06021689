"""Planar pairs: pictures of coordinates warped by OpenCV and by kornia say where each pixel went."""

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.correspondence import Status, affine_pairs, planar, planar_pairs
from setsup.errors import SetsupError

HEIGHT, WIDTH = 40, 56
CORNERS = np.array([[-0.5, -0.5], [WIDTH - 0.5, -0.5], [WIDTH - 0.5, HEIGHT - 0.5], [-0.5, HEIGHT - 0.5]])


def coordinates() -> np.ndarray:
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    return np.stack([x, y, np.ones_like(x)], axis=-1)


def drawn(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """A homography that takes the picture to about a view."""
    target = CORNERS * [size[1] / WIDTH, size[0] / HEIGHT] + rng.uniform(-6, 6, (4, 2))
    return planar.four_points(CORNERS, target)


@pytest.mark.parametrize("seed", range(8))
def test_partners_show_the_same_place_of_the_image(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size1, size2 = (36, 44), (30, 50)
    maps = [drawn(rng, size) for size in (size1, size2)]
    warped = [
        cv2.warpPerspective(coordinates(), matrix, (size[1], size[0]), flags=cv2.INTER_LINEAR)
        for matrix, size in zip(maps, (size1, size2), strict=True)
    ]
    pairs = planar_pairs(*maps, (HEIGHT, WIDTH), size1, size2)
    full = warped[0][..., 2].ravel() > 0.999  # all four neighbours lie on the picture
    assert full.sum() > 500
    assert (pairs.status[full] != Status.NO_SURFACE).all()
    # OpenCV keeps the weights of interpolation to 1/32 of a pixel
    np.testing.assert_allclose(pairs.xyz[full, :2], warped[0][..., :2].reshape(-1, 2)[full], atol=0.04)
    both = full & pairs.visible
    x, y = np.rint(pairs.points2[both]).astype(int).T
    shown, whole = warped[1][y, x, :2], warped[1][y, x, 2] > 0.999
    away = np.linalg.norm(shown - pairs.xyz[both, :2], axis=1)[whole]
    assert len(away) > 300
    assert away.max() < 1.6, "the nearest pixel of view 2 shows a place within its own extent"


def test_kornia_s_matrices_serve_as_they_are() -> None:
    import kornia.augmentation as kornia

    torch.manual_seed(3)
    picture = torch.from_numpy(coordinates()).movedim(-1, 0)[None]
    one, two = kornia.RandomPerspective(0.4, p=1.0), kornia.RandomAffine(25, scale=(0.7, 1.0), p=1.0)
    views = [operation(picture)[0].numpy() for operation in (one, two)]
    matrices = [operation.transform_matrix[0].double().numpy() for operation in (one, two)]
    size = (HEIGHT, WIDTH)
    pairs = planar_pairs(*matrices, size, size, size)
    full = views[0][2].ravel() > 0.999
    # kornia's float32 border and ours may differ where a pixel lies right on it
    np.testing.assert_allclose(pairs.xyz[full, :2], views[0][:2].reshape(2, -1).T[full], atol=5e-3)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_it_agrees_with_the_published_generator_of_pairs(key: int) -> None:
    found = affine_pairs(np.array([key], np.uint64), (HEIGHT + 20, WIDTH), (24, 24), keep=1.0)
    size = (24, 24)
    pairs = planar_pairs(found.to_view_1[0], found.to_view_2[0], found.source, size, size)
    np.testing.assert_array_equal(pairs.status != Status.NO_SURFACE, found.valid[0])
    nearest = np.rint(pairs.points2[found.positive[0]])
    np.testing.assert_array_equal(nearest[:, 1] * 24 + nearest[:, 0], found.partner[0][found.positive[0]])


def test_what_lies_behind_the_horizon_is_beside_the_image() -> None:
    tilted = np.array([[1.0, 0, 0], [0, 1, 0], [0.02, 0, 1]])  # the horizon is x = −50 of the picture
    pairs = planar_pairs(
        tilted, np.eye(3), (HEIGHT, WIDTH), (40, 200), (HEIGHT, WIDTH), [[20.0, 5], [60.0, 5], [199, 5]]
    )
    assert pairs.status.tolist() == [Status.VISIBLE, Status.NO_SURFACE, Status.NO_SURFACE]
    np.testing.assert_allclose(pairs.xyz[0], [20 / 0.6, 5 / 0.6, 0])


def test_bad_matrices_are_refused() -> None:
    for bad in (np.zeros((3, 3)), np.ones((3, 3)), np.eye(2), np.full((3, 3), np.nan), "a"):
        with pytest.raises(SetsupError, match="to_view_1"):
            planar_pairs(bad, np.eye(3), (4, 4), (4, 4), (4, 4))
        with pytest.raises(SetsupError, match="to_view_2"):
            planar_pairs(np.eye(3), bad, (4, 4), (4, 4), (4, 4))


@pytest.mark.parametrize("bad", [{"source": (4,)}, {"size1": (4.5, 4)}, {"size2": 4}, {"pixels": [1, 2, 3]}])
def test_bad_sizes_and_pixels_are_refused(bad) -> None:
    good = {"source": (4, 4), "size1": (4, 4), "size2": (4, 4)}
    with pytest.raises(SetsupError, match=r"size|source|pixels"):
        planar_pairs(np.eye(3), np.eye(3), **{**good, **bad})


@pytest.mark.parametrize(
    ("pixels", "said"),
    [
        ([[1, 2, 3]], r"pixels must be a numeric array of shape \(n, 2\), .*, not int64 of shape \(1, 3\)$"),
        ([[0, 1], [2, np.inf]], r"pixels must be finite, but row 1 is \[2.0, inf\]$"),
    ],
)
def test_wrong_pixels_are_told(pixels: list, said: str) -> None:
    with pytest.raises(SetsupError, match=said):
        planar_pairs(np.eye(3), np.eye(3), (4, 4), (4, 4), (4, 4), pixels)


def test_a_window_far_out_in_a_large_image() -> None:
    far = planar.compose(planar.crop(30_000, 20_000), planar.scaling(0.25))
    pairs = planar_pairs(far, planar.crop(30_000, 20_000), (40_000, 40_000), (8, 8), (64, 64), [[2, 3]])
    np.testing.assert_allclose(pairs.xyz, [[30_008, 20_012, 0]], atol=1e-6)
    np.testing.assert_allclose(pairs.points2, [[8, 12]], atol=1e-6)
