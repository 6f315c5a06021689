"""The members of tars that others wrote, found by a scan of the headers: of a file on a disk, or in a store.

A tar has no table of contents; where a header lies follows from the one before it. On a disk that is mapped into
memory this costs little. In a store each request takes some 20 to 100 ms, so the scan reads ahead: as long as headers
lie near each other, twice as much each time, up to 8 MiB; where contents are larger than that is worth, they are passed
over. Several tars are scanned at once.
"""

import hashlib
import mmap
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.files.archives.listing import Listing
from setsup.files.archives.plain_files import open_file, unreadable
from setsup.files.archives.tar_headers import BLOCK
from setsup.files.archives.tars import Read, Stretch, join_listings, walk
from setsup.shards.stores.store import Range, Store

__all__ = ["TarScan", "in_order", "listing_digest", "scan_tar", "text_bytes"]

Given = TypeVar("Given")
Result = TypeVar("Result")

SMALL, LARGE, NEAR = 64 << 10, 8 << 20, 1 << 20
"""Bytes of a read where contents are passed over; at most; and that may lie between two that are read through."""

AT_ONCE = 16
"""Tars of a store that are scanned at once."""

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class TarScan:
    """A tar, and some of what its members hold.

    Attributes
    ----------
    listing : Listing
        Its files, in their order.
    size : int, bytes
        Of the tar.
    contents : function
        Gives the contents of members by their rows of the listing.

    """

    listing: Listing
    size: int
    contents: Callable[[Sequence[int]], list[bytes]]


@contextmanager
def scan_tar(store: Store, name: str, endings: tuple[bytes, ...] = ()) -> Iterator[TarScan]:
    """Scan the headers of a tar."""
    if store.folder is not None:
        with _mapped(store, name) as scan:
            yield scan
        return
    source = f"{store.url.rstrip('/')}/{name}"
    size = store.size(name)
    if size is None:
        raise DataError(f"{source} does not exist; check the address")
    ahead = _Ahead(store, name, size)
    _refuse_packed(ahead(0, min(2, size)), source)
    kept: dict[int, bytes] = {}
    listing = _listed(ahead, source, size, endings, kept)

    def contents(rows: Sequence[int]) -> list[bytes]:
        starts, lengths = (numbers[list(rows)].tolist() for numbers in (listing.offsets, listing.stored))
        missing = [(start, length) for start, length in zip(starts, lengths, strict=True) if start not in kept]
        wanted = [Range(name, start, start + length, size) for start, length in missing]
        read = iter(store.ranges(wanted) if wanted else ())
        return [kept[start] if start in kept else next(read) for start in starts]

    yield TarScan(listing, size, contents)


def listing_digest(listing: Listing) -> str:
    """SHA-256 of the names, places and header checksums of a tar's files, in hexadecimal.

    Two tars that differ in it differ in more than what members of the same size and time hold.
    """
    digest = hashlib.sha256()
    content, offsets = text_bytes(listing.names)
    for numbers in (listing.offsets, listing.sizes, listing.checks, np.diff(offsets)):
        digest.update(np.ascontiguousarray(numbers, "<i8").data)
    digest.update(content[offsets[0] : offsets[-1]].data)
    return digest.hexdigest()


