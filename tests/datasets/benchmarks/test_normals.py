import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.datasets.benchmarks.nyu.normals import Intrinsics, surface_normals
from setsup.errors import DataError

Array = npt.NDArray[Any]

CAMERA = Intrinsics(518.9, 519.5, 324.6, 252.7)
SMALL = Intrinsics(100.0, 110.0, 31.0, 27.5)


def rays(camera: Intrinsics, height: int, width: int) -> Array:
    """Points of depth 1."""
    rows, columns = np.mgrid[:height, :width]
    return np.stack([(columns - camera.cx) / camera.fx, (rows - camera.cy) / camera.fy, np.ones((height, width))], -1)


def plane(camera: Intrinsics, shape: tuple[int, int], normal: Array, distance: float) -> Array:
    """Depth of the plane normal·p = −distance, 0 where it is not within 10 m of the camera."""
    with np.errstate(divide="ignore"):
        depth = -distance / (rays(camera, *shape) @ normal)
    return np.asarray(np.where((depth > 0) & (depth < 10), depth, 0))


def degrees(a: Array, b: Array) -> Array:
    # of the chord, since the arc cosine of a number near 1 tells little
    return np.asarray(np.degrees(2 * np.arcsin(np.clip(np.linalg.norm(a - b, axis=-1) / 2, 0, 1))))


def unit(*vector: float) -> Array:
    return np.asarray(np.array(vector) / np.linalg.norm(vector))


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("dtype", ["float32", "float64", ">f4"])
@pytest.mark.parametrize("normal", [(0, 0, -1), (0, -1, 0), (1, 0, -0.2), (0.3, 0.8, -0.5), (-0.9, -0.3, -0.3)])
def test_planes_are_exact_however_tilted(normal: tuple[float, ...], dtype: str) -> None:
    depth = plane(CAMERA, (480, 640), unit(*normal), 1.4).astype(dtype)
    found = surface_normals(depth, CAMERA)
    assert found.shape == (480, 640, 3)
    assert found.dtype == np.float32
    seen = depth > 0
    assert seen.any()
    np.testing.assert_allclose(np.linalg.norm(found[seen], axis=-1), 1, atol=1e-6)
    assert degrees(found, unit(*normal))[seen].max() < 0.1
    assert not found[~seen].any()


@given(tilt=st.floats(-1.2, 1.2), turn=st.floats(-3.1, 3.1), distance=st.floats(0.2, 8.0), radius=st.integers(1, 7))
@settings(max_examples=30)
def test_any_plane_faces_the_camera(tilt: float, turn: float, distance: float, radius: int) -> None:
    normal = -np.array([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)])
    depth = plane(SMALL, (55, 60), normal, distance)
    found = surface_normals(depth.astype(np.float32), SMALL, radius)
    # where inverse depth changes by more than 5 % from one pixel to the next, no neighbour is used
    steep = np.abs(np.array(np.gradient(np.where(depth > 0, 1 / np.maximum(depth, 1e-9), 0)))).max(0) * depth > 0.04
    seen = (depth > 0) & ~steep
    seen[:1], seen[-1:], seen[:, :1], seen[:, -1:] = False, False, False, False
    assert degrees(found, normal)[seen].max(initial=0) < 0.2
    assert ((found * rays(SMALL, 55, 60)).sum(-1) <= 0).all()


def test_a_sphere() -> None:
    ray, centre, radius = rays(CAMERA, 480, 640), np.array([0.1, -0.05, 2.0]), 0.5
    a, b, c = (ray * ray).sum(-1), ray @ centre, centre @ centre - radius**2
    inside = b * b - a * c
    depth = np.where(inside > 0, (b - np.sqrt(np.maximum(inside, 0))) / a, 0)
    true = (ray * depth[..., None] - centre) / radius
    error = degrees(surface_normals(depth.astype(np.float32), CAMERA), true)
    # away from the silhouette, where the surface turns away within the window
    facing = (depth > 0) & (-(true * ray).sum(-1) / np.linalg.norm(ray, axis=-1) > 0.4)
    assert facing.sum() > 30_000
    assert error[facing].max() < 0.5
    assert np.median(error[facing]) < 0.05


