import os
import shutil
import struct
import tarfile
import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest
import trimesh

import setsup
from setsup.datasets.benchmarks import scenenn
from setsup.datasets.benchmarks.scenenn.objects import read_objects
from setsup.datasets.benchmarks.scenenn.splits import ONLINE3D_VAL
from setsup.errors import DataError, RowError
from tests.fuzzing import mutations, survives
from tests.true_files import scenenn as true


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenenn")
    true.write(folder)
    return folder


@pytest.fixture
def rooms(release):
    return scenenn.open(release)


def annotated(release):
    """Rows as ElementTree reads them: scene, attributes."""
    return [
        (scene, found.attrib)
        for scene in true.SCENES
        for found in ElementTree.parse(release / scene / f"{scene}.xml").getroot().findall("label")
        if found.get("text")
    ]


def unpacked(release, scene):
    """Vertices of a mesh, unpacked by hand."""
    content = (release / scene / f"{scene}.ply").read_bytes()
    count = int(content.split(b"element vertex ")[1].split()[0])
    return [struct.unpack_from("<6f3Bi", content, content.index(b"end_header\n") + 11 + 31 * i) for i in range(count)]


@pytest.mark.long("large or genuine files")
def test_factors_and_boxes(release, rooms):
    expected = annotated(release)
    assert len(rooms) == len(expected) == 36
    assert rooms.factors.names == ("scene", "instance", "label", "nyu_class", "online3d")
    assert rooms.factors.values("scene").tolist() == [scene for scene, _ in expected]
    assert rooms.factors.values("instance").tolist() == [int(found["id"]) for _, found in expected]
    assert rooms.factors.values("label").tolist() == [found["text"] for _, found in expected]
    classes = [None if found["nyu_class"] == "unknown" else found["nyu_class"] for _, found in expected]
    assert rooms.factors.values("nyu_class").tolist() == classes
    assert (rooms.factors["instance"].within, rooms.factors["instance"].role) == ("scene", "key")
    assert len(rooms.where("label == 'Haus <groß> & \"gelb\" #1'")) == 6
    boxes = rooms.fetch(range(36), ["aabb", "obb"])
    for name, attribute, shape in (("aabb", "aabbox", (2, 3)), ("obb", "obbox", (10,))):
        numbers = [[float(word) for word in found[attribute].split()] for _, found in expected]
        assert boxes[name].dtype == np.float32
        assert np.array_equal(boxes[name], np.array(numbers, np.float32).reshape(36, *shape))


@pytest.mark.long("large or genuine files")
def test_a_box_holds_the_vertices_of_its_object(release, rooms):
    for row in (0, 3, 17, 35):
        scene, found = annotated(release)[row]
        own = np.array([vertex[:3] for vertex in unpacked(release, scene) if vertex[-1] == int(found["id"])])
        low, high = rooms.fetch(row, ["aabb"])["aabb"]
        assert np.allclose([own.min(axis=0), own.max(axis=0)], [low, high], atol=1e-5)
        obb = rooms.fetch(row, ["obb"])["obb"].astype(float)
        turned = trimesh.transformations.quaternion_matrix(obb[[9, 6, 7, 8]])[:3, :3]
        inside = (own - obb[:3]) @ turned
        assert np.allclose(np.abs(inside).max(axis=0), obb[3:6] / 2, atol=1e-4)


def test_meshes_as_trimesh_reads_them(release, rooms):
    read = trimesh.load(release / "011" / "011.ply", process=False)
    mesh = rooms.scene_mesh("011")
    assert np.array_equal(mesh.vertices, read.vertices)
    assert np.array_equal(mesh.faces, read.faces)
    assert np.array_equal(mesh.visual.vertex_colors, read.visual.vertex_colors)
    labels = np.array([vertex[-1] for vertex in unpacked(release, "011")])
    assert np.array_equal(mesh.vertex_attributes["label"], labels)
    row = rooms.factors.rows("scene == '011' and label == 'chair'").item()
    chair = rooms.mesh(row)
    own = labels == true.TOYS[3]
    assert np.array_equal(chair.vertices, read.vertices[own])
    assert np.array_equal(chair.visual.vertex_colors, read.visual.vertex_colors[own])
    expected = read.triangles[own[read.faces].all(axis=1)]
    assert np.array_equal(chair.triangles, expected)
    assert set(chair.vertex_attributes["label"].tolist()) == {true.TOYS[3]}
    assert np.array_equal(rooms.mesh(0).vertices, rooms.scene_mesh("005").vertices[[*range(1 * 6 * 64)]])
    with pytest.raises(DataError, match="scenenn has no scene '010'; did you mean"):
        rooms.scene_mesh("010")
    with pytest.raises(RowError):
        rooms.mesh(36)


