"""Paired tests against scipy's for pairs, and the formula."""

from typing import Any

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError
from setsup.evaluation import paired_tests

stats = pytest.importorskip("scipy.stats")


def test_they_equal_scipy_and_the_formula() -> None:
    dice = np.random.default_rng(0)
    reference = dice.normal(0.6, 0.05, 10)
    others = {name: dice.normal(mean, 0.05, 10) for name, mean in (("EX", 0.58), ("OT", 0.4), ("AE", 0.55))}
    found = paired_tests(reference, others)
    assert list(found) == list(others)
    for name, accuracies in others.items():
        expected = stats.ttest_rel(accuracies, reference)
        apart = accuracies - reference
        assert found[name].t == pytest.approx(apart.mean() / (apart.std(ddof=1) / np.sqrt(10)))
        assert (found[name].t, found[name].p) == pytest.approx((expected.statistic, expected.pvalue))
        assert found[name].corrected == pytest.approx(min(1, 3 * expected.pvalue))
        assert found[name].significant == (found[name].corrected < 0.05)
        assert found[name].difference == pytest.approx(apart.mean())
    assert found["OT"].significant
    assert not paired_tests(reference, others, level=1e-12)["OT"].significant


def test_differences_without_variance() -> None:
    found = paired_tests([0.5, 0.75], {"same": [0.5, 0.75], "less": [0.25, 0.5]})
    assert (found["same"].t, found["same"].p, found["same"].significant) == (0, 1, False)
    assert (found["less"].t, found["less"].p, found["less"].significant) == (-np.inf, 0, True)


@pytest.mark.parametrize(
    ("reference", "others", "words"),
    [
        ([0.1, 0.2], {}, "at least one method is required"),
        ([0.1], {"a": [0.1]}, "the reference must be a 1-D numeric array with one value for each of at least two"),
        (
            [0.1, 0.2],
            {"a": [0.1, 0.2, 0.3]},
            "a must have the same number of re-splits as the reference, 2, not 3",
        ),
        ([0.1, 0.2], {"a": [0.1, np.nan]}, "a: the value of re-split 1 is not finite"),
    ],
)
def test_bad_input_is_refused(reference: Any, others: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        paired_tests(reference, others)
    with pytest.raises(SetsupError, match="level must be between"):
        paired_tests([0.1, 0.2], {"a": [0.1, 0.2]}, level=1.0)
