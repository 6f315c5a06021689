"""Homographies: formulas by hand, finite differences, scipy and scikit-image."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import polar

from setsup.correspondence import planar
from setsup.errors import SetsupError

POINTS = np.array([[0.0, 0.0], [3.0, 1.0], [-2.5, 7.25]])
NUMBERS = st.floats(-20, 20, allow_nan=False).map(lambda x: round(x, 3))
FACTORS = st.floats(0.2, 5).map(lambda x: round(x, 3))
SIDES = st.integers(1, 600)


def moved(matrix, points=POINTS):
    return planar.carried(points, matrix)


def affine(degrees: float, slant: float, across: float, down: float, x: float, y: float):
    linear = planar.compose(planar.rotation(degrees), planar.shear(slant), planar.scaling(across, down))
    return planar.compose(linear, planar.translate(x, y))


@given(NUMBERS, NUMBERS)
def test_translate_and_crop_are_opposite_moves(x: float, y: float) -> None:
    np.testing.assert_allclose(moved(planar.translate(x, y)), POINTS + np.array([x, y]))
    np.testing.assert_allclose(moved(planar.crop(x, y)), POINTS - np.array([x, y]))


@given(NUMBERS, NUMBERS, FACTORS, FACTORS, SIDES, SIDES)
def test_fit_takes_edges_to_edges(left, top, tall, wide, height, width) -> None:
    corners = [[left - 0.5, top - 0.5], [left + wide - 0.5, top + tall - 0.5]]
    found = moved(planar.fit(left, top, tall, wide, height, width), corners)
    np.testing.assert_allclose(found, [[-0.5, -0.5], [width - 0.5, height - 0.5]], atol=1e-7)


@given(SIDES, SIDES, SIDES, SIDES)
def test_resize_is_half_pixel_exact(height, width, to_height, to_width) -> None:
    found = moved(planar.resize(height, width, to_height, to_width), [[-0.5, -0.5], [width - 0.5, height - 0.5]])
    np.testing.assert_allclose(found, [[-0.5, -0.5], [to_width - 0.5, to_height - 0.5]], atol=1e-9)


@given(SIDES, SIDES)
def test_flips_exchange_first_and_last_pixels(height, width) -> None:
    assert moved(planar.flip_x(width), [[0, 3], [width - 1, 4]]).tolist() == [[width - 1, 3], [0, 4]]
    assert moved(planar.flip_y(height), [[3, 0], [4, height - 1]]).tolist() == [[3, height - 1], [4, 0]]


@given(st.floats(-360, 360), SIDES, SIDES)
def test_rotation_is_counterclockwise_about_the_centre(degrees, height, width) -> None:
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    matrix = planar.about_centre(planar.rotation(degrees), height, width)
    # y points down, so the arm to the right rises as the angle does
    arm = [math.cos(math.radians(degrees)), -math.sin(math.radians(degrees))]
    np.testing.assert_allclose(moved(matrix, [centre, centre + np.array([1, 0])]), [centre, centre + arm], atol=1e-9)


def test_shear_and_scaling() -> None:
    assert moved(planar.shear(0.5), [[1, 4]]).tolist() == [[3, 4]]
    assert moved(planar.scaling(2, 3), [[1, 4]]).tolist() == [[2, 12]]
    assert moved(planar.scaling(2), [[1, 4]]).tolist() == [[2, 8]]


@given(NUMBERS, NUMBERS, NUMBERS, FACTORS, NUMBERS)
def test_compose_applies_the_first_matrix_first(x, y, degrees, factor, slant) -> None:
    steps = [planar.translate(x, y), planar.rotation(degrees), planar.scaling(factor), planar.shear(slant)]
    found = POINTS
    for step in steps:
        found = moved(step, found)
    np.testing.assert_allclose(moved(planar.compose(*steps)), found, atol=1e-8)
    np.testing.assert_array_equal(planar.compose(), np.eye(3))


def test_leading_axes_broadcast() -> None:
    matrices = planar.translate(np.arange(6).reshape(2, 3), 1)
    assert matrices.shape == (2, 3, 3, 3)
    assert moved(matrices).shape == (2, 3, 3, 2)
    assert planar.compose(matrices, planar.flip_x(4)).shape == (2, 3, 3, 3)
    np.testing.assert_array_equal(moved(matrices)[1, 2], POINTS + np.array([5, 1]))


def quadrangle(shares: list[float]) -> np.ndarray:
    inward = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * 5
    return np.array([[0, 0], [10, 0], [10, 10], [0, 10]]) + inward * np.array(shares).reshape(4, 2)


SHARES = st.lists(st.floats(0, 0.6), min_size=8, max_size=8)


@pytest.mark.long("large or genuine files")
@given(SHARES, SHARES)
def test_four_points_go_where_they_should(before, after) -> None:
    source, target = quadrangle(before), quadrangle(after)
    found = planar.four_points(source, target)
    np.testing.assert_allclose(moved(found, source), target, atol=1e-6)
    back = planar.four_points(target, source)
    np.testing.assert_allclose(moved(back, moved(found, source)), source, atol=1e-6)


def test_four_points_agree_with_scikit_image() -> None:
    transform = pytest.importorskip("skimage.transform", reason="scikit-image is not installed")
    source, target = quadrangle([0.1, 0.2, 0, 0.5, 0.3, 0.1, 0.2, 0.4]), quadrangle([0.4, 0, 0.1, 0.1, 0, 0.2, 0.5, 0])
    theirs = transform.ProjectiveTransform.from_estimate(source, target).params
    ours = planar.four_points(source, target)
    np.testing.assert_allclose(ours / ours[2, 2], theirs / theirs[2, 2], atol=1e-8)


def test_four_points_of_many_images_at_once() -> None:
    sources = np.stack([quadrangle([0.1 * k] * 8) for k in range(4)])
    found = planar.four_points(sources, quadrangle([0.0] * 8))
    assert found.shape == (4, 3, 3)
    np.testing.assert_allclose(found[3], planar.four_points(sources[3], quadrangle([0.0] * 8)))


def test_a_point_beyond_the_horizon_is_nowhere() -> None:
    tilted = np.array([[1, 0, 0], [0, 1, 0], [0.1, 0, 1]])  # the horizon is x = −10
    found = moved(tilted, [[-10, 0], [-11, 0], [0, 0]])
    assert np.isnan(found[:2]).all()
    assert found[2].tolist() == [0, 0]
    assert not planar.inside(found, 5, 5)[:2].any()


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8), st.integers(1, 30), st.integers(1, 30))
def test_inside_is_within_half_a_pixel_of_a_pixel(points, height, width) -> None:
    wanted = [-0.5 <= x < width - 0.5 and -0.5 <= y < height - 0.5 for x, y in points]
    assert planar.inside(points, height, width).tolist() == wanted


@pytest.mark.long("large or genuine files")
@given(st.floats(-180, 180), st.floats(-1, 1), FACTORS, FACTORS, st.booleans())
def test_turning_is_the_orthogonal_part(degrees, slant, across, down, mirrored) -> None:
    matrix = affine(degrees, slant, across, down, 3, -4)
    if mirrored:
        matrix = planar.compose(planar.flip_x(9), matrix)
    np.testing.assert_allclose(planar.turning(matrix, 5, 6), polar(matrix[:2, :2])[0], atol=1e-9)


def test_turning_of_a_perspective_is_that_of_its_derivative() -> None:
    matrix = planar.four_points(quadrangle([0.0] * 8), quadrangle([0.1, 0.2, 0, 0.5, 0.3, 0.1, 0.2, 0.4]))
    at, step = np.array([4.0, 6.0]), 1e-6
    near = moved(matrix, at + step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]))
    derivative = np.stack([near[0] - near[1], near[2] - near[3]], axis=-1) / (2 * step)
    np.testing.assert_allclose(planar.turning(matrix, *at), polar(derivative)[0], atol=1e-6)


def test_turning_of_many_images() -> None:
    found = planar.turning(planar.rotation([0.0, 90.0]), 0, 0)
    np.testing.assert_allclose(found, [np.eye(2), [[0, 1], [-1, 0]]], atol=1e-12)


@pytest.mark.parametrize(
    ("points", "matrices"),
    [([1, 2], np.eye(3)), ([[1, 2, 3]], np.eye(3)), ([[1, 2]], np.eye(2)), ([[1, 2]], np.ones((2, 3)))],
)
def test_points_and_matrices_of_other_axes_are_refused(points, matrices) -> None:
    with pytest.raises(SetsupError, match=r"points must have shape \(\.\.\., n, 2\)"):
        planar.carried(points, matrices)


SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ([[0, 0], [1, 1], [2, 2], [0, 3]], "collinear"),
        ([[0, 0], [0, 0], [1, 1], [0, 1]], "collinear"),
        ([[0, 0], [1, 0], [math.nan, 1], [0, 1]], "collinear"),
        ([[0, 0], [1, 0], [1, 1]], "four"),
        ([[0, 0], [1, 0], [0, 1], [1, 1]], "folds over"),
        ([[0, 0], [1, 0], [0.2, 0.2], [0, 1]], "folds over"),
    ],
)
def test_points_that_no_homography_joins_are_refused(target, said) -> None:
    with pytest.raises(SetsupError, match=said):
        planar.four_points(SQUARE, target)
