"""Holding a continuous factor within a tolerance: against every pair of rows, on lines and on circles."""

import itertools
import json
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import SetSampler, from_dict

RARE = 1e-5


def table_of(x, a=None, period=None, **others):
    factors = [Factor("x", Kind.CONTINUOUS, unit="deg", period=period)]
    columns = {"x": np.array(x, dtype=np.float32)}
    if a is not None:
        factors.append(Factor("a", Kind.NOMINAL, tuple(range(3))))
        columns["a"] = np.array(a)
    for name, column in others.items():
        factors.append(Factor(name, Kind.CONTINUOUS))
        columns[name] = np.array(column, dtype=np.float32)
    return FactorTable(factors, columns)


def distance(one, other, period):
    gap = abs(float(one) - float(other))
    if period is None:
        return gap
    gap %= period
    return min(gap, period - gap)


def windows(table, tolerance, names=(), mask=None):
    """Group key → {anchor: rows within the tolerance, the anchor included}."""
    x, period = table.column("x"), table["x"].period
    found = {}
    for row in range(len(table)):
        key = tuple(int(table.codes(name)[row]) for name in names)
        if -1 in key or np.isnan(x[row]) or (mask is not None and not mask[row]):
            continue
        found.setdefault(key, {})[row] = None
    for group in found.values():
        for row in group:
            group[row] = {other for other in group if distance(x[row], x[other], period) <= tolerance}
    return dict(sorted(found.items()))


# numbers whose differences are exact, so that the edge of the tolerance is
values = st.integers(-24, 40).map(lambda i: i / 2)
periods = st.sampled_from([None, 8.0, 12.0, 360.0])


@st.composite
def tables(draw):
    period = draw(periods)
    count = draw(st.integers(1, 20))
    x = draw(st.lists(st.one_of(values, st.just(math.nan)), min_size=count, max_size=count))
    a = draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    return table_of(x, a, period)


@pytest.mark.long("statistics")
@given(table=tables(), data=st.data())
def test_every_member_lies_within_the_tolerance_and_every_reachable_row_comes(table, data):
    names = data.draw(st.sampled_from([(), ("a",)]))
    tolerance = data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.5, 4.0, 6.0, 100.0]))
    on_small_group = data.draw(st.sampled_from(["error", "drop", "short", "replace"]))
    where = data.draw(st.sampled_from([None, "a <= 1", "x > 0"]))
    size = data.draw(st.integers(1, 4))
    near = windows(table, tolerance, names, None if where is None else table.mask(where))
    widest = [max(len(rows) for rows in group.values()) for group in near.values()]
    options = {"size": size, "on_small_group": on_small_group, "where": where, "tolerance": {"x": tolerance}, "sets": 2}
    if (
        not near
        or (on_small_group == "error" and min(widest) < size)
        or (on_small_group == "drop" and max(widest) < size)
    ):
        with pytest.raises(SamplerError):
            SetSampler(table, [*names, "x"], **options)
        return
    sampler = SetSampler(table, [*names, "x"], **options)
    draw = sampler.block(0, 60)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    assert draw.inactive["x"].dtype == np.float32
    for step, place in itertools.product(range(60), range(2)):
        rows, counted = draw.indices[step, place].tolist(), mask[step, place]
        group = near[tuple(int(draw.inactive[name][step, place]) for name in names)]
        around = group[rows[0]]
        assert draw.inactive["x"][step, place] == table.column("x")[rows[0]]
        assert set(rows) <= around
        drawn = [row for row, counts in zip(rows, counted, strict=False) if counts]
        if len(around) >= size:
            assert len(set(drawn)) == size
        elif on_small_group == "short":
            assert sorted(drawn) == sorted(around)
            assert rows[len(drawn) :] == rows[:1] * (size - len(drawn))
        else:
            assert on_small_group == "replace"
            assert len(drawn) == size
    anchors = [g[r] for g in near.values() for r in g if len(g[r]) >= size or on_small_group in ("short", "replace")]
    reachable = set().union(*anchors)
    assert set(sampler.block(0, 4000).indices.ravel().tolist()) == reachable
    entry = sampler.report().entries[0]
    assert entry.unreachable == sum(map(len, near.values())) - len(reachable)
    assert (entry.groups, entry.smallest, entry.largest) == (len(near), min(widest), max(widest))
    kept = np.ones(len(table), bool) if where is None else table.mask(where)
    assert entry.excluded == (~kept).sum()
    assert entry.unknown == kept.sum() - sum(map(len, near.values()))


