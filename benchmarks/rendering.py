"""Frames of the embree renderer, all outputs, on one core: against pyrender, and against Embree's rays alone.

pyrender draws colours and depth, then ids, as its users do, with the same two lights and flat triangles; it gives no
normals and no triangles, and its depth is not of pixel centres, so that it does less. (It draws both sides of flat
triangles, as ours does; with back faces left out and normals interpolated it takes half as long.) The bare casts are
one call of embreex with rays that are there already: what no shading can be faster than. The rows of the gl renderer
follow.
"""

import importlib
import os
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import rendering_gl
from benchmarks.measure import Side, alternate, ratio
from benchmarks.rows import Row, at_least, at_most, duration
from benchmarks.scenes import dense_room, simple_room, views
from setsup.scenes import Camera, Scene
from setsup_renderers.embree import EmbreeRenderer

__all__ = ["rows"]

TOPIC = "rendering"
SCENES: tuple[tuple[str, Callable[..., Scene]], ...] = (("simple", simple_room), ("room", dense_room))
LEAST = {("room", 64): 20, ("room", 256): 4}
"""What is required beside pyrender."""
MOST = {("room", 64, "flat"): 1.5, ("room", 64, "textures"): 2.5}
"""What is allowed beside the bare casts."""
KINDS = {
    "interpolated normals": {"smooth": True},
    "textures": {"textures": True},
    "shadows of two lights": {"shadows": True},
}


def rows(full: bool) -> Iterator[Row]:
    os.environ.setdefault("LP_NUM_THREADS", "0")  # llvmpipe's threads would count as the time of none
    for name, made in SCENES:
        yield from _flat(name, made())
        for kind, how in KINDS.items():
            yield from _shaded(name, kind, made(**how))
        yield _load(name, made)
    yield from rendering_gl.rows(full)


def _flat(name: str, scene: Scene) -> Iterator[Row]:
    ours, theirs = _renderer(scene), rendering_gl._pyrender(scene)
    for size in (64, 256):
        camera = views(size, size)[0]
        sides = {"ours": Side(lambda camera=camera: ours.render(camera)), "bare": Side(_casts(scene, camera))}
        if theirs is not None:
            sides["pyrender"] = Side(theirs(camera))
        found = alternate(sides)
        what, took = f"{_said(name, scene)}, {size}², flat", duration(found["ours"])
        if theirs is not None:
            least = LEAST.get((name, size))
            times = ratio(found["pyrender"], found["ours"])
            said = took, "pyrender, RGB and depth, then ids", duration(found["pyrender"])
            yield Row(TOPIC, what, *said, times, "×", None if least is None else at_least(least))
        yield _beside_casts(what, found, MOST.get((name, size, "flat")))


def _shaded(name: str, kind: str, scene: Scene) -> Iterator[Row]:
    ours = _renderer(scene)
    for size in (64, 256):
        camera = views(size, size)[0]
        sides = {"ours": Side(lambda camera=camera: ours.render(camera)), "bare": Side(_casts(scene, camera))}
        what = f"{_said(name, scene)}, {size}², {kind}"
        yield _beside_casts(what, alternate(sides), MOST.get((name, size, kind)))


def _load(name: str, made: Callable[..., Scene]) -> Row:
    """What a new scene costs, with its first view: ours, and Embree's tree with one ray."""
    camera = views(256, 256)[0]
    fresh: list[Scene] = []

    def prepare() -> None:
        fresh[:] = [made()]
        _ = fresh[0].triangles

    ours = Side(lambda: _renderer(fresh[0]).render(camera), before=prepare)
    found = alternate({"ours": ours, "bare": Side(lambda: _tree(fresh[0]), before=prepare)}, blocks=7)
    said = duration(found["ours"]), "Embree's tree alone", duration(found["bare"])
    what = f"{_said(name, fresh[0])}, 256², new scene and first view"
    return Row(TOPIC, what, *said, ratio(found["ours"], found["bare"]), "× its time")


def _beside_casts(what: str, found: dict[str, np.ndarray], most: float | None = None) -> Row:
    said = duration(found["ours"]), "the bare casts of its pixels on embreex", duration(found["bare"])
    bound = None if most is None else at_most(most)
    return Row(TOPIC, what, *said, ratio(found["ours"], found["bare"]), "× their time", bound)


def _renderer(scene: Scene) -> EmbreeRenderer:
    found = EmbreeRenderer()
    found.load(scene)
    return found


def _casts(scene: Scene, camera: Camera) -> Callable[[], object]:
    tree, ways = _tree(scene), camera.rays().astype(np.float32)
    starts = np.broadcast_to(camera.centre.astype(np.float32), ways.shape).copy()
    return lambda: tree.run(starts, ways, output=True)


def _tree(scene: Scene) -> object:
    tree = importlib.import_module("embreex.rtcore_scene").EmbreeScene(robust=True)
    points = [one.placed(one.mesh.vertices).astype(np.float32) for one in scene.placements]
    before = np.cumsum([0, *(len(some) for some in points)])
    faces = [one.mesh.faces + first for one, first in zip(scene.placements, before.tolist(), strict=False)]
    importlib.import_module("embreex.mesh_construction").TriangleMesh(
        tree, np.concatenate(points), np.concatenate(faces)
    )
    tree.run(np.zeros((1, 3), np.float32), np.ones((1, 3), np.float32))  # it is built now
    return tree


def _said(name: str, scene: Scene) -> str:
    return f"{name}, {len(scene.triangles.corners):,} triangles"
