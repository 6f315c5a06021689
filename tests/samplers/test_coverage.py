"""Chances of rows and groups beside how often draws have them, and the reasons why some are never drawn."""

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest

from setsup.errors import RowError, SamplerError, SetsupError
from setsup.factors import Factor, FactorTable, Kind, concat
from setsup.samplers import (
    DomainSampler,
    EpisodeSampler,
    EpochSampler,
    FactorPairSampler,
    HierarchicalSampler,
    Mixture,
    NeighbourSampler,
    OrbitSampler,
    OverlapSampler,
    Sampler,
    SequencePairSampler,
    SetSampler,
    Stepwise,
    TripletSampler,
    Zip,
)
from setsup.samplers.groups.reach_chances import inclusion
from tests.samplers.overlap_distributions import table_of

SEEDS = 1500


def factor(name, levels, **options):
    return Factor(name, Kind.NOMINAL, tuple(range(levels)), **options)


def ragged():
    """Groups of 1 to 7 rows by a; c varies, x is measured, w are weights; some values are unknown."""
    a = np.repeat([0, 1, 2, 3, -1], [1, 3, 5, 7, 2])
    row = np.arange(len(a))
    columns = {
        "a": a,
        "b": np.where(row == 9, -1, row % 2),
        "c": (row * row + row // 4) % 3,
        "x": np.where(row == 4, np.nan, row % 7 + 0.25 * (row % 2)).astype(np.float32),
        "w": (1 + row % 3).astype(np.float32),
    }
    factors = [
        factor("a", 4),
        factor("b", 2),
        factor("c", 3),
        Factor("x", Kind.CONTINUOUS),
        Factor("w", Kind.CONTINUOUS),
    ]
    return FactorTable(factors, columns)


RAGGED = ragged()
GRID = FactorTable([factor("a", 3), factor("b", 2), factor("c", 4)])


def seen(make, step=0, seeds=SEEDS):
    """Share of seeds whose draw of a step has each row, and each set's group if there is one."""
    counts = None
    for seed in range(seeds):
        sampler = make(seed)
        draw = sampler[step]
        if counts is None:
            counts = np.zeros(len(sampler.table))
        counts[np.unique(draw.indices if draw.mask is None else draw.indices[draw.mask])] += 1
    return counts / seeds


def seen_over(sampler, steps=8_000, start=0):
    """Share of steps whose draw has each row, for samplers whose steps are independent."""
    counts = np.zeros(len(sampler.table))
    draw = sampler.block(start, start + steps)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    for row in range(len(counts)):
        counts[row] = ((draw.indices == row) & mask).any(axis=(1, 2)).sum()
    return counts / steps


def check(chance, share, trials, slack=0.0):
    """Chances are what was seen, within five standard errors; what is never seen has none."""
    error = np.sqrt(np.maximum(chance * (1 - chance), 1e-12) / trials)
    np.testing.assert_array_less(np.abs(share - chance), 5 * error + slack + 1e-9)
    assert not share[chance == 0].any()
    assert (share[chance > 0] > 0).all()


SETS = {
    "one list": dict(inactive=["a"], size=2, sets=1, on_small_group="drop"),
    "two sets": dict(inactive=["a"], size=2, sets=2, on_small_group="drop"),
    "nothing fixed": dict(inactive=[], size=3, sets=2),
    "lists": dict(inactive=[["a"], []], size=2, sets=2, on_small_group="drop"),
    "short": dict(inactive=["a"], size=4, sets=1, on_small_group="short"),
    "replace": dict(inactive=["a"], size=4, sets=2, on_small_group="replace"),
    "rows": dict(inactive=["a"], size=2, sets=1, on_small_group="drop", choose="rows"),
    "levels": dict(inactive=["a", "b"], size=1, sets=1),
    "equal": dict(inactive=["a"], size=2, sets=2, values="equal", on_small_group="drop"),
    "equal short": dict(inactive=["a"], size=2, sets=3, values="equal", on_small_group="short"),
    "equal replace": dict(inactive=["a"], size=2, sets=2, values="equal", on_small_group="replace"),
    "different": dict(inactive=["a"], size=2, sets=2, values="different", on_small_group="drop"),
    "different rows": dict(inactive=["a"], size=2, sets=2, values="different", on_small_group="drop", choose="rows"),
    "sizes": dict(inactive=["a"], size=[1, 3], sets=2, on_small_group="drop"),
    "sizes equal": dict(inactive=["a"], size=[1, 3], sets=2, values="equal", on_small_group="drop"),
    "num_fixed": dict(inactive=["a", "b"], num_fixed=1, size=1, sets=2),
    "where": dict(inactive=["a"], size=2, sets=1, on_small_group="drop", where="c != 1"),
    "where by set": dict(inactive=["a"], size=1, sets=2, where=["c != 1", None]),
    "tolerance": dict(inactive=["a", "x"], tolerance={"x": 1.5}, size=2, sets=1, on_small_group="drop"),
    "tolerance short": dict(inactive=["a", "x"], tolerance={"x": 1.5}, size=4, sets=2, on_small_group="short"),
    "tolerance replace": dict(inactive=["x"], tolerance={"x": 0.5}, size=4, sets=1, on_small_group="replace"),
    "tolerance equal": dict(
        inactive=["x"], tolerance={"x": 1.5}, size=2, sets=2, values="equal", on_small_group="drop"
    ),
    "weights 1": dict(inactive=["a"], size=1, sets=1, weights="w"),
    "weights 2": dict(inactive=["a"], size=2, sets=2, weights="w", on_small_group="drop", choose="rows"),
    "weights replace": dict(inactive=["a"], size=4, sets=1, weights="w", on_small_group="replace"),
    "schedule before": dict(inactive=["a"], size={0: 1, 50: 3}, sets=1, on_small_group="drop"),
}


@pytest.mark.parametrize("name", SETS)
def test_set_sampler(name):
    sampler = SetSampler(RAGGED, **SETS[name])
    reach = sampler.reach()
    assert reach.estimated == (name in ("different rows", "weights replace"))
    steps = 50 if name == "schedule before" else 8_000
    share = (
        seen_over(sampler, 8_000) if steps == 8_000 else seen(lambda seed: SetSampler(RAGGED, **SETS[name], seed=seed))
    )
    check(reach.chance(range(len(RAGGED))), share, SEEDS if steps == 50 else steps, 0.02 * reach.estimated)


def test_a_schedule_counts_at_its_step():
    sampler = SetSampler(RAGGED, ["a"], size={0: 1, 50: 3}, sets=1, on_small_group="drop")
    check(sampler.reach(step=50).chance(range(len(RAGGED))), seen_over(sampler, 8_000, 50), 8_000)
    counted = SetSampler(RAGGED, ["a", "c"], num_fixed={0: 1, 50: 2}, size=1, sets=1, on_small_group="drop")
    check(counted.reach(step=60).chance(range(len(RAGGED))), seen_over(counted, 8_000, 60), 8_000)


def test_grids_and_columns_have_the_same_chances():
    spelled = FactorTable(GRID.factors, {name: GRID.column(name) for name in GRID.names})
    for inactive in (["a"], ["b", "c"], []):
        one, other = (SetSampler(table, inactive, size=2, sets=2).reach() for table in (GRID, spelled))
        np.testing.assert_allclose(one.chance(range(24)), other.chance(range(24)))
        check(one.chance(range(24)), seen_over(SetSampler(GRID, inactive, size=2, sets=2)), 8_000)


def test_chances_of_groups_are_how_often_they_come():
    for options in (dict(sets=1), dict(sets=3), dict(sets=2, values="different"), dict(sets=2, values="equal")):
        sampler = SetSampler(RAGGED, ["a"], size=1, choose="groups", on_small_group="drop", **options)
        (groups,) = sampler.reach().groups
        codes = sampler.block(0, 8_000).inactive["a"]
        share = np.array([(codes == level).any(axis=1).mean() for level in range(4)])
        check(groups.chance, share, 8_000)


def test_approximate_chances_of_weighted_sets_are_close():
    sampler = SetSampler(RAGGED, ["a"], size=3, sets=1, weights="w", on_small_group="drop")
    reach = sampler.reach()
    assert reach.estimated
    check(reach.chance(range(len(RAGGED))), seen_over(sampler), 8_000, slack=0.02)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_inclusion_by_enumeration(size):
    shares = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    exact = np.zeros(5)
    for order in itertools.permutations(range(5), size):
        chance, left = 1.0, 1.0
        for row in order:
            chance *= shares[row] / left
            left -= shares[row]
        exact[list(order)] += chance
    np.testing.assert_allclose(inclusion(shares, size), exact)


TABLE = RAGGED
NEAR = np.stack([(np.arange(18) + step) % 18 for step in (1, 17, 2, 5, 9)], axis=-1)
VIEWS = table_of(TABLE, (8, 7), seed=1, by="b", zero=0.3)
OTHERS = {
    "domains": lambda seed: DomainSampler(TABLE, "a", sets=2, size=2, on_small_group="drop", seed=seed),
    "domains short": lambda seed: DomainSampler(TABLE, "a", sets=3, size=4, on_small_group="short", seed=seed),
    "domains replace": lambda seed: DomainSampler(TABLE, "a", sets=3, size=4, on_small_group="replace", seed=seed),
    "domains sizes": lambda seed: DomainSampler(
        TABLE, "a", sets=2, size={0: 2, 9: 3}, on_small_group="drop", seed=seed
    ),
    "domains weights": lambda seed: DomainSampler(
        TABLE, "a", sets=2, size=2, on_small_group="drop", weights="w", seed=seed
    ),
    "domains independent": lambda seed: DomainSampler(
        TABLE, "a", sets=2, size=2, on_small_group="drop", domains="independent", seed=seed
    ),
    "orbits": lambda seed: OrbitSampler(TABLE, "a", sets=2, size=2, on_small_group="drop", seed=seed),
    "orbits whole": lambda seed: OrbitSampler(TABLE, "a", sets=2, seed=seed),
    "orbits again": lambda seed: OrbitSampler(
        TABLE, "a", sets=2, size=3, on_small_group="short", values="independent", seed=seed
    ),
    "orbits canonical": lambda seed: OrbitSampler(
        TABLE, "a", sets=1, size=1, on_small_group="drop", canonical="c == 2", seed=seed
    ),
    "triplets": lambda seed: TripletSampler(TABLE, "a", 2, on_small_group="drop", seed=seed),
    "triplets by groups": lambda seed: TripletSampler(TABLE, "a", 1, on_small_group="drop", choose="groups", seed=seed),
    "triplets by weight": lambda seed: TripletSampler(TABLE, "a", 2, on_small_group="drop", weights="w", seed=seed),
    "hierarchy": lambda seed: HierarchicalSampler(TABLE, ["a", "b"], [2, 2], size=2, on_small_group="drop", seed=seed),
    "episodes": lambda seed: EpisodeSampler(TABLE, "a", ways=2, shots=1, queries=2, on_small_group="drop", seed=seed),
    "episodes within": lambda seed: EpisodeSampler(
        TABLE, "c", ways=2, shots=1, queries=1, within="a", on_small_group="drop", seed=seed
    ),
    "episodes across": lambda seed: EpisodeSampler(
        TABLE, "c", ways=2, shots=1, queries=2, across="b", on_small_group="drop", seed=seed
    ),
    "sequences": lambda seed: SequencePairSampler(TABLE, "a", "x", window=1.5, pairs=2, seed=seed),
    "sequences by weight": lambda seed: SequencePairSampler(
        TABLE, "a", "x", window=3.5, pairs=2, weights="w", where="c != 1", seed=seed
    ),
    "neighbours": lambda seed: NeighbourSampler(TABLE, NEAR, sets=2, where="c != 1", seed=seed),
    "neighbours that share": lambda seed: NeighbourSampler(
        TABLE, NEAR, positive="a == anchor.a", sets=2, ranks=(2, 5), seed=seed
    ),
    "neighbours either": lambda seed: NeighbourSampler(
        TABLE, NEAR, positive="c == anchor.c", negative="b == anchor.b", sets=1, seed=seed
    ),
    "neighbours by weight": lambda seed: NeighbourSampler(
        TABLE, NEAR, positive="c == anchor.c", negative="b == anchor.b", sets=2, weights="w", where="c != 1", seed=seed
    ),
    "views": lambda seed: OverlapSampler(TABLE, VIEWS, overlap=(0.2, 0.9), sets=2, where="c != 1", seed=seed),
    "stars of views": lambda seed: OverlapSampler(
        TABLE, VIEWS, overlap=(0.2, 0.9), size=3, form="star", sets=2, choose="scenes", seed=seed
    ),
    "cliques of views by weight": lambda seed: OverlapSampler(
        TABLE, VIEWS, overlap=(0, 1), size=3, form="clique", direction="either", sets=1, weights="w", seed=seed
    ),
    "chains of views with negatives": lambda seed: OverlapSampler(
        TABLE, VIEWS, overlap=(0.2, 0.9), size=3, sets=1, negatives=3, seed=seed
    ),
    "pairs by step": lambda seed: FactorPairSampler(GRID, 2, k={0: 1, 2**40: 2}, seed=seed),
    "pairs": lambda seed: FactorPairSampler(GRID, 2, seed=seed),
    "pairs again": lambda seed: FactorPairSampler(GRID, 2, k=1, must_differ=False, seed=seed),
    "pairs ranked": lambda seed: FactorPairSampler(
        FactorTable([Factor("r", Kind.ORDINAL, (1, 2, 3))], {"r": np.array([0, 1, -1, 2, 2])}), 2, rank=["r"], seed=seed
    ),
    "pairs ranked by weight": lambda seed: FactorPairSampler(
        FactorTable([Factor("r", Kind.ORDINAL, (1, 2, 3))], {"r": np.array([0, 1, -1, 2, 2])}),
        2,
        rank=["r"],
        weights=[3, 2, 9, 1, 0],
        seed=seed,
    ),
    "epochs by weight": lambda seed: EpochSampler(TABLE, size=2, weights="w", seed=seed),
    "zip": lambda seed: Zip(
        SetSampler(TABLE, ["a"], size=2, sets=1, on_small_group="drop", seed=seed),
        SetSampler(TABLE, [], size=2, sets=1),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_samplers(name):
    sampler = OTHERS[name](0)
    reach = sampler.reach()
    assert not reach.estimated
    rows = range(len(sampler.table))
    if "domains" in name and "independent" not in name:  # steps of a round depend on each other
        check(reach.chance(rows), seen(OTHERS[name], step=5, seeds=700), 700)
    else:
        check(reach.chance(rows), seen_over(sampler), 8_000)
    for groups in reach.groups:
        members = groups.groups.of_rows()
        seen_groups = np.unique(members[np.flatnonzero(reach.chance(rows) > 0)])
        assert set(seen_groups[seen_groups >= 0]) <= set(np.flatnonzero(groups.drawable)) or "zip" in name
    assert str(reach).startswith(reach.title)
    assert reach.to_dict()["title"] == reach.title


@pytest.mark.parametrize(
    "options", [{"shuffle": False}, {}, {"partial": "pad"}, {"shuffle": False, "partial": "pad"}, {"where": "c != 0"}]
)
def test_chances_of_epochs_are_over_their_steps(options):
    sampler = EpochSampler(RAGGED, size=4, seed=1, **options)
    chance = sampler.reach().chance(range(len(RAGGED)))
    check(chance, seen_over(sampler, sampler.steps_per_epoch * 4000), 16_000)


def test_mixtures():
    both = concat([RAGGED.without(["x"]), RAGGED.without(["x"])])
    for sets, where in (([1], ["part == 'a'", "part == 'a'"]), ([0, 1], "part == 'a'")):
        inactive = [["a"], []] if sets == [1] else []
        base = SetSampler(both, inactive, size=2, sets=2, on_small_group="drop", where=where)
        for weights in (None, "w"):
            mixed = Mixture(base, "part == 'b'", sets, p=Stepwise(0.5, every=10, levels=3), weights=weights)
            for step, p in ((0, 0), (10, 0.25), (25, 0.5)):
                reach = mixed.reach(step)
                assert not reach.estimated
                stop = 10 * 2**40
                if p == 0:
                    assert (reach.chance(range(18, 36)) == 0).all()
                    assert reach.row(20).reasons[-1].option.startswith("raise p=")
                elif p == 0.5:
                    check(reach.chance(range(36)), seen_over(mixed, 8_000, stop), 8_000)
    equal = SetSampler(both, [], size=2, sets=2, values="equal", where="part == 'a'")
    mixed = Mixture(equal, "part == 'b'", [1], p=0.3)
    check(mixed.reach().chance(range(36)), seen_over(mixed), 8_000)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OrbitSampler(RAGGED, "a", sets=2, size=2, members="c != anchor.c", on_small_group="drop"),
        lambda: TripletSampler(RAGGED, positive="a == anchor.a and b != anchor.b", negative="a != anchor.a"),
        lambda: TripletSampler(
            RAGGED, positive="a == anchor.a", negative="a != anchor.a", weights=np.arange(len(RAGGED)) % 3
        ),
        lambda: FactorPairSampler(RAGGED, k=1, among=["b"]),
        lambda: FactorPairSampler(RAGGED, k=1, among=["c"], weights=np.arange(len(RAGGED)) % 4),
        lambda: NeighbourSampler(
            RAGGED, NEAR, positive="a == anchor.a", negative="c == anchor.c", ranks={"negative": (1, 3)}
        ),
    ],
)
def test_where_chances_are_not_counted_rows_never_drawn_are(make):
    sampler = make()
    reach = sampler.reach()
    chance, share = reach.chance(range(len(RAGGED))), seen_over(sampler, 4000)
    np.testing.assert_array_equal(np.isnan(chance), share > 0)
    never = int(np.flatnonzero(share == 0)[0])
    found = reach.row(never)
    assert found.wait == math.inf
    assert found.reasons
    assert math.isnan(reach.row(int(np.argmax(share))).wait)
    assert any("not computed" in note for note in reach.notes)


def test_pairs_count_at_the_step():
    by_step = FactorPairSampler(GRID, 2, k={0: 1, 7: 2})
    for step, k in ((0, 1), (6, 1), (7, 2)):
        fixed = FactorPairSampler(GRID, 2, k=k).reach()
        assert by_step.reach(step).to_dict() == fixed.to_dict()


def test_a_step_without_a_neighbour_table_cannot_be_reached():
    with pytest.raises(SamplerError, match="step 4 has no neighbour table"):
        NeighbourSampler(TABLE, {5: NEAR}).reach(4)


def test_reasons_and_options():
    reach = SetSampler(RAGGED, ["a"], size=2, sets=1, on_small_group="drop", where="c != 1").reach()
    (groups,) = reach.groups
    ((reason, numbers),) = groups.never()
    assert numbers.tolist() == [0, 1]
    assert "fewer than the 2 rows" in reason.text
    assert "on_small_group='short'" in reason.option
    assert reach.row(0).reasons == (reason,)
    assert "unknown" in reach.row(17).reasons[0].text
    out = int(np.flatnonzero(RAGGED.mask("c == 1 and a == 3"))[0])
    assert "where=" in reach.row(out).reasons[0].text
    assert reach.row(5).reasons == ()
    assert reach.row(5).wait == pytest.approx(1 / reach.row(5).chance)
    near = SetSampler(RAGGED, ["x"], tolerance={"x": 0.01}, size=2, sets=1, on_small_group="drop").reach()
    assert "tolerance" in str(near)
    assert "unknown" in near.row(4).reasons[0].text
    few = HierarchicalSampler(RAGGED, ["a", "b"], [1, 2], size=2, on_small_group="drop").reach()
    assert {reason.option for reason, _ in few.groups[0].never()} == {"lower size", "lower sets"}
    lost = OrbitSampler(RAGGED, "a", sets=1, size=1, canonical="x > 5", on_small_group="drop").reach()
    assert "it has no canonical row" in str(lost)


def test_a_row_that_is_never_drawn_says_what_would_reach_it():
    for on_small_group in ("short", "replace"):
        reach = SetSampler(RAGGED, ["a"], size=2, sets=1, on_small_group=on_small_group).reach()
        assert reach.row(0).chance > 0
    assert reach.groups[0].never() == []


def test_a_sampler_of_ones_own_says_that_it_does_not_say():
    class _Own(Sampler):
        def __init__(self, table):
            self.table, self.arguments = table, {}

        def draws(self, steps):
            return SetSampler(self.table, [], size=1, sets=1).draws(steps)

    reach = _Own(RAGGED).reach()
    assert np.isnan(reach.chance([0, 1])).all()
    assert "does not say" in str(reach)
    assert math.isnan(reach.row(0).chance)
    assert Zip(SetSampler(RAGGED, [], size=1, sets=1)).reach().chance([3])[0] == pytest.approx(1 / 18)


def test_plain_data_is_json():
    import json

    for make in OTHERS.values():
        json.dumps(make(0).reach().to_dict())
    found = SetSampler(RAGGED, ["a"], size=2, sets=1, on_small_group="drop").reach().to_dict()
    assert found["groups"][0]["never"][0]["first"] == ["a = 0"]
    assert isinstance(found, Mapping)


@pytest.mark.parametrize("name", ["domains", "episodes", "hierarchy"])
def test_chances_of_groups_that_are_exact_are_not_said_to_be_about(name):
    reach = OTHERS[name](0).reach()
    assert "  chance of each in a step: " in str(reach)
    assert "about" not in str(reach)
    assert [part["estimated"] for part in reach.to_dict()["groups"]] == [False]


def test_rows_out_of_range_are_refused():
    reach = SetSampler(RAGGED, ["a"], size=1, sets=1).reach()
    for row in (18, -1):
        with pytest.raises(RowError):
            reach.row(row)
    with pytest.raises(RowError):
        SetSampler(RAGGED, ["a"], size=1, sets=1).reach(step=-1)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("step", [-1, 2**63, 1.5, "first"])
def test_every_sampler_refuses_the_reach_of_a_step_that_is_none(name, step):
    with pytest.raises(SetsupError, match=r"^[^\n]*step[^\n]*$"):
        OTHERS[name](0).reach(step=step)


@pytest.mark.parametrize("name", [*OTHERS, "sets"])
def test_when_is_found_step_by_step(name):
    sampler = SetSampler(RAGGED, ["a"], size=3, sets=2, on_small_group="short") if name == "sets" else OTHERS[name](0)
    for start, stop in ((0, 40), (2**62, 2**62 + 30)):
        expected = []
        for step in range(start, stop):
            draw = sampler[step]
            rows = draw.indices if draw.mask is None else draw.indices[draw.mask]
            expected += [step] * (3 in rows)
        assert sampler.when(3, start, stop).tolist() == expected


def test_when_goes_by_blocks_and_ends_with_a_finite_sampler(monkeypatch):
    import setsup.samplers.iteration as module

    sampler = EpochSampler(RAGGED, size=4, epochs=5, partial="pad")
    whole = sampler.when(7, 0, len(sampler))
    assert len(whole) == 5
    monkeypatch.setattr(module, "_SEARCHED", 9)
    np.testing.assert_array_equal(sampler.when(7, 0, len(sampler)), whole)
    with pytest.raises(RowError, match="out of range"):
        sampler.when(7, 0, len(sampler) + 1)
    with pytest.raises(RowError, match="the number of a row"):
        sampler.when(18, 0, 2)
    with pytest.raises(RowError, match="start < stop"):
        sampler.when(1, 2, 2)


def test_when_of_the_ranks_is_that_of_all_draws():
    sampler = EpochSampler(RAGGED, size=4, epochs=5, partial="pad")
    for world in (2, 3, 7):
        shares = [sampler.shard(rank, world) for rank in range(world)]
        # each rank has as many draws, the last of which only pad
        found = [share.when(7, 0, len(share)) * world + rank for rank, share in enumerate(shares)]
        np.testing.assert_array_equal(np.sort(np.concatenate(found)), sampler.when(7, 0, len(sampler)))
    with pytest.raises(RowError, match="the number of a row"):
        shares[0].when(18, 0, 2)
