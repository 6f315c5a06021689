import io
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image

import setsup
from setsup.errors import DataError
from setsup.files import load_manifest, unpack
from setsup.loading.transforms import Augment, Background
from tests.true_files.imagenet_a import NAMES, files, write


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imagenet-a")
    write(folder)
    return folder


def _read(release):
    with tarfile.open(release / "imagenet-a.tar") as file:
        found = {info.name: file.extractfile(info).read() for info in file}
    return sorted((name, content) for name, content in found.items() if name.endswith(".jpg"))


@pytest.mark.parametrize("form", ["tar", "as root", "folder", "synsets"])
def test_values(tmp_path, release, form):
    root = release
    if form == "as root":
        root = release / "imagenet-a.tar"
    elif form != "tar":
        unpack(release / "imagenet-a.tar", tmp_path / "x")
        root = tmp_path / "x" / ("imagenet-a" if form == "synsets" else "")
    found = setsup.load("imagenet-a", root)
    rows = _read(release)
    assert found.paths(range(len(rows))) == [name.partition("/")[2] for name, _ in rows]
    assert len(found) == len(rows) == 20
    table = found.factors
    assert table.values("synset").tolist() == [name.split("/")[1] for name, _ in rows]
    assert table.values("category").tolist() == [NAMES[name.split("/")[1]] for name, _ in rows]
    assert set(table.values("split")) == {"test"}
    assert any(" _ " in name for name, _ in rows)
    for row, (_, content) in enumerate(rows):
        assert np.array_equal(found.fetch(row)["image"], np.asarray(Image.open(io.BytesIO(content)).convert("RGB")))


def test_a_pool_of_backgrounds(release):
    """Renderings with alpha, laid over random crops of it."""
    pool = setsup.load("imagenet-a", release, size=(48, 48)).fetch(range(20))["image"]
    images = torch.zeros(1, 6, 4, 32, 32, dtype=torch.uint8)
    images[:, :, :, 8:24, 8:24] = 255
    batch = Augment([Background(pool)], eight_bit=True)({"image": images, "step": 0})["image"]
    assert batch.shape == (1, 6, 3, 32, 32)
    assert (batch[:, :, :, 8:24, 8:24] == 255).all()
    for image in batch[0].permute(0, 2, 3, 1).numpy():
        corner = image[:8, :8]
        windows = np.lib.stride_tricks.sliding_window_view(pool, (8, 8), axis=(1, 2))
        assert (windows.transpose(0, 1, 2, 4, 5, 3) == corner).all(axis=(3, 4, 5)).any()


@pytest.mark.parametrize("readme", ["nothing", "prose", "some", "bytes"])
def test_names_only_where_all_are_listed(tmp_path, readme):
    content = {
        "prose": b"ImageNet-A consists of real-world images.\n",
        "some": b"n01443537 goldfish\n",
        "bytes": b"\xff\xfe\x00",
    }
    for name, data in files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith("README.txt"):
            (tmp_path / name).write_bytes(data)
        elif readme in content:
            (tmp_path / name).write_bytes(content[readme])
    assert setsup.load("imagenet-a", tmp_path).factors.names == ("synset", "split")


def test_bad_files(tmp_path, release):
    whole = (release / "imagenet-a.tar").read_bytes()
    (tmp_path / "imagenet-a.tar").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"imagenet-a\.tar is truncated"):
        setsup.load("imagenet-a", tmp_path)
    place = tmp_path / "x" / "imagenet-a" / "n01443537" / "0.000116_digital clock _ digital clock_0.865662.jpg"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"no image")
    with pytest.raises(DataError, match=r"digital clock_0\.865662\.jpg .row 0. is not a readable image"):
        setsup.load("imagenet-a", tmp_path / "x")


def test_the_manifest(release):
    manifest = load_manifest("imagenet-a")
    assert (manifest.samples, manifest.size) == (7500, 687_552_512)
    assert tuple(factor.name for factor in manifest.factors) == setsup.load("imagenet-a", release).factors.names
