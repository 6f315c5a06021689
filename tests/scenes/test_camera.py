import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from setsup.errors import SetsupError
from setsup.scenes import Camera

cv2 = pytest.importorskip("cv2")


def some_camera(seed, skew=0.0):
    dice = np.random.default_rng(seed)
    height, width = dice.integers(1, 300, 2)
    focal = dice.uniform(20, 500, 2)
    k = [[focal[0], skew, dice.uniform(-50, 300)], [0, focal[1], dice.uniform(-50, 300)], [0, 0, 1]]
    return Camera(int(height), int(width), k, Rotation.random(rng=dice).as_matrix(), dice.normal(size=3))


@pytest.mark.parametrize("seed", range(5))
def test_projection_is_that_of_opencv_and_of_the_plain_formula(seed):
    camera = some_camera(seed)
    points = np.random.default_rng(seed).normal(size=(200, 3)) * 3
    pixels, depth = camera.project(points)
    turn, _ = cv2.Rodrigues(camera.rotation)
    expected, _ = cv2.projectPoints(points, turn, camera.translation, camera.k, None)
    seen = depth > 0.01
    assert seen.sum() > 20
    assert np.allclose(pixels[seen], expected[seen, 0], rtol=1e-9, atol=1e-7)
    for point, pixel, far in zip(points, pixels, depth, strict=True):
        x, y, z = (sum(camera.rotation[i, j] * point[j] for j in range(3)) + camera.translation[i] for i in range(3))
        assert far == pytest.approx(z, abs=1e-12)
        if z > 0:
            u = camera.k[0, 0] * x / z + camera.k[0, 1] * y / z + camera.k[0, 2]
            assert pixel == pytest.approx([u, camera.k[1, 1] * y / z + camera.k[1, 2]], rel=1e-9, abs=1e-7)
        else:
            assert np.isnan(pixel).all()


@given(
    st.integers(0, 2**32 - 1),
    st.floats(-100, 100),
    st.tuples(st.floats(-500, 500), st.floats(-500, 500)),
    st.floats(1e-3, 1e3),
)
def test_rays_lead_back_to_their_pixels(seed, skew, pixel, depth):
    camera = some_camera(seed, skew)
    found, far = camera.project(camera.centre + depth * camera.rays(pixel))
    assert far == pytest.approx(depth, rel=1e-9, abs=1e-9)
    # what the subtraction of two positions loses counts more the closer the point is
    assert found == pytest.approx(np.array(pixel), abs=1e-6 + 1e-10 / depth)


def test_all_rays_by_default_row_after_row():
    camera = some_camera(3, skew=2.0)
    rays = camera.rays()
    assert rays.shape == (camera.height * camera.width, 3)
    x, y = 7 % camera.width, min(11, camera.height - 1)
    k, turn = np.linalg.inv(camera.k), camera.rotation.T
    assert rays[y * camera.width + x] == pytest.approx(turn @ k @ [x, y, 1], rel=1e-9)
    assert camera.pixels()[y * camera.width + x].tolist() == [x, y]


