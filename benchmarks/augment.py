"""The papers' augmentations of whole batches, against one picture after the other.

By the clock, in one and in two threads on either side. Both begin with pictures of uint8, and end with the float32
tensors that a network gets. Libraries of augmentations are shown on DCoDR's, whose four operations all of them have.
"""

import functools
import importlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Bound, Row, at_least, rate

__all__ = ["rows"]

TOPIC = "augment"
EVEN, FUSED, SCALED = at_least(1), at_least(1.5), at_least(1.8)
LEAST_ALIKE = 0.05  # of means and deviations of results, between two that draw from one distribution
Make = Callable[[], object]
Item = Callable[[Any], Any]


def rows(full: bool) -> Iterator[Row]:
    if any(peer(name) is None for name in ("torch", "kornia", "opencv-python-headless")):
        return
    one = importlib.import_module("benchmarks.per_image")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for recipe in (_pose, _dcodr, _pairs, _rooms):
        for threads in (1, 2)[:cores]:
            with _threads(threads) as pool:
                yield from recipe(one, pool, threads)
    if cores > 1:
        yield from _scaling()


@contextmanager
def _threads(count: int) -> Iterator[ThreadPoolExecutor | None]:
    """Threads for ours, which takes torch's; a pool of as many for the others, whose OpenCV has one in each."""
    import cv2
    import torch

    threads, others = torch.get_num_threads(), cv2.getNumThreads()
    torch.set_num_threads(count)
    cv2.setNumThreads(1)
    try:
        with ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool if count > 1 else None
    finally:
        torch.set_num_threads(threads)
        cv2.setNumThreads(others)


def _pose(one: Any, pool: Any, threads: int) -> Iterator[Row]:
    pictures, behind = _pictures(64, 128, 128, 4), _pictures(64, 256, 256)
    real = np.arange(64) % 16 == 15
    other = _each(one, lambda given: one.posed(*given, behind), list(zip(pictures, real, strict=True)), pool)
    yield _compared("ABC pose: 64 of 128 × 128, twice", _posed(), other, 64, "OpenCV and numpy", FUSED, threads)


def _posed() -> Make:
    real = np.arange(64) % 16 == 15
    factors, pool = {"part": real.reshape(4, 16)}, _pictures(64, 256, 256)
    return _ours("abc-pose", _pictures(64, 128, 128, 4), 4, factors=factors, pool=pool, real=("part", 1))


def _dcodr(one: Any, pool: Any, threads: int) -> Iterator[Row]:
    what, pictures = "DCoDR: 128 of 64 × 64", _pictures(128, 64, 64)
    ours = _ours("dcodr", pictures, 4, result="positive_image")
    for name, item in (("Pillow", one.dcodr_pillow), ("OpenCV", one.dcodr_opencv)):
        yield _compared(what, ours, _each(one, item, pictures, pool), 128, name, EVEN, threads)
    for name, make in (
        ("torchvision", "dcodr_torchvision"),
        ("albumentations", "dcodr_albumentations"),
        ("kornia", "dcodr_kornia"),
    ):
        if peer(name) is not None:
            item = getattr(one, make)()
            other = item(pictures) if name == "kornia" else _each(one, item, pictures, pool)
            yield _compared(what, ours, other, 128, name, None, threads)


def _pairs(one: Any, pool: Any, threads: int) -> Iterator[Row]:
    pictures = _pictures(128, 32, 32)
    ours, other = _ours("oxels-2d", pictures, 1, result="view_1"), _each(one, one.pixel_pairs, pictures, pool)
    yield _compared("single pixels, 2D: 128 of 32 × 32", ours, other, 128, "OpenCV and numpy", FUSED, threads)


def _rooms(one: Any, pool: Any, threads: int) -> Iterator[Row]:
    pictures = _pictures(16, 480, 640)
    ours = _ours("oxels-3d", pictures, 8)
    other = _each(one, one.room, pictures.reshape(8, 2, *pictures.shape[1:]), pool)
    yield _compared("single pixels, 3D: 16 views, 256 × 256", ours, other, 16, "Pillow", EVEN, threads)


