"""Pixel pairs by the tracks of COLMAP models, beside loops over the lists of which the models were written."""

import math
import pickle
from functools import partial

import numpy as np
import pytest
from scipy.stats import chisquare

import setsup
from setsup.correspondence import Status, from_tracks, overlap, tracked, view_pairs
from setsup.correspondence.matching import Window
from setsup.datasets.adapters import colmap_tracks
from setsup.errors import SetsupError
from setsup.random import fold
from setsup.samplers import OverlapSampler
from tests import capture_files as true
from tests.track_models import FOCAL, SIZE, Model

HEIGHT, WIDTH = SIZE
WHOLE = Window(0, 0, HEIGHT, WIDTH)


def by_loop(model: Model, first: int, second: int) -> list[tuple[tuple[float, float], Status, tuple[float, float]]]:
    """Keypoints of one view with a point, and what is known of the point in the other view."""
    found = []
    for x, y, number in model.pixels[first]:
        if number < 0:
            continue
        there = [(x2 - 0.5, y2 - 0.5) for x2, y2, other in model.pixels[second] if other == number]
        if there:
            found.append(((x - 0.5, y - 0.5), Status.VISIBLE, there[0]))
            continue
        across, down, far = model.turns[second].as_matrix() @ model.xyz[number] + model.shifts[second]
        place = (FOCAL[0] * across / far + 31.5, FOCAL[1] * down / far + 23.5)
        inside = -0.5 <= place[0] < WIDTH - 0.5 and -0.5 <= place[1] < HEIGHT - 0.5
        found.append(((x - 0.5, y - 0.5), Status.UNKNOWN if inside else Status.OUTSIDE, place))
    return found


def test_beside_lists_of_observations(tmp_path) -> None:
    model = Model(tmp_path / "cloud", views=5)
    capture = setsup.open(tmp_path / "cloud")
    statuses: dict[Status, int] = {}
    for first in range(5):
        for second in range(5):
            if first == second:
                continue
            pairs, wanted = from_tracks(capture, first, second), by_loop(model, first, second)
            np.testing.assert_allclose(pairs.points1, [one[0] for one in wanted], atol=1e-4)
            assert pairs.status.tolist() == [one[1] for one in wanted]
            np.testing.assert_allclose(pairs.points2, [one[2] for one in wanted], atol=1e-3)
            np.testing.assert_allclose(
                pairs.xyz, [model.xyz[number] for _, _, number in model.pixels[first] if number >= 0]
            )
            assert (pairs.instance == -1).all()
            for _, status, _ in wanted:
                statuses[status] = statuses.get(status, 0) + 1
    assert statuses[Status.VISIBLE] > 200
    assert statuses[Status.UNKNOWN] > 200
    assert not {Status.OCCLUDED, Status.NO_SURFACE} & set(statuses)


def test_selections_crops_and_two_models(tmp_path) -> None:
    model = Model(tmp_path / "both" / "a", views=4)
    Model(tmp_path / "both" / "b", views=3, seed=1)
    captures = setsup.open(tmp_path / "both")
    whole = from_tracks(captures, 3, 1)
    some = from_tracks(captures.select([1, 3]), 1, 0)
    assert np.array_equal(whole.points2, some.points2)
    with pytest.raises(SetsupError, match=r"rows 3 and 4 .* are of the models .*a/sparse/0/ and .*b/sparse/0/"):
        from_tracks(captures, 3, 4)
    small = setsup.open(tmp_path / "both" / "a", size=(48, 40))  # 12 pixels less on either side
    cropped = from_tracks(small, 3, 1)
    kept = [one for one in by_loop(model, 3, 1) if 11.5 <= one[0][0] < 51.5]
    np.testing.assert_allclose(cropped.points1, [(x - 12, y) for (x, y), *_ in kept], atol=1e-4)
    shown = [status == Status.VISIBLE and 11.5 <= place[0] < 51.5 for _, status, place in kept]
    assert cropped.visible.tolist() == shown
    assert 0 < sum(shown) < sum(status == Status.VISIBLE for _, status, _ in kept)
    with pytest.raises(SetsupError, match="has no tracks of feature points; pass a capture with a COLMAP model"):
        from_tracks(setsup.load("shapes3d-procedural"), 0, 1)


