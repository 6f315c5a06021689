"""What all samplers promise: a draw is a function of arguments and step, however the step is reached."""

import copy
import json
import multiprocessing
import pickle

import numpy as np
import pytest

from setsup.errors import EndlessError, RowError, SamplerError, SetsupError
from setsup.factors import Factor, FactorTable, Kind, concat
from setsup.samplers import (
    DomainSampler,
    Draw,
    EpisodeSampler,
    EpochSampler,
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
    from_dict,
)
from tests.samplers.overlap_distributions import table_of


def columns():
    """Ragged groups, unknown values, an angle, weights: 300 rows."""
    random = np.random.default_rng(3)
    factors = [
        Factor("kind", Kind.NOMINAL, ("chair", "car", "plane", "lamp")),
        Factor("item", Kind.NOMINAL, tuple(range(12)), within="kind"),
        Factor("light", Kind.ORDINAL, (0.1, 0.5, 1.0)),
        Factor("yaw", Kind.CONTINUOUS, unit="deg", period=360.0),
        Factor("weight", Kind.CONTINUOUS),
    ]
    item = random.choice(12, 300, p=np.arange(1, 13) / 78)
    return FactorTable(
        factors,
        {
            "kind": item % 4,
            "item": np.where(random.random(300) < 0.05, -1, item),
            "light": random.integers(-1, 3, 300),
            "yaw": np.where(random.random(300) < 0.05, np.nan, random.uniform(0, 360, 300)),
            "weight": random.integers(0, 5, 300),
        },
    )


GRID = FactorTable(
    [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip("abc", (4, 6, 9), strict=True)]
)
COLUMNS = columns()
LARGE = FactorTable([Factor("d", Kind.NOMINAL, (0, 1, 2)), Factor("row", Kind.ORDINAL, tuple(range(5000)))])
BOTH = concat([GRID, COLUMNS])


def near(shift=0):
    """Nine neighbours of each row of the columns, by their distance in a line."""
    row = np.arange(300)[:, None]
    return (row + shift + np.array([1, -1, 2, -2, 3, -3, 4, -4, 5])) % 300


OVERLAPS = table_of(COLUMNS, (40, 30, 20, 10), by="kind", zero=0.1)


def mixture(**options):
    base = SetSampler(BOTH, inactive=[["a"], []], size=6, where="part == 'a'")
    return Mixture(base, "part == 'b'", **{"p": 0.3, **options})


