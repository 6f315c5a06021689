"""Datasets of numpy arrays: rows along the first axis, images of uint8, any other numbers as they are."""

from collections.abc import Mapping

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.base import BaseDataset
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.npz import NpzArray
from setsup.datasets.own.arrays.stored import StoredArray, take_rows
from setsup.errors import DataError, advice
from setsup.factors import FactorTable

__all__ = ["ArrayDataset", "describe"]

_COLORS = {1: "grey", 3: "srgb", 4: "srgb"}
_SHOWN = 8


class ArrayDataset(BaseDataset):
    """Arrays as modalities, and factors; made by :func:`setsup.from_arrays`.

    Attributes
    ----------
    skipped : dict of str to str
        Arrays of an ``.npz`` that were left out, with their types.

    """

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        arrays: Mapping[str, StoredArray],
        channels_first: bool | None = None,
        skipped: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.factors = factors
        self.skipped = dict(skipped or {})
        self._arrays = dict(arrays)
        shapes = {label: _modality(label, array, channels_first) for label, array in arrays.items()}
        self.modalities = {label: modality for label, (modality, _) in shapes.items()}
        self._turned = {label for label, (_, turned) in shapes.items() if turned}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        array = self._arrays[name].array()
        if name in self._turned:
            images = take_rows(array, rows)
            for channel in range(images.shape[1]):  # in a third of the time of all at once
                out[..., channel] = images[:, channel]
            return out
        # grey images may have no axis of channels
        flat = out.reshape(len(rows), *array.shape[1:])
        return take_rows(array, rows, flat).reshape(out.shape)


def describe(arrays: Mapping[str, StoredArray | NpzArray]) -> str:
    """Name, type and shape of arrays, for a message."""
    parts = [f"{label} {array.dtype} {array.shape}" for label, array in arrays.items()]
    return ", ".join([*parts[:_SHOWN], *(["…"] if len(parts) > _SHOWN else [])])


def _modality(label: str, array: StoredArray, channels_first: bool | None) -> tuple[Modality, bool]:
    """Modality of an array, and whether its channels have to be moved to the end."""
    shape = array.shape[1:]
    if 0 in shape:
        raise DataError(f"{label} has the shape {array.shape}, so it contains no values; leave it out")
    pixels = array.dtype == np.uint8 and len(shape) == 3
    if array.dtype == np.uint8 and len(shape) == 2:
        return Modality((*shape, 1), "uint8", color="grey"), False
    if pixels and shape[0] in _COLORS and channels_first:
        return Modality((*shape[1:], shape[0]), "uint8", color=_COLORS[shape[0]]), True
    if pixels and shape[2] in _COLORS:
        return Modality(shape, "uint8", color=_COLORS[shape[2]]), False
    if pixels and shape[0] in _COLORS and channels_first is None:
        raise DataError(
            f"{label} has dtype uint8 and shape {array.shape}, which looks like (n, channels, height, width); pass "
            + advice(
                "channels_first=True, or channels_first=False if it is not an image",
                "--option channels_first=true, or --option channels_first=false if it is not an image",
            )
        )
    return Modality(shape, array.dtype.name), False
