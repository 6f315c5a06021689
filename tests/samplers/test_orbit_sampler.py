"""Orbits against brute force over rows: whole and partial, canonical members, and how orbits are chosen."""

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
from setsup.samplers import DomainSampler, OrbitSampler, SetSampler

VIEWS = ("050", "051", "052", "053")


def table_of(sizes, unknown=0):
    """Rows of orbit o come ``sizes[o]`` times, well mixed; with a camera, a yaw and a score for each."""
    random = np.random.default_rng(0)
    codes = random.permutation(np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(unknown, -1)]))
    factors = [
        Factor("face", Kind.NOMINAL, tuple(f"f{number}" for number in range(len(sizes)))),
        Factor("camera", Kind.NOMINAL, VIEWS),
        Factor("yaw", Kind.CONTINUOUS, unit="deg"),
        Factor("tilt", Kind.ORDINAL, (10, -10, 0)),
    ]
    yaw = np.round(random.uniform(-90, 90, len(codes)), 1)
    yaw[::7] = np.nan
    columns = {"face": codes, "camera": random.integers(-1, 4, len(codes)), "yaw": yaw}
    return FactorTable(factors, {**columns, "tilt": random.integers(-1, 3, len(codes))})


def members_of(table, where=None):
    """Rows of each orbit, ascending, found row by row."""
    kept = range(len(table)) if where is None else table.rows(where).tolist()
    codes = table.codes("face").tolist()
    found = {}
    for row in kept:
        if codes[row] >= 0:
            found.setdefault(codes[row], []).append(row)
    return found


def even(counts, chances):
    """Whether counts agree with the chances of all cells, given by cell."""
    assert set(counts) <= set(chances)
    assert math.isclose(sum(chances.values()), 1)
    total = sum(counts.values())
    observed, expected = zip(*((counts[cell], chance * total) for cell, chance in chances.items()), strict=True)
    return len(chances) == 1 or chisquare(observed, expected).pvalue > 1e-4


# -- whole orbits ------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(data=st.data())
def test_whole_orbits_have_all_members_padded_with_the_first(data):
    sizes = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=6))
    table = table_of(sizes, unknown=data.draw(st.integers(0, 3)))
    sets = data.draw(st.integers(1, len(sizes)))
    draw = OrbitSampler(table, "face", sets=sets, seed=data.draw(st.integers(0, 2**64 - 1))).block(0, 20)
    members = members_of(table)
    width = max(sizes)
    assert draw.indices.shape == (20, sets, width)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    for step, place in np.ndindex(20, sets):
        rows = members[int(draw.inactive["face"][step, place])]
        assert draw.indices[step, place].tolist() == rows + rows[:1] * (width - len(rows))
        assert mask[step, place].tolist() == [True] * len(rows) + [False] * (width - len(rows))
    assert all(len(set(orbits)) == sets for orbits in draw.inactive["face"].tolist())
    assert (draw.mask is None) == bool(mask.all())


def test_the_width_is_that_of_the_largest_orbit_that_can_be_drawn():
    table = table_of([2, 5, 9, 3])
    members = members_of(table, "tilt != 10")
    sampler = OrbitSampler(table, "face", sets=2, where="tilt != 10")
    assert sampler[0].indices.shape == (2, max(map(len, members.values())))
    for step in range(20):
        draw = sampler[step]
        mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
        for place, face in enumerate(draw.inactive["face"].tolist()):
            assert draw.indices[place][mask[place]].tolist() == members[face]


def test_an_orbit_without_canonical_row_does_not_set_the_width():
    table = FactorTable.from_values({"face": ["a"] * 5 + ["b", "b"] + ["c"], "camera": ["x"] * 5 + ["y", "x", "y"]})
    draw = OrbitSampler(table, "face", sets=2, canonical={"camera": "y"}, on_small_group="drop").block(0, 9)
    assert draw.indices.shape == (9, 2, 2)
    assert set(draw.inactive["face"].ravel().tolist()) == {1, 2}
    assert set(draw.canonical.ravel().tolist()) == {5, 7}


