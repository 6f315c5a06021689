"""Free positions against what is known of simple rooms, and against brute force on furnished ones."""

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import DataError
from setsup.random import fold, stream_key
from setsup.scenes import Mesh, Placement, Rays, Scene
from setsup.scenes.recipes.room.made import made_room
from setsup.scenes.recipes.room.space import CLEARANCE, Surfaces, distance_to_triangles, free_space
from tests.scenes.ray_scenes import first_hits

KEY = fold(stream_key(0, "test"), 0)


def block(low, high, sides=6):
    """Box between two corners; of fewer than six sides, the upper and then the outer ones are missing."""
    made = trimesh.creation.box(bounds=[low, high])
    keep = made.face_normals @ np.array([[0, 0, -1], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]]).T > 0.9
    faces = made.faces[keep[:, :sides].any(axis=1)]
    return Placement(Mesh(np.array(made.vertices), np.array(faces)))


def space_of(*placements, key=KEY, **options):
    return free_space(Surfaces(Rays(Scene(placements))), key, **options)


def nearest(points, corners):
    """Distance of points to the nearest of all triangles, by trimesh's formula."""
    found = np.full(len(points), np.inf)
    for start in range(0, len(points), 20):
        some = points[start : start + 20]
        pairs = np.repeat(some, len(corners), axis=0)
        there = trimesh.triangles.closest_point(np.tile(corners, (len(some), 1, 1)), pairs)
        found[start : start + 20] = np.linalg.norm(pairs - there, axis=1).reshape(len(some), -1).min(axis=1)
    return found


@given(seed=st.integers(0, 10_000), size=st.sampled_from([1e-3, 1.0, 1e3]))
def test_distances_agree_with_trimesh(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    corners, points = rng.normal(size=(200, 3, 3)), 2 * rng.normal(size=(200, 3))
    # theirs at one size only: its tolerances are in metres
    away = size * np.linalg.norm(points - trimesh.triangles.closest_point(corners, points), axis=1)
    np.testing.assert_allclose(distance_to_triangles(size * points, size * corners), away, rtol=1e-6, atol=1e-9 * size)


def test_triangles_without_area_are_segments_and_points() -> None:
    corners = np.array([[[0, 0, 0], [2, 0, 0], [1, 0, 0]], [[1, 1, 1]] * 3], float)
    points = np.array([[1.5, 0, 2.0], [1, 1, 4.0]])
    assert distance_to_triangles(points, corners).tolist() == [2, 3]


def test_a_closed_crate_takes_its_volume_and_nobody_stands_in_it() -> None:
    crate_low, crate_high = np.array([-1.5, -1.0, 0.2]), np.array([0.3, 0.6, 1.4])
    space = space_of(block((-2, -1.5, 0), (2, 1.5, 2.5)), block(crate_low, crate_high))
    inside = ((space.points > crate_low - CLEARANCE) & (space.points < crate_high + CLEARANCE)).all(axis=1)
    near = nearest(space.points[inside], Scene((block(crate_low, crate_high),)).triangles.corners)
    assert (near > CLEARANCE).all()  # only positions at the corners of the grown crate, which are rounded
    # the box of the positions less the grown crate and less what is too near to the floor; rounded edges are neglected
    volume = 3.8 * 2.8 * (2.4 - 0.05)
    grown = np.prod(crate_high - crate_low + 2 * CLEARANCE)
    share = (volume - grown) / (3.8 * 2.8 * 2.39)
    assert len(space.points) == pytest.approx(5000 * share, abs=4 * np.sqrt(5000 * share * (1 - share)))


def test_the_most_open_position_of_an_empty_room_is_its_middle() -> None:
    space = space_of(block((0, 0, 0), (3, 3, 3)))
    assert space.centre == pytest.approx([1.5, 1.5, 1.5], abs=0.15)
    walls = np.minimum(space.points, 3 - space.points).min(axis=1)
    assert space.clearance == pytest.approx(walls, abs=0.01)


def test_a_missing_ceiling_does_not_draw_positions_up() -> None:
    space = space_of(block((0, 0, 0), (5, 5, 2.6), sides=5))
    assert space.centre[2] == pytest.approx(1.3, abs=0.1)


def test_one_of_four_walls_may_be_missing() -> None:
    with_three = block((0, 0, 0), (4, 4, 2.5), sides=4)
    assert len(space_of(with_three).points) > 4500
    with pytest.raises(DataError, match="no free position"):
        space_of(block((0, 0, 0), (4, 4, 2.5), sides=3))


@pytest.mark.parametrize("sides", [(0.2, 4, 2.5), (4, 0.1, 2.5), (4, 4, 0.1)])
def test_rooms_that_are_too_small_are_refused(sides: tuple[float, float, float]) -> None:
    with pytest.raises(DataError, match="too small for a camera; check that the unit of the mesh is the metre"):
        space_of(block((0, 0, 0), sides))


def test_a_room_that_is_full_is_refused() -> None:
    shelves = [block((0, 0, height), (2, 2, height + 0.02)) for height in np.arange(0.0, 2.4, 0.08)]
    with pytest.raises(DataError, match="no free position"):
        space_of(block((0, 0, 0), (2, 2, 2.4)), *shelves)


@pytest.mark.long("renderings")
@pytest.mark.parametrize("number", range(2))
def test_in_furnished_rooms_every_position_is_clear_and_inside(number: int) -> None:
    scene = made_room(fold(stream_key(5, "test"), number))
    space = space_of(*scene.placements, count=400)
    corners = scene.triangles.corners
    away = nearest(space.points, corners)
    assert away.min() > CLEARANCE
    high = scene.bounds[1]
    box = np.minimum((high - space.points).min(axis=1), (space.points - scene.bounds[0])[:, :2].min(axis=1))
    exact = np.minimum(away, box)
    assert (space.clearance >= exact - 1e-9).all()
    assert (space.clearance - exact).max() < 0.06
    assert np.mean(space.clearance - exact < 1e-6) > 0.95
    hits = np.zeros(len(space.points), int)
    for way in np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]):
        hits += np.isfinite(first_hits(space.points, np.tile(way, (len(space.points), 1)), corners))
    assert hits.min() >= 3


