import os
import shutil
import tarfile

import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks import stl10
from setsup.errors import DataError, RowError
from setsup.files import load_manifest
from setsup_cli.main import main
from tests.fuzzing import survives
from tests.true_files.stl10 import CATEGORIES, FOLD, TEST, TRAIN, UNLABELED, drawn, folds, labels, write

COUNTS = (10 * TRAIN, 10 * TEST, UNLABELED)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stl10")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def pictures(release):
    return stl10.open(release)


@pytest.fixture
def copy(tmp_path, release):
    shutil.copytree(release / "stl10_binary", tmp_path / "x")
    return tmp_path / "x"


def test_factors(pictures):
    table = pictures.factors
    assert len(pictures) == sum(COUNTS)
    told = [CATEGORIES[code] for code in [*labels(TRAIN), *labels(TEST)]]
    assert table.values("category").tolist() == told + [None] * UNLABELED
    assert table.values("split").tolist() == ["train"] * COUNTS[0] + ["test"] * COUNTS[1] + ["unlabeled"] * COUNTS[2]
    assert table["category"].levels == CATEGORIES
    for number, fold in enumerate(folds()):
        assert table.rows(f"fold_{number} == 'train'").tolist() == fold
        assert table[f"fold_{number}"].role == "split"


def test_pictures_are_the_right_way_round(pictures):
    """Against the drawings themselves, which are neither symmetric nor grey."""
    expected = [np.asarray(drawn(code, at)) for at, code in enumerate(labels(TRAIN).tolist())]
    expected += [np.asarray(drawn(code, at)) for at, code in enumerate(labels(TEST).tolist())]
    expected += [np.asarray(drawn(3 * at % 10, 100 + at)) for at in range(UNLABELED)]
    assert np.array_equal(pictures.fetch(range(len(pictures)))["image"], expected)
    rows = np.array([[164, 0, 79], [80, 139, 140]])
    found = pictures.fetch(rows)["image"]
    assert np.array_equal(found, np.array(expected)[rows])
    out = np.zeros((2, 3, 96, 96, 3), np.uint8)
    pictures.fetch_into(rows, {"image": out})
    assert np.array_equal(out, found)
    wide = np.zeros((2, 3, 96, 96, 6), np.uint8)
    pictures.fetch_into(rows, {"image": wide[..., ::2]})
    assert np.array_equal(wide[..., ::2], found)
    assert not wide[..., 1::2].any()
    with pytest.raises(RowError):
        pictures.fetch(165)


def test_pictures_as_the_authors_read_them(release, pictures):
    """Reshaped to channel, column, row and turned, as numpy does it."""
    whole = np.fromfile(release / "stl10_binary" / "test_X.bin", np.uint8).reshape(-1, 3, 96, 96)
    assert np.array_equal(pictures.fetch(range(80, 140))["image"], whole.transpose(0, 3, 2, 1))


def test_splits(release):
    for number, fold in enumerate(folds()):
        part = setsup.load("stl10", release, split=f"fold-{number}")
        assert len(part) == FOLD
        assert part.rows.tolist() == fold
        assert set(part.factors.values("split")) == {"train"}
    for name, count in zip(("train", "test", "unlabeled"), COUNTS, strict=True):
        part = setsup.load("stl10", release, split=name)
        assert len(part) == count
    assert len(setsup.load("stl10", release, split="cmc")) == COUNTS[0] + COUNTS[2]


def test_optional_files(copy):
    for name in ("unlabeled_X.bin", "fold_indices.txt", "class_names.txt"):
        (copy / name).unlink()
    found = stl10.open(copy)
    assert found.factors.names == ("category", "split")
    assert len(found) == COUNTS[0] + COUNTS[1]
    assert found.factors["category"].levels == CATEGORIES
    assert np.array_equal(found.fetch(139)["image"], np.asarray(drawn(int(labels(TEST)[59]), 59)))
    with pytest.raises(DataError, match="the files that define its parts are missing"):
        setsup.load("stl10", copy, split="fold-3")
    with pytest.raises(DataError, match="no rows in the split 'unlabeled'"):
        setsup.load("stl10", copy, split="unlabeled")


def _packed(release, path, mode):
    with tarfile.open(path, mode) as file:
        file.add(release / "stl10_binary", "stl10_binary")


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("given", ["folder", "archive", "plain tar"])
def test_the_archive_as_published(tmp_path, release, pictures, given, capsys):
    archive = tmp_path / ("stl10_binary.tar" if given == "plain tar" else "stl10_binary.tar.gz")
    _packed(release, archive, "w" if given == "plain tar" else "w:gz")
    root = tmp_path if given == "folder" else archive
    with pytest.raises(DataError, match=r"run `setsup prepare stl10 --root .*`") as caught:
        stl10.open(root)
    assert "\n" not in str(caught.value)
    assert main(["prepare", "stl10", "--root", str(root)]) == 0
    where = capsys.readouterr().out.strip()
    assert where == str(tmp_path / "stl10_unpacked" / "stl10_binary")
    found = stl10.open(root)
    assert np.array_equal(found.fetch(range(165))["image"], pictures.fetch(range(165))["image"])
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    assert stl10.prepare(root) == tmp_path / "stl10_unpacked" / "stl10_binary"
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("given", ["folder", "archive", "usual places"])
def test_the_archive_in_a_folder_that_is_read_only(tmp_path, release, pictures, given, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path))
    (tmp_path / "stl10").mkdir()
    archive = tmp_path / "stl10" / "stl10_binary.tar.gz"
    _packed(release, archive, "w:gz")
    root = {"folder": archive.parent, "archive": archive, "usual places": None}[given]
    with pytest.raises(DataError, match="run `setsup prepare stl10"):
        stl10.open(root)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != archive.parent and access(path, mode))
    where = stl10.prepare(root)
    assert where.is_relative_to(tmp_path / "cache" / "prepared")
    assert stl10.prepare(root) == stl10.open(root).folder == where
    assert list(archive.parent.iterdir()) == [archive]
    assert np.array_equal(stl10.open(root).fetch(range(165))["image"], pictures.fetch(range(165))["image"])


