"""Partners of many pairs of views, and matches with what does not match: by plain loops, and by what pictures show."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.correspondence import PixelPairs, descriptor_pairs, planar, spatial, view_pairs
from setsup.errors import SetsupError
from setsup.random import fold
from setsup.scenes import Camera, Mesh, Placement, Scene

WALL = Mesh([[-9, 4, -9], [9, 4, -9], [9, 4, 9], [-9, 4, 9]], [[0, 1, 2], [0, 2, 3]])
POST = Mesh([[-0.3, 2, -9], [0.3, 2, -9], [0.3, 2, 9], [-0.3, 2, 9]], [[0, 1, 2], [0, 2, 3]])


class Rendered:
    """Rows 0 and 1 look at a wall behind a post from two places, row 2 at an empty scene."""

    name = "post"

    def scene(self, row: int) -> Scene:
        return Scene() if row == 2 else Scene((Placement(WALL, name="wall"), Placement(POST, name="post")))

    def camera(self, row: int) -> Camera:
        at = (row - 0.5, 0, 0)
        return Camera.look_at(at, (at[0], 1, 0), height=24, width=32, focal_length=20)


KEYS = fold(7, np.arange(2, dtype=np.uint64))


def by_hand(row1: int, row2: int, left: int = 0, top: int = 0) -> dict[int, int]:
    """Nearest pixels of the wall and the post that both views show: similar triangles."""
    found = {}
    eyes = {0: -0.5, 1: 0.5}
    for y in range(24):
        for x in range(32):
            slope = (x + left - 15.5) / 20
            on_post = abs(eyes[row1] + 2 * slope) <= 0.3
            far = 2 if on_post else 4
            place = eyes[row1] + far * slope
            other = (place - eyes[row2]) / far
            hidden = not on_post and abs(eyes[row2] + 2 * other) <= 0.3
            column = other * 20 + 15.5 - left
            if not hidden and -0.5 <= column < 31.5:
                found[y * 32 + x] = y * 32 + round(column)
    return found


def test_positive_partners_are_those_of_similar_triangles() -> None:
    found = view_pairs(Rendered(), [[0, 1], [1, 0]], KEYS, fraction=1.0)
    assert found.partner.shape == found.positive.shape == found.valid.shape == (2, 24 * 32)
    assert found.valid.all()
    for pair, (row1, row2) in enumerate([(0, 1), (1, 0)]):
        wanted = by_hand(row1, row2)
        assert set(np.flatnonzero(found.positive[pair]).tolist()) == set(wanted)
        assert {pixel: int(found.partner[pair, pixel]) for pixel in wanted} == wanted


@pytest.mark.long("statistics")
def test_a_share_of_the_pixels_is_traced_and_the_others_have_random_partners() -> None:
    keys = fold(3, np.arange(200, dtype=np.uint64))
    found = view_pairs(Rendered(), [[0, 1]] * 200, keys, fraction=0.125)
    visible = len(by_hand(0, 1)) / (24 * 32)
    assert abs(found.positive.mean() - visible / 8) < 0.003
    negatives = found.partner[~found.positive]
    counts, _ = np.histogram(negatives, bins=24, range=(0, 24 * 32))
    assert chisquare(counts).pvalue > 1e-4
    assert len(np.unique(found.positive, axis=0)) > 190, "each pair has pixels of its own"


def test_what_is_drawn_depends_on_the_key_of_a_pair_alone() -> None:
    both = view_pairs(Rendered(), [[0, 1], [1, 0]], KEYS)
    alone = view_pairs(Rendered(), [[1, 0]], KEYS[1:])
    np.testing.assert_array_equal(both.partner[1], alone.partner[0])
    np.testing.assert_array_equal(both.positive[1], alone.positive[0])


def test_windows_are_images_of_their_own() -> None:
    windows = [[[5, 2], [1, 6]]]
    found = view_pairs(Rendered(), [[0, 1]], KEYS[:1], fraction=1.0, windows=windows, size=(12, 10))
    whole = by_hand(0, 1)
    wanted = {}
    for y in range(12):
        for x in range(10):
            partner = whole.get((y + 2) * 32 + x + 5)
            if partner is None:
                continue
            row, column = partner // 32 - 6, partner % 32 - 1
            if 0 <= row < 12 and 0 <= column < 10:
                wanted[y * 10 + x] = row * 10 + column
    assert wanted
    assert {int(pixel): int(found.partner[0, pixel]) for pixel in np.flatnonzero(found.positive[0])} == wanted


def test_an_empty_scene_has_no_match_and_two_scenes_are_refused() -> None:
    assert not view_pairs(Rendered(), [[2, 2]], KEYS[:1]).positive.any()
    with pytest.raises(SetsupError, match="rows 0 and 2 of post show different scenes"):
        view_pairs(Rendered(), [[0, 2]], KEYS[:1])


@pytest.mark.parametrize(
    ("rows", "keys", "more", "said"),
    [
        ([[0]], KEYS[:1], {}, r"integer array of shape \(n, 2\), or \(n, size\)"),
        ([[0, 1]], KEYS[:1], {"form": "ring"}, "form of view_pairs must be one of chain, star, clique"),
        ([[0.5, 1]], KEYS[:1], {}, "integer array"),
        ([[0, 1]], KEYS, {}, "one key for each"),
        ([[0, 1]], KEYS[:1], {"size": (8, 8)}, "must be passed together"),
        ([[0, 1]], KEYS[:1], {"size": (8, 8), "windows": [[0, 0]]}, r"\(1, 2, 2\)"),
        (
            [[0, 1]],
            KEYS[:1],
            {"size": (8, 8), "windows": [[[0.5, 0], [0, 0]]]},
            "integer array of shape .*, not float64",
        ),
        ([[0, 1]], KEYS[:1], {"size": (8, 8, 3), "windows": [[[0, 0], [0, 0]]]}, "size must be"),
        ([[0, 1]], [-1], {}, "key must be an integer"),
    ],
)
def test_bad_arguments_are_refused(rows, keys, more, said) -> None:
    with pytest.raises(SetsupError, match=said):
        view_pairs(Rendered(), rows, keys, **more)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_matches_and_what_does_not_match_are_of_their_kinds(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    picture = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=height * width, max_size=height * width)))
    flat = picture.copy()
    visible = data.draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width))
    background = data.draw(st.sets(st.integers(0, 3), max_size=2))
    count = data.draw(st.integers(1, 12))
    points = np.stack(np.unravel_index(np.arange(height * width), (height, width))[::-1], axis=-1)
    status = np.where(visible, 0, 1)
    pairs = PixelPairs(points, points, np.zeros((len(points), 3)), flat, status)
    found = descriptor_pairs(pairs, picture.reshape(height, width), (height, width), count, 11, background=background)
    grounds = {-1, *background}
    objects = [q for q in range(len(flat)) if visible[q] and flat[q] >= 0 and flat[q] not in grounds]
    drawn = found.first[found.first >= 0].tolist()
    assert len(found.first) == count
    assert len(drawn) == min(count, len(objects))
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) <= set(objects)
    for slot, pixel in enumerate(found.first.tolist()):
        match, same, other, behind = (getattr(found, kind)[slot] for kind in ("match", "same", "other", "background"))
        if pixel < 0:
            assert match == same == other == behind == -1
            continue
        assert match == pixel
        allowed = [q for q in range(len(flat)) if flat[q] == flat[pixel] and q != match]
        # what is less than −1 shows nothing
        others = [q for q in range(len(flat)) if flat[q] >= 0 and flat[q] not in grounds | {flat[pixel]}]
        ground = [q for q in range(len(flat)) if flat[q] in grounds]
        for got, pool in ((same, allowed), (other, others), (behind, ground)):
            assert got in pool if pool else got == -1


@pytest.mark.long("statistics")
def test_non_matches_are_uniform_over_their_kinds() -> None:
    picture = np.array([[0, 0, 0, 1, 1, 2, -1, -1, -1, 3]])
    points = [[1, 0]]
    pairs = PixelPairs(points, points, np.zeros((1, 3)), [0], [0])
    drawn = [
        descriptor_pairs(pairs, picture, (1, 10), 1, int(key), background=[3])
        for key in fold(5, np.arange(6000, dtype=np.uint64))
    ]
    for kind, pool in (("same", [0, 2]), ("other", [3, 4, 5]), ("background", [6, 7, 8, 9])):
        values, counts = np.unique([getattr(one, kind)[0] for one in drawn], return_counts=True)
        assert values.tolist() == pool
        assert chisquare(counts).pvalue > 1e-4


def test_unsigned_images_give_what_signed_ones_do() -> None:
    points = [[x, 0] for x in range(6)]
    pairs = PixelPairs(points, points, np.zeros((6, 3)), [4, 4, 4, 9, 9, 0], [0] * 6)
    picture = np.array([[4, 4, 4, 9, 9, 0]])
    wanted = descriptor_pairs(pairs, picture, (1, 6), 4, 3, background=[0])
    for dtype in (np.uint8, np.uint16, np.int16):
        found = descriptor_pairs(pairs, picture.astype(dtype), (1, 6), 4, 3, background=[0])
        for name in ("first", "match", "same", "other", "background"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_descriptor_pairs_of_a_scene_are_what_its_images_show() -> None:
    data = Rendered()
    pairs = spatial(data.scene(0), data.camera(0), data.camera(1))
    seen = spatial(data.scene(0), data.camera(1), data.camera(0)).instance.reshape(24, 32)  # what view 2 shows
    found = descriptor_pairs(pairs, seen, (24, 32), 50, 1, background=[0])
    wanted = by_hand(0, 1)
    assert (found.first >= 0).all()
    for first, match, same, other, behind in zip(
        found.first, found.match, found.same, found.other, found.background, strict=True
    ):
        assert wanted[int(first)] == match
        assert seen.ravel()[same] == 1
        assert same != match
        assert other == -1, "the post is the only object"
        assert seen.ravel()[behind] == 0


def test_descriptor_pairs_of_smaller_views_are_those_nearest_to_the_centres_of_pixels() -> None:
    data = Rendered()
    shrunk = planar.resize(24, 32, 10, 13)
    pairs = spatial(data.scene(0), data.camera(0), data.camera(1)).carried(shrunk, shrunk, (10, 13), (10, 13))
    nearest: dict[int, tuple[float, int]] = {}  # of each pixel of view 1: how far the nearest point is, and its match
    for (x, y), (x2, y2), visible, instance in zip(
        pairs.points1.tolist(), pairs.points2.tolist(), pairs.visible, pairs.instance, strict=True
    ):
        if visible and instance == 1:
            away = (x - round(x)) ** 2 + (y - round(y)) ** 2
            found = (away, round(y2) * 13 + round(x2))
            key = round(y) * 13 + round(x)
            if key not in nearest or away < nearest[key][0]:
                nearest[key] = found
    drawn = descriptor_pairs(pairs, np.ones((10, 13), int), (10, 13), 200, 1, background=[0])
    some = drawn.first >= 0
    assert sorted(drawn.first[some]) == sorted(nearest)
    assert len(nearest) > 15
    assert [nearest[first][1] for first in drawn.first[some].tolist()] == drawn.match[some].tolist()


def test_bad_counts_and_images_are_refused() -> None:
    pairs = PixelPairs(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 3)), [], [])
    with pytest.raises(SetsupError, match="matches"):
        descriptor_pairs(pairs, [[0]], (1, 1), 0, 0)
    with pytest.raises(SetsupError, match="instances2"):
        descriptor_pairs(pairs, [0.5], (1, 1), 1, 0)
    with pytest.raises(SetsupError, match="key must be an integer"):
        descriptor_pairs(pairs, [[0]], (1, 1), 1, -1)
    assert descriptor_pairs(pairs, [[-1]], (1, 1), 2, 0).match.tolist() == [-1, -1]


def test_pairs_beside_the_images_are_no_matches() -> None:
    points1, points2 = [[0, 0], [2, 0], [0, 1]], [[3, 0], [1, 0], [1, 0]]
    pairs = PixelPairs(points1, points2, np.zeros((3, 3)), [5, 5, 5], [0, 0, 0])
    found = descriptor_pairs(pairs, [[5, 5]], (2, 2), 3, 0)
    assert found.first.tolist() == [2, -1, -1]
    assert found.match.tolist() == [1, -1, -1]
