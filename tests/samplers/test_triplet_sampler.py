"""Triplets against the enumeration of all of them."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import TripletSampler
from tests.samplers.agreement import assert_agrees


def table_of(sizes, unknown=0):
    """Rows of orbit o come ``sizes[o]`` times, well mixed."""
    codes = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(unknown, -1)])
    codes = np.random.default_rng(0).permutation(codes)
    face = Factor("face", Kind.NOMINAL, tuple(f"f{number}" for number in range(len(sizes))))
    return FactorTable([face, Factor("half", Kind.ORDINAL, (0, 1))], {"face": codes, "half": np.arange(len(codes)) % 2})


def orbits_of(table, kept=lambda row: True):
    found = {}
    for row, code in enumerate(table.codes("face").tolist()):
        if code >= 0 and kept(row):
            found.setdefault(code, []).append(row)
    return found


def chances_of(orbits, choose):
    """Chance of every triplet: orbit by ``choose`` among those of two rows or more, then all pairs and strangers."""
    able = {code: rows for code, rows in orbits.items() if len(rows) > 1}
    found = {}
    for code, rows in able.items():
        chance = len(rows) / sum(map(len, able.values())) if choose == "rows" else 1 / len(able)
        strangers = [row for other, members in orbits.items() if other != code for row in members]
        for (anchor, positive), negative in itertools.product(itertools.permutations(rows, 2), strangers):
            found[anchor, positive, negative] = chance / (len(rows) * (len(rows) - 1) * len(strangers))
    assert math.isclose(sum(found.values()), 1)
    return found


@pytest.mark.long("statistics")
@pytest.mark.parametrize("choose", ["rows", "groups", "levels"])
@pytest.mark.parametrize("sizes", [[2, 3, 4], [1, 4, 2, 1], [2, 2], [1, 3]], ids=str)
def test_triplets_come_as_often_as_documented(sizes, choose):
    table = table_of(sizes, unknown=2)
    sampler = TripletSampler(table, "face", triplets=7, choose=choose, on_small_group="drop")
    draw = sampler.block(0, 4000)
    assert draw.indices.shape == (4000, 7, 3)
    assert draw.mask is None
    assert draw.canonical is None
    assert_agrees(draw.indices, chances_of(orbits_of(table), choose))


def test_every_row_is_an_equally_likely_anchor_by_default():
    table = table_of([2, 3, 5])
    anchors = TripletSampler(table, "face").block(0, 1000).indices[..., 0]
    assert chisquare(np.bincount(anchors.ravel(), minlength=10)).pvalue > 1e-4


def test_triplets_of_a_step_and_of_neighbouring_steps_are_unrelated():
    table = table_of([2, 2])
    drawn = TripletSampler(table, "face", triplets=2).block(0, 8000).indices
    cells = list(chances_of(orbits_of(table), "rows"))
    for one, other in ((drawn[:, 0], drawn[:, 1]), (drawn[:-1, 1], drawn[1:, 0])):
        pairs = Counter(zip(map(tuple, one.tolist()), map(tuple, other.tolist()), strict=True))
        assert chisquare([pairs[pair] for pair in itertools.product(cells, cells)]).pvalue > 1e-4


@settings(max_examples=60)
@given(data=st.data())
def test_anchor_and_positive_share_an_orbit_and_the_negative_does_not(data):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=6).filter(lambda sizes: max(sizes) > 1))
    table = table_of(sizes, unknown=data.draw(st.integers(0, 4)))
    where = data.draw(st.sampled_from([None, "half == 0"]))
    orbits = orbits_of(table, lambda row: where is None or row % 2 == 0)
    able = [rows for rows in orbits.values() if len(rows) > 1]
    if not able or len(orbits) < 2:
        with pytest.raises(SamplerError):
            TripletSampler(table, "face", where=where, on_small_group="drop")
        return
    sampler = TripletSampler(
        table, "face", 9, on_small_group="drop", where=where, seed=data.draw(st.integers(0, 2**64 - 1))
    )
    drawn = sampler.block(0, 30).indices
    code = table.codes("face", drawn)
    assert (drawn[..., 0] != drawn[..., 1]).all()
    assert (code[..., 0] == code[..., 1]).all()
    assert (code[..., 0] != code[..., 2]).all()
    assert (code >= 0).all()
    assert set(drawn[..., 2].ravel().tolist()) <= set(itertools.chain.from_iterable(orbits.values()))
    assert set(drawn[..., 0].ravel().tolist()) <= set(itertools.chain.from_iterable(able))


def test_orbits_of_one_row():
    table = table_of([1, 3, 1, 2])
    with pytest.raises(
        SamplerError, match=r"2 of 4 groups.*fewer than the 2 rows.*face = f0: 1; face = f2: 1"
    ) as refusal:
        TripletSampler(table, "face")
    assert "on_small_group='drop'" in str(refusal.value)
    assert "'replace'" not in str(refusal.value)
    assert "'short'" not in str(refusal.value)
    drawn = TripletSampler(table, "face", on_small_group="drop").block(0, 200).indices
    lonely = {row for rows in orbits_of(table).values() if len(rows) == 1 for row in rows}
    assert not lonely & set(drawn[..., :2].ravel().tolist())
    assert lonely < set(drawn[..., 2].ravel().tolist())
    with pytest.raises(SamplerError, match="fewer than the 2 rows"):
        TripletSampler(table_of([1, 1, 1]), "face", on_small_group="drop")


def test_the_report_counts_triplets():
    table = table_of([1, 3, 1, 2])
    report = TripletSampler(table, "face", on_small_group="drop").report()
    entry = report.entries[0]
    orbits = orbits_of(table).values()
    every = {(a, p, n) for o in orbits for q in orbits if q is not o for a in o for p in o if a != p for n in q}
    assert 10**entry.log10_sets == pytest.approx(len(every))
    assert {row for triplet in every for row in triplet} == set(range(7))
    assert (entry.unreachable, entry.unknown) == (0, len(table) - 7)
    assert "2 orbits of one row are drawn as negatives only" in str(report)
    assert "nan" not in str(report)


def test_on_a_grid_and_on_columns():
    factors = [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip("abc", (3, 4, 5), strict=True)]
    grid = FactorTable(factors)
    columns = FactorTable(factors, {name: grid.codes(name) for name in grid.names})
    one, other = (TripletSampler(table, ["c", "a"], 20).block(0, 100).indices for table in (grid, columns))
    assert np.array_equal(one, other)
    held = np.stack([grid.codes("a", one), grid.codes("c", one)])
    assert (held[..., 0] == held[..., 1]).all()
    assert (held[..., 0] != held[..., 2]).any(axis=0).all()
    assert (one[..., 0] != one[..., 1]).all()


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"orbit": []}, SamplerError, "at least one factor"),
        ({"orbit": 3}, SamplerError, "orbit must be a list of factor names"),
        ({"orbit": "fce"}, FactorError, "did you mean 'face'"),
        ({"triplets": 0}, SamplerError, "triplets must be an integer"),
        ({"triplets": 1.5}, SamplerError, "triplets must be an integer"),
        ({"on_small_group": "short"}, SamplerError, "on_small_group must be 'error' or 'drop'"),
        ({"on_small_group": "replace"}, SamplerError, "on_small_group must be 'error' or 'drop'"),
        ({"choose": "row"}, SamplerError, "did you mean 'rows'"),
        ({"where": "face == 'f1'"}, SamplerError, "only one orbit"),
        ({"where": "face == 'f1' and half > 1"}, SamplerError, "where= and weights= leave none of the"),
        ({"seed": 2**64}, SamplerError, "seed"),
    ],
)
def test_wrong_arguments(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        TripletSampler(table_of([4, 4, 4]), **{"orbit": "face", **arguments})


@pytest.mark.parametrize("on_small_group", [np.array([1, 2]), np.array(["error", "drop"]), [], None, 1])
def test_what_is_no_policy_for_small_orbits_is_one_sentence(on_small_group):
    table = FactorTable.from_values({"id": np.arange(12) % 4})
    with pytest.raises(SamplerError, match="on_small_group must be 'error' or 'drop'"):
        TripletSampler(table, "id", on_small_group=on_small_group)
    with pytest.raises(SamplerError, match="on_small_group applies only to orbit"):
        TripletSampler(table, positive="id == anchor.id", negative="id != anchor.id", on_small_group=on_small_group)
