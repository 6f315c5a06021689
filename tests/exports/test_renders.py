"""Exports of real renderings, against the scenes that were rendered."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from setsup.correspondence.rendered_frames import RenderedFrames
from setsup.exports import export_renders
from setsup.rendered.folder import RenderedFolder
from setsup.rendered.writing import render
from setsup.scenes.recipes import RoomFrames
from setsup_cli.main import main
from tests.exports.readers import decode_rle, read_coco, read_flo, read_ply

pytest.importorskip("embreex")

MODALITIES = ["image", "depth", "instances", "object_poses", "mask", "exact_flow", "flow_status"]
SIZE = (36, 48)


@pytest.fixture(scope="module")
def frames() -> RenderedFrames:
    """A room with two moving objects and a moving camera."""
    return RenderedFrames(RoomFrames(rooms=1, frames=4, moving=2, size=SIZE), renderer="embree", modalities=MODALITIES)


@pytest.fixture(scope="module")
def folder(frames: RenderedFrames, tmp_path_factory: pytest.TempPathFactory) -> RenderedFolder:
    return render(frames, tmp_path_factory.mktemp("frames") / "out", MODALITIES)


@pytest.mark.long("renderings")
def test_tracks_of_a_folder_are_those_of_the_scenes(
    frames: RenderedFrames, folder: RenderedFolder, tmp_path: Path
) -> None:
    videos = []
    for dataset, name in ((frames, "exact"), (folder, "stored")):
        place = export_renders(dataset, tmp_path / name, "tap-vid", points=400).folder
        [video] = pickle.loads((place / "tapvid.pkl").read_bytes()).values()
        videos.append(video)
    exact, stored = videos
    seen = ~exact["occluded"] & ~stored["occluded"]
    assert seen.mean() > 0.3
    assert np.abs((exact["points"] - stored["points"]) * SIZE[::-1])[seen].max() < 1e-3
    # near the outlines of occluders alone
    assert (exact["occluded"] != stored["occluded"]).mean() < 0.05
    # each point is where the scenes have it
    pixels = exact["points"][:, 0] * SIZE[::-1] - 0.5
    shown = ~exact["occluded"][:, 0]
    points, status = frames.tracks(0, pixels[shown].astype(np.float64))
    later = points[:, 2] - (exact["points"][shown, 2] * SIZE[::-1] - 0.5)
    visible = (status[:, 2] == 0) & ~exact["occluded"][shown, 2]
    assert visible.any()
    assert np.abs(later)[visible].max() < 0.01


@pytest.mark.long("renderings")
def test_flow_and_masks_of_a_folder(folder: RenderedFolder, tmp_path: Path) -> None:
    sintel = export_renders(folder, tmp_path / "sintel", "sintel").folder / "training"
    stored = folder.fetch(np.arange(4))
    for row in range(3):
        [file] = sintel.glob(f"flow/*/frame_{row + 1:04d}.flo")
        flow = read_flo(file.read_bytes())
        np.testing.assert_array_equal(flow, np.nan_to_num(stored["exact_flow"][row], nan=1e10))
    coco = export_renders(folder, tmp_path / "coco", "coco").folder
    _, annotations, categories = read_coco(coco / "annotations.json")
    assert {"walls", "floor"} <= set(categories.values())
    for row, entries in enumerate(annotations.values()):
        visible = np.sum([decode_rle(entry["segmentation"]) for entry in entries], axis=0)
        np.testing.assert_array_equal(visible, stored["instances"][row] >= 0)
        for entry in entries:
            assert not (decode_rle(entry["segmentation"]) & ~decode_rle(entry["amodal_segmentation"])).any()
            assert entry["amodal_area"] >= entry["area"]


@pytest.mark.long("renderings")
def test_models_of_bop_cover_their_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("meshes").mkdir()
    tent = "v 0 0 0\nv 30 0 0\nv 0 0 20\nv 0 10 0\nf 1 2 4\nf 1 3 4\n"
    for name in ("high", "wide"):
        Path(f"meshes/{name}.obj").write_text(tent if name == "wide" else tent.replace("0 10 0", "0 90 0"))
    words = ["render", "object", "--models", "meshes", "--views", "3", "--size", "96", "96", "--renderer", "embree"]
    words += ["--modalities", "image", "depth", "instances", "mask", "object_poses", "--distance", "45"]
    assert main([*words, "--out", "views"]) == 0
    assert main(["export", "views", "bop", "--layout", "bop"]) == 0
    names = json.loads(Path("bop/object_names.json").read_text())
    assert names == {"1": "high", "2": "wide"}
    infos = json.loads(Path("bop/models/models_info.json").read_text())
    for scene in ("000000", "000001"):
        place = Path("bop/train") / scene
        cameras, truth, seen = (
            json.loads((place / f"scene_{kind}.json").read_text()) for kind in ("camera", "gt", "gt_info")
        )
        for image in ("0", "1", "2"):
            [entry], [info] = truth[image], seen[image]
            rows, triangles = read_ply(Path(f"bop/models/obj_{entry['obj_id']:06d}.ply").read_bytes())
            corners = rows[np.unique(triangles), :3]
            assert max(np.ptp(corners, axis=0)) == pytest.approx(2000)
            assert infos[str(entry["obj_id"])]["size_y"] == pytest.approx(np.ptp(corners[:, 1]), rel=1e-6)
            there = corners @ np.reshape(entry["cam_R_m2c"], (3, 3)).T + entry["cam_t_m2c"]
            pixels = there @ np.reshape(cameras[image]["cam_K"], (3, 3)).T
            pixels = pixels[:, :2] / pixels[:, 2:]
            x, y, width, height = info["bbox_obj"]
            # pixels whose centres are within the corners; sharp tips may lie between centres
            assert (np.array([x, y]) >= pixels.min(axis=0)).all()
            assert (np.array([x + width, y + height]) <= pixels.max(axis=0)).all()
            assert np.abs(pixels.min(axis=0) - [x, y]).max() <= 4
            assert np.abs(pixels.max(axis=0) - [x + width, y + height]).max() <= 4
            with Image.open(place / "depth" / f"{int(image):06d}.png") as file:
                depth = np.asarray(file) * cameras[image]["depth_scale"]
            with Image.open(place / "mask_visib" / f"{int(image):06d}_000000.png") as file:
                mask = np.asarray(file) > 0
            np.testing.assert_array_equal(depth > 0, mask)
            step = cameras[image]["depth_scale"]
            assert there[:, 2].min() - step <= depth[mask].min() <= depth[mask].max() <= there[:, 2].max() + step
            assert info["visib_fract"] == 1
