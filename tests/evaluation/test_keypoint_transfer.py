"""Keypoints carried by the nearest feature, against interpolation of whole maps by torch and searches in loops."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.evaluation import transfer_keypoints

torch = pytest.importorskip("torch", reason="torch is not installed")


def interpolated(features: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A map (rows, columns, D) at all pixels of an image, by torch."""
    maps = torch.from_numpy(features).double().movedim(-1, 0)[None]
    return torch.nn.functional.interpolate(maps, size, mode="bilinear")[0].movedim(0, -1).numpy()


def searched(features: np.ndarray, query: np.ndarray) -> tuple[tuple[int, int], float, float]:
    """The place (x, y) of the largest cosine, pixel by pixel, that cosine, and the largest one elsewhere."""
    cosines = np.zeros(features.shape[:2])
    for row in range(features.shape[0]):
        for column in range(features.shape[1]):
            one = features[row, column]
            lengths = np.sqrt((one @ one) * (query @ query))
            cosines[row, column] = one @ query / lengths if lengths else 0.0
    row, column = np.unravel_index(cosines.argmax(), cosines.shape)
    best = cosines[row, column]
    return (int(column), int(row)), best, float(np.sort(np.append(cosines, -2))[-2])


@pytest.mark.parametrize("seed", range(20))
def test_pixels_are_those_of_maps_interpolated_by_torch(seed: int) -> None:
    dice = np.random.default_rng(seed)
    size1, size2 = dice.integers(1, 24, (2, 2)).tolist()
    depth = int(dice.integers(1, 5))
    map1, map2 = (dice.normal(size=(*dice.integers(1, 9, 2), depth)).astype(np.float32) for _ in range(2))
    points = np.stack([dice.integers(0, size1[1], 6), dice.integers(0, size1[0], 6)], axis=1)
    found = transfer_keypoints(map1, map2, points, size1, size2)
    whole1, whole2 = interpolated(map1, size1), interpolated(map2, size2)
    for number, (x, y) in enumerate(points.tolist()):
        place, best, second = searched(whole2, whole1[y, x])
        assert found.cosines[number] == pytest.approx(best, abs=1e-6)
        if best - second > 1e-9:
            assert tuple(found.points[number]) == place


@pytest.mark.parametrize("seed", range(10))
def test_cells_are_found_at_their_centres(seed: int) -> None:
    dice = np.random.default_rng(seed)
    size1, size2 = dice.integers(8, 40, (2, 2)).tolist()
    map1, map2 = (dice.normal(size=(*dice.integers(1, 9, 2), 3)) for _ in range(2))
    points = dice.uniform([-0.5, -0.5], [size1[1] - 0.5, size1[0] - 0.5], (5, 2))
    found = transfer_keypoints(map1, map2, points, size1, size2, features="grid")
    rows, columns = map2.shape[:2]
    for number, (x, y) in enumerate(points.tolist()):
        # the cell whose part of the image contains the point
        row = next(cell for cell in range(len(map1)) if y + 0.5 <= (cell + 1) * size1[0] / len(map1))
        column = next(cell for cell in range(map1.shape[1]) if x + 0.5 <= (cell + 1) * size1[1] / map1.shape[1])
        (across, down), best, _ = searched(map2, map1[row, column])
        middle = [(across + 0.5) * size2[1] / columns - 0.5, (down + 0.5) * size2[0] / rows - 0.5]
        assert found.points[number].tolist() == pytest.approx(middle)
        assert found.cosines[number] == pytest.approx(best)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(0)
    map1, map2 = dice.normal(size=(2, 5, 7, 4))
    points = dice.uniform(0, 20, (4, 2))
    sizes = (20, 28), (33, 28)
    wanted = [transfer_keypoints(map1, map2, points, *sizes, features=kind) for kind in ("pixels", "grid")]
    for limit in ("_CELLS", "_BLOCK"):
        monkeypatch.setattr(f"setsup.evaluation.keypoint_transfer.{limit}", 1)
    for kind, expected in zip(("pixels", "grid"), wanted, strict=True):
        found = transfer_keypoints(map1, map2, points, *sizes, features=kind)
        assert found.points.tolist() == expected.points.tolist()
        assert found.cosines == pytest.approx(expected.cosines)


def test_the_first_of_equal_cosines_counts_and_zeros_have_none() -> None:
    target = np.zeros((2, 3, 2))
    target[0, 2] = target[1, 1] = [0.0, 3.0]
    found = transfer_keypoints(np.array([[[0.0, 1.0], [-1.0, 0.0]]]), target, [[0, 0], [1, 0]], (1, 2), (2, 3))
    assert found.points.tolist() == [[2, 0], [0, 0]]
    assert found.cosines.tolist() == [1, 0]
    # within half a patch of the rim, interpolated features are equal: the first pixel of the image counts
    one = transfer_keypoints(np.ones((1, 1, 1)), np.ones((2, 2, 1)), [[3, 3]], (8, 8), (8, 8))
    assert one.points.tolist() == [[0, 0]]


@pytest.mark.parametrize("sampling", ["pixels", "grid"])
def test_of_identical_features_the_first_counts_whatever_rounding_says(sampling: str) -> None:
    rng = np.random.default_rng(2)
    for size in (8, 33, 768):
        kinds = rng.integers(0, 4, (9, 11))
        maps = rng.normal(size=(4, size))[kinds]
        points = np.stack(np.meshgrid(np.arange(11), np.arange(9)), axis=-1).reshape(-1, 2)
        found = transfer_keypoints(maps, maps, points, (9, 11), (9, 11), features=sampling)
        first = {kind: np.argwhere(kinds == kind)[0][::-1] for kind in range(4)}
        assert found.points.tolist() == [first[kinds[y, x]].tolist() for x, y in points]


def test_what_cannot_be_compared_is_refused() -> None:
    maps = np.zeros((2, 2, 3))
    for wrong, points, sentence in (
        (maps[..., :2], [[0, 0]], "have 3 numbers, of the target 2"),
        (maps[0], [[0, 0]], "must be a float array"),
        (np.full_like(maps, np.inf), [[0, 0]], "not finite; check the network"),
        (maps, [[np.nan, 0]], "leave out those"),
    ):
        with pytest.raises(DataError, match=sentence):
            transfer_keypoints(maps, wrong, points, (4, 4), (4, 4))
    assert len(transfer_keypoints(maps, maps, [], (4, 4), (4, 4)).points) == 0
