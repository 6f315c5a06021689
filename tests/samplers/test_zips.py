"""Zips: what each part draws, that parts are independent, how unlike parts are joined, and what is refused."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import EndlessError, SamplerError
from setsup.factors import Factor, FactorTable, Kind, concat
from setsup.random import fold, randint_below, stream_key
from setsup.samplers import (
    DomainSampler,
    Draw,
    EpochSampler,
    FactorPairSampler,
    Mixture,
    OrbitSampler,
    Sampler,
    SetSampler,
    TripletSampler,
    Zip,
    from_dict,
)


def grid(*sizes, names="abc"):
    factors = [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip(names, sizes, strict=False)]
    return FactorTable(factors)


GRID = grid(3, 4, 5)


class Rows(Sampler):
    """A sampler of one's own: a seed, and no stream."""

    def __init__(self, table, size=3, seed=0):
        self.table, self.arguments = table, {"size": size, "seed": seed}
        self._key, self._size = stream_key(seed, "Rows"), size

    def draws(self, steps):
        return Draw(randint_below(fold(fold(self._key, steps)[:, None, None], np.arange(self._size)), len(self.table)))


# -- what is drawn -----------------------------------------------------------------------------------------------------


def test_each_sampler_draws_what_it_draws_alone_on_the_stream_with_its_position():
    joined = Zip(
        SetSampler(GRID, ["a"], size=4, sets=3, seed=5),
        DomainSampler(GRID, "b", sets=2, size=4, stream="other"),
        SetSampler(GRID, ["c"], size=4, sets=1, seed=5),
    )
    alone = [
        SetSampler(GRID, ["a"], size=4, sets=3, seed=5, stream="SetSampler#0"),
        DomainSampler(GRID, "b", sets=2, size=4, stream="other#1"),
        SetSampler(GRID, ["c"], size=4, sets=1, seed=5, stream="SetSampler#2"),
    ]
    draw = joined.block(7, 90)
    assert joined.sets == (slice(0, 3), slice(3, 5), slice(5, 6))
    assert draw.mask is None
    for sampler, place in zip(alone, joined.sets, strict=True):
        other = sampler.block(7, 90)
        assert np.array_equal(draw.indices[:, place], other.indices)
        for name in "abc":
            codes = other.inactive.get(name, np.full(other.indices.shape[:2], -1))
            assert np.array_equal(draw.inactive[name][:, place], codes)
    assert list(draw.inactive) == ["a", "b", "c"]


def test_positions_reach_the_samplers_within_mixtures_and_zips():
    both = concat([GRID, grid(3, 4, 5)])

    def mixture(stream, base):
        sets = SetSampler(both, [["a"], []], size=4, where="part == 'a'", stream=base)
        return Mixture(sets, "part == 'b'", p=0.5, stream=stream)

    inner = Zip(mixture("Mixture", "SetSampler"), SetSampler(both, ["b"], size=4))
    draw = Zip(SetSampler(both, ["b"], size=4), inner).block(0, 40)
    parts = [
        SetSampler(both, ["b"], size=4, stream="SetSampler#0"),
        mixture("Mixture#1#0", "SetSampler#1#0"),
        SetSampler(both, ["b"], size=4, stream="SetSampler#1#1"),
    ]
    expected = np.concatenate([part.block(0, 40).indices for part in parts], axis=1)
    assert np.array_equal(draw.indices, expected)


def test_a_sampler_and_itself_are_independent():
    table = grid(2, 2)
    twice = Zip(SetSampler(table, [], size=1, sets=1), SetSampler(table, [], size=1, sets=1)).block(0, 8000)
    pairs = Counter(map(tuple, twice.indices[:, :, 0].tolist()))
    assert chisquare([pairs[cell] for cell in itertools.product(range(4), repeat=2)]).pvalue > 1e-4
    lagged = Counter(zip(twice.indices[:-1, 0, 0].tolist(), twice.indices[1:, 1, 0].tolist(), strict=True))
    assert chisquare([lagged[cell] for cell in itertools.product(range(4), repeat=2)]).pvalue > 1e-4


@pytest.mark.long("statistics")
def test_the_joint_distribution_is_the_product_of_both():
    """Every joint draw of a set of two of three rows and a set of one of four rows, counted."""
    table = FactorTable.from_values({"part": ["a"] * 3 + ["b"] * 4})
    joined = Zip(
        SetSampler(table, [], size=2, sets=1, where="part == 'a'"),
        SetSampler(table, [], size=1, sets=1, where="part == 'b'"),
    ).block(0, 9600)
    assert joined.mask.tolist() == [[[True, True], [True, False]]] * 9600
    cells = [(*pair, row) for pair in itertools.permutations(range(3), 2) for row in range(3, 7)]
    seen = Counter((*two.tolist(), int(one)) for two, (one, _) in joined.indices)
    assert set(seen) == set(cells)
    assert chisquare([seen[cell] for cell in cells]).pvalue > 1e-4


