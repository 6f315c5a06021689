import json
import logging
import sys
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from setsup.errors import DataError, SetsupError
from setsup.scenes import Mesh, Placement, Rays, Scene, load_mesh, mesh_from_trimesh
from setsup.scenes.meshes.materials import warn_once
from setsup.scenes.meshes.primitives import box
from setsup.scenes.units import check_size
from tests.fuzzing import survives

trimesh = pytest.importorskip("trimesh")

DICE = np.random.default_rng(0)
TEXTURE = DICE.integers(0, 256, (8, 4, 3), np.uint8)

SQUARE = """mtllib square.mtl
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
vt 0 0
vt 1 0
vt 1 1
vt 0 1
usemtl plain
f 1/1 2/2 3/3
usemtl painted
f 1/1 3/3 4/4
"""
MATERIALS = "newmtl plain\nKd 0.5 0.25 0\nnewmtl painted\nKd 0.1 0.1 0.1\nmap_Kd square.png\n"


def square(folder, obj=SQUARE, mtl=MATERIALS, picture="square.png"):
    folder.mkdir(exist_ok=True)
    (folder / "square.obj").write_text(obj)
    (folder / "square.mtl").write_text(mtl)
    if picture:
        Image.fromarray(TEXTURE).save(folder / picture)
    return folder / "square.obj"


def ball():
    found = trimesh.creation.icosphere(subdivisions=1)
    found.visual.vertex_colors = DICE.integers(0, 256, (len(found.vertices), 4), np.uint8)
    return found


def by_color(mesh):
    """Triangles of each colour of material."""
    which = np.zeros(len(mesh.faces), int) if mesh.material is None else mesh.material
    return {one.color: mesh.corners[which == number] for number, one in enumerate(mesh.materials)}


def by_corners(triangles):
    return Counter(tuple(sorted(map(tuple, one))) for one in triangles.tolist())


def normals_of(corners):
    found = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


# -- materials ---------------------------------------------------------------------------------------------------------


def test_colors_and_textures_of_an_obj_file(tmp_path, caplog):
    mesh = load_mesh(square(tmp_path))
    assert caplog.text == ""
    parts = by_color(mesh)
    assert sorted(parts) == [(128, 64, 0), (255, 255, 255)]  # beside a texture Kd does not count
    assert sorted(map(tuple, parts[128, 64, 0][0])) == [(0, 0, 0), (1, 0, 0), (1, 1, 0)]
    assert sorted(map(tuple, parts[255, 255, 255][0])) == [(0, 0, 0), (0, 1, 0), (1, 1, 0)]
    (texture,) = (one.texture for one in mesh.materials if one.texture is not None)
    assert np.array_equal(texture, TEXTURE)
    painted = [one.texture is not None for one in mesh.materials].index(True)
    (triangle,) = np.flatnonzero(mesh.material == painted)
    assert np.array_equal(mesh.uv[mesh.faces[triangle]], mesh.corners[triangle, :, :2])
    assert mesh.normals is None
    assert mesh.colors is None


@pytest.mark.parametrize(
    ("kd", "color"),
    [
        ("Kd 1 0 0.5 # red", (255, 0, 128)),
        ("Kd 0.2", (51, 51, 51)),  # green and blue are as red where they do not stand there
        ("Kd 0 0 0", (0, 0, 0)),
        ("Kd 2 -1 0", (255, 0, 0)),
        ("kd 1 1 0\nKa spectral x\nNs 1 2 3\nKs 1", (255, 255, 0)),
        ("Kd 0.4 0.4 0.4", (102, 102, 102)),
        ("Kd a b c", (188, 188, 188)),
        ("Kd nan 1 1", (188, 188, 188)),
        ("illum 2", (188, 188, 188)),
    ],
)
def test_forms_of_kd(tmp_path, kd, color):
    mtl = MATERIALS.replace("Kd 0.5 0.25 0", kd)
    assert color in by_color(load_mesh(square(tmp_path, mtl=mtl)))


PICTURES = {
    "grey": (Image.fromarray(TEXTURE[..., 0]), np.repeat(TEXTURE[..., :1], 3, axis=2)),
    "alpha": (Image.fromarray(np.concatenate([TEXTURE, TEXTURE[..., :1]], axis=2)), TEXTURE),
    "grey and alpha": (Image.fromarray(TEXTURE[..., :2], "LA"), np.repeat(TEXTURE[..., :1], 3, axis=2)),
    "one bit": (Image.fromarray(TEXTURE[..., 0] > 99), np.repeat((TEXTURE[..., :1] > 99) * np.uint8(255), 3, axis=2)),
    "sixteen bits": (Image.fromarray(TEXTURE[..., 0] * np.uint16(257)), np.repeat(TEXTURE[..., :1], 3, axis=2)),
}


