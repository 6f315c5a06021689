"""Rotations and errors of poses against scipy's `Rotation`, and against the formula of ABC's evaluation."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from setsup.datasets.benchmarks.shapenet_renderings import to_pascal3d
from setsup.errors import DataError
from setsup_papers.abc.pose import PoseErrors, euler_from_rotation, geodesic_error, pose_errors, rotation_from_euler

ELEVATION = st.floats(-90, 90)
THETA = st.floats(-180, 180)


def _scipy(azimuth, elevation, theta):
    """As in the published evaluation: the annotated tilt is negated first."""
    return Rotation.from_euler("zxz", [-azimuth, elevation - 90, -theta], degrees=True)


@given(st.floats(-720, 720), ELEVATION, THETA)
def test_matrices_of_annotated_angles(azimuth, elevation, theta):
    found = rotation_from_euler(azimuth, elevation, theta)
    assert np.allclose(found, _scipy(azimuth, elevation, theta).as_matrix(), atol=1e-12)


@given(st.floats(0, 360, exclude_max=True), ELEVATION, THETA)
@example(0.0, 90.0, 0.0)
@example(123.0, -90.0, 40.0)
@example(30.0, 89.9999999, 10.0)
@example(359.99999999999997, 0.0, -180.0)
def test_angles_give_the_rotation_again(azimuth, elevation, theta):
    matrix = _scipy(azimuth, elevation, theta).as_matrix()
    angles = euler_from_rotation(matrix)
    assert 0 <= angles[0] < 360
    assert -90 <= angles[1] <= 90
    assert -180 <= angles[2] <= 180
    assert np.rad2deg((_scipy(*map(float, angles)) * Rotation.from_matrix(matrix).inv()).magnitude()) < 1e-5


@given(st.floats(0, 359.9), st.floats(-89, 89), st.floats(-179.9, 179.9))
def test_angles_are_those_of_the_annotation(azimuth, elevation, theta):
    found = np.array(euler_from_rotation(rotation_from_euler(azimuth, elevation, theta)))
    apart = (found - [azimuth, elevation, theta] + 180) % 360 - 180
    assert np.abs(apart).max() < 1e-9


def test_looking_straight_down_has_no_theta():
    azimuth, elevation, theta = euler_from_rotation(rotation_from_euler(50, [90, -90], [20, 20]))
    assert np.allclose(elevation, [90, -90])
    assert np.allclose(theta, 0, atol=1e-9)
    assert np.allclose(azimuth, [70, 30]), "one turn, of which the azimuth takes all"


@given(st.integers(0, 2**32 - 1), st.floats(0, 180))
@example(0, 0.0)
@example(1, 180.0)
@example(2, 1e-9)
@example(3, 179.9999999)
def test_the_angle_between_rotations(seed, degrees):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    first = Rotation.random(random_state=rng)
    second = Rotation.from_rotvec(np.deg2rad(degrees) * axis) * first
    found = geodesic_error(first.as_matrix(), second.as_matrix())
    assert abs(float(found) - degrees) < 1e-9
    assert abs(float(found) - np.rad2deg((second * first.inv()).magnitude())) < 1e-9


@pytest.mark.parametrize("degrees", [0.0, 0.02, 60.0, 179.98, 180.0])
def test_matrices_of_float32_lose_no_more_than_their_rounding(degrees):
    """The arccosine of the published script loses 0.02 degrees near 0 and 180 in float32."""
    first = Rotation.random(500, random_state=0)
    axes = Rotation.random(500, random_state=1).apply([0.0, 0.0, 1.0])
    second = Rotation.from_rotvec(np.deg2rad(degrees) * axes) * first
    found = geodesic_error(first.as_matrix().astype(np.float32), second.as_matrix().astype(np.float32))
    assert np.abs(found - degrees).max() < 3e-5


def test_the_formula_of_the_published_evaluation():
    one, other = (Rotation.random(300, random_state=seed).as_matrix() for seed in (2, 3))
    traces = np.einsum("nij,nij->n", one, other)
    assert np.allclose(geodesic_error(one, other), np.rad2deg(np.arccos((traces - 1) / 2)), atol=1e-6)


def test_axes_before_and_after_broadcasting():
    one, other = Rotation.random(4, random_state=0).as_matrix(), Rotation.random(3, random_state=1).as_matrix()
    table = geodesic_error(one[:, None], other)
    assert table.shape == (4, 3)
    assert table.dtype == np.float64
    assert table[2, 1] == geodesic_error(one[2], other[1])
    assert rotation_from_euler(np.zeros((2, 1)), np.zeros(5), 3.0).shape == (2, 5, 3, 3)
    assert [angle.shape for angle in euler_from_rotation(one[None])] == [(1, 4)] * 3
    assert geodesic_error(np.empty((0, 3, 3)), other[0]).shape == (0,)


def test_unknown_poses_stay_unknown():
    matrices = rotation_from_euler([10.0, np.nan], 20)
    assert np.isnan(matrices[1]).any()
    assert not np.isnan(matrices[0]).any()
    assert np.isnan(geodesic_error(matrices, matrices[0])).tolist() == [False, True]
    assert np.isnan(euler_from_rotation(matrices)[0]).tolist() == [False, True]


def test_axes_of_renderings_are_those_of_the_published_evaluation():
    views = Rotation.random(5, random_state=0).as_matrix().astype(np.float32)
    correction = np.array([[0, -1, 0], [0, 0, 1], [-1, 0, 0]], np.float32)
    assert np.array_equal(to_pascal3d(views), views @ correction)
    assert geodesic_error(to_pascal3d(views), views @ correction).max() < 1e-4


@pytest.mark.parametrize(
    "wrong",
    [
        np.eye(3) * 2,
        np.diag([1.0, 1.0, -1.0]),
        np.full((3, 3), np.inf),
        np.zeros((3, 3)),
        np.eye(4),
        np.eye(3, dtype=complex),
        [["a"] * 3] * 3,
        [[1.0, 0.0], [0.0]],
        5.0,
    ],
)
def test_what_is_no_rotation_is_refused(wrong):
    for call in (lambda: geodesic_error(wrong, np.eye(3)), lambda: euler_from_rotation(wrong)):
        with pytest.raises(DataError, match=r"rotations must|not a rotation"):
            call()
    with pytest.raises(DataError, match="the other rotations"):
        geodesic_error(np.eye(3), wrong)


def test_shapes_that_do_not_fit():
    with pytest.raises(DataError, match="broadcast"):
        geodesic_error(np.eye(3)[None].repeat(2, 0), np.eye(3)[None].repeat(3, 0))
    with pytest.raises(DataError, match="broadcast"):
        rotation_from_euler([0, 1], [0, 1, 2])
    with pytest.raises(DataError, match="elevation must be finite"):
        rotation_from_euler(0, np.inf)
    with pytest.raises(DataError, match="azimuth must be an array"):
        rotation_from_euler("north", 0)


def test_errors_at_a_threshold_do_not_count():
    """As in the published script: below 15, below 30."""
    errors = [15.0, 30.0, 14.9999, 29.9999, 180.0, np.nan]
    assert pose_errors(errors) == PoseErrors(5, 29.9999, 0.2, 0.6)
    assert pose_errors(np.array([[1.0], [3.0]])) == PoseErrors(2, 2.0, 1.0, 1.0)


@pytest.mark.parametrize("wrong", [[], [np.nan], [-1.0], [181.0], [np.inf], "none"])
def test_errors_that_are_none(wrong):
    with pytest.raises(DataError):
        pose_errors(wrong)