@pytest.mark.parametrize("angles", [(0.0, 0.0, 0.0), (0.4, -0.3, 0.2), (-0.5, 0.6, -0.7)])
def test_a_tilted_room(angles: tuple[float, float, float]) -> None:
    """Walls of a box seen from inside, each pixel told by a formula of its own."""
    turn = np.eye(3)
    for axis, angle in enumerate(angles):
        step, (i, j) = np.eye(3), [k for k in range(3) if k != axis]
        step[i, i] = step[j, j] = np.cos(angle)
        step[i, j], step[j, i] = -np.sin(angle), np.sin(angle)
        turn = turn @ step
    world = rays(CAMERA, 480, 640) @ turn.T
    walls = np.where(world > 0, [2.0, 1.3, 3.5], [-1.7, -1.2, -2.0]) / world
    axis = np.abs(walls).argmin(-1)
    depth = np.take_along_axis(walls, axis[..., None], -1)[..., 0]
    true = -np.take_along_axis(np.sign(world), axis[..., None], -1) * np.eye(3)[axis] @ turn
    error = degrees(surface_normals(depth.astype(np.float32), CAMERA), true)
    corner = np.zeros(axis.shape, bool)
    for down, across in itertools.product(range(-4, 5), repeat=2):
        corner |= np.roll(axis, (down, across), (0, 1)) != axis
    assert (~corner).mean() > 0.8
    assert error[~corner].max() < 0.1


def test_noise_has_the_stated_effect() -> None:
    depth = np.full((200, 200), 2.0) + np.random.default_rng(0).normal(0, 0.01, (200, 200))
    error = degrees(surface_normals(depth, Intrinsics(519, 519, 100, 100)), np.array([0, 0, -1]))
    expected = np.degrees(np.sqrt(2) * 519 * (0.01 / 4) / np.sqrt(9 * 60) / 0.5)
    assert np.sqrt((error[4:-4, 4:-4] ** 2).mean()) == pytest.approx(expected, rel=0.05)
    assert expected == pytest.approx(9, abs=0.1)
    wider = degrees(surface_normals(depth, Intrinsics(519, 519, 100, 100), radius=7), np.array([0, 0, -1]))
    assert wider.mean() < error.mean() / 2


def test_edges_do_not_smear() -> None:
    near, far = plane(CAMERA, (100, 100), unit(0.2, 0, -1), 1.0), plane(CAMERA, (100, 100), unit(0, 0.5, -1), 2.0)
    left = np.arange(100) < 50
    error = degrees(
        surface_normals(np.where(left, near, far), CAMERA),
        np.where(left[:, None], unit(0.2, 0, -1), unit(0, 0.5, -1)),
    )
    assert error.max() < 0.1


@pytest.mark.parametrize("hole", [0.0, -1.0, np.nan, np.inf, -np.inf, 1e-44])
def test_missing_depth_has_no_normal_and_spoils_no_other(hole: float) -> None:
    normal = unit(0.1, 0.2, -1)
    depth = plane(CAMERA, (60, 60), normal, 1.0).astype(np.float32)
    holes = np.random.default_rng(1).random((60, 60)) < 0.3
    depth[holes] = hole
    found = surface_normals(depth, CAMERA)
    assert not found[holes].any()
    assert degrees(found, normal)[~holes].max() < 0.1


def test_points_on_a_line_say_no_plane() -> None:
    for line in (np.s_[20, :], np.s_[:, 20], (np.arange(40), np.arange(40)), (np.arange(0, 40, 2), np.arange(20))):
        depth = np.zeros((40, 40))
        depth[line] = 2.0
        assert not surface_normals(depth, SMALL, 7).any()
    depth = np.zeros((40, 40))
    depth[20, 20:22] = depth[21, 20] = 2.0
    assert np.count_nonzero(surface_normals(depth, SMALL).any(-1)) == 3
    assert not surface_normals(np.zeros((40, 40)), SMALL).any()


@pytest.mark.parametrize("depth", [1e-30, 1e-10, 1e10, 3e38])
def test_any_scale(depth: float) -> None:
    found = surface_normals(np.full((9, 9), depth, np.float32), SMALL)
    assert np.isfinite(found).all()


def test_what_it_cannot_take() -> None:
    for wrong in (np.zeros((2, 3, 4)), np.zeros((3, 4), int), np.zeros(5), "depth"):
        with pytest.raises(DataError, match=r"depth must be a floating-point array of shape \(height, width\)"):
            surface_normals(wrong, SMALL)
    for radius in (0, 8, -1):
        with pytest.raises(DataError, match="radius must be from 1 to 7"):
            surface_normals(np.zeros((3, 4)), SMALL, radius)
    assert surface_normals(np.zeros((0, 4)), SMALL).shape == (0, 4, 3)
