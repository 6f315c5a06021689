"""The files of a tar, from a walk over its headers.

Convention
----------
A tar is a row of blocks of 512 bytes: a header, then content filled up to whole blocks; a block of zeros ends it. What
does not fit a header (long names, large sizes) precedes it in a header of its own kind: GNU's, or a list of
records (pax). Checksums are verified for thousands of headers at once, since that costs numpy little and a loop much.
"""

import logging
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from setsup.errors import DamagedFile
from setsup.files.archives.archive import Archive, Label, Row
from setsup.files.archives.listing import COLUMNS, SPARSE, STORED, Listing
from setsup.files.archives.names import as_text, clean_names, shown
from setsup.files.archives.tar_headers import (
    ABOUT_NEXT,
    BARE,
    BLOCK,
    FILES,
    BadHeader,
    decimal,
    file_names,
    find_files,
    header_check,
    is_header,
    number,
    octal,
    parse_extra,
    sparse_size,
    verify_headers,
)
from setsup.files.archives.tar_runs import Runs
from setsup.progress import Advance, progress

__all__ = ["Read", "Stretch", "TarArchive", "join_listings", "list_tar", "walk"]

Read = Callable[[int, int], bytes]
"""``read(offset, size)`` gives the bytes of the archive from `offset` on, fewer where it ends before."""

_log = logging.getLogger("setsup")
_AT_ONCE = 8192
_FILES = FILES - {ord("S")}
_MOST_EXTRA = 1 << 20  # bytes of a long name or of records; a path has 4096, attributes up to 65,536 each


class TarArchive(Archive):
    """A tar whose files are read."""

    def header(self, row: Row) -> tuple[int, int]:
        """Where the header of a file begins, and its bytes."""
        return row.offset - BLOCK, BLOCK

    def check_header(self, file: int, head: bytes, row: Row, label: Label) -> int:
        """Compare a header with the listing; returns the bytes from its beginning to the content."""
        try:
            same = int(head[148:156].strip(b" \0"), 8) == row.check
        except ValueError:
            same = len(head) >= BLOCK and header_check(head[:BLOCK]) == row.check
        if not same:
            raise self.moved(label)
        return BLOCK


@dataclass(slots=True)
class Stretch:
    """A stretch of a tar.

    Attributes
    ----------
    blocks : list of buffers
        Its headers; some buffers hold several.
    at : list of int
        The byte at which each begins.
    stored : list of int, bytes
        What its content takes.
    names, starts, sizes : dict of int to bytes or int
        For some of the headers of files: the name, where the content begins, and the size when the holes are filled
        that are left out, where these are not as for most.

    """

    blocks: list[bytes | memoryview] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)
    names: dict[int, bytes] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    def listing(self, source: Path | str) -> Listing:
        """Verify the headers, and give the files."""
        headers = verify_headers(self.blocks, self.at, source)
        names = file_names(headers, self.names)
        rows = find_files(headers)
        if b"/\0" in b"\0".join([*names, b""]):
            # the oldest format marks folders by their names only
            rows = [row for row in rows if not names[row].endswith(b"/")]
        starts, stored = (np.array(numbers, np.int64) for numbers in (self.at, self.stored))
        starts += BLOCK
        sizes, methods = stored.copy(), np.full(len(stored), STORED, np.uint32)
        for row, start in self.starts.items():
            starts[row] = start
        for row, size in self.sizes.items():
            sizes[row], methods[row] = size, SPARSE
        listing = Listing(
            as_text(clean_names(names if len(rows) == len(names) else [names[row] for row in rows], source)),
            offsets=starts,
            stored=stored,
            sizes=sizes,
            methods=methods,
            checks=octal(headers["check"]).astype(np.uint32),
        )
        return listing if len(rows) == len(names) else listing.columns_at(np.array(rows, np.int64))


def list_tar(file: int, size: int, source: Path, nested: bool = False) -> Listing:
    """List the files of a tar; folders, links and devices are left out."""
    with (
        mmap.mmap(file, size, prot=mmap.PROT_READ) as mapped,
        progress(size, f"listing {source.name}", "B") as advance,
    ):
        if not nested:
            return _listed(mapped, 0, size, source, advance)
        return _opened_up(mapped, _listed(mapped, 0, size, source, _told_later), source, advance)


def _listed(mapped: mmap.mmap, start: int, size: int, source: Path, advance: Advance) -> Listing:
    """Files of the tar that begins at a byte of a file."""
    listings = [Stretch().listing(source)]
    done = 0
    for stretch in walk(lambda at, count: mapped[start + at : start + min(at + count, size)], source, size):
        listings.append(stretch.listing(source))
        advance(stretch.at[-1] - done)
        done = stretch.at[-1]
    whole = join_listings(listings)
    return replace(whole, offsets=whole.offsets + start)


