"""Croissant descriptions, opened: those that setsup wrote, and hostile ones."""

import copy
import http.server
import json
import pickle
import shutil
import tarfile
import threading
import zipfile
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import setsup
from setsup.datasets import from_arrays, open_croissant
from setsup.datasets.own.croissant.parsing import parse
from setsup.errors import DataError, FactorError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.table import sampled
from setsup.rendered.writing import render
from tests.rendered_scenes import Crayon, Dots
from tests.sharded import Varied
from tests.true_files import mnist


def grid(tmp_path):
    return setsup.load("shapes3d-procedural").select(range(0, 480_000, 12_000))


def columns(tmp_path):
    dice = np.random.default_rng(0)
    values = {"age": dice.integers(0, 90, 60), "subject": dice.choice(["ann", "bob", "eve"], 60)}
    return from_arrays(dice.integers(0, 256, (60, 6, 5, 1)).astype(np.uint8), values, name="people")


def rendering(tmp_path):
    recipe = Dots()
    dataset = RenderedDataset(recipe, sampled(recipe, 40), Crayon())
    return render(dataset, tmp_path / "rendered", ["image", "depth", "normals"])


def unknown(tmp_path):
    return Varied(50)


def digits(tmp_path):
    mnist.write(tmp_path / "mnist", per_split=20)
    return setsup.load("mnist", root=tmp_path / "mnist")


