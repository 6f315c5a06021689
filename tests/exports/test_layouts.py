"""Whole layouts of random arrays, read back by the readers of other formats and by setsup.open."""

import json
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError, SetsupError
from setsup.exports import export_renders
from setsup.factors import FactorTable
from setsup.scenes import Mesh
from tests.exports.arrays import NAMES, SIZE, RandomRenders
from tests.exports.readers import decode_rle, read_coco, read_flo, read_kitti, read_ply

ROOMS = {"attic": "attic", "café/1": "caf_1"}


def _image(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)


def _videos(renders: RandomRenders) -> dict[str, list[int]]:
    """Rows of each video in the order of its frames, one by one."""
    rows = [renders.factors.row(row) for row in range(len(renders.factors))]
    return {
        name: sorted((row for row, values in enumerate(rows) if values["room"] == room), key=lambda r: rows[r]["frame"])
        for room, name in ROOMS.items()
    }


# -- COCO --------------------------------------------------------------------------------------------------------------


def test_coco(tmp_path: Path) -> None:
    renders = RandomRenders()
    done = export_renders(renders, tmp_path / "coco", "coco")
    assert (done.folder, done.rows, done.files) == (tmp_path / "coco", 10, 11)
    images, annotations, categories = read_coco(done.folder / "annotations.json")
    assert set(categories.values()) == {"floor", "chair", "object"}
    content = json.loads((done.folder / "annotations.json").read_text())
    assert {each["name"]: each["supercategory"] for each in content["categories"]} == {
        "chair": "seat",
        "floor": "ground",
        "object": "other",
    }
    for row, (number, image) in enumerate(images.items()):
        np.testing.assert_array_equal(_image(done.folder / image["file_name"]), renders.arrays["image"][row])
        assert (image["height"], image["width"]) == SIZE
        numbers = [each for each in NAMES if (renders.arrays["instances"][row] == each).any()]
        assert len(annotations[number]) == len(numbers)
        for entry, each in zip(annotations[number], numbers, strict=True):
            visible, whole = renders.arrays["instances"][row] == each, renders.whole[row, ..., each]
            np.testing.assert_array_equal(decode_rle(entry["segmentation"]), visible)
            np.testing.assert_array_equal(decode_rle(entry["amodal_segmentation"]), whole)
            assert (entry["area"], entry["amodal_area"], entry["iscrowd"]) == (visible.sum(), whole.sum(), 0)
            for box, mask in ((entry["bbox"], visible), (entry["amodal_bbox"], whole)):
                y, x = np.nonzero(mask)
                assert box == [x.min(), y.min(), x.max() - x.min() + 1, y.max() - y.min() + 1]
            assert categories[entry["category_id"]] == (NAMES[each] or "object")


def test_coco_of_some_names_without_amodal_masks(tmp_path: Path) -> None:
    done = export_renders(RandomRenders(4).without("mask", "labels"), tmp_path / "coco", "coco", names=["chair"])
    _, annotations, categories = read_coco(done.folder / "annotations.json")
    assert categories == {1: "chair"}
    assert not any("amodal_bbox" in entry for entries in annotations.values() for entry in entries)
    assert _image(done.folder / "images" / "000000.png").shape == (*SIZE, 3)
    with pytest.raises(DataError, match="no instances named 'lamp'; choose from chair"):
        export_renders(RandomRenders(), tmp_path / "none", "coco", names=["lamp"])
    assert not (tmp_path / "none").exists()


# -- BOP ---------------------------------------------------------------------------------------------------------------


