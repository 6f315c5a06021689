"""Frames per second of the gl renderer on a GPU, with all outputs in memory of the processor.

Against the embree renderer on one core, and beside what authors of batch renderers publish. These leave frames on the
GPU, draw thousands in one call, and count other work: BPS [1]_ whole training on depth of 64 × 64 pixels, ManiSkill3
[2]_ colors, depth and segmentation of small scenes on an RTX 4090, simulated as well.

References
----------
.. [1] Shacklett et al., "Large batch simulation for deep reinforcement learning", ICLR 2021: 19,000 frames per second.
.. [2] ManiSkill3, https://github.com/haosulab/ManiSkill: 30,000 frames per second.

"""

import os
import time
from collections.abc import Iterator

from benchmarks.measure import Seconds, Side, Spread, alternate, ratio, shrunk, sized
from benchmarks.rows import Row, number
from benchmarks.scenes import dense_room, simple_room, views
from setsup.scenes import Scene
from setsup_renderers.embree import EmbreeRenderer
from setsup_renderers.gl import GLRenderer

__all__ = ["rows"]

TOPIC = "gpu_rendering"
SIZES = sized((64, 256, 512), (64,))
VIEWS = 16
PUBLISHED = {"BPS, 64 × 64, depth, with training": 19_000, "ManiSkill3, RGBD and segmentation": 30_000}


def rows(full: bool) -> Iterator[Row]:
    os.environ.setdefault("LP_NUM_THREADS", "0")
    drawn_on = GLRenderer.check()
    if "software" in drawn_on and not shrunk():
        raise RuntimeError(f"OpenGL draws in software, on {drawn_on}; setsup doctor --gpu says how to draw on the GPU")
    for name, scene in (("simple", simple_room()), ("room", dense_room()))[: sized(2, 1)]:
        for size in SIZES:
            yield from _frames(f"{name}, {len(scene.triangles.corners):,} triangles, {size} × {size}", scene, size)


def _frames(what: str, scene: Scene, size: int) -> Iterator[Row]:
    cameras = views(size, size, sized(VIEWS, 2))
    gl, embree = GLRenderer(), EmbreeRenderer()
    for one in (gl, embree):
        one.load(scene)

    def all_of(renderer: GLRenderer | EmbreeRenderer) -> None:
        for camera in cameras:
            renderer.render(camera)

    sides = {"gl": Side(lambda: all_of(gl), len(cameras)), "embree": Side(lambda: all_of(embree), len(cameras))}
    found = alternate(sides, 5, 0.2, time.perf_counter)
    gl.close()
    said = _rate(found["gl"]), "embree, one core", _rate(found["embree"])
    yield Row(TOPIC, what, *said, ratio(found["embree"], found["gl"]), "×")
    if size == SIZES[0]:
        for other, frames in PUBLISHED.items():
            yield Row(
                TOPIC, what, _rate(found["gl"]), other, f"{frames:,} frames/s", Spread.of(1 / found["gl"] / frames)
            )


def _rate(seconds: Seconds) -> str:
    return f"{number(1 / Spread.of(seconds).median)} frames/s"