SAMPLERS = {
    "sets of a grid": lambda: SetSampler(GRID, inactive=["b"], size=5, sets=3),
    "crowded sets": lambda: SetSampler(GRID, inactive=["a", "c"], size=5),
    "active": lambda: SetSampler(GRID, active=["b"], size=4),
    "equal values": lambda: SetSampler(GRID, inactive=["b", "a"], size=4, values="equal"),
    "different values": lambda: SetSampler(GRID, inactive=["b", "a"], size=4, values="different"),
    "sets of columns": lambda: SetSampler(COLUMNS, inactive=["light"], size=6, choose="rows"),
    "nested, dropped": lambda: SetSampler(COLUMNS, inactive=["item"], size=20, on_small_group="drop", choose="groups"),
    "short sets": lambda: SetSampler(COLUMNS, inactive=["item", "light"], size=8, on_small_group="short"),
    "short equal sets": lambda: SetSampler(COLUMNS, inactive=["item"], size=9, on_small_group="short", values="equal"),
    "replaced sets": lambda: SetSampler(COLUMNS, inactive=["item", "light"], size=8, on_small_group="replace"),
    "one list a set": lambda: SetSampler(COLUMNS, inactive=[["light"], ["kind"], []], size=6, sets=3),
    "unconstrained": lambda: SetSampler(COLUMNS, inactive=["light"], unconstrained=1, size=6),
    "random factors": lambda: SetSampler(GRID, inactive=["a", "b", "c"], num_fixed=1, size=6, unconstrained=1),
    "tolerance": lambda: SetSampler(
        COLUMNS, inactive=["kind", "yaw"], tolerance={"yaw": 40.0}, size=4, on_small_group="drop"
    ),
    "short tolerance": lambda: SetSampler(
        COLUMNS, inactive=["yaw"], tolerance={"yaw": 3.0}, size=9, on_small_group="short"
    ),
    "weights": lambda: SetSampler(COLUMNS, inactive=["kind"], weights="weight", size=6),
    "weight array": lambda: SetSampler(GRID, inactive=["a"], weights=np.arange(len(GRID)) % 7, size=6),
    "sets where": lambda: SetSampler(COLUMNS, inactive=["kind"], where="light >= 0.5", size=6, seed=2**64 - 1),
    "domains": lambda: DomainSampler(COLUMNS, "kind", sets=3, size=7),
    "large domains": lambda: DomainSampler(LARGE, "d", sets=2, size=7),
    "short domains": lambda: DomainSampler(COLUMNS, "item", sets=8, size=20, on_small_group="short"),
    "replaced domains": lambda: DomainSampler(COLUMNS, ["item"], sets=5, size=20, on_small_group="replace", seed=3),
    "independent domains": lambda: DomainSampler(COLUMNS, "item", 5, 20, domains="independent", on_small_group="short"),
    "all domains": lambda: DomainSampler(GRID, ("a", "b"), sets=50, size=4, domains="all"),
    "whole orbits": lambda: OrbitSampler(COLUMNS, "item", sets=3, canonical="argmin:yaw"),
    "some of orbits": lambda: OrbitSampler(COLUMNS, "item", 3, 4, canonical={"light": 0.5}, on_small_group="drop"),
    "independent orbits": lambda: OrbitSampler(GRID, ["b"], 3, 4, values="independent", choose="rows"),
    "short orbits": lambda: OrbitSampler(
        COLUMNS, "item", 3, 30, on_small_group="short", choose="levels", canonical="first"
    ),
    "triplets": lambda: TripletSampler(COLUMNS, "item", triplets=9),
    "triplets of a grid": lambda: TripletSampler(GRID, ["a", "b"], triplets=9, choose="levels"),
    "episodes": lambda: EpisodeSampler(COLUMNS, "item", 4, 1, 2, on_small_group="drop"),
    "episodes of many rows": lambda: EpisodeSampler(LARGE, "d", 2, 5, 9),
    "episodes of one kind": lambda: EpisodeSampler(COLUMNS, "item", 2, 1, 2, within="kind", on_small_group="drop"),
    "episodes across lights": lambda: EpisodeSampler(
        COLUMNS, "item", 3, 2, 3, across="light", on_small_group="drop", seed=3
    ),
    "pairs in time": lambda: SequencePairSampler(COLUMNS, "item", "weight", 2, 9, where="light >= 0.5"),
    "pairs of a grid": lambda: SequencePairSampler(GRID, ["a", "b"], "c", 3, 9),
    "neighbours": lambda: NeighbourSampler(COLUMNS, near(), sets=9),
    "hard triplets": lambda: NeighbourSampler(
        COLUMNS,
        {0: near(), 3: near(40)},
        "light != anchor.light",
        "item != anchor.item",
        9,
        ranks={"negative": (2, 7)},
    ),
    "pairs of views": lambda: OverlapSampler(COLUMNS, OVERLAPS, overlap=(0.3, 0.6), sets=9, choose="scenes"),
    "chains with negatives": lambda: OverlapSampler(
        COLUMNS, OVERLAPS, overlap=(0.1, 0.3), size=5, sets=9, negatives=80, choose="overlap", where="light > 0.2"
    ),
    "cliques by weight": lambda: OverlapSampler(
        COLUMNS, OVERLAPS, overlap=(0.2, 0.8), size=4, form="clique", direction="either", weights="weight"
    ),
    "constrained triplets": lambda: TripletSampler(
        COLUMNS, positive="item == anchor.item and light != anchor.light", negative="item != anchor.item"
    ),
    "orbits of an anchor": lambda: OrbitSampler(
        COLUMNS, "item", 3, 9, members="light != anchor.light", on_small_group="short", canonical="first"
    ),
    "passes": lambda: EpochSampler(COLUMNS, size=64),
    "large passes": lambda: EpochSampler(LARGE, size=200, where="d != 1"),
    "three passes": lambda: EpochSampler(COLUMNS, size=7, epochs=3, partial="pad"),
    "two passes": lambda: EpochSampler(GRID, size=5, epochs=2, where="c > 2"),
    "ordered pass": lambda: EpochSampler(GRID, size=3, epochs=1, shuffle=False, where="a != 0"),
    "copies in passes": lambda: EpochSampler(COLUMNS, size=8, epochs=2, partial="pad", repeats=4),
    "hierarchy": lambda: HierarchicalSampler(COLUMNS, ["kind", "item"], [2, 2], 3, on_small_group="drop"),
    "hierarchy of a grid": lambda: HierarchicalSampler(GRID, ["c", ["a", "b"]], [3, 4], 1),
    "mixture": mixture,
    "rising mixture": lambda: mixture(p=Stepwise(0.9, every=4, levels=5), seed=7, stream="photos"),
    "mixture of passes": lambda: Mixture(
        EpochSampler(BOTH, size=5, epochs=3, partial="pad", where="part == 'a'"), "part == 'b'", [0], 0.5
    ),
    "sizes of sets": lambda: SetSampler(COLUMNS, ["kind"], size=[3, {0: 2, 9: 5}], weights=[None, "weight"]),
    "scheduled sets": lambda: SetSampler(
        GRID, ["a", "b", "c"], num_fixed={0: 2, 7: 1}, size={0: 3, 20: 5}, on_small_group="short"
    ),
    "scheduled domains": lambda: DomainSampler(COLUMNS, "kind", sets=3, size={0: 4, 11: 7}, weights="weight"),
    "weighted passes": lambda: EpochSampler(COLUMNS, size=64, weights="weight", where=list(range(0, 300, 2))),
    "weighted triplets": lambda: TripletSampler(COLUMNS, "item", triplets=9, weights="weight", on_small_group="drop"),
    "zip": lambda: Zip(
        SetSampler(COLUMNS, inactive=["kind"], size=4),
        DomainSampler(COLUMNS, "item", sets=3, size=9, on_small_group="short"),
    ),
    "zip of a sampler with itself": lambda: Zip(mixture(), mixture(p=0.6), mixture()),
    "zip of passes": lambda: Zip(
        EpochSampler(COLUMNS, size=5, epochs=2), EpochSampler(COLUMNS, size=20, epochs=9, partial="pad")
    ),
}
FINITE = {"copies in passes", "three passes", "two passes", "ordered pass", "mixture of passes", "zip of passes"}

