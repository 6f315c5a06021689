"""Pairs of recipes by overlap: beside brute force over all pixels, and their law beside enumerations of small cases."""

import itertools
import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from setsup.correspondence import RenderedPairs, overlap, pair_table
from setsup.correspondence.pixel_pairs import Status
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.scenes import Camera, Mesh, Placement, Scene
from setsup.scenes.meshes.primitives import box
from setsup.scenes.recipes import FunctionRecipe, ObjectView, Room, Shapes3D
from tests.correspondence.brute_force import brute_force

pytest.importorskip("embreex", reason="embreex is not installed")

SIZE = (24, 32)
PIXELS = SIZE[0] * SIZE[1]
TURNS = (-40.0, -22.0, -8.0, 5.0, 30.0)


def build(values):
    """A wall, and a board before it that hides a part."""
    wall = Mesh([[-30, 4, -30], [30, 4, -30], [30, 4, 30], [-30, 4, 30]], [[0, 1, 2], [0, 2, 3]])
    board = Mesh([[-0.5, 2, -0.5], [0.5, 2, -0.5], [0.5, 2, 0.5], [-0.5, 2, 0.5]], [[0, 1, 2], [0, 2, 3]])
    return Scene((Placement(wall), Placement(board, translation=(0.3 * values["body"], 0, 0))))


def look(values, scene):
    x = values["turn"] / 20
    return Camera.look_at((x, 0, 0), (0.3 * x, 4, 0), height=SIZE[0], width=SIZE[1], field_of_view=0.6)


def boards(bodies=2):
    """Views of boards before a wall, five of each."""
    factors = [Factor("body", Kind.ORDINAL, tuple(range(bodies))), Factor("turn", Kind.ORDINAL, TURNS)]
    return FunctionRecipe("boards", factors, build, look, ["body"], SIZE, "1")


def chairs(views=12):
    """Two solids, and random views of them."""
    parts = [box((1, 0.2, 1)), box((0.2, 1, 1.5))]
    moved = Mesh(
        np.concatenate([parts[0].vertices, parts[1].vertices + np.array([0.6, 0, 0.3])]),
        np.concatenate([parts[0].faces, parts[1].faces + len(parts[0].vertices)]),
    )
    recipe = ObjectView({"table": box((1, 1, 0.3)), "corner": moved}, size=SIZE, jitter=0.0, up="z")
    return recipe, recipe.sampled(views)


def statuses(recipe, table, first, second):
    """Statuses of all pixels of a row in another row, by rays against every triangle."""
    one, two = table.row(first), table.row(second)
    scene = recipe.scene(one)
    cameras = recipe.camera(one, scene), recipe.camera(two, scene)
    found = brute_force(scene, *cameras, cameras[0].pixels())
    return np.bincount(found.status, minlength=4)


def share(counts):
    """Overlap by counts of statuses."""
    decided = counts[Status.VISIBLE] + counts[Status.OCCLUDED] + counts[Status.OUTSIDE]
    return counts[Status.VISIBLE] / decided, decided


def pairs_of(table):
    """Overlaps of pairs, (n, 2)."""
    return np.stack([table.codes(name)[::2] for name in ("overlap", "overlap_back")], axis=1)


def check_bands(recipe, views, pairs, band, direction, seed):
    """All pixels say what the table says, up to the sampling error of 192; most pairs are in the band."""
    table = pair_table(recipe, pairs, factors=views, overlap=band, direction=direction, seed=seed)
    met = {"forward": lambda one, two: one, "both": lambda one, two: one and two, "either": lambda one, two: one or two}
    low, high = np.float32(band)
    chosen = 0
    for number, said in enumerate(pairs_of(table)):
        truly = []
        for side in (0, 1):
            true, decided = share(statuses(recipe, table, 2 * number + side, 2 * number + 1 - side))
            n = min(192, decided)
            error = 4 * np.sqrt(true * (1 - true) / n) + 1 / n
            assert abs(said[side] - true) <= error
            truly.append(low - error <= true <= high + error)
        if met[direction](*(low <= one <= high for one in said)):
            chosen += 1
            assert met[direction](*truly)
    assert chosen >= pairs / 2


