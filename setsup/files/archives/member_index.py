"""The index of a folder, a zip or a tar: listed once, kept in the cache folder, mapped into memory from then on.

Convention
----------
The kept index is an uncompressed Arrow IPC file. Its first record batch is the files, in order; the second the
folders that were seen, with the time of their last change (ns) as ``offset``. The schema's metadata say of what it is
the index, and checksums of both batches.
"""

import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.files.archives.archive import Archive, Row
from setsup.files.archives.archive_format import archive_kind
from setsup.files.archives.folders import list_folder, unchanged
from setsup.files.archives.listing import COLUMNS, Listing, as_numpy
from setsup.files.archives.plain_files import open_file, unreadable
from setsup.files.archives.tars import TarArchive, list_tar
from setsup.files.archives.zips import ZipArchive, list_zip
from setsup.files.atomic import written
from setsup.files.builds import build_cached
from setsup.files.cache import cache_folder

__all__ = ["KEPT_FROM", "About", "Index", "find_kept_index", "load_index", "load_joined"]

KEPT_FROM = 10_000
"""Files from which the index of a folder is kept: of fewer a new listing takes no longer, and sees every change."""

_KEY = b"setsup"
_VERSION = 3
_FOLDER = "members"  # in the cache folder
_SETTLED = 2_000_000_000  # ns after a change in which disks with coarse clocks may not show another one
_COLUMNS = {"offset": np.int64, "stored": np.int64, "size": np.int64, "method": np.uint32, "check": np.uint32}
_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class About:
    """What an index was made of: path, kind, and its size and times of last change (all 0 for a folder).

    ``ctime_ns`` tells an archive that replaced one of the same size and time. An index of another is made again, but an
    archive that is open stays open, since a new link or owner sets the time, too.
    ``nested`` says that of a tar the files of the tars in it were listed; ``hidden``, that hidden files were, too;
    ``inside``, that links that lead out of a folder were left out.
    """

    source: str
    kind: str
    size: int
    mtime_ns: int
    nested: bool = False
    hidden: bool = False
    ctime_ns: int = field(default=0, compare=False)
    inside: bool = False

    @classmethod
    def of(cls, source: Path, nested: bool = False, hidden: bool = False, inside: bool = False) -> "About":
        """Look at a source."""
        kind = archive_kind(source)
        try:
            state = os.stat(source)
            path = str(source.resolve())
        except OSError as error:
            raise unreadable(source, error) from error
        if kind == "folder":
            return cls(path, kind, 0, 0, hidden=hidden, inside=inside)
        return cls(path, kind, state.st_size, state.st_mtime_ns, nested and kind == "tar", hidden, state.st_ctime_ns)

    def kept(self) -> Path:
        """Where its index is kept."""
        ways = b"\0nested" * self.nested + b"\0hidden" * self.hidden + b"\0inside" * self.inside
        return cache_folder() / _FOLDER / f"{sha256(os.fsencode(self.source) + ways).hexdigest()[:32]}.arrow"

    def written(self) -> dict[str, Any]:
        """What a kept index says of it; indexes that were kept before know no ``inside``."""
        return {name: value for name, value in asdict(self).items() if name != "inside" or value}


class Index:
    """Files in the order of their names' bytes.

    Attributes
    ----------
    about : About
        What it is the index of.
    names : pyarrow large_string array
        As in :mod:`setsup.files.archives.names`.
    offsets, stored, sizes : (n,) int64, bytes
        As in :class:`setsup.files.archives.listing.Listing`.
    digest : int
        Checksum of all columns: equal for the same files in the same places.

    """

    def __init__(self, about: About, batch: Any, digest: int | None = None) -> None:
        self.about, self.batch = about, batch
        self.names = batch.column("name")
        columns = {name: as_numpy(batch.column(name)) for name in _COLUMNS}
        self.offsets, self.stored, self.sizes = columns["offset"], columns["stored"], columns["size"]
        self.digest = _digest(batch) if digest is None else digest
        # plain numbers and bytes come quicker out of memory views than out of arrays
        self._columns = tuple(column.data for column in columns.values())
        bounds, text = _text(self.names)
        self._bounds, self._letters = bounds.data, text.data

    def __len__(self) -> int:
        """Count the files."""
        return len(self.names)

    def name(self, place: int) -> bytes:
        """Name of one file, in UTF-8."""
        return bytes(self._letters[self._bounds[place] : self._bounds[place + 1]])

    def archive(self, source: Path) -> Archive | None:
        """Make the reader of the archive that this is the index of, None for a folder."""
        kind = {"zip": ZipArchive, "tar": TarArchive}.get(self.about.kind)
        if kind is None:
            return None
        return kind(source.absolute(), self.about.size, self.about.mtime_ns, len(self), self.about.kept())

    def row(self, place: int) -> Row:
        """All columns of one file."""
        return Row(self.name(place), *(column[place] for column in self._columns))