each = pytest.mark.parametrize("name", SAMPLERS)
FAR = 2**62


def parts(draw):
    """Arrays of a draw by name; dtypes and shapes are those that the design gives."""
    lead = draw.indices.shape[:-1]
    assert draw.indices.dtype == np.int64
    found = {"indices": draw.indices}
    for name, codes in draw.inactive.items():
        assert codes.dtype in (np.int64, np.float32)
        assert codes.shape == lead
        found["inactive " + name] = codes
    if draw.mask is not None:
        assert draw.mask.dtype == np.bool_
        assert draw.mask.shape == draw.indices.shape
        assert not draw.mask.all()
        found["mask"] = draw.mask
    if draw.canonical is not None:
        assert draw.canonical.dtype == np.int64
        assert draw.canonical.shape == lead
        found["canonical"] = draw.canonical
    return found


def assert_same(one, other):
    one, other = parts(one), parts(other)
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name, strict=True)


def assert_stacked(block, draws):
    """Whether a block is the single draws on top of each other; its mask counts all where a single one has none."""
    np.testing.assert_array_equal(block.indices, np.stack([draw.indices for draw in draws]), strict=True)
    assert list(block.inactive) == list(draws[0].inactive)
    for name, codes in block.inactive.items():
        np.testing.assert_array_equal(codes, np.stack([draw.inactive[name] for draw in draws]), strict=True)
    masks = [np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask for draw in draws]
    if block.mask is None:
        assert np.stack(masks).all()
    else:
        np.testing.assert_array_equal(block.mask, np.stack(masks), strict=True)
    assert (block.canonical is None) == (draws[0].canonical is None)
    if block.canonical is not None:
        np.testing.assert_array_equal(block.canonical, np.stack([draw.canonical for draw in draws]), strict=True)
    parts(block)


