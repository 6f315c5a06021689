"""Nearest neighbours against loops over all pairs; what is kept apart; what neighbours have in common."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
from setsup.errors import DataError, SetsupError
from setsup.evaluation import retrieval
from setsup.evaluation.agreement import Retrieved, accuracy, matches, mean_average_precision, precision, vote
from setsup.evaluation.retrieval import nearest, rank, shared_keys
from setsup.random import fold, stream_key, uniform


def numbers(*shape: int, seed: int = 0):
    return uniform(fold(stream_key(seed, "test"), np.arange(int(np.prod(shape))))).reshape(shape) - 0.5


def slow(queries, gallery, k, kept=lambda q, g: True):
    """By a sort of all pairs."""
    found = np.full((len(queries), k), -1)
    for q, query in enumerate(queries):
        pairs = sorted((float(((query - row) ** 2).sum()), g) for g, row in enumerate(gallery) if kept(q, g))
        for place, (_, g) in enumerate(pairs[:k]):
            found[q, place] = g
    return found


@pytest.fixture(params=[1 << 22, 100])
def block(request, monkeypatch) -> None:
    monkeypatch.setattr(retrieval, "_BLOCK", request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("k", [1, 4, 40])
def test_neighbours_equal_a_sort_of_all_pairs(k) -> None:
    queries, gallery = numbers(23, 5), numbers(31, 5, seed=1)
    rows, distances = nearest(queries, gallery, k)
    np.testing.assert_array_equal(rows, slow(queries, gallery, k))
    some = rows >= 0
    expected = ((queries[:, None] - gallery[rows]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances[some], expected[some], rtol=1e-14)
    assert np.isinf(distances[~some]).all()


@pytest.mark.usefixtures("block")
def test_cosine_is_one_less_the_cosine_and_ignores_length() -> None:
    queries, gallery = numbers(9, 4), numbers(12, 4, seed=1)
    rows, distances = nearest(queries, gallery, 3, metric="cosine")
    cosines = queries @ gallery.T / np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(gallery, axis=1))
    np.testing.assert_array_equal(rows, np.argsort(-cosines, axis=1)[:, :3])
    np.testing.assert_allclose(distances, np.sort(1 - cosines, axis=1)[:, :3], atol=1e-14)
    np.testing.assert_array_equal(rows, nearest(queries * 7, gallery * 0.3, 3, metric="cosine")[0])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.integers(1, 12), st.integers(1, 3))
def test_equal_distances_go_by_row_number(seed, k, width) -> None:
    points = np.floor(numbers(20, width, seed=seed) * 3) + 1e6  # many alike, far from the origin
    np.testing.assert_array_equal(nearest(points, points, k)[0], slow(points, points, k))


def test_small_differences_far_from_the_origin() -> None:
    gallery = 1e8 + np.array([[0.0, 0.0], [0.25, 0.0], [0.0, 0.125]])
    assert nearest(gallery, gallery, 2, own=[0, 1, 2])[0].tolist() == [[2, 1], [0, 2], [0, 1]]


@pytest.mark.usefixtures("block")
def test_own_rows_and_shared_keys_are_never_retrieved() -> None:
    points = numbers(24, 3)
    factors = np.stack([np.arange(24) // 8, np.arange(24) % 4, np.arange(24) % 3], axis=1)
    factors[5, 1] = -1
    never = [shared_keys(factors, factors, [0, 1]), shared_keys(factors, factors, [2])]

    def kept(q, g):
        together = min(factors[q, :2]) >= 0 and (factors[q, :2] == factors[g, :2]).all()
        return q != g and not together and factors[q, 2] != factors[g, 2]

    expected = slow(points, points, 20, kept)
    np.testing.assert_array_equal(nearest(points, points, 20, own=np.arange(24), never=never)[0], expected)
    assert (expected == -1).any()
    order = np.concatenate([rows for _, rows in rank(points, points, own=np.arange(24), never=never)])
    np.testing.assert_array_equal(order[:, :20], expected)


def test_everything_may_be_kept_apart() -> None:
    rows, distances = nearest([[0.0]], [[1.0], [2.0]], 2, never=[([3], [3, 3])])
    assert (rows.tolist(), distances.tolist()) == ([[-1, -1]], [[np.inf, np.inf]])


def test_matches_by_tolerance_round_a_circle() -> None:
    steps = np.arange(18)[:, None]
    found = matches(steps, steps, np.tile(np.arange(18), (18, 1)), tolerance={0: 2}, period={0: 18})[..., 0]
    circle = np.exp(2j * np.pi * np.arange(18) / 18)
    np.testing.assert_array_equal(found, np.abs(np.angle(circle[:, None] / circle)) < 2.5 * 2 * np.pi / 18)


def test_matches_need_both_known_and_a_neighbour() -> None:
    found = matches([[1, -1], [1, 2]], [[1, -1], [2, 2]], [[0, 1], [1, -1]], tolerance={0: 1})
    assert found.tolist() == [[[True, False], [True, False]], [[True, True], [False, False]]]


def test_precision_leaves_queries_out_with_a_count() -> None:
    assert precision([[True], [False], [True]], known=[True, True, False]) == Retrieved(0.5, 2, 1)


def test_vote_of_the_nearest_breaks_ties() -> None:
    labels = [5, 5, 9, 9, -1]
    assert vote([[2, 0, 1, 3], [0, 2, 4, -1], [4, 4, -1, 3], [4, -1, -1, -1]], labels).tolist() == [9, 5, 9, -1]


def test_accuracy_of_three_neighbours() -> None:
    gallery, labels = [[0.0], [1.0], [2.0], [9.0], [10.0]], [0, 1, 1, 2, -1]
    assert accuracy([[0.0], [10.0], [4.0]], gallery, [0, 2, -1], labels) == Retrieved(0.5, 2, 1)
    assert accuracy([[0.0], [9.0], [4.0]], gallery, [1, 2, -1], labels, k=3) == Retrieved(1.0, 2, 1)


@pytest.mark.usefixtures("block")
def test_average_precision_by_hand_and_by_a_loop() -> None:
    # right at ranks 1, 3, 4: (1 + 2/3 + 3/4) / 3
    found = mean_average_precision([[0.0]], [[1.0], [2.0], [3.0], [4.0]], [1], [1, 0, 1, 1])
    assert found.value == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    points, labels = numbers(40, 3), np.arange(40) % 5 - 1
    values = []
    for q in range(40):
        right = [labels[g] == labels[q] for g in slow(points[q : q + 1], points, 40)[0] if g != q]
        if labels[q] >= 0:
            values.append(np.mean([sum(right[: i + 1]) / (i + 1) for i in range(39) if right[i]]))
    found = mean_average_precision(points, points, labels, labels, own=np.arange(40))
    assert (found.value, found.queries, found.left_out) == (pytest.approx(np.mean(values)), 32, 8)


def test_queries_without_a_row_to_find_are_left_out() -> None:
    assert mean_average_precision([[0.0], [1.0]], [[0.0], [1.0]], [0, 7], [0, 0]) == Retrieved(1.0, 1, 1)


def test_bad_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(DataError, match="must have embeddings with the same number of dimensions, not 2 and 3"):
        nearest(numbers(4, 2), numbers(4, 3))
    with pytest.raises(DataError, match="row 1 of gallery is zero, so its cosine is undefined"):
        nearest([[1.0]], [[1.0], [0.0]], metric="cosine")
    with pytest.raises(SetsupError, match="metric must be one of l2sq, cosine, not 'cosin'"):
        nearest([[1.0]], [[1.0]], metric="cosin")
    with pytest.raises(SetsupError, match="k must be an integer of at least 1, not 0"):
        nearest([[1.0]], [[1.0]], 0)
    with pytest.raises(DataError, match="own must contain row numbers of the gallery from 0 to 0"):
        nearest([[1.0]], [[1.0]], own=[1])
    with pytest.raises(DataError, match="keys must be an array"):
        nearest([[1.0]], [[1.0]], never=[([1], [1, 2])])
    with pytest.raises(SetsupError, match="columns must contain at least one number of a factor"):
        shared_keys([[1, 2]], [[1, 2]], [2])
    with pytest.raises(DataError, match="must be below the period 18"):
        matches([[18]], [[0]], [[0]], period={0: 18})
    with pytest.raises(DataError, match="rows must contain row numbers of the gallery"):
        vote([[2]], [0, 1])
    with pytest.raises(DataError, match="none of the 1 queries"):
        accuracy([[0.0]], [[0.0]], [-1], [0])
