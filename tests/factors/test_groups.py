"""Groups: against a dictionary of rows, for grids, columns with holes, unknown values and nesting."""

import itertools
import logging
import multiprocessing
import pickle
import sys
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import FactorError, RowError
from setsup.factors import Factor, FactorTable, Kind, counting, grouping
from setsup.factors.grouping import group_by
from setsup.files import cache_folder

NAMES = "abcd"


def factor(name, levels, within=None):
    return Factor(name, Kind.NOMINAL, tuple(range(levels)), within=within)


@st.composite
def grids(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    return FactorTable([factor(name, size) for name, size in zip(NAMES, sizes, strict=False)])


@st.composite
def tables(draw):
    """Columns: any rows of a product, in any order, repeated or missing, with unknown values, perhaps nested."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rows = draw(st.integers(0, 40))
    nested = len(sizes) > 1 and draw(st.booleans())
    factors = [factor(n, s, within="a" if nested and n == "b" else None) for n, s in zip(NAMES, sizes, strict=False)]
    column = {
        n: draw(st.lists(st.integers(-1, s - 1), min_size=rows, max_size=rows))
        for n, s in zip(NAMES, sizes, strict=False)
    }
    return FactorTable(factors, {name: np.array(codes, dtype=np.int8) for name, codes in column.items()})


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(1, 10**6), st.booleans())
def test_rows_are_sorted_by_counting_with_scipy_and_without(cells, most, wide):
    cell = np.array(cells, np.int64 if wide else np.uint32) % most
    offsets, order = counting.counting_sort(cell, most)
    np.testing.assert_array_equal(order, np.argsort(cell, kind="stable"))
    np.testing.assert_array_equal(offsets, np.searchsorted(np.sort(cell), np.arange(most + 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "SCIPY_FROM", 0)
        for found, wanted in zip(counting.counting_sort(cell, most), (offsets, order), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
        patch.setattr(counting, "installed", lambda module: False)
        patch.setitem(sys.modules, "scipy.sparse", None)  # an import would fail
        np.testing.assert_array_equal(counting.counting_sort(cell, most)[1], order)


def spelled_out(grid):
    return FactorTable(grid.factors, {name: grid.column(name) for name in grid.names})


def brute(table, names, mask=None):
    """Key → rows, ordered by key."""
    found = defaultdict(list)
    codes = {name: table.codes(name).tolist() for name in names}
    for row in range(len(table)):
        key = tuple(codes[name][row] for name in names)
        if -1 not in key and (mask is None or mask[row]):
            found[key].append(row)
    return dict(sorted(found.items()))


def check(found, table, names, mask=None):
    expected = brute(table, names, mask)
    assert found.names == names
    assert len(found) == len(expected)
    assert found.sizes.dtype == np.int64
    assert found.sizes.tolist() == [len(rows) for rows in expected.values()]
    assert found.keys().dtype == np.int64
    assert found.keys().shape == (len(expected), len(names))
    assert list(map(tuple, found.keys().tolist())) == list(expected)
    owner = np.full(len(table), -1)
    for number, rows in enumerate(expected.values()):
        assert found.members(number).tolist() == rows
        assert found.members(number).dtype == np.int64
        owner[rows] = number
    assert found.of_rows().tolist() == owner.tolist()
    kept = np.ones(len(table), dtype=bool) if mask is None else mask
    assert found.rows == (owner >= 0).sum()
    assert found.excluded == (~kept).sum()
    assert found.unknown == (kept & (owner < 0)).sum()
    if len(found):
        which = np.arange(7)[:, None] * 3 % len(found)
        place = np.arange(5) * 2 % found.sizes[which]
        taken = found.take(which, place)
        assert taken.dtype == np.int64
        assert taken.tolist() == [
            [list(expected.values())[int(g)][int(p)] for p in row] for g, row in zip(which[:, 0], place, strict=False)
        ]
        assert found.keys(which).tolist() == [[list(list(expected)[int(g)])] for g in which[:, 0]]


def outer(table, names):
    """The names with those they are nested in, in table order."""
    closed = set(names)
    for name in names:
        while (name := table[name].within) is not None:
            closed.add(name)
    return tuple(name for name in table.names if name in closed)


@pytest.mark.long("large or genuine files")
@given(table=tables(), data=st.data())
def test_columns_against_a_dictionary(table, data):
    names = data.draw(st.lists(st.sampled_from(table.names), unique=True))
    check(table.group_by(names), table, outer(table, names))


@pytest.mark.long("large or genuine files")
@given(grid=grids(), data=st.data())
def test_grids_against_a_dictionary_and_against_columns(grid, data):
    names = data.draw(st.lists(st.sampled_from(grid.names), unique=True))
    check(grid.group_by(names), grid, outer(grid, names))
    columns = spelled_out(grid)
    assert not columns.is_grid
    check(columns.group_by(names), columns, outer(grid, names))


@pytest.mark.long("large or genuine files")
@given(table=st.one_of(tables(), grids()), data=st.data())
def test_where_as_text_and_as_mask(table, data):
    names = data.draw(st.lists(st.sampled_from(table.names), unique=True))
    limit = data.draw(st.integers(0, 3))
    codes = table.codes("a")
    check(table.group_by(names, f"a <= {limit}"), table, outer(table, names), (codes >= 0) & (codes <= limit))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table))), dtype=bool)
    check(group_by(table, names, mask), table, outer(table, names), mask)


def test_four_factors_of_a_grid_in_every_combination():
    grid = FactorTable([factor("a", 2), factor("b", 1), factor("c", 3), factor("d", 2)])
    for count in range(5):
        for names in itertools.combinations(grid.names, count):
            check(grid.group_by(reversed(names)), grid, names)


def test_names_stand_in_table_order_once():
    grid = FactorTable([factor("a", 2), factor("b", 3)])
    assert grid.group_by(["b", "a", "b"]).names == ("a", "b")
    assert grid.group_by(iter(["b"])).names == ("b",)
    assert FactorTable([factor("a", 2), factor("ab", 3)]).group_by("ab").names == ("ab",)


def test_no_names_are_one_group_of_all_rows():
    grid = FactorTable([factor("a", 2), factor("b", 3)])
    for table in (grid, spelled_out(grid)):
        everything = table.group_by([])
        assert everything.names == ()
        assert everything.members(0).tolist() == list(range(6))
        assert everything.keys().shape == (1, 0)
        assert everything.take([0, 0], [5, 1]).tolist() == [5, 1]
        some = table.group_by([], "b == 2")
        assert some.members(0).tolist() == [2, 5]
        assert (some.rows, some.excluded, some.unknown) == (2, 4, 0)
        assert len(table.group_by([], "b == 2 and b == 1")) == 0


def test_an_empty_table_has_no_groups():
    table = FactorTable([factor("a", 2)], {"a": np.zeros(0, dtype=np.int64)})
    assert len(table.group_by(["a"])) == 0
    assert len(table.group_by([])) == 0
    assert table.group_by(["a"]).of_rows().shape == (0,)


def test_nested_factors_bring_what_they_are_within():
    factors = [factor("other", 2), factor("kind", 2), factor("thing", 3, "kind"), factor("part", 2, "thing")]
    codes = {"other": [0, 1, 0, 1, 0], "kind": [0, 1, 1, 0, -1], "thing": [2, 2, 2, 2, 2], "part": [1, 1, 1, 1, 1]}
    table = FactorTable(factors, {name: np.array(column) for name, column in codes.items()})
    assert table.group_by(["part"]).names == ("kind", "thing", "part")
    found = table.group_by(["thing"])
    assert found.names == ("kind", "thing")
    assert [found.members(g).tolist() for g in range(len(found))] == [[0, 3], [1, 2]]
    assert found.unknown == 1
    assert table.group_by(["kind"]).names == ("kind",)


def test_instances_of_a_grid_share_their_category():
    grid = FactorTable([factor("kind", 2), factor("thing", 3, "kind"), factor("view", 4)])
    found = grid.group_by(["thing"])
    assert found.names == ("kind", "thing")
    assert found.members(1).tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("seed", range(3))
def test_far_more_combinations_than_rows(seed):
    rng = np.random.default_rng(seed)
    sizes, rows = (70_000, 900, 66_000, 3000), 400
    factors = [factor(name, size) for name, size in zip(NAMES, sizes, strict=False)]
    codes = {name: rng.choice(rng.integers(0, size, 4), rows) for name, size in zip(NAMES, sizes, strict=False)}
    for column in codes.values():
        column[rng.integers(0, rows, 5)] = -1
    table = FactorTable(factors, codes)
    for names in (("a",), ("a", "b"), ("c", "d"), ("a", "c"), tuple(NAMES)):
        check(table.group_by(names), table, names)
        mask = rng.random(rows) < 0.5
        check(group_by(table, names, mask), table, names, mask)


@pytest.mark.long("large or genuine files")
def test_an_identifier_with_more_levels_than_can_be_counted():
    size, rows = 1_100_000, 50
    table = FactorTable([Factor("id", Kind.NOMINAL, tuple(range(size)))], {"id": np.arange(rows)[::-1] * 9999})
    found = table.group_by(["id"])
    assert found.keys()[:, 0].tolist() == [9999 * i for i in range(rows)]
    assert found.members(0).tolist() == [rows - 1]


def test_all_values_unknown():
    table = FactorTable([factor("a", 2)], {"a": np.full(3, -1)})
    found = table.group_by(["a"])
    assert (len(found), found.unknown, found.rows) == (0, 3, 0)
    assert found.of_rows().tolist() == [-1] * 3


def test_many_rows_keep_their_order():
    codes = np.random.default_rng(0).integers(-1, 7, (2, 300_000))
    table = FactorTable([factor("a", 7), factor("b", 7)], {"a": codes[0], "b": codes[1]})
    found = table.group_by(["a", "b"])
    assert len(found) == 49
    for number, (a, b) in enumerate(itertools.product(range(7), range(7))):
        assert (found.members(number) == np.flatnonzero((codes[0] == a) & (codes[1] == b))).all()


def test_groups_in_words():
    table = FactorTable([Factor("hue", Kind.CYCLIC, (0.0, 0.5), unit="turn"), Factor("shape", Kind.NOMINAL, ("ball",))])
    assert table.group_by(["hue", "shape"]).describe(table, 1) == "hue = 0.5 turn, shape = ball"
    assert table.group_by([]).describe(table, 0) == "all rows"


def test_groups_are_picklable_and_leave_their_table_alone():
    grid = FactorTable([factor("a", 3), factor("b", 4)])
    for table in (grid, spelled_out(grid)):
        again = pickle.loads(pickle.dumps(table.group_by(["b"])))
        check(again, table, ("b",))


def test_taking_does_not_alias_its_arguments():
    grid = FactorTable([factor("a", 3), factor("b", 4)])
    for names in (["a"], ["b"], ["a", "b"], []):
        which, place = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
        grid.group_by(names).take(which, place)[:] = 99
        assert which.tolist() == place.tolist() == [0, 0]


# -- bad questions -----------------------------------------------------------------------------------------------------


def test_unknown_names_have_near_matches():
    grid = FactorTable([factor("wall_hue", 3), factor("shape", 4)])
    with pytest.raises(FactorError, match=r"unknown factor 'wall_heu'; did you mean 'wall_hue'\?"):
        grid.group_by(["wall_heu"])
    with pytest.raises(FactorError, match="must be a list of strings, but contains 3"):
        grid.group_by([3])


def test_continuous_factors_name_both_ways_out():
    table = FactorTable([Factor("yaw", Kind.CONTINUOUS)], {"yaw": np.zeros(3, dtype=np.float32)})
    with pytest.raises(FactorError, match="'yaw' is continuous") as error:
        table.group_by(["yaw"])
    assert "tolerance={'yaw': …}" in str(error.value)
    assert "table.binned('yaw', width)" in str(error.value)


@pytest.mark.parametrize("wrong", [-1, 3, 10**12])
def test_a_group_out_of_range(wrong):
    found = FactorTable([factor("a", 3)]).group_by(["a"])
    with pytest.raises(RowError, match=f"group {wrong} is out of range: .* have 3 groups"):
        found.members(wrong)


@pytest.mark.parametrize("wrong", [np.array([0, 1]), np.ones(2, dtype=bool), np.ones((3, 1), dtype=bool)])
def test_a_mask_of_another_shape_or_type(wrong):
    with pytest.raises(FactorError, match=r"where must be an expression or a boolean array of shape \(3,\)"):
        group_by(FactorTable([factor("a", 3)]), ["a"], wrong)


# -- the index on disk -------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Every index of columns is kept on disk, in a cache of this test."""
    monkeypatch.setattr(grouping, "CACHED_FROM", 1)
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path))
    return tmp_path / "groups"


