import pytest

from setsup.errors import DataError
from setsup.scenes.meshes.formats.obj import read_obj
from setsup.scenes.meshes.mesh_files import inside
from tests.fuzzing import survives
from tests.true_files.keypointnet import painted_toy
from tests.true_files.shapenet import obj

SQUARE = (
    b"# a square\nmtllib a b.mtl\nv 0 0 0\nv 1 0 0 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvn 0 0 1\nusemtl a\n"
    b"f 1/1/1 2/1/1 3/1/1 4/1/1\n"
)


@pytest.mark.parametrize(
    ("faces", "triangles"),
    [
        (b"f 1 2 3\n", 1),
        (b"f 1//1 2//1 3//1\nf 1 2 3 4", 3),
        (b"f -1 -2 -3\r\nf 1/-1 2/1 3/1 # end\r\n", 2),
        (b"f 1 2 \\\n3 4\n", 2),
        (b"  f 1/1/1 2/1/1 3/1/1\n", 1),
    ],
)
def test_forms_of_faces(faces, triangles):
    found = read_obj(SQUARE[: SQUARE.index(b"f 1")] + faces, "a.obj")
    assert len(found.corners) == triangles
    assert found.libraries == ["a b.mtl"]
    assert found.names == ["a"]


def test_forms_that_count_alike_are_told_apart():
    faces = b"f 1/1 2/1 3/1\nf 1//1 2//1 3//1\nf 1/1/1 2/1/ 3//\nf -2 -1 -4/-1\n"
    found = read_obj(SQUARE[: SQUARE.index(b"f 1")] + faces, "a.obj")
    assert found.corners.tolist() == [
        [[0, 0, -1], [1, 0, -1], [2, 0, -1]],
        [[0, -1, 0], [1, -1, 0], [2, -1, 0]],
        [[0, 0, 0], [1, 0, -1], [2, -1, -1]],
        [[2, -1, -1], [3, -1, -1], [0, 0, -1]],
    ]


BAD = {
    "contains zero bytes": SQUARE + b"\0",
    "not an OBJ file with vertices": b"solid stl\n",
    "has no faces, only points": SQUARE[: SQUARE.index(b"f 1")],
    "has no faces;": SQUARE[: SQUARE.index(b"f 1")] + b"f\n",
    "'v' with fewer than 3 finite numbers": SQUARE.replace(b"v 1 1 0", b"v 1 1"),
    "'v' with fewer than 3 finite": SQUARE.replace(b"v 1 1 0", b"v 1 nan 0"),
    "'vn' with fewer than 3": SQUARE.replace(b"vn 0 0 1", b"vn 0 0 inf"),
    "characters that cannot be part of a number": SQUARE.replace(b"v 1 1 0", b"v 1 x 0"),
    "refers to vertex 5, but only 4 exist": SQUARE.replace(b"4/1/1", b"5/1/1"),
    "refers to vertex 0": SQUARE.replace(b"4/1/1", b"0/1/1"),
    "refers to vertex -5": SQUARE.replace(b"4/1/1", b"-5/1/1"),
    "refers to texture coordinate 2, but only 1 exist": SQUARE.replace(b"4/1/1", b"4/2/1"),
    "refers to normal 9, but only 1 exist": SQUARE.replace(b"4/1/1", b"4/1/9"),
    "fewer than three corners": SQUARE.replace(b"3/1/1 4/1/1", b""),
    "integers": SQUARE.replace(b"4/1/1", b"4.5/1/1"),
    "an unsupported corner of the form": SQUARE.replace(b"4/1/1", b"4/1/1/1"),
    "only lines and points, which cannot be rendered; add faces": b"v 0 0 0\nv 1 0 0\nl 1 2\np 1\n",
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said(message):
    with pytest.raises(DataError, match=f"bad.obj .*{message}"):
        read_obj(BAD[message], "bad.obj")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("../images/texture0.jpg", "s/m/images/texture0.jpg"),
        ("..\\images\\a b#ü.jpg", "s/m/images/a b#ü.jpg"),
        ("-clamp on -o 0 0 0 -s 1 1 x.png", "s/m/models/x.png"),
        ("./x.png ", "s/m/models/x.png"),
        ("../../other/x.png", None),
        ("../../m2/x.png", None),
        ("..", None),
        ("/etc/passwd", None),
        ("C:\\x.png", None),
        ("~/x.png", None),
        ("", None),
    ],
)
def test_paths_stay_in_the_folder_of_the_model(name, path):
    assert inside("s/m/models", name, "s/m") == path


def test_fuzzing():
    content = obj(*painted_toy(0, 1)[:2], "a.mtl").encode()
    assert survives(content, lambda damaged: read_obj(damaged, "a.obj"), 150) > 25
