"""``transforms.json`` of NeRF, instant-ngp and nerfstudio, written here by their descriptions."""

import io
import json
import math

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import overlap
from setsup.errors import DataError
from setsup.opening import find_kind
from tests import capture_files as true
from tests.fuzzing import survives
from tests.true_files.rings import found_at_marks, marks, project

NAMES = [f"images/{true.image_name(frame)}" for frame in range(6)]
CAMERA = {"w": 120, "h": 90, "fl_x": 110.0, "fl_y": 104.0, "cx": 62.0, "cy": 44.0}
ANGLE = 2 * math.atan(60 / 110)


def write(folder, lens="PINHOLE", **meta):
    """A capture with one file of cameras."""
    true.put(folder / "images", true.pictures(lens))
    return true.put(folder, {"transforms.json": true.transforms(NAMES, **{**CAMERA, **meta})})


def check(found, k=true.K, poses=None):
    """Poses and intrinsics of a capture of one scene, and discs where they say."""
    whole = found.fetch(range(len(found)))
    assert np.allclose(whole["pose"], true.plain_poses() if poses is None else poses, atol=1e-5)
    assert np.allclose(whole["intrinsics"], k, atol=1e-4)
    for row, pose in enumerate(true.plain_poses()):
        assert found_at_marks(whole["image"][row, ..., :3], pose, k)
    return whole


def test_nerf(tmp_path):
    """Three files, one angle, paths without a suffix, images with alpha."""
    k = np.array([[110.0, 0, 59.5], [0, 110, 44.5], [0, 0, 1]])
    parts = {"train": [0, 1, 2], "val": [3], "test": [4, 5]}
    poses = true.plain_poses()
    for split, frames in parts.items():
        listed = []
        for number, frame in enumerate(frames):
            picture = true.seen(poses[frame], k, true.SIZE)[0].convert("RGBA")
            picture.putpixel((0, 0), (1, 2, 3, 0))
            true.put(tmp_path / "lego" / split, {f"r_{number}.png": true.png(picture)})
            listed.append(
                {"file_path": f"./{split}/r_{number}", "rotation": 0.01, "transform_matrix": true.opengl(poses[frame])}
            )
        content = json.dumps({"camera_angle_x": ANGLE, "frames": listed}).encode()
        true.put(tmp_path / "lego", {f"transforms_{split}.json": content})
    true.put(tmp_path / "lego" / "test", {"r_0_depth_0001.png": true.png(Image.new("RGBA", (120, 90)))})
    for folder in (tmp_path, tmp_path / "lego"):
        assert find_kind(folder) == "capture"
        found = setsup.open(folder)
        whole = check(found, k)
        assert whole["image"].shape == (6, 90, 120, 4)
        assert whole["image"][0, 0, 0].tolist() == [1, 2, 3, 0]
        assert found.factors["scene"].levels == ("lego",)
        assert found.factors.values("split").tolist() == ["train"] * 3 + ["val"] + ["test"] * 2
        assert np.allclose((found.factors.values("azimuth") - true.AZIMUTHS + 180) % 360, 180, atol=1e-3)
        assert np.allclose(found.factors.values("elevation"), 25, atol=1e-3)
        assert np.allclose(found.factors.values("distance"), 3, atol=1e-4)
    assert len(setsup.open(tmp_path / "lego", split="test")) == 2


def test_instant_ngp(tmp_path):
    """One camera for all, with keys that only its program needs."""
    write(tmp_path, camera_angle_x=1.0, camera_angle_y=0.8, k1=0, k2=0, p1=0, p2=0, is_fisheye=False, aabb_scale=16)
    found = setsup.open(tmp_path)
    check(found)
    assert "split" not in found.factors


