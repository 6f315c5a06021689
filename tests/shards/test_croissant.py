"""Croissant descriptions of shards, against mlcroissant and the values that were written."""

import json
from urllib.parse import quote

import numpy as np
import pytest

import setsup
from setsup.datasets import from_arrays
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards.croissant import describe_shards
from tests import croissants
from tests.rendered_scenes import Crayon, Dots
from tests.sharded import Varied, contents
from tests.true_files import mnist


def described(folder):
    return json.loads((folder / "croissant.json").read_text("utf-8"))


def node(nodes, name):
    return next(one for one in nodes if one["@id"] == name)


def annotations(field):
    return {one["equivalentProperty"]: one["value"] for one in field["annotation"]}


def small(rows=6):
    return setsup.load("shapes3d-procedural").select(range(0, 480_000, 480_000 // rows))


def test_files_are_described_with_their_digests_sizes_and_relative_addresses(tmp_path):
    import hashlib

    setsup.write_shards(small(), tmp_path / "set", per_shard=4)
    files = contents(tmp_path / "set")
    found = {one["@id"]: one for one in described(tmp_path / "set")["distribution"] if one["@type"] == "cr:FileObject"}
    assert set(found) == {"data-00000.tar", "data-00001.tar", "index.parquet"}
    for name, one in found.items():
        assert one["contentUrl"] == name
        assert one["contentSize"] == f"{len(files[name])} B"
        assert one["sha256"] == hashlib.sha256(files[name]).hexdigest()
    assert found["data-00000.tar"]["encodingFormat"] == "application/x-tar"
    assert "addresses in it are relative" in files["README.md"].decode()


def test_factors_keep_kind_unit_period_nesting_and_levels(tmp_path):
    varied = Varied()
    setsup.write_shards(varied, tmp_path / "set")
    sets = described(tmp_path / "set")["recordSet"]
    fields = node(sets, "samples")["field"]
    assert annotations(node(fields, "samples/yaw")) == {
        "setsup:kind": "continuous", "sc:unitText": "deg", "setsup:period": 360.0,
    }  # fmt: skip
    assert annotations(node(fields, "samples/instance")) == {"setsup:kind": "ordinal", "setsup:within": "category"}
    assert "nested within category" in node(fields, "samples/instance")["description"]
    assert {one["name"]: one["dataType"] for one in fields if one["name"] in varied.factors} == {
        "category": "sc:Text", "instance": "sc:Integer", "hue": "sc:Float", "lit": "sc:Boolean", "yaw": "sc:Float",
        "__url__; DROP": "sc:Text",
    }  # fmt: skip
    levels = node(sets, "levels/category")
    assert levels["dataType"] == "sc:Enumeration"
    assert [row["levels/category/value"] for row in levels["data"]] == ["Stühle", "机", 'a "b"\\\n{}']
    assert [row["levels/category/order"] for row in levels["data"]] == [0, 1, 2]
    assert node(fields, "samples/category")["references"] == {"field": {"@id": "levels/category/value"}}
    split = node(sets, "levels/" + quote("__url__; DROP"))
    assert split["dataType"] == ["sc:Enumeration", "cr:Split"]


def test_splits_of_the_usual_names_have_their_meaning(tmp_path):
    table = FactorTable([Factor("split", Kind.NOMINAL, ("train", "val", "test"), role="split")])
    setsup.write_shards(from_arrays(np.zeros((3, 4, 4, 3), np.uint8), table), tmp_path / "set")
    rows = node(described(tmp_path / "set")["recordSet"], "levels/split")["data"]
    assert [row["levels/split/url"] for row in rows] == ["cr:TrainingSplit", "cr:ValidationSplit", "cr:TestSplit"]


def test_a_factor_of_many_levels_has_no_enumeration(tmp_path):
    levels = tuple(f"name {number:05}" for number in range(10_001))
    table = FactorTable([Factor("name", Kind.NOMINAL, levels)], {"name": np.array([0, 10_000], np.int64)})
    setsup.write_shards(from_arrays(np.zeros((2, 4, 4, 3), np.uint8), table), tmp_path / "set")
    sets = described(tmp_path / "set")["recordSet"]
    assert [one["@id"] for one in sets] == ["samples"]
    assert "references" not in node(sets[0]["field"], "samples/name")


def test_licence_and_citation_come_from_the_manifest_and_shuffles_say_their_seed(tmp_path):
    setsup.write_shards(small(), tmp_path / "set", order="shuffle", seed=7)
    found = described(tmp_path / "set")
    assert found["conformsTo"] == ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
    assert found["license"] == {
        "@type": "sc:CreativeWork",
        "name": "Apache-2.0",
        "url": "https://spdx.org/licenses/Apache-2.0",
        "description": "As setsup, which draws it.",
    }
    assert "3dshapes18" in found["citeAs"]
    assert "'shuffle' with seed 7" in found["prov:wasGeneratedBy"]["prov:label"]
    assert {key: value for key, value in found.items() if key.startswith("rai:")} == {
        "rai:dataCollection": "Synthetic images of 'Procedural 3D Shapes', computed by setsup.",
        "rai:dataCollectionType": "Software Collection",
    }


def test_nothing_is_told_of_how_ones_own_images_were_made(tmp_path):
    setsup.write_shards(columns(tmp_path), tmp_path / "set")
    assert not [key for key in described(tmp_path / "set") if key.startswith("rai:")]


def test_what_only_a_person_knows_comes_from_a_file_and_is_kept(tmp_path):
    (tmp_path / "rai.yaml").write_text(
        "dataLimitations: [Six factors only., Synthetic.]\ndataSocialImpact: None is known.\ncreator: Ann\n"
        "datePublished: 2026-11-30\n"
    )
    folder = tmp_path / "set"
    setsup.write_shards(small(), folder)
    before = contents(folder)
    setsup.write_shards(small(), folder, rai=tmp_path / "rai.yaml")
    found = described(folder)
    assert found["rai:dataLimitations"] == ["Six factors only.", "Synthetic."]
    assert found["rai:dataSocialImpact"] == "None is known."
    assert found["creator"] == [{"@type": "sc:Person", "name": "Ann"}]
    assert found["datePublished"] == "2026-11-30"
    after = contents(folder)
    assert {name for name in after if after[name] != before[name]} == {"croissant.json"}
    setsup.write_shards(small(), folder)
    assert contents(folder) == after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataLimits: few", "unknown key 'dataLimits'; did you mean 'dataLimitations'"),
        ("dataBiases: {a: b}", "dataBiases must be a string"),
        ("dataBiases: []", "dataBiases must be a string, or a list of strings"),
        ("{}", "has no properties"),
    ],
)
def test_a_file_of_other_properties_is_refused_before_anything_is_written(tmp_path, text, message):
    (tmp_path / "rai.yaml").write_text(text)
    with pytest.raises(DataError, match=message):
        setsup.write_shards(small(), tmp_path / "set", rai=tmp_path / "rai.yaml")
    assert not (tmp_path / "set").exists()