# -- one step, many steps ----------------------------------------------------------------------------------------------


@each
def test_a_block_is_its_single_draws_stacked(name):
    sampler = SAMPLERS[name]()
    for start in (0, 3, sampler.length - 20 if name in FINITE else FAR):
        singles = [sampler[step] for step in range(start, start + 20)]
        assert_stacked(sampler.block(start, start + 20), singles)
        assert_stacked(sampler.block(start + 5, start + 6), singles[5:6])
        assert_same(sampler.block(start, start + 20).at(7), singles[7])


@each
def test_steps_can_be_asked_in_any_order_and_again(name):
    one, other = SAMPLERS[name](), SAMPLERS[name]()
    for step in (17, 2, 11, 2, 0, 17):
        assert_same(one[step], other[step])
        other[step + 1]
    assert_same(one[np.int64(11)], one[11])
    assert_same(one[np.uint8(11)], one[11])


@each
def test_iteration_from_any_step(name):
    sampler = SAMPLERS[name]()
    singles = [sampler[step] for step in range(min(120, sampler.length or 120))]
    for start in (0, 5, 50):
        stream = sampler.iterate(start)
        stop = min(start + 70, len(singles))
        for step in range(start, stop):
            assert_same(next(stream), singles[step])
        if stop == sampler.length:
            assert next(stream, None) is None
            assert list(sampler.iterate(sampler.length)) == []
    assert_same(next(iter(sampler)), singles[0])


@each
def test_seeds_and_streams_change_the_draws(name):
    sampler = SAMPLERS[name]()
    if name == "ordered pass" or isinstance(sampler, Zip):  # a zip has the seeds and streams of its samplers
        return
    data = sampler.to_dict()
    stated = data["arguments"]
    for change in ({"seed": (stated["seed"] + 1) % 2**64}, {"stream": stated["stream"] + "'"}):
        other = from_dict({**data, "arguments": {**stated, **change}}, sampler.table)
        assert not np.array_equal(other.block(0, 12).indices, sampler.block(0, 12).indices)


def test_a_seed_and_a_step_are_not_added():
    draws = [
        SetSampler(GRID, inactive=["a"], size=20, seed=seed)[step].indices.tolist()
        for seed in range(5)
        for step in range(5)
    ]
    assert len({str(draw) for draw in draws}) == 25


# -- ranks -------------------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("world", [1, 2, 4])
def test_ranks_interleave_to_the_stream(name, world):
    sampler = SAMPLERS[name]()
    singles = [sampler[step] for step in range(min(27, sampler.length or 27))]
    for start in (0, 3):
        ranks = [iter(sampler.shard(rank, world, start)) for rank in range(world)]
        for step in range(start, min(start + 24, len(singles))):
            assert_same(next(ranks[(step - start) % world]), singles[step])
        shard = sampler.shard(world - 1, world, start)
        assert_same(shard[3], singles[start + 3 * world + world - 1])
        assert_stacked(shard.block(1, 4), [singles[start + i * world + world - 1] for i in (1, 2, 3)])


@each
def test_another_number_of_ranks_resumes_where_the_last_one_stopped(name):
    sampler = SAMPLERS[name]()
    delivered, step = [], 0
    for world, rounds in ((4, 2), (1, 3), (2, 3)):
        ranks = [sampler.shard(rank, world, step) for rank in range(world)]
        delivered += [ranks[rank][index] for index in range(rounds) for rank in range(world)]
        step += world * rounds
    assert step == 17
    for number, draw in enumerate(delivered):
        assert_same(draw, sampler[number])


