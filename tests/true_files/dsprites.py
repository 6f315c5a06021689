"""A small dSprites in the published formats: squares, ellipses and hearts at some of the published places."""

from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

HELD = "shape"

STEM = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64"
SIZES = (1, 3, 6, 40, 32, 32)
SOME = ((0,), (0, 1, 2), (0, 2, 5), tuple(range(0, 40, 5)), (4, 12, 20, 28), (4, 12, 20, 28))
_FINE = 4


def rows(levels: Sequence[Sequence[int]] = SOME) -> npt.NDArray[np.int64]:
    """Every combination of some levels, the last changing fastest: (n, 6) classes."""
    return np.stack(np.meshgrid(*levels, indexing="ij"), axis=-1).reshape(-1, 6)


def values(classes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Values of classes, as the page of the data set describes them."""
    kinds = ([1.0], [1.0, 2.0, 3.0], np.linspace(0.5, 1, 6), np.linspace(0, 2 * np.pi, 40))
    places = (np.linspace(0, 1, 32), np.linspace(0, 1, 32))
    return np.stack([np.asarray(levels)[classes[:, k]] for k, levels in enumerate((*kinds, *places))], axis=1)


def sprite(classes: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Picture of 0 and 1, (64, 64)."""
    told = values(np.asarray(classes)[np.newaxis])[0]
    turns = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    outline = (
        np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * 0.9,
        np.stack([1.3 * np.cos(turns), 0.7 * np.sin(turns)], 1),
        np.stack(
            [
                np.sin(turns) ** 3 * 1.2,
                -(13 * np.cos(turns) - 5 * np.cos(2 * turns) - 2 * np.cos(3 * turns) - np.cos(4 * turns)) / 14,
            ],
            1,
        ),
    )[classes[1]]
    cos, sin = np.cos(told[3]), np.sin(told[3])
    turned = outline @ np.array([[cos, sin], [-sin, cos]]) * 10 * told[2]
    points = (turned + 16 + 32 * told[4:]) * _FINE
    fine = Image.new("L", (64 * _FINE, 64 * _FINE))
    ImageDraw.Draw(fine).polygon([tuple(point) for point in points.tolist()], fill=255)
    return (np.asarray(fine.reduce(_FINE)) > 127).astype(np.uint8)


def arrays(levels: Sequence[Sequence[int]] = SOME) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Pictures (n, 64, 64) and classes (n, 6)."""
    classes = rows(levels)
    return np.array([sprite(row) for row in classes.tolist()]), classes


def write(folder: Path, kind: str = "hdf5", levels: Sequence[Sequence[int]] = SOME) -> Path:
    """Write the ``.hdf5``, or the ``.npz`` with its pickled metadata."""
    imgs, classes = arrays(levels)
    path = folder / f"{STEM}.{kind}"
    if kind == "npz":
        metadata = np.array({"title": "dSprites dataset", "latents_sizes": np.array(SIZES)}, dtype=object)
        labels = {"latents_classes": classes, "latents_values": values(classes)}
        np.savez_compressed(path, metadata=metadata, imgs=imgs, **labels)
        return path
    with h5py.File(path, "w") as file:
        file.create_dataset("imgs", data=imgs, compression="gzip", chunks=True)
        file.create_dataset("latents/classes", data=classes, compression="gzip")
        file.create_dataset("latents/values", data=values(classes), compression="gzip")
    return path
