"""Training on a GPU: steps per second of a preset of each paper, and how long it waits for batches.

Runs are real ones, of ``setsup train``, from the first step to the last; the start of the process is not counted. Data
are random where the published files are not there, which changes no time.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.devices import attempt, device, need_none, timed
from benchmarks.measure import Spread, alternate, shrunk, sized
from benchmarks.rows import Row, at_least, at_most, number
from benchmarks.trainings import Trained, cases, train_for

__all__ = ["rows"]

TOPIC = "gpu_training"
STEPS = {
    "abc/mnist": 500,
    "dcodr/shapes3d-norec": 300,
    "cmc/stl10-nce": 200,
    "orbits/mnist-oj": 500,
    "multiview/shapes3d": 300,
    "pixels/colors-inf-100": 300,
}
"""Of each preset; the most valuable first."""
ALL = sized(tuple(STEPS), ("abc/mnist", "dcodr/shapes3d-norec"))
GOAL = 3.0
"""Seconds for ABC's figure 5."""


def rows(full: bool) -> Iterator[Row]:
    to = device()
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        known = cases(folder)
        failed: list[str] = []
        for preset in ALL:
            with attempt(preset, failed):
                yield from _of(preset, *known[preset], folder / "runs", to)
    need_none(failed)


def _of(name: str, preset: Any, root: Path | None, substitute: bool, runs: Path, to: str) -> Iterator[Row]:
    kinds = ("float32",) if name == "abc/mnist" or shrunk() else ("bf16", "float32")
    for precision in kinds:
        found = train_for(preset, STEPS[name], runs / precision / name, root, substitute, precision=precision)
        yield _steps(f"{name}, {precision}", found)
        if name == "abc/mnist":
            seconds = Spread.of([found.seconds])
            said = f"{found.seconds:.3g} s", "the goal", f"{GOAL:g} s"
            yield Row(TOPIC, f"{name}: {found.steps} steps with their data", *said, seconds, "s", at_most(GOAL))
        if precision == kinds[0]:
            yield _fed(name, preset, root, substitute, found, to)


def _steps(what: str, found: Trained) -> Row:
    """Steps per second, and how much of the time the loop waited."""
    rate = found.steps / found.seconds
    said = f"{number(rate)} steps/s", "the loop waits for batches", f"{100 * found.waited:.2g} % of the time"
    return Row(TOPIC, f"{what}: first {found.steps} steps", *said, Spread.of([rate]), "steps/s")


def _fed(name: str, preset: Any, root: Path | None, substitute: bool, found: Trained, to: str) -> Row:
    """How many times as fast as a training its batches come, ready on the GPU."""
    from setsup.experiments.preset import smoke
    from setsup.loading import Loader

    data = (smoke(preset) if shrunk() else preset).open_training(0, root, substitute=substitute)
    how: dict[str, Any] = {"modalities": data.modalities, "transform": data.build_transform(), "workers": "thread"}
    batches = iter(Loader(data.dataset, data.build_sampler(), rank=0, world=1, to=to, **how))
    each = max(1, found.images // found.steps)
    seconds = alternate({"fed": timed(lambda: next(batches), each)}, 5, 0.3, time.perf_counter)["fed"]
    training = found.images / found.seconds
    said = f"{number(1 / Spread.of(seconds).median)} images/s", "its training", f"{number(training)} images/s"
    what = f"{name}: batches alone, augmented, on the GPU"
    return Row(TOPIC, what, *said, Spread.of(1 / seconds / training), "×", at_least(1))
