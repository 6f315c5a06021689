"""The file systems of fsspec, one per process: neither their event loop nor their connections survive a fork."""

import logging
import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from urllib.request import getproxies

from setsup.shards.stores.ranges import AT_ONCE
from setsup.shards.stores.signed import SignedReads

__all__ = ["S3", "SECONDS", "WEB", "FileSystem", "open_file_system", "web_timeout"]

WEB, S3 = ("http", "https"), ("s3", "s3a")

SECONDS = 30.0
"""For which a store may send nothing."""

_SHARED = ("hf",)  # thread-safe without an event loop; other libraries without one are used by one thread at a time
_NOWHERE = logging.NullHandler()

# A forked child has copies of the parent's file systems. Collecting them would close connections through an event loop
# that both processes share, and the parent would wait for these forever: so the child keeps them.
_systems: "weakref.WeakSet[Any]" = weakref.WeakSet()
_inherited: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _inherited.extend(_systems))


class FileSystem(NamedTuple):
    """A library's file system.

    Attributes
    ----------
    process : int
        The process that made it.
    system : fsspec file system
        For the scheme of the address.
    root : str
        The library's form of the address.
    turn : context manager or None
        To be held during calls, if only one thread may use the library at a time.
    signed : SignedReads or None
        Reads ranges of files in S3.

    """

    process: int
    system: Any
    root: str
    turn: AbstractContextManager[Any] | None
    signed: SignedReads | None


def open_file_system(address: str, scheme: str, options: Mapping[str, Any]) -> FileSystem:
    """Make the file system of an address."""
    import fsspec

    if scheme in ("gs", "gcs"):  # gcsfs logs what it raises, to the screen without a handler
        logging.getLogger("gcsfs").addHandler(_NOWHERE)
    # not cached, since the options are for this store alone
    system, root = fsspec.url_to_fs(address, **{**_options(scheme, options), "skip_instance_cache": True})
    _systems.add(system)
    turn = None if system.async_impl or scheme in _SHARED else threading.Lock()
    signed = None
    if scheme in S3:
        web = fsspec.filesystem("http", encoded=True, skip_instance_cache=True, **_options("http", {}))
        _systems.add(web)
        signed = SignedReads(system, web)
    return FileSystem(os.getpid(), system, root, turn, signed)


def web_timeout(silent: float | None = SECONDS) -> Any:
    """How long aiohttp waits for a connection, and for the next bytes."""
    import aiohttp

    return aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silent)


def _options(scheme: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a file system: defaults for many small requests that fail early, and the user's."""
    from fsspec.config import conf

    own: dict[str, Any] = {}
    if scheme in S3:
        own["config_kwargs"] = {
            "max_pool_connections": AT_ONCE,
            "retries": {"mode": "standard", "max_attempts": 2},
            "signature_version": "s3v4",  # addresses would be signed by an older version, which few servers know
        }
    elif scheme in WEB:
        own["client_kwargs"] = {
            # requests are timed by setsup.shards.stores.attempts: one timer each, not three
            "timeout": web_timeout(None),
            # with trust_env, aiohttp looks for proxies and netrc files at each request
            "trust_env": bool(getproxies()),
        }
    if scheme in (*S3, "gs", "gcs"):
        own["use_listings_cache"] = False
    said = {**conf.get(scheme, {}), **given}
    return {**own, **said, **{key: {**own[key], **said[key]} for key in own if isinstance(said.get(key), dict)}}
