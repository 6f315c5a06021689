"""Pairs and sets of views by overlap, against the enumeration of their distribution."""

import json
import math
import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import setsup
from setsup.correspondence import overlap
from setsup.errors import DataError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import EpochSampler, OverlapSampler, Zip, from_dict
from setsup.samplers.overlap.table import OverlapTable
from tests.samplers.overlap_distributions import (
    ROWS,
    certainly_apart,
    distribution_of_sets,
    factors,
    measures_of,
    pairs_of,
    table_of,
    table_of_pairs,
)
from tests.track_models import Model

TABLE = factors()
SCENE = TABLE.codes("scene")
VIEWS = (5, 4, 3)
ALL = ((0.0, 1.0), (0.0, 180.0), (0.0, 1e9))
SHAPES = [
    (form, direction)
    for form in ("chain", "star", "clique")
    for direction in ("forward", "both", "either")
    if (form, direction) != ("clique", "forward")
]


def bin_of(by, band, bins, found):
    """Bin of the larger value of what was measured; a value between two bins is in the upper one."""
    value = max(one[("overlap", "angle").index(by)] for one in found)
    low, high = band
    return min(int((value - low) / (high - low) * bins + 1e-4), bins - 1)


def groups_by(choose, pairs, band=(0.0, 1.0), bins=10):
    if choose == "pairs":
        return lambda pair: 0
    return (lambda pair: SCENE[pair[0]]) if choose == "scenes" else lambda pair: bin_of(choose, band, bins, pairs[pair])


def check_draws(drawn, distribution, least=8):
    """Only sets of the distribution are drawn, and as often as it says; rare ones count together."""
    counts = Counter(map(tuple, drawn.reshape(-1, drawn.shape[-1]).tolist()))
    assert set(counts) <= set(distribution)
    assert sum(distribution.values()) == pytest.approx(1)
    expected = np.array(list(distribution.values())) * counts.total()
    seen = np.array([counts[members] for members in distribution])
    rare = expected < least
    expected, seen = np.append(expected[~rare], expected[rare].sum()), np.append(seen[~rare], seen[rare].sum())
    expected, seen = expected[expected > 0], seen[expected > 0]
    assert len(expected) > 1
    assert chisquare(seen, expected).pvalue > 1e-4


def check_chances(sampler, distribution, fallback):
    """What a report and a reach say of every row, and of the last resort."""
    of_set = np.zeros(ROWS)
    for members, chance in distribution.items():
        of_set[list(members)] += chance
    of_step = 1 - (1 - of_set) ** sampler.sets
    assert np.allclose(sampler.reach().chance(range(ROWS)), of_step, rtol=1e-9, atol=1e-12)
    entry = sampler.report().entries[0]
    assert not entry.estimated
    assert entry.fallback == pytest.approx(fallback, rel=1e-9, abs=1e-30)
    assert entry.views == pytest.approx({row: of_step[row] for row in range(ROWS) if of_set[row] > 0})
    assert (entry.least, entry.largest) == pytest.approx((of_step[of_set > 0].min(), of_step.max()))


@pytest.mark.parametrize("choose", ["pairs", "scenes", "overlap"])
@pytest.mark.parametrize(("form", "direction"), SHAPES)
def test_the_whole_distribution_of_triples(form, direction, choose):
    overlaps = table_of(TABLE, VIEWS, seed=3)
    band = (0.2, 0.9)
    pairs = pairs_of(overlaps, (band, *ALL[1:]), direction)
    distribution, fallback = distribution_of_sets(pairs, 3, form, groups_by(choose, pairs, band=band, bins=4))
    sampler = OverlapSampler(
        TABLE, overlaps, size=3, form=form, sets=64, overlap=band, direction=direction, choose=choose, bins=4, seed=1
    )
    check_chances(sampler, distribution, fallback)
    check_draws(sampler.block(0, 300).indices, distribution)