# -- the band ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["forward", "both", "either"])
def test_all_pixels_lie_in_the_band(direction):
    check_bands(boards(), None, 8, (0.3, 0.7), direction, 5)


@pytest.mark.long("exhaustive comparisons")
@pytest.mark.parametrize("direction", ["forward", "both"])
@pytest.mark.parametrize("band", [(0.1, 0.3), (0.3, 0.8)])
def test_all_pixels_of_rooms_and_objects_lie_in_the_band(band, direction):
    recipe, views = chairs()
    check_bands(recipe, views, 12, band, direction, 1)
    walls = box((5, 4, 2.5))
    rooms = Room(rooms=4, pairs=3, meshes={"box": walls}, objects={"box": box((0.6, 0.6, 0.5))}, size=SIZE, seed=3)
    check_bands(rooms, None, 8, band, direction, 2)
    check_bands(Room(rooms=1, pairs=2, count=(2, 4), size=(12, 16)), None, 2, band, direction, 4)


def test_with_all_pixels_the_table_is_exact():
    recipe = boards()
    table = pair_table(recipe, 6, overlap=(0.4, 0.6), pixels=PIXELS, seed=2)
    for number, said in enumerate(pairs_of(table)):
        for side in (0, 1):
            true, _ = share(statuses(recipe, table, 2 * number + side, 2 * number + 1 - side))
            assert np.float32(true) == said[side]
        assert 0.4 <= said[0] <= 0.6


def test_overlap_measures_what_the_table_says():
    recipe, views = chairs()
    table = pair_table(recipe, 6, factors=views, overlap=(0.2, 0.9), seed=8)
    measured = overlap(RenderedDataset(recipe, table, "embree"), scene="view_pair", seed=8)
    for pair, said in enumerate(pairs_of(table)):
        ends = np.array([2 * pair, 2 * pair + 1])
        np.testing.assert_array_equal(measured.overlap[measured.find(ends, ends[::-1])], said)


# -- the law -----------------------------------------------------------------------------------------------------------


def measured_views(recipe):
    """Overlap of all pairs of views of body 0, from all pixels."""
    table = FactorTable(recipe.factors).where("body == 0")
    return {
        (table.row(first)["turn"], table.row(second)["turn"]): share(statuses(recipe, table, first, second))[0]
        for first, second in itertools.permutations(range(len(table)), 2)
    }


def chances(measures, band, direction, candidates):
    """Chance of each pair: over all orders in which candidates may be looked at."""
    low, high = band

    def away(pair):
        apart = [max(low - o, o - high, 0.0) for o in (measures[pair], measures[pair[::-1]])]
        return {"forward": apart[0], "both": max(apart), "either": min(apart)}[direction]

    inside = [pair for pair in measures if away(pair) == 0]
    if candidates >= len(measures):
        return {pair: 1 / len(inside) for pair in inside}
    found = Counter()
    orders = list(itertools.permutations(measures, candidates))
    for order in orders:
        found[next((pair for pair in order if away(pair) == 0), min(order, key=away))] += 1
    return {pair: count / len(orders) for pair, count in found.items()}


