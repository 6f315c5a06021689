"""Tables in files of several formats: their columns as Arrow blocks, bounded in memory."""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setsup.errors import DataError, FactorError, SetsupError
from setsup.factors.io.csv_file import CsvFile
from setsup.factors.io.distinct import is_text
from setsup.factors.io.encoding import Commas
from setsup.factors.io.json_lines import JsonLines
from setsup.factors.io.text_file import arrow_source
from setsup.files.archives.members import MemberIndex
from setsup.files.lfs import refuse_pointer
from setsup.files.limits import memory_limit

__all__ = [
    "TableFile",
    "name_table",
    "open_arrow",
    "open_csv",
    "open_json_lines",
    "open_parquet",
    "unify",
    "unpack_table",
]

_LARGEST = 1 << 32  # bytes of a table in an archive
_ROWS, _STRINGS, _IMAGES = 1 << 14, 1 << 10, 64  # rows that are read at once
_RECORDS = (2, 3)  # messages of Arrow that have values: dictionaries and record batches


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table in a file.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns that can be read; those of a CSV file are strings.
    read : callable
        From names of columns to a list of record batches.
    names : tuple of str
        All columns; of JSON lines also those that were not chosen.
    commas : str or None
        What a comma in a number of a CSV file means; None for other formats, whose strings are no numbers.

    """

    schema: Any
    read: Callable[[Sequence[str]], list[Any]]
    names: tuple[str, ...]
    commas: Commas | None = None


def open_csv(path: Path) -> TableFile:
    """Open a CSV file, whichever its delimiter."""
    import pyarrow as pa

    file = CsvFile.of(path)
    schema = pa.schema([pa.field(name, pa.string()) for name in file.names])

    def read(names: Sequence[str]) -> list[Any]:
        return _bounded(path, (batch.select(list(names)) for batch in file.blocks()))

    return TableFile(schema, read, tuple(file.names), file.commas)


def open_json_lines(path: Path, choose: Callable[[JsonLines], list[str]]) -> TableFile:
    """Open a file of one JSON object per line, and read the keys that are chosen of it."""
    import pyarrow as pa

    rows = JsonLines.of(path)
    chosen = choose(rows)
    whole = pa.Table.from_batches(unify(_bounded(path, replace(rows, names=chosen).blocks())))
    return TableFile(whole.schema, lambda names: whole.select(names).to_batches(), (*rows.names, *rows.nested))


def open_parquet(path: Path) -> TableFile:
    """Open a Parquet file; structs stay as they are."""
    import pyarrow.parquet as pq

    refuse_pointer(path)
    with arrow_source(path) as source, pq.ParquetFile(source) as file:
        schema = file.schema_arrow
    rows = {field.name: _rows(field) for field in schema}
    # a string that is stored once and repeats in every row stays so until its size is known
    texts = [field.name for field in schema if is_text(field.type)]

    def read_as(names: Sequence[str], repeated: list[str]) -> list[Any]:
        most = min((rows[name] for name in names if name in rows and name not in repeated), default=_ROWS)
        with arrow_source(path) as source, pq.ParquetFile(source, read_dictionary=repeated) as file:
            return _bounded(path, file.iter_batches(most, columns=list(names)))

    def read(names: Sequence[str]) -> list[Any]:
        try:
            return read_as(names, texts)
        except OSError as error:
            if "Not yet implemented" not in str(error):
                raise
            return read_as(names, [])  # strings coded as deltas, which Arrow does not read as dictionaries

    return TableFile(schema, read, tuple(schema.names))


def open_arrow(path: Path) -> TableFile:
    """Open a stream or file of Arrow whose buffers are not compressed: those would grow without a limit."""
    import pyarrow as pa

    with _arrow_stream(path) as stream:
        if any(_is_compressed(message.metadata) for message in pa.ipc.MessageReader.open_stream(stream)):
            raise DataError(
                f"{path} has compressed buffers, which setsup does not read; write it without compression, or as "
                "Parquet"
            )
    with _arrow_stream(path) as stream:
        schema = pa.ipc.open_stream(stream).schema

    def read(names: Sequence[str]) -> list[Any]:
        with _arrow_stream(path) as stream:
            return _bounded(path, (batch.select(list(names)) for batch in pa.ipc.open_stream(stream)))

    return TableFile(schema, read, tuple(schema.names))


def unify(batches: Sequence[Any]) -> list[Any]:
    """Batches of the same columns with one type for each, where one without values says none."""
    import pyarrow as pa

    if not batches:
        return []
    plain = [pa.schema([pa.field(one.name, _plain_type(one.type)) for one in batch.schema]) for batch in batches]
    schema = pa.unify_schemas(plain, promote_options="permissive")
    return [batch.cast(schema) for batch in batches]


@contextmanager
def unpack_table(members: MemberIndex, place: int) -> Iterator[Path]:
    """Path of a file of a folder or archive, unpacked for a while where it is in an archive."""
    path = members.path(place)
    if path is not None:
        yield path
        return
    name = members.names[place].as_py().rpartition("/")[2]
    limit = min(_LARGEST, memory_limit(members.source.stat().st_size))
    with TemporaryDirectory(prefix="setsup-") as folder:
        unpacked = Path(folder, name)
        unpacked.write_bytes(members.read(place, limit))
        yield unpacked


@contextmanager
def name_table(path: Path | None, label: str) -> Iterator[None]:
    """Errors about the content of a table name it; Arrow's readers raise whatever they come across."""
    try:
        yield
    except FactorError as error:
        raise DataError(f"{label}: {error}") from None
    except DataError as error:
        raise type(error)(*(str(one).replace(str(path or label), label) for one in error.args)) from None
    except SetsupError:
        raise
    except Exception as error:
        raise DataError(f"{label} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _bounded(path: Path, batches: Iterable[Any]) -> list[Any]:
    """Batches of a file, of which a few bytes may hold any number of equal rows."""
    limit, total, kept = memory_limit(path.stat().st_size), 0, []
    for batch in batches:
        total += sum(map(_size, batch.columns))
        if total > limit:
            raise DataError(f"{path}: its columns need more memory than the limit of {limit:,} bytes; split the table")
        kept.append(batch)
    return kept


def _size(column: Any) -> int:
    """Bytes of the values of a column, and one for each row: an array of nulls has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
        return len(column) + (pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)
    return len(column) + int(column.nbytes)


def _rows(field: Any) -> int:
    """Rows of a column that are read before their size is known."""
    import pyarrow as pa

    kind = field.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_struct(kind):
        return _IMAGES
    return _STRINGS if is_text(kind) else _ROWS


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


@contextmanager
def _arrow_stream(path: Path) -> Iterator[Any]:
    """A file mapped from where its stream begins: a file of Arrow is one behind eight bytes, with an index after it."""
    import pyarrow as pa

    with arrow_source(path) as source, pa.memory_map(str(source)) if isinstance(source, Path) else source as file:
        file.seek(8 if file.read(6) == b"ARROW1" else 0)
        yield file


def _is_compressed(metadata: Any) -> bool:
    """Whether a message of Arrow has compressed buffers: the field ``compression`` of its ``RecordBatch``."""
    buffer = memoryview(metadata)
    message = _follow(buffer, 0)
    kind, header = _field(buffer, message, 1), _field(buffer, message, 2)
    if not kind or not header or buffer[kind] not in _RECORDS:
        return False
    records = _follow(buffer, header)
    if buffer[kind] == _RECORDS[0]:
        records = _follow(buffer, _field(buffer, records, 1))
    return _field(buffer, records, 3) != 0


def _follow(buffer: memoryview, at: int) -> int:
    """Where an offset of a flatbuffer leads."""
    return at + int(struct.unpack_from("<I", buffer, at)[0])


def _field(buffer: memoryview, table: int, number: int) -> int:
    """Where a field of a table of a flatbuffer is, 0 where it has its default."""
    layout = table - struct.unpack_from("<i", buffer, table)[0]
    at = 4 + 2 * number
    if at >= struct.unpack_from("<H", buffer, layout)[0]:
        return 0
    offset = struct.unpack_from("<H", buffer, layout + at)[0]
    return table + int(offset) if offset else 0
