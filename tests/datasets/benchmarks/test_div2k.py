import logging
import pickle
import shutil
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

import setsup
from setsup.datasets.benchmarks import div2k
from setsup.errors import DataError
from setsup.factors import Kind
from setsup.files import load_manifest, unpack
from setsup.loading.views import PatchPairs
from tests.true_files.div2k import LOW, SIZES, TRAIN, VALID, archives, encoded, scene, write

DEGRADATIONS = ["none", "bicubic", "unknown", "mild", "difficult", "wild"]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("div2k")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def pictures(release):
    return div2k.open(release)


def _expected():
    """Name, degradation, scale, image, variant, split and image of each row, from what was drawn."""
    found = []
    for archive, files in archives().items():
        split, _, track = archive.partition("_")
        for name, picture in files.items():
            image, _, rest = name.rpartition("/")[2].removesuffix(".png").partition("x")
            degradation = "none"
            if track != "HR":
                degradation = {"x8": "bicubic"}.get(track.split("_")[1], track.split("_")[1])
            variant = int(rest[2]) if rest[1:2] == "w" else None
            found.append((name, degradation, int(rest[:1] or 1), image, variant, split, picture))
    return sorted(found, key=lambda row: (DEGRADATIONS.index(row[1]), row[2], row[3], row[4] or 0))


def test_factors(pictures):
    rows, table = _expected(), pictures.factors
    assert len(pictures) == len(rows) == (len(TRAIN) + len(VALID)) * (1 + sum(len(kinds) for *_, kinds in LOW.values()))
    names = [path[path.index("DIV2K_") :] for path in pictures.paths(range(len(rows)))]
    assert names == [row[0] for row in rows]
    for place, factor in enumerate(("degradation", "scale", "scene", "variant", "split"), 1):
        assert table.values(factor).tolist() == [row[place] for row in rows], factor
    assert table["scale"].kind is Kind.ORDINAL
    assert table["scene"].levels == (*TRAIN, *VALID)
    assert table["variant"].role == "key"


def test_pictures(pictures):
    assert pictures.modalities["image"].shape == (None, None, 3)
    for row, (*_, picture) in enumerate(_expected()):
        assert np.array_equal(pictures.fetch([row])["image"][0], np.asarray(picture))
    alike = pictures.factors.rows("scale == 1 and scene in ('0001', '0004')")
    assert pictures.fetch(alike)["image"].shape == (2, 144, 204, 3)
    with pytest.raises(DataError, match="pixels"):
        pictures.fetch([0, 1])


def test_high_resolution_comes_first(tmp_path, release, pictures):
    """Numbers of the photographs stay when smaller ones are added."""
    for split in ("train", "valid"):
        shutil.copy(release / f"DIV2K_{split}_HR.zip", tmp_path)
    alone = div2k.open(tmp_path)
    assert alone.factors.values("scene").tolist() == [*TRAIN, *VALID]
    assert pictures.paths(range(6)) == alone.paths(range(6))
    assert len(setsup.load("div2k", release, split="hr")) == 6


def test_sets_of_one_scene(pictures):
    draw = setsup.SetSampler(pictures.factors, inactive=["scene"], size=5, sets=3)[0]
    for members in draw.indices:
        assert len(set(pictures.factors.values("scene", members))) == 1


@pytest.mark.parametrize("form", ["folders", "one zip", "folders above", "in a zip", "both", "wrapped zips"])
def test_forms(tmp_path, release, pictures, form):
    root, rows = tmp_path, np.arange(len(pictures))
    if form in ("folders", "both"):
        for path in release.glob("*.zip"):
            unpack(path, tmp_path / "out" / path.stem)
        for path in (tmp_path / "out").glob("*/*"):
            shutil.copytree(path, tmp_path / "x" / path.name, dirs_exist_ok=True)
        shutil.rmtree(tmp_path / "out")
        shutil.copytree(release, tmp_path / "x", dirs_exist_ok=True)
        if form == "folders":
            for path in (tmp_path / "x").glob("*.zip"):
                path.unlink()
        root = tmp_path / "x"
    elif form == "one zip":
        root = release / "DIV2K_valid_HR.zip"
        rows = pictures.factors.rows("scale == 1 and split == 'valid'")
    elif form == "folders above":
        shutil.copytree(release, tmp_path / "some" / "data")
    elif form == "in a zip":
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
            for files in archives().values():
                for name, picture in files.items():
                    file.writestr(f"DIV2K/{name}", encoded(picture))
    else:
        for archive, files in archives().items():
            with zipfile.ZipFile(tmp_path / f"DIV2K_{archive}.zip", "w") as file:
                for name, picture in files.items():
                    file.writestr(f"wrapped/{name}", encoded(picture))
    found = setsup.load("div2k", root)
    assert len(found) == len(rows)
    for factor in ("scene", "scale", "degradation", "variant", "split"):
        assert found.factors.values(factor).tolist() == pictures.factors.values(factor, rows).tolist()
    for row in range(0, len(rows), 7):
        assert np.array_equal(found.fetch(row)["image"], pictures.fetch(rows[row])["image"])
    assert len(pickle.dumps(found)) < 20_000
    assert np.array_equal(pickle.loads(pickle.dumps(found)).fetch(1)["image"], found.fetch(1)["image"])