@pytest.mark.parametrize("kind", [*PICTURES, "palette", "palette and alpha"])
@pytest.mark.filterwarnings("ignore:'mode' parameter is deprecated:DeprecationWarning")
def test_textures_become_rgb(tmp_path, kind):
    if kind in PICTURES:
        picture, expected = PICTURES[kind]
    else:
        expected = TEXTURE // 128 * 255
        picture = Image.fromarray(expected).convert("P", palette=Image.Palette.ADAPTIVE, colors=8)
        if "alpha" in kind:
            picture.info["transparency"] = bytes(range(8))
    path = square(tmp_path, picture=None)
    picture.save(tmp_path / "square.png")
    textures = [one.texture for one in load_mesh(path).materials if one.texture is not None]
    assert np.array_equal(textures[0], expected)


@pytest.mark.parametrize(
    ("picture", "content", "message"),
    [
        ("gone.png", None, "'gone.png' does not exist"),
        ("../secret.png", None, "points outside the folder of the model"),
        ("/etc/passwd", None, "points outside the folder of the model"),
        ("C:\\secret.png", None, "points outside the folder of the model"),
        ("damaged.png", b"\x89PNG\r\n\x1a\n", "not a readable image"),
        ("text.png", b"text", "not a readable image"),
        ("cut.png", "cut", "not a readable image"),
        (".", None, "points outside the folder of the model"),
    ],
)
def test_textures_that_cannot_be_had_leave_the_color(tmp_path, caplog, picture, content, message):
    Image.fromarray(TEXTURE).save(tmp_path / "secret.png")
    folder = tmp_path / "model"
    path = square(folder, mtl=MATERIALS.replace("square.png", picture))
    if content is not None:
        whole = (folder / "square.png").read_bytes()
        (folder / picture).write_bytes(whole[: len(whole) // 2] if content == "cut" else content)
    with caplog.at_level(logging.WARNING, "setsup"):
        mesh = load_mesh(path)
    assert (26, 26, 26) in by_color(mesh)  # Kd 0.1
    assert all(one.texture is None for one in mesh.materials)
    assert mesh.uv is None
    (record,) = caplog.records
    assert message in record.message
    assert "square.obj" in record.message
    assert "object at 0x" not in record.message


def test_a_gigantic_texture_is_not_decoded(tmp_path, caplog):
    path = square(tmp_path, picture=None)
    Image.new("1", (9_000, 9_000)).save(tmp_path / "square.png")
    with caplog.at_level(logging.WARNING, "setsup"):
        assert all(one.texture is None for one in load_mesh(path).materials)
    assert "9000 × 9000 pixels" in caplog.text


def test_a_folder_above_may_be_named(tmp_path, caplog):
    path = square(tmp_path / "model", mtl=MATERIALS.replace("square.png", "..\\images\\a 1.png"), picture=None)
    (tmp_path / "images").mkdir()
    Image.fromarray(TEXTURE).save(tmp_path / "images" / "a 1.png")
    assert any(one.texture is not None for one in load_mesh(path, top=tmp_path).materials)
    assert caplog.text == ""
    assert not any(one.texture is not None for one in load_mesh(str(path)).materials)
    assert (
        "points outside the folder of the model, so it was not followed; pass top=, a folder that contains both"
        in caplog.text
    )
    with pytest.raises(DataError, match="the folder that is searched for its textures"):
        load_mesh(path, top=tmp_path / "images")


def test_links_are_followed(tmp_path):
    """As stores of models keep them: the file is a link, and so is its texture."""
    square(tmp_path / "store")
    (tmp_path / "model").mkdir()
    for name in ("square.obj", "square.mtl", "square.png"):
        (tmp_path / "model" / name).symlink_to(tmp_path / "store" / name)
    assert load_mesh(tmp_path / "model" / "square.obj").digest == load_mesh(tmp_path / "store" / "square.obj").digest


def test_a_missing_material_library_is_named(tmp_path, caplog):
    path = square(tmp_path)
    (tmp_path / "square.mtl").unlink()
    mesh = load_mesh(path)
    assert set(by_color(mesh)) == {(188, 188, 188)}
    assert "'square.mtl' does not exist" in caplog.text


def test_nothing_is_grey():
    mesh = mesh_from_trimesh(trimesh.creation.box())
    assert [one.color for one in mesh.materials] == [(188, 188, 188)]
    assert (mesh.colors, mesh.uv, mesh.normals, mesh.material) == (None,) * 4


def test_equal_materials_are_one(tmp_path):
    part = trimesh.load_scene(square(tmp_path), process=False)
    scene = trimesh.Scene()
    for number in range(5):
        for geometry in part.geometry.values():
            matrix = np.eye(4)
            matrix[2, 3] = number
            scene.add_geometry(geometry, transform=matrix)
    mesh = mesh_from_trimesh(scene)
    assert len(mesh.materials) == 2
    assert len(mesh.faces) == 10


# -- glTF --------------------------------------------------------------------------------------------------------------


def glb(part):
    return trimesh.load_scene(trimesh.util.wrap_as_stream(part.export(file_type="glb")), file_type="glb", process=False)


def test_base_colors_of_gltf_are_linear_light():
    part = trimesh.creation.box()
    uv = DICE.random((8, 2))
    material = trimesh.visual.material.PBRMaterial(
        baseColorFactor=[1.0, 0.5, 0.0, 1.0], baseColorTexture=Image.fromarray(TEXTURE)
    )
    part.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    mesh = mesh_from_trimesh(glb(part))
    assert mesh.materials[0].color == (255, 188, 0)  # half of the light
    assert np.array_equal(mesh.materials[0].texture, TEXTURE)
    assert np.allclose(mesh.uv, uv, atol=1e-6)  # their origin is turned from the top of the picture to its bottom
    part.visual = trimesh.visual.TextureVisuals(uv=uv, material=trimesh.visual.material.PBRMaterial())
    assert mesh_from_trimesh(part).materials[0].color == (255, 255, 255)


def test_vertex_colors_of_gltf_are_linear_light(tmp_path):
    part = trimesh.creation.box()
    part.visual.vertex_colors = [128, 0, 255, 255]
    assert set(map(tuple, mesh_from_trimesh(part).colors)) == {(128, 0, 255)}
    (tmp_path / "a.glb").write_bytes(part.export(file_type="glb"))
    mesh = load_mesh(tmp_path / "a.glb")
    assert set(map(tuple, mesh.colors)) == {(188, 0, 255)}
    assert mesh.materials[0].color == (255, 255, 255)


def test_gltf_with_files_beside_it(tmp_path, caplog):
    part = trimesh.creation.box()
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=Image.fromarray(TEXTURE))
    part.visual = trimesh.visual.TextureVisuals(uv=DICE.random((8, 2)), material=material)
    content = trimesh.exchange.gltf.export_gltf(trimesh.Scene(part))
    tree = json.loads(content.pop("model.gltf"))
    (view,) = (image.pop("bufferView") for image in tree["images"])
    picture = content[tree["buffers"][tree["bufferViews"][view]["buffer"]]["uri"]]
    tree["images"][0]["uri"] = "my%20picture.png"
    (tmp_path / "model.gltf").write_text(json.dumps(tree))
    for name, own in content.items():
        (tmp_path / name).write_bytes(own)
    Image.fromarray(TEXTURE).save(tmp_path / "my picture.png")
    assert len(picture) > 8
    mesh = load_mesh(tmp_path / "model.gltf")
    assert np.array_equal(mesh.materials[0].texture, TEXTURE)
    assert caplog.text == ""
    (tmp_path / "my picture.png").write_bytes(b"")
    assert load_mesh(tmp_path / "model.gltf").materials[0].texture is None
    assert "'my%20picture.png' is not a readable image" in caplog.text
    tree["buffers"][0]["uri"] = "../" + tree["buffers"][0]["uri"]
    (tmp_path / "model.gltf").write_text(json.dumps(tree))
    with pytest.raises(DataError, match=r"model\.gltf cannot be read"):
        load_mesh(tmp_path / "model.gltf")


# -- vertices, normals, colours ----------------------------------------------------------------------------------------


def test_geometries_are_joined_where_they_stand():
    scene = trimesh.Scene()
    first, second = trimesh.creation.box((1, 2, 3)), ball()
    matrices = []
    for number, part in enumerate((first, second, first)):
        matrix = np.eye(4)
        matrix[:3, :3] = Rotation.random(rng=number).as_matrix() * [1, 2, 0.5]
        matrix[:3, 3] = number, 5, -number
        scene.add_geometry(part, transform=matrix)
        matrices.append((part, matrix))
    mesh = mesh_from_trimesh(scene)
    expected = [
        trimesh.transform_points(part.triangles.reshape(-1, 3), matrix).reshape(-1, 3, 3) for part, matrix in matrices
    ]
    assert np.allclose(mesh.corners, np.concatenate(expected))
    assert np.array_equal(mesh.colors[mesh.faces[12:92]], second.visual.vertex_colors[second.faces][..., :3])
    assert (mesh.colors[mesh.faces[:12]] == 255).all()  # no vertex colours: white, times the material's
    assert [one.color for one in mesh.materials] == [(188, 188, 188), (255, 255, 255)]
    assert np.array_equal(mesh.material, np.repeat([0, 1, 0], [12, 80, 12]))


def test_mirrored_geometries_keep_their_outside_outside():
    part = ball()
    part.vertex_normals = part.vertices
    scene = trimesh.Scene()
    scene.add_geometry(part, transform=np.diag([-1.0, 2, 3, 1]))
    mesh = mesh_from_trimesh(scene)
    assert (np.einsum("fi,fi->f", normals_of(mesh.corners), mesh.corners.mean(axis=1)) > 0).all()
    # normals of an ellipsoid: the gradient of x² + y²/4 + z²/9
    gradient = mesh.vertices / [1, 4, 9]
    gradient /= np.linalg.norm(gradient, axis=1, keepdims=True)
    found = mesh.normals / np.linalg.norm(mesh.normals, axis=1, keepdims=True)
    assert np.allclose(found, gradient, atol=1e-6)


def test_normals_are_kept_only_where_the_file_has_some(tmp_path):
    part = ball()
    plain, smooth = tmp_path / "plain.ply", tmp_path / "smooth.ply"
    plain.write_bytes(part.export(file_type="ply", vertex_normal=False))
    assert load_mesh(plain).normals is None
    given = DICE.normal(size=part.vertices.shape)
    given /= np.linalg.norm(given, axis=1, keepdims=True)
    part.vertex_normals = given
    smooth.write_bytes(part.export(file_type="ply", vertex_normal=True))
    assert np.allclose(load_mesh(smooth).normals, given, atol=1e-6)
    assert np.allclose(mesh_from_trimesh(part).normals, given, atol=1e-6)


def test_normals_of_an_obj_file(tmp_path):
    lines = SQUARE.replace("usemtl plain", "vn 0 0 2\nvn 1 0 1\nusemtl plain")
    lines = lines.replace("f 1/1 2/2 3/3", "f 1/1/1 2/2/1 3/3/2").replace("f 1/1 3/3 4/4", "f 1/1/1 3/3/2 4/4/1")
    mesh = load_mesh(square(tmp_path, obj=lines))
    leaning = (mesh.vertices == [1, 1, 0]).all(axis=1)
    assert leaning.any()
    assert np.allclose(mesh.normals[leaning], np.array([1, 0, 1]) / np.sqrt(2), atol=1e-6)
    assert np.allclose(mesh.normals[~leaning], [0, 0, 1])


def test_flat_parts_beside_smooth_ones_stay_flat():
    smooth, flat = ball(), trimesh.creation.box()
    smooth.vertex_normals = smooth.vertices
    mesh = mesh_from_trimesh(trimesh.Scene([smooth, flat]))
    corners = mesh.normals[mesh.faces[80:]]
    assert np.allclose(corners, normals_of(mesh.corners[80:])[:, None])
    assert np.allclose(mesh.normals[mesh.faces[:80]], mesh.corners[:80], atol=1e-6)


def test_void_normals_are_those_of_the_triangles_around():
    part = trimesh.creation.icosphere(subdivisions=2)
    given = part.vertices.copy()
    given[[0, 7]] = 0
    given[9] = np.nan
    part.vertex_normals = given
    part.vertices = np.concatenate([part.vertices, [[9, 9, 9]]])  # a vertex without a triangle
    part.vertex_normals = np.concatenate([given, [[0, 0, 0]]])
    mesh = mesh_from_trimesh(part)
    assert np.allclose(mesh.normals[:-1], part.vertices[:-1], atol=0.1)
    assert mesh.normals[-1].tolist() == [0, 0, 1]


def test_face_colors_are_sharp():
    part = trimesh.creation.box()
    colors = DICE.integers(0, 256, (12, 4), np.uint8)
    part.visual.face_colors = colors
    mesh = mesh_from_trimesh(part)
    assert np.array_equal(mesh.corners, part.triangles)
    assert np.array_equal(mesh.colors[mesh.faces], np.repeat(colors[:, None, :3], 3, axis=1))
    assert mesh.materials[0].color == (255, 255, 255)


def test_scale(tmp_path):
    path = square(tmp_path)
    assert np.allclose(load_mesh(path, scale=0.001).vertices, load_mesh(path).vertices / 1000, rtol=1e-15)
    far = SQUARE.replace("v 1 1 0", "v 1 50000000 0")
    assert load_mesh(square(tmp_path, obj=far), scale=0.001).bounds[1, 1] == 50_000
    for scale in (0, -1, float("nan"), float("inf")):
        with pytest.raises(SetsupError, match=r"scale must be a positive number|scale of load_mesh must be a number"):
            load_mesh(path, scale=scale)


# -- bad files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.obj", SQUARE.replace("v 1 1 0", "v 1 nan 0"), "finite"),
        ("a.obj", SQUARE.replace("v 1 1 0", "v 1 5e7 0"), "within 1,000,000 m"),
        ("a.obj", SQUARE.replace("v 1 1 0", "v 1 1e999 0"), "finite"),
        ("a.obj", SQUARE.replace("3/3 4/4", "3/3 5/4"), "refers to vertex 5"),
        ("a.obj", SQUARE.replace("f", "#"), "no faces"),
        ("a.obj", "", "not an OBJ file"),
        ("a.ply", b"ply\n", "has no end_header .*; export or copy it again"),
        ("a.ply", ball().export(file_type="ply")[:-1], "ends before the last of its 80 rows of face"),
        ("a.ply", trimesh.PointCloud(np.eye(3)).export(file_type="ply"), "no triangles"),
        (
            "a.ply",
            trimesh.exchange.ply.export_ply(ball(), encoding="ascii")[:-200],
            "ends before the last of its 80 rows of face|more than it can contain; export or copy it again",
        ),
        (
            "a.off",
            ball().export(file_type="off")[:-200],
            "face 60 declares b.3. corners, but has 2 numbers; export or copy it again",
        ),
        ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n", "refer to vertices 0 to 7, but it has 3"),
        (
            "a.off",
            "OFF\n3 1 0\n0 0 0\n1 0 nan\n0 1 0\n3 0 1 2\n",
            "vertex 1 has a coordinate that is not finite",
        ),
        ("a.stl", b"", "a.stl"),
        ("a.stl", ball().export(file_type="stl")[:-1], "a.stl"),
        ("a.glb", ball().export(file_type="glb")[:-9], "cannot be read as a mesh .*; export or copy it again"),
        ("a.gltf", "{}", "a.gltf"),
        ("a.txt", "text", r"unsupported format .*obj.*; convert it, or unpack it"),
        ("a.zip", b"PK", "unpack it"),
        ("a", "text", "unsupported format"),
    ],
)
def test_what_is_wrong_is_said_with_the_name_of_the_file(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message) as error:
        load_mesh(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"mesh file .*gone\.obj does not exist"):
        load_mesh(tmp_path / "gone.obj")
    (tmp_path / "folder.obj").mkdir()
    with pytest.raises(DataError, match=r"folder\.obj is a folder; pass the mesh files in it"):
        load_mesh(tmp_path / "folder.obj")


