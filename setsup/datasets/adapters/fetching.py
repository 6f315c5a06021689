"""Read rows one by one in several threads: images and other arrays."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.formats.source import Source
from setsup.datasets.images import Header, corner, decode, header, parallel, resize, several_sizes
from setsup.errors import DataError

__all__ = ["Images", "common_size", "fetch_images", "read_distinct", "sample_headers", "sample_images"]

S = TypeVar("S")


class Images(Protocol):
    """Images by row number, independent of their storage."""

    def __len__(self) -> int:
        """Count the rows."""
        ...

    def take(self, rows: npt.NDArray[np.int64]) -> list[tuple[Source, str]]:
        """Source of each row's image, and a label for messages."""
        ...


def sample_images(images: Images, most: int) -> list[tuple[Source, str]]:
    """Take at most `most` images, evenly spread over the rows."""
    return images.take(np.unique(np.linspace(0, len(images) - 1, min(len(images), most)).astype(np.int64)))


def sample_headers(images: Images, most: int) -> list[Header]:
    """Read the headers of at most `most` images, evenly spread over the rows."""
    return parallel(lambda item: header(*item), sample_images(images, most))


def common_size(headers: Iterable[Header]) -> tuple[int, int] | tuple[None, None]:
    """Common height and width of all images; None if sizes differ."""
    sizes = {(header.height, header.width) for header in headers}
    return sizes.pop() if len(sizes) == 1 else (None, None)


def fetch_images(
    images: Images,
    rows: npt.NDArray[np.int64],
    shape: tuple[int | None, ...],
    size: tuple[int, int] | None = None,
    out: npt.NDArray[np.uint8] | None = None,
    crop: tuple[int, int] | None = None,
    lenient: bool = False,
) -> npt.NDArray[np.uint8]:
    """Decode the images of any rows, each once, directly into the output.

    `shape` (height, width, channels); `size` (height, width), optional; `out` uint8 array of shape ``rows.shape +
    shape``, optional; `crop` (height, width), optional; returns uint8 array of shape ``rows.shape + shape``.
    """
    if out is not None and not out.flags.c_contiguous:
        out[...] = fetch_images(images, rows, shape, size, crop=crop, lenient=lenient)
        return out
    shape = shape if out is None else out.shape[rows.ndim :]
    channels = shape[2] or 3
    distinct, first, inverse = np.unique(rows.reshape(-1), return_index=True, return_inverse=True)
    items = images.take(distinct)
    begun = []
    if None in shape and items:
        begun = [_decode(items[0], channels, size, crop, None, lenient)]
    expected = begun[0].shape if begun else tuple(length or 0 for length in shape)
    fetched = np.empty((*rows.shape, *expected), np.uint8) if out is None else out
    slots = fetched.reshape(rows.size, *expected)

    def fill(index: int) -> None:
        slot = slots[first[index]]
        if index < len(begun):
            image = begun[index]
        else:
            image = _decode(items[index], channels, size, crop, slot, lenient)
        if image.shape != expected:
            raise several_sizes(
                f"{items[index][1]} is {image.shape[0]} × {image.shape[1]} pixels (height × width); expected "
                f"{expected[0]} × {expected[1]}, as in the other images"
            )
        if image is not slot:
            slot[...] = image

    parallel(fill, range(len(items)))
    origin = first[inverse.reshape(-1)]
    repeats = np.flatnonzero(origin != np.arange(len(origin)))
    slots[repeats] = slots[origin[repeats]]
    return fetched


def _decode(
    item: tuple[Source, str],
    channels: int,
    size: tuple[int, int] | None,
    crop: tuple[int, int] | None,
    out: npt.NDArray[np.uint8] | None,
    lenient: bool,
) -> npt.NDArray[np.uint8]:
    """Decode an image, crop its centre if `crop` is given, and resize it."""
    source, label = item
    if crop is None:
        return decode(source, label, channels, size, out, lenient)
    image = decode(source, label, channels, lenient=lenient)
    (height, width), (rows, columns) = image.shape[:2], crop
    if height < rows or width < columns:
        raise DataError(
            f"{label} is {height} × {width} pixels (height × width), smaller than the crop of {rows} × {columns}; open "
            "the dataset with a smaller crop"
        )
    top, left = corner((height, width), crop)
    return resize(image[top : top + rows, left : left + columns], size)


def read_distinct(
    rows: Rows, out: Sequence[Array], take: Callable[[Rows], Sequence[S]], put: Callable[[S, int], object]
) -> None:
    """Fill arrays of rows: ``take(distinct)`` gives an item for each distinct row, ``put(item, slot)`` writes it.

    `rows` (n,) int64; `out` arrays (n, ...), in which repeated rows are copied.

    Examples
    --------
    >>> squares = np.empty(3, np.int64)
    >>> read_distinct(np.array([5, 2, 5]), [squares], np.ndarray.tolist, lambda row, slot: squares.put(slot, row**2))
    >>> squares
    array([25,  4, 25])

    """
    distinct, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    items = take(distinct)
    parallel(lambda turn: put(items[turn], int(first[turn])), range(len(items)))
    origin = first[inverse]
    repeats = np.flatnonzero(origin != np.arange(len(origin)))
    for array in out:
        array[repeats] = array[origin[repeats]]
