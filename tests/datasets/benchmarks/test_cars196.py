import io
import logging
import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
import scipy.io
from PIL import Image

import setsup
from setsup.datasets.benchmarks import cars196
from setsup.datasets.benchmarks.cars196.annotations import BODIES, body, make, year
from setsup.errors import DataError, RowError
from setsup.factors import Kind
from setsup.files import load_manifest
from tests.fuzzing import survives
from tests.true_files import cars196 as true


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cars196")
    return folder, true.write(folder)


@pytest.fixture(scope="module")
def cars(release):
    return cars196.open(release[0])


@pytest.fixture
def mine(release, tmp_path):
    """A copy of the release that a test may change."""
    return shutil.copytree(release[0], tmp_path / "copy")


def _read(path):
    """An annotation file by scipy alone, as a list of dicts."""
    found = scipy.io.loadmat(path, squeeze_me=True, struct_as_record=False)["annotations"]
    return [{name: getattr(each, name) for name in each._fieldnames} for each in np.atleast_1d(found)]


def test_factors_are_those_of_the_files(release, cars):
    folder, rows = release
    table = cars.factors
    assert table.values("file").tolist() == [row["file"] for row in rows]
    assert table.values("model_class").tolist() == [true.CLASSES[row["class"] - 1] for row in rows]
    assert table.values("split").tolist() == [row["part"] for row in rows]
    assert table.values("retrieval").tolist() == ["train" if row["class"] <= 98 else "test" for row in rows]
    annotated = _read(folder / "devkit" / "cars_train_annos.mat") + _read(folder / "cars_test_annos_withlabels.mat")
    boxes = [[int(each[side]) for side in true.SIDES] for each in annotated]
    assert cars.fetch(range(len(cars)), ["box"])["box"].tolist() == boxes == [row["box"] for row in rows]
    assert table["model_class"].levels == true.CLASSES
    assert table["year"].kind is Kind.ORDINAL
    first = table.row(2)
    assert (first["make"], first["body"], first["year"]) == ("Acura", None, 2008)
    assert set(table.values("make", table.rows("body == 'Pickup'"))) == {"Ford"}


def test_names_of_the_genuine_classes(genuine):
    names = [
        str(cell[0]) for cell in scipy.io.loadmat(genuine / "cars196/devkit/cars_meta.mat")["class_names"].reshape(-1)
    ]
    assert len(names) == 196
    makes = {make(name) for name in names}
    # 49 makes, as those who work with the data count them
    assert len(makes) == 49
    assert {"AM General", "Aston Martin", "Land Rover", "Rolls-Royce", "smart"} <= makes
    for name in names:
        assert name.startswith(make(name) + " ")
        assert name.endswith(f" {year(name)}")
        told = body(name)
        assert told in (None, *BODIES)
        word = "Cab" if told == "Pickup" else told
        assert (word or "") in name
        if told is None:
            assert not any(f" {word} " in name for word in (*BODIES, "Cab"))
    levels = {factor.name: factor.levels for factor in load_manifest("cars196").factors}
    assert levels["make"] == 49
    assert levels["year"] == len({year(name) for name in names})
    assert levels["body"] == BODIES
    # read by eye
    nameless = ("TL Type-S", "Integra", "Regal", "ZR1", "Ron Fellows", "HHR", "Cobalt", "TrailBlazer", "300 SRT-8")
    nameless += ("Challenger", "Charger SRT-8", "Abarth", "XKR", "Gallardo")
    assert {name for name in names if body(name) is None} == {
        name for name in names if any(word in name for word in nameless)
    }
    assert body("Infiniti G Coupe IPL 2012") == "Coupe"
    assert body("Ford E-Series Wagon Van 2012") == "Van"


@pytest.mark.long("large or genuine files")
def test_the_genuine_devkit(genuine, tmp_path):
    """Its tables by scipy; images are named only, since none is opened before it is fetched."""
    shutil.copytree(genuine / "cars196" / "devkit", tmp_path / "devkit")
    train, test = (_read(genuine / "cars196" / "devkit" / f"cars_{part}_annos.mat") for part in ("train", "test"))
    for part, annotated in (("train", train), ("test", test)):
        (tmp_path / f"cars_{part}").mkdir()
        for each in annotated:
            (tmp_path / f"cars_{part}" / each["fname"]).touch()
    found = cars196.open(tmp_path)
    table = found.factors
    assert (len(train), len(test), len(found)) == (8144, 8041, 16185)
    names = scipy.io.loadmat(genuine / "cars196/devkit/cars_meta.mat", squeeze_me=True)["class_names"].tolist()
    assert table["model_class"].levels == tuple(names)
    told = [names[int(each["class"]) - 1] for each in train]
    assert table.values("model_class").tolist() == told + [None] * len(test)
    assert table.values("make").tolist()[8144:] == [None] * len(test)
    assert (table.codes("year")[8144:] == -1).all()
    assert table.values("year")[:8144].tolist() == [int(name[-4:]) for name in told]
    boxes = np.array([[int(each[side]) for side in true.SIDES] for each in train + test])
    assert np.array_equal(found.fetch(range(len(found)), ["box"])["box"], boxes)
    assert boxes.max() > 255  # beyond the type in which most of them are stored
    assert table.counts("split").tolist() == [8144, 8041]
    assert table.counts("retrieval").sum() == 8144
    seen = found.where("retrieval == 'train'")
    assert set(seen.factors.values("model_class")) == set(names[:98])