def test_the_extra_is_named(tmp_path, monkeypatch):
    path = tmp_path / "ball.stl"
    path.write_bytes(ball().export(file_type="stl"))
    monkeypatch.setitem(sys.modules, "trimesh", None)
    assert len(load_mesh(square(tmp_path)).faces) == 2  # needs none
    with pytest.raises(DataError, match=r"pip install '\.\[meshes\]' in setsup's folder"):
        load_mesh(path)


@pytest.mark.parametrize("found", [None, "mesh.obj", trimesh.PointCloud(np.eye(3)), trimesh.Scene()])
def test_what_has_no_triangles_is_refused(found):
    with pytest.raises(SetsupError, match=r"must be a trimesh|no triangles"):
        mesh_from_trimesh(found)


def test_what_trimesh_bears_and_a_mesh_does_not():
    with pytest.raises(SetsupError, match="refer to vertices 0 to 9, but there are 3"):
        mesh_from_trimesh(trimesh.Trimesh(np.eye(3), [[0, 1, 9]], process=False))
    with pytest.raises(SetsupError, match=r"row 2 is .*nan"):
        mesh_from_trimesh(trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, np.nan, 0]], [[0, 1, 2]], process=False))
    with pytest.raises(SetsupError, match="within 1,000,000 m"):
        mesh_from_trimesh(trimesh.Trimesh(np.eye(3) * 1e200, [[0, 1, 2]], process=False))