def test_the_mask_is_none_where_all_orbits_are_full():
    table = table_of([4, 4, 2])
    sampler = OrbitSampler(table, "face", sets=1)
    assert {(draw.mask is None, int(draw.inactive["face"][0])) for draw in map(sampler.__getitem__, range(40))} == {
        (True, 0),
        (True, 1),
        (False, 2),
    }
    assert OrbitSampler(table_of([4, 4]), "face", sets=2)[0].mask is None


def test_a_grid_and_the_same_rows_as_columns_draw_the_same():
    factors = [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip("abc", (3, 4, 5), strict=True)]
    grid = FactorTable(factors)
    columns = FactorTable(factors, {name: grid.codes(name) for name in grid.names})
    for options in ({}, {"size": 3}, {"canonical": {"b": 2}}, {"canonical": "argmin:b", "choose": "levels"}):
        one, other = (OrbitSampler(table, ["a", "c"], sets=5, **options).block(0, 50) for table in (grid, columns))
        assert np.array_equal(one.indices, other.indices)
        assert (one.canonical is None) == (other.canonical is None)
        assert one.canonical is None or np.array_equal(one.canonical, other.canonical)


# -- some members ------------------------------------------------------------------------------------------------------


def test_some_members_are_a_uniform_ordered_choice():
    table = table_of([3, 5])
    draw = OrbitSampler(table, "face", sets=2, size=2).block(0, 6000)
    assert draw.mask is None
    assert draw.indices.shape == (6000, 2, 2)
    for face, rows in members_of(table).items():
        pairs = list(itertools.permutations(rows, 2))
        taken = draw.indices[draw.inactive["face"] == face]
        assert even(Counter(map(tuple, taken.tolist())), dict.fromkeys(pairs, 1 / len(pairs)))


def test_orbits_of_fewer_members_than_are_drawn():
    table = table_of([2, 6, 1, 5])
    members = members_of(table)
    with pytest.raises(SamplerError, match=r"2 of 4 groups.*face = f2: 1; face = f0: 2.*on_small_group='drop'"):
        OrbitSampler(table, "face", sets=2, size=4)
    dropped = OrbitSampler(table, "face", sets=2, size=4, on_small_group="drop").block(0, 200)
    assert set(dropped.inactive["face"].ravel().tolist()) == {1, 3}
    short = OrbitSampler(table, "face", sets=4, size=4, on_small_group="short").block(0, 3000)
    again = OrbitSampler(table, "face", sets=4, size=4, on_small_group="replace").block(0, 3000)
    assert again.mask is None
    for face, rows in members.items():
        few = min(len(rows), 4)
        here = short.inactive["face"] == face
        assert (short.mask[here] == (np.arange(4) < few)).all()
        taken = [tuple(slots[:few]) for slots in short.indices[here].tolist()]
        orders = list(itertools.permutations(rows, few))
        assert even(Counter(taken), dict.fromkeys(orders, 1 / len(orders)))
        padding = short.indices[here][:, few:]
        assert (padding == short.indices[here][:, :1]).all()
        taken = list(map(tuple, again.indices[again.inactive["face"] == face].tolist()))
        cells = list(itertools.product(rows, repeat=4) if len(rows) < 4 else itertools.permutations(rows, 4))
        assert even(Counter(taken), dict.fromkeys(cells, 1 / len(cells)))


# -- which orbits ------------------------------------------------------------------------------------------------------


def three_ways():
    """Orbits of two factors of unequal branching, and the chance of each by each choice."""
    keys = [("x", 0, 4), ("x", 1, 1), ("x", 2, 2), ("y", 1, 3)]
    rows = [(outer, inner) for outer, inner, count in keys for _ in range(count)]
    table = FactorTable.from_values({"outer": [row[0] for row in rows], "inner": [row[1] for row in rows]})
    chances = {
        "levels": [1 / 6, 1 / 6, 1 / 6, 1 / 2],
        "groups": [1 / 4] * 4,
        "rows": [0.4, 0.1, 0.2, 0.3],
    }
    return table, [(0 if outer == "x" else 1, inner) for outer, inner, _ in keys], chances


