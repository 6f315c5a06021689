"""Published descriptions of image datasets, with small files of the stated form in place of their data.

The descriptions in ``croissant_published`` are those of github.com/mlcommons/croissant (Apache-2.0) at commit
401f6fff81db26a49c0d1704f02bffc4e4fa8fe2: ``datasets/1.0/NAME/metadata.json``, of ``image_test`` and
``huggingface-mnist-from-main-branch`` ``datasets/1.1/NAME/metadata.json``. Sizes and digests are replaced with those of
the small files.
"""

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError

PUBLISHED = Path(__file__).parent / "croissant_published"
GREYS = (10, 60, 110, 160, 210, 250)


def encoded(grey, kind="JPEG"):
    stream = io.BytesIO()
    Image.new("RGB", (8, 6), (grey, grey, grey)).save(stream, kind)
    return stream.getvalue()


def zipped(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def tarred(path, files):
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def description(folder, name):
    """Write a published description into a folder, with the sizes and digests of the files that are there."""
    document = json.loads((PUBLISHED / f"{name}.json").read_text("utf-8"))
    for node in document["distribution"]:
        file = folder / PurePosixPath(node.get("contentUrl", "none")).name
        if node["@type"] == "cr:FileObject" and file.is_file():
            node["contentSize"] = f"{file.stat().st_size} B"
            node["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (folder / "croissant.json").write_text(json.dumps(document), "utf-8")
    return folder / "croissant.json"


def grey_of(dataset, row, name):
    return round(float(dataset.fetch(row)[name].mean()))


def mnist(folder, names):
    """Parquet files as the Hub converts MNIST: images as structs of bytes and path."""
    for start, name in zip((0, 3), names, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        images = [{"bytes": encoded(grey, "PNG"), "path": None} for grey in GREYS[start : start + 3]]
        pq.write_table(pa.table({"image": images, "label": [start, 1, 2]}), folder / name)


@pytest.mark.parametrize("name", ["huggingface-mnist", "fashion-mnist"])
def test_parquet_files_of_a_repository(tmp_path, name):
    mnist(tmp_path, ["mnist/test/0000.parquet", "mnist/train/0000.parquet"])
    found = setsup.open(description(tmp_path, name), root=tmp_path)
    assert [grey_of(found, row, "image") for row in range(6)] == list(GREYS)
    assert found.factors.values("label").tolist() == [0, 1, 2, 3, 1, 2]
    if name == "huggingface-mnist":
        assert found.factors["split"].levels == ("train", "test")
        assert found.factors.values("split").tolist() == ["test"] * 3 + ["train"] * 3


def test_a_pattern_that_fits_no_name_leaves_the_value_unknown(tmp_path):
    mnist(tmp_path, ["mnist/test-00000-of-00001.parquet", "mnist/train-00000-of-00001.parquet"])
    found = setsup.open(description(tmp_path, "huggingface-mnist-from-main-branch"), root=tmp_path)
    assert found.factors.row(0)["split"] is None
    assert grey_of(found, 5, "image") == GREYS[5]


def test_images_of_a_zip_with_their_split_in_the_path(tmp_path):
    files = {f"train2014/COCO_train2014_{number:012}.jpg": encoded(grey) for number, grey in enumerate(GREYS)}
    (tmp_path / "data").mkdir()
    zipped(tmp_path / "data" / "train2014.zip", files)
    path = description(tmp_path, "coco2014-mini")
    document = json.loads(path.read_text())
    document["distribution"][0]["sha256"] = hashlib.sha256((tmp_path / "data/train2014.zip").read_bytes()).hexdigest()
    path.write_text(json.dumps(document))
    found = setsup.open(path)
    assert [grey_of(found, row, "image_content") for row in range(6)] == list(GREYS)
    assert found.factors["split"].levels == ("train", "val", "test")
    assert found.factors.row(0) == {"image_filename": "COCO_train2014_000000000000.jpg", "split": "train"}


def test_images_of_several_zips(tmp_path):
    for split, grey in zip(("train", "val", "test"), GREYS, strict=False):
        files = {f"{split}2014/COCO_{split}2014_{number:012}.jpg": encoded(grey + number) for number in range(2)}
        zipped(tmp_path / f"{split}2014.zip", files)
    found = setsup.open(description(tmp_path, "coco2014"), root=tmp_path)
    assert found.factors.values("split").tolist() == ["train", "train", "val", "val", "test", "test"]
    assert [grey_of(found, row, "image_content") for row in range(6)] == [10, 11, 60, 61, 110, 111]


@pytest.mark.parametrize(("name", "archives"), [("pass-mini", 2), ("pass", 10)])
def test_images_of_tars_joined_to_a_table(tmp_path, name, archives):
    folder = tmp_path if name == "pass" else tmp_path / "data"
    folder.mkdir(exist_ok=True)
    hashes = [f"{number:032x}" for number in range(2 * archives)]
    for archive in range(archives):
        files = {f"{archive}/{one}.jpg": encoded(20 + 2 * archive) for one in hashes[2 * archive : 2 * archive + 2]}
        tarred(folder / f"PASS.{archive}.tar", files)
    rows = [f"{one},user{at % 3},{at}.5,-{at}.25,2012-03-0{1 + at % 9} 10:00:00.0" for at, one in enumerate(hashes)]
    heads = "hash,unickname,latitude,longitude,datetaken"
    (folder / "pass_metadata.csv").write_text("\n".join([heads, *reversed(rows[1:])]) + "\n")
    path = description(folder, name)
    document = json.loads(path.read_text())
    for node in document["distribution"]:
        node["contentUrl"] = PurePosixPath(node.get("contentUrl", "")).name
    path.write_text(json.dumps(document))
    found = setsup.open(path)
    assert len(found) == 2 * archives
    assert found.factors.names == (
        "creator_uname", "gps_coordinates.latitude", "gps_coordinates.longitude", "date_taken",
    )  # fmt: skip
    assert found.factors.row(0)["creator_uname"] is None  # the first hash is not in the table
    for row in range(1, 2 * archives):
        assert found.factors.row(row)["creator_uname"] == f"user{row % 3}"
        assert found.factors.row(row)["gps_coordinates.latitude"] == row + 0.5
        assert grey_of(found, row, "image_content") == 20 + 2 * (row // 2)


def test_columns_that_are_lists_are_left_out(tmp_path):
    (tmp_path / "ai2d" / "lite").mkdir(parents=True)
    images = [{"bytes": encoded(grey, "PNG"), "path": None} for grey in GREYS[:3]]
    table = {
        "question": ["a", "b", "a"],
        "options": [["x"], ["y", "z"], []],
        "answer": ["0", "1", "1"],
        "image": images,
    }
    pq.write_table(pa.table({**table, "image": images}), tmp_path / "ai2d" / "lite" / "0000.parquet")
    path = description(tmp_path, "huggingface-lmms-eval-lite")
    found = setsup.open(path, root=tmp_path)  # the only one with images
    assert found.factors.values("question").tolist() == ["a", "b", "a"]
    assert "options" not in found.factors
    assert [grey_of(found, row, "image") for row in range(3)] == list(GREYS[:3])


@pytest.mark.parametrize("name", ["huggingface-the-cauldron", "image_test"])
def test_descriptions_without_one_image_and_columns_for_a_record_are_refused_by_name(tmp_path, name):
    with pytest.raises(DataError, match="has no record set with images and columns; its record sets are "):
        setsup.open(description(tmp_path, name), root=tmp_path)


def test_published_files_are_not_fetched_unless_it_is_asked(tmp_path):
    with pytest.raises(DataError, match=r"'train2014.zip'.* is not on this machine; download it from http://images"):
        setsup.open(description(tmp_path, "coco2014"))


def test_a_repository_is_cloned_by_the_user(tmp_path):
    with pytest.raises(DataError, match=r"'repo' is a Git repository, .*clone it, .* or open hf:ylecun/mnist"):
        setsup.open(description(tmp_path, "huggingface-mnist"))


def test_counts():
    assert len(list(PUBLISHED.glob("*.json"))) == 10
    assert all(json.loads(path.read_text("utf-8"))["recordSet"] for path in PUBLISHED.glob("*.json"))
