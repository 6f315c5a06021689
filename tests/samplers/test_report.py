"""The report's numbers, against counting all sets of a small table and against many draws."""

import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import Entry, Report, SetSampler


def factor(name, levels, **options):
    return Factor(name, Kind.NOMINAL, tuple(range(levels)), **options)


def grid_of(*sizes):
    return FactorTable([factor(name, size) for name, size in zip("abcd", sizes, strict=False)])


def spelled_out(grid):
    return FactorTable(grid.factors, {name: grid.column(name) for name in grid.names})


# groups of a: rows 0–2, 3–7, 8; row 9 unknown
RAGGED = FactorTable(
    [factor("a", 3), factor("b", 4), factor("c", 3), factor("split", 2, role="split"), Factor("x", Kind.CONTINUOUS)],
    {
        "a": np.array([0, 0, 0, 1, 1, 1, 1, 1, 2, -1]),
        "b": np.array([0, 0, 1, 0, 1, 2, 3, 3, 1, 0]),
        "c": np.array([0, 1, 2, 0, -1, 0, -1, 1, 2, 2]),
        "split": np.array([0, 1] * 5),
        "x": np.zeros(10, dtype=np.float32),
    },
)


def sets_of(rows, size):
    return list(itertools.combinations(rows, min(size, len(rows))))


def expected_distinct(table, groups, chances, name, size):
    """Average over all sets of the number of known levels in them."""
    codes, total = table.codes(name), Fraction(0)
    for rows, chance in zip(groups, chances, strict=False):
        sets = sets_of(rows, size)
        total += chance * sum(Fraction(len({int(codes[r]) for r in chosen} - {-1}), len(sets)) for chosen in sets)
    return float(total)


def expected_shared(groups, chances, size):
    total = Fraction(0)
    for rows, chance in zip(groups, chances, strict=False):
        sets = sets_of(rows, size)
        shared = sum(len(set(one) & set(two)) for one in sets for two in sets)
        total += chance**2 * Fraction(shared, len(sets) ** 2)
    return float(total)


def check(entry, table, groups, chances, size, names):
    assert sum(chances) == 1
    assert 10**entry.log10_sets == pytest.approx(sum(len(sets_of(rows, size)) for rows in groups))
    assert entry.shared_rows == pytest.approx(expected_shared(groups, chances, size))
    assert list(entry.distinct) == names
    for name in names:
        assert entry.distinct[name] == pytest.approx(expected_distinct(table, groups, chances, name, size))
    assert not entry.estimated


@pytest.mark.parametrize("table", [grid_of(2, 3, 2), spelled_out(grid_of(2, 3, 2))])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_full_grid_by_counting(table, size):
    report = SetSampler(table, ["a"], size=size).report()
    entry = report.entries[0]
    assert report.title == f"SetSampler: 2 sets of {size}, independent values"
    assert (entry.inactive, entry.groups, entry.drawable, entry.smallest, entry.largest) == ("a", 2, 2, 6, 6)
    assert (entry.unreachable, entry.unknown, entry.excluded) == (0, 0, 0)
    groups = [list(range(6)), list(range(6, 12))]
    check(entry, table, groups, [Fraction(1, 2)] * 2, size, ["b", "c"])


@pytest.mark.parametrize(
    ("choose", "chances"),
    [("levels", (Fraction(1, 2),) * 2), ("groups", (Fraction(1, 2),) * 2), ("rows", (Fraction(3, 8), Fraction(5, 8)))],
)
def test_ragged_groups_by_counting(choose, chances):
    entry = SetSampler(RAGGED, ["a"], size=2, on_small_group="drop", choose=choose).report().entries[0]
    assert (entry.groups, entry.drawable, entry.smallest, entry.largest) == (3, 2, 1, 5)
    assert (entry.unreachable, entry.unknown, entry.excluded) == (1, 1, 0)
    check(entry, RAGGED, [[0, 1, 2], [3, 4, 5, 6, 7]], list(chances), 2, ["b", "c"])


