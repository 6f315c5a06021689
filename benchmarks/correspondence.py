"""Pixel correspondences: exact ones beside the bare casts and beside trimesh, and pairs of rendered views.

The casts are the bound: trimesh takes some 2.6 times as long as they alone do, so that twice its speed would leave a
quarter of the casts' time for all else: rays, projection, planes in float64, and the rays that float32 leaves in doubt.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measure import Side, Spread, alternate, ratio
from benchmarks.rows import Row, at_least, at_most, duration, rate
from benchmarks.scenes import dense_room, simple_room, views
from setsup.correspondence import flow, spatial
from setsup.correspondence.spatial_tracing import trace
from setsup.errors import DataError
from setsup.random import fold, stream_key
from setsup.scenes import Camera, Placement, Scene, Velocity, moved, renderer

__all__ = ["rows", "tree_of"]

TOPIC = "correspondence"
SIDE, FRACTION = 256, 1 / 8

Array = np.ndarray


def rows(full: bool) -> Iterator[Row]:
    for name, room in (("room of 225 k triangles", dense_room), ("room of 1.5 k triangles", simple_room)):
        yield from _pixels(name, room())
    yield from _dense(dense_room())
    yield from _flow(dense_room())
    yield _build(dense_room)
    yield from _pairs(dense_room(), full)


def _pixels(name: str, scene: Scene) -> Iterator[Row]:
    one, two = views(SIDE, SIDE)
    pixels = _drawn(one)
    what = f"{len(pixels):,} pixels at {SIDE}², {name}"
    sides = {
        "ours": Side(lambda: spatial(scene, one, two, pixels)),
        "closest": Side(_bare(scene, one, two, pixels, closest=True)),
        "any": Side(_bare(scene, one, two, pixels, closest=False)),
    }
    wanted = scene.triangles.corners.shape[0] > 1e5
    found = alternate(sides, blocks=31)
    for side, said in (("closest", "first hits, both ways"), ("any", "first hits there, any hit back")):
        against = f"the two bare casts on embreex: {said}"
        times = ratio(found["ours"], found[side])
        bound = at_most(2) if wanted and side == "closest" else None
        yield Row(TOPIC, what, duration(found["ours"]), against, duration(found[side]), times, "× their time", bound)
    try:
        by_trimesh = _by_trimesh(scene, one, two, pixels)
    except ImportError:
        return
    found = alternate({"ours": sides["ours"], "trimesh": Side(by_trimesh)})
    said = duration(found["ours"]), "the same through trimesh.ray on Embree", duration(found["trimesh"])
    yield Row(TOPIC, what, *said, ratio(found["trimesh"], found["ours"]), "×", at_least(2) if wanted else None)


def _dense(scene: Scene) -> Iterator[Row]:
    one, two = views(SIDE, SIDE)
    pixels = one.pixels()
    found = alternate(
        {"ours": Side(lambda: spatial(scene, one, two)), "bare": Side(_bare(scene, one, two, pixels, closest=True))}
    )
    said = duration(found["ours"]), "the two bare casts on embreex", duration(found["bare"])
    what = f"all {len(pixels):,} pixels at {SIDE}², room of 225 k triangles"
    yield Row(TOPIC, what, *said, ratio(found["ours"], found["bare"]), "× their time")


def _flow(scene: Scene) -> Iterator[Row]:
    """Flow of a frame in which five of the ten objects move, beside the casts of both frames."""
    later = moved(scene, {1 + 2 * nth: _motion(scene.placements[1 + 2 * nth]) for nth in range(5)}, 1.0)
    one, two = views(SIDE, SIDE)
    pixels = one.pixels()
    beside = {
        "ours": Side(lambda: flow(scene, one, later, two)),
        "bare": Side(_bare(scene, one, two, pixels, closest=True, later=later)),
    }
    found = alternate(beside, blocks=15)
    said = (
        duration(found["ours"]),
        "the two bare casts on embreex, in the scenes of both frames",
        duration(found["bare"]),
    )
    what = f"flow of a frame of {SIDE}², five things move, room of 225 k triangles"
    yield Row(TOPIC, what, *said, ratio(found["ours"], found["bare"]), "× their time", at_most(2))


def _motion(placement: Placement) -> Velocity:
    return Velocity(placement.rotation, placement.translation, linear=(0.05, 0.03, 0.02), angular=(0.1, 0.0, 0.2))


def _build(room: Callable[[], Scene]) -> Row:
    """What a scene costs once: ours, and Embree's tree of the plain triangles."""
    one, two = views(8, 8)
    fresh: list[Scene] = []

    def load() -> None:
        fresh[:] = [room()]
        _ = fresh[0].triangles

    ours = Side(lambda: spatial(fresh[0], one, two), before=load)
    bare = Side(lambda: tree_of(fresh[0]), before=load)
    found = alternate({"ours": ours, "bare": bare}, blocks=5)
    said = duration(found["ours"]), "Embree's tree alone", duration(found["bare"])
    return Row(
        TOPIC, "a scene made ready, room of 225 k triangles", *said, ratio(found["ours"], found["bare"]), "× its time"
    )