def test_bop(tmp_path: Path) -> None:
    renders = RandomRenders()
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    folder = export_renders(renders, tmp_path / "bop", "bop", models={"chair": mesh}).folder
    numbers = {name: int(key) for key, name in json.loads((folder / "object_names.json").read_text()).items()}
    assert numbers == {"chair": 1, "floor": 2, "object": 3}
    videos = [sorted(rows) for rows in _videos(renders).values()]
    for scene, rows in enumerate(videos):
        place = folder / "train" / f"{scene:06d}"
        cameras, truth, infos = (
            json.loads((place / f"scene_{kind}.json").read_text()) for kind in ("camera", "gt", "gt_info")
        )
        assert list(cameras) == list(truth) == list(infos) == [str(image) for image in range(5)]
        for image, row in enumerate(rows):
            camera, told = renders.cameras[row], cameras[str(image)]
            np.testing.assert_array_equal(_image(place / "rgb" / f"{image:06d}.png"), renders.arrays["image"][row])
            depth = _image(place / "depth" / f"{image:06d}.png") * told["depth_scale"] / 1000
            assert np.abs(depth - renders.arrays["depth"][row]).max() <= told["depth_scale"] / 2000 + 1e-6
            np.testing.assert_allclose(np.reshape(told["cam_K"], (3, 3)), camera.k)
            np.testing.assert_allclose(np.reshape(told["cam_R_w2c"], (3, 3)), camera.rotation)
            np.testing.assert_allclose(np.array(told["cam_t_w2c"]) / 1000, camera.translation)
            whole = {each: renders.whole[row, ..., each] for each in NAMES}
            shown = [each for each in NAMES if whole[each].any()]
            assert [entry["obj_id"] for entry in truth[str(image)]] == [
                numbers[NAMES[each] or "object"] for each in shown
            ]
            for place_in_list, each in enumerate(shown):
                entry, info = truth[str(image)][place_in_list], infos[str(image)][place_in_list]
                pose = renders.arrays["object_poses"][row, each]
                np.testing.assert_allclose(np.reshape(entry["cam_R_m2c"], (3, 3)), pose[:3, :3])
                np.testing.assert_allclose(np.array(entry["cam_t_m2c"]) / 1000, pose[:3, 3])
                file = f"{image:06d}_{place_in_list:06d}.png"
                visible = renders.arrays["instances"][row] == each
                np.testing.assert_array_equal(_image(place / "mask" / file), 255 * whole[each])
                np.testing.assert_array_equal(_image(place / "mask_visib" / file), 255 * visible)
                assert info["visib_fract"] == visible.sum() / whole[each].sum()
    rows_of_ply, _ = read_ply((folder / "models" / "obj_000001.ply").read_bytes())
    assert rows_of_ply[:, :3].max(axis=0).tolist() == [1000, 2000, 3000]
    assert list(json.loads((folder / "models" / "models_info.json").read_text())) == ["1"]


def test_setsup_opens_what_it_wrote_as_bop(tmp_path: Path) -> None:
    renders = RandomRenders()
    bop = setsup.open(export_renders(renders, tmp_path / "bop", "bop").folder)
    rows = [row for video in _videos(renders).values() for row in sorted(video)]
    found = bop.fetch(np.arange(10))
    np.testing.assert_array_equal(found["image"], renders.arrays["image"][rows])
    np.testing.assert_allclose(found["depth"], renders.arrays["depth"][rows], atol=1e-4)
    inverse = np.stack([np.linalg.inv(_matrix(renders.cameras[row])) for row in rows])
    np.testing.assert_allclose(found["pose"], inverse, atol=1e-5)
    seen = renders.arrays["instances"][rows]
    np.testing.assert_array_equal(found["instances"] >= 0, seen >= 0)
    poses = renders.arrays["object_poses"][rows][:, list(NAMES)]
    np.testing.assert_allclose(found["object_poses"][:, : len(NAMES)], poses, atol=1e-5)


def _matrix(camera: setsup.scenes.Camera) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = camera.rotation, camera.translation
    return pose


# -- transforms.json ---------------------------------------------------------------------------------------------------


def test_transforms(tmp_path: Path) -> None:
    renders = RandomRenders(4)
    folder = export_renders(renders, tmp_path / "nerf", "transforms").folder
    for name, rows in _videos(renders).items():
        told = json.loads((folder / name / "transforms.json").read_text())
        for frame, row in zip(told["frames"], sorted(rows), strict=True):
            camera = renders.cameras[row]
            np.testing.assert_array_equal(_image(folder / name / frame["file_path"]), renders.arrays["image"][row])
            depth = _image(folder / name / frame["depth_file_path"]) * told["integer_depth_scale"]
            assert np.abs(depth - renders.arrays["depth"][row]).max() <= 0.5e-3 + 1e-6
            assert frame["time"] == renders.factors.row(row)["frame"] / 4
            # a point of the world, by OpenGL's camera in the file, and by ours
            point = np.array([0.3, -0.2, 5.0])
            there = np.linalg.inv(frame["transform_matrix"]) @ [*(camera.rotation.T @ (point - camera.translation)), 1]
            assert there[:3] == pytest.approx([0.3, 0.2, -5.0])
            x, y = there[:2] / -there[2] * [frame["fl_x"], -frame["fl_y"]] + [frame["cx"], frame["cy"]]
            pixel = camera.k @ point / point[2]
            assert (x - 0.5, y - 0.5) == pytest.approx(tuple(pixel[:2]))
        opened = setsup.open(folder / name)
        camera = renders.cameras[sorted(rows)[0]]
        np.testing.assert_allclose(opened.fetch(0)["pose"], np.linalg.inv(_matrix(camera)), atol=1e-5)
        np.testing.assert_allclose(opened.fetch(0)["intrinsics"], camera.k, atol=1e-5)


