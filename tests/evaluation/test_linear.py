"""Linear probes on other rows than they are fitted to: scikit-learn called by hand, and what must not leak."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from setsup.errors import DataError, SetsupError
from setsup.evaluation import linear_classifier, linear_regression, logistic_probe
from setsup.evaluation.held_out import held_out

DICE = np.random.default_rng(0)
X = DICE.normal(size=(400, 4)) * [1.0, 20.0, 0.01, 3.0] + [0, 50, 0, -7]
NOISY = np.digitize(X[:, 0] + 0.6 * DICE.normal(size=400), [-0.5, 0.5])
FIT, TEST = slice(0, 250), slice(250, 400)


def standardized(fit: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (fit - fit.mean(axis=0)) / fit.std(axis=0), (test - fit.mean(axis=0)) / fit.std(axis=0)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("c", [0.01, 3.0])
def test_fits_are_those_of_scikit_learn(classes: int, c: float) -> None:
    labels = NOISY % classes
    fit, test = standardized(X[FIT], X[TEST])
    models = {
        "logistic": LogisticRegression(C=c, tol=1e-8, max_iter=10_000),
        "squared_hinge": LinearSVC(C=c, dual=False, tol=1e-6, max_iter=10_000),
    }
    for loss, model in models.items():
        found = linear_classifier(X[FIT], labels[FIT], X[TEST], labels[TEST], loss=loss, c=[c])
        assert found.accuracy == (model.fit(fit, labels[FIT]).predict(test) == labels[TEST]).mean()
        assert (found.c, found.held_out, found.rows, found.left_out) == (c, (), 150, 0)
        assert found.majority == (labels[TEST] == np.bincount(labels[FIT]).argmax()).mean()


def test_without_a_penalty_given_it_is_the_logistic_probe() -> None:
    away = held_out(400, 3, NOISY.astype(np.int64))
    found = linear_classifier(X[~away], NOISY[~away], X[away], NOISY[away])
    expected = logistic_probe(X, NOISY, seed=3)
    assert (found.accuracy, found.majority, found.rows) == (expected.accuracy, expected.majority, expected.rows)


def test_the_penalty_is_chosen_on_rows_of_the_fit_and_the_test_has_no_say() -> None:
    """Many dimensions of noise: a weak penalty is worse on other rows, whatever the test would prefer."""
    noise = DICE.normal(size=(400, 80))
    wide, candidates = np.concatenate([X[:, :1], noise], axis=1), (1e-3, 1e-2, 1.0, 1e3)
    found = linear_classifier(wide[FIT], NOISY[FIT], wide[TEST], NOISY[TEST], c=candidates, seed=5)
    away = held_out(250, 5, NOISY[FIT].astype(np.int64))
    inner = wide[FIT]
    shares = [
        linear_classifier(inner[~away], NOISY[FIT][~away], inner[away], NOISY[FIT][away], c=[one]).accuracy
        for one in candidates
    ]
    assert found.held_out == tuple(shares)
    assert found.c == candidates[int(np.argmax(shares))]
    whole = linear_classifier(wide[FIT], NOISY[FIT], wide[TEST], NOISY[TEST], c=[found.c])
    assert found.accuracy == whole.accuracy, "fitted to all rows with what was chosen"
    for other in (DICE.permutation(NOISY[TEST]), 2 - NOISY[TEST]):
        again = linear_classifier(wide[FIT], NOISY[FIT], wide[TEST], other, c=candidates, seed=5)
        assert (again.c, again.held_out) == (found.c, found.held_out)


def test_copies_are_fitted_but_never_those_of_rows_that_are_held_out() -> None:
    """Copies tell every label by themselves: where they were seen, the fit would be right of them."""
    copies = [np.where(np.arange(4) == 2, NOISY[FIT][:, None], X[FIT])]
    fit = linear_classifier(X[FIT], NOISY[FIT], X[TEST], NOISY[TEST], c=[1.0], copies=copies)
    both, labels = np.concatenate([X[FIT], *copies]), np.tile(NOISY[FIT], 2)
    assert fit.accuracy == linear_classifier(both, labels, X[TEST], NOISY[TEST], c=[1.0]).accuracy
    away = held_out(250, 0, NOISY[FIT].astype(np.int64))
    chosen = linear_classifier(X[FIT], NOISY[FIT], X[TEST], NOISY[TEST], c=[0.1, 1.0], copies=copies)
    both = np.concatenate([X[FIT][~away], copies[0][~away]])
    share = linear_classifier(both, np.tile(NOISY[FIT][~away], 2), X[FIT][away], NOISY[FIT][away], c=[0.1]).accuracy
    assert chosen.held_out[0] == share


def test_unknown_labels_are_left_out_and_new_classes_are_never_found() -> None:
    fit, test = NOISY[FIT].copy(), NOISY[TEST].copy()
    fit[:20], test[:30], test[30:60] = -1, -1, 7
    found = linear_classifier(X[FIT], fit, X[TEST], test, c=[1.0])
    rest = linear_classifier(X[FIT][20:], fit[20:], X[TEST][60:], test[60:], c=[1.0])
    assert (found.left_out, found.rows) == (50, 120)
    assert found.accuracy == pytest.approx(rest.accuracy * 90 / 120)


def test_regression_is_least_squares() -> None:
    y = X @ [2.0, -0.1, 30.0, 0.0] + DICE.normal(size=400)
    y[3] = np.nan
    design = np.column_stack([X, np.ones(400)])
    kept = np.isfinite(y[FIT])
    weights = np.linalg.lstsq(design[FIT][kept], y[FIT][kept], rcond=None)[0]
    expected = 1 - ((y[TEST] - design[TEST] @ weights) ** 2).mean() / y[TEST].var()
    found = linear_regression(X[FIT], y[FIT], X[TEST], y[TEST])
    assert found.r2 == pytest.approx(expected)
    assert found.left_out == 1


def test_bad_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(DataError, match="at least two known classes among the labels to fit, not 1"):
        linear_classifier(X, np.zeros(400, dtype=int), X, NOISY)
    with pytest.raises(DataError, match="must have the same number of dimensions, not 4 and 3"):
        linear_classifier(X, NOISY, X[:, :3], NOISY)
    with pytest.raises(DataError, match="all test labels are unknown"):
        linear_classifier(X, NOISY, X, np.full(400, -1))
    with pytest.raises(SetsupError, match=r"loss of linear_classifier must be one of .*, not 'hinge'"):
        linear_classifier(X, NOISY, X, NOISY, loss="hinge")
    with pytest.raises(SetsupError, match="c must be a finite number above 0, not 0"):
        linear_classifier(X, NOISY, X, NOISY, c=[1, 0])
    with pytest.raises(DataError, match=r"copies of embeddings must have the same shape as embeddings, \(400, 4\)"):
        linear_classifier(X, NOISY, X, NOISY, copies=[X[:5]])
    with pytest.raises(DataError, match="R² requires at least two different known test values"):
        linear_regression(X, NOISY, X, np.ones(400))
