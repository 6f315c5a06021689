from collections.abc import Callable
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from setsup.errors import DataError, SetsupError
from setsup.scenes import load_mesh
from setsup.scenes.recipes import named_models
from setsup.scenes.recipes.models import identity
from tests.fuzzing import mutations


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["cow.obj"], ["cow"]),
        (["a/cow.obj", "/b/bunny.tar.ply"], ["cow", "bunny.tar"]),
        (["03/1a/models/model.obj", "03/2b/models/model.obj"], ["1a", "2b"]),
        (["03/1a/models/model.obj", "04/1a/models/model.obj"], ["03", "04"]),
        (["03/1a/m/model.obj", "04/2b/m/model.obj", "04/1a/m/model.obj"], ["03/1a", "04/2b", "04/1a"]),
        (["x/a.obj", "x/b/a.obj"], ["x/a", "x/b/a"]),
        (["cow.obj", "cow.ply"], ["cow.obj", "cow.ply"]),
        ([], []),
    ],
)
def test_names(paths: list[str], names: list[str]) -> None:
    assert named_models(paths) == dict(zip(names, map(Path, paths), strict=True))


_PART = st.sampled_from(["a", "b", "c", "model"])


@given(st.lists(st.tuples(_PART, _PART, _PART, st.sampled_from(["a.obj", "b.obj", "a.ply"])), unique=True, max_size=9))
def test_every_file_has_a_name(parts: list[tuple[str, ...]]) -> None:
    paths = [str(PurePosixPath(*part)) for part in parts]
    found = named_models(paths)
    assert [str(path) for path in found.values()] == paths
    assert all(found)


def test_a_file_given_twice() -> None:
    with pytest.raises(SetsupError, match=r"the mesh file a/cow\.obj is given twice"):
        named_models(["a/cow.obj", "b/cow.obj", "a/cow.obj"])
    with pytest.raises(SetsupError, match=r"as a list: \['cow\.obj'\]"):
        named_models("cow.obj")


def _textured(folder: Path) -> Path:
    folder.mkdir()
    (folder / "part.obj").write_text("mtllib part one.mtl\nusemtl wood\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (folder / "part one.mtl").write_text("newmtl wood\nKd 1 1 1\nmap_Kd -s 1 1 1 wood grain.png\n")
    Image.fromarray(np.full((2, 2, 3), 90, np.uint8)).save(folder / "wood grain.png")
    (folder / "other.png").write_bytes(b"not named")
    return folder / "part.obj"


def test_files_count_with_what_they_name(tmp_path: Path) -> None:
    path = _textured(tmp_path / "first")
    before = identity(path)
    assert identity(str(_textured(tmp_path / "second"))) == before
    (path.parent / "other.png").write_bytes(b"changed")
    assert identity(path) == before
    changes: list[Callable[[], object]] = [
        lambda: Image.fromarray(np.full((2, 2, 3), 91, np.uint8)).save(path.parent / "wood grain.png"),
        lambda: (path.parent / "part one.mtl").write_text("newmtl wood\nKd 1 0 0\nmap_Kd wood grain.png\n"),
        lambda: path.write_text(path.read_text() + "v 0 0 9\n"),
        lambda: (path.parent / "wood grain.png").unlink(),
    ]
    found = [before]
    for change in changes:
        change()
        found.append(identity(path))
    assert len(set(found)) == 5


@pytest.mark.parametrize(
    "named", ["images\\my t.png", "images/my%20t.png", "-s 1 1 1 images/my t.png", "images/a  b.png"]
)
def test_textures_count_however_they_are_written(tmp_path: Path, named: str) -> None:
    texture = tmp_path / "images" / ("a  b.png" if "a  b" in named else "my t.png")
    texture.parent.mkdir()
    path = tmp_path / "part.obj"
    path.write_text("mtllib part.mtl\nusemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n")
    (tmp_path / "part.mtl").write_text(f"newmtl a\nmap_Kd {named}\n")
    _differ_with(texture, path)


def test_textures_of_ply_count(tmp_path: Path) -> None:
    path = tmp_path / "part.ply"
    columns = "".join(f"property float {name}\n" for name in "xyzst")
    path.write_text(
        f"ply\nformat ascii 1.0\ncomment TextureFile wood.png\nelement vertex 3\n{columns}element face 1\n"
        "property list uchar int vertex_indices\nend_header\n0 0 0 0 0\n1 0 0 1 0\n0 1 0 0 1\n3 0 1 2\n"
    )
    _differ_with(tmp_path / "wood.png", path)


def _differ_with(texture: Path, path: Path) -> None:
    """What is loaded depends on a texture, and so does the identity."""
    found = []
    for grey in (10, 200):
        Image.fromarray(np.full((4, 4, 3), grey, np.uint8)).save(texture)
        found.append((load_mesh(path).digest, identity(path)))
    (mesh, before), (other, after) = found
    assert mesh != other
    assert before != after


def test_buffers_of_gltf_count(tmp_path: Path) -> None:
    path = tmp_path / "part.gltf"
    path.write_text(
        '{"buffers": [{"uri": "data%20one.bin", "byteLength": 4}], "images": [{"uri": "data:image/png;base64,AA"}]}'
    )
    (tmp_path / "data one.bin").write_bytes(b"abcd")
    before = identity(path)
    (tmp_path / "data one.bin").write_bytes(b"abce")
    assert identity(path) != before


def test_whatever_files_hold_they_have_an_identity(tmp_path: Path) -> None:
    path = _textured(tmp_path / "first")
    for name in ("part.obj", "part one.mtl"):
        healthy = (path.parent / name).read_bytes()
        for damaged in mutations(healthy, 150):
            (path.parent / name).write_bytes(damaged)
            assert len(identity(path)) == 64
        (path.parent / name).write_bytes(healthy)
    path.write_bytes(b"mtllib part.obj part.obj\nmtllib /dev/zero\nmtllib ..\nmtllib " + b"x" * 5000 + b"\n")
    assert len(identity(path)) == 64
    with pytest.raises(DataError, match=r"the mesh file .* cannot be read"):
        identity(path.parent)