def test_a_common_lens_is_written_once(tmp_path: Path) -> None:
    renders = RandomRenders().without("depth")
    renders.cameras = [renders.cameras[0]] * 10
    folder = export_renders(renders, tmp_path / "nerf", "transforms", scene=["room"]).folder
    told = json.loads((folder / "attic" / "transforms.json").read_text())
    assert (told["fl_x"], told["cx"], told["w"], told["h"]) == (20, 7.75, 16, 12)
    assert told["camera_angle_x"] == pytest.approx(2 * np.arctan(16 / 40))
    assert set(told["frames"][0]) == {"file_path", "transform_matrix", "time"}
    assert "integer_depth_scale" not in told


def test_a_skew_is_refused(tmp_path: Path) -> None:
    renders = RandomRenders()
    camera = renders.cameras[3]
    k = camera.k.copy()
    k[0, 1] = 0.5
    renders.cameras[3] = setsup.scenes.Camera(*SIZE, k, camera.rotation, camera.translation)
    with pytest.raises(DataError, match=r"images/000003\.png has a skew of 0\.5 pixels"):
        export_renders(renders, tmp_path / "nerf", "transforms")
    assert list(tmp_path.iterdir()) == []


# -- flow --------------------------------------------------------------------------------------------------------------


def test_sintel(tmp_path: Path) -> None:
    renders = RandomRenders()
    folder = export_renders(renders, tmp_path / "sintel", "sintel").folder / "training"
    for name, rows in _videos(renders).items():
        assert len(list((folder / "clean" / name).iterdir())) == 5
        assert len(list((folder / "flow" / name).iterdir())) == len(list((folder / "occlusions" / name).iterdir())) == 4
        for time, row in enumerate(rows, 1):
            np.testing.assert_array_equal(
                _image(folder / "clean" / name / f"frame_{time:04d}.png"), renders.arrays["image"][row]
            )
            if time < 5:
                flow = read_flo((folder / "flow" / name / f"frame_{time:04d}.flo").read_bytes())
                wanted = np.nan_to_num(renders.arrays["exact_flow"][row], nan=1e10)
                np.testing.assert_array_equal(flow, wanted)
                hidden = _image(folder / "occlusions" / name / f"frame_{time:04d}.png") == 255
                np.testing.assert_array_equal(hidden, renders.arrays["flow_status"][row] != 0)


def test_kitti(tmp_path: Path) -> None:
    renders = RandomRenders()
    folder = export_renders(renders, tmp_path / "kitti", "kitti").folder / "training"
    pairs = [pair for rows in _videos(renders).values() for pair in pairwise(rows)]
    assert len(list((folder / "image_2").iterdir())) == 2 * len(pairs) == 16
    for number, (row, following) in enumerate(pairs):
        for shown, suffix in ((row, "10"), (following, "11")):
            image = _image(folder / "image_2" / f"{number:06d}_{suffix}.png")
            np.testing.assert_array_equal(image, renders.arrays["image"][shown])
        wanted, status = renders.arrays["exact_flow"][row], renders.arrays["flow_status"][row]
        for kind, known in (("flow_occ", status != 3), ("flow_noc", status == 0)):
            flow, valid = read_kitti((folder / kind / f"{number:06d}_10.png").read_bytes())
            np.testing.assert_array_equal(valid, known)
            assert np.abs(flow - wanted)[valid].max() <= 1 / 128
    assert (folder / "pairs.txt").read_text().splitlines()[4] == "caf_1 0"


