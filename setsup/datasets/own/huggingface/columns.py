"""Columns of a Hugging Face dataset that hold images or arrays, read row by row from Arrow.

Convention
----------
Rows are those of the dataset after its ``select``, ``shuffle`` and ``filter``. Only requested rows are decoded; when
the dataset is opened, the headers of at most 256 encoded images are read.
"""

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.deep_images import Measured, deep_dtype, stack
from setsup.datasets.adapters.fetching import common_size, fetch_images, sample_headers
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.source import Source
from setsup.datasets.images import common_channels
from setsup.datasets.originals import Original, originals_of, refuse_changed
from setsup.errors import DataError
from setsup.factors.io.huggingface import data_rows, leaf_column
from setsup.files.roots import some

__all__ = ["Arrays", "Column", "Encoded", "EncodedImages", "Leaf", "image_column"]

Size = tuple[int, int] | None

_LOOKED_AT = 256
_COLORS = {1: "grey", 3: "srgb", 4: "srgb"}
_CHANNELS = {"L": 1, "RGB": 3, "RGBA": 4}


class Column(Protocol):
    """A modality, and how its rows are fetched."""

    modality: Modality

    def fetch(self, rows: Rows, out: Array | None = None) -> Array:
        """Arrays of (n,) valid rows, in `out` or new ones."""
        ...


class Leaf:
    """A column, or a field of a struct in one, of a ``datasets.Dataset``."""

    def __init__(self, dataset: Any, path: tuple[str, ...], name: str) -> None:
        self.dataset = dataset.select_columns([path[0]]).with_format("arrow")
        self.path = path
        self.label = f"{'.'.join(path)} of {name}"

    def take(self, rows: Rows) -> Any:
        """Arrow array of (n,) rows, in chunks."""
        return leaf_column(self.dataset[rows.tolist() if rows.size else slice(0, 0)], self.path)


class Encoded:
    """Encoded images: structs of ``bytes`` and ``path``, bytes, or paths."""

    def __init__(self, leaf: Leaf) -> None:
        self.label = leaf.label
        self._leaf = leaf
        self._folder = Path.cwd()
        self._refuse_missing()

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._leaf.dataset)

    def take(self, rows: Rows) -> list[tuple[Source, str]]:
        """Content or path of each row's image, and a label."""
        content, names = _parts(self._leaf.take(rows))
        return [
            (self._folder / str(name) if data is None else data, f"{self.label}, row {row}")
            for data, name, row in zip(content.to_pylist(), names.to_pylist(), rows.tolist(), strict=True)
        ]

    def _refuse_missing(self) -> None:
        import pyarrow.compute as pc

        content, _ = _parts(leaf_column(self._leaf.dataset.data, self._leaf.path))
        outside, shown = np.asarray(pc.is_null(content)), data_rows(self._leaf.dataset)
        rows = np.flatnonzero(outside if shown is None else outside[shown])
        names = _parts(self._leaf.take(rows))[1].to_pylist()
        empty = [row for row, name in zip(rows.tolist(), names, strict=True) if not name]
        if empty:
            raise DataError(
                f"{self.label}: {len(empty):,} of {len(self):,} rows have no image, such as row {empty[0]}; remove "
                "these rows with dataset.select, or leave out the column with image="
            )
        missing = [name for name in dict.fromkeys(names) if not os.path.isfile(self._folder / name)]
        if missing:
            files = "1 image file is" if len(missing) == 1 else f"{len(missing):,} image files are"
            raise DataError(
                f"{self.label}: {files} missing: {some(missing)}; add the files, or leave out the column with image="
            )


class EncodedImages:
    """Images of 8 bits per channel, decoded by :mod:`setsup.datasets.images`.

    `size` (height, width), optional.
    """

    def __init__(self, images: Encoded, mode: str | None, size: Size, varied: bool = False) -> None:
        headers = sample_headers(images, _LOOKED_AT)
        channels = common_channels(headers)
        if mode is not None and (mode not in _CHANNELS or (mode == "L" and channels != 1)):
            raise DataError(
                f"{images.label} specifies the mode {mode}, which setsup does not support; convert the images with "
                "dataset.map, or leave out the column with image="
            )
        channels = channels if mode is None else _CHANNELS[mode]
        shape = size or ((None, None) if varied else common_size(headers))
        self.modality = Modality((*shape, channels), "uint8", color=_COLORS[channels])
        self._images, self._size = images, size

    def originals(self, rows: Rows, name: str) -> list[Original]:
        """Encoded images of (n,) rows."""
        refuse_changed(name, size=self._size)
        return originals_of(self._images.take(rows), self.modality.shape[2])

    def fetch(self, rows: Rows, out: Array | None = None) -> Array:
        """Decode the images of some rows."""
        return fetch_images(self._images, rows, self.modality.shape, self._size, out)


class Arrays:
    """Arrays, lists of numbers, or single numbers."""

    def __init__(self, leaf: Leaf, modality: Modality) -> None:
        self.modality = modality
        self._leaf = leaf

    def fetch(self, rows: Rows, out: Array | None = None) -> Array:
        """Copy the arrays of some rows."""
        column = self._leaf.take(rows)
        ragged = None in self.modality.shape
        parts = [_numbers(chunk, self._leaf.label) for chunk in (_singly(column) if ragged else column.chunks)]
        shape = tuple(length or 0 for length in self.modality.shape)
        if ragged:
            arrays = stack([part[0] for part in parts], self.modality, self._leaf.label)
        else:
            arrays = np.concatenate([part.reshape((-1, *shape)) for part in parts] or [np.empty((0, *shape))])
        return np.asarray(arrays.astype(self.modality.dtype, copy=False))


def image_column(leaf: Leaf, mode: str | None, size: Size, varied: bool = False) -> Column:
    """Column of encoded images, of 8 bits per channel or more: the first image tells; see :class:`Images`."""
    images = Encoded(leaf)
    deep = deep_dtype(*images.take(np.zeros(1, np.int64))[0])
    return EncodedImages(images, mode, size, varied) if deep is None else Measured(images, deep, images.label)


def _parts(column: Any) -> tuple[Any, Any]:
    """Content and names of encoded images; one of the two is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_struct(kind):
        named = kind.get_field_index("path") >= 0
        content = pc.struct_field(column, "bytes")
        return content, pc.struct_field(column, "path") if named else _nulls(len(column))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column, _nulls(len(column))
    return pa.chunked_array([pa.nulls(len(column), pa.binary())]), column


def _nulls(length: int) -> Any:
    import pyarrow as pa

    return pa.chunked_array([pa.nulls(length, pa.string())])


def _singly(column: Any) -> list[Any]:
    return [column.slice(row, 1).combine_chunks() for row in range(len(column))]


def _numbers(array: Any, label: str) -> Array:
    """Arrow array of lists, or of numbers, as one of numpy: all lists of an axis have one length."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    shape = [len(array)]
    while pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        if array.null_count:
            raise DataError(f"{label} has rows without a value; remove them with dataset.select")
        lengths = pc.unique(pc.list_value_length(array)).to_pylist() or [0]
        if len(lengths) > 1:
            raise DataError(
                f"{label}: a row contains lists of different lengths ({', '.join(map(str, lengths))}); expected lists "
                "of the same length"
            )
        shape.append(lengths[0])
        array = array.flatten()
    if array.null_count and not pa.types.is_floating(array.type):
        raise DataError(f"{label} has missing values; fill them in, or remove the rows without a value")
    return np.asarray(array.to_numpy(zero_copy_only=False)).reshape(shape)
