"""Style of digits: closed forms of drawn shapes, other libraries, loops; what is measured of embeddings; bad input."""

import sys
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import kstest

pytest.importorskip("torch")
from setsup.datasets.benchmarks import mnist
from setsup.errors import DataError, SetsupError
from setsup.evaluation.held_out import assign_folds
from setsup.evaluation.projection import principal_components
from setsup.random import fold, stream_key, uniform
from setsup_papers.abc import digits as of_digits
from setsup_papers.abc.across import nearest_across
from setsup_papers.abc.digits import digit_measures, pixels, slant, thickness


def numbers(*shape: int, seed: int = 0):
    return uniform(fold(stream_key(seed, "test"), np.arange(int(np.prod(shape))))).reshape(shape)


def noise(*shape: int, seed: int = 0, most: int = 256):
    return (numbers(*shape, seed=seed) * most).astype(np.uint8)


def bars(widths, shifts, side: int = 28):
    """Upright bars, (n, side, side): so many pixels wide, each row shifted to the right by a number of its own."""
    found = np.zeros((len(widths), side, side), dtype=np.uint8)
    for picture, width, shift in zip(found, widths, shifts, strict=True):
        for row in range(4, side - 4):
            left = side // 2 - width // 2 + round(shift * (side // 2 - row))
            picture[row, left : left + width] = 255
    return found


@pytest.mark.parametrize("s", [-2, -1, 0, 1, 3])
def test_slant_of_a_sheared_rectangle_is_the_shear(s) -> None:
    picture = np.zeros((1, 40, 64), dtype=np.uint8)
    for up in range(15):
        left = 29 + s * (up - 7)
        picture[0, 30 - up, left : left + 6] = 200
    assert slant(picture)[0] == s


@pytest.mark.parametrize("s", [-0.6, 0.25, 0.8])
def test_slant_of_a_sheared_gaussian_is_the_shear(s) -> None:
    y, x = np.mgrid[:81, :81] - 40.0
    grey = np.exp(-(((x + s * y) / 6) ** 2) / 2 - ((y / 9) ** 2) / 2)
    assert slant(np.rint(255 * grey).astype(np.uint8)[None])[0] == pytest.approx(s, abs=0.01)


def test_slant_equals_sums_over_pixels() -> None:
    images = noise(4, 9, 7)
    for found, image in zip(slant(images), images, strict=True):
        places = [(int(g), Fraction(x), Fraction(y)) for (y, x), g in np.ndenumerate(image)]
        total = sum(g for g, _, _ in places)
        mean_x, mean_y = (sum(p[0] * p[at] for p in places) / total for at in (1, 2))
        both = sum(g * (x - mean_x) * (y - mean_y) for g, x, y in places)
        tall = sum(g * (y - mean_y) ** 2 for g, _, y in places)
        assert found == pytest.approx(float(-both / tall), rel=1e-15)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 999), st.integers(0, 12), st.integers(0, 12), st.integers(1, 3))
def test_slant_does_not_know_place_nor_brightness_and_turns_with_a_mirror(seed, down, right, times) -> None:
    patch = noise(16, 16, seed=seed, most=86)
    images = np.zeros((2, 28, 28), dtype=np.uint8)
    images[0, :16, :16] = patch
    images[1, down : down + 16, right : right + 16] = times * patch
    first, second = slant(images)
    assert first == second  # exact, since both are a quotient of integers
    assert slant(images[:1, :, ::-1])[0] == slant(images[:1, ::-1])[0] == -first
    assert slant(images[:1, ::-1, ::-1])[0] == first


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.integers(-2, 2))
def test_shearing_adds_to_the_slant(seed, s) -> None:
    patch = noise(9, 9, seed=seed)
    images = np.zeros((2, 9, 41), dtype=np.uint8)
    for row in range(9):
        images[0, row, 16:25] = patch[row]
        left = 16 + s * (4 - row)
        images[1, row, left : left + 9] = patch[row]
    first, second = slant(images)
    assert second - first == pytest.approx(s, abs=1e-12)