@pytest.mark.parametrize("choose", ["levels", "groups", "rows"])
def test_orbits_are_chosen_as_documented(choose):
    table, keys, chances = three_ways()
    draw = OrbitSampler(table, ["outer", "inner"], sets=2, values="independent", choose=choose).block(0, 8000)
    drawn = np.stack([draw.inactive["outer"], draw.inactive["inner"]], axis=-1).tolist()
    single = dict(zip(keys, chances[choose], strict=True))
    pairs = {(one, other): single[one] * single[other] for one in keys for other in keys}
    assert even(Counter((tuple(one), tuple(other)) for one, other in drawn), pairs)


def test_orbits_are_chosen_evenly_by_default():
    table, keys, _ = three_ways()
    draw = OrbitSampler(table, ["outer", "inner"], sets=1).block(0, 8000)
    drawn = zip(draw.inactive["outer"][:, 0].tolist(), draw.inactive["inner"][:, 0].tolist(), strict=True)
    assert even(Counter(drawn), dict.fromkeys(keys, 1 / 4))


@pytest.mark.parametrize("choose", ["levels", "groups", "rows"])
def test_different_orbits_are_chosen_one_after_the_other(choose):
    table, keys, chances = three_ways()
    sizes = dict(zip(keys, (4, 1, 2, 3), strict=True))

    def law(left):
        if choose == "groups":
            return dict.fromkeys(left, 1 / len(left))
        if choose == "rows":
            return {key: sizes[key] / sum(sizes[other] for other in left) for key in left}
        outer = Counter(key[0] for key in left)
        return {key: 1 / len(outer) / outer[key[0]] for key in left}

    triples = {}
    for first, p1 in law(keys).items():
        after = [key for key in keys if key != first]
        for second, p2 in law(after).items():
            last = [key for key in after if key != second]
            for third, p3 in law(last).items():
                triples[first, second, third] = p1 * p2 * p3
    assert law(keys) == pytest.approx(dict(zip(keys, chances[choose], strict=True)))
    draw = OrbitSampler(table, ["outer", "inner"], sets=3, choose=choose).block(0, 12000)
    drawn = np.stack([draw.inactive["outer"], draw.inactive["inner"]], axis=-1).tolist()
    assert even(Counter(tuple(map(tuple, orbits)) for orbits in drawn), triples)


def test_all_orbits_can_be_drawn_at_once_but_not_more():
    table = table_of([1, 2, 3, 4, 5])
    draw = OrbitSampler(table, "face", sets=5).block(0, 50)
    assert (np.sort(draw.inactive["face"], axis=1) == np.arange(5)).all()
    with pytest.raises(SamplerError, match=r"sets=6 .* 5 drawable .*values='independent'"):
        OrbitSampler(table, "face", sets=6)
    assert OrbitSampler(table, "face", sets=6, values="independent")[0].indices.shape == (6, 5)


# -- canonical rows ----------------------------------------------------------------------------------------------------


# an unknown value is None here, NaN of a continuous factor, and satisfies no comparison
BY_HAND = {
    "camera == '051'": lambda row: row["camera"] == "051",
    "tilt == 0 and yaw > 10": lambda row: row["tilt"] == 0 and row["yaw"] is not None and row["yaw"] > 10,
    "camera in ('050', '053') or not tilt >= 0": lambda row: (
        row["camera"] in ("050", "053") or (row["tilt"] is not None and row["tilt"] < 0)
    ),
}


def canonical_by_hand(table, rows, canonical):
    """Canonical row among an orbit's ascending rows, None where there is none."""
    if canonical == "first":
        return rows[0]
    if isinstance(canonical, str) and canonical.startswith("argmin:"):
        name = canonical.removeprefix("argmin:")
        values = {row: table.values(name, [row])[0] for row in rows}
        if table[name].continuous:
            values = {row: None if np.isnan(value) else float(value) for row, value in values.items()}
        if name == "camera":
            values = {row: None if value is None else VIEWS.index(value) for row, value in values.items()}
        known = [row for row in rows if values[row] is not None]
        return min(known, key=lambda row: (values[row], row), default=None)
    if isinstance(canonical, str):
        fits = [row for row in rows if BY_HAND[canonical](table.row(row))]
        return fits[0] if fits else None
    fits = [row for row in rows if all(table.values(name, [row])[0] == level for name, level in canonical.items())]
    return fits[0] if fits else None


