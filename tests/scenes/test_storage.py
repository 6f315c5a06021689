import json
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.scenes import Ambient, Directional, Lamp, Material, Mesh, Placement, Scene, load_scene, save_scene
from setsup.scenes.meshes.primitives import box, cylinder, sphere
from tests.fuzzing import survives

TEXTURE = np.random.default_rng(0).integers(0, 256, (40, 30, 3), np.uint8)
WOOD = Material((200, 180, 160), TEXTURE)
EVERYTHING = Mesh(
    np.random.default_rng(1).normal(size=(9, 3)),
    [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
    normals=np.random.default_rng(2).normal(size=(9, 3)),
    uv=np.random.default_rng(3).normal(size=(9, 2)),
    colors=np.arange(27, dtype=np.uint8).reshape(9, 3),
    materials=(WOOD, Material((1, 2, 3))),
    material=[0, 1, 0],
)
ROOM = Scene(
    (
        Placement(box((4, 4, 0.1)), name="floor"),
        Placement(
            EVERYTHING, np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]]), (0.1, 0.2, 0.3), (1, 2, 3), 9, "ü \ud800"
        ),
        Placement(cylinder(segments=12, material=WOOD), name="stool"),
        Placement(EVERYTHING, translation=(1 / 3, 1e-300, -1e5), name="again"),
    ),
    (
        Ambient((0.1, 0.2, 0.3)),
        Directional((0, 0, 1), of_camera=True),
        Directional((0, 1, -1), (1 / 3, 0, 2), shadow=True),
        Lamp((1, 2, 3), (4, 5, 6), (0, 0, -1), 2.5, 3.5, True),
        Lamp((1, 2, 3)),
    ),
    (1, 2, 3),
)


def stored(folder, scene=ROOM, name="a.scene"):
    save_scene(scene, folder / name)
    return (folder / name).read_bytes()


