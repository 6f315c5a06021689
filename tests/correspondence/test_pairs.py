"""Pairs of pixels beside the published formulas, one image and one pixel at a time, and beside their distributions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.ndimage import map_coordinates

from setsup.correspondence import planar
from setsup.correspondence.pairs import affine_pairs
from setsup.errors import SetsupError
from setsup.random import fold, stream_key

ROOM = (64, 64)
SIZE = (32, 32)
PIXELS = 32 * 32


def keys(n, seed=0):
    return fold(stream_key(seed, "pairs"), np.arange(n, dtype=np.uint64))


def grid(size):
    """Pixels (x, y) of a view, row after row."""
    rows, columns = np.divmod(np.arange(size[0] * size[1]), size[1])
    return np.stack([columns, rows], axis=-1).astype(float)


def published_warp(pairs, i, size, at):
    """The 3 × 3 matrix of the published law: B, and a translation that takes a pixel to the middle of the view."""
    matrix = np.eye(3)
    matrix[:2, :2] = pairs.warp[i]
    matrix[:2, 2] = [size[1] // 2, size[0] // 2] - pairs.warp[i] @ at
    return matrix


def unrounded(pairs, i, size):
    """Places in view 2 of the pixels of view 1, by the published formula: B⁻¹ (X − c) + c − (dx, dy)."""
    back = np.linalg.inv(published_warp(pairs, i, size, [size[1] // 2, size[0] // 2]))
    return (back @ np.c_[grid(size), np.ones(size[0] * size[1])].T)[:2].T - pairs.shift[i]


# one image at a time


@pytest.mark.long("large or genuine files")
@given(
    seed=st.integers(0, 2**32), image=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    size=st.tuples(st.integers(1, 24), st.integers(1, 24)), shift=st.integers(0, 9),
    keep=st.sampled_from([0.0, 0.125, 0.25, 1.0]),
)  # fmt: skip
@settings(max_examples=80)
def test_pairs_are_those_of_the_published_formulas(seed, image, size, shift, keep):
    (h, w), n = size, 5
    pairs = affine_pairs(keys(n, seed), image, size, shift=shift, keep=keep)
    everything = affine_pairs(keys(n, seed), image, size, shift=shift, keep=1.0)
    for i in range(n):
        places = unrounded(pairs, i, size)
        nearest = np.rint(places)
        strictly = (nearest > 0).all(axis=1) & (nearest < [w, h]).all(axis=1)
        assert (everything.positive[i] == strictly).all()
        assert not (pairs.positive[i] & ~strictly).any()
        for p in np.flatnonzero(pairs.positive[i]):
            assert pairs.partner[i, p] == nearest[p, 1] * w + nearest[p, 0]
        in_source = (np.linalg.inv(pairs.warp[i]) @ (grid(size) - [w // 2, h // 2]).T).T + pairs.centre[i]
        valid = (in_source >= -0.5).all(axis=1) & (in_source < np.array(pairs.source)[::-1] - 0.5).all(axis=1)
        assert (pairs.valid[i] == valid).all()
        assert np.allclose(pairs.to_view_1[i], published_warp(pairs, i, size, pairs.centre[i]), atol=1e-9)
        corner = pairs.centre[i] + pairs.shift[i] - [w // 2, h // 2]
        assert (pairs.to_view_2[i] == planar.crop(*corner)).all()
        # the matrices lead to the same places as the partners
        between = planar.compose(np.linalg.inv(pairs.to_view_1[i]), pairs.to_view_2[i])
        assert np.allclose(planar.carried(grid(size), between), places, atol=1e-9)
        # all of view 2 lies in the source
        assert (corner >= 0).all()
        assert (corner + np.array([w, h]) <= pairs.source[::-1]).all()
    assert pairs.partner.min() >= 0
    assert pairs.partner.max() < h * w
    assert not (pairs.positive & ~pairs.valid).any()
    assert (np.abs(pairs.shift) <= shift).all()


def test_partners_show_the_same_place_of_a_coordinate_image():
    # every pixel of the picture holds its own (x, y); the views are sampled by scipy, and searched, not computed
    ramp = np.stack(np.meshgrid(np.arange(64.0), np.arange(64.0)))
    pairs = affine_pairs(keys(20), ROOM, SIZE, keep=1.0)
    errors = []
    for i in range(20):
        back = np.linalg.inv(published_warp(pairs, i, SIZE, pairs.centre[i]))
        x, y, _ = back @ np.c_[grid(SIZE), np.ones(PIXELS)].T
        view_1 = np.stack([map_coordinates(channel, [y, x], order=1, cval=np.nan) for channel in ramp], axis=-1)
        left, top = pairs.centre[i] + pairs.shift[i] - 16
        view_2 = ramp[:, top : top + 32, left : left + 32].reshape(2, -1).T
        at = pairs.positive[i] & ~np.isnan(view_1).any(axis=1)
        errors.append(view_1[at] - view_2[pairs.partner[i][at]])
        # no pixel of view 2 is nearer, and before rounding the place is exact
        distance = np.abs(view_1[at][:, None] - view_2[None]).max(axis=-1)
        assert (distance.argmin(axis=1) == pairs.partner[i][at]).all()
        places = unrounded(pairs, i, SIZE)[at]
        seen = [
            map_coordinates(view_2[:, axis].reshape(32, 32), places.T[::-1], order=1, cval=np.nan) for axis in (0, 1)
        ]
        within = ((places >= 0) & (places <= 31)).all(axis=1)
        assert np.abs(np.stack(seen, axis=-1) - view_1[at])[within].max() < 1e-9
    errors = np.concatenate(errors)
    assert len(errors) > 10_000
    assert np.abs(errors).max() <= 0.5
    # rounding to the nearest pixel leaves no drift; half a pixel would
    assert np.abs(errors.mean(axis=0)).max() < 0.01


@pytest.mark.parametrize(
    ("image", "size", "source"),
    [
        ((32, 32), (32, 32), (49, 49)),  # digits, as published
        ((28, 28), (32, 32), (49, 49)),
        ((48, 48), (32, 32), (49, 49)),  # one pixel more is needed
        ((48, 200), (32, 32), (49, 200)),
        ((200, 48), (32, 32), (200, 49)),
        ((49, 49), (32, 32), (49, 49)),
        ((64, 64), (32, 32), (64, 64)),
        ((20, 90), (16, 40), (25, 90)),  # the shift is a quarter of the height, 4
    ],
)
def test_images_that_have_no_room_are_resized(image, size, source):
    assert affine_pairs(keys(1), image, size).source == source


def test_pairs_depend_on_their_key_only():
    one = affine_pairs(keys(70), ROOM, SIZE)
    order = np.random.default_rng(0).permutation(70)[:33]
    two = affine_pairs(keys(70)[order], ROOM, SIZE)
    for name in ("warp", "centre", "shift", "to_view_1", "to_view_2", "partner", "positive", "valid"):
        assert (getattr(one, name)[order] == getattr(two, name)).all()
    assert len({row.tobytes() for row in one.partner}) == 70
    assert (one.partner != affine_pairs(keys(70, seed=1), ROOM, SIZE).partner).any(axis=1).all()


def test_more_kept_pixels_are_the_same_and_others():
    few, many = (affine_pairs(keys(50), ROOM, SIZE, keep=keep) for keep in (0.125, 0.25))
    assert (few.positive <= many.positive).all()
    both_random = ~many.positive
    assert (few.partner == many.partner)[both_random].all()
    assert (few.partner == many.partner)[few.positive].all()


def test_no_pixel_is_kept_and_no_image_is_drawn():
    none = affine_pairs(keys(8), ROOM, SIZE, keep=0.0)
    assert not none.positive.any()
    empty = affine_pairs(keys(0), ROOM, SIZE)
    assert (empty.partner.shape, empty.valid.shape, empty.to_view_1.shape) == ((0, PIXELS), (0, PIXELS), (0, 3, 3))


# distributions: fixed keys, so that nothing here fails by chance


@pytest.fixture(scope="module")
def drawn():
    return affine_pairs(keys(4000), (57, 61), SIZE, keep=0.25)


def uniform_p(counts):
    return stats.chisquare(counts).pvalue


def simulated_share(images, keep):
    """Share of positive pixels of each image, by the published steps and numpy's generator."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(images):
        angle = rng.uniform(0, 2 * np.pi)
        matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        matrix += rng.normal(0, 0.1, (2, 2))
        places = np.rint((np.linalg.inv(matrix) @ (grid(SIZE) - 16).T).T + 16) - rng.integers(-8, 9, 2)
        inside = ((places > 0) & (places < 32)).all(axis=1)
        shares.append((inside & (rng.random(PIXELS) < keep)).mean())
    return np.array(shares)


