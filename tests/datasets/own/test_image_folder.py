"""Folders, zips and tars of images as users have them: torchvision's, WILDS', a camera's; and as they should not be."""

import logging
import os
import pickle
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets import Dataset, open_images
from setsup.datasets.formats import image_formats
from setsup.errors import DataError, FactorError
from setsup.factors import Kind

WILDS = [
    f"{domain}/{name}/{number}.jpg" for domain in ("photo", "sketch") for name in ("cat", "dog") for number in "12"
]
FACES = [
    f"{subject}/{light}_{yaw}.png" for subject in ("ann", "bob") for light in ("left", "right") for yaw in (-30, 5, 100)
]


def write(folder: Path, names: list[str]) -> Path:
    """Images whose grey value is 10 × their place in the sorted list."""
    for place, name in enumerate(sorted(names, key=str.encode)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 3), 10 * place).save(path)
    return folder


def zipped(folder: Path, top: str = "") -> Path:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for one in sorted(folder.rglob("*")):
            archive.write(one, top + one.relative_to(folder).as_posix())
    return path


def tarred(folder: Path, top: str = "./") -> Path:
    path = folder.with_suffix(".tar")
    with tarfile.open(path, "w") as archive:
        archive.add(folder, top or ".")
    return path


HOLDERS: Mapping[str, Callable[[Path], Path]] = {"folder": lambda folder: folder, "zip": zipped, "tar": tarred}


@pytest.fixture(params=HOLDERS)
def hold(request: pytest.FixtureRequest) -> Callable[[Path], Path]:
    return HOLDERS[request.param]


def columns(dataset: Dataset) -> dict[str, list[object]]:
    return {name: dataset.factors.values(name).tolist() for name in dataset.factors.names}


# -- layouts -----------------------------------------------------------------------------------------------------------


def test_the_layout_of_torchvision(hold: Callable[[Path], Path], tmp_path: Path) -> None:
    """Classes, class of each image, and order are those of torchvision's ImageFolder, by its own rule."""
    names = ["dog/xxx.png", "dog/xxy.JPEG", "dog/nsdf/xxz.webp", "cat/123.png", "cat/nsdf3.ppm"]
    folder = write(tmp_path / "pets", names)
    (folder / "cat" / "Thumbs.db").write_bytes(b"\xd0\xcf")
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    pets = setsup.open(hold(folder), pattern="{class}/...")
    factor = pets.factors["class"]
    assert (pets.name, factor.kind, list(factor.levels)) == ("pets", Kind.NOMINAL, classes)
    assert columns(pets) == {"class": [name.split("/")[0] for name in sorted(names)]}
    lossless = [place for place, name in enumerate(sorted(names)) if name.endswith((".png", ".ppm"))]
    assert pets.fetch(lossless)["image"][:, 0, 0, 0].tolist() == [10 * place for place in lossless]


def test_domains_and_classes(hold: Callable[[Path], Path], tmp_path: Path) -> None:
    found = setsup.open(str(hold(write(tmp_path / "wilds", WILDS))), pattern="{domain}/{class}/...")
    assert columns(found) == {
        "domain": [name.split("/")[0] for name in WILDS],
        "class": [name.split("/")[1] for name in WILDS],
    }
    batch = setsup.DomainSampler(found.factors, "domain", sets=2, size=2)[0]
    assert found.fetch(batch.indices)["image"].shape == (2, 2, 3, 4, 1)


def test_typed_fields(hold: Callable[[Path], Path], tmp_path: Path) -> None:
    faces = open_images(hold(write(tmp_path / "faces", FACES)), "{subject}/{light}_{yaw:d}.png")
    yaw = faces.factors["yaw"]
    assert (yaw.kind, yaw.levels) == (Kind.ORDINAL, (-30, 5, 100))  # by number: as text, 100 is before 5
    order = sorted(FACES, key=str.encode)
    assert columns(faces)["yaw"] == [int(name[:-4].rsplit("_")[-1]) for name in order]
    assert faces.fetch(range(12))["image"][:, 0, 0, 0].tolist() == list(range(0, 120, 10))
    as_numbers = open_images(tmp_path / "faces", "{}/{light}_{yaw:f}")
    assert as_numbers.factors["yaw"].continuous
    assert as_numbers.factors.names == ("light", "yaw")


