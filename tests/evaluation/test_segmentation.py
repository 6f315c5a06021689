"""Scores of segmentations, against scikit-learn and against loops."""

import math

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError
from setsup.evaluation.segmentation import confusion_matrix, segmentation_scores


@pytest.fixture
def maps() -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(0)
    labels = dice.integers(0, 6, (4, 20, 30)).astype(np.uint8)
    told = np.where(dice.random(labels.shape) < 0.6, labels, dice.integers(0, 6, labels.shape))
    return labels, told


@pytest.mark.parametrize("ignored", [None, 0, 3, 255])
def test_confusion_is_that_of_scikit_learn(maps: tuple[np.ndarray, np.ndarray], ignored: int | None) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    labels, told = maps
    if ignored == 255:
        labels = np.where(labels == 2, 255, labels)
    kept = labels != -1 if ignored is None else labels != ignored
    wanted = metrics.confusion_matrix(labels[kept], told[kept], labels=range(6))
    np.testing.assert_array_equal(confusion_matrix(labels, told, 6, ignored=ignored), wanted)
    found = segmentation_scores(wanted)
    present = np.flatnonzero(wanted.sum(0) + wanted.sum(1))
    scores = metrics.jaccard_score(labels[kept], told[kept], labels=present, average=None)
    np.testing.assert_allclose(found.iou[present], scores)
    assert math.isclose(found.mean_iou, scores.mean())
    assert math.isclose(found.pixel_accuracy, metrics.accuracy_score(labels[kept], told[kept]))
    assert found.pixels == kept.sum()


def test_scores_are_those_of_a_loop(maps: tuple[np.ndarray, np.ndarray]) -> None:
    labels, told = maps
    total = sum(confusion_matrix(one, other, 8, ignored=5) for one, other in zip(labels, told, strict=True))
    shares = []
    for label in range(8):
        both = either = 0
        for one, other in zip(labels.ravel().tolist(), told.ravel().tolist(), strict=True):
            if one != 5:
                both += one == other == label
                either += label in (one, other)
        shares.append(both / either if either else math.nan)
    found = segmentation_scores(total)
    np.testing.assert_allclose(found.iou, shares)
    assert math.isnan(shares[7])
    assert math.isclose(found.mean_iou, np.mean([one for one in shares if not math.isnan(one)]))


def test_a_perfect_prediction_has_ones_and_one_class_alone_its_share() -> None:
    labels = np.arange(12).reshape(3, 4) % 4
    assert segmentation_scores(confusion_matrix(labels, labels, 4)).mean_iou == 1
    flat = segmentation_scores(confusion_matrix(labels, np.zeros_like(labels), 4))
    assert (flat.mean_iou, flat.pixel_accuracy) == (0.25 / 4, 0.25)


def test_what_is_no_label_is_refused() -> None:
    with pytest.raises(DataError, match=r"labels contain the class 7, but classes must .* below 3.*ignored=7"):
        confusion_matrix([0, 7], [0, 1], 3)
    with pytest.raises(DataError, match="predicted contain the class -1"):
        confusion_matrix([0, 2], [0, -1], 3)
    with pytest.raises(DataError, match="integer arrays of the same shape"):
        confusion_matrix([0, 2], [0], 3)
    with pytest.raises(DataError, match="integer arrays of the same shape"):
        confusion_matrix([0.0], [0.0], 3)
    with pytest.raises(SetsupError):
        confusion_matrix([0], [0], 0)
    with pytest.raises(DataError, match="no pixel"):
        segmentation_scores(np.zeros((3, 3), int))
    with pytest.raises(DataError, match="a confusion matrix"):
        segmentation_scores([[1, 2]])
