"""Shares of correct keypoints by loops over pairs and points."""

import math

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.evaluation import keypoint_accuracy, keypoint_extent


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_of_averaging_by_loops(seed: int) -> None:
    dice = np.random.default_rng(seed)
    pairs = [int(dice.integers(0, 7)) for _ in range(int(dice.integers(1, 6)))]
    truth = [np.round(dice.uniform(0, 100, (count, 2))) for count in pairs]
    predicted = [points + np.round(dice.normal(0, 8, points.shape)) for points in truth]
    for points in (*truth, *predicted):
        points[dice.random(len(points)) < 0.1, int(dice.integers(2))] = np.nan
    scales = np.round(dice.uniform(20, 200, len(pairs)))
    found = keypoint_accuracy(predicted, truth, scales, alphas=(0.05, 0.1, 0.15))
    for number, alpha in enumerate((0.05, 0.1, 0.15)):
        shares, right, counts = [], 0, 0
        for one, other, scale in zip(predicted, truth, scales, strict=True):
            known = [(a, b) for a, b in zip(one, other, strict=True) if not np.isnan([*a, *b]).any()]
            hits = [math.dist(a, b) <= alpha * scale for a, b in known]
            right, counts = right + sum(hits), counts + len(hits)
            shares += [sum(hits) / len(hits)] if hits else []
        assert (found.pairs, found.points) == (len(shares), counts)
        if shares:
            assert found.per_image[number] == pytest.approx(np.mean(shares))
            assert found.per_point[number] == pytest.approx(right / counts)
        else:
            assert np.isnan([found.per_image[number], found.per_point[number]]).all()


def test_a_tie_counts() -> None:
    found = keypoint_accuracy([[[3.0, 4.0]], [[3.0, 4.0]]], [[[0.0, 0.0]], [[0.0, 0.0]]], [50, 49.9], alphas=[0.1])
    assert found.per_image.tolist() == [0.5]


def test_the_extent_is_the_longer_side() -> None:
    assert keypoint_extent([[5, 1], [2, 9], [np.nan, 100]]) == 8
    with pytest.raises(DataError, match="at least one finite keypoint"):
        keypoint_extent([[np.nan, 1]])


@pytest.mark.parametrize(
    ("predicted", "truth", "scales", "alphas", "message"),
    [
        ([[[0, 0]]], [], [1], [0.1], "one entry for each pair"),
        ([[[0, 0]]], [[[0, 0], [1, 1]]], [1], [0.1], r"pair 0: .*same shape \(k, 2\)"),
        ([[[0, 0]]], [[[0, 0]]], [0], [0.1], "positive"),
        ([[[0, 0]]], [[[0, 0]]], [1], [-0.1], "positive"),
    ],
)
def test_mistakes(predicted: list, truth: list, scales: list, alphas: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        keypoint_accuracy(predicted, truth, scales, alphas=alphas)
