"""Images in chunks of an HDF5 dataset, inflated by several threads and assembled in blocks that fit in the cache.

Shapes3D is published in chunks of 15,000 images × 4 rows × 4 columns × 1 channel: one image touches 768 of them,
and bytes of one chunk lie 3 apart in the image. HDF5 copies such a chunk in runs of one byte. Here the chunks of one
band of rows are inflated together; then, a few hundred images at a time, channels are interleaved and columns joined
in the processor's cache, and whole bands are copied out.
"""

import os
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bytes
from setsup.errors import DamagedFile, DataError

__all__ = ["ChunkReader", "filters", "join_chunks"]

Picks = slice | npt.NDArray[np.int64]
Block = tuple[int, Picks, Bytes]
"""Number of a first image, images counted from it, and where they go."""

_DEFLATE, _SHUFFLE = 1, 2
_LEAST_CHUNK = 1 << 15  # smaller chunks cost HDF5 less than the calls from here would
_MOST_SCRATCH = 3 << 26  # bytes of inflated chunks, all threads together
_MOST_INFLATED = 1 << 26  # a chunk that could inflate to more is inflated with a limit, which is slower
_LARGEST_RATIO = 1032  # of deflate
_TILE = 200_000  # bytes that fit into a core's own cache twice
_MOST_THREADS = 4


