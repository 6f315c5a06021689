"""Batches on a GPU: the loader against pinned copies, and the papers' augmentations there against the processor.

By the clock. A pinned copy takes rows of the same array into one page-locked buffer and copies that to the GPU: less
than a loader can do, which also gives row numbers, codes and a mask.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import setsup
from benchmarks.devices import device, timed, wait
from benchmarks.fetch import COUNT, SHAPE, SIZE, Frames
from benchmarks.measure import alternate, ratio, sized
from benchmarks.rows import Row, at_least, rate

__all__ = ["rows"]

TOPIC = "gpu_feeding"
CLOCK: dict[str, Any] = {"clock": time.perf_counter, "seconds": 0.3, "blocks": 9}
BATCH = sized(128, 8)


def rows(full: bool) -> Iterator[Row]:
    to = device()
    images = np.random.default_rng(0).integers(0, 256, (COUNT, *SHAPE), dtype=np.uint8)
    for workers in ("thread", 0):
        yield _share(images, to, workers)
    for recipe, shape, result, options in (
        ("dcodr", (4, BATCH // 4, 3, 64, 64), "positive_image", {}),
        ("abc-pose", (2, BATCH // 2, 4, 128, 128), "image", {"pool": True}),
        ("oxels-2d", (1, BATCH, 3, 32, 32), "view_1", {}),
    ):
        yield _augmented(recipe, shape, result, to, **options)


def _share(images: Any, to: str, workers: Any) -> Row:
    """Share of a pinned copy, in per cent."""
    import torch

    frames = Frames(images)
    sets = setsup.SetSampler(frames.factors, inactive=[frames.factors.names[0]], size=SIZE, sets=1)
    batches = iter(setsup.loader(frames, sets, to=to, workers=workers))
    buffer = torch.empty((SIZE, *SHAPE), dtype=torch.uint8, pin_memory=to != "cpu")
    some, turn = np.random.default_rng(2).integers(0, COUNT, (512, SIZE)), itertools.count()

    def copied() -> None:
        np.take(images, some[next(turn) % len(some)], axis=0, out=buffer.numpy(), mode="clip")
        buffer.to(to, non_blocking=True)

    found = alternate({"ours": timed(lambda: next(batches), SIZE), "limit": timed(copied, SIZE)}, **CLOCK)
    how = "a thread ahead" if workers == "thread" else "when asked"
    said = rate(found["ours"], "images"), "np.take into a pinned buffer, and its copy", rate(found["limit"], "images")
    share = ratio(100 * found["limit"], found["ours"])
    return Row(TOPIC, f"sets of {SIZE} to the GPU, {how}", *said, share, "%", at_least(70) if workers else None)


def _augmented(name: str, shape: tuple[int, ...], result: str, to: str, pool: bool = False) -> Row:
    """A recipe on the GPU, against the same on the processor with all its threads."""
    import torch

    given = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    behind = np.random.default_rng(3).integers(0, 256, (BATCH, 256, 256, 3), dtype=np.uint8) if pool else None
    count = shape[0] * shape[1]
    sides: dict[str, Callable[[], object]] = {}
    for where in dict.fromkeys((to, "cpu")):
        images = torch.from_numpy(given).to(where)
        real = torch.arange(shape[1], device=where) % 16 == 15
        sides[where] = _recipe(name, images, real.expand(shape[:2]), result, behind)
    wait()
    found = alternate({where: timed(run, count) for where, run in sides.items()}, **CLOCK)
    said = rate(found[to], "images"), "on the processor", rate(found["cpu"], "images")
    height, width = shape[-2:]
    return Row(TOPIC, f"{name}: {count} of {height} × {width}", *said, ratio(found["cpu"], found[to]), "×")


def _recipe(name: str, images: Any, real: Any, result: str, behind: Any) -> Callable[[], object]:
    from setsup.methods.recipes import recipe

    options = {} if behind is None else {"pool": behind, "real": ("part", 1)}
    transform, step = recipe(name, **options), itertools.count()
    return lambda: transform({"image": images, "step": next(step), "factors": {"part": real}})[result]