def load_index(
    source: Path, nested: bool = False, relist: bool = False, hidden: bool = False, inside: bool = False
) -> Index:
    """Index of a folder, a zip or a tar; from the cache folder where it is there and still true, unless `relist`."""
    about = About.of(source, nested, hidden, inside)
    target = about.kept()
    listed: list[Any] = []

    def make() -> Index:
        listed[:] = _listed(source, about)
        return Index(about, listed[0])

    def save(_: Index, target: Path) -> None:
        if _worth_keeping(about, *listed):
            _save(target, about, *listed)

    def find(path: Path) -> Index | None:
        return None if relist else _kept(path, about, source)

    if relist:
        with suppress(OSError):  # a cache folder that cannot be written to is reported where it is used
            target.unlink(missing_ok=True)
    # mapped pages of the saved index are shared by all processes
    return build_cached(target, find, make, save)


def find_kept_index(source: Path, digest: int, nested: bool, hidden: bool, inside: bool) -> Index | None:
    """Index of a folder that is kept in the cache folder and has this digest, though the folder may have changed."""
    about = About.of(source, nested, hidden, inside)
    if about.kind != "folder":
        return None
    index = _kept(about.kept(), about, None)
    return index if index is not None and index.digest == digest else None


def load_joined(key: str, parts: Callable[[], Sequence[tuple[Any, npt.NDArray[np.int64]]]]) -> Index:
    """Index of the files of several sources, names and sizes; of files of one name, the one of the first source counts.

    The ``offset`` of a file is its place in its source, and its ``method`` the number of that source. Kept in the cache
    folder under `key` where there are many files.
    """
    about = About(key, "joined", 0, 0)
    target = cache_folder() / _FOLDER / f"{key}.arrow"

    def make() -> Index:
        return Index(about, _joined(parts()))

    def save(made: Index, target: Path) -> None:
        if len(made) >= KEPT_FROM:
            _save(target, about, made.batch, made.batch.slice(0, 0))

    return build_cached(target, lambda path: _kept(path, about, path), make, save)


# -- listing -----------------------------------------------------------------------------------------------------------


def _listed(source: Path, about: About) -> tuple[Any, Any]:
    """List a source as it is now: batches of the files and of the folders, None in place of those not to be kept."""
    if about.kind == "folder":
        listing = list_folder(source, cache_folder() / _FOLDER, about.hidden, about.inside)
    else:
        try:
            with open_file(source) as (file, size):
                if about.kind == "zip":
                    listing = list_zip(file, size, source)
                else:
                    listing = list_tar(file, size, source, about.nested)
        except OSError as error:
            raise unreadable(source, error) from error
        if About.of(source, about.nested, about.hidden) != about:
            raise DataError(f"{source} was changed while it was being listed; try again when it is complete")
    folders = _batch(listing.folders, [listing.times, *[np.zeros(len(listing.times), np.int64)] * 4])
    if not listing.whole:
        folders = None
    listing = listing.ordered(about.hidden)
    return _batch(listing.names, [getattr(listing, name) for name in COLUMNS]), folders


