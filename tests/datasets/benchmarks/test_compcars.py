import logging
import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.io
from PIL import Image

import setsup
from setsup.datasets.benchmarks import compcars
from setsup.datasets.benchmarks.compcars.labels import parse_label
from setsup.datasets.benchmarks.compcars.lists import named
from setsup.errors import DataError, RowError
from setsup.factors import Kind
from tests.fuzzing import survives
from tests.true_files import cars196
from tests.true_files import compcars as true


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compcars")
    return folder, true.write(folder)


@pytest.fixture(scope="module")
def cars(release):
    return compcars.open(release[0])


@pytest.fixture
def mine(release, tmp_path):
    """A copy of the release that a test may change."""
    return shutil.copytree(release[0], tmp_path / "copy")


def test_factors_are_those_of_paths_labels_and_lists(release, cars):
    rows, table = release[1], cars.factors
    assert len(cars) == len(rows) == 48
    assert cars.paths(range(48)) == [f"image/{row['path']}" for row in rows]
    assert table.values("make").tolist() == [true.MAKES[row["make"] - 1].strip() for row in rows]
    models = {4: "coupe (4)", 6: "coupe (6)"}
    assert table.values("model").tolist() == [models.get(r["model"], true.MODELS[r["model"] - 1]) for r in rows]
    assert table.values("year").tolist() == [None if r["year"] == "unknown" else int(r["year"]) for r in rows]
    views = {-1: None, 1: "front", 2: "rear", 3: "side", 4: "front-side", 5: "rear-side"}
    assert table.values("viewpoint").tolist() == [views[row["viewpoint"]] for row in rows]
    for name in ("split", "verification"):
        assert table.values(name).tolist() == [row[name] for row in rows]
    assert cars.fetch(range(48), ["box"])["box"].tolist() == [row["box"] for row in rows]
    assert table["model"].levels == ("Audi A4", "BMW X1", "coupe (4)", "Golf", "coupe (6)", "Polo")
    assert table["year"].kind is Kind.ORDINAL
    assert table["split"].role == "split"


def test_attributes_are_those_of_the_model(release, cars):
    data, rows = release[0] / "data", release[1]
    told = pd.read_csv(data / "misc" / "attributes.txt", sep=" ", index_col="model_id")
    types = [str(cell[0]) for cell in scipy.io.loadmat(data / "misc" / "car_type.mat")["types"][0]]
    for turn, row in enumerate(rows):
        found = cars.factors.row(turn)
        if row["model"] not in told.index:
            wanted = dict.fromkeys(("maximum_speed", "displacement", "door_number", "seat_number", "type"))
        else:
            wanted = {name: value or None for name, value in told.loc[row["model"]].items()}
        assert found["car_type"] == (None if wanted["type"] is None else types[int(wanted["type"]) - 1])
        for name in ("maximum_speed", "displacement", "door_number", "seat_number"):
            assert (found[name] is None) == (wanted[name] is None)
            assert found[name] == pytest.approx(wanted[name])
    assert cars.factors["car_type"].levels == tuple(types)
    assert len(cars.where("displacement >= 1.8")) == 16
    assert len(cars.where("displacement == 1.6 and door_number == 2")) == 8
    assert cars.factors["maximum_speed"].unit == "km/h"


def test_images_are_the_boxes(release, cars):
    folder, rows = release
    found = cars.fetch(range(48))["image"]
    for turn, row in enumerate(rows):
        left, top, right, bottom = row["box"]
        with Image.open(folder / "data" / "image" / row["path"]) as picture:
            cut = picture.crop((left - 1, top - 1, right, bottom)).resize((128, 128), Image.Resampling.BILINEAR)
            size = (picture.height, picture.width, 3)
        assert np.abs(found[turn].astype(int) - np.asarray(cut).astype(int)).max() <= 12
        assert cars.photo(turn).shape == size
    wide = compcars.open(folder, size=(40, 60), margin=0.05, jitter=0.1, seed=3)
    assert wide.fetch([[1, 2], [2, 1]])["image"].shape == (2, 2, 40, 60, 3)
    assert np.array_equal(wide.fetch([5, 5])["image"][0], wide.fetch(5)["image"])
    part = cars.where("make == 'BMW'")
    assert np.array_equal(part.photo(0), cars.photo(8))
    assert part.paths([0]) == cars.paths([8])
    with pytest.raises(RowError):
        cars.fetch(48)
    with pytest.raises(DataError, match="jitter must be"):
        compcars.open(folder, jitter=0.5)


def test_splits(release, cars):
    for part in ("train", "test"):
        found = setsup.load("compcars", release[0], split=part)
        wanted = [f"image/{row['path']}" for row in release[1] if row["split"] == part]
        assert found.paths(range(len(found))) == wanted
    both = setsup.load("compcars", release[0], split="verification")
    assert both.factors.counts("split").tolist() == [16, 16]