def test_sets_are_as_wide_as_the_widest():
    joined = Zip(
        SetSampler(GRID, ["a"], size=2, sets=1),
        OrbitSampler(GRID, "b", sets=2, size=7),
        TripletSampler(GRID, "c", triplets=2),
    )
    draw = joined[3]
    assert draw.indices.shape == (5, 7)
    assert draw.mask.sum(axis=1).tolist() == [2, 7, 7, 3, 3]
    assert (draw.indices[~draw.mask] == np.broadcast_to(draw.indices[:, :1], (5, 7))[~draw.mask]).all()
    assert draw.inactive["a"][1:].tolist() == [-1] * 4
    assert "c" not in draw.inactive  # triplets fix nothing
    assert len(list(draw)) == 2 + 14 + 6  # a batch of torch's DataLoader


def test_factors_within_a_tolerance_are_nan_where_they_are_not_fixed():
    angle = Factor("yaw", Kind.CONTINUOUS)
    table = FactorTable([angle, Factor("a", Kind.NOMINAL, (0, 1))], {"yaw": np.arange(8) / 8, "a": np.arange(8) % 2})
    draw = Zip(SetSampler(table, ["a"], size=2), SetSampler(table, ["yaw"], size=2, tolerance={"yaw": 0.5})).block(0, 9)
    assert draw.inactive["yaw"].dtype == np.float32
    assert np.isnan(draw.inactive["yaw"]).tolist() == [[True, True, False, False]] * 9
    assert (draw.inactive["a"] >= 0).tolist() == [[True, True, False, False]] * 9


def test_canonical_rows_of_all_or_of_none():
    orbits = OrbitSampler(GRID, ["a"], sets=2, size=3, canonical="first")
    draw = Zip(orbits, OrbitSampler(GRID, ["b"], sets=1, size=2, canonical={"a": 1})).block(0, 9)
    assert (draw.canonical[:, :2] == draw.inactive["a"][:, :2] * 20).all()
    assert (GRID.codes("a", draw.canonical[:, 2]) == 1).all()
    with pytest.raises(SamplerError, match="sampler 0 of the zip returns canonical rows, but sampler 1 does not"):
        Zip(orbits, SetSampler(GRID, ["b"], size=2))


def test_a_zip_ends_with_its_first_sampler():
    endless = SetSampler(GRID, ["a"], size=4)
    short, long = (EpochSampler(GRID, size=20, epochs=epochs) for epochs in (2, 3))
    assert len(Zip(short, endless, long)) == 6
    assert len(list(Zip(short, endless, long))) == 6
    with pytest.raises(IndexError):
        Zip(long, short)[6]
    with pytest.raises(EndlessError):
        len(Zip(endless))
    assert [len(Zip(short, endless).shard(rank, 4)) for rank in range(4)] == [2] * 4


def test_an_unconstrained_set_of_a_zip_can_be_mixed():
    both = concat([GRID, GRID])
    base = Zip(
        SetSampler(both, [["a"], []], size=4, where="part == 'a'"),
        SetSampler(both, [], sets=1, size=4, where="part == 'a'"),
    )
    assert base.unconstrained_sets == {1, 2}
    draw = Mixture(base, "part == 'b'", sets=[2], p=1.0).block(0, 30)
    assert (draw.indices[:, :2] < 60).all()
    assert (draw.indices[:, 2] >= 60).all()


# -- plain data --------------------------------------------------------------------------------------------------------


def test_plain_data_has_the_samplers_as_they_were_given():
    first, second = SetSampler(GRID, ["a"], size=4, seed=3), Rows(GRID)
    joined = Zip(first, second)
    data = json.loads(json.dumps(joined.to_dict()))
    assert data["arguments"] == {"samplers": [first.to_dict(), second.to_dict()]}
    again = from_dict(data, GRID)
    assert again.to_dict() == joined.to_dict()
    assert np.array_equal(again.block(0, 50).indices, joined.block(0, 50).indices)