@pytest.mark.long("distributions")
@pytest.mark.parametrize("seed", range(2))  # without and with weights
@pytest.mark.parametrize("size", [2, 4, 5])
@pytest.mark.parametrize("choose", ["pairs", "scenes", "overlap"])
@pytest.mark.parametrize(("form", "direction"), SHAPES)
def test_the_whole_distribution_of_other_sizes(form, direction, choose, size, seed):
    overlaps = table_of(TABLE, (7, 5) if size > 3 else VIEWS, seed=seed, measured=0.85, unknown=0.02)
    band = (0.1, 0.9) if size > 3 else (0.3, 0.7)
    pairs = pairs_of(overlaps, (band, *ALL[1:]), direction)
    weight = (lambda row: float(TABLE.values("weight")[row])) if seed % 2 else lambda row: 1.0
    pairs = {pair: found for pair, found in pairs.items() if weight(pair[0]) * weight(pair[1])}
    distribution, fallback = distribution_of_sets(
        pairs, size, form, groups_by(choose, pairs, band=band, bins=3), weight
    )
    options = {"weights": "weight"} if seed % 2 else {}

    def make():
        return OverlapSampler(
            TABLE, overlaps, size=size, form=form, sets=64, overlap=band, direction=direction, choose=choose, bins=3,
            **options,
        )  # fmt: skip

    if not distribution:
        with pytest.raises(SamplerError, match=r"begins a|none of the"):
            make()
        return
    sampler = make()
    check_chances(sampler, distribution, fallback)
    if len(distribution) > 1:
        check_draws(sampler.block(0, 1500).indices, distribution)


@pytest.mark.parametrize(("form", "direction"), SHAPES)
def test_pairs_are_the_same_in_all_forms(form, direction):
    overlaps = table_of(TABLE, VIEWS, seed=5)
    options = {"overlap": (0.2, 0.8), "direction": direction, "choose": "overlap", "bins": 3, "weights": "weight"}
    one = OverlapSampler(TABLE, overlaps, form=form, **options)
    assert np.array_equal(one.block(0, 9).indices, OverlapSampler(TABLE, overlaps, **options).block(0, 9).indices)
    pairs = pairs_of(overlaps, ((0.2, 0.8), *ALL[1:]), direction, lambda row: row % 11 != 10)
    weight = TABLE.values("weight")
    distribution, _ = distribution_of_sets(
        pairs, 2, form, groups_by("overlap", pairs, band=(0.2, 0.8), bins=3), lambda row: weight[row]
    )
    check_draws(OverlapSampler(TABLE, overlaps, sets=64, form=form, **options).block(0, 300).indices, distribution)


@pytest.mark.parametrize("form", ["chain", "star", "clique"])
def test_sets_by_weight(form):
    overlaps, weight = table_of(TABLE, VIEWS, seed=4, unknown=0), TABLE.values("weight")
    pairs = pairs_of(overlaps, ALL, "either", lambda row: weight[row] > 0)
    distribution, fallback = distribution_of_sets(
        pairs, 3, form, groups_by("scenes", pairs), lambda row: float(weight[row])
    )
    options = {"size": 3, "form": form, "overlap": (0, 1), "direction": "either", "choose": "scenes", "sets": 64}
    sampler = OverlapSampler(TABLE, overlaps, weights="weight", **options)
    check_chances(sampler, distribution, fallback)
    check_draws(sampler.block(0, 400).indices, distribution)
    many = 1e-300 * np.where(SCENE == 1, 1.0, 1e250)  # products of them are 0
    drawn = OverlapSampler(TABLE, overlaps, weights=many, **options).block(0, 20).indices
    assert np.array_equal(drawn, OverlapSampler(TABLE, overlaps, weights=np.ones(ROWS), **options).block(0, 20).indices)


@pytest.mark.parametrize("band", [(0.0, 180.0), (10.0, 60.0)])
@pytest.mark.parametrize("direction", ["forward", "both", "either"])
def test_bins_of_the_angle(direction, band):
    overlaps = table_of(TABLE, VIEWS, seed=6, zero=0.2)
    pairs = pairs_of(overlaps, ((0.0, 1.0), band, (0.0, 1e9)), direction)
    distribution, _ = distribution_of_sets(pairs, 2, "chain", groups_by("angle", pairs, band, 5))
    given = {} if band == (0.0, 180.0) else {"angle": band}
    options = {"overlap": (0, 1), "direction": direction, "choose": "angle", "bins": 5, "sets": 64}
    check_draws(OverlapSampler(TABLE, overlaps, **given, **options).block(0, 200).indices, distribution)


