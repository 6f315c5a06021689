"""Columns of Croissant descriptions as factors: transforms, references, JSON, CSV and what setsup described."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import setsup
from setsup.datasets import from_arrays, open_croissant
from setsup.errors import DataError, FactorError
from setsup.factors import Factor, FactorTable, Kind
from tests.croissant_documents import (
    FILES,
    at_path,
    column,
    content,
    file,
    named,
    reference,
    write,
    write_image,
)


def values(dataset, name):
    return dataset.factors.values(name).tolist()


def with_json(folder, document, *fields):
    folder.mkdir(exist_ok=True)
    (folder / "x.json").write_text(json.dumps(document))
    return write(folder, [file("x.json", kind="application/json")], [at_path(*one) for one in fields])


# -- regular expressions and other transforms --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("(train|val)_([0-9]+)", ["train", "val", None]),
        ("(?:train_([0-9]+)|(val|test))", ["12", "val", "test"]),
        ("(t)?.*", ["t", None, "t"]),
    ],
)
def test_the_first_group_that_took_part_is_the_value(tmp_path, regex, expected):
    for name in ("train_12.png", "val_7.png", "test.png"):
        write_image(tmp_path / name, 1)
    found = open_croissant(write(tmp_path, [FILES], [content(), named("split", regex), named("name", "([a-z]+)")]))
    by_name = dict(zip(values(found, "name"), values(found, "split"), strict=True))
    assert [by_name[name] for name in ("train", "val", "test")] == expected


@pytest.mark.parametrize("regex", ["train", "".join("(x)?" for _ in range(10)) + "(t)"])
def test_an_expression_with_no_group_or_too_many_is_refused(tmp_path, regex):
    write_image(tmp_path / "train.png", 1)
    with pytest.raises(DataError, match="has no group of a value, more than 9"):
        open_croissant(write(tmp_path, [FILES], [content(), named("split", regex)]))


@pytest.mark.parametrize(
    "transform", [{"separator": ";"}, {"jsonPath": "$.a"}, {"format": "%Y"}, {"replace": "x/y"}, {"readLines": True}]
)
def test_columns_with_other_transforms_are_left_out_by_name(tmp_path, caplog, transform):
    (tmp_path / "t.csv").write_text("country,tags\nDE,x;y\nFR,y;x\n")
    fields = [column("country", "t.csv"), column("tags", "t.csv", transform=transform)]
    found = open_croissant(write(tmp_path, [file("t.csv")], fields), records="r")
    assert found.factors.names == ("country",)
    assert f"r/tags (transform {next(iter(transform))})" in caplog.text


def test_the_format_of_a_date_leaves_it_a_string(tmp_path):
    (tmp_path / "t.csv").write_text("day\n2012-03-01\n2012-03-02\n")
    field = column("day", "t.csv", kind="sc:Date", transform={"format": "%Y-%m-%d"})
    assert values(open_croissant(write(tmp_path, [file("t.csv")], [field]), records="r"), "day") == [
        "2012-03-01",
        "2012-03-02",
    ]


def test_transforms_of_images_are_refused_by_name(tmp_path):
    write_image(tmp_path / "a.png", 1)
    image = content()
    image["source"]["transform"] = {"replace": "a/b"}
    with pytest.raises(DataError, match="has the transform 'replace', which setsup does not apply to images"):
        open_croissant(write(tmp_path, [FILES], [image, named("name", "(.*)")]))


def test_a_field_of_a_field_has_the_transforms_of_both(tmp_path):
    (tmp_path / "t.csv").write_text("path\ntrain/a-1\nval/b-2\n")
    inner = column("file", "t.csv", "path", transform={"regex": "[a-z]*/(.*)"})
    outer = {"@id": "r/number", "name": "number", "dataType": "sc:Text"}
    outer["source"] = {"field": {"@id": "r/file"}, "transform": {"regex": "[a-z]-([0-9])"}}
    found = open_croissant(write(tmp_path, [file("t.csv")], [inner, outer]), records="r")
    assert values(found, "file") == ["a-1", "b-2"]
    assert values(found, "number") == ["1", "2"]


# -- references --------------------------------------------------------------------------------------------------------


def test_a_column_with_a_reference_to_another_table_stays(tmp_path):
    (tmp_path / "t.csv").write_text("country,category\nDE,1\nFR,2\n")
    (tmp_path / "cats.csv").write_text("id,name\n1,bird\n2,fish\n")
    fields = [
        column("country", "t.csv"),
        column("category", "t.csv", kind="sc:Integer", references=reference("cats.csv", "id")),
        column("name", "cats.csv"),
    ]
    found = open_croissant(write(tmp_path, [file("t.csv"), file("cats.csv")], fields), records="r")
    assert values(found, "category") == [1, 2]
    assert values(found, "name") == ["bird", "fish"]
    assert values(found, "country") == ["DE", "FR"]


def test_keys_are_compared_as_they_are_written(tmp_path, caplog):
    (tmp_path / "t.csv").write_text("cat\n007\n8\n")
    (tmp_path / "c.csv").write_text("id,name\n007,bird\n8,fish\n")
    fields = [
        column("cat", "t.csv", kind="sc:Integer", references=reference("c.csv", "id")),
        column("name", "c.csv"),
    ]
    found = open_croissant(write(tmp_path, [file("t.csv"), file("c.csv")], fields), records="r")
    assert values(found, "name") == ["bird", "fish"]
    assert not caplog.text


def test_keys_of_a_csv_file_match_numbers_of_a_parquet_file(tmp_path):
    (tmp_path / "t.csv").write_text("cat\n2\n1\n\n")
    pq.write_table(pa.table({"id": [1, 2], "name": ["bird", "fish"]}), tmp_path / "c.parquet")
    fields = [column("cat", "t.csv", references=reference("c", "id")), column("name", "c")]
    path = write(tmp_path, [file("t.csv"), file("c", "c.parquet", "application/x-parquet")], fields)
    assert values(open_croissant(path, records="r"), "name") == ["fish", "bird"]


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_values_of_other_records_are_left_out(tmp_path, caplog):
    document = {
        "images": [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}],
        "annotations": [{"label": 5}, {"label": 6}],
    }
    fields = [("id", "$.images[*].id"), ("tag", "$.images[*].tags[*]"), ("label", "$['annotations'][*].label")]
    found = open_croissant(with_json(tmp_path, document, *fields), records="r")
    assert found.factors.names == ("id",)
    assert "r/tag (of other records)" in caplog.text
    assert "r/label (of other records)" in caplog.text


def test_lists_and_objects_are_left_out_and_what_is_missing_is_unknown(tmp_path, caplog):
    document = {"images": [{"id": 1, "box": [1, 2], "who": {"a": 1}}, {"id": 2, "size": {"h": 3}, "box": [3, 4]}]}
    document["images"][0]["size"] = {"h": None}
    fields = [("id", "$.images[*].id"), ("box", "$.images[*].box"), ("who", "$.images[*].who")]
    fields += [("h", "$['images'][*].size.h"), ("first", "$.images[*].box[0]")]
    found = open_croissant(with_json(tmp_path, document, *fields), records="r")
    assert found.factors.names == ("id", "h", "first")
    assert values(found, "h") == [None, 3]
    assert values(found, "first") == [1, 3]
    assert "r/box (lists or objects)" in caplog.text
    assert "r/who (lists or objects)" in caplog.text


@pytest.mark.parametrize("ids", [[1, "a"], [10**100, 1], ["\ud800", "a"]])
def test_values_of_json_that_no_factor_can_have_end_in_one_sentence(tmp_path, ids):
    path = with_json(tmp_path, {"images": [{"id": one} for one in ids]}, ("id", "$.images[*].id"))
    with pytest.raises(DataError, match=r"'r/id' of .*croissant\.json: ") as raised:
        open_croissant(path, records="r")
    assert "\n" not in str(raised.value)


def test_json_lines_have_flat_fields_and_their_lists_are_left_out(tmp_path, caplog):
    lines = [{"a": 1, "gps": {"lat": 1.5}, "tags": ["x"]}, {"a": None, "gps": {"lat": 2.5}, "tags": []}]
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    fields = [column("a", "t.jsonl", kind="sc:Integer"), column("lat", "t.jsonl", "gps.lat", "sc:Float")]
    fields += [column("gps", "t.jsonl"), column("tags", "t.jsonl")]
    path = write(tmp_path, [file("t.jsonl", kind="application/jsonlines")], fields)
    found = open_croissant(path, records="r")
    assert values(found, "a") == [1, None]
    assert values(found, "lat") == [1.5, 2.5]
    assert found.factors.names == ("a", "lat")
    assert "r/gps (lists or objects)" in caplog.text
    assert "r/tags (lists or objects)" in caplog.text


# -- CSV by the rules of FactorTable.open ------------------------------------------------------------------------------

TABLE = "country,age,code,ok,size\nNA,3,007,true,1\nDE,NA,008,,2.5\n,5,,false,\n"


def test_a_csv_file_is_read_as_everywhere_in_setsup(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    kinds = {"age": "sc:Integer", "code": "sc:Integer", "ok": "sc:Boolean", "size": "sc:Float"}
    fields = [column(name, "t.csv", kind=kinds.get(name, "sc:Text")) for name in TABLE.split("\n")[0].split(",")]
    found = open_croissant(write(tmp_path, [file("t.csv")], fields), records="r")
    expected = FactorTable.from_csv(tmp_path / "t.csv")
    assert found.factors.factors == expected.factors
    for row in range(3):
        assert found.factors.row(row) == expected.row(row)
    assert values(found, "country") == ["NA", "DE", None]
    assert values(found, "age") == [3, None, 5]


def test_text_that_looks_like_numbers_stays_text(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,1\n2,2\n")
    fields = [column("a", "t.csv", kind="sc:Text"), column("b", "t.csv", kind="sc:Integer")]
    found = open_croissant(write(tmp_path, [file("t.csv")], fields), records="r")
    assert found.factors["a"].levels == ("1", "2")
    assert found.factors["b"].levels == (1, 2)


@pytest.mark.parametrize("second", ["v,w\n1.5,c\n2.5,d\n", "v,w\n,c\n,d\n"])
def test_files_of_a_set_have_one_type(tmp_path, second):
    (tmp_path / "1.csv").write_text("v,w\n1,a\n2,b\n")
    (tmp_path / "2.csv").write_text(second)
    tables = {"@type": "cr:FileSet", "@id": "t", "includes": "*.csv", "encodingFormat": "text/csv"}
    source = {"fileSet": {"@id": "t"}, "extract": {"column": "v"}}
    found = open_croissant(
        write(tmp_path, [tables], [{"@id": "r/v", "name": "v", "dataType": "sc:Float", "source": source}]), records="r"
    )
    last = [None, None] if second.startswith("v,w\n,") else [1.5, 2.5]
    assert values(found, "v") == [1, 2, *last]


def test_files_of_a_set_whose_types_differ_end_in_one_sentence(tmp_path):
    pq.write_table(pa.table({"v": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"v": ["a"]}), tmp_path / "2.parquet")
    tables = {"@type": "cr:FileSet", "@id": "t", "includes": "*.parquet", "encodingFormat": "application/x-parquet"}
    source = {"fileSet": {"@id": "t"}, "extract": {"column": "v"}}
    path = write(tmp_path, [tables], [{"@id": "r/v", "name": "v", "source": source}])
    with pytest.raises(DataError, match="table 't' cannot be read"):
        open_croissant(path, records="r")


def test_levels_of_an_enumeration_by_the_keys_of_a_csv_file(tmp_path):
    (tmp_path / "t.csv").write_text("label,code\n2,b\n1,a\n,\n")
    kinds = {
        "@id": "kinds",
        "field": [{"@id": "kinds/id", "dataType": "sc:Integer"}, {"@id": "kinds/name", "dataType": "sc:Text"}],
        "data": [{"kinds/id": 2, "kinds/name": "wren"}, {"kinds/id": 1, "kinds/name": "tit"}],
    }
    fields = [column("label", "t.csv", kind="sc:Integer", references={"field": {"@id": "kinds/id"}})]
    path = write(tmp_path, [file("t.csv")], fields, [kinds])
    assert values(open_croissant(path, records="r"), "label") == ["wren", "tit", None]
    (tmp_path / "t.csv").write_text("label,code\n3,b\n")
    with pytest.raises(DataError, match="'r/label' has the value 3, which is none of the enumeration"):
        open_croissant(path, records="r")


# -- what setsup described ---------------------------------------------------------------------------------------------

FACTORS = (
    Factor("az", Kind.CYCLIC, (0, 90, 180, 270), unit="deg", period=360.0),
    Factor("samples/left", Kind.NOMINAL, ("a", "b")),
    Factor("cat", Kind.NOMINAL, ("d", "c")),
    Factor("inst", Kind.NOMINAL, ("f", "e"), within="cat"),
)
CODES = {"az": [0, 1, 2, 3], "samples/left": [0, 1, 0, 1], "cat": [0, 0, 1, 1], "inst": [0, 0, 1, 1]}


@pytest.fixture
def shards(tmp_path):
    table = FactorTable(list(FACTORS), {name: np.array(codes, np.uint8) for name, codes in CODES.items()})
    setsup.write_shards(from_arrays(np.zeros((4, 4, 4, 3), np.uint8), table, name="x"), tmp_path / "set")
    return tmp_path / "set" / "croissant.json"


def test_a_factor_whose_name_looks_like_an_identifier_keeps_it(shards):
    assert open_croissant(shards).factors.factors == FACTORS


def test_a_given_kind_keeps_unit_nesting_and_order_of_levels(shards):
    found = open_croissant(shards, kinds={"az": "ordinal", "inst": "ordinal", "cat": "nominal"}).factors
    assert found["az"] == Factor("az", Kind.ORDINAL, (0, 90, 180, 270), unit="deg")
    assert found["inst"] == Factor("inst", Kind.ORDINAL, ("f", "e"), within="cat")
    assert found["cat"] == FACTORS[2]
    turned = open_croissant(shards, kinds={"az": "continuous"}).factors
    assert turned["az"] == Factor("az", Kind.CONTINUOUS, unit="deg", period=360.0)
    assert turned.column("az").tolist() == [0, 90, 180, 270]
    listed = open_croissant(shards, kinds={"inst": "ordinal:e,f"}).factors
    assert listed["inst"].levels == ("e", "f")
    assert listed.values("inst").tolist() == ["f", "f", "e", "e"]


def test_a_kind_of_no_factor_is_refused(shards):
    with pytest.raises(FactorError, match=r"kinds= names 'azz', which is no factor of .*; did you mean 'az'"):
        open_croissant(shards, kinds={"azz": "ordinal"})


def test_a_modality_of_one_number_is_no_factor(tmp_path, caplog):
    pytest.importorskip("datasets")
    arrays = {"image": np.zeros((4, 4, 4, 3), np.uint8), "score": np.arange(4.0)}
    setsup.to_huggingface(from_arrays(arrays, {"a": np.array([0, 0, 1, 1])}, name="x"), tmp_path / "hf")
    found = open_croissant(tmp_path / "hf" / "croissant.json")
    assert found.factors.names == ("a",)
    assert "samples/score (a modality of one number)" in caplog.text