@pytest.mark.parametrize("period", [None, 360.0])
def test_neighbourhoods_do_not_depend_on_how_many_are_sought_at_a_time(monkeypatch, period):
    random = np.random.default_rng(7)
    table = table_of(random.uniform(0, 360, 300), random.integers(0, 3, 300), period)
    options = {"size": 4, "tolerance": {"x": 9.0}, "on_small_group": "drop"}
    draws = [SetSampler(table, ["a", "x"], **options).block(0, 50).indices]
    monkeypatch.setattr("setsup.samplers.groups.window._BLOCK", 7)
    draws.append(SetSampler(table, ["a", "x"], **options).block(0, 50).indices)
    np.testing.assert_array_equal(*draws)


@pytest.mark.long("statistics")
@given(table=tables(), data=st.data())
def test_steps_blocks_and_plain_data_agree(table, data):
    options = data.draw(st.sampled_from([{}, {"values": "equal"}, {"unconstrained": 1}, {"num_fixed": 1}]))
    on_small_group = data.draw(st.sampled_from(["short", "replace"]))
    try:
        sampler = SetSampler(
            table, ["a", "x"], size=3, on_small_group=on_small_group, tolerance={"x": 2.0}, seed=9, **options
        )
    except SamplerError:
        return
    block = sampler.block(4, 12)
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    for other in (again.block(4, 12), pickle.loads(pickle.dumps(sampler)).block(4, 12)):
        assert (other.indices == block.indices).all()
        np.testing.assert_array_equal(other.inactive["x"], block.inactive["x"])
    for i in range(8):
        single = sampler[4 + i]
        assert (single.indices == block.indices[i]).all()
        np.testing.assert_array_equal(single.inactive["x"], block.inactive["x"][i])
        mask = np.ones((2, 3), bool) if single.mask is None else single.mask
        assert (mask == (True if block.mask is None else block.mask[i])).all()


@given(
    numbers=st.lists(st.integers(-500, 500), min_size=2, max_size=12),
    parts=st.integers(1, 1000),
    tolerance=st.integers(0, 300),
    turn=st.sampled_from([None, 1, 360]),
)
def test_fractions_are_as_far_apart_as_they_are_written(numbers, parts, tolerance, turn):
    """Neighbourhoods of i/parts are those of the integers i, though float32 holds hardly any of these fractions."""
    scale = 1 if turn is None else turn
    if turn is not None and not tolerance:  # of which no part is left to rounding, as numbers beyond the period need it
        numbers = [number % parts for number in numbers]
    table = table_of([scale * number / parts for number in numbers], period=turn)
    near = {"x": scale * tolerance / parts}
    draw = SetSampler(table, ["x"], size=len(numbers), sets=1, on_small_group="short", tolerance=near).block(0, 30)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    for rows, counted in zip(draw.indices[:, 0], mask[:, 0], strict=True):
        gaps = [distance(number, numbers[rows[0]], None if turn is None else parts) for number in numbers]
        assert sorted(rows[counted].tolist()) == [row for row, gap in enumerate(gaps) if gap <= tolerance]


def test_tenths_differ_by_a_tenth():
    draw = SetSampler(
        table_of([0.1, 0.2, 0.3, 0.4]), ["x"], size=2, sets=1, on_small_group="drop", tolerance={"x": 0.1}
    )
    assert {tuple(sorted(rows)) for rows in draw.block(0, 200).indices[:, 0].tolist()} == {(0, 1), (1, 2), (2, 3)}


def test_angles_beyond_their_period_keep_their_rounding():
    draw = SetSampler(table_of([0.1, 720.2], period=360.0), ["x"], size=2, sets=1, tolerance={"x": 0.1})[0]
    assert sorted(draw.indices[0].tolist()) == [0, 1]  # 720.2 is 720.2000122 in float32


@pytest.mark.parametrize(("tolerance", "near"), [(0.0, 1), (0.5, 1), (0.9, 1), (1.0, 3), (1.8, 3), (2.0, 5)])
def test_a_tolerance_of_some_last_places_hardly_grows(tolerance, near):
    first = 2**23  # whose neighbours in float32 are the neighbouring integers
    table = table_of(range(first, first + 9))
    draw = SetSampler(table, ["x"], size=9, sets=1, on_small_group="short", tolerance={"x": tolerance}).block(0, 60)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    assert mask.sum(axis=-1).max() == near


# -- the law -----------------------------------------------------------------------------------------------------------


def law(near, size):
    """Probability of each (anchor, set) within one group."""
    anchors = [row for row in near if len(near[row]) >= size]
    found = {}
    for row in anchors:
        others = list(itertools.combinations(sorted(near[row] - {row}), size - 1))
        for rest in others:
            found[(row, *rest)] = 1 / len(anchors) / len(others)
    return found


