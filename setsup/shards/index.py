"""The index of a set of shards: a row a sample, with its factors and where its members lie.

Convention
----------
Parquet, in row groups of :data:`GROUP` rows, so that a part of a large index can be read alone. Beside a column for
each factor (levels as a dictionary, unknown values null) it has

``__key__``
    Text: what the names of the sample's members begin with.
``__shard__``
    uint32: number of its tar in the catalogue; it never falls from one row to the next.
``__source_row__``
    int64: row of the dataset that was written. Tars that others wrote have none.
``<modality>.offset``, ``<modality>.size``, ``<modality>.check``
    int64, int64, uint32: the byte of the tar at which the content of the member begins, its bytes, and what to check
    them by. The offset is −1 where the sample has no such member.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.datasets.cached_arrays import cached_array, cached_table
from setsup.errors import DamagedFile, DataError, FactorError, SetsupError
from setsup.factors import FactorTable
from setsup.factors.column_storage import check_rows
from setsup.factors.io.frames import LARGE
from setsup.files import cache_folder, content_digest, need_readable, written
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.tar_headers import BLOCK
from setsup.files.mapped import check_mapped
from setsup.shards.layout import Catalogue

__all__ = ["GROUP", "KEY", "SOURCE_ROW", "Places", "Spans", "open_index", "part", "write_index"]

KEY, SHARD, SOURCE_ROW = "__key__", "__shard__", "__source_row__"

GROUP = 1 << 17
"""Rows of a row group."""

_COLUMNS: dict[str, np.dtype[Any]] = {
    "offset": np.dtype(np.int64),
    "size": np.dtype(np.int64),
    "check": np.dtype(np.uint32),
}
_FIX = "rebuild the index with `setsup index`"


class Spans(NamedTuple):
    """Where the members of one modality lie, for each sample.

    Attributes
    ----------
    offset : (n,) int64, bytes
        In the sample's tar; −1 where it has no such member.
    size : (n,) int64, bytes
        Of the content.
    check : (n,) uint32
        CRC-32C of the content, or the checksum field of the tar's header: as the catalogue says.

    """

    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    check: npt.NDArray[np.uint32]

    @classmethod
    def absent(cls, rows: int) -> "Spans":
        """Spans of samples without members."""
        return cls(np.full(rows, -1, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.uint32))

    @classmethod
    def join(cls, parts: Iterable["Spans"]) -> "Spans":
        """Spans of parts, one after the other."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True)
