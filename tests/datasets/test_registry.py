import sys
from functools import partial, wraps
from importlib.metadata import EntryPoint, EntryPoints
from inspect import Parameter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from setsup.datasets import Dataset, Modality, fetch_request, load, names, registry
from setsup.datasets.benchmarks.imagenet.subset import read_synsets
from setsup.datasets.benchmarks.pascal3d.lists import read_abc_list
from setsup.datasets.registry import find_opener, opener_options
from setsup.errors import DataError, FactorError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.manifests import packages


class Rooms(Dataset):
    """What another package might bring along."""

    def __init__(self, root):
        self.name = "my-rooms"
        self.root = root
        self.factors = FactorTable(
            [
                Factor("room", Kind.NOMINAL, ("hall", "attic")),
                Factor("split", Kind.NOMINAL, ("a", "b", "c"), role="split"),
            ]
        )
        self.modalities = {"row": Modality((), "int64")}

    def fetch(self, indices, modalities=None):
        rows, wanted = fetch_request(self, indices, modalities)
        return dict.fromkeys(wanted, rows)


@pytest.fixture
def brought(monkeypatch):
    """Entry points of installed packages, and a module that they lead to."""
    module = ModuleType("my_package_of_rooms")
    module.open = Rooms
    module.function = Rooms
    module.number = 3
    module.wrong = lambda root: "no dataset"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    found = [
        EntryPoint(name, f"{module.__name__}{attribute}", "setsup.datasets")
        for name, attribute in [
            ("my-rooms", ""),
            ("my-rooms-too", ":function"),
            ("my-number", ":number"),
            ("my-wrong", ":wrong"),
            ("my-absent", ":nothing"),
        ]
    ]
    found.append(EntryPoint("my-broken", "no_such_module_anywhere", "setsup.datasets"))
    monkeypatch.setattr(packages, "entry_points", lambda group: EntryPoints(found).select(group=group))


def test_names_are_manifests_and_entry_points(brought):
    assert {"mnist", "shapes3d", "shapes3d-procedural", "my-rooms"} <= set(names())
    assert names() == sorted(set(names()))


def test_unknown_names_get_near_ones_and_the_command():
    with pytest.raises(DataError, match=r"unknown dataset 'mnits'; did you mean 'mnist'.*`setsup datasets` lists them"):
        load("mnits")


def test_paths_and_addresses_are_no_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rooms").mkdir()
    for name in (str(tmp_path), "rooms", "./nothing", "s3://bucket/shapes", "absent/photos.csv"):
        with pytest.raises(
            DataError, match=r"is a path or URL, not the name of a benchmark; open it with setsup\.open\('"
        ) as caught:
            load(name)
        assert f"setsup.open({name!r})" in str(caught.value)


def test_missing_files_give_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SETSUP_DATA", raising=False)
    with pytest.raises(DataError, match="setsup fetch mnist"):
        load("mnist")
    assert not (tmp_path / "cache").exists(), "looking creates nothing"


@pytest.mark.parametrize("name", ["my-rooms", "my-rooms-too"])
def test_entry_points(brought, tmp_path, name):
    assert load(name, root=str(tmp_path)).root == tmp_path
    assert load(name).root is None
    assert load(name).fetch([5])["row"].tolist() == [5]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("my-number", "must be a function, or a module with a function"),
        ("my-wrong", "returned a str, not a setsup Dataset"),
        ("my-absent", "'my-absent' .* cannot be loaded"),
        ("my-broken", "'my-broken' .* cannot be loaded.*no_such_module_anywhere"),
    ],
)
def test_broken_entry_points(brought, name, sentence):
    with pytest.raises(DataError, match=sentence):
        load(name)


def test_split_and_where_renumber(brought):
    part = load("my-rooms", split="b")
    assert part.rows.tolist() == [1, 4]
    assert load("my-rooms", split="b", where="room == 'attic'").rows.tolist() == [4]
    assert load("my-rooms", where="room == 'attic'").fetch(range(3))["row"].tolist() == [3, 4, 5]


