"""The interface of stores: files under one address, with names relative to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

__all__ = ["Range", "Store", "join_address"]


class Range(NamedTuple):
    """Bytes ``start … stop − 1`` of a file.

    Attributes
    ----------
    whole : int or None, bytes
        Size that the file must have; checked if the store sends it with the bytes.

    """

    name: str
    start: int
    stop: int
    whole: int | None = None


class Store(Protocol):
    """Files under one address.

    Notes
    -----
    All methods raise a DataError that names the file and the address and says what to do: for a missing file, a store
    that refuses access (401, 403), fails (5xx), is too slow or sends too few bytes, missing credentials, a full disk.
    Temporary failures are retried a few times before. Stores can be pickled, and used after a fork.

    """

    @property
    def url(self) -> str:
        """The address for messages, without credentials."""
        ...

    @property
    def folder(self) -> Path | None:
        """The folder on a disk of this machine; None for a remote store."""
        ...

    def read(self, name: str, limit: int) -> bytes:
        """Content of a file of at most `limit` bytes."""
        ...

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        """Bytes of files, in the order of the ranges; concurrently from a remote store."""
        ...

    def size(self, name: str) -> int | None:
        """Size of a file in bytes; None if it does not exist."""
        ...

    def names(self) -> list[str]:
        """Sorted names of all files under the address and in folders below it, except hidden ones.

        Empty if there is nothing, not even a folder.
        """
        ...

    def get(self, name: str, path: Path) -> None:
        """Copy a file to the disk; the copy appears whole or not at all."""
        ...

    def put(self, name: str, path: Path) -> None:
        """Move a finished local file to the store, where it appears whole or not at all."""
        ...

    def put_bytes(self, name: str, content: bytes, *, fresh: bool = False) -> bool:
        """Write a small file; with `fresh` only if there is none. Returns whether it was written."""
        ...

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; missing ones are ignored."""
        ...


def join_address(address: str, name: str) -> str:
    """Address of a file below another address, for messages."""
    return address + name if address.endswith("://") else f"{address.rstrip('/')}/{name}"