def test_nothing_bright_and_a_single_row() -> None:
    images = np.zeros((3, 28, 28), dtype=np.uint8)
    images[1, 5] = 255
    images[2] = 127
    np.testing.assert_array_equal(slant(images[:2]), 0)
    assert slant(images[2:])[0] == 0
    np.testing.assert_array_equal(thickness(images)[[0, 2]], 0)  # 127 is below half
    assert thickness(np.full((1, 4, 4), 128, dtype=np.uint8))[0] > 0


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_thickness_of_a_long_bar_is_half_its_width(width) -> None:
    upright = np.zeros((100, 100), dtype=np.uint8)
    upright[5:95, 40 : 40 + width] = 255
    # at its ends the midline is nearer to the background, and may fork into the corners
    assert thickness([upright, upright.T]) == pytest.approx(width / 2, abs=0.01 + width**2 / 180)


def test_thickness_of_a_ring_is_half_its_width_whatever_the_direction() -> None:
    y, x = np.mgrid[:61, :61] - 30.0
    radius = np.hypot(x, y)
    ring = np.clip(4.5 - np.abs(radius - 20), 0, 1) * 255  # 8 wide at half of the brightness, with a soft edge
    assert thickness(ring.astype(np.uint8)[None])[0] == pytest.approx(4, abs=0.25)


def test_thickness_equals_a_loop_with_resizing_and_all_distances() -> None:
    from skimage.morphology import skeletonize
    from skimage.transform import resize

    blobs = np.cumsum(np.cumsum(numbers(12, 20, 22, seed=3) - 0.5, axis=1), axis=2)
    images = np.clip(128 + 40 * blobs, 0, 255).astype(np.uint8)
    for found, image in zip(thickness(images), images, strict=True):
        # rounded, since a grey value of exactly half occurs
        stroke = np.round(resize(image / 255, (40, 44), order=1, mode="edge") * 255, 6) > 127.5
        stroke = np.pad(stroke, 1)
        middle = np.argwhere(skeletonize(stroke))
        expected = cdist(middle, np.argwhere(~stroke)).min(axis=1).mean() / 2
        assert found == pytest.approx(expected, rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), st.integers(0, 8), st.integers(0, 8))
def test_thickness_does_not_know_place(seed, down, right) -> None:
    soft = np.clip(300 * np.cumsum(numbers(18, 18, seed=seed) - 0.45, axis=0), 0, 255).astype(np.uint8)
    images = np.zeros((2, 28, 28), dtype=np.uint8)
    images[0, 1:19, 1:19] = soft
    images[1, 1 + down : 19 + down, 1 + right : 19 + right] = soft
    first, second = thickness(images)
    assert first == pytest.approx(second, rel=1e-12)


def test_pictures_one_above_the_other_do_not_touch(monkeypatch) -> None:
    images = noise(9, 12, 10)
    images[4] = 255
    alone = [thickness(images[at : at + 1])[0] for at in range(9)]
    np.testing.assert_allclose(thickness(images), alone, rtol=1e-13)
    monkeypatch.setattr(of_digits, "_CHUNK", 4)
    np.testing.assert_allclose(thickness(images), alone, rtol=1e-13)


def test_a_channel_of_one_and_read_only_pictures() -> None:
    images = noise(3, 28, 28)
    images.setflags(write=False)
    for measure in (slant, thickness, pixels):
        np.testing.assert_array_equal(measure(images[..., None]), measure(images))
    np.testing.assert_allclose(pixels(images), [image.ravel() / 255 for image in images])


def test_every_first_image_queries_every_other_class() -> None:
    places, labels = numbers(40, 3), np.arange(40) % 4 - 1
    queries, rows = nearest_across(places, labels, first=7)
    expected = []
    for own in range(3):
        for other in range(3):
            gallery = [g for g in range(40) if labels[g] == other][:7]
            for query in [q for q in range(40) if labels[q] == own and own != other][:7]:
                expected.append((query, min(gallery, key=lambda g: float(((places[query] - places[g]) ** 2).sum()))))
    assert list(zip(queries.tolist(), rows.tolist(), strict=True)) == expected
    assert len(queries) == 3 * 2 * 7
    with pytest.raises(DataError, match="all known labels are 4"):
        nearest_across(places, np.full(40, 4))


