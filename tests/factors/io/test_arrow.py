import json
import mmap
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import DataError, FactorError
from setsup.factors import Factor, FactorTable, Kind

FACTORS = [
    Factor("shape", Kind.NOMINAL, ("cube", "", "ball")),
    Factor("azimuth", Kind.CYCLIC, (0.0, 90.5, 180.0), unit="deg", period=360.0, within="shape"),
    Factor("glasses", Kind.NOMINAL, (False, True)),
    Factor("id", Kind.ORDINAL, tuple(range(3, 303)), role="key"),
    Factor("mixed", Kind.ORDINAL, (0, 0.5, 1)),
    Factor("angle", Kind.CONTINUOUS, unit="deg"),
]


def random_table(rows=50, seed=0):
    numbers = np.random.default_rng(seed)
    columns = {factor.name: numbers.integers(-1, len(factor), rows) for factor in FACTORS[:-1]}
    return FactorTable(FACTORS, {**columns, "angle": np.where(columns["id"] % 5, numbers.random(rows), np.nan)})


def same(one, two):
    assert one.factors == two.factors
    assert [f.to_dict() for f in one.factors] == [f.to_dict() for f in two.factors]  # True is not 1 here
    assert len(one) == len(two)
    for name in one.names:
        np.testing.assert_array_equal(one.column(name), two.column(name))
        assert one.column(name).dtype == two.column(name).dtype


def test_a_saved_table_is_mapped_back(tmp_path):
    table = random_table()
    table.save(tmp_path / "table.arrow")
    found = FactorTable.open(tmp_path / "table.arrow")
    same(table, found)
    assert found.fingerprint == table.fingerprint
    column = found.column("id")
    while isinstance(column.base, np.ndarray):
        column = column.base
    assert not column.flags.owndata  # a view of the file
    assert isinstance(column.base.obj, mmap.mmap)


def test_the_stored_fingerprint_is_the_one_of_the_content(tmp_path):
    random_table().save(tmp_path / "table.arrow")
    found = FactorTable.open(tmp_path / "table.arrow")
    assert (
        FactorTable(found.factors, {name: found.column(name) for name in found.names}).fingerprint == found.fingerprint
    )


def test_the_file_is_one_plain_batch_that_others_can_read(tmp_path):
    random_table().save(tmp_path / "table.arrow")
    reader = pa.ipc.open_file(str(tmp_path / "table.arrow"))
    assert reader.num_record_batches == 1
    np.testing.assert_array_equal(reader.get_batch(0).column("shape"), random_table().column("shape"))
    assert json.loads(reader.schema.metadata[b"setsup"])["fingerprint"] == random_table().fingerprint


def test_a_grid_of_any_size_takes_no_room(tmp_path):
    grid = FactorTable([Factor(f"f{place}", Kind.ORDINAL, tuple(range(1000))) for place in range(6)])
    grid.save(tmp_path / "grid.arrow")
    found = FactorTable.open(tmp_path / "grid.arrow")
    assert found.is_grid
    assert len(found) == 1000**6
    assert found.fingerprint == grid.fingerprint
    assert (tmp_path / "grid.arrow").stat().st_size < 200_000


def test_an_empty_table_comes_back(tmp_path):
    random_table().select([]).save(tmp_path / "empty.arrow")
    same(FactorTable.open(tmp_path / "empty.arrow"), random_table().select([]))


def test_a_pickle_of_a_mapped_table_is_its_path(tmp_path):
    table = random_table(100_000)
    table.save(tmp_path / "table.arrow")
    pickled = pickle.dumps(FactorTable.open(tmp_path / "table.arrow"))
    assert len(pickled) < 2000
    same(pickle.loads(pickled), table)
    random_table(10).save(tmp_path / "table.arrow")
    with pytest.raises(DataError, match=r"table.arrow has changed since this table was sent"):
        pickle.loads(pickled)


@pytest.mark.parametrize(
    "content", [b"", b"ARROW1", b"shape,id\n", b"\0" * 4096, b"ARROW1\0\0" + b"\xff" * 500 + b"ARROW1"]
)
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "x.arrow").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.arrow is not a factor table .* write it again with table.save"):
        FactorTable.open(tmp_path / "x.arrow")


def test_missing_files_folders_and_foreign_arrow_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.arrow does not exist"):
        FactorTable.open(tmp_path / "nothing.arrow")
    with pytest.raises(DataError, match="is not a factor table"):
        FactorTable.open(tmp_path)
    foreign = pa.table({"x": [1, 2]})
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), foreign.schema) as writer:
        writer.write_table(foreign)
    with pytest.raises(DataError, match="from_arrow"):
        FactorTable.open(tmp_path / "x.arrow")


def stored(path, **changes):
    """File of a small table whose description was changed."""
    table = random_table(5)
    table.save(path)
    batch = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).get_batch(0)
    about = {**json.loads(batch.schema.metadata[b"setsup"]), **changes}
    batch = batch.replace_schema_metadata({b"setsup": json.dumps(about)})
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(batch)
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"rows": 6},
        {"rows": "5"},
        {"rows": 10**30},
        {"grid": True},
        {"fingerprint": "xyz"},
        {"fingerprint": None},
        {"factors": []},
        {"factors": None},
        {"factors": [{"name": "shape", "kind": "nominal", "levels": ["a"]}]},
        {"factors": [{"name": "other", "kind": "nominal", "levels": ["a"]}]},
    ],
)
def test_a_description_that_does_not_fit_is_refused(tmp_path, changes):
    with pytest.raises(DataError, match=r"t\.arrow is not a factor table"):
        FactorTable.open(stored(tmp_path / "t.arrow", **changes))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    path = tmp_path_factory.mktemp("arrow") / "healthy.arrow"
    random_table(40).save(path)
    return path