def test_degenerate_and_doubled_triangles_are_kept(tmp_path):
    """Numbers of triangles stay those of the file."""
    vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    faces = [[0, 1, 2], [0, 1, 1], [0, 1, 2], [2, 1, 0], [0, 1, 3]]
    part = trimesh.Trimesh(vertices, faces, process=False)
    for kind in ("ply", "off"):
        path = tmp_path / f"a.{kind}"
        content = part.export(file_type=kind)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert load_mesh(path).faces.tolist() == faces


def test_polygons_are_cut_up(tmp_path):
    path = tmp_path / "a.obj"
    path.write_text("v 0 0 0\nv 2 0 0\nv 3 1 0\nv 1 2 0\nv 0 1 0\nf 1 2 3 4 5\n")
    corners = load_mesh(path).corners
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum() / 2
    assert len(corners) == 3
    assert area == pytest.approx(4)  # by the shoelace formula


def test_nothing_of_a_damaged_file_lands_on_the_terminal(tmp_path, capfd):
    content = trimesh.exchange.stl.export_stl_ascii(ball()).replace("vertex", "vortex", 1)
    (tmp_path / "a.stl").write_text(content)
    with pytest.raises(DataError):
        load_mesh(tmp_path / "a.stl")
    assert capfd.readouterr() == ("", "")


