"""Options that change with the step, and options of their own for each set: distributions against enumeration."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from setsup.errors import SamplerError
from setsup.factors import Factor, FactorTable, Kind, concat
from setsup.samplers import DomainSampler, Mixture, OrbitSampler, SetSampler, Zip, from_dict


def grid(*sizes):
    return FactorTable([Factor(name, Kind.ORDINAL, tuple(range(n))) for name, n in zip("abcd", sizes, strict=False)])


def table_of(codes):
    return FactorTable([Factor("a", Kind.NOMINAL, tuple(range(max(codes) + 1)))], {"a": np.array(codes)})


GRID = grid(3, 4, 5)


def members(draw):
    """Rows of each set without padding, for every step of a block."""
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    return [
        [rows[counts].tolist() for rows, counts in zip(sets, counted, strict=True)]
        for sets, counted in zip(draw.indices, mask, strict=True)
    ]


def same(one, other):
    masks = [np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask for draw in (one, other)]
    return np.array_equal(one.indices, other.indices) and np.array_equal(*masks)


def returns(sampler, table=GRID):
    """Plain data through JSON gives the same sampler."""
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    assert again.to_dict() == sampler.to_dict()
    assert same(again.block(0, 60), sampler.block(0, 60))
    return True


# -- sizes by step -----------------------------------------------------------------------------------------------------

SIZED = {
    "sets": lambda size: SetSampler(GRID, ["a"], size=size, sets=2),
    "equal sets": lambda size: SetSampler(GRID, ["a"], size=size, sets=2, values="equal"),
    "different sets": lambda size: SetSampler(GRID, ["a"], size=size, sets=2, values="different"),
    "weighted sets": lambda size: SetSampler(GRID, ["a"], size=size, sets=2, weights=np.arange(1, 61)),
    "domains": lambda size: DomainSampler(GRID, "a", sets=2, size=size),
    "independent domains": lambda size: DomainSampler(GRID, "a", sets=2, size=size, domains="independent"),
    "weighted domains": lambda size: DomainSampler(GRID, "a", sets=2, size=size, weights=np.arange(1, 61)),
    "orbits": lambda size: OrbitSampler(GRID, "a", sets=2, size=size, canonical="first"),
}
each = pytest.mark.parametrize("name", SIZED)


@each
def test_the_width_is_the_largest_size_and_the_rest_is_masked(name):
    sampler = SIZED[name]({0: 3, 10: 8, 25: 1})
    draw = sampler.block(0, 40)
    assert draw.indices.shape == (40, 2, 8)
    sizes = draw.mask.sum(axis=2)
    assert (sizes == np.repeat([3, 8, 1], [10, 15, 15])[:, None]).all()
    assert (draw.mask == (np.arange(8) < sizes[..., None])).all()
    assert (draw.indices[~draw.mask] == np.broadcast_to(draw.indices[..., :1], draw.indices.shape)[~draw.mask]).all()
    for sets in members(draw):
        assert all(len(set(rows)) == len(rows) for rows in sets)
    assert sampler[12].mask is None
    assert np.array_equal(sampler.block(24, 27).indices, draw.indices[24:27])
    assert returns(sampler)


@each
def test_a_schedule_without_changes_is_the_size(name):
    plain, scheduled = SIZED[name](6), SIZED[name]({0: 6})
    assert same(plain.block(0, 50), scheduled.block(0, 50))
    assert same(SIZED[name]({0: 6, 10: 6}).block(0, 10), plain.block(0, 10))


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("on_small_group", ["error", "short"])
def test_sets_of_every_size_follow_their_distribution(weights, on_small_group):
    """Ordered choices of a size, when a larger size, also one that the group does not have, is drawn elsewhere."""
    most = 9 if on_small_group == "short" else 4
    sampler = SetSampler(
        table_of([0] * 6),
        [],
        size={0: 2, 4000: most},
        sets=1,
        on_small_group=on_small_group,
        weights=weights,
        seed=most,
    )
    law = {}
    load = weights or [1] * 6
    for first, second in itertools.permutations(range(6), 2):
        law[first, second] = load[first] / sum(load) * load[second] / (sum(load) - load[first])
    seen = Counter(tuple(sets[0]) for sets in members(sampler.block(0, 4000)))
    assert set(seen) <= set(law)
    assert chisquare([seen[key] for key in law], [4000 * law[key] for key in law]).pvalue > 1e-5
    assert sampler.block(4000, 4009).mask is None or on_small_group == "short"


def test_groups_have_rows_for_the_largest_size_at_every_step():
    table = table_of([0, 0, 1, 1, 1])
    with pytest.raises(SamplerError, match="have fewer than the 3 rows that a draw requires"):
        SetSampler(table, ["a"], size={0: 2, 1000: 3})
    dropped = SetSampler(table, ["a"], size={0: 2, 1000: 3}, on_small_group="drop")
    assert (dropped.block(0, 50).inactive["a"] == 1).all()
    assert "figures are for the largest size" in str(dropped.report())
    assert "SetSampler: 2 sets of 2, from step 1,000 on 3, independent values" in str(dropped.report())


def test_rounds_of_domains_begin_again_where_the_size_changes():
    """Between changes, all domains and all of their rows are drawn equally often, as without a schedule."""
    sampler = DomainSampler(grid(3, 20), "a", sets=2, size={0: 4, 30: 10, 45: 5})
    for start, stop, size in ((0, 30, 4), (30, 45, 10), (45, 105, 5)):
        draw = sampler.block(start, stop)
        rows = np.array(members(draw))
        assert rows.shape == (stop - start, 2, size)
        assert (np.bincount(draw.inactive["a"].ravel()) == (stop - start) * 2 / 3).all()
        assert (np.bincount(rows.ravel(), minlength=60) == rows.size / 60).all()
    first, second = (members(sampler.block(start, start + 4)) for start in (0, 45))
    assert [rows[:4] for sets in second for rows in sets] != [rows for sets in first for rows in sets]


def test_short_domains_by_the_size_of_the_step():
    sampler = DomainSampler(
        table_of([0, 0, 0, 1, 1, 1, 1, 1, 1]), "a", sets=2, size={0: 2, 10: 5}, on_small_group="short"
    )
    draw = sampler.block(0, 20)
    sizes = draw.mask.sum(axis=2)
    assert (sizes[:10] == 2).all()
    assert (sizes[10:] == np.where(draw.inactive["a"][10:] == 0, 3, 5)).all()


def test_a_zip_takes_schedules():
    joined = Zip(SIZED["sets"]({0: 2, 5: 4}), SIZED["domains"](3))
    assert [[len(rows) for rows in sets] for sets in members(joined.block(4, 6))] == [[2, 2, 3, 3], [4, 4, 3, 3]]
    assert returns(joined)


@given(
    sizes=st.dictionaries(st.integers(1, 60), st.integers(1, 9), max_size=4),
    first=st.integers(1, 9),
    name=st.sampled_from(sorted(SIZED)),
    start=st.integers(0, 2**62),
)
def test_any_schedule_is_a_function_of_the_step(sizes, first, name, start):
    sampler = SIZED[name]({0: first, **sizes})
    for begin in (0, start):
        draw = sampler.block(begin, begin + 61)
        for offset in (0, 7, 60):
            step = begin + offset
            size = ({0: first, **sizes})[max(key for key in (0, *sizes) if key <= step)]
            single = sampler[step]
            assert np.array_equal(single.indices, draw.indices[offset])
            counted = np.ones(single.indices.shape, bool) if single.mask is None else single.mask
            assert (counted.sum(axis=1) == size).all()


# -- how many factors are fixed, and rates of mixtures -----------------------------------------------------------------


def test_the_number_of_random_factors_changes_with_the_step():
    table = grid(2, 2, 2, 8)
    sampler = SetSampler(table, ["a", "b", "c"], num_fixed={0: 3, 3000: 1, 6000: 0}, size=3)
    draw = sampler.block(0, 6010)
    fixed = np.stack([draw.inactive[name][:, 0] >= 0 for name in "abc"], axis=1)
    assert fixed[:3000].all()
    assert not fixed[6000:].any()
    one = fixed[3000:6000]
    assert (one.sum(axis=1) == 1).all()
    assert chisquare(one.sum(axis=0)).pvalue > 1e-4
    for name in "abc":
        codes = table.codes(name, draw.indices)
        has = draw.inactive[name] >= 0
        assert (codes[has] == draw.inactive[name][has][:, None]).all()
    constant = SetSampler(table, ["a", "b", "c"], num_fixed=1, size=3).block(3000, 6000)
    assert np.array_equal(constant.indices, draw.indices[3000:6000])
    assert returns(sampler, table)
    assert "factors fixed at random: 3, from step 3,000 on 1, from step 6,000 on 0" in str(sampler.report())


def test_rates_of_a_mixture_by_step():
    table = concat([GRID, GRID])
    base = SetSampler(table, [], size=4, where="part == 'a'")
    sampler = Mixture(base, "part == 'b'", p={0: 0.5, 2000: 0.0, 4000: 0.9})
    for start, rate in ((0, 0.5), (2000, 0.0), (4000, 0.9), (2**62, 0.9)):
        replaced = int((sampler.block(start, start + 2000).indices[:, 1] >= 60).sum())
        assert binomtest(replaced, 8000, rate).pvalue > 1e-4
    assert same(sampler.block(0, 2000), Mixture(base, "part == 'b'", p=0.5).block(0, 2000))
    assert returns(sampler, table)
    assert "with probability 0.5, from step 2,000 on 0.0, from step 4,000 on 0.9" in str(sampler.report())


# -- options of their own for each set ---------------------------------------------------------------------------------


def test_sets_of_unlike_sizes_and_rows():
    """A labelled set of 2 of 3 rows, an unlabelled one of 3 of 4: every joint outcome as often as the others."""
    table = table_of([0] * 3 + [1] * 4)
    sampler = SetSampler(table, [], size=[2, 3], where=["a == 0", [3, 4, 5, 6]])
    draw = sampler.block(0, 8640)
    assert draw.mask.tolist() == [[[True, True, False], [True] * 3]] * 8640
    seen = Counter((tuple(one), tuple(two)) for one, two in members(draw))
    cells = list(itertools.product(itertools.permutations(range(3), 2), itertools.permutations(range(3, 7), 3)))
    assert set(seen) == set(cells)
    assert chisquare([seen[cell] for cell in cells]).pvalue > 1e-4
    assert returns(sampler, table)
    report = sampler.report()
    assert [(entry.sets, entry.largest, entry.excluded) for entry in report.entries] == [([0], 3, 4), ([1], 4, 3)]
    assert [round(10**entry.log10_sets) for entry in report.entries] == [3, 4]
    assert "SetSampler: 2 sets of 2 and 3, independent values" in str(report)
    assert "inactive: nothing (set 1)" in str(report)


def test_weights_of_their_own_for_each_set():
    sampler = SetSampler(table_of([0] * 4), [], size=1, sets=3, weights=[None, [1, 2, 3, 4], [0, 0, 0, 1]])
    rows = sampler.block(0, 6000).indices[..., 0]
    assert chisquare(np.bincount(rows[:, 0])).pvalue > 1e-4
    assert chisquare(np.bincount(rows[:, 1]), 6000 * np.array([0.1, 0.2, 0.3, 0.4])).pvalue > 1e-4
    assert (rows[:, 2] == 3).all()
    assert returns(sampler, table_of([0] * 4))


def test_support_and_query_share_a_group_and_no_row():
    """Every way to deal 2 + 1 of a group's 4 rows, with a group uniform over two."""
    sampler = SetSampler(table_of([0] * 4 + [1] * 4), ["a"], size=[2, 1], values="equal")
    draw = sampler.block(0, 4800)
    assert (draw.inactive["a"][:, 0] == draw.inactive["a"][:, 1]).all()
    seen = Counter((*support, *query) for support, query in members(draw))
    cells = [*itertools.permutations(range(4), 3), *itertools.permutations(range(4, 8), 3)]
    assert set(seen) == set(cells)
    assert chisquare([seen[cell] for cell in cells]).pvalue > 1e-4
    assert [(entry.sets, entry.shared_rows) for entry in sampler.report().entries] == [([0], 0.0), ([1], 0.0)]
    assert [round(10**entry.log10_sets) for entry in sampler.report().entries] == [12, 8]


