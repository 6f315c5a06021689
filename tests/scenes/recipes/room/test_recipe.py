"""The recipe against the paper's constraints, recomputed without it, and against bad input."""

import hashlib
import inspect
import itertools
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy import stats
from scipy.spatial.transform import Rotation

from setsup.errors import DataError, FactorError, SamplerError, SetsupError
from setsup.factors import FactorTable, Kind
from setsup.random import fold, stream_key
from setsup.scenes import Ambient, Directional, Lamp, Mesh, Placement, Rays, Recipe, Scene
from setsup.scenes.recipes.room.lights import MODES, room_lights
from setsup.scenes.recipes.room.made import made_room
from setsup.scenes.recipes.room.recipe import Room, euler, placed_objects, spread_positions
from setsup.scenes.recipes.room.solids import default_objects
from setsup.scenes.recipes.room.space import Space
from tests.scenes.ray_scenes import first_hits

ROOMS = 12
TRIANGLE = Mesh([[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]], [[0, 1, 2]])


def shell(width=4.0, depth=3.5, height=2.5, tilt=0.0):
    """A closed room of twelve triangles, z up."""
    made = trimesh.creation.box(bounds=[(-width / 2, -depth / 2, 0), (width / 2, depth / 2, height)])
    return Mesh(Rotation.from_euler("x", tilt, degrees=True).apply(made.vertices), np.array(made.faces))


def cheap(**options):
    """A recipe whose rooms are built at once."""
    return Room(**{"meshes": {"box": shell()}, "objects": {"triangle": TRIANGLE}, **options})


def digest(recipe: Room, room: int) -> str:
    """Of a scene and all its cameras."""
    scene = recipe.scene({"room": room})
    found = hashlib.sha256(scene.digest.encode())
    for pair, side in itertools.product(range(recipe.pairs), (0, 1)):
        camera = recipe.camera({"room": room, "pair": pair, "side": side}, scene)
        found.update(repr(camera.to_dict()).encode())
    return found.hexdigest()


@pytest.fixture(scope="module")
def furnished() -> list[tuple]:
    """Rooms with what stands in them: (scene, object placements, two pairs, their two cameras each)."""
    recipe = Room(rooms=ROOMS, pairs=2, seed=11)
    found = []
    for room in range(ROOMS):
        rows = [{"room": room, "pair": pair} for pair in range(2)]
        scene = recipe.scene(rows[0])
        objects = [one for one in scene.placements if one.name in default_objects()]
        cameras = [[recipe.camera({**row, "side": side}, scene) for side in (0, 1)] for row in rows]
        found.append((scene, objects, [recipe.camera_pair(row) for row in rows], cameras))
    return found


def test_it_is_a_recipe_of_three_factors() -> None:
    recipe = Room(rooms=3, pairs=2)
    assert isinstance(recipe, Recipe)
    assert (recipe.name, recipe.scene_factors, recipe.size) == ("room", ("room",), (480, 640))
    assert [(one.name, one.kind, one.levels) for one in recipe.factors] == [
        ("room", Kind.ORDINAL, (0, 1, 2)),
        ("pair", Kind.ORDINAL, (0, 1)),
        ("side", Kind.ORDINAL, (0, 1)),
    ]
    table = FactorTable(recipe.factors)
    groups = table.group_by(["pair"])  # a pair is one of its room
    assert (len(table), len(groups)) == (12, 6)
    assert [groups.members(group).tolist() for group in range(2)] == [[0, 1], [2, 3]]


@pytest.mark.long("renderings")
def test_cameras_keep_the_published_bounds(furnished) -> None:
    for _, objects, pairs, both in furnished:
        centre = objects[0].translation
        for pair, cameras in zip(pairs, both, strict=True):
            assert pair.relaxed == 0
            eyes = np.array([camera.centre for camera in cameras])
            axes = np.array([camera.rotation[2] for camera in cameras])
            assert ((eyes[:, 2] >= 0.5) & (eyes[:, 2] <= 3)).all()
            away = np.linalg.norm(eyes - centre, axis=1)
            assert ((away >= 1 - 1e-9) & (away <= 3 + 1e-9)).all()
            assert 0.5 - 1e-9 <= np.linalg.norm(eyes[0] - eyes[1]) <= 3 + 1e-9
            assert np.degrees(np.arccos(axes[0] @ axes[1])) <= 65 + 1e-6
            # where the axes meet the level plane through the most open position is at most half a metre off
            targets = pair.targets
            assert targets[:, 2].tolist() == [centre[2]] * 2
            assert np.abs(targets - centre)[:, :2].max() <= 0.5
            for eye, axis, target in zip(eyes, axes, targets, strict=True):
                assert np.cross(axis, target - eye) == pytest.approx(np.zeros(3), abs=1e-9)
                assert axis @ (target - eye) > 0
            for camera in cameras:
                assert camera.k.tolist() == [[500, 0, 319.5], [0, 500, 239.5], [0, 0, 1]]
                assert (camera.height, camera.width) == (480, 640)
                assert abs(camera.rotation[0, 2]) < 1e-9  # the horizon is level
                assert camera.rotation[1, 2] < 0  # and up in the picture is up in the room


