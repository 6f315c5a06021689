"""Constraints between positions against the enumeration of all pairs of rows."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.constraint import read_constraint
from setsup.samplers import OrbitSampler, TripletSampler, from_dict
from setsup.samplers.groups.anchors import Anchors
from tests.samplers.agreement import assert_agrees

SIZES = {"id": 4, "camera": 3, "category": 2, "day": 2, "part": 2}


def table_of(rows, seed=0, unknown=0.0, sizes=SIZES):
    """Random columns; ``part`` is nested in ``category``."""
    random = np.random.default_rng(seed)
    codes = {name: random.integers(0, size, rows) for name, size in sizes.items()}
    codes = {name: np.where(random.random(rows) < unknown, -1, column) for name, column in codes.items()}
    return FactorTable(factors(sizes), codes)


def factors(sizes=SIZES):
    within = {"part": "category"} if {"part", "category"} <= sizes.keys() else {}
    return [Factor(name, Kind.NOMINAL, tuple(range(size)), within=within.get(name)) for name, size in sizes.items()]


def value(table, row, name):
    """What a row has of a factor, with what that is nested in; None where any of it is unknown."""
    found = tuple(int(table.codes(one, row)) for one in (name, *table.outer(name)))
    return None if -1 in found else found


class Meant:
    """A constraint, by its parts: what is equal, what differs, conditions of the row and of the anchor."""

    def __init__(self, equal=(), differ=(), row=None, anchor=None):
        self.equal, self.differ, self.row, self.anchor = equal, differ, row, anchor

    def __str__(self):
        terms = [f"{name} == anchor.{name}" for name in self.equal] + [
            f"anchor.{name} != {name}" for name in self.differ
        ]
        terms += [f"{self.row[0]} == {self.row[1]}"] if self.row else []
        terms += [f"anchor.{self.anchor[0]} == {self.anchor[1]}"] if self.anchor else []
        return " and ".join(terms)

    def allows(self, table, anchor):
        return self.anchor is None or table.codes(self.anchor[0], anchor) == self.anchor[1]

    def holds(self, table, anchor, row):
        if not self.allows(table, anchor):
            return False
        if self.row is not None and table.codes(self.row[0], row) != self.row[1]:
            return False
        for name in (*self.equal, *self.differ):
            one, other = value(table, anchor, name), value(table, row, name)
            if one is None or other is None or (one == other) != (name in self.equal):
                return False
        return True

    def rows(self, table, anchor, kept=None):
        every = range(len(table)) if kept is None else kept
        return [row for row in every if row != anchor and self.holds(table, anchor, row)]


def choices(groups, choose):
    """Chance of each group, given by its key and the number, or the weight, of its anchors."""
    keys = list(groups)
    if choose == "rows":
        return {key: groups[key] / sum(groups.values()) for key in keys}
    if choose == "groups" or not keys[0]:
        return dict.fromkeys(keys, 1 / len(keys))
    chances = {}
    for key in keys:
        chances[key] = 1.0
        for place in range(len(key)):
            chances[key] /= len({other[place] for other in keys if other[:place] == key[:place]})
    return chances


def shares(rows, weights):
    """Chance of each of some rows, by weight."""
    return {row: weights[row] / sum(weights[one] for one in rows) for row in rows}


def triplets_of(table, positive, negative, choose="rows", kept=None, weights=None):
    """Chance of every triplet."""
    every = range(len(table)) if kept is None else kept
    weights = np.ones(len(table)) if weights is None else weights
    able = {}
    for anchor in every:
        both = positive.rows(table, anchor, kept), negative.rows(table, anchor, kept)
        if all(both):
            able[anchor] = both
    names = [name for name in table.names if name in {n for one in positive.equal for n in (one, *table.outer(one))}]
    keys = {anchor: tuple(int(table.codes(name, anchor)) for name in names) for anchor in able}
    groups = Counter()
    for anchor, key in keys.items():
        groups[key] += weights[anchor]
    chances = choices(groups, choose)
    found = {}
    for anchor, (positives, negatives) in able.items():
        of_anchor = chances[keys[anchor]] * weights[anchor] / groups[keys[anchor]]
        one, other = shares(positives, weights), shares(negatives, weights)
        found |= {(anchor, i, j): of_anchor * one[i] * other[j] for i in one for j in other}
    assert not found or math.isclose(sum(found.values()), 1)
    return found


PAIRS = {
    "re-identification": (Meant(["id"], ["camera"]), Meant(["category"], ["id"])),
    "one half each": (Meant(["id"], row=("day", 1)), Meant([], ["id"], row=("day", 0), anchor=("camera", 1))),
    "two differ": (Meant(["category"], ["camera", "day"]), Meant(["camera"], ["id"])),
    "three differ": (Meant([], ["camera", "day", "id"]), Meant(["id", "category"])),
    "nested": (Meant(["part"], ["id"]), Meant([], ["part", "day"])),
    "nothing in common": (Meant(["camera"]), Meant([], row=("id", 2))),
}


@pytest.mark.long("statistics")
@pytest.mark.parametrize(("choose", "unknown"), [("rows", 0.0), ("rows", 0.1), ("groups", 0.1), ("levels", 0.1)])
@pytest.mark.parametrize("name", PAIRS)
def test_triplets_come_as_often_as_documented(name, unknown, choose):
    table = table_of(17, seed=3, unknown=unknown)
    positive, negative = PAIRS[name]
    sampler = TripletSampler(table, None, 40, positive=str(positive), negative=str(negative), choose=choose)
    chances = triplets_of(table, positive, negative, choose)
    assert_agrees(sampler.block(0, 2500).indices, chances)


@pytest.mark.parametrize("choose", ["rows", "groups"])
@pytest.mark.parametrize("name", ["re-identification", "two differ", "nested"])
def test_triplets_come_by_weight(name, choose):
    table, (positive, negative) = table_of(12, seed=3), PAIRS[name]
    weights = np.random.default_rng(2).integers(0, 4, len(table)) * 0.25
    options = {"positive": str(positive), "negative": str(negative), "choose": choose}
    sampler = TripletSampler(table, None, 40, weights=weights, **options)
    kept = np.flatnonzero(weights).tolist()
    assert_agrees(sampler.block(0, 1500).indices, triplets_of(table, positive, negative, choose, kept, weights))
    entry = sampler.report().entries[0]
    assert entry.excluded == len(table) - len(kept)
    assert entry == TripletSampler(table, None, where=weights > 0, **options).report().entries[0]  # it counts rows
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    assert np.array_equal(again.block(0, 5).indices, sampler.block(0, 5).indices)


def test_without_statistics_triplets_are_those_of_the_enumeration():
    table = table_of(12, seed=1)
    for positive, negative in PAIRS.values():
        sampler = TripletSampler(table, triplets=32, positive=str(positive), negative=str(negative))
        drawn = set(map(tuple, sampler.block(0, 400).indices.reshape(-1, 3).tolist()))
        assert drawn == set(triplets_of(table, positive, negative))


# -- every anchor and every row by its rank, so that each comes once ---------------------------------------------------


def words(count):
    """Words of which each leads to another number below ``count``."""
    return ((np.arange(count) + 0.5) / count * 2.0**64).astype(np.uint64)


@st.composite
def tables(draw):
    rows = draw(st.integers(2, 30))
    sizes = {name: draw(st.integers(1, 3)) for name in "abcde"}
    low = -1 if draw(st.booleans()) else 0
    codes = {
        name: np.array(draw(st.lists(st.integers(low, size - 1), min_size=rows, max_size=rows)))
        for name, size in sizes.items()
    }
    within = {"b": "a"} if draw(st.booleans()) else {}
    listed = [Factor(name, Kind.NOMINAL, tuple(range(size)), within=within.get(name)) for name, size in sizes.items()]
    if draw(st.booleans()):
        return FactorTable(listed[:4])  # a grid
    return FactorTable(listed, codes)


@st.composite
def constraints(draw, names):
    order = draw(st.permutations(names))
    equal = draw(st.integers(0, 2))
    differ = order[equal : equal + draw(st.integers(0, 3))]
    conditions = st.one_of(st.none(), st.tuples(st.sampled_from(names), st.just(0)))
    meant = Meant(order[:equal], differ, draw(conditions), draw(conditions))
    return meant if str(meant) else Meant(order[:1])


@settings(max_examples=50)
@given(data=st.data())
def test_every_anchor_and_every_row_has_one_rank(data):
    table = data.draw(tables())
    positive, negative = (data.draw(constraints(list(table.names))) for _ in range(2))
    need = data.draw(st.integers(1, 2))
    kept = data.draw(st.one_of(st.none(), st.just([row for row in range(len(table)) if row % 3])))
    mask = None if kept is None else np.isin(np.arange(len(table)), kept)
    meant = {"positive": positive, "negative": negative}
    read = {role: read_constraint(str(one), table, role) for role, one in meant.items()}
    names = tuple(dict.fromkeys(data.draw(st.lists(st.sampled_from(table.names), max_size=2))))
    names = table.group_by(names).names if names else ()
    anchors = Anchors(table, names, read, {"positive": need, "negative": 1}, mask)

    able = {}
    for row in range(len(table)) if kept is None else kept:
        rows = {role: one.rows(table, row, kept) for role, one in meant.items()}
        known = all(table.codes(name, row) >= 0 for name in names)
        if len(rows["positive"]) >= need and len(rows["negative"]) >= 1 and known:
            able[row] = rows
    assert len(anchors) == len(able)
    found = []
    for number, (key, count) in enumerate(zip(anchors.keys.tolist(), anchors.counts.tolist(), strict=True)):
        cells, rows = anchors.draw(np.full(count, number), words(count))
        assert all(table.codes(name, rows).tolist() == [code] * count for name, code in zip(names, key, strict=True))
        found += rows.tolist()
        for cell, row in zip(cells, rows, strict=True):
            for role in meant:
                others = int(anchors.others(role, cell[None], row[None])[0])
                taken = anchors.take(role, cell[None], row[None], np.arange(others))
                assert sorted(taken.tolist()) == able[int(row)][role]
    assert sorted(found) == sorted(able)
    if able:
        entry = anchors.entry()
        for role, one in entry.partners.items():
            counts = [len(rows[role]) for rows in able.values()]
            assert (one.least, one.most, one.mean) == (min(counts), max(counts), pytest.approx(np.mean(counts)))
        drawn = set(able).union(*(rows[role] for rows in able.values() for role in rows))
        assert anchors.never() == len(table) - len(drawn)
        ways = sum(len(rows["positive"]) * len(rows["negative"]) for rows in able.values())
        assert 10**entry.log10_sets == pytest.approx(ways)
        assert entry.anchors == len(able)


@settings(max_examples=25)
@given(data=st.data())
def test_every_anchor_and_every_row_has_as_many_ranks_as_its_weight(data):
    table = data.draw(tables())
    positive, negative = (data.draw(constraints(list(table.names))) for _ in range(2))
    weights = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(table), max_size=len(table))))
    kept = np.flatnonzero(weights).tolist()
    meant = {"positive": positive, "negative": negative}
    read = {role: read_constraint(str(one), table, role) for role, one in meant.items()}
    scaled = np.ldexp(weights.astype(float), data.draw(st.sampled_from([0, -1000, 1000])))
    anchors = Anchors(table, (), read, {"positive": 1, "negative": 1}, weights > 0, scaled)

    able = {row: {role: one.rows(table, row, kept) for role, one in meant.items()} for row in kept}
    able = {row: rows for row, rows in able.items() if all(rows.values())}
    assert len(anchors) == len(able)
    if not able:
        return
    count = sum(weights[row] for row in able)
    cells, rows = anchors.draw(np.zeros(count, dtype=np.int64), words(count))
    assert Counter(rows.tolist()) == {row: weights[row] for row in able}
    for cell, row in dict(zip(rows.tolist(), zip(cells, rows, strict=True), strict=True)).values():
        for role in meant:
            others = able[int(row)][role]
            count = sum(weights[other] for other in others)
            found = anchors.pick(role, np.repeat(cell, count), np.repeat(row, count), words(count))
            assert Counter(found.tolist()) == {other: weights[other] for other in others}


@settings(max_examples=50)
@given(data=st.data())
def test_holds_agrees_with_the_meaning(data):
    table = data.draw(tables())
    meant = data.draw(constraints(list(table.names)))
    every = np.arange(min(len(table), 12))
    holds = read_constraint(str(meant), table).holds(table, every[:, None], every)
    assert holds.tolist() == [[meant.holds(table, anchor, row) for row in every] for anchor in every]


# -- orbits ------------------------------------------------------------------------------------------------------------


def sets_of(table, orbit, members, size, choose, on_small_group):
    """Chance of every set, an anchor and other rows in order; shorter ones padded with the anchor."""
    meant = Meant([orbit, *members.equal], members.differ, members.row, members.anchor)
    least = size - 1 if on_small_group in ("error", "drop") else 1
    able = {row: rows for row in range(len(table)) if len(rows := meant.rows(table, row)) >= least}
    able = {row: rows for row, rows in able.items() if value(table, row, orbit) is not None}
    keys = {row: value(table, row, orbit) for row in able}
    groups = Counter(keys.values())
    chances, found = choices(groups, choose), {}
    for row, rows in able.items():
        if len(rows) >= size - 1:
            ways = list(itertools.permutations(rows, size - 1))
        elif on_small_group == "replace":
            ways = list(itertools.product(rows, repeat=size - 1))
        else:
            ways = [(*way, *[row] * (size - 1 - len(rows))) for way in itertools.permutations(rows)]
        found |= {(row, *way): chances[keys[row]] / groups[keys[row]] / len(ways) for way in ways}
    assert math.isclose(sum(found.values()), 1)
    return found


@pytest.mark.long("statistics")
@pytest.mark.parametrize("choose", ["rows", "groups"])
@pytest.mark.parametrize("on_small_group", ["drop", "short", "replace"])
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    "members", [Meant([], ["camera"]), Meant([], ["camera", "day"]), Meant(["day"], row=("category", 1))], ids=str
)
def test_sets_of_an_anchor_come_as_often_as_documented(members, size, on_small_group, choose):
    table = table_of(16, seed=5, unknown=0.05)
    options = {"values": "independent", "choose": choose, "on_small_group": on_small_group}
    sampler = OrbitSampler(table, "id", 20, size, members=str(members), **options)
    draw = sampler.block(0, 3000)
    assert_agrees(draw.indices, sets_of(table, "id", members, size, choose, on_small_group))
    assert np.array_equal(draw.inactive["id"], table.codes("id", draw.indices[..., 0]))
    if draw.mask is not None:
        repeated = draw.indices == draw.indices[..., :1]
        repeated[..., 0] = False
        assert np.array_equal(draw.mask, ~repeated)


@pytest.mark.parametrize("on_small_group", ["drop", "short", "replace"])
def test_sets_of_an_anchor_come_by_weight(on_small_group):
    table, members = table_of(12, seed=5), Meant([], ["camera"])
    weights = np.random.default_rng(4).integers(0, 5, len(table)).astype(float)
    options = {"values": "independent", "choose": "rows", "on_small_group": on_small_group}
    sampler = OrbitSampler(table, "category", 20, 4, members=str(members), weights=weights, **options)
    kept, meant = np.flatnonzero(weights).tolist(), Meant(["category"], ["camera"])
    able = {
        row: rows for row in kept if len(rows := meant.rows(table, row, kept)) >= (3 if on_small_group == "drop" else 1)
    }
    chances = {}
    for row, anchor in shares(able, weights).items():
        rows, few = able[row], len(able[row]) < 3
        for way in (
            itertools.product(rows, repeat=3)
            if few and on_small_group == "replace"
            else itertools.permutations(rows, 3 if not few else len(rows))
        ):
            chance, left = anchor, list(rows)
            for other in way:
                chance *= shares(left, weights)[other]
                if not few or on_small_group != "replace":
                    left.remove(other)
            chances[row, *way, *[row] * (3 - len(way))] = chance
    assert math.isclose(sum(chances.values()), 1)
    assert_agrees(sampler.block(0, 2500).indices, chances)
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    assert np.array_equal(again.block(0, 5).indices, sampler.block(0, 5).indices)


def test_members_of_hardly_any_weight_are_drawn_where_no_other_is_left():
    table = FactorTable.from_values({"id": list("aaaab"), "camera": [1, 2, 2, 2, 3]})
    for light in (1e-20, 1e-300):
        options = {
            "members": "camera != anchor.camera",
            "on_small_group": "drop",
            "weights": [1.0, 1.0, light, 2 * light, 1.0],
        }
        rows = OrbitSampler(table, "id", 1, 4, **options).block(0, 600).indices[:, 0]
        assert (rows[:, :2] == [0, 1]).all()
        assert chisquare(np.bincount(rows[:, 2])[2:], [200, 400]).pvalue > 1e-4
    # an anchor that is heavy leaves what is light its own chances
    negatives = {"positive": "id == anchor.id", "negative": "camera == anchor.camera and id != anchor.id"}
    table = FactorTable.from_values({"id": list("aabbb"), "camera": [1, 2, 1, 1, 1]})
    weights = [1e12, 1e12, 1e-3, 2e-3, 3e-3]
    rows = TripletSampler(table, triplets=60, weights=weights, **negatives).block(0, 100).indices.reshape(-1, 3)
    assert chisquare(np.bincount(rows[rows[:, 0] == 0, 2])[2:], [1000, 2000, 3000]).pvalue > 1e-4


def test_sets_of_a_step_are_different_orbits():
    table = table_of(60, seed=2)
    sampler = OrbitSampler(table, "id", 4, 3, members="camera != anchor.camera", canonical="first")
    draw = sampler.block(0, 50)
    codes, camera = table.codes("id", draw.indices), table.codes("camera", draw.indices)
    assert (codes == codes[..., :1]).all()
    assert (np.sort(codes[..., 0]) == np.arange(4)).all()
    assert (camera[..., 1:] != camera[..., :1]).all()
    assert draw.mask is None
    first = [np.flatnonzero(table.codes("id") == code)[0] for code in range(4)]
    assert np.array_equal(draw.canonical, np.array(first)[codes[..., 0]])


def test_orbits_without_an_anchor():
    values = {"id": list("aaabbcc"), "camera": [1, 1, 2, 1, 1, 1, 2]}
    table = FactorTable.from_values(values)
    with pytest.raises(
        SamplerError, match=r"1 of 3 groups of id have no anchor with 1 other row .*first: id = b"
    ) as no:
        OrbitSampler(table, "id", 2, 2, members="camera != anchor.camera")
    assert "on_small_group='drop'" in str(no.value)
    sampler = OrbitSampler(table, "id", 2, 2, members="camera != anchor.camera", on_small_group="drop")
    drawn = set(sampler.block(0, 200).indices.ravel().tolist())
    assert drawn == {0, 1, 2, 5, 6}
    groups, anchors = sampler.report().entries
    assert (groups.drawable, groups.unreachable, anchors.anchors, anchors.lacking) == (2, 2, 5, {"members": 2})
    assert "2 without enough members" in str(sampler.report())
    with pytest.raises(SamplerError, match="3 of 3 groups of id have no anchor with 2 other rows"):
        OrbitSampler(table, "id", 1, 3, members="camera == 2 and camera != anchor.camera", on_small_group="drop")


# -- what a user sees --------------------------------------------------------------------------------------------------


MARKET = {
    "id": ["a", "a", "a", "b", "b", "c", None, "d"],
    "camera": [1, 2, None, 1, 1, 3, 2, 2],
    "kind": ["x", "x", "x", "x", "x", "y", "x", "x"],
}
POSITIVE, NEGATIVE = "id == anchor.id and camera != anchor.camera", "kind == anchor.kind and id != anchor.id"


def test_the_report_counts_infeasible_anchors():
    table = FactorTable.from_values(MARKET)
    sampler = TripletSampler(table, positive=POSITIVE, negative=NEGATIVE)
    entry = sampler.report().entries[0]
    assert (entry.anchors, entry.unknown, entry.excluded) == (2, 2, 0)
    assert entry.lacking == {"positive": 4, "negative": 1}
    assert entry.partners["negative"].most == 3
    assert entry.unreachable == 3  # unknown camera, unknown identity, another kind
    text = str(sampler.report())
    assert "rows that are not anchors: 4 without a positive, 1 without a negative, 2 with an unknown value" in text
    assert POSITIVE in text
    assert sampler.report().to_dict()["entries"][0]["partners"]["positive"]["constraint"] == POSITIVE


def test_no_anchor_at_all():
    table = FactorTable.from_values(MARKET)
    with pytest.raises(SamplerError, match="no row has both a positive and a negative: 7 without a positive"):
        TripletSampler(table, positive="id == anchor.id and kind != anchor.kind", negative=NEGATIVE)
    with pytest.raises(SamplerError, match="8 left out by where"):
        TripletSampler(table, positive=POSITIVE, negative=NEGATIVE, where="camera > 3 or camera < 1")


def test_where_restricts_all_positions():
    table = table_of(200, seed=4, unknown=0.05)
    sampler = TripletSampler(table, positive=POSITIVE, negative="id != anchor.id", where="day == 1")
    rows = sampler.block(0, 100).indices
    assert (table.codes("day", rows) == 1).all()
    positive, negative = (Meant(["id"], ["camera"]), Meant([], ["id"]))
    kept = np.flatnonzero(table.codes("day") == 1).tolist()
    assert set(rows[..., 0].ravel().tolist()) <= {key[0] for key in triplets_of(table, positive, negative, kept=kept)}


def test_from_a_query_to_a_gallery():
    table = table_of(300, seed=6)
    query = "anchor.day == 0 and day == 1 and "
    sampler = TripletSampler(table, positive=query + "id == anchor.id", negative=query + "id != anchor.id")
    day = table.codes("day", sampler.block(0, 50).indices)
    assert (day == [0, 1, 1]).all()


def test_on_a_grid_and_on_columns():
    listed = [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip("abcd", (3, 4, 5, 2), strict=True)]
    grid = FactorTable(listed)
    columns = FactorTable(listed, {name: grid.codes(name) for name in grid.names})
    options = {"positive": "c == anchor.c and a != anchor.a and d != anchor.d", "negative": "b == anchor.b"}
    one, other = (TripletSampler(table, **options, choose="levels").block(0, 100) for table in (grid, columns))
    assert np.array_equal(one.indices, other.indices)


@pytest.mark.long("large or genuine files")
def test_on_a_grid_of_more_rows_than_memory():
    grid = FactorTable([Factor(name, Kind.NOMINAL, tuple(range(1000))) for name in "abcdef"])
    sampler = TripletSampler(grid, positive="a == anchor.a and b != anchor.b", negative="a != anchor.a")
    rows = sampler.block(0, 50).indices
    a, b = grid.codes("a", rows), grid.codes("b", rows)
    assert (a[..., 0] == a[..., 1]).all()
    assert (b[..., 0] != b[..., 1]).all()
    assert (a[..., 0] != a[..., 2]).all()
    assert sampler.report().entries[0].log10_sets == pytest.approx(18 + math.log10(999e12 * 999e15))
    assert np.isnan(sampler.reach().chance([0, 10**17])).all()  # too many to look at each
    with pytest.raises(SamplerError, match="index of a, b, c, d, e requires"):
        TripletSampler(
            grid,
            positive="a == anchor.a and b == anchor.b and c == anchor.c",
            negative="d != anchor.d and e == anchor.e",
        )


def test_samplers_are_made_again_from_plain_data():
    table = table_of(100, seed=7)
    for sampler in (
        TripletSampler(table, positive=POSITIVE, negative="id != anchor.id", seed=3),
        OrbitSampler(table, "id", 3, 2, members="camera != anchor.camera", seed=3),
    ):
        again = from_dict(sampler.to_dict(), table)
        assert np.array_equal(again.block(5, 9).indices, sampler.block(5, 9).indices)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({}, SamplerError, "triplets require an orbit or constraints"),
        ({"positive": POSITIVE}, SamplerError, "both positive= and negative="),
        ({"negative": POSITIVE}, SamplerError, "both positive= and negative="),
        ({"orbit": "id", "positive": POSITIVE, "negative": NEGATIVE}, SamplerError, "pass either orbit=, or both"),
        (
            {"positive": POSITIVE, "negative": NEGATIVE, "on_small_group": "drop"},
            SamplerError,
            "on_small_group applies only to orbit",
        ),
        ({"positive": POSITIVE, "negative": NEGATIVE, "weights": [1, 2]}, SamplerError, "weights must have shape"),
        ({"positive": POSITIVE, "negative": NEGATIVE, "weights": [-1.0] * 8}, SamplerError, "non-negative"),
        (
            {"positive": POSITIVE, "negative": NEGATIVE, "weights": [1, 0, 1, 1, 1, 1, 1, 1]},
            SamplerError,
            "no row has both a positive and a negative: .*1 left out by where=, weights=",
        ),
        ({"positive": POSITIVE, "negative": NEGATIVE, "choose": "row"}, SamplerError, "did you mean 'rows'"),
        ({"positive": 3, "negative": NEGATIVE}, FactorError, "positive must be a string"),
        ({"positive": "idd == anchor.id", "negative": NEGATIVE}, FactorError, "did you mean 'id'"),
    ],
)
def test_wrong_arguments_of_triplets(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        TripletSampler(FactorTable.from_values(MARKET), **arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"size": None}, "members requires size to be at least 2"),
        ({"size": 1}, "members requires size to be at least 2"),
        ({"members": "id != anchor.id"}, "all members of an orbit have the same 'id'"),
        ({"members": "camera != anchor.kamera"}, "did you mean 'camera'"),
    ],
)
def test_wrong_arguments_of_orbits(arguments, sentence):
    options = {"sets": 1, "size": 2, "members": "camera != anchor.camera", "on_small_group": "drop"}
    with pytest.raises((SamplerError, FactorError), match=sentence):
        OrbitSampler(FactorTable.from_values(MARKET), "id", **{**options, **arguments})