@pytest.mark.parametrize("direction", ["forward", "both", "either"])
def test_all_bands_count(direction):
    overlaps = table_of(TABLE, VIEWS, seed=7)
    bands = ((0.1, 1.0), (5.0, 80.0), (0.5, 2.0))
    distribution, _ = distribution_of_sets(pairs_of(overlaps, bands, direction), 2, "chain", lambda pair: 0)
    named = dict(zip(("overlap", "angle", "scale"), bands, strict=True))
    check_draws(
        OverlapSampler(TABLE, overlaps, direction=direction, sets=64, **named).block(0, 200).indices, distribution
    )


def dead_ends():
    """Chains of five from two first pairs; most ways end early, so that 64 attempts often fail."""
    dead = list(range(6, 12))
    pairs = [(0, 1), (2, 1), *((1, b) for b in [3, *dead]), *((3, b) for b in [4, *dead]), (4, 5), (4, 6)]
    return pairs, range(12)


def test_the_last_resort():
    """After 64 attempts, the set that the search found for the last first pair; as often as the report says."""
    pairs, views = dead_ends()
    distribution, fallback = distribution_of_sets(dict.fromkeys(pairs), 5, "chain", lambda pair: 0)
    assert 0.2 < fallback < 0.3
    overlaps = table_of_pairs(TABLE, pairs, views)
    check_chances(OverlapSampler(TABLE, overlaps, size=5, overlap=(0.5, 0.5), sets=1), distribution, fallback)
    sampler = OverlapSampler(TABLE, overlaps, size=5, overlap=(0.5, 0.5), sets=64)
    drawn = sampler.block(0, 100).indices
    check_draws(drawn, distribution)
    assert np.array_equal(np.stack([sampler[step].indices for step in range(20)]), drawn[:20])
    entry = sampler.report().entries[0]
    first = {members[:2] for members in distribution}
    assert (entry.pairs, entry.first_pairs, entry.without_set) == (len(pairs), len(first), len(pairs) - len(first))
    assert "chance that all attempts at a set fail" in str(sampler.report())


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**32),
    st.sampled_from(SHAPES),
    st.sampled_from(["pairs", "scenes", "overlap"]),
    st.integers(2, 5),
    st.floats(0.3, 0.85),
    st.booleans(),
)
def test_every_set_has_its_form(seed, shape, choose, size, measured, weighted):
    form, direction = shape
    overlaps = table_of(TABLE, (8, 7, 6), seed=seed, measured=measured, zero=0.1)
    options = {"overlap": (0.2, 0.9), "angle": (0, 75), "direction": direction, "form": form, "choose": choose}
    options |= {"weights": "weight"} if weighted else {}
    weight = TABLE.values("weight")
    kept = (lambda row: weight[row] > 0) if weighted else (lambda row: True)
    pairs = pairs_of(overlaps, ((0.2, 0.9), (0.0, 75.0), (0.0, 1e9)), direction, kept)
    if not distribution_of_sets(pairs, size, form, lambda pair: 0, attempts=1)[0]:
        with pytest.raises(SamplerError, match=r"begins a|none of the"):
            OverlapSampler(TABLE, overlaps, size=size, **options)
        return
    sampler = OverlapSampler(TABLE, overlaps, size=size, sets=16, negatives=2, **options)
    draw = sampler.block(0, 8)
    assert draw.indices.shape == (8, 16, size + 2)
    for row, there in zip(
        draw.indices.reshape(-1, size + 2).tolist(),
        np.broadcast_to(True if draw.mask is None else draw.mask, draw.indices.shape).reshape(-1, size + 2).tolist(),
        strict=True,
    ):
        members, negatives = row[:size], [b for b, is_there in zip(row[size:], there[size:], strict=True) if is_there]
        assert all(there[:size])
        assert len({*members, *negatives}) == size + len(negatives)
        ends = {
            "chain": pairwise(members),
            "star": ((members[0], b) for b in members[1:]),
            "clique": ((a, b) for a in members for b in members if a != b),
        }
        assert all(pair in pairs for pair in ends[form])
        assert all(certainly_apart(overlaps, SCENE, a, b) for a in members for b in negatives)
        assert all(map(kept, negatives))
    assert np.array_equal(sampler[5].indices, draw.indices[5])


