"""Croissant descriptions of benchmarks, renderings and saved Hugging Face datasets."""

import hashlib
import json

import numpy as np
import pytest

import setsup
from setsup.datasets.croissant.benchmark import describe_benchmark, known_factors
from setsup.datasets.croissant.document import facts, to_text
from setsup.datasets.croissant.licences import licence_nodes, spdx
from setsup.datasets.croissant.records import enumerations, node_id
from setsup.factors import Factor, Kind
from setsup.files import Licence, load_manifest, manifest_names
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.table import sampled
from setsup.rendered.writing import render
from tests import croissants
from tests.rendered_scenes import Crayon, Dots
from tests.sharded import Varied, contents


def describe(name):
    manifest = load_manifest(name)
    return describe_benchmark(facts(name, None, [manifest]), manifest, known_factors(manifest))


def test_a_benchmark_is_described_by_its_published_files_and_its_factors():
    found = describe("mnist")
    files = {one["@id"]: one for one in found["distribution"]}
    images = files["train-images-idx3-ubyte.gz"]
    assert images["contentUrl"] == "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz"
    assert images["sha256"] == "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    assert images["contentSize"] == "9912422 B"
    assert [one["name"] for one in found["variableMeasured"]] == ["digit", "split"]
    assert [one["@id"] for one in found["recordSet"]] == ["levels/digit", "levels/split"]
    assert found["license"]["name"] == "not stated"


def test_every_benchmark_can_be_described():
    for name in manifest_names():
        found = json.loads(to_text(describe(name)))
        assert found["name"] == name
        assert len(found["distribution"] if "distribution" in found else []) == len(load_manifest(name).files)
        assert all(value is not None for one in found.get("distribution", []) for value in one.values())


@pytest.mark.long("other libraries")
@pytest.mark.parametrize("name", ["mnist", "shapes3d", "dsprites", "cub200", "smallnorb"])
def test_mlcroissant_accepts_benchmarks_whose_digests_are_known(tmp_path, name):
    manifest = load_manifest(name)
    if not all(file.sha256 or file.md5 for file in manifest.files):
        pytest.skip("the release has files whose digests are not known")
    (tmp_path / "croissant.json").write_text(to_text(describe(name)), "utf-8")
    croissants.validated(tmp_path / "croissant.json")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("CC BY 4.0", "CC-BY-4.0"),
        ("CC BY-NC 4.0", "CC-BY-NC-4.0"),
        ("CC0", "CC0-1.0"),
        ("Apache-2.0", "Apache-2.0"),
        ("MIT", "MIT"),
        ("zlib/libpng", "Zlib"),
        ("CDLA-Permissive 1.0", "CDLA-Permissive-1.0"),
        ("MIT (not verified)", None),
        ("GPL-3.0", None),  # only or later is not said
        ("not stated", None),
        ("research only", None),
    ],
)
def test_licences_have_their_identifier_where_the_manifest_is_sure(name, known):
    assert spdx(name) == known


def test_other_licences_are_described_as_far_as_they_are_known():
    given = Licence("ShapeNet terms of use", "https://shapenet.org/terms", "No commercial use.", "the form")
    assert licence_nodes([given]) == {
        "@type": "sc:CreativeWork",
        "name": "ShapeNet terms of use",
        "url": "https://shapenet.org/terms",
        "description": "No commercial use. To be signed before use: the form",
    }
    assert licence_nodes([Licence("CC BY 4.0", "https://a.b", "As reported, which was not seen.", "the form")]) == {
        "@type": "sc:CreativeWork",
        "name": "CC BY 4.0",
        "url": "https://spdx.org/licenses/CC-BY-4.0",
        "description": "As reported, which was not seen. To be signed before use: the form",
    }
    assert licence_nodes([]) is None
    assert licence_nodes([Licence("MIT"), Licence("MIT"), Licence("CC0")]) == [
        "https://spdx.org/licenses/MIT",
        "https://spdx.org/licenses/CC0-1.0",
    ]


def test_identifiers_of_nodes_are_distinct_and_valid():
    names = ["a/b", "a b", "a%2Fb", "größe", "机"]
    assert len({node_id("samples", name) for name in names}) == len(names)
    for name in names:
        assert node_id("samples", name).isascii()
        assert " " not in node_id("samples", name)


def test_levels_keep_type_and_order():
    [found] = enumerations([Factor("lit", Kind.NOMINAL, (True, False))])
    assert [(row["levels/lit/name"], row["levels/lit/value"]) for row in found["data"]] == [
        ("True", True),
        ("False", False),
    ]
    assert found["field"][1]["dataType"] == "sc:Boolean"


