"""Episodes against the enumeration of all of them."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import EpisodeSampler, from_dict
from tests.samplers.agreement import assert_agrees


def table_of(counts, unknown=0):
    """``counts[d][c]`` rows of class c in domain d, well mixed; rows with an unknown class follow."""
    counts = np.asarray(counts)
    domain, label = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices(counts.shape))
    order = np.random.default_rng(0).permutation(len(label))
    factors = [
        Factor("label", Kind.NOMINAL, tuple(f"c{number}" for number in range(counts.shape[1]))),
        Factor("domain", Kind.NOMINAL, tuple(f"d{number}" for number in range(counts.shape[0]))),
        Factor("half", Kind.ORDINAL, (0, 1)),
    ]
    rows = len(label) + unknown
    codes = {"label": np.full(rows, -1), "domain": np.zeros(rows, np.int64), "half": np.arange(rows) % 2}
    codes["label"][: len(label)], codes["domain"][: len(label)] = label[order], domain[order]
    return FactorTable(factors, codes)


def cells_of(table, kept=lambda row: True):
    """Rows of each class of each domain."""
    found = defaultdict(list)
    for row, (domain, label) in enumerate(zip(table.codes("domain"), table.codes("label"), strict=True)):
        if label >= 0 and kept(row):
            found[int(domain), int(label)].append(row)
    return found


def whole(cells):
    """The same without domains."""
    found = defaultdict(list)
    for (_, label), rows in cells.items():
        found[0, label] += rows
    return found


def places_of(cells, ways, shots, queries, which):
    """Domains of support and query of all episodes, which are equally likely, and the classes that each can have."""
    domains, labels = ({key[n] for key in cells} for n in (0, 1))
    found = {}
    for one, other in itertools.product(domains, domains):
        if (one == other) != (which == "within"):
            continue
        if which == "within":
            able = [c for c in labels if len(cells.get((one, c), ())) >= shots + queries]
        else:
            able = [
                c for c in labels if len(cells.get((one, c), ())) >= shots and len(cells.get((other, c), ())) >= queries
            ]
        if len(able) >= ways:
            found[one, other] = able
    return found


def chances_of(cells, ways, shots, queries, which):
    """Chance of every episode, as the tuple of its rows, set after set."""
    found = defaultdict(float)
    places = places_of(cells, ways, shots, queries, which)
    for (one, other), able in places.items():
        for labels in itertools.permutations(able, ways):
            parts = []
            for label in labels:
                if which == "within":
                    parts.append(list(itertools.permutations(cells[one, label], shots + queries)))
                else:
                    support = itertools.permutations(cells[one, label], shots)
                    query = list(itertools.permutations(cells[other, label], queries))
                    parts.append([a + b for a in support for b in query])
            share = 1 / len(places) / math.perm(len(able), ways) / math.prod(map(len, parts))
            for rows in itertools.product(*parts):
                found[sum(rows, ())] += share
    assert math.isclose(sum(found.values()), 1)
    return found


RAGGED = [[2, 3, 1, 2], [1, 0, 2, 2], [3, 0, 1, 0]]


@pytest.mark.long("statistics")
@pytest.mark.parametrize(
    ("counts", "ways", "shots", "queries"),
    [([[2, 3, 4]], 2, 1, 1), ([[2, 3, 1, 2]], 2, 1, 1), ([[3, 1, 4]], 2, 1, 2), ([[3, 3]], 2, 2, 1), ([[5]], 1, 2, 1)],
)
def test_episodes_come_as_often_as_documented(counts, ways, shots, queries):
    table = table_of(counts, unknown=2)
    sampler = EpisodeSampler(table, "label", ways, shots, queries, on_small_group="drop")
    draw = sampler.block(0, 40_000)
    assert draw.indices.shape == (40_000, ways, shots + queries)
    assert draw.mask is None
    assert_agrees(
        draw.indices.reshape(len(draw.indices), -1), chances_of(cells_of(table), ways, shots, queries, "within")
    )


@pytest.mark.long("statistics")
@pytest.mark.parametrize("which", ["across", "within"])
@pytest.mark.parametrize(
    ("counts", "ways", "shots", "queries"),
    [
        ([[2, 2], [2, 3]], 2, 1, 1),
        (RAGGED, 2, 1, 1),
        (RAGGED, 1, 1, 2),
        ([[3, 2, 0], [1, 3, 3], [2, 0, 1]], 1, 2, 1),
        ([[3, 3], [3, 3]], 1, 2, 1),
    ],
    ids=str,
)
def test_episodes_of_domains_come_as_often_as_documented(counts, ways, shots, queries, which):
    table = table_of(counts, unknown=2)
    sampler = EpisodeSampler(table, "label", ways, shots, queries, **{which: "domain"}, on_small_group="drop")
    assert_agrees(
        sampler.block(0, 40_000).indices.reshape(40_000, -1), chances_of(cells_of(table), ways, shots, queries, which)
    )


def successive(rows, weights, slots):
    """Chance of each ordered choice, each by weight among the rows that are left."""
    found = {}
    for chosen in itertools.permutations([row for row in rows if weights[row] > 0], slots):
        left, chance = sum(weights[row] for row in rows), 1.0
        for row in chosen:
            chance *= weights[row] / left
            left -= weights[row]
        found[chosen] = chance
    return found


@pytest.mark.long("statistics")
@pytest.mark.parametrize("which", ["within", "across"])
def test_rows_of_classes_by_weight(which):
    table = table_of([[3, 2], [2, 4]])
    weights = np.arange(len(table)) % 3 + (np.arange(len(table)) % 5 > 0)
    sampler = EpisodeSampler(table, "label", 1, 1, 1, **{which: "domain"}, weights=weights, on_small_group="drop")
    cells = {key: [row for row in rows if weights[row]] for key, rows in cells_of(table).items()}
    places, chances = places_of(cells, 1, 1, 1, which), defaultdict(float)
    for (one, other), able in places.items():
        for label in able:
            if which == "within":
                parts = successive(cells[one, label], weights, 2)
            else:
                ends = [successive(cells[domain, label], weights, 1) for domain in (one, other)]
                parts = {a + b: ends[0][a] * ends[1][b] for a in ends[0] for b in ends[1]}
            for rows, chance in parts.items():
                chances[rows] += chance / len(places) / len(able)
    assert_agrees(sampler.block(0, 40_000).indices.reshape(40_000, -1), chances)
    assert sampler.report().entries[0].excluded == int((weights == 0).sum())


@pytest.mark.long("statistics")
def test_episodes_of_many_classes_and_rows():
    # here rows and classes are drawn and redrawn, where small ones are permuted
    table = table_of(np.full((3, 40), 25))
    draw = EpisodeSampler(table, "label", 6, 2, 3, across="domain").block(0, 4000)
    label, domain = table.codes("label", draw.indices), table.codes("domain", draw.indices)
    assert (label == draw.inactive["label"][..., None]).all()
    assert all(len(set(labels)) == 6 for labels in draw.inactive["label"].tolist())
    assert all(len(set(rows)) == 30 for rows in draw.indices.reshape(4000, -1).tolist())
    assert (domain[:, :, :2] == domain[:, :1, :1]).all()
    assert (domain[:, :, 2:] == domain[:, :1, 2:3]).all()
    pairs = Counter(zip(domain[:, 0, 0].tolist(), domain[:, 0, 2].tolist(), strict=True))
    assert set(pairs) == set(itertools.permutations(range(3), 2))
    assert chisquare(list(pairs.values())).pvalue > 1e-4
    assert chisquare(np.bincount(draw.inactive["label"].ravel())).pvalue > 1e-4
    assert chisquare(np.bincount(draw.indices.ravel())).pvalue > 1e-4
    both = Counter(
        itertools.chain.from_iterable(itertools.combinations(sorted(d), 2) for d in draw.inactive["label"].tolist())
    )
    assert chisquare([both[pair] for pair in itertools.combinations(range(40), 2)]).pvalue > 1e-4


def test_neighbouring_steps_are_unrelated():
    table = table_of([[2, 2], [2, 2]])
    drawn = EpisodeSampler(table, "label", 1, 1, 1, across="domain").block(0, 20_000).indices.reshape(-1, 2)
    cells = list(chances_of(cells_of(table), 1, 1, 1, "across"))
    pairs = Counter(itertools.pairwise(map(tuple, drawn.tolist())))
    assert chisquare([pairs[pair] for pair in itertools.product(cells, cells)]).pvalue > 1e-4


# -- any table ---------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_episodes_of_any_table(data):
    domains, labels = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    cell = st.integers(0, 4)
    counts = data.draw(st.lists(st.lists(cell, min_size=labels, max_size=labels), min_size=domains, max_size=domains))
    if not np.sum(counts):
        return
    table = table_of(counts, unknown=data.draw(st.integers(0, 3)))
    which = data.draw(st.sampled_from([None, "within", "across"]))
    ways, shots, queries = (data.draw(st.integers(1, most)) for most in (3, 2, 3))
    where = data.draw(st.sampled_from([None, "half == 0"]))
    cells = cells_of(table, lambda row: where is None or row % 2 == 0)
    cells = whole(cells) if which is None else cells
    places = places_of(cells, ways, shots, queries, which or "within")
    options = {} if which is None else {which: "domain"}

    def make(on_small_group):
        return EpisodeSampler(
            table, "label", ways, shots, queries, **options, where=where, on_small_group=on_small_group, seed=7
        )

    need = max(shots, queries) if which == "across" else shots + queries
    if not places or any(len(rows) < need for rows in cells.values()):
        with pytest.raises(SamplerError):
            make("error")
    if not places:
        with pytest.raises(SamplerError):
            make("drop")
        return
    sampler = make("drop")
    draw = sampler.block(0, 40)
    domain, label = table.codes("domain", draw.indices), table.codes("label", draw.indices)
    for step in range(40):
        one, other = (0, 0) if which is None else (int(domain[step, 0, 0]), int(domain[step, 0, shots]))
        able = places[one, other]
        chosen = draw.inactive["label"][step].tolist()
        assert len(set(chosen)) == ways
        assert set(chosen) <= set(able)
        assert (label[step] == draw.inactive["label"][step][:, None]).all()
        for name, found in zip(chosen, draw.indices[step].tolist(), strict=True):
            assert len(set(found)) == shots + queries
            assert set(found[:shots]) <= set(cells[one, name])
            assert set(found[shots:]) <= set(cells[other, name])
    assert ("domain" in draw.inactive) == (which == "within")
    if which == "within":
        assert (domain == draw.inactive["domain"][..., None]).all()
    assert_reported(sampler, cells, places, which, (ways, shots, queries))


def assert_reported(sampler, cells, places, which, sizes):
    """The report's counts are those of an enumeration."""
    _, shots, queries = sizes
    entry = sampler.report().entries[0]
    reached = set()
    for (one, other), able in places.items():
        reached |= {(one, label) for label in able} | {(other, label) for label in able}
    drawable = {row for key in reached for row in cells[key]}
    known = {row for rows in cells.values() for row in rows}
    assert (entry.groups, entry.drawable) == (len([rows for rows in cells.values() if rows]), len(reached))
    assert entry.unreachable == len(known - drawable)
    assert entry.excluded + entry.unknown == len(sampler.table) - len(known)
    if which != "across":
        sets = sum(math.comb(len(cells[key]), shots + queries) for key in reached)
        assert 10**entry.log10_sets == pytest.approx(sets)
    else:
        found = [len(able) for able in places.values()]
        span = f"{min(found)} to {max(found)}" if min(found) < max(found) else f"{min(found)}"
        assert f": {len(places):,} of" in str(sampler.report())
        assert f"which share {span} class" in str(sampler.report())
    assert "nan" not in str(sampler.report())


