"""Fetch of a set of 256 pictures from an array, against ``np.take`` into a buffer that is already there."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Side, alternate, ratio
from benchmarks.rows import Row, at_least, rate
from benchmarks.tables import factors
from setsup import FactorTable
from setsup.datasets import Dataset, Modality, fetch_request, gather

__all__ = ["Frames", "rows"]

TOPIC = "fetch"
COUNT, SIZE = 48_000, 256
SHAPE = (64, 64, 3)

Images = npt.NDArray[np.uint8]


class Frames(Dataset):
    """Pictures in one array, in memory or mapped from a file, fetched as every array-backed dataset fetches."""

    def __init__(self, images: Images) -> None:
        self.name = "frames"
        self.factors = FactorTable(factors()[1:])
        self.modalities = {"image": Modality(SHAPE, "uint8", color="srgb")}
        self.images = images

    def fetch(self, indices, modalities=None):
        """Gather the pictures of some rows."""
        rows, names = fetch_request(self, indices, modalities)
        return {name: gather(self.images, rows) for name in names}


def rows(full: bool) -> Iterator[Row]:
    images = np.random.default_rng(0).integers(0, 256, (COUNT, *SHAPE), dtype=np.uint8)
    yield _row("array in memory", images, 85)
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
        path = Path(folder) / "images.npy"
        np.save(path, images)
        mapped = np.load(path, mmap_mode="r")
        _touch(mapped)
        yield _row("array memory-mapped, in the page cache", mapped, 75, limit=images)


def _row(what: str, images: Images, least: float, limit: Images | None = None) -> Row:
    """Share of the limit, in per cent: the same rows of an array in memory taken into one reused buffer."""
    dataset, memory = Frames(images), images if limit is None else limit
    out = np.empty((SIZE, *SHAPE), np.uint8)
    ours, other = _random_rows(1), _random_rows(2)
    sides = {
        "ours": Side(lambda: dataset.fetch(ours()), SIZE),
        "limit": Side(lambda: np.take(memory, other(), axis=0, out=out, mode="clip"), SIZE),
    }
    found = alternate(sides)
    share = ratio(100 * found["limit"], found["ours"])
    said = rate(found["ours"], "images"), "np.take(out=, mode='clip') in memory", rate(found["limit"], "images")
    return Row(TOPIC, f"set of {SIZE}, {what}", *said, share, "%", at_least(least))


def _random_rows(seed: int) -> Callable[[], npt.NDArray[np.int64]]:
    sets = cycle(np.random.default_rng(seed).integers(0, COUNT, (512, SIZE)))
    return lambda: next(sets)


def _touch(images: Images) -> None:
    for start in range(0, COUNT, 4096):
        images[start : start + 4096].sum()