def test_the_share_of_positives_is_the_published_one(drawn):
    shares = drawn.positive.mean(axis=1)
    assert abs(shares.mean() - 0.18) < 0.005
    low, high = np.quantile(shares, [0.002, 0.998])
    assert 0.09 < low < 0.12
    assert 0.22 < high < 0.27
    others = simulated_share(2000, 0.25)
    assert stats.ks_2samp(shares, others).pvalue > 1e-3
    eighth = affine_pairs(keys(2000, seed=2), (57, 61), SIZE).positive.mean()
    assert abs(eighth - others.mean() / 2) < 0.002


def test_a_quarter_of_what_lies_inside_is_kept_pixel_by_pixel(drawn):
    inside = affine_pairs(keys(4000), (57, 61), SIZE, keep=1.0).positive
    kept, trials = drawn.positive.sum(axis=0), inside.sum(axis=0)
    scores = (kept - 0.25 * trials) / np.sqrt(trials * 0.25 * 0.75)
    assert stats.kstest(scores, "norm").pvalue > 1e-3
    # neighbours are kept independently
    one, two = drawn.positive[:, :-1], drawn.positive[:, 1:]
    both = inside[:, :-1] & inside[:, 1:]
    assert abs((one & two)[both].mean() - 0.0625) < 5 * np.sqrt(0.0625 / both.sum())


