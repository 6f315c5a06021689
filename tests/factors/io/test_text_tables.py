"""Tables in text other than UTF-8 with commas: other delimiters and encodings, gzip, JSON lines."""

import csv
import gzip
import io
import json
import logging

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.io import csv_file, frames, json_lines
from tests.fuzzing import survives

ROWS = [["a.png", "ann", 1, 0.5], ["b.png", "bob, jr.", 2, -1.25], ["c;d.png", "", 2, 3e-3]]
HEADER = ["file", "subject", "session", "yaw"]


def written(delimiter, header=HEADER, rows=ROWS, **options):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, **options).writerows([header, *rows])
    return text.getvalue()


def read(folder, content, name="t.csv", **arguments):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return FactorTable.from_csv(path, **arguments)


def same(one, other):
    assert one.factors == other.factors
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "encode", [str.encode, lambda text: text.encode("utf-8-sig"), lambda text: text.encode("utf-16")]
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_every_dialect_reads_the_same(tmp_path, monkeypatch, own_cache, delimiter, encode, pack):
    expected = FactorTable.from_values(
        {name: [row[place] or None for row in ROWS] for place, name in enumerate(HEADER)}
    )
    content = pack(encode(written(delimiter)))
    same(read(tmp_path, content), expected)
    monkeypatch.setattr(frames, "LARGE", 0)
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    same(read(tmp_path, content), expected)


FIELDS = st.one_of(
    st.integers(-99, 99).map(str),
    st.floats(-10, 10, width=16).map(str),
    st.text("ab ,;|\t\"'é\n.", min_size=1, max_size=6).map(lambda text: f"x{text}x"),
    st.just(""),
)


@pytest.mark.long("fuzzing")
@given(data=st.data(), width=st.integers(2, 4), quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_what_the_csv_module_writes_is_read_or_refused_never_otherwise(tmp_path_factory, data, width, quoting):
    """Whatever the delimiter, a file is the table of its fields, or ambiguous."""
    header = [f"c{place}" for place in range(width)]
    rows = data.draw(st.lists(st.lists(FIELDS, min_size=width, max_size=width), min_size=1, max_size=8))
    folder = tmp_path_factory.getbasetemp()
    kinds = dict.fromkeys(header, "nominal")
    tables = []
    for delimiter in ",;\t|":
        try:
            tables.append(read(folder, written(delimiter, header, rows, quoting=quoting), "dialect.csv", kinds=kinds))
        except DataError as error:
            tables.append(str(error))
    found = [table if isinstance(table, str) else table.fingerprint for table in tables]
    assert len(set(found)) == 1
    if not isinstance(tables[0], str):
        for place, name in enumerate(header):
            texts = [row[place].strip() or None for row in rows]
            values = tables[0].values(name).tolist()
            assert [value is None for value in values] == [text is None for text in texts]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("a,b;c\n1,2\n", ("a", "b;c")),
        ("a,b|c\n1,2\n3,4\n", ("a", "b|c")),
        ("a;b,c;d\n1;2;3\n", ("a", "b,c", "d")),
        ('"a;b",c\n1,2\n', ("a;b", "c")),
        ('a;"b,c"\n1,5;2\n', ("a", "b,c")),
        ("only\na;b\n", ("only",)),
        ("only\na\tb\n", ("only",)),
        ("sep=;\na;b,c\n1;2,3\n", ("a", "b,c")),
        ('"sep=\t"\r\na\tb\r\n1\t2\r\n', ("a", "b")),
        ("a\tb\r1\t2\r", ("a", "b")),
        ("\n\na;b\n1;2\n", ("a", "b")),
        (";a;b\n0;1;2\n", ("a", "b")),
    ],
)
def test_the_delimiter_is_found(tmp_path, content, names):
    assert read(tmp_path, content).names == names


