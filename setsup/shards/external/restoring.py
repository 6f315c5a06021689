"""Catalogue, index and data card of a set that setsup wrote, restored from its tars and from the second copy.

The tars hold keys, values of factors, and all members; :mod:`setsup.shards.backup` has the rest. Where that is missing
too, as in sets of before it was written, source rows are lost, and said to be.
"""

import json
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.croissant.vocabulary import FILE
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable
from setsup.files import content_digest
from setsup.files.archives.listing import Listing
from setsup.files.archives.tar_headers import BLOCK
from setsup.files.archives.tars import Stretch, join_listings, walk
from setsup.progress import progress
from setsup.shards.backup import Backup, read_backup, write_backup
from setsup.shards.croissant import with_index
from setsup.shards.index import SOURCE_ROW, Spans, part, write_index
from setsup.shards.layout import BACKUP, CARD, CATALOGUE, CRC32C, INDEX, Catalogue, Shard, split_name
from setsup.shards.locate import is_whole, whole_catalogue
from setsup.shards.stores.store import Range, Store, join_address
from setsup.shards.writing.parts import scratch
from setsup.shards.writing.tar import headers

__all__ = ["Restored", "is_own", "restore"]


LOST = (
    "the row numbers in the original dataset (source rows) are lost: only the index had them, since the set has no "
    f"{BACKUP}"
)
OTHER_BYTES = f"{INDEX} has the same content but other bytes, since another version of pyarrow wrote it"

_LARGEST = 1 << 28  # bytes of a catalogue
_log = logging.getLogger("setsup")


@dataclass(frozen=True)
class Restored:
    """What was restored.

    Attributes
    ----------
    catalogue : Catalogue
        Of the set as it is now.
    files : tuple of str
        Names of the files that were written.
    notes : tuple of str
        What is lost, or differs from before.

    """

    catalogue: Catalogue
    files: tuple[str, ...]
    notes: tuple[str, ...]


def restore(store: Store) -> Restored | None:
    """Restore what is damaged or missing of a set that setsup wrote; whoever calls holds its lock."""
    with scratch(store) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        backup, there = _backup(store, folder), whole_catalogue(store)
        unfit: _Unfit | None = None
        described = _described(store, there, backup)
        backup_lost = there is not None and [(there, None)] == described
        for catalogue, copy in described:
            try:
                restored = _restored(store, folder, there, catalogue, copy)
                if restored is None and backup_lost:
                    restored = _copied(store, folder, catalogue)
                return restored
            except _Unfit as error:
                unfit = unfit or error
        if unfit is not None:
            raise unfit
    return None


def is_own(store: Store, tars: list[str]) -> bool:
    """Whether the first of some tars begins with a header as setsup writes it, and no other program."""
    if (store.size(tars[0]) or 0) < BLOCK:
        return False
    (head,) = store.ranges([Range(tars[0], 0, BLOCK)])
    try:
        member = head[:100].rstrip(b"\0").decode()
        return head == headers([member], [int(head[124:135], 8)]).tobytes()
    except (ValueError, DataError):
        return False


# -- inside ------------------------------------------------------------------------------------------------------------


class _Unfit(DataError):
    """Tars are others than a catalogue describes."""


def _described(store: Store, there: Catalogue | None, backup: Backup | None) -> list[tuple[Catalogue, Backup | None]]:
    """Catalogues that may be those of the tars, the likeliest first, each with the second copy if that is of them."""
    if backup is None:
        return [] if there is None else [(there, None)]
    if there is None:
        return [(backup.catalogue, backup)]
    if replace(backup.catalogue, index=there.index) == there:
        return [(there, backup)]
    same = there.shards == backup.catalogue.shards
    candidates = [(there, backup if same else None), (backup.catalogue, backup)]
    if same or len(fitting := [candidate for candidate in candidates if _fits(store, candidate[0])]) == 2:
        _log.warning(
            "%s differs from its copy in %s; unless you have edited it, remove it and run the same `setsup index` "
            "again to restore it",
            join_address(store.url, CATALOGUE),
            BACKUP,
        )
        return candidates
    if fitting == candidates[1:]:
        _log.warning("%s belongs to other tars and is not used", join_address(store.url, CATALOGUE))
        return fitting
    _log.warning("%s belongs to another set and is not used", join_address(store.url, BACKUP))
    return candidates[:1]


