"""Releases that lie in several archives, or partly unpacked: all of it is read, or what is left out is said."""

import importlib
import logging
import pickle
import zipfile
from hashlib import sha256

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from tests.datasets.test_benchmarks import NAMES


def written(name, folder):
    folder.mkdir()
    importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").write(folder)
    return folder


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def pack(folder, files, name):
    """Move files of a folder into a zip there."""
    with zipfile.ZipFile(folder / name, "w") as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))
            file.unlink()


def pixels(dataset):
    """What each row shows, by its file's own path, which no packing changes; of a large release every 32nd row."""
    rows = np.arange(0, len(dataset), 32 if len(dataset) > 10_000 else 1)
    images = (dataset.fetch([row])["image"] for row in rows)
    return {path: sha256(image).digest() for path, image in zip(dataset.paths(rows), images, strict=True)}


CASES = {
    "mvimgnet": ("mvi_00.zip", "mvi_01.zip"),
    "co3d": ("apple_000.zip", "toybus_000.zip"),
    "spawrious": ("spawrious224__o2o_easy.zip", "spawrious224__m2m_hard.zip"),
    "shapenet": ("02691156.zip", "03001627.zip"),
    "cars196": ("cars_train.zip", "car_devkit.zip"),
    "multi-pie": ("session01.zip", "session02.zip"),
}
QUICK = ("mvimgnet", "co3d")
PARAMS = [pytest.param(name, marks=() if name in QUICK else pytest.mark.long("layouts")) for name in CASES]


@pytest.mark.parametrize("beside", ["two zips", "unpacked beside a zip", "folders of their own"])
@pytest.mark.parametrize("name", PARAMS)
def test_all_parts_are_read(name, beside, tmp_path, caplog):
    whole = setsup.load(name, written(name, tmp_path / "whole"))
    root = written(name, tmp_path / "parts")
    files = [file for file in files_of(root) if file.suffix not in (".zip", ".tar")]
    # every second file, so that the parts of one sequence lie in different places
    first, second = files[::2], files[1::2]
    if beside == "folders of their own":
        for number, part in enumerate((first, second)):
            for file in part:
                target = root / f"part{number}" / file.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                file.rename(target)
    else:
        pack(root, first, CASES[name][0])
        if beside == "two zips":
            pack(root, second, CASES[name][1])
    caplog.clear()
    found = setsup.load(name, root)
    assert len(found) == len(whole)
    assert found.factors.fingerprint == whole.factors.fingerprint
    assert "left out" not in caplog.text
    if "image" in whole.modalities and hasattr(whole, "paths"):
        assert list(pixels(found).values()) == list(pixels(whole).values())
    assert len(pickle.loads(pickle.dumps(found))) == len(whole)


def test_what_is_unpacked_comes_first(tmp_path):
    root = written("mvimgnet", tmp_path / "x")
    (image, *_) = sorted(root.rglob("*.jpg"))
    healthy = image.read_bytes()
    image.write_bytes(b"half of an image")
    with zipfile.ZipFile(root / "mvi_07.zip", "w") as archive:
        archive.write(image, image.relative_to(root))
    image.write_bytes(healthy)
    dataset = setsup.load("mvimgnet", root)
    assert dataset.fetch([0])["image"].dtype == np.uint8


def test_a_damaged_part_is_named(tmp_path, caplog):
    root = written("mvimgnet", tmp_path / "x")
    rows = len(setsup.load("mvimgnet", root))
    (root / "mvi_01.zip").write_bytes(b"PK\3\4 cut off")
    assert len(setsup.load("mvimgnet", root)) == rows
    assert "mvi_01.zip" in caplog.text
    assert "it is left out, and the files unpacked" in caplog.text
    pack(root, [file for file in files_of(root) if file.name != "mvi_01.zip"], "mvi_00.zip")
    with pytest.raises(DataError, match=r"mvi_01\.zip"):
        setsup.load("mvimgnet", root)


def test_names_beside_one_zip(tmp_path):
    root = written("mvimgnet", tmp_path / "x")
    expected = setsup.load("mvimgnet", root).factors["category"].levels
    (list_of_names,) = root.rglob("mvimgnet_category.txt")
    text = list_of_names.read_bytes()
    pack(root, files_of(root), "mvi_03.zip")
    (root / "mvimgnet_category.txt").write_bytes(text)
    assert setsup.load("mvimgnet", root).factors["category"].levels == expected


@pytest.mark.parametrize("name", ["vlcs", "pacs", "office-home"])
def test_a_domain_unpacked_beside_the_archive(name, tmp_path):
    archive = {"vlcs": "VLCS.zip", "pacs": "PACS.zip", "office-home": "office_home.zip"}[name]
    whole = setsup.load(name, written(name, tmp_path / "whole"))
    root = written(name, tmp_path / "parts")
    images = [file for file in files_of(root) if file.suffix in (".jpg", ".png")]
    pack(root, images[::2], archive)
    assert setsup.load(name, root).factors.fingerprint == whole.factors.fingerprint


def test_what_is_left_out_is_said(tmp_path, caplog):
    root = written("chairs3d", tmp_path / "x")
    with zipfile.ZipFile(root / "more.zip", "w") as archive:
        archive.writestr("rendered_chairs/another/renders/image_000_p020_t000_r096.png", b"x")
    with caplog.at_level(logging.WARNING, "setsup"):
        setsup.load("chairs3d", root)
    assert "more.zip contains files of the dataset that" in caplog.text
    assert "they are left out; unpack them" in caplog.text


def test_a_copy_beside_is_no_part(tmp_path, caplog):
    """A zip that was unpacked, and left beside."""
    root = written("clevr", tmp_path / "x")
    files = files_of(root)
    with zipfile.ZipFile(root / "CLEVR_v1.0.zip", "w") as archive:
        for file in files:
            archive.write(file, file.relative_to(root))
    rows = len(setsup.load("clevr", root))
    assert "left out" not in caplog.text
    assert rows == len(setsup.load("clevr", written("clevr", tmp_path / "y")))


ALL = [
    pytest.param(name, marks=() if name in ("in-shop", "falcor3d") else pytest.mark.long("layouts")) for name in NAMES
]


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_said_of_a_whole_release(name, tmp_path, caplog):
    setsup.load(name, written(name, tmp_path / "x"))
    assert "they are left out: unpack" not in caplog.text


def test_an_unpacked_part_in_a_folder_of_the_name(tmp_path, caplog):
    """The archive lies around the folder that is opened first."""
    root = written("edges2shoes", tmp_path / "x")
    images = [file for file in files_of(root) if file.suffix == ".jpg"]
    pack(root, images[::2], "edges2shoes.zip")
    setsup.load("edges2shoes", root)
    assert "edges2shoes.zip contains files of the dataset that" in caplog.text
    assert f"({len(images[::2])}, such as" in caplog.text
