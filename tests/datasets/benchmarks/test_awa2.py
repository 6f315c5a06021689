"""Animals with Attributes 2, from files in the published form: attributes are those of the matrices."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks.awa2 import read_names
from setsup.errors import DataError
from setsup.files import load_manifest
from tests.fuzzing import survives
from tests.true_files import awa2 as true
from tests.true_files.pacs import put

BINARY, CONTINUOUS = "predicate-matrix-binary.txt", "predicate-matrix-continuous.txt"


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("awa2")
    true.write(folder)
    return folder


@pytest.fixture
def unpacked(zipped: Path, tmp_path: Path) -> Path:
    with zipfile.ZipFile(zipped / "AwA2-data.zip") as file:
        file.extractall(tmp_path)
    return tmp_path / "Animals_with_Attributes2"


def test_rows_have_the_attributes_of_their_category(zipped: Path, unpacked: Path) -> None:
    for root in (zipped, zipped / "AwA2-data.zip", unpacked, unpacked.parent):
        animals = setsup.load("awa2", root)
        paths = sorted(path for path in true.files() if path.endswith(".jpg"))
        assert animals.factors.values("category").tolist() == [path.split("/")[1] for path in paths]
        binary, strengths = true.matrices()
        for row, path in enumerate(paths):
            said = binary[true.CATEGORIES.index(path.split("/")[1])]
            values = animals.factors.row(row)
            assert [values[name] for name in true.ATTRIBUTES] == [value == 1 for value in said.tolist()]
        expected = np.where(strengths < 0, np.nan, strengths).astype(np.float32)
        order = [true.CATEGORIES.index(level) for level in animals.factors["category"].levels]
        assert np.array_equal(animals.class_attributes, expected[order], equal_nan=True)
        assert np.isnan(animals.class_attributes).sum() == 4
        with Image.open(io.BytesIO(true.files()[paths[-1]])) as image:
            assert np.array_equal(animals.fetch(len(paths) - 1)["image"], np.asarray(image))


def test_splits_are_by_categories(zipped: Path) -> None:
    animals = setsup.load("awa2", zipped)
    parts = {
        name: dict(zip(animals.factors.values("category"), animals.factors.values(name), strict=True))
        for name in ("split", "proposed")
    }
    of_seal = {"rat": "test", "antelope": "train", "grizzly+bear": "train", "zebra": "train", "blue+whale": "train"}
    assert parts == {"split": of_seal, "proposed": of_seal | {"blue+whale": "test"}}
    manifest = load_manifest("awa2")
    assert len(manifest.factors[0].levels) == 50
    for rules in (column["rules"] for column in manifest.columns[1:3]):
        tested = [level for level in manifest.factors[0].levels if f"'{level}'" in rules[0][0]]
        assert len(tested) == 10 == rules[0][0].count("'") // 2


def test_attributes_are_fixed_by_samplers_but_not_by_active(zipped: Path) -> None:
    animals = setsup.load("awa2", zipped)
    sampler = setsup.SetSampler(animals.factors, inactive=["stripes"], size=4, seed=1)
    for step in range(5):
        for rows in sampler[step].indices:
            assert len(set(animals.factors.values("stripes", rows).tolist())) == 1
    free = setsup.SetSampler(animals.factors, active=["category"], size=8, seed=1)
    assert len(set(animals.factors.values("category", free[0].indices.reshape(-1)))) > 2
    chosen = animals.where("stripes == True and big == False").factors
    assert set(chosen.values("stripes").tolist()) | {True} == {True}


def test_a_release_without_matrices(unpacked: Path) -> None:
    (unpacked / BINARY).unlink()
    (unpacked / CONTINUOUS).unlink()
    animals = setsup.load("awa2", unpacked)
    assert animals.factors.names == ("category", "split", "proposed")
    with pytest.raises(DataError, match=r"predicate-matrix-continuous\.txt not found"):
        _ = animals.class_attributes


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("classes.txt", "zebra", "zebras", "lacks the category zebra"),
        ("classes.txt", "     3\t", "     4\t", r"classes\.txt: line 3 is .*; expected 3 and a new name"),
        ("classes.txt", "zebra", "antelope", r"classes\.txt: line 3 is .*; expected 3 and a new name"),
        ("classes.txt", "     3\tzebra\n", "", r"line 3 is .*; expected 3"),
        ("classes.txt", "     5\tblue+whale\n", "", "has 5 rows for the 4 categories of classes"),
        ("predicates.txt", "white", "snow", r"predicates\.txt lists 85 attributes, not the 85 published ones"),
        (BINARY, "0 ", "2 ", "line 1 has '2'; expected numbers from 0 to 1"),
        (BINARY, "0 ", "0 0 ", "line 1 has 86 columns; expected 85"),
        (BINARY, "\n", " 0\n", "line 1 has 86 columns"),
    ],
)
def test_damaged_lists_are_named(unpacked: Path, name: str, old: str, new: str, words: str) -> None:
    text = (unpacked / name).read_text()
    (unpacked / name).write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match=words):
        setsup.load("awa2", unpacked)


def test_strengths_out_of_range_are_refused(unpacked: Path) -> None:
    text = (unpacked / CONTINUOUS).read_text()
    (unpacked / CONTINUOUS).write_text(text.replace("  -1.00", "  -2.00", 1))
    animals = setsup.load("awa2", unpacked)
    with pytest.raises(DataError, match=r"line 1 has '-2\.00'; expected numbers from -1 to 100"):
        _ = animals.class_attributes


def test_animals_of_another_dataset_are_refused(unpacked: Path) -> None:
    put(unpacked / "JPEGImages" / "unicorn", {"unicorn_10001.jpg": next(iter(true.files().values()))})
    (unpacked / "classes.txt").write_text((unpacked / "classes.txt").read_text() + "     6\tunicorn\n")
    (unpacked / BINARY).unlink()
    with pytest.raises(DataError, match="unicorn"):
        setsup.load("awa2", unpacked)


def test_damaged_names() -> None:
    names = true.files()["predicates.txt"]
    assert survives(names, lambda content: read_names(content, "predicates.txt"), 100) > 20
