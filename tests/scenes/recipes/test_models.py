import json
import logging
import os
import sys
import tracemalloc
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
from tests.traced import traced


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
    with pytest.raises(SetsupError, match=r"the mesh file a/cow\.obj is listed twice"):
        named_models(["a/cow.obj", "b/cow.obj", "a/cow.obj"])
    with pytest.raises(SetsupError, match=r"must be a list, such as \['cow\.obj'\], not"):
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
    with pytest.raises(DataError, match="is not an existing mesh file"):
        identity(path.parent)


# -- keys and loading read the same files ------------------------------------------------------------------------------

_OPENED: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _OPENED is not None and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        _OPENED.append(os.path.realpath(os.fsdecode(arguments[0])))


sys.addaudithook(_note)


def _read_by(use: Callable[[], object], folder: Path) -> set[str]:
    """Files below a folder that something opens."""
    global _OPENED
    _OPENED = []
    try:
        use()
        found = _OPENED
    finally:
        _OPENED = None
    return {os.path.relpath(path, folder) for path in found if path.startswith(f"{folder}{os.sep}")}


def _picture(path: Path, grey: int = 90) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((4, 4, 3), grey, np.uint8)).save(path)


_OBJ = "usemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nf 1/1 2/2 3/3\n"
_PLY = (
    "ply\nformat ascii 1.0\ncomment TextureFile {}\ncomment TextureFile {}\nelement vertex 3\n"
    + "".join(f"property float {name}\n" for name in "xyzst")
    + "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    + "0 0 0 0 0\n1 0 0 1 0\n0 1 0 0 1\n3 0 1 2\n"
)


def _gltf() -> str:
    numbers = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4").tobytes()
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "buffers": [{"uri": "data%20one.bin", "byteLength": len(numbers)}],
            "bufferViews": [{"buffer": 0, "byteLength": len(numbers)}],
            "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
            "images": [{"uri": "inner/texture.png"}, {"uri": "../secret.png"}, {"uri": "data:image/png;base64,AAAA"}],
            "textures": [{"source": 0}],
            "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "material": 0}]}],
            "nodes": [{"mesh": 0, "extras": {"uri": "named.png"}}],
            "scenes": [{"nodes": [0]}],
        }
    )


_NUMBERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4").tobytes()

_MODELS = {
    "one library, and its maps": {
        "part.obj": "# part\nmtllib lists/part one.mtl\nmtllib other.mtl\n" + _OBJ,
        "lists/part one.mtl": "newmtl a\nMAP_KD -s 1 1 1 inner\\texture.png\nmap_Bump named.png\nbump named.png\n",
        "other.mtl": "newmtl b\nmap_Kd named.png\n",
    },
    "names that lead out": {
        "part.obj": "mtllib part.mtl\n" + _OBJ,
        "part.mtl": "newmtl a\nmap_Kd ../secret.png\nnewmtl b\nmap_Kd {away}/secret.png\nnewmtl c\nmap_Kd ~/x.png\n",
    },
    "a library above": {"part.obj": "mtllib ../secret.mtl\n" + _OBJ},
    "a library that is no file": {"part.obj": "mtllib inner\n" + _OBJ},
    "a library named late": {
        "part.obj": _OBJ + "# " + "x" * ((1 << 20) - len(_OBJ) - 5) + "\nmtllib part.mtl\n",  # where a block ends
        "part.mtl": "newmtl a\nmap_Kd named.png",
    },
    "links": {
        "part.obj": "mtllib part.mtl\n" + _OBJ,
        "part.mtl": "newmtl a\nmap_Kd out.png\nnewmtl b\nmap_Kd in.png\nnewmtl c\nmap_Kd away/secret.png\n",
    },
    "ply": {"part.ply": _PLY.format("named.png", "inner/texture.png")},
    "gltf": {"part.gltf": _gltf(), "data one.bin": _NUMBERS.decode("latin-1")},
}  # fmt: skip


