"""What lies among a user's images: sheets that setsup wrote, and tables that it does not read."""

import logging
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from setsup.files.outputs import is_output, mark_png
from setsup.reports import Sheet


@pytest.fixture
def photos(tmp_path):
    """Two subjects with three images each, and a table of them."""
    lines = ["image,subject"]
    for subject in ("ann", "bob"):
        (tmp_path / subject).mkdir()
        for number in range(3):
            Image.new("RGB", (8, 6), (40 * number, 0, 0)).save(tmp_path / subject / f"{number}.png")
            lines.append(f"{subject}/{number}.png,{subject}")
    (tmp_path / "photos.csv").write_text("\n".join(lines))
    return tmp_path


def sheet(of: Path) -> Sheet:
    return setsup.show(setsup.open(of), [0, 1])


def levels(folder):
    return setsup.open(folder).factors["folder"].levels


@pytest.mark.parametrize("name", ["setsup-samples/sheet.png", "any/name.PNG", "sheet.png", "ann/mine.png"])
def test_a_sheet_is_left_out_whatever_its_name(photos, caplog, name):
    place = photos / name
    place.parent.mkdir(exist_ok=True)
    content = sheet(photos / "photos.csv").encode("png")
    caplog.clear()
    place.write_bytes(content)
    with caplog.at_level(logging.INFO):
        dataset = setsup.open(photos)
    assert (dataset.factors["folder"].levels, len(dataset)) == (("ann", "bob"), 6)
    assert [one.getMessage() for one in caplog.records if "written by setsup" in one.getMessage()] == [
        f"{photos}: skipping files written by setsup: {name}"
    ]


def test_images_of_ones_own_beside_it_stay(photos):
    (photos / "setsup-samples").mkdir()
    sheet(photos / "photos.csv").save(photos / "setsup-samples" / "sheet.png")
    shutil.copy(photos / "ann" / "0.png", photos / "setsup-samples" / "sheet-2.png")
    assert levels(photos) == ("ann", "bob", "setsup-samples")
    assert len(setsup.open(photos)) == 7


def test_in_archives_too(photos):
    sheet(photos / "photos.csv").save(photos / "ann" / "overview.png")
    for form in ("zip", "tar"):
        shutil.make_archive(str(photos.parent / "packed"), form, photos)
        assert len(setsup.open(photos.parent / f"packed.{form}")) == 6


def test_with_a_pattern_too(photos):
    sheet(photos / "photos.csv").save(photos / "ann" / "3.png")
    assert len(setsup.open(photos, pattern="{subject}/{number:d}.png")) == 6


def test_among_many_images_it_is_found_by_its_mark(photos, monkeypatch):
    monkeypatch.setattr("setsup.datasets.own.beside._LOOKED_AT", 4)
    (photos / "few").mkdir()
    for name in ("few/some.png", "ann/sheet.png"):
        sheet(photos / "photos.csv").save(photos / name)
    assert len(setsup.open(photos)) == 6


def test_a_folder_of_nothing_else_is_none_of_images(photos):
    shutil.rmtree(photos / "ann")
    content = setsup.show(setsup.load("shapes3d-procedural"), [0]).encode("png")
    for number in range(3):
        (photos / "bob" / f"{number}.png").write_bytes(content)
    with pytest.raises(
        DataError, match=r"contains only images written by setsup: bob/0.png, .*setsup.open\('.*photos.csv'\)"
    ):
        setsup.open(photos)


def test_the_mark_is_a_text_chunk_that_other_programs_read(tmp_path):
    made = setsup.show(setsup.load("shapes3d-procedural"), [0, 1])
    made.save(tmp_path / "made.png")
    with Image.open(tmp_path / "made.png") as found:
        assert found.info["Software"] == "setsup"
        assert np.array_equal(np.asarray(found), np.asarray(made.image))
    plain = tmp_path / "plain.png"
    made.image.save(plain)
    assert not is_output(plain.read_bytes())
    assert is_output(mark_png(plain.read_bytes()))


def test_a_set_of_shards_in_the_folder_does_not_hide_the_images(photos):
    setsup.shards.write_shards(setsup.open(photos / "photos.csv"), photos / "shards")
    assert levels(photos) == ("ann", "bob")


# -- tables that are not read ------------------------------------------------------------------------------------------


def said(caplog):
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_a_table_in_the_folder_is_named(photos, caplog):
    setsup.open(photos)
    table = photos / "photos.csv"
    assert said(caplog) == [
        f"{photos}: factors are parsed from paths, not read from {table}; setsup.open({str(table)!r}) opens the images "
        "listed in a table, with its columns as factors"
    ]
    assert setsup.open(table).factors.names == ("subject",)