@given(data=st.data())
def test_mutated_files_open_or_end_in_a_data_error(healthy, data):
    content = bytearray(healthy.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "insert", "word"])):
            case "flip":
                content[place] ^= 1 << data.draw(st.integers(0, 7))
            case "cut":
                del content[place : place + data.draw(st.integers(1, len(content)))]
                content = content or bytearray(b"x")
            case "insert":
                content[place:place] = data.draw(st.binary(min_size=1, max_size=8))
            case "word":
                content[place : place + 4] = data.draw(st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"]))
    path = healthy.with_name("mutated.arrow")
    path.write_bytes(content)
    try:
        found = FactorTable.open(path)
    except DataError:
        return
    for factor in found.factors:
        codes = found.codes(factor.name)
        assert factor.continuous or not len(codes) or -1 <= codes.min() <= codes.max() < len(factor)


def test_arrow_tables_and_back():
    table = random_table()
    arrow = table.to_arrow()
    expected = [None if value is None or value != value else value for value in table.values("angle").tolist()]
    assert arrow.column("angle").to_pylist() == expected
    for name in table.names[:-1]:
        assert arrow.column(name).to_pylist() == table.values(name).tolist()
    same(FactorTable.from_arrow(arrow), table)
    same(FactorTable.from_arrow(arrow.to_batches()[0]), table)
    same(FactorTable.from_arrow(arrow.slice(10, 5)), table.select(range(10, 15)))
    same(FactorTable.from_arrow(table.select([]).to_arrow()), table.select([]))


def test_a_given_factor_or_kind_outdoes_the_metadata():
    arrow = random_table().to_arrow().select(["id", "angle"])
    assert FactorTable.from_arrow(arrow, [Factor("id", Kind.CONTINUOUS)])["id"].continuous
    assert FactorTable.from_arrow(arrow, kinds={"id": "nominal"})["id"].kind is Kind.NOMINAL


def test_entries_of_a_dictionary_that_no_row_has_are_no_levels():
    listed = pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 2], pa.int8()), pa.array(["b", "unused", "a"]))
    table = FactorTable.from_arrow(pa.table({"x": listed}))
    assert table["x"].levels == ("a", "b")
    assert table.values("x").tolist() == ["a", "b", None, "a"]


def test_a_duration_is_the_number_of_its_units():
    table = FactorTable.from_arrow(pa.table({"x": pa.array([90, 60, None, 90], pa.duration("s"))}))
    assert table["x"] == Factor("x", Kind.ORDINAL, (60, 90))
    assert table.values("x").tolist() == [90, 60, None, 90]


def test_foreign_tables_are_inferred_over_all_their_chunks():
    types = {
        "text": pa.chunked_array([["b", None], ["a", ""]]),
        "large": pa.chunked_array([["b", "a"], ["a", "c"]], pa.large_string()),
        "words": pa.chunked_array([pa.array(["y", "x"]).dictionary_encode(), pa.array(["x", "z"]).dictionary_encode()]),
        "small": pa.chunked_array([[3, 1], [2, 3]], pa.int8()),
        "half": pa.chunked_array([np.array([0.5, 1.5], np.float16), np.array([2.5, 3.5], np.float16)]),
        "day": pa.chunked_array([[1, 2], [3, 1]], pa.date32()),
        "nothing": pa.chunked_array([pa.nulls(2), pa.nulls(2)]),
        "bytes": pa.chunked_array([[b"x", b"y"], [b"z", b""]]),
        "list": pa.chunked_array([[[1], [2]], [[3], []]]),
    }
    table = FactorTable.from_arrow(pa.table(types))
    assert table.names == ("text", "large", "words", "small", "half", "day", "nothing")
    assert table.values("text").tolist() == ["b", None, "a", None]
    assert table["large"].levels == ("a", "b", "c")
    assert table.values("words").tolist() == ["y", "x", "x", "z"]
    assert table["small"] == Factor("small", Kind.ORDINAL, (1, 2, 3))
    assert table.codes("half").tolist() == [0.5, 1.5, 2.5, 3.5]
    assert table["day"].levels == ("1970-01-02", "1970-01-03", "1970-01-04")
    assert np.isnan(table.codes("nothing")).all()


def test_bad_arrow_tables_are_refused():
    with pytest.raises(FactorError, match="two columns have the name 'x'"):
        FactorTable.from_arrow(pa.table([[1], [2]], names=["x", "x"]))
    with pytest.raises(FactorError, match="none of the columns can be a factor"):
        FactorTable.from_arrow(pa.table({"x": [b"1"]}))
    with pytest.raises(FactorError, match="cannot be inferred without rows"):
        FactorTable.from_arrow(pa.table({"x": pa.array([], pa.int64())}))
    with pytest.raises(FactorError, match=r"metadata 'setsup' .* does not describe factors"):
        FactorTable.from_arrow(pa.table({"x": [1]}).replace_schema_metadata({"setsup": "[]"}))