def test_tars_of_other_programs_are_not_described(tmp_path):
    from dataclasses import replace

    catalogue = setsup.write_shards(small(), tmp_path / "set").catalogue
    from setsup.datasets.croissant.document import Facts

    with pytest.raises(DataError, match="was written by another program"):
        describe_shards(replace(catalogue, check="header"), Facts("x"))


def grid(tmp_path):
    return setsup.load("shapes3d-procedural").select(range(0, 480_000, 480))


def columns(tmp_path):
    dice = np.random.default_rng(0)
    values = {"age": dice.integers(0, 90, 1000), "subject": dice.choice(["ann", "bob", "eve"], 1000)}
    images = dice.integers(0, 256, (1000, 6, 5, 1)).astype(np.uint8)
    return from_arrays(images, values, name="people")


def rendering(tmp_path):
    from setsup.rendered.dataset import RenderedDataset
    from setsup.rendered.table import sampled
    from setsup.rendered.writing import render

    recipe = Dots()
    return render(RenderedDataset(recipe, sampled(recipe, 1000), Crayon()), tmp_path / "rendered", ["image", "depth"])


def unknown(tmp_path):
    return Varied(1000, ["image", "mask", "depth", "pair", "weight"])


def digits(tmp_path):
    mnist.write(tmp_path / "mnist", per_split=500)
    return setsup.load("mnist", root=tmp_path / "mnist")


@pytest.mark.long("other libraries")
@pytest.mark.parametrize("make", [grid, columns, rendering, unknown, digits])
def test_mlcroissant_reads_the_rows_that_were_written(tmp_path, make):
    dataset = make(tmp_path)
    folder = tmp_path / "set"
    setsup.write_shards(dataset, folder, per_shard=300)
    names = list(dataset.modalities)
    found = croissants.records(folder / "croissant.json", "samples", tmp_path)
    assert len(found) == len(dataset) >= min(1000, len(dataset))
    assert sorted(int(record["samples/__key__"]) for record in found) == list(range(len(dataset)))
    for record in found:
        row = int(record["samples/__key__"])
        for name in dataset.factors.names:
            assert croissants.same_value(dataset, row, name, record[f"samples/{quote(name, safe='')}"]), (row, name)
    for name in names:
        place = "samples" if name == names[0] else f"modalities/{name}"
        for record in found if name == names[0] else croissants.records(folder / "croissant.json", place, tmp_path):
            ours = dataset.fetch(int(record[f"{place}/__key__"]), [name])[name]
            theirs = croissants.array(record[f"{place}/{name}"])
            assert theirs.dtype == ours.dtype
            assert np.array_equal(theirs.reshape(ours.shape), ours)
    for factor in dataset.factors.factors:
        if factor.levels is not None:
            place = f"levels/{quote(factor.name, safe='')}"
            levels = croissants.records(folder / "croissant.json", place, tmp_path)
            assert tuple(record[f"{place}/value"] for record in levels) == factor.levels


def test_a_restored_index_of_other_bytes_is_the_one_that_is_described(tmp_path):
    from setsup.shards.croissant import with_index
    from setsup.shards.layout import Shard

    setsup.write_shards(small(), tmp_path / "set", per_shard=4)
    content = (tmp_path / "set" / "croissant.json").read_bytes()
    changed = json.loads(with_index(content, Shard("index.parquet", 6, 77, "a" * 64)))
    file = node(changed["distribution"], "index.parquet")
    assert (file["contentSize"], file["sha256"]) == ("77 B", "a" * 64)
    file |= {key: node(json.loads(content)["distribution"], "index.parquet")[key] for key in ("contentSize", "sha256")}
    assert changed == json.loads(content)
    assert with_index(b"[]", Shard("index.parquet", 6, 77, "a" * 64)) is None
