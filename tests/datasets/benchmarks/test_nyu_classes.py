from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from setsup.datasets.benchmarks.nyu.classes import read_classes13, read_classes40, read_split
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import nyu as true


def test_the_genuine_files(genuine: Path) -> None:
    codes = read_split(genuine / "nyu_depth_v2/splits.mat", 1449)
    split = scipy.io.loadmat(genuine / "nyu_depth_v2/splits.mat")
    assert np.bincount(codes).tolist() == [795, 654]
    assert (codes[split["trainNdxs"].ravel() - 1] == 0).all()
    assert (codes[split["testNdxs"].ravel() - 1] == 1).all()
    assert codes[[0, 1, 2]].tolist() == [1, 1, 0], "the first train image is number 3"
    forty = read_classes40(genuine / "nyu_depth_v2/classMapping40.mat", 894)
    raw = scipy.io.loadmat(genuine / "nyu_depth_v2/classMapping40.mat")
    assert (forty.of[0], *forty.of[1:]) == (0, *raw["mapClass"][0])
    published = ("unlabelled", *(str(cell[0]) for cell in raw["allClassName"][0]))
    assert {published[label]: forty.names[forty.of[label]] for label in (0, 21, 11, 4, 5)} == {
        **{name: name for name in ("unlabelled", "wall", "floor", "ceiling", "chair")}
    }
    thirteen = read_classes13(genuine / "nyu_depth_v2/class13Mapping.mat")
    assert thirteen.names == ("unlabelled", *true.NAMES13)
    both = thirteen.of[forty.of]
    assert both.shape == (895,)
    assert [thirteen.names[both[label]] for label in (0, 1, 3, 21, 11, 4, 5)] == [
        *("unlabelled", "objects", "furniture", "wall", "floor", "ceiling", "chair")
    ]


@pytest.mark.parametrize(
    ("train", "test", "sentence"),
    [
        ([1, 2, 3], [4, 6], r"'testNdxs' contains 6; expected integers from 1 to 5 \(numbers of images\)"),
        ([0, 2, 3], [4], r"'trainNdxs' contains 0"),
        ([1, 2, 3], [3, 4], r"the image 3 is in both 'trainNdxs' and 'testNdxs' \(images in both: 1\)"),
        ([1, 2, 2], [3], r"'trainNdxs' lists the image 2 twice"),
        ([1, 2], [], r"'testNdxs' has dtype .*; expected integers from 1 to 5 \(numbers of images\)"),
    ],
)
def test_bad_splits(tmp_path: Path, train: list[int], test: list[int], sentence: str) -> None:
    true.write_split(tmp_path / "splits.mat", train, test)
    with pytest.raises(DataError, match=rf"splits\.mat.*{sentence}"):
        read_split(tmp_path / "splits.mat", 5)


def test_rows_of_neither_part_and_other_types_of_number(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "splits.mat", {"trainNdxs": np.array([[1.0, 3.0]]), "testNdxs": np.array([[4]])})
    assert read_split(tmp_path / "splits.mat", 5).tolist() == [0, 255, 0, 1, 255]
    scipy.io.savemat(tmp_path / "splits.mat", {"trainNdxs": np.array([[1.5, np.nan]]), "testNdxs": np.array([[4]])})
    with pytest.raises(DataError, match=r"'trainNdxs' contains 1\.5"):
        read_split(tmp_path / "splits.mat", 5)


@pytest.mark.parametrize("name", ["splits", "classMapping40", "class13Mapping"])
def test_damaged_small_files(tmp_path: Path, name: str) -> None:
    true.write_classes(tmp_path)
    true.write_split(tmp_path / "splits.mat", range(1, 16), range(16, 25))
    path = tmp_path / f"{name}.mat"
    read: Callable[[], object] = {
        "splits": lambda: read_split(path, 24),
        "classMapping40": lambda: read_classes40(path, 894),
        "class13Mapping": lambda: read_classes13(path),
    }[name]

    def reread(content: bytes) -> None:
        path.write_bytes(content)
        read()

    assert survives(path.read_bytes(), reread, 50) > 10