@pytest.mark.parametrize(("views", "negatives"), [((12,), 3), ((6, 5), 4), ((8,), 1), ((5, 4, 3), 9)])
def test_negatives_are_uniform_over_views_that_are_certain(views, negatives, monkeypatch):
    if len(views) == 3:  # as scenes of many views, a part at a time
        monkeypatch.setattr("setsup.samplers.overlap.negatives._ROWS", 2)
        monkeypatch.setattr("setsup.samplers.overlap.negatives._BLOCK", 100)
    table = factors(len(views))
    scene = table.codes("scene")
    overlaps = table_of(table, views, seed=9, measured=0.6, excluded=0.35, zero=0.5, unknown=0.1)
    pairs = pairs_of(overlaps, ((0.1, 1.0), *ALL[1:]), "forward")
    kept = [row for row in overlaps.views.tolist() if row % 5 != 4]
    pairs = {pair: found for pair, found in pairs.items() if set(pair) <= set(kept)}
    certain = {pair: [b for b in kept if all(certainly_apart(overlaps, scene, a, b) for a in pair)] for pair in pairs}
    where = np.arange(ROWS) % 5 != 4
    sampler = OverlapSampler(table, overlaps, overlap=(0.1, 1), sets=64, negatives=negatives, where=where)
    draw = sampler.block(0, 400)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    counts, chance = Counter(), np.zeros(ROWS)
    for pair in pairs:
        chance[list(pair)] += 1 / len(pairs)
        chance[certain[pair]] += min(negatives / max(len(certain[pair]), 1), 1) / len(pairs)
    for row, there in zip(draw.indices.reshape(-1, 2 + negatives).tolist(), mask.reshape(-1, 2 + negatives).tolist(),
                          strict=True):  # fmt: skip
        drawn = [b for b, is_there in zip(row[2:], there[2:], strict=True) if is_there]
        assert there == sorted(there, reverse=True)
        assert len(drawn) == len(set(drawn)) == min(negatives, len(certain[tuple(row[:2])]))
        assert set(drawn) <= set(certain[tuple(row[:2])])
        counts.update((tuple(row[:2]), b) for b in drawn)
    for pair, views_of_pair in certain.items():
        seen = [counts[pair, b] for b in views_of_pair]
        if len(seen) > negatives:  # drawn without repeats, which varies less than this expects
            assert chisquare(seen).pvalue > 1e-5
    assert np.allclose(sampler.reach().chance(range(ROWS)), 1 - (1 - chance) ** 64, atol=1e-12)


def test_pairs_that_were_not_tried_are_no_negatives():
    views = range(6)
    overlaps = table_of_pairs(TABLE, [(0, 1), (1, 0)], views)
    with pytest.raises(SamplerError, match="no two views certainly do not overlap"):
        OverlapSampler(TABLE, overlaps, overlap=(0.5, 0.5), negatives=1)


def test_ends_belong_to_bands():
    """Shares of tenths that float32 rounds up or down; 0.3 begins the bin from 0.3 on."""
    overlaps = table_of(TABLE, (8, 8, 8), seed=2, unknown=0, excluded=0)
    share = {pair: round(found[0] * 10) for pair, found in measures_of(overlaps).items()}
    for low in range(11):
        for high in range(low, 11):
            some = {pair for pair, tenths in share.items() if low <= tenths <= high}
            if some:
                sampler = OverlapSampler(TABLE, overlaps, overlap=(low / 10, high / 10))
                assert sampler.report().entries[0].pairs == len(some)
    sampler = OverlapSampler(TABLE, overlaps, overlap=(0, 1), choose="overlap", bins=10, sets=512)
    tenths = np.array([share[tuple(pair)] for pair in sampler.block(0, 40).indices.reshape(-1, 2).tolist()])
    bins = np.bincount(np.minimum(tenths, 9), minlength=10)  # tenths of 9 and 10 are in the last bin
    assert bins[0] == 0
    assert chisquare(bins[1:]).pvalue > 1e-4


