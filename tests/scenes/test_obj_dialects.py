"""OBJ and MTL files as other programs write them."""

import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from setsup.errors import DataError
from setsup.scenes import load_mesh, mesh_from_trimesh
from tests.fuzzing import survives

CASES = Path(__file__).parent / "cases"
CORNERS = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvn 0 0 1\n"


@pytest.fixture
def warned(caplog):
    caplog.set_level(logging.WARNING, "setsup")
    return caplog


def by_height(mesh):
    """Colours of triangles: of material times vertices, by their least corner."""
    return [mesh.materials[0 if mesh.material is None else mesh.material[row]].color for row in range(len(mesh.faces))]


# -- the cases of the issue --------------------------------------------------------------------------------------------


def test_numbers_that_count_backwards_between_vertices():
    mesh = load_mesh(CASES / "obj" / "blocks.obj")
    triangle = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert mesh.corners.tolist() == [triangle, [[x, y, 5] for x, y, _ in triangle]]


@pytest.mark.parametrize("name", ["two.obj", "two2.obj"])
def test_several_lists_of_materials(name, warned):
    mesh = load_mesh(CASES / "obj" / name)
    assert by_height(mesh) == [(255, 0, 0), (0, 0, 255)]
    assert mesh.corners[:, 1].tolist() == [[1, 0, 0], [1, 1, 0]]
    assert warned.text == ""


def test_a_scaled_texture():
    mesh = load_mesh(CASES / "obj" / "tiled.obj")
    assert np.array_equal(mesh.uv[mesh.faces], 2 * mesh.corners[:, :, :2])


def test_vertex_colors_beside_a_material(warned):
    mesh = load_mesh(CASES / "obj" / "colours.obj")
    assert mesh.colors[mesh.faces].tolist() == [[[255, 0, 0], [0, 255, 0], [0, 0, 255]]]
    assert mesh.materials[0].color == (255, 255, 255)
    assert warned.text == ""


@pytest.mark.parametrize("option", ["-imfchan r", "-type sphere", "-blendu off -mm 0 1", "-clamp off -texres 512"])
def test_options_before_the_name_of_a_texture(tmp_path, option, warned):
    for name in ("imfchan.obj", "imfchan.mtl", "tex.png"):
        (tmp_path / name).write_bytes((CASES / "obj" / name).read_bytes())
    (tmp_path / "imfchan.mtl").write_text(f"newmtl m\nKd 1 1 1\nmap_Kd {option} tex.png\n")
    mesh = load_mesh(tmp_path / "imfchan.obj")
    assert np.array_equal(mesh.materials[0].texture, np.asarray(Image.open(tmp_path / "tex.png").convert("RGB")))
    assert np.array_equal(mesh.uv[mesh.faces], mesh.corners[:, :, :2])
    assert warned.text == ""


def test_a_face_without_texture_coordinates_leaves_the_texture_to_the_others():
    mesh = load_mesh(CASES / "obj-partly" / "partly.obj")
    textured = [mesh.materials[number].texture is not None for number in mesh.material]
    assert textured == [True, False]
    assert np.array_equal(mesh.uv[mesh.faces[0]], mesh.corners[0, :, :2])


# -- their kind --------------------------------------------------------------------------------------------------------


def model(folder, obj, mtl="", name="a.mtl"):
    (folder / "a.obj").write_text(obj)
    if mtl:
        (folder / name).write_text(mtl)
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(folder / "my tex.png")
    return folder / "a.obj"


def test_one_list_whose_name_has_a_space(tmp_path, warned):
    obj = "mtllib my list.mtl\n" + CORNERS + "usemtl m\nf 1 2 3\n"
    mesh = load_mesh(model(tmp_path, obj, "newmtl m\nKd 0 1 0\n", "my list.mtl"))
    assert by_height(mesh) == [(0, 255, 0)]
    assert warned.text == ""


def test_a_list_that_is_missing_beside_one_that_is_there(tmp_path, warned):
    obj = "mtllib a.mtl gone.mtl\nmtllib lost.mtl\n" + CORNERS + "usemtl m\nf 1 2 3\nusemtl other\nf 1 3 4\n"
    mesh = load_mesh(model(tmp_path, obj, "newmtl m\nKd 0 1 0\n"))
    assert by_height(mesh) == [(0, 255, 0), (188, 188, 188)]
    for words in (
        "'gone.mtl' does not exist",
        "'lost.mtl' does not exist",
        "the material 'other' is not defined in its material files",
    ):
        assert words in warned.text


