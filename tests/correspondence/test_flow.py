"""Flow, scene flow and tracks beside brute force of their own."""

import weakref

import numpy as np
import pytest
from scipy.linalg import expm

from setsup.correspondence import (
    PixelPairSampler,
    RenderedFrames,
    RenderedPairs,
    Status,
    flow,
    overlap,
    pair_table,
    scene_flow,
    scene_tracks,
    spatial,
)
from setsup.correspondence.matching import Window, find_match, matched
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import open_rendered
from setsup.rendered.writing import render
from setsup.scenes import Camera, Placement, Scene, Velocity, moved
from setsup.scenes.meshes.primitives import box, plane
from setsup.scenes.recipes import FunctionRecipe, RoomFrames, Shapes3D
from tests.correspondence.moving import brute_flow, compare, moving_scene

FIELDS = ("exact_flow", "flow_status", "exact_flow_back", "flow_back_status")


def drifting(time):
    """A box that turns and drifts before a wall."""
    wall = Placement(plane((40, 40)), [[1, 0, 0], [0, 0, -1], [0, 1, 0]], (0, 6, 0))
    return moved(
        Scene((wall, Placement(box((1, 1, 1))))),
        {1: Velocity(linear=(0.2, 0, 0.1), angular=(0, 0, 0.3), translation=(0, 4, 0))},
        time,
    )


def recipe(frames=3):
    """Its frames, seen by a camera that moves, too."""

    def look(values, scene):
        eye = (0.1 * values["frame"], 0, 0)
        return Camera.look_at(eye, (0, 4, 0), height=24, width=32, focal_length=30)

    factor = Factor("frame", Kind.ORDINAL, tuple(range(frames)))
    return FunctionRecipe("drift", [factor], lambda values: drifting(values["frame"]), look, None, (24, 32), "1")


def check(seed, count):
    scene1, camera1, scene2, camera2 = moving_scene(seed)
    pixels = np.random.default_rng(seed).uniform(-0.5, [79.5, 59.5], (count, 2))
    pairs = spatial(scene1, camera1, camera2, pixels, scene2=scene2)
    error, wrong, band, wanted = compare(
        scene1, camera1, scene2, camera2, pixels, pairs.points2 - pairs.points1, pairs.status
    )
    assert not len(wrong)
    assert band.sum() <= count // 1000
    assert np.quantile(error, 0.999) < 1e-9
    assert error.max() < 1e-3
    return wanted


def test_partners_of_moved_things_are_those_of_brute_force():
    wanted = check(0, 2000)
    assert min(np.bincount(wanted.status, minlength=3)[:3]) > 30
    assert 200 < wanted.moved.sum() < 1800


@pytest.mark.long("exhaustive comparisons")
@pytest.mark.parametrize("seed", range(1, 16))
def test_partners_of_many_moved_things(seed):
    check(seed, 4000)


def test_flow_has_all_pixels_and_forgets_nothing():
    scene1, camera1, scene2, camera2 = moving_scene(3)
    field, status = flow(scene1, camera1, scene2, camera2)
    assert (field.shape, field.dtype, status.shape, status.dtype) == ((60, 80, 2), np.float32, (60, 80), np.uint8)
    wanted = brute_flow(scene1, camera1, scene2, camera2, camera1.pixels()[::37])
    assert (status.ravel()[::37] == wanted.status).mean() > 0.99
    assert np.nanmedian(np.abs(field.reshape(-1, 2)[::37] - wanted.flow)) < 1e-6
    still, same = flow(scene1, camera1, scene1, camera1)
    assert np.abs(still).max() < 1e-4
    assert (same == Status.VISIBLE).all()


def test_flow_of_nothing():
    camera = Camera.look_at((0, 0, 0), (0, 1, 0), height=4, width=5, focal_length=5)
    field, status = flow(Scene(), camera, Scene(), camera)
    assert np.isnan(field).all()
    assert (status == Status.NO_SURFACE).all()
    assert np.isnan(scene_flow(Scene(), camera, Scene())).all()


def test_things_must_be_the_same():
    camera = Camera.look_at((0, 0, 0), (0, 1, 0), height=4, width=5, focal_length=5)
    with pytest.raises(SetsupError, match="different placements"):
        flow(Scene((Placement(box((1, 1, 1))),)), camera, Scene(), camera)
    with pytest.raises(SetsupError, match="a camera for each scene"):
        scene_tracks([Scene()], [], [[0, 0]])
    with pytest.raises(SetsupError, match="frame must be"):
        scene_tracks([Scene()], [camera], [[0, 0]], frame=1)


