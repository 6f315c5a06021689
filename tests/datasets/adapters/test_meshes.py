import logging
import sys

import numpy as np
import pytest
from PIL import Image

from setsup.datasets.adapters import meshes
from setsup.errors import DataError
from setsup.files.archives.members import open_members
from setsup.scenes.meshes.formats.ply import read_ply
from tests.fuzzing import survives
from tests.true_files.keypointnet import painted_toy
from tests.true_files.shapenet import mtl, obj, texture

trimesh = pytest.importorskip("trimesh")


def _model(folder, path="../images/texture0.jpg", **changed):
    """A toy car in a folder s/m, whose files may be changed."""
    vertices, triangles, colors = painted_toy(0, 1)
    top = folder / "s" / "m"
    (top / "models").mkdir(parents=True, exist_ok=True)
    (top / "images").mkdir(exist_ok=True)
    texture(colors[0], 1).save(top / "images" / "texture0.jpg", quality=95)
    (top / "models" / "car.obj").write_bytes(changed.get("obj", obj(vertices, triangles, "car.mtl").encode()))
    (top / "models" / "car.mtl").write_bytes(changed.get("mtl", mtl(path, colors[-1]).encode()))
    return open_members(folder)


def _load(members):
    return meshes.load_obj(members, members.place("s/m/models/car.obj"), "s/m")


def test_a_geometry_a_material_with_its_texture(tmp_path):
    scene = _load(_model(tmp_path))
    vertices, triangles, colors = painted_toy(0, 1)
    assert sorted(scene.geometry) == ["body", "rest"]
    body, rest = scene.geometry["body"], scene.geometry["rest"]
    assert len(body.faces) == len(rest.faces) == 12
    assert body.area + rest.area == pytest.approx(trimesh.Trimesh(vertices, triangles).area, rel=1e-5)
    with Image.open(tmp_path / "s" / "m" / "images" / "texture0.jpg") as picture:
        assert np.array_equal(np.asarray(body.visual.material.image), np.asarray(picture))
    assert body.visual.uv.max() == 1
    assert rest.visual.material.diffuse[:3].tolist() == pytest.approx(colors[-1].tolist(), abs=1)
    assert scene.metadata["missing"] == []


def test_genuine_models(genuine):
    members = open_members(genuine)
    chair = next(name for name in members.names.to_pylist() if name.endswith("model_normalized.obj"))
    scene = meshes.load_obj(members, members.place(chair), chair.split("/models/model")[0])
    expected = trimesh.load_scene(genuine / chair, resolver=None, process=False)
    ply = read_ply((genuine / chair).with_suffix(".ply"), "chair")
    assert sum(len(part.faces) for part in scene.geometry.values()) == len(ply.faces) == 3304
    assert scene.area == pytest.approx(expected.area)
    assert np.allclose(scene.bounds, [ply.points.min(axis=0), ply.points.max(axis=0)], atol=1e-6)
    assert scene.metadata["missing"] == []
    assert all(part.visual.material.image.size for part in scene.geometry.values())
    picture = meshes.preview_scene(scene).astype(int)
    ink = (picture.min(axis=-1) < 250).mean(axis=1)
    assert ink[:8].max() < 0.1  # nothing but margin at the top
    assert ink[60:70].mean() > 2 * ink[100:115].mean()  # the seat is wide, the legs below it are not: it stands
    red, green, blue = picture[picture.min(axis=-1) < 200].mean(axis=0)
    assert red > green > blue  # wood
    cow = meshes.load_obj(members, members.place("meshes/pytorch3d/cow.obj"), "meshes/pytorch3d")
    assert cow.metadata["missing"] == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/passwd", "points outside the folder of the model"),
        ("C:\\textures\\wood.jpg", "points outside"),
        ("../../../secret.jpg", "points outside"),
        ("../images/gone ü #1.jpg", "'../images/gone ü #1.jpg' does not exist"),
        ("car.obj", "not a readable image"),
    ],
)
def test_textures_that_cannot_be_had_are_named_and_do_no_harm(tmp_path, caplog, path, message):
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    with caplog.at_level(logging.WARNING, "setsup"):
        scene = _load(_model(tmp_path, path))
    assert len(scene.metadata["missing"]) == 1
    assert message in scene.metadata["missing"][0]
    assert message in caplog.text
    assert "car.obj" in caplog.text
    assert scene.geometry["body"].visual.material.image is None
    assert meshes.preview_scene(scene).shape == (128, 128, 3)


def test_a_missing_library_is_named(tmp_path):
    members = _model(tmp_path, obj=obj(*painted_toy(0, 1)[:2], "gone.mtl").encode())
    scene = _load(members)
    assert scene.metadata["missing"] == ["'gone.mtl' does not exist"]
    assert meshes.preview_scene(scene).min() < 200


def test_options_and_backslashes_before_a_texture(tmp_path):
    scene = _load(_model(tmp_path, "-s 1 1 1 ..\\images\\texture0.jpg"))
    assert scene.metadata["missing"] == []
    assert scene.geometry["body"].visual.material.image.size == (32, 32)


def test_the_extra_is_named(tmp_path, monkeypatch):
    members = _model(tmp_path)
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(DataError, match=r"pip install '\.\[meshes\]' in setsup's folder"):
        _load(members)


def test_a_damaged_mesh_is_named(tmp_path):
    members = _model(tmp_path, obj=b"mtllib car.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl body\nf 1 2 4\n")
    with pytest.raises(DataError, match=r"car\.obj has a face that refers to vertex 4, but only 3 exist"):
        _load(members)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("what", ["obj", "mtl"])
def test_fuzzing(tmp_path, what):
    members = _model(tmp_path)
    path = tmp_path / "s" / "m" / "models" / f"car.{what}"

    def read(content):
        path.write_bytes(content)
        meshes.preview_scene(_load(open_members(tmp_path)))

    healthy = members.read(members.place(f"s/m/models/car.{what}"))
    # a picture and its texture take some memory, whatever the size of the file
    refused = survives(healthy, read, 30, head=2000, slack=1 << 25)
    assert refused > 5 or what == "mtl"


def test_pictures_of_meshes_with_and_without_colors():
    vertices, triangles, colors = painted_toy(3, 0)
    painted = meshes.preview_mesh(vertices, triangles, colors.astype(np.uint8))
    plain = meshes.preview_mesh(vertices, triangles, None)
    assert np.ptp(plain.astype(int), axis=-1).max() == 0
    assert np.ptp(painted.astype(int), axis=-1).max() > 100
    assert np.array_equal(painted.min(axis=-1) == 255, plain.min(axis=-1) == 255)