@pytest.mark.long("renderings")
def test_lines_of_sight_are_clear_by_brute_force(furnished) -> None:
    for scene, objects, pairs, _ in furnished:
        kinds = scene.triangles.placement
        of_room = scene.triangles.corners[kinds < len(scene.placements) - len(objects)]
        of_objects = scene.triangles.corners[kinds >= len(scene.placements) - len(objects)]
        eyes, targets = (np.concatenate([getattr(pair, name) for pair in pairs]) for name in ("eyes", "targets"))
        assert (first_hits(eyes, targets - eyes, of_room) > 1 - 1e-5).all()
        ways = targets - eyes
        ahead = first_hits(eyes, ways / np.linalg.norm(ways, axis=1, keepdims=True), of_objects)
        assert (ahead > 0.3 - 1e-6).all()


@pytest.mark.long("exhaustive comparisons")
@pytest.mark.long("exhaustive comparisons")
def test_cameras_are_clear_of_everything_by_brute_force(furnished) -> None:
    for scene, objects, pairs, _ in furnished:
        for pair in pairs:
            for eye in pair.eyes:
                corners = scene.triangles.corners
                there = trimesh.triangles.closest_point(corners, np.tile(eye, (len(corners), 1)))
                assert np.linalg.norm(there - eye, axis=1).min() > 0.05
                for one in objects:  # not inside either: in the frame of the object, beyond its box
                    at = (np.linalg.inv(one.matrix) @ [*eye, 1])[:3]
                    low, high = one.mesh.bounds
                    assert ((at < low) | (at > high)).any()


def test_cameras_are_not_inside_of_furniture(furnished) -> None:
    for scene, objects, pairs, _ in furnished:
        solid = scene.placements[3 : len(scene.placements) - len(objects)]
        eyes = np.concatenate([pair.eyes for pair in pairs])
        for one in solid:
            if one.name in {"cupboard", "rug", "picture"}:  # what fills its box
                low, high = one.mesh.bounds
                at = (eyes - one.translation) @ one.rotation
                assert ((at < low) | (at > high)).any(axis=1).all()


def test_objects_stand_apart_within_the_room(furnished) -> None:
    counts = []
    for scene, objects, _, _ in furnished:
        at = np.array([one.translation for one in objects])
        apart = np.linalg.norm(at[:, None] - at, axis=2)[~np.eye(len(at), dtype=bool)]
        assert apart.min(initial=1) >= 0.35
        assert ((at > scene.bounds[0]) & (at < scene.bounds[1])).all()
        assert all(((one.scale >= 0.3) & (one.scale <= 0.75)).all() for one in objects)
        counts.append(len(objects))
    assert set(counts) <= set(range(1, 16))
    assert len(set(counts)) > 7
    # the first is at the most open position: no other is farther from all triangles than it, but for a hair
    scene, objects, _, _ = next(one for one in furnished if len(one[1]) > 10)
    corners = scene.triangles.corners[scene.triangles.placement < len(scene.placements) - len(objects)]
    away = [
        np.linalg.norm(trimesh.triangles.closest_point(corners, np.tile(at, (len(corners), 1))) - at, axis=1).min()
        for at in (one.translation for one in objects)
    ]
    assert away[0] >= max(away) - 1e-6


def test_instances_are_numbered_and_named(furnished) -> None:
    for scene, objects, _, _ in furnished:
        names = scene.names
        assert sorted(names) == list(range(len(scene.placements)))
        assert [names[number] for number in range(3)] == ["walls", "floor", "ceiling"]
        assert all(names.values())
        assert [names[number] for number in range(len(names) - len(objects), len(names))] == [o.name for o in objects]