CANONICALS = [
    "first",
    "argmin:yaw",
    "argmin:tilt",
    "argmin:camera",
    {"camera": "051"},
    {"camera": "051", "tilt": 0},
    *BY_HAND,
]


@pytest.mark.parametrize("size", [None, 2])
@pytest.mark.parametrize("where", [None, "yaw > -60"])
@pytest.mark.parametrize("canonical", CANONICALS, ids=str)
def test_canonical_rows(canonical, where, size):
    table = table_of([3, 40, 5, 25, 30, 8, 2, 17])
    members = {face: rows for face, rows in members_of(table, where).items() if len(rows) >= (size or 1)}
    expected = {face: canonical_by_hand(table, rows, canonical) for face, rows in members.items()}
    found = {face: row for face, row in expected.items() if row is not None}
    sets = min(3, len(found))
    sampler = OrbitSampler(table, "face", sets, size, canonical=canonical, on_small_group="drop", where=where)
    draw = sampler.block(0, 200)
    assert draw.canonical.dtype == np.int64
    assert draw.canonical.shape == (200, sets)
    assert dict(zip(draw.inactive["face"].ravel().tolist(), draw.canonical.ravel().tolist(), strict=True)) == found
    assert all(len(set(orbits)) == sets for orbits in draw.inactive["face"].tolist())
    if len(found) == len(members):
        assert "without a canonical" not in str(sampler.report())
    else:
        assert f"{len(members) - len(found)} orbits without a canonical row" in str(sampler.report())
        with pytest.raises(SamplerError, match="no row with canonical") as refusal:
            OrbitSampler(table, "face", sets, size, canonical=canonical, where=where, on_small_group="short")
        lost = sorted(face for face in members if face not in found)
        assert [f"face = f{face}" in str(refusal.value) for face in lost] == [True] * min(len(lost), 5)
        assert "on_small_group='drop'" in str(refusal.value)


def test_the_canonical_row_by_a_continuous_value():
    table = FactorTable(
        [Factor("face", Kind.NOMINAL, ("a", "b")), Factor("yaw", Kind.CONTINUOUS)],
        {"face": [0, 0, 1, 1], "yaw": [0.1, 0.2, 0.2, 0.1]},
    )
    draw = OrbitSampler(table, "face", sets=2, canonical={"yaw": 0.1})[0]
    assert dict(zip(draw.inactive["face"].tolist(), draw.canonical.tolist(), strict=True)) == {0: 0, 1: 3}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=30),
    st.integers(0, 4),
    st.integers(0, 2),
    st.booleans(),
)
def test_an_expression_gives_the_first_row_that_satisfies_it(rows, member, session, both):
    names = ("face", "member", "session")
    factors = [Factor(name, Kind.ORDINAL, tuple(range(5))) for name in names]
    table = FactorTable(factors, dict(zip(names, np.array(rows).T, strict=True)))
    expected = {}
    for number, (face, *others) in enumerate(rows):
        fits = [others[0] <= member, others[1] == session]
        if all(fits) if both else any(fits):
            expected.setdefault(face, number)
    expression = f"member <= {member} {'and' if both else 'or'} session == {session}"

    def sampler():
        return OrbitSampler(table, "face", max(len(expected), 1), canonical=expression, on_small_group="drop")

    if not expected:
        with pytest.raises(SamplerError, match="no row with canonical"):
            sampler()
        return
    draw = sampler()[0]
    assert dict(zip(draw.inactive["face"].tolist(), draw.canonical.tolist(), strict=True)) == expected


