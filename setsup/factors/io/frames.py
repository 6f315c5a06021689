"""Factor tables from and to CSV, Parquet and pandas.

Convention
----------
CSV has a header line, and its fields are separated by commas, semicolons, tabs or bars, by whichever divides the first
lines evenly; spaces around a field are ignored. Fields are read as strings first, so that identifiers such as ``007``
keep their digits. Between semicolons, tabs and bars the comma of a number is decimal. JSON lines keep the types of
their values. Text is UTF-8, or UTF-16 with a byte order mark, and may be compressed by gzip. Files of at least 64 MB
are converted once, block by block, to an Arrow file in the cache folder, and mapped into memory from there; the table
is the same either way.
"""

import hashlib
import json
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows
from setsup.checks import check_mapping
from setsup.errors import DataError, FactorError, did_you_mean, imported
from setsup.factors.columns import FactorColumns
from setsup.factors.factor import Factor, Kind, check_factors
from setsup.factors.io.arrow import describe_schema, open_table, save_table, say_left_out
from setsup.factors.io.csv_file import CsvFile
from setsup.factors.io.distinct import is_usable
from setsup.factors.io.infer import Blocks, Store, arrow_array, from_blocks
from setsup.factors.io.json_lines import JsonLines
from setsup.factors.io.nested import flat_batch, flat_schema
from setsup.factors.io.text_file import arrow_source, ending
from setsup.files import cache_folder, disk_errors
from setsup.files.builds import build_once
from setsup.files.lfs import refuse_pointer
from setsup.progress import progress

__all__ = ["ROWS", "from_csv", "from_pandas", "from_parquet", "to_pandas"]

Kinds = Mapping[str, Kind | str] | None

LARGE = 64 << 20
"""Bytes from which a file is converted to a mapped one rather than read into memory."""

ROWS = 1 << 16
"""Rows of a block of Parquet or of a Hugging Face dataset."""

_WIDTH = 8  # bytes of a value, as a number has them
_MOST = 64 << 20  # bytes of texts of a block
_LONG, _RATIO = 4096, 1000  # bytes of a text that is long; bytes of them for each of a file

_VERSION = 1  # of converted files; a change of the rules of inference needs a new one
_log = logging.getLogger("setsup")


def from_csv(path: Path, factors: Sequence[Factor] = (), kinds: Kinds = None) -> FactorColumns:
    """Table from a text file: CSV with a header line, or JSON lines."""
    path = Path(path)
    if ending(path) in (".jsonl", ".ndjson"):
        with _name_file(path):
            rows = JsonLines.of(path)
        say_left_out(path, dict.fromkeys(rows.nested, "lists or objects"))
        return _of_file(path, rows.blocks, rows.names, factors, kinds, size=rows.text.size)
    file = CsvFile.of(path)
    read = partial(from_blocks, written=True, commas=file.commas)
    dialect = [] if file.delimiter == "," else [file.delimiter]
    return _of_file(path, file.blocks, file.names, factors, kinds, read, file.text.size, dialect)


