"""Runs of headers of plain files in a tar, told for a window of the tar at once.

From header to header a loop takes most of a microsecond. Where headers lie near each other, numpy reads all blocks of a
window as if they were headers, and the loop only steps from one to the next. What contents look like does not
matter: they are stepped over.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.files.archives.tar_headers import BLOCK, TELLING, from_digits

__all__ = ["Run", "Runs"]

_SMALL, _LARGE = 256 << 10, 1 << 20  # bytes of the first window, which shows how near headers are, and of others
_NEAR = 16  # blocks from header to header, on average, up to which windows take less time than the loop

_FIELDS = np.dtype(
    {"names": ["high", "low", "kind"], "formats": ["<u4", "<u8", "u1"], "offsets": [124, 128, 156], "itemsize": BLOCK}
)
_FILE, _OLD_FILE, _RECORDS = ord("0"), 0, ord("x")
_HIGH = 0x30303030  # four zeros
_SAME, _LOW = np.uint64(0xDFF8F8F8F8F8F8F8), np.uint64(0x0030303030303030)  # bits of seven digits, and a blank or NUL


class Run(NamedTuple):
    """Headers that follow each other.

    Attributes
    ----------
    headers : buffer
        Their bytes.
    at, stored : list of int, bytes
        Where each begins, and what its content takes.
    stop : int
        The byte at which the next header begins.

    """

    headers: memoryview
    at: list[int]
    stored: list[int]
    stop: int


class Runs:
    """Gives runs of headers that the walk over a tar would take in one by one, with nothing to be noted about any.

    They are of files, or of records that tell nothing of the next file that matters here, such as the time of change
    that Python's tarfile writes.

    Attributes
    ----------
    near : bool
        Whether headers lay near enough to each other in the last window for another one.

    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self.near = True
        self._read, self._size = read, size
        self._start = self._found = 0
        self._blocks: npt.NDArray[np.uint8] = np.empty((0, BLOCK), np.uint8)
        self._stored: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._steps: list[int] = []

    def at(self, at: int) -> Run | None:
        """Return the run that begins at a byte; None where that header is of another kind, or headers are far apart."""
        if not self._start <= at < self._start + self._blocks.size:
            self._read_on(at)
        block, count, steps = (at - self._start) // BLOCK, len(self._steps), self._steps
        taken = []
        while block < count and (step := steps[block]):
            taken.append(block)
            block += step
        if not taken:
            return None
        self._found += len(taken)
        blocks = np.array(taken)
        return Run(
            self._blocks.take(blocks, axis=0).data,
            (self._start + BLOCK * blocks).tolist(),
            self._stored[blocks].tolist(),
            self._start + BLOCK * block,
        )

    def _read_on(self, at: int) -> None:
        """Read the window that begins at a byte, or none where it would not be worth it."""
        before = len(self._steps)
        self.near = self._found * _NEAR >= before
        most = 0 if not self.near else _LARGE if before else _SMALL
        content = self._read(at, most)
        count = len(content) // BLOCK
        self._blocks = np.frombuffer(content, np.uint8, count * BLOCK).reshape(count, BLOCK)
        self._stored, steps = _plain(self._blocks, self._size - at)
        self._start, self._found, self._steps = at, 0, steps.tolist()


def _plain(blocks: npt.NDArray[np.uint8], left: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What the content behind each block takes if that is a header, and blocks to the next; 0 where it is not plain.

    A size is eleven octal digits, of which the first four are zeros in a plain header.
    """
    headers = blocks.view(_FIELDS)[:, 0]
    low = headers["low"].astype(np.uint64)
    stored = from_digits(low - _LOW << np.uint64(8)).astype(np.int64)
    plain = (headers["high"] == _HIGH) & (low & _SAME == _LOW)
    plain &= stored <= left - BLOCK * np.arange(1, len(blocks) + 1)
    kinds = headers["kind"]
    records = np.flatnonzero((plain & (kinds == _RECORDS) & (stored <= BLOCK))[:-1])
    plain &= (kinds == _FILE) | (kinds == _OLD_FILE)
    plain[records] = True
    contents = blocks[records + 1].tobytes()
    for word in TELLING:
        found = contents.find(word)
        while found >= 0:
            plain[records[found // BLOCK]] = False
            found = contents.find(word, found + 1)
    return stored, np.where(plain, 1 + (stored + BLOCK - 1) // BLOCK, 0)
