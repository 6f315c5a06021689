"""One shard of a set that is being written: its tar, and the part of the index that tells that the tar is whole.

Convention
----------
``.setsup/plan.json`` says what is being written, ``.setsup/parts/00000.parquet`` where the members of a finished shard
lie; it is written after its tar. None of them is left when the set is finished.
"""

import io
import json
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError
from setsup.files import disk_errors
from setsup.shards.index import Spans
from setsup.shards.layout import PLAN, VIEW, WORK, Shard
from setsup.shards.stores.store import Store
from setsup.shards.views import encode_views
from setsup.shards.writing.encoding import Labels, encoded
from setsup.shards.writing.plan import Order, ShardPlan, keys
from setsup.shards.writing.tar import Tar, checks

__all__ = ["PARTS", "Piece", "WriteShard", "part_name", "read_part", "scratch"]


PARTS = f"{WORK}/parts"

_BLOCK = 4 << 20  # bytes of arrays that are held at once, roughly
_MOST = 1024  # their rows
_LARGEST_PART = 1 << 33
_KEY = b"setsup"


class Piece(NamedTuple):
    """A shard to be written: its number, its places in the order, and its rows where these cannot be computed.

    Of a finished set that has lost it, also what it was and is to be again.
    """

    number: int
    start: int
    stop: int
    rows: Array | None
    expected: Shard | None = None


class WriteShard:
    """Writes shards, in whichever process."""

    def __init__(self, dataset: Dataset, store: Store, plan: ShardPlan, row_bytes: float) -> None:
        self._dataset, self._store, self._plan = dataset, store, plan
        self._block = int(np.clip(_BLOCK // max(row_bytes, 1), 1, _MOST))
        arrays = {name: member.modality.shape for name, member in plan.members.items() if member != VIEW}
        self._whole = [name for name, shape in arrays.items() if None not in shape]
        self._ragged = [name for name, shape in arrays.items() if None in shape]
        self._labels: Labels | None = None

    def __call__(self, piece: Piece) -> None:
        """Write a shard, unless it is there, or another job has finished them all."""
        store, plan, expected = self._store, self._plan, piece.expected
        if expected is None and (store.size(part_name(piece.number)) is not None or store.size(PLAN) is None):
            return
        name = plan.shard_name(piece.number)
        with scratch(store) as folder, disk_errors(folder / name if store.folder is None else store.folder / name):
            path = folder / f"{name}-{secrets.token_hex(6)}"
            try:
                with path.open("xb") as file:
                    tar = Tar(file)
                    spans = self._write(tar, piece)
                    tar.end()
                shard = Shard(name, piece.stop - piece.start, tar.size, tar.digest)
                if expected is not None and shard != expected:
                    raise DataError(
                        f"{store.url}/{name} is missing and cannot be written again, because the rows of the dataset "
                        f"or their compression have changed: the new file would have {shard.size:,} bytes, not "
                        f"{expected.size:,} bytes with SHA-256 {expected.digest:.12}…; fetch that file again, or "
                        "remove all shards and write them again"
                    )
                store.put(name, path)
            finally:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
        if expected is None:
            store.put_bytes(part_name(piece.number), _part(spans, shard))

    def _write(self, tar: Tar, piece: Piece) -> dict[str, Spans]:
        plan, table = self._plan, self._dataset.factors
        if self._labels is None:
            self._labels = Labels(table.factors)
        rows = piece.rows
        if rows is None:
            rows = Order(plan.order, plan.rows, plan.seed).at(piece.start, piece.stop)
        extensions = [*(member.extension for member in plan.members.values()), "json"]
        spans: dict[str, list[Spans]] = {name: [] for name in plan.members}
        for at in range(0, len(rows), self._block):
            some = rows[at : at + self._block].astype(np.int64)
            arrays = self._fetch(some)
            columns = [
                encode_views(self._dataset, some) if member == VIEW else encoded(arrays[name], member)
                for name, member in plan.members.items()
            ]
            start = piece.start + at
            names = [f"{key}.{end}" for key in keys(plan.rows, start, start + len(some)) for end in extensions]
            samples = zip(*columns, self._labels.of(table, some), strict=True)
            starts = tar.add(names, [content for sample in samples for content in sample])
            for column_number, (name, column) in enumerate(zip(spans, columns, strict=True)):
                sizes = np.fromiter(map(len, column), np.int64, len(column))
                spans[name].append(Spans(starts[column_number :: len(extensions)], sizes, checks(column)))
        return {name: Spans.join(parts) for name, parts in spans.items()}

    def _fetch(self, rows: Rows) -> Mapping[str, Array | Sequence[Array]]:
        fetched: dict[str, Array | Sequence[Array]] = (
            dict(self._dataset.fetch(rows, self._whole)) if self._whole else {}
        )
        if self._ragged:
            each = [self._dataset.fetch(row, self._ragged) for row in rows.tolist()]
            fetched |= {name: [arrays[name] for arrays in each] for name in self._ragged}
        return fetched

    def __getstate__(self) -> dict[str, Any]:
        """Each process makes the texts of the levels itself."""
        return {**self.__dict__, "_labels": None}


@contextmanager
def scratch(store: Store) -> Iterator[Path]:
    """Folder for files that are not finished: where a store is a folder, on its disk."""
    if store.folder is not None:
        yield store.folder / WORK
        return
    with tempfile.TemporaryDirectory(prefix="setsup-") as folder:
        yield Path(folder)


def part_name(number: int) -> str:
    """Name of the part of the index for one shard."""
    return f"{PARTS}/{number:05}.parquet"


def _part(spans: Mapping[str, Spans], shard: Shard) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"{name}.{field}": getattr(column, field) for name, column in spans.items() for field in Spans._fields}
    about = json.dumps([shard.name, shard.rows, shard.size, shard.digest])
    stream = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata({_KEY: about}), stream)
    return stream.getvalue()


def read_part(store: Store, plan: ShardPlan, number: int) -> tuple[Shard, dict[str, Spans]]:
    """Read the part of the index for one shard."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, rows = part_name(number), plan.cuts[number + 1] - plan.cuts[number]
    content = store.read(name, _LARGEST_PART)
    try:
        table = pq.read_table(pa.BufferReader(content))
        shard = Shard(*json.loads((table.schema.metadata or {})[_KEY]))
        spans = {
            name: Spans(*(table.column(f"{name}.{field}").to_numpy() for field in Spans._fields))
            for name in plan.members
        }
        if (shard.name, shard.rows, len(table)) != (plan.shard_name(number), rows, rows):
            raise ValueError("it belongs to another shard")
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{store.url}/{name} is damaged ({' '.join(str(error).split())[:200]}); remove it and run the same command "
            "again to write its shard again"
        ) from None
    return shard, spans
