"""An HDF5 file in the published Shapes3D layout: same datasets, chunks and compression, procedural pictures."""

import zlib
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

import setsup
from benchmarks.tables import SIZES

__all__ = ["CHUNK", "FULL", "SHAPE", "labels", "write"]

SHAPE = (64, 64, 3)
CHUNK = (15_000, 4, 4, 1)
LEVEL = 4
FULL = 480_000

_LEVELS = (
    *(np.arange(10) / 10 for _ in range(3)),
    np.linspace(0.75, 1.25, 8),
    np.arange(4.0),
    np.linspace(-30.0, 30.0, 15),
)


def write(path: Path, rows: int) -> None:
    """Write a file of ``rows`` pictures, a multiple of 15,000, with the labels of the first rows of the grid.

    The pictures of rows 0 … 14,999 stand in every stretch of 15,000: they are compressed once, and that a reader sees
    the same ones again spares it nothing.
    """
    parts = _compressed(_pictures(CHUNK[0]))
    with h5py.File(path, "w") as file:
        file.create_dataset("labels", data=labels(rows))
        images = file.create_dataset(
            "images", (rows, *SHAPE), np.uint8, chunks=CHUNK, compression="gzip", compression_opts=LEVEL
        )
        for start in range(0, rows, CHUNK[0]):
            for place, part in parts.items():
                images.id.write_direct_chunk((start, *place), part)


def labels(rows: int) -> npt.NDArray[np.float64]:
    """Labels of the first rows of the grid, (rows, 6)."""
    codes = np.unravel_index(np.arange(rows), SIZES)
    return np.stack([levels[code] for levels, code in zip(_LEVELS, codes, strict=True)], axis=1)


def _pictures(count: int) -> npt.NDArray[np.uint8]:
    shapes, step = setsup.load("shapes3d-procedural"), 1_000
    return np.concatenate([shapes.fetch(np.arange(at, at + step))["image"] for at in range(0, count, step)])


def _compressed(pictures: npt.NDArray[np.uint8]) -> dict[tuple[int, int, int], bytes]:
    """Chunks of one stretch of rows by their place in the picture, as HDF5's gzip filter stores them."""
    parts = {}
    for y in range(0, SHAPE[0], CHUNK[1]):
        for x in range(0, SHAPE[1], CHUNK[2]):
            for channel in range(SHAPE[2]):
                block = pictures[:, y : y + CHUNK[1], x : x + CHUNK[2], channel]
                parts[y, x, channel] = zlib.compress(block.tobytes(), LEVEL)
    return parts
