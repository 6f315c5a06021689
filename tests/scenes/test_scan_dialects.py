"""PLY and OFF files as other programs write them."""

import logging
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from setsup.errors import DataError
from setsup.scenes import load_mesh
from tests.fuzzing import survives

CASES = Path(__file__).parent / "cases" / "ply-off"
POINTS = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (2, 0, 0)]


def area(mesh):
    sides = np.diff(mesh.corners, axis=1)
    return np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1).sum() / 2


def colors(mesh):
    return mesh.colors[mesh.faces].tolist()


# -- the cases of the issue --------------------------------------------------------------------------------------------


def test_quads_and_triangles_in_binary():
    mesh = load_mesh(CASES / "mix.ply")
    assert len(mesh.faces) == 3
    assert area(mesh) == pytest.approx(1.5)


def test_colors_of_sixteen_bits():
    assert colors(load_mesh(CASES / "u16col.ply")) == [[[255, 0, 0], [0, 255, 0], [0, 0, 128]]]


def test_colors_of_off_files():
    assert colors(load_mesh(CASES / "facecol.off")) == [[[255, 0, 0]] * 3, [[0, 0, 255]] * 3]
    assert colors(load_mesh(CASES / "coff.off")) == [[[255, 0, 0], [0, 255, 0], [0, 0, 255]]]


def test_strips():
    mesh = load_mesh(CASES / "strips.ply")
    assert len(mesh.faces) == 2
    assert area(mesh) == pytest.approx(1)


# -- their kind --------------------------------------------------------------------------------------------------------


def ply(folder, *, vertex=(), face=(), rows=POINTS, faces=("3 0 1 2", "4 0 1 2 3"), kind="face", more=""):
    """An ascii file; ``vertex`` and ``face`` are further properties."""
    lines = ["ply", "format ascii 1.0", *([more] if more else []), f"element vertex {len(rows)}"]
    lines += [*(f"property float {axis}" for axis in "xyz"), *(f"property {one}" for one in vertex)]
    lines += [f"element {kind} {len(faces)}", "property list uchar int vertex_indices"]
    lines += [*(f"property {one}" for one in face), "end_header"]
    lines += [" ".join(map(str, row)) for row in rows] + list(faces)
    (folder / "a.ply").write_text("\n".join(lines) + "\n")
    return folder / "a.ply"


@pytest.mark.parametrize(
    ("kind", "values"),
    [("uchar", (255, 51, 0)), ("float", (1.0, 0.2, 0.0)), ("int", (255, 51, 0)), ("ushort", (65535, 13107, 0))],
)
def test_colors_of_every_type(tmp_path, kind, values):
    vertex = [f"{kind} {name}" for name in ("red", "green", "blue")]
    mesh = load_mesh(ply(tmp_path, vertex=vertex, rows=[(*point, *values) for point in POINTS]))
    assert np.unique(mesh.colors, axis=0).tolist() == [[255, 51, 0]]
    face = [f"{kind} {name}" for name in ("red", "green", "blue")]
    tail = " ".join(map(str, values))
    mesh = load_mesh(ply(tmp_path, face=face, faces=[f"3 0 1 4 {tail}", f"4 0 1 2 3 {tail}"]))
    assert np.unique(mesh.colors, axis=0).tolist() == [[255, 51, 0]]
    assert len(mesh.faces) == 3


def test_colors_of_faces_are_those_of_all_their_triangles(tmp_path):
    face = [f"uchar {name}" for name in ("red", "green", "blue")]
    mesh = load_mesh(ply(tmp_path, face=face, faces=["4 0 1 2 3 9 8 7", "3 1 4 2 6 5 4"]))
    assert colors(mesh) == [[[9, 8, 7]] * 3] * 2 + [[[6, 5, 4]] * 3]


@pytest.mark.parametrize("of", ["vertices", "faces"])
def test_textures(tmp_path, of, caplog):
    caplog.set_level(logging.WARNING, "setsup")
    texture = np.random.default_rng(0).integers(0, 256, (4, 4, 3)).astype(np.uint8)
    Image.fromarray(texture).save(tmp_path / "a b.png")
    more = "comment TextureFile a b.png"
    if of == "vertices":
        path = ply(tmp_path, vertex=["float s", "float t"], rows=[(*p, p[0] / 2, p[1]) for p in POINTS], more=more)
    else:
        faces = ["3 0 1 2 6 0 0 .5 0 .5 1", "4 0 1 2 3 8 0 0 .5 0 .5 1 0 1"]
        path = ply(tmp_path, face=["list uchar float texcoord"], faces=faces, more=more)
    mesh = load_mesh(path)
    assert np.array_equal(mesh.materials[0].texture, texture)
    assert np.allclose(mesh.uv[mesh.faces], mesh.corners[:, :, :2] * [0.5, 1])
    assert caplog.text == ""
    (tmp_path / "a b.png").unlink()
    assert load_mesh(path).materials[0].texture is None
    assert "'a b.png' does not exist" in caplog.text