def test_scene_flow_is_the_motion_of_points():
    """Carried by the matrices of the motion, and in the camera's axes; nothing where nothing moves."""
    camera = Camera.look_at((0.5, -1, 0.3), (0, 4, 0), height=24, width=32, focal_length=30, up=(0.1, 0, 1))
    one, two = drifting(0.5), drifting(1.5)
    field = scene_flow(one, camera, two)
    pairs = spatial(one, camera, camera)
    turned, before = expm(np.array([[0, -0.3, 0], [0.3, 0, 0], [0, 0, 0]])), np.array([0.1, 4, 0.05])
    wanted = np.where(
        (pairs.instance == 1)[:, None], (pairs.xyz - before) @ turned.T + before + (0.2, 0, 0.1) - pairs.xyz, 0.0
    )
    assert 30 < (pairs.instance == 1).sum() < 700
    assert np.abs(field.reshape(-1, 3) - wanted @ camera.rotation.T).max() < 1e-6
    # a pixel's point, moved, is where flow leads
    moved_points = pairs.xyz + field.reshape(-1, 3).astype(float) @ camera.rotation
    field = flow(one, camera, two, camera)[0].reshape(-1, 2)
    assert np.abs(camera.project(moved_points)[0] - pairs.points1 - field).max() < 1e-4


def test_tracks_are_flow_from_the_query_frame():
    scenes = [drifting(time) for time in range(5)]
    cameras = [recipe().look({"frame": time}, None) for time in range(5)]
    pixels = np.random.default_rng(0).uniform(0, [31, 23], (40, 2))
    points, status = scene_tracks(scenes, cameras, pixels, frame=2)
    assert np.array_equal(points[:, 2], pixels)
    assert (status[:, 2] == Status.VISIBLE).all()
    for time in range(5):
        wanted = brute_flow(scenes[2], cameras[2], scenes[time], cameras[time], pixels)
        assert np.abs(points[:, time] - pixels - wanted.flow).max() < 1e-9
        assert np.array_equal(status[:, time], wanted.status)


def test_frames_lead_to_their_neighbours():
    frames = RenderedFrames(recipe(), renderer="embree")
    found = frames.fetch(range(3), FIELDS)
    for time in range(3):
        cameras = {step: recipe().look({"frame": time + step}, None) for step in (-1, 0, 1)}
        for step, (name, states) in ((1, FIELDS[:2]), (-1, FIELDS[2:])):
            wanted = flow(drifting(time), cameras[0], drifting(time + step), cameras[step])
            assert np.array_equal(found[name][time], wanted[0], equal_nan=True)
            assert np.array_equal(found[states][time], wanted[1])
    asked = RenderedFrames(recipe(), renderer="embree", modalities=["scene_flow"]).fetch(1)["scene_flow"]
    assert np.array_equal(asked, scene_flow(drifting(1), frames.camera(1), drifting(2)))
    points, status = frames.tracks(1, [[16, 12], [3, 4.5]])
    cameras = [frames.camera(row) for row in range(3)]
    wanted = scene_tracks([drifting(time) for time in range(3)], cameras, [[16, 12], [3, 4.5]], 1)
    assert np.array_equal(points, wanted[0])
    assert np.array_equal(status, wanted[1])


def test_frames_need_a_factor():
    with pytest.raises(DataError, match="scene factor 'frame'"):
        RenderedFrames(Shapes3D(size=(8, 8)))


def video(levels, build):
    """A recipe of frames, whose scenes a function builds."""
    camera = Camera.look_at((0, 0, 0), (0, 4, 0), height=8, width=8, focal_length=8)
    factor = Factor("frame", Kind.ORDINAL, levels)
    return FunctionRecipe("video", [factor], build, lambda values, scene: camera, None, (8, 8), "1")


@pytest.mark.parametrize("levels", [("a", "b"), (0.0, 0.5), (False, True)])
def test_frames_are_whole_numbers(levels):
    with pytest.raises(DataError, match="whole numbers"):
        RenderedFrames(video(levels, lambda values: drifting(0)), renderer="embree")


def test_rows_whose_neighbours_differ_are_named():
    frames = RenderedFrames(
        video((0, 1), lambda values: drifting(1) if values["frame"] < 1 else Scene()), renderer="embree"
    )
    with pytest.raises(DataError, match="video, row 0: the two scenes have different placements"):
        frames.fetch([0], ["exact_flow"])
    with pytest.raises(DataError, match="video, row 1: the two scenes have different placements"):
        frames.tracks(1, [[4, 4]])