def p_value(seen, expected):
    draws = sum(seen.values())
    assert set(seen) <= set(expected)
    assert draws * min(expected.values()) > 4
    if len(expected) == 1:
        return 1.0
    return stats.chisquare([seen[key] for key in expected], [draws * p for p in expected.values()]).pvalue


LINES = {
    "line": ([0, 1, 2, 3, 10, 11, 30, 5], None, 2.0),
    "crowd": ([0, 0, 0, 1, 1, 2, 2, 2, 3, 4], None, 1.0),
    "seam": ([0, 10, 350, 355, 5, 180, 190, 340], 360.0, 15.0),
    "seam off the period": ([-10, 370, 0, 720, 181, 179, -179], 360.0, 10.0),
    "all the circle": ([0, 90, 180, 270], 360.0, 180.0),
    "half the circle": ([0, 90, 180, 270, 100], 360.0, 90.0),
    "turns": ([0.0, 0.125, 0.875, 0.5, 0.75], 1.0, 0.125),
    "sparse large": (list(range(40)), None, 7.0),
}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("line", LINES)
def test_anchor_then_neighbours(line, size):
    x, period, tolerance = LINES[line]
    table = table_of(x, period=period)
    expected = law(windows(table, tolerance)[()], size)
    draws = int(max(6000, 6 / min(expected.values())))
    draw = SetSampler(table, ["x"], size=size, sets=1, tolerance={"x": tolerance}, seed=size).block(0, draws)
    rows = draw.indices[:, 0]
    seen = Counter((row[0], *sorted(row[1:])) for row in rows.tolist())
    assert p_value(seen, expected) > RARE
    assert (draw.inactive["x"][:, 0] == table.column("x")[rows[:, 0]]).all()


def test_the_seam_by_hand():
    table = table_of([359, 1, 358, 180], period=360.0)
    draw = SetSampler(table, ["x"], size=2, sets=1, tolerance={"x": 2.0}).block(0, 3000)
    pairs = Counter(map(tuple, draw.indices[:, 0].tolist()))
    assert set(pairs) == {(0, 1), (0, 2), (1, 0), (2, 0)}
    assert 3 not in np.unique(draw.indices)
    straight = SetSampler(table_of([359, 1, 358, 180]), ["x"], size=2, sets=1, tolerance={"x": 2.0}).block(0, 100)
    assert set(np.unique(straight.indices)) == {0, 2}


def test_a_tiny_negative_angle_is_beside_zero():
    table = table_of([-1e-30, 0.0, 1e-30, 180], period=360.0)
    draw = SetSampler(table, ["x"], size=3, sets=1, tolerance={"x": 0.001}).block(0, 50)
    assert (np.sort(draw.indices[:, 0], axis=1) == [0, 1, 2]).all()


def test_the_edge_of_the_tolerance_belongs_to_it():
    draw = SetSampler(table_of([0, 2, 5]), ["x"], size=2, sets=1, tolerance={"x": 2}).block(0, 50)
    assert set(np.unique(draw.indices)) == {0, 1}
    draw = SetSampler(table_of([0, 2, 2, 5]), ["x"], size=2, sets=1, tolerance={"x": 0}).block(0, 50)
    assert set(np.unique(draw.indices)) == {1, 2}


def test_anchors_are_uniform_over_drawable_rows_of_a_chosen_group():
    x, a = [0, 1, 9, 5, 5, 5, 5, 20, 40], [0, 0, 0, 1, 1, 1, 1, 1, 2]
    table = table_of(x, a)
    draw = SetSampler(table, ["a", "x"], size=2, sets=1, on_small_group="drop", tolerance={"x": 1.0}).block(0, 8000)
    assert stats.chisquare(np.bincount(draw.inactive["a"][:, 0], minlength=2)).pvalue > RARE
    seen = np.bincount(draw.indices[:, 0, 0], minlength=9)
    assert stats.chisquare(seen[[0, 1]]).pvalue > RARE
    assert stats.chisquare(seen[3:7]).pvalue > RARE
    assert seen[[2, 7, 8]].sum() == 0
    by_rows = SetSampler(table, ["a", "x"], size=2, sets=1, on_small_group="drop", choose="rows", tolerance={"x": 1.0})
    groups = np.bincount(by_rows.block(0, 8000).inactive["a"][:, 0], minlength=2)
    assert stats.chisquare(groups, [3000, 5000]).pvalue > RARE  # by the sizes of the groups


