"""Pairs against the enumeration of all of them."""

import itertools
import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import FactorPairSampler, from_dict
from setsup.samplers.partners.cells import cells_of
from setsup.samplers.partners.index import IndexPartners
from setsup.samplers.partners.product import ProductPartners

SHAPE = Factor("shape", Kind.NOMINAL, ("cube", "ball", "cone"))
SIZE = Factor("size", Kind.ORDINAL, (1, 2, 3, 4))
HUE = Factor("hue", Kind.CYCLIC, (0.0, 0.2, 0.4, 0.6, 0.8), period=1.0)
LIT = Factor("lit", Kind.NOMINAL, (False, True))
FACTORS = [SHAPE, SIZE, HUE, LIT]


def grid():
    return FactorTable(FACTORS)


def rows_of(keep, seed=0, repeats=1):
    """Some rows of the grid in no order, some of them several times."""
    random = np.random.default_rng(seed)
    codes = np.stack([grid().codes(name) for name in grid().names])
    codes = np.tile(codes, repeats)
    codes = codes[:, random.permutation(codes.shape[1])[: int(keep * codes.shape[1])]]
    return FactorTable(FACTORS, dict(zip(grid().names, codes, strict=True)))


def nested():
    """Items within kinds, numbered alike in each; with unknown values and a continuous factor."""
    random = np.random.default_rng(1)
    kind = random.integers(0, 3, 40)
    item = random.integers(0, 4, 40)
    view = random.integers(-1, 3, 40)
    factors = [
        Factor("kind", Kind.NOMINAL, ("car", "chair", "lamp")),
        Factor("item", Kind.NOMINAL, (0, 1, 2, 3), within="kind"),
        Factor("view", Kind.ORDINAL, (0, 1, 2)),
        Factor("angle", Kind.CONTINUOUS),
        Factor("path", Kind.NOMINAL, tuple(map(str, range(40))), role="key"),
    ]
    columns = {"kind": kind, "item": item, "view": view, "angle": random.random(40), "path": np.arange(40)}
    return FactorTable(factors, columns)


TABLES = {
    "grid": grid(),
    "a part of it": rows_of(0.6),
    "few rows": rows_of(0.15, 3),
    "repeated rows": rows_of(0.3, 2, repeats=4),
    "the grid in no order": rows_of(1),
    "nested": nested(),
}


def identity(table, name, row):
    """What a factor is in a row: its level, with those it is nested in; None where one is unknown."""
    codes = [int(table.codes(one, row)) for one in (name, *table.outer(name))]
    return None if min(codes) < 0 else tuple(codes)


def steps_between(factor, one, other):
    apart = abs(one - other)
    return min(apart, len(factor) - apart) if factor.kind is Kind.CYCLIC else apart


def pairs_of(table, sizes, *, among=None, must_differ=True, radius=None, where=None, weights=None):
    """Chance of every (subset, anchor, partner), from the definition alone."""
    weights = np.ones(len(table)) if weights is None else weights
    names = [factor.name for factor in table.factors if not factor.continuous and factor.role == "variation"]
    kept = range(len(table)) if where is None else np.flatnonzero(table.mask(where)).tolist()
    value = {name: [identity(table, name, row) for row in range(len(table))] for name in names}
    rows = [row for row in kept if all(value[name][row] is not None for name in names) and weights[row] > 0]

    def fits(subset, one, other):
        for name in names:
            here, there = value[name][one], value[name][other]
            if name not in subset and here != there:
                return False
            if name in subset and must_differ and here == there:
                return False
            near = (radius or {}).get(name)
            if name in subset and near is not None and steps_between(table[name], here[0], there[0]) > near:
                return False
        return True

    found = {}
    for size in sizes:
        feasible = {}
        for subset in itertools.combinations(among or names, size):
            partners = {one: [other for other in rows if fits(subset, one, other)] for one in rows}
            for one, others in list(partners.items()):
                if all(all(value[name][one] == value[name][other] for name in names) for other in others):
                    del partners[one]  # none, or none that differs from it
            if partners:
                feasible[frozenset(subset)] = partners
        if feasible:
            found[size] = feasible
    chances = {}
    for feasible in found.values():
        for subset, partners in feasible.items():
            for one, others in partners.items():
                of_anchor = weights[one] / weights[list(partners)].sum() / len(found) / len(feasible)
                for other in others:
                    chances[subset, one, other] = of_anchor * weights[other] / weights[others].sum()
    return chances