@pytest.mark.parametrize("name", sorted(FINITE))
@pytest.mark.parametrize("world", [1, 2, 4, 7])
def test_all_ranks_of_a_finite_sampler_have_equally_many_draws(name, world):
    sampler = SAMPLERS[name]()
    length = sampler.length
    for start in (0, 1, 6, length - 1, length):
        each_has = (length - start + world - 1) // world
        shards = [sampler.shard(rank, world, start) for rank in range(world)]
        assert {len(shard) for shard in shards} == {each_has}
        for rank, shard in enumerate(shards):
            draws = list(shard)
            assert len(draws) == each_has
            for index, draw in enumerate(draws):
                step = start + index * world + rank
                assert_same(draw, shard[index])
                if step < length:
                    assert_same(draw, sampler[step])
                else:
                    assert np.array_equal(draw.indices, sampler[length - 1].indices)
                    assert draw.mask is not None
                    assert not draw.mask.any()
            for wrong in (each_has, -1):
                with pytest.raises(IndexError):
                    shard[wrong]


def test_a_shard_that_ends_beyond_the_draws_keeps_the_masks_before():
    sampler = EpochSampler(GRID, size=50, epochs=1, partial="pad")  # 216 rows: 5 steps, the last with padding
    block = sampler.shard(1, 4).block(0, 2)
    assert block.mask[0].all()
    assert not block.mask[1].any()
    first = sampler.shard(0, 4).block(0, 2)
    assert first.mask.sum(axis=(1, 2)).tolist() == [50, 16]


def test_an_endless_shard_has_no_length():
    with pytest.raises(EndlessError, match="a Shard is infinite and has no length"):
        len(SAMPLERS["mixture"]().shard(0, 2))


@pytest.mark.parametrize(
    "wrong",
    [(0, 0), (2, 2), (-1, 2), (0, -1), (0.0, 2), (0, 2.0), (True, 2), (0, True), ("0", 2)],
    ids=str,
)
def test_impossible_ranks(wrong):
    with pytest.raises(SamplerError, match=r"(rank must be an integer from 0|world must be an integer from 1) to"):
        SAMPLERS["passes"]().shard(*wrong)


@pytest.mark.parametrize("start", [-1, 0.0, True, "0", 2**63 + 1, None])
def test_impossible_starts(start):
    sampler = SAMPLERS["sets of a grid"]()
    with pytest.raises(SamplerError, match="start must be a step of the sampler"):
        sampler.shard(0, 2, start)
    with pytest.raises(SamplerError, match="start must be a step of the sampler"):
        sampler.iterate(start)


@pytest.mark.parametrize("name", sorted(FINITE))
def test_starts_beyond_the_end(name):
    sampler = SAMPLERS[name]()
    for start in (sampler.length + 1, 2**64):
        with pytest.raises(SamplerError, match=f"{sampler.length}, the number of draws"):
            sampler.shard(0, 2, start)
        with pytest.raises(SamplerError, match=f"{sampler.length}, the number of draws"):
            sampler.iterate(start)


# -- wrong steps -------------------------------------------------------------------------------------------------------


@each
def test_steps_that_are_none(name):
    sampler = SAMPLERS[name]()
    end = 2**63 if sampler.length is None else sampler.length
    shard = sampler.shard(1, 4)
    for step in (-1, -(2**63), 1.0, 0.5, np.float64(3), True, np.True_, "1", None, (1, 2), slice(0, 2), end, 2**64):
        for source in (sampler, shard):
            with pytest.raises(RowError):
                source[step]
    for start, stop in ((-1, 3), (2, 2), (3, 2), (0, end + 1), (0, 2.5), (0.0, 2), (True, 3), (0, "1"), (0, None)):
        for source in (sampler, shard):
            with pytest.raises(RowError):
                source.block(start, stop)
    last = end - 1
    assert_same(sampler[last], sampler.block(last, last + 1).at(0))
    assert_same(sampler[last], next(sampler.iterate(last)))