def test_the_ending_tsv_decides_between_tabs_and_others(tmp_path):
    content = "a\tb,c\n1\t2,3\n"
    with pytest.raises(DataError, match=r"is ambiguous: .* commas or tabs"):
        read(tmp_path, content)
    assert read(tmp_path, content, "t.tsv").names == read(tmp_path, gzip.compress(content.encode()), "t.TSV.gz").names


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize(
    "values",
    [["1.5", "2.25", ""], ["1.0", "", "3.0"], ["1.0", "2.0", "3.0"], ["7", "0.5", "NA"], ["-.5", "1e3", "1.5e-2"]],
)
def test_decimal_commas_read_as_points(tmp_path, monkeypatch, own_cache, delimiter, values):
    pointed = read(tmp_path, written(",", ["row", "x"], list(enumerate(values))))
    content = written(delimiter, ["row", "x"], [[row, value.replace(".", ",")] for row, value in enumerate(values)])
    same(read(tmp_path, content), pointed)
    same(
        read(tmp_path, content, kinds={"x": "continuous"}),
        read(tmp_path, written(",", ["row", "x"], list(enumerate(values))), kinds={"x": "continuous"}),
    )
    given = Factor("x", Kind.CONTINUOUS)
    np.testing.assert_array_equal(
        read(tmp_path, content, factors=[given]).column("x"), pointed.values("x").astype(np.float32)
    )
    monkeypatch.setattr(frames, "LARGE", 0)
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    same(read(tmp_path, content), pointed)


def test_commas_that_may_be_something_else(tmp_path, caplog):
    with pytest.raises(DataError, match=r"mixes decimal points and commas: row 0 has .1\.5., row 1 has .2,5."):
        read(tmp_path, "row;x\n0;1.5\n1;2,5\n")
    with pytest.raises(DataError, match="'1,234', in which the comma may be a decimal comma or a thousands separator"):
        read(tmp_path, "row\tx\n0\t1,234\n1\t17\n")
    assert read(tmp_path, "row\tx\n0\t1,234\n1\t0,5\n").values("x").tolist() == pytest.approx([1.234, 0.5])
    assert read(tmp_path, "row;x\n0;1,234\n1;17\n").values("x").tolist() == pytest.approx([1.234, 17])
    assert read(tmp_path, "row;x\n0;1,2\n1;3,4\n", kinds={"x": "nominal"})["x"].levels == ("1,2", "3,4")
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "setsup"):
        assert read(tmp_path, 'row,x\n0,"1,2"\n1,"3,4"\n')["x"].levels == ("1,2", "3,4")
    assert "column 'x', such as '1,2', are read as strings" in caplog.text


def test_pandas_written_files_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"digit": [3, None, 5], "name": ["x;y", None, "y"], "angle": [0.5, 1.5, None], "flag": [True, False, True]}
    )
    expected = FactorTable.from_pandas(frame)
    frame.to_csv(tmp_path / "f.csv", sep=";", decimal=",")
    same(FactorTable.from_csv(tmp_path / "f.csv"), expected)
    frame.to_csv(tmp_path / "f.tsv.gz", sep="\t", index=False, encoding="utf-16")
    same(FactorTable.from_csv(tmp_path / "f.tsv.gz"), expected)
    for name in ("f.jsonl", "f.ndjson.gz"):
        frame.to_json(tmp_path / name, orient="records", lines=True)
        same(FactorTable.from_csv(tmp_path / name), expected)


# -- JSON lines --------------------------------------------------------------------------------------------------------