def from_parquet(
    path: Path, factors: Sequence[Factor] = (), kinds: Kinds = None, columns: Sequence[str] | None = None
) -> FactorColumns:
    """Table from a Parquet file; structs become a column for each field, binary columns and lists are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)

    def blocks() -> Iterator[Any]:
        # of a long text that repeats, a block of texts would be many times as large as the file
        with arrow_source(path) as source, pq.ParquetFile(source, read_dictionary=texts) as file:
            for batch in file.iter_batches(ROWS, columns=names):
                yield flat_batch(batch, names)

    def read(packed: Blocks, *given: Any, **more: Any) -> FactorColumns:
        def unpacked() -> Iterator[Any]:
            left = _RATIO * path.stat().st_size + _MOST
            for block in packed():
                left -= _long_texts(block)
                if left < 0:
                    raise FactorError(
                        f"{path}: the long strings of one of its columns repeat so often that they do not fit into "
                        "memory; leave out that column"
                    )
                yield from _as_texts(block)

        return from_blocks(unpacked, *given, **more)

    refuse_pointer(path)
    with _name_file(path):
        with arrow_source(path) as source, pq.ParquetFile(source) as file:
            schema = file.schema_arrow
            if columns is not None:
                for name in columns:
                    if name not in schema.names:
                        raise FactorError(f"unknown column {name!r}{did_you_mean(name, schema.names)}")
                schema = pa.schema([schema.field(name) for name in columns], schema.metadata)
            schema = flat_schema(schema)
            names, known = describe_schema(schema, factors, {} if kinds is None else kinds)
            texts = [name for name in names if pa.types.is_string(schema.field(name).type)]
            # equal values take nothing in the file
            size = max(path.stat().st_size, file.metadata.num_rows * len(names) * _WIDTH)
            say_left_out(path, {field.name: field.type for field in schema if field.name not in names})
        return _of_file(path, blocks, names, known, kinds, read, size)


def from_pandas(frame: Any, factors: Sequence[Factor] = (), kinds: Kinds = None) -> FactorColumns:
    """Table from a ``pandas.DataFrame``, whose index is left out, as are columns of binary values and lists.

    Dictionaries become a column for each key.
    Categories keep their order as levels: ordinal where the categorical is ordered, else nominal.
    """
    import pyarrow as pa

    pandas = imported("pandas", "pandas")
    if not isinstance(frame, pandas.DataFrame):
        raise FactorError(f"from_pandas expects a pandas.DataFrame, not {type(frame).__name__}")
    names = [str(name) for name in frame.columns]
    if len(set(names)) != len(names):
        raise FactorError(f"column names of the frame must be unique, not {names}; rename one")
    arrays = {name: arrow_array(name, frame.iloc[:, index]) for index, name in enumerate(names)}
    arrays = _flat(arrays)
    say_left_out("the frame", {name: array.type for name, array in arrays.items() if not is_usable(array.type)})
    arrays = {name: array for name, array in arrays.items() if is_usable(array.type)}
    known = {factor.name: factor for factor in check_factors(factors)}
    kinds = None if kinds is None else check_mapping(kinds, "kinds", FactorError)
    for index, name in enumerate(names):
        dtype = frame.dtypes.iloc[index]
        if isinstance(dtype, pandas.CategoricalDtype) and name not in known and name not in (kinds or {}):
            levels = tuple(dtype.categories.tolist())
            if levels and all(isinstance(level, str | int | float) for level in levels):
                known[name] = Factor(name, Kind.ORDINAL if dtype.ordered else Kind.NOMINAL, levels)
    batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    return from_blocks(lambda: [batch], list(arrays), list(known.values()), kinds)


def _flat(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrow arrays by name, with one for each field of a struct."""
    import pyarrow as pa

    whole = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    names = flat_schema(whole.schema).names
    return dict(zip(names, flat_batch(whole, names).columns, strict=True))


def to_pandas(table: FactorColumns) -> Any:
    """Give a ``pandas.DataFrame``: categoricals, ordered for ordinal factors, and float32.

    ``FactorTable.from_pandas(frame, table.factors)`` gives the table back.
    """
    pandas = imported("pandas", "pandas")
    columns = {}
    for factor in table.factors:
        if factor.levels is None:
            columns[factor.name] = table.column(factor.name)
        else:
            ordered = factor.kind is Kind.ORDINAL
            codes = table.codes(factor.name)
            columns[factor.name] = pandas.Categorical.from_codes(codes, list(factor.levels), ordered=ordered)
    return pandas.DataFrame(columns)


def _long_texts(batch: Any) -> int:
    """Bytes that the long texts of a block would take."""
    widths = _widths(batch)
    return int(widths[widths > _LONG].sum())