@pytest.fixture
def table():
    rng = np.random.default_rng(4)
    return FactorTable([factor("a", 5), factor("b", 3)], {"a": rng.integers(-1, 5, 60), "b": rng.integers(-1, 3, 60)})


def folders(cache):
    return [path for path in cache.iterdir() if path.is_dir()] if cache.exists() else []


def count_builds(monkeypatch):
    built, original = [], grouping._index

    def counted(table, names, mask):
        built.append(names)
        return original(table, names, mask)

    monkeypatch.setattr(grouping, "_index", counted)
    return built


def test_a_kept_index_is_built_once_and_equal(kept, table, monkeypatch):
    built = count_builds(monkeypatch)
    for _ in range(3):
        check(table.group_by(["a", "b"]), table, ("a", "b"))
    again = FactorTable(table.factors, {name: table.column(name).copy() for name in table.names})
    check(again.group_by(["b", "a"]), again, ("a", "b"))
    assert len(built) == 1
    assert len(folders(kept)) == 1
    assert cache_folder() in kept.parents


def test_other_questions_have_other_indexes(kept, table, monkeypatch):
    built = count_builds(monkeypatch)
    check(table.group_by(["a"]), table, ("a",))
    check(table.group_by(["a"], "b != 1"), table, ("a",), table.mask("b != 1"))
    other = table.select(np.arange(59))
    check(other.group_by(["a"]), other, ("a",))
    assert len(built) == len(folders(kept)) == 3