def test_unknown_overlaps_are_in_no_band():
    overlaps = table_of(TABLE, (8, 8, 8), seed=2, unknown=0.5)
    unknown = {pair for pair, found in measures_of(overlaps).items() if math.isnan(found[0])}
    sampler = OverlapSampler(TABLE, overlaps, overlap=(0, 1), angle=(0, 180), scale=(0, 1e30), sets=512)
    drawn = {tuple(pair) for pair in sampler.block(0, 50).indices.reshape(-1, 2).tolist()}
    assert unknown
    assert not drawn & unknown
    entry = sampler.report().entries[0]
    assert (entry.unknown, entry.pairs) == (len(unknown), len(overlaps) - len(unknown))
    assert drawn == set(measures_of(overlaps)) - unknown


def test_pairs_whose_other_direction_was_not_tried_are_not_both():
    pairs = [(0, 1), (1, 0), (1, 2), (3, 0)]
    overlaps = table_of_pairs(TABLE, pairs, range(4))
    sampler = OverlapSampler(TABLE, overlaps, overlap=(0.5, 0.5), direction="both")
    entry = sampler.report().entries[0]
    assert (entry.pairs, entry.one_way, entry.untried) == (2, 2, 2)
    assert "left out by their other direction: 2 pairs, which was not tried for 2 of them" in str(sampler.report())
    with pytest.raises(SamplerError, match=r"2 have it in one direction, and the other was not tried; measure .* more"):
        OverlapSampler(TABLE, table_of_pairs(TABLE, pairs[2:], range(4)), overlap=(0.5, 0.5), direction="both")


def test_files_and_plain_data(tmp_path):
    overlaps = table_of(TABLE, VIEWS, seed=1)
    overlaps.save(tmp_path / "views.overlap")
    options = {"overlap": (0.2, 0.8), "size": 3, "form": "star", "negatives": 1, "angle": [0, 80]}
    memory = OverlapSampler(TABLE, overlaps, **options)
    file = OverlapSampler(TABLE, tmp_path / "views.overlap", **options)
    expected = memory.block(0, 20).indices
    assert file.arguments["overlaps"] == {"path": str(tmp_path / "views.overlap"), "digest": overlaps.digest}
    for sampler in (
        file,
        OverlapSampler(TABLE, OverlapTable.open(tmp_path / "views.overlap"), **options),
        *(from_dict(json.loads(json.dumps(one.to_dict())), TABLE) for one in (memory, file)),
        *(pickle.loads(pickle.dumps(one)) for one in (memory, file)),
    ):
        assert np.array_equal(sampler.block(0, 20).indices, expected)
    assert memory.report() == file.report()
    plain = file.to_dict()
    other = table_of(TABLE, VIEWS, seed=2)
    assert not np.array_equal(OverlapSampler(TABLE, other, **options).block(0, 20).indices, expected)
    other.save(tmp_path / "views.overlap")
    with pytest.raises(SamplerError, match="has changed: it had the digest"):
        from_dict(plain, TABLE)


def test_draws_say_which_scene_they_are_of():
    overlaps = table_of(TABLE, VIEWS, seed=1)
    draw = OverlapSampler(TABLE, overlaps, overlap=(0, 1), size=3).block(0, 3)
    assert (SCENE[draw.indices] == draw.inactive["scene"][..., None]).all()
    assert not OverlapSampler(TABLE, overlaps, overlap=(0, 1), negatives=1)[0].inactive


def test_rows_that_are_never_drawn_are_counted():
    overlaps = table_of(TABLE, VIEWS, seed=1)
    where = np.arange(ROWS) != 2
    sampler = OverlapSampler(TABLE, overlaps, overlap=(0.3, 0.6), where=where)
    entry = sampler.report().entries[0]
    drawn = set(sampler.block(0, 500).indices.reshape(-1).tolist())
    assert (entry.excluded, entry.uncompared) == (1, ROWS - 12)
    assert entry.unreachable == len(set(overlaps.views.tolist()) - {2} - drawn)
    reach = sampler.reach()
    assert reach.row(2).reasons[0].text.startswith("where= or weights=")
    assert {row for row in range(ROWS) if reach.chance([row])[0] > 0} == drawn