@pytest.mark.long("large or genuine files")
def test_previews_show_the_object(release, rooms):
    found = rooms.fetch(range(36), ["preview"])["preview"]
    assert found.shape == (36, 128, 128, 3)
    for row, (scene, attributes) in enumerate(annotated(release)):
        colors = {vertex[6:9] for vertex in unpacked(release, scene) if vertex[-1] == int(attributes["id"])}
        shown = [tuple(color) for color in found[row].reshape(-1, 3).tolist() if color != [255, 255, 255]]
        assert len(shown) > 1000, row
        # the others are the edges of dots, mixed with white or with each other
        assert sum(color in colors for color in shown) > 0.4 * len(shown), row


def test_previews_are_drawn_once(release, rooms, tmp_path, own_cache, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    copied = tmp_path / "release"
    shutil.copytree(release, copied)
    here = scenenn.open(copied)
    first = here.fetch([0, 7], ["preview"])["preview"]
    kept = sorted((tmp_path / "cache").rglob("*.npy"))
    assert len(kept) == 2, "one file for each scene that was looked at"
    hidden = copied / "005" / "005.ply"
    content, state = hidden.read_bytes(), hidden.stat()
    hidden.write_bytes(bytes(len(content)))
    os.utime(hidden, ns=(state.st_atime_ns, state.st_mtime_ns))
    again = scenenn.open(copied)
    assert np.array_equal(again.fetch([0, 7], ["preview"])["preview"], first), "the mesh was not needed"
    kept[0].write_bytes(b"no array")
    kept[1].write_bytes(b"no array")
    hidden.write_bytes(content)
    assert np.array_equal(scenenn.open(copied).fetch([0, 7], ["preview"])["preview"], first)


@pytest.mark.long("large or genuine files")
def test_another_mesh_has_other_previews(tmp_path):
    true.write(tmp_path, scenes=2)
    before = scenenn.open(tmp_path).fetch(0, ["preview"])["preview"]
    (tmp_path / "005" / "005.ply").write_bytes(true.ply(*true.scene_mesh(2)))
    assert not np.array_equal(scenenn.open(tmp_path).fetch(0, ["preview"])["preview"], before)


def test_a_cache_that_cannot_be_written(release, rooms, tmp_path, monkeypatch):
    expected = rooms.fetch([1, 30], ["preview"])["preview"]
    (tmp_path / "cache").write_text("a file, where a folder should be")
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    assert np.array_equal(scenenn.open(release).fetch([1, 30], ["preview"])["preview"], expected)


def test_prepare(release, tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path))
    before = sorted(release.rglob("*"))
    files = scenenn.prepare(release)
    assert sorted(files) == sorted(tmp_path.rglob("previews.npy"))
    assert len(files) == 6
    assert scenenn.prepare(release) == files
    assert sorted(release.rglob("*")) == before


def test_preparing_into_a_cache_that_cannot_be_written(release, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file, where a folder should be")
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataError, match="SETSUP_CACHE") as found:
        scenenn.prepare(release)
    assert "\n" not in str(found.value)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("kind", ["zip", "tar", "wrapped", "below", "nyu_class"])
def test_where_releases_lie(release, rooms, tmp_path, kind):
    if kind == "zip":
        root = tmp_path / "rooms.zip"
        with zipfile.ZipFile(root, "w") as file:
            for path in sorted(release.rglob("*.*")):
                file.write(path, f"scenenn/main/{path.relative_to(release)}")
    elif kind == "tar":
        root = tmp_path / "rooms.tar"
        with tarfile.open(root, "w") as file:
            file.add(release, "main")
    elif kind == "wrapped":
        root = tmp_path
        shutil.copytree(release, tmp_path / "main")
    elif kind == "below":
        root = tmp_path
        shutil.copytree(release, tmp_path / "scenenn")
    else:
        root = tmp_path
        shutil.copytree(release, tmp_path / "contrib" / "nyu_class")
    found = scenenn.open(root)
    assert found.factors.fingerprint == rooms.factors.fingerprint
    rows = [35, 0, 7]
    expected, here = rooms.fetch(rows), found.fetch(rows)
    assert all(np.array_equal(here[name], expected[name]) for name in expected)
    assert len(found.scene_mesh("700").faces) == len(rooms.scene_mesh("700").faces)


