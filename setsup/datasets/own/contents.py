"""Datasets whose rows have images and arrays in files or columns of encoded content."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.deep_images import Measured, deep_dtype, stack
from setsup.datasets.adapters.fetching import Images, common_size, fetch_images, sample_headers
from setsup.datasets.base import BaseDataset
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.formats.npy import npy_head
from setsup.datasets.formats.source import Source, source_content
from setsup.datasets.images import common_channels, parallel
from setsup.datasets.originals import Original, originals_of, refuse_changed
from setsup.errors import DataError
from setsup.factors import FactorTable

__all__ = ["Content", "ContentDataset", "PackedColumn", "StackedContent", "content_reader"]

_LOOKED_AT = 256
_NPY = b"\x93NUMPY"


class Content(Protocol):
    """A modality of rows."""

    modality: Modality

    def fetch(self, rows: Rows, out: Array | None = None) -> Array:
        """Arrays of (n,) rows."""
        ...


class ContentDataset(BaseDataset):
    """Factors, and a modality for each kind of content."""

    cpu_bound = True

    def __init__(self, name: str, factors: FactorTable, contents: Mapping[str, Content]) -> None:
        self.name, self.factors = name, factors
        self.modalities = {modality: content.modality for modality, content in contents.items()}
        self._contents = dict(contents)

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None for arrays."""
        content = self._contents[name]
        if not isinstance(content, _EightBit):
            return None
        refuse_changed(self.name, size=content.size)
        return originals_of(content.images.take(rows), content.modality.shape[2])

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        return self._contents[name].fetch(rows, out)


def content_reader(images: Images, label: str, size: tuple[int, int] | None) -> Content:
    """Reader of files that are images, images of more than 8 bits, or ``.npy``, as the first one is."""
    source, first = images.take(np.zeros(1, np.int64))[0]
    if source_content(source)[: len(_NPY)] == _NPY:
        return _Arrays(images, label)
    deep = deep_dtype(source, first)
    if deep is not None:
        if size is not None:
            raise DataError(f"{first} has {deep} pixels, which setsup cannot resize; leave out size=")
        return Measured(images, deep, label)
    return _EightBit(images, size)


class PackedColumn:
    """Images in a column of tables: bytes, or structs of ``bytes``."""

    def __init__(self, column: Any, label: str) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = column.type
        packed = pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0
        if packed:
            kind = kind.field("bytes").type
        if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise DataError(f"{label} has the type {column.type}; expected images as bytes, or structs of bytes")
        data = (pc.struct_field(column, "bytes") if packed else column).cast(pa.large_binary())
        self._data, self._label = data.combine_chunks(), label
        if self._data.null_count:
            raise DataError(f"{label} has no image in {self._data.null_count:,} rows; expected one for each")

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._data)

    def take(self, rows: npt.NDArray[np.int64]) -> list[tuple[Source, str]]:
        """Content and label of each row."""
        contents = self._data.take(rows).to_pylist()
        return [(content, f"row {row} of {self._label}") for row, content in zip(rows.tolist(), contents, strict=True)]


class _EightBit:
    """Images of 8 bits."""

    def __init__(self, images: Images, size: tuple[int, int] | None) -> None:
        headers = sample_headers(images, _LOOKED_AT)
        channels = common_channels(headers)
        shape = (*(size or common_size(headers)), channels)
        self.modality = Modality(shape, "uint8", color="grey" if channels == 1 else "srgb")
        self.images, self.size = images, size

    def fetch(self, rows: Rows, out: Array | None = None) -> Array:
        """Decode images."""
        return fetch_images(self.images, rows, self.modality.shape, self.size, out)


class StackedContent:
    """The same number of contents for each row, such as views: row r has those from r·length on."""

    def __init__(self, inner: Content, length: int) -> None:
        had = inner.modality
        self.modality = Modality((length, *had.shape), had.dtype, had.unit, had.color)
        self._inner, self._length = inner, length

    def fetch(self, rows: Rows, out: Array | None = None) -> Array:
        """Arrays of (n,) rows, (n, length, …)."""
        each = (rows[:, None] * self._length + np.arange(self._length)).reshape(-1)
        arrays = self._inner.fetch(each)
        return arrays.reshape(len(rows), self._length, *arrays.shape[1:])


class _Arrays:
    """Arrays in ``.npy`` files, one for each row."""

    def __init__(self, images: Images, label: str) -> None:
        self._images, self._label = images, label
        some = np.unique(np.linspace(0, len(images) - 1, min(8, len(images))).astype(np.int64))
        arrays = [_array(*item) for item in images.take(some)]
        shapes = {array.shape for array in arrays}
        if len({len(shape) for shape in shapes}) > 1 or len({array.dtype for array in arrays}) > 1:
            raise DataError(f"{label} has arrays of different types or numbers of axes; expected one type")
        lengths: Sequence[tuple[int, ...]] = list(zip(*shapes, strict=True))
        shape = tuple(one[0] if len(set(one)) == 1 else None for one in lengths)
        self.modality = Modality(shape, arrays[0].dtype.name)

    def fetch(self, rows: Rows, out: Array | None = None) -> Array:
        """Read arrays."""
        distinct, inverse = np.unique(rows, return_inverse=True)
        arrays = parallel(lambda item: _array(*item), self._images.take(distinct))
        return stack(arrays, self.modality, self._label)[inverse]


def _array(source: Source, label: str) -> Array:
    content = source_content(source)
    dtype, shape, start = npy_head(content, label)
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if len(content) - start != size:
        raise DataError(f"{label} is damaged: it has {len(content) - start:,} bytes of numbers, not {size:,}")
    return np.frombuffer(io.BytesIO(content).getbuffer(), dtype, offset=start).reshape(shape)
