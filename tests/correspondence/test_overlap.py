"""Overlap of views beside loops over traced pairs and over depth images, and candidates beside what all pixels say."""

import numpy as np
import pytest

from setsup.correspondence import Status, overlap, recorded_camera, spatial
from setsup.correspondence.overlaps.candidates import Pose, choose_candidates, excluded_pairs
from setsup.correspondence.overlaps.scenes import sample_views
from setsup.datasets import Dataset, Modality
from setsup.datasets.dataset import fetch_request
from setsup.errors import SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.samplers.overlap.table import OverlapTable
from setsup.scenes import Camera, Mesh, Placement, Scene
from setsup.scenes.recipes import FunctionRecipe, Room
from tests.correspondence.brute_force import furnished, sphere

SIZE = (30, 40)


@pytest.fixture(scope="module")
def rooms():
    return RenderedDataset(Room(rooms=3, pairs=4, size=SIZE))


@pytest.fixture(scope="module")
def objects():
    return balls_and_bars(2, 8)


def balls_and_bars(bodies, views):
    """Bodies of balls and a bar, seen from random places, near and far; nothing is behind them."""
    rng = np.random.default_rng(3)
    eyes = rng.normal(size=(bodies, views, 3))
    eyes *= rng.uniform(1.5, 4, (bodies, views, 1)) / np.linalg.norm(eyes, axis=2, keepdims=True)
    away = rng.uniform(-0.4, 0.4, (bodies, 3, 3))
    bar = Mesh([[-1, 0, 0], [1, 0, 0.1], [1, 0.2, 0], [-1, 0.1, 0.1]], [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])

    def build(values):
        places = away[values["body"]]
        return Scene((*(Placement(sphere(0.4, segments=10), translation=at) for at in places), Placement(bar)))

    def look(values, scene):
        eye = eyes[values["body"], values["view"]]
        return Camera.look_at(eye, (0, 0, 0), height=SIZE[0], width=SIZE[1], field_of_view=0.9)

    factors = [Factor("body", Kind.ORDINAL, tuple(range(bodies))), Factor("view", Kind.ORDINAL, tuple(range(views)))]
    return RenderedDataset(FunctionRecipe("bodies", factors, build, look, ["body"], SIZE, "1"))


def by_loop(dataset, first, second):
    """Counts of statuses, and angle and scale of visible pixels, of all pixels of a pair."""
    camera1, camera2 = dataset.camera(first), dataset.camera(second)
    pairs = spatial(dataset.scene(first), camera1, camera2)
    seen = pairs.xyz[pairs.visible]
    ways = [camera.centre - seen for camera in (camera1, camera2)]
    cosine = (ways[0] * ways[1]).sum(axis=1) / np.prod([np.linalg.norm(way, axis=1) for way in ways], axis=0)
    coarse = [
        (seen @ camera.rotation.T + camera.translation)[:, 2] / np.sqrt(camera.k[0, 0] * camera.k[1, 1])
        for camera in (camera1, camera2)
    ]
    counts = np.bincount(pairs.status, minlength=4)
    middle = [np.median(one) if len(seen) else np.nan for one in (np.degrees(np.arccos(cosine)), coarse[1] / coarse[0])]
    return counts, *middle


@pytest.mark.parametrize(("name", "scene"), [("rooms", "room"), ("objects", "body")])
def test_beside_all_pixels(name, scene, request):
    check_all_pixels(request.getfixturevalue(name), scene, 30)


@pytest.mark.smoke
@pytest.mark.parametrize("scene", ["room", "body"])
def test_500_pairs_beside_all_pixels(scene):
    dataset = RenderedDataset(Room(rooms=6, pairs=8, size=SIZE)) if scene == "room" else balls_and_bars(3, 16)
    check_all_pixels(dataset, scene, 500)


