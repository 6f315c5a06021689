"""The loader: sets of 256 against the copy itself and torch's DataLoader, decoding with more processes, and memory."""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

import setsup
from benchmarks.fetch import COUNT, SHAPE, SIZE, Frames, mapped
from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Bound, Row, at_least, at_most, rate
from setsup.datasets import Dataset

__all__ = ["rows"]

TOPIC = "loading"
CLOCK: dict[str, Any] = {"clock": time.perf_counter, "seconds": 0.4, "blocks": 9}
"""By the clock, with every core: whoever trains waits. Blocks are long, since streams work ahead while others run."""
PHOTOS, PHOTO = sized(1536, 64), 160
MANY, WORKERS = sized(100_000_000, 1_000_000), sized(8, 2)


def rows(full: bool) -> Iterator[Row]:
    images = np.random.default_rng(0).integers(0, 256, (COUNT, *SHAPE), dtype=np.uint8)
    frames = Frames(images)
    for to in ("numpy", "torch"):
        for workers in ("thread", 0):
            how = "a thread ahead" if workers == "thread" else "when asked"
            bound = at_least(80) if workers == "thread" else None
            yield _share(f"sets of {SIZE} in memory, to {to}, {how}", frames, images, bound, to=to, workers=workers)
    yield from _against_torch(frames, images)
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
        on_disk, pages = mapped(Path(folder) / "3dshapes.h5", images)
        for to in ("numpy", "torch"):
            yield _share(f"sets of {SIZE} memory-mapped, to {to}, a thread ahead", on_disk, pages, at_least(70), to=to)
        del on_disk, pages
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
        yield from _decoding(Path(folder))
    if full:
        with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
            yield from _memory(Path(folder) / "many.arrow")


def _loader(dataset: Dataset, **options: Any) -> Iterator[dict[str, Any]]:
    sets = setsup.SetSampler(
        dataset.factors, inactive=[dataset.factors.names[0]], size=SIZE, sets=1, on_small_group="replace"
    )
    return iter(setsup.loader(dataset, sets, **options))


def _share(what: str, dataset: Dataset, images: npt.NDArray[np.uint8], bound: Bound | None, **options: Any) -> Row:
    """Share of the limit, in per cent: rows of the same array taken into one reused buffer."""
    out = np.empty((SIZE, *SHAPE), np.uint8)
    some = np.random.default_rng(2).integers(0, COUNT, (512, SIZE))
    turn = itertools.count()
    batches = _loader(dataset, **options)

    def take() -> None:
        np.take(images, some[next(turn) % len(some)], axis=0, out=out, mode="clip")

    found = alternate({"ours": Side(lambda: next(batches), SIZE), "limit": Side(take, SIZE)}, **CLOCK)
    share = ratio(100 * found["limit"], found["ours"])
    said = rate(found["ours"], "images"), "np.take(out=, mode='clip')", rate(found["limit"], "images")
    return Row(TOPIC, what, *said, share, "%", bound)


def _against_torch(frames: Frames, images: npt.NDArray[np.uint8]) -> Iterator[Row]:
    """Torch's DataLoader twice: with what a batch of ours holds, and with less, pictures and no labels."""
    torch = peer("torch")
    if torch is None:
        return
    codes = np.stack([frames.factors.codes(name) for name in frames.factors.names], axis=-1)
    items = {"a picture and its labels": _Labelled(images, codes), "a picture and no labels": _Items(images)}
    for (item, dataset), (workers, least) in itertools.product(items.items(), ((0, 2), (2, 7))):
        sampler = itertools.cycle(np.random.default_rng(3).integers(0, COUNT, (512, SIZE)).tolist())
        theirs = iter(torch.DataLoader(dataset, batch_sampler=sampler, num_workers=workers))
        found = _in_turn(_loader(frames, to="torch"), theirs, **CLOCK)
        times = ratio(found["other"], found["ours"])
        said = rate(found["ours"], "images"), f"torch DataLoader, {item} at a time, {workers} workers"
        what = f"sets of {SIZE} in memory, to torch"
        yield Row(TOPIC, what, *said, rate(found["other"], "images"), times, "×", at_least(least))


def _in_turn(ours: Iterator[Any], other: Iterator[Any], **how: Any) -> dict[str, Any]:
    return alternate({"ours": Side(lambda: next(ours), SIZE), "other": Side(lambda: next(other), SIZE)}, **how)


class _Items:
    """What tutorials give a DataLoader: one picture an item."""

    def __init__(self, images: npt.NDArray[np.uint8]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> Any:
        import torch

        return torch.from_numpy(self.images[row])


class _Labelled(_Items):
    """What published classes for Shapes3D and its like give it: one picture an item, and the vector of its labels."""

    def __init__(self, images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64]) -> None:
        super().__init__(images)
        self.labels = labels

    def __getitem__(self, row: int) -> Any:
        import torch

        return super().__getitem__(row), torch.from_numpy(self.labels[row])


def _decoding(folder: Path) -> Iterator[Row]:
    photos = _photos(folder)
    streams = {workers: _loader(photos, to="torch", workers=workers) for workers in (1, 2, "thread")}
    for stream in streams.values():
        next(stream)  # the processes have started
    for workers, bound in ((2, at_least(1.7)), ("thread", None)):
        found = _in_turn(streams[workers], streams[1], blocks=7, seconds=2, clock=time.perf_counter)
        times = ratio(found["other"], found["ours"])
        how = "2 processes" if workers == 2 else "the thread, which decodes with as many threads as there are cores"
        what = f"sets of {SIZE} JPEG files of {PHOTO} × {PHOTO}, {how}"
        said = rate(found["ours"], "images"), "1 process", rate(found["other"], "images")
        yield Row(TOPIC, what, *said, times, "×", bound)


def _photos(folder: Path) -> Dataset:
    """A table of JPEG files, smooth pictures with some noise."""
    random = np.random.default_rng(4)
    lines = ["path,subject"]
    for number in range(PHOTOS):
        coarse = Image.fromarray(random.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((PHOTO, PHOTO))
        noisy = np.asarray(coarse, dtype=np.int16) + random.integers(-8, 9, (PHOTO, PHOTO, 3))
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.jpg", quality=90)
        lines.append(f"{number}.jpg,{number % 2}")
    (folder / "photos.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return setsup.load("table", root=folder / "photos.csv")


def _memory(path: Path) -> Iterator[Row]:
    """Proportional set size of eight workers on a table of 100 M rows, beside idle processes that imported torch."""
    made = "from benchmarks.memory import {0}; {0}({1!r})"
    run = [sys.executable, "-c"]
    subprocess.run([*run, made.format("write", (str(path), MANY))], check=True)
    found = {
        name: json.loads(subprocess.run([*run, made.format(name, given)], check=True, capture_output=True).stdout)
        for name, given in (("loaded", (str(path), WORKERS)), ("idle", (WORKERS,)))
    }
    each = (found["loaded"]["workers"] - path.stat().st_size / 2**20) / WORKERS
    idle = found["idle"]["workers"] / WORKERS
    what = f"memory a worker beyond an idle one, {MANY // 10**6} M rows, {WORKERS} workers"
    said = f"{each:.0f} MB each, and the table once", "idle process that imported torch", f"{idle:.0f} MB"
    yield Row(TOPIC, what, *said, Spread.of([each - idle]), "MB", at_most(100))
