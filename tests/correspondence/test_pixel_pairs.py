"""Pairs of pixels: carried beside pictures of coordinates cropped, mirrored and resized; partners by loops."""

from collections import Counter

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from setsup.correspondence import Partners, PixelPairs, Status, partners, planar
from setsup.errors import SetsupError
from tests.correspondence.brute_force import coordinates, furnished, resampled, spatial

VISIBLE, OCCLUDED, OUTSIDE, NO_SURFACE, UNKNOWN = Status


def pairs_of(points1, points2, status=None):
    count = len(points1)
    status = np.zeros(count) if status is None else status
    return PixelPairs(points1, points2, np.arange(3 * count).reshape(-1, 3), np.arange(count), status)


def test_arrays_have_the_promised_dtypes():
    pairs = pairs_of([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    assert len(pairs) == 2
    dtypes = [getattr(pairs, name).dtype for name in ("points1", "points2", "xyz", "instance", "status")]
    assert dtypes == [np.float64, np.float64, np.float64, np.int32, np.uint8]
    assert repr(pairs) == "PixelPairs(2 VISIBLE, 0 OCCLUDED, 0 OUTSIDE, 0 NO_SURFACE)"
    some = pairs_of([[1, 2], [3, 4]], [[5, 6], [7, 8]], [VISIBLE, UNKNOWN])
    assert repr(some) == "PixelPairs(1 VISIBLE, 0 OCCLUDED, 0 OUTSIDE, 0 NO_SURFACE, 1 UNKNOWN)"
    assert some.visible.tolist() == [True, False]
    assert partners(some, (9, 9), (9, 9), 0).positive.sum() == 1


@pytest.mark.parametrize("name", ["points1", "points2", "xyz", "instance", "status"])
def test_shapes_must_fit(name):
    good = {
        "points1": [[1, 2]] * 3,
        "points2": [[1, 2]] * 3,
        "xyz": [[1, 2, 3]] * 3,
        "instance": [1] * 3,
        "status": [0] * 3,
    }
    PixelPairs(**good)
    for bad in (good[name][:2], [good[name]], np.zeros((3, 4))):
        with pytest.raises(SetsupError):
            PixelPairs(**{**good, name: bad})


def test_a_status_must_be_one():
    with pytest.raises(SetsupError, match="status"):
        pairs_of([[1, 2]], [[1, 2]], [5])


def test_select():
    pairs = pairs_of(np.arange(10).reshape(5, 2), np.arange(10).reshape(5, 2), [0, 1, 0, 2, 3])
    assert pairs.visible.tolist() == [True, False, True, False, False]
    assert pairs.select(pairs.visible).instance.tolist() == [0, 2]
    assert pairs.select([4, 0, 0]).instance.tolist() == [4, 0, 0]
    assert len(pairs.select([])) == 0
    for bad in ([True, False], [5], [0.5], [[0]], ["a"]):
        with pytest.raises(SetsupError):
            pairs.select(bad)


# carried


step = st.one_of(
    st.sampled_from(["x", "y"]),
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(14, 20), st.integers(14, 20)),
    st.tuples(st.integers(20, 60), st.integers(20, 60)),
)


@pytest.mark.long("large or genuine files")
@given(steps=st.lists(step, max_size=4), seed=st.integers(0, 999))
def test_pairs_go_where_a_image_of_coordinates_goes(steps, seed):
    picture = coordinates(30, 34)
    sized = []
    for one in steps:  # crops of what is there
        if len(one) == 4:
            height, width = sized[-1] if sized else (30, 34)
            one = (min(one[0], width - 14), min(one[1], height - 14), 14, 14)
        sized.append(sized[-1] if one in ("x", "y") and sized else (30, 34) if one in ("x", "y") else one[-2:])
        steps = [*steps[: len(sized) - 1], one, *steps[len(sized) :]]
    shown, matrix = resampled(picture, steps)
    height, width = shown.shape[-2:]
    rng = np.random.default_rng(seed)
    y, x = rng.integers(0, height, 60), rng.integers(0, width, 60)
    came = shown[0, :, y, x].T.numpy()
    # a resize repeats the border's pixels beyond their centres: what comes from there shows it
    sure = (np.abs(planar.carried(came, matrix) - np.c_[x, y]) < 0.5).all(axis=1)
    margin = (x > 8) & (x < width - 9) & (y > 8) & (y < height - 9)
    moved = pairs_of(came[margin], came[margin]).carried(matrix, np.eye(3), (height, width), (30, 34))
    assert sure[margin].all()
    assert len(moved) == margin.sum()
    np.testing.assert_allclose(moved.points1, np.c_[x, y][margin], atol=1e-6)
    assert (moved.points2 == came[margin]).all()


@pytest.mark.parametrize("interpolation", [cv2.INTER_LINEAR, cv2.INTER_NEAREST, cv2.INTER_AREA])
@pytest.mark.parametrize("size", [(20, 24), (80, 96), (33, 57)])
def test_a_resize_by_opencv(size, interpolation):
    """OpenCV's pixels are at the same places; its nearest one rounds down, and its area is a mean."""
    y, x = np.mgrid[:40.0, :48.0]
    shown = cv2.resize(np.dstack([x, y]), size[::-1], interpolation=interpolation)
    rows, columns = np.mgrid[: size[0], : size[1]]
    came = shown.reshape(-1, 2)
    moved = planar.carried(came, planar.resize(40, 48, *size)) - np.c_[columns.ravel(), rows.ravel()]
    inner = ((came > 1) & (came < (46, 38))).all(axis=1)
    exact = interpolation == cv2.INTER_LINEAR or (interpolation == cv2.INTER_AREA and size == (20, 24))
    most = 1e-4 if exact else np.array([size[1] / 48, size[0] / 40]) / 2 + 0.5
    assert (np.abs(moved[inner]) <= most).all()


def test_views_of_a_scene_after_independent_crops_and_flips():
    """Pictures of the points themselves, cut and mirrored: partners still show the same point."""
    scene, camera1, camera2 = furnished()
    pairs = spatial(scene, camera1, camera2)
    xyz2 = spatial(scene, camera2, camera1).xyz.reshape(72, 64, 3)
    xyz1 = pairs.xyz.reshape(60, 80, 3)
    shown1, matrix1 = xyz1[:, ::-1][5:45, 10:70], planar.compose(planar.flip_x(80), planar.crop(10, 5))
    shown2, matrix2 = xyz2[8:68][::-1, 4:60], planar.compose(planar.crop(4, 8), planar.flip_y(60))
    moved = pairs.carried(matrix1, matrix2, (40, 60), (60, 56))
    assert len(moved) == 40 * 60
    column, row = moved.points1.T.astype(int)
    assert np.array_equal(shown1[row, column], moved.xyz)
    seen = moved.select(moved.visible)
    column, row = np.rint(seen.points2).T.astype(int)
    assert ((row >= 0) & (row < 60) & (column >= 0) & (column < 56)).all()
    away = np.linalg.norm(shown2[row, column] - seen.xyz, axis=1)
    assert np.median(away) < 0.03
    assert np.quantile(away, 0.95) < 0.15


def test_statuses_when_views_are_cut():
    points1 = [[5, 5]] * 4 + [[1, 1]]
    points2 = [[5, 5], [1, 5], [20, 5], [np.nan, np.nan], [5, 5]]
    status = [VISIBLE, OCCLUDED, OUTSIDE, NO_SURFACE, VISIBLE]
    moved = pairs_of(points1, points2, status).carried(planar.crop(2, 2), planar.crop(3, 3), (6, 6), (6, 6))
    assert moved.instance.tolist() == [0, 1, 2, 3]  # the last left view 1
    assert moved.status.tolist() == [VISIBLE, OUTSIDE, OUTSIDE, NO_SURFACE]
    # what was outside stays so where the new picture reaches beyond the old one
    wider = pairs_of(points1, points2, status).carried(np.eye(3), planar.crop(-10, -10), (10, 10), (50, 50))
    assert wider.status.tolist() == status
    assert wider.points2[2].tolist() == [30, 15]


def test_the_edge_of_a_image():
    """A picture covers −½ … width − ½, the first included."""
    points = [[-0.5, 0], [9.5, 0], [9.499, 0], [0, -0.5], [0, 7.5]]
    one = pairs_of(points, [[0, 0]] * 5).carried(np.eye(3), np.eye(3), (8, 10), (8, 10))
    assert one.instance.tolist() == [0, 2, 3]
    two = pairs_of([[0, 0]] * 5, points).carried(np.eye(3), np.eye(3), (8, 10), (8, 10))
    assert two.status.tolist() == [VISIBLE, OUTSIDE, VISIBLE, VISIBLE, OUTSIDE]


@pytest.mark.parametrize("bad", [
    {"matrix1": np.eye(2)}, {"matrix2": [[1]]}, {"size1": (3,)}, {"size2": (0, 5)}, {"size1": (2.5, 3)}, {"size2": 7},
])  # fmt: skip
def test_bad_maps(bad):
    good = {"matrix1": np.eye(3), "matrix2": np.eye(3), "size1": (8, 10), "size2": (8, 10)}
    with pytest.raises(SetsupError):
        pairs_of([[1, 2]], [[3, 4]]).carried(**{**good, **bad})


# partners


def by_loop(pairs, size1, size2):
    """Positive pixels of view 1 and their partners, pair by pair."""
    best = {}
    for p, q, status in zip(pairs.points1.tolist(), pairs.points2.tolist(), pairs.status, strict=True):
        inside = [-0.5 <= a < side - 0.5 for a, side in zip((*p, *q), (*size1[::-1], *size2[::-1]), strict=True)]
        if status == VISIBLE and all(inside):
            x, y = round(p[0]), round(p[1])  # Python too rounds half-way numbers to even ones
            away = (p[0] - x) ** 2 + (p[1] - y) ** 2
            flat = y * size1[1] + x
            if flat not in best or away < best[flat][0]:
                best[flat] = (away, round(q[1]) * size2[1] + round(q[0]))
    return {flat: partner for flat, (_, partner) in best.items()}


places = st.integers(-4, 24).map(lambda number: number / 4)  # whole, half-way and quarter places, also outside


@given(
    rows=st.lists(st.tuples(places, places, places, places, st.sampled_from(Status)), max_size=40),
    key=st.integers(0, 99),
)
def test_partners_pair_by_pair(rows, key):
    size1, size2 = (5, 4), (4, 6)
    rows = np.array(rows, float).reshape(-1, 5)
    pairs = pairs_of(rows[:, :2], rows[:, 2:4], rows[:, 4])
    found = partners(pairs, size1, size2, key)
    wanted = by_loop(pairs, size1, size2)
    assert np.flatnonzero(found.positive).tolist() == sorted(wanted)
    assert found.partner[found.positive].tolist() == [wanted[flat] for flat in sorted(wanted)]
    assert found.valid.all()
    assert isinstance(found, Partners)
    assert [(array.shape, array.dtype) for array in (found.partner, found.positive, found.valid)] == [
        ((20,), np.int64), ((20,), np.bool_), ((20,), np.bool_),
    ]  # fmt: skip
    assert ((found.partner >= 0) & (found.partner < 24)).all()


def test_random_partners_are_uniform_and_a_function_of_key_and_pixel():
    none = pairs_of(np.empty((0, 2)), np.empty((0, 2)))
    one, same, other = (partners(none, (100, 100), (7, 9), key).partner for key in (5, np.uint64(5), 6))
    assert np.array_equal(one, same)
    assert (one != other).mean() > 0.95
    assert stats.chisquare(np.bincount(one, minlength=63)).pvalue > 1e-4
    # those of a pixel stay when others become positive
    few = partners(pairs_of([[3, 2]], [[1, 1]]), (100, 100), (7, 9), 5)
    assert Counter((few.partner != one).tolist())[True] <= 1
    assert few.partner[203] == 10


def test_pixels_that_show_nothing_do_not_count():
    shown = np.ones((4, 5), bool)
    shown[1, 2] = shown[3] = False
    pairs = pairs_of([[2, 1], [0, 0]], [[1, 1], [2, 2]])
    found = partners(pairs, (4, 5), (4, 5), 0, shown=shown)
    assert np.array_equal(found.valid, shown.ravel())
    assert np.flatnonzero(found.positive).tolist() == [0]
    with pytest.raises(SetsupError):
        partners(pairs, (4, 5), (4, 5), 0, shown=shown[:3])


def test_random_partners_show_something():
    shown = np.zeros((7, 9), bool)
    shown[2:5, 3:8] = True
    none = pairs_of(np.empty((0, 2)), np.empty((0, 2)))
    drawn, counts = np.unique(partners(none, (100, 100), (7, 9), 5, shown2=shown).partner, return_counts=True)
    assert np.array_equal(drawn, np.flatnonzero(shown))
    assert stats.chisquare(counts).pvalue > 1e-4
    plain = partners(none, (100, 100), (7, 9), 5).partner
    for all_alike in (np.ones(63, bool), np.zeros(63, bool)):  # where nothing is shown there is nothing to choose
        assert np.array_equal(partners(none, (100, 100), (7, 9), 5, shown2=all_alike).partner, plain)
    with pytest.raises(SetsupError, match=r"shown2 must be a boolean array of shape \(7, 9\)"):
        partners(none, (100, 100), (7, 9), 5, shown2=shown.T)


@pytest.mark.parametrize("key", [-1, 1 << 64, 1.0, True, None, "a", [1]])
def test_bad_keys(key):
    with pytest.raises(SetsupError, match="key"):
        partners(pairs_of([[1, 2]], [[3, 4]]), (8, 8), (8, 8), key)