def test_recipes_of_your_own_pair_frames_of_a_video(tmp_path):
    factors = [Factor("take", Kind.ORDINAL, (0, 1)), Factor("frame", Kind.ORDINAL, (0, 1, 2))]
    own = FunctionRecipe(
        "takes",
        factors,
        lambda values: drifting(values["frame"] + 0.5 * values["take"]),
        lambda values, scene: Camera.look_at((0, 0, 0), (0, 4, 0), height=8, width=8, focal_length=8),
        size=(8, 8),
        version="1",
    )
    frames = RenderedFrames(own, renderer="embree")
    rows = PixelPairSampler(frames, pairs=20, seed=0)[0].indices
    takes, times = (frames.factors.codes(name)[rows] for name in ("take", "frame"))
    assert (takes[:, 0] == takes[:, 1]).all()
    assert (times[:, 0] != times[:, 1]).all()
    folder = render(frames, tmp_path / "takes")
    assert (folder.pair_factors, folder.moving) == (("take", "frame"), ("frame",))
    with pytest.raises(SetsupError, match="things move between rows 0 and 2"):
        matched(folder, 0, 2, *[Window(0, 0, 8, 8)] * 2, 1.0, 0)


def test_tracks_do_not_keep_all_scenes():
    built, alive = [], []

    def build(values):
        scene = drifting(0.1 * values["frame"])
        built.append(weakref.ref(scene))
        alive.append(sum(one() is not None for one in built))
        return scene

    points, _ = RenderedFrames(video(tuple(range(30)), build), renderer="embree").tracks(29, [[4, 4]])
    assert points.shape == (1, 30, 2)
    assert max(alive) < 15


def test_flow_on_disk_and_what_it_cannot_match(tmp_path):
    folder = render(RenderedFrames(recipe(), renderer="embree"), tmp_path / "frames")
    frames = RenderedFrames(recipe(), renderer="embree")
    for name in FIELDS:
        assert np.array_equal(folder.fetch(range(3))[name], frames.fetch(range(3))[name], equal_nan=True)
    assert folder.moving == ("frame",)
    assert folder.pair_factors == ("frame",)
    with pytest.raises(SetsupError, match=r"things move between rows 0 and 2 .* --matches"):
        matched(folder, 0, 2, *[Window(0, 0, 24, 32)] * 2, 1.0, 0)


def test_rows_of_two_times_are_matched():
    """On demand, in windows of the views."""
    frames = RenderedDataset(recipe(), renderer="embree")
    first, second = Window(3, 2, 20, 25), Window(1, 0, 24, 30)
    pairs = matched(frames, 0, 2, first, second, 1.0, 0)
    cameras = [window.camera(frames, row) for row, window in ((0, first), (2, second))]
    wanted = spatial(drifting(0), *cameras, scene2=drifting(2))
    assert np.array_equal(pairs.points2, wanted.points2)
    assert np.array_equal(pairs.status, wanted.status)
    still = spatial(drifting(0), *cameras)
    assert (np.abs(pairs.points2 - still.points2).max(axis=1) > 0.1).sum() > 10


def test_pairs_of_two_times(tmp_path):
    rooms = RoomFrames(rooms=1, frames=4, moving=1, count=(0, 1), size=(24, 32))
    dataset = RenderedDataset(rooms, renderer="embree")
    rows = PixelPairSampler(dataset, pairs=3, seed=1)[0].indices
    assert (rooms.factors[0].name, dataset.pair_factors) == ("room", ("room",))
    assert len(np.unique(dataset.factors.codes("frame", rows[:, 0]) - dataset.factors.codes("frame", rows[:, 1]))) > 1
    with pytest.raises(SetsupError, match="overlap is measured where nothing moves; add 'frame'"):
        overlap(dataset)
    table = pair_table(rooms, 3, seed=2)
    kept = render(RenderedPairs(rooms, table, renderer="embree"), tmp_path / "pairs")
    for row in range(6):
        values, other = ({name: table.values(name, one).item() for name in ("room", "frame")} for one in (row, row ^ 1))
        pairs = spatial(
            rooms.scene(values),
            rooms.camera(values, None),
            rooms.camera(other, None),
            scene2=rooms.scene(other),
        )
        found = kept.fetch(row)
        assert np.array_equal(found["status"].ravel(), pairs.status)
        assert np.array_equal(found["partners"].reshape(-1, 2), pairs.points2.astype(np.float32), equal_nan=True)
    assert find_match(open_rendered(tmp_path / "pairs")).__name__ == "stored"