def test_cropped(release, pictures):
    found = div2k.open(release, crop=(100, 120)).where("scale == 1")
    assert found.modalities["image"].shape == (100, 120, 3)
    images = found.fetch([[0, 1, 2], [3, 4, 0]])["image"].reshape(6, 100, 120, 3)
    for image, name in zip(images, (*TRAIN, VALID[0], TRAIN[0]), strict=True):
        height, width = SIZES[name]
        top, left = (height - 100) // 2, (width - 120) // 2
        assert np.array_equal(image, np.asarray(scene(name))[top : top + 100, left : left + 120])
    out = np.zeros((2, 100, 120, 3), np.uint8)
    found.fetch_into([1, 1], {"image": out})
    assert np.array_equal(out, images[[1, 1]])
    with pytest.raises(DataError, match=r"0001x2\.png .row 6. is 72 × 102 pixels .*smaller than the crop of 100 × 120"):
        div2k.open(release, crop=(100, 120)).fetch([0, 6])


def test_cropped_then_resized(release):
    both = div2k.open(release, crop=(101, 121), size=(50, 60)).where("scale == 1")
    found = both.fetch([0, 1, 0])["image"]
    assert found.shape == (3, 50, 60, 3)
    for image, name in zip(found, (*TRAIN[:2], TRAIN[0]), strict=True):
        height, width = SIZES[name]
        top, left = (height - 101) // 2, (width - 121) // 2
        cut = scene(name).crop((left, top, left + 121, top + 101))
        assert np.array_equal(image, np.asarray(ImageOps.fit(cut, (60, 50), Image.Resampling.BICUBIC)))


def test_resized(release):
    assert div2k.open(release, size=(24, 36)).fetch([0, 20, 40])["image"].shape == (3, 24, 36, 3)


def test_pairs_of_patches(release):
    """The second patch lies as far right of and below the first in the photograph."""
    photographs = div2k.open(release, crop=(108, 120)).where("scale == 1")
    sampler = setsup.EpochSampler(photographs.factors, size=3, epochs=1)
    seen = 0
    for batch in setsup.loader(photographs, sampler, transform=PatchPairs(size=16, offset=32), workers=0):
        whole = batch["image"][0].permute(0, 2, 3, 1)
        first, second = (batch[name][0].permute(0, 2, 3, 1) for name in ("patch_1", "patch_2"))
        for image, one, other in zip(whole, first, second, strict=True):
            places = [
                (y, x)
                for y in range(108 - 48 + 1)
                for x in range(120 - 48 + 1)
                if torch.equal(image[y : y + 16, x : x + 16], one)
            ]
            assert any(torch.equal(image[y + 32 : y + 48, x + 32 : x + 48], other) for y, x in places)
            seen += 1
    assert seen == 6


def _file(folder, name, picture=None):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(encoded(picture or scene("0001")))


def test_contradictions_are_left_out_and_counted(tmp_path, caplog):
    _file(tmp_path, "DIV2K_train_HR/0001.png")
    _file(tmp_path, "DIV2K_train_LR_x8/0001x4.png")
    _file(tmp_path, "DIV2K_train_LR_mild/0001x4d.png")
    _file(tmp_path, "DIV2K_train_LR_bicubic/X2/0001x2m.png")
    with caplog.at_level(logging.WARNING, "setsup"):
        assert len(div2k.open(tmp_path)) == 1
    assert "3 files, such as" in caplog.text


def test_all_tracks_and_the_pictures_for_testing(tmp_path):
    for name in (
        *(
            "DIV2K_test_LR_bicubic/X3/0901x3.png",
            "DIV2K_train_LR_difficult/0001x4d.png",
            "DIV2K_train_LR_x8/0001x8.png",
        ),
        *("DIV2K_train_LR_wild/0001x4w.png", "DIV2K_train_LR_wild/0001x4w4.png"),
        *("DIV2K_valid_LR_unknown_X4/0801x4.png", "DIV2K_train_HR/notes.txt", "DIV2K_train_HR/1.png"),
    ):
        _file(tmp_path, name)
    table = div2k.open(tmp_path).factors
    rows = [tuple(table.row(row).values()) for row in range(len(table))]
    assert rows == [
        ("0901", 3, "bicubic", None, "test"),
        ("0001", 8, "bicubic", None, "train"),
        ("0801", 4, "unknown", None, "valid"),
        ("0001", 4, "difficult", None, "train"),
        ("0001", 4, "wild", None, "train"),
        ("0001", 4, "wild", 4, "train"),
    ]


@pytest.mark.parametrize("content", ["nothing", "no names", "cut zip"])
def test_bad_files(tmp_path, release, content):
    if content == "no names":
        _file(tmp_path, "DIV2K_train_HR/1.png")
    elif content == "cut zip":
        (tmp_path / "DIV2K_valid_HR.zip").write_bytes((release / "DIV2K_valid_HR.zip").read_bytes()[:-100])
    with pytest.raises(DataError, match=r"setsup fetch div2k|as it was published|is truncated") as caught:
        div2k.open(tmp_path)
    assert "\n" not in str(caught.value)


def test_damaged_pictures(tmp_path):
    _file(tmp_path, "DIV2K_train_HR/0001.png")
    path = tmp_path / "DIV2K_train_HR" / "0001.png"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"0001\.png .*could not be decoded"):
        div2k.open(tmp_path).fetch([0])


def test_the_manifest(pictures):
    manifest = load_manifest("div2k")
    assert tuple(factor.name for factor in manifest.factors) == pictures.factors.names
    fetched = [file.path for file in manifest.files if file.urls and not file.on_request]
    assert fetched == ["DIV2K_train_HR.zip", "DIV2K_valid_HR.zip"]
    assert len(manifest.files) == 22