def _fits(store: Store, catalogue: Catalogue) -> bool:
    """Whether tars of the names and sizes that a catalogue tells are there."""
    return all(store.size(shard.name) == shard.size for shard in catalogue.shards)


def _restored(
    store: Store, folder: Path, there: Catalogue | None, catalogue: Catalogue, backup: Backup | None
) -> Restored | None:
    """Restore what a catalogue describes; _Unfit where the tars are others."""
    if catalogue.check != CRC32C:
        return None
    index = replace(catalogue.index, name=INDEX)
    whole = is_whole(store, index, CRC32C)
    files, notes = [], []
    if not whole:
        fresh = folder / INDEX
        source = None if backup is None else backup.source_rows
        write_index(fresh, _parts(store, catalogue, source))
        made = Shard(INDEX, catalogue.rows, fresh.stat().st_size, content_digest(fresh))
        if made not in (index, None if backup is None else replace(backup.catalogue.index, name=INDEX)):
            notes.append(LOST if backup is None else OTHER_BYTES)
        if made != index:
            catalogue = replace(catalogue, index=made)
        if backup is not None and made != replace(backup.catalogue.index, name=INDEX):
            # of its own catalogue, which nobody edits
            write_backup(folder / BACKUP, fresh, replace(backup.catalogue, index=made), backup.card)
            store.put(BACKUP, folder / BACKUP)
        store.put(INDEX, fresh)
        files.append(INDEX)
        if made != index and store.size(FILE) is not None:
            described = with_index(store.read(FILE, _LARGEST), made)
            if described is not None:
                store.put_bytes(FILE, described)
                files.append(FILE)
    if backup is not None and store.size(CARD) is None:
        store.put_bytes(CARD, backup.card.encode())
        files.append(CARD)
    if there != catalogue:  # last: it says what index is meant
        store.put_bytes(CATALOGUE, catalogue.to_json().encode())
        files.append(CATALOGUE)
    return Restored(catalogue, tuple(files), tuple(notes)) if files else None


def _copied(store: Store, folder: Path, catalogue: Catalogue) -> Restored | None:
    """Write the second copy of a set that is whole but for that; None where it cannot be written."""
    import pyarrow.parquet as pq

    if catalogue.check != CRC32C or store.size(CARD) is None or not _fits(store, catalogue):
        return None
    index = (folder if store.folder is None else store.folder) / INDEX
    if store.folder is None:
        store.get(INDEX, index)
    if SOURCE_ROW not in pq.read_schema(index).names:  # lost
        return None
    write_backup(folder / BACKUP, index, catalogue, store.read(CARD, _LARGEST).decode())
    store.put(BACKUP, folder / BACKUP)
    return Restored(catalogue, (BACKUP,), ())


def _backup(store: Store, folder: Path) -> Backup | None:
    if store.size(BACKUP) is None:
        return None
    try:
        if store.folder is not None:
            return read_backup(store.folder / BACKUP)
        store.get(BACKUP, folder / BACKUP)
        return read_backup(folder / BACKUP)
    except DataError as error:
        _log.warning("%s; it is not used", error)
        return None


def _parts(store: Store, catalogue: Catalogue, source: npt.NDArray[np.int64] | None) -> Iterator[Any]:
    """Rows of the index, a tar at a time."""
    codes = {
        factor.name: {_typed(level): code for code, level in enumerate(factor.levels)}
        for factor in catalogue.factors
        if factor.levels is not None
    }
    start, label = 0, join_address(store.url, CATALOGUE)
    with progress(sum(shard.size for shard in catalogue.shards), f"restoring {catalogue.name}", "B") as advance:
        for number, shard in enumerate(catalogue.shards):
            keys, documents, spans = _read(store, shard, catalogue)
            table = FactorTable(
                catalogue.factors,
                {factor.name: _column(factor, documents, codes, label) for factor in catalogue.factors},
            )
            rows = None if source is None else source[start : start + shard.rows]
            yield part(table, keys, number, spans, rows)
            start += shard.rows
            advance(shard.size)