def test_fetching(rooms):
    whole = rooms.fetch(range(36))
    for rows in ([[35, 0], [7, 7]], [], [[]], 5, [3, 3, 1]):
        found = rooms.fetch(rows)
        for name, array in whole.items():
            assert np.array_equal(found[name], array[np.asarray(rows, int)])
    with pytest.raises(RowError, match="36 rows"):
        rooms.fetch([36])
    with pytest.raises(DataError, match="no modality 'boxes'"):
        rooms.fetch(0, ["boxes"])


def test_an_archive_of_any_name(release, tmp_path):
    expected = scenenn.open(release)
    shutil.make_archive(str(tmp_path / "my rooms"), "zip", release)
    found = scenenn.open(tmp_path)
    assert found.factors.fingerprint == expected.factors.fingerprint
    assert np.array_equal(found.fetch(3)["aabb"], expected.fetch(3)["aabb"])
    with pytest.raises(DataError, match=r"scenenn: <scene>/<scene>\.xml \(such as 005/005\.xml\) not found; looked in"):
        scenenn.open(tmp_path / "nothing")


def test_no_mesh_is_read_for_boxes(release, tmp_path):
    for scene in true.SCENES:
        (tmp_path / scene).mkdir()
        shutil.copy(release / scene / f"{scene}.xml", tmp_path / scene)
    boxes = scenenn.open(tmp_path)
    assert boxes.fetch([0, 35], ["aabb"])["aabb"].shape == (2, 2, 3)
    with pytest.raises(
        DataError, match=r"/005 has 005\.xml but no 005\.ply; fetch the mesh again, or exclude the scene"
    ):
        boxes.fetch([0])
    with pytest.raises(DataError, match=r"/700 has 700\.xml but no 700\.ply"):
        boxes.mesh(35)


def test_online3d(release):
    part = setsup.load("scenenn", release, split="online3d-val")
    assert set(part.factors.values("scene").tolist()) == {"005", "011", "015"}
    assert len(part) == 18
    assert len(set(ONLINE3D_VAL)) == 12


def test_a_release_without_classes(tmp_path):
    true.write(tmp_path, scenes=2)
    for scene, name in enumerate(true.SCENES[:2]):
        (tmp_path / name / f"{name}.xml").write_bytes(true.xml(scene, classes=False))
    rooms = scenenn.open(tmp_path)
    assert rooms.factors.values("nyu_class").tolist() == [None] * 12
    assert rooms.factors.rows("nyu_class is None").tolist() == [*range(12)]


def opened(tmp_path, **changed):
    true.write(tmp_path, scenes=1)
    for kind, content in changed.items():
        (tmp_path / "005" / f"005.{kind}").write_bytes(content)
    return scenenn.open(tmp_path)


def labels(*attributes):
    return b"<a>" + b"".join(b"\n<label %s/>" % text.encode() for text in attributes) + b"\n</a>"


def test_an_object_without_vertices(tmp_path):
    rooms = opened(tmp_path, xml=labels('id="2" text="floor"', 'id="99" text="ghost"'))
    assert rooms.fetch(0, ["preview"])["preview"].min() < 255
    with pytest.raises(DataError, match=r"scene 005 has no vertices for object 99 \(ghost, row 1\).*where=") as found:
        rooms.fetch([0, 1])
    kept = rooms.where(str(found.value).split('where="')[1].rstrip('"'))
    assert kept.factors.values("label").tolist() == ["floor"]
    assert len(rooms.mesh(1).vertices) == 0


