import math
import pickle
import zipfile

import numpy as np
import pytest

import setsup
import setsup.datasets.benchmarks.mpi3d.dataset as module
from setsup.datasets.benchmarks.mpi3d import Mpi3D, toy
from setsup.errors import DataError
from setsup.files import load_manifest
from tests.true_files.mpi3d_toy import CHALLENGE, RELEASE, drawn, picture, row, write, write_stored

VARIANTS = ("mpi3d-toy", "mpi3d-realistic", "mpi3d-real")


@pytest.fixture(scope="module")
def challenge(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpi3d")
    write(folder)
    return folder


@pytest.fixture
def small(monkeypatch):
    """Grids of 144 and of 64 images, which a packed file can have in a test."""
    monkeypatch.setattr(module, "_TURNS", 2)
    monkeypatch.setattr(module, "_GROUNDS", ("purple",))
    monkeypatch.setattr(module, "_HEIGHTS", ("top",))
    monkeypatch.setattr("setsup.datasets.formats.npz._BLOCK", 50 * 12288)
    monkeypatch.setattr(module, "_SIZES", ("small",))
    return np.random.default_rng(0).integers(0, 256, (144, 64, 64, 3), dtype=np.uint8)


def test_the_file_that_tests_write_is_a_zip_of_an_array(challenge):
    with zipfile.ZipFile(challenge / "mpi3d_toy.npz") as file, file.open("images.npy") as stored:
        version = np.lib.format.read_magic(stored)
        assert version == (1, 0)
        head = np.lib.format.read_array_header_1_0(stored)
        assert head == ((460_800, 64, 64, 3), False, np.uint8)
        assert np.array_equal(np.frombuffer(stored.read(12288), np.uint8).reshape(64, 64, 3), picture([0] * 7))


def test_the_grid_of_the_challenge(challenge):
    found = setsup.load("mpi3d-toy", challenge)
    table = found.factors
    assert table.is_grid
    assert [len(factor) for factor in table.factors] == list(CHALLENGE)
    assert table["object_color"].levels == ("green", "red", "blue", "brown")
    assert table["object_shape"].levels == ("cone", "cube", "hexagonal", "sphere")
    some = list(drawn())[::37]
    rows = np.array([row(levels) for levels in some])
    for place, name in enumerate(table.names):
        assert table.codes(name, rows).tolist() == [levels[place] for levels in some]
    pictures = found.fetch(rows.reshape(-1, 1))["image"]
    assert np.array_equal(pictures[:, 0], np.array([picture(levels) for levels in some]))
    out = np.zeros((len(rows), 64, 64, 3), np.uint8)
    found.fetch_into(rows, {"image": out})
    assert np.array_equal(out, pictures[:, 0])
    assert not found.fetch(row((0, 0, 0, 0, 0, 0, 1)))["image"].any()
    assert toy.prepare(challenge) == []
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.fetch(rows)["image"], out)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_grid_of_the_release(tmp_path, name):
    last = [size - 1 for size in RELEASE]
    pictures = {row(last, RELEASE): picture([3, 3, 1, 2, 2, 39, 39]), 115_200: picture([0] * 7)}
    file = load_manifest(name).files[0].path
    write_stored(tmp_path / file, RELEASE, pictures)
    found = setsup.load(name, tmp_path)
    assert found.name == name
    assert len(found) == 1_036_800 == load_manifest(name).samples
    assert (tmp_path / file).stat().st_blocks * 512 < 1 << 20  # of 12.7 GB
    assert found.factors.row(1_036_799) == {
        **{"object_color": "olive", "object_shape": "sphere", "object_size": "large", "camera_height": "bottom"},
        **{"background_color": "salmon", "horizontal_axis": 39, "vertical_axis": 39},
    }
    # strides 172800, 28800, 14400, 4800, 1600, 40, 1
    assert found.factors.codes("object_shape", 115_200) == 4
    assert found.factors.codes("object_color", 172_800) == 1
    assert found.factors.codes("horizontal_axis", 41) == found.factors.codes("vertical_axis", 41) == 1
    images = found.fetch([1_036_799, 115_200, 5])["image"]
    assert np.array_equal(images[0], picture([3, 3, 1, 2, 2, 39, 39]))
    assert np.array_equal(images[1], picture([0] * 7))
    assert not images[2].any()