def test_frames_that_are_missing(tmp_path: Path) -> None:
    renders = RandomRenders()
    with pytest.raises(DataError, match=r"frame 0 of the video scene of rendered rooms is followed by frame 0"):
        export_renders(renders, tmp_path / "out", "sintel", scene=[])
    table = renders.factors
    renders.factors = table.select([row for row in range(10) if table.row(row)["frame"] != 2])
    with pytest.raises(DataError, match=r"frame 1 of the video attic of rendered rooms is followed by frame 3"):
        export_renders(renders, tmp_path / "out", "kitti")
    renders = RandomRenders()
    renders.factors = FactorTable([renders.factors["room"]], {"room": renders.factors.codes("room")})
    with pytest.raises(DataError, match=r"no factor .frame.; render frames, .* --modalities image exact_flow"):
        export_renders(renders, tmp_path / "out", "sintel")
    for layout in ("sintel", "kitti"):
        with pytest.raises(DataError, match=f"{layout} contains flow .* no video of rendered rooms has two frames"):
            export_renders(RandomRenders(frames=1), tmp_path / "out", layout)
    assert list(tmp_path.iterdir()) == []


# -- TAP-Vid -----------------------------------------------------------------------------------------------------------


def test_tap_vid(tmp_path: Path) -> None:
    renders = RandomRenders()
    folder = export_renders(renders, tmp_path / "tracks", "tap-vid", points=20, seed=3).folder
    content = pickle.loads((folder / "tapvid.pkl").read_bytes())
    assert list(content) == list(ROOMS.values())
    for name, rows in _videos(renders).items():
        video = content[name]
        np.testing.assert_array_equal(video["video"], renders.arrays["image"][rows])
        assert video["points"].shape == (20, 5, 2)
        assert video["points"].dtype == np.float32
        # a point that is seen lies on what it shows in some frame: the one where it was chosen
        pixels = video["points"] * [SIZE[1], SIZE[0]] - 0.5
        whole = (np.abs(pixels - np.rint(pixels)) < 1e-4).all(axis=2) & ~video["occluded"]
        assert whole.any(axis=1).all()
        with np.load(folder / f"{name}.npz") as same:
            for key in ("video", "points", "occluded"):
                np.testing.assert_array_equal(same[key], video[key])
    again = export_renders(RandomRenders(), tmp_path / "again", "tap-vid", points=20, seed=3).folder
    assert (again / "tapvid.pkl").read_bytes() == (folder / "tapvid.pkl").read_bytes()
    other = export_renders(RandomRenders(), tmp_path / "other", "tap-vid", points=20, seed=4).folder
    assert (other / "tapvid.pkl").read_bytes() != (folder / "tapvid.pkl").read_bytes()


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "gone", "said"),
    [
        ("coco", "instances", "lacks instances, which the layout coco needs"),
        ("bop", "object_poses", "render with modalities=['image', 'depth', 'instances', 'object_poses']"),
        ("sintel", "exact_flow", "render with modalities=['image', 'exact_flow', 'flow_status']"),
        ("transforms", "image", "lacks image"),
    ],
)
def test_what_a_layout_needs(tmp_path: Path, layout: str, gone: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        export_renders(RandomRenders().without(gone), tmp_path / "out", layout)  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refusals(tmp_path: Path) -> None:
    renders = RandomRenders()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    with pytest.raises(DataError, match="is not empty; pass a new folder"):
        export_renders(renders, tmp_path / "full", "coco")
    with pytest.raises(DataError, match="is a file; pass a new folder"):
        export_renders(renders, tmp_path / "full" / "mine.txt", "coco")
    with pytest.raises(SetsupError, match="layout"):
        export_renders(renders, tmp_path / "out", "voc")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"no factor 'rom'; did you mean 'room'\?"):
        export_renders(renders, tmp_path / "out", "bop", scene=["rom"])
    with pytest.raises(DataError, match="points must be"):
        export_renders(renders, tmp_path / "out", "tap-vid", points=0)
    with pytest.raises(DataError, match="must be a rendered dataset or a folder of `setsup render`"):
        export_renders(setsup.load("shapes3d-procedural"), tmp_path / "out", "coco")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]
