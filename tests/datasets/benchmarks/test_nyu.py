import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io

import setsup
from setsup.datasets.benchmarks import nyu
from setsup.errors import DataError, RowError
from tests.fuzzing import survives
from tests.true_files import nyu as true

MAT = "nyu_depth_v2_labeled.mat"
KEYS = {
    "image": "images",
    "depth": "depths",
    "raw_depth": "rawDepths",
    "labels": "labels",
    "instances": "instances",
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nyu")
    true.write(folder)
    return folder


@pytest.fixture
def folder(release: Path, tmp_path: Path) -> Path:
    """A copy to be damaged or written beside."""
    shutil.copytree(release, tmp_path / "nyu")
    return tmp_path / "nyu"


@pytest.mark.long("worker processes")
def test_the_folder_that_scripts_call_it_by(release: Path, tmp_path: Path) -> None:
    (tmp_path / "nyu_depth_v2").symlink_to(release)
    assert len(nyu.open(tmp_path)) == len(nyu.open(release))


@pytest.fixture(scope="module")
def arrays(release: Path) -> dict[str, np.ndarray]:
    """What the file holds, with its axes in the order of their names."""
    with h5py.File(release / MAT) as file:
        return {name: np.moveaxis(file[key][()].T, -1, 0) for name, key in KEYS.items()}


def opened(folder: Path) -> nyu.NyuDepth:
    dataset = nyu.open(folder)
    assert isinstance(dataset, nyu.NyuDepth)
    return dataset


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows, for what is tried many times."""
    folder = tmp_path_factory.mktemp("small")
    write_small(folder)
    return folder


def write_small(folder: Path, texts: dict[str, list[str]] | None = None, chunks: int = 1, **changed: Any) -> None:
    drawn = [true.frame("kitchen_0001", 0), true.frame("office_0001", 1)]
    found = {key: np.stack([one[key] for one in drawn]) for key in drawn[0] if key != "normals"}
    cells = {
        "scenes": ["kitchen_0001", "office_0001"],
        "sceneTypes": ["kitchen", "office"],
        "rawRgbFilenames": ["kitchen_0001/r-1.ppm", "office_0001/r-2.ppm"],
        "names": [f"thing {n}" for n in range(1, 30)],
    }
    true.write_mat(folder / MAT, {**found, **changed}, {**cells, **(texts or {})}, chunks)
    true.write_split(folder / "splits.mat", [1], [2])


# -- what is in it -----------------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_factors(release: Path) -> None:
    dataset = opened(release)
    assert isinstance(dataset, setsup.datasets.Dataset)
    assert dataset.factors.names == ("scene", "scene_type", "split", "raw_rgb")
    assert [dataset.factors[name].role for name in dataset.factors.names] == ["variation", "variation", "split", "key"]
    with h5py.File(release / MAT) as file:
        for name, key in (("scene", "scenes"), ("scene_type", "sceneTypes"), ("raw_rgb", "rawRgbFilenames")):
            texts = ["".join(chr(code) for code in file[ref][:].ravel()) for ref in file[key][0]]
            assert dataset.factors.values(name).tolist() == texts
        names = ["".join(chr(code) for code in file[ref][:].ravel()) for ref in file["names"][0]]
    assert dataset.classes["labels"] == ("unlabelled", *names)
    split = scipy.io.loadmat(release / "splits.mat")
    for part in ("train", "test"):
        rows = np.flatnonzero(dataset.factors.codes("split") == ("train", "test").index(part))
        assert (rows + 1).tolist() == split[f"{part}Ndxs"].ravel().tolist()
    assert dataset.factors["scene"].within == "scene_type"
    assert len(setsup.load("nyu", release, split="test")) == 9


@pytest.mark.long("large or genuine files")
def test_arrays_against_h5py(release: Path, arrays: dict[str, np.ndarray]) -> None:
    dataset = nyu.open(release)
    assert list(dataset.modalities) == [*KEYS, "labels40", "labels13", "normals"]
    rows: Any
    for rows in ([[3, 0], [23, 3]], [5], [], 7, [[]]):
        for name in KEYS:
            found = dataset.fetch(rows, [name])[name]
            modality = dataset.modalities[name]
            assert (found.shape, found.dtype) == (np.shape(rows) + modality.shape, np.dtype(modality.dtype))
            np.testing.assert_array_equal(found, arrays[name][np.asarray(rows, int)])
    with pytest.raises(RowError, match="24 rows"):
        dataset.fetch(24)


@pytest.mark.long("large or genuine files")
def test_arrays_are_what_was_drawn(release: Path) -> None:
    dataset = nyu.open(release)
    found = dataset.fetch(10)
    drawn = true.frame(*true.rows()[10])
    for name, key in KEYS.items():
        np.testing.assert_array_equal(found[name], drawn[key])
    turned = np.linalg.norm(found["normals"] - drawn["normals"], axis=-1)
    assert (turned < 0.01).mean() > 0.93, "all but the pixels near edges"
    np.testing.assert_allclose(np.linalg.norm(found["normals"], axis=-1), 1, atol=1e-5)


def test_coarse_labels_against_scipy(release: Path) -> None:
    dataset = opened(release)
    found = dataset.fetch([0, 1, 2], ["labels40", "labels13", "labels"])
    forty = scipy.io.loadmat(release / "classMapping40.mat")
    thirteen = scipy.io.loadmat(release / "class13Mapping.mat")["classMapping13"][0, 0]
    assert dataset.classes["labels40"][1:] == tuple(str(cell[0]) for cell in forty["className"][0])
    assert dataset.classes["labels13"][1:] == tuple(str(cell[0]) for cell in thirteen["classNames"][0])
    for label in np.unique(found["labels"]):
        here = found["labels"] == label
        expected40 = forty["mapClass"][0, label - 1] if label else 0
        expected13 = thirteen["labels13"][0, expected40 - 1] if label else 0
        assert (found["labels40"][here] == expected40).all()
        assert (found["labels13"][here] == expected13).all()
    assert set(np.unique(found["labels13"])) >= {0, 3, 5, 10, 12}
    assert dataset.classes["labels13"][5] == "floor"


@pytest.mark.long("large or genuine files")
def test_normals_of_the_depth_in_the_published_camera(release: Path) -> None:
    from setsup.datasets.benchmarks.nyu.normals import surface_normals

    dataset = nyu.open(release)
    found = dataset.fetch([[4, 1], [4, 4]], ["normals"])["normals"]
    assert found.shape == (2, 2, 480, 640, 3)
    depth = dataset.fetch(4, ["depth"])["depth"]
    np.testing.assert_array_equal(found[1, 1], surface_normals(depth, nyu.INTRINSICS))
    np.testing.assert_array_equal(found[0, 0], found[1, 0])
    # back-projected by the published numbers, which count from 1: neighbours on a wall lie in one plane
    column, row = np.meshgrid(np.arange(1, 641), np.arange(1, 481))
    points = np.stack([(column - 325.5824) / 518.8579, (row - 253.7362) / 519.4696, np.ones((480, 640))], -1)
    points *= depth[..., None]
    across = points[140:180, 304:344] - points[140:180, 300:340]
    down = points[144:184, 300:340] - points[140:180, 300:340]
    assert len(np.unique(dataset.fetch(4, ["instances"])["instances"][134:190, 290:350])) == 1
    for step in (across, down):
        slant = (step * found[0, 0, 140:180, 300:340]).sum(-1)
        assert np.abs(slant).max() < 1e-4 * np.linalg.norm(step, axis=-1).min()
    assert dataset.fetch([], ["normals"])["normals"].shape == (0, 480, 640, 3)


@pytest.mark.long("large or genuine files")
def test_modalities_go_into_arrays(release: Path) -> None:
    dataset = nyu.open(release)
    rows = np.array([2, 2, 9])
    names = ["normals", "labels13", "image", "depth"]
    expected = dataset.fetch(rows, names)
    out = {name: np.full_like(array, 7) for name, array in expected.items()}
    dataset.fetch_into(rows, out)
    for name in names:
        np.testing.assert_array_equal(out[name], expected[name])


def test_without_the_maps_of_classes(small: Path, folder: Path) -> None:
    assert list(opened(small).classes) == ["labels"]
    assert "labels40" not in nyu.open(small).modalities
    (folder / "class13Mapping.mat").unlink()
    assert list(opened(folder).classes) == ["labels", "labels40"]
    with pytest.raises(DataError, match="nyu has no modality 'labels13'"):
        nyu.open(folder).fetch(0, ["labels13"])


def test_crop() -> None:
    rows, columns = np.mgrid[:480, :640]
    for picture in (rows * 1000 + columns, np.stack([rows, columns], -1)[None]):
        cropped = nyu.crop(picture)
        assert np.shares_memory(cropped, picture)
    assert cropped.shape == (1, 426, 560, 2)
    assert cropped[0, 0, 0].tolist() == [45, 41]
    assert cropped[0, -1, -1].tolist() == [470, 600]
    with pytest.raises(DataError, match=r"480 × 640 pixels.*\(640, 480\)"):
        nyu.crop(np.zeros((640, 480)))


def test_the_crop_leaves_no_white(release: Path) -> None:
    assert not (nyu.crop(nyu.open(release).fetch([0, 9], ["image"])["image"]) == 255).all(-1).any()


# -- splits and maps ---------------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_a_scene_in_both_parts_is_an_error_of_the_split(folder: Path) -> None:
    every = range(1, len(true.rows()) + 1)
    true.write_split(folder / "splits.mat", [n for n in every if n % 2], [n for n in every if n % 2 == 0])
    assert len(setsup.load("nyu", folder)) == 24
    # the scenes' pictures lie 8 rows apart, so that all of a scene are in one part; two change theirs
    assert len(setsup.load("nyu", folder, split="train")) == 12
    true.write_split(folder / "splits.mat", [n for n in every if n % 2 or n == 2], [n for n in every[3::2]])
    with pytest.raises(DataError, match=r"split 'train' of nyu differs from the published one: .*scene"):
        setsup.load("nyu", folder, split="train")
    with pytest.raises(DataError, match="scene"):
        setsup.load("nyu", folder, split="test")


def test_scenes_of_two_types_are_not_within_them(tmp_path: Path) -> None:
    write_small(tmp_path, {"scenes": ["room", "room"]})
    assert nyu.open(tmp_path).factors["scene"].within is None
    write_small(tmp_path, {"scenes": ["room", ""]})
    assert nyu.open(tmp_path).factors.values("scene").tolist() == ["room", None]


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("classMapping40", {"mapClass": np.ones((1, 893))}, "'mapClass' maps 893 classes; expected 894"),
        ("classMapping40", {"mapClass": np.full((1, 894), 41)}, "'mapClass' contains 41; .* 1 to 40"),
        ("classMapping40", {"mapClass": np.zeros((1, 894))}, "'mapClass' contains 0"),
        ("classMapping40", {"className": np.zeros((1, 40))}, "'names' has 40 entries; expected 1 to 254 class names"),
        ("class13Mapping", {"classMapping13": np.zeros((1, 40))}, "must be a struct with labels13 and classNames"),
        (
            "class13Mapping",
            {"classMapping13": {"labels13": np.ones((1, 39)), "classNames": np.array([["a"]], object)}},
            "'labels13' maps 39 classes; expected 40",
        ),
    ],
)
def test_bad_maps_of_classes(folder: Path, name: str, values: dict[str, Any], sentence: str) -> None:
    path = folder / f"{name}.mat"
    found = {key: value for key, value in scipy.io.loadmat(path).items() if key[0] != "_"}
    scipy.io.savemat(path, {**found, **values})
    with pytest.raises(DataError, match=rf"{name}\.mat.*{sentence}"):
        nyu.open(folder)


# -- files that are not what they should be ----------------------------------------------------------------------------


def test_missing_files_give_the_command(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match=rf"{MAT}, splits\.mat not found.*setsup fetch nyu --root"):
        nyu.open(tmp_path / "nothing")
    (folder / "splits.mat").unlink()
    with pytest.raises(DataError, match=r"nyu: splits\.mat not found.*setsup fetch nyu --root"):
        nyu.open(folder)


def test_a_folder_named_nyu_is_found_below_the_root(folder: Path) -> None:
    assert len(nyu.open(folder.parent)) == 24


def test_versions_of_matlabs_format_are_told_apart(folder: Path) -> None:
    shutil.copy(folder / MAT, folder / "splits.mat")
    with pytest.raises(DataError, match=r"splits\.mat"):
        nyu.open(folder)
    scipy.io.savemat(folder / "splits.mat", {"trainNdxs": np.array([[1]]), "testNdxs": np.array([[2]])})
    scipy.io.savemat(folder / MAT, {"images": np.zeros((2, 2))})
    with pytest.raises(DataError, match=rf"{MAT} is a MAT v5 file; expected the published MAT v7\.3"):
        nyu.open(folder)


@pytest.mark.parametrize("kept", [0, 100, 512, 5000, 0.5, 0.99, 0.9999])
def test_a_truncated_file(folder: Path, kept: float) -> None:
    size = (folder / MAT).stat().st_size
    os.truncate(folder / MAT, kept if isinstance(kept, int) else int(size * kept))
    with pytest.raises(DataError, match=rf"{MAT} could not be read as HDF5.*fetch it again"):
        nyu.open(folder).fetch(range(24))


def replaced(key: str, **arguments: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[key]
        file.create_dataset(key, **arguments)

    return change


def linked(key: str, link: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[key]
        file[key] = link

    return change


def virtual(file: h5py.File) -> None:
    del file["depths"]
    layout = h5py.VirtualLayout((2, 640, 480), "float32")
    layout[:] = h5py.VirtualSource("/etc/passwd", "depths", (2, 640, 480))
    file.create_virtual_dataset("depths", layout)


def nulled(file: h5py.File) -> None:
    refs = file["scenes"][()]
    refs[0, 1] = h5py.Reference()
    file["scenes"][...] = refs


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            replaced("images", shape=(480, 640, 3, 2), dtype="u1"),
            r"'images' has dtype uint8 and shape \(480, 640, 3, 2\); expected uint8 of shape \(N, 3, ",
        ),
        (replaced("images", shape=(2, 480, 640, 3), dtype="u1"), r"'images'.*as MATLAB stores it"),
        (replaced("images", shape=(2, 3, 640, 480), dtype="f4"), r"'images' has dtype float32 .*expected uint8"),
        (
            replaced("depths", shape=(2, 480, 640), dtype="f4"),
            r"'depths' has dtype float32 and shape \(2, 480, 640\); expected float32 of shape \(N",
        ),
        (replaced("depths", shape=(2, 640, 480), dtype="f8"), r"'depths' has dtype float64"),
        (replaced("labels", shape=(2, 640, 480), dtype="i2"), r"'labels' has dtype int16"),
        (
            replaced("labels", shape=(3, 640, 480), dtype="u2"),
            r"2 rawDepths, 3 labels, 2 instances",
        ),
        (replaced("instances", shape=(), dtype="u1"), r"'instances' has dtype uint8 and shape \(\)"),
        (replaced("scenes", data=[1, 2]), r"'scenes' has dtype int64 and shape \(2,\); expected a cell array"),
        (lambda file: file.move("namesToIds", "other"), None),
        (lambda file: file.__delitem__("names"), r"has no dataset 'names'"),
        (lambda file: file.__delitem__("rawDepths"), r"has no dataset 'rawDepths'.*fetch the published file"),
        (linked("images", h5py.ExternalLink("/etc/passwd", "/images")), r"'images' is a link or a group"),
        (linked("images", h5py.SoftLink("/depths")), r"'images' is a link or a group"),
        (virtual, r"'depths' stores its data in other files"),
        (nulled, r"cell 1 of 'scenes' refers to an object that is not in the file"),
    ],
)
def test_files_that_hold_something_else(
    small: Path, tmp_path: Path, change: Callable[[h5py.File], None], sentence: str | None
) -> None:
    shutil.copytree(small, tmp_path / "nyu")
    with h5py.File(tmp_path / "nyu" / MAT, "r+") as file:
        change(file)
    if sentence is None:
        assert len(nyu.open(tmp_path)) == 2
        return
    with pytest.raises(DataError, match=sentence) as caught:
        nyu.open(tmp_path)
    assert "\n" not in str(caught.value)
    assert MAT in str(caught.value)


def test_too_few_texts(tmp_path: Path) -> None:
    write_small(tmp_path, {"sceneTypes": ["kitchen"]})
    with pytest.raises(DataError, match=r"2 scenes, 1 sceneTypes, 2 rawRgbFilenames; expected the same number of each"):
        nyu.open(tmp_path)


def test_labels_without_a_name_are_named_when_they_are_read(tmp_path: Path) -> None:
    write_small(tmp_path, {"names": ["thing"] * 20})
    dataset = nyu.open(tmp_path)
    for name in ("labels", None):
        with pytest.raises(DataError, match=r"'labels' contains the class 21, but 'names' has only 20"):
            dataset.fetch([0], name and [name])
    with pytest.raises(DataError, match=r"'labels' contains the class 21"):
        nyu.prepare(tmp_path, ["labels"])
    assert [path.name for path in tmp_path.iterdir() if "npy" in path.name] == []


@pytest.mark.long("fuzzing")
def test_damaged_files(small: Path, tmp_path: Path) -> None:
    shutil.copy(small / "splits.mat", tmp_path / "splits.mat")
    whole = {name: array.tobytes() for name, array in nyu.open(small).fetch([0], list(KEYS)).items()}

    def reread(content: bytes) -> None:
        (tmp_path / MAT).write_bytes(content)
        found = nyu.open(tmp_path).fetch([0], list(KEYS))
        assert [found[name].nbytes for name in KEYS] == [len(whole[name]) for name in KEYS]

    # what is asked for has a fixed size, which counts for a small file
    asked = 3 * sum(map(len, whole.values()))
    assert survives((small / MAT).read_bytes(), reread, 60, head=20_000, slack=asked + (1 << 21)) > 10


# -- processes and threads ---------------------------------------------------------------------------------------------


# -- prepare -----------------------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_prepared_arrays_are_the_same_and_are_used(
    folder: Path, arrays: dict[str, np.ndarray], caplog: pytest.LogCaptureFixture
) -> None:
    before = {path.name for path in folder.iterdir()}
    dataset = opened(folder)
    with caplog.at_level(logging.WARNING, "setsup"):
        dataset.fetch(0)
        dataset.fetch(1)
    assert [record.message.count("setsup prepare nyu --root") for record in caplog.records] == [1]
    assert {path.name for path in folder.iterdir()} == before, "opening and reading write nothing"
    assert dataset.prepare(["depth", "normals"]) == [folder / "nyu_depth_v2_labeled.depths.npy"]
    made = {path.name for path in folder.iterdir()} - before
    assert made == {"nyu_depth_v2_labeled.depths.npy", "nyu_depth_v2_labeled.depths.npy.json"}
    assert nyu.prepare(folder) == [folder / f"nyu_depth_v2_labeled.{key}.npy" for key in KEYS.values()]
    for name, key in KEYS.items():
        np.testing.assert_array_equal(np.load(folder / f"nyu_depth_v2_labeled.{key}.npy"), arrays[name])
    caplog.clear()
    for each in (dataset, nyu.open(folder)):
        found = each.fetch([[3, 0], [23, 3]])
        for name in KEYS:
            np.testing.assert_array_equal(found[name], arrays[name][[[3, 0], [23, 3]]])
        out = np.empty((2, 480, 640), np.float32)
        each.fetch_into([7, 2], {"depth": out})
        np.testing.assert_array_equal(out, arrays["depth"][[7, 2]])
    assert not caplog.records


def test_prepared_arrays_of_another_file_are_not_used(small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, tmp_path / "nyu")
    nyu.prepare(tmp_path, ["image"])
    write_small(tmp_path / "nyu", images=np.full((2, 480, 640, 3), 9, np.uint8))
    assert (nyu.open(tmp_path).fetch([0, 1], ["image"])["image"] == 9).all()
    nyu.prepare(tmp_path, ["image"])
    assert (nyu.open(tmp_path).fetch([0, 1], ["image"])["image"] == 9).all()


def test_a_disk_that_is_too_small_is_said_before_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100_000_000))
    with pytest.raises(DataError, match=r"preparing nyu requires 103\.2 MB in .*, but only 100\.0 MB are available"):
        nyu.prepare(folder)
    assert not list(folder.glob("*.npy*"))
