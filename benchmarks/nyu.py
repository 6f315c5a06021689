"""Random sets of NYU Depth V2 after ``prepare``, images and depths, against ``np.take`` on memory maps of the same."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt
import scipy.io

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.rows import Row, at_least, rate
from setsup.datasets.benchmarks import nyu

__all__ = ["rows"]

TOPIC = "nyu"
LEAST = 75
COUNT = sized(96, 16)  # 206 MB of images and depths
NAMES = ("image", "depth")
FILE = "nyu_depth_v2_labeled.mat"
STORED = {
    "images": ((3, 640, 480), np.uint8),
    "depths": ((640, 480), np.float32),
    "rawDepths": ((640, 480), np.float32),
    "labels": ((640, 480), np.uint16),
    "instances": ((640, 480), np.uint8),
}

Maps = dict[str, npt.NDArray]


def rows(full: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        _write(folder)
        nyu.prepare(folder, NAMES)
        maps = {key: np.load(folder / f"{Path(FILE).stem}.{key}.npy", mmap_mode="r") for key in ("images", "depths")}
        dataset = nyu.open(folder)
        _check(dataset, maps)
        for size in (16, 64):
            yield _row(dataset, maps, size)
            yield _row_into(dataset, maps, size)


def _row(dataset: nyu.NyuDepth, maps: Maps, size: int) -> Row:
    """Both sides give new arrays."""
    ours, other = _random(size, 1), _random(size, 2)

    def take() -> list[npt.NDArray]:
        drawn = other()
        return [np.take(array, drawn, axis=0, mode="clip") for array in maps.values()]

    return _compared(f"set of {size}", size, lambda: dataset.fetch(ours(), NAMES), take)


def _row_into(dataset: nyu.NyuDepth, maps: Maps, size: int) -> Row:
    """Both sides write into arrays that are there, as a loader does."""
    ours, other = _random(size, 1), _random(size, 2)
    out = {name: np.empty((size, *dataset.modalities[name].shape), dataset.modalities[name].dtype) for name in NAMES}

    def take() -> None:
        drawn = other()
        for name, array in zip(NAMES, maps.values(), strict=True):
            np.take(array, drawn, axis=0, out=out[name], mode="clip")

    return _compared(f"set of {size}, into buffers", size, lambda: dataset.fetch_into(ours(), out), take)


def _compared(what: str, size: int, ours: Callable[[], object], limit: Callable[[], object]) -> Row:
    found = alternate({"ours": Side(ours, size), "limit": Side(limit, size)})
    share = ratio(100 * found["limit"], found["ours"])
    said = rate(found["ours"], "rows"), "np.take on memory maps", rate(found["limit"], "rows")
    return Row(TOPIC, f"{what}, image and depth, prepared", *said, share, "%", at_least(LEAST))


def _check(dataset: nyu.NyuDepth, maps: Maps) -> None:
    """Read every page once, and see that both sides give the same."""
    for start in range(0, COUNT, 16):
        found = dataset.fetch(np.arange(start, start + 16), NAMES)
        for name, array in zip(NAMES, maps.values(), strict=True):
            if not np.array_equal(found[name], array[start : start + 16]):
                raise RuntimeError(f"nyu does not give the {name} that was prepared")


def _random(size: int, seed: int) -> Callable[[], npt.NDArray[np.int64]]:
    sets = cycle(np.random.default_rng(seed).integers(0, COUNT, (512, size)))
    return lambda: next(sets)


def _write(folder: Path) -> None:
    """Write the published file with fewer rows, of numbers without a meaning; what is not prepared stays empty."""
    dice = np.random.default_rng(0)
    with h5py.File(folder / FILE, "w", userblock_size=512) as file:
        for key, (shape, dtype) in STORED.items():
            stored = file.create_dataset(key, (COUNT, *shape), dtype, chunks=(1, *shape))
            if key in ("images", "depths"):
                for row in range(COUNT):
                    stored[row] = dice.integers(0, 256, shape, dtype=np.uint8)
        for key, texts in {
            "scenes": [f"kitchen_{n // 4:04d}" for n in range(COUNT)],
            "sceneTypes": ["kitchen"] * COUNT,
            "rawRgbFilenames": [f"kitchen/{n}.ppm" for n in range(COUNT)],
            "names": ["thing"] * 894,
        }.items():
            cells = [
                file.create_dataset(f"#refs#/{key}{n}", data=np.frombuffer(text.encode("utf-16-le"), np.uint16))
                for n, text in enumerate(texts)
            ]
            file.create_dataset(key, (1, len(cells)), h5py.ref_dtype)[0] = [cell.ref for cell in cells]
    numbers = np.arange(1, COUNT + 1, dtype=np.uint16)[:, np.newaxis]
    scipy.io.savemat(folder / "splits.mat", {"trainNdxs": numbers[:-8], "testNdxs": numbers[-8:]})
