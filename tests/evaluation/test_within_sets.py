"""Variance within sets: by its formula, by scikit-learn's regression on levels, and what leaves it alone."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from setsup.errors import DataError
from setsup.evaluation import within_set_variance

DICE = np.random.default_rng(5)


def test_it_is_one_minus_the_adjusted_r2_of_a_regression_on_levels() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    for levels in (2, 7):
        codes = DICE.integers(0, levels, 60)
        points = DICE.normal(size=(60, 4)) + DICE.normal(size=(levels, 4))[codes]
        hot = np.eye(levels)[codes]
        missed = points - linear.LinearRegression().fit(hot, points).predict(hot)
        share = (missed**2).sum() / ((points - points.mean(0)) ** 2).sum()
        expected = share * (60 - 1) / (60 - levels)  # adjusted for degrees of freedom
        assert within_set_variance(points, codes) == pytest.approx(expected, rel=1e-9)


def test_components_of_variance_are_found_again() -> None:
    """For normal parts the ratio of mean squares tends to within / (within + between)."""
    codes = np.repeat(np.arange(400), 25)
    for between, within in ((1.0, 3.0), (3.0, 1.0), (0.0, 1.0)):
        points = np.sqrt(between) * DICE.normal(size=(400, 3))[codes] + np.sqrt(within) * DICE.normal(size=(10_000, 3))
        expected = within / (within + between)
        assert within_set_variance(points, codes) == pytest.approx(expected, abs=0.03)


def test_labels_that_mean_nothing_give_one_however_many() -> None:
    points = DICE.normal(size=(600, 5))
    for levels in (2, 20, 200):
        found = [within_set_variance(points, DICE.integers(0, levels, 600)) for _ in range(40)]
        assert abs(np.mean(found) - 1) < 4 * np.std(found) / np.sqrt(40) + 1e-3


def test_shift_rotation_scale_and_names_of_levels_do_not_matter() -> None:
    codes = DICE.integers(0, 4, 80)
    points = DICE.normal(size=(80, 3)) + codes[:, None]
    turned = 7 * points @ ortho_group.rvs(3, random_state=1) + 1e3
    first = within_set_variance(points, codes)
    assert within_set_variance(turned, codes) == pytest.approx(first, rel=1e-9)
    assert within_set_variance(points, np.array([9, 3, 77, 5])[codes]) == first


def test_unknown_rows_are_left_out() -> None:
    codes = DICE.integers(0, 3, 50)
    points = DICE.normal(size=(50, 2))
    more = np.concatenate([points, np.full((4, 2), 1e6)])
    assert within_set_variance(more, np.append(codes, [-1] * 4)) == within_set_variance(points, codes)


def test_equal_embeddings_have_no_variance() -> None:
    assert np.isnan(within_set_variance(np.full((6, 2), 0.1), [0, 0, 0, 1, 1, 1]))


@pytest.mark.parametrize("codes", [[0, 0, 0, 0], [-1, -1, -1, 2], [0, 1, 2, 3]])
def test_two_labels_are_needed_and_one_of_them_twice(codes: list[int]) -> None:
    with pytest.raises(DataError, match="at least two labels, at least one of which occurs twice"):
        within_set_variance(np.zeros((4, 2)), codes)
