import logging
import pickle
import shutil
import zipfile

import h5py
import numpy as np
import pytest

import setsup
import setsup.datasets.benchmarks.dsprites as dsprites
from setsup.datasets.benchmarks.dsprites import Dsprites
from setsup.errors import DataError
from setsup.factors import Kind
from tests.fuzzing import survives
from tests.true_files.dsprites import SIZES, STEM, arrays, rows, values, write

FEW = ((0,), (0, 1, 2), (5,), (0, 7, 39), (3, 30), (0, 31))


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dsprites")
    return {kind: write(folder, kind) for kind in ("hdf5", "npz")}


@pytest.fixture
def linked(releases, tmp_path):
    """Either file in a folder of its own."""

    def link(kind):
        (tmp_path / kind).mkdir()
        shutil.copy(releases[kind], tmp_path / kind)
        return tmp_path / kind / releases[kind].name

    return link


def _changed(path, **arrays):
    """The npz with some of its arrays replaced, or left out."""
    with np.load(path, allow_pickle=True) as file:
        content = {name: arrays.get(name, file[name]) for name in file.files}
    np.savez_compressed(path, **{name: array for name, array in content.items() if array is not None})
    return path


# -- the table ---------------------------------------------------------------------------------------------------------


def test_levels():
    table = dsprites._table("x", 3, lambda a, b: (rows(FEW)[:3], values(rows(FEW)[:3])))
    assert [len(factor) for factor in table.factors] == list(SIZES)
    assert table["shape"].levels == ("square", "ellipse", "heart")
    assert table["scale"].levels == (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    np.testing.assert_allclose(table["orientation"].levels, np.linspace(0, 2 * np.pi, 40), atol=5e-5)
    for name in ("pos_x", "pos_y"):
        np.testing.assert_allclose(table[name].levels, np.linspace(0, 1, 32), atol=5e-5)
    assert [factor.kind for factor in table.factors[2:]] == [Kind.ORDINAL] * 4


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("kind", ["hdf5", "npz"])
def test_a_part_of_the_rows_makes_columns(releases, kind):
    table = Dsprites(releases[kind]).factors
    assert not table.is_grid
    with h5py.File(releases["hdf5"]) as file:
        classes, told = file["latents/classes"][:], file["latents/values"][:]
    for place, name in enumerate(table.names):
        assert table.codes(name).tolist() == classes[:, place].tolist()
        if place > 1:
            np.testing.assert_allclose(table.values(name).astype(float), told[:, place], atol=5e-5)


def _whole(path, classes):
    """All rows; images that were never written cost no disk."""
    with h5py.File(path, "w") as file:
        file.create_dataset("imgs", (737_280, 64, 64), "u1", chunks=(1024, 16, 16), compression="gzip")
        file["latents/classes"], file["latents/values"] = classes, values(classes)


def test_the_whole_file_is_a_grid(tmp_path):
    classes = rows([range(size) for size in SIZES])
    _whole(tmp_path / f"{STEM}.hdf5", classes)
    whole = setsup.load("dsprites", tmp_path)
    assert whole.factors.is_grid
    assert len(whole) == 737_280
    for row in (0, 1, 31, 32, 123_456, 737_279):
        assert [whole.factors.codes(name, row) for name in whole.factors.names] == classes[row].tolist()
    assert whole.fetch([5, 737_279])["image"].shape == (2, 64, 64, 1)
    # in another order it is none
    classes[:2] = classes[[1, 0]]
    _whole(tmp_path / "other.hdf5", classes)
    table = Dsprites(tmp_path / "other.hdf5").factors
    assert not table.is_grid
    assert table.codes("pos_y", [0, 1, 2]).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("column", "level", "value"),
    [(0, 1, 1.0), (1, 3, 4.0), (1, 0, 2.0), (2, 5, 0.9), (3, 39, 0.0), (4, -1, 0.0), (5, 0, np.nan), (5, 0, np.inf)],
)
def test_classes_and_values_that_do_not_belong_together(tmp_path, column, level, value):
    path = write(tmp_path, "npz", FEW)
    classes, told = rows(FEW), values(rows(FEW))
    classes[7, column], told[7, column] = level, value
    with pytest.raises(
        DataError, match=rf"\.npz: the {dsprites._factors()[column].name} of row 7 .*contradict each other"
    ):
        Dsprites(_changed(path, latents_classes=classes, latents_values=told))