def _joined(parts: Sequence[tuple[Any, npt.NDArray[np.int64]]]) -> Any:
    import pyarrow as pa

    counts = [len(sizes) for _, sizes in parts]
    zeros = np.zeros(sum(counts), np.int64)
    listing = Listing(
        # of files of one name the last counts in a listing
        pa.concat_arrays([names for names, _ in reversed(parts)]),
        offsets=np.concatenate([np.arange(count) for count in reversed(counts)]),
        stored=zeros,
        sizes=np.concatenate([sizes for _, sizes in reversed(parts)]),
        methods=np.repeat(np.arange(len(counts))[::-1], counts[::-1]).astype(np.uint32),
        checks=zeros.astype(np.uint32),
    ).ordered(hidden=True)
    return _batch(listing.names, [getattr(listing, name) for name in COLUMNS])


def _batch(names: Any, columns: list[npt.NDArray[Any]]) -> Any:
    import pyarrow as pa

    types = [pa.from_numpy_dtype(dtype) for dtype in _COLUMNS.values()]
    arrays = [pa.array(column, dtype) for column, dtype in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays([names, *arrays], schema=_schema())


def _schema(metadata: dict[bytes, bytes] | None = None) -> Any:
    import pyarrow as pa

    numbers = [pa.field(name, pa.from_numpy_dtype(dtype), nullable=False) for name, dtype in _COLUMNS.items()]
    return pa.schema([pa.field("name", pa.large_string(), nullable=False), *numbers], metadata=metadata)


# -- the file ----------------------------------------------------------------------------------------------------------


def _worth_keeping(about: About, files: Any, folders: Any) -> bool:
    """Whether a later listing could differ only where the index is seen to be out of date."""
    if folders is None or (about.kind == "folder" and len(files) < KEPT_FROM):
        return False
    latest = about.mtime_ns if about.kind != "folder" else int(as_numpy(folders.column("offset")).max())
    return time.time_ns() - latest > _SETTLED


def _save(target: Path, about: About, files: Any, folders: Any) -> None:
    import pyarrow as pa

    told = {"version": _VERSION, "made_of": about.written(), "checks": [_digest(files), _digest(folders)]}
    schema = _schema({_KEY: json.dumps(told).encode()})
    with written(target) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(files)
        writer.write_batch(folders)


def _kept(target: Path, about: About, source: Path | None) -> Index | None:
    """Index as it was kept; None where there is none, where it is out of date, or not one that was written here.

    Without a `source`, a folder that changed afterwards does not make it out of date.
    """
    import pyarrow as pa

    if not os.path.isfile(target):
        return None
    try:
        with pa.memory_map(str(target)) as mapped:
            reader = pa.ipc.open_file(mapped)
            told = json.loads((reader.schema.metadata or {})[_KEY])
            if told["version"] != _VERSION or told["made_of"] != about.written():
                return None
            if reader.num_record_batches != 2 or not reader.schema.equals(_schema()):
                raise ValueError("its columns are wrong")
            files, folders = (reader.get_batch(number) for number in range(2))
            for batch, check in zip((files, folders), told["checks"], strict=True):
                batch.validate(full=True)
                if _digest(batch) != check:
                    raise ValueError("its checksum does not match")
    except Exception as error:  # whatever is wrong with a kept file, it is made again
        _log.warning("rebuilding the damaged index %s: %s", target, " ".join(str(error).split())[:200])
        return None
    if (
        about.kind == "folder"
        and source is not None
        and not unchanged(source, folders.column("name").to_pylist(), as_numpy(folders.column("offset")).tolist())
    ):
        return None
    return Index(about, files, told["checks"][0])


def _text(names: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each text begins and ends, and the letters of all, as in memory."""
    _, bounds, letters = names.buffers()
    if not len(names):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    ends = np.frombuffer(bounds, np.int64, len(names) + 1, 8 * names.offset)
    return ends, np.frombuffer(letters, np.uint8) if letters is not None else np.zeros(0, np.uint8)


def _digest(batch: Any) -> int:
    bounds, letters = _text(batch.column("name"))
    check = zlib.crc32(letters[bounds[0] : bounds[-1]].data, zlib.crc32((bounds - bounds[0]).data))
    for name in _COLUMNS:
        check = zlib.crc32(as_numpy(batch.column(name)).data, check)
    return check