def test_without_the_labels_of_test(mine, cars):
    (mine / "cars_test_annos_withlabels.mat").unlink()
    found = cars196.open(mine)
    test = found.factors.values("split") == "test"
    for name in ("model_class", "make", "body", "year", "retrieval"):
        assert (found.factors.codes(name)[test] == -1).all()
        assert np.array_equal(found.factors.codes(name)[~test], cars.factors.codes(name)[~test])
    assert np.array_equal(found.fetch([40, 3])["image"], cars.fetch([40, 3])["image"])
    (mine / "devkit" / "cars_test_annos.mat").unlink()
    assert len(cars196.open(mine)) == 32


def test_the_other_layout(tmp_path, cars):
    rows = true.write(tmp_path, "one")
    found = cars196.open(tmp_path)
    assert found.factors.values("file").tolist() == [row["file"] for row in rows]
    for name in ("model_class", "make", "body", "year", "split", "retrieval"):
        assert found.factors.values(name).tolist() == cars.factors.values(name).tolist()
    assert np.array_equal(found.fetch(range(4))["image"], cars.fetch(range(4))["image"])
    # the devkit beside it does not matter where its pictures are not there
    true.write(tmp_path / "parts")
    shutil.copytree(tmp_path / "parts" / "devkit", tmp_path / "devkit")
    shutil.rmtree(tmp_path / "parts")
    assert cars196.open(tmp_path).factors.values("file")[0] == "car_ims/000001.jpg"


def test_images_are_the_boxes(release, cars):
    folder, rows = release
    found = cars.fetch(range(len(rows)))
    for turn, row in enumerate(rows):
        left, top, right, bottom = row["box"]
        picture = Image.open(folder / row["file"])
        cut = picture.crop((left - 1, top - 1, right, bottom)).resize((128, 128), Image.Resampling.BILINEAR)
        assert np.abs(found["image"][turn].astype(int) - np.asarray(cut).astype(int)).max() <= 12
        assert np.array_equal(cars.photo(turn).shape, (picture.height, picture.width, 3))
    assert cars.fetch([[5, 5], [1, 0]])["image"].shape == (2, 2, 128, 128, 3)
    assert cars.fetch([])["image"].shape == (0, 128, 128, 3)
    part = cars.where("split == 'test'")
    assert np.array_equal(part.photo(0), cars.photo(32))
    with pytest.raises(RowError):
        cars.fetch(48)


def test_splits(release):
    parts = [setsup.load("cars196", release[0], split=f"retrieval-{part}").factors for part in ("train", "test")]
    classes = [set(part.values("model_class").tolist()) for part in parts]
    assert classes == [set(true.CLASSES[:98]) & classes[0], set(true.CLASSES[98:])]
    assert len(setsup.load("cars196", release[0], split="test")) == 16


def test_margin_size_and_jitter(release, cars):
    folder, rows = release
    wide = cars196.open(folder, size=(40, 60), margin=0.1)
    left, top, right, bottom = rows[3]["box"]
    across, down = 0.1 * (right - left + 1), 0.1 * (bottom - top + 1)
    picture = Image.open(folder / rows[3]["file"])
    sides = (left - 1 - across, top - 1 - down, right + across, bottom + down)
    clipped = tuple(np.clip(sides, 0, [*picture.size, *picture.size]))
    cut = picture.resize((60, 40), Image.Resampling.BILINEAR, clipped)
    found = wide.fetch(3)["image"]
    assert found.shape == wide.modalities["image"].shape == (40, 60, 3)
    assert np.abs(found.astype(int) - np.asarray(cut).astype(int)).mean() < 2
    moved = [cars196.open(folder, jitter=0.1, seed=seed).fetch([3, 4, 3])["image"] for seed in (0, 0, 1)]
    assert np.array_equal(moved[0], moved[1])
    assert np.array_equal(moved[0][0], moved[0][2])
    assert not np.array_equal(moved[0], moved[2])
    assert not np.array_equal(moved[0], cars.fetch([3, 4, 3])["image"])
    for options in ({"size": (0, 1)}, {"margin": -1}, {"jitter": 0.5}):
        with pytest.raises(DataError, match="must be"):
            cars196.open(folder, **options)


