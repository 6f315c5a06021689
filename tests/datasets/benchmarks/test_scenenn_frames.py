import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks.scenenn import cameras as scenenn_cameras
from setsup.datasets.benchmarks.scenenn import frames as scenenn_frames
from setsup.errors import DataError, RowError
from tests.true_files import scenenn as rooms
from tests.true_files import scenenn_frames as true

SCENES, FRAMES = 3, 8


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenenn")
    true.write(folder, scenes=SCENES)
    return folder


@pytest.fixture(scope="module")
def frames(release):
    return scenenn_frames.open(release)


def picture(release, row, kind):
    scene, frame = rooms.SCENES[row // FRAMES], row % FRAMES + 1
    return np.array(Image.open(release / scene / kind / f"{kind}{frame:05d}.png"))


@pytest.mark.long("large or genuine files")
def test_factors(frames):
    table = frames.factors
    assert table.names == ("scene", "frame", "time", "tracked", "sensor", "online3d")
    assert table.values("scene").tolist() == [scene for scene in rooms.SCENES[:SCENES] for _ in range(FRAMES)]
    assert table.values("frame").tolist() == [*range(1, FRAMES + 1)] * SCENES
    assert np.allclose(table.values("time"), np.tile(np.arange(FRAMES) * 0.033369, SCENES))
    assert np.flatnonzero(~table.values("tracked").astype(bool)).tolist() == [4, 15]
    assert set(table.values("sensor").tolist()) == {"asus"}
    assert (table["frame"].within, table["frame"].role) == ("scene", "key")


@pytest.mark.long("large or genuine files")
def test_pictures_as_pillow_reads_them(release, frames):
    found = frames.fetch(range(24), ["image", "depth", "instances"])
    assert {name: (array.shape, array.dtype.name) for name, array in found.items()} == {
        "image": ((24, 480, 640, 3), "uint8"),
        "depth": ((24, 480, 640), "float32"),
        "instances": ((24, 480, 640), "int32"),
    }
    for row in (0, 9, 15, 23):
        assert np.array_equal(found["image"][row], picture(release, row, "image"))
        assert np.array_equal(found["depth"][row], picture(release, row, "depth") / np.float32(1000))
        if row < 16:
            channels = picture(release, row, "mask").astype(np.int64)
            # red, green, blue, alpha; the authors' mask_from_label reads them with OpenCV, blue first
            assert np.array_equal(found["instances"][row], channels @ [1 << 8, 1 << 16, 1 << 24, 1])
    assert (found["instances"][16:] == -1).all(), "the last scene has no masks"
    assert set(np.unique(found["instances"][:16]).tolist()) <= {0, 1, 2, 3, *rooms.TOYS}
    assert rooms.TOYS[3] in found["instances"][:16]


def test_poses_put_depth_onto_the_boxes(frames):
    """Depth, pose and lens of a frame tell where its pixels are: on the faces of what the scene holds."""
    for row in (0, 3, 18):
        found = frames.fetch(row)
        lens, pose = found["intrinsics"].astype(float), found["pose"].astype(float)
        expected = true.pose(row // FRAMES, row % FRAMES + 1)
        assert np.allclose(pose, expected, atol=1e-6)
        # the middle pixel of each piece, where the picture was drawn
        v, u = np.mgrid[2 : 480 : true.STEP, 2 : 640 : true.STEP]
        depth = found["depth"][v, u].astype(float)
        points = np.stack([u, v, np.ones_like(u)], -1) @ np.linalg.inv(lens).T * depth[..., None]
        world = (points @ pose[:3, :3].T + pose[:3, 3])[depth > 0]
        away = np.full(len(world), np.inf)
        for thing in rooms.things(row // FRAMES):
            inside = np.abs((world - thing.centre) @ thing.axes().T) - thing.half
            outside = np.linalg.norm(np.maximum(inside, 0), axis=1)
            away = np.minimum(away, np.where(outside > 0, outside, -inside.max(axis=1)))
        assert (depth > 0).mean() > 0.5
        assert away.max() < 2e-3, "within the rounding of depth to millimetres"


def test_poses_that_are_not_known(frames):
    poses = frames.fetch(range(24), ["pose"])["pose"]
    assert np.flatnonzero(np.isnan(poses).any(axis=(1, 2))).tolist() == [4, 15]
    assert np.isnan(poses[[4, 15]]).all()


def test_splits(release):
    assert len(setsup.load("scenenn-frames", release, split="tracked")) == 22
    part = setsup.load("scenenn-frames", release, split="online3d-val")
    assert set(part.factors.values("scene").tolist()) == {"005", "011", "015"}


def test_fetching(frames):
    whole = frames.fetch(range(0, 24, 5))
    for rows in ([[20, 0], [5, 5]], [], [[]], 5, [10, 10, 15]):
        found = frames.fetch(rows)
        for name, array in whole.items():
            assert np.array_equal(found[name], array[np.asarray(rows, int) // 5], equal_nan=array.dtype.kind == "f")
    with pytest.raises(RowError, match="24 rows"):
        frames.fetch([24])
    assert frames.fetch([1], ["pose"]).keys() == {"pose"}


@pytest.mark.parametrize("kind", ["zip", "tar", "wrapped", "scenenn"])
def test_where_releases_lie(release, frames, tmp_path, kind):
    if kind == "zip":
        root = tmp_path / "frames.zip"
        with zipfile.ZipFile(root, "w") as file:
            for path in sorted(release.rglob("*.*")):
                file.write(path, path.relative_to(release))
    elif kind == "tar":
        root = tmp_path / "frames.tar"
        with tarfile.open(root, "w") as file:
            file.add(release, "scenenn")
    else:
        root = tmp_path
        shutil.copytree(release, tmp_path / ("scenenn" if kind == "scenenn" else "some folder"))
    found = scenenn_frames.open(root)
    assert found.factors.fingerprint == frames.factors.fingerprint
    rows = [23, 0, 9]
    expected, here = frames.fetch(rows), found.fetch(rows)
    assert all(np.array_equal(here[name], expected[name]) for name in expected)


def test_the_folder_of_scenenn_is_among_the_usual_places(release, tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path))
    shutil.copytree(release, tmp_path / "scenenn")
    assert len(scenenn_frames.open()) == 24


def written(folder, frames=2, scenes=2):
    true.write(folder, scenes=scenes, frames=frames)
    return folder


@pytest.mark.long("large or genuine files")
def test_frames_without_a_partner(tmp_path):
    written(tmp_path, frames=3)
    (tmp_path / "005" / "depth" / "depth00002.png").unlink()
    (tmp_path / "011" / "image" / "image00001.png").unlink()
    frames = scenenn_frames.open(tmp_path)
    pairs = zip(frames.factors.values("scene").tolist(), frames.factors.values("frame").tolist(), strict=True)
    assert list(pairs) == [("005", 1), ("005", 3), ("011", 2), ("011", 3)]
    expected = np.array(Image.open(tmp_path / "011" / "depth" / "depth00003.png")) / np.float32(1000)
    assert np.array_equal(frames.fetch(3)["depth"], expected)
    assert np.allclose(frames.fetch(3)["pose"], true.pose(1, 3), atol=1e-6)
    shutil.rmtree(tmp_path / "005" / "depth")
    shutil.rmtree(tmp_path / "011" / "depth")
    (tmp_path / "011" / "depth").mkdir()
    (tmp_path / "005" / "depth").mkdir()
    shutil.copy(tmp_path / "005" / "image" / "image00001.png", tmp_path / "005" / "depth" / "depth00009.png")
    with pytest.raises(DataError, match="5 color and 1 depth images, but no frame with both"):
        scenenn_frames.open(tmp_path)


def test_without_anything_beside_the_pictures(tmp_path):
    written(tmp_path)
    for path in [
        *tmp_path.rglob("*.log"),
        *tmp_path.rglob("*.txt"),
        *tmp_path.rglob("*.ini"),
        *tmp_path.rglob("mask*.png"),
    ]:
        path.unlink()
    frames = scenenn_frames.open(tmp_path)
    assert list(frames.modalities) == ["image", "depth", "pose", "intrinsics"]
    assert not frames.factors.values("tracked").any()
    assert np.isnan(frames.factors.values("time")).all()
    found = frames.fetch([0])
    assert np.isnan(found["pose"]).all()
    expected = [[544.47329, 0, 320], [0, 544.47329, 240], [0, 0, 1]]
    assert np.array_equal(found["intrinsics"][0], np.array(expected, np.float32))


@pytest.mark.parametrize("first", ["red", "blue"])
def test_masks_of_three_channels_are_read_by_the_ids_of_the_scene(tmp_path, first):
    folder = written(tmp_path) / "005"
    ids = np.zeros((480, 640), np.uint32)
    ids[:100], ids[100:200, :7], ids[300:] = 1203, 40, 7_654_321
    bytes_ = ids.astype(">u4").view(np.uint8).reshape(480, 640, 4)[..., 1:]
    path = folder / "mask" / "mask00001.png"
    Image.fromarray(bytes_ if first == "red" else bytes_[..., ::-1]).save(path)
    with pytest.raises(
        DataError,
        match=r"mask00001\.png .*has three channels, whose order \(RGB or BGR\) can only be determined",
    ):
        scenenn_frames.open(tmp_path).fetch(0, ["instances"])
    label = '<label id="{}" text="box"/>'
    (folder / "005.xml").write_text(f"<scene>{label.format(1203)}{label.format(7654321)}</scene>")
    frames = scenenn_frames.open(tmp_path)
    assert np.array_equal(frames.fetch(0, ["instances"])["instances"], ids)
    assert np.array_equal(pickle.loads(pickle.dumps(frames)).fetch(0, ["instances"])["instances"], ids)
    Image.fromarray(np.full((480, 640, 3), 9, np.uint8)).save(path)  # the same in either order
    assert np.unique(frames.fetch(0, ["instances"])["instances"]).tolist() == [0x090909]


def test_ids_of_more_than_two_bytes(tmp_path):
    """Published ids have up to seven digits; blue is the most significant, then green, red and alpha."""
    written(tmp_path)
    colors = np.broadcast_to(np.array([3, 2, 1, 4], np.uint8), (480, 640, 4))
    Image.fromarray(colors).save(tmp_path / "005" / "mask" / "mask00001.png")
    assert np.unique(scenenn_frames.open(tmp_path).fetch(0, ["instances"])["instances"]).tolist() == [0x01020304]


def test_other_places_and_names(tmp_path):
    """Trajectories in a folder of their own, as Online3D keeps them, and the other name of masks."""
    written(tmp_path)
    expected = scenenn_frames.open(tmp_path).fetch(range(4))
    (tmp_path / "trajectory").mkdir()
    for scene in ("005", "011"):
        (tmp_path / scene / "trajectory.log").rename(tmp_path / "trajectory" / f"{scene}_trajectory.log")
    for path in tmp_path.glob("*/mask/mask*.png"):
        path.rename(path.with_name(path.name.replace("mask", "mask_image")))
    found = scenenn_frames.open(tmp_path).fetch(range(4))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_trajectories_that_count_from_one(tmp_path, caplog):
    written(tmp_path, frames=3, scenes=1)
    scenenn_frames.open(tmp_path)
    assert not caplog.records
    log = tmp_path / "005" / "trajectory.log"
    blocks = [log.read_text().splitlines()[5 * k : 5 * k + 5] for k in range(3)]
    log.write_text("".join("\n".join([f"{k + 1}", *block[1:]]) + "\n" for k, block in enumerate(blocks)))
    poses = scenenn_frames.open(tmp_path).fetch(range(3), ["pose"])["pose"]
    assert np.allclose(poses, [true.pose(0, frame) for frame in (1, 2, 3)], atol=1e-6)
    (said,) = caplog.messages
    assert said.startswith(f"1 of 1 trajectories, such as {log}, number their frames from 1 instead of 0")


def test_kinect2(tmp_path):
    written(tmp_path)
    with pytest.raises(DataError, match=r"has no intrinsic/kinect2\.ini"):
        scenenn_frames.open(tmp_path, kinect2=["011"])
    (tmp_path / "intrinsic" / "kinect2.ini").write_text("fx 356.769928\nfy 430.816498\ncx 251.563446\ncy 237.563446\n")
    frames = scenenn_frames.open(tmp_path, kinect2=["011"])
    assert frames.factors.values("sensor").tolist() == ["asus", "asus", "kinect2", "kinect2"]
    expected = [[356.769928, 0, 251.563446], [0, 430.816498, 237.563446], [0, 0, 1]]
    assert np.array_equal(frames.fetch(3)["intrinsics"], np.array(expected, np.float32))
    assert frames.fetch(0)["intrinsics"][0, 2] == 320
    with pytest.raises(DataError, match="has no frames of the scene '012'"):
        scenenn_frames.open(tmp_path, kinect2=["012"])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("005/trajectory.log", b"0 0 1\n1 0 0 0\n", r"trajectory\.log ends inside the block that begins in line 1"),
        ("005/timestamp.txt", b"1\n", r"timestamp\.txt: line 1 has 1 words"),
        ("intrinsic/asus.ini", b"fx 5\nfy 5\ncx 1\n", r"asus\.ini has no line that begins with 'cy'"),
        ("intrinsic/asus.ini", b"fx 0\nfy 5\ncx 1\ncy 1\n", r"asus\.ini has the invalid intrinsics"),
    ],
)
def test_damaged_text(tmp_path, name, content, sentence):
    (written(tmp_path) / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence) as found:
        scenenn_frames.open(tmp_path)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("name", ["timestamp.txt", "trajectory.log"])
def test_empty_text(tmp_path, name):
    (written(tmp_path) / "005" / name).write_bytes(b"")
    table = scenenn_frames.open(tmp_path).factors
    assert np.isnan(table.values("time")).tolist() == [name == "timestamp.txt"] * 2 + [False] * 2
    assert table.values("tracked").tolist() == [name == "timestamp.txt"] * 2 + [True] * 2


@pytest.mark.parametrize(
    "matrix", ["0 " * 15 + "0", "1 0 0 0 0 1 0 0 0 0 1 0 0 0 1 1", "1 0 0 1e300 0 1 0 0 0 0 1 0 0 0 0 1"]
)
def test_poses_that_are_none(tmp_path, matrix):
    words = matrix.split()
    rows = "\n".join(" ".join(words[4 * i : 4 * i + 4]) for i in range(4))
    (written(tmp_path) / "005" / "trajectory.log").write_text(f"0 0 1\n{rows}\n")
    assert scenenn_frames.open(tmp_path).factors.values("tracked").tolist() == [False, False, True, True]


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    ("kind", "array", "sentence"),
    [
        ("image", np.zeros((480, 600, 3), np.uint8), r"image00001\.png.*480 × 600 pixels .*expected 480 × 640"),
        ("depth", np.zeros((240, 320), np.uint16), r"depth00001\.png.*240 × 320 pixels"),
        ("depth", np.zeros((480, 640), np.uint8), r"depth00001\.png.*16 bits"),
        ("mask", np.zeros((480, 640), np.uint8), r"mask00001\.png.*three or four channels"),
        ("image", None, r"image00001\.png"),
        ("depth", None, r"depth00001\.png.*damaged"),
        ("mask", None, r"mask00001\.png.*damaged"),
    ],
)
def test_damaged_pictures(tmp_path, kind, array, sentence):
    path = written(tmp_path) / "005" / kind / f"{kind}00001.png"
    if array is None:
        path.write_bytes(path.read_bytes()[:-40])
    else:
        Image.fromarray(array).save(path)
    frames = scenenn_frames.open(tmp_path)
    with pytest.raises(DataError, match=sentence) as found:
        frames.fetch([3, 0])
    assert "\n" not in str(found.value)
    frames.fetch([1, 2, 3])


def test_nothing_is_there(tmp_path):
    with pytest.raises(DataError, match="setsup fetch scenenn-frames"):
        scenenn_frames.open(tmp_path)


@pytest.mark.long("large or genuine files")
def test_many_poses_are_read_once(tmp_path, monkeypatch):
    written(tmp_path / "release", frames=3)
    plain = scenenn_frames.open(tmp_path / "release")
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(scenenn_cameras, "_MANY", 1)
    expected = plain.fetch(range(6), ["pose"])["pose"]
    for _ in range(2):
        found = scenenn_frames.open(tmp_path / "release")
        assert found.factors.fingerprint == plain.factors.fingerprint
        assert np.array_equal(found.fetch(range(6), ["pose"])["pose"], expected)
    monkeypatch.setattr(scenenn_cameras, "read_trajectory", None)  # not needed any more
    assert scenenn_frames.open(tmp_path / "release").factors.fingerprint == plain.factors.fingerprint
    monkeypatch.undo()
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(scenenn_cameras, "_MANY", 1)
    (tmp_path / "release" / "005" / "trajectory.log").write_bytes(b"0 0 1\n")
    with pytest.raises(DataError, match="ends inside the block"):
        scenenn_frames.open(tmp_path / "release")
    (tmp_path / "release" / "005" / "trajectory.log").unlink()
    assert scenenn_frames.open(tmp_path / "release").factors.values("tracked").tolist() == [False] * 3 + [True] * 3