def drawn_pairs(table, draw):
    """Changed factors, anchor and partner of every pair of a block."""
    flat = draw.indices.reshape(-1, 2)
    changed = {name: labels.reshape(-1) for name, labels in draw.pair_labels.items()}
    for name, labels in changed.items():
        codes = draw.inactive[name].reshape(-1)
        assert np.array_equal(codes == -1, labels)
        assert np.array_equal(codes[~labels], table.codes(name, flat[~labels, 0]))
    names = list(changed)
    subsets = [frozenset(itertools.compress(names, of)) for of in np.stack([changed[name] for name in names], -1)]
    return Counter(zip(subsets, flat[:, 0].tolist(), flat[:, 1].tolist(), strict=True))


def assert_agrees(counts, chances):
    assert set(counts) <= set(chances)
    assert math.isclose(sum(chances.values()), 1)
    keys = sorted(chances, key=lambda key: (chances[key], sorted(key[0]), key[1:]))
    expected = np.array([chances[key] for key in keys]) * counts.total()
    observed = np.array([counts[key] for key in keys])
    # rare pairs together, so that every cell is expected often enough
    bins = np.cumsum(expected) // 8
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    starts = starts[np.add.reduceat(expected, starts) > 4]
    starts[0] = 0
    assert chisquare(np.add.reduceat(observed, starts), np.add.reduceat(expected, starts)).pvalue > 1e-4


OPTIONS = {
    "any k": ({}, {"sizes": range(1, 99)}),
    "k of one": ({"k": 1}, {"sizes": [1]}),
    "k of two": ({"k": 2}, {"sizes": [2]}),
    "all": ({"k": (1, 3)}, {"sizes": [1, 2, 3]}),
    "drawn again": ({"k": (1, 2), "must_differ": False}, {"sizes": [1, 2], "must_differ": False}),
}


@pytest.mark.long("statistics")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", TABLES)
def test_pairs_come_as_often_as_documented(name, options):
    table = TABLES[name]
    arguments, meant = OPTIONS[options]
    compared = sum(not factor.continuous and factor.role == "variation" for factor in table.factors)
    meant = {**meant, "sizes": [size for size in meant["sizes"] if size <= compared - (options == "any k")]}
    sampler = FactorPairSampler(table, 50, **arguments)
    assert_agrees(drawn_pairs(table, sampler.block(0, 1000)), pairs_of(table, **meant))


@pytest.mark.long("statistics")
@pytest.mark.parametrize("must_differ", [True, False])
@pytest.mark.parametrize("radius", [1, {"size": 2, "hue": 2}])
@pytest.mark.parametrize("name", ["grid", "a part of it", "few rows", "repeated rows"])
def test_radius_bounds_steps(name, radius, must_differ):
    table = TABLES[name]
    sampler = FactorPairSampler(table, 50, k=(1, 3), radius=radius, must_differ=must_differ)
    by_name = dict.fromkeys(["size", "hue"], radius) if radius == 1 else radius
    chances = pairs_of(table, [1, 2, 3], radius=by_name, must_differ=must_differ)
    assert_agrees(drawn_pairs(table, sampler.block(0, 1000)), chances)


WEIGHTED = {
    "any k": {"sizes": [1, 2, 3]},
    "drawn again": {"sizes": [1, 2], "must_differ": False},
    "within a radius": {"sizes": [1, 2], "radius": {"hue": 1, "size": 2}},
    "two alone": {"sizes": [2], "among": ["size", "hue"]},
}


