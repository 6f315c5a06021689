"""Pixels found by their features, edges, and separations, against loops and scikit-learn."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from setsup.errors import DataError
from setsup.evaluation.pixels import edge_pixels, mutual_pixels, nearest_pixels, separation


@pytest.mark.parametrize(("height", "width", "size"), [(7, 9, 3), (80, 70, 5), (1, 6, 1)])
def test_the_nearest_pixel_is_that_of_scikit_learn(height: int, width: int, size: int) -> None:
    dice = np.random.default_rng(height)
    features, queries = dice.normal(3, 1, (height, width, size)), dice.normal(3, 1, (50, size))
    found = nearest_pixels(queries, features)
    exact = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(features.reshape(-1, size))
    distances, places = (one[:, 0] for one in exact.kneighbors(queries))
    assert np.array_equal(found.places[:, 0], places % width)
    assert np.array_equal(found.places[:, 1], places // width)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-9)


def test_of_equal_features_the_first_pixel_counts() -> None:
    features = np.zeros((90, 60, 2))  # more pixels than are compared at a time
    features[50:, :] = 1
    found = nearest_pixels([[0.1, 0.1], [0.9, 0.9]], features)
    assert found.places.tolist() == [[0, 0], [0, 50]]


def test_features_far_from_zero_are_told_apart() -> None:
    dice = np.random.default_rng(0)
    features = 1e6 + dice.normal(0, 1e-2, (20, 20, 4)).astype(np.float64)
    wanted = [(3, 4), (19, 0), (0, 19)]
    found = nearest_pixels([features[y, x] for x, y in wanted], features)
    assert found.places.tolist() == [list(place) for place in wanted]
    assert found.distances.max() < 1e-8


@pytest.mark.parametrize("step", [1, 3])
def test_matches_that_come_back_are_those_of_loops(step: int) -> None:
    dice = np.random.default_rng(step)
    first, second = dice.normal(size=(9, 12, 2)), dice.normal(size=(8, 10, 2))

    def nearest(feature: np.ndarray, image: np.ndarray) -> tuple[int, int]:
        apart = np.square(image - feature).sum(-1)
        y, x = np.unravel_index(apart.argmin(), apart.shape)
        return int(x), int(y)

    wanted = []
    for y in range(step // 2, 9, step):
        for x in range(step // 2, 12, step):
            there = nearest(first[y, x], second)
            again = nearest(second[there[1], there[0]], first)
            if np.hypot(again[0] - x, again[1] - y) <= 2:
                wanted.append(((x, y), there))
    found = mutual_pixels(first, second, step=step)
    assert [(tuple(a), tuple(b)) for a, b in zip(found.points1.tolist(), found.points2.tolist(), strict=True)] == wanted
    assert found.visible.all()


def test_edges_are_those_of_a_loop() -> None:
    dice = np.random.default_rng(1)
    instances = dice.integers(-1, 2, (12, 15)).repeat(3, 0).repeat(3, 1)
    depth = np.where(instances < 0, 0, dice.choice([1.0, 1.04, 1.06, 2.0], (12, 15)).repeat(3, 0).repeat(3, 1))
    found = edge_pixels(instances, depth)
    for y in range(36):
        for x in range(45):
            beside = [(y + dy, x + dx) for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0))]
            changes = False
            for other in beside:
                if 0 <= other[0] < 36 and 0 <= other[1] < 45:
                    low, high = sorted((depth[y, x], depth[other]))
                    changes |= instances[y, x] != instances[other] or high > 1.05 * low
            assert found[y, x] == changes


def test_separation_is_the_area_of_scikit_learn() -> None:
    dice = np.random.default_rng(2)
    truths = dice.random(300) < 0.3
    values = np.round(dice.normal(0, 1, 300) + truths, 1)  # with ties
    assert separation(values, truths) == pytest.approx(roc_auc_score(truths, values))
    assert separation(-values, truths) == pytest.approx(1 - separation(values, truths))
    assert np.isnan(separation(values, np.ones(300, dtype=bool)))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"queries must have shape \(q, D\) and features \(h, w, D\)"):
        nearest_pixels(np.zeros((3, 2)), np.zeros((4, 4, 3)))
    with pytest.raises(DataError, match="instances and depth must have the same shape"):
        edge_pixels(np.zeros((3, 3), int), np.zeros((3, 4)))
    with pytest.raises(DataError, match="step"):
        mutual_pixels(np.zeros((4, 4, 2)), np.zeros((4, 4, 2)), step=0)


@pytest.mark.parametrize("where", ["queries", "features"])
def test_features_that_are_not_finite_are_no_matches(where: str) -> None:
    given = {"queries": np.zeros((2, 3)), "features": np.ones((4, 5, 3))}
    given[where][1, 1] = np.nan
    with pytest.raises(DataError, match=f"{where} must contain only finite values"):
        nearest_pixels(**given)
    with pytest.raises(DataError, match="1 of 3 values are not finite"):
        separation([np.nan, 1.0, 2.0], [True, False, True])
    with pytest.raises(DataError, match="1-D array with one value for each truth"):
        separation([1.0, 2.0], [True, False, True])


def test_many_queries_are_compared_with_few_pixels_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(0)
    features, queries = dice.integers(0, 3, (6, 7, 2)), dice.integers(0, 3, (20, 2))
    whole = nearest_pixels(queries, features)
    monkeypatch.setattr("setsup.evaluation.feature_neighbours._DISTANCES", 50)
    assert np.array_equal(nearest_pixels(queries, features).places, whole.places)
