"""Images of an HDF5 file in any layout: checked when opened; read row by row, in blocks, or mapped."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bytes
from setsup.datasets.copying import gather
from setsup.datasets.formats.h5.chunks import ChunkReader, filters
from setsup.errors import DamagedFile, DataError, SetsupError
from setsup.files import need_readable
from setsup.random import fold, randint_below, stream_key

__all__ = ["H5Images", "check_storage", "h5_dataset", "h5_errors", "h5_open"]


_FILTERS = (1, 2, 3, 32000)  # gzip, shuffle, fletcher32, lzf: what every h5py can read
_BLOCK = 192 << 20  # bytes of a block, of which two are held
_LARGEST_CHUNK = 1 << 28
_CHECKED = 8  # chunks or rows per block that are compared in the end
_COMPARED = 512  # images of such a chunk


@contextmanager
def h5_errors(path: Path | str) -> Iterator[None]:
    """Convert errors of the HDF5 library to a DataError."""
    try:
        yield
    except (SetsupError, ImportError):
        raise
    except Exception as error:  # h5py raises nearly every built-in exception on damaged files
        why = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise DamagedFile(f"{path} could not be read as HDF5: {why[0][:200]}") from error


def h5_open(path: Path) -> Any:
    """Open an HDF5 file for reading."""
    import h5py

    need_readable(path, "an HDF5 file")
    with h5_errors(path):
        return h5py.File(path, "r", locking="best-effort")


def h5_dataset(path: Path | str, file: Any, name: str) -> Any:
    """Get a dataset that is in the file itself and can be read without plug-ins."""
    import h5py

    with h5_errors(path):
        link = file.get(name, getlink=True)
        if link is None:
            there = ", ".join(list(file)[:8]) or "nothing"
            raise DataError(f"{path} has no dataset {name!r} (available: {there}); fetch the published file")
        if not isinstance(link, h5py.HardLink) or not isinstance(file[name], h5py.Dataset):
            raise DataError(f"{path}: {name!r} is a link or a group; expected a dataset stored in the file")
        check_storage(path, file[name], repr(name))
        return file[name]


def check_storage(path: Path | str, stored: Any, what: str) -> None:
    """Refuse a dataset with data in other files, or that requires plug-ins or too much memory to read."""
    if stored.is_virtual or stored.external:
        raise DataError(
            f"{path}: the dataset {what} stores its data in other files, which setsup does not open; copy the data "
            "into one file"
        )
    unusual = [number for number in filters(stored) if number not in _FILTERS]
    if unusual:
        raise DataError(
            f"{path}: the dataset {what} is compressed with the HDF5 filter {unusual[0]}, which setsup does not "
            f"support; compress it with gzip: `h5repack -f GZIP=4 {Path(path).name} repacked.h5`"
        )
    if math.prod(stored.chunks or ()) * stored.dtype.itemsize > _LARGEST_CHUNK:
        smaller = "x".join(map(str, _smaller(stored.chunks, stored.dtype.itemsize)))
        raise DataError(
            f"{path}: the dataset {what} has chunks of shape {stored.chunks}, each larger than {_LARGEST_CHUNK:,} "
            "bytes, so it cannot be read within 1 GB of memory; choose smaller chunks: `h5repack -l "
            f"{stored.name}:CHUNK={smaller} {Path(path).name} repacked.h5`"
        )


def _smaller(chunks: tuple[int, ...], width: int) -> list[int]:
    """Shape of chunks of at most a hundredth of the limit, cut along the first axes."""
    shape, most = list(chunks), _LARGEST_CHUNK // 100
    for axis, length in enumerate(chunks):
        rest = math.prod(shape) // length * width
        shape[axis] = min(length, max(1, most // rest))
    return shape


class H5Images:
    """Images of an open HDF5 dataset; for one process only, any number of threads.

    Attributes
    ----------
    block_rows : int
        Best number of rows for :meth:`fill`: whole chunks, within the memory limit of a conversion.

    """

    packed = False

    def __init__(self, path: Path, images: Any) -> None:
        self._path, self._images = path, images
        self.shape: tuple[int, ...] = images.shape
        with h5_errors(path):
            self._mapped = _mapped(path, images)
            self._reader = ChunkReader(path, images) if ChunkReader.handles(images) else None
        deep = images.chunks[0] if images.chunks else 1
        fitting = max(1, _BLOCK // int(np.prod(self.shape[1:])))
        self.block_rows = min(max(fitting - fitting % deep, min(deep, fitting)), max(self.shape[0], 1))

    @property
    def mapped(self) -> bool:
        """Whether the file itself is mapped into memory, so that reading rows only copies them."""
        return self._mapped is not None

    def take(self, rows: npt.NDArray[np.int64], out: Bytes | None = None) -> Bytes:
        """Read any images.

        `out` uint8, optional; returns uint8, ``rows.shape + (height, width, channels)``.
        """
        if self._mapped is not None:
            return gather(self._mapped, rows, out)
        single, back = np.unique(rows, return_inverse=True)
        if self._reader is not None:
            images = self._reader.take(single)
        else:
            images = np.empty((len(single), *self.shape[1:]), np.uint8)
            with h5_errors(self._path):
                # row by row: h5py's own indexing by lists is 20 times slower
                for slot, row in enumerate(single.tolist()):
                    self._images.read_direct(images, np.s_[row], np.s_[slot])
        return gather(images, back.reshape(rows.shape), out)

    @contextmanager
    def rows(self) -> Iterator[Callable[[int, int, Bytes], None]]:
        """Return :meth:`fill`, and close the file at the end."""
        try:
            yield self.fill
        finally:
            self._images.file.close()

    def fill(self, start: int, stop: int, out: Bytes) -> None:
        """Read consecutive images ``start`` to ``stop − 1`` into ``out``, (stop − start, height, width, channels)."""
        if self._reader is not None:
            self._reader.fill(start, stop, out)
            return
        with h5_errors(self._path):
            self._images.read_direct(out, np.s_[start:stop])

    def check(self, start: int, stop: int, written: Bytes) -> None:
        """Compare converted images with those that the HDF5 library reads, for a keyed sample of chunks or rows.

        `written` (stop - start, height, width, channels) uint8.
        """
        deep, *inner = self._images.chunks or (1, *self.shape[1:])
        cells = (-(-size // part) for size, part in zip(self.shape[1:], inner, strict=True))
        first, last = start // deep, (stop - 1) // deep
        for row, *cell in _drawn(start, (last - first + 1, *cells)).tolist():
            low, high = max(start, (first + row) * deep), min(stop, (first + row + 1) * deep)
            box = tuple(slice(k * part, (k + 1) * part) for k, part in zip(cell, inner, strict=True))
            with h5_errors(self._path):
                expected = self._images[(slice(low, high), *box)]
            rows = slice(0, high - low, -(-(high - low) // _COMPARED))
            if not np.array_equal(written[low - start : high - start][(rows, *box)], expected[rows]):
                raise DataError(
                    f"rows {low:,} to {high - 1:,} of {self._path} differ after the conversion: the disk or the "
                    "memory of this machine may be faulty; run the conversion again"
                )


def _drawn(start: int, sizes: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Chunk coordinates to compare in the block at ``start``, (_CHECKED, axes), always the same ones."""
    key = fold(fold(stream_key(0, "prepared"), start), np.arange(_CHECKED, dtype=np.uint64))
    bits = fold(key[:, np.newaxis], np.arange(len(sizes), dtype=np.uint64))
    return randint_below(bits, np.array(sizes, dtype=np.int64))


def _mapped(path: Path, images: Any) -> Bytes | None:
    """Images that lie in the file as they are, mapped."""
    offset = None if images.chunks is not None else images.id.get_offset()
    if offset is None:  # chunked, or never written
        return None
    size = math.prod(images.shape)
    if offset + size > os.path.getsize(path):
        raise DataError(
            f"{path} is truncated: its images require {offset + size:,} bytes, but the file has "
            f"{os.path.getsize(path):,}; fetch it again"
        )
    return np.asarray(np.memmap(path, np.uint8, "r", offset, images.shape))