def test_draws_are_no_such_table(photos, caplog):
    (photos / "photos.csv").unlink()
    (photos / "draws.jsonl").write_text('{"setsup": "0.1.0", "format": 1}\n')
    (photos / "notes.txt").write_text("by the window")
    setsup.open(photos)
    assert not said(caplog)


def split_folder(top):
    """As ``datasets`` has them: train/metadata.csv and test/metadata.csv beside their images."""
    for split, rows in (("train", 3), ("test", 2)):
        (top / split).mkdir(parents=True)
        lines = ["file_name,subject,light"]
        for row in range(rows):
            Image.new("L", (8, 8), 20 * row).save(top / split / f"{row:04}.png")
            lines.append(f"{row:04}.png,{'ab'[row % 2]},{row}")
        (top / split / "metadata.csv").write_text("\n".join(lines))
    return top


def test_metadata_by_split(tmp_path, caplog):
    folder = split_folder(tmp_path / "by_split")
    dataset = setsup.open(folder)
    assert not said(caplog)
    assert dataset.factors.names == ("subject", "light", "split")
    assert len(setsup.open(folder, split="test")) == 2
    paths = setsup.open(folder, pattern="{split}/{number:d}.png")
    (message,) = said(caplog)
    assert f"{folder}/test/metadata.csv, {folder}/train/metadata.csv" in message
    assert paths.factors.names == ("split", "number")
    assert setsup.open(folder / "train" / "metadata.csv").factors.names == ("subject", "light")


def test_metadata_for_folders_of_classes(tmp_path, caplog):
    names = ["dog/0.jpg", "cat/1.jpg", "dog/2.jpg", "cat/3.jpg"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (8, 8)).save(tmp_path / name)
    lines = [f"{name},{age}" for age, name in enumerate(names)]
    (tmp_path / "metadata.csv").write_text("\n".join(["file_name,age", *lines]))
    assert setsup.open(tmp_path).factors["age"].levels == (0, 1, 2, 3)
    assert setsup.open(tmp_path / "metadata.csv").factors["age"].levels == (0, 1, 2, 3)
    assert not said(caplog)
    assert setsup.open(tmp_path, pattern="{class}/...").factors["class"].levels == ("cat", "dog")
    assert f"{tmp_path}/metadata.csv" in said(caplog)[0]


def test_zipped_images_beside_metadata(tmp_path):
    lines = []
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as packed:
        for row in range(4):
            Image.new("L", (8, 8)).save(tmp_path / "one.png")
            packed.write(tmp_path / "one.png", f"ph_{row}.png")
            lines.append(f'{{"file_name": "ph_{row}.png", "subject": "{"ab"[row % 2]}"}}')
    (tmp_path / "one.png").unlink()
    (tmp_path / "metadata.jsonl").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"metadata\.jsonl.*images\.zip"):
        setsup.open(tmp_path)
    with pytest.raises(DataError, match=r"4 image files are missing.*images\.zip contains ph_0\.png; unpack it"):
        setsup.open(tmp_path / "metadata.jsonl")
    with pytest.raises(DataError, match=r"metadata\.jsonl"):
        setsup.open(tmp_path / "images.zip")
    shutil.unpack_archive(tmp_path / "images.zip", tmp_path)
    assert setsup.open(tmp_path / "metadata.jsonl").factors["subject"].levels == ("a", "b")


def test_a_table_within_an_archive(tmp_path, caplog):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        for row in range(4):
            Image.new("L", (8, 8)).save(tmp_path / "one.png")
            packed.write(tmp_path / "one.png", f"{'ab'[row % 2]}/{row}.png")
        packed.writestr("metadata.csv", "file_name,age\na/0.png,3\nb/1.png,4\na/2.png,5\nb/3.png,6\n")
    assert setsup.open(tmp_path / "x.zip").factors["age"].levels == (3, 4, 5, 6)
    assert not said(caplog)
    setsup.open(tmp_path / "x.zip", pattern="{class}/...")
    (sentence,) = said(caplog)
    assert "metadata.csv" in sentence
    assert "unpack the archive and open the table" in sentence
    shutil.unpack_archive(tmp_path / "x.zip", tmp_path / "x")
    assert setsup.open(tmp_path / "x" / "metadata.csv").factors["age"].levels == (3, 4, 5, 6)
