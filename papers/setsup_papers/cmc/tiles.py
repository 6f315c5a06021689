"""Tiles of images whose pixels are classified, and images of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from setsup.arrays import Array, Pixels
from setsup.errors import SetsupError

if TYPE_CHECKING:
    from PIL.Image import Image

    from setsup.loading.batch import Batch

__all__ = ["draw_tiles", "tiles"]


def tiles(batch: "Batch", shape: tuple[int, int], size: int) -> "Iterator[Batch]":
    """Parts of a batch whose maps are tiles of a size: as many whole ones as fit, in the middle, row after row.

    `shape` (height, width) tells which entries are images and maps; all others stay.
    """
    import torch

    height, width = shape
    if min(height, width) < size:
        raise SetsupError(
            f"images of {height} × {width} pixels are too small for tiles of {size} × {size} pixels; use a smaller size"
        )
    top, left = (height % size) // 2, (width % size) // 2
    axes = {
        name: axis
        for name, value in batch.items()
        if isinstance(value, torch.Tensor) and (axis := _first_axis(tuple(value.shape), (height, width))) is not None
    }
    for y in range(top, height - size + 1, size):
        for x in range(left, width - size + 1, size):
            cut = {
                name: batch[name].narrow(axis, y, size).narrow(axis + 1, x, size).contiguous()
                for name, axis in axes.items()
            }
            yield {**batch, **cut}


def _first_axis(sizes: tuple[int, ...], shape: tuple[int, int]) -> int | None:
    """The axis of rows of images (sets, size, …, h, w) or (sets, size, h, w, channels)."""
    return next((axis for axis in (len(sizes) - 2, 2) if axis >= 2 and sizes[axis : axis + 2] == shape), None)


def draw_tiles(shown: Pixels, labels: Array, told: Array, names: tuple[str, ...]) -> "Image":
    """Tiles, their true classes, and the predicted ones, a row each.

    `shown` (n, size, size) uint8; `labels` and `told` (n, size, size) integers; `names` are those of the classes.
    """
    from setsup.reports import image_grid

    most = int(max(labels.max(), told.max(), len(names) - 1)) + 1
    colors = _colors(most)
    rows: list[Any] = [
        [np.repeat(image[..., None], 3, axis=-1) for image in shown],
        [colors[label] for label in labels],
        [colors[label] for label in told],
    ]
    return image_grid(rows, ["view", "classes", "predicted"], title="Classes of pixels", tile=96)


def _colors(count: int) -> Pixels:
    """A colour for each class, black for the first, (count, 3) uint8."""
    import colorsys

    turns = [0.61803 * number % 1 for number in range(count)]
    colors = [
        colorsys.hsv_to_rgb(turn, 0.55 + 0.35 * (number % 2), 0.95 - 0.3 * (number % 3 == 2))
        for number, turn in enumerate(turns)
    ]
    table = np.round(255 * np.array(colors)).astype(np.uint8)
    table[0] = 0
    return table
