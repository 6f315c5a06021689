"""What is told of a release that lacks samples, has more, or is another one: in one place, for all adapters."""

import gzip
import importlib
import json
import logging
import re
import shutil
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType

import pytest

import setsup
from setsup.datasets import Dataset, registry
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import load_manifest, manifest_names
from setsup.files.manifests import packages
from setsup_cli.main import main

FILES = Path(__file__).resolve().parents[1] / "true_files"
NAMES = sorted(file.stem.replace("_", "-") for file in FILES.glob("*.py") if file.stem not in ("rings", "toys"))
COUNTED = [name for name in NAMES if load_manifest(name).samples is not None]

pytestmark = pytest.mark.usefixtures("parts_are_told")


def write(name, folder):
    importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").write(folder)


@pytest.fixture
def say(monkeypatch):
    """Let the manifest of a benchmark say something else."""

    def change(name, **fields):
        manifest = replace(load_manifest(name), **{"editions": (), "partial": None, "samples_by_option": (), **fields})
        monkeypatch.setattr(registry, "find_manifest", lambda _: manifest)
        return manifest

    return change


@pytest.fixture
def said(caplog):
    """Warnings since the last call."""

    def take():
        found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        caplog.clear()
        return [line for line in found if "neither the published digests" not in line]

    return take


def test_every_manifest_tells_its_number_of_samples_or_why_there_is_none():
    for name in manifest_names():
        manifest = load_manifest(name)
        assert (manifest.samples is None) == bool(manifest.samples_vary), name


def test_the_fixed_names_are_as_many_as_published():
    numbers = {"pacs": 7, "office-home": 65, "domainnet": 345, "nicopp": 60, "vlcs": 5, "terra-incognita": 10}
    for name, number in numbers.items():
        categories = next(factor for factor in load_manifest(name).factors if factor.name == "category")
        assert isinstance(categories.levels, tuple)
        assert len(categories.levels) == number, name


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("name", COUNTED)
def test_fewer_and_more_are_one_sentence_with_both_numbers(tmp_path, name, say, said):
    write(name, tmp_path)
    rows = len(setsup.load(name, tmp_path))
    said()
    for published, numbers in ((rows, None), (rows + 1, (rows, rows + 1)), (rows - 1, (rows, rows - 1))):
        say(name, samples=published)
        setsup.load(name, tmp_path)
        found = [line for line in said() if "published" in line and "samples are present" in line]
        assert len(found) == (numbers is not None), found
        if numbers is not None:
            assert found[0].startswith(f"{name}: ")
            assert all(f"{number:,}" in found[0] for number in numbers)


def unpack(folder):
    """Leave no archive: what is in it lies beside."""
    for archive in sorted(path for path in folder.rglob("*") if path.suffix in (".zip", ".tar")):
        shutil.unpack_archive(archive, archive.parent, **({"filter": "data"} if archive.suffix == ".tar" else {}))
        archive.unlink()


@pytest.mark.parametrize("name", ["chairs3d", "nicopp", "office-home", "pacs", "veri776", "vlcs"])
def test_of_a_third_of_the_images_removed_both_numbers_are_told(tmp_path, name, say, said):
    write(name, tmp_path)
    unpack(tmp_path)
    images = sorted(path for path in tmp_path.rglob("*") if path.suffix.lower() in (".jpg", ".png"))
    before = len(setsup.load(name, tmp_path))
    said()
    say(name, samples=before)
    setsup.load(name, tmp_path)
    assert said() == []
    for image in images[::3]:
        image.unlink()
    after = len(setsup.load(name, tmp_path))
    assert after == before - len(images[::3])
    [line] = said()
    assert line.startswith(f"{name}: {after:,} of the {before:,} published samples are present")


def test_parts_of_what_is_whole_are_not_told(tmp_path, say, said):
    write("pacs", tmp_path)
    rows = len(setsup.load("pacs", tmp_path))
    said()
    say("pacs", samples=rows)
    assert len(setsup.load("pacs", tmp_path, where="domain == 'photo'")) < rows
    assert len(setsup.load("pacs", tmp_path, split="train")) < rows
    assert said() == []


