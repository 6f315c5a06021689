"""Probes: closed forms, a general optimiser's minimum, keyed parts, bad input."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

pytest.importorskip("torch")
from setsup.errors import DataError, SetsupError
from setsup.evaluation.held_out import assign_folds, held_out
from setsup.evaluation.probes import fit_logistic, fit_ridge, logistic_probe, ridge_probe
from setsup.random import fold, stream_key, uniform


def numbers(*shape: int, seed: int = 0):
    return uniform(fold(stream_key(seed, "test"), np.arange(int(np.prod(shape))))).reshape(shape) - 0.5


X = numbers(300, 4) * [1.0, 20.0, 0.01, 3.0] + [0, 50, 0, -7]


def test_a_linear_function_is_found_whatever_the_scales() -> None:
    found = ridge_probe(X, X @ [2.0, -0.1, 300.0, 0.0] + 5)
    assert found.r2 == pytest.approx(1)
    assert (found.folds.shape, found.left_out) == ((5,), 0)


def test_r2_of_each_fold_equals_least_squares_by_normal_equations() -> None:
    y = X[:, 0] + numbers(300, seed=5)
    found, fold_of = ridge_probe(X, y, seed=3), assign_folds(300, 5, 3)
    design = np.column_stack([X, np.ones(300)])
    for which in range(5):
        fit, test = fold_of != which, fold_of == which
        weights = np.linalg.solve(design[fit].T @ design[fit], design[fit].T @ y[fit])
        missed = ((y[test] - design[test] @ weights) ** 2).mean()
        assert found.folds[which] == pytest.approx(1 - missed / y[test].var())
    assert found.r2 == pytest.approx(found.folds.mean())
    assert 0.3 < found.r2 < 0.7  # half of the variance is noise


def test_noise_is_not_predicted() -> None:
    assert -0.2 < ridge_probe(X, numbers(300, seed=9)).r2 < 0.05


def test_ridge_solves_its_normal_equations() -> None:
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] + numbers(300, seed=5)
    weights = np.linalg.solve(z.T @ z / 300 + 0.3 * np.eye(4), z.T @ (y - y.mean()) / 300)
    np.testing.assert_allclose(fit_ridge(X, y, 0.3).predict(X), z @ weights + y.mean())


def test_more_dimensions_than_rows_and_constant_ones() -> None:
    wide = np.concatenate([numbers(30, 60), np.ones((30, 2))], axis=1)
    assert np.isfinite(ridge_probe(wide, wide[:, 0]).folds).all()
    twice = np.concatenate([X, X, np.full((300, 1), 0.1)], axis=1)
    assert ridge_probe(twice, X[:, 1]).r2 == pytest.approx(1)


def test_values_that_are_unknown_take_no_part() -> None:
    y = X[:, 0] + numbers(300, seed=5)
    gaps = np.where(np.arange(300) % 10 == 0, np.nan, y)
    some = np.arange(300) % 10 > 0
    found = ridge_probe(X, gaps)
    assert found.left_out == 30
    np.testing.assert_allclose(found.folds, ridge_probe(X[some], y[some]).folds)


@pytest.mark.parametrize("count", [2, 3])
def test_logistic_finds_the_minimum_and_its_gradient_is_zero(count: int) -> None:
    x = numbers(90, 3)
    classes = (np.argsort(x + 0.6 * numbers(90, 3, seed=4), axis=1)[:, 0]).astype(np.int64) % count
    model = fit_logistic(x, classes, 0.01)
    gap = model.predict_proba(x) - np.eye(count)[classes]
    (scaler, linear) = (step for _, step in model.steps)
    weights = linear.coef_ if count > 2 else np.concatenate([-linear.coef_, linear.coef_]) / 2
    gradient = scaler.transform(x).T @ gap / 90 + 0.01 * weights.T
    assert np.abs(gradient).max() < 1e-7  # and the loss is strictly convex: this is its one minimum
    assert np.abs(gap.mean(axis=0)).max() < 1e-7, "the bias has no penalty"


@pytest.mark.parametrize("count", [2, 4])
def test_logistic_agrees_with_a_general_optimiser(count: int) -> None:
    """By the former probe: a descent of the same loss, whose bias had a penalty too, which is small."""
    labels = np.digitize(X[:, 0] + 0.5 * numbers(300, seed=5), np.linspace(-0.5, 0.5, count + 1)[1:-1])
    test = held_out(300, 0, labels)
    z = (X - X[~test].mean(axis=0)) / X[~test].std(axis=0)
    z = np.column_stack([z, np.ones(300)])

    def loss(flat: np.ndarray) -> float:
        weights = flat.reshape(-1, count)
        chance = log_softmax(z[~test] @ weights, axis=1)
        return -chance[np.arange((~test).sum()), labels[~test]].mean() + 0.5e-4 * float(flat @ flat)

    best = minimize(loss, np.zeros(5 * count), method="BFGS", options={"gtol": 1e-7}).x.reshape(-1, count)
    chance = log_softmax(z[test] @ best, axis=1)
    found = logistic_probe(X, labels)
    assert found.accuracy == (chance.argmax(axis=1) == labels[test]).mean()
    assert found.nats == pytest.approx(-chance[np.arange(test.sum()), labels[test]].mean(), abs=1e-4)


def test_two_classes_of_one_bit_in_closed_form() -> None:
    # a channel of 10 % errors: its logistic regression is the channel itself, so nats are its cross-entropy
    sent = np.repeat([0, 1], 500)
    got = np.where(np.arange(1000) % 10 == 3, 1 - sent, sent)
    found = logistic_probe(got[:, None], sent, penalty=1e-9)
    test = held_out(1000, 0, sent)
    fit = ~test
    share = np.array([[np.mean(sent[fit & (got == g)] == s) for s in (0, 1)] for g in (0, 1)])
    assert found.accuracy == np.mean(got[test] == sent[test])
    assert found.nats == pytest.approx(-np.log(share[got[test], sent[test]]).mean(), abs=1e-5)
    assert (found.majority, found.entropy, found.rows) == (0.5, pytest.approx(np.log(2)), 100)


def test_separable_classes_and_noise() -> None:
    labels = np.arange(300) % 3
    far = numbers(300, 2) + 4 * np.stack([np.cos(2 * labels), np.sin(2 * labels)], axis=1)
    found = logistic_probe(far, labels + 5)
    assert found.accuracy == 1
    assert found.nats < 0.05
    noise = logistic_probe(numbers(300, 2), labels)
    assert noise.accuracy < 0.6
    assert noise.nats == pytest.approx(np.log(3), abs=0.1)


def test_scale_and_offset_of_embeddings_do_not_matter() -> None:
    labels = (X[:, 0] + 0.3 * numbers(300, seed=5) > 0).astype(int)
    first, second = logistic_probe(X, labels), logistic_probe(X * [-5.0, 0.01, 1e4, 1.0] + 3, labels)
    assert first.nats == pytest.approx(second.nats, abs=1e-6)
    assert first.accuracy == second.accuracy


def test_unknown_labels_are_left_out_with_a_count() -> None:
    labels = (X[:, 0] > 0).astype(int)
    labels[::10] = -1
    found = logistic_probe(X, labels)
    assert (found.left_out, found.rows) == (30, 27)
    some = labels >= 0
    assert found.nats == pytest.approx(logistic_probe(X[some], labels[some]).nats)


def test_parts_are_keyed_and_of_the_sizes_promised() -> None:
    labels = np.arange(200) % 4
    test = held_out(200, 1, labels)
    assert np.bincount(labels[test]).tolist() == [5, 5, 5, 5]
    assert (test == held_out(200, 1, labels)).all()
    assert (test != held_out(200, 2, labels)).any()
    assert sorted(np.bincount(assign_folds(23, 5, 0)).tolist()) == [4, 4, 5, 5, 5]
    rare = np.array([0] * 40 + [1, 1, 2])
    assert not held_out(43, 0, rare)[42]  # a class of one row stays in the fit


def test_bad_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(DataError, match="at least two known classes, not 1 among 300 labels"):
        logistic_probe(X, np.zeros(300, dtype=int))
    with pytest.raises(DataError, match="4 rows are too few"):
        logistic_probe(X[:4], [0, 0, 1, 1])
    with pytest.raises(SetsupError, match="penalty must be a number above 0, not 0"):
        logistic_probe(X, np.arange(300) % 2, penalty=0)
    with pytest.raises(DataError, match="labels must be an array"):
        logistic_probe(X, np.arange(299) % 2)
    with pytest.raises(DataError, match="values must not be infinite"):
        ridge_probe(X, np.full(300, np.inf))
    with pytest.raises(DataError, match="held out in fold 0 are equal"):
        ridge_probe(X, np.zeros(300))
    with pytest.raises(SetsupError, match="folds must be an integer of at least 2, not 1"):
        ridge_probe(X, X[:, 0], folds=1)
    with pytest.raises(DataError, match="3 rows are too few"):
        ridge_probe(X[:3], X[:3, 0])
    with pytest.raises(SetsupError, match="penalty must be a number of at least 0, not -1"):
        ridge_probe(X, X[:, 0], penalty=-1)
