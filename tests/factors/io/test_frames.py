import logging
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import DataError, FactorError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.io import csv_file, frames


def csv(tmp_path, content):
    path = tmp_path / "photos.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def small_and_large(path, monkeypatch, **arguments):
    """Table of a file read through memory, after seeing that the converted one is the same."""
    table = FactorTable.from_csv(path, **arguments)
    with monkeypatch.context() as context:
        context.setattr(frames, "LARGE", 0)
        context.setattr(csv_file, "BLOCK", 64)
        large = FactorTable.from_csv(path, **arguments)
    assert large.factors == table.factors
    assert large.fingerprint == table.fingerprint
    for name in table.names:
        np.testing.assert_array_equal(large.column(name), table.column(name))
    return table


COLUMNS = [
    (["7", "2", "7"], Factor("x", Kind.ORDINAL, (2, 7)), [1, 0, 1]),
    (["cube", "", "ball"], Factor("x", Kind.NOMINAL, ("ball", "cube")), [1, -1, 0]),
    (["true", "False", "TRUE"], Factor("x", Kind.NOMINAL, (False, True)), [1, 0, 1]),
    (["True", "", "NA"], Factor("x", Kind.NOMINAL, (False, True)), [1, -1, -1]),
    (["007", "12", "7"], Factor("x", Kind.NOMINAL, ("007", "12", "7")), [0, 1, 2]),
    (["7", "12", "007"], Factor("x", Kind.NOMINAL, ("007", "12", "7")), [2, 1, 0]),
    (["1.5", "2.5", "007"], Factor("x", Kind.NOMINAL, ("007", "1.5", "2.5")), [1, 2, 0]),
    (["1234567890123456789", "5", "5"], Factor("x", Kind.NOMINAL, ("1234567890123456789", "5")), [0, 1, 1]),
    (["1", "2", "2.5"], Factor("x", Kind.CONTINUOUS), [1, 2, 2.5]),
    (["1.0", "", "3.0"], Factor("x", Kind.ORDINAL, (1, 3)), [0, -1, 1]),
    (["1.0", "2.0", "3.0"], Factor("x", Kind.CONTINUOUS), [1, 2, 3]),
    (["-.5", "1e3", "nan"], Factor("x", Kind.CONTINUOUS), [-0.5, 1000, np.nan]),
    (["0.5", "None", "null"], Factor("x", Kind.CONTINUOUS), [0.5, np.nan, np.nan]),
    (["", "", ""], Factor("x", Kind.CONTINUOUS), [np.nan] * 3),
    (["NA", "DE", "FR"], Factor("x", Kind.NOMINAL, ("DE", "FR", "NA")), [2, 0, 1]),
    (["yes", "true", "no"], Factor("x", Kind.NOMINAL, ("no", "true", "yes")), [2, 1, 0]),
    ([" a", "a ", "b"], Factor("x", Kind.NOMINAL, ("a", "b")), [0, 0, 1]),
    (
        ['"a,b"', '"say ""hi"""', '"two\nlines"'],
        Factor("x", Kind.NOMINAL, ("a,b", 'say "hi"', "two\nlines")),
        [0, 1, 2],
    ),
    (["2026-01-31", "é", "x"], Factor("x", Kind.NOMINAL, ("2026-01-31", "x", "é")), [0, 2, 1]),
    (["0", "-0", "0.0"], Factor("x", Kind.CONTINUOUS), [0, 0, 0]),
]


@pytest.mark.parametrize(("fields", "factor", "codes"), COLUMNS)
@pytest.mark.parametrize("repeats", [1, 40])  # 40: types that differ only in late blocks
def test_fields_are_read_by_the_rules(tmp_path, monkeypatch, fields, factor, codes, repeats):
    fields = fields[:1] * repeats + fields[1:]
    codes = codes[:1] * repeats + codes[1:]
    rows = "".join(f"{row},{field}\n" for row, field in enumerate(fields))
    table = small_and_large(csv(tmp_path, "row,x\n" + rows), monkeypatch)
    assert table["x"] == factor
    assert [type(level) for level in factor.levels or ()] == [type(level) for level in table["x"].levels or ()]
    np.testing.assert_array_equal(table.codes("x"), np.asarray(codes, dtype=table.codes("x").dtype))


