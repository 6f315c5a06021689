import csv
import logging
import pickle
import shutil
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.io
from PIL import Image

import setsup
from setsup.datasets.benchmarks import ut_zap50k
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import ut_zap50k as true


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ut-zap50k")
    return folder, true.write(folder)


@pytest.fixture(scope="module")
def shoes(release):
    return ut_zap50k.open(release[0])


@pytest.fixture
def mine(release, tmp_path):
    """A copy of the release that a test may change."""
    return shutil.copytree(release[0], tmp_path / "copy")


def test_factors_are_the_columns(release, shoes):
    told = pd.read_csv(release[0] / "ut-zap50k-data" / "meta-data.csv", dtype=str)
    table = shoes.factors
    assert table.values("cid").tolist() == told["CID"].tolist()
    for factor, column in {
        **{"category": "Category", "subcategory": "SubCategory", "heel_height": "HeelHeight", "insole": "Insole"},
        **{"closure": "Closure", "gender": "Gender", "material": "Material", "toe_style": "ToeStyle"},
    }.items():
        first = [None if pd.isna(cell) else cell.split(";")[0] for cell in told[column]]
        assert table.values(factor).tolist() == first
        every = [() if pd.isna(cell) else tuple(cell.split(";")) for cell in told[column]]
        assert shoes.listed(range(len(shoes)), factor) == every
        assert table[factor].levels == tuple(sorted(set(first) - {None}))
    assert table["subcategory"].within == "category"
    part = shoes.where("closure == 'Zipper'")
    assert set(part.listed(range(len(part)), "closure")) == {("Zipper", "Lace up")}
    with pytest.raises(DataError, match="no column for 'materials'; did you mean 'material'"):
        shoes.listed([0], "materials")


@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize("listed", [True, False])
def test_brands_with_other_names_on_the_disk(mine, release, square, listed):
    if not listed:
        (mine / "ut-zap50k-data" / "image-path.mat").unlink()
    found = ut_zap50k.open(mine, square=square)
    rows = release[1]
    folder = mine / ("ut-zap50k-images-square" if square else "ut-zap50k-images")
    assert len(found) == len(rows)
    brands = found.factors.values("brand").tolist()
    if listed:
        assert brands == [row["brand"][0] for row in rows]
    elif square:  # what is escaped can be told; the plain folders have no dots at all
        assert brands == [row["brand"][0] for row in rows]
    else:
        assert set(brands) == {"Bostonian", "Neil M", "W.A.G", "Levi's®"}
    shape = (136, 136, 3) if square else (102, 136, 3)
    assert found.modalities["image"].shape == shape
    got = found.fetch(range(len(rows)))["image"]
    for turn, row in enumerate(rows):
        with Image.open(folder / true.file(row, 2 if square else 1)) as picture:
            assert np.abs(got[turn].astype(int) - np.asarray(picture)).max() <= 4


def test_sizes_and_shapes(shoes, release):
    small = ut_zap50k.open(release[0], size=(32, 32))
    assert small.fetch([[1, 2], [2, 1]])["image"].shape == (2, 2, 32, 32, 3)
    out = np.zeros((2, 102, 136, 3), np.uint8)
    shoes.fetch_into([3, 3], {"image": out})
    assert np.array_equal(out, shoes.fetch([3, 3])["image"])


def test_pictures_of_several_sizes(mine, release):
    path = mine / "ut-zap50k-images" / true.file(release[1][0], 1)
    Image.new("RGB", (100, 100)).save(path)
    found = ut_zap50k.open(mine)
    assert found.modalities["image"].shape == (None, None, 3)
    assert found.fetch(0)["image"].shape == (100, 100, 3)
    with pytest.raises(DataError, match="size="):
        found.fetch([0, 1])


@pytest.mark.parametrize("packing", ["zips", "one zip of images", "only square", "named"])
def test_copies(tmp_path, release, shoes, packing):
    folder, root = release[0], tmp_path
    if packing in ("zips", "one zip of images"):
        for part in ("ut-zap50k-images", "ut-zap50k-data"):
            with zipfile.ZipFile(tmp_path / f"{part}.zip", "w") as file:
                for path in (folder / part).rglob("*.*"):
                    if path.is_file():
                        file.write(path, path.relative_to(folder))
        root = tmp_path if packing == "zips" else tmp_path / "ut-zap50k-images.zip"
    elif packing == "only square":
        shutil.copytree(folder / "ut-zap50k-images-square", tmp_path / "ut-zap50k-images-square")
        shutil.copytree(folder / "ut-zap50k-data", tmp_path / "ut-zap50k-data")
    else:
        shutil.copytree(folder, tmp_path / "ut-zap50k" / "zappos_50k")
    found = setsup.load("ut-zap50k", root)
    assert found.factors.values("cid").tolist() == shoes.factors.values("cid").tolist()
    if packing == "only square":
        assert found.modalities["image"].shape == (136, 136, 3)
    else:
        assert np.array_equal(found.fetch([0, 47])["image"], shoes.fetch([0, 47])["image"])
    assert np.array_equal(pickle.loads(pickle.dumps(found)).fetch(3)["image"], found.fetch(3)["image"])


