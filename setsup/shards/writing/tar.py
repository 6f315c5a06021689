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

    Parameters
    ----------
    names : sequence of str
        Of at most 100 bytes as UTF-8.
    sizes : (n,) integer array, bytes
        Of their contents, below 8 GiB.

    Returns
    -------
    (n, 512) uint8

    Raises
    ------
    DataError
        When a name or a size does not fit.

    Examples
    --------
    >>> headers(["000000.png"], [300])[0, :10].tobytes()
    b'000000.png'

    """
    size = np.asarray(sizes, np.int64)
    encoded = "\0".join(names).encode().split(b"\0") if names else []  # at once, which takes a fifth of the time
    longest = max(encoded, key=len, default=b"")
    if len(longest) > 100:
        raise DataError(
            f"the name {longest.decode()[:60]!r}… has {len(longest)} bytes, but 100 are the most in a plain tar; give "
            "the modality a shorter name"
        )
    if size.size and int(size.max()) >= _LARGEST:
        raise DataError(
            f"{names[int(size.argmax())]} would have {int(size.max()):,} bytes, but 8 GiB are the most in a plain tar; "
            "cut the arrays in smaller pieces, or leave the modality out"
        )
    found = np.tile(_TEMPLATE, (len(encoded), 1))
    found[:, _NAME] = np.array(encoded, "S100").view(np.uint8).reshape(-1, 100)
    found[:, _SIZE] = _octal(size, 11)
    found[:, _CHECK] = _octal(found.sum(axis=1, dtype=np.int64), 6)
    found[:, 154] = 0  # and the blank that is there ends the field
    return found


def _octal(numbers: npt.NDArray[np.int64], digits: int) -> npt.NDArray[np.uint8]:
    shifts = 3 * np.arange(digits - 1, -1, -1)
    return ((numbers[:, None] >> shifts & 7) + ord("0")).astype(np.uint8)


def checks(contents: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    """CRC-32C of contents.

    Returns
    -------
    (n,) uint32

    Examples
    --------
    >>> hex(checks([b"123456789"])[0])
    '0xe3069283'

    """
    from google_crc32c import value

    return np.fromiter(map(value, contents), np.uint32, len(contents))


class Tar:
    """A tar that is being written.

    Parameters
    ----------
    file : binary file
        Open for writing, and empty.

    Attributes
    ----------
    size : int, bytes
        What was written.

    Examples
    --------
    >>> import io, tarfile
    >>> file = io.BytesIO()
    >>> tar = Tar(file)
    >>> tar.add(["0.txt", "1.txt"], [b"zero", b"one"]).tolist()
    [512, 1536]
    >>> tar.end()
    >>> _ = file.seek(0)
    >>> tarfile.open(fileobj=file).getnames(), tar.size
    (['0.txt', '1.txt'], 3072)

    """

    def __init__(self, file: BinaryIO) -> None:
        self.size = 0
        self._file, self._digest = file, hashlib.sha256()

    def add(self, names: Sequence[str], contents: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Write members.

        Returns
        -------
        (n,) int64, bytes
            Where their contents begin.

        Raises
        ------
        DataError
            When a name or a content is too long.

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
