"""Which members of a tar make a sample, told by their names as the webdataset library does.

Convention
----------
A name is cut at the first dot of its last part: what stands before, with the folders, is the key, and what stands
behind is the extension, in small letters. Members that follow each other and share a key are a sample. Left out are
names without an extension, ``__meta__`` names, and hidden files, such as a Mac leaves beside others (``._0.png``).
The rules are those of ``base_plus_ext`` and ``group_by_keys`` in webdataset's ``tariterators``, which raises as well
where an extension comes twice in a sample. That a key comes again later in a tar is refused here: there are members of
one sample that do not lie together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Integers
from setsup.errors import DataError
from setsup.files.archives.listing import SPARSE, Listing, as_numpy, find_matches
from setsup.files.archives.names import shown
from setsup.shards.tar_scan import text_bytes

__all__ = ["Grouped", "group_samples"]


_MOST = 256
"""Extensions of a tar; where there are more, keys have dots."""

_PASSED_OVER = r"^__[^/]*__(?:$|/)|(?:^|/)(?:\.|__MACOSX/)"
_DOT, _SLASH = ord("."), ord("/")


@dataclass(frozen=True, slots=True)
class Grouped:
    """Samples of a tar.

    Attributes
    ----------
    keys : (n,) pyarrow large_string array
        One a sample.
    folders : (n,) pyarrow large_string array
        What stands before the last ``/`` of each key, ``""`` where there is none.
    extensions : tuple of str
        In the order in which they first come.
    member : (n, extensions) int64
        Place of each member in the listing, −1 where a sample has none.

    """

    keys: Any
    folders: Any
    extensions: tuple[str, ...]
    member: Integers

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.keys)


def group_samples(listing: Listing, source: str) -> Grouped:
    """Put the members of a tar together to samples."""
    starts, slash, dot, ends = _cuts(listing.names)
    named = (dot > slash + 1) & (dot + 1 < ends)
    content, _ = text_bytes(listing.names)
    text = content.tobytes()
    if b"__" in text or b"/." in text or (content[starts] == _DOT).any():  # else the expression finds none
        named[find_matches(listing.names, _PASSED_OVER)] = False
    rows = np.flatnonzero(named)
    _refuse_sparse(listing, rows, source)
    keys = _pieces(listing.names, starts[rows], dot[rows]).dictionary_encode()
    sample, keys = as_numpy(keys.indices).astype(np.int64), keys.dictionary
    _refuse_scattered(listing, rows, sample, source)
    extensions, which = _extensions(listing, rows, dot[rows] + 1, ends[rows], source)
    member = np.full((len(keys), len(extensions)), -1, np.int64)
    member[sample, which] = rows
    _refuse_repeated(listing, rows, member[sample, which], source)
    first = np.flatnonzero(np.diff(sample, prepend=-1))
    folders = _pieces(listing.names, starts[rows][first], np.maximum(slash, starts)[rows][first])
    return Grouped(keys, folders, extensions, member)


def _cuts(names: Any) -> tuple[Integers, Integers, Integers, Integers]:
    """Bytes at which each name begins, has its last slash (or the byte before it), the first dot behind, and ends."""
    content, offsets = text_bytes(names)
    starts, ends = offsets[:-1], offsets[1:]
    slashes, dots = (np.append(np.flatnonzero(content == sign), len(content)) for sign in (_SLASH, _DOT))
    last = slashes[np.searchsorted(slashes, ends) - 1]  # at −1, the end of all, where there is none before
    slash = np.where((last >= starts) & (last < ends), last, starts - 1)
    first = dots[np.minimum(np.searchsorted(dots, slash + 1), len(dots) - 1)]
    return starts, slash, np.minimum(first, ends), ends


def _pieces(names: Any, starts: Integers, ends: Integers) -> Any:
    """Texts cut out of the bytes of names."""
    import pyarrow as pa

    content, _ = text_bytes(names)
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    taken = content[np.repeat(starts - offsets[:-1], ends - starts) + np.arange(offsets[-1])]
    return pa.LargeStringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(taken))


def _extensions(
    listing: Listing, rows: Integers, starts: Integers, ends: Integers, source: str
) -> tuple[tuple[str, ...], Integers]:
    """Extensions in small letters, and which of them each member has."""
    texts = _pieces(listing.names, starts, ends).dictionary_encode()
    lower = [text.lower() for text in texts.dictionary.to_pylist()]
    extensions = tuple(dict.fromkeys(lower))
    if len(extensions) > _MOST:
        name = shown(listing.names[int(rows[0])].as_py())
        raise DataError(
            f"{source}: its members have {len(extensions):,} different extensions, such as {extensions[0]!r} of "
            f"{name!r}: an extension begins at the first dot, so keys must not contain dots; pack the tar again with "
            "other names"
        )
    numbers = np.array([extensions.index(text) for text in lower], np.int64)
    return extensions, numbers[as_numpy(texts.indices)] if lower else np.zeros(0, np.int64)


def _refuse_sparse(listing: Listing, rows: Integers, source: str) -> None:
    holes = rows[listing.methods[rows] == SPARSE]
    if len(holes):
        raise DataError(
            f"{source}: {_name(listing, holes[0])} is stored as a sparse file, which cannot be read in place; pack the "
            "tar again without --sparse"
        )


def _refuse_scattered(listing: Listing, rows: Integers, sample: Integers, source: str) -> None:
    again = np.flatnonzero(sample[1:] < sample[:-1])
    if len(again):
        later, first = int(again[0]) + 1, int(np.argmax(sample == sample[again[0] + 1]))
        raise DataError(
            f"{source}: {_name(listing, rows[later])} has the same key as {_name(listing, rows[first])}, but other "
            "samples are between them; pack the tar again in the order of the names (tar --sort=name), so that the "
            "members of a sample are adjacent"
        )


def _refuse_repeated(listing: Listing, rows: Integers, kept: Integers, source: str) -> None:
    twice = np.flatnonzero(kept != rows)
    if len(twice):
        raise DataError(
            f"{source} contains {_name(listing, rows[twice[0]])} and {_name(listing, kept[twice[0]])}, two members of "
            "a sample with the same extension; pack the tar again without one of them"
        )


def _name(listing: Listing, row: Any) -> str:
    return repr(shown(listing.names[int(row)].as_py()))