def test_of_two_lists_the_first_counts_and_within_one_the_last(tmp_path):
    (tmp_path / "b.mtl").write_text("newmtl m\nKd 0 0 1\n")
    obj = "mtllib a.mtl\nmtllib b.mtl\n" + CORNERS + "usemtl m\nf 1 2 3\n"
    assert by_height(load_mesh(model(tmp_path, obj, "newmtl m\nKd 1 0 0\nnewmtl m\nKd 0 1 0\n"))) == [(0, 255, 0)]


@pytest.mark.parametrize(
    ("options", "uv", "wrap"),
    [
        ("-s 2 3 1 -o 0.5 -1 0", [[0.5, -1], [2.5, -1], [2.5, 2]], "repeat"),
        ("-o 0.25", [[0.25, 0], [1.25, 0], [1.25, 1]], "repeat"),
        ("-clamp on -s 2 2 2", [[0, 0], [2, 0], [2, 2]], "clamp"),
    ],
)
def test_where_a_texture_lies(tmp_path, options, uv, wrap, warned):
    obj = "mtllib a.mtl\n" + CORNERS + "usemtl m\nf 1/1 2/2 3/3\n"
    mesh = load_mesh(model(tmp_path, obj, f"newmtl m\nmap_Kd {options} my tex.png\n"))
    assert mesh.uv[mesh.faces[0]].tolist() == uv
    assert mesh.materials[0].wrap == (wrap, wrap)
    assert warned.text == ""


def test_options_that_change_colors_are_named(tmp_path, warned):
    obj = "mtllib a.mtl\n" + CORNERS + "usemtl m\nf 1/1 2/2 3/3\n"
    load_mesh(model(tmp_path, obj, "newmtl m\nmap_Kd -mm 0.1 0.8 my tex.png\n"))
    assert "options of map_Kd that are not rendered: -mm" in warned.text


def test_colors_of_some_vertices_and_of_bytes(tmp_path):
    mesh = load_mesh(model(tmp_path, "v 0 0 0 1 0 0\nv 1 0 0\nv 0 1 0 0 0.5 0\nf 1 2 3\n"))
    assert mesh.colors[mesh.faces[0]].tolist() == [[255, 0, 0], [255, 255, 255], [0, 128, 0]]
    mesh = load_mesh(model(tmp_path, "v 0 0 0 255 0 0\nv 1 0 0 0 51 0\nv 0 1 0 0 0 255\nf 1 2 3\n"))
    assert mesh.colors[mesh.faces[0]].tolist() == [[255, 0, 0], [0, 51, 0], [0, 0, 255]]


def test_colors_that_are_no_numbers_are_white(tmp_path):
    mesh = load_mesh(model(tmp_path, "v 0 0 0 1 0 0\nv 1 0 0 nan nan nan\nv 0 1 0 0 0.5 0\nf 1 2 3\n"))
    assert mesh.colors[mesh.faces[0]].tolist() == [[255, 0, 0], [255, 255, 255], [0, 128, 0]]


def test_faces_that_name_texture_coordinates_of_which_the_file_has_none(tmp_path):
    mesh = load_mesh(model(tmp_path, "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1/1/1 2/2/1 3/3/1\n"))
    assert (mesh.uv, mesh.normals) == (None, None)
    assert len(mesh.faces) == 1


def test_vertex_colors_are_multiplied_with_the_material(tmp_path):
    obj = "mtllib a.mtl\n" + CORNERS.replace("v 1 1 0", "v 1 1 0 0 1 0") + "usemtl m\nf 1 2 3\n"
    mesh = load_mesh(model(tmp_path, obj, "newmtl m\nKd 0.2 0.4 0.6\n"))
    assert mesh.materials[0].color == (51, 102, 153)
    assert mesh.colors[mesh.faces[0]].tolist() == [[255] * 3, [255] * 3, [0, 255, 0]]


