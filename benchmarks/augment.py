"""The papers' augmentations of whole batches, against one picture after the other.

By the clock, and each as it would be run: ours on a batch with a thread for each core, in the process that trains; the
other side as items of one DataLoader worker, which has one thread. Both begin with pictures of uint8, and end with the
float32 tensors that a network gets. A second row has the CPU time of both, which other programs disturb less.
"""

import importlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.measure import Side, alternate, ratio
from benchmarks.peers import peer
from benchmarks.rows import Bound, Row, at_least, rate

__all__ = ["rows"]

TOPIC = "augment"
REQUIRED = at_least(5)
Batch = dict[str, Any]
Make = Callable[[], object]


def rows(full: bool) -> Iterator[Row]:
    if any(peer(name) is None for name in ("torch", "kornia", "opencv-python-headless")):
        return
    one = importlib.import_module("benchmarks.per_image")
    with _every_core():
        for some in (_pose, _dcodr, _pairs, _rooms):
            yield from some(one)


@contextmanager
def _every_core() -> Iterator[None]:
    """Threads for torch, of which the benchmarks otherwise allow one, and one thread for OpenCV."""
    import cv2
    import torch

    threads, others = torch.get_num_threads(), cv2.getNumThreads()
    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        cv2.setNumThreads(others)


def _pose(one: Any) -> Iterator[Row]:
    pictures, pool = _pictures(64, 128, 128, 4), _pictures(64, 256, 256)
    real = np.arange(64) % 16 == 15
    factors = {"part": real.reshape(4, 16)}
    ours = _ours("abc-pose", pictures, sets=4, factors=factors, pool=pool, real=("part", 1))

    def other() -> object:
        return one.stacked(one.posed(*given, pool) for given in zip(pictures, real, strict=True))

    yield from _compared("ABC pose: 64 of 128 × 128, twice", ours, other, 64, "OpenCV and numpy", REQUIRED)


def _dcodr(one: Any) -> Iterator[Row]:
    pictures = _pictures(128, 64, 64)
    ours = _ours("dcodr", pictures, sets=4, result="positive_image")
    for name, item, bound in (("Pillow", one.dcodr_pillow, REQUIRED), ("OpenCV", one.dcodr_opencv, None)):
        other = _each(one, item, pictures)
        yield from _compared("DCoDR: 128 of 64 × 64", ours, other, 128, name, bound)


def _pairs(one: Any) -> Iterator[Row]:
    pictures = _pictures(128, 32, 32)
    ours = _ours("oxels-2d", pictures, sets=1, result=None)
    other = _each(one, one.pixel_pairs, pictures)
    yield from _compared("single pixels, 2D: 128 of 32 × 32", ours, other, 128, "OpenCV and numpy", REQUIRED)


def _rooms(one: Any) -> Iterator[Row]:
    pictures = _pictures(16, 480, 640)
    ours = _ours("oxels-3d", pictures, sets=8)
    other = _each(one, one.room, pictures.reshape(8, 2, *pictures.shape[1:]))
    yield from _compared("single pixels, 3D: 16 views, 256 × 256", ours, other, 16, "Pillow", REQUIRED)


def _compared(what: str, ours: Make, other: Make, images: int, by: str, bound: Bound | None) -> Iterator[Row]:
    import torch

    sides = {"ours": Side(ours, images), "other": Side(other, images)}
    for clock, words, required in (
        (time.perf_counter, f"{torch.get_num_threads()} threads", bound),
        (time.process_time, "CPU time", None),
    ):
        found = alternate(sides, blocks=9, seconds=0.1, clock=clock)
        said = rate(found["ours"], "images"), f"{by}, one at a time", rate(found["other"], "images")
        yield Row(TOPIC, f"{what}, {words}", *said, ratio(found["other"], found["ours"]), "×", required)


def _ours(
    name: str,
    pictures: np.ndarray,
    sets: int,
    result: str | None = "image",
    factors: dict[str, Any] | None = None,
    **options: Any,
) -> Make:
    """A recipe on a batch, another step at each call; its result as float32, where it is of 8 bits."""
    import torch

    from setsup.loading.transforms.recipes import recipe

    transform, step = recipe(name, **options), itertools.count()
    images = torch.from_numpy(pictures.reshape(sets, -1, *pictures.shape[1:])).movedim(-1, -3)

    def made() -> object:
        batch: Batch = transform({"image": images, "step": next(step), "factors": factors or {}})
        if result is None or batch[result].dtype == torch.float32:
            return batch
        return batch[result].float().div_(255)

    return made


def _each(one: Any, item: Callable[[np.ndarray], Any], pictures: np.ndarray) -> Make:
    return lambda: one.stacked(item(picture) for picture in pictures)


def _pictures(count: int, height: int, width: int, channels: int = 3) -> np.ndarray:
    """Waves of colour with some noise, uint8."""
    generator = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width, :channels][:2]
    phases = generator.uniform(0, 7, (count, 1, 1, channels))
    waves = 128 + 90 * np.sin(x / 9 + phases) * np.cos(y / 7 - phases)
    return np.clip(waves + generator.integers(-20, 21, waves.shape), 0, 255).astype(np.uint8)
