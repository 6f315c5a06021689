"""Files of a repository cloned without Git LFS: each is a pointer of three lines, and all readers say so."""

import importlib
import shutil
import zipfile
from pathlib import Path

import pytest

import setsup
from setsup.datasets.formats.video.decoder import find_index
from setsup.errors import DataError
from setsup.files.lfs import refuse_pointer
from setsup.scenes import load_mesh
from setsup.shards import index_shards

POINTER = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345
"""
SAID = "is a Git LFS pointer, not the file itself; run `git lfs pull` in its repository"


@pytest.fixture
def clone(tmp_path):
    """What Git gives without Git LFS, with the text files that are no pointers."""
    for name in ("m.zip", "m.tar", "m.obj", "m.glb", "m.ply", "m.npz", "m.npy", "m.parquet", "m.csv", "m.jsonl"):
        (tmp_path / name).write_bytes(POINTER)
    (tmp_path / "m.mp4").write_bytes(POINTER)
    (tmp_path / "3dshapes.h5").write_bytes(POINTER)
    (tmp_path / "tars").mkdir()
    (tmp_path / "tars" / "a.tar").write_bytes(POINTER)
    (tmp_path / "train").mkdir()
    for name in ("0.png", "1.png"):
        (tmp_path / "train" / name).write_bytes(POINTER)
    lines = [f'{{"file_name": "{row}.png", "kind": "{row}"}}\n' for row in range(2)]
    (tmp_path / "train" / "metadata.jsonl").write_text("".join(lines))
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        *("m.zip", "m.tar", "m.obj", "m.glb", "m.ply", "m.npz", "m.npy", "m.parquet", "m.csv", "m.jsonl"),
        *("3dshapes.h5", "train", "train/metadata.jsonl"),
    ],
)
def test_opening_one_says_so(clone, name):
    with pytest.raises(DataError, match=SAID):
        setsup.open(clone / name)


def test_images_among_folders_say_so(clone):
    shutil.copytree(clone / "train", clone / "images" / "a")
    shutil.copytree(clone / "train", clone / "images" / "b")
    with pytest.raises(DataError, match=SAID):
        setsup.open(clone / "images")


@pytest.mark.parametrize("name", ["photos.csv", "a.zip", "3dshapes.h5", "data/train.parquet", "deep/down/0.npy"])
def test_folders_of_nothing_else_say_so(tmp_path, name):
    file = tmp_path / "clone" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(POINTER)
    (tmp_path / "clone" / "README.md").write_text("# Data")
    with pytest.raises(DataError, match=f"{file.name} {SAID}"):
        setsup.open(tmp_path / "clone")


def test_so_do_other_readers(clone):
    with pytest.raises(DataError, match=SAID):
        index_shards(clone / "tars")
    with pytest.raises(DataError, match=SAID):
        load_mesh(clone / "m.obj")
    with pytest.raises(DataError, match=SAID):
        setsup.load("shapes3d", clone)
    with pytest.raises(DataError, match=SAID):
        find_index(clone / "m.mp4", "m.mp4")


def test_an_archive_that_a_host_packed_has_pointers_in_it(clone):
    with zipfile.ZipFile(clone / "packed.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("a/0.png", "b/0.png"):
            file.writestr(name, POINTER)
    with pytest.raises(DataError, match=SAID):
        setsup.open(clone / "packed.zip")


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize(
    "name", ["mnist", "smallnorb", "dsprites", "stl10", "celeba", "scenenn", "cifar100", "svhn", "usps"]
)
def test_each_file_of_a_benchmark_says_so(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "root"
    root.mkdir()
    importlib.import_module(f"tests.true_files.{name}").write(root)
    needed = 0
    for number, file in enumerate(sorted(path for path in root.rglob("*") if path.is_file())[:8]):
        content = file.read_bytes()
        file.write_bytes(POINTER)
        monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / f"cache{number}"))
        try:
            dataset = setsup.load(name, root)
            for row in range(len(dataset)):
                dataset.fetch(row)
        except DataError as error:
            assert SAID in str(error)  # noqa: PT017  which files can be done without is the benchmark's
            needed += 1
        file.write_bytes(content)
    assert needed


def test_large_files_and_what_is_no_file_pass(tmp_path):
    (tmp_path / "large.bin").write_bytes(POINTER + bytes(2000))
    (tmp_path / "other.txt").write_text("version https://github.com\n")
    for name in ("large.bin", "other.txt", "missing"):
        refuse_pointer(tmp_path / name)
    refuse_pointer(Path(tmp_path))
