"""Fetch of a set of 256 pictures from an array, against ``np.take`` into a buffer that is already there."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

from benchmarks.lookalike import labels
from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.rows import Row, at_least, rate
from benchmarks.tables import factors
from setsup import FactorTable
from setsup.datasets import BaseDataset, Dataset, Modality, gather
from setsup.datasets.benchmarks import shapes3d

__all__ = ["COUNT", "SHAPE", "SIZE", "Frames", "mapped", "rows"]

TOPIC = "fetch"
COUNT, SIZE = sized(48_000, 2_048), 256
SHAPE = (64, 64, 3)

Images = npt.NDArray[np.uint8]


class Frames(BaseDataset):
    """Pictures in one array, in memory or mapped from a file, fetched as every array-backed dataset fetches."""

    def __init__(self, images: Images) -> None:
        self.name = "frames"
        self.factors = FactorTable(factors()[1:])
        self.modalities = {"image": Modality(SHAPE, "uint8", color="srgb")}
        self.images = images

    def _read(self, name, rows, out):
        return gather(self.images, rows, out)


def rows(full: bool) -> Iterator[Row]:
    images = np.random.default_rng(0).integers(0, 256, (COUNT, *SHAPE), dtype=np.uint8)
    yield _row("array in memory", Frames(images), images, 85)
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
        dataset, _ = mapped(Path(folder) / "3dshapes.h5", images)
        yield _row("memory-mapped, in the page cache", dataset, images, 75)


def _row(what: str, dataset: Dataset, memory: Images, least: float) -> Row:
    """Share of the limit, in per cent: as many rows of an array in memory taken into one reused buffer."""
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


def mapped(path: Path, images: Images) -> tuple[Dataset, Images]:
    """Shapes3D from a file in which the pictures lie as they are, every page of it read once; and the map of it."""
    with h5py.File(path, "w") as file:
        file.create_dataset("labels", data=labels(COUNT))
        file.create_dataset("images", data=images)
        start = file["images"].id.get_offset()
    dataset = shapes3d.open(path.parent)
    for first in range(0, COUNT, 4096):
        dataset.fetch(np.arange(first, min(first + 4096, COUNT)))
    return dataset, np.memmap(path, np.uint8, "r", start, images.shape)
