import io

import numpy as np
import pytest

from setsup.datasets.formats.geometry.binvox import read_binvox
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files.keypointnet import painted_toy
from tests.true_files.shapenet import binvox, shell, voxels


@pytest.fixture(scope="module")
def chair():
    vertices, *_ = painted_toy(3, 1)
    return voxels(vertices)


def test_voxels_and_their_place_in_the_frame_of_the_mesh(chair, tmp_path):
    solid, low, scale = chair
    path = tmp_path / "a #1 ü.binvox"
    path.write_bytes(binvox(solid, low, scale))
    grid = read_binvox(path, str(path))
    assert grid.voxels.dtype == np.bool_
    assert np.array_equal(grid.voxels, solid)
    centres = grid.centres()
    assert len(centres) == solid.sum()
    vertices, *_ = painted_toy(3, 1)
    assert (centres >= vertices.min(axis=0)).all()
    assert (centres <= vertices.max(axis=0)).all()
    boxes = vertices.reshape(-1, 24, 3)
    within = [((centres >= box.min(axis=0)) & (centres <= box.max(axis=0))).all(axis=1) for box in boxes]
    assert np.logical_or.reduce(within).all()


def test_as_trimesh_reads_it(chair):
    trimesh = pytest.importorskip("trimesh")
    solid, low, scale = chair
    content = binvox(shell(solid), low, scale)
    expected = trimesh.exchange.binvox.load_binvox(io.BytesIO(content))
    assert np.array_equal(read_binvox(content, "a.binvox").voxels, expected.matrix)


def test_headers_in_the_wild():
    content = b"#binvox 1\n# made by hand\n\nscale 2.5\r\ndim 2 3 4 # x, z, y\ntranslate -1 0 1e0\ndata\n"
    content += bytes([1, 4, 0, 20])
    grid = read_binvox(content, "a.binvox")
    assert grid.voxels.shape == (2, 4, 3)
    assert np.argwhere(grid.voxels).tolist() == [[0, 0, 0], [0, 1, 0], [0, 2, 0], [0, 3, 0]]
    assert grid.centres()[0].tolist() == [-1 + 2.5 / 8, 2.5 / 8, 1 + 2.5 / 8]


HEAD = b"#binvox 1\ndim 2 2 2\ntranslate 0 0 0\nscale 1\ndata\n"
BAD = {
    "is not a binvox file": b"#voxbin 1\n",
    "no line 'data'": HEAD[:-5],
    "three integers": HEAD.replace(b"2 2 2", b"2 2"),
    "sides .2 0 2.; expected three integers": HEAD.replace(b"2 2 2", b"2 0 2"),
    "expected three integers": HEAD.replace(b"2 2 2", b"99999 99999 99999"),
    "3 finite numbers": HEAD.replace(b"0 0 0", b"0 nan 0"),
    "1 finite numbers": HEAD.replace(b"scale 1", b"scale one"),
    "which is not valid in a binvox file": HEAD.replace(b"scale", b"scales"),
    "within a run": HEAD + b"\1\5\0",
    "a value other than 0 and 1": HEAD + b"\2\10",
    "a run of length 0": HEAD + b"\1\0\1\10",
    "contains 7 voxels": HEAD + b"\1\5\0\2",
    "contains 9 voxels": HEAD + b"\1\5\0\4",
    "contains 5 voxels, but its header specifies 16384": HEAD.replace(b"2 2 2", b"16384 16384 16384") + b"\1\5",
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said(message):
    with pytest.raises(DataError, match=f"bad.binvox .*{message}"):
        read_binvox(BAD[message], "bad.binvox")


def test_a_small_file_that_stands_for_very_much_is_refused(monkeypatch):
    monkeypatch.setattr("setsup.datasets.formats.geometry.binvox._MOST_VOXELS", 7)
    with pytest.raises(DataError, match=r"a\.binvox contains 8 voxels, more than the limit of 7; fetch it again"):
        read_binvox(HEAD + b"\1\10", "a.binvox")


def test_fuzzing(chair):
    # what a run of two bytes may stand for is 255 voxels; nothing is taken for more than the runs hold
    content = binvox(*chair)
    assert survives(content, lambda damaged: read_binvox(damaged, "a.binvox").centres(), 150, times=300) > 50