def test_a_noted_orientation_does_not_turn_the_box(mine, release):
    row = release[1][7]
    plain = cars196.open(mine).fetch(7)["image"]
    noted = Image.Exif()
    noted[0x0112] = 6
    content = (mine / row["file"]).read_bytes()
    block = b"Exif\0\0" + noted.tobytes().removeprefix(b"Exif\0\0")
    marked = content[:2] + b"\xff\xe1" + (len(block) + 2).to_bytes(2, "big") + block + content[2:]
    (mine / row["file"]).write_bytes(marked)
    with Image.open(mine / row["file"]) as picture:
        assert picture.getexif()[0x0112] == 6
    assert np.array_equal(cars196.open(mine).fetch(7)["image"], plain)


@pytest.mark.parametrize("packing", ["zip", "tar", "nested", "folders above"])
def test_copies(tmp_path, release, cars, packing):
    folder, root = release[0], tmp_path
    if packing == "zip":
        root = tmp_path / "cars196.zip"
        with zipfile.ZipFile(root, "w") as file:
            for path in folder.rglob("*.*"):
                file.write(path, f"stanford_cars/{path.relative_to(folder)}")
    elif packing == "tar":
        with tarfile.open(tmp_path / "cars.tar", "w") as file:
            file.add(folder, "stanford_cars")
    elif packing == "nested":
        for part in ("cars_train", "cars_test"):
            shutil.copytree(folder / part, tmp_path / part / part)
        shutil.copytree(folder / "devkit", tmp_path / "car_devkit" / "devkit")
        shutil.copy(folder / "cars_test_annos_withlabels.mat", tmp_path)
    else:
        shutil.copytree(folder, tmp_path / "some folder" / "stanford_cars")
    found = setsup.load("cars196", root)
    assert found.factors.values("model_class").tolist() == cars.factors.values("model_class").tolist()
    assert np.array_equal(found.fetch([1, 47])["image"], cars.fetch([1, 47])["image"])
    assert np.array_equal(pickle.loads(pickle.dumps(found)).fetch(9)["image"], cars.fetch(9)["image"])


def test_pictures_that_are_not_there(mine, caplog):
    shutil.rmtree(mine / "cars_test")
    (mine / "cars_train" / "00003.jpg").unlink()
    with caplog.at_level(logging.WARNING, "setsup"):
        found = cars196.open(mine)
    assert "17 of the 48 listed images are missing (cars_train/00003.jpg, cars_test/00001.jpg" in caplog.text
    assert len(found) == 31
    assert "cars_train/00003.jpg" not in found.factors["file"].levels
    for path in (mine / "cars_train").iterdir():
        path.rename(path.with_name(f"9{path.name[1:]}"))
    with pytest.raises(DataError, match="none of the 48 listed images"):
        cars196.open(mine)


def _with(mine, **changed):
    rows = [{"box": [1, 2, 30, 40], "class": 1, "file": "cars_train/00001.jpg"} | changed]
    true.save(mine / "devkit" / "cars_train_annos.mat", rows)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"box": [9, 2, 3, 40]}, "right of at least left"),
        ({"box": [0, 2, 3, 40]}, "left and top of at least 1"),
        ({"class": 103}, "expected 1 to 102"),
        ({"class": 0}, "expected 1 to 102"),
        ({"file": "../../etc/x"}, "expected a file name that matches"),
        ({"file": "a/b/..jpg"}, "expected a file name that matches"),
    ],
)
def test_what_cannot_be(mine, changed, why):
    _with(mine, **changed)
    with pytest.raises(DataError, match=why) as found:
        cars196.open(mine)
    assert "cars_train_annos.mat" in str(found.value)


def test_a_box_outside_of_its_picture(mine):
    _with(mine, box=[5000, 2, 5100, 40])
    found = cars196.open(mine)
    with pytest.raises(DataError, match=r"00001\.jpg \(row 0\): the box .* lies outside the image of 300 × 150 pixels"):
        found.fetch(0)


def test_files_that_are_missing_or_others(mine, tmp_path):
    shutil.copy(mine / "devkit" / "cars_meta.mat", mine / "devkit" / "cars_train_annos.mat")
    with pytest.raises(DataError, match="no variable annotations"):
        cars196.open(mine)
    _with(mine)
    (mine / "devkit" / "cars_meta.mat").unlink()
    with pytest.raises(DataError, match=r"cars_meta\.mat is missing next to"):
        cars196.open(mine)
    with pytest.raises(DataError, match="setsup fetch cars196"):
        cars196.open(tmp_path / "nothing")


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("file", ["devkit/cars_train_annos.mat", "devkit/cars_meta.mat"])
def test_damaged_annotations(mine, file):
    path = mine / file
    variable = "class_names" if "meta" in file else "annotations"
    plain = io.BytesIO()
    content = scipy.io.loadmat(path)
    scipy.io.savemat(plain, {variable: content[variable]})  # uncompressed, so that damage meets the content

    def read(content):
        path.write_bytes(content)
        return cars196.open(mine)

    assert survives(plain.getvalue(), read, 30, slack=20 << 20) > 10