@pytest.mark.long("renderings")
def test_the_number_of_objects_is_uniform() -> None:
    recipe = cheap(rooms=40, count=(2, 5))
    found = [len(recipe.scene({"room": room}).placements) - 1 for room in range(40)]
    assert set(found) == set(range(2, 6))
    assert stats.chisquare(np.bincount(found)[2:]).pvalue > 1e-4


@pytest.mark.long("renderings")
def test_scales_and_turns_are_uniform() -> None:
    count = 4000
    objects = placed_objects(fold(stream_key(1, "test"), 0), np.zeros((count, 3)), [("t", TRIANGLE)] * count)
    scales = np.array([one.scale for one in objects])
    for axis in range(3):
        assert stats.kstest(scales[:, axis], stats.uniform(0.3, 0.45).cdf).pvalue > 1e-4
    assert abs(stats.spearmanr(scales).statistic[np.triu_indices(3, 1)]).max() < 0.08
    angles = Rotation.from_matrix([one.rotation for one in objects]).as_euler("xyz", degrees=True) % 360
    # about y the angle comes back folded to ±90, which is uniform again; those about x and z turn by half then
    assert stats.kstest(angles[:, 0], stats.uniform(0, 360).cdf).pvalue > 1e-4
    assert stats.kstest((angles[:, 1] + 90) % 360, stats.uniform(0, 180).cdf).pvalue > 1e-4
    assert stats.kstest(angles[:, 2], stats.uniform(0, 360).cdf).pvalue > 1e-4


def test_turns_are_those_of_scipy() -> None:
    for angles in np.random.default_rng(0).uniform(0, 360, (20, 3)):
        assert euler(angles) == pytest.approx(Rotation.from_euler("xyz", angles, degrees=True).as_matrix(), abs=1e-12)


def test_positions_are_drawn_by_their_clearance() -> None:
    space = Space(np.array([[0.0, 0, 1], [1, 0, 1], [2, 0, 1], [0.2, 0, 1]]), np.array([1.0, 0.6, 0.2, 0.9]))
    second = [spread_positions(fold(stream_key(seed, "test"), 0), space, 2)[1, 0] for seed in range(2000)]
    assert set(second) == {1.0, 2.0}  # the last is too near to the first
    assert stats.binomtest(second.count(1.0), 2000, 0.75).pvalue > 1e-4
    assert len(spread_positions(fold(stream_key(0, "test"), 0), space, 15)) == 3
    assert spread_positions(fold(stream_key(0, "test"), 0), space, 0).shape == (0, 3)


def test_light_modes_are_uniform_and_within_the_room() -> None:
    rng = np.random.default_rng(0)
    space = Space(rng.uniform((-2, -2, 0.1), (2, 2, 2.4), (500, 3)), np.ones(500))
    found = [room_lights(fold(stream_key(seed, "test"), 0), Rays(Scene()), space) for seed in range(1200)]
    assert stats.chisquare([[mode for mode, _ in found].count(mode) for mode in MODES]).pvalue > 1e-4
    for mode, lights in found:
        assert isinstance(lights[0], Ambient)
        others = lights[1:]
        assert len(others) in {"even": {0}, "lamps with shadows": {2, 3}, "sun with shadows": {2}}.get(mode, {1})
        assert any(getattr(light, "shadow", False) for light in others) == ("shadows" in mode)
        for light in others:
            if isinstance(light, Lamp):
                assert 0.75 * 2.39 < light.position[2] <= 2.4
                assert (np.array(light.position) == space.points).all(axis=1).any()
            elif isinstance(light, Directional) and not light.of_camera:
                assert 25 <= np.degrees(np.arcsin(-light.direction[2])) <= 60
                assert np.linalg.norm(light.direction) == pytest.approx(1)
        straight = np.sum([np.max(light.color) for light in lights])
        assert 0.7 <= straight <= 2.4