def test_a_camera(tmp_path: Path) -> None:
    """A portrait that was taken with the camera turned is upright, and its size is that of the upright image."""
    folder = tmp_path / "DCIM" / "100CANON"
    folder.mkdir(parents=True)
    pixels = Image.new("RGB", (32, 16), (200, 0, 0))
    pixels.paste((0, 0, 200), (0, 0, 16, 16))
    for number, orientation in enumerate((1, 6, 8)):
        note = Image.Exif()
        note[0x0112] = orientation
        pixels.save(folder / f"IMG_{number:04d}.JPG", quality=95, exif=note)
    photos = setsup.open(tmp_path, pattern="DCIM/{folder}/IMG_{number:d}.JPG")
    assert columns(photos) == {"folder": ["100CANON"] * 3, "number": [0, 1, 2]}
    assert photos.modalities["image"].shape == (None, None, 3)
    for row, upright in enumerate((pixels, pixels.rotate(-90, expand=True), pixels.rotate(90, expand=True))):
        found = photos.fetch(row)["image"]
        assert found.shape[:2] == (upright.height, upright.width)
        assert np.abs(found.astype(int) - np.asarray(upright)).mean() < 4
    assert setsup.open(tmp_path, pattern=".../IMG_{number:d}", size=(8, 8)).fetch([0, 1, 2])["image"].shape[1:3] == (
        8,
        8,
    )


def test_mixed_depths(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", ["top.png", "a/1.png", "a/b/2.png", "c/3.png"])
    assert columns(open_images(folder)) == {"folder": ["a", "a/b", "c", "."]}
    assert columns(open_images(folder, ".../{name}")) == {"name": ["1", "2", "3", "top"]}


def test_kinds_are_changed_as_those_of_a_table(tmp_path: Path) -> None:
    folder = write(tmp_path / "faces", FACES)
    kinds = {"yaw": "cyclic", "light": "ordinal:right,left"}
    found = open_images(folder, "{subject}/{light}_{yaw:d}", kinds=kinds).factors
    assert (found["yaw"].kind, found["light"].kind, found["light"].levels) == (
        Kind.CYCLIC,
        Kind.ORDINAL,
        ("right", "left"),
    )
    assert open_images(folder, kinds={"folder": "ordinal:bob,ann"}).factors["folder"].levels == ("bob", "ann")
    with pytest.raises(FactorError, match=r"'yow' has no column .*did you mean 'yaw'"):
        open_images(folder, "{subject}/{light}_{yaw:d}", kinds={"yow": "cyclic"})
    with pytest.raises(FactorError, match="unknown kind 'cylic'"):
        open_images(folder, "{subject}/{light}_{yaw:d}", kinds={"yaw": "cylic"})


def test_roles_follow_from_names(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", ["train/cat/1.png", "train/dog/2.png", "test/cat/3.png"])
    found = setsup.open(folder, pattern="{split}/{class}/{id:d}", split="train")
    assert columns(found) == {"split": ["train"] * 2, "class": ["cat", "dog"], "id": [1, 2]}
    assert (found.factors["split"].role, found.factors["id"].role) == ("split", "key")


# -- archives ----------------------------------------------------------------------------------------------------------


def test_the_folder_that_holds_all_of_an_archive_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "pets", ["cats/1.png", "dogs/2.png"])
    for archive in (zipped(folder, "pets-1.0/"), tarred(folder, "pets-1.0")):
        assert columns(setsup.open(archive, pattern="{class}/...")) == {"class": ["cats", "dogs"]}
        assert columns(setsup.open(archive, pattern="pets-1.0/{class}/...")) == {"class": ["cats", "dogs"]}
        assert columns(setsup.open(archive)) == {"folder": ["pets-1.0/cats", "pets-1.0/dogs"]}
        images = pickle.loads(pickle.dumps(setsup.open(archive, pattern="{class}/...")))
        assert images.fetch([1, 0])["image"][:, 0, 0, 0].tolist() == [10, 0]


def test_of_files_of_one_name_in_an_archive_the_last_counts(tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, ["a/1.png", "b/2.png"]) for name in ("one", "two"))
    Image.new("L", (4, 3), 77).save(two / "a" / "1.png")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of the second
        for folder in (one, two):
            for name in ("a/1.png", "b/2.png"):
                archive.write(folder / name, name)
    found = setsup.open(tmp_path / "x.zip")
    assert len(found) == 2
    assert found.fetch(0)["image"][0, 0, 0] == 77


# -- what is left out --------------------------------------------------------------------------------------------------


def test_images_that_do_not_match_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write(
        tmp_path / "x", [f"a/{n}.png" for n in range(3)] + ["a/front.png", "b/c/1.png", "odd.png", "z/y.png"]
    )
    assert columns(open_images(folder, "{class}/{n:d}")) == {"class": ["a"] * 3, "n": [0, 1, 2]}
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        (
            "WARNING",
            f"{folder}: 4 of 7 images do not match the pattern '{{class}}/{{n:d}}' and are left out: "
            "a/front.png, b/c/1.png, odd.png, …; a/0.png is read as class=a, n=0",
        )
    ]


def test_a_pattern_that_can_be_read_in_two_ways_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write(tmp_path / "x", ["ann_lee_1.png", "bob_2.png"])
    assert columns(open_images(folder, "{subject}_{take}")) == {"subject": ["ann", "bob"], "take": ["lee_1", "2"]}
    assert "is ambiguous in 1 of 2 paths; ann_lee_1.png is read as subject=ann, take=lee_1" in caplog.text
    caplog.clear()
    assert columns(open_images(folder, "{subject}_{take:d}"))["subject"] == ["ann_lee", "bob"]
    assert not caplog.records


