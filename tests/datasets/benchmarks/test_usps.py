"""USPS: rows equal to what torchvision makes of the texts, and to those of the HDF5 file."""

import bz2

import h5py
import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks import usps
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files.usps import COUNTS, content, text, write, write_h5


def _as_torchvision(path):
    """Images and digits of a text, by Python's own reading of each value."""
    lines = [line.split() for line in bz2.decompress(path.read_bytes()).decode().splitlines()]
    values = np.array([[word.split(":")[1] for word in words[1:]] for words in lines], np.float32)
    return ((values.reshape(-1, 16, 16) + 1) / 2 * 255).astype(np.uint8), [int(words[0]) - 1 for words in lines]


@pytest.mark.parametrize("form", ["published", "unpacked", "HDF5"])
def test_rows_are_those_of_torchvision(tmp_path, form):
    write(tmp_path)
    parts = [_as_torchvision(tmp_path / name) for name in ("usps.bz2", "usps.t.bz2")]
    if form != "published":
        for path in sorted(tmp_path.glob("*.bz2")):
            path.with_suffix("").write_bytes(bz2.decompress(path.read_bytes()))
            path.unlink()
    if form == "HDF5":
        (tmp_path / "usps.t").unlink()
        write_h5(tmp_path)
    found = setsup.load("usps", tmp_path)
    assert found.factors.values("digit").tolist() == parts[0][1] + parts[1][1]
    assert found.factors.values("split").tolist() == ["train"] * COUNTS["train"] + ["test"] * COUNTS["test"]
    images = np.concatenate([images for images, _ in parts])[..., None]
    rows = np.random.default_rng(0).permutation(len(images)).reshape(2, -1)
    assert np.array_equal(found.fetch(rows)["image"], images[rows])


LINES = text(*content("test")).decode().splitlines()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "has 0 numbers"),
        ([LINES[0], LINES[1][:-20]], "line 2 is not a label"),
        (["11" + LINES[0][LINES[0].index(" ") :]], "line 1 is not a label"),
        ([LINES[0].replace(" 7:", " 8:", 1)], "line 1 is not a label"),
        ([LINES[0], LINES[0].replace("256:-1", "256:2")], "line 2 is not a label"),
        ([LINES[0].replace("256:-1", "256:nan")], "line 1 is not a label"),
        ([LINES[0].replace("256:-1", "256:x")], "something other than numbers"),
        ([LINES[0].replace("256:-1", "256:é")], "something other than numbers"),
    ],
)
def test_bad_texts(tmp_path, lines, message):
    write(tmp_path)
    (tmp_path / "usps.t.bz2").write_bytes(bz2.compress("\n".join(lines).encode()))
    with pytest.raises(DataError, match=message) as found:
        setsup.load("usps", tmp_path)
    assert "\n" not in str(found.value)


def test_a_folder_in_the_place_of_a_text(tmp_path):
    write(tmp_path)
    (tmp_path / "usps.t.bz2").rename(tmp_path / "other")
    (tmp_path / "usps.t.bz2").mkdir()
    with pytest.raises(DataError, match=r"usps\.t\.bz2 .*(?i:is a directory|not a file)"):
        setsup.load("usps", tmp_path)


def test_a_text_without_end(tmp_path, monkeypatch):
    write(tmp_path)
    (tmp_path / "usps.t.bz2").write_bytes(bz2.compress(b"1 " * (1 << 21)))
    monkeypatch.setattr(usps, "_MOST_PIECES", 2)
    with pytest.raises(DataError, match=r"usps\.t\.bz2 has more than 2 MiB of text"):
        setsup.load("usps", tmp_path)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("test/data", np.zeros((20, 255), np.float32), r"data of shape \(20, 255\)"),
        ("test/data", np.full((20, 256), 1.5, np.float32), "row 0 of test has a digit beyond"),
        ("test/target", np.zeros(20, np.float32), "a target of dtype float32"),
        ("test/target", np.full(20, 10), "row 0 of test has a digit beyond"),
    ],
)
def test_bad_hdf5_files(tmp_path, name, values, message):
    write_h5(tmp_path)
    with h5py.File(tmp_path / "usps.h5", "a") as file:
        del file[name]
        file[name] = values
    with pytest.raises(DataError, match=message):
        setsup.load("usps", tmp_path)


@pytest.mark.long("fuzzing")
def test_damaged_texts(tmp_path):
    write(tmp_path)
    path = tmp_path / "usps.t.bz2"

    def read(damaged):
        path.write_bytes(damaged)
        setsup.load("usps", tmp_path).fetch([0, 45])

    unpacked = bz2.decompress(path.read_bytes())
    survives(path.read_bytes(), read, 30)
    assert survives(unpacked, read, 60) > 5
