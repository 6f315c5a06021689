"""The index: read where others wrote it, written so that others read it, and refused where it is another."""

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.datasets.dataset import Modality
from setsup.errors import DataError, FactorError, RowError
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards import index as shards_index
from setsup.shards.index import Spans, open_index, part, write_index
from setsup.shards.layout import CRC32C, Catalogue, Member, Shard, parse_catalogue
from setsup.shards.opening import open_shards
from tests.fuzzing import survives
from tests.shards.handmade import crc32c, places, renewed, small_set

DIGEST = "0" * 64


def catalogue(folder: Path) -> Catalogue:
    return parse_catalogue((folder / "shards.json").read_bytes(), "it")


def changed(folder: Path, change: object) -> None:
    """Write the index anew with another table, and bring the catalogue up to date."""
    table = pq.read_table(folder / "index.parquet")
    pq.write_table(change(table), folder / "index.parquet")  # type: ignore[operator]
    renewed(folder)


def put(table: pa.Table, name: str, row: int, value: object) -> pa.Table:
    column = table.column(name)
    values = column.to_pylist()
    values[row] = value
    return table.set_column(table.schema.names.index(name), name, pa.array(values, column.type))


def test_what_was_made_by_hand(tmp_path: Path) -> None:
    folder, *_ = small_set(tmp_path / "set", "png")
    factors, found = open_index(folder / "index.parquet", catalogue(folder))
    assert factors.values("shape").tolist() == list("abababa")
    assert factors.names == ("shape", "turn")
    assert found.shard.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert found.keys([[5], [0]]) == ["000005", "000000"]
    assert found.source_rows([[5], [0]]).tolist() == [[105], [100]]
    for name, extension in (("image", "png"), ("depth", "depth.npy")):
        for row in range(7):
            tar = folder / f"data-{row // 3:05d}.tar"
            offset, size, _ = places(tar)[f"{row:06d}.{extension}"]
            content = tar.read_bytes()[offset : offset + size]
            span = found.spans[name]
            assert (span.offset[row], span.size[row], span.check[row]) == (offset, size, crc32c(content))
    with pytest.raises(RowError):
        found.keys([7])


ROWS = st.integers(1, 40)