def check_all_pixels(dataset, scene, count):
    """Random pairs: with all pixels what a loop counts, with 192 within four standard deviations of that."""
    some, whole = (overlap(dataset, scene=scene, pixels=pixels) for pixels in (192, SIZE[0] * SIZE[1]))
    assert np.array_equal(some.first, whole.first)
    assert np.array_equal(some.second, whole.second)
    chosen = np.random.default_rng(1).choice(len(some), count, replace=False)
    seen = 0
    for pair in chosen.tolist():
        counts, angle, scale = by_loop(dataset, int(some.first[pair]), int(some.second[pair]))
        surface = counts[:3].sum()
        assert whole.decided[pair] == surface == whole.sampled[whole.views == some.first[pair]]
        assert some.decided[pair] == min(surface, 192)
        share = counts[0] / surface
        assert whole.overlap[pair] == np.float32(share)
        size = some.decided[pair]
        assert abs(some.overlap[pair] - share) <= 4 * np.sqrt(share * (1 - share) / size) + 1 / size
        np.testing.assert_allclose([whole.angle[pair], whole.scale[pair]], [angle, scale], rtol=1e-5, atol=1e-4)
        seen += 0 < share < 1
    assert seen > count / 3
    assert (some.unknown == 0).all()


def test_sample_pixels_are_uniform_subsets(objects):
    """Over many seeds each pixel with a surface is drawn equally often, never twice, and others never."""
    camera = objects.camera(0)
    truth = spatial(objects.scene(0), camera, camera)
    surface = truth.status != Status.NO_SURFACE
    assert 100 < surface.sum() < 1000
    counts = np.zeros(surface.shape, int)
    for seed in range(300):
        (view,) = sample_views(source_of(objects).reader(0), np.array([0]), 64, seed)
        x, y = np.rint(camera.project(view.points[:, :3])[0]).astype(int).T
        flat = y * SIZE[1] + x
        assert len(set(flat.tolist())) == 64
        counts[flat] += 1
    assert (counts[~surface] == 0).all()
    expected = 300 * 64 / surface.sum()
    statistic = ((counts[surface] - expected) ** 2 / expected).sum() / (1 - 64 / surface.sum())
    assert abs(statistic - surface.sum()) < 5 * np.sqrt(2 * surface.sum())


def source_of(dataset):
    from setsup.correspondence.overlaps.views import Source

    return Source(dataset, "scenes", 0.01, 0.0)


# recorded depth


class Frames(Dataset):
    """Frames of the furnished room with traced depth: `holes` of them, poses from the camera to the world."""

    name = "frames"

    def __init__(self, count=5, size=(36, 48), holes=0.1, image=None, modify=None):
        rng = np.random.default_rng(5)
        scene = furnished()[0]
        self.cameras = [
            Camera.look_at(rng.uniform(-1.5, 1.5, 3) * (1, 1, 0.3) + (0, 0, 0.5), (0.2, 0.1, -0.3), height=size[0],
                           width=size[1], field_of_view=1.1)
            for _ in range(count)
        ]  # fmt: skip
        self.depth = np.zeros((count, *size), np.float32)
        for row, camera in enumerate(self.cameras):
            pairs = spatial(scene, camera, camera)
            self.depth[row] = camera.project(pairs.xyz)[1].reshape(size)
        self.depth[rng.random(self.depth.shape) < holes] = 0
        self.pose = np.tile(np.eye(4), (count, 1, 1))
        for row, camera in enumerate(self.cameras):
            self.pose[row, :3, :3], self.pose[row, :3, 3] = camera.rotation.T, camera.centre
        self.intrinsics = np.stack([camera.k for camera in self.cameras])
        if modify:
            modify(self)
        self.factors = FactorTable(
            [Factor("scene", Kind.NOMINAL, ("one",)), Factor("frame", Kind.ORDINAL, tuple(range(count)))],
        )
        self.modalities = {
            "depth": Modality(self.depth.shape[1:], str(self.depth.dtype), unit="m"),
            "pose": Modality((4, 4), "float64", unit="m"),
            "intrinsics": Modality((3, 3), "float64", unit="pixel"),
        }
        if image:
            self.modalities["image"] = Modality((*image, 3), "uint8", color="srgb")

    def fetch(self, indices, modalities=None):
        rows, names = fetch_request(self, indices, modalities)
        return {name: getattr(self, name)[rows] for name in names}


