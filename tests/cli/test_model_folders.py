"""A folder of meshes rendered by one command: what is found, what is left out, and why."""

import csv
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from setsup.rendered.folder import open_rendered
from tests.cli.refusals import refused
from tests.scenes.gltf_files import SQUARE, Writer

pytest.importorskip("embreex")
trimesh = pytest.importorskip("trimesh")

Run = Callable[..., Any]
TENT = "v 0 0 0\nv 1 0 0\nv 0 0 1\nv 0 1 0\nf 1 2 4\nf 1 3 4\n"
SMALL = ["--size", 10, 12, "--renderer", "embree", "--modalities", "image", "depth", "normals", "instances"]


def _good(folder: Path) -> None:
    """Models that render: in subfolders, of one file name, with transforms, textures, materials and a skin."""
    for name in ("red/cup", "blue/cup", "hat"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.obj").write_text(TENT)
    scene = trimesh.Scene()
    for height, color in ((0, (255, 0, 0, 255)), (2, (0, 0, 255, 255))):
        box = trimesh.creation.box((1, 1, 1))
        box.visual.face_colors = color
        scene.add_geometry(box, transform=trimesh.transformations.translation_matrix((0, height, 0)))
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "Tower.GLB").write_bytes(scene.export(file_type="glb"))
    image = io.BytesIO()
    Image.new("RGB", (2, 2), (0, 200, 0)).save(image, "PNG")
    writer = Writer()
    view = writer.view(image.getvalue())
    square = writer.square(TEXCOORD_0=writer.accessor(SQUARE[:, :2])) | {"material": 0}
    plain = writer.square() | {"material": 1}
    textured = {"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}
    writer.save(
        folder,
        images=[{"bufferView": view, "mimeType": "image/png"}],
        textures=[{"source": 0}],
        materials=[textured, {"pbrMetallicRoughness": {"baseColorFactor": [1, 0, 0, 1]}}],
        meshes=[{"primitives": [square, plain]}],
        nodes=[{"children": [1], "translation": [3, 0, 0]}, {"mesh": 0, "scale": [2, 1, 1]}],
        scenes=[{"nodes": [0]}],
        animations=[],
    ).rename(folder / "card.glb")
    writer = Writer()
    joints, weights = np.zeros((4, 4), np.uint8), np.tile(np.array([1, 0, 0, 0], np.float32), (4, 1))
    skinned = writer.square(JOINTS_0=writer.accessor(joints), WEIGHTS_0=writer.accessor(weights))
    writer.save(
        folder,
        meshes=[{"primitives": [skinned]}],
        skins=[{"joints": [1]}],
        nodes=[{"mesh": 0, "skin": 0}, {"translation": [0, 0, 1]}],
        scenes=[{"nodes": [0, 1]}],
    ).rename(folder / "flag.glb")
    mtl = folder / "store" / "lost.obj"
    mtl.parent.mkdir()
    mtl.write_text(f"mtllib lost.mtl\nusemtl wood\n{TENT}")
    (folder / "store" / "lost.mtl").write_text("newmtl wood\nKd 1 0 0\nmap_Kd wood.png\n")
    (folder / "linked.obj").symlink_to(folder / "red" / "cup.obj")


def _bad(folder: Path) -> dict[str, str]:
    """Files that do not render, by name, and a part of the reason."""
    (folder / "aaa_empty.obj").write_bytes(b"")  # the first in order
    (folder / "aab_points.obj").write_text("v 0 0 0\nv 1 0 0\n")
    (folder / "aac_speck.obj").write_text("v 1 1 1\nf 1 1 1\n")
    (folder / "pointer.glb").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    (folder / "cut.glb").write_bytes((folder / "card.glb").read_bytes()[:900])
    (folder / "words.gltf").write_text("{ broken")
    (folder / "robot.fbx").write_bytes(b"Kaydara FBX Binary")
    (folder / "gone.ply").symlink_to(folder / "nowhere.ply")
    (folder / "outside").symlink_to("/")
    os.mkfifo(folder / "pipe.stl")
    writer = Writer()
    primitive = writer.square() | {"extensions": {"KHR_draco_mesh_compression": {"bufferView": 0, "attributes": {}}}}
    extensions = ["KHR_draco_mesh_compression"]
    told = {"extensionsUsed": extensions, "extensionsRequired": extensions}
    writer.save(folder, meshes=[{"primitives": [primitive]}], **told).rename(folder / "draco.glb")
    writer = Writer()
    nodes = [{"mesh": 0, "children": [1]}, {"children": [0]}]
    writer.save(folder, meshes=[{"primitives": [writer.square()]}], nodes=nodes).rename(folder / "ring.glb")
    writer = Writer()
    meshes = [{"primitives": [writer.square()]}]
    writer.tree["accessors"][0]["count"] = 10**12
    writer.save(folder, meshes=meshes).rename(folder / "huge.glb")
    return {
        "aaa_empty.obj": "an empty file",
        "aab_points.obj": "has no faces, only points",
        "aac_speck.obj": "no extent",
        "pointer.glb": "git lfs pull",
        "cut.glb": "cut.glb",
        "words.gltf": "words.gltf",
        "robot.fbx": "convert it to .glb",
        "gone.ply": "a broken link",
        "outside": "a link to a folder",
        "pipe.stl": "not a regular file",
        "draco.glb": "KHR_draco_mesh_compression",
        "ring.glb": "with two parents, or as its own descendant",
        "huge.glb": "1,000,000,000,000",
    }


def test_a_folder_as_users_have_it(setsup: Run, tmp_path: Path) -> None:
    folder = tmp_path / "meshes"
    _good(folder)
    bad = _bad(folder)
    (folder / ".hidden.obj").write_text(TENT)
    (folder / "readme.txt").write_text("not a mesh")
    words = ["render", "object", "--models", folder, "--views", 2, *SMALL, "--out", "views"]
    found = setsup(*words, "--json")
    assert found.code == 0, found.err
    rendered = open_rendered("views")
    names = ["blue/cup", "card", "deep/er/Tower", "flag", "hat", "linked", "red/cup", "store/lost"]
    assert sorted(set(rendered.factors.values("model").tolist())) == names
    assert list(rendered.modalities) == ["image", "depth", "normals", "instances"]
    assert len(rendered) == 16
    problems = {Path(one["file"]).name: one for one in found.json["models"]}
    assert set(problems) == {*bad, "lost.obj"}
    for name, why in bad.items():
        assert why in problems[name]["problem"], name
        assert "\n" not in problems[name]["problem"]
        assert not problems[name]["rendered"]
    assert problems["lost.obj"]["rendered"]
    assert "rendered without wood.png" in problems["lost.obj"]["problem"]
    with open("views/models.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert {row["model"] for row in table if row["rendered"] == "True"} == set(names)
    assert {Path(row["file"]).name for row in table if row["problem"]} == set(problems)
    again = setsup(*words)  # finished: the same table, nothing rendered
    assert again.code == 0
    assert "rendered by embree, 0 now" in again.out
    assert "convert it to .glb" in again.out
    assert "views/models.csv lists all models" in again.out


def test_names_that_differ_in_the_ending_alone(setsup: Run, tmp_path: Path) -> None:
    for name in ("a/cup.obj", "b/cup.obj", "b/cup.off"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TENT if name.endswith("obj") else "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    found = setsup("render", "object", "--models", "a", "b", "--views", 1, *SMALL, "--out", "views", "--json")
    assert found.code == 0, found.err
    assert open_rendered("views").factors["model"].levels == ("a/cup.obj", "b/cup.obj", "b/cup.off")
    assert found.json["models"] == []


def test_folders_without_a_good_mesh(setsup: Run, tmp_path: Path) -> None:
    folder = tmp_path / "meshes"
    folder.mkdir()
    words = ["render", "object", "--models", folder, "--views", 1, *SMALL, "--out", "views"]
    refused(setsup(*words), "contains no mesh files that setsup reads (glb, gltf, obj, off, ply, stl)")
    (folder / "robot.fbx").write_bytes(b"Kaydara")
    refused(setsup(*words), "1 others were left out", "convert it to .glb")
    (folder / "a.obj").write_text("v 0 0 0\n")
    (folder / "b.obj").write_text("v 0 0 0\n")
    refused(setsup(*words), "a.obj has no faces")
    assert not Path("views").exists()