def known_pixels(model: Model, first: int, second: int) -> dict[int, int]:
    """The pixel of the second view for each pixel of the first at a point that both observe."""
    nearest: dict[int, tuple[float, int]] = {}
    for (x, y), status, (x2, y2) in by_loop(model, first, second):
        if status != Status.VISIBLE:
            continue
        flat, away = round(y) * WIDTH + round(x), (x - round(x)) ** 2 + (y - round(y)) ** 2
        if flat not in nearest or away < nearest[flat][0]:
            nearest[flat] = away, round(y2) * WIDTH + round(x2)
    return {flat: partner for flat, (_, partner) in nearest.items()}


def test_only_pixels_at_common_points_are_valid(tmp_path) -> None:
    """Others are neither positive nor negative, whatever the share."""
    model = Model(tmp_path / "cloud", views=4)
    capture = setsup.open(tmp_path / "cloud")
    rows = [[0, 1], [1, 0], [3, 2]]
    for fraction in (0.0, 0.3, 1.0):
        drawn = view_pairs(capture, rows, fold(5, np.arange(3, dtype=np.uint64)), fraction=fraction)
        for pair, (first, second) in enumerate(rows):
            known = known_pixels(model, first, second)
            assert set(np.flatnonzero(drawn.valid[pair]).tolist()) == set(known)
            positive = np.flatnonzero(drawn.positive[pair]).tolist()
            assert len(positive) == math.ceil(fraction * len(known) - 1e-9)
            assert set(positive) <= set(known)
            assert [drawn.partner[pair, flat] for flat in positive] == [known[flat] for flat in positive]
    assert len(known) > 10


@pytest.mark.long("statistics")
def test_each_common_point_is_positive_equally_often(tmp_path) -> None:
    model = Model(tmp_path / "cloud", views=3)
    capture = setsup.open(tmp_path / "cloud")
    known = sorted(known_pixels(model, 0, 1))
    drawn = view_pairs(capture, [[0, 1]] * 400, fold(1, np.arange(400, dtype=np.uint64)), fraction=0.25)
    counts = drawn.positive[:, known].sum(axis=0)
    assert chisquare(counts).pvalue > 1e-4
    negative = drawn.partner[drawn.valid & ~drawn.positive]
    found, _ = np.histogram(negative, bins=16, range=(0, HEIGHT * WIDTH))
    assert chisquare(found).pvalue > 1e-4


def test_a_share_of_the_keypoints(tmp_path) -> None:
    Model(tmp_path / "cloud", views=3)
    capture = setsup.open(tmp_path / "cloud")
    whole = tracked(capture, 0, 1, WHOLE, WHOLE, 1.0, 0)
    half = tracked(capture, 0, 1, WHOLE, WHOLE, 0.5, 7)
    assert len(half) == len(whole) // 2
    every = [tuple(point) for point in whole.points1.tolist()]
    places = [every.index(tuple(point)) for point in half.points1.tolist()]
    assert places == sorted(places)
    window = Window(20, 10, 30, 30)
    some = tracked(capture, 0, 1, window, WHOLE, 1.0, 0)
    inside = [20 <= x + 0.5 < 50 and 10 <= y + 0.5 < 40 for x, y in whole.points1.tolist()]
    np.testing.assert_allclose(some.points1 + np.array([20, 10]), whole.points1[inside])


