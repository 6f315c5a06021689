"""Searching folders for meshes, against a listing by hand."""

from pathlib import Path

import pytest

from setsup.errors import DataError, SetsupError
from setsup.scenes.recipes import find_models
from setsup.scenes.recipes.model_folders import missing_files

TENT = "v 0 0 0\nv 1 0 0\nv 0 0 1\nf 1 2 3\n"


def _write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(TENT)


def test_order_and_names_do_not_depend_on_the_disk(tmp_path: Path) -> None:
    _write(
        tmp_path, "z.obj", "b/m.obj", "a/n.PLY", "a/b/o.glb", "a.d/p.stl", "notes.txt", ".git/q.obj", "__MACOSX/r.obj"
    )
    found = find_models([tmp_path])
    assert [str(path.relative_to(tmp_path)) for path in found.models.values()] == [
        "z.obj",
        "a/n.PLY",
        "a/b/o.glb",
        "a.d/p.stl",
        "b/m.obj",
    ]
    assert list(found.models) == ["z", "n", "o", "p", "m"]
    assert found.left_out == []


def test_files_are_taken_as_they_are(tmp_path: Path) -> None:
    _write(tmp_path, "in/a.obj", "b.xyz")
    assert list(find_models([tmp_path / "in", tmp_path / "b.xyz"]).models) == ["a", "b"]


def test_links(tmp_path: Path) -> None:
    _write(tmp_path, "store/a.obj", "meshes/b.obj")
    (tmp_path / "meshes" / "a.obj").symlink_to(tmp_path / "store" / "a.obj")
    (tmp_path / "meshes" / "all").symlink_to(tmp_path / "store")
    (tmp_path / "meshes" / "ring").symlink_to(tmp_path / "meshes")
    (tmp_path / "link").symlink_to(tmp_path / "meshes")
    found = find_models([tmp_path / "link"])  # the folder itself may be a link
    assert list(found.models) == ["a", "b"]
    assert [path.name for path, _ in found.left_out] == ["all", "ring"]
    assert all("a link to a folder" in why for _, why in found.left_out)


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    _write(tmp_path, "a.obj")
    try:
        with open(bytes(tmp_path) + b"/b\xff.obj", "w") as file:
            file.write(TENT)
    except OSError:
        pytest.skip("this file system takes names of UTF-8 only")
    found = find_models([tmp_path])
    assert list(found.models) == ["a"]
    assert "not UTF-8" in found.left_out[0].why


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="contains no mesh files that setsup reads"):
        find_models([tmp_path])
    with pytest.raises(DataError, match="the list contains no mesh files"):
        find_models([])
    with pytest.raises(SetsupError, match="must be a list"):
        find_models(str(tmp_path))
    _write(tmp_path, "a.obj")
    with pytest.raises(SetsupError, match="listed twice"):
        find_models([tmp_path, tmp_path])


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"a.obj": TENT}, []),
        ({"a.obj": f"mtllib none.mtl\n{TENT}"}, ["none.mtl"]),
        ({"a.obj": f"mtllib a b.mtl\n{TENT}", "a b.mtl": "newmtl x\nmap_Kd t.png\n"}, ["t.png"]),
        (
            {"a.obj": f"mtllib a.mtl b.mtl\n{TENT}", "a.mtl": "newmtl x\n", "b.mtl": "newmtl y\nmap_Kd ../t.png"},
            ["../t.png"],
        ),
        ({"a.obj": f"mtllib a.mtl\n{TENT}", "a.mtl": "newmtl x\nmap_Kd t.png\n", "t.png": "?"}, []),
        ({"a.gltf": '{"buffers": [{"uri": "a.bin"}], "images": [{"uri": "data:,"}]}'}, ["a.bin"]),
        ({"a.gltf": "{"}, []),
        ({"a.glb": "glTF"}, []),
    ],
)
def test_missing_files(tmp_path: Path, files: dict[str, str], missing: list[str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert missing_files(tmp_path / next(iter(files))) == missing
