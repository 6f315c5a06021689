"""3DIdent and Causal3DIdent: rows equal to the arrays of their latents and to the images of their numbers."""

import importlib
import io
import tarfile

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks.ident3d.reader import LATENTS
from setsup.errors import DataError
from tests.true_files import causal3dident

ident3d = importlib.import_module("tests.true_files.3dident")


def _latents(found):
    return np.stack([found.factors.column(name) for name in LATENTS], axis=1)


def _same_images(found, contents):
    assert len(found) == len(contents)
    for row in range(0, len(contents), 3):
        assert np.array_equal(found.fetch(row)["image"], np.asarray(Image.open(io.BytesIO(contents[row]))))


@pytest.mark.parametrize("form", ["tars", "unpacked", "one of each", "test alone"])
def test_3dident(tmp_path, form):
    ident3d.write(tmp_path)
    parts = ["train", "test"]
    for part in {"tars": [], "unpacked": parts, "one of each": ["test"], "test alone": []}[form]:
        with tarfile.open(tmp_path / f"3dident_{part}.tar") as file:
            file.extractall(tmp_path, filter="data")
        (tmp_path / f"3dident_{part}.tar").unlink()
    if form == "test alone":
        (tmp_path / "3dident_train.tar").unlink()
        parts = ["test"]
    found = setsup.load("3dident", tmp_path)
    arrays = [np.load(io.BytesIO(ident3d.files(part)["raw_latents.npy"])) for part in parts]
    assert np.array_equal(_latents(found), np.concatenate(arrays))
    assert found.factors.values("split").tolist() == [part for part in parts for _ in range(ident3d.COUNTS[part])]
    images = [
        files[name] for part in parts for files in [ident3d.files(part)] for name in sorted(files) if "im" in name
    ]
    _same_images(found, images)
    sets = setsup.SetSampler(found.factors, inactive=["x"], tolerance={"x": 0.6}, size=2, seed=0, on_small_group="drop")
    x = found.factors.column("x")[sets[0].indices]
    assert np.abs(x[:, 0] - x[:, 1]).max() <= 1.2


def test_causal3dident(tmp_path):
    causal3dident.write(tmp_path)
    found, files = setsup.load("causal3dident", tmp_path), causal3dident.files()
    order = [(part, shape) for part in causal3dident.COUNTS for shape in range(7)]
    assert np.array_equal(_latents(found), np.concatenate([causal3dident.latents(*each) for each in order]))
    rows = [(part, shape, row) for part, shape in order for row in range(causal3dident.COUNTS[part])]
    assert found.factors.values("shape").tolist() == [causal3dident.SHAPES[shape] for _, shape, _ in rows]
    assert found.factors.values("split").tolist() == [part.removesuffix("set") for part, *_ in rows]
    _same_images(found, [files[f"{part}/images_{shape}/{row}.png"] for part, shape, row in rows])
    assert len(setsup.load("causal3dident", tmp_path, split="test")) == 14


def test_what_is_not_there_is_left_out(tmp_path, caplog):
    causal3dident.write(tmp_path)
    (tmp_path / "testset" / "raw_latents_3.npy").unlink()
    (tmp_path / "testset" / "images_2" / "0.png").unlink()
    found = setsup.load("causal3dident", tmp_path, split="test")
    assert found.factors.counts("shape").tolist() == [2, 2, 1, 0, 2, 2, 2]
    assert "1 of the 2 listed images are missing" in caplog.text


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((1, 10), np.float32), "has 1 rows, but the images are numbered up to 2"),
        (
            np.zeros((3, 11), np.float32),
            r"has dtype float32 and shape \(3, 11\); expected floating-point numbers of shape \(n, 10\)",
        ),
        (np.zeros((3, 10), np.int64), "number"),
        (np.full((3, 10), np.nan), "contains a value that is not finite"),
        (np.array([[{}]], object), "pickled"),
        (b"", r"not a \.npy file"),
        (ident3d.npy(np.zeros((3, 10)))[:-8], r"368 bytes\), but the data has 360"),
    ],
)
def test_damaged_latents(tmp_path, array, words):
    causal3dident.write(tmp_path)
    content = array if isinstance(array, bytes) else ident3d.npy(array)
    (tmp_path / "trainset" / "raw_latents_4.npy").write_bytes(content)
    with pytest.raises(DataError, match=words):
        setsup.load("causal3dident", tmp_path)
