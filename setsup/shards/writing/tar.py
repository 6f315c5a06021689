"""Tars as shards are: plain ustar headers, made for many members at once, and a digest that grows with the file.

Convention
----------
A member is a header of 512 bytes and its content, filled up with zeros to whole blocks of 512; two blocks of zeros end
the tar, and nothing follows them. Headers are those of POSIX.1-1988 (ustar) [1]_ with mode 0444, and with 0 or nothing
for what tells of the machine: owner, group, time, device.

References
----------
.. [1] IEEE Std 1003.1-2017, "pax", section "ustar Interchange Format".

"""

import hashlib
from collections.abc import Sequence
from itertools import chain
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.files.archives.tar_headers import BLOCK

__all__ = ["Tar", "checks", "headers"]

_NAME, _SIZE, _CHECK = slice(0, 100), slice(124, 135), slice(148, 154)
_LARGEST = 1 << 33  # the size has eleven octal digits
_ZEROS = [bytes(length) for length in range(BLOCK)]


def _template() -> npt.NDArray[np.uint8]:
    """Header without name and size, and with blanks in place of the checksum, as that is counted."""
    header = bytearray(BLOCK)
    for start, text in (
        (100, b"0000444\0"),  # mode
        (108, b"0000000\0"),  # owner
        (116, b"0000000\0"),  # group
        (136, b"00000000000\0"),  # time
        (148, b" " * 8),
        (156, b"0"),  # a file
        (257, b"ustar\x0000"),
    ):
        header[start : start + len(text)] = text
    return np.frombuffer(bytes(header), np.uint8)


_TEMPLATE = _template()


def headers(names: Sequence[str], sizes: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Headers of files.

    `sizes` (n,) integer array, bytes; returns (n, 512) uint8.
    """
    size = np.asarray(sizes, np.int64)
    encoded = "\0".join(names).encode().split(b"\0") if names else []  # at once, which takes a fifth of the time
    longest = max(encoded, key=len, default=b"")
    if len(longest) > 100:
        raise DataError(
            f"the name {longest.decode()[:60]!r}… has {len(longest)} bytes, more than the 100 that a plain tar "
            "supports; give the modality a shorter name"
        )
    if size.size and int(size.max()) >= _LARGEST:
        raise DataError(
            f"{names[int(size.argmax())]} would have {int(size.max()):,} bytes, more than the 8 GiB that a plain tar "
            "supports; split the arrays into smaller pieces, or leave the modality out"
        )
    blocks = np.tile(_TEMPLATE, (len(encoded), 1))
    blocks[:, _NAME] = np.array(encoded, "S100").view(np.uint8).reshape(-1, 100)
    blocks[:, _SIZE] = _octal(size, 11)
    blocks[:, _CHECK] = _octal(blocks.sum(axis=1, dtype=np.int64), 6)
    blocks[:, 154] = 0  # and the blank that is there ends the field
    return blocks


def _octal(numbers: npt.NDArray[np.int64], digits: int) -> npt.NDArray[np.uint8]:
    shifts = 3 * np.arange(digits - 1, -1, -1)
    return ((numbers[:, None] >> shifts & 7) + ord("0")).astype(np.uint8)


def checks(contents: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    """CRC-32C of contents.

    Returns (n,) uint32.
    """
    from google_crc32c import value

    return np.fromiter(map(value, contents), np.uint32, len(contents))


class Tar:
    """A tar that is being written.

    Attributes
    ----------
    size : int, bytes
        What was written.

    """

    def __init__(self, file: BinaryIO) -> None:
        self.size = 0
        self._file, self._digest = file, hashlib.sha256()

    def add(self, names: Sequence[str], contents: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Write members.

        Returns (n,) int64, bytes.
        """
        sizes = np.fromiter(map(len, contents), np.int64, len(contents))
        heads = headers(names, sizes).tobytes()
        each = [heads[at : at + BLOCK] for at in range(0, len(heads), BLOCK)]
        filling = [_ZEROS[length] for length in (-sizes % BLOCK).tolist()]
        ends = self.size + np.cumsum(BLOCK + (sizes + BLOCK - 1 & -BLOCK))
        self._write(b"".join(chain.from_iterable(zip(each, contents, filling, strict=True))))
        starts: npt.NDArray[np.int64] = ends - (sizes + BLOCK - 1 & -BLOCK)
        return starts

    def end(self) -> None:
        """Write what ends a tar."""
        self._write(bytes(2 * BLOCK))

    @property
    def digest(self) -> str:
        """SHA-256 of what was written, in hexadecimal."""
        return self._digest.hexdigest()

    def _write(self, content: bytes) -> None:
        self._file.write(content)
        self._digest.update(content)
        self.size += len(content)
