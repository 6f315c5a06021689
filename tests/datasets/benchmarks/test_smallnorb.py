import gzip
import logging
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from setsup.datasets import load
from setsup.datasets.benchmarks.smallnorb import dataset as smallnorb
from setsup.errors import DataError, RowError
from tests.true_files.smallnorb import STEMS, matrix, write

TRAIN, TEST = (stem for stem, _ in STEMS.values())


def _read(path: Path) -> np.ndarray:
    """A file of the format, read by nothing but struct and numpy."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    magic, axes = struct.unpack("<2i", content[:8])
    lengths = struct.unpack(f"<{max(3, axes)}i", content[8 : 8 + 4 * max(3, axes)])[:axes]
    dtype = {0x1E3D4C54: "<i4", 0x1E3D4C55: "u1"}[magic]
    return np.frombuffer(content, dtype, offset=8 + 4 * max(3, axes)).reshape(lengths)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory, packed):
    folder = tmp_path_factory.mktemp("plain")
    for path in packed.iterdir():
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return folder


def _expected(folder):
    """Images and stored factors of all pairs, those of the training files first."""
    end = ".mat.gz" if (folder / f"{TRAIN}-dat.mat.gz").exists() else ".mat"
    parts = [[_read(folder / f"{stem}-{what}{end}") for stem in (TRAIN, TEST)] for what in ("dat", "cat", "info")]
    return tuple(np.concatenate(part) for part in parts)


@pytest.fixture(params=["packed", "plain", "prepared"])
def folder(request, tmp_path, packed, plain):
    if request.param != "prepared":
        return packed if request.param == "packed" else plain
    for path in packed.iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert smallnorb.prepare(tmp_path) == [tmp_path / "smallnorb.images.npy"]
    return tmp_path


@pytest.mark.long("large or genuine files")
def test_pictures_and_factors(folder):
    dataset = smallnorb.open(folder)
    pictures, category, info = _expected(folder)
    pairs = len(pictures)
    assert len(dataset) == 2 * pairs == 1200
    table = dataset.factors
    assert table.names == ("category", "instance", "elevation", "azimuth", "lighting", "camera", "split")
    names = np.array(["animal", "human", "airplane", "truck", "car"])
    assert table.values("category").tolist() == np.repeat(names[category], 2).tolist()
    assert table.values("instance").tolist() == np.repeat(info[:, 0], 2).tolist()
    assert table.values("elevation").tolist() == np.repeat(30 + 5 * info[:, 1], 2).tolist()
    assert table.values("azimuth").tolist() == np.repeat(10 * info[:, 2], 2).tolist()
    assert table.values("lighting").tolist() == np.repeat(info[:, 3], 2).tolist()
    assert table.values("camera").tolist() == ["left", "right"] * pairs
    assert table.values("split").tolist() == ["train"] * pairs + ["test"] * pairs
    assert table["instance"].within == "category"
    assert table["azimuth"].period == 360
    whole = pictures.reshape(-1, 96, 96, 1)
    for rows in ([[1199, 0], [599, 600]], [3, 3, 1], [45, 31], [1100, 700], [], 599, 600, [[]], range(0, 1200, 7)):
        rows = np.asarray(rows, int)
        found = dataset.fetch(rows)
        assert all(array.dtype == np.uint8 for array in found.values())
        assert np.array_equal(found["image"], whole[rows])
        assert np.array_equal(found["left"], whole[rows // 2 * 2])
        assert np.array_equal(found["right"], whole[rows // 2 * 2 + 1])
        assert list(dataset.fetch(rows, ["right"])) == ["right"]
        out = {name: np.zeros_like(array) for name, array in found.items()}
        dataset.fetch_into(rows, out)
        assert all(np.array_equal(out[name], found[name]) for name in found)
    with pytest.raises(RowError, match=r"1,?200 rows"):
        dataset.fetch([1200])
    with pytest.raises(DataError, match="no modality 'both'"):
        dataset.fetch([0], ["both"])


@pytest.mark.long("large or genuine files")
def test_splits(packed):
    assert len(load("smallnorb", packed, split="train")) == 600
    test = load("smallnorb", packed, split="test")
    assert test.factors.values("instance").max() == 5
    left = load("smallnorb", packed, split="left", where="split == 'test'")
    assert set(left.factors.values("camera")) == {"left"}
    assert np.array_equal(left.fetch([0, 5])["image"], left.fetch([0, 5])["left"])


def test_unpacked_files_come_first(tmp_path, packed, plain):
    for source in (*packed.iterdir(), *plain.iterdir()):
        (tmp_path / source.name).symlink_to(source)
    (tmp_path / f"{TRAIN}-dat.mat.gz").unlink()
    (tmp_path / f"{TRAIN}-dat.mat.gz").write_bytes(b"broken")
    assert np.array_equal(smallnorb.open(tmp_path).fetch(7)["image"], smallnorb.open(packed).fetch(7)["image"])
    assert smallnorb.prepare(tmp_path) == []
    assert not (tmp_path / "smallnorb.images.npy").exists()


def test_what_is_slow_is_said_once_and_prepared_arrays_are_checked(tmp_path, caplog, monkeypatch):
    write(tmp_path, per_split=20)
    with caplog.at_level(logging.WARNING, "setsup"):
        dataset = smallnorb.open(tmp_path)
        before = dataset.fetch([5, 41, 79])["image"]
        dataset.fetch([5])
    assert caplog.text.count("setsup prepare smallnorb") == 1
    assert dataset.prepare() == smallnorb.prepare(tmp_path) == [tmp_path / "smallnorb.images.npy"]
    with monkeypatch.context() as patched:
        patched.setattr(smallnorb.BinaryMatrix, "array", lambda _: pytest.fail("unpacked, though it is prepared"))
        assert np.array_equal(dataset.fetch([5, 41, 79])["image"], before)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "setsup"):
        assert np.array_equal(smallnorb.open(tmp_path).fetch([5, 41, 79])["image"], before)
    assert not caplog.text
    # other pictures of the same number in one of the two files
    path = tmp_path / f"{TEST}-dat.mat.gz"
    path.write_bytes(gzip.compress(matrix(255 - _read(path))))
    with caplog.at_level(logging.WARNING, "setsup"):
        found = smallnorb.open(tmp_path).fetch([5, 41, 79])["image"]
    assert np.array_equal(found, [before[0], 255 - before[1], 255 - before[2]])
    assert "created from other files" in caplog.text


def _info(**changed):
    info = np.tile(np.array([[4, 0, 0, 0]], np.int32), (3, 1))
    for name, value in changed.items():
        info[1, ["instance", "elevation", "azimuth", "lighting"].index(name)] = value
    return matrix(info)


PIXELS = np.zeros((3, 2, 96, 96), np.uint8)


@pytest.mark.parametrize(
    ("what", "content", "sentence"),
    [
        ("dat", None, r"training-dat\.mat\.gz not found.*setsup fetch smallnorb"),
        (
            "cat",
            matrix(np.array([0, 5, 1], np.int32)),
            r"training-cat.*: the category of row 1 is 5; expected one of 0, 1, 2, …, 4",
        ),
        ("cat", matrix(np.array([0, -1, 1], np.int32)), "the category of row 1 is -1"),
        ("cat", matrix(np.array([0, 1], np.int32)), r"has 3 pairs of images, but .*training-cat.* has 2 labels"),
        ("info", _info(instance=10), "the instance of row 1 is 10"),
        ("info", _info(elevation=9), "the elevation of row 1 is 9"),
        ("info", _info(azimuth=3), "the azimuth of row 1 is 3; expected one of 0, 2, 4, …, 34"),
        ("info", _info(azimuth=36), "the azimuth of row 1 is 36"),
        ("info", _info(lighting=6), "the lighting of row 1 is 6"),
        ("info", _info(instance=0), r"training-info.* contains instance 0; expected one of 4, 6, 7, 8, 9"),
        ("dat", matrix(PIXELS[:, :, :95]), r"expected uint8 of shape \(N, 2, 96, 96\)"),
        ("dat", matrix(np.zeros((3, 4), np.int32)), r"has dtype int32 and shape \(3, 4\)"),
        ("info", matrix(np.zeros((3, 5), np.int32)), r"expected int32 of shape \(N, 4\)"),
        ("dat", matrix(PIXELS)[:-7], r"training-dat"),
        ("dat", matrix(PIXELS)[::-1], "is not a binary matrix"),
    ],
)
@pytest.mark.parametrize("end", [".gz", ""])
def test_damaged_sets(tmp_path, what, content, sentence, end):
    for stem, instance in ((TRAIN, 4), (TEST, 0)):
        healthy = {
            "dat": matrix(PIXELS),
            "cat": matrix(np.zeros(3, np.int32)),
            "info": matrix(np.tile(np.array([[instance, 0, 0, 0]], np.int32), (3, 1))),
        }
        for part, right in healthy.items():
            data = content if (part, stem) == (what, TRAIN) else right
            if data is not None:
                (tmp_path / f"{stem}-{part}.mat{end}").write_bytes(gzip.compress(data) if end else data)
    with pytest.raises(DataError, match=sentence) as caught:
        smallnorb.open(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", [".gz", ""])
def test_swapped_files(tmp_path, end):
    write(tmp_path, per_split=5)
    for what in ("dat", "cat", "info"):
        train, test = (tmp_path / f"{stem}-{what}.mat.gz" for stem in (TRAIN, TEST))
        contents = train.read_bytes(), test.read_bytes()
        for path, content in zip((test, train), contents, strict=True):
            path.unlink()
            path.with_name(f"{path.name[:-3]}{end}").write_bytes(content if end else gzip.decompress(content))
    with pytest.raises(DataError, match=r"training-info.* contains instance \d.* may be swapped: fetch them again"):
        smallnorb.open(tmp_path)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("stem", [TRAIN, TEST])
def test_the_categories_of_the_other_split_are_noticed(tmp_path, stem):
    write(tmp_path)
    other = tmp_path / f"{TEST if stem == TRAIN else TRAIN}-cat.mat.gz"
    (tmp_path / f"{stem}-cat.mat.gz").write_bytes(other.read_bytes())
    with pytest.raises(DataError, match=rf"{stem}-cat.* describe the pairs \d+ and \d+ identically, .*swapped"):
        smallnorb.open(tmp_path)


def test_truncated_pictures_are_noticed(tmp_path):
    write(tmp_path, per_split=5)
    path = tmp_path / f"{TEST}-dat.mat.gz"
    path.write_bytes(path.read_bytes()[:-400] + path.read_bytes()[-4:])
    dataset = smallnorb.open(tmp_path)
    assert dataset.fetch([0])["image"].any()
    for read in (lambda: dataset.fetch([12]), lambda: smallnorb.prepare(tmp_path)):
        with pytest.raises(DataError, match=r"testing-dat\.mat\.gz is truncated or damaged"):
            read()
    assert not list(tmp_path.glob("*.npy*"))


def test_recognisable_content(packed):
    """Toys of one category look alike, from either camera; those of others do not."""
    dataset = smallnorb.open(packed)
    rows = [
        dataset.factors.rows(f"category == '{name}' and elevation == 30 and azimuth == 20 and lighting == 0")
        for name in dataset.factors["category"].levels
    ]
    means = [dataset.fetch(part)["image"].astype(float).mean(0) for part in rows]
    assert all(np.abs(a - b).mean() > 2 for a, b in pairwise(means))


def test_rows_of_both_splits_go_into_any_array(plain):
    """Also into one whose images do not lie next to each other in memory."""
    dataset = smallnorb.open(plain)
    rows = [3, 1100, 598, 601]
    out = np.zeros((4, 2, 96, 96, 1), np.uint8)[:, 1]
    dataset.fetch_into(rows, {"image": out})
    assert np.array_equal(out, dataset.fetch(rows)["image"])


def test_threads_that_begin_at_once_all_read_the_prepared_array(tmp_path, monkeypatch):
    write(tmp_path, per_split=20)
    smallnorb.prepare(tmp_path)
    dataset = smallnorb.open(tmp_path)
    opened = smallnorb.PreparedArray.open

    def slowly(self):
        time.sleep(0.2)  # all threads have seen meanwhile that nobody has looked yet
        return opened(self)

    monkeypatch.setattr(smallnorb.PreparedArray, "open", slowly)
    monkeypatch.setattr(smallnorb.BinaryMatrix, "array", lambda _: pytest.fail("unpacked, though it is prepared"))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: dataset.fetch([3, 70], ["image"])["image"], range(4)))
    assert all(np.array_equal(one, found[0]) for one in found)
