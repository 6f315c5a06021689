"""Keypoints of two images, and published pairs of images, also of a dataset of one's own."""

import numpy as np
import pytest

from setsup.correspondence.matching import Window, find_match, keypoints, match_share
from setsup.datasets import from_arrays, of_row
from setsup.datasets.keypoint_pairs import KeypointPairs, PairList, has_keypoints, listed_pairs
from setsup.datasets.own.arrays.dataset import ArrayDataset
from setsup.errors import DataError
from setsup.factors import FactorTable


class Faces(ArrayDataset):
    """Images of 8 × 10 pixels in which row r has keypoint k at (k + r, k)."""

    pair_factors = ("person",)

    @property
    def published_pairs(self) -> PairList:
        return PairList([[0, 1], [2, 3], [3, 2]], FactorTable.from_values({"split": ["val", "test", "test"]}))

    @of_row
    def keypoint_pairs(self, rows: list[int]) -> KeypointPairs:
        at = np.arange(4)
        one, two = (np.stack([at + row, at], axis=1) for row in rows)
        return KeypointPairs(one, two, [0, 0, 0, 4], list("abcd"))


@pytest.fixture
def faces() -> Faces:
    plain = from_arrays(np.zeros((4, 8, 10, 3), np.uint8), {"person": [0, 0, 1, 1]})
    plain.__class__ = Faces
    return plain


def test_a_dataset_of_ones_own_is_matched_by_keypoints(faces: Faces) -> None:
    assert has_keypoints(faces)
    assert has_keypoints(faces.select([3, 2]))
    assert not has_keypoints(from_arrays(np.zeros((4, 8, 8, 3), np.uint8), {"person": [0, 0, 1, 1]}))
    assert find_match(faces) is keypoints
    window = Window(1, 0, 8, 9)
    pairs, share = match_share(keypoints, faces, [0, 1], [window, window], 0.5, 0)
    assert share == 0.5
    assert pairs.sparse
    # the first keypoint lies left of the window in image 1; the status of the last one is kept
    assert pairs.points1.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert pairs.points2.tolist() == [[1, 1], [2, 2], [3, 3]]
    assert pairs.status.tolist() == [0, 0, 4]


def test_selections_number_pairs_anew(faces: Faces) -> None:
    assert listed_pairs(faces).rows.tolist() == [[0, 1], [2, 3], [3, 2]]
    some = faces.select([3, 2, 2])
    found = listed_pairs(some)
    assert found.rows.tolist() == [[1, 0], [0, 1]]
    assert found.factors.values("split").tolist() == ["test", "test"]
    assert some.keypoint_pairs(found.rows[0]).points1[0].tolist() == [2, 0]
    assert len(listed_pairs(faces.select([0, 2]))) == 0
    with pytest.raises(DataError, match="has no published pairs"):
        listed_pairs(from_arrays(np.zeros((1, 8, 8, 3), np.uint8), {"person": [0]}))


def test_lists_are_selected(faces: Faces) -> None:
    pairs = faces.published_pairs
    assert pairs.where("split == 'test'").rows.tolist() == [[2, 3], [3, 2]]
    assert pairs.select([2, 0]).factors.values("split").tolist() == ["test", "val"]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"points2 of 2 keypoints must have shape \(2, 2\), not \(1, 2\)"):
        KeypointPairs([[0, 0], [1, 1]], [[0, 0]], [0, 0], ["a", "b"])
    with pytest.raises(DataError, match="status of keypoints must be from 0 to 4, not 5"):
        KeypointPairs([[0, 0]], [[0, 0]], [5], ["a"])
    table = FactorTable.from_values({"split": ["a"]})
    for rows in ([[0, 1], [1, 2]], [0], [[0, 1, 2]]):
        with pytest.raises(DataError, match=r"rows of pairs must have the shape \(1, 2\)"):
            PairList(rows, table)
    assert len(KeypointPairs([], [], [], [])) == 0
