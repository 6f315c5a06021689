import pickle
import shutil
import tarfile
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks import nyu
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import nyu as true

FORKS = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def stored(**arguments: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file["rgb"]
        file.create_dataset("rgb", **arguments)

    return change


def linked(file: h5py.File) -> None:
    del file["rgb"]
    file["rgb"] = h5py.ExternalLink("/etc/passwd", "/rgb")


def write_fastdepth(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """``nyudepthv2`` as FastDepth has it: one file per row, two scenes, one in two pieces, and test images."""
    found = {}
    for number, name in enumerate(
        ("train/kitchen_0001a/00001", "train/kitchen_0001b/00001", "train/home_office_0002/00011", "val/official/00001")
    ):
        drawn = true.frame(true.SCENES[number], 0)
        path = folder / "nyudepthv2" / f"{name}.h5"
        path.parent.mkdir(parents=True)
        with h5py.File(path, "w") as file:
            file.create_dataset("rgb", data=drawn["images"].transpose(2, 0, 1), compression="gzip")
            file.create_dataset("depth", data=drawn["rawDepths"], compression="gzip")
        found[f"{name}.h5"] = {"image": drawn["images"], "depth": drawn["rawDepths"]}
    return found


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("packed", [False, True])
@FORKS
def test_fastdepth(tmp_path: Path, packed: bool) -> None:
    expected = write_fastdepth(tmp_path)
    if packed:
        with tarfile.open(tmp_path / "nyudepthv2.tar", "w") as tar:
            tar.add(tmp_path / "nyudepthv2", "nyudepthv2")
        shutil.rmtree(tmp_path / "nyudepthv2")
    dataset = nyu.open(tmp_path)
    assert list(dataset.modalities) == ["image", "depth"]
    table = dataset.factors
    # by their names: home_office before kitchen
    assert table.values("scene").tolist() == ["home_office_0002", "kitchen_0001", "kitchen_0001", None]
    assert table.values("scene_type").tolist() == ["home_office", "kitchen", "kitchen", None]
    assert table.values("split").tolist() == ["train", "train", "train", "test"]
    assert len(setsup.load("nyu", tmp_path, split="test")) == 1
    for row, path in enumerate(table.values("path").tolist()):
        found = dataset.fetch([row, row])
        for name, array in expected[path].items():
            np.testing.assert_array_equal(found[name], np.stack([array, array]))
    assert dataset.fetch([[], []])["depth"].shape == (2, 0, 480, 640)
    with get_context("fork").Pool(1) as pool:
        np.testing.assert_array_equal(
            pool.apply(pickle.loads(pickle.dumps(dataset)).fetch, (3,))["image"], found["image"][0]
        )
    with pytest.raises(DataError, match="is a repackaged copy of nyu and needs no preparation"):
        nyu.prepare(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (stored(shape=(480, 640, 3), dtype="u1"), r"'rgb' has dtype uint8 and shape \(480, 640, 3\)"),
        (stored(shape=(3, 480, 640), dtype="f4"), r"'rgb' has dtype float32"),
        (linked, "'rgb' is a link or a group"),
        (lambda file: file.__delitem__("rgb"), "has no dataset 'rgb'"),
    ],
)
def test_bad_fastdepth_files(tmp_path: Path, change: Callable[[h5py.File], None], sentence: str) -> None:
    write_fastdepth(tmp_path)
    with h5py.File(tmp_path / "nyudepthv2/val/official/00001.h5", "r+") as file:
        change(file)
    dataset = nyu.open(tmp_path)
    with pytest.raises(DataError, match=rf"00001\.h5 \(row 3\).*{sentence}"):
        dataset.fetch(3, ["image"])
    assert dataset.fetch(2)["image"].any()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_fastdepth_depths_that_are_no_depths(tmp_path: Path, wrong: float) -> None:
    write_fastdepth(tmp_path)
    with h5py.File(tmp_path / "nyudepthv2/val/official/00001.h5", "r+") as file:
        file["depth"][7, 5] = wrong
    dataset = nyu.open(tmp_path)
    with pytest.raises(
        DataError, match=rf"00001\.h5 \(row 3\): the depth of pixel \(7, 5\) is {wrong} m; expected a finite"
    ):
        dataset.fetch(3, ["depth"])
    assert dataset.fetch(3, ["image"])["image"].any()


@pytest.mark.long("fuzzing")
def test_damaged_fastdepth_files(tmp_path: Path) -> None:
    write_fastdepth(tmp_path)
    path = tmp_path / "nyudepthv2/val/official/00001.h5"
    dataset = nyu.open(tmp_path)

    def reread(content: bytes) -> None:
        # overwritten in place: the members' sizes are known since the folder was looked at
        path.write_bytes(content)
        nyu.open(tmp_path / "nyudepthv2").fetch(3)

    assert dataset.fetch(3)["depth"].any()
    assert survives(path.read_bytes(), reread, 30, slack=8 << 20) > 5


def write_pictures(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """The re-pack of JPEG and PNG files, of the labelled images by split and kind of scene."""
    found = {}
    for number, name in enumerate(("test/kitchen/rgb_00003.jpg", "train/home_office/rgb_00000.jpg")):
        drawn = true.frame(true.SCENES[number], 0)
        path = folder / name
        path.parent.mkdir(parents=True)
        Image.fromarray(drawn["images"]).save(path, quality=90)
        millimetres = (drawn["rawDepths"] * 1000).astype(np.uint16)
        Image.fromarray(millimetres).save(path.with_name(f"sync_depth_{name[-9:-4]}.png"))
        found[name] = {"image": np.asarray(Image.open(path)), "depth": millimetres / np.float32(1000)}
    return found


@pytest.mark.parametrize("wrapped", ["", "official_splits"])
def test_pictures(tmp_path: Path, wrapped: str) -> None:
    expected = write_pictures(tmp_path / wrapped)
    dataset = nyu.open(tmp_path)
    table = dataset.factors
    assert table.values("scene").tolist() == [None, None]
    assert table.values("scene_type").tolist() == ["kitchen", "home_office"]
    assert table.values("split").tolist() == ["test", "train"]
    for row, path in enumerate(table.values("path").tolist()):
        found = dataset.fetch(row)
        assert found["depth"].dtype == np.float32
        for name, array in expected[path].items():
            np.testing.assert_array_equal(found[name], array)


def test_an_archive_of_any_name(tmp_path: Path) -> None:
    write_pictures(tmp_path / "all")
    expected = nyu.open(tmp_path / "all").factors
    (tmp_path / "data").mkdir()
    path = Path(shutil.make_archive(str(tmp_path / "data" / "splits"), "zip", tmp_path / "all"))
    assert nyu.open(tmp_path / "data").factors.fingerprint == expected.fingerprint
    shutil.make_archive(str(path.with_suffix("")), "zip", tmp_path, "all/test/kitchen/sync_depth_00003.png")
    with pytest.raises(
        DataError, match=r"splits\.zip does not contain train/<scene>/00001\.h5 or rgb_00000\.jpg; pass another"
    ):
        nyu.open(path)
    with pytest.raises(DataError, match=r"nyu_depth_v2_labeled\.mat.* not found; looked in"):
        nyu.open(path.parent)


def test_pictures_of_recordings_and_without_folders(tmp_path: Path) -> None:
    drawn = write_pictures(tmp_path / "all")
    (tmp_path / "sync/bedroom_0100b").mkdir(parents=True)
    for name in ("rgb_00003.jpg", "sync_depth_00003.png"):
        shutil.copy(tmp_path / "all/test/kitchen" / name, tmp_path / "sync/bedroom_0100b" / name)
        (tmp_path / "flat").mkdir(exist_ok=True)
        shutil.copy(tmp_path / "all/test/kitchen" / name, tmp_path / "flat" / name)
    table = nyu.open(tmp_path / "sync").factors
    assert table.row(0) == {
        "scene": "bedroom_0100",
        "scene_type": "bedroom",
        "split": None,
        "path": "bedroom_0100b/rgb_00003.jpg",
    }
    flat = nyu.open(tmp_path / "flat")
    assert flat.factors.row(0) == {"scene": None, "scene_type": None, "split": None, "path": "rgb_00003.jpg"}
    np.testing.assert_array_equal(flat.fetch(0)["image"], drawn["test/kitchen/rgb_00003.jpg"]["image"])


def test_pictures_that_are_not_whole(tmp_path: Path) -> None:
    write_pictures(tmp_path)
    depth = tmp_path / "train/home_office/sync_depth_00000.png"
    content = depth.read_bytes()
    depth.write_bytes(content[:-100])
    with pytest.raises(DataError, match=r"sync_depth_00000\.png \(row 1\) is damaged: it is truncated"):
        nyu.open(tmp_path).fetch(1)
    Image.new("RGB", (320, 240)).save(tmp_path / "test/kitchen/rgb_00003.jpg")
    with pytest.raises(DataError, match=r"rgb_00003\.jpg \(row 0\) is 240 × 320 pixels"):
        nyu.open(tmp_path).fetch(0)
    depth.unlink()
    with pytest.raises(
        DataError, match=r"1 of 2 depth images are missing, such as train/home_office/sync_depth_00000\.png"
    ):
        nyu.open(tmp_path)
