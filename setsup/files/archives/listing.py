"""The files of a folder or an archive as columns, before they are sorted."""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.files.archives.names import as_text, unwanted

__all__ = ["COLUMNS", "ENCRYPTED", "SPARSE", "STORED", "Listing", "as_numpy", "find_matches"]

STORED, DEFLATED = 0, 8
"""Methods by which a file is packed, as zip numbers them."""
ENCRYPTED, SPARSE = 1 << 16, 1 << 17
"""Beyond zip's own numbers: a file that needs a password, and one of a tar in which holes are left out."""


COLUMNS = ("offsets", "stored", "sizes", "methods", "checks")
"""Columns of numbers of a listing."""


@cache
def _no_names() -> Any:
    return as_text([])


def _no_numbers() -> npt.NDArray[np.int64]:
    return np.zeros(0, np.int64)


def as_numpy(numbers: Any) -> npt.NDArray[Any]:
    """View of an Arrow array of numbers; its own conversion imports pandas first, which takes longer than to open."""
    dtype = np.dtype(numbers.type.to_pandas_dtype())
    if not len(numbers):
        return np.zeros(0, dtype)
    view = np.frombuffer(numbers.buffers()[1], dtype, len(numbers), numbers.offset * dtype.itemsize)
    view.flags.writeable = False
    return view


def find_matches(names: Any, pattern: str) -> npt.NDArray[np.int64]:
    """Places of the names in which a regular expression (RE2) finds something, rising."""
    import pyarrow.compute as pc

    return as_numpy(pc.indices_nonzero(pc.match_substring_regex(names, pattern))).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Listing:
    """Files of a folder, a zip or a tar, one a row.

    Attributes
    ----------
    names : pyarrow large_string array
        As in :mod:`setsup.files.archives.names`.
    offsets : (n,) int64, bytes
        Where a file begins in the archive: its local header in a zip, its content in a tar.
    stored : (n,) int64, bytes
        What it takes there.
    sizes : (n,) int64, bytes
        What it holds.
    methods : (n,) uint32
        How it is packed.
    checks : (n,) uint32
        Its crc32 in a zip; in a tar the checksum of its header, by which another archive is noticed.
    folders : pyarrow large_string array
        Of a folder: the folders seen, ``""`` among them.
    times : (m,) int64, ns
        When each of these was changed last.
    whole : bool
        Whether everything could be seen.

    """

    names: Any
    offsets: npt.NDArray[np.int64]
    stored: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    methods: npt.NDArray[np.uint32]
    checks: npt.NDArray[np.uint32]
    folders: Any = field(default_factory=_no_names)
    times: npt.NDArray[np.int64] = field(default_factory=_no_numbers)
    whole: bool = True

    def columns_at(self, rows: npt.NDArray[np.int64]) -> "Listing":
        """Select rows of the columns of numbers."""
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def ordered(self, hidden: bool = False) -> "Listing":
        """Sort by the bytes of the names; of files of one name the last counts, as it does for whoever unpacks.

        Files that systems leave behind are left out, and so are hidden ones unless `hidden`.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        names, kept = self.names, as_numpy(pc.indices_nonzero(pc.invert(unwanted(self.names, hidden))))
        if len(kept) < len(names):
            names = names.take(kept)
        if not pc.all(pc.less(names[:-1], names[1:])).as_py():
            order = as_numpy(pc.sort_indices(names.cast(pa.large_binary())))
            names = names.take(order)
            last = np.ones(len(names), bool)
            last[:-1] = np.asarray(pc.not_equal(names[1:], names[:-1]))
            names, kept = names.filter(last), kept[order[last]]
        return replace(self.columns_at(kept.astype(np.int64)), names=names)