@pytest.mark.long("statistics")
@pytest.mark.parametrize(("direction", "candidates"), [("forward", 1), ("both", 3), ("either", 64)])
def test_the_law_is_that_of_an_enumeration(direction, candidates):
    recipe, band = boards(1), (0.45, 0.7)
    law = chances(measured_views(recipe), band, direction, candidates)
    assert 2 <= len(law)
    options = {"overlap": band, "direction": direction, "candidates": candidates, "pixels": PIXELS}
    table = pair_table(recipe, 500, seed=7, **options)
    turns = table.values("turn").reshape(-1, 2)
    seen = Counter(map(tuple, turns.tolist()))
    assert set(seen) <= set(law)
    expected, found = np.array([[500 * law[pair], seen[pair]] for pair in law]).T
    rare = expected < 5
    assert abs(found[rare].sum() - expected[rare].sum()) <= 4 * np.sqrt(expected[rare].sum()) + 1
    common = [np.append(some[~rare], some[rare].sum()) if rare.any() else some for some in (found, expected)]
    assert stats.chisquare(*common).pvalue > 1e-3


@pytest.mark.long("statistics")
def test_of_rooms_cameras_are_uniform_over_the_draws_in_the_band():
    """One pair of one room, whose sixteen draws in both orders are measured one by one."""
    shell = box((5, 4, 2.5))
    recipe = Room(rooms=1, pairs=1, meshes={"box": shell}, objects={"box": box((0.6, 0.6, 0.5))}, size=SIZE, seed=4)
    band, inside = (0.4, 0.7), []
    for candidate in range(16):
        rows = [{"room": 0, "pair": 0, "side": side, "candidate": candidate} for side in (0, 1)]
        scene = recipe.scene(rows[0])
        cameras = [recipe.camera(row, scene) for row in rows]
        for side in (0, 1):
            one, two = cameras[side], cameras[1 - side]
            status = np.bincount(brute_force(scene, one, two, one.pixels()).status, minlength=4)
            if band[0] <= share(status)[0] <= band[1]:
                inside.append((candidate, side))
    assert 4 < len(inside) < 28
    # sixteen of 32 alternatives are looked at: all fail too seldom to matter
    table = pair_table(recipe, 900, overlap=band, candidates=16, pixels=PIXELS, seed=9)
    first = zip(table.values("candidate")[::2].tolist(), table.values("side")[::2].tolist(), strict=True)
    seen = Counter(first)
    outside = sum(count for pair, count in seen.items() if pair not in inside)
    assert outside <= 5
    assert stats.chisquare([seen[pair] for pair in inside]).pvalue > 1e-3


def test_where_no_candidate_is_in_the_band_the_nearest_is_taken(caplog):
    recipe = boards(1)
    measures = measured_views(recipe)
    missing = (0.0, 0.0)
    assert 0 not in measures.values()
    nearest = min(measures, key=lambda pair: measures[pair])
    with caplog.at_level(logging.WARNING, "setsup"):
        table = pair_table(recipe, 3, overlap=missing, pixels=PIXELS)
    assert table.values("turn").reshape(-1, 2).tolist() == [list(nearest)] * 3
    np.testing.assert_array_equal(table.codes("overlap"), np.float32(measures[nearest]))
    (said,) = caplog.messages
    assert "3 of 3 pairs have no candidate with overlap 0 to 0 among 64" in said
    assert "where='0 <= overlap <= 0'" in said
    assert not len(table.where("0 <= overlap <= 0"))


def test_pairs_keep_their_groups():
    recipe = boards(5)
    plain, banded = (pair_table(recipe, 40, overlap=band, seed=3) for band in (None, (0.3, 0.8)))
    np.testing.assert_array_equal(plain.codes("body"), banded.codes("body"))
    bodies, turns = (banded.codes(name).reshape(-1, 2) for name in ("body", "turn"))
    assert (bodies[:, 0] == bodies[:, 1]).all()
    assert (turns[:, 0] != turns[:, 1]).all()


# -- one result --------------------------------------------------------------------------------------------------------


def test_without_a_band_tables_are_as_before():
    """The fingerprints are those of the version before bands."""
    assert pair_table(Shapes3D(size=SIZE), 20, seed=2).fingerprint == "0dab700e231229361719b3752717d29f"
    assert pair_table(Room(rooms=5, pairs=3), 20, seed=2).fingerprint == "985f6ad90db418eafdbabde5b5b7eb8f"