WIDTHS, SHIFTS = 1 + (numbers(300) * 6).astype(int), numbers(300, seed=1) * 0.8 - 0.4
STROKES = bars(WIDTHS, SHIFTS)
LABELS = np.arange(300) % 3
EMBEDDED = np.column_stack([WIDTHS, 5 * SHIFTS, 0.6 * LABELS, 0.3 * numbers(300, 2, seed=2)])


@pytest.mark.long("large or genuine files")
def test_measures_equal_those_of_scikit_learn_and_loops() -> None:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import pairwise_distances
    from sklearn.model_selection import PredefinedSplit, cross_val_score

    withheld = EMBEDDED[:90] @ np.diag([1, 1, 0, 2, 1]) + 4
    found = digit_measures(EMBEDDED, LABELS, STROKES, withheld, STROKES[:90], sigma=0.0, seed=5)
    styles = {"slant": slant(STROKES), "thickness": thickness(STROKES)}

    def r2(embedded, style):
        split = PredefinedSplit(assign_folds(len(style), 5, 5))
        return cross_val_score(LinearRegression(), PCA(2).fit_transform(embedded), style, cv=split, scoring="r2").mean()

    share = PCA(2).fit(withheld).explained_variance_ratio_.sum()
    assert found.withheld_variance == pytest.approx(share, rel=1e-12)
    assert found.spread == pytest.approx(np.sqrt(((EMBEDDED - EMBEDDED.mean(axis=0)) ** 2).sum() / 300))
    away = pairwise_distances(EMBEDDED)
    across = [
        (q, min((g for g in range(300) if LABELS[g] == other), key=lambda g: away[q, g]))
        for q in range(300)
        for other in range(3)
        if other != LABELS[q]
    ]
    q, g = np.array(across).T
    for name, style in styles.items():
        assert getattr(found, f"withheld_{name}") == pytest.approx(r2(withheld, style[:90]), abs=1e-9)
        assert getattr(found, name) == pytest.approx(r2(EMBEDDED, style), abs=1e-9)
        centred = [style[at] - [style[at[LABELS[at] == c]].mean() for c in LABELS[at]] for at in (q, g)]
        expected = np.corrcoef(*centred)[0, 1]
        assert getattr(found, f"across_{name}") == pytest.approx(expected, abs=1e-9)
    np.fill_diagonal(away, np.inf)
    order = np.argsort(away, axis=1)
    assert found.accuracy == pytest.approx((LABELS[order[:, 0]] == LABELS).mean())
    voted = [LABELS[near[:25]].tolist() for near in order]
    won = [max(set(labels), key=lambda c, of=labels: (of.count(c), -of.index(c))) for labels in voted]
    assert found.noisy_accuracy == pytest.approx((np.array(won) == LABELS).mean())
    assert all(type(value) is float for value in asdict(found).values())