def test_strips_that_end_within_a_list(tmp_path):
    path = ply(tmp_path, kind="tristrips", faces=["9 0 1 3 2 -1 1 4 2 -1", "3 0 1 2"])
    mesh = load_mesh(path)
    assert [sorted(one) for one in mesh.faces.tolist()] == [[0, 1, 3], [1, 2, 3], [1, 2, 4], [0, 1, 2]]
    turn = np.cross(mesh.corners[:, 1] - mesh.corners[:, 0], mesh.corners[:, 2] - mesh.corners[:, 0])[:, 2]
    assert (turn > 0).all()
    path.write_text(path.read_text().replace("9 0 1 3 2 -1", "9 0 1 3 9 -1"))
    with pytest.raises(DataError, match="refers to"):
        load_mesh(path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_concave_and_other_polygons_in_binary(tmp_path, order):
    kind = "little" if order == "<" else "big"
    points = [(0, 0, 0), (2, 1, 0), (0, 2, 0), (0.5, 1, 0), (0, 0, 1)]
    head = f"ply\nformat binary_{kind}_endian 1.0\nelement vertex 5\n" + "".join(f"property float {c}\n" for c in "xyz")
    head += "element face 2\nproperty uchar part\nproperty list uchar uint vertex_index\nproperty uchar red\n"
    head += "property uchar green\nproperty uchar blue\nend_header\n"
    body = b"".join(struct.pack(f"{order}3f", *point) for point in points)
    body += struct.pack(f"{order}BB4I3B", 1, 4, 0, 1, 2, 3, 10, 20, 30) + struct.pack(
        f"{order}BB3I3B", 2, 3, 0, 1, 4, 40, 50, 60
    )
    (tmp_path / "a.ply").write_bytes(head.encode() + body + b"\n")
    mesh = load_mesh(tmp_path / "a.ply")
    assert area(mesh) == pytest.approx(1.5 + np.sqrt(5) / 2)
    assert colors(mesh) == [[[10, 20, 30]] * 3] * 2 + [[[40, 50, 60]] * 3]


def test_headers_of_two_line_ends_and_with_lines_that_are_no_comments(tmp_path):
    path = ply(tmp_path, more="Created by a program, source file: ")
    assert len(load_mesh(path).faces) == 3
    path.write_bytes(path.read_bytes().replace(b"end_header\n", b"end_header\r\n"))
    assert len(load_mesh(path).faces) == 3
    path.write_bytes((CASES / "mix.ply").read_bytes().replace(b"end_header\n", b"end_header\r\n"))
    assert len(load_mesh(path).faces) == 3


def test_normals_of_vertices(tmp_path):
    vertex = [f"float n{axis}" for axis in "xyz"]
    mesh = load_mesh(ply(tmp_path, vertex=vertex, rows=[(*point, 0, 3, 4) for point in POINTS]))
    assert np.allclose(mesh.normals, [0, 0.6, 0.8])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2 0.2 0.4 1.0\n", (51, 102, 255)),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2 51 102 255 128\n", (51, 102, 255)),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2 0 1 1\n", (0, 1, 1)),  # integers are bytes
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2 7\n", None),  # of a color map
        ("OFF\n3 1 0\n0 0 0 51 102 255\n1 0 0 51 102 255\n0 1 0 51 102 255\n3 0 1 2\n", (51, 102, 255)),
        ("CNOFF\n3 1 0\n" + 3 * "0 1 0 0 0 2 0.2 0.4 1.0 1\n" + "3 0 1 2\n", (51, 102, 255)),
        ("STOFF\n3 1 0\n0 0 0 .5 .5\n1 0 0 1 1\n0 1 0 0 0\n3 0 1 2\n", None),
    ],
)  # fmt: skip
def test_forms_of_off(tmp_path, text, expected):
    (tmp_path / "a.off").write_text(text)
    mesh = load_mesh(tmp_path / "a.off")
    assert (None if mesh.colors is None else tuple(mesh.colors[0].tolist())) == expected
    assert (mesh.normals is not None) == ("N" in text)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir()))
def test_fuzzing(tmp_path, name):
    path = tmp_path / name

    def read(content):
        path.write_bytes(content)
        load_mesh(path)

    assert survives((CASES / name).read_bytes(), read, 100, head=400) > 15
