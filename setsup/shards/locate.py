"""What lies beside shards: the catalogue, found or missed with advice, and the index, fetched where it is far."""

import logging
import os
from hashlib import sha256
from itertools import islice
from pathlib import Path

from setsup.errors import DataError
from setsup.files import cache_folder, content_digest, need_space
from setsup.files.builds import build_once
from setsup.files.disk import need_regular
from setsup.progress import Advance
from setsup.shards.layout import CATALOGUE, CRC32C, HEADER, PLAN, Catalogue, Shard, parse_catalogue
from setsup.shards.stores.errors import NotThere
from setsup.shards.stores.store import Range, Store, join_address

__all__ = ["LARGEST", "index_file", "is_whole", "read_catalogue", "whole_catalogue"]

LARGEST = 1 << 28
"""Bytes that a catalogue may have."""

_REPOSITORY = "hf://datasets/"
_NAMED = 3  # folders within that an error names
_PIECE = 16 << 20  # bytes of a shard that are compared at once
_log = logging.getLogger("setsup")


def _unseen(done: int = 1, /) -> None:
    """Advance of work that no progress bar shows."""


def read_catalogue(store: Store) -> Catalogue:
    """Read ``shards.json``."""
    if store.folder is not None:
        need_regular(store.folder / CATALOGUE)
    try:
        return parse_catalogue(store.read(CATALOGUE, LARGEST), join_address(store.url, CATALOGUE))
    except DataError as error:
        # a disk says in many ways that there is no such file; a store that failed is not asked again, which takes long
        there = not isinstance(error, NotThere) if store.folder is None else store.size(CATALOGUE) is not None
        if there:
            raise
    raise _no_catalogue(store)


def whole_catalogue(store: Store) -> Catalogue | None:
    """Catalogue that lies in a store; None where there is none, or a damaged one, which the log tells."""
    if store.size(CATALOGUE) is None:
        return None
    try:
        return parse_catalogue(store.read(CATALOGUE, LARGEST), join_address(store.url, CATALOGUE))
    except DataError as error:
        _log.warning("%s; it is not used", error)
        return None


def _no_catalogue(store: Store) -> DataError:
    url, folder = store.url, store.folder
    if store.size(PLAN) is not None:
        return DataError(f"{url} is not finished; run the same `setsup shard` command again to resume")
    if store.size("rendered.json") is not None:
        return DataError(f"{url} was written by `setsup render`; open it with setsup.open({url!r})")
    lacks = f"{url} has no {CATALOGUE}"
    if url.startswith(_REPOSITORY):
        name = "/".join(url.removeprefix(_REPOSITORY).split("/")[:2])
        return DataError(f"{lacks}; to open a dataset of the Hub that setsup did not write, use hf:{name}")
    if folder is None:  # a list of what is there could be very long
        return DataError(f"{lacks}; if it contains other tars, index them with `setsup index {url}`")
    if not os.path.isdir(folder):
        state = "is a file" if os.path.exists(folder) else "does not exist"
        return DataError(f"{url} {state}; pass the folder or the address of shards")
    if inner := [path.parent.name for path in islice(folder.glob(f"*/{CATALOGUE}"), _NAMED)]:
        first = join_address(url, min(inner))
        return DataError(f"{lacks}, but contains sets of shards ({', '.join(sorted(inner))}); open one: {first}")
    if any(any(folder.glob(pattern)) for pattern in ("*.tar", "*/*.tar")):
        return DataError(f"{lacks}, so its tars are not indexed; index them once with `setsup index {url}`")
    return DataError(f"{lacks} and no tars; pass the folder or address of shards, or write some with `setsup shard`")


def index_file(store: Store, catalogue: Catalogue) -> Path:
    """Give the index as a file on a disk: that of a store is copied once, to the cache folder under its digest."""
    index = catalogue.index
    if store.folder is not None:
        if not os.path.exists(store.folder / index.name):
            raise _no_index(store, catalogue)
        return store.folder / index.name
    target = cache_folder() / "prepared" / index.digest[:32] / "index.parquet"

    def kept(path: Path) -> Path | None:
        return path if os.path.isfile(path) and path.stat().st_size == index.size else None

    def save(path: Path) -> None:
        need_space(path.parent, index.size, f"the index of {store.url}")
        try:
            store.get(index.name, path)
        except NotThere:
            raise _no_index(store, catalogue) from None
        if path.stat().st_size != index.size or content_digest(path) != index.digest:
            path.unlink()
            remedy = f"{'restore' if catalogue.check == CRC32C else 'make'} it with `setsup index {store.url}`"
            lies = join_address(store.url, index.name)
            raise DataError(f"{lies} is not the index that {CATALOGUE} describes; {remedy}")

    return build_once(target, kept, save)


def _no_index(store: Store, catalogue: Catalogue) -> DataError:
    lacks = f"{join_address(store.url, catalogue.index.name)}, the index of these shards, does not exist"
    if catalogue.check != HEADER:
        return DataError(f"{lacks}; fetch it again, or restore it from the tars with `setsup index {store.url}`")
    if catalogue.shards and store.size(catalogue.shards[0].name) is not None:
        return DataError(f"{lacks}; make it again with `setsup index {store.url}`")
    return DataError(f"{lacks}; make it again with `setsup index FOLDER-OF-TARS --out {store.url}`")


def is_whole(store: Store, shard: Shard, check: str, advance: Advance = _unseen) -> bool:
    """Whether a file is there with the size and the digest that the catalogue tells."""
    if store.size(shard.name) != shard.size:
        advance(shard.size)
        return False
    if check == HEADER:
        advance(shard.size)
        return _headers(store, shard.name) == shard.digest
    digest = sha256()
    for start in range(0, shard.size, _PIECE):
        (piece,) = store.ranges([Range(shard.name, start, min(start + _PIECE, shard.size))])
        digest.update(piece)
        advance(len(piece))
    return digest.hexdigest() == shard.digest


def _headers(store: Store, name: str) -> str:
    """Digest of the headers of a tar; none where it is damaged."""
    from setsup.shards.tar_scan import listing_digest, scan_tar

    try:
        with scan_tar(store, name) as scan:
            return listing_digest(scan.listing)
    except DataError:
        return ""