def test_pairs_are_functions_of_seed_and_number():
    recipe, views = chairs()
    whole = pair_table(recipe, 9, factors=views, overlap=(0.3, 0.8), seed=6)
    assert whole.fingerprint == pair_table(recipe, 9, factors=views, overlap=(0.3, 0.8), seed=6).fingerprint
    some = pair_table(recipe, 4, factors=views, overlap=(0.3, 0.8), seed=6)
    for name in ("model", "azimuth", "overlap", "overlap_back"):
        np.testing.assert_array_equal(some.codes(name), whole.codes(name)[:8])
    assert whole.fingerprint != pair_table(recipe, 9, factors=views, overlap=(0.3, 0.8), seed=7).fingerprint


@pytest.mark.long("renderings")
def test_what_was_measured_is_kept_and_read_again(tmp_path, monkeypatch):
    recipe = boards(3)
    wanted = pair_table(recipe, 150, overlap=(0.3, 0.8), candidates=4)
    found = pair_table(recipe, 150, overlap=(0.3, 0.8), candidates=4, folder=tmp_path / "kept")
    assert found.fingerprint == wanted.fingerprint
    units = sorted((tmp_path / "kept").glob("*.unit"))
    assert len(units) == 3  # pairs of a scene stay together
    units[1].unlink()
    built = []
    monkeypatch.setattr(FunctionRecipe, "scene", lambda self, values: built.append(values["body"]) or build(values))
    again = pair_table(recipe, 150, overlap=(0.3, 0.8), candidates=4, folder=tmp_path / "kept")
    assert again.fingerprint == wanted.fingerprint
    assert set(built) == {1}
    other = pair_table(recipe, 150, overlap=(0.2, 0.8), candidates=4, folder=tmp_path / "kept")
    assert other.fingerprint == pair_table(recipe, 150, overlap=(0.2, 0.8), candidates=4).fingerprint


@pytest.mark.long("kills and interruptions")
def test_what_was_measured_for_other_pairs_is_not_read(tmp_path):
    """Of 150 pairs, the last unit has pairs of another scene than that of 300."""
    recipe, how = boards(2), {"overlap": (0.3, 0.8), "candidates": 2}
    pair_table(recipe, 150, **how, folder=tmp_path / "kept")
    more = pair_table(recipe, 300, **how, folder=tmp_path / "kept")
    assert more.fingerprint == pair_table(recipe, 300, **how).fingerprint


@pytest.mark.long("worker processes")
def test_the_same_table_from_two_processes():
    recipe = Room(rooms=3, pairs=4, size=SIZE)
    one, two = (pair_table(recipe, 100, overlap=(0.3, 0.6), processes=processes) for processes in (1, 2))
    assert one.fingerprint == two.fingerprint


# -- rooms -------------------------------------------------------------------------------------------------------------


def room_cameras(recipe, candidates):
    rows = [{"room": 1, "pair": 1, **({} if one is None else {"candidate": one})} for one in candidates]
    return [recipe.camera_pair(row) for row in rows]


def test_a_room_draws_its_cameras_again():
    shell = {"meshes": {"box": box((5, 4, 2.5))}, "objects": {"box": box((0.6, 0.6, 0.5))}}
    plain, first, *others = room_cameras(Room(rooms=2, pairs=2, **shell), [None, 0, 1, 2, 63])
    assert plain is first
    eyes = np.stack([pair.eyes for pair in [plain, *others]])
    assert len(np.unique(eyes.reshape(-1, 3), axis=0)) == 8
    backwards = room_cameras(Room(rooms=2, pairs=2, **shell), [63, 2, 1])[::-1]
    for one, two in zip(others, backwards, strict=True):
        np.testing.assert_array_equal(one.eyes, two.eyes)
        np.testing.assert_array_equal(one.targets, two.targets)
        assert one.relaxed == 0
    recipe = Room(rooms=2, pairs=2, **shell)
    for wrong in (-1, 0.5, 1 << 20, "1"):
        with pytest.raises(SetsupError, match="candidate must be"):
            recipe.camera_pair({"room": 0, "pair": 0, "candidate": wrong})