@each
def test_ranks_do_not_run_over_the_last_step(name):
    sampler = SAMPLERS[name]()
    if sampler.length is not None:
        return
    shard = sampler.shard(3, 4)
    assert_same(shard[2**61 - 1], sampler[2**63 - 1])
    for index in (2**61, 2**62, 2**63 - 1):
        with pytest.raises(RowError, match=r"2\*\*63"):
            shard[index]


# -- no state, no surprise ---------------------------------------------------------------------------------------------


@each
def test_drawing_changes_nothing(name):
    sampler = SAMPLERS[name]()
    _ = sampler.table.fingerprint, sampler.to_dict()  # cached on first use
    before = pickle.dumps(sampler)
    sampler[3]
    sampler.block(2, 9)
    next(sampler.iterate(4))
    sampler.shard(1, 2).block(0, 3)
    sampler.report()
    after = pickle.dumps(sampler)
    assert pickle.dumps(pickle.loads(before)) == pickle.dumps(pickle.loads(after))


@each
def test_draws_share_no_memory_with_the_sampler(name):
    sampler, other = SAMPLERS[name](), SAMPLERS[name]()
    for draw in (sampler[3], sampler.block(3, 5)):
        for array in parts(draw).values():
            if array.flags.writeable:
                array[...] = 0
    assert_same(sampler[3], other[3])
    assert_stacked(sampler.block(3, 5), [other[3], other[4]])


@each
def test_a_pickled_sampler_is_the_same(name):
    sampler = SAMPLERS[name]()
    again = pickle.loads(pickle.dumps(sampler))
    assert_same(again.block(0, 20), sampler.block(0, 20))
    assert again.to_dict() == sampler.to_dict()
    assert str(again.report()) == str(sampler.report())
    shard = sampler.shard(1, 2, 3)
    assert_same(pickle.loads(pickle.dumps(shard)).block(0, 4), shard.block(0, 4))


@each
def test_plain_data_gives_the_same_sampler(name):
    sampler = SAMPLERS[name]()
    text = json.dumps(sampler.to_dict())
    again = from_dict(json.loads(text), pickle.loads(pickle.dumps(sampler.table)))
    assert type(again) is type(sampler)
    assert_same(again.block(0, 20), sampler.block(0, 20))
    assert json.dumps(again.to_dict()) == text


@each
def test_plain_data_is_refused_for_another_table(name):
    data = SAMPLERS[name]().to_dict()
    table = SAMPLERS[name]().table
    for other in (table.select(np.arange(len(table))[::-1]), table.without([table.names[-1]])):
        with pytest.raises(SamplerError, match=rf"fingerprint {table.fingerprint}, not {other.fingerprint}; load the"):
            from_dict(data, other)


def test_plain_data_is_checked():
    data = SAMPLERS["triplets"]().to_dict()
    for change, sentence in (
        ({"sampler": "TripletsSampler"}, "did you mean 'TripletSampler'"),
        ({"sampler": "Sampler"}, "unknown sampler 'Sampler'"),
        ({"sampler": "Draw"}, "unknown sampler 'Draw'"),
        ({"sampler": 3}, "unknown sampler 3"),
        ({"sampler": ["TripletSampler"]}, "unknown sampler"),
        ({"arguments": {**data["arguments"], "tripletts": 3}}, "invalid arguments of TripletSampler.*tripletts"),
        ({"arguments": {"triplets": 3}}, "triplets require an orbit or constraints"),
        (
            {"sampler": "OrbitSampler", "arguments": {"sets": 3}},
            "invalid arguments of OrbitSampler: missing 1 argument.*orbit",
        ),
        ({"arguments": 3}, "must have the keys sampler, fingerprint and arguments"),
        ({"arguments": None}, "must have the keys sampler, fingerprint and arguments"),
    ):
        with pytest.raises(SamplerError, match=sentence):
            from_dict({**data, **change}, COLUMNS)
    for lost in data:
        with pytest.raises(SamplerError, match="must have the keys sampler, fingerprint and arguments"):
            from_dict({key: value for key, value in data.items() if key != lost}, COLUMNS)
    for nonsense in (None, 3, "sampler", []):
        with pytest.raises(SetsupError):
            from_dict(nonsense, COLUMNS)
    nested = mixture().to_dict()
    del nested["arguments"]["base"]
    with pytest.raises(SamplerError):
        from_dict(nested, BOTH)