def test_swapped_files_of_two_splits(tmp_path, say, said):
    write("usps", tmp_path)
    rows = setsup.load("usps", tmp_path).factors.counts("split").tolist()
    splits = load_manifest("usps").splits
    ends = [0, rows[0], sum(rows)]
    published = [replace(split, rows=(ends[at], ends[at + 1])) for at, split in enumerate(splits)]
    say("usps", samples=sum(rows), splits=tuple(published))
    said()
    setsup.load("usps", tmp_path)
    assert said() == []
    for old, new in (("usps.bz2", "x"), ("usps.t.bz2", "usps.bz2"), ("x", "usps.t.bz2")):
        (tmp_path / old).rename(tmp_path / new)
    setsup.load("usps", tmp_path)
    [line] = said()
    assert f"the split test has {rows[0]} samples, but only {rows[1]} were published" in line


def test_categories_that_are_wholly_absent_are_named(tmp_path, said):
    write("pacs", tmp_path)
    setsup.load("pacs", tmp_path)
    [line] = said()
    assert "72 of the 9,991 published samples are present" in line
    assert "giraffe" in line


def test_one_domain_of_domainnet_is_a_download_of_its_own(tmp_path, monkeypatch, said):
    write("domainnet", tmp_path)
    for path in tmp_path.iterdir():
        if not path.name.startswith("sketch"):
            path.unlink()
    setsup.load("domainnet", tmp_path)
    [line] = said()
    assert "12 of the 69,128 published samples" in line, "by the published count of the domain"
    manifest = load_manifest("domainnet")
    for number, told in ((12, 0), (13, 1), (11, 1)):
        counts = tuple((level, (number,)) for level, _ in manifest.partial.samples)
        changed = replace(manifest, partial=replace(manifest.partial, samples=counts))
        monkeypatch.setattr(registry, "find_manifest", lambda _, changed=changed: changed)
        setsup.load("domainnet", tmp_path)
        assert len(said()) == told


def test_published_parts_add_up():
    # the numbers of the paper's page, and of DomainBed's paper
    assert sum(counts[-1] for _, counts in load_manifest("domainnet").partial.samples) == 596_010
    assert sum(counts[0] for _, counts in load_manifest("domainnet").partial.samples) == 586_575
    spawrious = load_manifest("spawrious")
    assert spawrious.partial.samples * 2 * 6 * 4 == spawrious.samples == 152_064


def test_options_that_change_the_rows_have_their_own_numbers(tmp_path, said):
    write("colored-mnist", tmp_path)
    for options, published in (({}, "60,000"), ({"recipe": "domainbed"}, "70,000")):
        setsup.load("colored-mnist", tmp_path, **options)
        [line] = said()
        assert f"of the {published} published" in line
    setsup.load("affine-mnist", tmp_path, copies=2)
    assert said() == []


