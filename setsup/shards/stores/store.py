"""What a store of shards is: files under one address, whose names are relative to it and stay below it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

__all__ = ["Range", "Store", "join_address"]


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


def join_address(address: str, name: str) -> str:
    """Address of a file below another address, for messages."""
    return address + name if address.endswith("://") else f"{address.rstrip('/')}/{name}"