@pytest.mark.parametrize("scene", [ROOM, Scene(), Scene(background=None, lights=()), replace(ROOM, background=None)])
def test_what_is_saved_is_loaded(tmp_path, scene):
    save_scene(scene, tmp_path / "new" / "a.scene")
    found = load_scene(str(tmp_path / "new" / "a.scene"))
    assert found.digest == scene.digest
    assert (found.lights, found.background) == (scene.lights, scene.background)
    for one, other in zip(found.placements, scene.placements, strict=True):
        assert (one.instance, one.name, one.mesh.digest) == (other.instance, other.name, other.mesh.digest)
        for name in ("rotation", "translation", "scale"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("vertices", "faces", "normals", "uv", "colors", "material"):
            mine, its = getattr(one.mesh, name), getattr(other.mesh, name)
            assert (mine is None) == (its is None)
            assert mine is None or (np.array_equal(mine, its) and mine.dtype == its.dtype and not mine.flags.writeable)
    assert np.array_equal(found.triangles.corners, scene.triangles.corners)
    assert found.names == scene.names


def test_placements_share_meshes_as_before(tmp_path):
    stored(tmp_path)
    found = load_scene(tmp_path / "a.scene")
    assert found.placements[1].mesh is found.placements[3].mesh
    assert found.placements[2].mesh.materials[0].texture is found.placements[1].mesh.materials[0].texture


def test_the_same_scene_has_the_same_bytes(tmp_path):
    first = stored(tmp_path)
    again = Scene(tuple(replace(one) for one in ROOM.placements), ROOM.lights, ROOM.background)
    assert stored(tmp_path, again, "b.scene") == first
    assert stored(tmp_path, load_scene(tmp_path / "a.scene"), "c.scene") == first


def test_everything_stands_there_once(tmp_path):
    """A hundred copies of a mesh, and of its texture in other meshes, cost what their places do."""
    one = len(stored(tmp_path, Scene((Placement(EVERYTHING),))))

    def copy(number):
        fields = {name: getattr(EVERYTHING, name) for name in EVERYTHING.__dataclass_fields__}
        return Mesh(
            **{
                **fields,
                "materials": pickle.loads(pickle.dumps(EVERYTHING.materials)),
                "uv": None if number % 2 else EVERYTHING.uv,
            }
        )

    copies = tuple(Placement(copy(number)) for number in range(100))
    assert sum(part.mesh.materials[0].texture.nbytes for part in copies) > 300_000
    assert len(stored(tmp_path, Scene(copies), "b.scene")) < one + 100 * 250


def test_the_file_is_as_described(tmp_path):
    content = stored(tmp_path)
    first, text, _ = content.split(b"\n", 2)
    assert first == b"setsup scene 1"
    told = json.loads(text)
    end = len(first) + len(text) + 2
    for dtype, shape in told["arrays"]:
        end += -end % 64
        end += np.dtype(dtype).itemsize * int(np.prod(shape))
    assert end == len(content)
    assert content.count(TEXTURE.tobytes()) == 1
    at = content.index(TEXTURE.tobytes())
    assert at % 64 == 0


def test_an_older_file_stays_where_writing_fails(tmp_path):
    first = stored(tmp_path)
    broken = Scene((Placement(box(), name="box"),))
    object.__setattr__(broken.placements[0], "name", {1, 2})  # nothing that JSON knows
    with pytest.raises(TypeError):
        save_scene(broken, tmp_path / "a.scene")
    assert (tmp_path / "a.scene").read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == ["a.scene"]


def _edited(content, **changed):
    """The file with another JSON, whose arrays still begin where they should."""
    first, text, _ = content.split(b"\n", 2)
    told = json.loads(text)
    arrays, end = [], len(first) + len(text) + 2
    for dtype, shape in told["arrays"]:
        end += -end % 64
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        arrays.append(content[end : end + size])
        end += size
    told.update(changed)
    found = first + b"\n" + json.dumps(told).encode() + b"\n"
    for array in arrays:
        found += bytes(-len(found) % 64) + array
    return found


def test_every_number_is_covered_by_the_digest(tmp_path):
    content = stored(tmp_path)
    path = tmp_path / "a.scene"
    path.write_bytes(_edited(content))
    assert load_scene(path).digest == ROOM.digest
    for changed in (
        {"background": [1, 2, 4]},
        {"background": None},
        {"lights": []},
        {"digest": "0" * 64},
        {"placements": json.loads(content.split(b"\n")[1])["placements"][:-1]},
        {"materials": [[[200, 180, 161], 0], [[1, 2, 3], None], [[188, 188, 188], None]]},
    ):
        path.write_bytes(_edited(content, **changed))
        with pytest.raises(DataError, match=r"the digest of its content|is damaged"):
            load_scene(path)
    for place in range(content.index(TEXTURE.tobytes()), len(content), 997):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        try:  # what lies between the arrays has no meaning
            assert load_scene(path).digest == ROOM.digest
        except DataError as error:
            assert "the digest of its content" in str(error)  # noqa: PT017


HOSTILE = {
    "is not a scene file of setsup": [
        b"",
        b"\n",
        b"PK\x03\x04",
        b"setsup scene ",
        b"setsup scene x\n{}\n",
        b"setsup scene 1" * 9,
    ],
    "version 2, but this version of setsup reads 1; update setsup": [b"setsup scene 2\nwhatever"],
    "is damaged": [
        b"setsup scene 1\n",
        b"setsup scene 1\n{}\n",
        b"setsup scene 1\n[]\n",
        b"setsup scene 1\n" + b"[" * 100_000 + b"\n",
        b'setsup scene 1\n{"arrays":[["|O",[1]]]}\n' + bytes(64),
        b'setsup scene 1\n{"arrays":[["<f8",[1000000000000]]]}\n',
        b'setsup scene 1\n{"arrays":[["<f8",[0,1e9]]]}\n',
        b'setsup scene 1\n{"arrays":[["<f8",[-1]]]}\n',
        b'setsup scene 1\n{"arrays":[["<f8",' + str([2**40] * 60).encode() + b"]]}\n",
        b'setsup scene 1\n{"arrays":' + b"1" * 5000 + b"}\n",
        b'setsup scene 1\n{"arrays":[],"lights":[["system",["ls"]]],"materials":[],"meshes":[],"placements":[]}\n',
    ],
}


@pytest.mark.parametrize(("message", "content"), [(key, one) for key, many in HOSTILE.items() for one in many])
def test_hostile_files(tmp_path, message, content):
    path = tmp_path / "bad.scene"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"bad.scene .*{message}|bad.scene {message}") as error:
        load_scene(path)
    assert "\n" not in str(error.value)


def test_other_files(tmp_path):
    with pytest.raises(DataError, match=r"gone\.scene"):
        load_scene(tmp_path / "gone.scene")
    with pytest.raises(DataError, match=str(tmp_path)):
        load_scene(tmp_path)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("a", "b")
    with pytest.raises(DataError, match="not a scene file of setsup"):
        load_scene(tmp_path / "a.zip")


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("head", [64, 4000])
def test_fuzzing(tmp_path, head):
    path = tmp_path / "a.scene"
    small = Scene((Placement(EVERYTHING, name="a"), Placement(sphere(segments=6))), ROOM.lights)
    content = stored(tmp_path, small)

    def read(damaged):
        path.write_bytes(damaged)
        assert load_scene(path).digest == small.digest  # read at all, it is what was written

    assert survives(content, read, 150, head=head) > 125
