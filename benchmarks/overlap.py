"""Overlap of views: measuring pairs beside the bare casts of the same rays, candidates of many views, and tables.

Two casts a pair are the bound: first hits of the sample pixels of one view, and rays from the other view back to them.
All pairs with the same second view are cast together, on both sides. Ours casts the first hits of a view once for all
of its partners; beside that it draws pixels, projects, decides in float64, and takes medians.
"""

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.correspondence import tree_of
from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.rows import Row, at_most, duration
from benchmarks.scenes import dense_room, simple_room, views
from setsup.correspondence import overlap
from setsup.factors import Factor, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.samplers.overlap.table import OverlapTable
from setsup.scenes import Camera, Scene
from setsup.scenes.recipes import FunctionRecipe

__all__ = ["rows"]

TOPIC = "overlap"
SIDE, PIXELS, VIEWS = 256, 192, 32
MANY, CANDIDATES = 2000, 128
LISTED = 1_000_000


def rows(full: bool) -> Iterator[Row]:
    for name, room in (("room of 225 k triangles", dense_room), ("room of 1.5 k triangles", simple_room)):
        yield _pairs(name, room())
    yield _table()
    if full:
        yield _many(simple_room())


def _dataset(scene: Scene, cameras: list[Camera]) -> RenderedDataset:
    factors = [Factor("room", Kind.ORDINAL, (0,)), Factor("view", Kind.ORDINAL, tuple(range(len(cameras))))]
    return RenderedDataset(
        FunctionRecipe(
            "rooms",
            factors,
            lambda values: scene,
            lambda values, _: cameras[values["view"]],
            ["room"],
            (SIDE, SIDE),
            "1",
        )
    )


def _pairs(name: str, scene: Scene) -> Row:
    cameras = views(SIDE, SIDE, sized(VIEWS, 3))
    dataset = _dataset(scene, cameras)
    pairs = len(cameras) * (len(cameras) - 1)
    ours = Side(lambda: overlap(dataset), pairs)
    found = alternate({"ours": ours, "bare": Side(_bare(scene, cameras), pairs)}, blocks=9)
    said = (
        duration(found["ours"]),
        "the two bare casts of the same rays on embreex, batched alike",
        duration(found["bare"]),
    )
    what = f"a directed pair of {PIXELS} pixels, {len(cameras)} views, {name}"
    return Row(TOPIC, what, *said, ratio(found["ours"], found["bare"]), "× their time", at_most(1.5))


def _bare(scene: Scene, cameras: list[Camera]) -> Callable[[], object]:
    """For each second view one cast of first hits of all others, and one back to them, of arrays that are there."""
    tree, rng = tree_of(scene), np.random.default_rng(0)
    pixels = [rng.permutation(camera.pixels())[:PIXELS] for camera in cameras]
    ways = [camera.rays(some) for camera, some in zip(cameras, pixels, strict=True)]
    first = [
        (np.ascontiguousarray(np.broadcast_to(camera.centre, way.shape), np.float32), way.astype(np.float32))
        for camera, way in zip(cameras, ways, strict=True)
    ]
    reach = [tree.run(*rays, output=True)["tfar"] for rays in first]
    points = [camera.centre + way * far[:, None] for camera, way, far in zip(cameras, ways, reach, strict=True)]
    batches = []
    for second, camera in enumerate(cameras):
        others = [number for number in range(len(cameras)) if number != second]
        seen = np.concatenate([points[number] for number in others])
        places, depth = camera.project(seen)
        inside = (
            (depth > 0)
            & (places >= -0.5).all(axis=1)
            & (places < (camera.width - 0.5, camera.height - 0.5)).all(axis=1)
        )
        back = np.ascontiguousarray(seen[inside] - camera.centre, np.float32)
        here = np.ascontiguousarray(np.broadcast_to(camera.centre, back.shape), np.float32)
        batches.append((*(np.concatenate([first[number][part] for number in others]) for part in (0, 1)), here, back))

    def run() -> None:
        for start, way, here, back in batches:
            tree.run(start, way, output=True)
            tree.run(here, back, output=True)

    return run


def _table() -> Row:
    """A million pairs of 8,000 views: bytes of the file, and memory of opening it, reading it and finding pairs."""
    count = sized(LISTED, 1000)
    rng = np.random.default_rng(0)
    views = 8 * max(count // 1000, 1)
    pairs = np.unique(rng.integers(0, views, (2 * count, 2)), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]][:count]
    possible = views * (views - 1)
    share = rng.random(len(pairs))
    table = OverlapTable(
        first=pairs[:, 0],
        second=pairs[:, 1],
        overlap=share,
        angle=90 * share,
        scale=1 + share,
        unknown=0 * share,
        decided=np.full(len(pairs), PIXELS),
        views=np.arange(views),
        sampled=np.full(views, PIXELS),
        starts=[0, views],
        counts=[[possible, 0, len(pairs), possible - len(pairs)]],
        excluded=np.packbits(np.zeros((views, views), bool).reshape(-1)),
        excluded_starts=[0, -(-views * views // 8)],
        about={"dataset": "views", "fingerprint": "0" * 32, "rows": views, "source": "scenes", "settings": {}},
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "views.overlap")
        table.save(file)
        size = file.stat().st_size
        start = time.process_time()
        opened = OverlapTable.open(file)
        opened.find(pairs[:, 0], pairs[:, 1])
        spent = time.process_time() - start
    what = f"the file of {len(pairs):,} pairs of {views:,} views"
    said = f"{size / 1e6:.0f} MB", "opening it and finding all pairs", f"{spent:.2f} s of CPU time"
    return Row(TOPIC, what, *said, Spread.of([size / 1e6]), "MB", at_most(100))


def _many(scene: Scene) -> Row:
    """2,000 views with 128 candidates, on two processes."""
    count = sized(MANY, 210)
    cameras = views(SIDE, SIDE, count)
    dataset = _dataset(scene, cameras)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        table = overlap(dataset, candidates=CANDIDATES, path=Path(folder, "many.overlap"), processes=2)
        spent = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    what = f"{count:,} views with {CANDIDATES} candidates, two processes, room of 1.5 k triangles"
    said = f"{spent:.0f} s for {len(table):,} pairs", "peak memory of the parent process", f"{memory:.0f} MB"
    return Row(TOPIC, what, *said, Spread.of([spent / 60]), "minutes", at_most(10))
