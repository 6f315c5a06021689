"""Rooms with moving objects: what is guaranteed of ways, and of what a frame depends on."""

import pickle

import numpy as np
import pytest
from scipy.linalg import expm

from setsup.errors import FactorError, SetsupError
from setsup.scenes.meshes.primitives import box
from setsup.scenes.motion import same_placements
from setsup.scenes.recipes import Room, RoomFrames

trimesh = pytest.importorskip("trimesh")


def rooms(**options):
    return RoomFrames(**{"rooms": 4, "size": (48, 64), "count": (1, 4), **options})


def nearest(corners, points):
    """Distance of each point to the nearest of all triangles, by trimesh."""
    some = np.repeat(corners[None], len(points), axis=0).reshape(-1, 3, 3)
    places = np.repeat(points, len(corners), axis=0)
    found = np.linalg.norm(trimesh.triangles.closest_point(some, places) - places, axis=1)
    return found.reshape(len(points), -1).min(axis=1)


def check_ways(recipe, room, times):
    still = Room(recipe.rooms, 1, None, recipe.objects, recipe.count, recipe.size, seed=recipe.seed)
    built = still.built({"room": room})
    shell = built.surfaces.rays.scene.triangles.corners
    scene = recipe.scene({"room": room, "frame": 0})
    assert [one.name for one in scene.placements[: len(built.scene.placements)]] == [
        one.name for one in built.scene.placements
    ]
    motions = recipe.motions({"room": room})
    assert sorted(motions) == list(range(len(built.scene.placements), len(scene.placements)))
    assert len(motions) == recipe.moving
    for number, motion in motions.items():
        thing = scene.placements[number]
        radius = np.linalg.norm(thing.mesh.vertices * thing.scale, axis=1).max()
        places = motion.pose(times).translation
        assert (nearest(shell, places) > radius).all()
        assert np.linalg.norm(np.ptp(places, axis=0)) > 0.05
    eyes = [recipe.camera({"room": room, "frame": frame}, scene).centre for frame in range(-1, recipe.frames + 1)]
    assert (nearest(shell, np.array(eyes)) > 0.025).all()
    steps = np.linalg.norm(np.diff(eyes, axis=0), axis=1) * recipe.fps
    assert steps.max() < 0.6 + 1e-9
    for thing in built.objects:
        low, high = thing.mesh.bounds * thing.scale
        inside = (np.array(eyes) - thing.translation) @ thing.rotation
        assert not ((inside > low) & (inside < high)).all(axis=1).any()


def test_objects_keep_from_surfaces():
    check_ways(rooms(frames=6, moving=2, seed=5), 1, np.linspace(-1 / 12, 0.5, 12))


@pytest.mark.long("exhaustive comparisons")
@pytest.mark.parametrize("seed", range(3))
def test_objects_keep_from_surfaces_for_long(seed):
    check_ways(rooms(frames=48, moving=5, seed=seed), seed % 4, np.linspace(-1 / 12, 4, 200))


def test_a_frame_depends_on_its_number_alone():
    """Not on how many frames, nor on the order in which they are asked for, nor on the process."""
    short, long = rooms(frames=3, moving=3), rooms(frames=500, moving=3)
    last = long.scene({"room": 2, "frame": 499})
    for frame in (2, 0, -1, 3):
        values = {"room": 2, "frame": frame}
        assert short.scene(values).digest == long.scene(values).digest
        assert short.camera(values, last) == long.camera(values, last)
    copy = pickle.loads(pickle.dumps(long))
    assert copy.scene({"room": 2, "frame": 499}).digest == last.digest
    assert short.key == long.key != rooms(moving=2).key
    assert len({rooms(**one).key for one in ({"fps": 24.0}, {"moving": 1}, {"seed": 1}, {"count": (0, 1)}, {})}) == 5


def test_frames_show_one_scene():
    recipe = rooms(frames=24, moving=4)
    first, last = (recipe.scene({"room": 0, "frame": frame}) for frame in (0, 23))
    assert same_placements(first, last)
    assert first.digest != last.digest
    assert np.array_equal(first.triangles.instance, last.triangles.instance)
    moves = [one is not two for one, two in zip(first.placements, last.placements, strict=True)]
    assert sum(moves) == 4
    assert recipe.label("floor") == Room().label("floor")
    assert recipe.classes == Room().classes
    # objects turn at a constant rate
    motion = recipe.motions({"room": 0})[len(moves) - 1]
    x, y, z = motion.angular
    turned = expm(np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) * (23 / 12))
    assert np.abs(last.placements[-1].rotation - turned @ first.placements[-1].rotation).max() < 1e-12
    assert 0.3 <= np.linalg.norm(motion.angular) <= 1.5


def test_all_rooms_have_as_many_instances():
    """Whatever room comes first, arrays of instances have room for those of all."""
    recipe = rooms(rooms=3, moving=7, count=(1, 4))
    assert recipe.instances == Room(count=(1, 4)).instances + 7
    assert all(max(recipe.scene({"room": room, "frame": 0}).names) < recipe.instances for room in range(3))


def test_large_objects_are_shrunk():
    recipe = rooms(frames=2, moving=1, objects={"block": box((3, 3, 3))}, count=(0, 0))
    thing = recipe.scene({"room": 0, "frame": 0}).placements[-1]
    assert 0.02 < np.linalg.norm(3 * thing.scale) / 2 < 1.3
    shell = Room(objects=recipe.objects, count=(0, 0)).built({"room": 0}).surfaces.rays.scene.triangles.corners
    assert nearest(shell, thing.translation[None])[0] > np.linalg.norm(1.5 * thing.scale)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"frames": 0}, "frames"), ({"moving": -1}, "moving"), ({"fps": 0}, "fps"), ({"count": 3}, "count must be")],
)
def test_wrong_options(options, message):
    with pytest.raises(SetsupError, match=message):
        rooms(**options)


@pytest.mark.parametrize("frame", [-2, 0.5, 1 << 21])
def test_wrong_frames(frame):
    with pytest.raises(FactorError, match="frame must be an integer from -1"):
        rooms().scene({"room": 0, "frame": frame})
    with pytest.raises(FactorError, match="requires the factor 'frame'"):
        rooms().scene({"room": 0})
