"""Accuracy against the number of labelled images, against scikit-learn fitted directly."""

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError
from setsup.evaluation import accuracy_over_labels, draw_resamples

svm = pytest.importorskip("sklearn.svm")
preprocessing = pytest.importorskip("sklearn.preprocessing")

LABELS, ORBITS = np.arange(240) // 80, np.arange(240) // 8
POINTS = np.random.default_rng(0).standard_normal((240, 5)) + LABELS[:, None] * [1.0, 0, 0, -1.0, 0]


def test_it_equals_scikit_learn_on_the_same_images() -> None:
    drawn = draw_resamples(LABELS, ORBITS, 3, most=8, test=20, seed=4)
    found = accuracy_over_labels(POINTS, LABELS, drawn, counts=(1, 3, 8), c=0.5)
    for row, one in enumerate(drawn):
        for column, count in enumerate((1, 3, 8)):
            fit, test = one.train[:, :count].ravel(), one.test.ravel()
            scaler = preprocessing.StandardScaler().fit(POINTS[fit])
            model = svm.LinearSVC(C=0.5, dual=False, tol=1e-6, max_iter=10_000)
            model.fit(scaler.transform(POINTS[fit]), LABELS[fit])
            assert found[row, column] == model.score(scaler.transform(POINTS[test]), LABELS[test])


def test_more_labels_help() -> None:
    drawn = draw_resamples(LABELS, ORBITS, 8, most=20, test=30)
    means = accuracy_over_labels(POINTS, LABELS, drawn, counts=(1, 20)).mean(axis=0)
    assert means[1] > means[0] + 0.1


def test_bad_input_is_refused_in_a_sentence() -> None:
    drawn = draw_resamples(LABELS, ORBITS, 1, most=2, test=5)
    with pytest.raises(SetsupError, match="a count must be an integer from 1 to 2, not 3"):
        accuracy_over_labels(POINTS, LABELS, drawn, counts=(1, 3))
    with pytest.raises(SetsupError, match="at least one resample and one count are required, not 0 and 1"):
        accuracy_over_labels(POINTS, LABELS, [], counts=(1,))
    with pytest.raises(DataError, match=r"resample 0 contains image \d+, but images are numbered from 0 to 2"):
        accuracy_over_labels(POINTS[:3], LABELS[:3], drawn, counts=(1,))
    with pytest.raises(DataError, match="row 0 of 240 in embeddings contains a value that is not finite"):
        accuracy_over_labels(np.where(np.arange(240)[:, None] == 0, np.nan, POINTS), LABELS, drawn, counts=(1,))


@pytest.mark.filterwarnings("error")
def test_one_image_per_class_is_fitted_without_a_warning() -> None:
    """scikit-learn takes as many classes as images for numbers to be predicted."""
    labels, orbits = np.arange(400) // 20, np.arange(400) // 5
    points = np.eye(20)[labels] + np.random.default_rng(0).normal(0, 0.1, (400, 20))
    drawn = draw_resamples(labels, orbits, 1, most=1, test=10)
    assert accuracy_over_labels(points, labels, drawn, counts=(1,)).item() > 0.9