@pytest.mark.long("large or genuine files")
@settings(max_examples=40)
@given(ROWS, st.lists(st.integers(1, 15), min_size=1, max_size=6), st.integers(1, 16))
def test_parts_of_any_size_give_one_index(
    tmp_path_factory: pytest.TempPathFactory, rows: int, cuts: list[int], group: int
) -> None:
    folder = tmp_path_factory.mktemp("it")
    dice = np.random.default_rng(rows)
    table = FactorTable.from_values(
        {"word": [["a", None, "b"][row % 3] for row in range(rows)], "x": dice.random(rows).tolist()},
        [Factor("word", Kind.NOMINAL, ("a", "b"))],
    )
    shard = np.sort(dice.integers(0, 3, rows))
    offset = np.where(dice.random(rows) < 0.3, -1, 512 * dice.integers(1, 9, rows))
    spans = Spans(offset, dice.integers(0, 99, rows), dice.integers(0, 1 << 32, rows).astype(np.uint32))
    keys = [f"k{row}" for row in range(rows)]
    ends = np.unique([0, *(np.cumsum(cuts) % (rows + 1)), rows])

    def parts() -> object:
        for start, stop in pairwise(ends):
            some = slice(start, stop)
            yield part(
                table.select(np.arange(start, stop)),
                keys[some],
                shard[some],
                {"image": Spans(*(one[some] for one in spans))},
                np.arange(start, stop) * 10,
            )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards_index, "GROUP", group)
        assert write_index(folder / "index.parquet", parts()) == rows
        file = pq.ParquetFile(folder / "index.parquet")
        sizes = [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)]
        assert sizes == [group] * (rows // group) + [rows % group] * (rows % group > 0)
        # to other programs it is an ordinary table
        seen = pq.read_table(folder / "index.parquet").to_pydict()
        assert seen["__key__"] == keys
        assert seen["__shard__"] == shard.tolist()
        assert seen["word"] == [["a", None, "b"][row % 3] for row in range(rows)]
        assert seen["image.offset"] == offset.tolist()
        assert seen["image.check"] == spans.check.tolist()
        content = (folder / "index.parquet").read_bytes()
        about = Catalogue(
            "it",
            table.factors,
            {"image": Member(Modality((1,), "uint8"), "npy")},
            tuple(Shard(f"{number}.tar", 0, 1 << 20, DIGEST) for number in range(3)),
            Shard("index.parquet", rows, len(content), hashlib.sha256(content).hexdigest()),
            CRC32C,
            "",
            "1.0",
        )
        factors, found = open_index(folder / "index.parquet", about)
        assert factors.fingerprint == table.fingerprint
        for one, expected in zip(found.spans["image"], spans, strict=True):
            assert (one == expected).all()
        some = dice.integers(0, rows, 5)
        assert found.keys(some) == [keys[row] for row in some]
        assert (found.source_rows(some) == some * 10).all()


def test_the_same_parts_give_the_same_bytes(tmp_path: Path) -> None:
    table = FactorTable.from_values({"n": [0, 1, 2]})
    spans = {"image": Spans(np.full(3, 512), np.ones(3, np.int64), np.zeros(3, np.uint32))}
    for name, cut in (("one", [3]), ("two", [1, 2])):
        rows = np.split(np.arange(3), np.cumsum(cut)[:-1])
        parts = [
            part(
                table.select(some),
                [str(row) for row in some],
                0,
                {"image": Spans(*(one[some] for one in spans["image"]))},
            )
            for some in rows
        ]
        write_index(tmp_path / name, parts)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_names_that_the_index_uses_itself() -> None:
    for name in ("__key__", "__shard__", "image.offset"):
        table = FactorTable.from_values({name: [1, 2]})
        with pytest.raises(FactorError, match=f"factor name '{name}' is reserved for a column"):
            part(table, ["a", "b"], 0, {"image": Spans(*np.zeros((3, 2), np.int64))})


def test_many_small_parts_are_joined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many parts as rows take time in proportion to their number, not to its square."""
    table = FactorTable.from_values({"n": [0, 1, 2] * 40})
    span = Spans(np.array([512]), np.array([1]), np.zeros(1, np.uint32))
    joined = []
    concat = pa.concat_tables
    monkeypatch.setattr(pa, "concat_tables", lambda tables: joined.append(len(tables)) or concat(tables))
    rows = write_index(
        tmp_path / "index.parquet", (part(table.select([row]), [str(row)], 0, {"image": span}) for row in range(120))
    )
    assert rows == 120
    assert sum(joined) == 120
    assert pq.read_table(tmp_path / "index.parquet")["n"].to_pylist() == [0, 1, 2] * 40


def test_an_index_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no rows to index"):
        write_index(tmp_path / "index.parquet", [])
    assert list(tmp_path.iterdir()) == []


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_names_of_modalities_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "a" / "b" / "cache"))
    folder, images, _ = small_set(tmp_path / "set")
    evil = "../../../../evil"
    about = json.loads((folder / "shards.json").read_text())
    about["members"][evil] = about["members"].pop("image")
    (folder / "shards.json").write_text(json.dumps(about))
    changed(
        folder, lambda table: table.rename_columns([name.replace("image.", f"{evil}.") for name in table.column_names])
    )
    assert (open_shards(folder).fetch([2], [evil])[evil] == images[[2]]).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "set"]
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["cache"]
    assert not list(tmp_path.rglob("*evil*"))


def test_keys_from_row_groups_of_any_size(tmp_path: Path) -> None:
    folder, *_ = small_set(tmp_path / "set")
    table = pq.read_table(folder / "index.parquet")
    for size in (1, 2, 3, 5):
        pq.write_table(table, folder / "index.parquet", row_group_size=size)
        renewed(folder)
        dataset = open_shards(folder)
        assert dataset.keys([6, 0, 3, 3]) == ["000006", "000000", "000003", "000003"]
        assert dataset.keys([]) == []


def test_a_missing_index(tmp_path: Path) -> None:
    folder, *_ = small_set(tmp_path / "set")
    (folder / "index.parquet").unlink()
    with pytest.raises(
        DataError,
        match=r"index\.parquet, .*, does not exist; fetch it again, or restore it .* `setsup index",
    ):
        open_shards(folder)


def test_the_index_of_other_shards(tmp_path: Path) -> None:
    folder, *_ = small_set(tmp_path / "set")
    small_set(tmp_path / "other", rows=6)
    (folder / "index.parquet").write_bytes((tmp_path / "other" / "index.parquet").read_bytes())
    with pytest.raises(DataError, match=r"set/index\.parquet has 6 rows .* index of other shards; rebuild the index"):
        open_shards(folder)


def test_an_index_of_the_same_size(tmp_path: Path) -> None:
    folder, *_ = small_set(tmp_path / "set")
    open_shards(folder)
    content = bytearray((folder / "index.parquet").read_bytes())
    content[40] ^= 1
    (folder / "index.parquet").write_bytes(content)
    with pytest.raises(
        DataError, match=r"index\.parquet is damaged, or is the index of other shards: its SHA-256 differs"
    ):
        open_shards(folder)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("image.offset", 1 << 40, "places the 'image' of row 4 outside data-00001.tar"),
        ("image.offset", -2, "places the 'image' of row 4 outside data-00001.tar"),
        ("image.offset", 0, "places the 'image' of row 4 outside data-00001.tar"),
        ("image.size", -1, "places the 'image' of row 4 outside data-00001.tar"),
        ("depth.size", (1 << 63) - 1, "places the 'depth' of row 4 outside data-00001.tar"),
        ("__shard__", 3, "lists more shards than the 3 in the catalogue"),
        ("image.check", None, r"image\.check is missing in 1 rows"),
        ("shape", None, None),
        ("shape", "c", "level"),
    ],
)
def test_places_outside_the_shards(tmp_path: Path, name: str, value: object, words: str | None) -> None:
    folder, *_ = small_set(tmp_path / "set")
    changed(folder, lambda table: put(table, name, 4, value))
    if words is None:
        assert open_shards(folder).factors.codes("shape", 4) == -1
        return
    with pytest.raises(DataError, match=rf"set/index\.parquet.*{words}"):
        open_shards(folder)


@pytest.mark.parametrize("name", ["__shard__", "image.check", "depth.offset", "turn"])
def test_a_column_that_is_missing_or_of_another_type(tmp_path: Path, name: str) -> None:
    folder, *_ = small_set(tmp_path / "set")
    changed(folder, lambda table: table.drop_columns([name]))
    with pytest.raises(DataError, match=rf"index\.parquet.* (unknown|no) column '{name}'"):
        open_shards(folder)
    if name != "turn":
        other, *_ = small_set(tmp_path / "other")
        changed(
            other, lambda table: put(table.drop_columns([name]).append_column(name, pa.array(["x"] * 7)), name, 0, "y")
        )
        with pytest.raises(DataError, match=rf"index\.parquet has no column '{name}' of type u?int"):
            open_shards(other)


def test_tars_of_others_tell_no_source_rows(tmp_path: Path) -> None:
    folder, *_ = small_set(tmp_path / "set")
    changed(folder, lambda table: table.drop_columns(["__source_row__"]))
    dataset = open_shards(folder)
    assert dataset.keys([1]) == ["000001"]
    with pytest.raises(DataError, match="does not contain __source_row__: the shards were written by another program"):
        dataset.source_rows([1])


@pytest.mark.parametrize("values", [["x"] * 7, [1.5] * 7, [None] * 7, [[1]] * 7])
def test_keys_and_source_rows_of_another_type(tmp_path: Path, values: list[object]) -> None:
    for name, what in (("__key__", "string"), ("__source_row__", "int64")):
        array = pa.array(values, pa.string() if values[0] is None else None)
        if name == "__key__" and values[0] == "x":
            array = pa.array(range(7), pa.int64())
        folder, *_ = small_set(tmp_path / what)
        changed(folder, lambda table, name=name, array=array: table.drop_columns([name]).append_column(name, array))
        dataset = open_shards(folder)
        with pytest.raises(DataError, match=rf"the column '{name}' must be {what} without missing values"):
            dataset.keys([1]) if name == "__key__" else dataset.source_rows([1])


def test_places_are_looked_at_for_each_catalogue(tmp_path: Path) -> None:
    """Another one may tell of members that the first did not."""
    folder, *_ = small_set(tmp_path / "set")
    changed(folder, lambda table: put(table, "depth.offset", 4, 1 << 40))
    text = (folder / "shards.json").read_text()
    about = json.loads(text)
    del about["members"]["depth"]
    (folder / "shards.json").write_text(json.dumps(about))
    assert list(open_shards(folder).modalities) == ["image"]
    (folder / "shards.json").write_text(text)
    with pytest.raises(DataError, match="places the 'depth' of row 4 outside"):
        open_shards(folder)


def test_a_sample_that_is_said_to_lie_in_another_place(tmp_path: Path) -> None:
    """Rows that are exchanged in the index alone are noticed: contents differ from their checksums."""
    folder, images, _ = small_set(tmp_path / "set")
    first, second = (pq.read_table(folder / "index.parquet").column("image.offset")[row].as_py() for row in (0, 1))
    changed(folder, lambda table: put(put(table, "image.offset", 0, second), "image.offset", 1, first))
    dataset = open_shards(folder)
    assert (dataset.fetch([2], ["image"])["image"] == images[[2]]).all()
    for row in (0, 1):
        with pytest.raises(DataError, match=rf"row {row} .* has changed since it was indexed"):
            dataset.fetch([row])


@pytest.mark.long("fuzzing")
def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    folder, images, _ = small_set(tmp_path / "set")
    file = folder / "index.parquet"

    def use(content: bytes) -> None:
        file.unlink()
        file.write_bytes(content)
        dataset = open_shards(folder)
        assert (dataset.fetch(range(7))["image"] == images).all()
        assert dataset.factors.values("shape").tolist() == list("abababa")
        assert dataset.keys([6]) == ["000006"]

    assert survives(file.read_bytes(), use, 75, slack=16 << 20) == 75


@pytest.mark.long("fuzzing")
def test_a_forged_index_breaks_nothing(tmp_path: Path) -> None:
    """With the right digest in the catalogue, too; what it then says of factors, nobody can know better."""
    folder, images, _ = small_set(tmp_path / "set")
    file = folder / "index.parquet"

    def use(content: bytes) -> None:
        file.unlink()
        file.write_bytes(content)
        renewed(folder)
        dataset = open_shards(folder)
        found = [one.tobytes() for one in dataset.fetch(range(7), ["image"])["image"]]
        assert set(found) <= {one.tobytes() for one in images}  # rows may be exchanged, never mixed
        dataset.keys(range(7))
        dataset.source_rows(range(7))

    assert survives(file.read_bytes(), use, 150, head=4096, slack=64 << 20) > 100