def _read(store: Store, shard: Shard, catalogue: Catalogue) -> tuple[list[str], list[Any], dict[str, Spans]]:
    """Keys, values and places of a tar, which is read once, and must be the very one that was written."""
    from google_crc32c import value

    label = join_address(store.url, shard.name)
    with _local(store, shard.name) as path:
        content = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
        if len(content) != shard.size:
            raise _other(label, f"it has {len(content):,} bytes, not {shard.size:,}")
        listing = _listed(content, label)
        digest, at, checks = sha256(), 0, []
        starts, stops = listing.offsets.tolist(), (listing.offsets + listing.stored).tolist()
        for start, stop in zip(starts, stops, strict=True):
            digest.update(content[at:stop].data)
            checks.append(value(np.asarray(content[start:stop])))
            at = stop
        digest.update(content[at:].data)
        if digest.hexdigest() != shard.digest:
            raise _other(label, "its SHA-256 differs")
        ends = {member.extension: name for name, member in catalogue.members.items()}
        keys: dict[str, int] = {}
        members: dict[str, list[tuple[int, int, int, int]]] = {name: [] for name in catalogue.members}
        documents: list[Any] = []
        for name, start, stop, check in zip(listing.names.to_pylist(), starts, stops, checks, strict=True):
            key, extension = split_name(name)
            row = keys.setdefault(key, len(keys))
            if extension == "json":
                documents.append(json.loads(content[start:stop].tobytes()))
            elif extension not in ends:
                raise _other(label, f"{join_address(store.url, CATALOGUE)} does not list its members .{extension}")
            else:
                members[ends[extension]].append((row, start, stop - start, check))
    if not len(keys) == len(documents) == shard.rows:
        raise _other(label, f"it has {len(keys):,} samples, not {shard.rows:,}")
    return list(keys), documents, {name: _spans(lies, len(keys)) for name, lies in members.items()}


def _listed(content: npt.NDArray[np.uint8], label: str) -> Listing:
    def read(at: int, count: int) -> bytes:
        return content[at : at + count].tobytes()

    return join_listings(
        [Stretch().listing(label), *(stretch.listing(label) for stretch in walk(read, label, len(content)))]
    )


def _spans(members: list[tuple[int, int, int, int]], rows: int) -> Spans:
    spans = Spans.absent(rows)
    for row, offset, size, check in members:
        spans.offset[row], spans.size[row], spans.check[row] = offset, size, check
    return spans


def _column(factor: Factor, documents: list[Any], codes: dict[str, dict[Any, int]], label: str) -> Array:
    """Codes of the values that the documents of samples have."""
    try:
        values = [document[factor.name] for document in documents]
        if factor.levels is None:
            return np.array([np.nan if value is None else value for value in values], np.float32)
        known = codes[factor.name]
        return np.array([-1 if value is None else known[_typed(value)] for value in values], np.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise _Unfit(
            f"the factor {factor.name!r} in {label} does not match the values in the tars ({type(error).__name__}: "
            f"{error}); fetch {CATALOGUE} again, or write the set again"
        ) from None


def _typed(value: Any) -> tuple[type, Any]:
    """A level that is told from equal ones of another type, such as 1 from True."""
    return type(value), value


@contextmanager
def _local(store: Store, name: str) -> Iterator[Path]:
    """A file of a set on a disk; that of a store is copied."""
    if store.folder is not None:
        path = store.folder / name
        if not path.is_file():
            raise _other(str(path), "it is missing")
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="setsup-") as folder:
        path = Path(folder) / "tar"
        store.get(name, path)
        yield path


def _other(label: str, why: str) -> _Unfit:
    return _Unfit(
        f"{label} is not the tar that `setsup shard` wrote ({why}), so the index cannot be restored from it; fetch it "
        "again, or write the set again, and then run the same `setsup index` again"
    )
