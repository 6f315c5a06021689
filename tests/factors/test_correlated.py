import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setsup
from setsup.errors import FactorError
from setsup.factors import Factor, FactorTable, Kind, correlated_weights


@given(st.integers(2, 7), st.integers(2, 7), st.floats(0.05, 20))
def test_the_formula_of_the_paper(first, second, width):
    """Along the line through the smallest and the largest values, in units of the first factor's range."""
    table = FactorTable(
        [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in (("a", first), ("b", second), ("c", 2))]
    )
    alpha = (first - 1) / (second - 1)
    expected = [
        math.exp(-((a - alpha * b) ** 2) / (2 * (width * (first - 1)) ** 2))
        for a, b, _ in itertools.product(range(first), range(second), range(2))
    ]
    assert np.allclose(correlated_weights(table, "a", "b", width), expected, rtol=1e-12)


def test_draws_have_the_joint_distribution():
    table = FactorTable([Factor("a", Kind.ORDINAL, tuple(range(4))), Factor("b", Kind.ORDINAL, tuple(range(5)))])
    weights = correlated_weights(table, "a", "b", 0.4)
    sampler = setsup.SetSampler(table, inactive=[[]], sets=1, size=1, weights=weights, choose="rows", seed=3)
    drawn = sampler.block(0, 40_000).indices.reshape(-1)
    share = np.bincount(drawn, minlength=20) / len(drawn)
    expected = weights / weights.sum()
    assert (abs(share - expected) < 5 * np.sqrt(expected / len(drawn)) + 1e-4).all()


def test_unknown_rows_are_never_drawn():
    table = FactorTable.from_values({"a": [1, 2, None, 3], "b": ["x", "y", "x", None]})
    assert (correlated_weights(table, "a", "b", 1.0) > 0).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("names", "width", "words"),
    [
        (("a", "a"), 0.2, "cannot be correlated with itself"),
        (("a", "size"), 0.2, "a discrete factor that is not nested"),
        (("a", "one"), 0.2, "has only one level"),
        (("a", "bb"), 0.2, "'bb'"),
        (("a", "b"), 0.0, "above 0"),
        (("a", "b"), -1.0, "width"),
        (("a", "b"), float("nan"), "width"),
    ],
)
def test_bad_arguments(names, width, words):
    table = FactorTable(
        [
            Factor("a", Kind.ORDINAL, (1, 2)),
            Factor("b", Kind.ORDINAL, (1, 2)),
            Factor("one", Kind.ORDINAL, (1,)),
            Factor("size", Kind.CONTINUOUS),
        ],
        {"a": np.array([0, 1]), "b": np.array([0, 1]), "one": np.array([0, 0]), "size": np.array([0.5, 1.0])},
    )
    with pytest.raises(FactorError, match=words):
        correlated_weights(table, *names, width)