def test_replacement_in_narrow_neighbourhoods_only():
    table = table_of([0, 1, 10, 11, 12, 13])
    draw = SetSampler(table, ["x"], size=3, sets=1, on_small_group="replace", tolerance={"x": 3.0}).block(0, 9000)
    rows = draw.indices[:, 0]
    assert stats.chisquare(np.bincount(rows[:, 0], minlength=6)).pvalue > RARE
    lone = rows[rows[:, 0] == 0, 1:]
    assert stats.chisquare(np.bincount(lone @ [2, 1], minlength=4)).pvalue > RARE
    wide = np.sort(rows[rows[:, 0] >= 2], axis=1)
    assert (np.diff(wide, axis=1) > 0).all()


def test_short_neighbourhoods_are_taken_whole():
    table = table_of([0, 1, 10])
    draw = SetSampler(table, ["x"], size=4, sets=1, on_small_group="short", tolerance={"x": 3.0}).block(0, 3000)
    assert stats.chisquare(np.bincount(draw.indices[:, 0, 0], minlength=3)).pvalue > RARE
    alone = draw.indices[:, 0, 0] == 2
    assert (draw.indices[alone] == 2).all()
    assert draw.mask[alone, 0].tolist() == [[True, False, False, False]] * alone.sum()
    assert draw.mask[~alone, 0].tolist() == [[True, True, False, False]] * (~alone).sum()