HEALTHY = {
    "ply": lambda: ball().export(file_type="ply"),
    "text.ply": lambda: trimesh.exchange.ply.export_ply(ball(), encoding="ascii"),
    "off": lambda: ball().export(file_type="off").encode(),
    "stl": lambda: ball().export(file_type="stl"),
    "glb": lambda: ball().export(file_type="glb"),
    "obj": lambda: SQUARE.encode(),
    "mtl": lambda: MATERIALS.encode(),
}


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("kind", HEALTHY)
def test_fuzzing(tmp_path, kind):
    mesh = square(tmp_path)
    path = tmp_path / ("square.mtl" if kind == "mtl" else f"square.{kind}")

    def read(content):
        path.write_bytes(content)
        load_mesh(mesh if kind == "mtl" else path)

    refused = survives(HEALTHY[kind](), read, 60, head=600)
    assert refused > 15 or kind == "mtl"


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((4000, 5000, 2700), ["the room measures 4000 × 5000 × 2700 m", "0.01 … 100 m", "scale of 0.001"]),
        ((0.004, 0.005, 0.0027), ["0.004 × 0.005 × 0.0027 m", "1000"]),
        ((4, 5, 2.7), []),
        ((100, 1, 1), []),
    ],
)
def test_a_mistaken_unit_is_named_with_the_size(caplog, size, words):
    for thing in (box(size), Scene((Placement(box()), Placement(box(), scale=size)))):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "setsup"):
            check_size(thing, "the room")
        if words and (isinstance(thing, Mesh) or min(size) > 1):
            (record,) = caplog.records
            assert all(word in record.message for word in words)
        else:
            assert not caplog.records