def test_draws_by_overlap_have_their_common_points(tmp_path) -> None:
    """Pairs of a band of overlaps by tracks: the overlap is the share of the points that are visible."""
    Model(tmp_path / "cloud", views=8)
    capture = setsup.open(tmp_path / "cloud")
    table = overlap(capture)
    sampler = OverlapSampler(capture.factors, table, overlap=(0.2, 0.7), sets=6)
    for first, second in sampler[0].indices.tolist():
        pairs = from_tracks(capture, first, second)
        distinct = {tuple(xyz) for xyz in pairs.xyz.tolist()}
        common = {tuple(xyz) for xyz in pairs.xyz[pairs.visible].tolist()}
        assert table.overlap[table.find(first, second)] == np.float32(len(common) / len(distinct))
        assert 0.2 <= len(common) / len(distinct) <= 0.7


def test_matches_that_wrap_tracked(tmp_path) -> None:
    """Whatever calls `tracked`, other pixels are no negatives, and the share is that of known pixels."""
    Model(tmp_path / "cloud", views=3)
    capture = setsup.open(tmp_path / "cloud")
    keys = fold(5, np.arange(2, dtype=np.uint64))

    def few(dataset, row1, row2, window1, window2, fraction, key):
        pairs = tracked(dataset, row1, row2, window1, window2, fraction, key)
        return pairs.select(pairs.points1[:, 0] < 40)

    whole = view_pairs(capture, [[0, 1], [2, 1]], keys, fraction=0.3)
    for match in (partial(tracked), lambda *arguments: tracked(*arguments)):
        drawn = view_pairs(capture, [[0, 1], [2, 1]], keys, match=match, fraction=0.3)
        for name in ("partner", "positive", "valid"):
            np.testing.assert_array_equal(getattr(drawn, name), getattr(whole, name))
    some = view_pairs(capture, [[0, 1], [2, 1]], keys, match=few, fraction=0.3)
    inside = np.arange(HEIGHT * WIDTH) % WIDTH < 39
    assert np.array_equal(some.valid[:, inside], whole.valid[:, inside])
    assert not some.valid[:, 41:WIDTH].any()
    assert [np.count_nonzero(each) for each in some.positive] == [
        math.ceil(0.3 * np.count_nonzero(each) - 1e-9) for each in some.valid
    ]


@pytest.mark.parametrize("lens", ["PINHOLE", "OPENCV", "FULL_OPENCV"])
def test_projections_of_images_as_the_lens_shows_them(tmp_path, lens) -> None:
    """Points that the second image does not observe are where OpenCV projects them."""
    true.write_colmap(tmp_path, lens)
    capture = setsup.open(tmp_path, undistort=False)
    poses, checked = true.poses(), 0
    for first, second in ((0, 1), (3, 2), (5, 4)):
        pairs = from_tracks(capture, first, second)
        wanted = true.observed(poses[second], lens) - 0.5
        unknown = np.flatnonzero(pairs.status == Status.UNKNOWN)
        numbers = [int(np.abs(true.world(true.cloud()) - xyz).sum(axis=1).argmin()) for xyz in pairs.xyz[unknown]]
        assert numbers == [second]
        np.testing.assert_allclose(pairs.points2[unknown], wanted[numbers], atol=1e-3)
        checked += len(unknown)
    assert checked == 3


def test_points_are_read_once_per_model(tmp_path, monkeypatch) -> None:
    """Selections share what was read, and a pickled copy reads again."""
    Model(tmp_path / "both" / "a", views=3)
    Model(tmp_path / "both" / "b", views=3, seed=1)
    capture = setsup.open(tmp_path / "both")
    read = []
    whole = colmap_tracks.read_points
    monkeypatch.setattr(colmap_tracks, "read_points", lambda *given: (read.append(given[2]), whole(*given))[1])
    for row1, row2 in ((0, 1), (4, 3), (2, 0), (5, 4)):
        from_tracks(capture, row1, row2)
    from_tracks(capture.select([1, 2]), 0, 1)
    assert len(read) == 2
    again = from_tracks(pickle.loads(pickle.dumps(capture)), 0, 1)
    assert len(read) == 3
    assert np.array_equal(again.points2, from_tracks(capture, 0, 1).points2)
    with pytest.raises(ValueError, match="read-only"):
        capture.points(0).xyz[0] = 0
