"""CIFAR-10 and CIFAR-100: both versions give the rows that unpickling and numpy give, and damage is refused."""

import hashlib
import pickle
import shutil
import tarfile

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from setsup.files import load_manifest
from tests.fuzzing import survives
from tests.true_files import cifar10, cifar100

NAMES = {"cifar10": cifar10, "cifar100": cifar100}


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def _unpickled(path):
    """Images and labels of a file, as torchvision reads them."""
    entry = pickle.loads(path.read_bytes(), encoding="latin1")  # a file that the test wrote
    images = entry["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, entry.get("labels", entry.get("fine_labels")), entry.get("coarse_labels")


@pytest.mark.parametrize(
    ("name", "md5"), [("cifar10", "5ff9c542aee3614f3951f8cda6e48888"), ("cifar100", "7973b15100ade9c7d40fb424638fde48")]
)
def test_the_writer_makes_the_published_lists_of_categories_byte_by_byte(name, md5):
    """The md5 of ``batches.meta`` and ``meta`` are those of torchvision; the names are those of our manifests."""
    levels = {factor.name: list(factor.levels) for factor in load_manifest(name).factors if factor.levels}
    if name == "cifar10":
        content = {"num_cases_per_batch": 10_000, "label_names": levels["category"], "num_vis": 3072}
    else:
        content = {"fine_label_names": levels["category"], "coarse_label_names": levels["superclass"]}
    assert hashlib.md5(cifar10.old_pickle(content)).hexdigest() == md5


def test_both_versions_are_what_unpickling_gives(name, tmp_path):
    NAMES[name].write(tmp_path / "python")
    NAMES[name].write(tmp_path / "binary", binary=True)
    found = setsup.load(name, tmp_path / "python")
    files = cifar10.BATCHES if name == "cifar10" else ("train", "test")
    images, fine, coarse = zip(*(_unpickled(next(tmp_path.glob(f"python/*/{file}"))) for file in files), strict=True)
    assert found.factors.codes("category").tolist() == [code for codes in fine for code in codes]
    if name == "cifar100":
        assert found.factors.codes("superclass").tolist() == [code for codes in coarse for code in codes]
    parts = [
        "test" if file.startswith("test") else "train" for file, rows in zip(files, fine, strict=True) for _ in rows
    ]
    assert found.factors.values("split").tolist() == parts
    rows = np.random.default_rng(0).permutation(len(found)).reshape(2, -1)
    expected = np.concatenate(images)[rows]
    other = setsup.load(name, tmp_path / "binary")
    assert other.factors.fingerprint == found.factors.fingerprint
    for dataset in (found, other):
        assert np.array_equal(dataset.fetch(rows)["image"], expected)


@pytest.mark.parametrize("keys", [str, str.encode])
def test_pickles_of_python_3_and_arrays_in_fortran_order(name, tmp_path, keys):
    NAMES[name].write(tmp_path)
    rows = np.arange(len(setsup.load(name, tmp_path)))
    expected = setsup.load(name, tmp_path).fetch(rows)["image"]
    files = cifar10.BATCHES if name == "cifar10" else ("train", "test")
    for path in (next(tmp_path.glob(f"*/{file}")) for file in files):
        entry = pickle.loads(path.read_bytes(), encoding="latin1")  # a file that the test wrote
        entry["data"] = np.asfortranarray(entry["data"])
        path.write_bytes(pickle.dumps({keys(key): value for key, value in entry.items()}, protocol=4))
    assert np.array_equal(setsup.load(name, tmp_path).fetch(rows)["image"], expected)


def test_the_archive_is_unpacked_once(name, tmp_path):
    NAMES[name].write(tmp_path / "loose", binary=name == "cifar100")
    [folder] = (tmp_path / "loose").iterdir()
    archive = tmp_path / ("cifar-10-python.tar.gz" if name == "cifar10" else "cifar-100-binary.tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    expected = setsup.load(name, tmp_path / "loose").fetch([0, 3])["image"]
    shutil.rmtree(tmp_path / "loose")
    with pytest.raises(DataError, match=rf"{archive.name} .*run `setsup prepare {name} "):
        setsup.load(name, tmp_path)
    module = __import__(f"setsup.datasets.benchmarks.cifar.{name}", fromlist=["prepare"])
    assert module.prepare(tmp_path) == tmp_path / f"{name}_unpacked" / folder.name
    assert np.array_equal(setsup.load(name, tmp_path).fetch([0, 3])["image"], expected)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("test", b"", "is empty"),
        ("test", b"\x80\x02cos\nsystem\nU\x02ls\x85R.", "never unpickles it"),
        ("test", cifar10.old_pickle({"data": [1]}), "no array 'data' of dtype uint8"),
        ("test", cifar10.old_pickle({"data": np.zeros((1, 3072), np.uint8)}), "no list 'coarse_labels'"),
        (
            "test",
            cifar10.old_pickle({"data": np.zeros((2, 3072), np.uint8), "coarse_labels": [1], "fine_labels": [1, 2]}),
            "'data' has 2 images, but 'coarse_labels' has 1 labels",
        ),
        (
            "test",
            cifar10.old_pickle({"data": np.zeros((1, 3072), np.uint8), "coarse_labels": [20], "fine_labels": [1]}),
            "the superclass of image 0 is 20; expected 0 to 19",
        ),
        (
            "test",
            cifar10.old_pickle({"data": np.zeros((1, 3072), np.uint8), "coarse_labels": [3], "fine_labels": [6]}),
            "images of bee are in two superclasses",
        ),
    ],
)
def test_bad_pickles(tmp_path, file, content, message):
    cifar100.write(tmp_path)
    (tmp_path / "cifar-100-python" / file).write_bytes(content)
    with pytest.raises(DataError, match=message) as found:
        setsup.load("cifar100", tmp_path)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(("first", "second"), [("data_batch_2", "data_batch_4"), ("test_batch", "data_batch_5")])
def test_swapped_batches(tmp_path, first, second):
    cifar10.write(tmp_path)
    folder = tmp_path / "cifar-10-batches-py"
    contents = [(folder / name).read_bytes() for name in (second, first)]
    for name, content in zip((first, second), contents, strict=True):
        (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"({first}|{second}) contains the \w+ing batch \d of"):
        setsup.load("cifar10", tmp_path)


def test_bad_binary_files(tmp_path):
    cifar10.write(tmp_path, binary=True)
    path = tmp_path / "cifar-10-batches-bin" / "test_batch.bin"
    found, whole = setsup.load("cifar10", tmp_path), path.read_bytes()
    for content, message in (
        (whole[:-1], "expected a positive multiple of 3,073"),
        (b"\x0a" + whole[1:], "the category of image 0 is 10; expected 0 to 9"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            setsup.load("cifar10", tmp_path)
    path.write_bytes(whole[:3073])
    with pytest.raises(DataError, match="replaced since"):
        found.fetch([0])


@pytest.mark.long("fuzzing")
def test_damaged_pickles(tmp_path):
    cifar100.write(tmp_path)
    path = tmp_path / "cifar-100-python" / "test"

    def read(content):
        path.write_bytes(content)
        setsup.load("cifar100", tmp_path).fetch([0, 31])

    assert survives(path.read_bytes(), read, 60) > 5