@pytest.mark.long("large or genuine files")
@given(data=st.data())
def test_small_and_converted_files_give_the_same_table(tmp_path_factory, data):
    """Whatever the fields, both ways agree, also on what is wrong."""
    words = st.sampled_from(["", "1", "2", "2.5", "3.0", "007", "x", "true", "NA", "1e400", "9" * 20, '"q,""\n"', "é"])
    rows = data.draw(st.lists(st.tuples(words, words), min_size=1, max_size=30))
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows), encoding="utf-8")

    def outcome():
        try:
            table = FactorTable.from_csv(path)
        except DataError as error:
            return str(error)
        return table.factors, {name: table.column(name).tobytes() for name in table.names}

    small = outcome()
    with pytest.MonkeyPatch.context() as context:
        context.setattr(frames, "LARGE", 0)
        context.setattr(csv_file, "BLOCK", 64)
        assert outcome() == small


def test_other_line_ends_marks_and_a_pandas_index(tmp_path):
    expected = {"a": 1, "b": "x"}
    for content in (b"a,b\r\n1,x\r\n", b"a,b\r1,x\r", b"\xef\xbb\xbfa,b\n1,x", b",a,b\n0,1,x\n", b"\na , b\n1, x\n\n"):
        table = FactorTable.from_csv(csv(tmp_path, content))
        assert {name: table.values(name)[0] for name in table.names} == expected


def test_pandas_written_csv_comes_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"digit": [3, None, 5], "name": ["x", None, "y"], "angle": [0.5, 1.5, None]})
    frame.to_csv(tmp_path / "f.csv")
    table = FactorTable.from_csv(tmp_path / "f.csv")
    assert table.fingerprint == FactorTable.from_pandas(frame).fingerprint
    assert table["digit"].levels == (3, 5)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty; start the file with a header"),
        (b"\n\n", "is empty"),
        (b"a,b\n", "contains a header, but no rows"),
        (b"a,b", "contains a header, but no rows"),
        (b"1,2\n3,4\n", "has no header: its first line is '1,2'"),
        (b"a,b,a\n1,2,3\n", "two columns have the name 'a'"),
        (b"a, a\n1,2\n", "two columns have the name 'a'"),
        (b"a,,b\n1,2,3\n", "column 1 .* has no name"),
        (b"a;b,c\n1;2,3\n4;5,6\n", "is ambiguous: .* evenly at commas or semicolons; put quotes around"),
        (b"a;b;c,d\n1;2;3\n4;5\n", "line 3 must have 3 fields, as the header does, not 2"),
        (b"a,b\n1,2\n3\n", "line 3 must have 2 fields, as the header does, not 1"),
        (b"a,b\n1,2\n\n3,4,5\n", "must have 2 fields, as the header does, not"),
        (b"a,b\n1,2\n3,\xe9\n", r"line 3: the byte b'\\xe9' is not valid UTF-8; save the file as UTF-8"),
        (b"a\xe9,b\n1,2\n", "line 1: the byte .* is not valid UTF-8"),
        ("a,b\n1,2\n".encode("utf-16-le"), "NUL byte, so the file is damaged or not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "is a damaged or truncated UTF-16 file"),
        (b"a,b\n1,2\n3,\0\n", "line 3 contains a NUL byte"),
        (b'a,b\n1,"2\n3,4\n', "a quoted field is not closed"),
        (
            b"a,b\n1,2\nx,3\n",
            r"column 'a' mixes numbers and strings: row 0 has '1', row 1 has 'x' .*kinds=\{'a': 'nominal'\}",
        ),
        (b"a,b\ntrue,2\n5,3\n", "column 'a' mixes booleans and numbers: row 0 has 'true', row 1 has '5'"),
        (b"a,b\n1e999,2\n", "row 0 .* has inf; expected finite numbers"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "photos.csv"),
        (b"PK\x03\x04\x14\x00\x08\x08", "is a spreadsheet or a zip archive, not text; save it as CSV"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path, monkeypatch, content, sentence):
    path = csv(tmp_path, content)
    with pytest.raises(DataError, match=sentence) as caught:
        FactorTable.from_csv(path)
    assert "photos.csv" in str(caught.value)
    monkeypatch.setattr(frames, "LARGE", 0)
    with pytest.raises(DataError) as again:
        FactorTable.from_csv(path)
    assert str(again.value) == str(caught.value)


def test_a_line_longer_than_a_block_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "BLOCK", 1000)
    with pytest.raises(DataError, match="contains a line longer than"):
        FactorTable.from_csv(csv(tmp_path, "a,b\n1,2\n" + "x" * 5000 + ",2\n"))