def test_short_groups_by_counting():
    entry = SetSampler(RAGGED, ["a"], size=4, on_small_group="short").report().entries[0]
    assert (entry.drawable, entry.unreachable) == (3, 0)
    groups = [[0, 1, 2], [3, 4, 5, 6, 7], [8]]
    check(entry, RAGGED, groups, [Fraction(1, 3)] * 3, 4, ["b", "c"])


def test_replacement_by_counting():
    entry = SetSampler(RAGGED, ["a"], size=4, on_small_group="replace").report().entries[0]
    groups = [[0, 1, 2], [3, 4, 5, 6, 7], [8]]
    shared, distinct, sets = 0.0, {"b": 0.0, "c": 0.0}, 0
    for rows in groups:
        ways = sets_of(rows, 4) if len(rows) >= 4 else list(itertools.product(rows, repeat=4))
        both = sum(len(set(one) & set(two)) for one in ways for two in ways) / len(ways) ** 2
        shared += both / 9
        sets += len({tuple(sorted(way)) for way in ways})
        for name in distinct:
            codes = RAGGED.codes(name)
            distinct[name] += sum(len({int(codes[r]) for r in way} - {-1}) for way in ways) / len(ways) / 3
    assert entry.shared_rows == pytest.approx(shared)
    assert 10**entry.log10_sets == pytest.approx(sets)
    assert entry.distinct == pytest.approx(distinct)


def test_where_and_unknown_rows_are_counted_apart():
    entry = SetSampler(RAGGED, ["a"], size=2, on_small_group="drop", where="b <= 1").report().entries[0]
    assert (entry.unknown, entry.excluded, entry.groups, entry.drawable) == (1, 3, 3, 2)
    assert entry.unreachable == 1


def test_no_inactive_factor_is_one_group_of_all_rows():
    entry = SetSampler(RAGGED, [], size=3).report().entries[0]
    assert (entry.inactive, entry.groups, entry.smallest) == ("nothing", 1, 10)
    check(entry, RAGGED, [list(range(10))], [Fraction(1)], 3, ["a", "b", "c"])


def test_the_numbers_are_those_of_draws():
    table = grid_of(3, 4, 5).select(np.sort(np.random.default_rng(1).permutation(60)[:45]))
    sampler = SetSampler(table, ["a"], size=5, choose="rows")
    entry = sampler.report().entries[0]
    rows = sampler.block(0, 4000).indices
    for name in ("b", "c"):
        counts = [len(np.unique(table.codes(name, chosen))) for chosen in rows.reshape(-1, 5)]
        assert np.mean(counts) == pytest.approx(entry.distinct[name], abs=5 * np.std(counts) / math.sqrt(8000))
    shared = [len(set(one) & set(two)) for one, two in rows.tolist()]
    assert np.mean(shared) == pytest.approx(entry.shared_rows, abs=5 * np.std(shared) / math.sqrt(4000))


def test_each_list_has_an_entry_once():
    sampler = SetSampler(grid_of(2, 3, 4), [["a"], [], ["a"], ["b", "a"]], size=2, sets=4)
    assert [entry.inactive for entry in sampler.report().entries] == ["a", "nothing", "a, b"]
    random = SetSampler(grid_of(2, 3, 4), ["a", "b", "c"], size=2, num_fixed=2)
    assert [entry.inactive for entry in random.report().entries] == ["a, b", "a, c", "b, c"]


def test_many_groups_are_looked_at_by_sample(monkeypatch):
    monkeypatch.setattr("setsup.samplers.groups.statistics._ROWS", 5000)  # of the 9,000
    rng = np.random.default_rng(3)
    table = FactorTable([factor("a", 900), factor("b", 6)], {"a": np.arange(9000) % 900, "b": rng.integers(0, 6, 9000)})
    entry = SetSampler(table, ["a"], size=3).report().entries[0]
    assert entry.estimated
    codes, draws = table.codes("b").reshape(10, 900), SetSampler(table, ["a"], size=3).block(0, 4000).indices
    exact = np.mean([len(np.unique(table.codes("b", chosen))) for chosen in draws.reshape(-1, 3)])
    assert codes.shape == (10, 900)
    assert entry.distinct["b"] == pytest.approx(exact, abs=0.1)
    assert "b about" in str(SetSampler(table, ["a"], size=3).report())


