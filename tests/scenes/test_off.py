import numpy as np
import pytest

from setsup.errors import DataError
from setsup.scenes.meshes.formats.off import read_off
from tests.fuzzing import survives
from tests.true_files.toys import toy_mesh


def _off(vertices, polygons, head="OFF\n", tail=""):
    lines = [f"{len(vertices)} {len(polygons)} 0"]
    lines += [" ".join(f"{value:.6f}" for value in vertex) for vertex in vertices]
    lines += [" ".join(map(str, [len(face), *face])) + tail for face in polygons]
    return (head + "\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("tail", ["", " 0.5 0.5 0.5", " 255 0 0 255"])
@pytest.mark.parametrize("head", ["OFF\n", "OFF ", "OFF", "# made by hand\nOFF\n# counts\n\n", "OFF\r\n"])
def test_triangles(tmp_path, head, tail):
    vertices, triangles = toy_mesh(0)
    content = _off(vertices, triangles.tolist(), head, tail)
    if "\r" in head:
        content = content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    (tmp_path / "01.off").write_bytes(content)
    for source in (content, tmp_path / "01.off"):
        mesh = read_off(source, "01.off")
        assert np.allclose(mesh.vertices, vertices, atol=1e-6)
        assert mesh.vertices.dtype == np.float64
        assert mesh.faces.dtype == np.int32
        assert np.array_equal(mesh.faces, triangles)


def test_polygons_become_fans():
    mesh = read_off(_off(np.zeros((5, 3)), [[0, 1, 2, 3, 4], [4, 3, 2]]), "x")
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 3, 4], [4, 3, 2]]
    assert read_off(b"OFF\n1 0 0\n1 2 3", "x").faces.shape == (0, 3)


@pytest.mark.long("large or genuine files")
def test_a_genuine_file_as_trimesh_reads_it(genuine):
    import trimesh

    path = genuine / "meshes" / "trimesh" / "ballA.off"
    mesh, reference = read_off(path, str(path)), trimesh.load(path, process=False)
    assert np.allclose(mesh.vertices, reference.vertices)
    assert np.array_equal(mesh.faces, reference.faces)
    assert survives(path.read_bytes(), lambda content: read_off(content, "x"), rounds=60) > 30


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not an OFF file"),
        (b"ply\nformat ascii 1.0\n", "not an OFF file"),
        (b"4OFF\n1 0 0\n0 0 0 1\n", "four or more dimensions"),
        (b"OFF BINARY\n1 0 0\n0 0 0 1\n", "binary OFF file, which is not supported; convert it to text"),
        (b"OFF\n1 0 0\n0 0 0 1 1\n", "vertex 0 is b'0 0 0 1 1', but must be 3 numbers"),
        (b"COFF\n1 0 0\n0 0 0 x 1 1\n", "vertex 0 is b'0 0 0 x 1 1'"),
        (b"OFF\n2000000000 0 0\n0 0 0\n", "2,000,000,000 vertices and 0 faces, more than its 6 bytes can contain"),
        (b"OFF\n99999999999999999999 1 0\n0 0 0\n", "not an OFF file"),
        (b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", "vertices 0 to 3, but it has 3"),
        (b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 -1\n", "vertices -1 to 1"),
        (b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 0.5\n", "not valid indices"),
        (b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n2 0 1\n\n", "face 0 declares b'2' corners"),
        (b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n4 0 1 2\n", "face 0 declares b'4' corners, but has 3 numbers"),
        (b"OFF\n3 1 0\n0 0 0\n1 0 nan\n0 1 0\n3 0 1 2\n", "vertex 1 has a coordinate that is not finite"),
        (b"OFF\n3 1 0\n0 0 0\n1 0 zero\n0 1 0\n3 0 1 2\n", "vertex 1 is b'1 0 zero', but must be 3 numbers"),
        (b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0      \n\n\n", "ends before face 0 of 1"),
        (
            b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n3 0 1 2\n",
            "contains further data after its 3 vertices and 1 faces",
        ),
    ],
)
def test_bad_files(content, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read_off(content, "CAD/car/01.off")
    assert str(caught.value).startswith("CAD/car/01.off")


def test_missing(tmp_path):
    with pytest.raises(DataError, match=r"no\.off is missing"):
        read_off(tmp_path / "no.off", "no.off")


@pytest.mark.parametrize("tail", ["", " 1 0 0"])
def test_damage(tail):
    vertices, triangles = toy_mesh(1)
    healthy = _off(vertices, triangles.tolist(), tail=tail)
    assert survives(healthy, lambda content: read_off(content, "x"), rounds=150) > 50