# -- pictures ----------------------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_pictures_of_the_hdf5(linked, caplog):
    path = linked("hdf5")
    found = setsup.load("dsprites", path.parent)
    expected = arrays()[0][..., None] * 255
    some = np.array([[0, 700, 5], [5, 1151, 3]])
    with caplog.at_level(logging.WARNING, "setsup"):
        assert np.array_equal(found.fetch(some)["image"], expected[some])
        out = np.zeros((2, 3, 64, 64, 1), np.uint8)
        found.fetch_into(some, {"image": out})
        assert np.array_equal(out, expected[some])
    assert caplog.text.count(f"run `setsup prepare dsprites --root {path.parent}` once to convert it") == 1
    assert set(np.unique(expected)) == {0, 255}
    assert found.fetch(7)["image"].shape == (64, 64, 1)
    assert found.fetch([[]])["image"].shape == (1, 0, 64, 64, 1)


@pytest.mark.parametrize("kind", ["hdf5", "npz"])
def test_prepared(linked, kind, caplog, monkeypatch):
    monkeypatch.setattr("setsup.datasets.formats.npz._BLOCK", 100 * 4096)
    monkeypatch.setattr("setsup.datasets.formats.h5.images._BLOCK", 100 * 4096)
    path = linked(kind)
    made = dsprites.prepare(path.parent)
    assert made == [path.with_name(f"{STEM}.images.npy")]
    expected = arrays()[0]
    assert np.array_equal(np.load(made[0]), expected)
    with caplog.at_level(logging.WARNING, "setsup"):
        found = setsup.load("dsprites", path.parent)
        some = np.array([[0, 700, 5], [5, 1151, 3]])
        for again in (found, pickle.loads(pickle.dumps(found))):
            assert np.array_equal(again.fetch(some)["image"][..., 0], expected[some] * 255)
            again.fetch(some)["image"][:] = 9  # the caller's own
    assert not caplog.records
    assert dsprites.prepare(path.parent) == made


def test_a_packed_npz_is_prepared_first(linked):
    path = linked("npz")
    found = setsup.load("dsprites", path.parent)
    with pytest.raises(DataError, match=rf"sequentially; run `setsup prepare dsprites --root {path.parent}` once"):
        found.fetch([0])
    found.prepare()
    assert found.fetch([0])["image"].any()
    _changed(path, imgs=1 - arrays()[0])
    with pytest.raises(DataError, match="created from another version"):
        setsup.load("dsprites", path.parent).fetch([0])


def test_what_lies_there_as_it_is_needs_no_preparation(tmp_path, caplog):
    imgs, classes = arrays(FEW)
    np.savez(tmp_path / f"{STEM}.npz", imgs=imgs, latents_classes=classes, latents_values=values(classes))
    with caplog.at_level(logging.WARNING, "setsup"):
        found = setsup.load("dsprites", tmp_path)
        assert np.array_equal(found.fetch(range(36))["image"][..., 0], imgs * 255)
        assert dsprites.prepare(tmp_path) == []
        (tmp_path / f"{STEM}.npz").unlink()
        with h5py.File(tmp_path / f"{STEM}.h5", "w") as file:
            file["imgs"], file["latents/classes"], file["latents/values"] = imgs, classes, values(classes)
        found = setsup.load("dsprites", tmp_path)
        assert np.array_equal(found.fetch(range(36))["image"][..., 0], imgs * 255)
        assert dsprites.prepare(tmp_path) == []
    assert not caplog.records


def test_pixels_are_bits(tmp_path):
    imgs, _ = arrays(FEW)
    imgs[17, 5, 9] = 255
    path = _changed(write(tmp_path, "npz", FEW), imgs=imgs)
    with pytest.raises(DataError, match="row 17 contains the value 255"):
        Dsprites(path).prepare()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    (tmp_path / "x").mkdir()
    with h5py.File(write(tmp_path / "x", "hdf5", FEW), "r+") as file:
        file["imgs"][17, 5, 9] = 2
    found = setsup.load("dsprites", tmp_path / "x")
    found.fetch([16, 18])
    with pytest.raises(DataError, match="row 17 contains the value 2"):
        found.fetch([[16, 17]])


