"""Matches and homographies of planes: by loops, by exact areas, and by OpenCV's way of moving points."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.evaluation import corner_error, error_auc, estimate_homography, matching_accuracy


@pytest.mark.parametrize("seed", range(20))
def test_matching_accuracy_by_loops(seed: int) -> None:
    dice = np.random.default_rng(seed)
    errors = [np.round(dice.exponential(4, int(dice.integers(0, 9)))) for _ in range(int(dice.integers(1, 5)))]
    for number, share in enumerate(matching_accuracy(errors)):
        shares = [sum(error <= number + 1 for error in pair) / len(pair) if len(pair) else 0 for pair in errors]
        assert share == pytest.approx(np.mean(shares))


def curve(errors: list[float], at: float) -> float:
    """Share of errors at a point of the broken line through (0, 0) and the sorted errors."""
    known = [error for error in sorted(errors) if error < np.inf]
    return float(np.interp(at, [0.0, *known], np.arange(len(known) + 1) / len(errors)))


@pytest.mark.parametrize("seed", range(20))
def test_areas_are_those_of_a_fine_sum(seed: int) -> None:
    dice = np.random.default_rng(seed)
    errors = dice.exponential(3, int(dice.integers(1, 8)))
    errors[dice.random(len(errors)) < 0.2] = np.inf
    for limit in (1.0, 3.0, 5.0):
        below = errors[errors < limit].tolist()
        steps = (np.arange(4000) + 0.5) / 4000 * limit
        # level from the last error below the threshold on, whatever comes behind it
        heights = [curve([*below, *[np.inf] * (len(errors) - len(below))], at) for at in steps]
        assert error_auc(errors, [limit])[0] == pytest.approx(np.mean(heights), abs=1e-3)


def test_failures_count_as_nothing_found() -> None:
    assert error_auc([np.inf, np.inf]).tolist() == [0, 0, 0]
    assert error_auc([0.0]).tolist() == [1, 1, 1]


def test_corners_are_moved_as_by_opencv() -> None:
    cv2 = pytest.importorskip("cv2")
    dice = np.random.default_rng(0)
    for _ in range(100):
        truth, estimated = (np.eye(3) + dice.normal(0, [[0.1], [0.1], [1e-4]], (3, 3)) for _ in range(2))
        corners = np.array([[[0, 0], [639, 0], [0, 479], [639, 479]]], np.float64)
        apart = cv2.perspectiveTransform(corners, truth) - cv2.perspectiveTransform(corners, estimated)
        wanted = np.linalg.norm(apart, axis=-1).mean()
        assert corner_error(estimated, truth, (480, 640)) == pytest.approx(wanted)
        assert corner_error(3 * estimated, truth, (480, 640)) == pytest.approx(wanted)


def test_a_failed_estimate_is_infinitely_far() -> None:
    assert corner_error(None, np.eye(3), (4, 4)) == np.inf
    assert corner_error(np.full((3, 3), np.nan), np.eye(3), (4, 4)) == np.inf
    assert corner_error([[1, 0, 0], [0, 1, 0], [0, 0, 0]], np.eye(3), (4, 4)) == np.inf


def test_mistakes() -> None:
    with pytest.raises(DataError, match="true homography must be finite"):
        corner_error(np.eye(3), np.zeros((3, 3)), (4, 4))
    with pytest.raises(DataError, match=r"shape \(3, 3\)"):
        corner_error(np.eye(4), np.eye(3), (4, 4))
    with pytest.raises(DataError, match="one or more pairs"):
        matching_accuracy([])
    with pytest.raises(DataError, match="pair 1: errors"):
        matching_accuracy([[1.0], [-1.0]])
    for errors, limits in (([], [1.0]), ([np.nan], [1.0]), ([1.0], [0.0])):
        with pytest.raises(DataError, match="errors must be one or more"):
            error_auc(errors, limits)


def test_a_homography_is_estimated_from_matches_with_outliers() -> None:
    cv2 = pytest.importorskip("cv2")
    dice = np.random.default_rng(0)
    for _ in range(5):
        truth = np.eye(3) + dice.normal(0, [[0.1], [0.1], [1e-4]], (3, 3))
        points = dice.uniform(0, 480, (200, 2))
        moved = cv2.perspectiveTransform(points[None], truth)[0]
        moved[:80] = dice.uniform(0, 480, (80, 2))
        found = estimate_homography(points, moved)
        assert corner_error(found, truth, (480, 480)) < 1e-3
        cv2.setRNGSeed(int(dice.integers(1 << 20)))  # OpenCV's own state does not matter
        assert np.array_equal(estimate_homography(points, moved), found)


def test_no_homography_of_too_few_matches() -> None:
    pytest.importorskip("cv2")
    assert estimate_homography(np.zeros((0, 2)), np.zeros((0, 2))) is None
    assert estimate_homography(np.eye(2), np.eye(2)) is None
    assert estimate_homography([[0, 0]] * 5, [[0, 0]] * 5) is None
    with pytest.raises(DataError, match=r"must have the same shape \(n, 2\), not \(2, 2\) and \(3, 2\)"):
        estimate_homography(np.eye(2), np.zeros((3, 2)))
    with pytest.raises(DataError, match="matched points must be finite"):
        estimate_homography([[0, np.nan]], [[0, 0]])
