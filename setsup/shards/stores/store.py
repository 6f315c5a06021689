"""Where shards lie: a folder, or an address of a store (``s3://…``, ``gs://…``, ``https://…``, ``hf://…``).

Every path is relative to the address and stays below it.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

from setsup.errors import DataError

__all__ = ["Range", "Store", "joined", "meant", "open_store"]


class Range(NamedTuple):
    """Bytes ``start … stop − 1`` of a file.

    Attributes
    ----------
    whole : int or None, bytes
        Size that the file must have; it is checked where a store tells it along with the bytes.

    """

    name: str
    start: int
    stop: int
    whole: int | None = None


class Store(Protocol):
    """Files under one address.

    Notes
    -----
    All methods raise DataError, which names the file and the address, and says what to do: a file that is not there, a
    store that refuses (401, 403), fails (5xx), is too slow or gives fewer bytes than it said, credentials that are
    missing, a full disk. What may pass is tried again a few times before. Stores survive pickling and forks.

    """

    @property
    def url(self) -> str:
        """The address, as messages have it; without credentials."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where the files lie on a disk of this machine; None for a store."""
        ...

    def read(self, name: str, limit: int) -> bytes:
        """Content of a file of at most so many bytes."""
        ...

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        """Bytes of files, in the order asked for; from a store several at once."""
        ...

    def size(self, name: str) -> int | None:
        """Bytes of a file, None where there is none."""
        ...

    def names(self) -> list[str]:
        """Names of all files under the address, in order; folders within are entered, hidden ones left out.

        Where there is nothing, not even a folder, there are no names.
        """
        ...

    def get(self, name: str, path: Path) -> None:
        """Copy a file to the disk, whole or not at all."""
        ...

    def put(self, name: str, path: Path) -> None:
        """Move a finished local file there: under the name lies the whole of it or nothing."""
        ...

    def put_bytes(self, name: str, content: bytes, *, fresh: bool = False) -> bool:
        """Write a small file at once; with `fresh` only where there is none. Whether it was written."""
        ...

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; those that are not there do not matter."""
        ...


def open_store(url: str | Path, options: Mapping[str, Any] | None = None) -> Store:
    """Open the files under an address.

    Parameters
    ----------
    url : str or Path
        A folder, or an address that fsspec knows.
    options : mapping, optional
        For fsspec, such as ``{"endpoint_url": …}``; what stands in its configuration and in the environment is used
        anyway.

    Raises
    ------
    DataError
        When nothing knows such an address, the library for it is not installed, or it has ``s3:/`` in place of
        ``s3://``.

    Examples
    --------
    >>> import tempfile
    >>> store = open_store(tempfile.mkdtemp())
    >>> store.put_bytes("notes/first.txt", b"hello")
    True
    >>> store.names(), store.ranges([Range("notes/first.txt", 1, 3)])
    (['notes/first.txt'], [b'el'])

    """
    from setsup.shards.stores.local import LocalStore

    text = str(url)
    if isinstance(url, str) and text.startswith(("file://", "local://")):
        return LocalStore(Path(unquote(text.partition("://")[2])))
    if isinstance(url, Path) or not re.match(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)", text):
        address = None if isinstance(url, Path) else meant(text)
        if address is not None:
            raise DataError(f"{text} is no address, and no folder of that name is there; did you mean {address}?")
        return LocalStore(Path(text))
    from setsup.shards.stores.remote import RemoteStore

    return RemoteStore(text, options)


def meant(text: str) -> str | None:
    """Address that was meant by words which begin like one but lack a slash; None for all other words.

    Words that name a file or folder on the disk are what they say.

    Examples
    --------
    >>> meant("s3:/bucket/set"), meant("s3:bucket/set"), meant("s3://bucket/set"), meant("my:notes")
    ('s3://bucket/set', 's3://bucket/set', None, None)

    """
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(?!//|:)(.*)", text, re.DOTALL)
    if found is None or os.path.exists(text):
        return None
    scheme, rest = found[1].lower(), found[2]
    with suppress(ImportError):
        from fsspec import available_protocols

        if scheme in available_protocols():
            return f"{scheme}://{rest if scheme in ('file', 'local') else rest.lstrip('/')}"
    return None


def joined(address: str, name: str) -> str:
    """Address of a file below another one, as messages have it.

    Examples
    --------
    >>> joined("s3://bucket/set/", "data-00000.tar"), joined("memory://", "data-00000.tar")
    ('s3://bucket/set/data-00000.tar', 'memory://data-00000.tar')

    """
    return address + name if address.endswith("://") else f"{address.rstrip('/')}/{name}"