# -- other files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"imgs": None}, "no array 'imgs'"),
        ({"latents_values": None}, "no array 'latents_values'"),
        ({"imgs": np.zeros((36, 64, 63), np.uint8)}, r"expected uint8 of shape \(N, 64, 64\)"),
        ({"imgs": np.zeros((36, 64, 64), np.int16)}, "'imgs' has dtype int16"),
        ({"imgs": np.zeros((36, 64, 64, 1), np.uint8)}, r"expected uint8 of shape \(N, 64, 64\)"),
        ({"imgs": np.zeros((35, 64, 64), np.uint8)}, "has 35 images but 36 classes"),
        ({"imgs": np.array({"a": 1}, dtype=object)}, "pickled"),
        ({"latents_classes": np.zeros((36, 5), np.int64)}, "the classes have dtype int64"),
        ({"latents_classes": np.zeros((36, 6))}, "the classes have dtype float64"),
        ({"latents_values": np.zeros((36, 6), np.int64)}, "the values have dtype int64"),
        ({"latents_values": np.zeros((3, 6))}, "has 36 images but 3 values"),
    ],
)
def test_another_npz(tmp_path, arrays, words):
    path = _changed(write(tmp_path, "npz", FEW), **arrays)
    with pytest.raises(DataError, match=rf"\.npz.*{words}"):
        Dsprites(path)


@pytest.mark.parametrize(
    ("latents", "words"),
    [
        (None, "no group 'latents'"),
        (h5py.ExternalLink("foreign.h5", "/"), "no group 'latents'"),
        (h5py.SoftLink("/others"), "no group 'latents'"),
        (np.zeros(3), "no group 'latents'"),
        ({"values": np.zeros((36, 6))}, "no dataset 'classes'"),
        ({"values": np.zeros((36, 6)), "classes": h5py.SoftLink("/imgs")}, "'classes' is a link"),
        ({"values": np.zeros((36, 6)), "classes": np.zeros((36, 6))}, "the classes have dtype float64"),
    ],
)
def test_another_hdf5(tmp_path, latents, words):
    path = write(tmp_path, "hdf5", FEW)
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["classes"], file["values"] = rows(FEW), values(rows(FEW))
    with h5py.File(path, "r+") as file:
        file.move("latents", "others")
        if isinstance(latents, dict):
            for name, stored in latents.items():
                file[f"latents/{name}"] = stored
        elif latents is not None:
            file["latents"] = latents
    with pytest.raises(DataError, match=rf"{STEM}\.hdf5.*{words}"):
        Dsprites(path)


def test_a_length_that_the_file_cannot_hold(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("imgs", (10**11, 64, 64), "u1", chunks=(1000, 4, 4))
        file.create_dataset("latents/classes", (10**11, 6), "i8", chunks=(1000, 6))
        file.create_dataset("latents/values", (10**11, 6), "f8", chunks=(1000, 6))
    with pytest.raises(DataError, match=r"specifies 100,000,000,000 labels"):
        Dsprites(tmp_path / "x.hdf5")


def test_no_rows(tmp_path):
    empty = {"imgs": np.zeros((0, 64, 64), np.uint8), "latents_classes": np.zeros((0, 6), int)}
    np.savez(tmp_path / "x.npz", **empty, latents_values=np.zeros((0, 6)))
    with pytest.raises(DataError, match="has no rows"):
        Dsprites(tmp_path / "x.npz")


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("kind", ["hdf5", "npz"])
def test_damaged_copies(tmp_path, kind):
    path = write(tmp_path, kind, FEW)
    (tmp_path / "damaged").mkdir()
    damaged = tmp_path / "damaged" / path.name
    right = Dsprites(path).factors.fingerprint

    def read(content):
        for left in damaged.parent.iterdir():
            left.unlink()
        damaged.write_bytes(content)
        found = Dsprites(damaged)
        assert found.factors.fingerprint == right or len(found.factors) == 36
        if kind == "npz":
            found.prepare()
        found.fetch([0, 35])

    assert survives(path.read_bytes(), read, 50, head=4096, slack=300 << 20) > 10


def test_of_two_files_that_which_can_be_read_at_random_is_opened(releases):
    assert setsup.load("dsprites", releases["npz"].parent).file.suffix == ".hdf5"
    # and the npz that tests write is that of the release, with its pickle
    assert zipfile.ZipFile(releases["npz"]).namelist() == [
        *("metadata.npy", "imgs.npy", "latents_classes.npy", "latents_values.npy")
    ]
