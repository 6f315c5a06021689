"""Matches of features by two protocols, against brute force in float64 that was written from the definitions."""

import math

import numpy as np
import pytest

pytest.importorskip("scipy")

from setsup.correspondence import PixelPairs, Status
from setsup.errors import DataError
from setsup.evaluation.dense import (
    edge_separations,
    instance_separation,
    mutual_matches,
    ratio_matches,
    recall_within,
    visible_matches,
)
from setsup.evaluation.dense_views import DenseView


def cosine_distance(first: np.ndarray, second: np.ndarray) -> float:
    return 1 - float(first @ second) / float(np.sqrt(first @ first) * np.sqrt(second @ second))


def random_case(case: int):  # type: ignore[no-untyped-def]
    """Two views of 9 × 12 and 8 × 11 pixels with features, and every pixel of the first with a partner."""
    dice = np.random.default_rng(case)
    features1, features2 = (dice.normal(0, 1, (*size, 5)) for size in ((9, 12), (8, 11)))
    xyz2 = dice.normal(0, 0.03, (8, 11, 3))
    xyz2[dice.random((8, 11)) < 0.2] = np.nan
    y, x = np.mgrid[:9, :12].reshape(2, -1)
    points2 = dice.uniform(-2, 12, (108, 2))
    status = dice.integers(0, 4, 108).astype(np.uint8)
    xyz = dice.normal(0, 0.03, (108, 3))
    xyz[status == Status.NO_SURFACE] = np.nan
    points2[status == Status.NO_SURFACE] = np.nan
    points2[(status == Status.OUTSIDE) & (dice.random(108) < 0.3)] = np.nan  # behind camera 2
    pairs = PixelPairs(np.stack([x, y], 1), points2, xyz, np.zeros(108), status)
    return pairs, DenseView(features1, (9, 12)), DenseView(features2, (8, 11), xyz2)


@pytest.mark.parametrize("case", range(20))
def test_visible_pixels_go_to_the_nearest_feature_of_all(case: int) -> None:
    pairs, view1, view2 = random_case(case)
    seen = pairs.select(pairs.visible)
    found = visible_matches(seen, view1, view2)
    back = mutual_matches(found, view1, view2)
    for number, ((x, y), there, xyz) in enumerate(zip(seen.points1.astype(int), seen.points2, seen.xyz, strict=True)):
        apart = {(a, b): math.dist(view1.features[y, x], view2.features[b, a]) for b in range(8) for a in range(11)}
        nearest = min(apart, key=apart.__getitem__)
        assert tuple(found.points2[number]) == nearest
        assert found.pixels[number] == pytest.approx(math.dist(nearest, there))
        shown = view2.xyz[nearest[1], nearest[0]]
        expected = math.inf if np.isnan(shown).any() else math.dist(shown, xyz)
        assert found.metres[number] == pytest.approx(expected)
        returned = min(
            ((math.dist(view2.features[nearest[1], nearest[0]], view1.features[b, a]), b, a))
            for b in range(9)
            for a in range(12)
        )
        assert back[number] == (returned[1:] == (y, x))


@pytest.mark.parametrize("case", range(20))
@pytest.mark.parametrize("step", [1, 2])
def test_the_best_by_ratio_are_those_of_loops(case: int, step: int) -> None:
    pairs, view1, view2 = random_case(case)
    found = ratio_matches(pairs, view1, view2, count=10, step=step)
    matches = []
    for (x, y), there, xyz, status in zip(
        pairs.points1.astype(int), pairs.points2, pairs.xyz, pairs.status, strict=True
    ):
        if status == Status.NO_SURFACE or x % step != step // 2 or y % step != step // 2:
            continue
        apart = sorted(
            (cosine_distance(view1.features[y, x], view2.features[b, a]), b, a)
            for b in range(step // 2, 8, step)
            for a in range(step // 2, 11, step)
            if not np.isnan(view2.xyz[b, a]).any()
        )
        ratio = max(apart[0][0], 1e-9) / max(apart[1][0], 1e-9)
        _, b, a = apart[0]
        error = math.inf if np.isnan(there).any() else math.dist((a, b), there)
        matches.append((ratio, (x, y), (a, b), error, math.dist(view2.xyz[b, a], xyz)))
    matches = sorted(matches, key=lambda match: match[0])[:10]
    assert [tuple(point) for point in found.points1] == [match[1] for match in matches]
    assert [tuple(point) for point in found.points2] == [match[2] for match in matches]
    np.testing.assert_allclose(found.pixels, [match[3] for match in matches], rtol=1e-9)
    np.testing.assert_allclose(found.metres, [match[4] for match in matches], rtol=1e-9)


def test_equal_ratios_stay_in_the_order_of_rows_and_copies_have_the_ratio_one() -> None:
    features = np.repeat(np.eye(3)[:, None], 4, axis=1)  # three rows of four equal pixels
    view = DenseView(features, (3, 4))
    y, x = np.mgrid[:3, :4].reshape(2, -1)
    pairs = PixelPairs(np.stack([x, y], 1), np.stack([x, y], 1), np.zeros((12, 3)), np.zeros(12), np.zeros(12))
    found = ratio_matches(pairs, view, view, count=5, step=1)
    assert found.points1.tolist() == [[0, 0], [1, 0], [2, 0], [3, 0], [0, 1]]
    assert found.points2.tolist() == [[0, 0], [0, 0], [0, 0], [0, 0], [0, 1]]
    assert found.nearest.near_ties.all()


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (3, 5), (8, 11), (1, 1)])
def test_a_pixel_belongs_to_the_cell_that_covers_its_centre(rows: int, columns: int) -> None:
    view = DenseView(np.zeros((rows, columns, 1)), (8, 11))
    for y in range(8):
        for x in range(11):
            down, across = math.floor((y + 0.5) / (8 / rows)), math.floor((x + 0.5) / (11 / columns))
            (cell,) = view.cells([[x, y]])
            assert cell == down * columns + across
            centre = view.centres([cell])[0]
            assert centre == pytest.approx([(across + 0.5) * 11 / columns - 0.5, (down + 0.5) * 8 / rows - 0.5])