@pytest.mark.parametrize("name", ["grid", "repeated rows"])
@pytest.mark.parametrize("options", WEIGHTED)
def test_pairs_come_by_weight(name, options):
    table, meant = TABLES[name], WEIGHTED[options]
    weights = np.random.default_rng(5).integers(0, 4, len(table)) * 0.5
    arguments = {**meant, "k": (meant["sizes"][0], meant["sizes"][-1])}
    del arguments["sizes"]
    sampler = FactorPairSampler(table, 50, weights=weights, **arguments)
    assert_agrees(drawn_pairs(table, sampler.block(0, 600)), pairs_of(table, **meant, weights=weights))
    listed = FactorPairSampler(table, 50, where=weights > 0, **arguments)
    by_weight, *notes = sampler.report().notes
    assert by_weight == "rows are drawn by weight: a number for each row"
    assert replace(sampler.report(), notes=notes) == listed.report()  # it counts rows
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    assert np.array_equal(again[7].indices, sampler[7].indices)


def test_ranked_pairs_come_by_weight():
    table, weights = nested(), np.arange(40) % 4
    sampler = FactorPairSampler(table, 20, rank=["view"], weights=weights)
    chance = np.where(table.codes("view") >= 0, weights, 0) / weights[table.codes("view") >= 0].sum()
    rows = np.flatnonzero(chance)
    drawn = Counter(map(tuple, sampler.block(0, 600).indices.reshape(-1, 2).tolist()))
    every = list(itertools.product(rows.tolist(), repeat=2))
    assert set(drawn) <= set(every)
    expected = np.array([chance[one] * chance[other] for one, other in every]) * drawn.total()
    assert chisquare([drawn[pair] for pair in every], expected).pvalue > 1e-4
    np.testing.assert_allclose(sampler.reach().chance(range(40)), 1 - (1 - chance) ** 40)
    share = sum(chance[table.codes("view") == code].sum() ** 2 for code in range(3))
    assert f"equal in {share:.1%}" in str(sampler.report())


def ranks(count):
    """Words that lead to each of so many numbers once."""
    return ((np.arange(count) + 0.5) / count * 2.0**64).astype(np.uint64)


