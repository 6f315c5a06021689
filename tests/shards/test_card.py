import json
import re

import pytest
import yaml

import setsup
from setsup.datasets import Modality
from setsup.datasets.own.huggingface.card import find_manifests
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards.writing.card import about, shards_card
from setsup.shards.writing.encoding import stored
from setsup.shards.writing.plan import ShardPlan
from tests.sharded import MODALITIES, Varied


def made(dataset, names=None, order="keep"):
    members = {name: stored(name, dataset.modalities[name], "png") for name in names or dataset.modalities}
    plan = ShardPlan(dataset.name, "f" * 32, "c" * 64, members, order, 0, (0, len(dataset)), "0.1")
    return shards_card(dataset, plan, find_manifests(dataset))


def head(text):
    return yaml.safe_load(text.split("---\n")[1])


def test_the_metadata_names_the_tars_and_the_columns():
    found = head(made(Varied()))
    assert found["configs"] == [{"config_name": "default", "data_files": [{"split": "train", "path": "data-*.tar"}]}]
    columns = {one.pop("name"): one for one in found["dataset_info"]["features"]}
    values = {one["name"]: one["dtype"] for one in columns.pop("json")["struct"]}
    assert values == {
        "category": "string", "instance": "int64", "hue": "float64", "lit": "bool", "yaw": "float32",
        "__url__; DROP": "string",
    }  # fmt: skip
    assert columns == {
        "png": {"dtype": "image"},
        "mask.png": {"dtype": "image"},
        "cutout.png": {"dtype": "image"},
        "pair.npy": {"dtype": {"array3_d": {"shape": [3, 4, 2], "dtype": "uint8"}}},
        "depth.npy": {"dtype": {"array2_d": {"shape": [6, 5], "dtype": "float32"}}},
        "points.npy": {"dtype": {"array2_d": {"shape": [None, 3], "dtype": "float64"}}},
        "weight.npy": {"dtype": "int16"},
        "__key__": {"dtype": "string"},
        "__url__": {"dtype": "string"},
    }


def test_the_hubs_own_library_reads_the_metadata():
    datasets = pytest.importorskip("datasets")
    hub = pytest.importorskip("huggingface_hub")
    varied = Varied()
    varied.modalities = {**MODALITIES, "middle": Modality((3, None, 2), "int8"), "row": Modality((4,), "float16")}
    text = made(varied)
    data = hub.DatasetCard(text).data
    assert data.configs[0]["data_files"][0]["path"] == "data-*.tar"
    features = datasets.Features._from_yaml_list(data.dataset_info["features"])
    assert features["png"] == datasets.Image()
    assert features["depth.npy"] == datasets.Array2D((6, 5), "float32")
    assert features["weight.npy"] == datasets.Value("int16")
    each = datasets.Value("int8")
    assert features["middle.npy"] == datasets.List(datasets.List(datasets.List(each)))
    assert features["row.npy"] == datasets.List(datasets.Value("float16"))
    assert features["json"]["instance"] == datasets.Value("int64")


def test_numbers_that_the_hub_does_not_know_are_left_to_it():
    varied = Varied()
    varied.modalities = {"wave": Modality((3,), "complex64")}
    assert "dataset_info" not in head(made(varied))


def test_levels_with_fractions_are_doubles():
    levels = {"whole": (-(2**63), 2**63 - 1), "mixed": (1, 2.5), "lit": (False, True)}
    factors = [Factor(name, Kind.NOMINAL, some) for name, some in levels.items()]
    varied = Varied(2)
    varied.factors = FactorTable(factors, {name: [0, 1] for name in levels})
    columns = {one["name"]: one for one in head(made(varied, ["image"]))["dataset_info"]["features"]}
    assert [one["dtype"] for one in columns["json"]["struct"]] == ["int64", "float64", "bool"]


def test_the_text_names_factors_columns_and_order():
    text = made(Varied(), order="by:hue")
    assert "50 rows of `varied`." in text
    assert "| `depth.npy` | 6 × 5 | float32 | m |" in text
    assert "1 tar, in the order `by:hue`." in text
    assert "setsup.from_huggingface" not in text
    rows = [line for line in text.splitlines() if line.startswith("| `category`")]
    assert rows == ['| `category` | nominal | 3 | Stühle, 机, a "b"\\ {} |  |']


def test_licence_and_citation_are_the_manifests():
    shapes = setsup.load("shapes3d-procedural").select([0, 1])
    text = made(shapes)
    assert head(text)["license"] == "apache-2.0"
    known = about(find_manifests(shapes), "shuffle")
    manifest = yaml.safe_load((setsup.files.manifest_folder() / "shapes3d-procedural.yaml").read_text())
    assert known["citation"] == manifest["citation"].strip()
    assert known["citation"] in text
    assert known["title"] == manifest["title"]
    assert re.sub(r"\s+", " ", known["description"]) == re.sub(r"\s+", " ", manifest["description"]).strip()
    assert known["order"] == "shuffle"
    assert json.loads(json.dumps(known)) == known


def test_shards_of_a_benchmark_keep_its_licence(tmp_path):
    from setsup.shards.writing.writer import write_shards

    shapes = setsup.load("shapes3d-procedural").select([0, 1, 2])
    shards = write_shards(shapes, tmp_path / "set")
    again = write_shards(shards.select([2, 0]), tmp_path / "again")
    assert dict(again.catalogue.about) == dict(shards.catalogue.about)
    assert head((tmp_path / "again" / "README.md").read_text())["license"] == "apache-2.0"


def test_a_dataset_without_a_manifest_states_no_licence():
    assert head(made(Varied()))["license"] == "unknown"
    assert about(find_manifests(Varied()), "keep") == {"order": "keep"}