def test_hidden_images_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = ["a/1.png", "b/1.png", "a/.ipynb_checkpoints/1-checkpoint.png", ".trash/2.png", "a/.3.png"]
    caplog.set_level(logging.INFO, "setsup")
    assert columns(open_images(write(tmp_path / "x", names))) == {"folder": ["a", "b"]}
    assert "skipping 3 hidden images" in caplog.text
    with pytest.raises(
        DataError,
        match=r"contains no images: all images \(1\) are hidden, because their file or folder names begin with a dot",
    ):
        open_images(write(tmp_path / "y", [".a/1.png"]))


def test_images_that_need_a_plugin_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_formats, "installed", lambda name: False)
    folder = write(tmp_path / "x", ["a/1.png", "b/2.png"])
    (folder / "a" / "IMG_3.HEIC").touch()
    assert len(setsup.open(folder)) == 2
    assert (
        "1 file ends in .heic or .heif or .hif, which Pillow cannot decode without a plug-in: pip install pillow-heif"
        in caplog.text
    )
    (tmp_path / "y" / "a").mkdir(parents=True)
    (tmp_path / "y" / "a" / "IMG_3.HEIC").touch()
    for source in (tmp_path / "y", zipped(tmp_path / "y"), tarred(tmp_path / "y")):
        with pytest.raises(DataError, match=r"1 file ends in .heic.*: pip install pillow-heif"):
            setsup.open(source)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", ["a/1.png", "b/2.png"])
    os.rename(os.fsencode(folder / "a"), os.fsencode(folder) + b"/caf\xe9")
    found = open_images(folder, "{class}/{name}")
    assert columns(found) == {"class": ["b", "caf\\xe9"], "name": ["2", "1"]}
    assert found.fetch([0, 1])["image"][:, 0, 0, 0].tolist() == [10, 0]


# -- errors ------------------------------------------------------------------------------------------------------------


def refused(said: str, *given: object, **more: object) -> None:
    with pytest.raises(DataError, match=said) as caught:
        open_images(*given, **more)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_bad_sources_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused("empty contains no files; pass the folder or archive that contains the images", tmp_path / "empty")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").touch()
    refused(r"texts contains no images: none of its 1 files ends with \.bmp, ", tmp_path / "texts")
    refused("absent does not exist", tmp_path / "absent")
    refused("a.txt is not a folder, zip or tar", tmp_path / "texts" / "a.txt")
    flat = write(tmp_path / "flat", ["ann_1.png", "bob_2.png"])
    refused(r"all images of .*flat are in one folder, .*such as '\{name\}_\{number:d\}' \(pattern=\)", flat)
    refused(r"or, for pixel pairs, add homographies \(docs/correspondences\.md\)", flat)
    below = write(tmp_path / "below", ["only/ann_1.png"])
    refused(r"such as '\.\.\./\{name\}_\{number:d\}'", below)
    assert columns(open_images(below, ".../{name}_{number:d}")) == {"name": ["ann"], "number": [1]}


def test_what_matches_nothing_shows_a_path_and_a_pattern(tmp_path: Path) -> None:
    folder = write(tmp_path / "wilds", WILDS)
    refused(
        r"none of the 8 images of .*wilds matches the pattern '\{class\}\.png'; the first image is "
        r"photo/cat/1\.jpg, which matches '\{domain\}/\{class\}/\.\.\.'",
        folder,
        "{class}.png",
    )


def test_numbers_beyond_what_can_be_stored(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", ["3.png", f"{10**30}.png", "1e40.png"])
    refused(
        rf"{10**30}\.png has n = {10**30}, which does not fit in 64 bits; read it as text with \{{n\}}",
        folder,
        "{n:d}",
    )
    refused(r"1e40\.png has n = 1e40, which does not fit in 32-bit floating point", folder, "{n:f}")
    assert columns(open_images(folder, "{n}"))["n"] == [str(10**30), "1e40", "3"]


def test_an_unreadable_file_is_one_sentence(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", ["a/1.png", "b/2.png"])
    (folder / "b" / "2.png").write_bytes(b"no image")
    refused(r"2\.png \(row 1\) is not a readable image", folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write(tmp_path / "x", ["a/1.png", "b/2.png", "c/3.png"])
    (folder / "c").chmod(0)
    assert len(open_images(folder)) == 2
    assert "c is left out: Permission denied" in caplog.text
    (folder / "a").chmod(0)
    (folder / "b" / "2.png").chmod(0)
    refused(r"2\.png cannot be read: Permission denied; check its path and permissions", folder, "{class}/...")


def test_the_name_of_a_folder_that_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write(tmp_path / "pets", ["a/1.png", "b/2.png"]))
    assert setsup.open(".").name == open_images(Path()).name == "pets"
    monkeypatch.chdir("a")
    assert setsup.open("..").name == "pets"
