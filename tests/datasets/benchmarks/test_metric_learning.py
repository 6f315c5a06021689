"""CUB-200-2011, Stanford Online Products, VeRi-776 and In-Shop: rows equal to what their lists and names say."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from tests.true_files import cub200, in_shop, online_products, veri776


def test_cub200(tmp_path):
    cub200.write(tmp_path)
    found, lines = setsup.load("cub200", tmp_path), cub200.lines()
    table = found.factors
    assert table.values("species").tolist() == [cub200.SPECIES[label] for _, _, label, _ in lines]
    assert table.values("split").tolist() == ["train" if train else "test" for *_, train in lines]
    assert table.values("retrieval").tolist() == ["train" if label <= 100 else "test" for _, _, label, _ in lines]
    for row in range(0, len(lines), 5):
        expected = Image.open(tmp_path / "CUB_200_2011" / "images" / lines[row][1]).convert("RGB")
        assert np.array_equal(found.fetch(row)["image"], np.asarray(expected))
    test = setsup.load("cub200", tmp_path, split="retrieval-test")
    assert set(test.factors.values("species")) == {"101.White_Pelican", "200.Common_Yellowthroat"}
    (tmp_path / "CUB_200_2011" / "train_test_split.txt").unlink()
    assert setsup.load("cub200", tmp_path).factors.names[:3] == ("species", "number", "retrieval")


def test_lists_of_cub200_are_read_by_the_number_of_the_image(tmp_path, caplog):
    cub200.write(tmp_path)
    place = tmp_path / "CUB_200_2011" / "image_class_labels.txt"
    place.write_text("".join(reversed(place.read_text().splitlines(keepends=True))))
    found, lines = setsup.load("cub200", tmp_path), cub200.lines()
    assert found.factors.values("retrieval").tolist() == ["train" if line[2] <= 100 else "test" for line in lines]
    (tmp_path / "CUB_200_2011" / "images" / lines[0][1]).unlink()
    assert len(setsup.load("cub200", tmp_path)) == len(lines) - 1
    assert "1 of the 24 listed images are missing" in caplog.text
    for text, words in (
        ("1 1\n", "has no entry for image 2"),
        ("1\n", "line 1 is .*; expected the number"),
        ("1 x\n" * 24, "line 1 is .*; expected the number"),
    ):
        place.write_text(text)
        with pytest.raises(DataError, match=words):
            setsup.load("cub200", tmp_path)


def test_online_products(tmp_path):
    online_products.write(tmp_path)
    found = setsup.load("online-products", tmp_path)
    lines = [(part, *line) for part in ("train", "test") for line in online_products.lines(part)]
    table = found.factors
    assert table.values("split").tolist() == [line[0] for line in lines]
    assert table.values("product").tolist() == [line[2] for line in lines]
    assert table.values("category").tolist() == [line[4].split("_final")[0] for line in lines]
    with zipfile.ZipFile(tmp_path / "Stanford_Online_Products.zip") as file:
        for row in range(0, len(lines), 5):
            content = file.read(f"Stanford_Online_Products/{lines[row][4]}")
            expected = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
            assert np.array_equal(found.fetch(row)["image"], expected)
    assert len(setsup.load("online-products", tmp_path, split="test")) == 24


def test_damaged_lists_of_online_products(tmp_path):
    folder = tmp_path / "Stanford_Online_Products"
    (folder / "mug_final").mkdir(parents=True)
    (folder / "mug_final" / "1_0.JPG").write_bytes(b"")
    header = "image_id class_id super_class_id path\n"
    for text, words in (
        ("", "begins with ''"),
        ("path\n", "begins with 'path'"),
        (header + "1 1 1\n", "line 2 is .*; expected an image"),
        (header + "1 one 1 mug_final/1_0.JPG\n", "line 2 is .*; expected an image"),
        (header + "1 1 1 mug_final/2_0.JPG\n", "contains none of the 1 listed images"),
    ):
        (folder / "Ebay_train.txt").write_text(text)
        with pytest.raises(DataError, match=words):
            setsup.load("online-products", tmp_path)


def test_veri776(tmp_path):
    veri776.write(tmp_path)
    found, names = setsup.load("veri776", tmp_path), veri776.names()
    for column, factor in enumerate(("vehicle", "camera", "frame"), 2):
        assert found.factors.values(factor).tolist() == [name[column] for name in names]
    assert found.factors.values("split").tolist() == [name[0] for name in names]
    for row in range(0, len(names), 4):
        place = tmp_path / "VeRi" / veri776.FOLDERS[names[row][0]] / names[row][1]
        assert np.array_equal(found.fetch(row)["image"], np.asarray(Image.open(place).convert("RGB")))
    # what re-identification asks for: the same vehicle before another camera
    orbits = setsup.OrbitSampler(found.where("split == 'train'").factors, "vehicle", sets=2, size=3, seed=0)
    cameras = found.factors.codes("camera", orbits[0].indices)
    assert all(len(set(each)) == 3 for each in cameras.tolist())


def test_in_shop(tmp_path):
    in_shop.write(tmp_path)
    found, lines = setsup.load("in-shop", tmp_path), in_shop.lines()
    table = found.factors
    assert table.values("item").tolist() == [item for _, item, _ in lines]
    assert table.values("split").tolist() == [part for *_, part in lines]
    assert table.values("gender").tolist() == [path.split("/")[1] for path, *_ in lines]
    assert table.values("kind").tolist() == [path.split("/")[2] for path, *_ in lines]
    assert table.values("view").tolist() == [path.rpartition("_")[2].removesuffix(".jpg") for path, *_ in lines]
    for row in range(0, len(lines), 7):
        expected = Image.open(tmp_path / "Img" / lines[row][0]).convert("RGB")
        assert np.array_equal(found.fetch(row)["image"], np.asarray(expected))
    place = tmp_path / "Eval" / "list_eval_partition.txt"
    whole = place.read_text()
    for text, words in (
        (whole.replace("40\n", "41\n", 1), "specifies 41 rows in line 1, but has 40"),
        (whole.replace(" train", " trian", 1), "line 3 is .*; expected a path"),
        (whole.partition("\n")[2], "must begin with the number of rows"),
        ("", "must begin with the number of rows"),
    ):
        place.write_text(text)
        with pytest.raises(DataError, match=words):
            setsup.load("in-shop", tmp_path)