def test_nerfstudio(tmp_path):
    """A camera of each frame, splits in lists, depth and masks, and the world of COLMAP turned."""
    applied = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    true.put(tmp_path / "images", true.pictures())
    depth = (np.arange(90 * 120).reshape(90, 120) % 5000).astype(np.uint16)
    true.put(
        tmp_path / "depths",
        {"d.png": true.png(Image.fromarray(depth)), "small.png": true.png(Image.fromarray(depth[::2, ::2].copy()))},
    )
    file = io.BytesIO()
    np.save(file, np.where(depth == 0, np.inf, depth).astype(np.float64))
    true.put(tmp_path / "depths", {"d.npy": file.getvalue()})
    true.put(tmp_path / "masks", {"m.png": true.png(Image.fromarray((depth > 9).astype(np.uint8) * 255))})
    frames = json.loads(true.transforms(NAMES, applied))["frames"]
    for frame, name in zip(frames, ("d.png", "small.png", "d.npy"), strict=False):
        frame["depth_file_path"], frame["mask_path"] = f"depths/{name}", "masks/m.png"
    meta = {
        "camera_model": "OPENCV",
        "applied_transform": applied[:3].tolist(),
        "ply_file_path": "sparse_pc.ply",
        "train_filenames": NAMES[:4],
        "test_filenames": NAMES[5:],
        "frames": [{**CAMERA, **frame} for frame in frames],
    }
    true.put(tmp_path, {"transforms.json": json.dumps(meta).encode()})
    found = setsup.open(tmp_path)
    whole = found.fetch([0, 1, 2])
    assert np.allclose(found.fetch(range(6), ["pose"])["pose"], true.plain_poses(), atol=1e-5)
    assert found.factors.values("split").tolist() == ["train"] * 4 + [None, "test"]
    assert np.array_equal(whole["depth"][0], depth.astype(np.float32) * np.float32(0.001))
    assert np.array_equal(whole["depth"][2], whole["depth"][0])
    assert whole["depth"].dtype == np.float32
    assert np.array_equal(whole["depth"][1][::2, 1::2], whole["depth"][0][::2, ::2])
    assert np.array_equal(whole["object_mask"][0] > 0, depth > 9)
    assert np.allclose(setsup.open(tmp_path, depth_scale=0.5).fetch(0, ["depth"])["depth"], depth * 0.5)
    meta["integer_depth_scale"] = 0.25
    true.put(tmp_path, {"transforms.json": json.dumps(meta).encode()})
    assert np.allclose(setsup.open(tmp_path).fetch(0, ["depth"])["depth"], depth * 0.25)


@pytest.mark.parametrize("size", [None, (60, 60)])
def test_distorted_images_are_undistorted(tmp_path, size):
    k1, k2, p1, p2 = true.LENSES["OPENCV"][1]
    write(tmp_path, "OPENCV", camera_model="OPENCV", k1=k1, k2=k2, p1=p1, p2=p2)
    found = setsup.open(tmp_path, size=size)
    whole = found.fetch(range(6))
    for row, pose in enumerate(true.plain_poses()):
        assert true.shown(marks(), whole["image"][row], pose, whole["intrinsics"][row])
    stored = setsup.open(tmp_path, size=size, undistort=False).fetch([0])
    assert np.allclose(stored["distortion"], [k1, k2, p1, p2, 0, 0, 0, 0])


def test_distortion_as_a_list(tmp_path):
    """nerfstudio's list has k3 and k4 before p1 and p2."""
    k1, k2, p1, p2 = true.LENSES["OPENCV"][1]
    write(tmp_path, "OPENCV", k1=0.5, distortion_params=[k1, k2, 0.01, 0, p1, p2])
    stored = setsup.open(tmp_path, undistort=False).fetch([0])
    assert np.allclose(stored["distortion"], [k1, k2, p1, p2, 0.01, 0, 0, 0])


def test_fields_of_view_of_instant_ngp(tmp_path):
    """They are in degrees, and count more than focal lengths."""
    degrees = {
        f"{axis}_fov": 2 * math.degrees(math.atan(side / 2 / f)) for axis, side, f in (("x", 120, 110), ("y", 90, 104))
    }
    write(tmp_path, **degrees, fl_x=1.0, camera_angle_x=0.1)
    check(setsup.open(tmp_path))


def test_maps_follow_undistorted_images(tmp_path):
    """A map of the images' own reds is where these are, by nearest neighbor."""
    k1, k2, p1, p2 = true.LENSES["OPENCV"][1]
    for name, content in true.pictures("OPENCV").items():
        red = np.asarray(Image.open(io.BytesIO(content)))[..., 0].astype(np.uint16) + 1
        true.put(tmp_path / "depths", {name: true.png(Image.fromarray(red))})
    true.put(tmp_path / "images", true.pictures("OPENCV"))
    frames = json.loads(true.transforms(NAMES))["frames"]
    for frame in frames:
        frame["depth_path"] = frame["file_path"].replace("images", "depths")
    meta = {**CAMERA, "k1": k1, "k2": k2, "p1": p1, "p2": p2, "integer_depth_scale": 1, "frames": frames}
    true.put(tmp_path, {"transforms.json": json.dumps(meta).encode()})
    for size in (None, (60, 60)):
        whole = setsup.open(tmp_path, size=size).fetch(range(6))
        known = whole["depth"] > 0
        assert known.mean() > 0.9
        off = np.abs(whole["depth"][known] - 1 - whole["image"][..., 0][known])
        assert np.mean(off < 30) > 0.9