def test_expected_sizes_may_be_given_and_an_empty_scene_has_none(caplog):
    check_size(box((0.5, 0.5, 0.5)), "the room", (1, 50))
    assert "1 … 50 m" in caplog.text
    caplog.clear()
    check_size(Scene(), "nothing")
    assert not caplog.records


# -- genuine files -----------------------------------------------------------------------------------------------------


@pytest.mark.long("renderings")
def test_the_genuine_cow(genuine, caplog):
    path = genuine / "meshes" / "pytorch3d" / "cow.obj"
    mesh = load_mesh(path)
    assert caplog.text == ""
    lines = path.read_text().splitlines()
    vertices = np.array([line.split()[1:] for line in lines if line.startswith("v ")], float)
    faces = [[word.split("/") for word in line.split()[1:]] for line in lines if line.startswith("f ")]
    assert len(mesh.faces) == len(faces) == 5856
    where = np.array([[int(word[0]) - 1 for word in face] for face in faces])
    assert np.allclose(mesh.corners, vertices[where])
    coordinates = np.array([line.split()[1:3] for line in lines if line.startswith("vt ")], float)
    uv = coordinates[[[int(word[1]) - 1 for word in face] for face in faces]]
    assert np.allclose(mesh.uv[mesh.faces], uv, atol=1e-6)
    with Image.open(path.with_name("cow_texture.png")) as picture:
        assert np.array_equal(mesh.materials[0].texture, np.asarray(picture.convert("RGB")))
    # the convention of texture coordinates is trimesh's: it looks up the same colours
    expected = trimesh.load_mesh(path, process=False).visual.material.to_color(mesh.uv)[:, :3]
    rows = np.round((1 - mesh.uv[:, 1]) * 1023).astype(int) % 1024
    columns = np.round(mesh.uv[:, 0] * 1023).astype(int) % 1024
    found = mesh.materials[0].texture[rows, columns]
    assert (np.abs(found.astype(int) - expected).max(axis=1) < 30).mean() > 0.97