@pytest.mark.long("large or genuine files")
def test_half_of_an_unpacking_is_never_opened(tmp_path, release):
    """What a killed process left looks like the release, but for its name."""
    _packed(release, tmp_path / "stl10_binary.tar.gz", "w:gz")
    half = tmp_path / ".stl10_unpacked-9351fd7e-0123456789ab.tmp" / "stl10_binary"
    shutil.copytree(release / "stl10_binary", half)
    (half / "train_X.bin").write_bytes(bytes(3 * 96 * 96))
    with pytest.raises(DataError, match="run `setsup prepare stl10"):
        stl10.open(tmp_path)
    (tmp_path / "stl10_unpacked.lock").touch()
    assert stl10.prepare(tmp_path) == tmp_path / "stl10_unpacked" / "stl10_binary"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stl10_binary.tar.gz", "stl10_unpacked"]
    (tmp_path / "stl10_unpacked.lock").touch()
    assert stl10.prepare(tmp_path) == tmp_path / "stl10_unpacked" / "stl10_binary"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stl10_binary.tar.gz", "stl10_unpacked"]


def test_preparing_what_is_unpacked_does_nothing(release):
    assert stl10.prepare(release) == release / "stl10_binary"


def test_preparing_nothing(tmp_path):
    with pytest.raises(DataError, match="setsup fetch stl10"):
        stl10.prepare(tmp_path)


@pytest.mark.long("fuzzing")
def test_a_damaged_archive(tmp_path, release):
    _packed(release, tmp_path / "stl10_binary.tar.gz", "w:gz")
    whole = (tmp_path / "stl10_binary.tar.gz").read_bytes()
    (tmp_path / "stl10_binary.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="truncated or damaged"):
        stl10.prepare(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stl10_binary.tar.gz"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train_X.bin", b"\0" * (27648 * 80 - 1), "expected a positive multiple of 27,648"),
        ("train_X.bin", b"", "expected a positive multiple"),
        ("unlabeled_X.bin", b"\0" * 100, "expected a positive multiple"),
        ("train_X.bin", b"\0" * 27648, r"train_X\.bin has 1 images, but .*train_y\.bin has 80 labels"),
        ("train_y.bin", b"\1" * 79, "has 79 labels"),
        ("train_y.bin", b"\0" + b"\1" * 79, "the label of image 0 is 0; expected 1 to 10"),
        ("test_y.bin", b"\1" * 59 + b"\x0b", "the label of image 59 is 11"),
        ("class_names.txt", b"cat\ndog\n", "is not the list of categories; expected airplane"),
        ("class_names.txt", b"\xff", "is not UTF-8 text"),
        ("fold_indices.txt", b"1 2 3\n" * 9, "has 9 lines; expected one line for each of 10"),
        (
            "fold_indices.txt",
            b"1 2 3\n" * 9 + b"1 80\n",
            "line 10 has '80', which is not the number of a training image",
        ),
        ("fold_indices.txt", b"1 2 3\n" * 9 + b"1 -1\n", "line 10 has '-1'"),
        ("fold_indices.txt", b"1 2 2\n" * 10, "line 1 lists an image twice"),
    ],
)
def test_bad_files(copy, name, content, message):
    (copy / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        stl10.open(copy)


def test_missing_files(copy):
    (copy / "train_y.bin").unlink()
    with pytest.raises(DataError, match=r"train_y\.bin not found.*setsup fetch stl10"):
        stl10.open(copy)


def test_files_that_change(copy):
    found = stl10.open(copy)
    (copy / "train_X.bin").write_bytes(b"\0" * 27648)
    with pytest.raises(DataError, match="has been replaced since"):
        found.fetch([0])


@pytest.mark.long("fuzzing")
def test_damaged_labels(copy):
    def read(content):
        (copy / "train_y.bin").write_bytes(content)
        stl10.open(copy).fetch([0, 100])

    assert survives((copy / "train_y.bin").read_bytes(), read, 60) > 5


def test_the_manifest(pictures):
    manifest = load_manifest("stl10")
    assert manifest.samples == 5_000 + 8_000 + 100_000
    assert tuple(factor.name for factor in manifest.factors) == pictures.factors.names
    assert {split.name for split in manifest.splits} >= {f"fold-{number}" for number in range(10)}
