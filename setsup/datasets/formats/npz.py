"""Arrays of an ``.npz``, a zip of ``.npy`` files: mapped if they are uncompressed, otherwise read sequentially."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.copying import gather
from setsup.datasets.formats.array_file import Head
from setsup.datasets.formats.npy import LONGEST_HEAD, NUMBERS, npy_head
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.listing import STORED
from setsup.files.archives.member_index import Index, load_index
from setsup.files.archives.names import shown
from setsup.files.archives.zips import ZipArchive

__all__ = ["Fill", "NpzArray", "npz_names"]

Fill = Callable[[int, int, Array], None]
"""``fill(start, stop, out)`` writes rows ``start`` to ``stop − 1`` into ``out``."""

_SHOWN = 8
_BLOCK = 96 << 20  # bytes of a block of a conversion, of which two are held


class NpzArray:
    """One array of an ``.npz``, whose header has been checked.

    The first `axes` are merged into one; `kinds` are the accepted kinds of dtypes, by default numbers. With ``"O"``,
    the dtype and shape of an array of objects can be read, but never its elements.

    Attributes
    ----------
    path : Path
        The ``.npz``.
    shape : tuple of int
        Shape of the array from its header, with the first `axes` merged.
    dtype : numpy.dtype
        Type of its elements, in the byte order of the file.
    packed : bool
        Whether it is compressed, and can only be read sequentially.
    block_rows : int
        Best number of rows per block for :meth:`rows`.

    """

    check = None  # the checksum of the zip is enough

    def __init__(self, path: Path, name: str, axes: int = 1, kinds: str = NUMBERS) -> None:
        self.path = path
        index = _load(path)
        there = index.names.to_pylist()
        if f"{name}.npy" not in there:
            arrays = ", ".join(shown(each.removesuffix(".npy")) for each in there[:_SHOWN]) or "nothing"
            raise DataError(f"{path} has no array {name!r} (available: {arrays}); fetch the published file")
        self._row = index.row(there.index(f"{name}.npy"))
        self._file = (path.absolute(), index.about.size, index.about.mtime_ns)
        self._label = f"{path}: {name}.npy"
        self.packed = self._row.method != STORED
        self.dtype, self.shape, self._offset = self._head(kinds)
        expected = self._offset + math.prod(self.shape) * self.dtype.itemsize
        if expected != self._row.size and self.dtype.kind != "O":
            raise DamagedFile(
                f"{self._label}: the header specifies the shape {self.shape} and dtype {self.dtype} ({expected:,} "
                f"bytes in total), but the array has {self._row.size:,} bytes"
            )
        self.shape = (math.prod(self.shape[:axes]), *self.shape[axes:])
        self.block_rows = max(1, _BLOCK // max(1, math.prod(self.shape[1:]) * self.dtype.itemsize))
        self._map: Array | None = None

    def __len__(self) -> int:
        """Length of the first axis."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Show the file, dtype and shape."""
        return f"NpzArray({self._label!r}, {self.dtype} {self.shape})"

    @property
    def mapped(self) -> bool:
        """Whether the array is uncompressed in the file, and is mapped into memory."""
        return not self.packed

    def take(self, rows: npt.NDArray[np.int64], out: Array | None = None) -> Array:
        """Copy any rows of an uncompressed array."""
        if self._map is None:
            self._map = self.map()
        return gather(self._map, rows, out)

    def map(self) -> Array:
        """Map an uncompressed array into memory; the checksum in the zip is not checked."""
        self._refuse_objects()
        if self.packed:
            raise DataError(
                f"{self._label} is compressed, so it cannot be mapped into memory; read it in blocks with rows()"
            )
        start = self._archive().start(self._row, self._said)
        if start + self._row.size > self._file[1]:
            raise DamagedFile(f"{self._label} is truncated: the archive ends inside it")
        if not math.prod(self.shape):
            return np.empty(self.shape, self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", start + self._offset, self.shape))

    @contextmanager
    def rows(self) -> Iterator[Fill]:
        """Open the array to read rows block by block, with only one block in memory.

        Yields: ``fill(start, stop, out)`` writes rows ``start`` to ``stop − 1`` into ``out``, C-contiguous, of the
        shape ``(stop − start, *shape[1:])`` and the array's dtype. Blocks that come in ascending order are read in
        one pass, at whose end the checksum is compared.
        """
        self._refuse_objects()
        width = math.prod(self.shape[1:]) * self.dtype.itemsize
        tape = _Tape(self._pieces)

        def fill(start: int, stop: int, out: Array) -> None:
            tape.read(self._offset + start * width, out.reshape(-1).view(np.uint8).data)
            if stop == len(self):
                tape.finish()

        yield fill

    def _pieces(self) -> Iterator[bytes]:
        return self._archive().pieces(self._row, self._said)

    def _archive(self) -> ZipArchive:
        return ZipArchive(*self._file, 1)

    def _said(self) -> str:
        return self._label

    def _head(self, kinds: str) -> Head:
        """Type, shape, and bytes before the first element."""
        begin = b""
        for piece in self._pieces():
            begin += piece[: LONGEST_HEAD - len(begin)]
            if len(begin) >= LONGEST_HEAD:
                break
        return npy_head(begin, self._label, kinds)

    def _refuse_objects(self) -> None:
        if self.dtype.kind == "O":
            raise DataError(
                f"{self._label} contains pickled Python objects, which setsup never reads; save an array of numbers "
                "or strings"
            )


def npz_names(path: Path) -> list[str]:
    """Names of the arrays of an ``.npz``, sorted."""
    return [str(name).removesuffix(".npy") for name in _load(path).names.to_pylist() if name.endswith(".npy")]


def _load(path: Path) -> Index:
    index = load_index(path)
    if index.about.kind != "zip":
        raise DamagedFile(f"{path} is a {index.about.kind}; expected a zip archive")
    return index


class _Tape:
    """Reads a stream of pieces forwards; going back restarts it."""

    def __init__(self, start: Callable[[], Iterator[bytes]]) -> None:
        self._start = start
        self._pieces = start()
        self._piece, self._at = memoryview(b""), 0  # what is left of a piece, and where that begins

    def read(self, offset: int, out: memoryview) -> None:
        """Write the bytes from an offset on."""
        if offset < self._at:
            self._pieces, self._piece, self._at = self._start(), memoryview(b""), 0
        while offset > self._at:
            self._take(min(offset - self._at, len(self._next())))
        filled = 0
        while filled < len(out):
            count = min(len(out) - filled, len(self._next()))
            out[filled : filled + count] = self._piece[:count]
            filled += count
            self._take(count)

    def finish(self) -> None:
        """Read to the end, where the checksum is compared."""
        for piece in self._pieces:
            self._at += len(self._piece)
            self._piece = memoryview(piece)

    def _next(self) -> memoryview:
        while not len(self._piece):
            # where the archive ends too early, the pieces themselves say so
            self._piece = memoryview(next(self._pieces))
        return self._piece

    def _take(self, count: int) -> None:
        self._piece = self._piece[count:]
        self._at += count