def test_the_sun_shines_through_the_window() -> None:
    corners = np.array(shell().corners)
    middles = corners.mean(axis=1)
    without = Mesh(corners.reshape(-1, 3), np.arange(36).reshape(-1, 3)[middles[:, 0] < 1.9])  # no wall at +x
    rng = np.random.default_rng(0)
    space = Space(rng.uniform((-1.9, -1.7, 0.1), (1.9, 1.7, 2.4), (500, 3)), np.ones(500))
    suns = 0
    for seed in range(60):
        mode, lights = room_lights(fold(stream_key(seed, "test"), 0), Rays(Scene((Placement(without),))), space)
        if mode == "sun with shadows":
            suns += 1
            assert lights[-1].direction[0] < -0.3
    assert suns > 3


@pytest.mark.long("renderings")
def test_rooms_and_pairs_differ_and_seeds_matter() -> None:
    recipe = Room(rooms=2, pairs=2)
    assert len({digest(recipe, 0), digest(recipe, 1), digest(Room(rooms=2, pairs=2, seed=1), 0)}) == 3
    eyes = [recipe.camera_pair({"room": 0, "pair": pair}).eyes for pair in range(2)]
    assert not np.allclose(*eyes)


@pytest.mark.long("worker processes")
def test_nothing_depends_on_the_order_of_calls_or_the_process() -> None:
    recipe = Room(rooms=2, pairs=2, seed=3)
    forth = [digest(recipe, room) for room in range(2)]
    with ThreadPoolExecutor(2) as pool:  # of a recipe that has built nothing yet, the last room first
        fresh = pickle.loads(pickle.dumps(recipe))
        assert list(pool.map(lambda room: digest(fresh, room), (1, 0))) == forth[::-1]
    alone = Room(rooms=9, pairs=5, seed=3)
    row = {"room": 1, "pair": 1, "side": 1}
    assert alone.camera(row, alone.scene(row)) == recipe.camera(row, recipe.scene(row))
    program = (
        f"import hashlib, itertools\nfrom setsup.scenes.recipes import Room\n{inspect.getsource(digest)}\n"
        "print(digest(Room(rooms=2, pairs=2, seed=3), 1))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "1"}
    )
    assert found.stdout.strip() == forth[1]


def test_the_key_tells_apart_what_draws_differently() -> None:
    same = cheap(rooms=7, pairs=3)
    others = [
        cheap(seed=1),
        cheap(count=(2, 5)),
        cheap(size=(48, 64)),
        cheap(up=(0, 0, 1)),
        cheap(meshes=None),
        cheap(objects=None),
        cheap(meshes={"box": shell(4.01)}),
        cheap(meshes={"other": shell()}),
        cheap(objects={"triangle": shell()}),
    ]
    assert cheap(up=(0, 1, 0)).key == cheap(up=np.array([0.0, 2.0, 0.0])).key
    assert cheap().key == same.key == pickle.loads(pickle.dumps(same)).key
    assert len({same.key, *(one.key for one in others)}) == 10


def test_default_objects_are_of_the_size_of_shapenets() -> None:
    objects = default_objects()
    assert len(objects) == 36
    for mesh in objects.values():
        assert np.linalg.norm(np.ptp(mesh.bounds, axis=0)) == pytest.approx(1)
        assert mesh.bounds.mean(axis=0) == pytest.approx([0, 0, 0], abs=1e-9)
        area = np.linalg.norm(np.cross(*(mesh.corners[:, 1:] - mesh.corners[:, :1]).transpose(1, 0, 2)), axis=1)
        assert area.min() > 0
        flat = np.cross(*(mesh.corners[:, 1:] - mesh.corners[:, :1]).transpose(1, 0, 2)) / area[:, None]
        along = np.abs((flat[:, None] * mesh.normals[mesh.faces]).sum(axis=2))
        assert along.min() > 0.5  # normals of the corners are about those of the triangle
        assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(np.ones(len(mesh.normals)), abs=1e-5)


@pytest.mark.parametrize("number", range(4))
def test_made_rooms_are_closed_but_for_windows(number: int) -> None:
    scene = made_room(fold(stream_key(2, "test"), number))
    names = list(scene.names.values())
    assert names[:3] == ["walls", "floor", "ceiling"]
    assert {"door", "window"} < set(names)
    low, high = scene.bounds
    assert low[2] == 0
    assert 2.4 <= high[2] <= 3.1
    rng = np.random.default_rng(number)
    ways = rng.normal(size=(400, 3))
    origins = np.tile([0.0, 0, 1.2], (400, 1))
    far = first_hits(origins, ways, scene.triangles.corners)
    out = ~np.isfinite(far)
    assert 0 < out.mean() < 0.15
    # what escapes does so through a wall between 0.8 m and 2.1 m above the floor
    walls = np.where(ways > 0, scene.placements[0].mesh.bounds[1], scene.placements[0].mesh.bounds[0])[:, :2]
    with np.errstate(divide="ignore"):
        steps = ((walls - origins[:, :2]) / ways[:, :2]).min(axis=1)
    height = (origins + steps[:, None] * ways)[out, 2]
    assert ((height > 0.75) & (height < 2.15)).all()


