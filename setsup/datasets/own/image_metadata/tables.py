"""Tables of metadata beside images: their columns as Arrow arrays, whichever of three formats they have."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setsup.errors import DataError, FactorError, short
from setsup.factors.io.arrow import say_left_out
from setsup.factors.io.csv_file import CsvFile
from setsup.factors.io.distinct import is_text, is_usable
from setsup.factors.io.encoding import Commas
from setsup.factors.io.json_lines import JsonLines
from setsup.factors.io.nested import flat_batch, flat_schema
from setsup.factors.io.text_file import arrow_source
from setsup.files.archives.members import MemberIndex
from setsup.files.lfs import refuse_pointer

__all__ = ["FORMATS", "NAMES", "Metadata", "image_column", "read_metadata"]

FORMATS = (".csv", ".jsonl", ".parquet")
"""Endings of metadata, in the order in which they are named."""

NAMES = tuple(f"metadata{ending}" for ending in FORMATS)
"""Names of the files of metadata, in this spelling."""

_ONE, _LIST = "file_name", "file_names"
_MOST = 1 << 32  # bytes of a table in an archive


@dataclass(frozen=True, slots=True)
class Metadata:
    """A table beside images.

    Attributes
    ----------
    label : str
        What it is called in messages.
    images : dict of str to str
        The column of each modality of one image per row.
    lists : dict of str to str
        The column of each modality of several images per row.
    factors : tuple of str
        Columns of values.
    columns : pyarrow.Table
        All of these.
    commas : str
        What a comma in a number of a CSV file means.

    """

    label: str
    images: dict[str, str]
    lists: dict[str, str]
    factors: tuple[str, ...]
    columns: Any
    commas: Commas


def image_column(name: str) -> tuple[str, bool] | None:
    """Modality of a column of file names, and whether it has a list of them; None for another column.

    Examples
    --------
    >>> image_column("file_name"), image_column("mask_file_name"), image_column("file_names"), image_column("label")
    (('image', False), ('mask', False), ('images', True), None)

    """
    outer, dot, last = name.rpartition(".")  # of a field of a struct
    for end, alone, several in ((_ONE, "image", False), (_LIST, "images", True)):
        if last == end or last.endswith(f"_{end}"):
            return f"{outer}{dot}{last[: -len(end) - 1] or alone}", several
    return None


def read_metadata(members: MemberIndex, place: int) -> Metadata | None:
    """Read the table at a place; None where it names no images."""
    import pyarrow as pa

    label = members.label(place)
    with _on_disk(members, place) as path, _named(path, label):
        read = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}[path.suffix]
        schema, batches, commas = read(path)
        images = _image_columns(schema, label)
        if images is None:
            return None
        taken = {column for kind in images for column in kind.values()}
        factors = tuple(field.name for field in schema if field.name not in taken and is_usable(field.type))
        others = [field for field in schema if field.name not in taken and not is_usable(field.type)]
        if others:
            of_json = path.suffix == ".jsonl"
            say_left_out(label, {field.name: "lists or objects" if of_json else field.type for field in others})
        columns = pa.Table.from_batches(batches([*sorted(taken), *factors]))
        if not len(columns):
            raise FactorError("it has no rows; expected a row for each image")
        return Metadata(label, *images, factors, columns, commas)


def _image_columns(schema: Any, label: str) -> tuple[dict[str, str], dict[str, str]] | None:
    found: tuple[dict[str, str], dict[str, str]] = {}, {}
    for field in schema:
        told = image_column(field.name)
        inner = field.type if told is None or not told[1] else getattr(field.type, "value_type", None)
        if told is None or inner is None or not is_text(inner):
            continue
        modality, several = told
        twice = next((kind[modality] for kind in found if modality in kind), None)
        if twice is None and modality in schema.names:
            twice = modality
        if twice is not None:
            raise DataError(
                f"{label}: the columns {short(twice)!r} and {short(field.name)!r} would both be called "
                f"{short(modality)!r}; rename one"
            )
        found[several][modality] = field.name
    return found if any(found) else None


# -- formats -----------------------------------------------------------------------------------------------------------


def _csv(path: Path) -> Any:
    import pyarrow as pa

    file = CsvFile.of(path)
    schema = pa.schema([pa.field(name, pa.string()) for name in file.names])
    return schema, lambda names: [batch.select(names) for batch in file.blocks()], file.commas


def _json_lines(path: Path) -> Any:
    import pyarrow as pa

    rows = JsonLines.of(path)
    several = [name for name in rows.nested if (image_column(name) or ("", False))[1]]
    whole = pa.Table.from_batches(_alike(list(replace(rows, names=[*rows.names, *several]).blocks())))
    # others have lists, or objects in some rows only
    others = [pa.field(name, pa.list_(pa.null())) for name in rows.nested if name not in several]
    schema = pa.schema([*whole.schema, *others])
    return schema, lambda names: whole.select(names).to_batches(), "text"


def _alike(batches: list[Any]) -> list[Any]:
    """Blocks whose columns have one type, where one without values says none."""
    import pyarrow as pa

    schema = pa.unify_schemas([batch.schema for batch in batches], promote_options="permissive")
    return [batch.cast(schema) for batch in batches]


def _parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    refuse_pointer(path)
    with arrow_source(path) as source:
        file = pq.ParquetFile(source)

    def batches(names: Sequence[str]) -> list[Any]:
        with arrow_source(path) as source, pq.ParquetFile(source) as again:
            return [flat_batch(batch, names) for batch in again.iter_batches(columns=list(names))]

    return flat_schema(file.schema_arrow), batches, "text"


@contextmanager
def _on_disk(members: MemberIndex, place: int) -> Iterator[Path]:
    """Path of a file, unpacked for a while where it is in an archive."""
    path = members.path(place)
    if path is not None:
        yield path
        return
    name = members.names[place].as_py().rpartition("/")[2]
    with TemporaryDirectory(prefix="setsup-") as folder:
        unpacked = Path(folder, name)
        unpacked.write_bytes(members.read(place, _MOST))
        yield unpacked


@contextmanager
def _named(path: Path, label: str) -> Iterator[None]:
    """Errors about the content of a table name it."""
    import pyarrow as pa

    try:
        yield
    except FactorError as error:
        raise DataError(f"{label}: {error}") from None
    except DataError as error:
        raise DataError(str(error).replace(str(path), label)) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{label} cannot be read: {' '.join(str(error).split())[:200]}") from None
