"""Damaged datasets in the BOP format are refused in one sentence."""

import json

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from tests import bop_files as true
from tests.fuzzing import survives

SCENE = "test/000001/"
TURN = [1, 0, 0, 0, 1, 0, 0, 0, 1]
MIRROR = [-1, 0, 0, 0, 1, 0, 0, 0, 1]


@pytest.fixture
def folder(tmp_path):
    return true.write(tmp_path, scenes=(1,))


def refused(folder, words, read=setsup.open, **options):
    with pytest.raises(DataError, match=words) as error:
        read(folder, **options)
    assert "\n" not in str(error.value)


def changed(folder, name, change):
    """Change a list, and write it again."""
    listed = json.loads((folder / name).read_bytes())
    true.put(folder, {name: json.dumps(change(listed) or listed).encode()})


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (7, "scene_camera.json: image 3 is 7; expected an object with cam_K"),
        ({"cam_K": None}, "image 3 has no cam_K; expected 9 numbers"),
        ({"cam_K": [1, 2, 3]}, r"image 3 has cam_K = \[1, 2, 3\]; expected 9 finite numbers"),
        ({"cam_K": [70, 0, 30, 0, 70, 20, 0, 0, True]}, "expected 9 finite numbers"),
        ({"cam_K": [70, 0, 30, 0, "70", 20, 0, 0, 1]}, "expected 9 finite numbers"),
        ({"cam_K": [70, 0, 30, 0, -70, 20, 0, 0, 1]}, "expected fx s cx 0 fy cy 0 0 1, with positive focal lengths"),
        ({"cam_K": [70, 0, 30, 0, 70, 20, 0, 1, 1]}, "expected fx s cx 0 fy cy 0 0 1"),
        ({"cam_K": [70, 0, 0, 0, 70, 0, 30, 20, 1]}, "expected fx s cx 0 fy cy 0 0 1"),
        ({"cam_K": [1e300, 0, 30, 0, 70, 20, 0, 0, 1]}, "expected fx s cx 0 fy cy 0 0 1"),
        (
            {"cam_model": {"projection_model_type": "CameraModelType.FISHEYE624"}},
            "image 3 has the camera model 'CameraModelType.FISHEYE624'; supported are .*, with cam_K; undistort the",
        ),
        ({"cam_model": 3}, "has the camera model 3"),
        ({"depth_scale": 0}, "image 3 has depth_scale = 0; expected a positive number"),
        ({"depth_scale": "1"}, "image 3 has depth_scale = '1'; expected a positive number"),
        ({"depth_scale": None}, "image 3 has depth, but no depth_scale; expected the millimetres of one step; add it"),
        ({"cam_t_w2c": None}, "image 3 has only one of cam_R_w2c and cam_t_w2c; expected both, or neither"),
        ({"cam_R_w2c": TURN[:3]}, r"image 3 has cam_R_w2c = \[1, 0, 0\]; expected 9 finite numbers"),
        ({"cam_R_w2c": MIRROR}, "the camera of image 3 has the rotation .*; expected a rotation matrix, row by row"),
        ({"cam_R_w2c": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}, "expected 9 finite numbers"),
        ({"cam_t_w2c": [0, 0, 1e300]}, "the camera of image 3 has the rotation .* and the translation"),
    ],
)
def test_cameras(folder, entry, words):
    def change(listed):
        listed["3"] = {**listed["3"], **entry} if isinstance(entry, dict) else entry

    changed(folder, f"{SCENE}scene_camera.json", change)
    refused(folder, words)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (7, "scene_gt.json: image 3 is .*; expected a list of objects"),
        ({"cam_R_m2c": None}, "object 1 of image 3 has no cam_R_m2c; expected 9 numbers"),
        ({"cam_t_m2c": [1, 2]}, r"object 1 of image 3 has cam_t_m2c = \[1, 2\]; expected 3 finite numbers"),
        ({"cam_R_m2c": MIRROR}, "object 1 of image 3 has the rotation .*; expected a rotation matrix, row by row, and"),
        ({"cam_R_m2c": [2 * x for x in TURN]}, "object 1 of image 3 has the rotation"),
        ({"obj_id": None}, "object 1 of image 3 has obj_id = None; expected the number of a model"),
        ({"obj_id": -1}, "has obj_id = -1; expected the number"),
        ({"obj_id": True}, "has obj_id = True; expected the number"),
        ({"obj_id": 10**9}, "expected the number of a model"),
        ({"obj_id": 1.5}, "has obj_id = 1.5; expected the number"),
    ],
)
def test_objects(folder, entry, words):
    def change(listed):
        listed["3"][1] = {**listed["3"][1], **entry} if isinstance(entry, dict) else entry

    changed(folder, f"{SCENE}scene_gt.json", change)
    refused(folder, words)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ([], "scene_gt_info.json: image 3 has 0 entries; expected one for each of the 3 objects in scene_gt"),
        ({"a": 1}, "image 3 has {'a': 1}; expected one for each of the 3 objects"),
        ([1, 2, 3], "image 3 has 3 entries; expected"),
        ([{"visib_fract": 1.5}] * 3, "image 3 has visib_fract = 1.5; expected a number from 0 to 1"),
        ([{"visib_fract": "all"}] * 3, "image 3 has visib_fract = 'all'"),
    ],
)
def test_visible_parts(folder, entry, words):
    changed(folder, f"{SCENE}scene_gt_info.json", lambda listed: listed.update({"3": entry}))
    refused(folder, words)