@pytest.fixture(scope="module")
def made() -> list[Scene]:
    return [made_room(fold(stream_key(4, "test"), number)) for number in range(12)]


@pytest.mark.long("renderings")
def test_furniture_stands_on_the_floor_and_within_the_walls(made) -> None:
    for scene in made:
        low, high = scene.placements[0].mesh.bounds
        for one in scene.placements[3:]:
            placed = one.placed(one.mesh.vertices[np.unique(one.mesh.faces)])
            assert placed[:, 2].max() <= high[2] + 1e-9
            assert placed[:, 2].min() >= -1e-9
            if one.name != "window":  # of which a little is outside
                assert (placed[:, :2] >= low[:2] - 1e-9).all()
                assert (placed[:, :2] <= high[:2] + 1e-9).all()
            if one.name not in {"window", "door", "picture"}:
                assert placed[:, 2].min() == pytest.approx(0, abs=0.11)


@pytest.mark.long("renderings")
def test_furniture_along_the_walls_does_not_collide(made) -> None:
    for scene in made:
        along = [one for one in scene.placements[3:] if one.name not in {"rug", "table", "chair", "window", "picture"}]
        boxes = [
            (placed.min(axis=0), placed.max(axis=0))
            for placed in (one.placed(one.mesh.vertices[np.unique(one.mesh.faces)]) for one in along)
        ]
        for (low, high), (other_low, other_high) in itertools.combinations(boxes, 2):
            assert ((high <= other_low + 1e-9) | (other_high <= low + 1e-9)).any()


def test_given_rooms_take_turns_and_are_levelled(tmp_path: Path) -> None:
    scan = shell(5, 4, 2.6, tilt=0.0)
    turned = scan.vertices @ Rotation.from_euler("x", -90 + 6, degrees=True).as_matrix().T + (7.0, -1.0, 3.0)
    path = tmp_path / "005.ply"
    trimesh.Trimesh(turned, scan.faces, process=False).export(path)
    calls = []

    def other() -> Mesh:
        calls.append(1)
        return shell()

    recipe = Room(
        rooms=4,
        meshes={"005": path, "other": other},
        objects={"triangle": lambda: TRIANGLE},
        up=(0, 1, 0),
        size=(48, 64),
    )
    scene = recipe.scene({"room": 2})
    assert scene.placements[0].name == "room"
    assert scene.bounds[:, 2] == pytest.approx([0, 2.6], abs=1e-5)
    assert scene.bounds.mean(axis=0)[:2] == pytest.approx([0, 0], abs=1e-5)
    assert {one.name for one in scene.placements[1:]} == {"triangle"}
    assert recipe.scene({"room": 0}).placements[0].mesh is scene.placements[0].mesh
    with pytest.raises(DataError, match="room 'other': found no floor"):  # z is up in that one
        Room(meshes={"other": lambda: slope()}, up=(0, 1, 0)).scene({"room": 0})
    assert not calls
    camera = recipe.camera({"room": 2, "pair": 3, "side": 1}, scene)
    assert (camera.k[0, 0], camera.height) == (50, 48)


def slope() -> Mesh:
    corners = Rotation.from_euler("x", 45, degrees=True).apply([[-3, -3, 0], [3, -3, 0], [3, 3, 0], [-3, 3, 0]])
    return Mesh(corners, [[0, 1, 2], [0, 2, 3]])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"rooms": 0}, "rooms must be an integer from 1 to"),
        ({"pairs": 2.5}, "pairs must be an integer"),
        ({"rooms": True}, "rooms must be an integer"),
        ({"objects": {}}, "objects must map names to meshes, files or functions"),
        ({"objects": [TRIANGLE]}, "objects must map names"),
        ({"meshes": {}}, "meshes must map names"),
        ({"meshes": {"a": 5}}, "meshes: 'a' must be a Mesh, a file or a function"),
        ({"count": (3, 2)}, r"count must be \(least, most\)"),
        ({"count": 5}, r"count must be \(least, most\)"),
        ({"count": (-1, 5)}, "count must be an integer"),
        ({"size": (0, 64)}, "size must be"),
        ({"up": "y"}, "up of a room"),
        ({"up": (0, 0, 0)}, "up of a room"),
    ],
)
def test_options_out_of_range(options: dict, match: str) -> None:
    with pytest.raises(SetsupError, match=match):
        Room(**options)


