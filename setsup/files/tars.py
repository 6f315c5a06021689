"""The files of a tar, from a walk over its headers.

Convention
----------
A tar is a row of blocks of 512 bytes: a header, then content filled up to whole blocks; a block of zeros ends it. What
does not fit a header (long names, large sizes) stands before it in a header of its own kind: GNU's, or a list of
records (pax). Checksums are verified for thousands of headers at once, since that costs numpy little and a loop much.
"""

import mmap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from setsup.errors import DataError
from setsup.files.listing import SPARSE, STORED, Listing
from setsup.files.names import as_text, cleaned
from setsup.files.tar_headers import (
    ABOUT_NEXT,
    BARE,
    BLOCK,
    BadHeader,
    decimal,
    names_of,
    number,
    octal,
    sparse_size,
    told_by,
    verified,
)
from setsup.progress import progress

__all__ = ["Read", "Stretch", "list_tar", "walk"]

Read = Callable[[int, int], bytes]
"""``read(offset, size)`` gives the bytes of the archive from `offset` on, fewer where it ends before."""

MEND = "; fetch it again"
_AT_ONCE = 8192
_FILES = frozenset((0, ord("0"), ord("7")))
_MOST_EXTRA = 1 << 20  # bytes of a long name or of records; a path has 4096, attributes up to 65,536 each


@dataclass(slots=True)
class Stretch:
    """A stretch of a tar: its headers, and the files among them.

    Attributes
    ----------
    blocks, at : lists
        All headers, and the byte at which each begins.
    rows : list of int
        Which of the headers are those of files; the lists below have one entry for each.
    starts, stored, sizes : lists of int, bytes
        Where the content begins, what it takes, and what the file holds.
    names : dict of int to bytes
        Names that do not stand in the header.
    sparse : list of int
        Files in which holes are left out.

    """

    blocks: list[bytes] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    names: dict[int, bytes] = field(default_factory=dict)
    sparse: list[int] = field(default_factory=list)

    def listing(self, source: Path) -> Listing:
        """Verify the headers, and give the files.

        Raises
        ------
        DataError
            A header is damaged, or a name is refused.

        """
        headers = verified(self.blocks, self.at, source)
        if len(self.rows) < len(headers):
            headers = headers[np.array(self.rows, np.int64)]
        names = names_of(headers, self.names)
        methods = np.full(len(names), STORED, np.uint32)
        methods[self.sparse] = SPARSE
        # the oldest format marks folders by their names only
        kept = np.array([row for row, name in enumerate(names) if not name.endswith(b"/")], np.int64)
        return Listing(
            as_text(cleaned([names[row] for row in kept.tolist()], source)),
            offsets=np.array(self.starts, np.int64)[kept],
            stored=np.array(self.stored, np.int64)[kept],
            sizes=np.array(self.sizes, np.int64)[kept],
            methods=methods[kept],
            checks=octal(headers["check"])[kept].astype(np.uint32),
        )

    def add(self, start: int, stored: int, told: Mapping[bytes, bytes], size: int | None = None) -> None:
        """Take in a file whose header comes next; `told` came before it, `size` counts the holes that are left out."""
        name = told.get(b"GNU.sparse.name") or told.get(b"path")
        if name:
            self.names[len(self.rows)] = name
        size = sparse_size(told) if size is None else size
        if size is not None:
            self.sparse.append(len(self.rows))
        self.rows.append(len(self.blocks))
        self.starts.append(start)
        self.stored.append(stored)
        self.sizes.append(stored if size is None else size)


