"""Counts of values and of combinations, against counting row by row."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest

from setsup.errors import FactorError
from setsup.factors import Factor, FactorTable, Kind, histograms

GRID = FactorTable([Factor("a", Kind.NOMINAL, tuple("pqr")), Factor("b", Kind.ORDINAL, (1, 2, 3, 4))])


def _table(rows: int, levels: dict[str, int], seed: int = 0) -> FactorTable:
    generator = np.random.default_rng(seed)
    factors = [Factor(name, Kind.ORDINAL, tuple(range(count))) for name, count in levels.items()]
    columns = {name: generator.integers(-1, count, rows) for name, count in levels.items()}
    numbers = generator.normal(size=rows).astype(np.float32)
    numbers[generator.random(rows) < 0.1] = np.nan
    yaw = Factor("yaw", Kind.CONTINUOUS, None, "deg", 360.0)
    factors += [Factor("x", Kind.CONTINUOUS, None), yaw]
    return FactorTable(factors, {**columns, "x": numbers, "yaw": 400 * numbers})


def _by_hand(table: FactorTable, names: list[str], rows: np.ndarray) -> np.ndarray:
    found = np.zeros([len(table[name]) for name in names], np.int64)
    codes = [table.codes(name, rows).tolist() for name in names]
    for key, count in Counter(zip(*codes, strict=True)).items():
        if min(key) >= 0:
            found[key] = count
    return found


@pytest.mark.parametrize("where", [None, "a == 0", "b != 2 and c >= 7", "a is None", "a == 1 and a == 2"])
@pytest.mark.parametrize("names", [["a"], ["b", "a"], ["a", "b", "c"], ["a", "d"]])
def test_counts_are_those_of_every_row(names, where, monkeypatch):
    monkeypatch.setattr(histograms, "_BLOCK", 17)
    monkeypatch.setattr(histograms, "_DENSE", 5)
    table = _table(3_000, {"a": 3, "b": 5, "c": 300, "d": 70_000})
    rows = np.arange(len(table)) if where is None else table.rows(where)
    expected = _by_hand(table, names, rows)
    np.testing.assert_array_equal(table.joint_counts(names, where), expected)
    mask = np.isin(np.arange(len(table)), rows)
    np.testing.assert_array_equal(table.joint_counts(names, mask), expected)
    if len(names) == 1:
        np.testing.assert_array_equal(table.counts(names[0], where), expected)


@pytest.mark.parametrize("where", [None, "a == 0", "b != 2 and c >= 7", "a == 1 and a == 2"])
@pytest.mark.parametrize("most", [4, 24, 1 << 14])
def test_counts_in_one_pass_are_those_of_every_row(where, most, monkeypatch):
    monkeypatch.setattr(histograms, "_BLOCK", 17)
    monkeypatch.setattr(histograms, "_FUSED", most)  # factors by themselves, in pairs, all but the largest together
    levels = {"a": 3, "b": 5, "d": 70_000, "c": 300, "full": 255, "one": 1}
    table = _table(3_000, levels)
    rows = np.arange(len(table)) if where is None else table.rows(where)
    found = table.all_counts(where)
    assert list(found) == list(levels)
    for name, counts in found.items():
        np.testing.assert_array_equal(counts, _by_hand(table, [name], rows))


@pytest.mark.parametrize("where", [None, "b >= 3", "a == 'p' or b == 2"])
def test_a_grid_counts_as_its_columns(where, monkeypatch):
    rows = np.arange(12) if where is None else GRID.rows(where)
    for longest in (5, 100):
        monkeypatch.setattr(histograms, "_LONGEST", longest)
        for names in (["a"], ["b", "a"]):
            np.testing.assert_array_equal(GRID.joint_counts(names, where), _by_hand(GRID, names, rows))
        for name, counts in GRID.all_counts(where).items():
            np.testing.assert_array_equal(counts, _by_hand(GRID, [name], rows))


@pytest.mark.parametrize("where", [None, "a == 0"])
def test_histograms_are_those_of_numpy(where, monkeypatch):
    monkeypatch.setattr(histograms, "_BLOCK", 100)
    monkeypatch.setattr(histograms, "_SHORT", 130)
    table = _table(2_000, {"a": 3})
    rows = np.arange(len(table)) if where is None else table.rows(where)
    for name, bins, within in (("x", 10, None), ("x", 7, (-1.0, 0.5)), ("yaw", 12, None)):
        values = table.column(name).astype(float)
        known = values[rows][~np.isnan(values[rows])]
        if name == "yaw":
            known, span = known % 360, (0, 360)
        else:
            span = within or (np.nanmin(values), np.nanmax(values))
        counts, edges = table.histogram(name, bins, within, where)
        expected, expected_edges = np.histogram(known, bins, span)
        np.testing.assert_array_equal(counts, expected)
        np.testing.assert_allclose(edges, expected_edges)
        assert within is not None or counts.sum() == len(known)


@pytest.mark.parametrize(
    ("low", "high", "bins"),
    [(0, 1, 10), (-1, 1, 40), (-3.7, 0.1, 7), (1900, 2000, 40), (16_777_200, 16_777_215, 15), (-1e-30, 3e-30, 100)],
)
def test_bins_begin_exactly_at_their_edges(low, high, bins):
    """Of each edge the nearest float32 numbers on both sides, against a search among the edges."""
    near = np.linspace(low, high, bins + 1).astype(np.float32)  # the edges, as a column has them
    values = np.concatenate([near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))])
    values = np.concatenate([values, np.array([np.nan, -3e38, 3e38], np.float32)])
    table = FactorTable([Factor("x", Kind.CONTINUOUS, None)], {"x": values})
    counts, edges = table.histogram("x", bins, (low, high))
    np.testing.assert_array_equal(edges, near.astype(np.float64))
    inside = values[(values >= near[0]) & (values <= near[-1])]
    place = np.minimum(np.searchsorted(edges, inside, "right") - 1, bins - 1)
    np.testing.assert_array_equal(counts, np.bincount(place, minlength=bins))


ULP = np.float32(2.0**-23)
NUMBERS = {
    "tenths": np.arange(1000) % 101 / 10,
    "thirds": np.arange(1000) % 61 / 3 - 10,
    "uniform": np.random.default_rng(3).uniform(-3.7, 11.3, 1000),
    "timestamps": 1_700_000_000 + 3600.0 * np.arange(1000),
    "years": 1990 + np.arange(1000) % 41,
    "near": 1 + ULP * (np.arange(1000) % 5),
    "one": np.full(1000, 0.1),
    "tiny": 1e-30 * (np.arange(1000) % 7 - 3),
    "huge": 1e30 * (np.arange(1000) % 17),
    "turn": np.arange(1000) % 24 * 15,
    "both turns": np.arange(1000) % 48 * 15 - 360,
    "whole turn": np.arange(1000) % 25 * 15,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_bin_has_the_rows_that_an_expression_of_its_edges_finds(name):
    period = 360.0 if "turn" in name else None
    column = NUMBERS[name].astype(np.float32)
    column[::97] = np.nan
    table = FactorTable([Factor("x", Kind.CONTINUOUS, None, "", period)], {"x": column})
    counts, edges = histograms.count_values(table, "x", 40, None, None, wrap=False)
    assert counts.sum() == np.count_nonzero(~np.isnan(column))
    assert (np.diff(edges) > 0).all()
    words = [repr(edge) for edge in edges.tolist()]
    for place, rows in enumerate(counts.tolist()):
        last = "<=" if place == 39 else "<"
        assert len(table.rows(f"`x` >= {words[place]} and `x` {last} {words[place + 1]}")) == rows
    if name == "turn":
        assert (edges[0], edges[-1]) == (0, 360)
    if name in ("tenths", "turn", "uniform", "years"):
        np.testing.assert_array_equal(table.histogram("x", 40)[0], counts)


def test_histograms_of_nothing_and_of_one_value():
    table = FactorTable([Factor("x", Kind.CONTINUOUS, None)], {"x": np.full(5, np.nan, np.float32)})
    assert table.histogram("x", 4)[0].tolist() == [0, 0, 0, 0]
    table = FactorTable([Factor("x", Kind.CONTINUOUS, None)], {"x": np.array([2, 2, np.nan], np.float32)})
    counts, edges = table.histogram("x", 2)
    assert counts.tolist() == [0, 2]
    assert edges.tolist() == [1.5, 2.0, 2.5]
    table = FactorTable([Factor("x", Kind.CONTINUOUS, None)], {"x": np.full(3, 1e20, np.float32)})
    assert table.histogram("x", 40)[0].sum() == 3


def test_errors_say_what_to_do():
    with pytest.raises(FactorError, match=r"has levels; .*counts\('a'\)"):
        GRID.histogram("a")
    with pytest.raises(FactorError, match=r"table\.histogram\('x'\)"):
        _table(5, {"a": 2}).joint_counts(["a", "x"])
    with pytest.raises(FactorError, match="an expression or"):
        GRID.counts("a", where=np.zeros(3, bool))
    with pytest.raises(FactorError, match="the lower first"):
        _table(5, {"a": 2}).histogram("x", within=(1.0, 0.0))
    with pytest.raises(FactorError, match="bins must be an integer"):
        _table(5, {"a": 2}).histogram("x", bins=0)
    with pytest.raises(FactorError, match="choose fewer"):
        _table(5, {"a": 2}).histogram("x", within=(1.0, 1.0 + 1e-15))


def test_memory_does_not_grow_with_the_rows():
    rows = 1 << 22
    column = np.zeros(rows, np.uint8)
    table = FactorTable(
        [Factor(name, Kind.ORDINAL, tuple(range(20))) for name in "ab"], {"a": column, "b": column + np.uint8(1)}
    )
    tracemalloc.start()
    found = table.joint_counts(["a", "b"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[0, 1] == rows
    assert peak < rows  # a byte a row