def test_a_seed_out_of_range() -> None:
    with pytest.raises(SamplerError, match="seed"):
        Room(seed=-1)


@pytest.mark.long("renderings")
@pytest.mark.parametrize(
    ("row", "match"),
    [
        ({"pair": 0, "side": 0}, "'room'"),
        ({"room": 2, "pair": 0, "side": 0}, "room must be an integer from 0 to 1, not 2"),
        ({"room": 0.5, "pair": 0, "side": 0}, "room must be an integer"),
        ({"room": 0, "pair": -1, "side": 0}, "pair must be"),
        ({"room": 0, "pair": 0, "side": 2}, "side must be an integer from 0 to 1"),
        ({"room": 0, "pair": 0}, "'side'"),
        ({"room": "0", "pair": 0, "side": 0}, "room must be"),
        ({"room": 0, "pair": np.nan, "side": 0}, "pair must be"),
    ],
)
def test_rows_out_of_range(row: dict, match: str) -> None:
    recipe = cheap(rooms=2, pairs=2)
    with pytest.raises(FactorError, match=match):
        recipe.camera(row, recipe.scene({"room": 0}))


@pytest.mark.long("renderings")
@pytest.mark.parametrize("which", ["meshes", "objects"])
def test_files_that_are_missing_or_broken(tmp_path: Path, which: str) -> None:
    broken = tmp_path / "broken.ply"
    broken.write_bytes(b"ply\nformat ascii 1.0\nelement vertex 3\n")
    holes = tmp_path / "nan.obj"
    holes.write_text("v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    for path in (tmp_path / "none.ply", broken, holes):
        recipe = cheap(**{which: {"one": path}})
        with pytest.raises(DataError, match=path.stem):
            recipe.scene({"room": 0})


def test_functions_that_give_no_mesh() -> None:
    with pytest.raises(SetsupError, match="mesh"):
        cheap(objects={"one": lambda: 5}).scene({"room": 0})


def test_objects_that_are_larger_than_the_room() -> None:
    huge = Mesh(np.array(TRIANGLE.vertices) * 1000, TRIANGLE.faces)
    with pytest.raises(
        DataError, match="room 0, which is mesh 'box': object 'huge' has a diagonal of 866 m, which does"
    ):
        cheap(objects={"huge": huge}).scene({"room": 0})


def test_objects_that_leave_no_place_for_cameras() -> None:
    block = trimesh.creation.box((14.0, 14.0, 14.0))
    recipe = cheap(objects={"block": Mesh(np.array(block.vertices), np.array(block.faces))}, count=(1, 1))
    with pytest.raises(DataError, match=r"does not fit into its room|no positions for two cameras in a room"):
        recipe.camera({"room": 0, "pair": 0, "side": 0}, recipe.scene({"room": 0}))


@pytest.mark.long("renderings")
def test_a_room_in_millimetres_is_told(caplog: pytest.LogCaptureFixture) -> None:
    large = Mesh(np.array(shell().vertices) * 1000, shell().faces)
    recipe = cheap(meshes={"mm": large})
    row = {"room": 0, "pair": 0, "side": 0}
    recipe.camera(row, recipe.scene(row))
    assert "the room 'mm' measures 4000 × 3500 × 2500 m" in caplog.text
    assert "0.001" in caplog.text
    assert recipe.camera_pair(row).relaxed == 6


def test_a_room_in_kilometres_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    small = Mesh(np.array(shell().vertices) / 1000, shell().faces)
    with pytest.raises(DataError, match="the metre"):
        cheap(meshes={"km": small}).scene({"room": 0})
    assert "the room 'km' measures" in caplog.text


def test_an_empty_room_is_a_room() -> None:
    recipe = cheap(count=(0, 0))
    scene = recipe.scene({"room": 0})
    assert len(scene.placements) == 1
    assert recipe.camera_pair({"room": 0, "pair": 0}).relaxed == 0
