"""Grids of more rows than doubles can count: every level of every factor comes, and arithmetic stays exact."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from setsup.errors import FactorError, SamplerError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.random import fold, permute, randint_below, stream_key
from setsup.samplers import (
    DomainSampler,
    EpisodeSampler,
    EpochSampler,
    FactorPairSampler,
    HierarchicalSampler,
    Mixture,
    OrbitSampler,
    SequencePairSampler,
    SetSampler,
    TripletSampler,
)

RARE = 1e-5
SIZES = {
    "2**60": (64,) * 10,
    "just beyond 2**53": (2**14 + 1, 2**13, 2**13, 2**13),
    "63**10": (63,) * 10,
    "7 * 3**36": (7, *(3**6,) * 6),
    "almost 2**62": (2**16 + 1, 2**15 - 1, 46_337, 46_327),
}
NAMES = "abcdefghij"


def grid_of(sizes):
    named = zip(NAMES, sizes, strict=False)
    return FactorTable([Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in named])


@pytest.fixture(scope="module", params=SIZES)
def grid(request):
    found = grid_of(SIZES[request.param])
    assert 2**53 < len(found) < 2**62
    return found


def codes_of(grid, row):
    """Levels of a row, by Python's numbers."""
    found = []
    for factor in reversed(grid.factors):
        row, code = divmod(row, len(factor))
        found.append(code)
    return found[::-1]


def assert_even(grid, rows, held=()):
    """All levels of all varying factors come equally often, of many levels their remainders by a small number."""
    rows = rows.reshape(-1)
    assert rows.min() >= 0
    assert rows.max() < len(grid)
    some = rows[:50].tolist()
    assert [codes_of(grid, row) for row in some] == np.stack(
        [grid.codes(name, some) for name in grid.names], 1
    ).tolist()
    for factor in grid.factors:
        if factor.name in held:
            continue
        cells = min(len(factor), 64)
        levels = np.bincount(np.arange(len(factor)) % cells)
        seen = np.bincount(grid.codes(factor.name, rows) % cells, minlength=cells)
        assert stats.chisquare(seen, len(rows) * levels / len(factor)).pvalue > RARE, factor.name


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_numbers_below_large_sizes_are_the_documented_formula():
    words = fold(stream_key(0, "large"), np.arange(40))
    extremes = np.array([0, 1, 2**64 - 1, 2**63, 2**32 - 1, 2**32], dtype=np.uint64)
    words = np.concatenate([words, extremes])
    for n in (2**53 + 1, 2**54, 3 * 2**60, 63**10, 2**62 - 1, 2**63 - 1):
        more = fold(words, 0)
        exact = [((int(word) << 64 | int(next_)) * n) >> 128 for word, next_ in zip(words, more, strict=True)]
        assert randint_below(words, n).tolist() == exact
        assert randint_below(words, np.full(len(words), n)).tolist() == exact
        assert max(exact) < n
        assert [int(randint_below(word, n)) for word in words[:4]] == exact[:4]


def test_sizes_on_both_sides_of_the_edge_in_one_draw():
    words = fold(stream_key(1, "large"), np.arange(8))
    sizes = np.array([5, 2**53, 2**53 + 1, 2**60, 1, 2**40, 2**62 - 1, 7])
    assert randint_below(words, sizes).tolist() == [
        int(randint_below(w, int(n))) for w, n in zip(words, sizes, strict=True)
    ]
    assert randint_below(words, 2**53).tolist() == [int(word) >> 11 for word in words]


@pytest.mark.parametrize("n", [2**53 + 1, 63**10, 2**62 - 1])
def test_large_permutations_are_even_and_repeat_nothing(n):
    images = permute(np.uint64(stream_key(2, "large")), n, np.arange(20_000) * (n // 20_000))
    assert len(np.unique(images)) == 20_000
    assert images.min() >= 0
    assert images.max() < n
    for modulus in (2, 3, 64):
        seen = np.bincount(images % modulus, minlength=modulus)
        assert stats.chisquare(seen).pvalue > RARE
    assert stats.kstest(images / n, "uniform").pvalue > RARE


# -- samplers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"values": "equal"},
        {"values": "different"},
        {"choose": "rows"},
        {"on_small_group": "short"},
        {"on_small_group": "replace"},
        {"unconstrained": 1},
    ],
)
def test_sets(grid, options):
    draw = SetSampler(grid, ["a"], size=40, **options).block(0, 100)
    held = grid.codes("a", draw.indices)
    fixed = draw.inactive["a"] >= 0
    assert (held == draw.inactive["a"][..., None])[fixed].all()
    assert_even(grid, draw.indices, ["a"])


