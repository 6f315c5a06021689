"""Releases as other tools leave them on the disk: opened from the folder that a tool calls the root, and from within.

The layouts are those of torchvision, of disentanglement_lib's download script, of LORD, of Kaggle's copies and of the
scripts that publishers give; each is made of a small release in the true format.
"""

import gzip
import importlib
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.datasets import Dataset
from tests.true_files import cars3d, celeba, dsprites, imagenet, mnist, smallnorb


def written(name: str, folder: Path, **options: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").write(folder, **options)
    return folder


def unzipped(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)


@pytest.fixture(scope="module")
def torchvision(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One root that several datasets of torchvision share."""
    root = tmp_path_factory.mktemp("torchvision")
    raw = root / "MNIST" / "raw"
    raw.mkdir(parents=True)
    mnist.write(raw, per_split=20)
    for packed in list(raw.glob("*.gz")):  # both stay
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    written("celeba", root / "loose")
    faces = root / "celeba"
    faces.mkdir()
    for path in (root / "loose").rglob("*.*"):
        path.rename(faces / path.name)
    unzipped(faces / "img_align_celeba.zip", faces)
    shutil.rmtree(root / "loose")
    written("stl10", root)
    with tarfile.open(root / "stl10_binary.tar.gz", "w:gz") as archive:  # it stays, too
        archive.add(root / "stl10_binary", "stl10_binary")
    written("cars196", root / "stanford_cars")
    written("cifar10", root)  # cifar-10-batches-py
    written("cifar100", root)  # cifar-100-python
    written("svhn", root)  # the files themselves
    written("usps", root)
    written("ucf101", root)  # UCF-101 and ucfTrainTestlist
    videos = written("hmdb51", root / "hmdb51_org")
    (videos / "testTrainMulti_7030_splits").rename(root / "test_train_splits")
    tree = root / "imagenet"
    tree.mkdir()
    imagenet.write_tree(tree)
    (tree / "ILSVRC2012_devkit_t12.tar.gz").write_bytes(imagenet.packed(imagenet.kit_files(), "w:gz"))
    (tree / "meta.bin").write_bytes(b"PK")
    return root


@pytest.fixture(scope="module")
def disentanglement(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of disentanglement_lib's download script."""
    root = tmp_path_factory.mktemp("disentanglement")
    smallnorb.write(root / "small_norb", end="", per_split=20)
    cars3d.write(root, below="cars")
    (root / "dsprites").mkdir()
    dsprites.write(root / "dsprites", "npz")
    written("mpi3d-toy", root / "mpi3d_toy")
    return root


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of the publishers' own scripts, of Kaggle and of code that came with papers."""
    root = tmp_path_factory.mktemp("scripts")
    written("edges2shoes", root / "datasets")
    written("ut-zap50k", root / "zappos")
    written("pascal3d", root / "pascal", wrapped=True)
    written("shapenet", root / "ShapeNetCore.v2")
    written("imagenet-a", root / "loose")
    with tarfile.open(root / "loose" / "imagenet-a.tar") as archive:
        archive.extractall(root, filter="data")
    shutil.rmtree(root / "loose")
    kaggle = root / "celeba-dataset"
    (kaggle / "img_align_celeba").mkdir(parents=True)
    written("celeba", root / "loose")
    unzipped(root / "loose" / "Img" / "img_align_celeba.zip", kaggle / "img_align_celeba")
    for name, text in celeba.kaggle().items():
        (kaggle / name).write_text(text)
    lord = root / "lord" / "Img" / "img_align_celeba_png.7z" / "img_align_celeba_png"
    lord.parent.mkdir(parents=True)
    shutil.copytree(kaggle / "img_align_celeba" / "img_align_celeba", lord)
    for folder in ("Anno", "Eval"):
        shutil.move(root / "loose" / folder, root / "lord" / folder)
    shutil.rmtree(root / "loose")
    plain = written("cars196", root / "kaggle-cars")
    for part in ("cars_train", "cars_test"):
        (plain / part).rename(plain / "here")
        (plain / part).mkdir()
        (plain / "here").rename(plain / part / part)
    (plain / "devkit").rename(plain / "here")
    (plain / "car_devkit").mkdir()
    (plain / "here").rename(plain / "car_devkit" / "devkit")
    return root


@pytest.fixture(scope="module")
def reid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of torchreid and fast-reid."""
    root = tmp_path_factory.mktemp("reid")
    written("market-1501", root / "market1501")
    written("msmt17", root / "msmt17", version="V2")
    (written("vehicleid", root) / "VehicleID_V1.0").rename(root / "vehicleid")
    (written("veri776", root) / "VeRi").rename(root / "veri")
    return root


LAYOUTS = [
    ("mnist", "torchvision", "", "MNIST", "MNIST/raw"),
    ("affine-mnist", "torchvision", "", "MNIST", "MNIST/raw"),
    ("colored-mnist", "torchvision", "", "MNIST", "MNIST/raw"),
    ("celeba", "torchvision", "", "celeba"),
    ("stl10", "torchvision", "", "stl10_binary"),
    ("cars196", "torchvision", "", "stanford_cars"),
    ("cifar10", "torchvision", "", "cifar-10-batches-py"),
    ("cifar100", "torchvision", "", "cifar-100-python"),
    ("svhn", "torchvision", ""),
    ("usps", "torchvision", ""),
    ("ucf101", "torchvision", ""),
    ("hmdb51", "torchvision", "", "hmdb51_org"),
    ("imagenet", "torchvision", "", "imagenet"),
    ("smallnorb", "disentanglement", "", "small_norb"),
    ("cars3d", "disentanglement", "", "cars"),
    ("dsprites", "disentanglement", "", "dsprites"),
    ("mpi3d-toy", "disentanglement", "", "mpi3d_toy"),
    ("edges2shoes", "scripts", "datasets", "datasets/edges2shoes"),
    ("ut-zap50k", "scripts", "", "zappos"),
    ("market-1501", "reid", "", "market1501", "market1501/Market-1501-v15.09.15"),
    ("msmt17", "reid", "", "msmt17", "msmt17/MSMT17_V2"),
    ("vehicleid", "reid", "", "vehicleid"),
    ("veri776", "reid", "", "veri"),
    ("pascal3d", "scripts", "", "pascal"),
    ("shapenet", "scripts", "", "ShapeNetCore.v2"),
    ("imagenet-a", "scripts", "", "imagenet-a"),
    ("celeba", "scripts", "celeba-dataset", "lord"),
    ("cars196", "scripts", "", "kaggle-cars"),
]


SPELT = {"file"}
"""Factors that name files, which tools move."""

LACKING = {
    ("celeba", "celeba-dataset"): {"identity", "dcodr", "face_found"},
    ("hmdb51", "hmdb51_org"): {"split1", "split2", "split3"},
}
"""What a copy does not hold."""

OPTIONS = {"mnist": {"per_split": 20}, "smallnorb": {"end": "", "per_split": 20}}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Dataset]:
    """Datasets opened as they are published."""
    opened: dict[str, Dataset] = {}

    def get(name: str) -> Dataset:
        if name not in opened:
            shared = "mnist" if name.endswith("-mnist") else name
            folder = written(shared, tmp_path_factory.mktemp(name), **OPTIONS.get(shared, {}))
            opened[name] = setsup.load(name, folder)
        return opened[name]

    return get


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize(
    ("name", "tool", "place"),
    [(name, tool, place) for name, tool, *places in LAYOUTS for place in places],
)
def test_it_is_read_where_a_tool_left_it(
    name: str, tool: str, place: str, request: pytest.FixtureRequest, published: Callable[[str], Dataset]
) -> None:
    found, expected = setsup.load(name, request.getfixturevalue(tool) / place), published(name)
    lacking = LACKING.get((name, place), set())
    assert set(found.factors.names) == set(expected.factors.names) - lacking
    assert len(found) == len(expected)
    for factor in set(found.factors.names) - SPELT:
        assert np.array_equal(found.factors.codes(factor), expected.factors.codes(factor), equal_nan=True), factor
    if name == "dsprites":
        return  # this form is prepared before it is fetched
    picture = "image" if "image" in found.modalities else "preview"
    for row in (0, len(found) - 1):
        assert np.array_equal(*(one.fetch(row, [picture])[picture] for one in (found, expected)))


def test_it_is_read_in_a_shared_folder_of_another_tool(torchvision: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETSUP_DATA", str(torchvision))
    assert len(setsup.load("mnist")) == 40
    assert len(setsup.load("celeba")) == 69
