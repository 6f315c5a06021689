"""What tars that others wrote hold, tar by tar, and all of them together."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from setsup.errors import DataError
from setsup.factors import Factor, FactorTable
from setsup.files.archives.listing import Listing
from setsup.files.archives.names import shown
from setsup.shards.external.columns import CLASSES, JSON, ColumnScan, read_columns
from setsup.shards.external.factors import Columns
from setsup.shards.external.modalities import HEAD, LOOKED_AT, is_fetched, modality_names, stored_member
from setsup.shards.external.samples import Grouped, group_samples
from setsup.shards.external.spill_buffer import Spool
from setsup.shards.index import GROUP, KEY, SHARD, SOURCE_ROW, Spans, part
from setsup.shards.layout import CAMERA, VIEW, Catalogue, Member, Shard, member_name
from setsup.shards.stores.store import Range, Store
from setsup.shards.tar_scan import listing_digest, scan_tar

__all__ = ["ScannedTar", "TarSet", "read_tar"]

_MOST = 64  # kinds of images and arrays in a set
_PICTURE = 64 << 20  # bytes of an image whose header is looked at
_TEXT = 16 << 20  # bytes of a json member
_OWN = {KEY, SHARD, SOURCE_ROW}


@dataclass(frozen=True, slots=True)
class ScannedTar:
    """What one tar holds."""

    shard: Shard
    samples: Grouped
    listing: Listing
    columns: ColumnScan


def _is_read(extension: str) -> bool:
    last = extension.rpartition(".")[2]
    return last == JSON or last in CLASSES


_ENDINGS = tuple(f".{last}".encode() for last in (JSON, *CLASSES))


def read_tar(store: Store, name: str, views: bool = False) -> ScannedTar:
    """Scan a tar, and read its json and class members; with `views` the cameras in it are known for such."""
    source = f"{store.url.rstrip('/')}/{name}"
    with scan_tar(store, name, _ENDINGS) as tar:
        samples = group_samples(tar.listing, source)
        members: dict[str, Sequence[bytes | None]] = {}
        for column, extension in enumerate(samples.extensions):
            if _is_read(extension) and not (views and extension == VIEW.extension):
                rows = samples.member[:, column]
                there = rows[rows >= 0]
                if (large := tar.listing.stored[there] > _TEXT).any():
                    name = shown(tar.listing.names[int(there[np.argmax(large)])].as_py())
                    raise DataError(f"{source}: {name} has more than {_TEXT:,} bytes, too many for values of factors")
                contents = iter(tar.contents(there.tolist()))
                members[extension] = [next(contents) if row >= 0 else None for row in rows.tolist()]
        columns = read_columns(members, samples.keys.to_pylist() if members else (), source)
        shard = Shard(name, len(samples), tar.size, listing_digest(tar.listing))
        return ScannedTar(shard, samples, tar.listing, columns)


class TarSet:
    """What all tars so far hold."""

    def __init__(self, store: Store, spool: Spool, views: bool = False) -> None:
        self.columns = Columns()
        self.shards: list[Shard] = []
        self._store, self._spool, self._views = store, spool, views
        self._numbers: list[int] = []  # of the tar of each batch
        self._extensions: dict[str, None] = {}
        self._together: set[frozenset[str]] = set()

    @property
    def rows(self) -> list[int]:
        """Samples of each tar."""
        return [shard.rows for shard in self.shards]

    @property
    def not_fetched(self) -> tuple[str, ...]:
        """Extensions that are neither modalities nor factors."""
        return tuple(
            extension for extension in self._extensions if not self._is_kept(extension) and not _is_read(extension)
        )

    def add(self, number: int, tar: ScannedTar) -> None:
        """Keep what the next tar holds."""
        import pyarrow as pa

        self.shards.append(tar.shard)
        samples, listing = tar.samples, tar.listing
        arrays = {"key": samples.keys, **self.columns.add(tar.columns, samples.folders)}
        for column, extension in enumerate(samples.extensions):
            self._extensions.setdefault(extension)
            if self._is_kept(extension):
                rows = samples.member[:, column]
                arrays[f"offset {extension}"] = pa.array(np.where(rows >= 0, listing.offsets[rows], -1))
                arrays[f"size {extension}"] = pa.array(np.where(rows >= 0, listing.stored[rows], 0))
                arrays[f"check {extension}"] = pa.array(np.where(rows >= 0, listing.checks[rows], 0))
        bare = [column for column, name in enumerate(samples.extensions) if "." not in name and is_fetched(name)]
        for first, other in combinations(bare, 2):
            if (samples.member[:, [first, other]] >= 0).all(axis=1).any():
                self._together.add(frozenset((samples.extensions[first], samples.extensions[other])))
        kinds = [extension for extension in self._extensions if self._is_kept(extension)]
        if len(kinds) > _MOST:
            raise DataError(
                f"{self._store.url}: its members have {len(kinds)} different extensions, such as {kinds[-1]!r}: "
                "an extension begins at the first dot, so keys must not contain dots; pack the tars again with other "
                "names"
            )
        if len(samples):
            self._spool.add(pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)))
            self._numbers.append(number)

    def members(self, older: Catalogue | None) -> dict[str, tuple[Member, tuple[str, ...]]]:
        """How each modality is stored, and the extensions of its members."""
        modalities: dict[str, tuple[Member, tuple[str, ...]]] = {}
        for name, extensions in modality_names(
            [extension for extension in self._extensions if self._is_kept(extension)], self._together
        ).items():
            if self._is_view(extensions[0]):
                modalities[CAMERA] = VIEW, extensions
                continue
            if not re.fullmatch(r"[a-z0-9_.-]+", extensions[0]):
                self.columns.left_out[f".{extensions[0]}"] = "an extension must be letters, digits and underscores"
                continue
            try:
                member = stored_member(name, extensions[0], self._heads(extensions))
            except DataError as error:
                self.columns.left_out[f".{extensions[0]}"] = str(error)
                continue
            known = older.members.get(name) if older else None
            same = known is not None and (known.extension, known.modality.shape, known.modality.dtype) == (
                member.extension,
                member.modality.shape,
                member.modality.dtype,
            )
            modalities[name] = (known if known is not None and same else member, extensions)
        return modalities

    def table(self, described: Mapping[str, Factor], members: Mapping[str, Any]) -> FactorTable:
        """Factors of all samples."""
        own = _OWN | {f"{name}.{column}" for name in members for column in Spans._fields}
        rows, names = self.rows, [shard.name for shard in self.shards]
        return self.columns.table(self._spool, rows, names, described, own.__contains__)

    def parts(self, table: FactorTable, members: Mapping[str, tuple[Member, tuple[str, ...]]]) -> Iterator[Any]:
        """Rows of the index, many at a time: each part has the levels of all."""
        import pyarrow as pa

        held: list[tuple[int, Any]] = []
        start = 0
        for index, (number, batch) in enumerate(zip(self._numbers, self._spool, strict=True)):
            held.append((number, batch))
            rows = sum(len(batch) for _, batch in held)
            if rows < GROUP and index < len(self._numbers) - 1:
                continue
            keys = pa.concat_arrays([batch.column("key") for _, batch in held])
            shard = np.repeat([number for number, _ in held], [len(batch) for _, batch in held])
            spans = {
                name: Spans.join(_spans(batch, extensions) for _, batch in held)
                for name, (_, extensions) in members.items()
            }
            yield part(table.select(np.arange(start, start + rows)), keys, shard, spans)
            start, held = start + rows, []

    def _is_kept(self, extension: str) -> bool:
        return is_fetched(extension) or self._is_view(extension)

    def _is_view(self, extension: str) -> bool:
        return self._views and extension == VIEW.extension

    def _heads(self, extensions: tuple[str, ...]) -> dict[str, bytes]:
        """What some members begin with, evenly spread over all that a modality has, by what messages call them."""
        counts = np.array([int((_spans(batch, extensions).offset >= 0).sum()) for batch in self._spool], np.int64)
        ends = np.cumsum(counts)
        ranks = np.unique(np.linspace(0, ends[-1] - 1, min(LOOKED_AT, int(ends[-1]))).astype(np.int64))
        wanted, labels = [], []
        for index in np.unique(np.searchsorted(ends, ranks, side="right")).tolist():
            batch, shard = self._spool[index], self.shards[self._numbers[index]]
            offset, size, _ = _spans(batch, extensions)
            there = np.flatnonzero(offset >= 0)
            first = int(ends[index] - counts[index])
            for row in there[ranks[(ranks >= first) & (ranks < ends[index])] - first].tolist():
                most = HEAD.get(extensions[0].rpartition(".")[2], _PICTURE)
                start = int(offset[row])
                wanted.append(Range(shard.name, start, start + min(int(size[row]), most), shard.size))
                labels.append(f"{member_name(batch.column('key')[row].as_py(), extensions[0])} in {shard.name}")
        return dict(zip(labels, self._store.ranges(wanted), strict=True))


def _spans(batch: Any, extensions: Sequence[str]) -> Spans:
    """Where the members of a modality lie in a tar; of several kinds a sample has one."""
    rows = len(batch)
    spans = Spans.absent(rows)
    for extension in extensions:
        if f"offset {extension}" in batch.schema.names:
            arrays = [batch.column(f"{column} {extension}").to_numpy() for column in Spans._fields]
            there = arrays[0] >= 0
            spans.offset[there], spans.size[there], spans.check[there] = (array[there] for array in arrays)
    return spans