def in_order(function: Callable[[Given], Result], items: Iterable[Given], at_once: int = AT_ONCE) -> Iterator[Result]:
    """Call a function for every item, several at a time, and give what it returns in their order.

    Examples
    --------
    >>> list(in_order(len, ["one", "three"]))
    [3, 5]

    """
    turns = iter(items)
    if at_once == 1:
        yield from map(function, turns)
        return
    with ThreadPoolExecutor(at_once) as pool:
        waiting: deque[Future[Result]] = deque(pool.submit(function, item) for item in islice(turns, at_once))
        try:
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(function, item) for item in islice(turns, 1))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _mapped(store: Store, name: str) -> Iterator[TarScan]:
    """Scan a tar on the disk."""
    path = store.folder / name  # type: ignore[operator]
    try:
        with open_file(path) as (file, size):
            mapped = mmap.mmap(file, size, prot=mmap.PROT_READ) if size else b""
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        _refuse_packed(bytes(mapped[:2]), path)
        listing = _listed(lambda at, count: mapped[at : at + count], path, size)

        def contents(rows: Sequence[int]) -> list[bytes]:
            starts = listing.offsets[list(rows)]
            stretches = zip(starts.tolist(), (starts + listing.stored[list(rows)]).tolist(), strict=True)
            return [mapped[start:stop] for start, stop in stretches]

        yield TarScan(listing, size, contents)
    finally:
        if isinstance(mapped, mmap.mmap):
            mapped.close()


def _listed(
    read: Read, source: Any, size: int, endings: tuple[bytes, ...] = (), kept: dict[int, bytes] | None = None
) -> Listing:
    """Files of a tar; contents of some of them are kept while they are near."""
    listings = [Stretch().listing(source)]
    if kept is None:
        listings += [stretch.listing(source) for stretch in walk(read, source, size, open_end=True)]
    else:
        for stretch in _gathered(walk(read, source, size, 1, open_end=True), read, endings, kept):
            listings.append(stretch.listing(source))
    return join_listings(listings)


def _gathered(
    single: Iterable[Stretch], read: Read, endings: tuple[bytes, ...], kept: dict[int, bytes]
) -> Iterator[Stretch]:
    """Put single headers together, for they are verified thousands at a time."""
    whole = Stretch()
    for stretch in single:
        block, start, stored = bytes(stretch.blocks[0]), stretch.starts.get(0, stretch.at[0] + BLOCK), stretch.stored[0]
        name = stretch.names.get(0) or block[:100].rstrip(b"\0")
        if stored <= NEAR and name.lower().endswith(endings):
            kept[start] = read(start, stored)
        row = len(whole.blocks)
        whole.blocks.append(block)
        whole.at.append(stretch.at[0])
        whole.stored.append(stored)
        if stretch.names:
            whole.names[row] = stretch.names[0]
        if stretch.starts:
            whole.starts[row] = stretch.starts[0]
        if stretch.sizes:
            whole.sizes[row] = stretch.sizes[0]
        if len(whole.blocks) == 8192:
            yield whole
            whole = Stretch()
    if whole.blocks:
        yield whole


class _Ahead:
    """Reads a file of a store from its start to its end, with what lies between passed over where it is long."""

    def __init__(self, store: Store, name: str, size: int) -> None:
        self._store, self._name, self._size = store, name, size
        self._start, self._held, self._block = 0, b"", SMALL

    def __call__(self, offset: int, count: int) -> bytes:
        at = offset - self._start
        if at < 0 or at + count > len(self._held):
            self._fill(offset, count)
            at = 0
        return self._held[at : at + count]

    def _fill(self, offset: int, count: int) -> None:
        end = self._start + len(self._held)
        near = bool(self._held) and offset - end <= NEAR
        self._block = min(2 * self._block, LARGE) if near else SMALL
        stop = min(offset + max(count, self._block), self._size)
        self._start = offset
        self._held = self._store.ranges([Range(self._name, offset, stop, self._size)])[0] if offset < stop else b""


def _refuse_packed(head: bytes, source: Any) -> None:
    if head == _GZIP:
        raise DataError(
            f"{source} is compressed with gzip as a whole, which prevents random access; decompress it (gunzip)"
        )


def text_bytes(names: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """UTF-8 bytes of strings, and n + 1 offsets into them."""
    _, offsets, content = names.buffers()
    if not len(names) or content is None:
        return np.zeros(0, np.uint8), np.zeros(len(names) + 1, np.int64)
    return np.frombuffer(content, np.uint8), np.frombuffer(offsets, np.int64, len(names) + 1, 8 * names.offset)