def test_axes_of_a_camera_that_looks_at_something():
    # at y = −5, looking along +y with z up: x of the world is to the right, z is up, and so −y of the picture
    camera = Camera.look_at((0, -5, 1), (0, 0, 1), height=101, width=201, focal_length=100)
    assert np.allclose(camera.rotation, [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-15)
    assert camera.centre == pytest.approx([0, -5, 1])
    pixels, depth = camera.project([[0, 0, 1], [1, 0, 1], [0, 0, 2], [0, -6, 1]])
    assert np.allclose(pixels[:3], [[100, 50], [120, 50], [100, 30]])
    assert depth.tolist() == [5, 5, 5, -1]
    assert np.isnan(pixels[3]).all()


@given(st.integers(0, 2**32 - 1))
def test_look_at_puts_the_target_in_the_middle_and_up_upwards(seed):
    dice = np.random.default_rng(seed)
    eye, target, up = dice.normal(size=(3, 3))
    camera = Camera.look_at(eye, target, height=48, width=64, field_of_view=1.0, up=up)
    assert np.allclose(camera.centre, eye)
    (middle, above), depth = camera.project([target, target + 1e-3 * up])
    assert middle == pytest.approx([31.5, 23.5], abs=1e-6)
    assert depth[0] == pytest.approx(np.linalg.norm(target - eye))
    assert above[0] == pytest.approx(31.5, abs=1e-4)
    assert above[1] < 23.5


def test_looking_along_up_is_no_accident():
    down = Camera.look_at((0, 0, 3), (0, 0, 0), height=9, width=9, focal_length=9)
    (pixel,), _ = down.project([[0, 1, 0]])
    assert pixel == pytest.approx([4, 1])  # y takes the place of up
    across = Camera.look_at((0, 3, 0), (0, 0, 0), height=9, width=9, focal_length=9, up=(0, 1, 0))
    (pixel,), _ = across.project([[1, 0, 0]])
    assert pixel == pytest.approx([4, 1])  # and x where that is the way, too


def test_a_field_of_view_reaches_from_edge_to_edge():
    camera = Camera.look_at((0, 0, 0), (0, 1, 0), height=48, width=64, field_of_view=math.radians(70))
    pixels, _ = camera.project([[0, 1, math.tan(math.radians(35))], [0, 1, -math.tan(math.radians(35))]])
    assert pixels[:, 1] == pytest.approx([-0.5, 47.5])


def coordinate_image(camera):
    """Rays of all pixels as a picture of three channels: they are linear in the pixel."""
    return camera.rays().reshape(camera.height, camera.width, 3)


def test_windows_are_slices_of_the_image():
    camera = some_camera(1, skew=1.5)
    whole = coordinate_image(camera)
    window = camera.windowed(5, 3, camera.height - 9, camera.width - 7)
    assert np.allclose(coordinate_image(window), whole[3:-6, 5:-2], atol=1e-12)
    padded = camera.windowed(-4, -2, camera.height + 4, camera.width + 9)
    assert np.allclose(coordinate_image(padded)[2 : 2 + camera.height, 4 : 4 + camera.width], whole, atol=1e-12)


@pytest.mark.parametrize(("down", "across"), [(1, 1), (2, 3), (5, 4), (7, 2)])
def test_smaller_images_are_means_over_blocks(down, across):
    camera = Camera(down * 13, across * 17, [[90, 0.5, 31], [0, 80, 22], [0, 0, 1]], np.eye(3), (0, 0, 0))
    blocks = coordinate_image(camera).reshape(13, down, 17, across, 3).mean(axis=(1, 3))
    assert np.allclose(coordinate_image(camera.resized(13, 17)), blocks, atol=1e-12)


@pytest.mark.parametrize("size", [(61, 47), (64, 96), (100, 33)])
def test_resizing_agrees_with_opencv(size):
    camera = Camera(
        48, 64, [[90, 0, 31], [0, 80, 22], [0, 0, 1]], Rotation.from_euler("xyz", [0.1, 2, 3]).as_matrix(), (1, 2, 3)
    )
    height, width = size
    drawn = cv2.resize(coordinate_image(camera), (width, height), interpolation=cv2.INTER_LINEAR)
    found = coordinate_image(camera.resized(height, width))
    edge = 3  # where the resized picture asks for what lies beyond the edge, it repeats the edge
    # OpenCV interpolates with float32 weights
    assert np.allclose(found[edge:-edge, edge:-edge], drawn[edge:-edge, edge:-edge], atol=1e-6)


def test_a_camera_is_its_numbers():
    camera = some_camera(4)
    again = Camera.from_dict(json.loads(json.dumps(camera.to_dict())))
    copy = pickle.loads(pickle.dumps(camera))
    assert again == camera == copy
    assert len({again, camera, copy}) == 1
    for one in (again, camera, copy):
        assert not any(array.flags.writeable for array in (one.k, one.rotation, one.translation))
    assert camera != some_camera(5)
    assert camera != "camera"
    moved = camera.to_dict()
    moved["translation"][0] = np.nextafter(moved["translation"][0], 9)
    assert Camera.from_dict(moved) != camera
    zero = Camera(2, 2, np.eye(3), np.eye(3), (0.0, 0, 0))
    minus = Camera(2, 2, np.eye(3), np.eye(3), (-0.0, 0, 0))
    assert zero == minus
    assert hash(zero) == hash(minus)


def test_a_camera_keeps_no_array_of_others():
    k = np.array([[9.0, 0, 4], [0, 9, 4], [0, 0, 1]])
    camera = Camera(9, 9, k, np.eye(3), np.zeros(3))
    k[0, 0] = 5
    assert camera.k[0, 0] == 9


GOOD = {
    "height": 4,
    "width": 6,
    "k": [[5, 0, 2.5], [0, 5, 1.5], [0, 0, 1]],
    "rotation": np.eye(3),
    "translation": [0, 0, 0],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": [[0, 0, 2.5], [0, 5, 1.5], [0, 0, 1]]}, "must be an invertible matrix"),
        ({"k": [[5, 0, 2.5], [0, 0, 1.5], [0, 0, 1]]}, "must be an invertible matrix"),
        ({"k": [[5, 0, 0], [0, 5, 0], [2.5, 1.5, 1]]}, "must be an invertible matrix"),
        ({"k": np.zeros((3, 3))}, "must be an invertible matrix"),
        ({"k": [[5, 0, 2.5], [1, 5, 1.5], [0, 0, 1]]}, "must be an invertible matrix"),
        ({"k": [[5, 0, np.nan], [0, 5, 1.5], [0, 0, 1]]}, "3 × 3 finite numbers"),
        ({"k": [5, 5, 2.5, 1.5]}, "3 × 3 finite numbers"),
        ({"k": [[5, 0], [0, 5, 1], [0, 0, 1]]}, "3 × 3 finite numbers"),
        ({"k": "a matrix"}, "3 × 3 finite numbers"),
        ({"rotation": np.diag([1, 1, -1])}, "must be a rotation matrix"),
        ({"rotation": 2 * np.eye(3)}, "must be a rotation matrix"),
        ({"rotation": np.ones((3, 3))}, "must be a rotation matrix"),
        ({"rotation": np.full((3, 3), np.inf)}, "finite"),
        ({"translation": [0, 0]}, "translation of a camera"),
        ({"translation": [0, np.inf, 0]}, "translation of a camera"),
        ({"height": 0}, "height of a camera"),
        ({"width": 1 << 16}, "width of a camera"),
        ({"width": 6.0}, "width of a camera"),
        ({"height": True}, "height of a camera"),
    ],
)
def test_what_is_no_camera_is_refused(changed, message):
    with pytest.raises(SetsupError, match=message) as error:
        Camera(**{**GOOD, **changed})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": (1, 2, 3)}, "cannot look at its own position"),
        ({"field_of_view": 1.0, "focal_length": 5.0}, "either"),
        ({"field_of_view": None}, "either"),
        ({"field_of_view": 3.2}, "between 0 and π"),
        ({"field_of_view": 0.0}, "between 0 and π"),
        ({"field_of_view": float("nan")}, "between 0 and π"),
        ({"field_of_view": None, "focal_length": 0.0}, "focal_length must be a finite number above 0, not 0.0"),
        ({"field_of_view": None, "focal_length": -5.0}, "focal_length must be a finite number above 0"),
        ({"field_of_view": None, "focal_length": float("nan")}, "focal_length must be a finite number above 0"),
        ({"target": (1, 2)}, "target"),
        ({"target": (1, 1e200, 3)}, "at infinity"),
        ({"up": (0, 0, float("nan"))}, "up"),
    ],
)
def test_what_cannot_be_looked_at(arguments, message):
    given = {"target": (0, 0, 0), "height": 4, "width": 4, "field_of_view": 1.0, **arguments}
    with pytest.raises(SetsupError, match=message):
        Camera.look_at((1, 2, 3), **given)


@pytest.mark.parametrize("content", [{}, {"height": 3}, [], None, {**GOOD, "k": None}])
def test_what_is_no_dict_of_a_camera(content):
    with pytest.raises(SetsupError, match=r"a camera must be|k of a camera"):
        Camera.from_dict(content)