def test_json_lines_keep_their_types(tmp_path, monkeypatch, own_cache):
    rows = [
        {"file": "a.png", "id": "007", "age": 41, "yaw": 0.5, "boxes": [1, 2]},
        {"file": "b.png", "id": "8", "age": None, "yaw": 2, "day": "2026-01-31"},
        {},
    ]
    content = "\ufeff" + "\n\n".join(map(json.dumps, rows)) + "\r\n"
    table = read(tmp_path, content, "t.jsonl")
    assert table.names == ("file", "id", "age", "yaw", "day")
    assert table["id"] == Factor("id", Kind.NOMINAL, ("007", "8"), role="key")
    assert table["day"].levels == ("2026-01-31",)
    assert table.row(1) == {"file": "b.png", "id": "8", "age": None, "yaw": 2.0, "day": "2026-01-31"}
    monkeypatch.setattr(frames, "LARGE", 0)
    monkeypatch.setattr(json_lines, "ROWS", 1)
    same(read(tmp_path, content, "t.jsonl"), table)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "has no rows; expected a JSON object on each line"),
        ("\n \n", "has no rows"),
        ('{"a": 1}\n{"a": ', "line 2 could not be parsed as a JSON object"),
        ('{"a": 1} {"a": 2}\n', "line 1 could not be parsed as a JSON object"),
        (
            '[{"a": 1}]',
            "line 1: .* is not a JSON object; write one object per line, as pandas does with orient='records'",
        ),
        ("3\n", "line 1: 3 is not a JSON object"),
        ('{"a": 1}\n{"a": "x"}\n', "column 'a' mixes numbers and strings: row 0 has 1, row 1 has 'x'"),
        ('{"a": 1}\n\n{"a": 1' + "0" * 5000 + "}\n", "line 3 could not be parsed as a JSON"),
        ('{"a": 1' + "0" * 30 + '}\n{"a": true}\n', "column 'a' mixes"),
        ('{"a": [1]}\n', "none of the columns can be a factor"),
        ('{"a": null}\n' + "[" * 100_000, "line 2"),
        (b'{"a": "\xff"}\n', "line 1: the byte .* is not valid UTF-8"),
        (b'{"a": 1}\n\0', "line 2 contains a NUL byte"),
    ],
)
def test_what_is_wrong_with_json_lines_is_one_sentence(tmp_path, content, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read(tmp_path, content, "t.jsonl")
    assert "t.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)


# -- files that are something else, or damaged -------------------------------------------------------------------------


def test_compressed_files_that_are_damaged_or_bombs(tmp_path):
    healthy = gzip.compress(written(";", rows=[[f"{row}.png", "x", row, 0.5] for row in range(5000)]).encode())
    for content in (healthy[:-9], healthy[: len(healthy) // 2], healthy[:40], healthy[:2], healthy + b"more"):
        with pytest.raises(DataError, match="is a damaged or truncated gzip file"):
            read(tmp_path, content, "t.csv.gz")
    broken = bytearray(healthy)
    broken[100] ^= 255
    with pytest.raises(DataError, match=r"t\.csv\.gz"):
        read(tmp_path, bytes(broken), "t.csv.gz")
    with pytest.raises(DataError, match="NUL byte"):
        read(tmp_path, gzip.compress(bytes(1 << 20)), "t.csv.gz")


@pytest.mark.long("large or genuine files")
def test_a_bomb_is_refused(tmp_path):
    with pytest.raises(DataError, match="decompresses to more than 200 times its size"):
        read(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n" * (20 << 20)), "t.csv.gz")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.xlsx", b"PK\x03\x04", "is a spreadsheet; save it as CSV"),
        ("t.ODS", b"PK\x03\x04", "is a spreadsheet; save it as CSV"),
        ("t.xls", b"", "is a spreadsheet; save it as CSV"),
        ("t.csv", b"PK\x03\x04", "is a spreadsheet or a zip"),
        ("t.csv", b"\xd0\xcf\x11\xe0\xa1\xb1", "is an Excel spreadsheet"),
        ("t.csv", b"PAR1", "is a Parquet file; name it .parquet"),
        ("t.csv.bz2", b"BZh9", "is compressed with bzip2"),
    ],
)
def test_other_formats_are_named(tmp_path, name, content, sentence):
    with pytest.raises(DataError, match=sentence):
        read(tmp_path, content, name)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl"])
def test_folders_and_absent_files(tmp_path, name):
    with pytest.raises(DataError, match="does not exist"):
        FactorTable.from_csv(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="is a folder, not a table"):
        FactorTable.from_csv(tmp_path / name)


@given(
    content=st.text("a;,\t|\n\"'1. é\r", max_size=60).map(str.encode)
    | st.text('a;,\n"1é', max_size=40).map(lambda text: text.encode("utf-16"))
    | st.text('{}[]":,1a\n ', max_size=60).map(str.encode),
    name=st.sampled_from(["random.csv", "random.tsv", "random.jsonl"]),
)
@example(content=b"a;b\n1;2", name="random.tsv")
def test_random_text_is_a_table_or_a_data_error(tmp_path_factory, content, name):
    try:
        table = read(tmp_path_factory.getbasetemp(), content, name)
    except DataError as error:
        table = str(error)
        assert "\n" not in table
    assert len(table) > 0


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", written(";").encode()),
        ("t.txt", written("\t").encode("utf-16")),
        ("t.csv.gz", gzip.compress(written(",").encode(), mtime=0)),  # the same name of the test in every process
        ("t.jsonl", b'{"file": "a.png", "age": 41, "name": "ann"}\n' * 9),
    ],
)
def test_damaged_tables_are_read_or_refused(tmp_path, name, content):
    assert survives(content, lambda data: read(tmp_path, data, name), 150, slack=64 << 20) > 25