def test_random_partners_are_uniform(drawn):
    others = drawn.partner[~drawn.positive]
    assert uniform_p(np.bincount(others, minlength=PIXELS)) > 1e-3
    # also of one pixel, here the first, which lies far outside in most images, and against the partner of the next
    counts, *_ = np.histogram2d(drawn.partner[:, 0] // 128, drawn.partner[:, 31] // 128, bins=8)
    assert stats.chisquare(counts.ravel()).pvalue > 1e-3


def test_row_and_column_0_are_partners_by_chance_only(drawn):
    row, column = np.divmod(drawn.partner[drawn.positive], 32)
    assert (row.min(), row.max(), column.min(), column.max()) == (1, 31, 1, 31)
    row, column = np.divmod(drawn.partner[~drawn.positive], 32)
    assert (row.min(), column.min()) == (0, 0)


def test_the_warp_is_a_uniform_turn_and_normal_noise(drawn):
    (a, b), (c, d) = drawn.warp.transpose(1, 2, 0)
    turn = (np.arctan2(c - b, a + d) / (2 * np.pi)) % 1
    assert stats.kstest(turn, "uniform").pvalue > 1e-3
    # a rotation has a = d and b = −c, so that what is left is noise of variance 2 · 0.1²
    for noise in (a - d, b + c):
        assert stats.kstest(noise / (0.1 * np.sqrt(2)), "norm").pvalue > 1e-3
    # and along the rotation: (a + d)² + (c − b)² is that of a length 2 in noise of the same variance
    length = ((a + d) ** 2 + (c - b) ** 2) / 0.02
    assert stats.kstest(length, stats.ncx2(2, 4 / 0.02).cdf).pvalue > 1e-3
    entries = drawn.warp.reshape(-1, 4)
    assert np.abs(entries.mean(axis=0)).max() < 5 * np.sqrt(0.51 / 4000)


def test_centres_and_shifts_are_uniform(drawn):
    # width 61: centres from 24 on, 14 of them; height 57: 10
    assert uniform_p(np.bincount(drawn.centre[:, 0] - 24, minlength=14)) > 1e-3
    assert uniform_p(np.bincount(drawn.centre[:, 1] - 24, minlength=10)) > 1e-3
    assert (drawn.centre.min(axis=0) == 24).all()
    assert drawn.centre.max(axis=0).tolist() == [37, 33]
    both = (drawn.shift + 8) @ [17, 1]
    assert uniform_p(np.bincount(both, minlength=17 * 17)) > 1e-3
    parts = np.c_[drawn.centre, drawn.shift, drawn.warp.reshape(-1, 4)]
    correlation = np.corrcoef(parts, rowvar=False) - np.eye(8)
    assert np.abs(correlation[:4]).max() < 5 / np.sqrt(4000)


# bad input


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"image": (0, 32)}, r"image must be \(height, width\), two integers of at least 1, not \(0, 32\)"),
        ({"image": (32,)}, r"image must be \(height, width\)"),
        ({"size": (32, 32.0)}, r"size must be \(height, width\)"),
        ({"size": 32}, r"size must be \(height, width\), two integers of at least 1, not 32"),
        ({"shift": -1}, r"shift must be an integer from 0 to 2,147,483,647, not -1"),
        ({"shift": 2**31}, r"shift must be .* not 2147483648"),
        ({"shift": True}, "shift must be an integer"),
        ({"keep": 1.5}, r"keep must be a finite number from 0 to 1, not 1\.5"),
        ({"keep": "0.25"}, "keep must be a finite number from 0 to 1, not '0.25'"),
        ({"keep": float("nan")}, "keep must be a finite number from 0 to 1, not nan"),
    ],
)
def test_bad_arguments_are_refused(words, message):
    with pytest.raises(SetsupError, match=message):
        affine_pairs(keys(2), **({"image": (64, 64), "size": (32, 32)} | words))
