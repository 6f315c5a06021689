"""Datasets with items of a user's own object as rows, read one at a time."""

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.base import BaseDataset
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.images import resize, several_sizes
from setsup.datasets.originals import Original, refuse_changed
from setsup.datasets.own.torch.fields import Items, as_pixels, pick, read_item
from setsup.datasets.per_process import per_process
from setsup.errors import DataError
from setsup.factors import FactorTable

__all__ = ["ItemDataset", "find_modalities", "sample_items"]

_COLORS = {1: "grey", 3: "srgb", 4: "srgb"}
_LOOKED_AT = 8

Size = tuple[int, int] | None


class ItemDataset(BaseDataset):
    """Items of a torch dataset as modalities, and factors; made by :func:`setsup.from_torch`.

    Only one thread of a process reads items at a time, since few such datasets are thread-safe.

    Attributes
    ----------
    skipped : dict of str to str
        Fields of the items that were left out, with their types.

    """

    cpu_bound = True

    def __init__(
        self,
        name: str,
        items: Items,
        factors: FactorTable,
        keys: Mapping[str, Any],
        modalities: Mapping[str, Modality],
        size: Size = None,
        skipped: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.factors = factors
        self.modalities = dict(modalities)
        self.skipped = dict(skipped or {})
        self._items = items
        self._keys = dict(keys)
        self._size = size

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Refuse items that are resized already; there are no encoded images."""
        if self.modalities[name].color:
            refuse_changed(self.name, size=self._size)
        return None

    @per_process
    def _lock(self) -> threading.Lock:
        return threading.Lock()

    def _read_all(self, rows: Rows, out: Mapping[str, Any]) -> dict[str, Array]:
        distinct, inverse = np.unique(rows, return_inverse=True)
        by_name: dict[str, list[Array]] = {name: [] for name in out}
        for row in distinct.tolist():
            with self._lock:
                item = read_item(self._items, row, self.name)
            for name, arrays in by_name.items():
                arrays.append(self._array(name, item, row))
        return {name: self._together(name, arrays, distinct)[inverse] for name, arrays in by_name.items()}

    def _array(self, name: str, item: Any, row: int) -> Array:
        label = f"{name} of item {row} of {self.name}"
        pixels = as_pixels(pick(item, self._keys[name], self.name, row), label)
        modality = self.modalities[name]
        if pixels is None:
            raise DataError(f"{label} is not an array; expected an array, as in the other items")
        array, is_image = pixels
        if not modality.color:
            return array
        if not is_image:
            raise DataError(
                f"{label} has dtype {array.dtype} and shape {array.shape}; expected an image, as in the other items"
            )
        return resize(fit_channels(array, modality.shape[-1] or 3, label), self._size)

    def _together(self, name: str, arrays: list[Array], rows: Rows) -> Array:
        modality = self.modalities[name]
        expected = arrays[0].shape if arrays else tuple(length or 0 for length in modality.shape)
        if len(expected) == len(modality.shape):
            expected = tuple(old or new for old, new in zip(modality.shape, expected, strict=True))
        for array, row in zip(arrays, rows.tolist(), strict=True):
            if array.shape != expected:
                what = (
                    f"{name} of item {row} of {self.name} has the shape {array.shape}; expected {expected}, as in "
                    "the other items"
                )
                if modality.color:
                    raise several_sizes(what)
                raise DataError(f"{what}; fetch items of the same shape")
        if not arrays:
            return np.empty((0, *expected), modality.dtype)
        return np.stack(arrays).astype(modality.dtype, copy=False)


def fit_channels(pixels: Array, channels: int, label: str) -> Array:
    """Convert the channels of an image: grayscale to color, and alpha added or removed."""
    had = pixels.shape[-1]
    if had == channels:
        return pixels
    if channels == 1:
        raise DataError(
            f"{label} is a color image, but the items sampled first are grayscale; convert all of them to the same mode"
        )
    color = np.repeat(pixels, 3, axis=-1) if had == 1 else pixels[..., :3]
    alpha = np.full((*pixels.shape[:-1], 1), 255, np.uint8)
    return color if channels == 3 else np.concatenate([color, alpha], axis=-1)


def sample_items(items: Items, name: str) -> dict[int, Any]:
    """Read a few items, evenly spread, by their numbers."""
    rows = np.unique(np.linspace(0, len(items) - 1, min(len(items), _LOOKED_AT)).astype(np.int64))
    return {row: read_item(items, row, name) for row in rows.tolist()}


def find_modalities(
    keys: Mapping[str, Any], samples: Mapping[int, Any], name: str, size: Size
) -> tuple[dict[str, Modality], dict[str, str]]:
    """Modalities of the fields of some items; and the fields that are not arrays, with their types."""
    modalities: dict[str, Modality] = {}
    skipped: dict[str, str] = {}
    for label, key in keys.items():
        values = {row: pick(item, key, name, row) for row, item in samples.items()}
        arrays = [as_pixels(value, f"{label} of item {row} of {name}") for row, value in values.items()]
        if any(array is None for array in arrays):
            skipped[label] = type(next(iter(values.values()))).__name__
        else:
            modalities[label] = _modality(label, [array for array in arrays if array is not None], name, size)
    return modalities, skipped


def _modality(label: str, arrays: list[tuple[Array, bool]], name: str, size: Size) -> Modality:
    shapes = {array.shape for array, _ in arrays}
    if all(is_image for _, is_image in arrays):
        channels = {shape[-1] for shape in shapes}
        most = channels.pop() if len(channels) == 1 else 3
        sides = {shape[:2] for shape in shapes}
        common = size or (sides.pop() if len(sides) == 1 else (None, None))
        return Modality((*common, most), "uint8", color=_COLORS[most])
    kinds = {array.dtype for array, _ in arrays}
    axes = {len(shape) for shape in shapes}
    if len(kinds) > 1 or len(axes) > 1:
        first, second = (f"dtype {array.dtype} and shape {array.shape}" for array, _ in (arrays[0], _other(arrays)))
        raise DataError(
            f"{label} of {name} has {first} in some items and {second} in others; use the same dtype and number of "
            "axes in all items"
        )
    lengths = [{shape[axis] for shape in shapes} for axis in range(axes.pop())]
    if any(0 in on_axis for on_axis in lengths):
        lengths = [on_axis if 0 not in on_axis else {0, 1} for on_axis in lengths]
    return Modality(tuple(on_axis.pop() if len(on_axis) == 1 else None for on_axis in lengths), kinds.pop().name)


def _other(arrays: list[tuple[Array, bool]]) -> tuple[Array, bool]:
    """The first array that differs from the first in type or axes."""
    first = arrays[0][0]
    return next(other for other in arrays if (other[0].dtype, other[0].ndim) != (first.dtype, first.ndim))
