"""Scores of tracks by loops over queries and frames, as the paper words them; queries by loops over frames."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.evaluation import track_queries, track_scores


def cases(seed: int):
    dice = np.random.default_rng(seed)
    count, length = int(dice.integers(1, 6)), int(dice.integers(2, 13))
    occluded = dice.random((count, length)) < 0.4
    occluded[0, 0] = False
    points = np.round(dice.uniform(0, 256, (count, length, 2)))
    return dice, occluded, points


@pytest.mark.parametrize("seed", range(20))
def test_queries_by_loops(seed: int) -> None:
    _, occluded, _ = cases(seed)
    first = [(n, min(np.flatnonzero(~row))) for n, row in enumerate(occluded) if not row.all()]
    found = track_queries(occluded)
    assert list(zip(found.tracks, found.frames, strict=True)) == first
    strided = [(n, t) for t in range(0, occluded.shape[1], 5) for n in range(len(occluded)) if not occluded[n, t]]
    found = track_queries(occluded, "strided")
    assert list(zip(found.tracks, found.frames, strict=True)) == strided


@pytest.mark.parametrize("mode", ["first", "strided"])
@pytest.mark.parametrize("seed", range(20))
def test_scores_by_loops(seed: int, mode: str) -> None:
    dice, occluded, points = cases(seed)
    queries = track_queries(occluded, mode)
    truth, hidden = points[queries.tracks], occluded[queries.tracks]
    predicted = truth + np.round(dice.normal(0, 5, truth.shape))
    told = hidden ^ (dice.random(hidden.shape) < 0.2)
    truth = np.where(hidden[..., None] & (seed % 2 == 0), np.nan, truth)  # unknown where it does not count
    found = track_scores(truth, hidden, predicted, told, queries.frames, mode)
    counted = [
        (q, t)
        for q, start in enumerate(queries.frames)
        for t in range(hidden.shape[1])
        if (t > start if mode == "first" else t != start)
    ]
    assert found.points == len(counted)
    if not counted:
        assert np.isnan(found.occlusion_accuracy)
        return
    assert found.occlusion_accuracy == pytest.approx(np.mean([hidden[at] == told[at] for at in counted]))
    for number, limit in enumerate((1, 2, 4, 8, 16)):
        visible = [at for at in counted if not hidden[at]]
        near = {at for at in visible if ((predicted[at] - truth[at]) ** 2).sum() < limit**2}
        true = sum(not told[at] for at in near)
        false = sum(not told[at] and at not in near for at in counted)
        wanted = [len(near) / len(visible) if visible else np.nan]
        wanted += [true / (len(visible) + false) if visible or false else np.nan]
        assert [found.within[number], found.jaccard[number]] == pytest.approx(wanted, nan_ok=True)
    assert found.average_jaccard == pytest.approx(found.jaccard.mean(), nan_ok=True)
    assert found.average_within == pytest.approx(found.within.mean(), nan_ok=True)


def test_a_distance_at_the_threshold_is_not_within() -> None:
    points, seen = np.zeros((1, 2, 2)), np.zeros((1, 2), bool)
    found = track_scores(points, seen, points + np.array([4, 0]), seen, [0])
    assert found.within.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"occluded": np.zeros((1, 3))}, "boolean array"),
        ({"predicted": np.zeros((1, 2, 2))}, r"shape \(q, t, 2\)"),
        ({"frames": [3]}, "integer from 0 to 2"),
        ({"frames": [0.5]}, "integer from 0 to 2"),
        ({"points": np.full((1, 3, 2), np.nan)}, "a visible point is not finite"),
        ({"mode": "last"}, "mode"),
    ],
)
def test_mistakes(change: dict, message: str) -> None:
    seen = np.zeros((1, 3), bool)
    given = {"points": np.zeros((1, 3, 2)), "occluded": seen, "predicted": np.zeros((1, 3, 2))}
    with pytest.raises(DataError, match=message):
        track_scores(**({**given, "predicted_occluded": seen, "frames": [0]} | change))