class ChunkReader:
    """Reads images of a chunked dataset, deflated or plain."""

    def __init__(self, path: Path, images: Any) -> None:
        self._path, self._images = path, images
        self.shape: tuple[int, int, int, int] = images.shape
        self.chunks: tuple[int, int, int, int] = images.chunks
        numbers = filters(images)
        self._deflate = numbers.index(_DEFLATE) if _DEFLATE in numbers else None
        self._stored: dict[tuple[int, ...], int] = {}
        images.id.chunk_iter(lambda info: self._stored.__setitem__(info.chunk_offset, info.size))

    @staticmethod
    def handles(images: Any) -> bool:
        """Whether a dataset's chunks divide the image, are large, and are at most deflated."""
        if images.chunks is None or len(images.shape) != 4 or images.id.get_type().get_size() != 1:
            return False
        count, *inner = images.chunks
        divides = all(size % part == 0 for size, part in zip(images.shape[1:], inner, strict=True))
        chunk = count * int(np.prod(inner))
        band = count * inner[0] * images.shape[2] * images.shape[3]
        # shuffling bytes of one-byte numbers changes nothing
        plain = filters(images) in ([], [_DEFLATE], [_SHUFFLE], [_SHUFFLE, _DEFLATE])
        return divides and plain and chunk >= _LEAST_CHUNK and band + chunk <= _MOST_SCRATCH

    def fill(self, start: int, stop: int, out: Bytes) -> None:
        """Read consecutive images.

        `out` (stop - start, height, width, channels) uint8, in C order.
        """
        rows = self.chunks[0]
        blocks: list[Block] = []
        for first in range(start - start % rows, stop, rows):
            a, b = max(first, start), min(first + rows, stop)
            blocks.append((first, slice(a - first, b - first), out[a - start : b - start]))
        self._read(blocks)

    def take(self, rows: npt.NDArray[np.int64]) -> Bytes:
        """Read any images; each chunk that they touch is inflated once.

        `rows` (k,) int64; returns (k, height, width, channels) uint8.
        """
        out = np.empty((len(rows), *self.shape[1:]), np.uint8)
        first = rows - rows % self.chunks[0]
        starts = np.flatnonzero(np.diff(first, prepend=-1))
        blocks: list[Block] = []
        for a, b in zip(starts, [*starts[1:], len(rows)], strict=True):
            blocks.append((int(first[a]), rows[a:b] - first[a], out[a:b]))
        self._read(blocks)
        return out

    def _read(self, blocks: list[Block]) -> None:
        """Read the picked images of some rows of chunks, band by band of image rows, in several threads."""
        _, height, *_ = self.shape
        tall = self.chunks[1]
        work = iter(
            [
                (first, top, picks, out[:, top : top + tall])
                for first, picks, out in blocks
                for top in range(0, height, tall)
            ]
        )
        widest = max((out.shape[0] for _, _, out in blocks), default=0)
        held = widest * tall * self.shape[2] * self.shape[3] + int(np.prod(self.chunks))
        workers = max(1, min(os.cpu_count() or 1, _MOST_THREADS, _MOST_SCRATCH // held))
        if workers == 1:
            self._bands(work, widest)
            return
        with ThreadPoolExecutor(workers, "setsup-inflate") as pool:
            # all take from one iterator, so that no thread waits for a slow one
            for done in [pool.submit(self._bands, work, widest) for _ in range(workers)]:
                done.result()

    def _bands(self, work: Iterator[tuple[int, int, Picks, Bytes]], widest: int) -> None:
        _, _, width, channels = self.shape
        _, tall, wide, deep = self.chunks
        across, layers = width // wide, channels // deep
        scratch = np.empty(across * layers * widest * tall * wide * deep, np.uint8)
        for first, top, picks, out in work:
            count = len(out)
            chunks = scratch[: count * tall * width * channels].reshape(across, layers, count, tall, wide, deep)
            for i in range(across):
                for j in range(layers):
                    chunks[i, j] = self._chunk((first, top, i * wide, j * deep))[picks]
            join_chunks(chunks, out)

    def _chunk(self, offset: tuple[int, int, int, int]) -> Bytes:
        size = self._stored.get(offset)
        if size is None:  # never written
            return np.broadcast_to(np.uint8(self._images.fillvalue), self.chunks)
        expected = int(np.prod(self.chunks))
        if size > expected + expected // 100 + 1024:  # more than deflate can ever add; not read, it may be any length
            raise self._damaged(
                offset, f"it has {size:,} bytes, more than a compressed chunk of {expected:,} bytes can have"
            )
        try:
            skipped, raw = self._images.id.read_direct_chunk(offset)
            if self._deflate is not None and not skipped >> self._deflate & 1:
                raw = _inflate(raw, expected)
        except (zlib.error, OSError, RuntimeError, ValueError, MemoryError) as error:
            raise self._damaged(offset, str(error) or "it cannot be read") from error
        if len(raw) != expected:
            raise self._damaged(offset, f"it has {len(raw):,} bytes; expected {expected:,}")
        return np.frombuffer(raw, np.uint8).reshape(self.chunks)

    def _damaged(self, offset: Iterable[int], why: str) -> DataError:
        chunk = f"the chunk of {self._images.name[1:]!r} at {tuple(offset)}"
        return DamagedFile(f"{self._path} is damaged: {chunk} cannot be read ({why})")


def join_chunks(chunks: Bytes, out: Bytes) -> None:
    """Put the chunks of one band of image rows together.

    `chunks` (across, layers, n, h, w, c) uint8; `out` (n, h, across * w, layers * c) uint8.
    """
    across, layers, count, tall, wide, deep = chunks.shape
    run = wide * layers * deep  # bytes of one chunk's columns, channels interleaved
    word = next(np.dtype(f"u{size}") for size in (8, 4, 2, 1) if run % size == 0)
    tile = min(count, max(1, _TILE // (tall * across * run)))
    mixed = np.empty((across, tile, tall, wide, layers * deep), np.uint8)
    joined = np.empty((tile, tall, across * run), np.uint8)
    for start in range(0, count, tile):
        n = min(tile, count - start)
        for layer in range(layers):
            mixed[:, :n, ..., layer * deep : (layer + 1) * deep] = chunks[:, layer, start : start + n]
        narrow = mixed[:, :n].reshape(across, n, tall, run)
        if run > 64:
            joined[:n].reshape(n, tall, across, run)[:] = narrow.transpose(1, 2, 0, 3)
        else:
            # word by word: numpy is slow where the innermost axis is short
            words = joined[:n].view(word).reshape(n, tall, across, -1)
            for k in range(run // word.itemsize):
                words[..., k] = narrow.view(word)[..., k].transpose(1, 2, 0)
        out[start : start + n] = joined[:n].reshape(n, tall, across * wide, layers * deep)


def _inflate(raw: bytes, size: int) -> bytes:
    if len(raw) * _LARGEST_RATIO <= _MOST_INFLATED:
        # the buffer has the right size from the start, which halves the time
        return zlib.decompress(raw, bufsize=size)
    stream = zlib.decompressobj()
    inflated = stream.decompress(raw, size + 1)
    if not stream.eof and len(inflated) <= size:
        raise zlib.error("incomplete or truncated stream")
    return inflated


def filters(images: Any) -> list[int]:
    """Numbers of the HDF5 filters of an ``h5py.Dataset``, in the order in which they packed it."""
    described = images.id.get_create_plist()
    return [described.get_filter(position)[0] for position in range(described.get_nfilters())]
