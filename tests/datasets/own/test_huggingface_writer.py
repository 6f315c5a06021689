import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import setsup
from setsup.datasets import Dataset, Modality, fetch_request
from setsup.datasets.own.huggingface.dataset import from_huggingface
from setsup.datasets.own.huggingface.writer import to_huggingface
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.io.huggingface import _MANY
from tests.traced import traced

hf = pytest.importorskip("datasets")

MODALITIES = {
    "image": Modality((6, 5, 3), "uint8", color="srgb"),
    "grey": Modality((None, None, 1), "uint8", color="grey"),
    "alpha": Modality((None, None, 4), "uint8", color="srgb"),
    "bright": Modality((3, 4, 3), "float32", color="srgb"),
    "depth": Modality((None, None), "float32", unit="m"),
    "labels": Modality((3, 4), "uint8"),
    "mask": Modality((3, 4), "bool"),
    "points": Modality((None, 3), "float64", unit="m"),
    "words": Modality((None,), "uint16"),
    "pose": Modality((4,), "float16"),
    "rows": Modality((None, 2, 1, 2), "int8"),
    "middle": Modality((3, None, 2), "float32"),
    "five": Modality((1, 2, 1, 2, 2), "uint64"),
    "six": Modality((1, 2, 1, 2, 1, 2), "int32"),
    "focal": Modality((), "float64", unit="px"),
    "count": Modality((), "int16"),
}
FACTORS = [
    Factor("category", Kind.NOMINAL, ("chair", "table")),
    Factor("instance", Kind.ORDINAL, (3, 7, 12), within="category"),
    Factor("hue", Kind.CYCLIC, (0.0, 0.25, 0.5), unit="turn", period=1.0),
    Factor("size", Kind.ORDINAL, ("small", "mid", "large")),
    Factor("lit", Kind.NOMINAL, (False, True)),
    Factor("yaw", Kind.CONTINUOUS, unit="deg", period=360.0),
    Factor("file", Kind.NOMINAL, ("b", "a", "", "never"), role="key"),
    Factor("split", Kind.NOMINAL, ("train", "test"), role="split"),
]


class Everything(Dataset):
    """A dataset with a modality of every sort, whose ragged ones have three shapes in turn."""

    def __init__(self, rows=12):
        columns = {
            factor.name: np.arange(rows) / 7 if factor.continuous else np.arange(rows) % (len(factor) + 1) - 1
            for factor in FACTORS
        }
        columns["yaw"][2] = np.nan
        columns["file"] = np.arange(rows) % 3
        self.name = "everything"
        self.factors = FactorTable(FACTORS, columns)
        self.modalities = MODALITIES

    def fetch(self, indices, modalities=None):
        rows, names = fetch_request(self, indices, modalities)
        found = {}
        for name in names:
            kind = self.modalities[name]
            # an array for each row, of any bits of its type
            each = []
            for row in rows.ravel().tolist():
                dice = np.random.default_rng([row, len(name)])
                shape = [2 + row % 3 if length is None else length for length in kind.shape]
                each.append(np.asarray(dice.normal(100, 50, shape)).astype(kind.dtype))
            found[name] = np.stack(each).reshape(rows.shape + each[0].shape)
        return found


def same(one, other):
    """Whether two datasets have equal tables, modalities and arrays."""
    assert other.factors.factors == one.factors.factors
    assert other.factors.fingerprint == one.factors.fingerprint
    assert dict(other.modalities) == dict(one.modalities)
    assert len(one) == len(other)
    for row in range(len(one)):
        here, there = one.fetch(row), other.fetch(row)
        for name, array in here.items():
            assert there[name].dtype == array.dtype, name
            assert there[name].shape == array.shape, name
            assert there[name].tobytes() == array.tobytes(), name
    return True


@pytest.mark.long("large or genuine files")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_there_and_back_to_the_bit(tmp_path):
    whole = Everything()
    same(whole, from_huggingface(to_huggingface(whole)))
    written = to_huggingface(whole, tmp_path / "folder")
    same(whole, from_huggingface(written))
    same(whole, from_huggingface(tmp_path / "folder"))
    some = whole.where("category == 'table'")
    same(some, from_huggingface(to_huggingface(some)))
    assert from_huggingface(written).name == "everything"


@pytest.mark.long("large or genuine files")
def test_through_parquet_and_through_the_features_of_a_card(tmp_path):
    whole = Everything()
    written = to_huggingface(whole)
    written.to_parquet(tmp_path / "a.parquet")
    again = hf.Dataset.from_parquet(str(tmp_path / "a.parquet"), cache_dir=str(tmp_path / "cache"))
    same(whole, from_huggingface(again))
    # the Hub keeps features in the head of a README
    kept = yaml.safe_load(yaml.safe_dump(written.features._to_yaml_list(), sort_keys=False))
    assert hf.Features._from_yaml_list(kept) == written.features


