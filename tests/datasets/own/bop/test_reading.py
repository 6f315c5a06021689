"""Datasets in the BOP format, written here: known poses, depth and masks come back."""

import json
import pickle
import zipfile

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import setsup
from setsup.correspondence import overlap
from setsup.datasets import BopFrames, open_bop
from setsup.opening import find_kind
from tests import bop_files as true
from tests.true_files.rings import project

ROWS = [(scene, frame) for scene in (1, 2) for frame in range(6)]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bop") / "boxes"
    folder.mkdir()
    return true.write(folder)


def check(found, posed=True):
    """Everything that is known of each image of both scenes."""
    assert isinstance(found, BopFrames)
    whole = found.fetch(range(len(found)))
    assert len(found) == len(ROWS)
    assert found.factors.values("frame").tolist() == [*true.NUMBERS] * 2
    assert np.allclose(whole["intrinsics"], true.K)
    for row, (scene, frame) in enumerate(ROWS):
        pose, things = true.camera_poses()[frame], true.SCENES[scene]
        seen = true.view(things, pose)
        assert np.allclose(whole["pose"][row], pose, atol=1e-6) if posed else np.isnan(whole["pose"][row]).all()
        assert np.abs(whole["depth"][row] - seen.depth).max() <= 0.51 * true.STEP / 1000
        assert ((whole["depth"][row] > 0) == (seen.depth > 0)).all()
        ids = [thing.number for thing in things]
        assert whole["object_ids"][row].tolist() == [*ids, -1][:3]
        placed = np.array([true.object_pose(thing, pose) for thing in things])
        assert np.allclose(whole["object_poses"][row, : len(things)], placed, atol=1e-6)
        assert np.isnan(whole["object_poses"][row, len(things) :]).all()
        shares = [visible.sum() / own.sum() for own, visible in zip(seen.whole, seen.visible, strict=True)]
        assert np.allclose(whole["visib_fract"][row], [*shares, np.nan][:3], equal_nan=True)
        instances = np.full(true.SIZE, -1)
        for instance, visible in enumerate(seen.visible):
            instances[visible] = instance
        assert np.array_equal(whole["instances"][row], instances)
    return whole


def test_a_dataset(release):
    assert find_kind(release) == "bop"
    found = setsup.open(release)
    whole = check(found)
    assert found.name == "boxes"
    assert whole["image"].shape == (12, *true.SIZE, 3)
    assert (whole["depth"].dtype, found.modalities["depth"].unit) == (np.float32, "m")
    table = found.factors
    assert table["scene"].levels == ("test/000001", "test/000002")
    assert table.values("scene").tolist() == ["test/000001"] * 6 + ["test/000002"] * 6
    assert table.values("split").tolist() == ["test"] * 12
    assert table.values("objects").tolist() == [3] * 6 + [2] * 6
    assert table.values("obj_1").tolist() == [1] * 12
    assert table.values("obj_5").tolist() == [2] * 6 + [1] * 6
    turned = table.values("azimuth") - np.tile(true.AZIMUTHS, 2)
    assert np.allclose((turned + 180) % 360, 180, atol=1e-2)
    assert np.allclose(table.values("elevation"), 35, atol=1e-2)
    assert np.allclose(table.values("distance"), 0.7, atol=1e-4)
    assert "split_type" not in table


def test_targets_are_a_factor(release):
    part = setsup.open(release, where="bop19 == 'test'")
    assert part.factors.values("scene").tolist() == ["test/000002"] * 2
    assert part.factors.values("frame").tolist() == [3, 250]


@pytest.mark.parametrize(
    ("within", "scenes"), [("test", ("000001", "000002")), ("test/000002", ("000002",)), ("..", None)]
)
def test_parts_of_a_dataset(release, within, scenes):
    found = setsup.open(release / within if scenes else release.parent, kind="bop")
    assert found.factors["scene"].levels == (scenes or ("test/000001", "test/000002"))
    assert set(found.factors.values("split").tolist()) == {"test"}
    assert find_kind(release / within) == "bop" or not scenes
    if scenes:
        with pytest.raises(setsup.SetsupError, match=r"has no models.*; open the folder that contains both the models"):
            found.models()
    else:
        assert list(found.models()) == [1, 5]