def from_images(frames, first, second, tolerance=0.01):
    """Counts of visible, decided and unknown pixels of a pair, pixel by pixel."""
    visible = decided = unknown = 0
    height, width = frames.depth.shape[1:]
    to_world, to_camera = frames.pose[first], np.linalg.inv(frames.pose[second])
    for y in range(height):
        for x in range(width):
            z = float(frames.depth[first, y, x])
            if not z > 0:
                continue
            point = to_world @ np.append(z * np.linalg.inv(frames.intrinsics[first]) @ (x, y, 1), 1)
            across, down, far = frames.intrinsics[second] @ (to_camera @ point)[:3]
            column, row = (round(across / far), round(down / far)) if far > 0 else (-1, -1)
            if not (0 <= column < width and 0 <= row < height):
                decided += 1
            elif not frames.depth[second, row, column] > 0:
                unknown += 1
            else:
                decided += 1
                visible += abs(float(frames.depth[second, row, column]) - far) <= tolerance * far
    return visible, decided, unknown


def test_recorded_depth_beside_a_loop_over_pixels():
    frames = Frames(count=4)
    table = overlap(frames, scene="scene", pixels=36 * 48)
    assert table.source == "depth"
    assert len(table) == 12
    some = 0
    for pair in range(len(table)):
        visible, decided, unknown = from_images(frames, table.first[pair], table.second[pair])
        assert table.decided[pair] == decided
        assert table.unknown[pair] == np.float32(unknown / (decided + unknown))
        assert table.overlap[pair] == np.float32(visible / decided)
        some += unknown > 0
    assert some > 6


def test_unknown_overlap_is_nan():
    def blind(frames):
        frames.depth[1, :, :] = 0  # nothing was measured
        frames.depth[2].reshape(-1)[15:] = 0  # 15 pixels are too few

    table = overlap(Frames(count=4, holes=0, modify=blind), scene="scene")
    found = {(int(a), int(b)): float(o) for a, b, o in zip(table.first, table.second, table.overlap, strict=True)}
    assert table.sampled.tolist() == [192, 0, 15, 192]
    assert all(np.isnan(found[pair]) for pair in ((1, 0), (1, 3), (2, 0), (2, 1), (2, 3)))
    assert found[0, 3] > 0.1
    assert np.isnan(table.unknown[table.find(1, 0)])
    # of a blind view all is unknown that falls within it, and the rest counts where it is at least half
    blind_pair, other = table.find([0, 3], [1, 1])
    assert table.unknown[blind_pair] > 0.5 > table.unknown[other] > 0.4
    assert np.isnan(table.overlap[blind_pair])
    assert table.overlap[other] == 0
    assert np.isnan(table.angle[[blind_pair, other]]).all()


def test_rendered_folders_and_scenes_agree_roughly():
    """Overlap by depth misses pixels at edges and on steep surfaces, as `from_depth` does, and few others."""
    rooms = RenderedDataset(Room(rooms=1, pairs=3, size=(60, 80)), renderer="embree")
    exact, depth = (overlap(rooms, scene="room", source=source, tolerance=0.03) for source in ("scenes", "depth"))
    assert (exact.source, depth.source) == ("scenes", "depth")
    assert exact.about["settings"]["scene"] == ["room"]
    assert np.abs(exact.overlap - depth.overlap).max() < 0.08
    much = exact.overlap > 0.3
    assert much.sum() > 5
    np.testing.assert_allclose(exact.angle[much], depth.angle[much], atol=2)
    np.testing.assert_allclose(exact.scale[much], depth.scale[much], atol=0.05)


# hostile input


def nan_pose(frames):
    frames.pose[2, 0, 0] = np.nan


def mirrored(frames):
    frames.pose[2, :3, 0] *= -1


def no_last_row(frames):
    frames.pose[2, 3] = (1, 0, 0, 1)


def singular(frames):
    frames.intrinsics[2, 0, 0] = 0


def larger(frames):
    frames.intrinsics[:, :2] *= 2  # of images of twice the size