@pytest.mark.long("large or genuine files")
def test_noise_is_keyed_and_of_the_scale_that_is_asked_for() -> None:
    def noisy(sigma, seed=0):
        code = np.column_stack([4.0 * LABELS, EMBEDDED[:, 3:]])
        return digit_measures(code, LABELS, STROKES, code, STROKES, sigma=sigma, seed=seed)

    assert noisy(0.3).noisy_accuracy > 0.99
    assert noisy(40.0).noisy_accuracy == pytest.approx(1 / 3, abs=0.1)
    assert noisy(2.0) == noisy(2.0)
    assert noisy(2.0).noisy_accuracy != noisy(2.0, seed=1).noisy_accuracy
    assert noisy(40.0).accuracy == noisy(0.3).accuracy == 1
    drawn = of_digits._normal((20_000, 2), 3)
    assert kstest(drawn.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.03


@pytest.mark.long("large or genuine files")
def test_unknown_digits_and_one_dimension() -> None:
    labels = np.where(np.arange(300) < 30, -1, LABELS)
    code = LABELS[:, None] + 0.01 * numbers(300, 1)
    code[:30] = code[30:60]  # nearer than any other, and yet no neighbours
    found = digit_measures(code, labels, STROKES, EMBEDDED[:, :1], STROKES, sigma=0.1)
    assert found.withheld_variance == 1
    assert found.withheld_thickness > 0.9
    assert found.accuracy == found.noisy_accuracy == 1


def test_without_scikit_image_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage.morphology", None)
    with pytest.raises(SetsupError, match=r"skimage is required but not installed: pip install '\.\[train\]'"):
        thickness(STROKES[:2])
    assert len(slant(STROKES[:2])) == 2


def test_bad_input_is_refused_in_a_sentence() -> None:
    for wrong in (STROKES.astype(float), STROKES[0], STROKES[..., None].repeat(3, axis=3), STROKES[:0]):
        for measure in (slant, thickness, pixels):
            with pytest.raises(DataError, match="images must be grayscale uint8 images"):
                measure(wrong)
    with pytest.raises(DataError, match="one row for each of the 299 images, not 300"):
        digit_measures(EMBEDDED, LABELS, STROKES[1:], EMBEDDED, STROKES)
    with pytest.raises(DataError, match="one row for each of the 300 withheld images, not 10"):
        digit_measures(EMBEDDED, LABELS, STROKES, EMBEDDED[:10], STROKES)
    with pytest.raises(DataError, match="withheld images must be grayscale uint8 images"):
        digit_measures(EMBEDDED, LABELS, STROKES, EMBEDDED, STROKES.astype(float))
    with pytest.raises(DataError, match="must have the same number of dimensions, not 5 and 4"):
        digit_measures(EMBEDDED, LABELS, STROKES, EMBEDDED[:, :4], STROKES)
    with pytest.raises(DataError, match="row 3 of 300 in withheld embeddings"):
        digit_measures(EMBEDDED, LABELS, STROKES, np.where(np.arange(300) == 3, np.nan, EMBEDDED.T).T, STROKES)
    with pytest.raises(DataError, match="the network has collapsed"):
        digit_measures(np.ones((300, 5)), LABELS, STROKES, EMBEDDED, STROKES)
    for sigma in (-1.0, np.nan, "1"):
        with pytest.raises(SetsupError, match="sigma must be a number of at least 0"):
            digit_measures(EMBEDDED, LABELS, STROKES, EMBEDDED, STROKES, sigma=sigma)
    with pytest.raises(DataError, match="digits must be an array"):
        digit_measures(EMBEDDED, LABELS[1:], STROKES, EMBEDDED, STROKES)


@pytest.mark.long("large or genuine files")
def test_genuine_digits(genuine) -> None:
    if not (genuine / "mnist").is_dir():
        pytest.skip("the published MNIST files are not beside the checkout")
    opened = mnist.open(genuine / "mnist")
    rows = opened.factors.rows("split == 'test'")[::2]
    images, labels = opened.fetch(rows)["image"], opened.factors.codes("digit", rows)
    assert 0 < np.median(slant(images)) < 0.5  # most who write lean to the right
    assert 1 < 2 * np.median(thickness(images[:500])) < 4  # strokes are a few pixels wide
    nines = opened.fetch(opened.factors.rows("digit == 9")[::2])["image"]
    fitted = principal_components(pixels(images[labels != 9]), 8)
    found = digit_measures(fitted.project(pixels(images)), labels, images, fitted.project(pixels(nines)), nines)
    # a program that was written apart from this one, from the same description, reads these of eight components
    apart = {
        "withheld_variance": 0.56,
        "withheld_slant": 0.74,
        "withheld_thickness": 0.27,
        "slant": 0.04,
        "thickness": 0.13,
        "noisy_accuracy": 0.68,
        "accuracy": 0.86,
    }
    assert {name: getattr(found, name) for name in apart} == pytest.approx(apart, abs=0.04)
