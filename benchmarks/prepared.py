"""Random sets of SmallNORB and Cars3D after ``prepare``, against ``np.take`` on a memory map of the same rows."""

import gzip
import struct
import tempfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.io

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.rows import Row, at_least, rate
from setsup.datasets import Dataset
from setsup.datasets.benchmarks import cars3d
from setsup.datasets.benchmarks.smallnorb import dataset as smallnorb

__all__ = ["rows"]

TOPIC = "prepared"
LEAST = 75
PAIRS, CARS = sized(2430, 256), sized(16, 2)  # pairs of a split; 90 MB and 75 MB of pictures
STEMS = ("smallnorb-5x46789x9x18x6x2x96x96-training", "smallnorb-5x01235x9x18x6x2x96x96-testing")

Images = npt.NDArray[np.uint8]


def rows(full: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        _write_smallnorb(folder, ".gz")
        images = np.load(smallnorb.prepare(folder)[0], mmap_mode="r")
        yield from _rows("smallnorb", smallnorb.open(folder), images, np.arange(len(images)))
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        pictures = np.concatenate(_write_smallnorb(folder, "")).reshape(-1, 96, 96, 1)
        copy = folder / "copy.npy"
        np.save(copy, pictures)
        images = np.load(copy, mmap_mode="r")
        dataset = smallnorb.open(folder)
        yield from _rows("smallnorb, an unpacked file", dataset, images, np.arange(2 * PAIRS))
        # rows of two maps cannot be taken at once
        yield from _rows("smallnorb, two unpacked files", dataset, images, np.arange(len(images)), None)
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        _write_cars(folder)
        images = np.load(cars3d.prepare(folder)[0], mmap_mode="r")  # the second holds the masks
        # the array has the pictures of a car together, the rows those of a pose
        places = np.arange(len(images)).reshape(CARS, -1).T.reshape(-1)
        yield from _rows("cars3d", cars3d.open(folder), images, places)


def _rows(
    what: str, dataset: Dataset, images: Images, places: npt.NDArray[np.int64], least: float | None = LEAST
) -> Iterator[Row]:
    """Shares of the limit, in per cent, when every page is in the page cache; row n lies at ``places[n]``."""
    drawn = np.arange(len(places))
    for part in np.array_split(drawn, max(1, len(drawn) // 512)):
        if not np.array_equal(dataset.fetch(part, ["image"])["image"], images[places[part]]):
            raise RuntimeError(f"{what} does not give the pictures that were written")
    for size in (64, 256):
        ours, other = _random(len(places), size, 1), _random(len(places), size, 2)
        sides = {
            "ours": Side(lambda ours=ours: dataset.fetch(ours(), ["image"]), size),
            "limit": Side(lambda other=other: np.take(images, places[other()], axis=0, mode="clip"), size),
        }
        found = alternate(sides)
        share = ratio(100 * found["limit"], found["ours"])
        said = rate(found["ours"], "images"), "np.take on a memory map", rate(found["limit"], "images")
        yield Row(TOPIC, f"set of {size}, {what}", *said, share, "%", None if least is None else at_least(least))


def _random(count: int, size: int, seed: int) -> Callable[[], npt.NDArray[np.int64]]:
    sets = cycle(np.random.default_rng(seed).integers(0, count, (512, size)))
    return lambda: next(sets)


def _write_smallnorb(folder: Path, end: str) -> list[Images]:
    dice = np.random.default_rng(0)
    written = []
    for stem, instances in zip(STEMS, ((4, 6, 7, 8, 9), (0, 1, 2, 3, 5)), strict=True):
        pictures = dice.integers(0, 256, (PAIRS, 2, 96, 96), dtype=np.uint8)
        objects = dice.permutation(5 * 5 * 9 * 18 * 6)[:PAIRS]  # no two pairs show the same
        category, instance, *views = np.unravel_index(objects, (5, 5, 9, 18, 6))
        info = np.stack([np.array(instances)[instance], *views], 1)
        info[:, 2] *= 2
        parts = {"dat": pictures, "cat": category.astype("<i4"), "info": info.astype("<i4")}
        for what, values in parts.items():
            magic = 0x1E3D4C55 if values.dtype == np.uint8 else 0x1E3D4C54
            lengths = [*values.shape, 1, 1][: max(3, values.ndim)]
            content = struct.pack(f"<{2 + len(lengths)}i", magic, values.ndim, *lengths) + values.tobytes()
            (folder / f"{stem}-{what}.mat{end}").write_bytes(gzip.compress(content, 0) if end else content)
        written.append(pictures)
    return written


def _write_cars(folder: Path) -> None:
    dice = np.random.default_rng(0)
    stems = [f"car_{number:03d}_mesh" for number in range(CARS)]
    (folder / "list.txt").write_text("".join(f"{stem}\n" for stem in stems), encoding="utf-8")
    for stem in stems:
        im = dice.integers(0, 256, (128, 128, 3, 24, 4), dtype=np.uint8)
        scipy.io.savemat(folder / f"{stem}.mat", {"im": im, "mask": (im[:, :, 0] > 200).astype(np.uint8)})
