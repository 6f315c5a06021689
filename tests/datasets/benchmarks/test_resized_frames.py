"""Cameras of frames whose images were resized after the release was made."""

import importlib

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError

NAMES = ("co3d", "mvimgnet")


@pytest.fixture
def copy(request, tmp_path):
    name = request.node.callspec.params["name"]
    importlib.import_module(f"tests.true_files.{name}").write(tmp_path)
    whole = setsup.load(name, tmp_path)
    rows = np.arange(len(whole))
    paths = whole.paths(rows)
    lenses = whole.fetch(rows, ["intrinsics"])["intrinsics"]
    known = np.flatnonzero(np.isfinite(lenses[:, 0, 0]))
    return tmp_path, [tmp_path / path for path in paths], lenses, known


def resize(path, change):
    with Image.open(path) as image:
        image.load()
    image.resize(change(*image.size)).save(path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ratio", [0.5, 0.37, 2.0])
def test_intrinsics_follow_images_that_were_resized_by_one_ratio(copy, name, ratio):
    folder, paths, before, known = copy
    sizes = []
    for path in paths:
        with Image.open(path) as image:
            sizes.append(image.size)
        resize(path, lambda width, height: (round(width * ratio), round(height * ratio)))
    rows = np.arange(len(paths))
    after = setsup.load(name, folder).fetch(rows, ["intrinsics"])["intrinsics"]
    for row in known.tolist():
        width, height = sizes[row]
        own = np.array([round(width * ratio), round(height * ratio)]) / (width, height)
        # where the ray (0.3, -0.2, 1) meets the image: a share of its sides, which resizing does not change
        ray = np.array([0.3, -0.2, 1.0])
        seen, now = (lens.astype(np.float64) @ ray for lens in (before[row], after[row]))
        assert np.allclose((seen[:2] + 0.5) * own, now[:2] + 0.5, rtol=1e-5)
    others = np.setdiff1d(rows, known)
    assert np.isnan(after[others, 0, 0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_size_gives_the_same_cameras_for_both(copy, name):
    folder, paths, _, known = copy
    size = (24, 24)
    before = setsup.load(name, folder, size=size).fetch(known, ["intrinsics"])["intrinsics"]
    for path in paths:
        resize(path, lambda width, height: (2 * width, 2 * height))
    after = setsup.load(name, folder, size=size).fetch(known, ["intrinsics"])["intrinsics"]
    assert np.allclose(before, after, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "change", [lambda w, h: (w // 2, h), lambda w, h: (max(w, h) + 40, 60), lambda w, h: (w, h + 9)]
)
def test_images_that_were_stretched_or_cut_are_refused(copy, name, change):
    folder, paths, _, _ = copy
    for path in paths:
        resize(path, change)
    with pytest.raises(DataError, match="its intrinsics are unknown"):
        setsup.load(name, folder)


@pytest.mark.parametrize("name", NAMES)
def test_one_image_among_others(copy, name):
    """It is seen where it is fetched, however the images were chosen that are looked at when a release is opened."""
    folder, paths, before, known = copy
    dataset = setsup.load(name, folder)
    one = int(known[1])
    resize(paths[one], lambda width, height: (width, 2 * height))
    others = np.setdiff1d(known, [one])
    assert np.array_equal(dataset.fetch(others, ["intrinsics"])["intrinsics"], before[others])
    with pytest.raises(DataError, match="its intrinsics are unknown"):
        setsup.load(name, folder).fetch([one], ["intrinsics"])