def test_grids_masks_and_no_names_are_not_kept(kept, table):
    FactorTable([factor("a", 3)]).group_by(["a"])
    group_by(table, ["a"], np.ones(60, dtype=bool))
    table.group_by([])
    assert not folders(kept)


def test_a_kept_index_may_be_empty(kept, table):
    for _ in range(2):
        none = table.group_by(["a"], "b == 1 and b == 2")
        assert (len(none), none.excluded) == (0, 60)


def test_small_tables_are_not_kept(tmp_path, table, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path))
    table.group_by(["a"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["sizes.npy", "codes.npy", "offsets.npy", "order.npy", "counts.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "half", "other", "junk", "folder"])
def test_a_damaged_index_is_rebuilt(kept, table, monkeypatch, caplog, name, damage):
    table.group_by(["a", "b"])
    path = folders(kept)[0] / name
    content = path.read_bytes()
    path.unlink()
    match damage:
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(content[: len(content) // 2])
        case "other":
            np.save(path.with_suffix(".npy"), np.arange(3)) if path.suffix == ".npy" else path.write_text(
                '{"unknown": 1}'
            )
        case "junk":
            path.write_bytes(b"PK\x03\x04 no array at all")
        case "folder":
            path.mkdir()
    built = count_builds(monkeypatch)
    with caplog.at_level(logging.WARNING, "setsup"):
        check(table.group_by(["a", "b"]), table, ("a", "b"))
    assert len(built) == 1
    assert str(path.parent) in caplog.text
    check(table.group_by(["a", "b"]), table, ("a", "b"))
    assert len(built) == 1
    assert len(folders(kept)) == 1


def test_a_file_in_the_place_of_the_index(kept, table):
    table.group_by(["a"])
    folder = folders(kept)[0]
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.write_text("not a folder")
    check(table.group_by(["a"]), table, ("a",))
    assert folder.is_dir()


def test_an_interrupted_index_leaves_nothing(kept, table, monkeypatch):
    def fails(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", fails)
        with pytest.raises(KeyboardInterrupt):
            table.group_by(["a"])
    assert not folders(kept)
    check(table.group_by(["a"]), table, ("a",))


def _index(number, table, cache, results):
    import os

    os.environ["SETSUP_CACHE"] = str(cache)
    grouping.CACHED_FROM = 1
    built, original = [], grouping._index

    def counted(*arguments):
        built.append(1)
        return original(*arguments)

    grouping._index = counted
    found = table.group_by(["a", "b"])
    results.put((len(built), [found.members(g).tolist() for g in range(len(found))]))


@pytest.mark.long("worker processes")
def test_of_several_processes_one_builds(tmp_path, table):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_index, args=(n, table, tmp_path, results)) for n in range(4)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(count for count, _ in found) == 1
    expected = list(brute(table, ("a", "b")).values())
    assert all(members == expected for _, members in found)


def test_a_column_without_a_value_is_named_as_such(tmp_path):
    (tmp_path / "own.csv").write_text("path,scanner,yaw\na.png,,1.5\nb.png,,\n")
    table = FactorTable.from_csv(tmp_path / "own.csv")
    with pytest.raises(FactorError, match="'scanner' is unknown in every row, so it defines no groups"):
        table.group_by(["scanner"])
    with pytest.raises(FactorError, match="'yaw' is continuous"):
        table.group_by(["yaw"])