def rendered(folder, rows=12, **given):
    recipe = Dots()
    return render(RenderedDataset(recipe, sampled(recipe, rows), Crayon()), folder, ["image", "depth"], **given)


def test_a_rendering_is_described_with_recipe_renderer_and_seed(tmp_path):
    rendered(tmp_path / "dots", rows_seed=5)
    found = json.loads((tmp_path / "dots" / "croissant.json").read_text("utf-8"))
    assert found["rai:dataCollection"] == (
        "Synthetic images, rendered by setsup from the recipe 'dots' with the renderer 'crayon'. Drawn at random: the "
        "rows with seed 5."
    )
    files = {one["@id"]: one["sha256"] for one in found["distribution"]}
    assert {"factors.parquet", "image.npy", "depth.npy"} < set(files)
    for name, digest in files.items():
        assert digest == hashlib.sha256((tmp_path / "dots" / name).read_bytes()).hexdigest()
    (samples, *_) = found["recordSet"]
    assert [one["name"] for one in samples["setsup:arrays"]] == ["image", "depth"]


def test_a_rendering_gets_what_a_person_adds_later(tmp_path):
    (tmp_path / "rai.yaml").write_text("dataBiases: None known.\n")
    rendered(tmp_path / "dots")
    before = contents(tmp_path / "dots")
    rendered(tmp_path / "dots", rai=tmp_path / "rai.yaml")
    after = contents(tmp_path / "dots")
    assert {name for name in after if after[name] != before[name]} == {"croissant.json"}
    assert json.loads(after["croissant.json"])["rai:dataBiases"] == "None known."


def test_later_properties_keep_what_a_person_wrote(tmp_path):
    rendered(tmp_path / "dots")
    path = tmp_path / "dots" / "croissant.json"
    written = json.loads(path.read_text("utf-8"))
    written["distribution"][0]["contentUrl"] = "https://example.org/factors.parquet"
    path.write_text(json.dumps(written), "utf-8")
    for name in ("dataBiases", "dataLimitations"):
        (tmp_path / "rai.yaml").write_text(f"{name}: None known.\n")
        rendered(tmp_path / "dots", rai=tmp_path / "rai.yaml")
    assert json.loads(path.read_text("utf-8")) == {
        **written,
        "rai:dataBiases": "None known.",
        "rai:dataLimitations": "None known.",
    }
    path.unlink()
    rendered(tmp_path / "dots", rai=tmp_path / "rai.yaml")  # of a folder that has no description
    assert json.loads(path.read_text("utf-8"))["recordSet"] == written["recordSet"]


@pytest.mark.long("other libraries")
def test_mlcroissant_reads_the_factors_of_a_rendering(tmp_path):
    dataset = rendered(tmp_path / "dots", 100)
    found = croissants.records(tmp_path / "dots" / "croissant.json", "samples", tmp_path)
    assert len(found) == 100
    for row, record in enumerate(found):
        for name in dataset.factors.names:
            assert croissants.same_value(dataset, row, name, record[f"samples/{name}"])


@pytest.mark.long("other libraries")
def test_a_saved_hugging_face_dataset_is_described(tmp_path):
    pytest.importorskip("datasets")
    varied = Varied(20, ["image", "depth", "weight"])
    setsup.datasets.to_huggingface(varied, tmp_path / "saved")
    found = json.loads((tmp_path / "saved" / "croissant.json").read_text("utf-8"))
    fields = {one["name"]: one for one in found["recordSet"][0]["field"]}
    assert fields["category"]["dataType"] == "sc:Integer"
    assert fields["category"]["references"] == {"field": {"@id": "levels/category/order"}}
    assert fields["hue"]["references"] == {"field": {"@id": "levels/hue/value"}}
    assert fields["image"]["source"]["transform"] == {"jsonPath": "bytes"}
    assert (fields["depth"]["isArray"], fields["depth"]["arrayShape"]) == (True, "6,5")
    [file] = found["distribution"]
    assert file["sha256"] == hashlib.sha256((tmp_path / "saved" / file["contentUrl"]).read_bytes()).hexdigest()
    croissants.validated(tmp_path / "saved" / "croissant.json")
    assert "addresses in it are relative" in (tmp_path / "saved" / "README.md").read_text("utf-8")
    assert np.array_equal(setsup.open(tmp_path / "saved").fetch(3)["image"], varied.fetch(3)["image"])
