import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from setsup.datasets.benchmarks.pascal3d.pose import geodesic, project, rotation
from setsup.errors import DataError

ANGLES = st.floats(-720, 720)


@given(ANGLES, st.floats(-90, 90), st.floats(-180, 180))
def test_rotation_is_the_one_of_the_published_evaluation(azimuth, elevation, theta):
    reference = Rotation.from_euler("zxz", [-azimuth, elevation - 90, -theta], degrees=True).as_matrix()
    found = rotation(azimuth, elevation, theta)
    assert np.allclose(found, reference, atol=1e-12)
    assert np.allclose(found @ found.T, np.eye(3), atol=1e-12)


def test_rotation_of_arrays():
    azimuth = np.array([[0.0, 90.0, np.nan]])
    found = rotation(azimuth, np.array([[0.0], [30.0]]), 5.0)
    assert found.shape == (2, 3, 3, 3)
    assert np.isnan(found[:, 2]).all(axis=(-1, -2)).all() or np.isnan(found[:, 2]).any()
    assert np.allclose(found[1, 1], rotation(90, 30, 5))
    assert rotation([], []).shape == (0, 3, 3)


def test_what_the_camera_sees():
    """From the front +x is right; from azimuth 90 the camera stands on +x and sees +y on its right."""
    assert np.allclose(rotation(0, 0) @ [1, 0, 0], [1, 0, 0])
    assert np.allclose(rotation(0, 0) @ [0, -1, 0], [0, 0, 1]), "the front is towards the viewer"
    assert np.allclose(rotation(90, 0) @ [0, 1, 0], [1, 0, 0])
    assert np.allclose(rotation(90, 0) @ [1, 0, 0], [0, 0, 1])
    assert np.allclose(rotation(0, 90) @ [0, 0, 1], [0, 0, 1]), "from above"


def _step_by_step(point, azimuth, elevation, distance, theta, px, py, viewport, focal):
    """The published projection, one coordinate after the other."""
    a, e, t = (angle * np.pi / 180 for angle in (azimuth, elevation, theta))
    centre = [distance * np.cos(e) * np.sin(a), -distance * np.cos(e) * np.cos(a), distance * np.sin(e)]
    x, y, z = (value - other for value, other in zip(point, centre, strict=True))
    x, y = np.cos(-a) * x - np.sin(-a) * y, np.sin(-a) * x + np.cos(-a) * y
    turn = -(np.pi / 2 - e)
    y, z = np.cos(turn) * y - np.sin(turn) * z, np.sin(turn) * y + np.cos(turn) * z
    u, v = viewport * focal * x / -z, viewport * focal * y / -z
    u, v = np.cos(t) * u - np.sin(t) * v, np.sin(t) * u + np.cos(t) * v
    return u + px, -v + py


@given(st.tuples(*[st.floats(-0.5, 0.5)] * 3), ANGLES, st.floats(-90, 90), st.floats(2, 50), st.floats(-180, 180))
def test_projection_step_by_step(point, azimuth, elevation, distance, theta):
    wanted = _step_by_step(point, azimuth, elevation, distance, theta, 120.0, 80.0, 3000.0, 1.0)
    found = project(point, azimuth, elevation, distance, theta, 120.0, 80.0)
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-6)


def test_the_camera_of_the_projection_turns_the_other_way():
    """The image is turned by +theta, where the evaluation's rotation has −theta: both as published."""
    point = np.array([0.2, -0.1, 0.3])
    camera = rotation(40, 20, -15) @ point + [0, 0, -8]
    flat = 3000 * camera[:2] / -camera[2] * [1, -1] + [100, 50]
    assert np.allclose(project(point, 40, 20, 8, 15, 100, 50), flat)


def test_projection_of_many_points():
    points = np.random.default_rng(0).uniform(-1, 1, (4, 5, 3))
    found = project(points, 30, 20, 9, 5, 10, 20, viewport=2000, focal=1.5)
    assert found.shape == (4, 5, 2)
    assert np.allclose(found[2, 3], project(points[2, 3], 30, 20, 9, 5, 10, 20, 2000, 1.5))
    assert project(np.empty((0, 3)), 0, 0, 1).shape == (0, 2)
    with pytest.raises(DataError, match=r"\(\.\.\., 3\)"):
        project([[1.0, 2.0]], 0, 0, 1)


def test_geodesic_is_the_angle_between_rotations():
    one, other = Rotation.random(200, random_state=0), Rotation.random(200, random_state=1)
    wanted = np.rad2deg((one.inv() * other).magnitude())
    found = geodesic(one.as_matrix(), other.as_matrix())
    assert np.allclose(found, wanted, atol=1e-6)
    cosine = (np.trace(np.swapaxes(one.as_matrix(), 1, 2) @ other.as_matrix(), axis1=1, axis2=2) - 1) / 2
    assert np.allclose(found, np.rad2deg(np.arccos(cosine)), atol=1e-5), "the published formula"
    assert geodesic(one.as_matrix()[:, None], other.as_matrix()[None]).shape == (200, 200)


@pytest.mark.parametrize("angle", [0.0, 1e-6, 0.5, 90.0, 179.0, 180.0])
def test_geodesic_of_known_angles(angle):
    assert geodesic(rotation(10, 20, 5), rotation(10, 20, 5 + angle)) == pytest.approx(angle, abs=1e-5)


def test_geodesic_of_unknown_poses():
    assert np.isnan(geodesic(rotation(np.nan, 0), rotation(0, 0)))
