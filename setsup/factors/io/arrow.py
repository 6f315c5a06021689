"""Factor tables as Arrow: a file that is mapped into memory, and ``pyarrow.Table`` and back.

Convention
----------
The file is an uncompressed Arrow IPC file of one record batch with the columns as the table stores them, plain codes
and float32, and with the factors as JSON in the schema's metadata; a grid has no columns. A ``pyarrow.Table`` has
dictionary-encoded levels with nulls where a value is unknown, and the same metadata, so that it comes back unchanged.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_mapping
from setsup.errors import DataError, FactorError, SetsupError, listed, short
from setsup.factors.column_storage import code_dtype
from setsup.factors.columns import FactorColumns
from setsup.factors.factor import Factor, Kind, check_factors, level_array
from setsup.factors.io.distinct import is_usable
from setsup.factors.io.infer import from_blocks
from setsup.factors.io.nested import flat_batch, flat_schema
from setsup.files import written
from setsup.files.archives.listing import as_numpy
from setsup.files.mapped import MappedFile

__all__ = ["describe_schema", "from_arrow", "open_table", "save_table", "say_left_out", "to_arrow"]

_log = logging.getLogger("setsup")
_KEY = b"setsup"
_FORMAT = 1


def save_table(table: FactorColumns, path: Path) -> None:
    """Write a table to an Arrow file that :func:`open_table` maps into memory."""
    import pyarrow as pa

    if not path.name:
        raise DataError(f"{path} is a folder; pass the path of a file to save the table to")
    names = [] if table.is_grid else list(table.names)
    arrays = [pa.array(table.column(name)) for name in names]
    about = {
        "format": _FORMAT,
        "rows": len(table),
        "grid": table.is_grid,
        "fingerprint": table.fingerprint,
        "factors": [factor.to_dict() for factor in table.factors],
    }
    fields = [pa.field(name, array.type, nullable=False) for name, array in zip(names, arrays, strict=True)]
    schema = pa.schema(fields, metadata={_KEY: json.dumps(about)})
    with written(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def open_table(path: Path) -> FactorColumns:
    """Table of a file written by :func:`save_table`; its columns are views of the file, read when they are used."""
    path = Path(path)
    with _explain_damage(path):
        mapped = MappedFile.open(path)
        batch, about = _batch(mapped)
        factors = _factors(about)
        columns = None if about["grid"] else {factor.name: _view(batch, factor, mapped) for factor in factors}
        if columns is None and batch.num_columns:
            raise ValueError("it contains columns, but is declared as a grid")
        table = FactorColumns(factors, columns)
        if len(table) != about["rows"]:
            raise ValueError(f"it has {len(table):,} rows, but declares {about['rows']!r}")
        fingerprint = about["fingerprint"]
        if not isinstance(fingerprint, str) or len(bytes.fromhex(fingerprint)) != 16:
            raise ValueError(f"its fingerprint is invalid: {fingerprint!r}")
    # the digest of what was written: computing it again would read the whole file
    table.__dict__["fingerprint"] = fingerprint
    table.__dict__["path"] = path.absolute()
    return table


def to_arrow(table: FactorColumns) -> Any:
    """Give a ``pyarrow.Table``: levels dictionary-encoded, unknown values null, the factors in its metadata."""
    import pyarrow as pa

    arrays = []
    for factor in table.factors:
        column = table.column(factor.name)
        if factor.levels is None:
            arrays.append(pa.array(column, mask=np.isnan(column)))
            continue
        unknown = column == np.iinfo(column.dtype).max
        codes = np.where(unknown, 0, column).astype(np.int32 if len(factor) < 2**31 else np.int64)
        try:
            levels = pa.array(level_array(factor.levels) if type(factor.levels[0]) is int else list(factor.levels))
        except (pa.ArrowException, OverflowError) as error:
            raise FactorError(
                f"Arrow has no type for the levels of factor {factor.name!r} ({error}); use levels of another type"
            ) from None
        arrays.append(pa.DictionaryArray.from_arrays(pa.array(codes, mask=unknown), levels))
    about = {"format": _FORMAT, "factors": [factor.to_dict() for factor in table.factors]}
    return pa.table(arrays, names=list(table.names)).replace_schema_metadata({_KEY: json.dumps(about)})


def from_arrow(
    table: Any, factors: Sequence[Factor] = (), kinds: Mapping[str, Kind | str] | None = None
) -> FactorColumns:
    """Table from a ``pyarrow.Table``.

    Structs become a column for each field; binary columns and lists are left out. Factors are taken from ``factors``,
    else from the metadata that :func:`to_arrow` writes, else inferred.
    """
    import pyarrow as pa

    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise FactorError(f"from_arrow expects a pyarrow.Table or RecordBatch, not {type(table).__name__}")
    schema = flat_schema(table.schema)
    names, known = describe_schema(schema, factors, {} if kinds is None else kinds)
    say_left_out("the Arrow table", {field.name: field.type for field in schema if field.name not in names})
    whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    return from_blocks(lambda: (flat_batch(batch, names) for batch in whole.to_batches()), names, known, kinds)


def describe_schema(
    schema: Any, factors: Sequence[Factor], kinds: Mapping[str, Kind | str]
) -> tuple[list[str], list[Factor]]:
    """Columns of a flat Arrow schema that can be factors, and the factors that are given or in its metadata."""
    names = [field.name for field in schema if is_usable(field.type)]
    declared = {factor.name for factor in check_factors(factors)} | check_mapping(kinds, "kinds", FactorError).keys()
    try:
        about = json.loads((schema.metadata or {}).get(_KEY, b'{"format": 1, "factors": []}'))
        stored = _factors(about)
    except (ValueError, KeyError, TypeError, RecursionError, FactorError) as error:
        raise FactorError(
            f"the metadata {_KEY.decode()!r} of the Arrow table does not describe factors: {error}"
        ) from None
    return names, [*factors, *(factor for factor in stored if factor.name in names and factor.name not in declared)]


def say_left_out(source: object, columns: Mapping[str, object]) -> None:
    """Log which columns of a source are no factors, and what they hold."""
    if columns:
        named = listed(f"{short(name)} ({short(str(kind))})" for name, kind in columns.items())
        _log.warning("%s is opened without %s", source, named)


# -- the file ----------------------------------------------------------------------------------------------------------


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with a file."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; write a table with table.save(path)") from None
    except (
        SetsupError,
        pa.ArrowException,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
    ) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"{path} is not a factor table written by setsup, or it is damaged ({reason}); write it again with "
            "table.save(path), and read other files with FactorTable.from_arrow, from_parquet or from_csv"
        ) from None


def _batch(mapped: MappedFile) -> tuple[Any, dict[str, Any]]:
    import pyarrow as pa

    reader = pa.ipc.open_file(pa.py_buffer(mapped))
    about = json.loads((reader.schema.metadata or {})[_KEY])
    if not isinstance(about, dict) or about["format"] != _FORMAT or not isinstance(about["rows"], int):
        raise ValueError(f"its format is not {_FORMAT}")
    if reader.num_record_batches != 1:
        raise ValueError(f"it contains {reader.num_record_batches} record batches, not one")
    batch = reader.get_batch(0)
    batch.validate(full=True)
    return batch, about


def _factors(about: Any) -> list[Factor]:
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT}")
    return [Factor.from_dict(data) for data in about["factors"]]


def _view(batch: Any, factor: Factor, mapped: MappedFile) -> Array:
    import pyarrow as pa

    array = batch.column(factor.name)
    dtype = np.dtype(np.float32) if factor.continuous else code_dtype(len(factor))
    if array.null_count or array.type != pa.from_numpy_dtype(dtype):
        raise ValueError(f"column {factor.name!r} has the type {array.type}, not {dtype}")
    values = as_numpy(array)
    # a view of the map in place of one of Arrow's, so that it can be told before a read whether the file was cut off
    offset = _address(values) - _address(np.frombuffer(mapped, np.uint8))
    inside = len(values) and 0 <= offset <= len(mapped) - values.nbytes  # else nothing of it is mapped
    return np.frombuffer(mapped, dtype, len(values), offset) if inside else values


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
