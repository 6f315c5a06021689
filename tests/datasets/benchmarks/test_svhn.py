"""SVHN, cropped: rows equal to what scipy reads and torchvision makes of it, converted or not."""

import shutil

import numpy as np
import pytest
from scipy.io import loadmat, savemat

import setsup
from setsup.datasets.benchmarks import svhn
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files.svhn import COUNTS, write


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("svhn")
    write(folder)
    return folder


@pytest.fixture
def copy(tmp_path, release):
    shutil.copytree(release, tmp_path / "svhn")
    return tmp_path / "svhn"


def _as_torchvision(folder, parts):
    """Images, (n, 32, 32, 3), and digits of some parts."""
    files = [loadmat(folder / f"{part}_32x32.mat") for part in parts]
    images = np.concatenate([np.transpose(file["X"], (3, 2, 0, 1)) for file in files]).transpose(0, 2, 3, 1)
    return images, np.concatenate([file["y"].reshape(-1) % 10 for file in files])


def test_rows_are_those_of_torchvision(copy, caplog):
    images, digits = _as_torchvision(copy, COUNTS)
    found = setsup.load("svhn", copy)
    assert found.factors.values("digit").tolist() == digits.tolist()
    assert found.factors.values("split").tolist() == [part for part, count in COUNTS.items() for _ in range(count)]
    rows = np.random.default_rng(0).permutation(len(digits)).reshape(2, -1)
    assert np.array_equal(found.fetch(rows)["image"], images[rows])
    assert sum("setsup prepare svhn" in message for message in caplog.messages) == len(COUNTS)
    caplog.clear()
    assert [path.name for path in svhn.prepare(copy)] == [f"{part}_32x32.images.npy" for part in COUNTS]
    assert np.array_equal(setsup.load("svhn", copy).fetch(rows)["image"], images[rows])
    assert not caplog.messages


def test_without_extra(copy):
    (copy / "extra_32x32.mat").unlink()
    found = setsup.load("svhn", copy)
    assert len(found) == COUNTS["train"] + COUNTS["test"]
    assert found.factors["split"].levels == ("train", "test")
    with pytest.raises(DataError, match="extra"):
        setsup.load("svhn", copy, split="extra")


X = np.zeros((32, 32, 3, 2), np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"X": X}, "has no variable y"),
        ({"X": X, "y": np.array([[0], [1]])}, "the label of image 0 is 0; expected 1 to 10, where 10 is digit 0"),
        ({"X": X, "y": np.zeros((2, 2))}, r"'y' has dtype float64 and shape \(2, 2\)"),
        ({"X": X[:5], "y": np.array([[1], [2]])}, r"'X' has dtype uint8 and shape \(5, 32, 3, 2\)"),
        ({"X": X.astype(float), "y": np.array([[1], [2]])}, "'X' has dtype float64"),
        ({"X": X, "y": np.array([[1], [2], [3]])}, "'X' has 2 images, but 'y' has 3 labels"),
    ],
)
def test_bad_files(copy, content, message):
    savemat(copy / "test_32x32.mat", content)
    with pytest.raises(DataError, match=message) as found:
        setsup.load("svhn", copy).fetch([COUNTS["train"]])
    assert "\n" not in str(found.value)


@pytest.mark.long("fuzzing")
def test_damaged_files(copy):
    path = copy / "extra_32x32.mat"

    def read(content):
        path.write_bytes(content)
        setsup.load("svhn", copy).fetch([COUNTS["train"] + COUNTS["test"]])

    assert survives(path.read_bytes(), read, 60) > 5