def test_the_genuine_chair_with_its_textures(genuine, caplog):
    from setsup.datasets.adapters.meshes import load_obj
    from setsup.files.archives.members import open_members

    (path,) = (genuine / "keypointnet" / "models").glob("*/*/models/model_normalized.obj")
    mesh = load_mesh(path, top=path.parents[1])
    members, top = open_members(genuine), path.parents[1].relative_to(genuine).as_posix()
    other = mesh_from_trimesh(load_obj(members, members.place(f"{top}/models/model_normalized.obj"), top))
    assert mesh.digest == other.digest
    assert caplog.text == ""
    assert len(mesh.faces) == 3304
    assert len(mesh.materials) == 4  # the fifth, black, is of lines only
    shapes = sorted(one.texture.shape for one in mesh.materials)
    expected = []
    for number in range(4):
        with Image.open(path.parents[1] / "images" / f"texture{number}.jpg") as picture:
            expected.append((picture.height, picture.width, 3))
    assert shapes == sorted(expected)
    assert np.allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-5)
    ply = load_mesh(path.with_suffix(".ply"))
    assert np.allclose(mesh.bounds, ply.bounds, atol=1e-6)
    assert ply.colors is not None
    assert load_mesh(path).materials[0].texture is None
    assert caplog.text.count("points outside the folder of the model") == 4


def test_the_genuine_bottle_with_and_without_its_texture(genuine, tmp_path, caplog):
    mesh = load_mesh(genuine / "meshes" / "trimesh" / "fuze.obj")
    assert mesh.materials[0].texture.shape == (1024, 1024, 3)
    assert mesh.normals is not None
    assert caplog.text == ""
    for name in ("fuze.obj", "fuze.obj.mtl"):
        (tmp_path / name).write_bytes((genuine / "meshes" / "trimesh" / name).read_bytes())
    bare = load_mesh(tmp_path / "fuze.obj")
    assert bare.materials[0].texture is None
    assert np.array_equal(bare.corners, mesh.corners)
    assert "'fuze uv.jpg' does not exist" in caplog.text


@pytest.mark.parametrize(
    ("name", "faces", "kept"),
    [
        ("bunny.ply", 16_301, {}),
        ("cycloidal.ply", 43_368, {"colors"}),
        ("suzanne.ply", 968, {"normals"}),
        ("teapot.stl", 894, {}),
        ("ballA.off", 3796, {}),
        ("rabbit.obj", 1252, {"normals"}),
    ],
)
def test_genuine_meshes(genuine, caplog, name, faces, kept):
    path = genuine / "meshes" / "trimesh" / name
    mesh = load_mesh(path)
    expected = trimesh.load_mesh(path, process=False)
    assert len(mesh.faces) == faces
    # of a quad's second triangle trimesh names another corner first, and it sorts by the number of corners
    own, others = (by_corners(each) for each in (mesh.corners, expected.triangles))
    assert (own - others).total() == {"suzanne.ply": 4}.get(name, 0)  # two quads that are not convex
    sides = (np.diff(each, axis=1) for each in (mesh.corners, expected.triangles))
    area, fanned = (np.linalg.norm(np.cross(each[:, 0], each[:, 1]), axis=1).sum() for each in sides)
    assert (area < fanned * (1 - 1e-9)) == (name == "suzanne.ply")
    assert {field for field in ("normals", "uv", "colors") if getattr(mesh, field) is not None} == set(kept)
    assert caplog.text == ""
    color = {"rabbit.obj": (255, 0, 255), "cycloidal.ply": (255, 255, 255)}.get(name, (188, 188, 188))
    assert mesh.materials[0].color == color
    check_size(mesh, name)
    assert caplog.text == ""


def test_a_packed_mesh_must_be_unpacked(genuine):
    with pytest.raises(DataError, match=r"rock\.obj\.bz2 has an unsupported format \(supported: .*unpack it"):
        load_mesh(genuine / "meshes" / "trimesh" / "rock.obj.bz2")


# -- transparency ------------------------------------------------------------------------------------------------------


@pytest.fixture
def warned(caplog):
    """What is said once may be said again."""
    warn_once.cache_clear()
    caplog.set_level(logging.WARNING, "setsup")
    yield caplog
    warn_once.cache_clear()