class Places:
    """Where the samples of a set of shards lie.

    Parameters
    ----------
    path : Path
        The index, from which keys are read.
    shard : (n,) uint32
        Number of each sample's tar.
    spans : mapping of str to Spans
        By the names of the modalities.

    """

    path: Path
    shard: npt.NDArray[np.uint32]
    spans: Mapping[str, Spans]

    def check_mapped(self) -> None:
        """Raise DataError where a file that an array is mapped from was cut off."""
        check_mapped(self.shard)
        for span in self.spans.values():
            for array in span:
                check_mapped(array)

    def keys(self, rows: npt.ArrayLike) -> list[str]:
        """Keys of samples."""
        return _column(self.path, KEY, check_rows(rows, len(self.shard)).reshape(-1), ("string", "large_string"))

    def source_rows(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Rows of the dataset that was written.

        Raises
        ------
        DataError
            The shards were written by others.

        """
        index = check_rows(rows, len(self.shard))
        values = _column(self.path, SOURCE_ROW, index.reshape(-1), ("int64",))
        return np.array(values, np.int64).reshape(index.shape)


def part(
    factors: FactorTable,
    keys: Sequence[str],
    shard: npt.ArrayLike,
    spans: Mapping[str, Spans],
    source_rows: npt.ArrayLike | None = None,
) -> Any:
    """Some rows of an index, as a ``pyarrow.Table``.

    Parameters
    ----------
    factors : FactorTable
        Of these rows. All parts of an index have the same factors with the same levels.
    keys : sequence of str
        One a row.
    shard : int or (n,) integer array
        Number of the tar.
    spans : mapping of str to Spans
        By the names of the modalities.
    source_rows : (n,) integer array, optional
        Rows of the dataset that is written.

    Raises
    ------
    FactorError
        A factor has a name that the index uses itself.

    """
    import pyarrow as pa

    table = factors.to_arrow()
    columns: dict[str, Any] = {
        KEY: pa.array(keys, pa.large_string()),
        SHARD: pa.array(np.broadcast_to(np.asarray(shard, np.uint32), len(factors)), pa.uint32()),
    }
    if source_rows is not None:
        columns[SOURCE_ROW] = pa.array(np.asarray(source_rows, np.int64))
    for name, span in spans.items():
        for column, dtype in _COLUMNS.items():
            columns[f"{name}.{column}"] = pa.array(np.asarray(getattr(span, column), dtype))
    for name, column in columns.items():
        if name in factors:
            raise FactorError(
                f"the factor name {name!r} is reserved for a column of the index of shards; rename the factor"
            )
        table = table.append_column(name, column)
    return table


def write_index(path: Path, parts: Iterable[Any]) -> int:
    """Write an index, of which only some row groups are held at once.

    Parameters
    ----------
    path : Path
        The file.
    parts : iterable of pyarrow.Table
        As :func:`part` gives them, in order.

    Returns
    -------
    int
        Its rows.

    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, writer = 0, None
    held: list[Any] = []
    waiting = 0  # rows of these
    with written(path) as fresh:
        try:
            for piece in parts:
                writer = writer or pq.ParquetWriter(fresh, piece.schema, compression="zstd", **_encodings(piece.schema))
                held.append(piece)
                rows, waiting = rows + len(piece), waiting + len(piece)
                if waiting >= GROUP:  # joined once: there may be as many parts as rows
                    table = pa.concat_tables(held)
                    for start in range(0, waiting - GROUP + 1, GROUP):
                        writer.write_table(table.slice(start, GROUP))
                    waiting %= GROUP
                    held = [table.slice(len(table) - waiting)]
            if writer is None:
                raise DataError(f"{path} cannot be written: there are no rows to index")
            if waiting or not rows:
                writer.write_table(pa.concat_tables(held))
        finally:
            if writer is not None:
                writer.close()
    return rows


def _encodings(schema: Any) -> dict[str, Any]:
    """How columns are stored: half the bytes, and a third of the time to read, of what Parquet does by itself."""
    import pyarrow as pa

    repeated = [field.name for field in schema if pa.types.is_dictionary(field.type) or field.name == SHARD]
    delta = {"int64": "DELTA_BINARY_PACKED", "large_string": "DELTA_BYTE_ARRAY"}
    plain = [field for field in schema if field.name not in repeated]
    encodings = {field.name: delta.get(str(field.type), "PLAIN") for field in plain}
    return {"use_dictionary": repeated, "column_encoding": encodings}


def open_index(path: Path, catalogue: Catalogue) -> tuple[FactorTable, Places]:
    """Open an index; what is large is converted once and mapped from the cache folder then.

    Parameters
    ----------
    path : Path
        The file, or a local copy of it.
    catalogue : Catalogue
        What it must hold.

    Raises
    ------
    DataError
        When it is missing, damaged, or the index of other shards.

    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    need_readable(path, "the index of a set of shards")
    wanted: dict[str, np.dtype[Any]] = {SHARD: np.dtype(np.uint32)}
    wanted |= {f"{name}.{column}": dtype for name in catalogue.members for column, dtype in _COLUMNS.items()}
    with _readable(path), pq.ParquetFile(path) as file:
        rows, schema = file.metadata.num_rows, file.schema_arrow
    if rows != catalogue.rows or path.stat().st_size != catalogue.index.size:
        raise DamagedFile(
            f"{path} has {rows:,} rows and {path.stat().st_size:,} bytes, but the catalogue specifies "
            f"{catalogue.rows:,} rows and {catalogue.index.size:,} bytes, so it is the index of other shards",
            _FIX,
        )
    _compare(path, catalogue.index.digest)
    for name, dtype in wanted.items():
        if schema.names.count(name) != 1 or schema.field(name).type != pa.from_numpy_dtype(dtype):
            raise DamagedFile(f"{path} has no column {name!r} of type {dtype}", _FIX)
    factors = _factors(path, catalogue)
    state = (catalogue.index.digest, rows)

    def column(name: str) -> npt.NDArray[Any]:
        # not under its own name, which comes from the catalogue and may lead anywhere
        return cached_array("column", (state, name), wanted[name], rows, lambda: _read(path, name, wanted[name]))

    shard = column(SHARD)
    spans = {name: Spans(*(column(f"{name}.{end}") for end in _COLUMNS)) for name in catalogue.members}
    # once for each index and these shards: a look at a thousand million rows takes most of a minute
    sizes = np.array([shard.size for shard in catalogue.shards], np.int64)
    key = (state, tuple(catalogue.members), hashlib.sha256(sizes.astype("<i8").tobytes()).hexdigest())
    cached_array("inside", key, np.dtype(np.bool_), 1, lambda: _check(path, shard, spans, catalogue, sizes))
    return factors, Places(path, shard, spans)


def _factors(path: Path, catalogue: Catalogue) -> FactorTable:
    """Read the factor table; one that takes a while is kept, and mapped then by all processes."""
    described = [factor.to_dict() for factor in catalogue.factors]

    def read() -> FactorTable:
        with _readable(path):
            return FactorTable.from_parquet(
                path, catalogue.factors, columns=[factor.name for factor in catalogue.factors]
            )

    if catalogue.rows < GROUP or path.stat().st_size >= LARGE:  # of a large file it is kept anyway
        return read()
    key = hashlib.sha256(json.dumps([catalogue.index.digest, described], sort_keys=True).encode()).hexdigest()
    return cached_table(cache_folder() / "tables" / f"{key[:32]}.arrow", read)


def _compare(path: Path, digest: str) -> None:
    """Refuse an index of another content, since its columns are kept under its digest."""

    def compared() -> npt.NDArray[np.bool_]:
        if content_digest(path) != digest:
            raise DamagedFile(f"{path} is damaged, or is the index of other shards: its SHA-256 differs", _FIX)
        return np.ones(1, np.bool_)

    about = path.stat()
    state = (str(path.resolve()), about.st_size, about.st_mtime_ns, digest)
    cached_array("whole", state, np.dtype(np.bool_), 1, compared)  # once for each state of the file


def _check(
    path: Path,
    shard: npt.NDArray[Any],
    spans: Mapping[str, Spans],
    catalogue: Catalogue,
    sizes: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Refuse places outside the shards, before anything is read there; a stretch of rows at a time."""
    for start in range(0, len(shard), GROUP):
        rows = slice(start, start + GROUP)
        which = shard[rows]
        if int(which.max()) >= len(sizes):
            raise DamagedFile(f"{path} lists more shards than the {len(sizes):,} in the catalogue", _FIX)
        for name, (offset, size, _) in spans.items():
            begin, length = offset[rows], size[rows]
            # before a content there is a header at least
            inside = (begin >= BLOCK) & (length >= 0) & (begin <= sizes[which] - length)
            beyond = ~inside & (begin != -1)
            if beyond.any():
                row = int(np.argmax(beyond))
                raise DamagedFile(
                    f"{path} places the {name!r} of row {start + row:,} outside {catalogue.shards[which[row]].name}",
                    _FIX,
                )
    return np.ones(1, np.bool_)


def _read(path: Path, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A whole column, of which Parquet's own form is held a row group at a time."""
    import pyarrow.parquet as pq

    with _readable(path), pq.ParquetFile(path) as file:
        whole, there = np.empty(file.metadata.num_rows, dtype), 0
        for group in range(file.num_row_groups):
            column = file.read_row_group(group, columns=[name]).column(name)
            if column.null_count:
                raise DamagedFile(f"{path}: {name} is missing in {column.null_count:,} rows", _FIX)
            for chunk in column.chunks:
                whole[there : there + len(chunk)] = as_numpy(chunk)
                there += len(chunk)
        if there != len(whole):
            raise ValueError(f"its row groups have {there:,} rows, not {len(whole):,}")
    return whole


def _column(path: Path, name: str, rows: npt.NDArray[np.int64], kinds: Sequence[str]) -> list[Any]:
    """Values of a column of one of some types in some rows; only their row groups are read."""
    import pyarrow.parquet as pq

    with _readable(path), pq.ParquetFile(path) as file:
        if name not in file.schema_arrow.names:
            raise DataError(
                f"{path} does not contain {name}: the shards were written by another program, or the index was restored"
            )
        about = file.metadata
        ends = np.cumsum([about.row_group(group).num_rows for group in range(file.num_row_groups)])
        groups, inverse = np.unique(np.searchsorted(ends, rows, "right"), return_inverse=True)
        blocks = [file.read_row_group(int(group), columns=[name]).column(name) for group in groups]
        if any(block.null_count or str(block.type) not in kinds for block in blocks):
            raise DamagedFile(f"{path}: the column {name!r} must be {kinds[0]} without missing values", _FIX)
        starts = (ends[groups] - [len(block) for block in blocks])[inverse]
        return [
            blocks[block][row - start].as_py()
            for row, start, block in zip(rows.tolist(), starts.tolist(), inverse.tolist(), strict=True)
        ]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say in one sentence that a file is damaged: Arrow's readers raise whatever they come across."""
    try:
        yield
    except SetsupError:
        raise
    except Exception as error:
        raise DamagedFile(f"{path} is damaged: {' '.join(str(error).split())[:200]}", _FIX) from None
