"""Which zips and tars are datasets of images, and what is said of others."""

import io
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from setsup.opening import find_kind
from tests.files.archives.release_files import folder_of, gz_of, tar_of, zip_of


def png() -> bytes:
    content = io.BytesIO()
    Image.new("L", (4, 3), 9).save(content, "PNG")
    return content.getvalue()


PETS = {"cats/1.png": png(), "dogs/1.png": png(), "labels.txt": b"cats dogs"}
SAMPLES = {f"{key}.{ending}": png() if ending == "png" else b"1" for key in "abc" for ending in ("cls", "json", "png")}


@pytest.mark.parametrize("write", [zip_of, tar_of])
def test_images_in_folders_are_a_dataset(write: type, tmp_path: Path) -> None:
    for name in ("pets.zip", "pets.tar", "pets.data"):
        path = write(PETS, tmp_path / name)
        if name != "pets.data":  # whose name does not say what it is
            assert find_kind(path) == find_kind(str(path)) == "images"
        assert setsup.open(path, kind="images").factors.values("folder").tolist() == ["cats", "dogs"]


def test_the_tars_of_webdataset_are_one_of_many(tmp_path: Path) -> None:
    said = re.escape(
        f"N.tar is a single tar, not a dataset; pass the folder that contains it, {tmp_path} (`setsup index"
    )
    for number, files in enumerate(
        (
            SAMPLES,
            {f"train/{name}": content for name, content in SAMPLES.items()},
            {"a.npy": b"1", "b.npy": b"2"},
            {**SAMPLES, "d.png": png()},
        )
    ):
        with pytest.raises(DataError, match=said.replace("N", str(number), 1)):
            setsup.open(tar_of(files, tmp_path / f"{number}.tar"))
    # a few notes next to images are no samples; the labels of a detector lie in a folder of their own
    notes = {f"a/{n}.png": png() for n in range(4)} | {"a/1.txt": b"blurred", "b/1.png": png()}
    boxes = {f"images/{n}.png": png() for n in range(4)} | {f"labels/{n}.txt": b"0 0 1 1" for n in range(4)}
    for name, files in {"notes": notes, "boxes": boxes}.items():
        assert find_kind(tar_of(files, tmp_path / f"{name}.tar")) == "images"
    samples = setsup.open(tmp_path / "0.tar", pattern="{key}")
    assert samples.factors.values("key").tolist() == ["a", "b", "c"]
    assert find_kind(zip_of(SAMPLES, tmp_path / "0.zip")) == "images"  # samples lie in tars only


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        (
            "a.zip",
            {"a.txt": b"1"},
            r"a\.zip is a zip that contains no images; to open the files of a benchmark, pass its name, with",
        ),
        ("a.zip", {}, r"a\.zip is a zip that contains no images"),
        (
            "a.zip",
            {"shapes/rendered.json": b"{}", "shapes/1.png": b"1"},
            r"is a zip that contains a dataset \(shapes/rendered\.json\)",
        ),
        (
            "a.tar",
            {"shards.json": b"{}", "0.tar": b"1"},
            r"is a tar that contains a dataset \(shards\.json\); unpack it",
        ),
    ],
)
def test_other_archives_are_one_sentence(name: str, files: Mapping[str, bytes], said: str, tmp_path: Path) -> None:
    path = (zip_of if name.endswith(".zip") else tar_of)(files, tmp_path / name)
    with pytest.raises(DataError, match=said):
        setsup.open(path)


def test_archives_that_cannot_be_read_in_place(tmp_path: Path) -> None:
    packed = gz_of(PETS, tmp_path / "pets.tar.gz")
    said = (
        r"pets\.tar\.gz is compressed with gzip as a whole, .*; unpack it \(tar -xf pets\.tar\.gz\) and pass the folder"
    )
    with pytest.raises(DataError, match=said):
        setsup.open(packed)
    (tmp_path / "pets.7z").write_bytes(b"7z\xbc\xaf'\x1c" + bytes(600))
    with pytest.raises(DataError, match="is a 7z archive, which is not supported; unpack it and pass the folder"):
        setsup.open(tmp_path / "pets.7z")
    whole = zip_of(PETS, tmp_path / "whole.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:-30])
    with pytest.raises(DataError, match=r"cut\.zip is truncated"):
        setsup.open(tmp_path / "cut.zip")
    for absent in ("absent.tar", "absent.zip"):
        with pytest.raises(DataError, match=f"^{absent} does not exist"):
            setsup.open(absent)
    (tmp_path / "notes.md").write_text("# notes")
    with pytest.raises(DataError, match=r"notes\.md is a file, but not a table"):
        setsup.open(tmp_path / "notes.md")


def test_a_folder_of_images_deep_below(tmp_path: Path) -> None:
    folder = folder_of({"a/b/c/d/e/1.png": png(), "a/b/c/d/f/1.png": png(), "a/x.txt": b""}, tmp_path / "x")
    assert find_kind(folder) == "images"
    (folder / "a" / "loop").symlink_to(folder)  # is entered no further than it leads somewhere new
    assert len(setsup.open(folder)) == 2
    shutil.rmtree(folder / "a" / "b")
    with pytest.raises(DataError, match=r"expected a rendered dataset .* or images"):
        setsup.open(folder)