def leaf(folder, material, picture=None):
    """A square of glTF with a material of its own, and a picture beside it."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], "<f4")
    uv, faces = corners[:, :2].astype("<f4"), np.array([0, 1, 2, 0, 2, 3], "<u2")
    parts = [corners.tobytes(), uv.tobytes(), faces.tobytes()]
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    if picture is not None:
        Image.fromarray(picture).save(folder / "leaf.png")
        material = {**material, "pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}
    tree = {
        "asset": {"version": "2.0"},
        "buffers": [{"uri": "leaf.bin", "byteLength": starts[-1]}],
        "bufferViews": [
            {"buffer": 0, "byteOffset": at, "byteLength": len(part)} for at, part in zip(starts, parts, strict=False)
        ],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5126, "count": 4, "type": "VEC2"},
            {"bufferView": 2, "componentType": 5123, "count": 6, "type": "SCALAR"},
        ],
        "images": [{"uri": "leaf.png"}],
        "textures": [{"source": 0}],
        "materials": [material],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "indices": 2, "material": 0}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
    }
    if picture is None:
        del tree["images"], tree["textures"]
    (folder / "leaf.bin").write_bytes(b"".join(parts))
    (folder / "leaf.gltf").write_text(json.dumps(tree))
    return load_mesh(folder / "leaf.gltf")


ALPHA = np.arange(32, dtype=np.uint8).reshape(4, 8) * 8


@pytest.mark.parametrize(("told", "cutoff"), [({}, 0.5), ({"alphaCutoff": 0.25}, 0.25), ({"alphaCutoff": 0.9}, 0.9)])
def test_masks_of_gltf_are_holes(tmp_path, warned, told, cutoff):
    colors = DICE.integers(0, 256, (4, 8, 3), np.uint8)
    mesh = leaf(tmp_path, {"alphaMode": "MASK", **told}, np.dstack([colors, ALPHA]))
    (material,) = mesh.materials
    assert np.array_equal(material.texture, colors)
    assert np.array_equal(material.mask, ALPHA / 255 >= cutoff)
    assert warned.text == ""
    # glTF counts from the upper left texel, which the square has at its origin
    triangle, _ = Rays(Scene((Placement(mesh),))).hit((0.06, 0.1, 1), [[0, 0, -1], [0, 0.8, -1]])
    assert (triangle >= 0).tolist() == [bool(material.mask[0, 0]), bool(material.mask[3, 0])]


def test_masks_without_a_image_or_an_alpha(tmp_path, warned):
    def told(alpha):
        return {"alphaMode": "MASK", "pbrMetallicRoughness": {"baseColorFactor": [1, 1, 1, alpha]}}

    assert leaf(tmp_path, told(0.7)).materials[0].mask is None
    gone = leaf(tmp_path, told(0.3))
    assert Rays(Scene((Placement(gone),))).hit((0.5, 0.4, 1), [[0, 0, -1]])[0].tolist() == [-1]
    assert leaf(tmp_path, {"alphaMode": "MASK"}, TEXTURE).materials[0].mask is None
    for mode in ("OPAQUE", None):
        mesh = leaf(tmp_path, {} if mode is None else {"alphaMode": mode}, np.dstack([TEXTURE, TEXTURE[..., 0]]))
        assert mesh.materials[0].mask is None
    assert warned.text == ""


def test_palettes_with_transparent_entries_have_holes(tmp_path):
    indexed = Image.fromarray((np.arange(12) % 3).reshape(3, 4).astype(np.uint8), "P")
    indexed.putpalette([0, 0, 0, 250, 0, 0, 0, 0, 250])
    leaf(tmp_path, {"alphaMode": "MASK"}, TEXTURE)
    indexed.save(tmp_path / "leaf.png", transparency=1)
    (material,) = load_mesh(tmp_path / "leaf.gltf").materials
    assert np.array_equal(material.mask, np.arange(12).reshape(3, 4) % 3 != 1)


@pytest.mark.parametrize(
    ("material", "words"),
    [
        ({"alphaMode": "BLEND"}, "alpha mode BLEND is not supported"),
        ({"emissiveFactor": [0, 0.5, 0]}, "emission of glTF materials is not rendered"),
    ],
)
def test_what_is_not_rendered_is_said_once(tmp_path, warned, material, words):
    for _ in range(3):
        mesh = leaf(tmp_path, material)
    assert [record.message[: len(words)] for record in warned.records] == [words]
    assert mesh.materials[0].mask is None
    warned.clear()
    leaf(tmp_path, {"emissiveFactor": [0, 0, 0]})
    assert warned.text == ""


@pytest.mark.parametrize(("line", "said"), [("d 0.4", 1), ("map_d square.png", 1), ("d 1.0", 0), ("d", 0), ("d x", 0)])
def test_transparency_of_obj_materials_is_not_rendered_and_said_once(tmp_path, warned, line, said):
    path = square(tmp_path, mtl=MATERIALS.replace("Kd 0.5", f"{line}\nKd 0.5"))
    for _ in range(2):
        load_mesh(path)
    assert warned.text.count("transparency of OBJ materials") == said