def test_visible_parts_that_are_unknown(folder):
    changed(folder, f"{SCENE}scene_gt_info.json", lambda listed: listed.pop("3") and None)
    changed(folder, f"{SCENE}scene_gt_info.json", lambda listed: listed["4"][0].pop("visib_fract") and None)
    shares = setsup.open(folder).fetch([1, 2], ["visib_fract"])["visib_fract"]
    assert np.isnan(shares).tolist() == [[True] * 3, [True, False, False]]


def test_objects_of_an_image_that_is_not_listed(folder):
    changed(folder, f"{SCENE}scene_camera.json", lambda listed: listed.pop("4") and None)
    refused(folder, r"scene_gt.json has objects of image 4, which is not in .*scene_camera.json; correct the file")


@pytest.mark.parametrize("name", ["scene_camera", "scene_gt", "scene_gt_info"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "could not be parsed as JSON"),
        (b'{"3": [', "could not be parsed as JSON"),
        (b'{"3": NaN}', "could not be parsed as JSON: it contains NaN"),
        (b"[]", r"contains \[\]; expected an object with a key for each number"),
        (b'{"a": 1}', "has the key 'a'; expected a number"),
        (b'{"-1": 1}', "has the key '-1'; expected a number"),
        (b'{"9999999999": 1}', "has the key '9999999999'; expected a number"),
        (b'{"3": 1, "03": 1}', "has the number 3 twice; expected each once"),
        (b'{"3": 1, "3": 1}', "an object has the key '3' twice"),
        (b'{"3": [{"obj_id": 1, "obj_id": 2}]}', "an object has the key 'obj_id' twice"),
    ],
)
def test_lists(folder, name, content, words):
    true.put(folder, {f"{SCENE}{name}.json": content})
    refused(folder, f"{name}.json .*{words}")


def test_a_list_without_images(folder):
    true.put(folder, {f"{SCENE}scene_camera.json": b"{}"})
    refused(folder, "scene_camera.json lists no images; expected an object with a camera for each")