@pytest.mark.parametrize("form", ["chain", "clique"])
@pytest.mark.parametrize("negatives", [0, 2])
def test_chances_of_many_sets_are_estimated(form, negatives, monkeypatch):
    overlaps = table_of(TABLE, (8, 7, 6), seed=3, zero=0.2)
    options = {"overlap": (0.1, 1), "size": 4, "form": form, "direction": "either", "negatives": negatives, "sets": 2}
    exact = OverlapSampler(TABLE, overlaps, **options).reach().chance(range(ROWS))
    monkeypatch.setattr("setsup.samplers.overlap.chances.ENUMERATED", 10)
    sampler = OverlapSampler(TABLE, overlaps, **options)
    reach = sampler.reach()
    assert reach.estimated
    assert sampler.report().entries[0].estimated
    found = reach.chance(range(ROWS))
    known = ~np.isnan(found)
    assert (found[known & (exact > 0)] > 0).all()
    assert (exact[found > 0] > 0).all()
    assert np.abs(found - exact)[known].max() < 0.02


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"overlap": (0.8, 0.3)}, "overlap is empty, because 0.8 is above 0.3"),
        ({"overlap": (0.31, 0.39)}, r"none of the \d+ measured pairs has overlap 0.31 to 0.39; measured overlaps are"),
        ({"overlap": 0.5}, r"overlap must be the lower and the upper end of a band, such as \(0.3, 0.8\), not 0.5"),
        ({"overlap": None}, "overlap must be the lower and the upper end"),
        ({"overlap": (0, 1.5)}, "the upper end of overlap must be a finite number from 0 to 1, not 1.5"),
        ({"overlap": (math.nan, 1)}, "the lower end of overlap must be a finite number"),
        ({"angle": (0, 200)}, "the upper end of angle must be a finite number from 0 to 180"),
        ({"scale": (-1, 2)}, "the lower end of scale must be"),
        ({"size": 1}, "size must be an integer from 2"),
        ({"size": 20}, r"none of the \d+ pairs with overlap 0 to 1 begins a chain of 20 views; lower size"),
        ({"form": "clique"}, "a clique has no direction, .* pass direction='both' or direction='either'"),
        ({"form": "ring"}, "form must be one of chain, star, clique"),
        ({"direction": "back"}, "direction must be one of"),
        ({"choose": "rows"}, "choose must be one of pairs, scenes, overlap, angle"),
        ({"bins": 0, "choose": "overlap"}, "bins must be an integer from 1"),
        ({"negatives": -1}, "negatives must be an integer from 0"),
        ({"sets": 0}, "sets must be"),
        ({"where": [3]}, "none of the .* measured pairs of the rows that where= and weights= keep has overlap 0 to 1"),
        ({"overlaps": 3}, "overlaps must be an overlap table or the path of its file, not 3"),
        ({"overlaps": {"path": "x"}}, "overlaps must be an overlap table"),
        ({"overlaps": "missing.overlap"}, "missing.overlap does not exist"),
    ],
)
def test_arguments_that_contradict_each_other(options, sentence):
    overlaps = table_of(TABLE, VIEWS, seed=1, excluded=0)
    arguments = {"overlaps": overlaps, "overlap": (0, 1), **options}
    with pytest.raises((SamplerError, DataError), match=sentence) as raised:
        OverlapSampler(TABLE, **arguments)
    assert "\n" not in str(raised.value)


def test_tables_of_other_datasets_and_of_tracks():
    overlaps = table_of(TABLE, VIEWS, seed=1)
    other = FactorTable([Factor("scene", Kind.NOMINAL, (0, 1, 2))], {"scene": SCENE})
    with pytest.raises(SamplerError, match="was measured for 24 rows with other factors"):
        OverlapSampler(other, overlaps, overlap=(0, 1))
    tracks = table_of(TABLE, VIEWS, seed=1, source="tracks")
    assert OverlapSampler(TABLE, tracks, overlap=(0, 1))[0].indices.shape == (8, 2)
    with pytest.raises(SamplerError, match="negatives must certainly not overlap, but tracks do not show all"):
        OverlapSampler(TABLE, tracks, overlap=(0, 1), negatives=1)


