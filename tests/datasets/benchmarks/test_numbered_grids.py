"""Isaac3D and Falcor3D: rows equal to the numbers that the release's README gives its images."""

import io
import math
import shutil

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks.numbered_grids import falcor3d as module
from setsup.errors import DataError
from setsup.files import load_manifest
from tests.true_files import falcor3d, isaac3d

GRIDS = {"isaac3d": isaac3d, "falcor3d": falcor3d}


@pytest.mark.parametrize("name", GRIDS)
def test_some_of_the_images(tmp_path, caplog, parts_are_told, name):
    written = GRIDS[name]
    written.write(tmp_path)
    found, cells = setsup.load(name, tmp_path), sorted(written.cells(), key=written.number)
    names = found.factors.names
    assert np.stack([found.factors.codes(factor) for factor in names], axis=1).tolist() == [*map(list, cells)]
    for row in range(0, len(cells), 5):
        expected = np.asarray(Image.open(io.BytesIO(written.files()[f"images/{written.number(cells[row]):06}.png"])))
        assert np.array_equal(found.fetch(row)["image"], expected)
    manifest = load_manifest(name)
    assert f"{name}: {len(cells)} of the {manifest.samples:,} published samples are present" in caplog.text
    assert math.prod(len(factor) for factor in found.factors.factors) == manifest.samples
    top = next(tmp_path.iterdir())
    if name == "isaac3d":
        shutil.make_archive(str(tmp_path / top.name), "zip", tmp_path, top.name)
        shutil.rmtree(top)
        assert setsup.load(name, tmp_path).paths([0]) == [f"{top.name}/images/{written.number(cells[0]):06}.png"]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A whole grid of two factors."""
    monkeypatch.setattr(module, "_SIZES", {"lighting_intensity": 3, "camera_x": 2})
    folder = tmp_path / "falcor3d" / "images"
    folder.mkdir(parents=True)
    for number in range(6):
        Image.new("RGB", (8, 8), (40 * number, 0, 0)).save(folder / f"{number:06}.png")
    return folder


def test_all_images_are_a_grid(small, tmp_path, caplog):
    found = setsup.load("falcor3d", tmp_path)
    assert found.factors.is_grid
    assert not caplog.text
    assert found.fetch(range(6))["image"][:, 0, 0, 0].tolist() == [0, 40, 80, 120, 160, 200]
    assert found.factors.row(5) == {"lighting_intensity": 2, "camera_x": 1}


def test_images_that_are_not_of_the_grid(small, tmp_path):
    (small / "000005.png").rename(small / "000006.png")
    with pytest.raises(DataError, match=r"contains the image 000006 of falcor3d, but the images end at 000005"):
        setsup.load("falcor3d", tmp_path)
    shutil.copytree(small, small.parent / "Falcor3D_again" / "images")
    (small / "000006.png").rename(small / "000005.png")
    (small.parent / "Falcor3D_again" / "images" / "000006.png").unlink()
    with pytest.raises(DataError, match=r"contains the image 000000 of falcor3d, twice"):
        setsup.load("falcor3d", tmp_path)


def test_numbered_images_of_another_release(small, tmp_path):
    small.parent.rename(tmp_path / "rooms")
    with pytest.raises(
        DataError, match=r"numbered images in rooms/images.*rename the folder that contains them to Falcor3D"
    ):
        setsup.load("falcor3d", tmp_path)