@pytest.mark.long("large or genuine files")
def test_what_hugging_face_sees(tmp_path):
    shapes = setsup.load("shapes3d-procedural").select(np.arange(0, 480_000, 9973))
    found = to_huggingface(shapes, tmp_path / "shapes")
    assert found.features["shape"].names == ["cube", "cylinder", "sphere", "capsule"]
    assert found.features["scale"].dtype == "float64"
    assert isinstance(found.features["image"], hf.Image)
    images = shapes.fetch(range(len(shapes)))["image"]
    for row, cells in enumerate(found):
        assert np.array_equal(np.asarray(cells["image"]), images[row])
        values = shapes.factors.row(row)
        assert {**cells, "shape": found.features["shape"].int2str(cells["shape"])} == {
            **values,
            "image": cells["image"],
        }
    assert found.info.license == "Apache-2.0"
    assert "3dshapes18" in found.info.citation
    assert hf.load_from_disk(tmp_path / "shapes")[3] == found[3]
    shuffled = found.shuffle(seed=0, keep_in_memory=True).select(range(9), keep_in_memory=True)
    assert from_huggingface(shuffled).factors.factors == shapes.factors.factors


def test_the_class_labels_of_a_table():
    values = to_huggingface(Everything())[0:4]
    assert values["category"] == [None, 0, 1, None]
    assert values["instance"] == [None, 3, 7, 12]
    assert values["size"] == [None, 0, 1, 2]
    assert values["lit"] == [None, False, True, None]
    assert values["hue"] == [None, 0.0, 0.25, 0.5]
    assert values["yaw"][2] is None
    assert values["count"][3] == Everything().fetch(3)["count"].item()


@pytest.mark.long("large or genuine files")
@given(st.data())
def test_any_table_there_and_back(data):
    names = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=4)
    rows = data.draw(st.integers(1, 6))
    factors, columns = [], {}
    for name in data.draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        kind = data.draw(st.sampled_from(Kind))
        options = {"unit": data.draw(names), "period": data.draw(st.none() | st.floats(0.1, 9))}
        options["role"] = data.draw(st.sampled_from(["variation", "key", "split"]))
        if kind is Kind.CONTINUOUS:
            factors.append(Factor(name, kind, **options))
            columns[name] = np.array(data.draw(st.lists(st.floats(width=32), min_size=rows, max_size=rows)), np.float32)
            columns[name][~np.isfinite(columns[name])] = np.nan
            continue
        levels = st.text(max_size=3) | st.none() if data.draw(st.booleans()) else st.integers(-(2**63), 2**63 - 1)
        found = data.draw(st.lists(levels.filter(lambda level: level is not None), min_size=1, max_size=4, unique=True))
        factors.append(Factor(name, kind, tuple(found), **options))
        columns[name] = data.draw(st.lists(st.integers(-1, len(found) - 1), min_size=rows, max_size=rows))
    table = FactorTable(factors, columns)
    assert FactorTable.from_huggingface(table.to_huggingface()).fingerprint == table.fingerprint


