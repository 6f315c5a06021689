"""Mixtures slot by slot: how often, from where, in which sets, and what is refused."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind, concat
from setsup.samplers import (
    DomainSampler,
    EpochSampler,
    Mixture,
    OrbitSampler,
    SetSampler,
    Stepwise,
    TripletSampler,
    Zip,
    from_dict,
)

HUE = Factor("hue", Kind.NOMINAL, ("red", "blue", "green"))
SIZE = Factor("size", Kind.ORDINAL, (1, 2, 3, 4))


def both(pool=9):
    """Twelve rows of part a, a grid of hue and size, and some of part b, which has no size."""
    return concat([FactorTable([HUE, SIZE]), FactorTable([HUE], {"hue": np.arange(pool) % 3})])


def base_of(table, **options):
    options = {"inactive": [["hue"], []], "size": 4, "where": "part == 'a'", **options}
    return SetSampler(table, **options)


# -- schedules ---------------------------------------------------------------------------------------------------------


def test_the_schedule_of_the_pose_experiment():
    """Murphy et al.: from 0 to 10 % in ten values, one more every 4,000 steps; the formula by hand."""
    schedule = Stepwise(0.10, every=4000, levels=10)
    for step in (0, 1, 3999, 4000, 7999, 8000, 20_000, 35_999, 36_000, 36_001, 10**9, 2**63 - 1):
        assert schedule.at(step) == pytest.approx(0.10 * min(step // 4000, 9) / 9, abs=1e-15)
    assert schedule.at(35_999) < 0.10
    assert schedule.at(36_000) == 0.10
    values = schedule.at(np.arange(0, 60_000))
    assert len(np.unique(values)) == 10
    assert np.array_equal(np.flatnonzero(np.diff(values)) + 1, np.arange(4000, 36_001, 4000))


def test_the_shortest_schedule_has_two_values():
    assert Stepwise(1, every=1, levels=2).at([0, 1, 2]).tolist() == [0, 1, 1]


@pytest.mark.parametrize("wrong", [(1.1, 5, 3), (-0.1, 5, 3), (0.5, 0, 3), (0.5, 5, 1), (float("nan"), 5, 3)])
def test_impossible_schedules(wrong):
    with pytest.raises(SamplerError, match=r"schedule's (end|every|levels) must be"):
        Stepwise(*wrong)


# -- what is drawn -----------------------------------------------------------------------------------------------------


def test_slots_are_replaced_independently_with_the_given_probability():
    table = both()
    draw = Mixture(base_of(table), "part == 'b'", sets=[1], p=0.3).block(0, 6000)
    replaced = draw.indices[:, 1] >= 12
    counts = Counter(map(tuple, replaced.tolist()))
    cells = list(itertools.product([False, True], repeat=4))
    chances = [0.3 ** sum(cell) * 0.7 ** (4 - sum(cell)) for cell in cells]
    assert chisquare([counts[cell] for cell in cells], np.array(chances) * 6000).pvalue > 1e-4
    assert (draw.indices[:, 0] < 12).all()


def test_what_is_not_replaced_is_the_base_draw():
    table = both()
    base = base_of(table)
    draw, plain = Mixture(base, "part == 'b'", p=0.4).block(0, 400), base.block(0, 400)
    kept = draw.indices < 12
    assert np.array_equal(draw.indices[kept], plain.indices[kept])
    assert np.array_equal(draw.indices[:, 0], plain.indices[:, 0])
    assert {name: codes.tolist() for name, codes in draw.inactive.items()} == {
        name: codes.tolist() for name, codes in plain.inactive.items()
    }
    assert (draw.inactive["hue"][:, 1] == -1).all()
    assert set(table.values("part", draw.indices[:, 1]).ravel().tolist()) == {"a", "b"}


def test_rows_of_the_pool_are_uniform_and_never_twice_in_a_set():
    table = both(pool=4)
    draw = Mixture(base_of(table), "part == 'b'", sets=[1], p=1).block(0, 6000)
    orders = list(itertools.permutations(range(12, 16)))
    counts = Counter(map(tuple, draw.indices[:, 1].tolist()))
    assert set(counts) == set(orders)
    assert chisquare([counts[order] for order in orders]).pvalue > 1e-4
    half = Mixture(base_of(table), "part == 'b'", sets=[1], p=0.5).block(0, 2000).indices[:, 1]
    assert all(len(set(rows)) == 4 for rows in half.tolist())
    assert chisquare(np.bincount(half[half >= 12] - 12, minlength=4)).pvalue > 1e-4


def test_which_row_comes_does_not_depend_on_which_slots_are_replaced():
    table = both(pool=5)
    few, more, all_ = (Mixture(base_of(table), "part == 'b'", p=p).block(0, 300).indices[:, 1] for p in (0.2, 0.6, 1.0))
    assert ((few >= 12) <= (more >= 12)).all()  # the slot's word is compared with p, so slots only join
    for some in (few, more):
        assert np.array_equal(some[some >= 12], all_[some >= 12])


def test_several_sets_are_mixed_apart():
    table = both()
    draw = Mixture(base_of(table, inactive=[[], ["hue"], []], sets=3), "part == 'b'", sets=[2, 0], p=0.5).block(0, 6000)
    replaced = draw.indices >= 12
    assert not replaced[:, 1].any()
    pairs = Counter(zip(replaced[:, 0, 0].tolist(), replaced[:, 2, 0].tolist(), strict=True))
    assert chisquare([pairs[cell] for cell in itertools.product([False, True], repeat=2)]).pvalue > 1e-4
    assert not np.array_equal(draw.indices[:, 0][replaced[:, 0]][:99], draw.indices[:, 2][replaced[:, 2]][:99])


def test_the_probability_follows_the_schedule():
    table = both()
    sampler = Mixture(base_of(table), "part == 'b'", p=Stepwise(0.5, every=2000, levels=3))
    for start, p in ((0, 0), (2000, 0.25), (4000, 0.5), (6000, 0.5), (2**62, 0.5)):
        replaced = int((sampler.block(start, start + 2000).indices[:, 1] >= 12).sum())
        assert binomtest(replaced, 8000, p).pvalue > 1e-4


def test_never_and_always():
    table = both()
    base = base_of(table)
    assert np.array_equal(Mixture(base, "part == 'b'", p=0).block(0, 200).indices, base.block(0, 200).indices)
    assert (Mixture(base, "part == 'b'", p=1).block(0, 200).indices[:, 1] >= 12).all()


def test_padding_is_not_replaced():
    table = both(pool=20)
    base = SetSampler(table, inactive=[["hue"], []], size=15, on_small_group="short", where="part == 'a'")
    draw = Mixture(base, "part == 'b'", p=1).block(0, 50)
    assert np.array_equal(draw.mask, base.block(0, 50).mask)
    assert ((draw.indices[:, 1] >= 12) == draw.mask[:, 1]).all()


def test_batches_of_passes_can_be_mixed():
    table = both()
    base = EpochSampler(table, size=5, epochs=2, partial="pad", where="part == 'a'")
    sampler = Mixture(base, "part == 'b'", sets=[0], p=0.5)
    assert sampler.length == len(base) == 6
    assert len(list(sampler)) == 6
    with pytest.raises(IndexError):
        sampler[6]
    assert [len(shard) for shard in (sampler.shard(rank, 4) for rank in range(4))] == [2] * 4


def test_plain_data_and_back():
    table = both()
    sampler = Mixture(base_of(table), "part == 'b'", [1], Stepwise(0.5, every=3, levels=3), seed=4, stream="photos")
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    assert np.array_equal(again.block(0, 40).indices, sampler.block(0, 40).indices)
    assert again.to_dict() == sampler.to_dict()


def test_the_report_tells_the_pool():
    report = str(Mixture(base_of(both()), "part == 'b'", p=0.25).report())
    assert "rows of set 1 come from a pool of 9 rows with probability 0.25" in report


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_only_unconstrained_sets_are_mixed():
    table = both()
    with pytest.raises(SamplerError, match=r"set 0 fixes factors"):
        Mixture(base_of(table), "part == 'b'", sets=[0, 1])
    with pytest.raises(SamplerError, match=r"set 1 fixes factors"):
        Mixture(SetSampler(table, inactive=["hue"], size=4, where="part == 'a'"), "part == 'b'")
    Mixture(SetSampler(table, inactive=["hue"], unconstrained=1, size=4, where="part == 'a'"), "part == 'b'")
    for base in (
        DomainSampler(table, "hue", sets=2, size=3, where="part == 'a'"),
        OrbitSampler(table, "hue", sets=2, where="part == 'a'"),
        TripletSampler(table, "hue", where="part == 'a'"),
    ):
        with pytest.raises(SamplerError, match=r"set 1 fixes factors"):
            Mixture(base, "part == 'b'")


def test_a_pool_apart_from_the_base():
    table = both()
    with pytest.raises(SamplerError, match=r"the pool .* share 9 rows .*row 12.*part == 'a'"):
        Mixture(base_of(table, where=None), "part == 'b'")
    with pytest.raises(SamplerError, match=r"the base sampler share 4 rows"):
        Mixture(base_of(table), "hue == 'red' ")
    with pytest.raises(FactorError, match="did you mean 'part'"):
        Mixture(base_of(table), "prt == 'b'")


def test_a_mixture_is_over_a_sampler():
    with pytest.raises(SamplerError, match="base of a Mixture must be a Sampler, not a FactorTable"):
        Mixture(both(), "part == 'b'")


def test_a_pool_that_is_large_enough():
    table = both(pool=4)
    Mixture(base_of(table, size=4), "part == 'b'")
    with pytest.raises(SamplerError, match=r"the pool .* has 4 rows, but a set requires 5"):
        Mixture(base_of(table, inactive=[["hue"], []], size=5, on_small_group="short"), "part == 'b'")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"sets": [2]}, "set 2 is out of range: the base sampler draws sets 0 to 1"),
        ({"sets": [-1]}, "set -1 is out of range"),
        ({"sets": []}, "non-empty list of set numbers"),
        ({"sets": 1}, "list of set numbers"),
        ({"sets": [1.0]}, "list of set numbers"),
        ({"sets": [True]}, "list of set numbers"),
        ({"p": 1.5}, "p, unless it is a Stepwise schedule, must be a finite number from 0 to 1"),
        ({"p": -0.1}, "p, unless it is a Stepwise schedule, must be a finite number from 0 to 1"),
        ({"p": float("nan")}, "p, unless it is a Stepwise schedule, must be a finite number from 0 to 1"),
        ({"p": "often"}, "p, unless it is a Stepwise schedule, must be a finite number from 0 to 1"),
        ({"p": {"end": 0.5}}, "every"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_arguments(arguments, sentence):
    with pytest.raises(SamplerError, match=sentence):
        Mixture(base_of(both()), **{"pool": "part == 'b'", **arguments})


def test_a_mixture_over_a_mixture_takes_a_pool_of_its_own():
    table = concat([FactorTable([HUE], {"hue": np.arange(6) % 3}) for _ in range(3)])
    inner = Mixture(base_of(table, inactive=[], sets=2, size=3), "part == 'b'", p=0.5)
    assert inner.rows_where().tolist() == [True] * 12 + [False] * 6
    draw = Mixture(inner, "part == 'c'", p=0.5, stream="second").block(0, 99).indices[:, 1]
    assert set(draw.ravel().tolist()) == set(range(18))
    with pytest.raises(SamplerError, match=r"the pool .* and the base sampler share 6 rows"):
        Mixture(inner, "part == 'b'")


# -- weights and nesting, by enumeration -------------------------------------------------------------------------------


def successive(weights, count):
    """Chance of each ordered choice of rows, each by weight among those that are left."""
    found = {(): 1.0}
    for _ in range(count):
        found = {
            (*rows, row): chance * weights[row] / sum(w for r, w in enumerate(weights) if r not in rows)
            for rows, chance in found.items()
            for row in range(len(weights))
            if row not in rows
        }
    return found


def of_a_set(weights, size, p, first):
    """Chance of what the pool puts into a set: a row of the pool, numbered from one on, or -1, at each position."""
    found = Counter()
    for places in itertools.product([False, True], repeat=size):
        replaced = sum(places)
        for rows, chance in successive(weights, replaced).items():
            left = iter(rows)
            key = tuple(first + next(left) if place else -1 for place in places)
            found[key] += chance * p**replaced * (1 - p) ** (size - replaced)
    return found


def weighted(pool, base=4):
    """So many rows of part a, and a row of part b for each of some weights."""
    return concat(
        [
            FactorTable([Factor("w", Kind.CONTINUOUS)], {"w": np.asarray(weights, dtype=np.float32)})
            for weights in (np.ones(base), pool)
        ]
    )


@pytest.mark.parametrize("p", [0.2, 0.6])
def test_the_rows_that_come_are_a_draw_of_their_number_by_weight(p):
    """Where few positions are replaced, heavy rows still come first."""
    pool = [1.0, 2, 20, 4]
    base = SetSampler(weighted(pool), [], size=3, where="part == 'a'")
    rows = Mixture(base, "part == 'b'", p=p, weights="w").block(0, 6000).indices[:, 1]
    law = of_a_set(pool, 3, p, first=4)
    assert sum(law.values()) == pytest.approx(1)
    counts = Counter(map(tuple, np.where(rows < 4, -1, rows).tolist()))
    assert set(counts) <= set(law)
    keys = [key for key in law if law[key] * 6000 > 5]
    seen, expected = [counts[key] for key in keys], [law[key] * 6000 for key in keys]
    assert chisquare([*seen, 6000 - sum(seen)], [*expected, 6000 - sum(expected)]).pvalue > 1e-4


@pytest.mark.long("statistics")
def test_a_heavy_row_of_a_large_pool():
    """One row of weight 100 beside 99 of weight 1, a tenth of 32 positions: it is missed by no row or by light ones."""
    missed, gone = 0.0, 1.0
    for replaced in range(33):
        missed += math.comb(32, replaced) * 0.1**replaced * 0.9 ** (32 - replaced) * gone
        gone *= (99 - replaced) / (199 - replaced)  # the next row is a light one too
    base = SetSampler(weighted([1.0] * 40 + [100.0] + [1.0] * 59, base=40), [], size=32, where="part == 'a'")
    mixed = Mixture(base, "part == 'b'", p=0.1, weights="w")
    heavy = int((mixed.block(0, 4000).indices[:, 1] == 80).any(axis=1).sum())
    assert 1 - missed == pytest.approx(0.81, abs=0.01)
    assert binomtest(heavy, 4000, 1 - missed).pvalue > 1e-4
    reach = mixed.reach()
    assert reach.estimated
    assert reach.chance([80])[0] == pytest.approx(1 - missed, abs=0.01)


def test_mixtures_over_one_another_are_independent():
    table = concat([FactorTable([HUE], {"hue": np.arange(6) % 3}) for _ in range(4)])

    def nested(inner, **options):
        second = Mixture(inner, "part == 'c'", p=0.5, **options)
        return second, Mixture(second, "part == 'd'", p=0.5, **options)

    base = base_of(table, inactive=[], sets=2, size=3)
    for options in ({}, {"stream": "photos"}):
        two, three = nested(Mixture(base, "part == 'b'", p=0.5, **options), **options)
        for mixed, chances in ((two, [0.25, 0.25, 0.5]), (three, [0.125, 0.125, 0.25, 0.5])):
            parts = mixed.block(0, 4000).indices[:, 1, :2] // 6
            pairs = Counter(map(tuple, parts.tolist()))
            cells = list(itertools.product(range(len(chances)), repeat=2))
            expected = [4000 * chances[one] * chances[other] for one, other in cells]
            assert chisquare([pairs[cell] for cell in cells], expected).pvalue > 1e-4
            reach = mixed.reach().chance(np.arange(6 * len(chances)))
            wanted = np.repeat([chance * 3 / 6 for chance in chances], 6)
            wanted[:6] = 1 - (1 - 3 / 6) * (1 - chances[0] * 3 / 6)  # set 0 is not mixed
            assert reach == pytest.approx(wanted)
    zipped = Mixture(Zip(base, Mixture(base, "part == 'b'", p=0.5)), "part == 'c'", [3], p=0.5)
    parts = Counter((zipped.block(0, 4000).indices[:, 3] // 6).ravel().tolist())
    assert chisquare([parts[0], parts[1], parts[2]], [3000, 3000, 6000]).pvalue > 1e-4


def test_a_mixture_of_mixtures_is_plain_data():
    table = concat([FactorTable([HUE], {"hue": np.arange(6) % 3}) for _ in range(3)])
    mixed = Mixture(Mixture(base_of(table, inactive=[], size=3), "part == 'b'", p=0.5), "part == 'c'", p=0.5)
    again = from_dict(json.loads(json.dumps(mixed.to_dict())), table)
    assert again.to_dict() == mixed.to_dict()
    assert np.array_equal(again.block(0, 40).indices, mixed.block(0, 40).indices)


# base sets of the rows 0, 1, 2 of weights 1, 2, 3: options, and each set's rows with their chance
ORDERS = successive([1, 2, 3], 2)
BASES = {
    "weights": (dict(size=2, sets=1, weights="w"), {(rows,): chance for rows, chance in ORDERS.items()}),
    "equal": (dict(size=1, values="equal", weights="w"), {((a,), (b,)): chance for (a, b), chance in ORDERS.items()}),
    "equal sizes": (
        dict(size=[1, 2], values="equal"),
        {((a,), (b, c)): 1 / 6 for a, b, c in itertools.permutations(range(3))},
    ),
    "equal short": (
        dict(size=[1, 4], values="equal", on_small_group="short"),
        {((a,), (b, c)): 1 / 6 for a, b, c in itertools.permutations(range(3))},
    ),
    "equal replace": (
        dict(size=2, values="equal", on_small_group="replace", weights="w"),
        {
            ((a, b), (c, d)): (1 + a) * (1 + b) * (1 + c) * (1 + d) / 6**4
            for a, b, c, d in itertools.product(range(3), repeat=4)
        },
    ),
    "replace": (
        dict(size=4, sets=1, on_small_group="replace"),
        {(rows,): 3.0**-4 for rows in itertools.product(range(3), repeat=4)},
    ),
}


@pytest.mark.long("enumeration")
@pytest.mark.parametrize("p", [0.3, 1.0])
@pytest.mark.parametrize("name", BASES)
def test_chances_of_rows_are_those_of_an_enumeration(name, p):
    options, law = BASES[name]
    table = concat(
        [
            FactorTable([Factor("w", Kind.CONTINUOUS)], {"w": np.array(weights, dtype=np.float32)})
            for weights in ([1, 2, 3], [1, 5, 2, 7])
        ]
    )
    base = SetSampler(table, [], **{"where": "part == 'a'", **options})
    mixed = base.sets - 1
    for weights in ([1, 1, 1, 1], [1, 5, 2, 7]):
        wanted = np.zeros(7)
        for sets, chance in law.items():
            others = [row for number, rows in enumerate(sets) if number != mixed for row in rows]
            for rows, replaced in of_a_set(weights, len(sets[mixed]), p, first=3).items():
                own = [old if new < 0 else new for old, new in zip(sets[mixed], rows, strict=True)]
                wanted[sorted({*others, *own})] += chance * replaced
        reach = Mixture(base, "part == 'b'", [mixed], p, weights=None if weights[1] == 1 else "w").reach()
        exact = weights[1] == 1 or len(next(iter(law))[mixed]) <= 2 or p == 1
        assert reach.estimated == (not exact)
        assert reach.chance(range(7)) == pytest.approx(wanted, abs=1e-9 if exact else 0.02)


def test_copies_of_a_row_are_lost_one_by_one():
    """A row of a batch with three copies of each is there until all of them are replaced."""
    table = weighted(np.ones(9), base=4)
    base = EpochSampler(table, size=6, repeats=3, where="part == 'a'")
    mixed = Mixture(base, "part == 'b'", [0], p=0.5)
    assert mixed.reach().chance([0, 4]) == pytest.approx([0.5 * (1 - 0.5**3), 0.5 * 6 / 9])


def test_sets_that_are_mixed_twice_and_once():
    """Four rows with repeats in each of two independent sets, of which the second is mixed twice."""
    table = concat([FactorTable([HUE], {"hue": np.arange(count) % 3}) for count in (2, 4, 4)])
    base = SetSampler(table, [], size=3, on_small_group="replace", where="part == 'a'")
    mixed = Mixture(Mixture(base, "part == 'b'", [0, 1], p=0.5), "part == 'c'", [1], p=0.2)
    missed = (1 - 0.5 / 2) ** 3 * (1 - 0.5 * 0.8 / 2) ** 3
    assert mixed.reach().chance([0, 1]) == pytest.approx([1 - missed] * 2)


def test_a_schedule_counts_at_its_step_in_a_weighted_pool():
    pool = [1.0, 3, 5]
    base = SetSampler(weighted(pool), [], size=2, where="part == 'a'")
    mixed = Mixture(base, "part == 'b'", p={0: 0, 5: 0.25, 9: 1}, weights="w")
    for step, p in ((0, 0), (6, 0.25), (20, 1)):
        law = of_a_set(pool, 2, p, first=4)
        wanted = [sum(chance for rows, chance in law.items() if row in rows) for row in range(4, 7)]
        reach = mixed.reach(step)
        assert reach.chance([4, 5, 6]) == pytest.approx(wanted, abs=1e-9)
        assert not reach.estimated


def test_only_the_mixed_sets_of_a_report_count_the_pool():
    table = both()
    base = SetSampler(table, [[], []], size=2, where=["part == 'a'", "part == 'a' and hue == 'red'"])
    entries = Mixture(base, "part == 'b'", [1], p=0.5).report().entries
    assert [(entry.sets, entry.excluded) for entry in entries] == [([0], 9), ([1], 8)]
    assert all(
        entry.excluded == 9 for entry in Mixture(base_of(table), "part == 'b'", p=Stepwise(0, 5, 2)).report().entries
    )


def test_sets_of_one_group_by_weight_say_that_their_chance_is_an_approximation():
    """Two sets of two rows are four rows by weight, of which no exact chance is counted."""
    weights = [1.0, 2, 3, 4, 10]
    reach = SetSampler(weighted(weights, base=1), [], size=2, values="equal", weights="w", where="part == 'b'").reach()
    law = successive(weights, 4)
    wanted = [sum(chance for rows, chance in law.items() if row in rows) for row in range(5)]
    assert reach.estimated
    assert reach.chance(range(1, 6)) == pytest.approx(wanted, abs=0.04)
    pairs = SetSampler(weighted(weights, base=1), [], size=1, values="equal", weights="w", where="part == 'b'").reach()
    law = successive(weights, 2)
    wanted = [sum(chance for rows, chance in law.items() if row in rows) for row in range(5)]
    assert not pairs.estimated
    assert pairs.chance(range(1, 6)) == pytest.approx(wanted)
