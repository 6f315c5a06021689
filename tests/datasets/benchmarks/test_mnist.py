import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from setsup.datasets.benchmarks import mnist
from setsup.errors import DataError, RowError

PUBLISHED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "mnist"
MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


def _images(pixels):
    return bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in pixels.shape) + pixels.tobytes()


def _labels(digits):
    return bytes([0, 0, 8, 1]) + len(digits).to_bytes(4, "big") + bytes(digits)


def _write(folder, mark="-", end=".gz", **changed):
    """A small MNIST in the published form: 30 train rows, 20 test rows, whose pixels are noise."""
    noise = np.random.default_rng(7).integers(0, 256, (50, 28, 28)).astype(np.uint8)
    content = {
        "train-images": _images(noise[:30]),
        "train-labels": _labels([i % 10 for i in range(30)]),
        "t10k-images": _images(noise[30:]),
        "t10k-labels": _labels([9 - i % 10 for i in range(20)]),
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        kind = "idx3" if "images" in name else "idx1"
        if data is not None:
            (folder / f"{name}{mark}{kind}-ubyte{end}").write_bytes(gzip.compress(data) if end else data)
    return noise


@pytest.mark.parametrize("mark", ["-", "."])
@pytest.mark.parametrize("end", [".gz", ""])
def test_all_names_that_mirrors_use(tmp_path, mark, end):
    noise = _write(tmp_path, mark, end)
    digits = mnist.open(tmp_path)
    assert len(digits) == 50
    assert digits.factors.names == ("digit", "split")
    assert digits.factors["split"].role == "split"
    assert digits.factors.values("digit", [0, 9, 29, 30, 49]).tolist() == [0, 9, 9, 9, 0]
    assert digits.factors.values("split", [0, 29, 30, 49]).tolist() == ["train", "train", "test", "test"]
    for rows in ([[49, 0], [29, 30]], [3, 3, 1], [45, 31], [], 30, 29, [[]]):
        found = digits.fetch(rows)["image"]
        assert found.dtype == np.uint8
        assert np.array_equal(found, noise[np.asarray(rows, int)][..., np.newaxis])
    with pytest.raises(RowError, match="50 rows"):
        digits.fetch([50])


def test_a_folder_named_mnist_is_found_below_the_root(tmp_path):
    _write(tmp_path / "mnist")
    assert len(mnist.open(tmp_path)) == 50


def test_unpacked_files_come_first(tmp_path):
    _write(tmp_path, end=".gz", train_images=b"broken")
    noise = _write(tmp_path, end="")
    assert np.array_equal(mnist.open(tmp_path).fetch(3)["image"][..., 0], noise[3])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"t10k_labels": None}, r"setsup fetch mnist"),
        ({"t10k_labels": _labels([0] * 19)}, r"t10k-images.* has 20 images, but .*t10k-labels.* has 19 labels.*fetch"),
        ({"train_labels": _labels([0] * 12 + [10] + [0] * 17)}, r"train-labels.*: the label of row 12 is 10"),
        ({"train_images": _images(np.zeros((30, 28, 27), np.uint8))}, r"train-images.*expected .*\(N, 28, 28\)"),
        ({"train_images": _labels([0] * 30)}, r"train-images.*expected uint8 of shape \(N, 28, 28\)"),
        ({"train_labels": _images(np.zeros((30, 28, 28), np.uint8))}, r"train-labels.*expected uint8 of shape \(N\)"),
        ({"t10k_images": bytes([0, 0, 9, 3, 0, 0, 0, 20, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(15680)}, r"t10k-im.*int8"),
        ({"t10k_images": b"<html>"}, r"t10k-images.*not an IDX file"),
    ],
)
@pytest.mark.parametrize("end", [".gz", ""])
def test_damaged_sets(tmp_path, changed, sentence, end):
    _write(tmp_path, end=end, **changed)
    with pytest.raises(DataError, match=sentence):
        mnist.open(tmp_path)


def test_truncated_images_are_noticed_at_the_latest_when_fetched(tmp_path):
    _write(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz is truncated"):
        mnist.open(tmp_path).fetch(0)


@pytest.fixture(scope="module")
def digits():
    return mnist.open(PUBLISHED)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published MNIST files are not beside the checkout")
class TestPublished:
    @pytest.mark.parametrize("name", list(MD5))
    def test_the_arrays_are_the_published_bytes(self, name):
        from setsup.datasets.formats.idx import IdxFile

        file = IdxFile(PUBLISHED / f"{name}.gz")
        axes = 3 if "images" in name else 1
        header = bytes([0, 0, 8, axes]) + b"".join(size.to_bytes(4, "big") for size in file.shape)
        digest = hashlib.md5(header + file.array().tobytes(), usedforsecurity=False)
        assert digest.hexdigest() == MD5[name]

    def test_rows_and_labels(self, digits):
        assert len(digits) == 70_000
        assert digits.factors.rows("split == 'train'")[[0, -1]].tolist() == [0, 59_999]
        # the first labels of either published file, as printed in many a tutorial
        assert digits.factors.values("digit", range(10)).tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
        assert digits.factors.values("digit", range(60_000, 60_010)).tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
        train = digits.factors.where("split == 'train'").counts("digit")
        assert train.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        test = digits.factors.where("split == 'test'").counts("digit")
        assert test.tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]

    @pytest.mark.long("large or genuine files")
    def test_pixels(self, digits):
        with gzip.open(PUBLISHED / "train-images-idx3-ubyte.gz") as file:
            train = np.frombuffer(file.read(), np.uint8)[16:].reshape(-1, 28, 28, 1)
        with gzip.open(PUBLISHED / "t10k-images-idx3-ubyte.gz") as file:
            test = np.frombuffer(file.read(), np.uint8)[16:].reshape(-1, 28, 28, 1)
        rows = np.random.default_rng(0).integers(0, 70_000, (8, 32))
        assert np.array_equal(digits.fetch(rows)["image"], np.concatenate([train, test])[rows])
        # 0.1307 is the mean of the train split that everyone normalises with
        assert abs(digits.fetch(range(60_000))["image"].mean() / 255 - 0.1307) < 5e-5