def test_no_orbit_has_a_canonical_row():
    table = table_of([30, 40])
    for on_small_group in ("error", "drop"):
        with pytest.raises(SamplerError, match=r"2 of 2 orbits have no row.*face = f0; face = f1") as refusal:
            OrbitSampler(
                table,
                "face",
                sets=1,
                canonical={"camera": "050"},
                where="camera == '051'",
                on_small_group=on_small_group,
            )
        assert "pass on_small_group='drop'" not in str(refusal.value)


def test_the_report_counts_orbits_without_a_canonical_row_as_left_out():
    table = FactorTable(
        [Factor("face", Kind.NOMINAL, ("a", "b", "c")), Factor("light", Kind.ORDINAL, (1, 2))],
        {"face": [0, 0, 1, 1, 1, 2], "light": [0, 1, 1, 1, 1, 0]},
    )
    report = OrbitSampler(table, "face", sets=1, size=1, canonical={"light": 1}, on_small_group="drop").report()
    assert (report.entries[0].groups, report.entries[0].drawable, report.entries[0].unreachable) == (3, 2, 3)
    assert report.notes == ["1 orbits without a canonical row are left out"]


def test_no_canonical_rows_unless_asked():
    assert OrbitSampler(table_of([3, 4]), "face", sets=1)[0].canonical is None


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"orbit": []}, SamplerError, "at least one factor"),
        ({"orbit": None}, SamplerError, "orbit must be a list of factor names"),
        ({"canonical": {"yaw": "left"}}, SamplerError, "continuous factor 'yaw' .*not 'left'"),
        ({"orbit": "fase"}, FactorError, "did you mean 'face'"),
        ({"orbit": "yaw"}, FactorError, "'yaw' is continuous"),
        ({"values": "diferent"}, SamplerError, "did you mean 'different'"),
        ({"values": "equal"}, SamplerError, "values must be one of different, independent, not"),
        ({"choose": "group"}, SamplerError, "did you mean 'groups'"),
        ({"on_small_group": "shrt"}, SamplerError, "did you mean 'short'"),
        ({"sets": 0}, SamplerError, "sets must be an integer"),
        ({"size": 0}, SamplerError, "size must be an integer"),
        ({"size": False}, SamplerError, "size must be an integer"),
        ({"canonical": "last"}, SamplerError, "argmin:FACTOR"),
        ({"canonical": 3}, SamplerError, "argmin:FACTOR"),
        ({"canonical": "kamera == '051'"}, FactorError, "unknown factor 'kamera'; did you mean 'camera'"),
        ({"canonical": "camera = '051'"}, FactorError, "did you mean camera == '051'"),
        (
            {"canonical": "yaw > 1000"},
            SamplerError,
            "3 of 3 .* no row with canonical='yaw > 1000'",
        ),
        ({"canonical": "argmin:yew"}, FactorError, "did you mean 'yaw'"),
        ({"canonical": {"camera": "0510"}}, FactorError, "no level '0510'.*'051'"),
        ({"canonical": {"kamera": "051"}}, FactorError, "did you mean 'camera'"),
        ({"where": "camera == '050' and camera == '051'"}, SamplerError, "where= and weights= leave none of the"),
    ],
)
def test_wrong_arguments(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        OrbitSampler(table_of([4, 4, 4]), **{"orbit": "face", "sets": 2, **arguments})


def test_more_sets_than_orbits_name_the_most_that_fits():
    """The default of eight does not follow the data: it would change batches without a word."""
    three = FactorTable.from_values({"subject": np.repeat(["a", "b", "c"], 4), "x": np.arange(12) % 4})
    with pytest.raises(SamplerError, match=r"sets=8 exceeds the 3 drawable orbits; pass at most sets=3"):
        OrbitSampler(three, "subject")
    assert OrbitSampler(three, "subject", sets=3)[0].indices.shape == (3, 4)
    with pytest.raises(SamplerError, match="pass at most sets=3"):
        DomainSampler(three, "subject", sets=4, size=2)
    with pytest.raises(SamplerError, match="pass at most sets=3"):
        SetSampler(three, ["subject"], sets=5, size=2, values="different")