@pytest.mark.long("exhaustive comparisons")
@settings(max_examples=30)
@given(data=st.data())
def test_every_anchor_and_every_partner_has_one_rank(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rows = data.draw(st.integers(1, 40))
    codes = [
        data.draw(st.lists(st.integers(-1 if data.draw(st.booleans()) else 0, size - 1), min_size=rows, max_size=rows))
        for size in sizes
    ]
    kinds = [data.draw(st.sampled_from([Kind.NOMINAL, Kind.ORDINAL, Kind.CYCLIC])) for _ in sizes]
    factors = [
        Factor(name, kind, tuple(range(size)), period=float(size) if kind is Kind.CYCLIC else None)
        for name, kind, size in zip("abcd", kinds, sizes, strict=False)
    ]
    table = FactorTable(factors, {factor.name: np.array(of) for factor, of in zip(factors, codes, strict=True)})
    must_differ = data.draw(st.booleans())
    reach = [f.name for f in factors if f.kind is not Kind.NOMINAL and data.draw(st.booleans())]
    radius = {name: data.draw(st.integers(1, 2)) for name in reach}
    chances = pairs_of(table, range(1, len(sizes) + 1), must_differ=must_differ, radius=radius)
    if not chances:
        with pytest.raises(SamplerError, match="no two of"):
            FactorPairSampler(table, k=(1, len(sizes)), must_differ=must_differ, radius=radius or None)
        return
    sampler = FactorPairSampler(table, k=(1, len(sizes)), must_differ=must_differ, radius=radius or None)
    partners, found = sampler._pairs.partners, set()
    for number, subset in enumerate(sampler._pairs.subsets.chosen):
        count = int(partners.anchors[number])
        if not count:
            continue
        names = frozenset(itertools.compress(sampler._pairs.subsets.names, subset))
        one = np.zeros(1, np.uint64)
        anchors = partners.draw(np.full(count, number), ranks(count), np.repeat(one, count))[0]
        assert len(set(anchors.tolist())) == count
        for place, anchor in enumerate(anchors.tolist()):
            others = [pair[2] for pair in chances if pair[:2] == (names, anchor)]
            word = np.repeat(ranks(count)[place : place + 1], len(others))
            rows_of_one = partners.draw(np.full(len(others), number), word, ranks(len(others)))
            assert set(rows_of_one[0].tolist()) == {anchor}
            assert sorted(rows_of_one[1].tolist()) == sorted(others)
            found |= {(names, anchor, other) for other in rows_of_one[1].tolist()}
    assert found == set(chances)
    report = sampler.report()
    seen = {row for _, *pair in chances for row in pair}
    known = (np.array(codes) >= 0).all(axis=0)
    assert f"{int(known.sum()) - len(seen):,} without a partner" in str(report) or len(seen) == known.sum()
    of_size = Counter(len(names) for names, _, _ in chances)
    assert {entry.k: entry.log10_pairs for entry in report.pairs if any(entry.anchors.values())} == pytest.approx(
        {size: math.log10(count) for size, count in of_size.items()}
    )


@pytest.mark.parametrize("kind", [Kind.ORDINAL, Kind.CYCLIC])
@pytest.mark.parametrize("radius", [{"a": 1}, {"a": 6}, {"a": 7}, {"a": 40}, {"a": 3, "b": 2}])
def test_partners_within_a_radius_are_all_counted(kind, radius):
    levels = tuple(range(13))
    factors = [Factor(name, kind, levels, period=13.0 if kind is Kind.CYCLIC else None) for name in "ab"]
    random = np.random.default_rng(7)
    codes = {"a": random.integers(0, 13, 80), "b": random.integers(0, 9, 80), "c": random.integers(0, 2, 80)}
    table = FactorTable([*factors, Factor("c", Kind.NOMINAL, (0, 1))], codes)
    for must_differ in (True, False):
        sampler = FactorPairSampler(table, k=(1, 3), radius=radius, must_differ=must_differ)
        for number, subset in enumerate(sampler._pairs.subsets.chosen):
            fits = np.ones((80, 80), dtype=bool)
            for (name, code), free in zip(codes.items(), subset, strict=True):
                apart = abs(code[:, None] - code)
                near = np.minimum(apart, 13 - apart) if kind is Kind.CYCLIC and name != "c" else apart
                within = near <= radius.get(name, 99)
                fits &= (within & (apart > 0) if must_differ else within) if free else apart == 0
            same = np.all([code[:, None] == code for code in codes.values()], axis=0)
            able = (fits & ~same).any(axis=1)
            assert sampler._pairs.partners.anchors[number] == able.sum()
            pairs = fits[able].sum()
            assert np.exp(sampler._pairs.partners.log_pairs[number]) == pytest.approx(pairs)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_anchor_and_every_partner_has_as_many_ranks_as_its_weight(data):
    count = data.draw(st.integers(2, 20))
    numbers = st.lists(st.integers(0, 2), min_size=count, max_size=count)
    table = FactorTable(
        [Factor(name, Kind.ORDINAL, (0, 1, 2)) for name in "abc"],
        {name: np.array(data.draw(numbers)) for name in "abc"},
    )
    weights = np.array(data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    options = {"must_differ": data.draw(st.booleans()), "radius": data.draw(st.sampled_from([None, {"b": 1}]))}
    chances = pairs_of(table, [1, 2, 3], weights=weights, **options)
    if not chances:
        return
    scaled = np.ldexp(weights.astype(float), data.draw(st.sampled_from([0, -1000, 1000])))
    sampler = FactorPairSampler(table, k=(1, 3), weights=scaled, **options)
    for number in np.flatnonzero(sampler._pairs.partners.anchors):
        names = frozenset(itertools.compress(sampler._pairs.subsets.names, sampler._pairs.subsets.chosen[number]))
        partners = {}
        for subset, one, other in chances:
            if subset == names:
                partners.setdefault(one, []).append(other)
        total = weights[list(partners)].sum()
        anchors = sampler._pairs.partners.draw(np.full(total, number), ranks(total), np.zeros(total, np.uint64))[0]
        assert Counter(anchors.tolist()) == {one: weights[one] for one in partners}
        for one, others in partners.items():
            word, total = ranks(len(anchors))[anchors == one][0], weights[others].sum()
            found = sampler._pairs.partners.draw(np.full(total, number), np.repeat(word, total), ranks(total))[1]
            assert Counter(found.tolist()) == {other: weights[other] for other in others}


def test_rows_of_very_different_weight_keep_their_own_chances():
    """Beside heavy rows that agree with the anchor, light ones are drawn by their own weights."""
    table = FactorTable.from_values({"a": [0, 0, 1, 1, 1], "b": [0, 1, 0, 0, 0]})
    rows = FactorPairSampler(table, 60, k=1, weights=[1e12, 1e12, 1e3, 2e3, 3e3]).block(0, 100).indices.reshape(-1, 2)
    second = rows[(rows[:, 0] == 0) & (rows[:, 1] > 1), 1]
    assert chisquare(np.bincount(second)[2:], len(second) * np.array([1, 2, 3]) / 6).pvalue > 1e-4


@pytest.mark.parametrize(
    "arguments", [{}, {"radius": 2}, {"must_differ": False, "k": 2}, {"change": ["size", "lit"]}], ids=str
)
def test_on_a_grid_and_on_columns(arguments):
    table = grid()
    columns = FactorTable(table.factors, {name: table.codes(name) for name in table.names})
    # one row more, with an unknown level: no product of levels, and the same rows to draw from
    more = {name: np.append(table.codes(name), -1 if name == "lit" else 0) for name in table.names}
    ragged = FactorTable(table.factors, more)
    draws = [FactorPairSampler(one, 20, **arguments).block(0, 50) for one in (table, columns, ragged)]
    for draw in draws[1:]:
        assert np.array_equal(draw.indices, draws[0].indices)
        for name in table.names:
            assert np.array_equal(draw.pair_labels[name], draws[0].pair_labels[name])


def test_partners_by_counting_are_those_of_arithmetic():
    table = grid()
    cells = cells_of(table, table.names, {"hue": 1}, None)
    keys = np.ascontiguousarray(cells.groups.keys().T)
    listed = replace(cells, columns=list(keys), product=False)
    subsets = np.array(list(itertools.product([False, True], repeat=4)))[1:]
    words = np.random.default_rng(0).integers(0, 2**64, (2, 15 * 200), dtype=np.uint64)
    which = np.repeat(np.arange(15), 200)
    for must_differ in (True, False):
        one, other = ProductPartners(cells, subsets, must_differ), IndexPartners(listed, subsets, must_differ)
        assert np.array_equal(one.anchors, other.anchors)
        assert np.allclose(one.log_pairs, other.log_pairs)
        for found, wanted in zip(one.draw(which, *words), other.draw(which, *words), strict=True):
            assert np.array_equal(found, wanted)


def test_every_pair_shares_one_of_the_factors_that_vary():
    pairs = FactorPairSampler(grid(), 20, where="lit == True")
    assert [entry.k for entry in pairs.report().pairs] == [1, 2]
    assert [entry.k for entry in FactorPairSampler(grid(), share=["hue"], where="lit == True").report().pairs] == [2]
    listed = FactorPairSampler(grid(), 20, where="lit == True and (size != 2 or hue != 0.2)")
    assert [entry.k for entry in listed.report().pairs] == [1, 2]


def test_change_and_share():
    table = rows_of(0.6)
    changed = FactorPairSampler(table, 20, change=["size", "hue"]).block(0, 500)
    assert_agrees(drawn_pairs(table, changed), pairs_of(table, [2], among=["size", "hue"]))
    shared = FactorPairSampler(table, 20, share=["shape", "lit"]).block(0, 500)
    assert np.array_equal(shared.indices, changed.indices)
    again = FactorPairSampler(table, 20, share=["shape"], must_differ=False).block(0, 500)
    chances = pairs_of(table, [3], among=["size", "hue", "lit"], must_differ=False)
    assert_agrees(drawn_pairs(table, again), chances)
    some = FactorPairSampler(table, 20, k=(1, 2), among=["lit", "hue", "size"]).block(0, 500)
    assert_agrees(drawn_pairs(table, some), pairs_of(table, [1, 2], among=["size", "hue", "lit"]))


def test_ranked_pairs_are_independent_rows():
    table = nested()
    sampler = FactorPairSampler(table, 20, rank=["view"], where="kind != 'car'")
    rows = np.flatnonzero((table.codes("view") >= 0) & (table.codes("kind") > 0))
    draw = sampler.block(0, 500)
    assert draw.inactive == {}
    counts = Counter(map(tuple, draw.indices.reshape(-1, 2).tolist()))
    assert set(counts) <= set(itertools.product(rows.tolist(), repeat=2))
    assert chisquare([counts[pair] for pair in itertools.product(rows.tolist(), repeat=2)]).pvalue > 1e-4
    view = table.codes("view", draw.indices)
    assert np.array_equal(draw.pair_labels["view"], view[..., 0] >= view[..., 1])
    share = np.bincount(table.codes("view", rows)) / len(rows)
    assert f"equal in {(share**2).sum():.1%}" in str(sampler.report())
    assert list(sampler[0].pair_labels) == ["view"]


@settings(max_examples=25)
@given(data=st.data())
def test_pairs_differ_in_what_is_said(data):
    name = data.draw(st.sampled_from(sorted(TABLES)))
    table = TABLES[name]
    where = data.draw(st.sampled_from([None, "view != 1" if name == "nested" else "size != 2 or lit == True"]))
    seed = data.draw(st.integers(0, 2**64 - 1))
    sampler = FactorPairSampler(table, 9, where=where, seed=seed)
    draw = sampler.block(0, 30)
    kept = np.ones(len(table), bool) if where is None else table.mask(where)
    assert kept[draw.indices].all()
    for one, labels in draw.pair_labels.items():
        values = np.array([[identity(table, one, row) for row in pair] for pair in draw.indices.reshape(-1, 2)])
        assert np.array_equal((values[:, 0] != values[:, 1]).any(axis=-1), labels.reshape(-1))
    count = sum(draw.pair_labels.values())
    assert count.min() >= 1
    assert count.max() < len(draw.pair_labels)
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    assert np.array_equal(again[29].indices, draw.at(29).indices)
    assert np.array_equal(sampler[7].indices, draw.indices[7])
    assert {one: of.tolist() for one, of in sampler[7].pair_labels.items()} == {
        one: of[7].tolist() for one, of in draw.pair_labels.items()
    }


def test_what_is_infeasible_is_reported():
    factors = [Factor(name, Kind.NOMINAL, (0, 1, 2)) for name in "abc"]
    rows = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [2, 2, 2], [1, 1, 2], [-1, 0, 0]])
    table = FactorTable(factors, dict(zip("abc", rows.T, strict=True)))
    report = FactorPairSampler(table, k=(1, 3)).report()
    by_k = {entry.k: entry for entry in report.pairs}
    assert by_k[1].anchors == {"a": 0, "b": 2, "c": 2}
    assert by_k[2].anchors == {"a, b": 2, "a, c": 2, "b, c": 2}
    assert by_k[3].anchors == {"a, b, c": 5}
    assert "k = 3, with probability 0.333: the one subset of factors is feasible" in str(report)
    assert [entry.chance for entry in report.pairs] == [1 / 3] * 3
    text = str(report)
    assert "k = 1, with probability 0.333: 2 of 3 subsets of factors are feasible" in text
    assert "infeasible: (a)" in text
    assert "rows never drawn: 1 with an unknown value" in text
    lonely = FactorPairSampler(table, k=1).report()
    assert "1 with an unknown value, 2 without a partner" in str(lonely)
    assert json.loads(json.dumps(lonely.to_dict()))["pairs"][0]["anchors"] == {"a": 0, "b": 2, "c": 2}
    only = FactorPairSampler(table, k=(1, 2), among=["a", "c"]).report()
    assert [(entry.k, entry.anchors) for entry in only.pairs] == [(1, {"a": 0, "c": 2}), (2, {"a, c": 2})]
    none = FactorPairSampler(table, k=(1, 2), among=["a", "c"], where="a != 0 or c != 1").report()
    assert "k = 1: infeasible, no rows differ in (a); (c)" in str(none)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"k": 0}, SamplerError, "k must be from 1 to 3"),
        ({"k": 4}, SamplerError, "k must be from 1 to 3, the number of factors that may differ"),
        ({"k": (2, 1)}, SamplerError, "the minimum 2 exceeds the maximum 1"),
        ({"k": (1, 2, 3)}, SamplerError, r"such as \(1, 3\)"),
        ({"k": "two"}, SamplerError, "k must be a number of factors"),
        ({"k": 2, "among": ["kind"]}, SamplerError, "k must be from 1 to 1"),
        ({"among": []}, SamplerError, "among must be a list of at least one factor"),
        ({"among": ["knd"]}, FactorError, "did you mean 'kind'"),
        ({"change": "view", "share": ["kind"]}, SamplerError, "change=, share= are mutually exclusive"),
        ({"change": ["view"], "k": 2}, SamplerError, "change=, k= or among= are mutually exclusive"),
        ({"change": ["angle"]}, FactorError, "continuous"),
        (
            {"change": ["kind"]},
            SamplerError,
            "no two of 32 rows differ in 1 of the factors kind and agree in all other",
        ),
        ({"share": ["kind", "item", "view"]}, SamplerError, "none can differ"),
        ({"rank": ["kind"]}, SamplerError, "ordinal factors, but 'kind' is nominal"),
        ({"rank": ["angle"]}, SamplerError, "ordinal factors, but 'angle' is continuous"),
        ({"rank": ["view"], "radius": 1}, SamplerError, "leave out radius and must_differ"),
        ({"rank": ["view"], "where": "view > 5"}, SamplerError, "no row has a known level of view"),
        ({"radius": 0}, SamplerError, "the radius of 'view' must be"),
        ({"radius": {"kind": 1}}, SamplerError, "'kind' is nominal"),
        ({"radius": {"item": 1}}, SamplerError, "'item' is nested in kind"),
        ({"radius": {}}, SamplerError, "choose from view"),
        ({"must_differ": 1}, SamplerError, "must_differ must be"),
        ({"pairs": 0}, SamplerError, "pairs must be an integer"),
        ({"where": "view > 5"}, SamplerError, "no two of 0 rows"),
        ({"weights": [1.0] * 39 + [-1.0]}, SamplerError, "weights must be finite and non-negative"),
        ({"weights": [float("nan")] * 40}, SamplerError, "not all 0"),
        ({"weights": [1.0] * 39}, SamplerError, r"weights must have shape \(40,\), one number per row"),
        ({"weights": "knd"}, FactorError, "did you mean 'kind'"),
        ({"weights": [1.0] + [0.0] * 39}, SamplerError, "no two of 1 rows"),
        ({"where": "view > 5", "radius": 1}, SamplerError, "no two of 0 rows"),
        ({"seed": -1}, SamplerError, "seed"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments, error, sentence):
    table = nested()
    if "radius" in arguments and arguments["radius"] == {"item": 1}:
        factors = [replace(f, kind=Kind.ORDINAL) if f.name == "item" else f for f in table.factors]
        table = FactorTable(factors, {name: table.codes(name) for name in table.names})
    with pytest.raises(error, match=sentence):
        FactorPairSampler(table, **arguments)