def test_a_sampler_of_ones_own_is_found_by_its_name():
    class FirstRows(EpochSampler):
        def __init__(self, table, rows):
            super().__init__(table, rows, shuffle=False)
            self.arguments = {"rows": rows}

    own = FirstRows(COLUMNS, 3)
    again = from_dict(json.loads(json.dumps(own.to_dict())), COLUMNS)
    assert type(again) is FirstRows
    assert_same(again[0], own[0])

    class Firsts(Sampler):
        """As little as a sampler needs."""

        def __init__(self, table, rows):
            self.table, self.arguments = table, {"rows": rows}

        def draws(self, steps):
            return Draw(np.broadcast_to(np.arange(self.arguments["rows"]), (len(steps), 1, self.arguments["rows"])))

    least = Firsts(COLUMNS, 3)
    assert list(from_dict(least.to_dict(), COLUMNS).shard(1, 2)[5]) == [0, 1, 2]
    assert "no report of its own" in str(least.report())

    taken = type("EpochSampler", (EpochSampler,), {})  # does not replace the one of setsup
    again = from_dict(taken(COLUMNS, 3).to_dict(), COLUMNS)
    assert type(again) is EpochSampler


@pytest.mark.parametrize("kind", [SetSampler, DomainSampler, OrbitSampler, TripletSampler, EpochSampler])
def test_a_dataset_is_no_table(kind):
    with pytest.raises(SamplerError, match=r"must be a FactorTable, not a object; pass dataset\.factors"):
        kind(object(), *(["kind"] if kind is not EpochSampler else []))


def test_a_changed_list_does_not_reach_the_sampler():
    held, tolerance = [["kind"], []], {"yaw": 40.0}
    weights = np.ones(len(COLUMNS))
    sampler = SetSampler(COLUMNS, inactive=held, size=4, weights=weights)
    near = SetSampler(COLUMNS, inactive=["yaw"], tolerance=tolerance, size=4)
    canonical = {"light": 0.5}
    orbits = OrbitSampler(COLUMNS, names := ["item"], 3, canonical=canonical, on_small_group="drop")
    domains = DomainSampler(COLUMNS, names, sets=2, size=3)
    stated = [copy.deepcopy(each_.to_dict()) for each_ in (sampler, near, orbits, domains)]
    drawn = [each_.block(0, 9).indices for each_ in (sampler, near, orbits, domains)]
    held[1].append("light")
    held.append([])
    tolerance["yaw"] = 1.0
    weights[:] = 0
    canonical["light"] = 1.0
    names.append("light")
    assert [each_.to_dict() for each_ in (sampler, near, orbits, domains)] == stated
    for each_, indices in zip((sampler, near, orbits, domains), drawn, strict=True):
        assert np.array_equal(each_.block(0, 9).indices, indices)


# -- other processes ---------------------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
def test_streams_of_spawned_processes_are_equal():
    samplers = {name: make() for name, make in SAMPLERS.items()}
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pending = {}
        for name, sampler in samplers.items():
            first = pool.apply_async(Sampler.block, (sampler, 0, 12))
            second = pool.apply_async(Sampler.block, (sampler, 8, 20))
            alone = pool.apply_async(Sampler.__getitem__, (sampler, 11))
            again = pool.apply_async(from_dict, (sampler.to_dict(), sampler.table))
            pending[name] = first, second, alone, again
        for name, sampler in samplers.items():
            first, second, alone, again = (result.get(timeout=120) for result in pending[name])
            assert_same(first, sampler.block(0, 12))
            assert_same(second, sampler.block(8, 20))
            assert_same(alone, sampler[11])
            assert_same(again.block(3, 9), sampler.block(3, 9))
