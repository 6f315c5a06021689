"""Points followed by features: by loops, and where features do not change."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.evaluation import track_features
from setsup.evaluation.feature_tracks import inconsistent


@pytest.mark.parametrize("seed", range(10))
def test_tracks_by_loops(seed: int) -> None:
    dice = np.random.default_rng(seed)
    rows, columns, count = (int(dice.integers(2, 6)) for _ in range(3))
    maps = np.round(dice.normal(size=(count, rows, columns, 2)) * 2) + 0.5  # with ties
    size = 7 * rows, 5 * columns
    starts = dice.uniform(0, [size[1] - 1, size[0] - 1], (6, 2))
    frames = dice.integers(0, count, 6)
    calls: list[int] = []

    def encode(frame: int) -> np.ndarray:
        calls.append(frame)
        return maps[frame]

    def nearest(feature: np.ndarray, frame: int) -> int:
        flat = maps[frame].reshape(-1, 2)
        cosines = [one @ feature / np.linalg.norm(one) / np.linalg.norm(feature) for one in flat]
        return next(cell for cell, cosine in enumerate(cosines) if cosine > max(cosines) - 2e-7)

    def centre(cell: int) -> list[float]:
        return [5 * (cell % columns) + 2, 7 * (cell // columns) + 3]

    found = track_features(encode, size, count, starts, frames, sampling="grid")
    assert sorted(calls) == list(range(count))
    hidden = inconsistent(found, starts, [8, 4])
    for query, ((x, y), start) in enumerate(zip(starts, frames, strict=True)):
        feature = maps[start, int(np.rint(y)) // 7, int(np.rint(x)) // 5]
        for frame in range(count):
            cell = nearest(feature, frame)
            back = nearest(maps[frame].reshape(-1, 2)[cell], int(start))
            assert found.points[query, frame].tolist() == centre(cell)
            assert found.returns[query, frame].tolist() == centre(back)
            apart = (np.array(centre(back)) - (x, y)) / (8, 4)
            assert hidden[query, frame] == (np.hypot(*apart) > 1)


def test_points_that_stand_still_are_found_between_cells() -> None:
    """Where features do not change, interpolated ones are found within a pixel on a grid of every second pixel."""
    still = np.random.default_rng(0).normal(size=(16, 16, 9))
    starts = np.array([[40.0, 50.0], [181.0, 92.0], [181.0, 92.0]])
    found = track_features(lambda frame: still, (256, 256), 6, starts, [0, 3, 5], step=2)
    assert np.abs(found.points - starts[:, None]).max() <= 1
    assert np.abs(found.returns - starts[:, None]).max() <= 1


def test_what_does_not_fit_is_refused() -> None:
    still = np.ones((2, 3, 4))
    for frames in ([3], [-1], [0.5], [0, 1]):
        with pytest.raises(DataError, match="frames must contain an integer from 0 to 2 for each query"):
            track_features(lambda frame: still, (4, 6), 3, [[0, 0]], frames)
    assert track_features(lambda frame: still, (4, 6), 3, [], []).points.shape == (0, 3, 2)