def test_scenes_whose_views_differ_in_their_factor():
    overlaps = table_of(TABLE, VIEWS, seed=1)
    other = {
        name: getattr(overlaps, name) for name in OverlapTable.__slots__ if name not in ("_order", "path", "digest")
    }
    swapped = OverlapTable(**{**other, "about": {**overlaps.about, "settings": {"scene": ["weight", "half", "scene"]}}})
    with pytest.raises(SamplerError, match="are of one scene in the overlap table, but differ in half"):
        OverlapSampler(TABLE, swapped, overlap=(0, 1))
    for named in (None, 3, "scene", ["nothing"]):
        unnamed = OverlapTable(**{**other, "about": {**overlaps.about, "settings": {"scene": named}}})
        assert not OverlapSampler(TABLE, unnamed, overlap=(0, 1))[0].inactive


@pytest.mark.parametrize("form", ["chain", "clique"])
def test_searches_end(form, monkeypatch):
    """A search that is cut short loses first pairs, but never draws what is no set, also as the last resort."""
    overlaps = table_of(TABLE, (8, 7, 6), seed=8, measured=0.5)
    options = {"overlap": (0.1, 1), "size": 5, "form": form, "direction": "either", "sets": 64}
    pairs = pairs_of(overlaps, ((0.1, 1.0), *ALL[1:]), "either")
    whole = OverlapSampler(TABLE, overlaps, **options).report().entries[0]
    sets, _ = distribution_of_sets(pairs, 5, form, lambda pair: 0)
    assert whole.first_pairs == len({members[:2] for members in sets})
    monkeypatch.setattr("setsup.samplers.overlap.search.NODES", 3)
    monkeypatch.setattr("setsup.samplers.overlap.forms.ATTEMPTS", 1)
    sampler = OverlapSampler(TABLE, overlaps, **options)
    entry = sampler.report().entries[0]
    assert 0 < entry.first_pairs < whole.first_pairs
    assert entry.first_pairs + entry.without_set == len(pairs)
    assert set(map(tuple, sampler.block(0, 30).indices.reshape(-1, 5).tolist())) <= set(sets)


def test_within_a_zip():
    overlaps = table_of(TABLE, VIEWS, seed=1)
    views = OverlapSampler(TABLE, overlaps, overlap=(0.2, 0.8), sets=2, size=3)
    both = Zip(EpochSampler(TABLE, size=4), views)
    entry = both.report().entries[-1]
    assert entry.sets == [1, 2]
    assert "pairs of views (sets 1, 2):" in str(both.report())
    again = from_dict(json.loads(json.dumps(both.to_dict())), TABLE)
    assert np.array_equal(again[7].indices, both[7].indices)


@pytest.mark.parametrize("direction", ["forward", "both", "either"])
def test_tracks_of_a_model(tmp_path, direction):
    """All pairs of a COLMAP model are measured, also those without a common point, which are never drawn."""
    model = Model(tmp_path / "cloud", blind=(3,))
    dataset = setsup.open(tmp_path / "cloud")
    table = overlap(dataset)
    sampler = OverlapSampler(dataset.factors, table, overlap=(0, 0.5), direction=direction, sets=64)
    shares = {(a, b): model.measures(a, b)[0] for a in range(9) for b in range(9) if a != b}
    low = {pair for pair, share in shares.items() if 0 < share <= 0.5}
    low = {(a, b) for a, b in shares if {"forward": (a, b) in low, "both": {(a, b), (b, a)} <= low,
                                         "either": bool({(a, b), (b, a)} & low)}[direction]}  # fmt: skip
    assert {tuple(pair) for pair in sampler.block(0, 30).indices.reshape(-1, 2).tolist()} == low
    entry = sampler.report().entries[0]
    assert (entry.measured, entry.pairs, entry.untried) == (72, len(low), 0)


def test_searches_go_back():
    """The first way from (0, 1) ends at view 4; the other one passes through the same views."""
    overlaps = table_of_pairs(TABLE, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 2)], range(5))
    sampler = OverlapSampler(TABLE, overlaps, overlap=(0.5, 0.5), size=5)
    assert {tuple(one) for one in sampler[0].indices.tolist()} == {(0, 1, 3, 2, 4)}
    assert sampler.report().entries[0].first_pairs == 1