def _scaling() -> Iterator[Row]:
    """Ours in two threads, against itself in one; and what such threads reach that only move the same images."""
    import torch

    small, tiny, rooms = _pictures(128, 64, 64), _pictures(128, 32, 32), _pictures(16, 480, 640)
    for what, pictures, ours in (
        ("ABC pose", _pictures(64, 128, 128, 4), _posed()),
        ("DCoDR", small, _ours("dcodr", small, 4, result="positive_image")),
        ("single pixels, 2D", tiny, _ours("oxels-2d", tiny, 1, result="view_1")),
        ("single pixels, 3D", rooms, _ours("oxels-3d", rooms, 8)),
    ):
        images = len(pictures)
        sides = {
            str(count): Side(ours, images, before=lambda count=count: torch.set_num_threads(count)) for count in (1, 2)
        }
        with _threads(1):
            found = alternate(sides, blocks=15, clock=time.perf_counter)
        said = rate(found["2"], "images"), "one thread", rate(found["1"], "images")
        yield Row(TOPIC, f"{what}, two threads", *said, ratio(found["1"], found["2"]), "×", SCALED)
        with _threads(2) as pool:
            moved = {"1": Side(lambda some=pictures: _moved(some), images)}
            halves = np.array_split(pictures, 2)
            moved["2"] = Side(lambda some=halves, pool=pool: list(pool.map(_moved, some)), images)
            found = alternate(moved, blocks=15, clock=time.perf_counter)
        said = rate(found["2"], "images"), "one thread", rate(found["1"], "images")
        yield Row(TOPIC, f"{what}, warpAffine alone, two threads", *said, ratio(found["1"], found["2"]), "×", None)


def _moved(pictures: np.ndarray) -> None:
    import cv2

    matrix = np.array([[1, 0.1, 2], [-0.1, 1, 3]])
    for one in pictures:
        cv2.warpAffine(one, matrix, one.shape[1::-1])


def _compared(what: str, ours: Make, other: Make, images: int, by: str, bound: Bound | None, threads: int) -> Row:
    if not _alike(ours, other):
        by, bound = f"{by}, ANOTHER DISTRIBUTION", None
    sides = {"ours": Side(ours, images), "other": Side(other, images)}
    found = alternate(sides, blocks=9, seconds=0.1, clock=time.perf_counter)
    said = rate(found["ours"], "images"), f"{by}, one at a time", rate(found["other"], "images")
    return Row(
        TOPIC, f"{what}, {threads} thread{'s'[: threads - 1]}", *said, ratio(found["other"], found["ours"]), "×", bound
    )


def _alike(ours: Make, other: Make) -> bool:
    """Whether results of many calls have the same mean and deviation."""
    of = []
    for make in (ours, other):
        made = (make() for _ in range(sized(8, 2)))
        found = np.stack([np.asarray(one[0] if isinstance(one, list) else one).reshape(-1) for one in made])
        of.append((found.mean(), found.std()))
    return all(abs(a - b) < LEAST_ALIKE * b for a, b in zip(*of, strict=True))


def _ours(
    name: str,
    pictures: np.ndarray,
    sets: int,
    result: str = "image",
    factors: dict[str, Any] | None = None,
    **options: Any,
) -> Make:
    """A recipe on a batch, another step at each call; its result as float32, where it is of 8 bits."""
    import torch

    from setsup.methods.recipes import recipe

    transform, step = recipe(name, **options), itertools.count()
    images = torch.from_numpy(pictures.reshape(sets, -1, *pictures.shape[1:])).movedim(-1, -3)

    def made() -> object:
        found = transform({"image": images, "step": next(step), "factors": factors or {}})[result]
        return found if found.dtype == torch.float32 else _real(found.flatten(0, 1).numpy())

    return made


def _real(images: np.ndarray) -> np.ndarray:
    """Images as float32, in as many threads as torch has: its own would keep cores busy while they wait for work."""
    import torch

    found, threads = np.empty(images.shape, np.float32), torch.get_num_threads()
    if threads == 1:
        return np.divide(images, np.float32(255), out=found)
    parts = zip(np.array_split(images, threads), np.array_split(found, threads), strict=True)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda part: np.divide(part[0], np.float32(255), out=part[1]), parts))
    return found


def _each(one: Any, item: Item, given: Any, pool: Any) -> Make:
    return lambda: one.stacked((map if pool is None else pool.map)(item, given))


@functools.cache
def _pictures(count: int, height: int, width: int, channels: int = 3) -> np.ndarray:
    """Waves of colour with some noise, uint8."""
    generator = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width, :channels][:2]
    phases = generator.uniform(0, 7, (count, 1, 1, channels))
    waves = 128 + 90 * np.sin(x / 9 + phases) * np.cos(y / 7 - phases)
    return np.clip(waves + generator.integers(-20, 21, waves.shape), 0, 255).astype(np.uint8)
