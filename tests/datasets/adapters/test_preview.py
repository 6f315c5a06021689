import numpy as np
import pytest

from setsup.datasets.adapters.preview import splat, surface
from setsup.errors import DataError

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def _where(picture, color):
    """Mean row and column of the pixels of a colour."""
    return np.argwhere((picture == color).all(axis=-1)).mean(axis=0)


@pytest.mark.parametrize(
    ("up", "front", "side", "top"), [("y", (0, 0, -1), (-1, 0, 0), (0, 1, 0)), ("z", (0, -1, 0), (1, 0, 0), (0, 0, 1))]
)
def test_which_side_is_seen_from_where(up, front, side, top):
    points, colors = np.array([front, side, top], float), np.array([RED, GREEN, BLUE], np.uint8)
    level = splat(points, colors, azimuth=0, elevation=0, up=up)
    red, green, blue = (_where(level, color) for color in (RED, GREEN, BLUE))
    assert blue[0] < red[0]  # what is above is above
    assert green[1] > red[1]  # the camera at azimuth 90 sees what stands to the right
    behind = splat(points, colors, azimuth=180, elevation=0, up=up)
    assert _where(behind, GREEN)[1] < _where(behind, RED)[1]
    above = splat(points, colors, azimuth=0, elevation=90, up=up)
    assert _where(above, RED)[0] > _where(above, BLUE)[0]  # the front is below, seen from the top


def test_the_nearer_point_is_seen():
    for front in (0, 1):
        points = np.zeros((2, 3))
        points[front, 2] = -1
        colors = np.array([RED, GREEN], np.uint8)
        picture = splat(points, colors, azimuth=0, elevation=0)
        assert tuple(picture[64, 64]) == tuple(colors[front])


def test_the_cloud_fills_the_frame_whatever_its_unit():
    sphere = np.random.default_rng(0).normal(size=(5000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    black = np.zeros((5000, 3), np.uint8)
    pictures = [splat(scale * sphere + 7 * scale, black, (64, 96)) for scale in (1, 1e-30, 1e200)]
    rows, columns = np.nonzero(pictures[0][..., 0] < 128)
    assert (rows.min(), rows.max()) == pytest.approx((4, 59), abs=2)
    assert (columns.min(), columns.max()) == pytest.approx((20, 75), abs=2)
    assert (pictures[0][16:48, 32:64] < 128).mean() > 0.95
    assert np.abs(pictures[0].astype(int) - pictures[1]).mean() < 1
    assert np.abs(pictures[0].astype(int) - pictures[2]).mean() < 1


def test_clouds_of_no_extent_or_of_nothing():
    assert (splat(np.empty((0, 3)), np.empty((0, 3), np.uint8), (8, 9)) == 255).all()
    assert (splat(np.full((4, 3), np.nan), np.zeros((4, 3), np.uint8)) == 255).all()
    one = splat([[5.0, 5, 5]], [RED], (64, 64))
    assert _where(one, RED) == pytest.approx((31.5, 31.5), abs=1)
    partly = splat([[0, 0, 0], [np.inf, 0, 0], [1, 1, 1]], [RED, GREEN, BLUE])
    assert not (partly == GREEN).all(axis=-1).any()
    for wrong in (np.zeros((3, 2)), np.zeros((4, 3)), np.zeros(3)):
        with pytest.raises(DataError, match=r"must have the same shape \(n, 3\)"):
            splat(wrong, np.zeros((3, 3), np.uint8))
    with pytest.raises(DataError, match="'y' or 'z'"):
        splat(np.zeros((3, 3)), np.zeros((3, 3), np.uint8), up="x")


def test_normals_shade_alike_on_both_sides_and_marks_lie_over_all():
    points = np.random.default_rng(1).uniform(-1, 1, (4000, 3)) * (1, 1, 0)
    colors = np.full((4000, 3), 200, np.uint8)
    towards, away, edge = (np.broadcast_to(n, (4000, 3)) for n in ((0, 0, -1.0), (0, 0, 5.0), (1.0, 0, 0)))
    pictures = [splat(points, colors, azimuth=0, elevation=0, normals=n) for n in (towards, away, edge, 0 * edge)]
    assert np.array_equal(pictures[0], pictures[1])
    middle = [np.median(picture[40:88, 40:88]) for picture in pictures]
    assert middle[2] < middle[0] < middle[3] == 200
    marked = splat(points, colors, azimuth=0, elevation=0, marks=([[0, 0, 1.0]], [RED]))  # behind the others
    assert tuple(marked[64, 64]) == RED


def test_a_picture_is_the_same_every_time():
    points = np.random.default_rng(2).normal(size=(999, 3)).round(1)  # many at one depth
    colors = np.random.default_rng(3).integers(0, 255, (999, 3)).astype(np.uint8)
    assert np.array_equal(splat(points, colors), splat(points, colors))


def test_points_lie_evenly_on_the_surface():
    vertices = np.array([[0, 0, 0], [4, 0, 0], [4, 1, 0], [0, 1, 0], [0, 0, 3]])
    faces = np.array([[0, 1, 2], [0, 2, 3], [0, 0, 0], [0, 3, 4]])
    points, face, weights = surface(vertices, faces, 5500)
    assert np.abs(np.bincount(face, minlength=4) - [2000, 2000, 0, 1500]).max() <= 1
    assert np.allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()
    assert np.allclose(points, (weights[:, :, None] * vertices[faces[face]]).sum(axis=1))
    flat = points[face < 2, :2]
    counts, _, _ = np.histogram2d(flat[:, 0], flat[:, 1], bins=(8, 4), range=((0, 4), (0, 1)))
    assert np.abs(counts - 125).max() < 5 * np.sqrt(125)
    again, _, _ = surface(vertices, faces, 5500)
    other, _, _ = surface(vertices, faces, 5500, seed=1)
    assert np.array_equal(points, again)
    assert not np.allclose(points, other)


def test_surfaces_of_no_area_or_no_faces():
    points, face, _ = surface(np.ones((3, 3)), [[0, 1, 2], [2, 1, 0]], 10)
    assert np.allclose(points, 1)
    assert np.bincount(face).tolist() == [5, 5]
    assert [len(part) for part in surface(np.ones((3, 3)), np.empty((0, 3), int), 10)] == [0, 0, 0]
    assert [len(part) for part in surface(np.eye(3), [[0, 1, 2]], 0)] == [0, 0, 0]
    huge, _, _ = surface(1e200 * np.eye(3), [[0, 1, 2]], 10)
    assert np.isfinite(huge).all()