@pytest.mark.parametrize(("modify", "words"), [
    (nan_pose, "row 2 of frames: a camera pose must be"), (mirrored, "row 2 of frames: the rotation of a camera pose"),
    (no_last_row, "row 2 of frames: a camera pose"), (singular, "row 2 of frames: k of a camera"),
    (larger, "row 0 of frames, with the principal point .* do not fit its depth of 36 × 48 pixels"),
])  # fmt: skip
def test_hostile_cameras(modify, words):
    frames = Frames(count=3, modify=modify)
    with pytest.raises(SetsupError, match=words) as raised:
        overlap(frames, scene="scene")
    assert "\n" not in str(raised.value)
    if modify is not larger:
        assert len(overlap(frames, scene="scene", rows=[0, 1])) == 2  # as the message says


def test_images_of_another_size_than_depth():
    with pytest.raises(SetsupError, match="its images have 72 × 96"):
        overlap(Frames(count=3, image=(72, 96)), scene="scene")


@pytest.mark.parametrize("bad", [
    {"pixels": 15}, {"pixels": 1.5}, {"candidates": 0}, {"seed": -1}, {"seed": 2**64}, {"tolerance": -1},
    {"absolute": np.nan}, {"processes": 0}, {"source": "rays"}, {"rows": [0, 99]}, {"rows": [0]}, {"rows": ["a"]},
    {"scene": "nothing"}, {"scene": []}, {"scene": ["body", "view"]}, {"rows": [True, False]},
])  # fmt: skip
def test_bad_requests(objects, bad):
    with pytest.raises(SetsupError):
        overlap(objects, **{"scene": "body", **bad})


def test_what_cannot_be_measured(objects, rooms):
    frames = Frames(count=2)
    with pytest.raises(SetsupError, match="scene= is required"):
        overlap(frames)
    with pytest.raises(SetsupError, match="has no scenes"):
        overlap(frames, scene="scene", source="scenes")
    frames.modalities.pop("pose")
    with pytest.raises(SetsupError, match="lacks the modalities pose"):
        overlap(frames, scene="scene")
    with pytest.raises(SetsupError, match="show different scenes"):
        overlap(rooms, scene="side")


# many views of a scene


@pytest.fixture
def many(monkeypatch):
    """Scenes of more than six views are large; pieces are small."""
    monkeypatch.setattr("setsup.correspondence.overlaps.scenes._WHOLE", 6)
    monkeypatch.setattr("setsup.correspondence.overlaps.scenes._VIEWS", 3)


def test_large_scenes_have_the_same_measures(rooms, monkeypatch, many):
    table = overlap(rooms, scene="room", candidates=5, rows=range(8, 24))
    assert (table.counts[:, 0] == 56).all()
    assert (table.counts[:, 0] == table.counts[:, 1:].sum(axis=1)).all()
    monkeypatch.undo()
    whole = overlap(rooms, scene="room", rows=range(8, 24))
    assert (whole.counts[:, [1, 3]] == 0).all()
    at = whole.find(table.first, table.second)
    assert (at >= 0).all()
    for name in ("overlap", "angle", "scale", "unknown", "decided"):
        assert np.array_equal(getattr(table, name), getattr(whole, name)[at], equal_nan=True)
    left = np.flatnonzero(table.find(whole.first, whole.second) < 0)
    excluded = table.is_excluded(whole.first[left], whole.second[left])
    assert excluded.sum() == table.counts[:, 1].sum()
    assert (whole.overlap[left[excluded]] == 0).all()
    assert (~excluded).sum() == table.counts[:, 3].sum()
    assert not table.is_excluded(table.first, table.second).any()
    assert not table.is_excluded([8, 8, 0], [16, 8, 1]).any()
    # of a measured pair the other direction is measured as well, or excluded
    assert ((table.find(table.second, table.first) >= 0) | table.is_excluded(table.second, table.first)).all()
    zero = (at := table.find(whole.first, whole.second)) >= 0
    zero[zero] = table.overlap[at[zero]] == 0
    assert np.array_equal(
        table.is_disjoint(whole.first, whole.second), zero | table.is_excluded(whole.first, whole.second)
    )
    assert not whole.is_excluded(8, 9)