def test_the_same_capture_by_colmap_and_by_nerfstudio(tmp_path):
    """With ``applied_transform`` undone, poses are those of the model that nerfstudio converted."""
    true.write_colmap(tmp_path)
    applied = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0]])
    frames = [
        {"file_path": name, "transform_matrix": true.opengl(np.vstack([applied, [0, 0, 0, 1]]) @ pose)}
        for name, pose in zip(NAMES, true.poses(), strict=True)
    ]
    meta = {**CAMERA, "applied_transform": applied.tolist(), "frames": frames}
    true.put(tmp_path, {"transforms.json": json.dumps(meta).encode()})
    one, other = (setsup.open(tmp_path, cameras=kind).fetch(range(6)) for kind in ("colmap", "transforms"))
    assert all(np.allclose(one[name], other[name], atol=1e-5) for name in ("image", "pose", "intrinsics"))
    points = true.world(true.cloud())
    pixels = project(points, other["pose"][2].astype(float), other["intrinsics"][2].astype(float))
    assert np.allclose(pixels, true.observed(true.poses()[2]) - 0.5, atol=1e-3)


def test_overlap_of_views(tmp_path):
    """Two cameras beside each other before a wall: 30 of 120 columns are not seen by the other."""
    true.put(tmp_path, {f"{name}.png": true.png(Image.new("RGB", (120, 90))) for name in "ab"})
    true.put(tmp_path, {"wall.png": true.png(Image.fromarray(np.full((90, 120), 2000, np.uint16)))})
    frames = [
        {"file_path": f"{name}.png", "depth_file_path": "wall.png", "transform_matrix": np.eye(4).tolist()}
        for name in "ab"
    ]
    frames[1]["transform_matrix"][0][3] = 30 * 2 / 110
    camera = {"w": 120, "h": 90, "fl_x": 110.0, "fl_y": 110.0}
    true.put(tmp_path, {"transforms.json": json.dumps({**camera, "frames": frames}).encode()})
    table = overlap(setsup.open(tmp_path), pixels=120 * 90)
    assert list(zip(table.first.tolist(), table.second.tolist(), strict=True)) == [(0, 1), (1, 0)]
    assert table.overlap.tolist() == [0.75, 0.75]


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(folder, words):
    with pytest.raises(DataError, match=words) as error:
        setsup.open(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"camera_model": "OPENCV_FISHEYE"}, "has the camera model OPENCV_FISHEYE; supported models are .*; undistort"),
        ({"camera_model": "EQUIRECTANGULAR"}, "has the camera model EQUIRECTANGULAR"),
        ({"camera_model": 3}, "has the camera model 3"),
        ({"is_fisheye": True}, "has the camera model fisheye"),
        ({"latlong": True}, "has the camera model equirectangular"),
        ({"ftheta_p0": 0.1}, "has the camera model f-theta"),
        ({"orthographic": True}, "has the camera model orthographic"),
        ({"camera_model": "FISHEYE624"}, "has the camera model FISHEYE624"),
        ({"distortion_params": [0.1, 0, 0, 0.2, 0, 0]}, r"has the camera model radial, with k4 = 0\.2"),
        ({"distortion_params": [0.1, 0]}, r"has distortion_params = \[0\.1, 0\]; expected 6 finite numbers, k1, "),
        ({"distortion_params": [0.1, 0, 0, 0, 0, None]}, "expected 6 finite numbers"),
        ({"x_fov": 180}, "has x_fov = 180; expected degrees between 0 and 180"),
        ({"k4": 0.01}, r"has the camera model radial, with k4 = 0\.01"),
        ({"fl_x": "wide"}, "frame 0 has fl_x = 'wide'; expected a finite number"),
        ({"fl_x": -1}, "has fl_x = -1; expected a positive number"),
        ({"fl_x": None, "fl_y": None}, "has neither fl_x nor camera_angle_x"),
        ({"fl_x": None, "camera_angle_x": 4}, "has camera_angle_x = 4; expected radians"),
        ({"w": 0}, "has h = 90 and w = 0; expected integers"),
        ({"cx": 1e300}, "has a focal length, centre or distortion above 1e"),
        ({"w": 60}, "frame_00.png .row 0. is 90 × 120 pixels .*, but its camera was calibrated for 90 × 60"),
        ({"applied_transform": [[1, 2], [3, 4]]}, "applied_transform is .*; expected 4 rows of 4 finite numbers"),
        ({"train_filenames": "all"}, "train_filenames is 'all'; expected a list of paths"),
        ({"train_filenames": NAMES, "val_filenames": NAMES}, "is in train_filenames and val_filenames"),
    ],
)
def test_cameras_that_are_refused(tmp_path, meta, words):
    write(tmp_path, **meta)
    refused(tmp_path, words)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (
            {"transform_matrix": [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]]},
            "expected a rotation and a trans",
        ),
        ({"transform_matrix": [[-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]}, "expected a rotation"),
        ({"transform_matrix": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]}, "expected a rotation"),
        ({"transform_matrix": [1, 2]}, r"frame 3: transform_matrix is \[1, 2\]; expected 4 rows"),
        ({"transform_matrix": None}, "expected 4 rows"),
        ({"transform_matrix": [[1e300, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]}, "expected a rotation"),
        ({"file_path": NAMES[1]}, "frames 1 and 3 both have the image 'images/frame_01.png'"),
        ({"file_path": None}, "frame 3 has no file_path"),
        ({"file_path": 7}, "frame 3 has file_path = 7; expected a path"),
        (
            {"file_path": "../../x.png"},
            r"the path '\.\./\.\./x\.png' leads out of .*; open the folder that contains both",
        ),
        ({"file_path": "/etc/x.png"}, "the path '/etc/x.png' leads out of"),
    ],
)
def test_frames_that_are_refused(tmp_path, frame, words):
    write(tmp_path)
    meta = json.loads((tmp_path / "transforms.json").read_bytes())
    meta["frames"][3] |= frame
    true.put(tmp_path, {"transforms.json": json.dumps(meta).encode()})
    refused(tmp_path, words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "could not be parsed as JSON"),
        (b"[]", "has no frames"),
        (b'{"frames": []}', "has no frames"),
        (b'{"frames": [3]}', "frame 0 is 3; expected an object"),
        (b'{"fl_x": NaN, "frames": []}', "could not be parsed as JSON: it contains NaN"),
    ],
)
def test_files_that_are_refused(tmp_path, content, words):
    write(tmp_path)
    true.put(tmp_path, {"transforms.json": content})
    refused(tmp_path, words)