@pytest.mark.parametrize("sort", [True, False])
def test_texts_of_many_levels_are_no_class_labels(sort):
    levels = [f"{number:05d}.png" for number in range(_MANY + 1)]
    table = FactorTable(
        [Factor("path", Kind.NOMINAL, tuple(levels if sort else levels[::-1]), unit="u")],
        {"path": np.arange(_MANY + 1) if sort else np.arange(_MANY + 1) // 2},
    )
    found = table.to_huggingface()
    assert found.features["path"].dtype == "string"
    assert len(found.features["path"].id) < 100 or not sort
    assert FactorTable.from_huggingface(found).fingerprint == table.fingerprint
    assert FactorTable.from_huggingface(found.select([5])).values("path").tolist() == table.values("path", [5]).tolist()


def test_a_factor_whose_outer_one_was_taken_out():
    found = to_huggingface(Everything()).remove_columns("category")
    assert from_huggingface(found).factors["instance"] == Factor("instance", Kind.ORDINAL, (3, 7, 12))


# -- folder and card ---------------------------------------------------------------------------------------------------


def test_the_card(tmp_path):
    toys = setsup.load("shapes3d-procedural").select(range(7))
    to_huggingface(toys, tmp_path / "toys")
    _, head, text = (tmp_path / "toys" / "README.md").read_text().split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["license"] == "apache-2.0"
    assert about["size_categories"] == ["n<1K"]
    for part in (
        "7 rows of `shapes3d-procedural`",
        "| `orientation` | ordinal | 15 | -30.0, -25.7143",
        "| `image` | 64 × 64 × 3 | uint8 srgb |",
        "[Apache-2.0](https://www.apache.org/licenses/LICENSE-2.0)",
        "@misc{3dshapes18,",
        f"setsup {setsup.__version__}",
    ):
        assert part in text


def test_the_card_of_what_has_no_manifest_and_of_several(tmp_path):
    to_huggingface(Everything(), tmp_path / "one")
    text = (tmp_path / "one" / "README.md").read_text()
    assert "license: unknown" in text
    assert "Not stated." in text
    assert "| `hue` | cyclic | 3 | 0.0, 0.25, 0.5 | turn, period 1 |" in text
    assert "| `instance` | ordinal within `category` | 3 |" in text
    shapes = setsup.load("shapes3d-procedural")
    both = setsup.concat(shapes.select([1]), shapes.select([5, 6]), shapes.where("shape == 'cube'").select([0]))
    to_huggingface(both, tmp_path / "both", modalities=["image"])
    assert (tmp_path / "both" / "README.md").read_text().count("ray caster") == 1
    toys = Everything()
    toys.modalities = {"image": shapes.modalities["image"]}
    to_huggingface(setsup.concat(shapes.select([1]), toys.select([0])), tmp_path / "mixed")
    text = (tmp_path / "mixed" / "README.md").read_text()
    assert "license: other" in text
    assert "2 rows of `shapes3d-procedural + everything`" in text
    assert "Not stated." in text


def test_a_table_of_ones_own_does_not_get_the_licence_of_a_benchmark_of_its_name(tmp_path):
    own = Everything()
    own.name = "shapes3d-procedural"
    assert to_huggingface(own, modalities=["image"]).info.license == ""


def test_licences_that_the_hub_has_no_word_for(tmp_path):
    from setsup.datasets.own.huggingface.card import _licence_keys
    from setsup.files import Licence, load_manifest

    assert _licence_keys(Licence("CC BY-SA 4.0")) == {"license": "cc-by-sa-4.0"}
    assert _licence_keys(Licence("CC0")) == {"license": "cc0-1.0"}
    assert _licence_keys(Licence("ODbL")) == {"license": "odbl"}
    assert _licence_keys(load_manifest("mnist").licence) == {"license": "unknown"}
    found = _licence_keys(load_manifest("shapenet").licence)
    assert found["license"] == "other"
    assert found["license_name"] == "shapenet-terms-of-use"


def test_what_is_refused(tmp_path):
    whole = Everything()
    (tmp_path / "there").mkdir()
    with pytest.raises(DataError, match="there already exists"):
        to_huggingface(whole, tmp_path / "there")
    with pytest.raises(DataError, match="no modality 'imag'; did you mean 'image'"):
        to_huggingface(whole, modalities=["imag"])
    with pytest.raises(DataError, match="everything has no rows"):
        to_huggingface(whole.select([]))
    whole.modalities = {"hue": Modality((3,), "float32"), "name": Modality((), "str")}
    with pytest.raises(DataError, match=r"a factor and a modality with the same name 'hue'.*modalities=\['name'\]"):
        to_huggingface(whole)
    with pytest.raises(DataError, match=r"'name' has the dtype str.*leave it out with modalities="):
        to_huggingface(whole, modalities=["name"])


class Broken(Everything):
    """A dataset that cannot be read to its end."""

    def fetch(self, indices, modalities=None):
        if np.max(indices) > 9:
            raise DataError("row 10 is damaged")
        return super().fetch(indices, modalities)


def test_nothing_is_left_where_writing_fails(tmp_path):
    with pytest.raises(DataError, match="row 10 is damaged"):
        to_huggingface(Broken(), tmp_path / "folder", modalities=["image"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long("large or genuine files")
def test_nothing_is_written_elsewhere(tmp_path):
    code = (
        "import setsup, sys; from setsup.datasets.own.huggingface.writer import to_huggingface\n"
        "assert 'datasets' not in sys.modules\n"
        "few = setsup.load('shapes3d-procedural').select(range(5))\n"
        "to_huggingface(few, 'out'); to_huggingface(few); print('done')"
    )
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.getcwd()}
    environment["TMPDIR"] = str(tmp_path / "scratch")
    (tmp_path / "scratch").mkdir()
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert found.stdout == "done\n", found.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"out", "scratch"}
    assert list((tmp_path / "scratch").iterdir()) == []
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("README.md", "LICENSE", "state.json", "dataset_info.json", "croissant.json", "data-00000-of-00001.arrow")
    }


class Large(Dataset):
    """Half a gigabyte of noise."""

    def __init__(self):
        self.name = "large"
        self.factors = FactorTable([Factor("number", Kind.ORDINAL, tuple(range(512)))])
        self.modalities = {"array": Modality((512, 512), "float32")}

    def fetch(self, indices, modalities=None):
        rows, _ = fetch_request(self, indices, modalities)
        return {"array": np.broadcast_to(rows[..., None, None].astype(np.float32), (*rows.shape, 512, 512))}


@pytest.mark.long("large or genuine files")
def test_a_block_is_held_at_once(tmp_path):
    with traced():
        found = to_huggingface(Large(), tmp_path / "large")
        assert tracemalloc.get_traced_memory()[1] < 256 << 20
    assert found.num_rows == 512
    assert np.array_equal(from_huggingface(found).fetch([7, 300])["array"][:, 5, 5], [7, 300])


def test_two_writings_are_equal_and_others_have_another_fingerprint(tmp_path):
    shapes = setsup.load("shapes3d-procedural")
    first, again, other = (
        to_huggingface(rows, tmp_path / name)
        for name, rows in [("a", shapes.select([1, 2])), ("b", shapes.select([1, 2])), ("c", shapes.select([1, 3]))]
    )
    assert first._fingerprint == again._fingerprint != other._fingerprint
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