def test_a_deflated_zip(release, tmp_path):
    with zipfile.ZipFile(tmp_path / "boxes.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for path in release.rglob("*.*"):
            file.write(path, path.relative_to(release.parent))
    found = open_bop(tmp_path / "boxes.zip")
    check(found)
    assert found.factors["scene"].levels == ("test/000001", "test/000002")
    assert found.object_mesh(5).vertices.shape == (8, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "gray", "ending": "tif", "deep": "tif"},
        {"kind": "gray", "ending": "png", "deep": "float"},
        {"ending": "jpg"},
        {"posed": False},
        {"sensor": "photoneo"},
        {"sensor": "cam1", "kind": "gray"},
    ],
)
def test_variants(tmp_path, options):
    true.write(tmp_path, "train_pbr", **options)
    assert find_kind(tmp_path) == "bop"
    found = setsup.open(tmp_path)
    whole = check(found, options.get("posed", True))
    assert whole["image"].shape[-1] == (1 if options.get("kind") == "gray" else 3)
    assert found.factors.values("split").tolist() == ["train"] * 12
    assert found.factors.values("split_type").tolist() == ["pbr"] * 12
    assert "bop19" not in found.factors
    assert np.isnan(found.factors.values("azimuth")).all() == (not options.get("posed", True))
    if "sensor" in options:
        assert found.factors.values("sensor").tolist() == [options["sensor"]] * 12


def test_several_splits_and_sensors(tmp_path):
    true.write(tmp_path, "test_primesense", scenes=(1,))
    true.write(tmp_path, "train", scenes=(2,), kind="gray", deep="")
    true.put(tmp_path / "test_primesense" / "000001", true.scene_files(1, kind="gray", sensor="cam2"))
    found = setsup.open(tmp_path)
    assert found.factors["scene"].levels == ("test_primesense/000001", "train/000002")
    assert found.factors["split"].levels == ("train", "test")
    assert found.factors.values("split_type").tolist() == ["primesense"] * 12 + [None] * 6
    assert found.factors.values("sensor").tolist() == [None] * 6 + ["cam2"] * 6 + [None] * 6
    assert found.fetch(range(18), ["image"])["image"].shape == (18, *true.SIZE, 3)  # grey ones have three channels
    assert len(setsup.open(tmp_path, split="train")) == 6
    with pytest.raises(setsup.SetsupError, match=r"row 12 \(train/000002/gray/000000.png\) has no depth; select other"):
        found.fetch([12], ["depth"])


def test_images_without_annotations(tmp_path):
    """The annotations of some test images are not public."""
    true.write(tmp_path, scenes=(1,), truth=False, masks=False)
    found = setsup.open(tmp_path)
    assert set(found.modalities) == {"image", "pose", "intrinsics", "depth"}
    assert "objects" not in found.factors
    with pytest.raises(setsup.SetsupError, match=r"has no objects with known poses, in scene_gt.json; open its images"):
        setsup.open(tmp_path, by="object")
    true.put(tmp_path / "train" / "000002", true.scene_files(2))
    found = setsup.open(tmp_path)
    assert found.factors.values("objects").tolist() == [None] * 6 + [2] * 6
    whole = found.fetch([0, 6], ["object_ids", "visib_fract"])
    assert whole["object_ids"].tolist() == [[-1, -1], [1, 5]]
    assert np.isnan(whole["visib_fract"][0]).all()
    with pytest.raises(
        setsup.SetsupError, match=r"row 0 .* has no known objects, so it has no instances; select other"
    ):
        found.fetch([0], ["instances"])