def test_the_report_expects_as_many_values_as_are_drawn():
    table = table_of([[6, 9, 7], [8, 0, 6], [9, 9, 5]])
    sampler = EpisodeSampler(table, "label", 2, 2, 3, within="domain", on_small_group="drop")
    expected = sampler.report().entries[0].distinct
    half = table.codes("half", sampler.block(0, 20_000).indices)
    assert expected["half"] == pytest.approx(np.mean((half != half[..., :1]).any(axis=-1)) + 1, abs=0.01)


# -- what it promises --------------------------------------------------------------------------------------------------


def test_on_a_grid_and_on_columns():
    factors = [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip("abc", (4, 5, 6), strict=True)]
    grid = FactorTable(factors)
    columns = FactorTable(factors, {name: grid.codes(name) for name in grid.names})
    for options in ({}, {"across": "b"}, {"within": "b"}):
        one, other = (EpisodeSampler(table, ["a"], 3, 2, 3, **options).block(0, 50) for table in (grid, columns))
        assert np.array_equal(one.indices, other.indices)


def test_classes_nested_in_domains_and_domains_of_several_factors():
    item = np.arange(240) % 12
    table = FactorTable(
        [
            Factor("kind", Kind.NOMINAL, ("chair", "car", "plane")),
            Factor("item", Kind.NOMINAL, tuple(range(12)), within="kind"),
            Factor("room", Kind.NOMINAL, (0, 1)),
            Factor("light", Kind.NOMINAL, (0, 1)),
        ],
        {"kind": item % 3, "item": item, "room": np.arange(240) // 12 % 2, "light": np.arange(240) // 24 % 2},
    )
    draw = EpisodeSampler(table, "item", 3, 1, 2, within="kind").block(0, 50)
    assert set(draw.inactive) == {"kind", "item"}
    assert (table.codes("kind", draw.indices) == draw.inactive["kind"][:, :1, None]).all()
    with pytest.raises(SamplerError, match="4 classes in a domain of kind"):
        EpisodeSampler(table, "item", 5, 1, 2, within="kind")
    with pytest.raises(SamplerError, match=r"classes of kind, item also fix kind, so two domains never share a class"):
        EpisodeSampler(table, "item", 3, 1, 2, across="kind")
    both = EpisodeSampler(table, "item", 3, 1, 2, across=["room", "light"])
    assert set(both[0].inactive) == {"kind", "item"}
    where = table.codes("room", both.block(0, 50).indices) * 2 + table.codes("light", both.block(0, 50).indices)
    assert (where[..., :1] != where[..., 1:]).all()
    # items of one kind: a domain that fixes the class's own factor can only share that class
    one = EpisodeSampler(table, "kind", 1, 1, 2, across="item")
    assert set(one[0].inactive) == {"kind"}
    items = table.codes("item", one.block(0, 20).indices)
    assert (items[..., :1] != items[..., 1:]).all()


def test_the_same_again_from_plain_data():
    table = table_of(RAGGED)
    sampler = EpisodeSampler(table, ["label"], 2, 1, 1, across="domain", on_small_group="drop", seed=5)
    again = from_dict(sampler.to_dict(), table)
    assert np.array_equal(sampler.block(3, 30).indices, again.block(3, 30).indices)


def test_small_classes_are_named():
    table = table_of([[9, 3, 9, 1, 9]])
    with pytest.raises(SamplerError, match=r"2 of 5 groups.*fewer than the 4 rows.*label = c3: 1; label = c1: 3") as no:
        EpisodeSampler(table, "label", 2, 1, 3)
    assert "on_small_group='drop'" in str(no.value)
    assert "'short'" not in str(no.value)
    assert set(
        np.unique(EpisodeSampler(table, "label", 2, 1, 3, on_small_group="drop").block(0, 99).inactive["label"])
    ) == {
        0,
        2,
        4,
    }


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"label": []}, SamplerError, "label must be a list of at least one factor"),
        ({"label": "lable"}, FactorError, "did you mean 'label'"),
        ({"across": []}, SamplerError, "across must be a list of at least one factor"),
        ({"within": "domian"}, FactorError, "did you mean 'domain'"),
        ({"across": "domain", "within": "domain"}, SamplerError, "across= and within= are mutually exclusive"),
        ({"across": "label"}, SamplerError, "two domains never share a class"),
        ({"within": "label"}, SamplerError, "ways=2 exceeds the 1 class in"),
        ({"ways": 4}, SamplerError, "ways=4 exceeds the 3 classes with enough rows"),
        ({"ways": 4, "across": "domain"}, SamplerError, "two of the 2 domains of domain share at most 3 classes"),
        ({"ways": 4, "within": "domain"}, SamplerError, "3 classes in a domain of domain"),
        ({"ways": 0}, SamplerError, "ways must be an integer from 1"),
        ({"shots": 0}, SamplerError, "shots must be an integer from 1"),
        ({"queries": 1.5}, SamplerError, "queries must be an integer from 1"),
        ({"queries": 2**30, "ways": 2**20}, SamplerError, "reduce ways, shots or queries"),
        ({"on_small_group": "short"}, SamplerError, "on_small_group must be 'error' or 'drop'"),
        ({"on_small_group": 3}, SamplerError, "on_small_group must be 'error' or 'drop'"),
        ({"where": "half > 1"}, SamplerError, "where= and weights= leave none of the"),
        ({"seed": -1}, SamplerError, "seed"),
    ],
)
def test_wrong_arguments(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        EpisodeSampler(table_of(np.full((2, 3), 6)), **{"label": "label", "ways": 2, "queries": 2, **arguments})


def test_blocks_across_domains_are_the_single_draws_whatever_is_looked_at_at_a_time(monkeypatch):
    table = FactorTable.from_values({"c": np.repeat(np.arange(50), 6), "d": np.tile([0, 0, 1, 1, 2, 2], 50)})
    sampler = EpisodeSampler(table, "c", 5, 1, 1, across="d")
    single = np.stack([sampler[step].indices for step in range(40)])
    for cells in (1, 50, 170, 10**6):
        monkeypatch.setattr("setsup.samplers.groups.across._CELLS", cells)
        assert np.array_equal(sampler.block(0, 40).indices, single)
