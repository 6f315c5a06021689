"""MOVi: frames, maps and objects equal to the scenes that the files were drawn from, in setsup's conventions."""

import shutil

import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks.movi.variants import VARIANTS
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import movi as true
from tests.true_files.clevr_with_masks import framed

ORDER = (0, 1, 2, 3)  # videos by split and file
TURN = np.diag([1, -1, -1])  # from Blender's axes to those of OpenCV


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("movi")
    true.write(folder)
    return folder


@pytest.fixture(scope="module")
def dataset(release):
    return setsup.load("movi", release)


def test_rows_and_factors(dataset):
    scenes = [f"{'validation' if number == 3 else 'train'}/{100 + number}" for number in ORDER]
    assert dataset.factors.values("scene").tolist() == np.repeat(scenes, true.FRAMES).tolist()
    assert dataset.factors.values("frame").tolist() == list(range(true.FRAMES)) * len(ORDER)
    for name in ("objects", "sphere", "rubber"):
        assert dataset.factors.values(name).tolist() == np.repeat(true.COUNTS, true.FRAMES).tolist()
    assert dataset.factors.values("cube").sum() == 0
    assert dataset.factors.values("split")[-1] == "validation"
    assert len(dataset.objects) == sum(true.COUNTS)
    assert np.allclose(dataset.objects.values("mass"), [1, 1, 2, 1, 2, 1])


def test_images_and_instances(dataset):
    for row in (0, 4, 11):
        scene, frame = divmod(row, true.FRAMES)
        maps, found = true.drawn(ORDER[scene], frame), dataset.fetch(row)
        colors = maps["video"].reshape(128, 2, 128, 2, 3).mean(axis=(1, 3)).round()
        assert np.array_equal(found["image"], colors)
        assert np.array_equal(found["instances"], maps["segmentations"][::2, ::2].astype(int) - 1)
        count = true.COUNTS[scene]
        seen = [(maps["segmentations"] == each + 1).sum() for each in range(count)]
        assert found["visible_pixels"].tolist() == seen + [-1] * (2 - count)
        assert found["color"][:count].tolist() == [(scene + each) % 6 for each in range(count)]
        assert np.allclose(found["rgb"][:count], true.COLORS[found["color"][:count]])
        assert np.isnan(found["rgb"][count:]).all()


def test_depth_goes_back_to_the_points_of_the_world(dataset):
    # maps have every second pixel of the rendered ones, which lie a quarter of a pixel before the centres of the image
    y, x = np.mgrid[:128, :128] - 0.25
    for row in (1, 8):
        scene, frame = divmod(row, true.FRAMES)
        found = dataset.fetch(row, ["depth", "pose", "intrinsics"])
        rays = np.linalg.inv(found["intrinsics"]) @ np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
        points = (rays * found["depth"].ravel()).T @ found["pose"][:3, :3].T + found["pose"][:3, 3]
        expected = true.drawn(ORDER[scene], frame)["points"][::2, ::2].reshape(-1, 3)
        assert np.abs(points - expected).max() < 5e-3  # depth has 16 bits for up to 100 m


def test_flow_leads_to_the_next_frame_and_to_the_one_before(dataset):
    for row in (1, 4, 10):
        scene, frame = divmod(row, true.FRAMES)
        maps = true.drawn(ORDER[scene], frame)
        moves = np.concatenate([np.zeros((1, 3)), true.balls(ORDER[scene], 1)[0] - true.balls(ORDER[scene], 0)[0]])
        moved = moves[maps["segmentations"]]
        here = true.projected(maps["points"], frame, 128)
        found = dataset.fetch(row, ["exact_flow", "exact_flow_back"])
        for name, way in (("exact_flow", 1), ("exact_flow_back", -1)):
            there = true.projected(maps["points"] + way * moved, frame + way, 128)
            assert np.abs(found[name] - (there - here)[::2, ::2, ::-1]).max() < 1e-2, name


def test_normals_and_poses_are_those_of_the_camera(dataset):
    for row in (2, 5):
        scene, frame = divmod(row, true.FRAMES)
        maps, found = true.drawn(ORDER[scene], frame), dataset.fetch(row)
        position, rotation = true.pose(frame)
        seen = maps["normal"][::2, ::2] @ rotation @ TURN
        assert np.abs(found["normals"] - seen).max() < 1e-4
        assert np.abs(found["box_coordinates"] - maps["object_coordinates"][::2, ::2]).max() < 1e-4
        assert np.allclose(found["pose"][:3, :3], rotation @ TURN, atol=1e-6)
        assert np.allclose(found["pose"][:3, 3], position)
        centres = true.balls(ORDER[scene], frame)[0]
        poses = found["object_poses"]
        assert np.allclose(poses[: len(centres), :3, 3], (centres - position) @ rotation @ TURN, atol=1e-5)
        assert np.allclose(poses[: len(centres), :3, :3], (rotation @ TURN).T, atol=1e-6)
        assert np.isnan(poses[len(centres) :]).all()
        # the centre of an object is seen where its pixels are
        k = found["intrinsics"] @ poses[0, :3, 3]
        y, x = np.nonzero(found["instances"] == 0)
        assert np.abs(k[:2] / k[2] - [x.mean(), y.mean()]).max() < 3


