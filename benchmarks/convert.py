"""One-time conversion of the published HDF5 layout into a ``.npy`` file, against reading it slab by slab with h5py."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

from benchmarks.lookalike import CHUNK, FULL, SHAPE, write
from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.rows import Row, at_least, duration
from setsup.datasets.benchmarks import shapes3d

__all__ = ["rows"]

TOPIC = "convert"
ROWS, LEAST = sized(60_000, 15_000), 1.5


def rows(full: bool) -> Iterator[Row]:
    yield _row(ROWS, blocks=3, least=LEAST)
    if full:
        yield _row(FULL, blocks=1)


def by_slabs(source: Path, target: Path) -> None:
    """Write what h5py reads of every row of chunks, and wait until the disk has it, as ours does."""
    with h5py.File(source) as file, target.open("wb") as out:
        images = file["images"]
        header = {"descr": "|u1", "fortran_order": False, "shape": images.shape}
        np.lib.format.write_array_header_1_0(out, header)
        for start in range(0, len(images), CHUNK[0]):
            out.write(images[start : start + CHUNK[0]].data)
        os.fsync(out.fileno())


def _row(count: int, blocks: int, least: float | None = None) -> Row:
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        source, target = folder / "3dshapes.h5", folder / "slabs.npy"
        write(source, count)
        sides = {
            "ours": Side(lambda: shapes3d.prepare(folder), before=_only(folder, source, target)),
            "slabs": Side(lambda: by_slabs(source, target), before=_only(folder, source)),
        }
        found = alternate(sides, blocks=blocks, clock=time.perf_counter, warm=blocks > 1)
        (prepared,) = shapes3d.prepare(folder)
        _check_equal(prepared, target)
    times = ratio(found["slabs"], found["ours"])
    said = duration(found["ours"]), f"h5py, {CHUNK[0]:,} rows at a time", duration(found["slabs"])
    what = f"{count:,} rows, (15000, 4, 4, 1) gzip 4, all cores, by the clock"
    return Row(TOPIC, what, *said, times, "×", None if least is None else at_least(least))


def _only(folder: Path, *kept: Path) -> Callable[[], None]:
    """Remove what an earlier turn wrote."""

    def clear() -> None:
        for path in folder.iterdir():
            if path not in kept:
                path.unlink()

    return clear


def _check_equal(ours: Path, theirs: Path) -> None:
    a, b = np.load(ours, mmap_mode="r"), np.load(theirs, mmap_mode="r")
    if a.shape != b.shape or a.shape[1:] != SHAPE:
        raise RuntimeError(f"the two conversions differ in shape: {a.shape} and {b.shape}")
    for start in range(0, len(a), CHUNK[0]):
        if not np.array_equal(a[start : start + CHUNK[0]], b[start : start + CHUNK[0]]):
            raise RuntimeError(f"the two conversions differ in the rows from {start} on")