def test_boxes_that_are_not_there(tmp_path):
    boxes = 'aabbox="3e38 3e38 3e38 -3e38 -3e38 -3e38" obbox=""'
    rooms = opened(tmp_path, xml=labels('id="2" text=" a \t floor "', f'id="3" text="wall" {boxes}'))
    assert rooms.factors.values("label").tolist() == ["a floor", "wall"]
    assert all(np.isnan(array).all() for array in rooms.fetch([0, 1], ["aabb", "obb"]).values())


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (labels('id="2" text="a"', 'id="2" text="b"'), "line 3 repeats the id 2 of another label"),
        (labels('id="2" text="a"', 'id="02" text=""'), "line 3 repeats the id 02 of another"),
        (labels('id="two" text="a"'), "line 2 has the id 'two'; expected an integer"),
        (labels('text="a"'), "line 2 has the id ''"),
        (labels('id="2.0" text="a"'), "line 2 has the id '2.0'"),
        (labels('id="2" text="a" aabbox="0 0 0 1 1"'), "has the aabbox '0 0 0 1 1'; expected 6 finite numbers"),
        (labels('id="2" text="a" aabbox="0 0 0 1 1 nan"'), "6 finite numbers"),
        (labels('id="2" text="a" aabbox="0 0 0 1 1 1e39"'), "6 finite numbers"),
        (labels('id="2" text="a" aabbox="0 0 0 1 1 1_0"'), "6 finite numbers"),
        (labels('id="2" text="a" obbox="0 0 0 1 1 1 0 0 0"'), "has the obbox .*; expected 10 finite numbers"),
        (labels('id="2" text=""'), "has 1 annotated scenes, but none contains an object with a label"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + labels('id="2" text="&b;"'), "DOCTYPE"),
        (b"", "could not be parsed as XML"),
    ],
)
def test_damaged_annotations(tmp_path, content, sentence):
    with pytest.raises(DataError, match=sentence) as found:
        opened(tmp_path, xml=content)
    assert "\n" not in str(found.value)
    assert str(tmp_path) in str(found.value)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda mesh: mesh.replace(b"int label", b"int class"), "no integer property 'label', only .*class"),
        (lambda mesh: mesh.replace(b"int label", b"float label"), "no integer property 'label'"),
        (lambda mesh: mesh[:-100], r"005\.ply"),
        (lambda mesh: b"<html>", r"005\.ply.*not a PLY"),
        (lambda mesh: mesh.replace(b"element vertex ", b"element vertex 99"), r"005\.ply.*more than"),
    ],
)
def test_damaged_meshes(tmp_path, change, sentence):
    rooms = opened(tmp_path, ply=change(true.ply(*true.scene_mesh(0))))
    for ask in (lambda: rooms.fetch(0), lambda: rooms.mesh(0), lambda: rooms.scene_mesh("005")):
        with pytest.raises(DataError, match=sentence) as found:
            ask()
        assert "\n" not in str(found.value)


def test_a_mesh_without_colors(tmp_path):
    mesh = true.ply(*true.scene_mesh(0)).replace(b"uchar red", b"uchar a").replace(b"uchar green", b"uchar b")
    picture = opened(tmp_path, ply=mesh).fetch(0, ["preview"])["preview"]
    assert {150, 255} <= set(np.unique(picture).tolist()) <= set(range(150, 256))


def test_nothing_is_there(tmp_path):
    with pytest.raises(DataError, match="setsup fetch scenenn"):
        scenenn.open(tmp_path)


def test_damage_of_annotations():
    def read(content):
        for found in read_objects(content, "005.xml"):
            assert len(found.aabb) == 6
            assert len(found.obb) == 10
            assert found.label

    assert survives(true.xml(0), read, rounds=150, head=1500) > 75


@pytest.mark.long("fuzzing")
def test_damage_of_meshes(tmp_path, monkeypatch):
    vertices, normals, colors, ids, triangles = true.scene_mesh(0)
    few = np.flatnonzero(ids == true.FLOOR)
    small = true.ply(vertices[few], normals[few], colors[few], ids[few], triangles[(triangles < len(few)).all(axis=1)])
    rooms = opened(tmp_path, ply=small, xml=labels(f'id="{true.FLOOR}" text="floor"'))
    assert rooms.fetch(0)["preview"].min() < 255
    path, refused = tmp_path / "005" / "005.ply", list[str]()
    for turn, content in enumerate(mutations(small, 100)):
        path.write_bytes(content)
        monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / f"cache{turn}"))
        try:
            rooms = scenenn.open(tmp_path)
            rooms.fetch(0)
            rooms.mesh(0)
        except DataError as error:
            refused.append(str(error))
    assert len(refused) > 30
    assert not any("\n" in sentence for sentence in refused)
