"""Every figure of a report beside what is seen in draws alone, for combinations of all options that change it."""

import itertools
import math

import numpy as np
import pytest

from setsup.errors import SamplerError
from setsup.factors import Factor, FactorTable, Kind, concat
from setsup.samplers import DomainSampler, EpochSampler, Mixture, OrbitSampler, SetSampler, TripletSampler

STEPS = 1200


def factor(name, levels, **options):
    return Factor(name, Kind.NOMINAL, tuple(range(levels)), **options)


def ragged():
    """Groups of 1 to 7 rows by a; b, within a, makes a tree; c varies, d follows a, e has one level, x is measured."""
    a = np.repeat([0, 1, 2, 3, -1], [1, 3, 5, 7, 2])
    row = np.arange(len(a))
    columns = {
        "a": a,
        "b": np.array([0, 1, 1, 2, 3, 3, 3, 4, -1, 5, 5, 6, 6, 6, 7, 8, 0, 1]),
        "c": np.where(row % 7 == 3, -1, (row * row + row // 4) % 3),
        "d": np.where(a < 0, 0, a // 2),
        "e": np.zeros(len(a), dtype=int),
        "x": np.array([0, 1, 2, 9, 0, 0, 1, 5, 5, 1, 2, 3, 4, 8, 20, math.nan, 1, 1]),
    }
    names = [factor("a", 4), factor("b", 9), factor("c", 3), factor("d", 2), factor("e", 1)]
    return FactorTable([*names, Factor("x", Kind.CONTINUOUS)], columns)


RAGGED = ragged()
GRID = FactorTable([factor("a", 3), factor("b", 2), factor("c", 4), factor("e", 1)])
SPELLED = FactorTable(GRID.factors, {name: GRID.column(name) for name in GRID.names})
VARYING = ("a", "b", "c", "d", "e")


def times_drawn(draw, rows):
    """How often each set has each row, padding left out: (steps, sets, rows of the table)."""
    found = np.zeros((*draw.indices.shape[:2], rows), dtype=np.int64)
    step, place, _ = np.indices(draw.indices.shape)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    np.add.at(found, (step[mask], place[mask], draw.indices[mask]), 1)
    return found


def close(seen, expected, slack=0.0):
    """Whether a mean is within five standard errors."""
    assert abs(np.mean(seen) - expected) <= slack + 5 * np.std(seen) / math.sqrt(len(seen)) + 1e-9


def check_rows(entry, table, names, where=None):
    """Counts of groups and of rows that can be in none, by looking at each row."""
    mask = np.ones(len(table), bool) if where is None else table.mask(where)
    codes = np.stack([table.codes(name) for name in names] or [np.zeros(len(table), int)], axis=1)
    known = (codes >= 0).all(axis=1)
    _, counts = np.unique(codes[mask & known], axis=0, return_counts=True)
    assert entry.inactive == (", ".join(names) or "nothing")
    assert (entry.groups, entry.smallest, entry.largest) == (len(counts), counts.min(), counts.max())
    assert (entry.excluded, entry.unknown) == ((~mask).sum(), (mask & ~known).sum())
    return set(np.flatnonzero(mask & known).tolist()), counts


def check_draws(entry, table, times, known):
    """What draws show: rows that never come, distinct sets, shared rows, distinct values of what varies."""
    steps, sets, _ = times.shape
    assert entry.unreachable == len(known - set(np.flatnonzero(times.sum(axis=(0, 1))).tolist()))
    different = np.unique(times[times.any(axis=2)], axis=0)
    number = 10**entry.log10_sets
    assert len(different) == pytest.approx(number) if 20 * number < steps else len(different) < number * 1.001
    has = times > 0
    one, two = has[: steps // 2], has[-(steps // 2) :]
    pairs = [(has[:, i], has[:, j]) for i, j in itertools.combinations(range(sets), 2)] or [(one[:, 0], two[:, 0])]
    close(np.mean([(i & j).sum(axis=1) for i, j in pairs], axis=0), entry.shared_rows)
    for name in set(VARYING) & set(table.names):
        codes = table.codes(name)
        level = (codes[:, None] == np.arange(len(table[name]))).astype(float)
        seen = (has.astype(float) @ level > 0).sum(axis=2)
        if name in entry.distinct:
            close(seen.mean(axis=1), entry.distinct[name], 0.02 if entry.estimated else 0.0)
        else:
            assert seen.max() <= 1


LISTS = {
    "one": {"inactive": ["a"], "sets": 2},
    "three sets": {"inactive": ["a"], "sets": 3},
    "one set": {"inactive": ["b"], "sets": 1},
    "two factors": {"inactive": ["a", "c"], "sets": 2},
    "nothing": {"inactive": [], "sets": 2},
}


def check(sampler, table, where=None):
    """Compare each entry of a sampler's report with its draws."""
    draw = sampler.block(0, STEPS)
    times = times_drawn(draw, len(table))
    for entry in sampler.report().entries:
        names = [] if entry.inactive == "nothing" else entry.inactive.split(", ")
        known, counts = check_rows(entry, table, names, where)
        # sets that hold this list, in the steps that have any
        holds = np.ones(draw.indices.shape[:2], bool)
        for name, codes in draw.inactive.items():
            holds &= (codes >= 0) == (name in names)
        steps = holds.any(axis=1)
        places = np.flatnonzero(holds[steps][0])
        assert (holds[steps] == holds[steps][0]).all()
        check_draws(entry, table, times[steps][:, places], known)
        yield entry, counts


@pytest.mark.parametrize("on_small_group", ["error", "drop", "short", "replace"])
@pytest.mark.parametrize("values", ["independent", "equal", "different"])
@pytest.mark.parametrize("lists", LISTS)
def test_sets(lists, values, on_small_group):
    cases = [
        (RAGGED, "levels", None),
        (RAGGED, "rows", None),
        (RAGGED, "groups", "c != 2 and d == 1"),
        (GRID, "levels", None),
        (SPELLED, "rows", "c <= 1 and b < 2"),
    ]
    for table, choose, where in cases:
        size = 3 if table is RAGGED else 2
        options = {
            "size": size,
            "values": values,
            "on_small_group": on_small_group,
            "choose": choose,
            "where": where,
            "seed": 3,
        }
        try:
            sampler = SetSampler(table, **LISTS[lists], **options)
        except SamplerError:  # too few rows, or groups
            continue
        for entry, counts in check(sampler, table, where):
            need = size * (LISTS[lists]["sets"] if values == "equal" else 1)
            assert entry.drawable == ((counts >= need).sum() if on_small_group in ("error", "drop") else len(counts))


@pytest.mark.parametrize("on_small_group", ["drop", "short", "replace"])
@pytest.mark.parametrize(
    "options",
    [
        {"inactive": ["a"], "sets": 3, "unconstrained": 1},
        {"inactive": ["a"], "sets": 3, "unconstrained": 2},
        {"inactive": [["a"], ["a", "c"], ["a"]], "sets": 3},
        {"inactive": [["a"], []], "sets": 2},
        {"inactive": ["a", "c", "d"], "num_fixed": 1, "sets": 2},
        {"inactive": ["a", "b", "c"], "num_fixed": 2, "sets": 2, "unconstrained": 1},
        {"inactive": ["a", "c"], "num_fixed": 1, "sets": 2, "values": "different"},
        {"inactive": ["a", "c"], "num_fixed": 1, "sets": 2, "values": "equal"},
    ],
)
def test_lists_of_sets(options, on_small_group):
    for size in (2, 4):
        try:
            sampler = SetSampler(RAGGED, size=size, on_small_group=on_small_group, **options)
        except SamplerError:
            continue
        assert len(list(check(sampler, RAGGED))) == len(sampler.report().entries)


@pytest.mark.parametrize("on_small_group", ["drop", "short", "replace"])
def test_tolerances(on_small_group):
    for names, tolerance, where, size in itertools.product(
        (["x"], ["a", "x"]), (0.0, 1.0, 4.0), (None, "c == 1"), (2, 3)
    ):
        options = {"size": size, "on_small_group": on_small_group, "where": where, "tolerance": {"x": tolerance}}
        try:
            sampler = SetSampler(RAGGED, names, **options)
        except SamplerError:
            continue
        entry = sampler.report().entries[0]
        x, a = RAGGED.column("x").astype(float), RAGGED.codes("a") if "a" in names else np.zeros(len(RAGGED), int)
        mask = np.ones(len(RAGGED), bool) if where is None else RAGGED.mask(where)
        eligible = mask & ~np.isnan(x) & (a >= 0)
        near = (np.abs(x[:, None] - x) <= tolerance) & (a[:, None] == a) & eligible & eligible[:, None]
        widths = near.sum(axis=1)
        widest = {int(group): widths[eligible & (a == group)].max() for group in np.unique(a[eligible])}
        rows = sampler.block(0, STEPS)
        counted = rows.indices if rows.mask is None else rows.indices[rows.mask]
        assert entry.groups == len(widest)
        assert entry.drawable == sum(width >= size or on_small_group != "drop" for width in widest.values())
        assert (entry.smallest, entry.largest) == (min(widest.values()), max(widest.values()))
        assert entry.narrowest == widths[eligible].min()
        assert (entry.excluded, entry.unknown) == ((~mask).sum(), (mask & ~eligible).sum())
        assert entry.unreachable == eligible.sum() - len(np.unique(counted))
        assert math.isnan(entry.log10_sets)
        assert math.isnan(entry.shared_rows)
        assert entry.distinct == {}


def test_windows_in_words():
    angles = np.array([0, 1, 2, 3, 50, 51], dtype=np.float32)
    table = FactorTable([Factor("yaw", Kind.CONTINUOUS, unit="deg", period=360.0)], {"yaw": angles})
    lines = str(SetSampler(table, ["yaw"], size=2, tolerance={"yaw": 2.0}).report()).splitlines()
    assert lines[2] == "  groups: 1; 2 to 4 rows within the tolerance of a row; all can be drawn"


def test_weights():
    weights = np.arange(len(RAGGED)) % 4
    sampler = SetSampler(RAGGED, ["a"], size=2, on_small_group="short", weights=weights)
    entry = sampler.report().entries[0]
    draw = sampler.block(0, STEPS)
    known = (weights > 0) & (RAGGED.codes("a") >= 0)
    assert entry.excluded == (weights == 0).sum()
    assert entry.unknown == ((weights > 0) & ~known).sum()
    assert entry.unreachable == known.sum() - len(np.unique(draw.indices[draw.mask])) == 0


@pytest.mark.parametrize("on_small_group", ["drop", "short", "replace"])
@pytest.mark.parametrize("domains", ["balanced", "independent", "all"])
@pytest.mark.parametrize("sets", [1, 2, 3])
def test_domains(sets, domains, on_small_group):
    sampler = DomainSampler(
        RAGGED, "a", sets=sets, size=3, domains=domains, on_small_group=on_small_group, where="e == 0"
    )
    entry = sampler.report().entries[0]
    if sets == 1 and domains != "independent":
        assert math.isnan(entry.shared_rows)
        return
    (_,) = check(sampler, RAGGED)


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize("values", ["independent", "different"])
def test_orbits(values, size):
    smalls = ("drop", "short") if size else ("drop", "short", "replace")  # whole orbits repeat no row
    for choose, on_small_group, orbit in itertools.product(("levels", "groups", "rows"), smalls, ("a", ["a", "c"])):
        options = {"sets": 2, "size": size, "values": values, "choose": choose, "on_small_group": on_small_group}
        (_,) = check(OrbitSampler(RAGGED, orbit, **options), RAGGED)
    lost = OrbitSampler(RAGGED, "a", sets=2, size=2, on_small_group="drop", canonical={"c": 0})
    entry = lost.report().entries[0]
    known = np.flatnonzero(RAGGED.codes("a") >= 0)
    assert entry.unreachable == len(known) - len(np.unique(lost.block(0, STEPS).indices))


def test_triplets():
    sampler = TripletSampler(RAGGED, "a", triplets=32, on_small_group="drop")
    entry = sampler.report().entries[0]
    known, _ = check_rows(entry, RAGGED, ["a"])
    seen = sampler.block(0, STEPS).indices
    assert entry.unreachable == len(known - set(seen.reshape(-1).tolist()))
    assert 10**entry.log10_sets == pytest.approx(len(np.unique(seen.reshape(-1, 3), axis=0)))


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"partial": "pad"}, {"shuffle": False, "where": "c == 1"}])
def test_epochs(options):
    sampler = EpochSampler(RAGGED, size=4, **options)
    draw = sampler.block(0, STEPS)
    rows = draw.indices if draw.mask is None else draw.indices[draw.mask]
    entry = sampler.report().entries[0]
    assert entry.unreachable + entry.excluded == len(RAGGED) - len(np.unique(rows))
    assert entry.smallest == len(RAGGED) - entry.excluded


def test_mixtures():
    table = concat([GRID, RAGGED])
    base = SetSampler(table, [["a"], []], size=3, where="part == 'a'")
    sampler = Mixture(base, "part == 'b'", p=0.5)
    draw = sampler.block(0, STEPS)
    for place, entry in enumerate(sampler.report().entries):
        assert entry.excluded + entry.unreachable == len(table) - len(np.unique(draw.indices[:, place]))
    assert sampler.report().entries[1].distinct == {}


def test_what_cannot_vary_is_not_said_to():
    fixed = SetSampler(RAGGED, ["a"], size=2, on_small_group="drop", where="c == 1").report().entries[0]
    assert "c" not in fixed.distinct
    assert "d" not in fixed.distinct  # which follows a
    assert "e" not in fixed.distinct  # which has one level
    assert "b" in fixed.distinct


def test_advice_fits_the_inactive_factors():
    for names, fewer in ((["a"], False), (["a", "c"], True), ([], False)):
        with pytest.raises(SamplerError) as error:
            SetSampler(RAGGED, names, size=100)
        assert ("fix fewer factors" in str(error.value)) == fewer
        assert "lower size" in str(error.value)


def test_columns_in_a_pattern_are_not_missed(monkeypatch):
    """A group of which some rows are looked at only; every second of them would have one level."""
    monkeypatch.setattr("setsup.samplers.groups.statistics._ROWS", 3000)
    row = np.arange(6000)
    table = FactorTable([factor("b", 2), factor("c", 3)], {"b": row % 2, "c": row % 3})
    entry = SetSampler(table, [], size=8).report().entries[0]
    assert entry.estimated
    assert entry.distinct == pytest.approx({"b": 2 - 2**-7, "c": 3 * (1 - (2 / 3) ** 8)}, rel=0.02)