def test_by_object(release):
    """A row for each object: its pose, and from where the camera sees its model."""
    found = setsup.open(release, by="object")
    assert len(found) == 6 * 3 + 6 * 2
    whole = found.fetch(range(len(found)))
    table = found.factors
    row = 0
    for scene, frame in ROWS:
        things, pose = true.SCENES[scene], true.camera_poses()[frame]
        seen = true.view(things, pose)
        for instance, thing in enumerate(things):
            placed = true.object_pose(thing, pose)
            assert np.allclose(whole["object_pose"][row], placed, atol=1e-6)
            assert np.allclose(whole["pose"][row], pose, atol=1e-6)
            assert np.array_equal(whole["amodal_mask"][row] == 255, seen.whole[instance])
            assert np.array_equal(whole["visible_mask"][row] == 255, seen.visible[instance])
            share = seen.visible[instance].sum() / seen.whole[instance].sum()
            away = np.linalg.inv(placed)[:3, 3]
            told = {
                "scene": f"test/{scene:06d}",
                "frame": true.NUMBERS[frame],
                "instance": instance,
                "object": thing.number,
            }
            assert {name: table.values(name, row) for name in told} == told
            assert np.isclose(table.values("visib_fract", row), share)
            assert np.isclose(table.values("distance", row), np.linalg.norm(away))
            azimuth, elevation = (float(table.values(name, row)) for name in ("azimuth", "elevation"))
            aimed = Rotation.from_euler("ZY", [azimuth, -elevation], degrees=True).apply([1, 0, 0])
            assert np.allclose(aimed, away / np.linalg.norm(away), atol=1e-6)
            row += 1
    assert 0 <= table.values("azimuth").min() <= table.values("azimuth").max() < 360


def test_sets_of_one_object(release):
    """Sets in which the object is fixed and the scene varies, as a loader fetches them."""
    found = setsup.open(release, by="object", where="visib_fract > 0.3", size=(32, 32))
    sets = setsup.SetSampler(found.factors, inactive=["object"], size=4, sets=2, seed=3)
    batch = next(iter(setsup.loader(found, sets, modalities=["image", "amodal_mask", "object_pose"], to="numpy")))
    assert batch["image"].shape[:2] == (2, 4)
    assert batch["amodal_mask"].shape == (2, 4, 32, 32)
    numbers = found.factors.values("object", sets[0].indices)
    assert (numbers == numbers[:, :1]).all()


@pytest.mark.parametrize("size", [(24, 24), (96, 100)])
def test_another_size(release, size):
    """Centres of objects are on their masks, by the cameras of the resized images."""
    found = setsup.open(release, size=size, where="scene == 'test/000001'")
    whole = found.fetch(range(6))
    assert whole["instances"].shape == whole["depth"].shape == (6, *size)
    hits = 0
    for row in range(6):
        for instance, thing in enumerate(true.SCENES[1]):
            top = np.array([[0, 0, true.HALVES[thing.number][2], 1]]) @ whole["object_poses"][row, instance].T
            x, y = np.rint(project(top[:, :3], np.eye(4), whole["intrinsics"][row].astype(float)))[0].astype(int)
            inside = 0 <= y < size[0] and 0 <= x < size[1]
            hits += bool(inside and whole["instances"][row, y, x] == instance)
            assert not inside or abs(whole["depth"][row, y, x] - top[0, 2]) < 0.02 or hits
    assert hits > 8


def test_models(release, tmp_path):
    found = setsup.open(release)
    models = found.models()
    assert list(models) == [1, 5]
    for number, half in true.HALVES.items():
        assert np.isclose(models[number].diameter, 2 * np.linalg.norm(half))
        assert np.allclose(models[number].bounds, [-half, half])
        mesh = found.object_mesh(number, "models_eval")
        assert np.allclose(mesh.bounds, [-half, half])
    turned = models[1].symmetries()
    corners = found.object_mesh(1).vertices
    assert len(turned) == 2
    assert {tuple(np.round(corner, 9)) for corner in corners} == {
        tuple(np.round(turned[1][:3, :3] @ corner + turned[1][:3, 3], 9)) for corner in corners
    }
    about = models[5].symmetries(8)
    on_axis = np.array([0.01, -0.02, 0.7])
    for step, matrix in enumerate(about):
        assert np.allclose(matrix[:3, :3] @ on_axis + matrix[:3, 3], on_axis)
        assert np.allclose(matrix[:3, :3], Rotation.from_rotvec([0, 0, step * np.pi / 4]).as_matrix())
    assert len(models[5].symmetries()) == 315
    with pytest.raises(setsup.SetsupError, match=r"has no models in folder='models_evil'; did you mean .*models_eval"):
        found.models("models_evil")
    with pytest.raises(setsup.SetsupError, match=r"obj_000002.ply not found in .*; did you mean .*obj_000001.ply"):
        found.object_mesh(2)