def test_missing_files_and_folders(tmp_path):
    for read in (FactorTable.from_csv, FactorTable.from_parquet):
        with pytest.raises(DataError, match=r"nothing does not exist"):
            read(tmp_path / "nothing")
        with pytest.raises(DataError, match=str(tmp_path)):
            read(tmp_path)


@given(content=st.binary(max_size=300) | st.text("a,\n\"'1. é\r\0", max_size=60).map(str.encode))
def test_random_bytes_are_a_table_or_a_data_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "random.csv"
    path.write_bytes(content)
    try:
        table = FactorTable.from_csv(path)
    except DataError as error:
        table = str(error)
    assert len(table) > 0


def test_given_factors_and_kinds(tmp_path, monkeypatch):
    path = csv(tmp_path, "shape,size,id\ncube,1,x1\nball,2,7\n,NA,8\n")
    factors = [Factor("shape", Kind.ORDINAL, ("cube", "cone", "ball")), Factor("size", Kind.ORDINAL, (3, 2, 1.0))]
    table = small_and_large(path, monkeypatch, factors=factors)
    assert table.codes("shape").tolist() == [0, 2, -1]
    assert table.codes("size").tolist() == [2, 1, -1]
    assert table["id"] == Factor("id", Kind.NOMINAL, ("7", "8", "x1"), role="key")
    table = small_and_large(path, monkeypatch, kinds={"size": "continuous"})
    assert table["size"].continuous
    with pytest.raises(DataError, match=r"photos.csv: row 1 .* of column 'shape' has 'ball', which is not a level"):
        FactorTable.from_csv(path, [Factor("shape", Kind.NOMINAL, ("cube", "bell"))])
    with pytest.raises(DataError, match=r"photos.csv: row 0 .* 'cube', which is not a number"):
        FactorTable.from_csv(path, [Factor("shape", Kind.CONTINUOUS)])


def test_a_path_is_text_even_of_digits(tmp_path):
    assert FactorTable.from_csv(csv(tmp_path, "path,a\n1,2\n2,2\n"))["path"].levels == ("1", "2")


def test_the_first_column_that_mixes_is_named_whatever_the_blocks(tmp_path, monkeypatch, own_cache):
    path = csv(tmp_path, "a,b\n" + "0.5,true\n" * 20 + "x,2.5\n")
    for large in (frames.LARGE, 0):
        monkeypatch.setattr(frames, "LARGE", large)
        monkeypatch.setattr(csv_file, "BLOCK", 64 if not large else csv_file.BLOCK)
        with pytest.raises(DataError, match="column 'a' mixes numbers and strings"):
            FactorTable.from_csv(path)


def test_rows_in_messages_are_counted_over_all_blocks(tmp_path, monkeypatch):
    path = csv(tmp_path, "a\n" + "7\n" * 100 + "x\n" + "8\n" * 100)
    for large in (frames.LARGE, 0):
        monkeypatch.setattr(frames, "LARGE", large)
        monkeypatch.setattr(csv_file, "BLOCK", 64 if not large else csv_file.BLOCK)
        with pytest.raises(DataError, match=r"row 0 has '7', row 100 has 'x' \(rows are counted from 0\)"):
            FactorTable.from_csv(path)