def test_listed_pictures_that_are_not_there(release, caplog):
    with caplog.at_level(logging.WARNING, "setsup"):
        compcars.open(release[0])
    assert len(caplog.records) == 1
    assert "classification/test.txt: 1 of its 13 images are missing from the release" in caplog.text
    assert true.GONE in caplog.text


def test_what_may_be_missing(mine, release, cars):
    data, rows = mine / "data", release[1]
    shutil.rmtree(data / "train_test_split")
    shutil.rmtree(data / "misc")
    found = compcars.open(mine)
    assert found.factors.names == ("make", "model", "year", "viewpoint")
    assert found.factors.values("make").tolist() == [str(row["make"]) for row in rows]
    assert found.factors.values("model").tolist() == [str(row["model"]) for row in rows]
    assert np.array_equal(found.fetch([3])["image"], cars.fetch([3])["image"])
    (data / "misc").mkdir()
    shutil.copy(release[0] / "data" / "misc" / "attributes.txt", data / "misc")
    assert compcars.open(mine).factors["car_type"].levels == ("2", "3", "4", "10")
    with pytest.raises(DataError, match="no split 'train'"):
        setsup.load("compcars", mine, split="train")


def test_pictures_without_a_label_or_a_box(mine, release, caplog):
    labels = mine / "data" / "label"
    paths = [row["path"].replace(".jpg", ".txt") for row in release[1]]
    (labels / paths[3]).unlink()
    (labels / paths[5]).write_text("4\n0\n")
    (labels / paths[6]).write_text("4\n1\n9 9 3 20\n")
    with caplog.at_level(logging.WARNING, "setsup"):
        found = compcars.open(mine)
    assert "1 of 48 images have no label" in caplog.text
    assert "2 of 48 images have a label without a box, or with an empty box" in caplog.text
    kept = [f"image/{row['path']}" for turn, row in enumerate(release[1]) if turn not in (3, 5, 6)]
    assert found.paths(range(45)) == kept
    assert np.isfinite(found.fetch(range(45), ["box"])["box"]).all()
    shutil.rmtree(labels)
    with pytest.raises(DataError, match=r"label/78/1/2014/3ac218c0c6c378\.txt not found"):
        compcars.open(mine)


def test_damaged_labels_are_counted(mine, release):
    for row in release[1][10:17]:
        (mine / "data" / "label" / row["path"].replace(".jpg", ".txt")).write_text("4\n1\n1 2 three 4\n")
    with pytest.raises(DataError, match="7 of 48 labels cannot be parsed") as found:
        compcars.open(mine)
    assert str(found.value).count("could not be parsed as a label") == 3
    assert "and 4 more" in str(found.value)


def test_labels_are_read_once(release, monkeypatch):
    compcars.open(release[0])
    monkeypatch.setattr(compcars.labels, "parse_label", lambda *_: pytest.fail("read again"))
    assert len(compcars.open(release[0])) == 48


@pytest.mark.parametrize("packing", ["folder", "zip"])
def test_labels_that_change_are_read_anew(mine, release, tmp_path, packing):
    name = release[1][0]["path"].replace(".jpg", ".txt")
    label = mine / "data" / "label" / name
    root = mine if packing == "folder" else tmp_path / "compcars.zip"
    for viewpoint in (1, 3, 2):
        # as many bytes as before; as editors do it, by another file of the name
        fresh = label.with_suffix(".fresh")
        fresh.write_text(f"{viewpoint}\n1\n1 1 9 9\n")
        fresh.replace(label)
        if packing == "zip":
            with zipfile.ZipFile(root, "w") as file:
                for path in sorted(mine.rglob("*.*")):
                    file.write(path, path.relative_to(mine))
        found = compcars.open(root)
        row = found.paths(range(len(found))).index(f"image/{release[1][0]['path']}")
        assert found.factors.values("viewpoint")[row] == {1: "front", 2: "rear", 3: "side"}[viewpoint]
        assert found.fetch([row], ["box"])["box"].tolist() == [[1, 1, 9, 9]]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"4\n1\n107 100 819 502\n", (3, (107, 100, 819, 502))),
        (b"-1\r\n1\r\n1 1 1 1\r\n", (-1, (1, 1, 1, 1))),
        (b"5\n2\n1 2 3 4\n5 6 7 8", (4, (1, 2, 3, 4))),
        (b"0\n1\n1 2 3 4", (-1, (1, 2, 3, 4))),
        (b"3\n0\n", (2, None)),
        (b"3\n1\n0 2 3 4\n", (2, None)),
        (b"3\n1\n5 2 3 4\n", (2, None)),
    ],
)
def test_labels(content, found):
    viewpoint, box = parse_label(content, "a.txt")
    assert viewpoint == found[0]
    assert box == found[1] if found[1] else np.isnan(box).all()


