"""Open the store of an address: a folder, ``s3://…``, ``gs://…``, ``https://…`` or ``hf://…``."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from setsup.errors import DataError
from setsup.shards.stores.local import LocalStore
from setsup.shards.stores.store import Store

__all__ = ["intended_address", "open_store"]


def open_store(url: str | Path, options: Mapping[str, Any] | None = None) -> Store:
    """Open the files under an address.

    Parameters
    ----------
    url : str or Path
        A folder, or an address that fsspec supports.
    options : mapping, optional
        Options of fsspec, such as ``{"endpoint_url": …}``; they override its configuration and the environment.

    Raises
    ------
    DataError
        When the scheme of the address is unknown, its library is not installed, or it has ``s3:/`` instead of
        ``s3://``.

    Examples
    --------
    >>> import tempfile
    >>> from setsup.shards.stores.store import Range
    >>> store = open_store(tempfile.mkdtemp())
    >>> store.put_bytes("notes/first.txt", b"hello")
    True
    >>> store.names(), store.ranges([Range("notes/first.txt", 1, 3)])
    (['notes/first.txt'], [b'el'])

    """
    text = str(url)
    if isinstance(url, str) and text.startswith(("file://", "local://")):
        return LocalStore(Path(unquote(text.partition("://")[2])))
    if isinstance(url, Path) or not re.match(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)", text):
        address = None if isinstance(url, Path) else intended_address(text)
        if address is not None:
            raise DataError(f"{text} is neither an address nor an existing folder; did you mean {address}?")
        return LocalStore(Path(text))
    from setsup.shards.stores.remote import RemoteStore

    return RemoteStore(text, options)


def intended_address(text: str) -> str | None:
    """Address that a mistyped one stands for, such as ``s3:bucket/set``; None for paths and all other text."""
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(?!//|:)(.*)", text, re.DOTALL)
    if match is None or os.path.exists(text):
        return None
    scheme, rest = match[1].lower(), match[2]
    with suppress(ImportError):
        from fsspec import available_protocols

        if scheme in available_protocols():
            return f"{scheme}://{rest if scheme in ('file', 'local') else rest.lstrip('/')}"
    return None