def test_complex_objects(tmp_path):
    pictures = {172_800: picture([0] * 7), 460_799: picture([3, 3, 1, 2, 2, 39, 39])}
    write_stored(tmp_path / "real3d_complicated_shapes_ordered.npz", CHALLENGE, pictures)
    found = setsup.load("mpi3d-complex", tmp_path)
    assert found.name == "mpi3d-complex"
    assert len(found) == load_manifest("mpi3d-complex").samples
    for words, factor in zip(load_manifest("mpi3d-complex").factors, found.factors.factors, strict=True):
        assert (words.name, words.count) == (factor.name, len(factor))
    # the table of the data's page: strides 115200, 28800, 14400, 4800, 1600, 40, 1
    assert found.factors.row(172_800) == {
        **{"object_color": "green", "object_shape": "croissant", "object_size": "small", "camera_height": "top"},
        **{"background_color": "purple", "horizontal_axis": 0, "vertical_axis": 0},
    }
    assert found.factors.row(460_799)["object_color"] == "red"
    assert found.factors.row(460_799)["object_shape"] == "beer-cup"
    images = found.fetch([172_800, 460_799])["image"]
    assert np.array_equal(images, [pictures[172_800], pictures[460_799]])
    write_stored(tmp_path / "real3d_complicated_shapes_ordered.npz", RELEASE, {})
    with pytest.raises(DataError, match=r"has 1,036,800 images and no labels; expected 460,800 images"):
        setsup.load("mpi3d-complex", tmp_path)


def test_a_packed_file_is_prepared_once(tmp_path, small):
    np.savez_compressed(tmp_path / "mpi3d_toy.npz", images=small)
    found = setsup.load("mpi3d-toy", tmp_path)
    with pytest.raises(DataError, match=rf"sequentially; run `setsup prepare mpi3d-toy --root {tmp_path}` once"):
        found.fetch([0])
    made = toy.prepare(tmp_path)
    assert made == [tmp_path / "mpi3d_toy.images.npy"]
    assert np.array_equal(np.load(made[0]), small)
    for each in (found, setsup.load("mpi3d-toy", tmp_path)):
        assert np.array_equal(each.fetch([[5, 143], [0, 5]])["image"], small[[[5, 143], [0, 5]]])
    np.savez_compressed(tmp_path / "mpi3d_toy.npz", images=small[::-1])
    with pytest.raises(DataError, match="created from another version"):
        setsup.load("mpi3d-toy", tmp_path).fetch([0])


def test_a_stored_file_is_mapped(tmp_path, small):
    np.savez(tmp_path / "mpi3d_toy.npz", images=small)
    found = setsup.load("mpi3d-toy", tmp_path)
    assert np.array_equal(found.fetch(range(144))["image"], small)
    found.fetch([3])["image"][:] = 0
    assert np.array_equal(found.fetch([3])["image"][0], small[3])
    np.savez(tmp_path / "mpi3d_toy.npz", images=small[:64])
    again = setsup.load("mpi3d-toy", tmp_path)
    assert [len(factor) for factor in again.factors.factors][:2] == [4, 4]
    with pytest.raises(DataError, match="replaced since it was opened"):
        pickle.loads(pickle.dumps(found)).fetch([0])


@pytest.mark.parametrize("folder", ["", "mpi3d-toy", "mpi3d_toy"])
def test_places(tmp_path, small, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    np.savez(tmp_path / folder / "mpi3d_toy.npz", images=small)
    assert len(setsup.load("mpi3d-toy", tmp_path)) == 144


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((143, 64, 64, 3), np.uint8), r"has 143 images and no labels; expected 144 or 64 images"),
        (np.zeros((0, 64, 64, 3), np.uint8), "has 0 images"),
        (np.zeros((144, 3, 64, 64), np.uint8), r"expected uint8 of shape \(N, 64, 64, 3\)"),
        (np.zeros((144, 64, 64, 3), np.int8), "'images' has dtype int8"),
        (np.zeros(144, np.uint8), "expected uint8"),
        (np.array(144, np.uint8), "expected uint8"),
        (np.array([{}], dtype=object), "pickled"),
    ],
)
def test_another_content(tmp_path, small, images, words):
    np.savez_compressed(tmp_path / "mpi3d_toy.npz", images=images)
    with pytest.raises(DataError, match=rf"mpi3d_toy\.npz.*{words}"):
        setsup.load("mpi3d-toy", tmp_path)


def test_a_cut_file(tmp_path, small):
    np.savez(tmp_path / "mpi3d_toy.npz", images=small)
    content = (tmp_path / "mpi3d_toy.npz").read_bytes()
    (tmp_path / "mpi3d_toy.npz").write_bytes(content[:-5000])
    with pytest.raises(DataError, match=r"mpi3d_toy\.npz"):
        Mpi3D(tmp_path / "mpi3d_toy.npz")


def test_manifests_tell_the_same_grid():
    for name in VARIANTS:
        factors = load_manifest(name).factors
        assert [factor.count for factor in factors] == list(RELEASE)
        assert math.prod(RELEASE) == 1_036_800
        assert math.prod(CHALLENGE) == 460_800