def _opened_up(mapped: mmap.mmap, whole: Listing, source: Path, advance: Advance) -> Listing:
    """Files of a tar, those of the tars among them in their place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    inner = np.asarray(pc.ends_with(whole.names, ".tar", ignore_case=True)) & (whole.methods == STORED)
    # no tar is what a Mac leaves next to one (._cars.tar), nor what does not begin with a header
    inner &= ~np.asarray(pc.match_substring_regex(whole.names, r"(?:^|/)\."))
    for row in np.flatnonzero(inner).tolist():
        start = int(whole.offsets[row])
        inner[row] = is_header(mapped[start : start + min(BLOCK, int(whole.sizes[row]))])
    others = np.flatnonzero(~inner)
    listings = [replace(whole.columns_at(others), names=whole.names.take(others))]
    for row in np.flatnonzero(inner).tolist():
        name, start, size = whole.names[row].as_py(), int(whole.offsets[row]), int(whole.sizes[row])
        listing = _listed(mapped, start, size, Path(f"{source}: {shown(name)}"), advance)
        folder = pa.scalar(name, pa.large_string())
        names = pc.binary_join_element_wise(folder, listing.names, pa.scalar("/", pa.large_string()))
        listings.append(replace(listing, names=names))
    return join_listings(listings)


def _told_later(_: int = 1, /) -> None:
    """Show no progress: it is that of the inner tars."""


def join_listings(parts: Sequence[Listing]) -> Listing:
    """Put listings of one archive together, one after the other."""
    import pyarrow as pa

    columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    return Listing(pa.concat_arrays([part.names for part in parts]), **columns)


def walk(
    read: Read, source: Path | str, size: int = 1 << 62, at_once: int = _AT_ONCE, open_end: bool = False
) -> Iterator[Stretch]:
    """Go from header to header."""
    stretch = Stretch()
    blocks, offsets, lengths = stretch.blocks, stretch.at, stretch.stored
    own: dict[bytes, bytes] = {}  # what was told of the next file
    shared: dict[bytes, bytes] = {}  # and of all
    runs, near = Runs(read, size), at_once > 1
    at = 0
    while True:
        if len(offsets) >= at_once:
            yield stretch
            stretch, near = Stretch(), at_once > 1
            blocks, offsets, lengths = stretch.blocks, stretch.at, stretch.stored
        if near and not own and not shared:
            run = runs.at(at)
            if run is not None:
                blocks.append(run.headers)
                offsets += run.at
                lengths += run.stored
                at = run.stop
                continue
            near = runs.near
        block = read(at, BLOCK)
        start = at + BLOCK
        try:
            # nearly all headers are those of files; written out, since a call would take as long as the rest
            stored = int(block[124:136].rstrip(b"\0"), 8) if block[156] in _FILES else -1
        except (ValueError, IndexError):
            stored = -1
        if stored < 0 or own or shared or len(block) < BLOCK:
            if not block.strip(b"\0") and len(block) == BLOCK:
                break
            if open_end and at == size > 0 and not own:
                _log.warning(
                    "%s ends without the blocks of zeros that end a tar, which some programs leave out; if it may be "
                    "truncated, compare its size with that of the original",
                    source,
                )
                break
            with _blamed(stretch, block, at, source):
                start, stored = _uncommon(stretch, block, start, own, shared, read)
        if start + stored > size:
            with _blamed(stretch, block, at, source):
                raise BadHeader(f"the member's content of {stored:,} bytes extends beyond the end of the archive")
        blocks.append(block)
        offsets.append(at)
        lengths.append(stored)
        at = start + (stored + BLOCK - 1 & -BLOCK)
    if stretch.blocks:
        yield stretch


@contextmanager
def _blamed(stretch: Stretch, block: bytes, at: int, source: Path | str) -> Iterator[None]:
    """Say which header is bad; one with a wrong checksum, this or one before, rather than what follows from it."""
    try:
        yield
    except BadHeader as error:
        verify_headers([*stretch.blocks, *[block] * (len(block) == BLOCK)], [*stretch.at, at], source)
        raise DamagedFile(f"{source} is truncated or damaged: header at byte {at:,}: {error}") from None


def _uncommon(
    stretch: Stretch, block: bytes, start: int, own: dict[bytes, bytes], shared: dict[bytes, bytes], read: Read
) -> tuple[int, int]:
    """Take in a header that is not simply a file's; where its content begins and what that takes."""
    if len(block) < BLOCK:
        raise BadHeader("the archive ends without the blocks of zeros that end a tar")
    kind, stored = block[156], number(block[124:136])
    if kind in ABOUT_NEXT:
        if stored > _MOST_EXTRA:
            raise BadHeader(f"a name or extended header of {stored:,} bytes exceeds the limit of {_MOST_EXTRA:,}")
        content = read(start, stored)
        if len(content) < stored:
            raise BadHeader("the archive ends within a name or extended header")
        (shared if kind == ord("g") else own).update(parse_extra(kind, content))
        return start, stored
    told = {**shared, **own}
    own.clear()
    if kind in BARE:
        return start, 0
    if told.get(b"size"):
        stored = decimal(told[b"size"])
    row = len(stretch.at)
    name = told.get(b"GNU.sparse.name") or told.get(b"path")
    if name:
        stretch.names[row] = name
    filled = number(block[483:495]) if kind == ord("S") else sparse_size(told)
    if filled is not None and kind in FILES:
        stretch.sizes[row] = filled
    if kind == ord("S"):
        more = block[482]
        while more:
            last = read(start, BLOCK)
            if len(last) < BLOCK:
                raise BadHeader("the archive ends within the header of a sparse file")
            start, more = start + BLOCK, last[504]
        stretch.starts[row] = start
    return start, stored