def test_the_card_tells_both_numbers(tmp_path, capsys):
    write("vlcs", tmp_path)
    assert main(["info", "vlcs", "--root", str(tmp_path), "--json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["published"] == {"samples": 10729, "here": 80, "complete": False}
    assert found.err.count("\n") == 1
    assert main(["info", "vlcs", "--root", str(tmp_path)]) == 0
    assert "80 rows, 80 of the 10,729 that were published are here" in capsys.readouterr().out
    assert main(["info", "vlcs", "--root", str(tmp_path), "--split", "leave-out-sun09-train", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["published"]["here"] == 80


# -- manifests that contradict -----------------------------------------------------------------------------------------


class Rooms(Dataset):
    """Four rows of what another package brings along."""

    name, modalities = "my-rooms", {}

    def __init__(self, root):
        self.factors = FactorTable(
            [Factor("wall", Kind.NOMINAL, ("red", "blue")), Factor("edge", Kind.ORDINAL, (1, 2))],
        )

    def fetch(self, indices, modalities=None):
        return {}


CARD = "name: my-rooms\ntitle: Rooms\ndescription: Four.\nlicence: {name: MIT}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("samples: 4\nfactors: [{name: wall, kind: nominal, levels: [blue, red, grey]}]", None),
        ("factors: [{name: edge, kind: ordinal, levels: 2}]", None),
        ("samples: 3", "4 samples are present, but only 3 were published"),
        ("samples: 5", "4 of the 5 published"),
        ("factors: [{name: edge, kind: ordinal, levels: 1}]", "edge has 2 levels, but the manifest specifies 1"),
        ("samples: 3\nfactors: [{name: edge, kind: ordinal, levels: 1}]", "3 were published.*; edge has 2 levels"),
    ],
)
def test_a_manifest_that_contradicts_its_dataset(tmp_path, monkeypatch, said, words, told):
    module = ModuleType("rooms_of_a_package")
    module.open = Rooms
    module.__file__ = str(tmp_path / "rooms_of_a_package.py")
    (tmp_path / "rooms_of_a_package.py").write_text("")
    (tmp_path / "my-rooms.yaml").write_text(CARD + words + "\n")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(packages, "find_spec", lambda name: importlib.machinery.PathFinder.find_spec(name))
    entry = EntryPoints([EntryPoint("my-rooms", module.__name__, "setsup.datasets")])
    monkeypatch.setattr(packages, "entry_points", lambda group: entry.select(group=group))
    setsup.load("my-rooms")
    found = said()
    assert len(found) == (told is not None)
    if told:
        assert re.search(told, found[0])
    (tmp_path / "my-rooms.yaml").write_text(CARD + "factors: [{name: wall, kind: nominal, levels: [red, green]}]\n")
    with pytest.raises(DataError, match=r"unknown levels of wall: blue; Rooms has red, green"):
        setsup.load("my-rooms")


# -- whose files they are ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False])
def test_files_with_the_digest_of_another_benchmark_are_refused(tmp_path, genuine, said, caplog, packed):
    folder = tmp_path / "kmnist"  # the digest is stronger than the name
    folder.mkdir()
    for file in (genuine / "mnist").glob("*.gz"):
        if packed:
            shutil.copy(file, folder)
        else:
            (folder / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    for name in ("kmnist", "fashion-mnist"):
        with pytest.raises(DataError, match=rf"of MNIST, not of {name} .*; open the folder as mnist"):
            setsup.load(name, folder)
    for name in ("mnist", "affine-mnist", "rotated-mnist"):
        setsup.load(name, folder)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("called", "opens", "refused"),
    [
        ("mnist", ["mnist", "affine-mnist", "colored-mnist", "even-odd", "rotated-mnist"], ["kmnist", "fashion-mnist"]),
        ("MNIST/raw", ["mnist", "even-odd"], ["kmnist", "fashion-mnist"]),
        ("affine-mnist", ["mnist", "rotated-mnist"], ["kmnist", "fashion-mnist"]),
        ("FashionMNIST/raw", ["fashion-mnist"], ["mnist", "colored-mnist", "kmnist"]),
        ("fashion_mnist", ["fashion-mnist"], ["mnist", "kmnist"]),
        ("kmnist", ["kmnist"], ["mnist", "fashion-mnist", "affine-mnist"]),
    ],
)
def test_a_folder_with_the_name_of_another_benchmark_is_refused(tmp_path, caplog, called, opens, refused):
    folder = tmp_path / called
    folder.mkdir(parents=True)
    write("mnist", folder)
    for name in opens:
        setsup.load(name, folder)
    assert not any("nothing tells" in line for line in caplog.messages)
    for name in refused:
        with pytest.raises(
            DataError, match=rf"is named after (mnist|fashion-mnist|kmnist), .* identified as a file of {name}"
        ):
            setsup.load(name, folder)


def test_where_nothing_decides_one_sentence_says_so(tmp_path, caplog):
    write("mnist", tmp_path)
    for name, others in (("mnist", ("Fashion-MNIST", "Kuzushiji")), ("kmnist", ("MNIST", "Fashion-MNIST"))):
        caplog.clear()
        setsup.load(name, tmp_path)
        [line] = [line for line in caplog.messages if "neither the published digests" in line]
        assert all(other in line for other in others)
        assert str(tmp_path) in line
