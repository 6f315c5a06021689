"""Doubles have the attributes of torchvision's datasets, which cannot be installed beside every torch."""

import pickle
from collections import namedtuple
from pathlib import Path
from typing import Any

import datasets as hugging_face
import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset

import setsup
from setsup.errors import DataError, SetsupError
from setsup.loading import as_torch

N = 12


def picture(row: int, mode: str = "RGB", size: tuple[int, int] = (6, 4)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(row).integers(0, 256, (size[1], size[0], 3), np.uint8)).convert(mode)


class ImageFolder(Dataset):
    """As torchvision.datasets.ImageFolder: samples, targets, classes, class_to_idx, loader, transform."""

    def __init__(self, root: Path, transform: Any = None) -> None:
        self.root, self.transform, self.target_transform = str(root), transform, None
        self.classes = sorted(path.name for path in root.iterdir())
        self.class_to_idx = {name: code for code, name in enumerate(self.classes)}
        self.samples = [
            (str(path), self.class_to_idx[name]) for name in self.classes for path in sorted((root / name).iterdir())
        ]
        self.imgs, self.targets = self.samples, [code for _, code in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, row: int) -> tuple[Any, int]:
        path, target = self.samples[row]
        image = Image.open(path).convert("RGB")
        return image if self.transform is None else self.transform(image), target


class MNIST(Dataset):
    """As torchvision.datasets.MNIST: data and targets are tensors, items images of mode L."""

    classes = ("0 - zero", "1 - one", "2 - two")

    def __init__(self, transform: Any = None) -> None:
        self.data = torch.arange(N * 24, dtype=torch.uint8).reshape(N, 6, 4)
        self.targets = torch.arange(N) % 3
        self.transform, self.target_transform = transform, None

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, row: int) -> tuple[Any, int]:
        image = Image.fromarray(self.data[row].numpy(), mode=None)
        return image if self.transform is None else self.transform(image), int(self.targets[row])


class Items(Dataset):
    """Whatever a function makes."""

    def __init__(self, make: Any, rows: int = N) -> None:
        self.make, self.rows, self.read = make, rows, 0

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> Any:
        self.read += 1
        return self.make(row)