def orbit(count, seed=0):
    """Cameras in a plane that look about; their surfaces lie from 1 to 3 m."""
    rng = np.random.default_rng(seed)
    rays = Camera.look_at((0, 0, 0), (0, 1, 0), height=20, width=20, field_of_view=0.8)
    found = []
    for _ in range(count):
        eye = rng.uniform(-4, 4, 3) * (1, 1, 0.1)
        camera = Camera(20, 20, rays.k, Camera.look_at(eye, eye + rng.normal(size=3) * (1, 1, 0.2), height=20, width=20,
                                                       field_of_view=0.8).rotation, (0, 0, 0))  # fmt: skip
        corners = camera.rays([[-0.5, -0.5], [19.5, -0.5], [19.5, 19.5], [-0.5, 19.5]])
        found.append((camera, eye, Pose(eye, camera.rotation[2], 2.0, corners, np.array([1.0, 3.0]), True, 192)))
    return found


@pytest.mark.parametrize("closed", [True, False])
def test_excluded_views_share_no_point(closed):
    """Points all over each frustum: none of an excluded pair's falls within the other; most apart are excluded."""
    views = orbit(40)
    poses = [pose._replace(closed=closed) for _, _, pose in views]
    excluded = excluded_pairs(poses)
    rng = np.random.default_rng(1)
    grid = rng.uniform(-0.5, 19.5, (400, 2))
    depth = rng.uniform(1, 3, 400)
    apart = np.zeros_like(excluded)
    for first, (camera, eye, _) in enumerate(views):
        points = eye + depth[:, None] * camera.rays(grid)
        for second, (other, place, _) in enumerate(views):
            pixels, far = other.project(points - place)
            inside = (far > 0) & (pixels >= -0.5).all(axis=1) & (pixels <= 19.5).all(axis=1)
            apart[first, second] = not (inside & (far <= 3 if closed else True)).any()
    assert not excluded.diagonal().any()
    assert not (excluded & ~apart).any()
    assert excluded.sum() > 0.8 * (apart & ~np.eye(40, dtype=bool)).sum()


