"""Benchmarks in the form of WILDS: rows equal to what the published loaders make of the same files."""

import importlib
import shutil
from datetime import UTC, datetime

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from tests.true_files import camelyon17, fmow, iwildcam, waterbirds


def _same_images(found, folder, names):
    for row in range(0, len(names), 3):
        expected = np.asarray(Image.open(folder / names[row]).convert("RGB"))
        assert np.array_equal(found.fetch(row)["image"], expected), names[row]


@pytest.mark.parametrize("form", ["root", "folder", "zip"])
def test_camelyon17(tmp_path, form):
    camelyon17.write(tmp_path)
    folder = tmp_path / "camelyon17_v1.0"
    if form == "zip":
        shutil.make_archive(str(tmp_path / "zipped" / "camelyon17_v1.0"), "zip", tmp_path, "camelyon17_v1.0")
    found = setsup.load("camelyon17", {"root": tmp_path, "folder": folder, "zip": tmp_path / "zipped"}[form])
    lines = camelyon17.lines()
    table = found.factors
    # hospital 1 is for validation and 2 for the test, whatever the column says
    split = [{"1": "val", "2": "test"}.get(line[6], ("train", "id_val")[int(line[7])]) for line in lines]
    assert table.values("split").tolist() == split
    assert table.values("tumor").tolist() == [line[4] == "1" for line in lines]
    assert table.values("hospital").tolist() == [int(line[6]) for line in lines]
    assert table.values("slide").tolist() == [int(line[5]) for line in lines]
    assert table.values("patient").tolist() == [line[0] for line in lines]  # 001 stays a text
    _same_images(found, folder, [camelyon17.name_of(line) for line in lines])
    assert set(setsup.load("camelyon17", tmp_path, split="val").factors.values("hospital")) == {1}


def test_waterbirds_and_its_four_groups(tmp_path):
    waterbirds.write(tmp_path)
    folder = tmp_path / "waterbird_complete95_forest2water2"
    found = setsup.load("waterbirds", tmp_path)
    lines = waterbirds.lines()
    words = ("land", "water")
    assert found.factors.values("bird").tolist() == [words[int(line[2])] for line in lines]
    assert found.factors.values("place").tolist() == [words[int(line[4])] for line in lines]
    assert found.factors.values("split").tolist() == [("train", "val", "test")[int(line[3])] for line in lines]
    assert found.factors.values("species").tolist() == [line[1].split("/")[0] for line in lines]
    _same_images(found, folder, [line[1] for line in lines])
    assert len(found.factors.group_by(["bird", "place"])) == 4


def test_iwildcam(tmp_path):
    iwildcam.write(tmp_path)
    found = setsup.load("iwildcam", tmp_path)
    lines, table = iwildcam.lines(), found.factors
    assert table.values("split").tolist() == [line["split"] for line in lines]
    assert table.values("category").tolist() == [iwildcam.CATEGORIES[int(line["y"])] for line in lines]
    assert table.values("location").tolist() == [int(line["location_remapped"]) for line in lines]
    assert table.values("sequence").tolist() == [int(line["sequence_remapped"]) for line in lines]
    when = [datetime.strptime(line["datetime"], "%Y-%m-%d %H:%M:%S.%f") for line in lines]
    for name in ("year", "month", "hour"):
        assert table.values(name).tolist() == [getattr(each, name) for each in when]
    _same_images(found, tmp_path / "iwildcam_v2.0", [f"train/{line['filename']}" for line in lines])
    (tmp_path / "iwildcam_v2.0" / "categories.csv").unlink()
    bare = setsup.load("iwildcam", tmp_path).factors
    assert bare.values("category").tolist() == [int(line["y"]) for line in lines]