def test_whatever_else_the_parser_says_is_one_sentence(tmp_path, monkeypatch):
    def fail(*arguments):
        raise pa.ArrowInvalid("CSV parser got out of sync\nwith the chunker")

    monkeypatch.setattr("pyarrow.csv.open_csv", fail)
    with pytest.raises(DataError, match=r"photos\.csv could not be parsed as CSV: CSV parser got out of sync with the"):
        FactorTable.from_csv(csv(tmp_path, "a,b\n1,2\n"))


def test_a_large_file_is_converted_once(tmp_path, monkeypatch, own_cache, caplog):
    monkeypatch.setattr(frames, "LARGE", 0)
    path = csv(tmp_path, "a,b\n1,x\n2,y\n")
    before = set(own_cache.rglob("*.arrow"))
    with caplog.at_level(logging.INFO, "setsup"):
        for _ in range(2):
            table = FactorTable.from_csv(path)
    assert [record.message.split(" once")[0] for record in caplog.records] == [f"converting {path}"]
    (made,) = set(own_cache.rglob("*.arrow")) - before
    assert table.fingerprint == FactorTable.open(made).fingerprint
    made.write_bytes(made.read_bytes()[:100])  # a damaged file is converted again
    assert FactorTable.from_csv(path).fingerprint == table.fingerprint
    path.write_text("a,b\n1,x\n2,y\n3,z\n")  # and so is one of a file that changed
    assert len(FactorTable.from_csv(path)) == 3
    assert not [left for left in (own_cache / "tables").iterdir() if left.suffix not in (".arrow", ".lock")]


def test_a_file_that_changes_while_it_is_converted_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "LARGE", 0)
    path = csv(tmp_path, "a,b\n1,x\n2,y\n")
    original = frames.from_blocks

    def changing(*arguments, **options):
        table = original(*arguments, **options)
        path.write_text("a,b\n1,x\n")
        return table

    monkeypatch.setattr(frames, "from_blocks", changing)
    with pytest.raises(DataError, match="changed while it was being converted"):
        FactorTable.from_csv(path)


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "LARGE", 0)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match="SETSUP_CACHE"):
        FactorTable.from_csv(csv(tmp_path, "a,b\n1,x\n"))


def convert_and_report(path, queue):
    frames.LARGE = 0
    queue.put(FactorTable.from_csv(path).fingerprint)


def test_two_processes_that_convert_at_once_both_end_well(tmp_path):
    path = csv(tmp_path, "a,b\n" + "".join(f"{row},{row % 7}\n" for row in range(20_000)))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=convert_and_report, args=(path, queue)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = {queue.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert found == {FactorTable.from_csv(path).fingerprint}


def test_parquet_files(tmp_path, monkeypatch):
    table = pa.table(
        {"shape": ["cube", None, "ball"], "size": [1, 2, None], "angle": [0.5, None, 1.5], "image": [b"", b"", b""]}
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    found = FactorTable.from_parquet(tmp_path / "t.parquet")
    assert found.names == ("shape", "size", "angle")
    assert found.fingerprint == FactorTable.from_arrow(table).fingerprint
    monkeypatch.setattr(frames, "LARGE", 0)
    monkeypatch.setattr(frames, "ROWS", 2)
    assert FactorTable.from_parquet(tmp_path / "t.parquet").fingerprint == found.fingerprint


@pytest.mark.long("fuzzing")
def test_texts_of_all_lengths_in_parquet(tmp_path, monkeypatch):
    """Whether blocks of texts are cut in parts or not, and whether texts repeat or not."""
    dice = np.random.default_rng(0)
    words = [None, "", "é", *("x" * int(length) for length in dice.integers(1, 300, 40))]
    texts = [words[place] for place in dice.integers(0, len(words), 400)]
    table = pa.table({"few": texts, "number": np.arange(400) % 7, "some": texts[::-1]})
    expected = FactorTable.from_arrow(table).fingerprint
    for number, options in enumerate(({}, {"use_dictionary": False}, {"row_group_size": 70, "data_page_size": 1000})):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path, **options)
        for most, large, rows in ((64 << 20, 1 << 40, 1 << 16), (1000, 1 << 40, 64), (1, 1 << 40, 100), (500, 0, 90)):
            monkeypatch.setattr(frames, "_MOST", most)
            monkeypatch.setattr(frames, "LARGE", large)
            monkeypatch.setattr(frames, "ROWS", rows)
            assert FactorTable.from_parquet(path).fingerprint == expected


EQUAL = """
import resource, sys
import setsup
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = setsup.FactorTable.from_parquet(sys.argv[1])
unit = 1 if sys.platform == "darwin" else 1024
print(len(found), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit)
"""


@pytest.mark.long("large or genuine files")
def test_many_equal_rows_take_no_more_than_their_codes(tmp_path):
    path, rows = tmp_path / "t.parquet", 30_000_000
    with pq.ParquetWriter(path, pa.schema([("a", pa.int64()), ("b", pa.float64())])) as writer:
        block = pa.table({"a": np.zeros(3_000_000, np.int64), "b": np.zeros(3_000_000)})
        for _ in range(10):
            writer.write_table(block)
    assert path.stat().st_size < 1_000_000
    environment = {**os.environ, "SETSUP_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", EQUAL, str(path)], capture_output=True, text=True, check=True, env=environment
    )
    count, taken = map(int, done.stdout.split())
    assert count == rows
    assert taken < 320_000_000  # two columns of eight bytes would be 480 million; codes, which are mapped, are 60