def test_narrow_views_of_a_far_object_are_not_excluded():
    """A circle of cameras whose images show little more than its middle, from where they see one another's surface."""
    poses = []
    for turn in np.linspace(0, 2 * np.pi, 12, endpoint=False):
        axis = -np.array([np.cos(turn), np.sin(turn), 0])
        side, up = np.array([-axis[1], axis[0], 0]), np.array([0, 0, 1])
        rays = np.stack([axis + 0.1 * (x * side + y * up) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        poses.append(Pose(-axis, axis, 1.0, rays, np.array([0.95, 1.05]), False, 192))
    assert not excluded_pairs(poses).any()


def test_views_without_enough_pixels_exclude_nothing():
    poses = [pose._replace(sampled=15 if row < 5 else 16) for row, (_, _, pose) in enumerate(orbit(20))]
    excluded = excluded_pairs(poses)
    assert not excluded[:5].any()
    assert excluded[5:].any()


def nearest(poses, view, others, most):
    """Views that are nearest to one by pose."""

    def distance(second):
        angle = np.degrees(np.arccos(poses[second].axis @ poses[view].axis))
        return np.linalg.norm(poses[second].centre - poses[view].centre) / 2 + angle / 60

    return sorted(others, key=distance)[:most]


def test_candidates_are_the_nearest_and_a_uniform_subset():
    """One view chooses, as no other meets any: half the nearest, and each of the others equally often."""
    poses = [pose for _, _, pose in orbit(30)]
    meet = np.zeros((30, 30), bool)
    meet[7] = True
    others = [view for view in range(30) if view != 7]
    near = nearest(poses, 7, others, 4)
    rest = [view for view in others if view not in near]
    counts, together = np.zeros(30, int), np.zeros((30, 30), int)
    for key in range(2000):
        pairs = choose_candidates(poses, meet, np.arange(100, 130), key, 9)
        assert (pairs[:, 0] == 7).all()
        assert len(pairs) == 9
        counts[pairs[:, 1]] += 1
        together[np.ix_(pairs[:, 1], pairs[:, 1])] += 1
    assert (counts[near] == 2000).all()
    share = 5 / 25
    assert (np.abs(counts[rest] - 2000 * share) < 5 * np.sqrt(2000 * share * (1 - share))).all()
    two = together[np.ix_(rest, rest)][~np.eye(25, dtype=bool)]
    share = 5 * 4 / (25 * 24)
    assert (np.abs(two - 2000 * share) < 5 * np.sqrt(2000 * share)).all()


def test_pairs_that_either_view_chose_are_measured_in_both_directions():
    poses = [pose for _, _, pose in orbit(60)]
    meet = np.random.default_rng(2).random((60, 60)) < 0.95
    pairs = choose_candidates(poses, meet, np.arange(60), 5, 12)
    assert (np.lexsort((pairs[:, 0], pairs[:, 1])) == np.arange(len(pairs))).all()
    found = np.zeros((60, 60), bool)
    found[tuple(pairs.T)] = True
    assert not (found & ~meet).any()
    assert (found.T | ~meet.T)[found].all()  # the other direction is measured, or excluded
    for view in range(60):
        near = nearest(poses, view, [one for one in range(60) if meet[view, one] and one != view], 6)
        assert found[view, near].all()
        assert found[view].sum() >= 12
    assert len(pairs) < 60 * 12 * 1.5  # most choices are mutual, so that both directions add few


def test_few_views_that_meet_are_all_candidates():
    poses = [pose for _, _, pose in orbit(8)]
    meet = ~np.eye(8, dtype=bool)
    pairs = choose_candidates(poses, meet, np.arange(8), 0, 7)
    assert len(pairs) == 56


# any number of processes, rows, and files


@pytest.mark.long("worker processes")
def test_processes_do_not_matter(rooms, tmp_path, many):
    for processes in (1, 2, 3):
        table = overlap(rooms, scene="room", rows=range(20), candidates=5, processes=processes)
        table.save(tmp_path / f"{processes}.overlap")
    assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1


def test_rows_and_seeds(objects):
    whole = overlap(objects)
    some = overlap(objects, rows=[9, 2, 11, 3, 3])
    assert some.views.tolist() == [2, 3, 9, 11]
    assert some.first.tolist() == [2, 3, 9, 11]
    at = whole.find(some.first, some.second)
    assert np.array_equal(whole.overlap[at], some.overlap)  # what is drawn in a view depends on its row alone
    mask = np.zeros(16, bool)
    mask[[2, 3, 9, 11]] = True
    assert overlap(objects, rows=mask).digest == some.digest
    assert (overlap(objects, seed=1).overlap != whole.overlap).any()
    assert overlap(objects).digest == whole.digest


def test_views_without_a_surface_overlap_with_nothing_known():
    def look(values, scene):
        return Camera.look_at((0, 0, 0), ((0, 1, 0), (0, 1, 0.1), (0, -1, 0))[values["view"]], height=20, width=20,
                              field_of_view=0.8)  # fmt: skip

    wall = Scene((Placement(Mesh([[-9, 2, -9], [9, 2, -9], [0, 2, 9]], [[0, 1, 2]])),))
    factors = [Factor("view", Kind.ORDINAL, (0, 1, 2)), Factor("wall", Kind.NOMINAL, (0,))]
    walls = RenderedDataset(FunctionRecipe("walls", factors, lambda values: wall, look, ["wall"], (20, 20), "1"))
    table = overlap(walls)
    assert table.sampled.tolist() == [192, 192, 0]
    assert table.overlap[table.find(0, 1)] > 0.8
    assert table.overlap[table.find(0, 2)] == 0  # all of it is outside of view 2
    assert np.isnan(table.overlap[table.find([2, 2], [0, 1])]).all()


def test_a_recorded_camera_is_that_of_the_pose():
    frames = Frames(count=1)
    camera = recorded_camera(frames.pose[0], frames.intrinsics[0], 36, 48)
    np.testing.assert_allclose(camera.centre, frames.cameras[0].centre, atol=1e-12)


def test_a_table_of_another_dataset_is_refused(objects, rooms):
    table = overlap(objects)
    table.check_dataset(objects.factors)
    with pytest.raises(SetsupError, match="measured for 16 rows"):
        table.check_dataset(rooms.factors)
    assert isinstance(table, OverlapTable)