def _model(folder: Path, files: dict[str, str]) -> Path:
    """A model beside pictures that it may name, links among them, and a folder above with what it must not read."""
    home = folder / "model"
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.replace("{away}", str(folder)).encode("latin-1"))
    for name in ("inner/texture.png", "named.png", "../secret.png"):
        _picture(home / name)
    (folder / "secret.mtl").write_text("newmtl a\nKd 1 0 0\n")
    (home / "out.png").symlink_to(folder / "secret.png")
    (home / "in.png").symlink_to("inner/texture.png")
    (home / "away").symlink_to(folder)
    return home / next(iter(files))


@pytest.mark.parametrize("files", _MODELS.values(), ids=_MODELS)
def test_a_key_reads_what_loading_reads(tmp_path: Path, files: dict[str, str]) -> None:
    path = _model(tmp_path, files)
    read = _read_by(lambda: identity(path), tmp_path)
    assert read == _read_by(lambda: load_mesh(path), tmp_path)
    assert "secret.png" not in read
    assert "secret.mtl" not in read
    before, loaded = identity(path), load_mesh(path).digest
    _picture(tmp_path / "secret.png", 7)
    (tmp_path / "secret.mtl").write_text("newmtl a\nKd 0 1 0\n")
    assert (identity(path), load_mesh(path).digest) == (before, loaded)


def test_links_that_lead_out_want_a_folder_that_holds_both(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = _model(tmp_path, _MODELS["links"])
    with caplog.at_level(logging.WARNING, "setsup"):
        load_mesh(path)
    assert (
        "points outside the folder of the model, so it was not followed; pass top=, a folder that contains both"
        in caplog.text
    )
    caplog.clear()
    for use in (lambda: identity(path, tmp_path), lambda: load_mesh(path, top=tmp_path)):
        assert "secret.png" in _read_by(use, tmp_path)
    assert caplog.text == ""


def test_links_beside_a_linked_mesh_are_followed(tmp_path: Path) -> None:
    """A store without endings in the names, as Hugging Face keeps files."""
    path = _model(tmp_path, _MODELS["one library, and its maps"])
    shown, store = tmp_path / "shown", tmp_path / "store"
    store.mkdir()
    for number, name in enumerate(("part.obj", "lists/part one.mtl", "inner/texture.png", "other.mtl", "named.png")):
        (shown / name).parent.mkdir(parents=True, exist_ok=True)
        (store / str(number)).write_bytes((path.parent / name).read_bytes())
        (shown / name).symlink_to(store / str(number))
    assert identity(shown / "part.obj") == identity(path)
    assert load_mesh(shown / "part.obj").digest == load_mesh(path).digest
    assert any(one.texture is not None for one in load_mesh(path).materials)


def test_sizes_are_looked_at_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _model(tmp_path, _MODELS["one library, and its maps"])
    whole = identity(path)
    monkeypatch.setattr("setsup.scenes.meshes.mesh_files._LARGEST_ASSET", 70)
    assert (path.parent / "inner" / "texture.png").stat().st_size > 70
    limited = identity(path)
    assert limited != whole
    _picture(path.parent / "inner" / "texture.png", 7)
    assert identity(path) == limited
    assert not any(one.texture is not None for one in load_mesh(path).materials)
    monkeypatch.setattr("setsup.scenes.recipes.models.LARGEST_MESH", 70)
    with pytest.raises(DataError, match=r"part\.obj has \d+ bytes, more than the 70"):
        identity(path)


def test_what_a_key_reads_is_not_kept_in_memory(tmp_path: Path) -> None:
    path = _model(tmp_path, _MODELS["one library, and its maps"])
    with (path.parent / "inner" / "texture.png").open("ab") as file:
        file.truncate(48 << 20)
    with path.open("ab") as file:
        file.truncate(48 << 20)
    with traced():
        identity(path)
        _, most = tracemalloc.get_traced_memory()
    assert most < 8 << 20
