"""The floor of a room against planes that are known, and against rooms that have none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from setsup.errors import DataError, SetsupError
from setsup.scenes import Mesh
from setsup.scenes.recipes.room.floor import find_floor, levelled


def sheet(size, cells, height, rng, noise, offset=(0.0, 0.0)):
    """A level grid of triangles with noise, (v, 3) and (f, 3)."""
    nx, ny = cells
    x, y = np.meshgrid(np.linspace(-size[0] / 2, size[0] / 2, nx + 1), np.linspace(-size[1] / 2, size[1] / 2, ny + 1))
    points = np.stack([x + offset[0], y + offset[1], np.full_like(x, height)], axis=-1).reshape(-1, 3)
    corner = np.arange((nx + 1) * (ny + 1)).reshape(ny + 1, nx + 1)
    a, b, c, d = corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]
    faces = np.concatenate([np.stack(three, axis=-1).reshape(-1, 3) for three in ((a, b, c), (a, c, d))])
    return points + rng.normal(0, noise, points.shape), faces


def joined(parts):
    starts = np.cumsum([0, *(len(points) for points, _ in parts[:-1])])
    return np.concatenate([p for p, _ in parts]), np.concatenate(
        [f + s for (_, f), s in zip(parts, starts, strict=True)]
    )


def clutter(rng, count, low, high):
    """Triangles of about 0.2 m anywhere in a box."""
    middles = rng.uniform(low, high, (count, 1, 3))
    return (middles + rng.normal(0, 0.1, (count, 3, 3))).reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


def room(rng, noise=0.0, walls=True):
    """A floor of 5 m × 4 m at z = 0 below a ceiling just as large, with a table, a platform of junk and walls."""
    parts = [
        sheet((5, 4), (60, 50), 0.0, rng, noise),
        sheet((5, 4), (60, 50), 2.6, rng, noise),
        sheet((2, 1.5), (20, 15), 0.75, rng, noise, (1, 0.5)),
        clutter(rng, 300, (-2.4, -1.9, 0.15), (2.4, 1.9, 2.4)),
    ]
    if walls:
        for side, turn in ((-2.5, 90), (2.5, 90)):
            points, faces = sheet((2.6, 4), (20, 40), 0.0, rng, noise)
            turned = points @ Rotation.from_euler("y", turn, degrees=True).as_matrix().T + (side, 0, 1.3)
            parts.append((turned, faces))
    return joined(parts)


@pytest.mark.long("renderings")
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    axis=st.sampled_from([0, 1, 2]),
    tilt=st.floats(0, 20),
    azimuth=st.floats(0, 360),
    noise=st.floats(0, 0.015),
    shift=st.tuples(*[st.floats(-20, 20)] * 3),
)
def test_a_tilted_floor_under_clutter_is_found(seed, axis, tilt, azimuth, noise, shift) -> None:
    rng = np.random.default_rng(seed)
    points, faces = room(rng, noise)
    up = np.eye(3)[axis]
    stand = Rotation.align_vectors([up], [[0, 0, 1]])[0]
    lean = Rotation.from_rotvec(
        np.radians(tilt) * np.cross(up, np.roll(up, 1)) * np.cos(np.radians(azimuth))
        + np.radians(tilt) * np.roll(up, 1) * np.sin(np.radians(azimuth))
    )
    turned = lean * stand
    floor = find_floor(Mesh(turned.apply(points) + shift, faces), up=up)
    normal = turned.apply([0, 0, 1])
    assert np.degrees(np.arccos(np.clip(floor.normal @ normal, -1, 1))) < 0.4
    corners = turned.apply([[x, y, 0] for x in (-2.5, 2.5) for y in (-2, 2)]) + shift
    assert np.abs(corners @ floor.normal - floor.height).max() < 0.02
    assert abs(np.linalg.norm(floor.normal) - 1) < 1e-9


def test_it_agrees_with_least_squares_of_the_floor_alone() -> None:
    rng = np.random.default_rng(3)
    points, faces = room(rng, 0.012, walls=False)
    points[: 61 * 51, 2] += 0.05 * points[: 61 * 51, 0] - 0.03 * points[: 61 * 51, 1] + 0.4
    floor = find_floor(Mesh(points, faces), up=(0, 0, 1))
    own = points[: 61 * 51]
    (a, b, c), *_ = np.linalg.lstsq(np.column_stack([own[:, :2], np.ones(len(own))]), own[:, 2], rcond=None)
    normal = np.array([-a, -b, 1]) / np.sqrt(a * a + b * b + 1)
    assert floor.normal == pytest.approx(normal, abs=2e-3)
    assert floor.height == pytest.approx(c * normal[2], abs=3e-3)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_shortest_axis_is_taken_for_up(axis) -> None:
    points, faces = room(np.random.default_rng(0))
    floor = find_floor(Mesh(np.roll(points, axis - 2, axis=1), faces))
    assert floor.normal == pytest.approx(np.eye(3)[axis], abs=1e-3)
    assert floor.height == pytest.approx(0, abs=5e-3)


def test_of_equally_long_axes_the_last_is_up() -> None:
    points, faces = sheet((3, 3), (30, 30), 0.0, np.random.default_rng(0), 0.0)
    top, more = sheet((3, 3), (2, 2), 3.0, np.random.default_rng(0), 0.0)
    assert find_floor(Mesh(*joined([(points, faces), (top, more)]))).normal == pytest.approx((0, 0, 1), abs=1e-6)


def test_a_floor_of_which_little_is_seen_is_below_a_whole_ceiling() -> None:
    rng = np.random.default_rng(4)
    points, faces = sheet((5, 4), (60, 50), 0.0, rng, 0.005)
    middles = points[faces].mean(axis=1)
    seen = faces[np.abs(middles[:, 0]) < 1.2]  # about half of it
    floor = find_floor(Mesh(*joined([(points, seen), sheet((5, 4), (60, 50), 2.5, rng, 0.005)])), up=(0, 0, 1))
    assert floor.height == pytest.approx(0, abs=5e-3)


def test_area_counts_and_not_the_density_of_triangles() -> None:
    rng = np.random.default_rng(1)
    two = np.array([[-2, -2, 0], [2, -2, 0], [2, 2, 0], [-2, 2, 0]], float), np.array([[0, 1, 2], [0, 2, 3]])
    shelf = sheet((1, 1), (150, 150), 1.2, rng, 0.0)
    floor = find_floor(Mesh(*joined([two, shelf])))
    assert (floor.height, floor.share) == (pytest.approx(0, abs=1e-9), pytest.approx(16 / 17, abs=0.02))


def test_lower_planes_with_little_area_are_no_floor() -> None:
    rng = np.random.default_rng(2)
    points, faces = joined([room(rng, 0.005), sheet((1, 0.8), (10, 8), -0.5, rng, 0.005)])
    assert find_floor(Mesh(points, faces), up=(0, 0, 1)).height == pytest.approx(0, abs=5e-3)


def ball(radius):
    points, faces = sheet((2, 2), (80, 80), 0.0, np.random.default_rng(0), 0.0)
    u, v = np.pi * (points[:, 0] + 1), np.pi / 2 * points[:, 1]
    return radius * np.stack([np.cos(u) * np.cos(v), np.sin(u) * np.cos(v), np.sin(v)], axis=1), faces


def slope():
    points, faces = sheet((4, 4), (40, 40), 0.0, np.random.default_rng(0), 0.0)
    return Rotation.from_euler("x", 50, degrees=True).apply(points), faces


def four_walls():
    rng, parts = np.random.default_rng(0), []
    for number in range(4):
        points, faces = sheet((4, 2.5), (40, 25), -2.0, rng, 0.003)
        upright = Rotation.from_euler("x", 90, degrees=True).apply(points)
        parts.append((Rotation.from_euler("z", 90 * number, degrees=True).apply(upright), faces))
    return joined(parts)


def soup():
    return clutter(np.random.default_rng(0), 4000, (-3, -3, 0), (3, 3, 2.5))


@pytest.mark.parametrize("shape", [lambda: ball(2.0), slope, four_walls, soup], ids=["ball", "slope", "walls", "soup"])
def test_what_has_no_floor_is_refused(shape) -> None:
    with pytest.raises(DataError, match=r"found no floor in a mesh of .* m with the up direction"):
        find_floor(Mesh(*shape()), up=(0, 0, 1))


def test_a_mesh_without_area_is_refused() -> None:
    with pytest.raises(DataError, match="without area"):
        find_floor(Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]]))


@pytest.mark.parametrize("up", [(0, 0, 0), (0, 1), (np.nan, 0, 1), "y", (1, 2, None)])
def test_up_must_be_a_direction(up) -> None:
    with pytest.raises(SetsupError, match="up of a room"):
        find_floor(Mesh(*room(np.random.default_rng(0))), up=up)


@pytest.mark.long("renderings")
@settings(max_examples=6)
@given(seed=st.integers(0, 1000), tilt=st.floats(-25, 25), turn=st.floats(0, 360))
def test_a_levelled_room_stands_on_zero(seed, tilt, turn) -> None:
    points, faces = room(np.random.default_rng(seed), 0.004)
    turned = Rotation.from_euler("xy", [-90 + tilt, turn], degrees=True).apply(points)
    mesh = Mesh(turned + np.array([30, 2, -7]), faces)
    placement = levelled(mesh, up=(0, 1, 0))
    placed = placement.placed(mesh.vertices)
    floor = placed[: 61 * 51]
    assert np.abs(floor[:, 2]).max() < 0.04
    assert abs(floor[:, 2].mean()) < 3e-3
    assert placed[61 * 51 : 2 * 61 * 51, 2].mean() == pytest.approx(2.6, abs=0.02)
    assert (placed.min(axis=0) + placed.max(axis=0))[:2] == pytest.approx([0, 0], abs=1e-9)
    assert np.linalg.det(placement.rotation) == pytest.approx(1)
    assert placement.scale.tolist() == [1, 1, 1]
    assert placement.name == "room"
    assert placement.mesh is mesh


@pytest.mark.parametrize("up", [(0, 0, -1), (0, 0, 1)])
def test_a_room_on_its_head_is_turned_over_when_told(up) -> None:
    points, faces = room(np.random.default_rng(0))
    mesh = Mesh(points * (1, 1, up[2]), faces)
    placed = levelled(mesh, up=up).placed(mesh.vertices)
    assert np.abs(placed[: 61 * 51, 2]).max() < 5e-3
    assert placed[:, 2].max() > 2.5
