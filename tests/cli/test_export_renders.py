"""Folders of renders in the files of other projects, by the command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import setsup as library
from tests.cli.refusals import refused
from tests.exports.readers import decode_rle, read_coco

pytest.importorskip("embreex")

Run = Callable[..., Any]
TENT = "v 0 0 0\nv 1 0 0\nv 0 0 1\nv 0 1 0\nf 1 2 4\nf 1 3 4\n"
VIEWS = ["--views", 3, "--size", 24, 32, "--renderer", "embree", "--out", "views"]


@pytest.fixture
def meshes(tmp_path: Path) -> Path:
    for name in ("red", "blue"):
        path = tmp_path / "meshes" / name / "tent.obj"
        path.parent.mkdir(parents=True)
        path.write_text(TENT)
    return tmp_path / "meshes"


def test_coco_and_transforms(setsup: Run, meshes: Path) -> None:
    modalities = ["--modalities", "image", "depth", "instances"]
    assert setsup("render", "object", "--models", meshes, *VIEWS, *modalities).code == 0
    views = library.open("views")
    found = setsup("export", "views", "coco", "--layout", "coco", "--json")
    assert found.code == 0, found.err
    assert {key: found.json[key] for key in ("layout", "rows", "files")} == {"layout": "coco", "rows": 6, "files": 7}
    _, annotations, categories = read_coco(Path("coco/annotations.json"))
    assert categories == {1: "blue", 2: "red"}
    instances = views.fetch(np.arange(6))["instances"]
    for row, entries in enumerate(annotations.values()):
        assert [categories[entry["category_id"]] for entry in entries] == [views.factors.row(row)["model"]]
        np.testing.assert_array_equal(decode_rle(entries[0]["segmentation"]), instances[row] == 0)
    assert setsup("export", "views", "nerf", "--layout=transforms").code == 0
    for name, rows in (("blue", range(3)), ("red", range(3, 6))):
        told = json.loads(Path(f"nerf/{name}/transforms.json").read_text())
        pose = library.open(f"nerf/{name}").fetch(range(3))["pose"]
        centres = [views.camera(row).centre for row in rows]
        np.testing.assert_allclose(pose[:, :3, 3], centres, rtol=1e-6)
        with Image.open(f"nerf/{name}/{told['frames'][0]['file_path']}") as image:
            assert image.mode == "RGBA"
        # what a pixel shows, by OpenGL's axes: it lies within the box of the models
        frame = told["frames"][0]
        with Image.open(f"nerf/{name}/{frame['depth_file_path']}") as image:
            depth = np.asarray(image) * told["integer_depth_scale"]
        y, x = np.nonzero(depth)
        there = np.stack(
            [(x + 0.5 - told["cx"]) / told["fl_x"], -(y + 0.5 - told["cy"]) / told["fl_y"], -np.ones(len(x))], axis=1
        )
        world = there * depth[y, x, None] @ np.array(frame["transform_matrix"])[:3, :3].T
        world += np.array(frame["transform_matrix"])[:3, 3]
        assert np.abs(world).max() < 1.01


def test_refusals(setsup: Run, meshes: Path) -> None:
    assert setsup("render", "object", "--models", meshes, *VIEWS, "--modalities", "image").code == 0
    refused(setsup("export", "views", "out"), "--layout")
    refused(setsup("export", "views", "out", "--layout", "cocoa"), "coco")
    refused(
        setsup("export", "views", "out", "--layout", "coco"),
        "lacks instances, which the layout coco needs; render with --modalities image instances",
    )
    refused(setsup("export", "views", "out", "--layout", "sintel"), "no factor 'frame'; render frames")
    refused(setsup("export", "nowhere", "out", "--layout", "coco"), "nowhere does not exist")
    refused(setsup("export", "views", "views", "--layout", "transforms"), "is not empty; pass a new folder")
    refused(setsup("export", "views", "out", "--layout", "transforms", "--scene", "modl"), "did you mean 'model'?")
    assert not Path("out").exists()
    assert setsup("export", "--help").code == 0
    assert "--layout" in setsup("export", "views", "--help").out