def test_the_report_has_the_entries_of_all():
    first, second = SetSampler(GRID, ["a"], size=4), EpochSampler(GRID, size=7)
    report = Zip(first, second).report()
    entries = [*first.report().entries, *second.report().entries]
    assert [entry.sets for entry in report.entries] == [[0, 1], [2]]
    assert [entry.drawable for entry in report.entries] == [entry.drawable for entry in entries]
    assert report.title == "Zip of 2 samplers, 3 sets of 7 rows at most"
    assert "sets 0 to 1: SetSampler: 2 sets of 4, independent values" in report.notes
    assert "set 2: 8 steps per epoch" in report.notes


# -- properties --------------------------------------------------------------------------------------------------------

PARTS = st.one_of(
    st.builds(
        lambda names, size, sets, seed: SetSampler(GRID, names, size=size, sets=sets, seed=seed),
        st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        st.integers(1, 5),
        st.integers(1, 3),
        st.integers(0, 2),
    ),
    st.builds(
        lambda size, seed: EpochSampler(GRID, size=size, seed=seed, partial="pad"), st.integers(1, 9), st.just(0)
    ),
    st.builds(lambda sets: DomainSampler(GRID, "b", sets=sets, size=3), st.integers(1, 4)),
)


@given(parts=st.lists(PARTS, min_size=1, max_size=4), step=st.integers(0, 2**62))
def test_any_zip_has_the_sets_of_its_samplers_in_order(parts, step):
    joined = Zip(*parts)
    draw = joined[step]
    assert joined.sets[-1].stop == len(draw.indices)
    assert all(one.stop == two.start for one, two in itertools.pairwise(joined.sets))
    for sampler, place in zip(joined.samplers, joined.sets, strict=True):
        other = sampler[step]
        size = other.indices.shape[1]
        mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
        counted = np.ones(other.indices.shape, bool) if other.mask is None else other.mask
        assert np.array_equal(draw.indices[place, :size], other.indices)
        assert np.array_equal(mask[place, :size], counted)
        assert not mask[place, size:].any()


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_equal_samplers_without_streams_are_refused():
    with pytest.raises(SamplerError, match=r"samplers 0 and 1 of the zip draw the same rows; .*stream= to Rows"):
        Zip(Rows(GRID), Rows(GRID))
    draw = Zip(Rows(GRID), Rows(GRID, seed=1)).block(0, 20)
    assert not np.array_equal(draw.indices[:, 0], draw.indices[:, 1])


def test_another_table_is_refused():
    with pytest.raises(
        SamplerError, match=r"samplers 0 and 1 of the zip have different tables; concatenate the datasets"
    ):
        Zip(SetSampler(GRID, ["a"], size=4), SetSampler(grid(3, 4), ["a"], size=2))
    Zip(SetSampler(GRID, ["a"], size=4), SetSampler(grid(3, 4, 5), ["a"], size=2))  # equal tables are one


@pytest.mark.parametrize("wrong", [(), (GRID,), ([SetSampler(GRID, ["a"], size=4)],)])
def test_a_zip_is_over_samplers(wrong):
    with pytest.raises(SamplerError, match="Zip requires one or more samplers, not"):
        Zip(*wrong)


def test_plain_data_without_samplers_is_refused():
    data = Zip(Rows(GRID)).to_dict()
    with pytest.raises(SamplerError, match="the description of a sampler must have"):
        from_dict({**data, "arguments": {}}, GRID)


def test_the_report_of_constrained_triplets_and_of_pairs_in_a_zip():
    triplets = TripletSampler(GRID, triplets=2, positive="a == anchor.a", negative="a != anchor.a")
    pairs = FactorPairSampler(GRID, pairs=3, k=1)
    both = Zip(triplets, SetSampler(GRID, ["a"], sets=1, size=3)).report()
    assert [list(entry.sets) for entry in both.entries] == [[0, 1], [2]]
    assert both.entries[0].anchors == triplets.report().entries[0].anchors
    assert "anchors (sets 0, 1):" in str(both)
    assert Zip(pairs, SetSampler(GRID, ["a"], sets=1, size=3)).report().pairs == pairs.report().pairs


def test_samplers_stand_six_deep_in_each_other_at_most():
    table = FactorTable.from_values({"kind": ["a", "a", "b", "b"]})
    found = SetSampler(table, ["kind"], sets=1, size=2)
    for _ in range(5):
        found = Zip(found)
    assert from_dict(found.to_dict(), table)[3].indices.tolist() == found[3].indices.tolist()
    with pytest.raises(SamplerError, match="nested more than 6 levels deep"):
        Zip(found)
    data = found.to_dict()
    for _ in range(2000):
        data = {**data, "sampler": "Zip", "arguments": {"samplers": [data]}}
    with pytest.raises(SamplerError, match="nested more than 6 levels deep"):
        from_dict(data, table)
