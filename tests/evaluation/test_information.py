"""What all estimators check, and the scale of noise."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch")

from setsup.evaluation import mine, neighbour_information, noise_scale, probe_information  # noqa: E402
from setsup.evaluation.information import check_columns  # noqa: E402

ESTIMATORS = (mine, neighbour_information, probe_information)


@pytest.mark.parametrize("similarity", ["l1", "linf", "cosine"])
def test_noise_has_the_scale_that_the_similarity_resolves(similarity: str) -> None:
    assert noise_scale("l2sq", 9) == 3
    assert noise_scale("l2", 9) == 9
    assert noise_scale(similarity, 9) == 1


@pytest.mark.parametrize("tau", [0, -1, math.nan, math.inf])
def test_noise_needs_a_positive_temperature(tau: float) -> None:
    with pytest.raises(SetsupError, match="temperature"):
        noise_scale("l2sq", tau)


@pytest.mark.parametrize("measure", ESTIMATORS)
@pytest.mark.parametrize(
    ("embeddings", "factors", "said"),
    [
        (np.zeros(300), np.zeros(300, int), r"array of shape \(n, d\)"),
        (np.zeros((300, 0)), np.zeros(300, int), r"array of shape \(n, d\)"),
        (np.zeros((0, 2)), np.zeros(0, int), r"array of shape \(n, d\)"),
        (np.zeros((300, 2)), np.zeros(299, int), r"\(300,\) or \(300, k\).*not \(299,\)"),
        (np.zeros((300, 2)), np.zeros((300, 1, 1), int), "one row for each"),
        (np.zeros((300, 2)), np.zeros((300, 0), int), "one row for each"),
        (np.full((300, 2), np.nan), np.zeros(300, int), "300 of 300 embeddings are not finite"),
        (np.full((300, 2), "a"), np.zeros(300, int), "numeric arrays"),
        (np.zeros((300, 2)), np.full(300, "a"), "numeric arrays"),
        (np.zeros((300, 2)), np.full(300, np.inf), "infinite"),
        (np.zeros((300, 2)), np.full(300, -1), "factor 0 is known in 0 rows"),
        (np.zeros((300, 2)), np.full(300, np.nan), "factor 0 is known in 0 rows"),
        ([[1.0], [1.0, 2.0]], np.zeros(2, int), "differ in length"),
    ],
)
def test_bad_input_is_refused(measure: Callable, embeddings, factors, said: str) -> None:
    with pytest.raises(DataError, match=said):
        measure(embeddings, factors)


def test_negative_codes_and_nan_are_unknown_but_negative_floats_are_not() -> None:
    codes = check_columns(np.zeros((4, 1)), np.array([[0, 1, -1, 2]]).T, 1, "")
    reals = check_columns(np.zeros((4, 1)), np.array([0.5, -1, np.nan, -2]), 1, "")
    assert codes.known[:, 0].tolist() == [True, True, False, True]
    assert reals.known[:, 0].tolist() == [True, True, False, True]
    found = codes.information(np.zeros(1))
    assert (found.ceilings[0], found.left_out[0]) == (math.log(3), 1)
    assert reals.information(np.zeros(1)).ceilings[0] == math.inf


def test_tensors_of_short_floats_are_taken() -> None:
    table = check_columns(torch.ones(4, 2, dtype=torch.bfloat16, requires_grad=True), torch.arange(4), 1, "")
    assert table.points.tolist() == [[1, 1]] * 4
    assert table.discrete


@pytest.mark.parametrize("measure", ESTIMATORS)
def test_arrays_that_can_only_be_read_are_taken_and_left_as_they_are(measure: Callable) -> None:
    levels = np.arange(300) % 3
    points = np.eye(3, dtype=np.float32)[levels]
    before = points.copy()
    points.setflags(write=False)
    levels.setflags(write=False)
    options = {} if measure is neighbour_information else {"steps": 2}
    assert measure(points, levels, sigma=0.1, **options, **({"last": 1} if measure is mine else {})).nats.shape == (1,)
    np.testing.assert_array_equal(points, before)