def test_faces_with_and_without_normals(tmp_path):
    obj = CORNERS.replace("vn 0 0 1", "vn 1 0 1\nvn 0 0 1") + "v 0 0 1\nf 1//1 2//1 3//2\nf 1 2 5\n"
    mesh = load_mesh(model(tmp_path, obj))
    assert np.allclose(mesh.normals[mesh.faces[0]] * 2**0.5, [[1, 0, 1], [1, 0, 1], [0, 0, 2**0.5]], atol=1e-6)
    assert np.allclose(np.abs(mesh.normals[mesh.faces[1]]), [0, 1, 0])


@pytest.mark.parametrize(
    ("rest", "kinds"),
    [("l 1 2 3\n", "lines"), ("p 1 2\n", "points"), ("", "points"), ("l 1 2\np 3\n", "lines and points")],
)
def test_files_without_faces_say_what_they_hold(tmp_path, rest, kinds):
    with pytest.raises(DataError, match=f"has no faces, only {kinds}, which cannot be rendered; add faces") as error:
        load_mesh(model(tmp_path, CORNERS + rest))
    assert "again" not in str(error.value)


def test_lines_and_points_beside_faces_are_left_out(tmp_path, warned):
    mesh = load_mesh(model(tmp_path, CORNERS + "l 1 2\nf 1 2 3\np 4\nusemtl m\nl 3 4\n"))
    assert len(mesh.faces) == 1
    assert warned.text == ""


def test_concave_polygons_keep_texture_coordinates_and_normals_of_their_corners(tmp_path):
    notch = "v 0 0 0\nv 2 1 0\nv 0 2 0\nv 0.5 1 0\nvt 0 0\nvt 0.2 0.1\nvt 0 0.2\nvt 0.05 0.1\nvn 0 0 1\nvn 0 1 1\n"
    obj = "mtllib a.mtl\n" + notch + "usemtl m\nf 1/1/1 2/2/2 3/3/1 4/4/2\n"
    mesh = load_mesh(model(tmp_path, obj, "newmtl m\nmap_Kd my tex.png\n"))
    assert np.allclose(mesh.uv[mesh.faces] * 10, mesh.corners[:, :, :2], atol=1e-6)
    leaning = np.isin(mesh.corners[:, :, 0], [2, 0.5])
    assert np.allclose(mesh.normals[mesh.faces][:, :, 1], np.where(leaning, 0.5**0.5, 0), atol=1e-6)


def test_an_obj_of_a_release_is_the_same_mesh(tmp_path):
    """What datasets give as trimesh's becomes the mesh that the file gives."""
    from setsup.datasets.adapters.meshes import load_obj
    from setsup.files.archives.members import open_members

    obj = "mtllib a.mtl\n" + CORNERS.replace("v 1 1 0", "v 1 1 0 0 1 0")
    obj += "usemtl m\nf 1/1/1 2/2/1 3/3/1\nusemtl n\nf 1//1 3//1 4//1\nf 1 2 4\nusemtl none\nf 2 3 4\n"
    (tmp_path / "one").mkdir()
    path = model(tmp_path / "one", obj, "newmtl m\nmap_Kd my tex.png\nnewmtl n\nKd 0.4 0.4 0.4\n")
    members = open_members(tmp_path)
    other = mesh_from_trimesh(load_obj(members, members.place("one/a.obj"), "one"))
    mesh = load_mesh(path)
    assert np.array_equal(mesh.corners, other.corners)
    for name in ("uv", "colors", "normals"):
        assert np.allclose(getattr(mesh, name)[mesh.faces], getattr(other, name)[other.faces], atol=1e-6)
    assert [one.digest for one in mesh.materials] == [one.digest for one in other.materials]


@pytest.mark.long("fuzzing")
def test_fuzzing(tmp_path):
    obj = "mtllib a.mtl b.mtl\n" + CORNERS + "usemtl m\nf -4/1/1 2/2 3/3/1 4/4\nusemtl n\nf 1 2 3 -1\nl 1 2\n"
    mtl = "newmtl m\nKd 0.5 0.5 0.5\nmap_Kd -s 2 2 1 -o 0.5 -clamp on my tex.png\nnewmtl n\nd 0.5\n"
    path = model(tmp_path, obj, mtl)

    def read(name, content):
        (tmp_path / name).write_bytes(content)
        load_mesh(path)

    assert survives(obj.encode(), lambda content: read("a.obj", content), 150, head=600) > 25
    path.write_text(obj)
    survives(mtl.encode(), lambda content: read("a.mtl", content), 75, head=600)