def test_the_folder_of_the_files_and_a_part_of_them(release, tmp_path, caplog):
    place = release / "movi_a" / "128x128" / "1.0.0"
    assert len(setsup.load("movi", place)) == 12
    shutil.copy(place / "movi_a-train.tfrecord-00000-of-00002", tmp_path)
    found = setsup.load("movi", tmp_path)
    assert len(found) == 6
    assert "1 of the 2 listed record files are missing (movi_a-train.tfrecord-00001-of-00002)" in caplog.text
    with pytest.raises(DataError, match="expected up to 1,024 frames of 256 × 256 pixels"):
        setsup.load("movi", release, resolution=256)
    with pytest.raises(DataError, match="resolution of variant a must be 128 or 256"):
        setsup.load("movi", release, resolution=512)
    with pytest.raises(DataError, match="setsup fetch movi"):
        setsup.load("movi", release, variant="b")


def test_each_variant_and_size_has_its_folder(release, tmp_path):
    for folder in ("movi_a/128x128", "movi_a/256x256", "movi_b/128x128"):
        shutil.copytree(release / "movi_a" / "128x128", tmp_path / folder)
    found = setsup.load("movi", tmp_path)
    assert len(found) == 12
    assert "movi_a/128x128" in found._files.label(0)
    with pytest.raises(DataError, match="movi_a/256x256"):
        setsup.load("movi", tmp_path, resolution=256)


def test_scanned_objects(tmp_path):
    for split, video in (("train", 1), ("test", 2)):
        (tmp_path / f"movi_e-{split}.tfrecord-00000-of-00001").write_bytes(framed(true.record(video, "e")))
    found = setsup.load("movi", tmp_path, variant="e")
    assert found.factors.values("split").tolist() == ["train"] * 3 + ["test"] * 3
    assert found.factors.values("background").tolist() == ["room_1"] * 3 + ["room_0"] * 3
    assert found.factors.values("board_games").tolist() == [1] * 6  # category 2
    assert found.factors.values("tossed").tolist() == [1] * 6
    assert found.objects.values("asset").tolist() == ["Thing_1", "Thing_2", "Thing_2", "Thing_3"]
    arrays = found.fetch([0, 5], ["category", "motion", "scale"])
    assert arrays["category"].tolist() == [[1, 2], [2, 3]]
    assert arrays["motion"].tolist() == [[1, 0]] * 2
    assert arrays["scale"].tolist() == [[1, 2]] * 2
    assert not set(found.factors.names) & set(found.modalities)


def test_damaged_records(release, tmp_path):
    name = "movi_a-validation.tfrecord-00000-of-00001"
    whole = true.record(3)
    for content, words in (
        (whole[:-1], "could not be parsed"),
        (whole.replace(b"metadata/height", b"metadata/heighT"), "expected 1 of int64 in 'metadata/height'"),
        (whole.replace(b"forward_flow\x12", b"forward_floW\x12", 1), "forward_flow"),
        (whole.replace(b"instances/mass", b"instances/masS"), "expected 1 of float in 'instances/mass'"),
    ):
        (tmp_path / name).write_bytes(framed(content))
        with pytest.raises(DataError, match=words) as found:
            setsup.load("movi", tmp_path)
        assert "\n" not in str(found.value)


def test_a_damaged_map_is_named(release, tmp_path):
    whole = bytearray(true.record(3))
    at = whole.index(b"IDAT", whole.index(b"depth\x12"))
    whole[at + 20] ^= 255
    (tmp_path / "movi_a-validation.tfrecord-00000-of-00001").write_bytes(framed(bytes(whole)))
    found = setsup.load("movi", tmp_path)
    with pytest.raises(DataError, match="'depth' of frame 0"):
        found.fetch(0, ["depth"])


@pytest.mark.long("fuzzing")
def test_any_bytes_are_refused_or_read(tmp_path):
    whole = true.record(3)
    file = tmp_path / "movi_a-validation.tfrecord-00000-of-00001"

    def read(content):
        file.write_bytes(framed(content))
        found = setsup.load("movi", tmp_path)
        found.fetch(range(len(found)))

    survives(whole, read, 60)


@pytest.mark.parametrize("letter", VARIANTS)
def test_names_of_levels_are_those_of_the_published_code(letter):
    levels = VARIANTS[letter].levels
    lengths = {"a": (3, 2, 8, 2), "b": (11, 2), "c": (17,)}.get(letter, (17, 2))
    assert tuple(len(level.names) for level in levels.values()) == lengths
