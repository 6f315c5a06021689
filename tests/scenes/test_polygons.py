"""Polygons cut into triangles: beside the shoelace formula, a test of points, and a cover without overlap."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from setsup.errors import DataError
from setsup.scenes import load_mesh
from setsup.scenes.meshes.polygons import MOST_CORNERS, triangulate

CASES = Path(__file__).parent / "cases" / "polygons"


def shoelace(flat):
    return abs(sum(a[0] * b[1] - a[1] * b[0] for a, b in pairwise([*flat, flat[0]]))) / 2


def areas(flat, triangles):
    """Signed areas of triangles in the plane."""
    a, b, c = (flat[triangles[:, corner]] for corner in range(3))
    first, second = (b - a).T, (c - a).T
    return (first[0] * second[1] - first[1] * second[0]) / 2


def inside(flat, points):
    """Whether points lie in a polygon: an odd number of its sides cross the ray to the right."""
    found = np.zeros(len(points), bool)
    for (ax, ay), (bx, by) in pairwise([*flat, flat[0]]):
        across = (ay > points[:, 1]) != (by > points[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            found ^= across & (points[:, 0] < ax + (points[:, 1] - ay) * (bx - ax) / (by - ay))
    return found


def in_space(flat, turn=0):
    points = np.concatenate([flat, np.zeros((len(flat), 1))], axis=1)
    return Rotation.random(rng=turn).apply(points) + np.array([3, -2, 5])


def check(flat, turn=0, least=1e-9):
    """A polygon is covered once, with all its triangles turned alike: then their areas add up to its own."""
    flat = np.asarray(flat, float)
    places, polygon = triangulate(in_space(flat, turn), np.arange(len(flat)), np.array([len(flat)]))
    assert places.shape == (len(flat) - 2, 3)
    assert (polygon == 0).all()
    found = areas(flat, places)
    assert np.abs(found).sum() == pytest.approx(shoelace(flat), rel=1e-9)
    assert abs(found.sum()) == pytest.approx(shoelace(flat), rel=1e-9)
    middles = flat[places].mean(axis=1)[np.abs(found) > least]
    assert inside(flat, middles).all()
    return places


@pytest.mark.parametrize("name", ["L.obj", "L.off", "L.ply", "dart.obj", "dart_started_at_the_notch.obj"])
def test_the_cases(name):
    mesh = load_mesh(CASES / name)
    flat = {"L": [[1, 0], [2, 0], [2, 2], [0, 2], [0, 1], [1, 1]], "d": [[0, 0], [2, 1], [0, 2], [0.5, 1]]}[name[0]]
    corners = mesh.corners
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.linalg.norm(across, axis=1).sum() / 2 == pytest.approx(shoelace(flat))
    assert inside(flat, corners.mean(axis=1)[:, :2]).all()


SHAPES = {
    "comb": [(0, 0), (9, 0), *[(9 - place / 2, 3 if place % 2 else 1) for place in range(19)]],
    "spiral": [(0, 0), (6, 0), (6, 6), (1, 6), (1, 2), (4, 2), (4, 4), (3, 4), (3, 3), (2, 3), (2, 5), (5, 5), (5, 1),
               (0, 1)],
    "with corners on a side": [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2), (0, 1)],
    "bridged hole": [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0), (1, 1), (1, 3), (3, 3), (3, 1), (1, 1)],
    "star": [((2 - place % 2) * np.cos(place / 7 * np.pi), (2 - place % 2) * np.sin(place / 7 * np.pi))
             for place in range(14)],
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("start", range(0, 8, 3))
@pytest.mark.parametrize("way", [1, -1])
def test_shapes(name, start, way):
    flat = np.roll(np.array(SHAPES[name], float), start, axis=0)[::way]
    check(flat, start)


@given(seed=st.integers(0, 10_000), corners=st.integers(4, 40))
def test_star_shaped_polygons(seed, corners):
    dice = np.random.default_rng(seed)
    angle = np.sort(dice.uniform(0, 2 * np.pi, corners))
    if np.diff(np.append(angle, angle[0] + 2 * np.pi)).max() > 3:
        return  # the middle may lie outside
    radius = dice.uniform(0.1, 1, corners)
    check(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), seed)


def test_quads_of_every_kind():
    """Two triangles, within the quad wherever its notch is; convex ones are fanned from their first corner."""
    dart = np.array([[0, 0], [2, 1], [0, 2], [0.5, 1]])
    for start in range(4):
        check(np.roll(dart, start, axis=0), start)
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    assert triangulate(square, np.arange(4), np.array([4]))[0].tolist() == [[0, 1, 2], [0, 2, 3]]
    flat = np.zeros((4, 3))
    assert triangulate(flat, np.arange(4), np.array([4]))[0].tolist() == [[0, 1, 2], [0, 2, 3]]


def test_polygons_of_all_kinds_keep_their_order():
    points = in_space(np.array([[0, 0], [2, 1], [0, 2], [0.5, 1], [5, 5], [6, 5], [6, 6]], float))
    lengths = np.array([3, 4, 3, 5])
    corners = np.array([4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 6, 3])
    places, polygon = triangulate(points, corners, lengths)
    assert polygon.tolist() == [0, 1, 1, 2, 3, 3, 3]
    assert sorted(places[1:3].ravel().tolist()) == [3, 4, 4, 5, 6, 6]


def test_crossed_polygons_come_to_an_end():
    dice = np.random.default_rng(0)
    for corners in range(4, 60):
        points = dice.normal(size=(corners, 3))
        assert triangulate(points, np.arange(corners), np.array([corners]))[0].shape == (corners - 2, 3)


def test_a_polygon_of_too_many_corners():
    count = MOST_CORNERS + 2
    angle = np.arange(count) * (2 * np.pi / count)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    assert len(triangulate(ring, np.arange(count), np.array([count]))[0]) == count - 2
    ring[7] *= 0.5
    with pytest.raises(DataError, match="is not convex"):
        triangulate(ring, np.arange(count), np.array([count]))


def test_a_corner_that_is_there_twice_turns_as_one():
    notched = [(0, 0), (4, 0), (4, 3), (2, 1), (0, 3)]  # (2, 1) turns the other way
    for place in range(5):
        for turn in range(5):
            x, y = notched[place]
            for more in ([(x, y)], [(x, y), (x, y)], [(x + 4e-16, y - 4e-16)]):
                again = [*notched[: place + 1], *more, *notched[place + 1 :]]
                check(again[turn:] + again[:turn], turn)


def exact_cover(corners, places):
    """Areas of the triangles, all positive, over that of their polygon, seen along an axis: exact but for the ratio."""
    normal = np.abs(np.cross(corners, np.roll(corners, -1, axis=0)).sum(axis=0))
    seen = [tuple(map(Fraction, corner)) for corner in np.delete(corners, normal.argmax(), axis=1).tolist()]
    total = sum(a[0] * b[1] - a[1] * b[0] for a, b in pairwise([*seen, seen[0]]))
    found = Fraction(0)
    for triangle in places.tolist():
        a, b, c = (seen[corner] for corner in triangle)
        found += abs((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
    return float(found / abs(total))


@pytest.mark.parametrize("name", [*SHAPES, "notched"])
def test_corners_that_are_there_twice_but_for_rounding(name):
    """Corners that meet, and some on sides, of which the coordinates are rounded: then the outline crosses itself."""
    dice = np.random.default_rng(0)
    start = SHAPES.get(name, [(0, 0), (4, 0), (4, 3), (2, 1), (0, 3)])
    for seed in range(40):
        flat = [np.array(corner, float) for corner in start]
        for _ in range(3):
            side = dice.integers(len(flat))
            share = dice.uniform(0.1, 0.9)
            flat.insert(side + 1, flat[side] + share * (flat[(side + 1) % len(flat)] - flat[side]))
        for _ in range(2):
            corner = dice.integers(len(flat))
            flat.insert(corner + dice.integers(2), flat[corner] + dice.normal(size=2) * 10.0 ** dice.integers(-10, -6))
        placed = in_space(np.array(flat), seed).astype(np.float32).astype(float)
        placed = np.roll(placed, dice.integers(len(placed)), axis=0)
        places, _ = triangulate(placed, np.arange(len(placed)), np.array([len(placed)]))
        assert exact_cover(placed, places) == pytest.approx(1, abs=1e-4), seed