def list_tar(file: int, size: int, source: Path) -> Listing:
    """List the files of a tar; folders, links and devices are left out.

    Parameters
    ----------
    file : int
        Descriptor of the archive.
    size : int, bytes
        Its size.
    source : Path
        Its path, for messages.

    Raises
    ------
    DataError
        The archive is cut off or damaged, or holds names that are refused.

    """
    import pyarrow as pa

    found = [Stretch().listing(source)]
    with (
        mmap.mmap(file, size, prot=mmap.PROT_READ) as mapped,
        progress(size, f"listing {source.name}", "B") as advance,
    ):
        done = 0
        for stretch in walk(lambda offset, count: mapped[offset : offset + count], source, size):
            found.append(stretch.listing(source))
            advance(stretch.at[-1] - done)
            done = stretch.at[-1]
    return Listing(
        pa.concat_arrays([part.names for part in found]),
        offsets=np.concatenate([part.offsets for part in found]),
        stored=np.concatenate([part.stored for part in found]),
        sizes=np.concatenate([part.sizes for part in found]),
        methods=np.concatenate([part.methods for part in found]),
        checks=np.concatenate([part.checks for part in found]),
    )


def walk(read: Read, source: Path, size: int = 1 << 62, at_once: int = _AT_ONCE) -> Iterator[Stretch]:
    """Go from header to header.

    Parameters
    ----------
    read : callable
        Gives bytes of the archive; it is asked for offsets that rise.
    source : Path
        For messages.
    size : int, bytes
        Of the archive, where that is known.
    at_once : int
        Headers in a stretch; 1 gives each file before its content is passed.

    Yields
    ------
    Stretch
        Its headers are verified when it is listed.

    Raises
    ------
    DataError
        The archive is cut off, or a header is none.

    """
    stretch = Stretch()
    own: dict[bytes, bytes] = {}  # what was told of the next file
    shared: dict[bytes, bytes] = {}  # and of all
    at = 0
    while True:
        block = read(at, BLOCK)
        start = at + BLOCK
        try:
            stored = int(block[124:136].rstrip(b"\0"), 8) if block[156] in _FILES else -1
        except (ValueError, IndexError):
            stored = -1
        try:
            if stored >= 0 and not (own or shared):
                # nearly all there are; written out, since a call would take as long as the rest
                stretch.rows.append(len(stretch.blocks))
                stretch.starts.append(start)
                stretch.stored.append(stored)
                stretch.sizes.append(stored)
            elif not block.strip(b"\0") and len(block) == BLOCK:
                break
            else:
                start, stored = _uncommon(stretch, block, start, own, shared, read)
            if start + stored > size:
                raise BadHeader(f"its content of {stored:,} bytes goes beyond the end")
        except BadHeader as error:
            # a wrong checksum, here or before, is the cause rather than what follows from it
            verified([*stretch.blocks, *[block] * (len(block) == BLOCK)], [*stretch.at, at], source)
            raise DataError(f"{source} is cut off or damaged: the header at byte {at:,}: {error}{MEND}") from None
        stretch.blocks.append(block)
        stretch.at.append(at)
        if len(stretch.blocks) >= at_once:
            yield stretch
            stretch = Stretch()
        at = start + (stored + BLOCK - 1 & -BLOCK)
    if stretch.blocks:
        yield stretch


def _uncommon(
    stretch: Stretch, block: bytes, start: int, own: dict[bytes, bytes], shared: dict[bytes, bytes], read: Read
) -> tuple[int, int]:
    """Take in a header that is not simply a file's; where its content begins and what that takes."""
    if len(block) < BLOCK:
        raise BadHeader("the archive ends there, without the zeros that end a tar")
    kind, stored = block[156], number(block[124:136])
    if kind in ABOUT_NEXT:
        if stored > _MOST_EXTRA:
            raise BadHeader(f"a name or records of {stored:,} bytes")
        content = read(start, stored)
        if len(content) < stored:
            raise BadHeader("the archive ends inside a name or records")
        (shared if kind == ord("g") else own).update(told_by(kind, content))
        return start, stored
    told = {**shared, **own}
    own.clear()
    if kind in BARE:
        return start, 0
    if told.get(b"size"):
        stored = decimal(told[b"size"])
    if kind == ord("S"):
        more, last = block[482], block
        while more:
            last = read(start, BLOCK)
            if len(last) < BLOCK:
                raise BadHeader("the archive ends inside the list of a file's holes")
            start, more = start + BLOCK, last[504]
        stretch.add(start, stored, told, number(block[483:495]))
    elif kind in _FILES:
        stretch.add(start, stored, told)
    return start, stored
