import hashlib
import logging
import os
import pickle
import subprocess
import sys
import threading
import weakref
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError
from setsup.scenes import Camera, Mesh, Placement, Rays, Scene
from setsup.scenes.meshes.primitives import box, cylinder, sphere
from setsup.scenes.ray_engines import _say_slow
from tests.scenes.ray_scenes import ball_and_boxes, fine_box, first_by_brute_force, soup, ways

pytest.importorskip("trimesh")
BY_EMBREE = pytest.mark.skipif(find_spec("embreex") is None, reason="no embreex here")

START = np.array([0.5, 0.25, 0.5])


@pytest.fixture
def by_trimesh(monkeypatch):
    """As where there is no wheel of embreex."""
    pytest.importorskip("rtree")
    _say_slow.cache_clear()
    for name in ("embreex", "embreex.rtcore_scene", "embreex.mesh_construction"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.long("Ray clusters")
@given(seed=st.integers(0, 1 << 30), count=st.integers(1, 60))
def test_first_hits_are_those_of_brute_force(seed, count):
    scene, dice = soup(seed, count), np.random.default_rng(seed)
    origin, directions = dice.normal(size=3) * 3, dice.normal(size=(200, 3))
    _agrees_with_brute_force(scene, origin, directions)
    _agrees_with_brute_force(scene, dice.normal(size=(200, 3)), directions)


def _agrees_with_brute_force(scene, origins, directions):
    found = Rays(scene).trace(origins, directions)
    triangle, distance, sure = first_by_brute_force(scene, origins, directions)
    assert sure.mean() > 0.9
    assert np.array_equal(found.triangle[sure], triangle[sure])
    met = sure & (triangle >= 0)
    assert np.allclose(found.distance[met], distance[met], rtol=2e-4, atol=1e-5)
    assert np.isinf(found.distance[found.triangle < 0]).all()
    a, b, c = scene.triangles.corners[found.triangle[met]].transpose(1, 0, 2)
    u, v = found.u[met, None], found.v[met, None]
    points = np.broadcast_to(origins, directions.shape)[met] + distance[met, None] * directions[met]
    assert np.allclose((1 - u - v) * a + u * b + v * c, points, atol=2e-3)
    hit, reached = Rays(scene).hit(origins, directions)
    assert np.array_equal(hit, found.triangle)
    assert np.array_equal(reached, found.distance)


@given(seed=st.integers(0, 1 << 30))
def test_refined_hits_lie_on_the_planes_of_their_triangles(seed):
    scene, dice = soup(seed, 20), np.random.default_rng(seed)
    directions = dice.normal(size=(50, 3))
    for origins in (np.array([0.3, -2.0, 0.1]), dice.normal(size=(50, 3))):
        triangle, distance, sure = first_by_brute_force(scene, origins, directions)
        refined = Rays(scene).refined(origins, directions, triangle)
        assert np.array_equal(np.isnan(refined), triangle < 0)
        met = sure & (triangle >= 0)
        assert np.allclose(refined[met], distance[met], rtol=1e-9)


def test_shared_edges_and_corners_let_nothing_through():
    # of the robust mode alone, one in a hundred of the rays at corners slips through
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    turned *= np.sign(np.linalg.det(turned))
    for mesh in (box(), fine_box(16), sphere(0.5, segments=32), cylinder(segments=48)):
        for placement in (
            Placement(mesh),
            Placement(mesh, rotation=turned),
            Placement(mesh, rotation=turned, scale=(3.0, 0.7, 1.3), translation=(0.4, -0.1, 0.2)),
        ):
            scene = Scene((placement,))
            a, b, c = scene.triangles.corners.transpose(1, 0, 2)
            middle = scene.bounds.mean(axis=0)
            for origin in (middle, middle + np.ptp(scene.bounds, axis=0) * (0.07, -0.11, 0.05)):
                for target in (a, b, (a + b) / 2, (b + c) / 2, a + 0.3 * (c - a), (a + b + c) / 3):
                    triangle, distance = Rays(scene).hit(origin, target - origin)
                    assert (triangle >= 0).all()
                    assert np.allclose(distance, 1, atol=2e-5)


@BY_EMBREE
def test_edges_seen_from_outside_let_nothing_through():
    scene = Scene((Placement(fine_box(16)),))
    a, b, c = scene.triangles.corners.transpose(1, 0, 2)
    eye = np.array([2.1, 1.7, 1.9])
    facing = np.stack([a, b, c]).mean(axis=0).max(axis=1) > 0.5 - 1e-9  # on a face that is turned to the eye
    assert facing.sum() == 3 * 2 * 16 * 16
    for target in ((a + b) / 2, (b + c) / 2, 0.25 * a + 0.75 * c):
        inner = target[facing]
        inner = inner[(np.abs(inner) > 0.5 - 1e-9).sum(axis=1) == 1]  # not on an edge of the cube
        assert len(inner) > 1400
        assert np.allclose(Rays(scene).hit(eye, inner - eye)[1], 1, atol=1e-5)


def test_a_room_far_from_the_origin_is_traced_as_one_around_it():
    away = np.array([2.0**17, -(2.0**16), 2.0**15])  # added to these coordinates without rounding
    near = ball_and_boxes()
    far = Scene(tuple(Placement(one.mesh, translation=one.translation + away) for one in near.placements))
    directions = ways(2000)
    here, there = Rays(near).trace(START, directions), Rays(far).trace(away + START, directions)
    assert (here.triangle >= 0).any()
    for one, other in zip(here, there, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("scale", [1e-7, 1e-3, 1e3, 1e5])
def test_any_unit_of_length(scale):
    scene = ball_and_boxes()
    scaled = Scene(
        tuple(
            Placement(one.mesh, scale=np.full(3, scale), translation=one.translation * scale)
            for one in scene.placements
        )
    )
    directions = ways(2000)
    origin = np.array([0.5, 0.25, 0.5])
    triangle, distance = Rays(scene).hit(origin, directions)
    other, longer = Rays(scaled).hit(origin * scale, directions)
    assert (triangle == other).mean() > 0.995  # but at edges
    same = (triangle == other) & (triangle >= 0)
    assert np.allclose(longer[same] / scale, distance[same], rtol=1e-4)


def test_triangles_without_area_are_never_met():
    corners = [[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]]
    scene = Scene((Placement(Mesh(corners, [[0, 1, 2], [0, 0, 0], [1, 1, 3], [0, 1, 3]])),))
    targets = np.array([[0.5, 0, 0], [1, 0, 0], [1.5, 0, 0], [0, 0, 0], [0.5, 0.5, 0], [0.2, 0.2, 0]])
    triangle, _ = Rays(scene).hit((0.3, 0.3, 2), targets - (0.3, 0.3, 2))
    assert set(triangle.tolist()) <= {-1, 3}
    assert triangle[-1] == 3
    only = Scene((Placement(Mesh(corners, [[0, 1, 2], [0, 0, 0]])),))
    assert (Rays(only).hit((0.3, 0.3, 2), targets - (0.3, 0.3, 2))[0] == -1).all()


@pytest.mark.long("Ray clusters")
@given(seed=st.integers(0, 1 << 30))
def test_the_side_of_a_leaf_that_is_seen_says_where_it_was_met(seed):
    """Every triangle of a soup twice, once for each side, in any order of its corners."""
    plain, dice = soup(seed, 12), np.random.default_rng(seed)
    corners = plain.placements[0].mesh.corners
    turns = dice.integers(0, 3, (2, 12))
    once = np.stack([np.roll(one, turn, axis=0) for one, turn in zip(corners, turns[0], strict=True)])
    again = np.stack([np.roll(one[::-1], turn, axis=0) for one, turn in zip(corners, turns[1], strict=True)])
    leaves = np.stack([once, again], axis=1).reshape(-1, 3)
    scene = Scene((Placement(Mesh(leaves, np.arange(len(leaves)).reshape(-1, 3))),))
    ways, start = dice.normal(size=(100, 3)), dice.normal(size=3)
    found, expected = Rays(scene).trace(start, ways), Rays(plain).trace(start, ways)
    same = found.triangle // 2 == expected.triangle
    assert same.mean() > 0.97  # but at edges
    assert np.allclose(found.distance[same], expected.distance[same], rtol=1e-3)
    met = found.triangle >= 0
    a, b, c = scene.triangles.corners[found.triangle[met]].transpose(1, 0, 2)
    assert ((np.cross(b - a, c - a) * ways[met]).sum(axis=1) < 0).all()  # counterclockwise as seen by the ray
    u, v = found.u[met, None], found.v[met, None]
    points = start + found.distance[met, None] * ways[met]
    assert np.allclose((1 - u - v) * a + u * b + v * c, points, atol=2e-3)


def test_whatever_is_in_the_way_within_reach():
    scene = Scene((Placement(box(), translation=(0, 0, 5)),))  # from 4.5 to 5.5
    rays = Rays(scene)
    up, origin = np.array([[0, 0, 1.0]] * 4), (0.1, 0.2, 0)
    assert rays.blocked(origin, up, [4.4, 4.6, 5.6, np.inf]).tolist() == [False, True, True, True]
    assert rays.blocked(origin, up * 9).tolist() == [True] * 4
    assert rays.blocked(origin, up).tolist() == [False] * 4
    assert rays.blocked(origin, -up, np.inf).tolist() == [False] * 4
    reach = np.full(4, 4.6, np.float32)
    rays.blocked(origin, up, reach)
    assert (reach == np.float32(4.6)).all()


def test_rays_that_are_none_meet_nothing():
    scene = ball_and_boxes()
    none = np.array([[0, 0, 0], [np.nan, 0, 1], [np.inf, 0, 0]])
    for origin in ((0.5, 0.25, 0.5), (9, 9, 9)):
        found = Rays(scene).trace(origin, none)
        assert found.triangle.tolist() == [-1, -1, -1]
        assert np.isinf(found.distance).all()
        assert not Rays(scene).blocked(origin, none).any()


def test_empty_scenes_and_no_rays():
    for scene in (Scene(), ball_and_boxes()):
        rays = Rays(scene)
        assert [len(column) for column in rays.trace((0, 0, 0), np.empty((0, 3)))] == [0] * 4
        assert len(rays.blocked((0, 0, 0), np.empty((0, 3)))) == 0
        assert len(rays.refined((0, 0, 0), np.empty((0, 3)), np.empty(0, np.int32))) == 0
    assert Rays(Scene()).hit((0, 0, 0), [[0, 0, 1]])[0].tolist() == [-1]
    assert Rays(Scene()).blocked((0, 0, 0), [[0, 0, 1]]).tolist() == [False]
    assert np.isnan(Rays(Scene()).refined((0, 0, 0), [[0, 0, 1]], np.array([-1]))).all()


def test_wrong_shapes_are_refused():
    rays = Rays(ball_and_boxes())
    with pytest.raises(SetsupError, match=r"rays must be a numeric array of shape \(n, 3\), not of shape \(3,\)"):
        rays.hit((0, 0, 0), (0, 0, 1))
    with pytest.raises(
        SetsupError, match=r"3 rays must be a numeric array of shape \(3,\) or \(3, 3\), not of shape \(2, 3\)"
    ):
        rays.hit(np.zeros((2, 3)), np.ones((3, 3)))


def test_threads_share_a_scene():
    scene, directions = ball_and_boxes(), ways(5000)
    expected = _digest(Rays(ball_and_boxes()), directions)
    found, start = [], threading.Barrier(8)

    def trace():
        start.wait()  # all want the tree at once
        found.extend(_digest(Rays(scene), directions) for _ in range(3))

    threads = [threading.Thread(target=trace) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [expected] * 24


def _digest(rays, directions):
    found = rays.trace((0.5, 0.25, 0.5), directions)
    return hashlib.sha256(b"".join(column.tobytes() for column in found)).hexdigest()


def test_pickled_rays_trace_the_same():
    rays, directions = Rays(ball_and_boxes()), ways(1000)
    before = _digest(rays, directions)
    assert _digest(pickle.loads(pickle.dumps(rays)), directions) == before


def test_what_is_built_goes_with_the_scene():
    scene = ball_and_boxes()
    kept = Rays(scene)
    kept.hit((0, 0, 0), [[0, 0, 1]])
    held = weakref.ref(scene)
    del kept, scene
    assert held() is None  # at once, not when the collector comes round


_FORK = """
import os, sys
from tests.scenes.ray_scenes import ball_and_boxes, ways
from tests.scenes.test_rays import _digest
from setsup.scenes import Rays

rays, directions = Rays(ball_and_boxes()), ways(5000)
before = _digest(rays, directions)
child = os.fork()
if not child:
    again = _digest(rays, directions), _digest(Rays(ball_and_boxes()), directions)  # the parent's tree, and its own
    os._exit(0 if again == (before, before) else 3)
print(before, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

_MANY = """
import numpy as np
from setsup.scenes import Placement, Rays, Scene
from setsup.scenes.meshes.primitives import box

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def trace(number):
    rays = Rays(Scene((Placement(box((1, 1, 1 + number))),)))
    assert rays.hit((0, 0, 0), [[0, 0, 1]])[1][0] > 0

for number in range(300):
    trace(number)
before = resident()
for number in range(2000):
    trace(number)
print(resident() - before)
"""


def _run(script):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.long("Ray clusters")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_rays_survive_fork_and_other_processes_find_the_same():
    digest, status = _run(_FORK)
    assert status == "0"
    assert digest == _digest(Rays(ball_and_boxes()), ways(5000))


@pytest.mark.long("Ray clusters")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_thousands_of_scenes_take_no_more_memory():
    (grown,) = _run(_MANY)
    assert int(grown) < 4 << 20  # 2 KB a scene; the tree of one is larger


_LIMITED = """
import resource, sys
import numpy as np
from setsup.errors import SetsupError
from setsup.scenes import Mesh, Placement, Rays, Scene
from tests.scenes.ray_scenes import soup

rays = [Rays(soup(seed, 3000)) for seed in range(40)]
rays[0].hit((0, 0, 0), [[0, 0, 1]])
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (46 << 20), resource.RLIM_INFINITY))
kept = []
try:
    for one in rays:
        kept.append(one.hit((0, 0, 0), [[0, 0, 1]]))
except SetsupError as error:
    print(error)
"""


@pytest.mark.long("Ray clusters")
@BY_EMBREE
def test_more_scenes_than_a_process_has_keys_for_thread_local_storage():
    """POSIX guarantees 128 keys, Linux has 1,024; a scene must not take one each."""
    triangle = Mesh([[-1, -1, 1], [1, -1, 1], [0, 1, 1]], [[0, 1, 2]])
    kept = []
    for _ in range(1100):
        kept.append(Rays(Scene((Placement(triangle),))))
        assert kept[-1].hit((0, 0, 0), [[0, 0, 1]])[1].tolist() == [1.0]


@pytest.mark.long("Ray clusters")
@BY_EMBREE
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_that_cannot_be_had_is_an_error():
    assert " ".join(_run(_LIMITED)).startswith(
        "tracing a scene of 3,000 triangles may take 33 MiB, more than this process"
    )


@BY_EMBREE
def test_trimesh_stands_in_for_embreex(by_trimesh, monkeypatch, caplog):
    directions = ways(400)
    slow = Rays(ball_and_boxes())
    with caplog.at_level(logging.WARNING, "setsup"):
        triangle, distance = slow.hit((0.5, 0.25, 0.5), directions)
    assert "rays are traced by trimesh, which is many times slower than embreex" in caplog.text
    behind = slow.blocked((0.5, 0.25, 0.5), directions, 1.0)
    points = slow.trace((0.5, 0.25, 0.5), directions)
    monkeypatch.undo()
    fast = Rays(ball_and_boxes())
    expected, far = fast.hit((0.5, 0.25, 0.5), directions)
    same = triangle == expected
    assert same.mean() > 0.99  # but at edges
    assert np.allclose(distance[same], far[same], rtol=1e-4)
    assert (behind == fast.blocked((0.5, 0.25, 0.5), directions, 1.0)).mean() > 0.99
    exact = fast.trace((0.5, 0.25, 0.5), directions)
    assert np.allclose(points.u[same], exact.u[same], atol=1e-3)
    assert np.allclose(points.v[same], exact.v[same], atol=1e-3)


def test_without_any_engine_embreex_is_named(by_trimesh, monkeypatch):
    monkeypatch.setitem(sys.modules, "rtree", None)
    with pytest.raises(DataError, match=r"embreex is required but not installed: pip install '\.\[render\]'"):
        Rays(soup(1, 5)).trace((0, 0, 0), [(1, 0, 0)])


def test_trimesh_agrees_with_brute_force(by_trimesh):
    scene, directions = soup(3, 30), ways(300)
    _agrees_with_brute_force(scene, np.array([0.1, 0.2, -0.3]), directions)
    assert Rays(scene).hit((0, 0, 0), [[0, 0, 0], [np.nan, 0, 0]])[0].tolist() == [-1, -1]
    test_triangles_without_area_are_never_met()
    test_whatever_is_in_the_way_within_reach()


def test_pixels_of_a_camera_meet_what_they_show():
    scene = ball_and_boxes()
    camera = Camera.look_at((3, -2, 1.5), (0.5, 0.2, 0.4), height=40, width=50, focal_length=60)
    triangle, distance = Rays(scene).hit(camera.centre, camera.rays())
    met = triangle >= 0
    pixels, depth = camera.project((camera.centre + camera.rays() * distance[:, None])[met])
    assert np.allclose(pixels, camera.pixels()[met], atol=1e-4)
    assert np.allclose(depth, distance[met])