def test_discrete_and_continuous_symmetries_are_composed(tmp_path):
    """A rotation about an axis follows each discrete symmetry, as in BOP's toolkit."""
    infos = json.loads(true.model_files()["models_info.json"])
    infos["1"]["symmetries_discrete"][0][3] = 5.0  # a shift of 5 mm
    infos["1"]["symmetries_continuous"] = [
        {"axis": [0, 0, 1], "offset": [0, 0, 0]},
        {"axis": [1, 0, 0], "offset": [0, 30, 0]},
    ]
    true.write(tmp_path, scenes=(1,))
    true.put(tmp_path / "models", {"models_info.json": json.dumps(infos).encode()})
    found = setsup.open(tmp_path).models()[1].symmetries(3)
    expected = []
    for first in (np.eye(3), np.diag([-1.0, -1, 1])):
        shift = np.zeros(3) if first[0, 0] == 1 else np.array([0.005, 0, 0])
        for axis, offset in (([0, 0, 1], [0, 0, 0]), ([1, 0, 0], [0, 0.03, 0])):
            for step in range(3):
                turn = Rotation.from_rotvec(np.array(axis) * 2 * np.pi * step / 3).as_matrix()
                matrix = np.eye(4)
                matrix[:3, :3] = turn @ first
                matrix[:3, 3] = turn @ (shift - offset) + offset
                expected.append(matrix)
    assert np.allclose(found, expected)


def test_pickled_and_selected(release):
    found = setsup.open(release)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.fetch([7])["instances"], found.fetch([7])["instances"])
    part = found.where("obj_5 == 1")
    assert np.array_equal(part.fetch([2])["object_ids"], found.fetch([8])["object_ids"])
    assert part.paths([2]) == ["test/000002/rgb/000004.png"]
    assert list(part.models()) == [1, 5]


def test_long_lists_are_read_once(tmp_path, monkeypatch):
    """Lists from the cache are the same, and those of changed files are read again."""
    monkeypatch.setattr("setsup.datasets.own.bop.annotations._CACHED_FROM", 0)
    true.write(tmp_path)
    check(setsup.open(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr("setsup.datasets.own.bop.annotations._read_scene", None)
        check(setsup.open(tmp_path))
    file = tmp_path / "test" / "000001" / "scene_camera.json"
    listed = json.loads(file.read_bytes())
    file.write_text(json.dumps({**listed, "0": true.camera(None)}))
    assert np.isnan(setsup.open(tmp_path).fetch(0)["pose"]).all()


def test_overlap_of_views(release):
    """Recorded depth of one scene: shares as an own comparison of all pixels finds them."""
    found = setsup.open(release, where="scene == 'test/000001'")
    pixels = true.SIZE[0] * true.SIZE[1]
    table = overlap(found, pixels=pixels, tolerance=0.02)
    assert len(table) == 30
    views = [true.view(true.SCENES[1], pose) for pose in true.camera_poses()]
    for a, b, share in zip(table.first.tolist(), table.second.tolist(), table.overlap.tolist(), strict=True):
        assert share == pytest.approx(brute_force(views[a].depth, views[b].depth, a, b), abs=0.02)
    assert table.overlap.max() > 0.3


def test_overlap_needs_poses(tmp_path):
    true.write(tmp_path, scenes=(1,), posed=False)
    with pytest.raises(
        setsup.SetsupError, match=r"row 0 of .*: a camera pose must be .*; leave the row out with rows="
    ):
        overlap(setsup.open(tmp_path))
    with pytest.raises(setsup.SetsupError, match=r"pass scene=|scene="):
        overlap(setsup.open(tmp_path, by="object"))


def brute_force(depth, other, a, b):
    """Share of the known pixels of view a whose points view b shows, of those that are decided."""
    poses = true.camera_poses()
    y, x = np.nonzero(depth)
    rays = np.linalg.inv(true.K) @ np.stack([x, y, np.ones(len(x))])
    points = poses[a] @ np.concatenate([rays * depth[y, x], np.ones((1, len(x)))])
    at = (np.linalg.inv(poses[b]) @ points)[:3]
    column, line = np.rint((true.K @ at)[:2] / at[2]).astype(int)
    inside = (at[2] > 0) & (line >= 0) & (line < true.SIZE[0]) & (column >= 0) & (column < true.SIZE[1])
    measured = np.full(len(x), np.nan)
    measured[inside] = other[line[inside], column[inside]]
    visible = np.abs(measured - at[2]) <= 0.02 * at[2]
    return visible.sum() / (measured != 0).sum()