def test_too_many_subsets():
    many = [Factor(f"f{number}", Kind.NOMINAL, (0, 1)) for number in range(40)]
    codes = np.random.default_rng(0).integers(0, 2, (40, 500))
    table = FactorTable(many, {factor.name: of for factor, of in zip(many, codes, strict=True)})
    with pytest.raises(SamplerError, match="more than the limit of 65,536; lower k, or list fewer factors in among"):
        FactorPairSampler(table)
    with pytest.raises(SamplerError, match="no two of 500 rows"):
        FactorPairSampler(table, k=1)
    with pytest.raises(SamplerError, match="combinations of factors, more than the limit of 4,096"):
        FactorPairSampler(table, share=["f0"])
    assert FactorPairSampler(table, share=["f0"], must_differ=False)[0].indices.shape == (32, 2)
    large = FactorTable([Factor(f"f{n}", Kind.NOMINAL, tuple(range(43))) for n in range(11)])
    draw = FactorPairSampler(large, 1000, k=11)[0]
    assert all((codes[:, 0] != codes[:, 1]).all() for codes in large.all_codes(draw.indices).values())


def test_tables_without_pairs():
    continuous = FactorTable([Factor("x", Kind.CONTINUOUS)], {"x": np.zeros(3)})
    with pytest.raises(SamplerError, match="no discrete factors"):
        FactorPairSampler(continuous)
    with pytest.raises(SamplerError, match=r"pass dataset\.factors"):
        FactorPairSampler([1, 2])
    one = FactorTable([SIZE])
    assert sorted(set(FactorPairSampler(one, 50)[0].indices.ravel().tolist())) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["grid", "few rows"])
