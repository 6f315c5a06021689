"""Datasets that read their rows in one method."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from setsup.datasets import BaseDataset, Dataset, Modality, gather
from setsup.errors import DataError, RowError
from setsup.factors import FactorTable

IMAGES = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)


class Arrays(BaseDataset):
    """Two modalities: one that fills the buffer it is given, and one that returns an array of its own."""

    name = "arrays"
    factors = FactorTable.from_values({"level": [0, 1, 2, 3, 4]})

    def __init__(self):
        self.modalities = {"image": Modality((4, 3), "uint8"), "double": Modality((4, None), "int64")}
        self.calls = []

    def _read(self, name, rows, out):
        self.calls.append((name, rows.tolist(), None if out is None else out.flags.c_contiguous))
        return gather(IMAGES, rows, out) if name == "image" else 2 * IMAGES[rows].astype(np.int64)


@pytest.mark.parametrize("rows", [3, [0, 4, 4], [[1, 2], [2, 0]], [], [[]]], ids=str)
def test_rows_of_any_shape(rows):
    found = Arrays().fetch(rows)
    assert np.array_equal(found["image"], IMAGES[np.array(rows, np.int64)])
    assert np.array_equal(found["double"], 2 * IMAGES[np.array(rows, np.int64)].astype(np.int64))


def test_a_buffer_is_filled_in_place():
    dataset = Arrays()
    out = {"image": np.zeros((2, 2, 4, 3), np.uint8), "double": np.zeros((2, 2, 4, 3), np.int64)}
    dataset.fetch_into([[1, 2], [2, 0]], out)
    assert np.array_equal(out["image"], IMAGES[[[1, 2], [2, 0]]])
    assert np.array_equal(out["double"], 2 * IMAGES[[[1, 2], [2, 0]]].astype(np.int64))
    assert [(rows, contiguous) for _, rows, contiguous in dataset.calls] == [([1, 2, 2, 0], True)] * 2


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_buffer_that_is_not_contiguous_or_of_another_dtype(dtype):
    whole = np.zeros((3, 2, 4, 3), dtype)
    Arrays().fetch_into([4, 0, 1], {"image": whole[:, 1]})
    assert np.array_equal(whole[:, 1], IMAGES[[4, 0, 1]])
    assert not whole[:, 0].any()
    same = np.zeros((3, 4, 3), dtype)
    Arrays().fetch_into([4, 0, 1], {"image": same})
    assert np.array_equal(same, IMAGES[[4, 0, 1]])


def test_what_is_wrong_is_said():
    dataset = Arrays()
    with pytest.raises(RowError, match="row 5 is out of range: the table has 5 rows"):
        dataset.fetch([0, 5])
    with pytest.raises(DataError, match="arrays has no modality 'imag'; did you mean 'image'"):
        dataset.fetch([0], ["imag"])
    with pytest.raises(DataError, match=r"out\['image'\] must have the shape \(3, 4, 3\), not \(2, 4, 3\)"):
        dataset.fetch_into([0, 1, 2], {"image": np.zeros((2, 4, 3), np.uint8)})
    for buffer, said in (
        (np.zeros((3, 4, 3, 1), np.uint8), r"must have the shape \(3, 4, 3\), not \(3, 4, 3, 1\)"),
        (np.zeros((3, 4, 4), np.uint8), r"must have the shape \(3, 4, 3\), not \(3, 4, 4\)"),
        (np.zeros((3, 4, 3), np.int8), "must have a dtype that can represent all values of uint8, not int8"),
        (np.zeros((3, 4, 3)).tolist(), "must be a numpy array, not list"),
    ):
        with pytest.raises(DataError, match=rf"out\['image'\] {said}"):
            dataset.fetch_into([0, 1, 2], {"image": buffer})
    assert not dataset.calls


def test_it_is_a_dataset():
    dataset = Arrays()
    assert isinstance(dataset, Dataset)
    assert len(dataset) == 5
    assert repr(dataset) == "Arrays('arrays', 5 rows)"
    assert np.array_equal(dataset.where("level > 2").fetch([1])["image"], IMAGES[[4]])
    assert np.array_equal(pickle.loads(pickle.dumps(dataset)).fetch(2)["image"], IMAGES[2])


def test_threads_fetch_at_once():
    dataset = Arrays()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda row: dataset.fetch([row])["image"], [0, 1, 2, 3] * 5))
    assert np.array_equal(np.concatenate(found), IMAGES[[0, 1, 2, 3] * 5])