@pytest.mark.long("large or genuine files")
def test_a_long_text_that_repeats_without_end(tmp_path):
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema([("a", pa.string())]), compression="zstd") as writer:
        block = pa.table({"a": ["x" * 1_000_000] * 200})
        for _ in range(10):
            writer.write_table(block, row_group_size=200)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(
        DataError,
        match="the long strings of one of its columns repeat so often that they do not fit into memory; leave out",
    ):
        FactorTable.from_parquet(path)


def test_our_own_parquet_keeps_its_factors(tmp_path):
    table = FactorTable(
        [Factor("hue", Kind.CYCLIC, (0.0, 0.5), "turn", 1.0), Factor("x", Kind.CONTINUOUS, unit="m")],
        {"hue": [1, -1, 0], "x": [0.5, np.nan, 1]},
    )
    pq.write_table(table.to_arrow(), tmp_path / "t.parquet")
    found = FactorTable.from_parquet(tmp_path / "t.parquet")
    assert found.factors == table.factors
    assert found.fingerprint == table.fingerprint


@given(data=st.data())
def test_mutated_parquet_is_a_table_or_a_data_error(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    healthy, path = folder / "healthy.parquet", folder / "mutated.parquet"
    if not healthy.exists():
        pq.write_table(pa.table({"a": ["x", None, "y"] * 9, "b": [1, 2, 3] * 9}), healthy)
    content = bytearray(healthy.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    try:
        found = FactorTable.from_parquet(path)
    except DataError as error:
        found = str(error)
    assert isinstance(found, FactorTable) or "mutated.parquet" in found


def test_pandas_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "shape": ["cube", None, "ball"],
            "level": pandas.Categorical(["mid", "low", None], ["low", "mid", "high"], ordered=True),
            "word": pandas.Categorical(["b", "a", "b"], ["b", "a", "unused"]),
            "size": pandas.array([1, None, 3], dtype="Int64"),
            "digit": [1.0, None, 3.0],
            "angle": np.array([0.5, np.nan, 2], np.float32),
            "flag": [True, False, True],
            "day": pandas.to_datetime(["2026-01-01", None, "2026-01-02"]),
            "list": [[1], [2], [3]],
            7: ["x", "y", "z"],
        },
        index=[5, 6, 7],
    )
    table = FactorTable.from_pandas(frame)
    assert table.names == ("shape", "level", "word", "size", "digit", "angle", "flag", "day", "7")
    assert table["level"] == Factor("level", Kind.ORDINAL, ("low", "mid", "high"))
    assert table["word"] == Factor("word", Kind.NOMINAL, ("b", "a", "unused"))
    assert table.values("size").tolist() == table.values("digit").tolist() == [1, None, 3]
    assert table.codes("level").tolist() == [1, 0, -1]
    assert table["flag"].levels == (False, True)
    assert table.codes("day").tolist() == [0, -1, 1]