def test_rows_are_rendered_from_their_factors_alone():
    """Any row by itself, with a table of the other rows missing, is as it is among all of them."""
    shell = {"meshes": {"box": box((5, 4, 2.5))}, "objects": {"box": box((0.6, 0.6, 0.5))}}
    recipe = Room(rooms=2, pairs=2, size=SIZE, **shell)
    table = pair_table(recipe, 3, overlap=(0.3, 0.8), seed=1)
    assert set(table.values("candidate").tolist()) != {0}
    whole = RenderedPairs(recipe, table, "embree").fetch(np.arange(6), ["image", "partners", "status"])
    alone = RenderedPairs(Room(rooms=2, pairs=2, size=SIZE, **shell), table.select([4, 5]), "embree")
    for name, array in alone.fetch([1, 0], list(whole)).items():
        np.testing.assert_array_equal(array, whole[name][[5, 4]])
    shown = [share(np.bincount(status.ravel(), minlength=4))[0] for status in whole["status"]]
    np.testing.assert_allclose(np.reshape(shown, (3, 2)), pairs_of(table), atol=4 * 0.036)


# -- what cannot be had ------------------------------------------------------------------------------------------------


def test_scenes_that_cannot_be_built_are_left_to_rendering(tmp_path: Path):
    (tmp_path / "broken.obj").write_text("v 0 0 0\nf 1 2 3\n")
    recipe = ObjectView({"box": box((1, 1, 0.3)), "broken": tmp_path / "broken.obj"}, size=SIZE)
    table = pair_table(recipe, 20, factors=recipe.sampled(6), overlap=(0.2, 0.9))
    broken = table.values("model") == "broken"
    assert broken.any()
    assert np.isnan(table.codes("overlap")[broken]).all()
    assert not np.isnan(table.codes("overlap")[~broken]).any()
    with pytest.raises(DataError, match=r"broken\.obj"):
        RenderedPairs(recipe, table, "embree").fetch(np.flatnonzero(broken)[:1])


def test_too_few_pixels_with_a_surface_are_unknown():
    recipe = ObjectView({"box": box((1, 1, 1))}, size=SIZE, field_of_view=170.0, jitter=0.0)
    table = pair_table(recipe, 2, factors=recipe.sampled(3), overlap=(0.0, 1.0))
    assert np.isnan(pairs_of(table)).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"overlap": (0.8, 0.3)}, "overlap is empty, because 0.8 is above 0.3"),
        ({"overlap": (0.3, 1.2)}, "the upper end of overlap must be"),
        ({"overlap": (0.3, float("nan"))}, "overlap"),
        ({"overlap": (0.3,)}, "overlap"),
        ({"candidates": 0}, "candidates must be"),
        ({"pixels": 15}, "pixels must be"),
        ({"direction": "back"}, "direction of pair_table must be"),
        ({"processes": 0}, "processes must be"),
        ({"tolerance": {"turn": 3.0}}, "tolerance= and overlap= are mutually exclusive"),
    ],
)
def test_what_is_refused(options, said):
    with pytest.raises(SetsupError, match=said):
        pair_table(boards(), 2, **{"overlap": (0.3, 0.8), **options})


def test_names_of_columns_are_reserved():
    recipe = boards()
    for name in ("overlap", "overlap_back"):
        views = FactorTable([*recipe.factors, Factor(name, Kind.ORDINAL, (0, 1))])
        with pytest.raises(DataError, match=f"already have a factor '{name}'"):
            pair_table(recipe, 2, factors=views, overlap=(0.3, 0.8))
        assert len(pair_table(recipe, 2, factors=views)) == 4
