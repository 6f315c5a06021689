"""SetSampler: every drawn set against the table's rows, and every law against counting."""

import dataclasses
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

from setsup.errors import FactorError, RowError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import SetSampler, from_dict
from setsup.samplers.groups import single, within

RARE = 1e-5  # seeds are fixed, so no statistic below can flicker
NAMES = "abc"


def factor(name, levels, within=None, role="variation"):
    return Factor(name, Kind.NOMINAL, tuple(range(levels)), within=within, role=role)


def grid_of(*sizes):
    return FactorTable([factor(name, size) for name, size in zip("abcdef", sizes, strict=False)])


def columns_of(**codes):
    return FactorTable(
        [factor(name, max(column) + 1) for name, column in codes.items()],
        {name: np.array(column) for name, column in codes.items()},
    )


def spelled_out(grid):
    return FactorTable(grid.factors, {name: grid.column(name) for name in grid.names})


def even(counts):
    return float(stats.chisquare(np.ravel(np.array(counts))).pvalue)


def fits(seen, law, draws):
    """p-value of counts by outcome under exact probabilities by outcome."""
    assert set(seen) <= set(law)
    assert math.isclose(sum(law.values()), 1, rel_tol=1e-9)
    return float(stats.chisquare([seen[key] for key in law], [draws * law[key] for key in law]).pvalue)


def same(one, other):
    """Equal draws, where a mask of all True is none."""
    assert one.indices.dtype == other.indices.dtype == np.int64
    assert one.indices.tolist() == other.indices.tolist()
    assert set(one.inactive) == set(other.inactive)
    for name in one.inactive:
        np.testing.assert_array_equal(one.inactive[name], other.inactive[name])
        assert one.inactive[name].dtype == other.inactive[name].dtype
    masks = [np.ones(d.indices.shape, bool) if d.mask is None else d.mask for d in (one, other)]
    assert masks[0].tolist() == masks[1].tolist()


def groups_of(table, names, mask=None):
    codes = np.stack([table.codes(name) for name in names], axis=1) if names else np.zeros((len(table), 0), int)
    found = {}
    for row, key in enumerate(map(tuple, codes.tolist())):
        if -1 not in key and (mask is None or mask[row]):
            found.setdefault(key, []).append(row)
    return found


def check_sets(table, draw, lists, size, mask=None, on_small_group="error"):
    """Every set is exact, of one group, without repeats, padded and masked as documented."""
    steps, sets, width = draw.indices.shape
    assert (sets, width) == (len(lists), size)
    known = sorted({name for names in lists for name in names}, key=table.names.index)
    assert list(draw.inactive) == known
    counted = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    members = [groups_of(table, sorted(names, key=table.names.index), mask) for names in lists]
    for step, place in itertools.product(range(steps), range(sets)):
        names = sorted(lists[place], key=table.names.index)
        for name in known:
            if name not in names:
                assert draw.inactive[name][step, place] == -1
        key = tuple(int(draw.inactive[name][step, place]) for name in names)
        rows = draw.indices[step, place].tolist()
        group = members[place][key]
        assert set(rows) <= set(group)
        drawn = [row for row, counts in zip(rows, counted[step, place], strict=False) if counts]
        if len(group) >= size or on_small_group == "short":
            assert len(set(drawn)) == len(drawn)
        if len(group) >= size or on_small_group == "replace":
            assert len(drawn) == size
        else:
            assert on_small_group == "short"
            assert sorted(drawn) == group
            assert rows[len(drawn) :] == [rows[0]] * (size - len(drawn))
            assert counted[step, place].tolist() == [True] * len(drawn) + [False] * (size - len(drawn))


