"""DCI: closed forms, learners against a general optimiser, Pearson's statistic and scikit-learn, invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import chi2_contingency, entropy

pytest.importorskip("torch")
from setsup.errors import DataError, SetsupError
from setsup.evaluation.held_out import held_out
from setsup.evaluation.scores import dci
from setsup.evaluation.scores.additive import fit_additive
from setsup.evaluation.scores.information import contingency
from setsup.random import fold, stream_key, uniform

GRID = np.tile(np.indices((4, 5)).reshape(2, -1), 60).T


def noise(rows: int, columns: int, seed: int = 1):
    return 2 * uniform(fold(stream_key(seed, "noise"), np.arange(rows * columns))).reshape(rows, columns) - 1


def scores(codes, factors=GRID):
    found = dci(codes, factors, learner="additive")
    return [found.disentanglement, found.completeness, found.informativeness]


def test_perfect_codes() -> None:
    assert scores(GRID) == [1, 1, 1]
    assert scores(GRID[:, ::-1] * [-1e-3, 1e3]) == [1, 1, 1]


def test_codes_that_are_no_monotone_function_of_their_factor() -> None:
    assert scores(np.array([[2.0, 0.0, 3.0, 1.0, 9.0], [4.0, 1.0, 0.0, 2.0, 9.0]])[[0, 1], GRID]) == [1, 1, 1]


def test_noise_gets_exactly_nothing() -> None:
    disentanglement, completeness, informativeness = scores(noise(len(GRID), 3))
    assert (disentanglement, completeness) == (0, 0)
    assert informativeness < 0.35  # chance is 1/4 and 1/5
    found = dci(np.concatenate([GRID, noise(len(GRID), 3)], axis=1), GRID, learner="additive")
    assert not found.importance[2:].any()
    assert (found.disentanglement, found.completeness) == (pytest.approx(1), 1)


@pytest.mark.long("large or genuine files")
def test_rotated_codes_matter_for_both_alike() -> None:
    factors = np.tile(np.indices((4, 4)).reshape(2, -1), 100).T
    turned = np.stack([factors.sum(axis=1), factors[:, 0] - factors[:, 1]], axis=1) / np.sqrt(2)
    disentanglement, completeness, _ = scores(turned, factors)
    assert (disentanglement, completeness) == (pytest.approx(0, abs=0.01), pytest.approx(0, abs=0.01))


def test_one_code_for_two_factors_is_complete_and_not_disentangled() -> None:
    factors = np.tile(np.indices((4, 4)).reshape(2, -1), 100).T
    found = dci(
        np.concatenate([4.0 * factors[:, :1] + factors[:, 1:], noise(1600, 1)], axis=1), factors, learner="additive"
    )
    assert found.disentanglement == pytest.approx(0, abs=1e-3)
    assert (found.completeness, found.informativeness) == (1, 1)


def test_of_a_duplicated_code_the_first_gets_all() -> None:
    codes = np.concatenate([GRID, GRID], axis=1)
    assert scores(codes) == pytest.approx([1, 1, 1])
    assert not dci(codes, GRID, learner="additive").importance[2:].any()


def test_one_factor_two_codes() -> None:
    # two codes, each half of the factor's two bits: alike in importance, so completeness 0
    bits = np.tile(np.indices((2, 2)).reshape(2, -1), 100).T
    found = dci(bits, 2 * bits[:, :1] + bits[:, 1:], learner="additive")
    assert (found.disentanglement, found.informativeness) == (1, 1)
    assert found.completeness == pytest.approx(0, abs=1e-4)


def test_scores_of_an_importance_by_hand() -> None:
    found = dci(GRID + noise(len(GRID), 2) * 2, GRID, learner="additive")
    share = found.importance / found.importance.sum()
    rows = share / share.sum(axis=1, keepdims=True)
    expected = [1 + sum(p * np.log2(p) for p in row if p) for row in rows]
    assert found.disentanglement == pytest.approx(np.average(expected, weights=share.sum(axis=1)))
    assert found.informativeness == pytest.approx(found.accuracy.mean())


def test_a_lone_code_has_cramers_v_less_the_threshold() -> None:
    bins = np.floor((noise(500, 1)[:, 0] + 1) * 3).astype(np.int64)
    levels = (bins // 2 + (noise(500, 1, 5)[:, 0] > 0.6)) % 3
    fit = fit_additive(bins[:, None], levels, 6, 3)
    statistic = chi2_contingency(contingency(bins, levels), correction=False)
    threshold = np.sqrt(5 * 2) / np.sqrt(500 * 2)
    assert fit.importance.item() == pytest.approx(np.sqrt(statistic.statistic / (500 * 2)) - threshold)


@pytest.mark.long("large or genuine files")
def test_the_descent_finds_the_minimum_of_a_general_optimiser() -> None:
    rows, bins, kinds = 400, 4, 3
    codes = np.floor((noise(rows, 3) + 1) * 2).astype(np.int64).clip(0, 3)
    codes[:, 1] = np.where(noise(rows, 1, 9)[:, 0] > 0, codes[:, 0], codes[:, 1])  # correlated
    levels = (codes[:, 0] + codes[:, 2] + (noise(rows, 1, 3)[:, 0] > 0.5)) % kinds
    share = np.bincount(levels) / rows
    target = ((levels[:, None] == np.arange(kinds)) - share) / np.sqrt(share * (kinds - 1))
    limit = (np.sqrt((bins - 1) * (kinds - 1)) + np.sqrt(2 * np.log(3))) / np.sqrt(rows * (kinds - 1))

    def loss(tables):
        added = [tables[j][codes[:, j]] for j in range(3)]
        # √(… + 10⁻¹²) instead of the corner at zero
        lengths = sum(np.sqrt((part**2).sum(axis=1).mean() + 1e-12) for part in added)
        return 0.5 * ((target - sum(added)) ** 2).sum(axis=1).mean() + limit * lengths

    fit = fit_additive(codes, levels, bins, kinds)
    best = minimize(lambda flat: loss(flat.reshape(3, bins, kinds)), fit.tables.ravel() * 0.5 + 0.01, method="BFGS")
    assert loss(fit.tables) <= best.fun + 1e-5
    assert (fit.importance > 0).any()


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(3)), st.tuples(*[st.sampled_from([-4.0, -0.5, 1.0, 8.0])] * 3))
def test_order_sign_and_scale_of_codes_do_not_matter(order, scale) -> None:
    middle = np.floor((noise(len(GRID), 3) + 1) * 5) * 2 + 0.5 + GRID[:, [0, 1, 0]] * 2
    middle[:, 2] += 2 * GRID[:, 1]
    middle[:2] = [[0.0] * 3, [60.0] * 3]
    expected = scores(middle)
    assert 0 < expected[0] < 1
    np.testing.assert_allclose(scores(middle[:, list(order)] * scale), expected, atol=1e-5)


def test_unknown_rows_are_left_out_and_counted() -> None:
    factors = GRID.copy()
    factors[::10, 1] = -1
    codes = GRID.astype(float)
    codes[::10, 1] = 0.0
    found = dci(codes, factors, learner="additive")
    assert found.left_out.tolist() == [0, 120]
    assert (found.completeness, found.informativeness) == (1, 1)


def test_bad_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(DataError, match="4 rows are too few"):
        dci(GRID[[0, 6, 12, 18]], GRID[[0, 6, 12, 18]])
    with pytest.raises(DataError, match="not finite"):
        dci(GRID * np.nan, GRID)


@pytest.mark.long("large or genuine files")
def test_boosting_is_that_of_scikit_learn_with_its_defaults() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is not installed")
    codes = GRID[:400] + noise(400, 2) * 2
    factors = GRID[:400] % 2
    found = dci(codes, factors, seed=3)
    importance, accuracy = [], []
    for column in factors.T:
        test = held_out(400, 3, column)
        trees = ensemble.GradientBoostingClassifier(random_state=0).fit(codes[~test], column[~test])
        importance.append(trees.feature_importances_)
        accuracy.append(trees.score(codes[test], column[test]))
    expected = np.array(importance).T
    np.testing.assert_array_equal(found.importance, expected)
    assert found.accuracy.tolist() == accuracy
    by_code, by_factor = (1 - entropy(of, base=2, axis=1) for of in (expected, expected.T))
    assert found.disentanglement == pytest.approx(np.average(by_code, weights=expected.sum(axis=1)))
    assert found.completeness == pytest.approx(by_factor.mean())
    assert found.learner == "boosting"


def test_what_only_two_codes_together_tell() -> None:
    """An exclusive or of two codes, and a third code as it is."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    codes = noise(1_000, 3)
    signs = (codes > 0).astype(np.int64)
    factors = np.stack([signs[:, 0] ^ signs[:, 1], signs[:, 2]], axis=1)
    standard, own = dci(codes, factors), dci(codes, factors, learner="additive")
    assert (own.disentanglement, own.completeness) == (1, pytest.approx(0.5))
    assert own.informativeness == pytest.approx(0.75, abs=0.06)
    assert standard.informativeness > 0.97
    # both codes matter for it, and of three codes two alike leave 1 − log 2 / log 3
    assert (standard.importance[:2, 0] > 0.25).all()
    assert standard.completeness == pytest.approx((2 - np.log(2) / np.log(3)) / 2, abs=0.06)


def test_a_learner_that_there_is_not() -> None:
    with pytest.raises(SetsupError, match=r"^the learner must be one of boosting, additive, not 'forest'"):
        dci(GRID, GRID, learner="forest")  # type: ignore[arg-type]