@pytest.mark.long("statistics")
def test_a_large_grid_is_exact_and_cheap():
    grid = grid_of(1000, 1000, 8, 15)
    entry = SetSampler(grid, ["a", "b"], size=4).report().entries[0]
    assert not entry.estimated
    assert (entry.groups, entry.smallest) == (10**6, 120)
    assert entry.log10_sets == pytest.approx(6 + math.log10(math.comb(120, 4)), abs=1e-9)
    for name, levels in (("c", 8), ("d", 15)):
        alike = 120 // levels
        expected = levels * (1 - math.comb(120 - alike, 4) / math.comb(120, 4))
        assert entry.distinct[name] == pytest.approx(expected)
    assert entry.shared_rows == pytest.approx(16 / 120 / 10**6)


def test_astronomic_numbers_of_sets():
    entry = SetSampler(grid_of(2, 1000, 1000), ["a"], size=400).report().entries[0]
    exact = sum(math.log10(10**6 - i) - math.log10(i + 1) for i in range(400)) + math.log10(2)
    assert entry.log10_sets == pytest.approx(exact, rel=1e-9)


def test_a_report_survives_pickling_of_its_sampler():
    for table in (grid_of(30, 10, 4), spelled_out(grid_of(30, 10, 4)), RAGGED):
        sampler = SetSampler(table, ["a", "b"], size=2, on_small_group="short")
        assert pickle.loads(pickle.dumps(sampler)).report() == sampler.report()


def test_weights_and_tolerances_leave_out_what_is_not_known():
    near = SetSampler(RAGGED, ["a", "x"], size=2, on_small_group="drop", tolerance={"x": 1.0}).report()
    heavy = SetSampler(RAGGED, ["a"], size=2, on_small_group="drop", weights=[1, 1, 0, 1, 1, 1, 1, 1, 1, 1]).report()
    for report in (near, heavy):
        entry = report.entries[0]
        assert math.isnan(entry.log10_sets)
        assert math.isnan(entry.shared_rows)
        assert entry.distinct == {}
        assert "distinct" not in str(report)
        assert json.loads(json.dumps(report.to_dict()))["entries"][0]["log10_sets"] is None
    assert (heavy.entries[0].excluded, heavy.entries[0].unknown, heavy.entries[0].unreachable) == (1, 1, 1)
    assert near.entries[0].inactive == "a, x"


def test_the_report_in_words():
    text = str(SetSampler(RAGGED, ["a"], size=2, on_small_group="drop", where="b != 3").report()).splitlines()
    assert text[0] == "SetSampler: 2 sets of 2, independent values"
    assert text[1] == "inactive: a"
    assert text[2] == "  groups of rows with equal values: 3, of 1 to 3 rows each; 2 can be drawn"
    assert text[3] == (
        "  rows never drawn: 1 in groups too small or left out, 1 with an unknown value, "
        "2 left out by where= and weights="
    )
    assert text[4].startswith("  distinct sets: 6; two sets share 0.667 rows on average")
    assert text[5].startswith("  distinct values expected in a set: b ")
    assert "  rows never drawn: none" in str(SetSampler(grid_of(2, 3), ["a"], size=2).report())


def test_plain_data():
    data = SetSampler(grid_of(2, 3, 2), ["a"], size=2).report().to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["entries"][0]["inactive"] == "a"
    assert set(data["entries"][0]["distinct"]) == {"b", "c"}
    assert str(Report("t", [Entry("a", 1, 1, 2, 2)], ["n"])).splitlines()[-1] == "note: n"