def test_a_short_group_is_dealt_in_turn():
    sampler = SetSampler(table_of([0] * 5 + [1] * 12), ["a"], size=[2, 6], values="equal", on_small_group="short")
    for codes, sets in zip(sampler.block(0, 60).inactive["a"], members(sampler.block(0, 60)), strict=True):
        assert [len(rows) for rows in sets] == ([2, 3] if codes[0] == 0 else [2, 6])
        assert len({row for rows in sets for row in rows}) == sum(map(len, sets))
    assert all(np.isnan(entry.log10_sets) for entry in sampler.report().entries)


def test_different_values_of_unlike_sizes():
    sampler = SetSampler(grid(3, 4), ["a"], size=[1, 3, 2], sets=3, values="different")
    draw = sampler.block(0, 300)
    assert (np.sort(draw.inactive["a"], axis=1) == [0, 1, 2]).all()
    assert (draw.mask.sum(axis=2) == [1, 3, 2]).all()
    assert [(entry.sets, entry.shared_rows) for entry in sampler.report().entries] == [([0], 0), ([1], 0), ([2], 0)]


def test_sizes_and_schedules_and_lists_together():
    sampler = SetSampler(GRID, [["a"], [], ["a"]], sets=3, size=[2, {0: 3, 5: 9}, 4], where=["b > 0", None, None])
    draw = sampler.block(0, 10)
    assert (draw.mask.sum(axis=2) == [[2, 3, 4]] * 5 + [[2, 9, 4]] * 5).all()
    assert (GRID.codes("b", draw.indices[:, 0]) > 0).all()
    assert sampler.unconstrained_sets == {1}
    assert returns(sampler)


