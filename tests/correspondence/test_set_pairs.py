"""Pairs of views of sets that were drawn by overlap, and partners of their pixels by scenes and by depth."""

from itertools import combinations

import numpy as np
import pytest

from setsup.correspondence import (
    RenderedPairs,
    Status,
    from_depth,
    overlap,
    pair_positions,
    pair_table,
    recorded,
    spatial,
    view_pairs,
)
from setsup.correspondence.matching import Window, matched
from setsup.errors import SetsupError
from setsup.random import fold
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.samplers import OverlapSampler
from setsup.scenes.recipes import Room, Shapes3D
from tests.correspondence.test_overlap import Frames, from_images

SIZE = (24, 32)


@pytest.fixture(scope="module")
def rooms() -> RenderedDataset:
    pytest.importorskip("embreex")
    return RenderedDataset(Room(rooms=2, pairs=4, size=SIZE), renderer="embree")


@pytest.mark.parametrize("size", [2, 3, 5])
def test_pairs_of_each_form(size: int) -> None:
    assert [tuple(pair) for pair in pair_positions(size, "chain")] == [(at, at + 1) for at in range(size - 1)]
    assert [tuple(pair) for pair in pair_positions(size, "star")] == [(0, at) for at in range(1, size)]
    assert [tuple(pair) for pair in pair_positions(size, "clique")] == list(combinations(range(size), 2))
    assert pair_positions(size).dtype == np.int64


@pytest.mark.parametrize(("size", "form", "said"), [(1, "chain", "number of views"), (3, "ring", "form must be")])
def test_what_is_no_set_is_refused(size, form, said) -> None:
    with pytest.raises(SetsupError, match=said):
        pair_positions(size, form)


@pytest.mark.parametrize("form", ["chain", "star", "clique"])
def test_all_pairs_of_draws_are_in_the_band(rooms, form) -> None:
    table = overlap(rooms, scene="room")
    band = (0.1, 0.9)
    sampler = OverlapSampler(
        rooms.factors, table, overlap=band, size=3, form=form, direction="both", negatives=1, sets=6
    )
    draw = sampler[3]
    assert draw.indices.shape == (6, 4)
    rows = draw.indices[:, pair_positions(sampler.size, form)].reshape(-1, 2)
    for first, second in rows.tolist():
        for one, other in ((first, second), (second, first)):
            assert band[0] <= table.overlap[table.find(one, other)] <= band[1]
    sets, keys = draw.indices[:, :3], fold(2, np.arange(6, dtype=np.uint64))
    found = view_pairs(rooms, sets, keys, fraction=1.0, form=form)
    assert len(found.partner) == len(rows)
    for pair, (first, second) in enumerate(rows.tolist()):
        wanted = spatial(rooms.scene(first), rooms.camera(first), rooms.camera(second))
        np.testing.assert_array_equal(found.positive[pair], wanted.visible)
        nearest = np.rint(wanted.points2[wanted.visible]).astype(int)
        np.testing.assert_array_equal(found.partner[pair][wanted.visible], nearest[:, 1] * SIZE[1] + nearest[:, 0])
    again = view_pairs(rooms, sets[2:3], keys[2:3], form=form)
    several = view_pairs(rooms, sets, keys, form=form)
    each = len(rows) // 6
    np.testing.assert_array_equal(again.partner, several.partner[2 * each : 3 * each])
    assert len({one.tobytes() for one in several.positive}) == len(rows), "pixels of each pair are its own"


def test_partners_by_recorded_depth_beside_a_loop() -> None:
    frames = Frames(count=3, image=(36, 48))
    rows = [[0, 1], [1, 0], [2, 1]]
    found = view_pairs(frames, rows, fold(0, np.arange(3, dtype=np.uint64)), fraction=1.0)
    assert found.valid.all()
    for pair, (first, second) in enumerate(rows):
        wanted = {}
        to_world, to_camera = frames.pose[first], np.linalg.inv(frames.pose[second])
        for y in range(36):
            for x in range(48):
                z = float(frames.depth[first, y, x])
                if not z > 0:
                    continue
                point = to_world @ np.append(z * np.linalg.inv(frames.intrinsics[first]) @ (x, y, 1), 1)
                across, down, far = frames.intrinsics[second] @ (to_camera @ point)[:3]
                column, row = (round(across / far), round(down / far)) if far > 0 else (-1, -1)
                if 0 <= column < 48 and 0 <= row < 36:
                    there = float(frames.depth[second, row, column])
                    if there > 0 and abs(there - far) <= 0.01 * far:
                        wanted[y * 48 + x] = row * 48 + column
        assert set(np.flatnonzero(found.positive[pair]).tolist()) == set(wanted)
        assert {flat: int(found.partner[pair, flat]) for flat in wanted} == wanted
        assert len(wanted) == from_images(frames, first, second)[0] > 30


def test_tolerances_and_windows_of_depth() -> None:
    frames = Frames(count=2, image=(36, 48))
    whole, part = Window(0, 0, 36, 48), Window(10, 4, 20, 24)
    strict, loose = (recorded(frames, 0, 1, whole, whole, 1.0, 0, tolerance=some) for some in (0.001, 0.1))
    assert strict.visible.sum() < loose.visible.sum()
    assert set(np.unique(strict.status).tolist()) <= {int(status) for status in Status}
    found = recorded(frames, 0, 1, part, whole, 1.0, 0)
    every = recorded(frames, 0, 1, whole, whole, 1.0, 0)
    inside = [10 <= x < 34 and 4 <= y < 24 for x, y in every.points1.tolist()]
    np.testing.assert_array_equal(found.points1 + np.array([10, 4]), every.points1[inside])
    np.testing.assert_array_equal(found.status, every.status[inside])


def test_distorted_depth_is_refused() -> None:
    frames = Frames(count=2, image=(36, 48))
    frames.distortion = np.ones((2, 8), np.float32)
    frames.modalities["distortion"] = frames.modalities["pose"]
    with pytest.raises(SetsupError, match=r"have lens distortion, .* open the dataset without undistort=False"):
        matched(frames, 0, 1, Window(0, 0, 36, 48), Window(0, 0, 36, 48), 1.0, 0)


def test_stored_partners_are_used_for_their_pairs_and_depth_for_others(tmp_path) -> None:
    pytest.importorskip("embreex")
    recipe = Shapes3D(size=(20, 24))
    views = RenderedPairs(recipe, pair_table(recipe, 2, seed=1), "embree")
    kept = render(views, tmp_path / "kept", ["image", "depth", "partners", "status", "instances"])
    window = Window(0, 0, 20, 24)
    own = matched(kept, 0, 1, window, window, 1.0, 0)
    exact = spatial(views.scene(0), views.camera(0), views.camera(1))
    np.testing.assert_array_equal(own.status, exact.status)
    other = matched(kept, 0, 0, window, window, 1.0, 0)  # a view with itself is no pair
    depth = kept.fetch(0, ["depth"])["depth"]
    wanted = from_depth(depth, depth, kept.camera(0), kept.camera(0))
    np.testing.assert_array_equal(other.status, wanted.status)
    np.testing.assert_array_equal(other.instance >= 0, kept.fetch(0, ["instances"])["instances"].ravel() >= 0)