def test_wrong_split_and_where(brought):
    with pytest.raises(DataError, match="my-rooms has no split 'train'; choose from a, b, c"):
        load("my-rooms", split="train")
    with pytest.raises(FactorError, match="room"):
        load("my-rooms", where="rom == 'attic'")
    with pytest.raises(DataError, match="has no split 'train'; did you mean 'dcodr-train'"):
        load("shapes3d-procedural", split="train")


def test_a_missing_dependency_names_the_extra(monkeypatch):
    from setsup import files

    manifest = files.load_manifest("mnist")
    for extra, command in [
        ("hf", r"pip install '\.\[hf\]'"),
        (None, "pip install no_such_library"),
    ]:
        values = {name: getattr(manifest, name) for name in manifest.__slots__}
        changed = type(manifest)(**{**values, "adapter": "needs_a_library", "extra": extra})
        monkeypatch.setattr(registry, "load_manifest", lambda name, changed=changed: changed)
        error = ModuleNotFoundError("No module named 'no_such_library.part'", name="no_such_library")

        def fail(name, error=error):
            raise error

        monkeypatch.setattr(registry, "import_module", fail)
        with pytest.raises(DataError, match=rf"mnist requires no_such_library.*{command}"):
            load("mnist")


def test_published_mnist_by_split():
    root = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "mnist"
    if not root.is_dir():
        pytest.skip("the published MNIST files are not beside the checkout")
    test = load("mnist", root=root, split="test")
    assert len(test) == 10_000
    assert np.array_equal(test.rows, np.arange(60_000, 70_000))
    assert len(load("mnist", root=root, split="train", where="digit == 0")) == 5923
    with pytest.raises(DataError, match="did you mean 'test'"):
        load("mnist", root=root, split="tset")


def test_each_option_has_the_type_that_can_be_found():
    def opened(
        root: "Path",
        size: "tuple[int, int]" = (64, 64),
        other: "Path | None" = None,
        margin=(0.5, 1),
        known: "NoSuchName | None" = None,  # noqa: F821
        free=3,
        *rest: int,
        where: str = "",
        **more: str,
    ) -> "NoSuchDataset":  # noqa: F821
        raise NotImplementedError

    expected = {
        "size": tuple[int, int],
        "other": Path | None,
        "margin": tuple[float, int],
        "known": Parameter.empty,
        "free": Parameter.empty,
        "where": str,
    }
    for opener in (opened, wraps(opened)(lambda *a, **k: opened(*a, **k)), partial(opened), partial(opened, free=4)):
        assert {name: one.annotation for name, one in opener_options(opener).items()} == expected
    assert {name: one.annotation for name, one in opener_options(Rooms).items()} == {}


def test_an_opener_that_takes_any_option_gets_it(brought, monkeypatch):
    monkeypatch.setattr(sys.modules["my_package_of_rooms"], "open", lambda root, **more: Rooms(more))
    assert load("my-rooms", more=3, size=4).root == {"more": 3, "size": 4}
    assert opener_options(find_opener("my-rooms")) == {}


@pytest.mark.parametrize("name", ["affine-mnist", "cars196", "celeba", "edges2shoes", "hmdb51", "stl10", "ut-zap50k"])
def test_the_folder_of_nobody(name):
    with pytest.raises(DataError, match="unknown home folder '~nobody-of-that-name'"):
        find_opener(name)("~nobody-of-that-name/data")


@pytest.mark.parametrize("read", [read_synsets, read_abc_list])
def test_lists_in_the_folder_of_nobody(read):
    with pytest.raises(DataError, match="unknown home folder '~nobody-of-that-name'"):
        read("~nobody-of-that-name/list.txt")


@pytest.mark.long("large or genuine files")
def test_options_of_a_benchmark_reach_it(tmp_path):
    from tests.true_files.pascal3d import write

    write(tmp_path)
    small = load("pascal3d", tmp_path, size=(48, 32), where="category == 'car'")
    assert small.fetch(0, ["image"])["image"].shape == (48, 32, 3)
    with pytest.raises(DataError, match="pascal3d has no option 'sise'; did you mean 'size'"):
        load("pascal3d", tmp_path, sise=(48, 32))
    with pytest.raises(DataError, match="mnist has no option 'size'; it takes no options"):
        load("mnist", tmp_path, size=(48, 32))
