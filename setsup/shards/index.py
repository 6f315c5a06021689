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
    int64: row of the data set that was written. Tars that others wrote have none.
``<modality>.offset``, ``<modality>.size``, ``<modality>.check``
    int64, int64, uint32: the byte of the tar at which the content of the member begins, its bytes, and what to check
    them by. The offset is −1 where the sample has no such member.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.datasets.cached_arrays import cached_array
from setsup.errors import DataError, FactorError
from setsup.factors import FactorTable
from setsup.factors.stored import check_rows
from setsup.files import need_readable, written
from setsup.shards.layout import Catalogue

__all__ = ["GROUP", "KEY", "Places", "Spans", "open_index", "part", "write_index"]

KEY, SHARD, SOURCE_ROW = "__key__", "__shard__", "__source_row__"

GROUP = 1 << 17
"""Rows of a row group."""

_COLUMNS = {"offset": np.dtype(np.int64), "size": np.dtype(np.int64), "check": np.dtype(np.uint32)}
_MEND = "make the index anew with `setsup index`"


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

    def keys(self, rows: npt.ArrayLike) -> list[str]:
        """Keys of samples."""
        return _column(self.path, KEY, check_rows(rows, len(self.shard)).reshape(-1))

    def source_rows(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Rows of the data set that was written.

        Raises
        ------
        DataError
            The shards were written by others.

        """
        index = check_rows(rows, len(self.shard))
        return np.array(_column(self.path, SOURCE_ROW, index.reshape(-1)), np.int64).reshape(index.shape)


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
        Rows of the data set that is written.

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
    for name, found in spans.items():
        for column, dtype in _COLUMNS.items():
            columns[f"{name}.{column}"] = pa.array(np.asarray(getattr(found, column), dtype))
    for name, column in columns.items():
        if name in factors:
            raise FactorError(f"the index of shards has a column {name!r} of its own; rename that factor")
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

    rows, writer, held = 0, None, None
    with written(path) as fresh:
        try:
            for one in parts:
                writer = writer or pq.ParquetWriter(fresh, one.schema, compression="zstd")
                held = one if held is None else pa.concat_tables([held, one])
                while len(held) >= GROUP:
                    writer.write_table(held.slice(0, GROUP))
                    held = held.slice(GROUP)
                rows += len(one)
            if writer is None or held is None:
                raise DataError(f"{path} would be the index of no rows")
            if len(held) or not rows:
                writer.write_table(held)
        finally:
            if writer is not None:
                writer.close()
    return rows


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
    wanted = {SHARD: np.dtype(np.uint32)}
    wanted |= {f"{name}.{column}": dtype for name in catalogue.members for column, dtype in _COLUMNS.items()}
    try:
        with pq.ParquetFile(path) as file:
            rows, schema = file.metadata.num_rows, file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is damaged: {' '.join(str(error).split())[:200]}; {_MEND}") from None
    if rows != catalogue.rows or path.stat().st_size != catalogue.index.size:
        raise DataError(
            f"{path} has {rows:,} rows and {path.stat().st_size:,} bytes, not the {catalogue.rows:,} rows and "
            f"{catalogue.index.size:,} bytes that the catalogue tells: it is the index of other shards; {_MEND}"
        )
    for name, dtype in wanted.items():
        if name not in schema.names or schema.field(name).type != pa.from_numpy_dtype(dtype):
            raise DataError(f"{path} has no column {name!r} of {dtype}; {_MEND}")
    factors = FactorTable.from_parquet(path, catalogue.factors, columns=[one.name for one in catalogue.factors])
    state = (catalogue.index.digest, rows)

    def column(name: str) -> npt.NDArray[Any]:
        return cached_array(name, (state, name), wanted[name], rows, lambda: _read(path, name, wanted[name]))

    shard = column(SHARD)
    spans = {name: Spans(*(column(f"{name}.{one}") for one in _COLUMNS)) for name in catalogue.members}
    _check(path, shard, spans, catalogue)
    return factors, Places(path, shard, spans)


def _check(path: Path, shard: npt.NDArray[Any], spans: Mapping[str, Spans], catalogue: Catalogue) -> None:
    """Refuse places outside the shards, before anything is read there."""
    if len(shard) and int(shard.max()) >= len(catalogue.shards):
        raise DataError(f"{path} tells of more shards than the {len(catalogue.shards):,} of the catalogue; {_MEND}")
    sizes = np.array([one.size for one in catalogue.shards], np.int64)
    for name, (offset, size, _) in spans.items():
        there = offset >= 0
        beyond = there & ((size < 0) | (offset > sizes[shard] - size))
        if beyond.any() or (offset < -1).any():
            row = int(np.argmax(beyond | (offset < -1)))
            raise DataError(
                f"{path}: the {name!r} of row {row:,} would lie beyond the end of "
                f"{catalogue.shards[shard[row]].name}; {_MEND}"
            )


def _read(path: Path, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        column = pq.read_table(path, columns=[name], memory_map=True).column(name)
        if column.null_count:
            raise DataError(f"{path} has no {name} in {column.null_count:,} rows; {_MEND}")
        return np.ascontiguousarray(column.to_numpy(), dtype)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is damaged: {' '.join(str(error).split())[:200]}; {_MEND}") from None


def _column(path: Path, name: str, rows: npt.NDArray[np.int64]) -> list[Any]:
    """Values of a column in some rows; only their row groups are read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if name not in file.schema_arrow.names:
                raise DataError(f"{path} does not tell of {name}: the shards were written by another program")
            groups, inverse = np.unique(rows // GROUP, return_inverse=True)
            blocks = [file.read_row_group(int(group), columns=[name]).column(name) for group in groups]
            return [blocks[place][int(row) % GROUP].as_py() for row, place in zip(rows, inverse, strict=True)]
    except (pa.ArrowException, OSError, IndexError) as error:
        raise DataError(f"{path} is damaged: {' '.join(str(error).split())[:200]}; {_MEND}") from None