def test_pandas_and_back():
    pandas = pytest.importorskip("pandas")
    table = FactorTable(
        [Factor("a", Kind.ORDINAL, ("x", "y")), Factor("b", Kind.NOMINAL, (1, 2)), Factor("c", Kind.CONTINUOUS)],
        {"a": [1, -1], "b": [0, 1], "c": [np.nan, 0.5]},
    )
    frame = table.to_pandas()
    assert frame["a"].cat.ordered
    assert not frame["b"].cat.ordered
    assert frame["c"].dtype == np.float32
    assert FactorTable.from_pandas(frame).fingerprint == table.fingerprint
    assert FactorTable.from_pandas(table.to_pandas(), table.factors).fingerprint == table.fingerprint
    with pytest.raises(FactorError, match=r"mixes numbers and strings: row 0 has 1, row 1 has 'x'"):
        FactorTable.from_pandas(pandas.DataFrame({"a": [1, "x"]}))
    with pytest.raises(FactorError, match="column names of the frame must be unique"):
        FactorTable.from_pandas(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(FactorError, match=r"expects a pandas.DataFrame, not dict"):
        FactorTable.from_pandas({"a": [1]})


def test_huggingface_datasets():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "label": datasets.ClassLabel(names=["zebra", "ant"]),
            "size": datasets.Value("int32"),
            "name": datasets.Value("string"),
            "list": datasets.Sequence(datasets.Value("int32")),
            "image": datasets.Image(),
        }
    )
    columns = {
        "label": [1, 0, None, -1],
        "size": [3, 1, 1, None],
        "name": ["a", "", None, "b"],
        "list": [[1]] * 4,
        "image": [None] * 4,
    }
    dataset = datasets.Dataset.from_dict(columns, features=features)
    table = FactorTable.from_huggingface(dataset)
    assert table["label"] == Factor("label", Kind.NOMINAL, ("zebra", "ant"))
    assert table.codes("label").tolist() == [1, 0, -1, -1]
    assert table["size"] == Factor("size", Kind.ORDINAL, (1, 3))
    assert table.codes("name").tolist() == [0, -1, -1, 1]
    assert table.names == ("label", "size", "name")
    chosen = FactorTable.from_huggingface(dataset.select([1, 0]))
    assert chosen.values("label").tolist() == ["zebra", "ant"]
    with pytest.raises(FactorError, match=r"choose a split, such as dataset\['train'\]"):
        FactorTable.from_huggingface(datasets.DatasetDict({"train": dataset}))


def test_huggingface_and_back():
    datasets = pytest.importorskip("datasets")
    table = FactorTable(
        [
            Factor("a", Kind.NOMINAL, ("x", "y")),
            Factor("b", Kind.ORDINAL, (1, 2)),
            Factor("c", Kind.CONTINUOUS),
            Factor("d", Kind.NOMINAL, (False, True)),
            Factor("e", Kind.CYCLIC, (0.5, 1.5), period=2.0),
        ],
        {"a": [1, -1, 0], "b": [0, 1, -1], "c": [np.nan, 0.5, 1], "d": [-1, 0, 1], "e": [1, 0, -1]},
    )
    dataset = table.to_huggingface()
    assert dataset.features["a"] == datasets.ClassLabel(names=["x", "y"])
    assert dataset["b"][:] == [1, 2, None]
    assert FactorTable.from_huggingface(dataset, table.factors).fingerprint == table.fingerprint


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("pandas", FactorTable.to_pandas, "pandas"),
        ("pandas", FactorTable.from_pandas, "pandas"),
        ("datasets", FactorTable.to_huggingface, "hf"),
        ("datasets", FactorTable.from_huggingface, "hf"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, module, call, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataError) as caught:
        call(FactorTable([Factor("a", Kind.NOMINAL, ("x",))]))
    assert f"pip install '.[{extra}]'" in str(caught.value)


def test_importing_the_factors_loads_nothing_heavy():
    heavy = {"pyarrow", "pandas", "datasets", "scipy"}
    code = f"import sys, setsup.factors, setsup.factors.io.frames; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