def test_sets_that_fix_nothing_or_a_factor_in_the_middle(grid):
    assert_even(grid, SetSampler(grid, [], size=64, sets=1).block(0, 100).indices)
    middle = SetSampler(grid, ["c"], size=64, sets=1, choose="groups").block(0, 100)
    assert (grid.codes("c", middle.indices) == middle.inactive["c"][..., None]).all()
    assert_even(grid, middle.indices, ["c"])


@pytest.mark.parametrize("domains", ["balanced", "independent"])
@pytest.mark.parametrize("start", [0, 2**50, 2**63 - 101])
def test_domains(grid, domains, start):
    draw = DomainSampler(grid, "a", sets=3, size=24, domains=domains).block(start, start + 100)
    assert (grid.codes("a", draw.indices) == draw.inactive["a"][..., None]).all()
    assert_even(grid, draw.indices, ["a"])


def test_visits_of_a_large_domain_repeat_no_row_until_all_came():
    grid = grid_of((3, *(64,) * 9))
    sampler = DomainSampler(grid, "a", sets=3, size=40)
    # a domain of 2⁵⁴ rows is visited at every step, 40 rows each time: positions step · 40 of one permutation
    for start in (0, 2**58 // 40, 2**63 - 1001):
        rows = sampler.block(start, start + 1000).indices
        assert (grid.codes("a", rows) == grid.codes("a", rows[..., :1])).all()
        assert len(np.unique(rows)) == rows.size


def test_orbits_and_triplets(grid):
    orbits = OrbitSampler(grid, "a", sets=4, size=16, canonical="first").block(0, 100)
    assert_even(grid, orbits.indices, ["a"])
    anchor, positive, negative = (
        TripletSampler(grid, "a", triplets=64).block(0, 100).indices[..., place] for place in range(3)
    )
    assert (grid.codes("a", anchor) == grid.codes("a", positive)).all()
    assert (grid.codes("a", anchor) != grid.codes("a", negative)).all()
    for rows in (anchor, positive, negative):
        assert_even(grid, rows)


@pytest.mark.parametrize("partial", ["drop", "pad"])
def test_epochs(grid, partial):
    sampler = EpochSampler(grid, size=96, partial=partial)
    for start in (0, sampler.steps_per_epoch - 70, 2**63 - 101):
        rows = sampler.block(start, start + 100).indices
        assert len(np.unique(rows[:70])) >= 70 * 96 - 96  # the last batch of an epoch may be padded
        assert_even(grid, rows)
    ordered = EpochSampler(grid, size=96, shuffle=False, partial="drop")
    last = ordered.steps_per_epoch - 1
    assert ordered[last].indices[0].tolist() == list(range(last * 96, last * 96 + 96))
    assert ordered[last + 1].indices[0].tolist() == list(range(96))


# -- reports -----------------------------------------------------------------------------------------------------------


def log10_choose(n, k):
    return sum(math.log10(n - i) - math.log10(i + 1) for i in range(k))


@pytest.mark.parametrize("size", [1, 8, 300])
def test_reports_are_exact(grid, size):
    rows, levels = len(grid), len(grid["a"])
    entry = SetSampler(grid, ["a"], size=size).report().entries[0]
    assert (entry.groups, entry.smallest, entry.largest, entry.unreachable) == (
        levels,
        rows // levels,
        rows // levels,
        0,
    )
    exact = math.log10(levels) + log10_choose(rows // levels, size)
    assert entry.log10_sets == pytest.approx(exact, abs=1e-6)
    assert entry.shared_rows == pytest.approx(size**2 / rows, rel=1e-9)
    for name in grid.names[1:]:
        many = len(grid[name])  # rows are so many that drawing again would be as drawing on
        assert entry.distinct[name] == pytest.approx(many * (1 - (1 - 1 / many) ** size), rel=1e-6)
    assert not entry.estimated


def test_groups_are_exact(grid):
    groups = grid.group_by(["b"])
    rng = np.random.default_rng(0)
    for group, place in itertools.product([0, len(groups) - 1], [0, 1, int(groups.sizes[0]) - 1]):
        row = int(groups.take(np.array([group]), np.array([place]))[0])
        codes = codes_of(grid, row)
        assert codes[1] == group
        others = [len(factor) for number, factor in enumerate(grid.factors) if number != 1]
        number = 0
        for size, code in zip(others, [code for i, code in enumerate(codes) if i != 1], strict=True):
            number = number * size + code
        assert number == place
    positions = rng.integers(0, groups.sizes[0], 1000)
    taken = groups.take(rng.integers(0, len(groups), 1000), positions)
    assert len(np.unique(taken)) == len(np.unique(positions))


# -- what does not fit -------------------------------------------------------------------------------------------------

ALL_BUT_LAST = list(NAMES[:-1])
TOO_LARGE = {
    "sets of a condition": lambda table: SetSampler(table, ["a"], where="a == 3"),
    "sets by weight": lambda table: SetSampler(table, ["a"], weights="b"),
    "sets of listed rows": lambda table: SetSampler(table, [], where=[1, 2, 3], size=2),
    "domains of a condition": lambda table: DomainSampler(table, "a", where="b == 1"),
    "whole orbits": lambda table: OrbitSampler(table, "a"),
    "many orbits": lambda table: OrbitSampler(table, ALL_BUT_LAST, size=4),
    "orbits with a canonical row": lambda table: OrbitSampler(table, "a", size=4, canonical={"b": 1}),
    "triplets": lambda table: TripletSampler(table, ALL_BUT_LAST),
    "episodes": lambda table: EpisodeSampler(table, ALL_BUT_LAST),
    "pairs in time": lambda table: SequencePairSampler(table, "a", "b", 3),
    "a hierarchy": lambda table: HierarchicalSampler(table, list(NAMES), [1] * 10, 1),
    "pairs by factors": lambda table: FactorPairSampler(table),
    "epochs of a condition": lambda table: EpochSampler(table, where="a == 1"),
    "epochs of listed rows": lambda table: EpochSampler(table, where=[1, 2, 3], size=2),
    "a mixture": lambda table: Mixture(SetSampler(table, [], where="a != 1"), "a == 1"),
}


@pytest.mark.parametrize("make", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_does_not_fit_into_memory_is_one_sentence(make):
    with pytest.raises(
        SetsupError, match=r"bytes of memory, but only [\d,]+ are available; reduce|must be fewer than"
    ) as found:
        make(grid_of(SIZES["2**60"]))
    assert "nested" not in str(found.value)
    assert "\n" not in str(found.value)


def test_memory_that_runs_out_while_a_sampler_is_made_is_one_sentence(monkeypatch):
    """Where more memory was there than is left: numpy's error, which says how much was asked for."""

    def gone(*given):
        return np.empty(2**55, dtype=np.int64)

    table = grid_of((4, 5, 6))
    monkeypatch.setattr("setsup.samplers.sequence_pairs.np.lexsort", gone)
    with pytest.raises(
        SamplerError, match=r"not enough memory for SequencePairSampler on a table of 120 rows \(Unable to"
    ):
        SequencePairSampler(table, "a", "b", 3)
    sets = SetSampler(table, ["a"], size=3)
    monkeypatch.setattr("setsup.samplers.sets.group_entry", gone)
    with pytest.raises(SamplerError, match="not enough memory for SetSampler on a table of 120 rows"):
        sets.report()
    monkeypatch.setattr("setsup.factors.where.np.broadcast_to", gone)
    with pytest.raises(
        FactorError, match=r"not enough memory to evaluate the expression \(Unable to allocate 256. PiB"
    ):
        table.mask("a == 1")


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("a == b", 500 * 200),
        ("a == b and c == 7 or a < 2 and c >= 150", 500 + 2 * 500 * 50),
        ("a % 100 == 3 and not b != 4", 5 * 200),
        ("count(c) == 250000 and a == 499 and c is not None", 500 * 200),
    ],
)
def test_conditions_on_fifty_million_rows(where, rows):
    """Counted by hand: 500 levels of a and of b, 200 of c."""
    assert int(grid_of((500, 500, 200)).mask(where).sum()) == rows