def test_k_changes_with_the_step(name):
    """Each stretch of steps is that of a sampler of its k alone, whatever the k of the other stretches."""
    table = TABLES[name]
    by_step = FactorPairSampler(table, 8, k={0: 2, 40: (1, 3), 90: 1}, seed=3)
    for start, stop, k in ((0, 40, 2), (40, 90, (1, 3)), (90, 120, 1)):
        alone = FactorPairSampler(table, 8, k=k, seed=3)
        mine, other = by_step.block(start, stop), alone.block(start, stop)
        assert np.array_equal(mine.indices, other.indices)
        assert all(np.array_equal(mine.pair_labels[name], other.pair_labels[name]) for name in table.names)
    assert np.array_equal(by_step[93].indices, by_step.block(30, 100).indices[63])
    again = from_dict(json.loads(json.dumps(by_step.to_dict())), table)
    assert np.array_equal(again.block(30, 100).indices, by_step.block(30, 100).indices)
    assert json.dumps(again.to_dict()) == json.dumps(by_step.to_dict())
    assert "k is 2, from step 40 on 1 to 3, from step 90 on 1" in str(by_step.report())
    assert [entry.k for entry in by_step.report().pairs] == [1, 2, 3]


@pytest.mark.parametrize(
    ("k", "sentence"),
    [
        ({5: 1}, "k given by step must have a value for step 0"),
        ({0: 1, 10: 5}, "k from step 10 on must be from 1 to 4"),
        ({0: 1, 10: "two"}, "k from step 10 on must be a number of factors"),
    ],
)
def test_wrong_k_by_step(k, sentence):
    with pytest.raises(SamplerError, match=sentence):
        FactorPairSampler(grid(), k=k)


def test_a_stretch_without_pairs_is_named():
    table = FactorTable.from_values({"a": [0, 1, 0], "b": [0, 0, 0], "c": [0, 0, 1]})
    with pytest.raises(
        SamplerError, match="k is 3 from step 7 on, but no two rows differ in that many factors; choose from"
    ):
        FactorPairSampler(table, k={0: 1, 7: 3})


def test_a_factor_of_one_level_makes_no_pairs_of_a_row_with_itself():
    shape, light = Factor("shape", Kind.NOMINAL, ("cube",)), Factor("light", Kind.ORDINAL, (0, 1, 2))
    sampler = FactorPairSampler(FactorTable([shape, light]), 4, k=1, must_differ=False)
    assert not sampler.block(0, 50).pair_labels["shape"].any()
