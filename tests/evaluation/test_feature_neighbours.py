"""The nearest and second nearest features, against sums of squared differences in float64."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.evaluation.feature_neighbours import mutual_neighbours, nearest_features


def by_loops(queries: np.ndarray, candidates: np.ndarray) -> tuple[list[int], list[float], list[float]]:
    """Rows of the nearest candidates, the first of equal ones, and the two least distances, query by query."""
    rows, nearest, second = [], [], []
    for query in queries.astype(np.float64):
        apart = np.sqrt(((candidates.astype(np.float64) - query) ** 2).sum(axis=1))
        least = min(apart.tolist())
        rows.append(apart.tolist().index(least))
        others = sorted(apart.tolist())
        nearest.append(others[0])
        second.append(others[1] if len(others) > 1 else np.inf)
    return rows, nearest, second


def check(queries: np.ndarray, candidates: np.ndarray) -> None:
    rows, nearest, second = by_loops(queries, candidates)
    found = nearest_features(queries, candidates)
    clear = [one < (1 - 1e-5) * two for one, two in zip(nearest, second, strict=True)]
    assert [row for row, sure in zip(found.rows.tolist(), clear, strict=True) if sure] == [
        row for row, sure in zip(rows, clear, strict=True) if sure
    ]
    np.testing.assert_allclose(found.distances, nearest, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(found.second, second, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("case", range(25))
def test_random_features_give_what_loops_give(case: int) -> None:
    dice = np.random.default_rng(case)
    size = int(dice.integers(1, 40))
    count, wanted = int(dice.integers(1, 300)), int(dice.integers(0, 40))
    candidates = dice.normal(dice.normal(0, 10), 1, (count, size)).astype(np.float32)
    queries = np.concatenate([dice.normal(0, 3, (wanted, size)), candidates[: dice.integers(0, count + 1)]])
    check(queries.astype(np.float32), candidates)


@pytest.mark.parametrize("case", range(10))
def test_of_equal_distances_the_first_row_counts(case: int) -> None:
    dice = np.random.default_rng(case)
    candidates, queries = dice.integers(0, 3, (200, 3)), dice.integers(0, 3, (60, 3))
    rows, nearest, second = by_loops(queries, candidates)
    found = nearest_features(queries, candidates)
    assert found.rows.tolist() == rows
    np.testing.assert_array_equal(found.distances, nearest)
    np.testing.assert_array_equal(found.second, second)
    assert found.near_ties.tolist() == [one == two for one, two in zip(nearest, second, strict=True)]


def test_candidates_far_from_zero_and_very_close_ones_are_told_apart() -> None:
    dice = np.random.default_rng(0)
    check(1e6 + dice.normal(0, 1e-2, (30, 4)), 1e6 + dice.normal(0, 1e-2, (500, 4)))
    close = np.repeat(dice.normal(0, 1, (20, 8)), 10, axis=0) + dice.normal(0, 1e-9, (200, 8))
    check(close[::7] + dice.normal(0, 1e-9, (29, 8)), close)


def test_near_ties_are_those_within_one_in_a_hundred_thousand() -> None:
    far = [1 + 0.9e-5, 1 + 1.2e-5, 0.0]
    for second, near in zip(far, [True, False, False], strict=True):
        assert nearest_features([[0.0]], [[1.0], [second]]).near_ties.tolist() == [near]
    assert nearest_features([[0.0]], [[1.0]]).near_ties.tolist() == [False], "nothing to tie with"


def test_blocks_do_not_change_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(3)
    candidates, queries = dice.integers(0, 4, (90, 3)), dice.integers(0, 4, (50, 3))
    whole = nearest_features(queries, candidates)
    monkeypatch.setattr("setsup.evaluation.feature_neighbours._DISTANCES", 60)
    monkeypatch.setattr("setsup.evaluation.feature_neighbours._DIFFERENCES", 8)
    for one, other in zip(nearest_features(queries, candidates), whole, strict=True):
        assert np.array_equal(one, other)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"the shapes \(q, D\) and \(c, D\) with c ≥ 1, not \(2, 3\) and \(4, 2\)"):
        nearest_features(np.zeros((2, 3)), np.zeros((4, 2)))
    with pytest.raises(DataError, match="with c ≥ 1, not"):
        nearest_features(np.zeros((2, 3)), np.zeros((0, 3)))
    with pytest.raises(DataError, match="candidates must contain only finite values"):
        nearest_features(np.zeros((2, 3)), [[np.inf, 0, 0]])


@pytest.mark.parametrize("case", range(10))
def test_mutual_neighbours_by_loops(case: int) -> None:
    dice = np.random.default_rng(case)
    first, second = (np.round(dice.normal(size=(int(dice.integers(1, 30)), 2)) * 3) for _ in range(2))  # many ties

    def nearest(query: np.ndarray, candidates: np.ndarray) -> int:
        return min(range(len(candidates)), key=lambda row: (((query - candidates[row]) ** 2).sum(), row))

    expected = []
    for row, feature in enumerate(first):
        there = nearest(feature, second)
        if nearest(second[there], first) == row:
            expected.append([row, there])
    assert mutual_neighbours(first, second).tolist() == expected
    assert mutual_neighbours(first, np.zeros((0, 2))).shape == (0, 2)