def test_what_is_nearest_may_belong_to_a_piece_whose_middle_is_far() -> None:
    rng = np.random.default_rng(0)
    # a triangle whose corner is 0.04 m away, and many small ones 0.06 m away whose middles are nearer than its own
    large = np.array([[0.04, 0, 0], [0.18, 0.06, 0], [0.18, -0.06, 0]])
    ways = rng.normal(size=(40, 3))
    ways[:, 0] = -np.abs(ways[:, 0])
    small = 0.06 * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    small = small[:, None] + 1e-4 * rng.normal(size=(40, 3, 3))
    corners = np.concatenate([large[None], small])
    mesh = Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))
    surfaces = Surfaces(Rays(Scene((Placement(mesh),))))
    point = np.zeros((1, 3))
    about = surfaces.clearance(point)
    assert nearest(point, corners) == pytest.approx([0.04])
    assert about[0] > CLEARANCE  # one of the small ones: a few are looked at
    assert surfaces.clear(point, about, CLEARANCE).tolist() == [False]
    assert surfaces.clear(point, about, 0.039).tolist() == [True]


def test_gigantic_triangles_do_not_take_gigabytes() -> None:
    surfaces = Surfaces(Rays(Scene((block((0, 0, 0), (6e4, 5e4, 3e4)),))))
    assert len(surfaces._face) < 5_000_000
    points = np.array([[3e4, 2e4, 1e3], [3e4, 2e4, 0.04], [3e4, 2e4, 0.06]])
    about = surfaces.clearance(points)
    assert about == pytest.approx([1e3, 0.04, 0.06], rel=1e-6)
    assert surfaces.clear(points, about, CLEARANCE).tolist() == [True, False, True]