def _widths(batch: Any) -> Rows:
    """Bytes of the texts of each row whose places in a dictionary are told."""
    import pyarrow as pa
    import pyarrow.compute as pc

    widths = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths = np.asarray(pc.fill_null(pc.binary_length(column.dictionary), 0), np.int64)
            widths += np.append(lengths, 0)[np.asarray(pc.fill_null(column.indices, -1), np.int64)]
    return widths


def _as_texts(batch: Any) -> Iterator[Any]:
    """Give a block with texts in place of places in a dictionary, in parts of a bounded size."""
    import pyarrow as pa

    if not any(pa.types.is_dictionary(kind) for kind in batch.schema.types):
        yield batch
        return
    ends = np.cumsum(_widths(batch))
    start = 0
    while start < batch.num_rows:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _MOST, "right")))
        part = batch.slice(start, stop - start)
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in part.columns
        ]
        yield pa.RecordBatch.from_arrays(columns, names=part.schema.names)
        start = stop


# -- files -------------------------------------------------------------------------------------------------------------


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    """Errors about the values in a file name the file."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the path") from None
    except FactorError as error:
        raise DataError(f"{path}: {error}") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _of_file(
    path: Path,
    blocks: Blocks,
    names: Sequence[str],
    factors: Sequence[Factor],
    kinds: Kinds,
    read: Callable[..., FactorColumns] = from_blocks,
    size: int | None = None,
    dialect: Sequence[str] = (),
) -> FactorColumns:
    """Table of a file: a small one by way of memory, a large one by way of a converted file.

    ``size``: bytes of its content, where it is compressed.
    """
    with _name_file(path):
        if (path.stat().st_size if size is None else size) < LARGE:
            batches = list(blocks())
            return read(lambda: batches, names, factors, kinds)

        def convert(source: Blocks, store: Store) -> FactorColumns:
            return read(source, names, factors, kinds, store=store)

        kinds_given = {name: str(kind) for name, kind in (kinds or {}).items()}
        choice = [list(names), [factor.to_dict() for factor in factors], kinds_given, *dialect]
        return _convert(path, blocks, convert, choice)


def _convert(
    path: Path, blocks: Blocks, convert: Callable[[Blocks, Store], FactorColumns], choice: list[Any]
) -> FactorColumns:
    """Table from the cache folder, converted from the file first where it is not there yet."""
    before = path.stat()
    identity = json.dumps([_VERSION, str(path.resolve()), before.st_size, before.st_mtime_ns, choice], sort_keys=True)
    target = cache_folder() / "tables" / f"{hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()}.arrow"

    def build(target: Path) -> None:
        _log.info("converting %s once, to %s", path, target)
        with disk_errors(target), tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
            with progress(None, f"converting {path.name}", "rows") as advance, _on_disk(Path(folder)) as store:

                def counted() -> Iterator[Any]:
                    for block in blocks():
                        yield block
                        advance(block.num_rows)

                table = convert(counted, store)
            if (path.stat().st_size, path.stat().st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                raise DataError(f"{path} changed while it was being converted; try again when the file is complete")
            save_table(table, target)

    return build_once(target, _find_converted, build)


def _find_converted(target: Path) -> FactorColumns | None:
    if not target.exists():
        return None
    try:
        return open_table(target)
    except DataError as error:
        _log.warning("converting again: %s", error)
        return None


@contextmanager
def _on_disk(folder: Path) -> Iterator[Store]:
    """Keep columns as files, which are written like any others (a full disk says so) and then mapped."""
    with ExitStack() as stack:
        paths: list[Path] = []

        def store(name: str, dtype: np.dtype[Any]) -> tuple[Callable[[Array], object], Callable[[], Array]]:
            path = folder / f"{len(paths)}.bin"
            paths.append(path)
            file = stack.enter_context(path.open("wb"))

            def whole() -> Array:
                file.close()
                return np.memmap(path, dtype, mode="r") if path.stat().st_size else np.empty(0, dtype=dtype)

            return lambda part: file.write(np.ascontiguousarray(part).data), whole

        yield store
