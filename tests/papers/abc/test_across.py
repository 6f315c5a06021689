"""Neighbours across classes: small cases by hand, and numpy's correlation."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.random import fold, stream_key, uniform
from setsup_papers.abc.across import centred_correlation, nearest_of_each


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return uniform(fold(stream_key(seed, "test"), np.arange(int(np.prod(shape))))).reshape(shape) - 0.5


def test_nearest_of_each_digit_searches_its_first_images() -> None:
    labels = np.array([3, 1, 3, 1, 3, -1, 1])
    places = np.array([[0.0], [9.0], [8.0], [1.0], [9.1], [0.0], [0.1]])
    digits, queries, rows = nearest_of_each(places, labels, first=2)
    assert digits.tolist() == [1, 3]
    assert queries.tolist() == [1, 0]
    assert rows.tolist() == [[1, 2], [3, 0]]  # rows 4 and 6 are nearer, and third of their digit
    assert nearest_of_each(places, labels)[2].tolist() == [[1, 4], [6, 0]]


def test_centred_correlation_is_that_of_what_classes_leave() -> None:
    slant, other = numbers(60), numbers(60, seed=4)
    labels, theirs = np.arange(60) % 3, (np.arange(60) + 1) % 3
    neighbour = slant + 0.5 * other
    centred = [v - [v[c == i].mean() for i in c] for v, c in ((slant, labels), (neighbour, theirs))]
    expected = np.corrcoef(*centred)[0, 1]
    found = centred_correlation(slant + 100 * labels, neighbour - 50 * theirs, labels, theirs)
    assert found == pytest.approx(expected, abs=1e-9)
    with pytest.raises(DataError, match="constant within each class"):
        centred_correlation(np.full(60, 0.1), neighbour, labels, theirs)


def test_labels_that_are_all_unknown_are_refused() -> None:
    with pytest.raises(DataError, match="none of the 2 labels is known"):
        nearest_of_each([[0.0], [1.0]], [-1, -1])