def test_that_a_cell_has_more_values_than_its_level_is_said(release, caplog):
    folder, rows = release
    with caplog.at_level(logging.WARNING, "setsup"):
        ut_zap50k.open(folder)
    said = [record.getMessage() for record in caplog.records if "several values" in record.getMessage()]
    assert len(said) == 1
    for factor, column in (("closure", "Closure"), ("material", "Material"), ("gender", "Gender")):
        assert f"{factor} in {sum(';' in row['values'][column] for row in rows)} rows" in said[0]
    assert "category" not in said[0]
    assert "listed(rows, factor) returns all" in said[0]


def test_pictures_that_are_not_there(mine, release, caplog):
    for row in release[1][1:3]:
        (mine / "ut-zap50k-images" / true.file(row, 1)).unlink()
    with caplog.at_level(logging.WARNING, "setsup"):
        found = ut_zap50k.open(mine)
    lost = [row["values"]["CID"] for row in release[1][1:3]]
    assert (
        f"2 of the {len(release[1])} listed images are missing ({lost[0]}, {lost[1]}); they are left out" in caplog.text
    )
    kept = [row["values"]["CID"] for row in release[1] if row["values"]["CID"] not in lost]
    assert found.factors.values("cid").tolist() == kept
    (mine / "ut-zap50k-data" / "image-path.mat").unlink()
    assert ut_zap50k.open(mine).factors.values("cid").tolist() == kept


def _rows(mine):
    with (mine / "ut-zap50k-data" / "meta-data.csv").open(newline="") as stream:
        return list(csv.reader(stream))


def _save(mine, rows):
    with (mine / "ut-zap50k-data" / "meta-data.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)


def test_a_column_without_values_is_no_factor(mine):
    rows = _rows(mine)
    _save(mine, [rows[0], *([*line[:4], "", *line[5:]] for line in rows[1:])])
    assert "insole" not in ut_zap50k.open(mine).factors


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: [], "must have exactly one column CID"),
        (lambda rows: rows[:1], "is empty"),
        (lambda rows: [[*rows[0][:-1], "Toe"], *rows[1:]], "must have exactly one column ToeStyle"),
        (lambda rows: [*rows[:5], rows[5][:-1], *rows[6:]], "row 4 has 8 cells; expected 9"),
        (lambda rows: [*rows, rows[-1]], "duplicate"),
        (lambda rows: rows[:-1], "48 images, but meta-data.csv has 47"),
        (lambda rows: [rows[0], *([f"9{line[0]}", *line[1:]] for line in rows[1:])], None),
    ],
)
def test_what_cannot_be(mine, change, why):
    _save(mine, change(_rows(mine)))
    if why is None:  # the list tells the pictures, whatever the ids are
        assert len(ut_zap50k.open(mine)) == 48
        (mine / "ut-zap50k-data" / "image-path.mat").unlink()
        why = "none of the 48 images"
    with pytest.raises(DataError, match=why):
        ut_zap50k.open(mine)


def test_files_that_are_missing(mine, tmp_path):
    with pytest.raises(DataError, match="setsup fetch ut-zap50k"):
        ut_zap50k.open(tmp_path / "nothing")
    (mine / "ut-zap50k-data" / "meta-data.csv").unlink()
    with pytest.raises(DataError, match=r"ut-zap50k-data/meta-data\.csv not found"):
        ut_zap50k.open(mine)


@pytest.mark.long("fuzzing")
def test_damaged_paths(mine):
    path = mine / "ut-zap50k-data" / "image-path.mat"
    content = scipy.io.loadmat(path)["imagepath"]
    scipy.io.savemat(path, {"imagepath": content})  # uncompressed, so that damage meets the content

    def read(content):
        path.write_bytes(content)
        return ut_zap50k.open(mine)

    assert survives(path.read_bytes(), read, 30, slack=20 << 20) > 2