def to_tensor(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255


def pil_to_tensor(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for row in range(N):
        place = tmp_path / "pets" / ("dog" if row % 3 else "cat")
        place.mkdir(parents=True, exist_ok=True)
        picture(row).save(place / f"{row:02}.png")
    return tmp_path / "pets"


# -- torchvision -------------------------------------------------------------------------------------------------------


def test_an_image_folder(folder: Path) -> None:
    theirs = ImageFolder(folder)
    found = setsup.from_torch(theirs)
    assert found.factors["target"].levels == ("cat", "dog")
    assert found.factors.values("target").tolist() == [theirs.classes[code] for code in theirs.targets]
    assert (found.name, found.cpu_bound, found.modalities["image"].shape) == ("ImageFolder", True, (4, 6, 3))
    images = found.fetch([[3, 0], [3, 11]])["image"]
    for place, row in np.ndenumerate([[3, 0], [3, 11]]):
        np.testing.assert_array_equal(images[place], np.asarray(theirs[row][0]))
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.fetch([3])["image"][0], np.asarray(theirs[3][0]))
    tensors = setsup.from_torch(ImageFolder(folder, pil_to_tensor))
    np.testing.assert_array_equal(tensors.fetch(range(N))["image"], found.fetch(range(N))["image"])
    assert setsup.from_torch(theirs, size=(3, 3)).fetch([0, 1])["image"].shape == (2, 3, 3, 3)


def test_mnist_and_its_subsets() -> None:
    theirs = MNIST()
    found = setsup.from_torch(theirs)
    assert found.factors["target"].levels == MNIST.classes
    np.testing.assert_array_equal(found.fetch(range(N))["image"][..., 0], theirs.data.numpy())
    rows = [7, 7, 2]
    some = setsup.from_torch(Subset(Subset(theirs, range(1, N)), [row - 1 for row in rows]))
    assert some.factors.values("target").tolist() == [MNIST.classes[row % 3] for row in rows]
    np.testing.assert_array_equal(some.fetch(range(3))["image"][..., 0], theirs.data.numpy()[rows])
    assert some.name == "MNIST"


def test_parts_agree_on_names_of_classes(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "birds" / "bird").mkdir(parents=True)
    picture(99).save(tmp_path / "birds" / "bird" / "0.png")
    both = ConcatDataset([ImageFolder(tmp_path / "birds"), ImageFolder(folder)])
    found = setsup.from_torch(both)
    assert found.factors["target"].levels == ("bird", "cat", "dog")
    assert found.factors.values("target").tolist() == ["bird"] + ["cat"] * 4 + ["dog"] * 8
    same = setsup.from_torch(ConcatDataset([MNIST(), MNIST()]))
    assert (len(same), same.factors["target"].levels) == (2 * N, MNIST.classes)


def test_targets_that_classes_do_not_name() -> None:
    theirs = MNIST()
    theirs.classes = ("0 - zero",)
    assert setsup.from_torch(theirs).factors["target"].levels == (0, 1, 2)
    theirs.classes, theirs.targets = MNIST.classes, torch.arange(N) % 4 - 1
    found = setsup.from_torch(theirs)
    assert (found.factors.codes("target") == -1).sum() == 3


# -- items -------------------------------------------------------------------------------------------------------------


def test_tensors() -> None:
    images = torch.randint(0, 256, (N, 3, 4, 6), dtype=torch.uint8)
    found = setsup.from_torch(TensorDataset(images, torch.arange(N) % 2, torch.rand(N, 5), torch.rand(N)))
    np.testing.assert_array_equal(found.fetch(range(N))["image"], images.permute(0, 2, 3, 1).numpy())
    assert (found.factors.names, found.modalities["item2"].shape) == (("item1", "item3"), (5,))
    pair = setsup.from_torch(TensorDataset(images, torch.arange(N)))
    assert pair.factors.values("target").tolist() == list(range(N))


def test_mappings_and_named_tuples() -> None:
    def item(row: int) -> dict[str, Any]:
        depth = np.full((4, 6), row, np.float32)
        return {"view": picture(row), "depth": depth, "who": "ab"[row % 2], "age": row / 2, "boxes": [1, 2]}

    found = setsup.from_torch(Items(item))
    assert (found.factors.names, set(found.modalities)) == (("who", "age"), {"view", "depth"})
    assert found.skipped == {"boxes": "list"}
    np.testing.assert_array_equal(found.fetch([5, 2])["depth"][:, 0, 0], [5, 2])
    chosen = setsup.from_torch(Items(item), ["who"])
    assert chosen.factors.names == ("who",)
    assert setsup.from_torch(Items(item), {"person": "who"}).factors.names == ("person",)
    pair = namedtuple("pair", ["picture", "who"])
    named = setsup.from_torch(Items(lambda row: pair(picture(row), row % 2)))
    assert (named.factors.names, list(named.modalities)) == (("who",), ["picture"])
    placed = setsup.from_torch(Items(lambda row: (picture(row), row % 2, "ab"[row % 2], row)), {"digit": 1, "name": 2})
    assert placed.factors.names == ("digit", "name")


def test_values_by_name_need_no_pass() -> None:
    for factors in ({"who": ["a", "b"] * 6}, pandas.DataFrame({"who": ["a", "b"] * 6})):
        theirs = Items(picture, N)
        found = setsup.from_torch(theirs, factors)
        assert found.factors.names == ("who",)
        assert theirs.read <= 8
        found.fetch([3, 3, 3])
        assert theirs.read <= 9


def test_images_of_all_sorts() -> None:
    modes = ["L", "RGB", "RGBA", "P"]
    mixed = setsup.from_torch(Items(lambda row: (picture(row, modes[row % 4]), row)))
    assert mixed.modalities["image"].shape == (4, 6, 3)
    np.testing.assert_array_equal(mixed.fetch(0)["image"], np.asarray(picture(0, "L").convert("RGB")))
    sizes = setsup.from_torch(Items(lambda row: (picture(row, size=(6 + row, 4)), row)))
    assert sizes.modalities["image"].shape == (4, None, 3) or sizes.modalities["image"].shape == (None, None, 3)
    assert sizes.fetch([3])["image"].shape == (1, 4, 9, 3)
    with pytest.raises(DataError, match=r"image of item 5 of Items has the shape \(4, 11, 3\).*size=\(height, width\)"):
        sizes.fetch([2, 5])
    deep = setsup.from_torch(Items(lambda row: (picture(row), Image.fromarray(np.full((4, 6), row, np.uint16)), row)))
    assert deep.modalities["item1"].dtype == "uint16"
    assert deep.fetch([7])["item1"][0, 0, 0] == 7
    assert mixed.fetch(np.empty(0, np.int64))["image"].shape == (0, 4, 6, 3)


def test_a_dataset_of_setsup_and_back() -> None:
    shapes = setsup.load("shapes3d-procedural").select(range(0, 480_000, 40_000))
    found = setsup.from_torch(as_torch(shapes), shapes.factors)
    np.testing.assert_array_equal(found.fetch([3, 1])["image"], shapes.fetch([3, 1])["image"])


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        yield 0


def broken(row: int) -> Any:
    if row > 3:
        raise RuntimeError("no\nsuch file")
    return picture(row), row


@pytest.mark.parametrize(
    ("dataset", "options", "sentence"),
    [
        (Stream(), {}, "from_torch expects a map-style torch dataset, with __getitem__ and __len__, not Stream"),
        ("mnist", {}, "not str"),
        (None, {}, "not NoneType"),
        (np.zeros((3, 4, 4)), {}, r"not numpy\.ndarray; use setsup\.from_arrays"),
        (torch.zeros(3), {}, r"not a tensor; use setsup\.from_arrays"),
        (pandas.DataFrame({"a": [1]}), {}, r"use setsup\.from_pandas"),
        (hugging_face.Dataset.from_dict({"a": [1]}), {}, r"use setsup\.from_huggingface"),
        (Items(picture, 0), {}, "Items has no items"),
        (Items(picture), {}, r"Items has no targets, and its items contain no values .* factors=\{'name': values\}"),
        (Items(lambda row: (picture(row), row)), {"factors": ["digit"]}, "items of Items have no field 'digit'"),
        (Items(lambda row: (picture(row), row)), {"factors": {"a": 4}}, "items of Items have no field 4"),
        (
            Items(lambda row: (picture(row), row)),
            {"factors": "image"},
            "image of item 0 of Items is a Image; expected a single",
        ),
        (
            Items(lambda row: (picture(row), row)),
            {"factors": {"a": [1]}},
            "Items has 12 rows, but the factors have 1 values",
        ),
        (
            Items(lambda row: (to_tensor(picture(row)), row)),
            {},
            r"image of Items has dtype float32 and shape \(3, 4, 6\); expected uint8 images; .* ToTensor",
        ),
        (Items(lambda row: (np.zeros((3, 9, 9), np.uint8), row)), {}, "uint8 numpy array .*return it as"),
        (Items(lambda row: ("a", row)), {}, r"contain neither images nor other arrays: image \(str\), target \(int\)"),
        (Items(lambda row: (picture(row), "a" if row else 1)), {}, "column 'target'"),
        (Items(broken), {}, "item [0-9]+ of Items cannot be read: RuntimeError: no such file"),
        (Items(lambda row: (picture(row), row)), {"size": 3}, "size"),
    ],
)
def test_what_is_no_dataset_is_one_sentence(dataset: Any, options: Any, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        setsup.from_torch(dataset, **options)
    assert "\n" not in str(caught.value)


# -- use ---------------------------------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
def test_worker_processes_and_shards(folder: Path, tmp_path: Path) -> None:
    found = setsup.from_torch(ImageFolder(folder))
    sampler = setsup.SetSampler(found.factors, inactive=["target"], size=3)
    for step, batch in zip(range(3), setsup.loader(found, sampler, workers=2), strict=False):
        wanted = found.fetch(sampler[step].indices)["image"]
        np.testing.assert_array_equal(np.moveaxis(np.asarray(batch["image"]), -3, -1), wanted)
    written = setsup.write_shards(found, tmp_path / "shards")
    np.testing.assert_array_equal(written.fetch(range(N))["image"], found.fetch(range(N))["image"])
    assert written.factors.fingerprint == found.factors.fingerprint