def same(found, dataset):
    """Whether rows and factors are equal."""
    assert found.factors.factors == dataset.factors.factors
    assert len(found) == len(dataset)
    for name in dataset.factors.names:
        assert np.array_equal(found.factors.column(name), dataset.factors.column(name), equal_nan=name == "yaw"), name
    assert list(found.modalities) == list(dataset.modalities)
    for name in dataset.modalities:
        for row in (0, len(dataset) // 2, len(dataset) - 1):
            ours, theirs = dataset.fetch(row, [name])[name], found.fetch(row, [name])[name]
            assert theirs.dtype == ours.dtype
            assert np.array_equal(theirs, ours), (name, row)


@pytest.mark.parametrize("make", [grid, columns, rendering, unknown, digits])
def test_shards_come_back_with_equal_factors_and_rows(tmp_path, make):
    dataset = make(tmp_path)
    shards = setsup.write_shards(dataset, tmp_path / "set", per_shard=17)
    for name in ("shards.json", "README.md", "backup.parquet"):
        (tmp_path / "set" / name).unlink()  # the description, the tars and the index are enough
    found = setsup.open(tmp_path / "set" / "croissant.json")
    same(found, dataset)
    assert found.modalities == shards.modalities
    whole = [name for name in found.modalities if None not in found.modalities[name].shape]
    again = pickle.loads(pickle.dumps(found))
    rows = np.array([[3, 1], [1, 0]])
    for name, array in again.fetch(rows, whole).items():
        assert np.array_equal(array, dataset.fetch(rows, [name])[name])


def test_a_rendering_comes_back(tmp_path):
    dataset = rendering(tmp_path)
    found = setsup.open(tmp_path / "rendered" / "croissant.json")
    same(found, dataset)
    assert found.modalities == dataset.modalities


def test_a_saved_hugging_face_dataset_comes_back(tmp_path):
    pytest.importorskip("datasets")
    dataset = Varied(20, ["image"])
    setsup.datasets.to_huggingface(dataset, tmp_path / "saved")
    same(setsup.open(tmp_path / "saved" / "croissant.json"), dataset)


def test_rows_can_be_selected_and_sampled(tmp_path):
    setsup.write_shards(grid(tmp_path), tmp_path / "set")
    found = setsup.open(tmp_path / "set" / "croissant.json", where="shape == 'cube'", size=(8, 8))
    assert set(found.factors.values("shape").tolist()) == {"cube"}
    assert found.fetch([0, 1])["image"].shape == (2, 8, 8, 3)
    sets = setsup.SetSampler(found.factors, inactive=["shape"], size=2, sets=1)
    assert sets[0].indices.shape == (1, 2)


def test_a_factor_of_many_levels_comes_back_by_its_values(tmp_path):
    levels = tuple(f"name {number:05}" for number in range(10_001))
    turns = Factor("turn", Kind.CYCLIC, tuple(range(10_001)), unit="step", period=10_001.0, within="name", role="key")
    codes = np.array([3, 10_000], np.int64)
    table = FactorTable([Factor("name", Kind.NOMINAL, levels), turns], {"name": codes, "turn": codes})
    setsup.write_shards(from_arrays(np.zeros((2, 4, 4, 3), np.uint8), table), tmp_path / "set")
    found = setsup.open(tmp_path / "set" / "croissant.json").factors
    assert found["name"] == Factor("name", Kind.NOMINAL, ("name 00003", "name 10000"))
    assert found["turn"] == Factor("turn", Kind.CYCLIC, (3, 10_000), "step", 10_001.0, "name", "key")
    assert found.row(1) == {"name": "name 10000", "turn": 10_000}


def test_kinds_can_be_given(tmp_path):
    setsup.write_shards(columns(tmp_path), tmp_path / "set")
    found = open_croissant(tmp_path / "set" / "croissant.json", kinds={"age": "continuous"})
    assert found.factors["age"].continuous


# -- what is wrong with a description ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    setsup.write_shards(grid(None), folder / "set", per_shard=17)
    return folder / "set"


@pytest.fixture
def changed(made, tmp_path):
    """Open the description with a change."""
    folder = tmp_path / "set"
    shutil.copytree(made, folder)

    def opened(change, **options):
        document = json.loads((folder / "croissant.json").read_text("utf-8"))
        change(document)
        (folder / "croissant.json").write_text(json.dumps(document), "utf-8")
        return setsup.open(folder / "croissant.json", **options)

    return opened


def put(*path, value):
    def change(document):
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


HOSTILE = {
    "a path outside": (put("distribution", 0, "contentUrl", value="../../etc/passwd"), "leads out of its folder"),
    "an absolute path": (put("distribution", 0, "contentUrl", value="/etc/passwd"), "leads out of its folder"),
    "an encoded path": (put("distribution", 0, "contentUrl", value="%2e%2e/x.tar"), "leads out of its folder"),
    "a file address": (put("distribution", 0, "contentUrl", value="file:///etc/passwd"), "expected http or https"),
    "another digest": (put("distribution", 0, "sha256", value="0" * 64), "not the expected 000"),
    "another size": (
        put("distribution", 0, "contentSize", value="5 B"),
        "bytes, not the expected 5, which .* specifies",
    ),
    "no such file": (put("distribution", 0, "contentUrl", value="missing.tar"), "missing.tar"),
    "contained in itself": (
        put("distribution", 0, "containedIn", value={"@id": "data-00000.tar"}),
        "contained in itself",
    ),
    "a circle of files": (
        lambda document: [
            put("distribution", 0, "containedIn", value={"@id": "data-00001.tar"})(document),
            put("distribution", 1, "containedIn", value={"@id": "data-00000.tar"})(document),
        ],
        "contained in itself",
    ),
    "contained in nothing": (put("distribution", 0, "containedIn", value={"@id": "x"}), "'x', which is not listed"),
    "a source that is not there": (
        put("recordSet", 0, "field", 2, "source", "extract", "column", value="nothing"),
        "table 'index.parquet' has no column 'nothing'",
    ),
    "an invalid expression": (put("recordSet", 0, "field", 0, "source", "transform", value={"regex": "("}), "regular"),
    "an expression without a group": (
        put("recordSet", 0, "field", 0, "source", "transform", value={"regex": "[0-9]+"}),
        "has no group",
    ),
    "no context": (lambda document: document.pop("@context"), "is not JSON-LD"),
    "another version": (put("conformsTo", value="http://mlcommons.org/croissant/0.8"), "expected Croissant 1.0 or 1.1"),
    "no records": (put("recordSet", value=[]), "its record sets are none"),
    "a record set that is a number": (put("recordSet", value=[3]), "a record set must be a mapping"),
    "a field without a name": (put("recordSet", 0, "field", 0, value={"@type": "cr:Field"}), "must be a reference"),
    "a kind that is none": (
        put("recordSet", 0, "field", 3, "annotation", 0, "value", value="sideways"),
        "unknown kind 'sideways'",
    ),
    "levels of two types": (put("recordSet", 1, "data", 0, "levels/floor_hue/value", value="red"), "floor_hue"),
    "levels that are lists": (put("recordSet", 1, "data", 0, "levels/floor_hue/value", value=[1]), "expected strings"),
    "two fields of a name": (put("recordSet", 0, "field", 3, "name", value="floor_hue"), "distinct names"),
    "two extractions": (
        put("recordSet", 0, "field", 2, "source", "extract", value={"column": "a", "jsonPath": "$.a"}),
        "expected one of them",
    ),
    "a list of files": (
        put("distribution", 3, "containedIn", value={"fileObject": {"@id": "x"}, "transform": {"readLines": True}}),
        "is a list of files",
    ),
    "patterns without a file": (put("distribution", -1, "includes", value="*.gif"), "no file matches the patterns"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_wrong_is_said_in_one_sentence(changed, name):
    change, message = HOSTILE[name]
    with pytest.raises((DataError, FactorError), match=message) as raised:
        changed(change)
    assert "\n" not in str(raised.value)


def test_a_circle_of_references_ends(changed):
    def change(document):
        document["recordSet"] = [
            {
                "@type": "cr:RecordSet",
                "@id": "a",
                "field": [
                    document["recordSet"][0]["field"][1],
                    {"@type": "cr:Field", "@id": "a/x", "source": {"field": {"@id": "a/y"}}},
                    {"@type": "cr:Field", "@id": "a/y", "source": {"field": {"@id": "a/x"}}},
                ],
            }
        ]

    with pytest.raises(DataError, match="lead in a circle"):
        changed(change)


def test_an_expression_cannot_take_exponential_time(changed):
    with pytest.raises(DataError, match=r"none of the 40 values of .* is in 'index.parquet'"):
        changed(put("recordSet", 0, "field", 0, "source", "transform", value={"regex": "^(([0-9]+)+)+x"}))


@pytest.mark.long("large or genuine files")
def test_an_archive_of_many_fields_is_refused(made):
    document = json.loads((made / "croissant.json").read_text("utf-8"))
    field = document["recordSet"][0]["field"][2]
    document["recordSet"][0]["field"] = [copy.copy(field)] * 10_001
    with pytest.raises(DataError, match="has more than 10,000 fields"):
        parse(json.dumps(document).encode(), "croissant.json")


@pytest.mark.long("fuzzing")
def test_a_million_fields_end_in_one_sentence():
    field = {"@type": "cr:Field", "@id": "a/x", "dataType": "sc:Text"}
    document = {
        "@context": {},
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "recordSet": [{"@id": "a", "field": [field] * 1_000_000}],
    }
    with pytest.raises(DataError, match="has more than 10,000 fields"):
        parse(json.dumps(document).encode(), "croissant.json")


def test_deep_nesting_ends_in_one_sentence():
    with pytest.raises(DataError, match="could not be parsed as JSON"):
        parse(b'{"@context": {}, "a": ' + b"[" * 100_000, "croissant.json")


def test_an_archive_that_grows_is_refused(tmp_path):
    # a table of more bytes than its archive says
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", "image,x\n" + "0,1\n" * 1_000_000)
    content = bytearray((tmp_path / "a.zip").read_bytes())
    size = (8 + 4 * 1_000_000).to_bytes(4, "little")
    assert content.count(size) == 2
    (tmp_path / "a.zip").write_bytes(content.replace(size, (100).to_bytes(4, "little")))
    column = {"fileObject": {"@id": "table"}, "extract": {"column": "image"}}
    document = {
        "@context": {},
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "distribution": [
            {"@type": "cr:FileObject", "@id": "a.zip", "contentUrl": "a.zip", "encodingFormat": "application/zip"},
            {"@type": "cr:FileObject", "@id": "table", "contentUrl": "table.csv", "containedIn": {"@id": "a.zip"}}
            | {"encodingFormat": "text/csv"},
        ],
        "recordSet": [
            {
                "@id": "r",
                "field": [
                    {"@id": "r/image", "dataType": "sc:ImageObject", "source": column},
                    {"@id": "r/x", "dataType": "sc:Text", "source": column},
                ],
            }
        ],
    }
    (tmp_path / "croissant.json").write_text(json.dumps(document))
    with pytest.raises(SetsupError, match=r"table\.csv") as raised:
        setsup.open(tmp_path / "croissant.json")
    assert "\n" not in str(raised.value)


def test_members_that_lead_out_of_an_archive_are_refused(tmp_path, made):
    shutil.copytree(made, tmp_path / "set")
    with tarfile.open(tmp_path / "set" / "data-00000.tar", "w") as archive:
        info = tarfile.TarInfo("../../000000.png")
        archive.addfile(info)
    document = json.loads((tmp_path / "set" / "croissant.json").read_text("utf-8"))
    for key in ("sha256", "contentSize"):
        del document["distribution"][0][key]
    (tmp_path / "set" / "croissant.json").write_text(json.dumps(document))
    with pytest.raises(SetsupError):
        setsup.open(tmp_path / "set" / "croissant.json")


@pytest.mark.long("fuzzing")
def test_any_change_of_a_value_ends_in_a_dataset_or_an_error_of_ours(changed, made):
    dice = np.random.default_rng(0)
    document = json.loads((made / "croissant.json").read_text("utf-8"))

    def places(node, path=()):
        yield path
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            if key != "@context":
                yield from places(value, (*path, key))

    every = [path for path in places(document) if path]
    values = [None, 3, -1.5, "", "x", [], {}, [[]], {"@id": "x"}, True, "é\0", {"@id": 3}]
    values += ["https://[", "a" * 300, [1, "a"], 10**100, "\ud800", "sc:ImageObject"]
    for at in dice.permutation(len(every))[:180].tolist():
        new = copy.deepcopy(document)
        put(*every[at], value=values[int(dice.integers(len(values)))])(new)
        with suppress(SetsupError):
            changed(lambda old, new=new: (old.clear(), old.update(new)))


# -- addresses ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(made):
    handler = partial(_Quiet, directory=str(made))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path.startswith("/away/"):
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/{self.path[6:]}")
            self.end_headers()
            return
        super().do_GET()


def test_an_address_is_read_and_its_files_are_fetched_only_when_asked(site, made):
    with pytest.raises(
        DataError, match=r"is not on this machine; download it from http://127.0.0.1:\d+/data-00000.tar"
    ):
        setsup.open(f"{site}/croissant.json")
    assert len(setsup.open(f"{site}/croissant.json", root=made)) == 40
    found = setsup.open(f"{site}/croissant.json", download=True)
    same(found, grid(None))
    assert len(setsup.open(f"{site}/croissant.json")) == 40  # from the cache


@pytest.mark.parametrize("place", ["localhost", "127.0.0.1"])
def test_a_description_does_not_lead_into_a_private_network(site, changed, place):
    port = site.rpartition(":")[2]

    def change(document):
        for one in document["distribution"]:
            one["contentUrl"] = f"http://{place}:{port}/{one.get('contentUrl')}"

    with pytest.raises(DataError, match="is in a private network"):
        changed(change, download=True)


def test_a_redirection_into_a_private_network_is_refused(site, made):
    document = json.loads((made / "croissant.json").read_text("utf-8"))
    for one in document["distribution"]:
        one["contentUrl"] = f"away/{one.get('contentUrl')}"
    (made / "other.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(DataError, match="host localhost is in a private network"):
        setsup.open(f"{site}/other.json", download=True)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/x", "http://10.1.2.3/x", "http://[::1]/x", "http://169.254.169.254/x"]
)
def test_addresses_in_private_networks_are_refused(url):
    from setsup.files.downloads.addresses import refuse_private

    with pytest.raises(DataError, match="is in a private network"):
        refuse_private(url, "croissant.json")


def test_an_address_that_is_not_there(site):
    with pytest.raises(DataError, match="returned HTTP 404"):
        setsup.open(f"{site}/none/croissant.json")


# -- forms of others ---------------------------------------------------------------------------------------------------


def write_image(path, grey):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (4, 3), grey).save(path)


def column(node, name):
    return {"fileObject": {"@id": node}, "extract": {"column": name}}


def written_description(folder, tables, fields, enumerations=()):
    """A folder of three images, tables, and a description of them."""
    for at, name in enumerate("abc"):
        write_image(folder / "images" / f"{name}.png", 50 * at)
    of_files = {"fileSet": {"@id": "images"}}
    document = {
        "@context": {"@vocab": "https://schema.org/"},
        "@type": "sc:Dataset",
        "name": "mine",
        "dct:conformsTo": "http://mlcommons.org/croissant/1.1",
        "distribution": [
            {"@type": "cr:FileSet", "@id": "images", "includes": "images/*.png", "encodingFormat": "image/png"},
            *(
                {"@type": "cr:FileObject", "@id": name, "contentUrl": name, "encodingFormat": kind}
                for name, kind in tables.items()
            ),
        ],
        "recordSet": [
            {
                "@id": "images",
                "field": [
                    {
                        "@id": "images/name",
                        "dataType": "sc:Text",
                        "source": {**of_files, "extract": {"fileProperty": "filename"}}
                        | {"transform": {"regex": "(.*)\\.png"}},
                        "references": column(next(iter(tables)), "name"),
                    },
                    {
                        "@id": "images/image",
                        "dataType": "sc:ImageObject",
                        "source": {**of_files, "extract": {"fileProperty": "content"}},
                    },
                    *fields,
                ],
            },
            *enumerations,
        ],
    }
    (folder / "croissant.json").write_text(json.dumps(document), "utf-8")
    return folder / "croissant.json"


TABLES = {
    "text/csv": ("labels.csv", "name,label,size\nc,2,0.5\na,1,\nb,2,1.5\n"),
    "text/tab-separated-values": ("labels.tsv", "name\tlabel\tsize\nc\t2\t0.5\na\t1\t\nb\t2\t1.5\n"),
    "application/jsonlines": (
        "labels.jsonl",
        '{"name": "c", "label": 2, "size": 0.5}\n{"name": "a", "label": 1}\n{"name": "b", "label": 2, "size": 1.5}\n',
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_are_joined_and_levels_have_the_names_of_their_enumeration(tmp_path, kind):
    name, content = TABLES[kind]
    (tmp_path / name).write_text(content)
    fields = [
        {"@id": "images/label", "dataType": "sc:Integer", "source": column(name, "label")}
        | {"references": {"@id": "kinds/id"}},
        {"@id": "images/size", "dataType": "sc:Float", "source": column(name, "size")},
    ]
    kinds = {
        "@id": "kinds",
        "dataType": "sc:Enumeration",
        "key": {"@id": "kinds/id"},
        "field": [{"@id": "kinds/id", "dataType": "sc:Integer"}, {"@id": "kinds/name", "dataType": "sc:Text"}],
        "data": [{"kinds/id": 2, "kinds/name": "wren"}, {"kinds/id": 1, "kinds/name": "tit"}],
    }
    found = setsup.open(written_description(tmp_path, {name: kind}, fields, [kinds]))
    assert found.factors["label"].levels == ("wren", "tit")
    assert [found.factors.row(row) for row in range(3)] == [
        {"label": "tit", "size": None},
        {"label": "wren", "size": 1.5},
        {"label": "wren", "size": 0.5},
    ]
    assert [int(found.fetch(row)["image"].mean()) for row in range(3)] == [0, 50, 100]


def test_one_of_several_record_sets_with_images_is_chosen(tmp_path):
    (tmp_path / "labels.csv").write_text(TABLES["text/csv"][1])
    fields = [{"@id": "images/label", "dataType": "sc:Integer", "source": column("labels.csv", "label")}]
    path = written_description(tmp_path, {"labels.csv": "text/csv"}, fields)
    document = json.loads(path.read_text())
    again = (
        json.dumps(document["recordSet"][0])
        .replace('"images/', '"again/')
        .replace('"@id": "images", "f', '"@id": "again", "f')
    )
    document["recordSet"].append(json.loads(again))
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"several record sets with images and columns: .*images.*again.*records=NAME"):
        setsup.open(path)
    assert setsup.open(path, records="again").records == "again"
    with pytest.raises(DataError, match="has no record set 'agian'; did you mean 'again'"):
        setsup.open(path, records="agian")


def test_files_without_a_row_are_unknown_and_counted(tmp_path, caplog):
    (tmp_path / "labels.csv").write_text("name,label\nb,2\n")
    fields = [{"@id": "images/label", "dataType": "sc:Integer", "source": column("labels.csv", "label")}]
    found = setsup.open(written_description(tmp_path, {"labels.csv": "text/csv"}, fields))
    assert found.factors.values("label").tolist() == [None, 2, None]
    assert "2 of 3 values are not in 'labels.csv'" in caplog.text


def test_keys_that_repeat_are_refused(tmp_path):
    (tmp_path / "labels.csv").write_text("name,label\nb,2\nb,1\n")
    fields = [{"@id": "images/label", "dataType": "sc:Integer", "source": column("labels.csv", "label")}]
    with pytest.raises(DataError, match="in which values repeat"):
        setsup.open(written_description(tmp_path, {"labels.csv": "text/csv"}, fields))


def test_what_cannot_be_read_is_named(tmp_path, caplog):
    (tmp_path / "labels.csv").write_text(TABLES["text/csv"][1])
    fields = [
        {"@id": "images/label", "dataType": "sc:Integer", "source": column("labels.csv", "label")},
        {"@id": "images/boxes", "dataType": "cr:BoundingBox", "isArray": True, "source": column("labels.csv", "size")},
    ]
    found = setsup.open(written_description(tmp_path, {"labels.csv": "text/csv"}, fields))
    assert found.factors.names == ("label",)
    assert "left out: images/boxes" in caplog.text.replace("'", "")
    assert "(lists)" in caplog.text


def test_a_table_of_few_bytes_and_many_rows_is_refused(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr("setsup.files.limits._BESIDE", 1 << 10)
    rows = 2_000_000
    pq.write_table(
        pa.table({"name": pa.array(["a"] * rows), "label": pa.array([1] * rows)}), tmp_path / "labels.parquet"
    )
    fields = [{"@id": "images/label", "dataType": "sc:Integer", "source": column("labels.parquet", "label")}]
    with pytest.raises(DataError, match="need more memory than the limit"):
        setsup.open(written_description(tmp_path, {"labels.parquet": "application/x-parquet"}, fields))