def test_a_mixture_knows_the_rows_of_each_set():
    table = concat([GRID, GRID])
    base = SetSampler(table, [], size=[2, 4], where=["part == 'b'", "part == 'a'"])
    assert base.rows_where().all()
    with pytest.raises(SamplerError, match="and the base sampler share 60 rows"):
        Mixture(base, "part == 'b'")


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"size": {1: 5}},
            r"size given by step must have a value for step 0 and .*, for example \{0: 8, 1000: 16\}, not",
        ),
        ({"size": {}}, "size given by step must have a value for step 0"),
        ({"size": {0: 5, "0": 6}}, "size given by step .* must not list a step twice"),
        ({"size": {0: 5, -3: 6}}, "the steps of size must be integers from 0 to"),
        ({"size": {0: 5, 2**63: 6}}, "the steps of size must be integers"),
        ({"size": {0: 5, "x": 6}}, "the steps of size must be integers .*, not 'x'"),
        ({"size": {0: 5, 9: 0}}, "size from step 9 on must be an integer from 1 to"),
        ({"size": {0: 5, 9: [5]}}, "size from step 9 on must be an integer from 1 to"),
        ({"size": [5]}, "size has 1 items for sets=2; pass one per set, or one for all"),
        ({"size": [5, 0]}, "size of set 1 must be an integer from 1 to"),
        ({"num_fixed": {0: 1, 4: 3}, "inactive": ["a", "b"]}, "num_fixed, of 2 listed factors, must be an integer"),
        ({"where": ["a == 0"] * 3}, "where has 3 items for sets=2; pass one per set, or one for all"),
        ({"weights": [None] * 3}, "weights has 3 items for sets=2"),
        ({"where": ["a == 0", [99]]}, "row 99 of where is out of range"),
        ({"where": ["a == 0", None], "values": "equal"}, "requires the same weights and where in all sets"),
        ({"weights": [None, [1] * 60], "values": "different"}, "requires the same weights and where"),
    ],
)
def test_wrong_schedules_and_lists(options, sentence):
    with pytest.raises(SamplerError, match=sentence):
        SetSampler(GRID, **{"inactive": ["a"], "size": 2, **options})


def test_wrong_rates():
    base = SetSampler(concat([GRID, GRID]), [], size=2, where="part == 'a'")
    for wrong in ({0: 0.5, 3: 1.5}, {3: 0.5}, {}):
        with pytest.raises(SamplerError, match="p, unless it is a Stepwise schedule"):
            Mixture(base, "part == 'b'", p=wrong)