def test_rows_near_an_anchor_across_the_seam_are_reachable():
    # only 359 has three rows near; 5 is reached from the other side of the seam, and 100 and 110 from nowhere
    x, a = [350, 359, 5, 350, 359, 5, 100, 110, 1, 2, 3], [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
    sampler = SetSampler(table_of(x, a, 360.0), ["a", "x"], size=3, tolerance={"x": 9.0})
    entry = sampler.report().entries[0]
    assert (entry.unreachable, entry.drawable) == (2, 3)
    assert set(sampler.block(0, 300).indices.ravel().tolist()) == {0, 1, 2, 3, 4, 5, 8, 9, 10}
    draw = sampler.block(0, 300)
    assert set(draw.inactive["x"][draw.inactive["a"] < 2].tolist()) == {359.0}


# -- several sets ------------------------------------------------------------------------------------------------------


def test_equal_sets_share_the_anchor():
    table = table_of([0, 1, 2, 3, 4, 20, 21, 22, 23, 40], [0] * 5 + [1] * 5)
    draw = SetSampler(table, ["a", "x"], size=2, sets=2, values="equal", tolerance={"x": 3.0}).block(0, 3000)
    assert (draw.inactive["x"][:, 0] == draw.inactive["x"][:, 1]).all()
    assert (draw.inactive["x"][:, 0] == table.column("x")[draw.indices[:, 0, 0]]).all()
    gaps = np.abs(table.column("x")[draw.indices] - draw.inactive["x"][..., None])
    assert gaps.max() <= 3
    assert (np.diff(np.sort(draw.indices.reshape(-1, 4), axis=1), axis=1) > 0).all()
    near = windows(table, 3.0, ("a",))
    for key, group in near.items():
        rows = draw.indices[draw.inactive["a"][:, 0] == key[0]].transpose(0, 2, 1).reshape(-1, 4)
        seen = Counter((row[0], *sorted(row[1:])) for row in rows.tolist())
        assert p_value(seen, law(group, 4)) > RARE


def test_different_sets_differ_in_the_group():
    table = table_of([0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2])
    draw = SetSampler(table, ["a", "x"], size=2, values="different", tolerance={"x": 1.0}).block(0, 200)
    assert (draw.inactive["a"][:, 0] != draw.inactive["a"][:, 1]).all()
    with pytest.raises(SamplerError, match="requires 2 drawable groups of x, but there are only 1"):
        SetSampler(table, ["x"], size=2, values="different", tolerance={"x": 1.0})


def test_sets_that_do_not_fix_the_factor_record_nan():
    table = table_of([0, 1, math.nan, 3])
    draw = SetSampler(table, [["x"], []], size=2, tolerance={"x": 1.0}).block(0, 400)
    assert np.isnan(draw.inactive["x"][:, 1]).all()
    assert not np.isnan(draw.inactive["x"][:, 0]).any()
    assert set(np.unique(draw.indices[:, 1])) == {0, 1, 2, 3}
    assert set(np.unique(draw.indices[:, 0])) == {0, 1}
    single = SetSampler(table, [["x"], []], size=2, tolerance={"x": 1.0})[7]
    assert single.inactive["x"].dtype == np.float32


def test_one_of_each_list_may_be_continuous():
    table = table_of([0, 1, 5, 6], y=[0, 5, 0, 5])
    draw = SetSampler(table, [["x"], ["y"]], size=2, tolerance={"x": 1.0, "y": 0.5}).block(0, 100)
    assert set(map(tuple, np.sort(draw.indices[:, 0], axis=1).tolist())) == {(0, 1), (2, 3)}
    assert set(map(tuple, np.sort(draw.indices[:, 1], axis=1).tolist())) == {(0, 2), (1, 3)}
    assert np.isnan(draw.inactive["x"][:, 1]).all()
    assert np.isnan(draw.inactive["y"][:, 0]).all()


def test_a_random_one_of_two_continuous_factors():
    table = table_of([0, 1, 5, 6], y=[0, 5, 0, 5])
    draw = SetSampler(table, ["x", "y"], size=2, num_fixed=1, tolerance={"x": 1.0, "y": 0.5}).block(0, 400)
    which = np.isnan(draw.inactive["x"])
    assert (which != np.isnan(draw.inactive["y"])).all()
    assert 0.4 < which[:, 0].mean() < 0.6
    assert set(map(tuple, np.sort(draw.indices[~which], axis=1).tolist())) == {(0, 1), (2, 3)}


# -- bad arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "wide", None, True, [1.0]])
def test_a_tolerance_is_a_number_from_zero_on(wrong):
    with pytest.raises(SamplerError, match="the tolerance of 'x' must be a finite number of at least 0"):
        SetSampler(table_of([0, 1]), ["x"], size=1, tolerance={"x": wrong})


@pytest.mark.parametrize("wrong", [3.0, ["x"], "x", [("x", 1.0)]])
def test_tolerances_have_names(wrong):
    with pytest.raises(SamplerError, match="tolerance must map factors to numbers"):
        SetSampler(table_of([0, 1]), ["x"], size=1, tolerance=wrong)


def test_two_continuous_factors_in_one_list():
    with pytest.raises(
        SamplerError, match=r"a set can fix only one continuous factor .*not x and y.*table.binned"
    ) as error:
        SetSampler(table_of([0, 1], y=[0, 1]), ["x", "y"], size=1, tolerance={"x": 1.0, "y": 1.0})
    assert "fix 'y_bin'" in str(error.value)


def test_a_continuous_factor_without_a_tolerance():
    with pytest.raises(FactorError, match=r"table.binned\('x', width\).*tolerance=\{'x': …\}"):
        SetSampler(table_of([0, 1]), ["x"], size=1)


def test_a_tolerance_of_a_factor_that_no_set_fixes():
    for options in ({"inactive": ["a"]}, {"active": ["x"]}, {"inactive": [["a"], []]}):
        with pytest.raises(SamplerError, match="tolerance contains 'x', which no set fixes"):
            SetSampler(table_of([0, 1], [0, 0]), size=1, tolerance={"x": 1.0}, **options)


def test_a_tolerance_of_an_unknown_factor():
    with pytest.raises(FactorError, match=r"unknown factor 'yax'; did you mean 'yaw'\?"):
        SetSampler(table_of([0, 1], yaw=[0, 1]), ["yaw"], size=1, tolerance={"yax": 1.0})


def test_error_names_the_smallest_neighbourhoods():
    table = table_of([0, 10, 20, 0, 0, 5, 0, 0, 0], [0] * 3 + [1] * 3 + [2] * 3)
    with pytest.raises(SamplerError) as error:
        SetSampler(table, ["a", "x"], size=3, tolerance={"x": 1.0})
    text = str(error.value)
    assert "2 of 3 groups of a have fewer than the 3 rows within 1 deg of some x" in text
    assert "smallest: a = 0: 1; a = 1: 2; a = 2: 3" in text


def test_nothing_is_known():
    with pytest.raises(SamplerError, match="2 rows have unknown values"):
        SetSampler(table_of([math.nan, math.nan]), ["x"], size=1, tolerance={"x": 1.0})


def test_rows_near_no_anchor_have_no_chance_at_all():
    # the shares of six anchors leave -6e-17 behind where they are added and taken back as floats
    values = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 50.0, 90.0]
    table = FactorTable.from_values({"age": values}, factors=[Factor("age", Kind.CONTINUOUS)])
    reach = SetSampler(table, ["age"], tolerance={"age": 0.35}, sets=1, size=3, on_small_group="drop").reach()
    assert reach.chance(range(8))[6:].tolist() == [0.0, 0.0]
    assert reach.chance(range(6)).sum() == pytest.approx(3, abs=1e-12)  # the rows of a set
    assert reach.row(7).wait == np.inf
    assert reach.row(7).reasons[0].text == "no anchor of its group is within the tolerance"