def test_fmow(tmp_path):
    fmow.write(tmp_path)
    found = setsup.load("fmow", tmp_path)
    numbered = [(number, line) for number, line in enumerate(fmow.lines()) if line["split"] != "seq"]
    table, expected = found.factors, []
    for _, line in numbered:
        taken = datetime.strptime(line["timestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        later = taken >= datetime(2016, 1, 1, tzinfo=UTC)
        middle = not later and taken >= datetime(2013, 1, 1, tzinfo=UTC)
        part = line["split"]
        if later:
            expected.append("test" if part == "test" else None)
        elif middle:
            expected.append("val" if part == "val" else None)
        else:
            expected.append({"train": "train", "val": "id_val", "test": "id_test"}[part])
    assert table.values("split").tolist() == expected
    assert set(expected) == {None, "train", "id_val", "id_test", "val", "test"}
    assert table.values("category").tolist() == [line["category"] for _, line in numbered]
    assert table.values("region").tolist() == [fmow.COUNTRIES[line["country_code"]] or "Other" for _, line in numbered]
    assert table.values("year").tolist() == [int(line["timestamp"][:4]) for _, line in numbered]
    _same_images(found, tmp_path / "fmow_v1.1", [f"images/rgb_img_{number}.png" for number, _ in numbered])


def test_a_part_of_the_images(tmp_path, caplog):
    camelyon17.write(tmp_path)
    lost = tmp_path / "camelyon17_v1.0" / camelyon17.name_of(camelyon17.lines()[5])
    lost.unlink()
    found = setsup.load("camelyon17", tmp_path)
    assert len(found) == len(camelyon17.lines()) - 1
    assert "1 of the 60 listed images are missing" in caplog.text
    assert found.factors.values("patient").tolist() == [
        line[0] for number, line in enumerate(camelyon17.lines()) if number != 5
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((b"split", b"spilt"), "has no column 'split'; did you mean 'spilt'"),
        ((b",0,0,0,0\n", b",7,0,0,0\n"), "tumor of row 0 is '7'; expected one of 0, 1"),
        ((b",0,0,0,0\n", b",0,0,0\n"), "could not be parsed as CSV"),
        ((b",patient", b"\xff\xfe"), "could not be parsed as CSV|has no column 'patient'"),
    ],
)
def test_damaged_tables(tmp_path, change, words):
    camelyon17.write(tmp_path)
    path = tmp_path / "camelyon17_v1.0" / "metadata.csv"
    path.write_bytes(path.read_bytes().replace(*change, 1))
    with pytest.raises(DataError, match=words):
        setsup.load("camelyon17", tmp_path)
    path.write_bytes(camelyon17.HEADER.encode() + b"\n")
    with pytest.raises(DataError, match=r"has no rows"):
        setsup.load("camelyon17", tmp_path)


@pytest.mark.parametrize("word", ["", "x", "1.0", "1" * 400, "\u0663", "nan", "1_0"])
@pytest.mark.parametrize(
    ("name", "table", "column"),
    [
        *(("camelyon17", "metadata.csv", column) for column in ("center", "slide", "node", "tumor", "split")),
        *(("iwildcam", "metadata.csv", column) for column in ("y", "location_remapped", "sequence_remapped")),
        *(("waterbirds", "metadata.csv", column) for column in ("y", "place", "split")),
    ],
)
def test_words_in_columns_of_integers(tmp_path, name, table, column, word):
    importlib.import_module(f"tests.true_files.{name}").write(tmp_path)
    (path,) = tmp_path.rglob(table)
    lines = [line.split(",") for line in path.read_text("utf-8").splitlines()]
    place = lines[0].index(column)
    if column == "node":  # it stands in the name of the image, too
        old = path.parent / camelyon17.name_of(lines[1][1:])
        lines[1][place] = word
        new = path.parent / camelyon17.name_of(lines[1][1:])
        if len(new.name) > 250:
            return
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
    lines[1][place] = word
    path.write_text("".join(",".join(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(DataError, match=f"{column} of row 0 is .* expected"):
        setsup.load(name, tmp_path)


def test_a_time_before_all_times(tmp_path):
    fmow.write(tmp_path)
    (path,) = tmp_path.rglob("rgb_metadata.csv")
    first = path.read_text().splitlines()[1]
    time = next(word for word in first.split(",") if "T" in word and ":" in word)
    path.write_text(path.read_text().replace(time, "0001-01-01T00:00:00+23:00", 1))
    with pytest.raises(DataError, match="expected a time such as"):
        setsup.load("fmow", tmp_path)
