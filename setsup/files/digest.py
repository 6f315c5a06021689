"""Digests of files and of their unpacked content."""

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from setsup.errors import DamagedFile
from setsup.files.disk import read_errors
from setsup.progress import Advance

__all__ = ["content_digest"]

_BLOCK = 1 << 20


def content_digest(
    path: Path | str,
    algorithm: str = "sha256",
    unpacked: bool = False,
    *,
    limit: int | None = None,
    advance: Advance | None = None,
) -> str:
    """Compute the digest of a file, or of its unpacked content.

    Parameters
    ----------
    path : Path or str
        File to read, block by block.
    algorithm : str
        Name in :mod:`hashlib`, such as ``"sha256"`` or ``"md5"``.
    unpacked : bool
        Digest the unpacked content of a gzip file; other files are digested unchanged.
    limit : int or None
        Maximum number of bytes of content, since a small file may unpack to a very large one.
    advance : Advance or None
        Called with the number of bytes read since its last call.

    Returns
    -------
    str
        Hexadecimal digits, lower case.

    Raises
    ------
    DataError
        The file is missing, unreadable, truncated or damaged, or has more than `limit` bytes.

    Examples
    --------
    >>> import gzip, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "hello.gz"
    >>> _ = file.write_bytes(gzip.compress(b"hello"))
    >>> content_digest(file, "md5", unpacked=True)
    '5d41402abc4b2a76b9719d911017c592'

    """
    digest = hashlib.new(algorithm, usedforsecurity=False)
    for block in _blocks(Path(path), unpacked, limit):
        digest.update(block)
        if advance is not None:
            advance(len(block))
    return digest.hexdigest()


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _blocks(path: Path, unpacked: bool, limit: int | None) -> Iterator[bytes]:
    size = 0
    with read_errors(path):
        packed = unpacked and _is_gzip(path)
        with cast(BinaryIO, gzip.open(path)) if packed else path.open("rb") as file:
            while block := file.read(_BLOCK):
                size += len(block)
                if limit is not None and size > limit:
                    raise DamagedFile(f"{path} contains more than the expected {limit:,} bytes")
                yield block