def test_damaged_maps(tmp_path):
    true.put(tmp_path / "images", true.pictures())
    true.put(tmp_path, {"d.png": true.png(Image.new("L", (120, 90))), "m.png": true.png(Image.new("L", (50, 90)))})
    true.put(tmp_path, {"d.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9, 9), }"})
    for key, name, words in (
        ("depth_file_path", "d.png", "d.png .row 0. is not a PNG of one channel of 16 bits, or a .npy; replace it"),
        ("depth_file_path", "d.npy", "d.npy .row 0. has a damaged header"),
        ("mask_path", "m.png", "m.png .row 0. is 90 × 50 pixels .*; expected 90 × 120, the size of its image"),
    ):
        true.put(tmp_path, {"transforms.json": true.transforms(NAMES, frame={key: name}, **CAMERA)})
        with pytest.raises(DataError, match=words):
            setsup.open(tmp_path).fetch([0])


def test_missing_images(tmp_path, caplog):
    write(tmp_path)
    (tmp_path / NAMES[2]).unlink()
    assert len(setsup.open(tmp_path)) == 5
    assert "1 of the 6 listed images are missing" in caplog.text
    for name in NAMES[:2] + NAMES[3:]:
        (tmp_path / name).unlink()
    refused(tmp_path, "contains none of the 6 listed images")


def test_missing_masks(tmp_path, caplog):
    write(tmp_path)
    meta = json.loads((tmp_path / "transforms.json").read_text())
    for frame in meta["frames"][:2]:
        frame["mask_path"] = "masks/m.png"
    (tmp_path / "transforms.json").write_text(json.dumps(meta))
    assert "object_mask" not in setsup.open(tmp_path).modalities
    assert "2 listed mask files are missing (masks/m.png, masks/m.png); their images have no mask" in caplog.text


def test_an_option_of_colmap(tmp_path):
    write(tmp_path)
    with pytest.raises(DataError, match=r"images='images_4' is an option of COLMAP models, but .* has transforms.json"):
        setsup.open(tmp_path, images="images_4")


@pytest.mark.long("fuzzing")
def test_any_bytes(tmp_path):
    write(tmp_path, camera_model="OPENCV", k1=0.01, applied_transform=np.eye(4)[:3].tolist(), train_filenames=NAMES[:2])
    file = tmp_path / "transforms.json"

    def read(content):
        file.write_bytes(content)
        found = setsup.open(tmp_path)
        found.fetch([0, len(found) - 1])

    assert survives(file.read_bytes(), read, 150, slack=12 << 20) > 20