def test_patches_are_matched_at_their_centres() -> None:
    dice = np.random.default_rng(0)
    patches = dice.normal(0, 1, (4, 6, 3))
    view = DenseView(patches, (56, 84))
    y, x = np.mgrid[:56, :84].reshape(2, -1)
    pixels = np.stack([x, y], 1)
    pairs = PixelPairs(pixels, pixels, np.zeros((len(x), 3)), np.zeros(len(x)), np.zeros(len(x)))
    found = ratio_matches(pairs, view, view, step=4)
    assert len(found) == 24, "one for each patch"
    assert found.pixels.max() <= math.hypot(0.5, 0.5)
    visible = visible_matches(pairs, view, view)
    assert visible.points2[0].tolist() == [6.5, 6.5]
    assert visible.pixels.max() == pytest.approx(math.hypot(6.5, 6.5))


def test_recall_counts_errors_within_limits() -> None:
    errors = np.random.default_rng(0).choice([0.5, 1, 2, 3, 5, 7, np.inf, np.nan], 200)
    known = [error for error in errors if error == error]
    for strict in (False, True):
        expected = [
            sum(error < limit or (not strict and error == limit) for error in known) / len(known) for limit in (1, 3, 5)
        ]
        assert recall_within(errors, (1, 3, 5), strict=strict).tolist() == pytest.approx(expected)
    assert np.isnan(recall_within([np.nan], [1])).all()


def test_instances_and_edges_are_told_by_features_that_are_these() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    dice = np.random.default_rng(0)
    instances = np.repeat(np.arange(3), 4)[None].repeat(10, axis=0)
    view = DenseView(instances[..., None].astype(float), (10, 12))
    assert instance_separation(view, instances, 500, 0) == 1
    edges = np.zeros((10, 12), dtype=bool)
    edges[4, 6] = True
    y, x = np.mgrid[:10, :12]
    near = np.hypot(x - 6, y - 4) <= 2
    noisy = DenseView(dice.integers(0, 3, (10, 12, 4)) + near[..., None] * np.arange(4), (10, 12))
    expected = [sklearn.roc_auc_score(near.ravel(), noisy.features[..., one].ravel()) for one in range(4)]
    np.testing.assert_allclose(edge_separations(noisy, edges), expected, rtol=1e-12)
    assert np.isnan(edge_separations(noisy, np.zeros((10, 12), dtype=bool))).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"features of a view of 4 × 6 pixels must have the shape"):
        DenseView(np.zeros((5, 6, 3)), (4, 6))
    with pytest.raises(DataError, match=r"xyz must have the shape \(4, 6, 3\), not \(4, 6\)"):
        DenseView(np.zeros((4, 6, 3)), (4, 6), np.zeros((4, 6)))
    pairs, view1, view2 = random_case(0)
    empty = DenseView(view2.features, view2.size, surface=np.zeros(view2.size, dtype=bool))
    with pytest.raises(DataError, match="view 2 shows no surface on the grid"):
        ratio_matches(pairs, view1, empty)
    with pytest.raises(DataError, match="count, the number of matches, must be"):
        ratio_matches(pairs, view1, view2, count=0)
    with pytest.raises(DataError, match="instances must have the shape"):
        instance_separation(view1, np.zeros((3, 3), dtype=int), 10, 0)