def _pairs(scene: Scene, full: bool) -> Iterator[Row]:
    """Pairs with both views rendered, a new pair of cameras each, one scene; and where the time goes."""
    try:
        drawn = renderer("embree")
        drawn.load(scene)
    except DataError:
        return
    cameras = views(SIDE, SIDE, 12)
    key = stream_key(0, "benchmark")
    spatial(scene, cameras[0], cameras[1])  # makes the scene ready, which is not what is asked here
    spent = {"rendering": 0.0, "correspondences": 0.0}
    step = 0

    def pair() -> None:
        nonlocal step
        one, two = cameras[step % 12], cameras[(step + 1) % 12]
        start = time.process_time()
        drawn.render(one)
        drawn.render(two)
        middle = time.process_time()
        spatial(scene, one, two, fraction=FRACTION, key=int(fold(key, step)))
        spent["rendering"] += middle - start
        spent["correspondences"] += time.process_time() - middle
        step += 1

    found = alternate({"ours": Side(pair)}, blocks=31 if full else 15)["ours"]
    total = sum(spent.values())
    where = ", ".join(f"{part} {100 * seconds / total:.0f} %" for part, seconds in spent.items())
    what = f"pairs with both views rendered (embree, flat), {SIDE}², 1/8 of the pixels, room of 225 k triangles"
    yield Row(TOPIC, what, rate(found, "pairs"), f"of the time: {where}", "", Spread.of(1 / found), "/s")


def _drawn(camera: Camera) -> Array:
    everything = camera.pixels()
    chosen = np.sort(np.random.default_rng(0).permutation(len(everything))[: int(len(everything) * FRACTION)])
    return everything[chosen]


def tree_of(scene: Scene):
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    tree = EmbreeScene(robust=True)
    TriangleMesh(tree, scene.triangles.corners.astype(np.float32))
    tree.run(np.zeros((1, 3), np.float32), np.ones((1, 3), np.float32))
    return tree


def _bare(
    scene: Scene, one: Camera, two: Camera, pixels: Array, *, closest: bool, later: Scene | None = None
) -> Callable[[], object]:
    """Both casts of the same rays with float32 arrays that are there already, and nothing else."""
    tree, traced = tree_of(scene), trace(scene, one, pixels)
    back_tree, seen = (tree, scene) if later is None else (tree_of(later), later)
    there = traced.seen(seen, two)[1] <= 1
    ways = [
        np.ascontiguousarray(some, np.float32) for some in (one.rays(pixels), traced.carried(seen)[there] - two.centre)
    ]
    starts = [
        np.ascontiguousarray(np.broadcast_to(camera.centre, way.shape), np.float32)
        for camera, way in zip((one, two), ways, strict=True)
    ]
    reach = np.full(len(ways[1]), 1 - 1e-4, np.float32)
    back = {"output": True} if closest else {"dists": reach, "query": "OCCLUDED"}

    def run() -> None:
        tree.run(starts[0], ways[0], output=True)
        back_tree.run(starts[1], ways[1], **back)

    return run


def _by_trimesh(scene: Scene, one: Camera, two: Camera, pixels: Array) -> Callable[[], Array]:
    """The same by trimesh's wrapper of Embree: first hits, projection, first hits back, distances compared."""
    import trimesh
    from trimesh.ray.ray_pyembree import RayMeshIntersector

    corners = scene.triangles.corners
    mesh = trimesh.Trimesh(corners.reshape(-1, 3), np.arange(corners.size // 3).reshape(-1, 3), process=False)
    rays = RayMeshIntersector(mesh)

    def run() -> Array:
        ways = one.rays(pixels)
        starts = np.broadcast_to(one.centre, ways.shape)
        points, ray, _ = rays.intersects_location(starts, ways, multiple_hits=False)
        seen, depth = two.project(points)
        there = (depth > 0) & (seen >= -0.5).all(axis=1) & (seen < (two.width - 0.5, two.height - 0.5)).all(axis=1)
        back = points[there] - two.centre
        starts = np.broadcast_to(two.centre, back.shape)
        first, which, _ = rays.intersects_location(starts, back, multiple_hits=False)
        visible = np.zeros(len(back), bool)
        towards = np.linalg.norm(first - two.centre, axis=1) / np.linalg.norm(back[which], axis=1)
        visible[which] = towards > 1 - 1e-4
        status = np.full(len(pixels), 3)
        status[ray] = 2
        status[ray[there]] = np.where(visible, 0, 1)
        return status

    wanted = spatial(scene, one, two, pixels).status
    if (agree := (run() == wanted).mean()) < 0.999:
        raise ValueError(f"trimesh agrees on {agree:.2%} of the pixels only")
    return run
