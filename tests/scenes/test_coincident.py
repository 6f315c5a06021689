"""Triangles in one place: the one that faces the viewer is seen, then the lowest number; by plain loops."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.scenes import Mesh, Placement, Rays, Scene
from setsup.scenes.surfaces.coincident import seen, shown_sides

POINTS = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
CORNERS = list(itertools.permutations(POINTS, 3))


def by_loops(corners: np.ndarray) -> list[list[int]]:
    found = []
    for one in corners:
        sides = []
        for front in (True, False):
            rotations = [np.roll(one, shift, axis=0).tolist() for shift in range(3)]
            same = [n for n, other in enumerate(corners) if other.tolist() in rotations]
            turned = [n for n, other in enumerate(corners) if other[::-1].tolist() in rotations]
            facing, away = (same, turned) if front else (turned, same)
            sides.append(min(facing) if facing else min(away))
        found.append(sides)
    return found


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(CORNERS), min_size=1, max_size=9))
def test_the_lowest_triangle_that_faces_the_viewer_is_seen(triangles: list) -> None:
    corners = np.array(triangles)
    wanted = by_loops(corners)
    found = shown_sides(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))
    if found is None:
        assert wanted == [[n, n] for n in range(len(corners))]
    else:
        assert found.tolist() == wanted


def test_corners_of_no_area_and_minus_zero() -> None:
    corners = np.array([[[0, 0, 0], [0, 0, 0], [1, 0, 0]], [[-0.0, 0, 0], [0, 0, -0.0], [1, 0, 0]]])
    assert shown_sides(corners.reshape(-1, 3), np.arange(6).reshape(-1, 3))[:, 0].tolist() == [0, 0]


def test_rays_see_each_side_of_a_leaf_with_two_sides() -> None:
    leaf = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]  # counterclockwise as seen from above
    faces = [[2, 1, 0], [0, 1, 2], [2, 1, 0], [0, 1, 2]]
    scene = Scene((Placement(Mesh(leaf, faces)),))
    rays = Rays(scene)
    above, _ = rays.hit([0.2, 0.2, 5], np.repeat([[0.0, 0, -1]], 50, axis=0))
    below, _ = rays.hit([0.2, 0.2, -5], np.repeat([[0.0, 0, 1]], 50, axis=0))
    assert set(above.tolist()) == {1}
    assert set(below.tolist()) == {0}


def test_nothing_stays_nothing() -> None:
    corners = np.array([CORNERS[0], CORNERS[0]])
    shown = shown_sides(corners.reshape(-1, 3), np.arange(6).reshape(-1, 3))
    assert seen(shown, corners, np.array([-1, 1], np.int32), np.zeros((2, 3))).tolist() == [-1, 0]


def test_copies_of_a_symmetric_mesh_are_told_apart() -> None:
    """Turned by half a turn about z, every corner has two other signs."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(30, 3, 3))
    corners = np.concatenate([half, half * [-1, -1, 1], half[:, ::-1], (half * [-1, -1, 1])[:, ::-1]])
    found = shown_sides(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))
    front = np.arange(120)
    back = np.concatenate([front[60:], front[:60]])
    assert found.tolist() == np.stack([front, back], axis=1).tolist()
    alone = corners[:60].reshape(-1, 3)
    assert shown_sides(alone, np.arange(180).reshape(-1, 3)) is None