def test_lists_that_are_cut_short(folder):
    """Cut off anywhere, a list is refused."""
    for name in ("scene_camera", "scene_gt", "scene_gt_info"):
        content = (folder / f"{SCENE}{name}.json").read_bytes()
        for cut in range(0, len(content), len(content) // 15):
            true.put(folder, {f"{SCENE}{name}.json": content[:cut]})
            refused(folder, rf"{name}.json could not be parsed as JSON")
        true.put(folder, {f"{SCENE}{name}.json": content})


def test_missing_images(folder, caplog):
    (folder / SCENE / "rgb" / "000003.png").unlink()
    found = setsup.open(folder)
    assert found.factors.values("frame").tolist() == [0, 4, 10, 11, 250]
    [line] = caplog.messages
    assert "1 of the 6 listed images are missing (test/000001/rgb/000003.png); they are left out" in line
    assert np.array_equal(
        found.fetch([1], ["object_poses"])["object_poses"], setsup.open(folder).fetch(1)["object_poses"][None]
    )
    placed = [true.object_pose(thing, true.camera_poses()[2]) for thing in true.SCENES[1]]
    assert np.allclose(found.fetch(1)["object_poses"], placed, atol=1e-6)
    for path in (folder / SCENE / "rgb").iterdir():
        path.unlink()
    refused(folder, "contains none of the 6 listed images, such as test/000001/rgb/000000.png")


def test_images_that_are_not_listed(folder, caplog):
    for name in ("scene_camera", "scene_gt", "scene_gt_info"):
        changed(folder, f"{SCENE}{name}.json", lambda listed: listed.pop("4") and None)
    assert len(setsup.open(folder)) == 5
    [line] = caplog.messages
    assert line.endswith("has images that scene_camera.json does not list (test/000001/rgb); they are left out")


def test_missing_masks(folder):
    (folder / SCENE / "mask_visib" / "000003_000001.png").unlink()
    found = setsup.open(folder)
    with pytest.raises(DataError, match=r"row 1 .* has no mask test/000001/mask_visib/000003_000001.png, so it has no"):
        found.fetch([1], ["instances"])
    objects = setsup.open(folder, by="object")
    with pytest.raises(DataError, match=r"row 4 .* has no visible_mask; select other rows or modalities"):
        objects.fetch([4], ["visible_mask"])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "depth/000000.png",
            true.encode(np.zeros((48, 64), np.uint8), "png"),
            r"begins with b.*; expected a PNG of one channel",
        ),
        (
            "depth/000000.png",
            true.encode(np.zeros((10, 64), np.uint16), "png"),
            "is 10 × 64 pixels .*; expected 48 × 64",
        ),
        ("depth/000000.png", b"", "begins with b''; expected a PNG of one channel"),
        ("depth/000000.png", b"II*\0\x08\0\0\0", "could not be decoded as TIFF|begins with"),
        (
            "depth/000000.png",
            true.encode(np.zeros((48, 64), np.uint8), "tif"),
            "mode L; expected a PNG of one channel",
        ),
        ("mask_visib/000000_000000.png", b"no", "is not a readable image"),
        ("mask_visib/000000_000000.png", true.encode(np.zeros((9, 9), np.uint8), "png"), "is 9 × 9 pixels"),
        ("rgb/000000.png", b"\x89PNG", "is not a readable image|could not be decoded"),
    ],
)
def test_images(folder, name, content, words):
    true.put(folder / SCENE, {name: content})
    refused(folder, words, lambda folder: setsup.open(folder).fetch([0]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"diameter": None}, "models_info.json: object 1 has diameter = None; expected millimetres"),
        ({"size_x": -1}, "object 1 has size_x = -1; expected millimetres"),
        ({"symmetries_discrete": 3}, "object 1 has symmetries_discrete = 3; expected a list"),
        ({"symmetries_discrete": [[1, 2]]}, r"object 1 has symmetry = \[1, 2\]; expected 16 finite numbers"),
        (
            {"symmetries_discrete": [[2.0, *[0] * 4, 2, *[0] * 4, 2, *[0] * 4, 1]]},
            "object 1: symmetry 0 has the rotation",
        ),
        ({"symmetries_discrete": [[1.0, *[0] * 4, 1, *[0] * 4, 1, 0, 0, 0, 1, 1]]}, "whose last row is not 0 0 0 1"),
        (
            {"symmetries_continuous": [{"axis": [0, 0, 0], "offset": [0, 0, 0]}]},
            "has the axis .*; expected a direction",
        ),
        ({"symmetries_continuous": [{"axis": [0, 0, 1]}]}, "has a symmetry without offset; expected 3 numbers"),
        ({"symmetries_continuous": [3]}, "has the symmetry 3; expected an axis and an offset"),
    ],
)
def test_models(folder, change, words):
    changed(folder, "models/models_info.json", lambda listed: listed["1"].update(change))
    refused(folder, words, lambda folder: setsup.open(folder).models())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}", r"test_targets_bop19.json contains {}; expected a list of targets"),
        (b"[3]", "has the target 3; expected scene_id and im_id"),
        (b'[{"scene_id": 1}]', "expected scene_id and im_id"),
        (b"[", "could not be parsed as JSON"),
    ],
)
def test_targets(folder, content, words):
    true.put(folder, {"test_targets_bop19.json": content})
    refused(folder, words)


def test_several_datasets(tmp_path):
    for name in ("one", "other"):
        true.write(tmp_path / name, scenes=(1,))
    refused(tmp_path, "contains 2 BOP datasets, such as one and other; open one of them", setsup.open, kind="bop")


def test_a_folder_without_scenes(tmp_path):
    true.put(tmp_path, {"rgb/000000.png": true.encode(np.zeros((4, 4), np.uint8), "png")})
    refused(tmp_path, "has no scenes; expected folders such as test/000001 with scene_camera.json", kind="bop")


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("name", [f"{SCENE}{kind}.json" for kind in ("scene_camera", "scene_gt", "scene_gt_info")])
def test_any_bytes(folder, name):
    def read(content):
        (folder / name).write_bytes(content)
        for by in ("image", "object"):
            found = setsup.open(folder, by=by)
            found.fetch([0, len(found) - 1])

    assert survives((folder / name).read_bytes(), read, 100, slack=12 << 20) > 20


@pytest.mark.long("fuzzing")
def test_any_models(folder):
    found = setsup.open(folder)

    def read(content):
        (folder / "models" / "models_info.json").write_bytes(content)
        for model in found.models().values():
            model.symmetries(4)

    assert survives((folder / "models" / "models_info.json").read_bytes(), read, 200, slack=12 << 20) > 20