@st.composite
def tables(draw, rows=24):
    """Grids, grids with holes, and columns with unknown values and perhaps nesting."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    grid = grid_of(*sizes)
    kind = draw(st.sampled_from(["grid", "columns", "holes", "any"]))
    if kind == "grid":
        return grid
    if kind == "columns":
        return spelled_out(grid)
    if kind == "holes":
        return grid.select(sorted(draw(st.sets(st.integers(0, len(grid) - 1), min_size=1))))
    nested = len(sizes) > 1 and draw(st.booleans())
    count = draw(st.integers(1, rows))
    factors = [factor(n, s, "a" if nested and n == "b" else None) for n, s in zip(NAMES, sizes, strict=False)]
    codes = [draw(st.lists(st.integers(-1, s - 1), min_size=count, max_size=count)) for s in sizes]
    return FactorTable(factors, {n: np.array(c) for n, c in zip(NAMES, codes, strict=False)})


def closure(table, names):
    return {o for name in names for o in (name, table[name].within) if o is not None}


@given(table=tables(), data=st.data())
def test_every_set_is_exact_without_repeats_and_every_row_reachable(table, data):
    held = data.draw(st.lists(st.sampled_from(table.names), unique=True))
    on_small_group = data.draw(st.sampled_from(["error", "drop", "short", "replace"]))
    choose = data.draw(st.sampled_from(["levels", "groups", "rows"]))
    where = data.draw(st.sampled_from([None, "a <= 1", "a != 0"]))
    size = data.draw(st.integers(1, 4))
    mask = None if where is None else table.mask(where)
    names = closure(table, held)
    groups = groups_of(table, sorted(names, key=table.names.index), mask)
    sizes = [len(rows) for rows in groups.values()]
    arguments = {"size": size, "sets": 2, "on_small_group": on_small_group, "choose": choose, "where": where, "seed": 3}
    impossible = (
        not sizes
        or (on_small_group == "error" and min(sizes) < size)
        or (on_small_group == "drop" and max(sizes) < size)
    )
    if impossible:
        with pytest.raises(SamplerError):
            SetSampler(table, held, **arguments)
        return
    sampler = SetSampler(table, held, **arguments)
    check_sets(table, sampler.block(0, 30), [names, names], size, mask, on_small_group)
    drawable = {row for rows in groups.values() if len(rows) >= size or on_small_group != "drop" for row in rows}
    assert set(sampler.block(0, 3000).indices.ravel().tolist()) == drawable


@given(table=tables(), data=st.data())
def test_lists_for_each_set(table, data):
    lists = data.draw(st.lists(st.lists(st.sampled_from(table.names), unique=True), min_size=1, max_size=3))
    sampler = SetSampler(table, [[]] * len(lists), size=2, sets=len(lists), on_small_group="replace")
    assert sampler.unconstrained_sets == frozenset(range(len(lists)))
    try:
        sampler = SetSampler(table, lists, size=2, sets=len(lists), on_small_group="short")
    except SamplerError:  # a factor that no row knows
        assert any(not groups_of(table, tuple(closure(table, names))) for names in lists)
        return
    closed = [closure(table, names) for names in lists]
    check_sets(table, sampler.block(0, 20), closed, 2, on_small_group="short")
    assert sampler.unconstrained_sets == {place for place, names in enumerate(lists) if not names}


@pytest.mark.long("statistics")
@given(table=tables(), data=st.data(), seed=st.integers(0, 2**64 - 1))
def test_steps_blocks_shards_and_orders_agree(table, data, seed):
    held = data.draw(st.lists(st.sampled_from(table.names), unique=True))
    options = data.draw(
        st.sampled_from(
            [{}, {"values": "equal"}, {"values": "different"}, {"unconstrained": 1}, {"num_fixed": len(held) // 2}]
        )
    )
    on_small_group = data.draw(st.sampled_from(["short", "replace"]))
    try:
        sampler = SetSampler(table, held, size=3, on_small_group=on_small_group, seed=seed, **options)
    except SamplerError:
        return
    start = data.draw(st.one_of(st.integers(0, 100), st.just(2**63 - 7)))
    block = sampler.block(start, start + 6)
    assert all(array.shape == (6, 2) for array in block.inactive.values())
    for i in range(6):
        same(block.at(i), sampler[start + i])
    order = data.draw(st.permutations(range(6)))
    shuffled = sampler.draws(np.array([start + i for i in order]))
    for place, i in enumerate(order):
        same(shuffled.at(place), block.at(i))
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    same(again.block(start, start + 6), block)
    same(pickle.loads(pickle.dumps(sampler)).block(start, start + 6), block)
    for (i, draw), _ in zip(enumerate(sampler.iterate(start)), range(6), strict=False):
        same(draw, sampler[start + i])
    if start < 200:
        for rank in range(3):
            same(sampler.shard(rank, 3, start)[1], sampler[start + 3 + rank])


def made(*arguments, **options):
    """A sampler, or the sentence of its error."""
    try:
        return SetSampler(*arguments, **options)
    except SamplerError as error:
        return str(error)


@given(data=st.data(), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_grids_and_columns_give_identical_draws(data, sizes):
    grid = grid_of(*sizes)
    columns = spelled_out(grid)
    held = data.draw(st.lists(st.sampled_from(grid.names), unique=True))
    options = data.draw(
        st.sampled_from([{}, {"values": "equal"}, {"values": "different"}, {"unconstrained": 1}, {"where": "a < 2"}])
    )
    options["choose"] = data.draw(st.sampled_from(["levels", "groups", "rows"]))
    options["on_small_group"] = data.draw(st.sampled_from(["drop", "short", "replace"]))
    options["size"] = data.draw(st.integers(1, 5))
    one, other = made(grid, held, **options), made(columns, held, **options)
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    same(one.block(0, 20), other.block(0, 20))
    for grids, spelled in zip(one.report().entries, other.report().entries, strict=True):
        assert grids.distinct == pytest.approx(spelled.distinct)
        assert dataclasses.replace(grids, distinct={}) == dataclasses.replace(spelled, distinct={})


def test_masks_are_none_where_every_slot_counts():
    table = columns_of(a=[0, 1, 1])
    sampler = SetSampler(table, ["a"], size=2, sets=1, on_small_group="short")
    singles = [sampler[step] for step in range(20)]
    for step, draw in zip(range(20), sampler, strict=False):
        assert (draw.mask is None) == (singles[step].mask is None) == (singles[step].inactive["a"][0] == 1)


def test_draws_do_not_share_memory_with_the_sampler():
    grid = grid_of(3, 4)
    for options in ({}, {"values": "equal", "size": 2}, {"inactive": [["a"], []], "size": 2}):
        sampler = SetSampler(grid, **{"inactive": ["a"], "size": 2, **options})
        before = sampler[3]
        kept = (before.indices.copy(), before.inactive["a"].copy())
        before.indices[:] = 0
        if before.inactive["a"].flags.writeable:
            before.inactive["a"][:] = 9
        after = sampler[3]
        assert (after.indices == kept[0]).all()
        assert (after.inactive["a"] == kept[1]).all()


@pytest.mark.parametrize("passes", [1, 2, 8])
def test_single_draws_redraw_repeats_as_blocks_do(passes, monkeypatch):
    for module in (single, within):
        monkeypatch.setattr(module, "PASSES", passes)
    ragged = columns_of(a=np.repeat([0, 1, 2, 3], [40, 70, 36, 300]))
    for table in (grid_of(3, 40, 2), ragged):
        sampler = SetSampler(table, ["a"], size=9, sets=3, seed=passes)
        assert sampler._single_step is not None
        block = sampler.block(0, 150)
        for step in range(150):
            same(block.at(step), sampler[step])


# -- which rows --------------------------------------------------------------------------------------------------------

# groups of n rows and sets of k on both sides of n = 4k, where the way of drawing changes, and full ones
CASES = [(5, 1), (2, 2), (5, 4), (5, 5), (6, 3), (7, 2), (8, 2), (9, 2), (11, 3), (12, 3), (13, 3), (30, 2), (16, 4)]


@pytest.mark.parametrize(("n", "k"), CASES)
def test_sets_are_uniform_over_all_subsets(n, k):
    subsets = math.comb(n, k)
    draws = max(6000, 15 * subsets)
    rows = SetSampler(grid_of(3, n), ["a"], size=k, sets=1, seed=n * k).block(0, draws).indices[:, 0] % n
    seen = Counter(map(tuple, np.sort(rows, axis=1).tolist()))
    assert set(seen) <= set(itertools.combinations(range(n), k))
    counts = [seen[subset] for subset in itertools.combinations(range(n), k)]
    assert subsets == 1 or even(counts) > RARE
    for slot in range(k):
        assert even(np.bincount(rows[:, slot], minlength=n)) > RARE


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("weights", [None, np.ones(24)])
def test_the_bound_on_redrawing_changes_no_chance(passes, weights, monkeypatch):
    monkeypatch.setattr(within, "PASSES", passes)
    rows = SetSampler(grid_of(2, 12), ["a"], size=3, sets=1, weights=weights).block(0, 9000).indices[:, 0] % 12
    seen = Counter(map(tuple, np.sort(rows, axis=1).tolist()))
    assert even([seen[subset] for subset in itertools.combinations(range(12), 3)]) > RARE


@pytest.mark.parametrize(("n", "k"), [(6, 2), (8, 2), (9, 2)])
def test_slots_are_uniform_over_ordered_choices(n, k):
    rows = SetSampler(grid_of(n), [], size=k, sets=1).block(0, 9000).indices[:, 0]
    seen = Counter(map(tuple, rows.tolist()))
    assert even([seen[order] for order in itertools.permutations(range(n), k)]) > RARE


def test_sets_and_steps_and_seeds_are_independent():
    grid = grid_of(2, 8)
    one, other = (SetSampler(grid, ["a"], size=1, sets=2, seed=seed).block(0, 8001).indices[..., 0] for seed in (0, 1))
    for first, second in (
        (one[:, 0], one[:, 1]),
        (one[:-1, 0], one[1:, 0]),
        (one[:-1, 1], one[1:, 0]),
        (one[:, 0], other[:, 0]),
        (one[1:, 0], other[:-1, 0]),  # (seed 0, step 1) and (seed 1, step 0)
    ):
        assert even(np.bincount(first * 16 + second, minlength=256)) > RARE


def test_streams_part_samplers_of_one_seed():
    grid = grid_of(2, 8)
    one, twin, other = (SetSampler(grid, ["a"], size=4, seed=7, stream=s) for s in ("x", "x", "y"))
    same(one.block(0, 50), twin.block(0, 50))
    assert (one.block(0, 50).indices != other.block(0, 50).indices).mean() > 0.8
    assert SetSampler(grid, ["a"], size=4).arguments["stream"] == "SetSampler"


def test_the_group_and_the_rows_are_independent():
    rows = SetSampler(grid_of(4, 8), ["a"], size=2, sets=1).block(0, 12_000).indices[:, 0]
    assert even(np.bincount(rows[:, 0] // 8 * 8 + rows[:, 1] % 8, minlength=32)) > RARE


# -- several sets ------------------------------------------------------------------------------------------------------


def test_independent_values_may_coincide():
    draw = SetSampler(grid_of(3, 5), ["a"], size=2).block(0, 9000)
    pairs = draw.inactive["a"][:, 0] * 3 + draw.inactive["a"][:, 1]
    assert even(np.bincount(pairs, minlength=9)) > RARE


@pytest.mark.parametrize("table", [grid_of(3, 8), columns_of(a=[0] * 4 + [1] * 6 + [2] * 9)])
@pytest.mark.parametrize("choose", ["levels", "groups", "rows"])
def test_equal_values_share_the_group_and_no_rows(table, choose):
    draw = SetSampler(table, ["a"], size=2, values="equal", choose=choose).block(0, 6000)
    check_sets(table, draw, [{"a"}, {"a"}], 2)
    assert (draw.inactive["a"][:, 0] == draw.inactive["a"][:, 1]).all()
    assert (np.diff(np.sort(draw.indices.reshape(-1, 4), axis=1), axis=1) > 0).all()
    sizes = table.counts("a")
    law = sizes / sizes.sum() if choose == "rows" else np.full(3, 1 / 3)
    assert stats.chisquare(np.bincount(draw.inactive["a"][:, 0]), law * 6000).pvalue > RARE
    inside = draw.indices[draw.inactive["a"][:, 0] == 0]
    pairs = Counter((tuple(sorted(one)), tuple(sorted(two))) for one, two in inside.tolist())
    rows = np.flatnonzero(table.codes("a") == 0).tolist()
    splits = [(o, t) for o in itertools.combinations(rows, 2) for t in itertools.combinations(set(rows) - set(o), 2)]
    assert set(pairs) <= {(o, tuple(sorted(t))) for o, t in splits}
    if len(rows) == 4:
        assert len(pairs) == len(splits)
        assert even(list(pairs.values())) > RARE


def test_equal_values_need_the_sum_of_the_sizes():
    table = columns_of(a=[0] * 3 + [1] * 4)
    with pytest.raises(SamplerError, match=r"1 of 2 groups of a have fewer than the 4 rows"):
        SetSampler(table, ["a"], size=2, values="equal")
    draw = SetSampler(table, ["a"], size=2, values="equal", on_small_group="drop").block(0, 50)
    assert (draw.inactive["a"] == 1).all()


def test_equal_values_deal_a_short_group_evenly():
    table = columns_of(a=[0] * 5 + [1] * 9)
    sampler = SetSampler(table, ["a"], size=3, sets=3, values="equal", on_small_group="short")
    draw = sampler.block(0, 200)
    few = draw.inactive["a"][:, 0] == 0
    assert draw.mask[few].sum(-1).tolist() == [[2, 2, 1]] * few.sum()
    assert draw.mask[~few].all()
    for step in np.flatnonzero(few):
        assert sorted(draw.indices[step][draw.mask[step]].tolist()) == [0, 1, 2, 3, 4]
        for rows, counts in zip(draw.indices[step], draw.mask[step], strict=False):
            assert (rows[~counts] == rows[0]).all()


def test_different_values_are_pairwise_different():
    table = grid_of(2, 3, 4)
    draw = SetSampler(table, ["a", "b"], size=2, sets=6, values="different").block(0, 300)
    check_sets(table, draw, [{"a", "b"}] * 6, 2)
    keys = draw.inactive["a"] * 3 + draw.inactive["b"]
    assert (np.sort(keys, axis=1) == np.arange(6)).all()
    with pytest.raises(
        SamplerError, match="values='different' requires 7 drawable groups of a, b, but there are only 6"
    ):
        SetSampler(table, ["a", "b"], size=2, sets=7, values="different")


def test_different_counts_drawable_groups_only():
    table = columns_of(a=[0, 1, 1, 2, 2])
    SetSampler(table, ["a"], size=2, values="different", on_small_group="drop")
    with pytest.raises(SamplerError, match="requires 3 drawable groups of a, but there are only 2"):
        SetSampler(table, ["a"], size=2, sets=3, values="different", on_small_group="drop")


def test_unconstrained_sets_fix_nothing_and_draw_from_all_rows():
    table = columns_of(a=[0, 0, 0, 1, 1, -1])
    sampler = SetSampler(table, ["a"], size=2, sets=3, unconstrained=2)
    assert sampler.unconstrained_sets == {1, 2}
    draw = sampler.block(0, 6000)
    check_sets(table, draw, [{"a"}, set(), set()], 2)
    for place in (1, 2):
        seen = Counter(map(tuple, np.sort(draw.indices[:, place], axis=1).tolist()))
        assert even([seen[pair] for pair in itertools.combinations(range(6), 2)]) > RARE
    same(draw, SetSampler(table, [["a"], [], []], size=2, sets=3).block(0, 6000))


def test_where_restricts_free_sets_too_and_never_renumbers():
    table = grid_of(3, 4)
    draw = SetSampler(table, [["a"], []], size=2, where="b >= 2 and a != 1").block(0, 500)
    assert set(np.unique(draw.indices)) == {2, 3, 10, 11}
    assert set(np.unique(draw.indices[:, 1])) == {2, 3, 10, 11}


def test_a_random_subset_is_uniform_and_the_same_in_all_sets():
    grid = grid_of(2, 2, 2, 4)
    draw = SetSampler(grid, ["a", "b", "c"], size=2, sets=2, num_fixed=2).block(0, 6000)
    held = np.stack([draw.inactive[name] >= 0 for name in "abc"], axis=-1)
    assert (held[:, 0] == held[:, 1]).all()
    assert (held.sum(-1) == 2).all()
    seen = Counter(map(tuple, held[:, 0].tolist()))
    assert len(seen) == 3
    assert even(list(seen.values())) > RARE
    for name in "abc":
        codes = grid.codes(name, draw.indices)
        fixed = draw.inactive[name] >= 0
        assert (codes[fixed] == draw.inactive[name][fixed][:, None]).all()
        assert 0.3 < (codes[~fixed][:, 0] == codes[~fixed][:, 1]).mean() < 0.7
        assert even(np.bincount(draw.inactive[name][fixed])) > RARE


def test_a_random_choice_among_active_factors_and_none_at_all():
    grid = grid_of(2, 3, 4)
    draw = SetSampler(grid, active=["c"], size=2, num_fixed=1, unconstrained=1).block(0, 300)
    assert list(draw.inactive) == ["a", "b"]
    assert ((draw.inactive["a"][:, 0] >= 0) != (draw.inactive["b"][:, 0] >= 0)).all()
    assert (draw.inactive["a"][:, 1] == -1).all()
    assert SetSampler(grid, ["a", "b"], size=2, num_fixed=0)[0].inactive == {}


def test_a_random_nested_factor_brings_its_category():
    table = FactorTable([factor("kind", 2), factor("thing", 2, "kind"), factor("view", 4)])
    draw = SetSampler(table, ["thing", "kind"], size=2, num_fixed=1).block(0, 200)
    assert (draw.inactive["kind"] >= 0).all()
    assert 0 < (draw.inactive["thing"][:, 0] >= 0).mean() < 1


# -- which factors -----------------------------------------------------------------------------------------------------


def mixed():
    """A table with every sort of column that naming the active factors leaves out."""
    plain = ["kind", "thing", "view"]
    roles = {"split": "split", "fold": "split", "part": "part", "uid": "key"}
    factors = [factor("kind", 2), factor("thing", 2, "kind"), factor("view", 2)]
    factors += [factor(name, 2, role=role) for name, role in roles.items()]
    factors += [factor("id", 2), factor("path", 2), Factor("yaw", Kind.CONTINUOUS), Factor("x", Kind.CONTINUOUS)]
    codes = np.arange(64)
    columns = {name: codes >> i & 1 for i, name in enumerate([*plain, *roles, "id", "path"])}
    return FactorTable(factors, {**columns, "yaw": np.float32(codes), "x": np.float32(codes % 8)})


def test_active_is_all_the_rest():
    table = mixed()
    assert set(SetSampler(table, active=["view"], size=4)[0].inactive) == {"kind", "thing"}
    assert set(SetSampler(table, active=[], size=4)[0].inactive) == {"kind", "thing", "view"}
    assert set(SetSampler(table, active=["thing", "view"], size=4)[0].inactive) == {"kind"}
    assert set(SetSampler(table, active=["thing", "view", "split"], size=4)[0].inactive) == {"kind"}
    near = SetSampler(table, active=["view"], size=2, tolerance={"yaw": 30.0})
    assert set(near[0].inactive) == {"kind", "thing", "yaw"}
    assert SetSampler(table, active=["kind", "thing", "view"], size=4)[0].inactive == {}


def test_continuous_factors_that_vary_are_said_where_the_sampler_is_shown():
    sampler = SetSampler(mixed(), active=["view"], size=2, tolerance={"yaw": 30.0})
    for shown in (repr(sampler), sampler._repr_html_(), str(sampler.report()), str(sampler.reach())):
        assert "x not fixed: a continuous factor needs a tolerance" in shown
    for silent in (SetSampler(mixed(), ["view"], size=2), SetSampler(mixed(), active=["view", "x", "yaw"], size=2)):
        assert "not fixed" not in repr(silent)
        assert "not fixed" not in silent._repr_html_()


def test_continuous_factors_left_out_are_named_in_the_report():
    report = str(SetSampler(mixed(), active=["view"], size=2, tolerance={"yaw": 30.0}).report())
    assert "x not fixed: a continuous factor needs a tolerance" in report
    assert "yaw, x not fixed" in str(SetSampler(mixed(), active=["view"], size=2).report())
    assert "not fixed" not in str(SetSampler(mixed(), active=["view", "x", "yaw"], size=2).report())
    assert "not fixed" not in str(SetSampler(mixed(), ["view"], size=2).report())


def test_columns_left_out_of_active_may_be_fixed_by_name():
    assert set(SetSampler(mixed(), ["split", "id", "part"], size=2)[0].inactive) == {"split", "part", "id"}


def test_inactive_and_active_say_the_same():
    grid = grid_of(2, 3, 4)
    same(SetSampler(grid, ["a", "c"], size=2).block(0, 9), SetSampler(grid, active=["b"], size=2).block(0, 9))
    same(SetSampler(grid, ["c", "a", "c"], size=2).block(0, 9), SetSampler(grid, ["a", "c"], size=2).block(0, 9))
    same(SetSampler(grid, "b", size=2).block(0, 9), SetSampler(grid, ("b",), size=2).block(0, 9))


def test_every_factor_may_be_fixed_where_rows_repeat():
    table = columns_of(a=[0, 0, 1, 1], b=[0, 0, 1, 1])
    check_sets(table, SetSampler(table, active=[], size=2).block(0, 9), [{"a", "b"}] * 2, 2)
    with pytest.raises(SamplerError, match="6 of 6 groups of a, b have fewer than the 2 rows"):
        SetSampler(grid_of(2, 3), active=[], size=2)


# -- small groups ------------------------------------------------------------------------------------------------------

UNEVEN = columns_of(a=[0] * 1 + [1] * 2 + [2] * 3 + [3] * 4 + [4] * 5 + [5] * 6 + [6] * 9)


def test_error_names_the_smallest_five():
    with pytest.raises(SamplerError) as error:
        SetSampler(UNEVEN, ["a"], size=8)
    text = str(error.value)
    assert "6 of 7 groups of a have fewer than the 8 rows" in text
    assert "smallest: a = 0: 1; a = 1: 2; a = 2: 3; a = 3: 4; a = 4: 5)" in text
    assert all(mend in text for mend in ("lower size", "on_small_group='drop'", "'short'", "'replace'"))


def test_error_when_even_the_largest_group_is_too_small():
    for on_small_group in ("error", "drop"):
        with pytest.raises(SamplerError, match="7 of 7 groups") as error:
            SetSampler(UNEVEN, ["a"], size=10, on_small_group=on_small_group)
        assert "lower size, or pass on_small_group='short'" in str(error.value)  # with fewer factors it would hold none
        assert "on_small_group='drop'" not in str(error.value)


def test_a_group_of_exactly_the_size_is_large_enough():
    draw = SetSampler(columns_of(a=[0, 0, 0, 1, 1, 1]), ["a"], size=3).block(0, 40)
    assert (np.sort(draw.indices, axis=-1) % 3 == [0, 1, 2]).all()
    with pytest.raises(SamplerError, match="fewer than the 4 rows"):
        SetSampler(columns_of(a=[0, 0, 0, 1, 1, 1, 1]), ["a"], size=4)


def test_drop_leaves_small_groups_out():
    sampler = SetSampler(UNEVEN, ["a"], size=5, on_small_group="drop")
    draw = sampler.block(0, 3000)
    check_sets(UNEVEN, draw, [{"a"}] * 2, 5)
    assert even(np.bincount(draw.inactive["a"].ravel())[4:]) > RARE
    assert draw.inactive["a"].min() == 4


def test_short_uses_all_rows_in_keyed_order():
    draw = SetSampler(UNEVEN, ["a"], size=5, sets=1, on_small_group="short").block(0, 7000)
    check_sets(UNEVEN, draw, [{"a"}], 5, on_small_group="short")
    assert even(np.bincount(draw.inactive["a"].ravel())) > RARE
    three = draw.indices[draw.inactive["a"][:, 0] == 2, 0, :3]
    assert even(list(Counter(map(tuple, three.tolist())).values())) > RARE
    assert len(Counter(map(tuple, three.tolist()))) == 6


def test_replace_repeats_in_small_groups_only():
    draw = SetSampler(UNEVEN, ["a"], size=4, sets=1, on_small_group="replace").block(0, 8000)
    check_sets(UNEVEN, draw, [{"a"}], 4, on_small_group="replace")
    assert draw.mask is None
    two = draw.indices[draw.inactive["a"][:, 0] == 1, 0] - 1
    assert even(np.bincount(two @ [8, 4, 2, 1], minlength=16)) > RARE
    four = np.sort(draw.indices[draw.inactive["a"][:, 0] == 3, 0], axis=1)
    assert (np.diff(four, axis=1) > 0).all()


def test_unknown_values_are_in_no_group():
    table = columns_of(a=[0, -1, 0, 1, 1, -1], b=[0, 0, -1, 0, 0, 0])
    draw = SetSampler(table, ["a"], size=2).block(0, 100)
    assert set(np.unique(draw.indices)) == {0, 2, 3, 4}
    draw = SetSampler(table, ["a", "b"], size=1, sets=1).block(0, 100)
    assert set(np.unique(draw.indices)) == {0, 3, 4}


# -- bad arguments -----------------------------------------------------------------------------------------------------

WRONG = [
    ({}, "no factors to fix are specified \\(the table has a, b, c\\); pass inactive="),
    ({"inactive": ["a"], "active": ["b"]}, "inactive= and active= are mutually exclusive"),
    ({"inactive": [["a"], ["b"]], "active": ["b"]}, "one list per set requires"),
    ({"inactive": [["a"], ["b"]], "num_fixed": 1}, "one list per set requires"),
    ({"inactive": [["a"], ["b"]], "unconstrained": 1}, "one list per set requires"),
    ({"inactive": [["a"], ["a"]], "values": "equal"}, "one list per set requires"),
    ({"inactive": [["a"], ["b"]], "sets": 3}, "inactive has 2 lists for sets=3"),
    ({"inactive": [["a"], "b"]}, "inactive must be a list of factor names"),
    ({"inactive": [5, 6]}, "inactive must be a list of factor names"),
    ({"inactive": 5}, "inactive must be a list of factor names"),
    ({"inactive": {"a"}}, "inactive must be a list of factor names"),
    ({"active": "a"}, "active must be a list of factor names, not 'a'"),
    ({"active": 7}, "active must be a list of factor names"),
    ({"inactive": ["a"], "size": 0}, "size must be an integer from 1 to [0-9,]+, not 0"),
    ({"inactive": ["a"], "size": -3}, "size must be an integer from 1 to [0-9,]+, not -3"),
    ({"inactive": ["a"], "size": 2.0}, "size must be an integer from 1 to [0-9,]+, not 2.0"),
    ({"inactive": ["a"], "size": "2"}, "size must be an integer"),
    ({"inactive": ["a"], "size": True}, "size must be an integer"),
    ({"inactive": ["a"], "sets": 0}, "sets must be an integer from 1 to [0-9,]+, not 0"),
    ({"inactive": ["a"], "unconstrained": 3}, "unconstrained must be an integer from 0 to 2, not 3"),
    ({"inactive": ["a"], "unconstrained": -1}, "unconstrained must be"),
    ({"inactive": ["a"], "unconstrained": 0.5}, "unconstrained must be"),
    ({"inactive": ["a"], "unconstrained": 1, "values": "equal"}, "requires the same factors in all sets"),
    ({"inactive": ["a"], "unconstrained": 1, "values": "different"}, "requires the same factors in all sets"),
    ({"inactive": ["a", "b"], "num_fixed": 3}, "num_fixed, of 2 listed factors, must be an integer from 0 to 2, not 3"),
    ({"inactive": ["a", "b"], "num_fixed": -1}, "num_fixed, of 2 listed factors, must be"),
    ({"inactive": ["a", "b"], "num_fixed": 1.5}, "num_fixed, of 2 listed factors, must be"),
    ({"inactive": ["a"], "choose": "level"}, "choose must be one of levels, groups, rows, not 'level'; did you mean"),
    ({"inactive": ["a"], "values": "equals"}, r"values must be one of .*did you mean 'equal'\?"),
    ({"inactive": ["a"], "on_small_group": "drops"}, r"on_small_group must be one of .*did you mean 'drop'\?"),
    ({"inactive": ["a"], "on_small_group": None}, "on_small_group must be one of"),
    ({"inactive": ["a"], "seed": -1}, "seed must be"),
    ({"inactive": ["a"], "seed": 2**64}, "seed must be"),
    ({"inactive": ["a"], "stream": 1}, "stream must be a string"),
    ({"inactive": ["a"], "tolerance": {"b": 1.0}}, "'b' has levels, so sets fix it exactly; .*continuous"),
    (
        {"inactive": ["a"], "where": "a == 0 and a == 1"},
        "where= and weights= leave none of the 24 rows for groups of a",
    ),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG)
def test_wrong_arguments_are_one_clear_sentence(options, sentence):
    with pytest.raises(SamplerError, match=sentence) as error:
        SetSampler(grid_of(2, 3, 4), **{"size": 2, **options})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "options", [{"inactive": ["wall_heu"]}, {"active": ["wall_heu"]}, {"inactive": [["wall_heu"], []]}]
)
def test_unknown_factors_have_near_matches(options):
    table = FactorTable([factor("wall_hue", 2), factor("shape", 40)])
    with pytest.raises(FactorError, match=r"unknown factor 'wall_heu'; did you mean 'wall_hue'\?"):
        SetSampler(table, **options)


def test_an_expression_that_is_wrong():
    with pytest.raises(FactorError, match="aa"):
        SetSampler(grid_of(2, 3), ["a"], size=2, where="aa == 1")


def test_an_outer_factor_cannot_be_active_alone():
    table = FactorTable([factor("kind", 2), factor("thing", 3, "kind"), factor("part", 2, "thing"), factor("view", 9)])
    with pytest.raises(
        SamplerError, match="'kind' cannot be active while 'thing' is fixed, because 'thing' is nested in 'kind'"
    ):
        SetSampler(table, active=["kind"])
    with pytest.raises(SamplerError, match=r"'thing' cannot be active while 'part'.*add 'part' to active"):
        SetSampler(table, active=["kind", "thing"])
    assert set(SetSampler(table, active=["kind", "thing", "part"], size=2)[0].inactive) == {"view"}


def test_too_many_random_subsets():
    table = grid_of(*[1] * 6)
    SetSampler(table, list("abcdef"), size=1, num_fixed=3)
    wide = FactorTable([factor(f"f{i}", 1) for i in range(30)])
    with pytest.raises(SamplerError, match="more than 4,096 choices of 15 of the 30 listed factors"):
        SetSampler(wide, list(wide.names), size=1, num_fixed=15)


@pytest.mark.parametrize("step", [-1, 2**63, 1.0, "1", None, True, slice(0, 3)])
def test_steps_out_of_range(step):
    with pytest.raises(RowError, match="step"):
        SetSampler(grid_of(2, 3), ["a"], size=2)[step]


@pytest.mark.parametrize(("start", "stop"), [(3, 3), (3, 2), (-1, 2), (0, 2**63 + 1)])
def test_blocks_out_of_range(start, stop):
    with pytest.raises(RowError):
        SetSampler(grid_of(2, 3), ["a"], size=2).block(start, stop)


def test_the_first_and_the_last_step():
    sampler = SetSampler(grid_of(2, 3), ["a"], size=2)
    assert sampler[np.int64(0)].indices.shape == (2, 2)
    same(sampler.block(2**63 - 2, 2**63).at(1), sampler[2**63 - 1])


# -- plain data --------------------------------------------------------------------------------------------------------


def test_plain_data_has_every_argument():
    table = mixed()
    sampler = SetSampler(
        table,
        ("view", "yaw"),
        size=np.int64(2),
        sets=3,
        unconstrained=1,
        choose="rows",
        on_small_group="short",
        tolerance={"yaw": np.float32(3.5)},
        where="kind == 0",
        seed=np.uint64(2**64 - 1),
        stream="mine",
    )
    data = json.loads(json.dumps(sampler.to_dict()))
    assert data["sampler"] == "SetSampler"
    assert data["fingerprint"] == table.fingerprint
    assert data["arguments"] == {
        "inactive": ["view", "yaw"],
        "active": None,
        "size": 2,
        "sets": 3,
        "unconstrained": 1,
        "random": None,
        "choose": "rows",
        "values": "independent",
        "small": "short",
        "tolerance": {"yaw": 3.5},
        "weights": None,
        "where": "kind == 0",
        "seed": 2**64 - 1,
        "stream": "mine",
    }
    again = from_dict(data, table)
    same(again.block(5, 25), sampler.block(5, 25))
    assert again.to_dict() == data


@pytest.mark.parametrize("weights", ["view", np.arange(64), [1.0] * 64])
def test_weights_survive_json(weights):
    sampler = SetSampler(mixed(), ["kind"], size=3, weights=weights)
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), mixed())
    same(again.block(0, 20), sampler.block(0, 20))


def test_another_table_is_refused():
    data = SetSampler(grid_of(2, 3), ["a"], size=2).to_dict()
    for other in (grid_of(3, 2), grid_of(2, 4), spelled_out(grid_of(2, 3)).select([0, 1, 2, 3, 5, 4])):
        with pytest.raises(SamplerError, match="fingerprint") as error:
            from_dict(data, other)
        assert other.fingerprint in str(error.value)
        assert data["fingerprint"] in str(error.value)
        assert "same dataset" in str(error.value)
    same(from_dict(data, spelled_out(grid_of(2, 3)))[0], SetSampler(grid_of(2, 3), ["a"], size=2)[0])


def test_damaged_plain_data_is_refused():
    table = grid_of(2, 3)
    data = SetSampler(table, ["a"], size=2).to_dict()
    for wrong in (
        {},
        [],
        None,
        {**data, "arguments": 3},
        {**data, "sampler": "SetSampla"},
        {**data, "sampler": "Sampler"},
        {**data, "sampler": 5},
        {**data, "arguments": {**data["arguments"], "sise": 3}},
        {**data, "arguments": {**data["arguments"], "size": "many"}},
        {**data, "arguments": {**data["arguments"], "seed": -1}},
        {**data, "arguments": {**data["arguments"], "tolerance": [3]}},
    ):
        with pytest.raises(SamplerError):
            from_dict(wrong, table)