@pytest.mark.parametrize(
    "content", [b"", b"1", b"1\n", b"1 1\n1\n1 2 3 4", b"x\n1\n1 2 3 4", b"1\n1\n1 2 3", b"\xff\n1"]
)
def test_what_is_no_label(content):
    with pytest.raises(DataError, match=r"a\.txt could not be parsed as a label; expected the viewpoint"):
        parse_label(content, "a.txt")


def test_fuzzed_labels():
    assert survives(b"4\n1\n107 100 819 502\n", lambda content: parse_label(content, "a.txt"), 500) > 50


def test_names():
    assert named([2, 5], {2: "5"}) == ("5 (2)", "5 (5)")
    assert named([1, 2, 3], {1: "a (2)", 2: "a", 3: "a"}) == ("a (2) (1)", "a (2)", "a (3)")


@pytest.mark.parametrize("packing", ["data", "zip", "tar", "folders above"])
def test_copies(tmp_path, release, cars, packing):
    data, root = release[0] / "data", tmp_path
    if packing == "data":
        root = data
    elif packing == "zip":
        root = tmp_path / "compcars.zip"
        with zipfile.ZipFile(root, "w") as file:
            for path in data.rglob("*.*"):
                file.write(path, f"CompCars/data/{path.relative_to(data)}")
    elif packing == "tar":
        with tarfile.open(tmp_path / "compcars.tar", "w") as file:
            file.add(data, "data")
    else:
        shutil.copytree(data, tmp_path / "compcars" / "some folder")
    found = setsup.load("compcars", root)
    assert found.paths(range(48)) == cars.paths(range(48))
    assert found.factors.values("model").tolist() == cars.factors.values("model").tolist()
    assert np.array_equal(found.fetch([1, 47])["image"], cars.fetch([1, 47])["image"])
    assert np.array_equal(pickle.loads(pickle.dumps(found)).fetch(9)["image"], cars.fetch(9)["image"])


def test_a_zip_with_a_password_is_told(tmp_path, release):
    """The flag that says so is set by hand, since Python writes no such zips."""
    path = tmp_path / "compcars.zip"
    with zipfile.ZipFile(path, "w") as file:
        for each in (release[0] / "data").rglob("*.*"):
            file.write(each, f"data/{each.relative_to(release[0] / 'data')}")
    content = bytearray(path.read_bytes())
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        start = content.find(mark)
        while start >= 0:
            content[start + at] |= 1
            start = content.find(mark, start + 4)
    path.write_bytes(content)
    with pytest.raises(DataError, match="password"):
        compcars.open(path)


def test_both_sources_of_real_cars(release, cars, tmp_path):
    """What ABC mixes with renderings: images without a pose, of this dataset and Cars196."""
    cars196.write(tmp_path)
    other = setsup.load("cars196", tmp_path)
    both = setsup.concat(cars, other, parts=["compcars", "cars196"])
    assert len(both) == 96
    assert both.fetch([0, 95])["image"].shape == (2, 128, 128, 3)
    assert {"Audi", "Acura"} <= set(both.factors["make"].levels)


def test_files_that_are_missing(tmp_path):
    with pytest.raises(DataError, match="setsup fetch compcars"):
        compcars.open(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("misc/attributes.txt", "model_id type\n1 2\n", "does not start with the header"),
        ("misc/attributes.txt", None, "expected 6 numbers from 0 to"),
        ("train_test_split/classification/train.txt", "78/1/2014\n", "line 1 is '78/1/2014'"),
        (
            "train_test_split/verification/verification_pairs_easy.txt",
            "1/2/3/a.jpg 1\n",
            "expected 2 paths of the form make/model/year/file",
        ),
        ("misc/car_type.mat", "no mat", "not a MAT"),
    ],
)
def test_damaged_lists(mine, file, content, why):
    path = mine / "data" / file
    if content is None:
        content = path.read_text() + "9 1 2 3 4 x\n"
    path.write_text(content)
    with pytest.raises(DataError, match=why) as found:
        compcars.open(mine)
    assert path.name in str(found.value)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("file", ["make_model_name.mat", "car_type.mat"])
def test_fuzzed_names(mine, file):
    path = mine / "data" / "misc" / file
    content = {name: value for name, value in scipy.io.loadmat(path).items() if not name.startswith("__")}
    scipy.io.savemat(path, content)  # uncompressed, so that damage meets the content

    def read(content):
        path.write_bytes(content)
        return compcars.open(mine)

    assert survives(path.read_bytes(), read, 30, slack=20 << 20) > 2
