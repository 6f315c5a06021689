"""Tables of metadata beside images: their columns as Arrow arrays, whichever of three formats they have."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from setsup.datasets.own.table_file import (
    TableFile,
    name_table,
    open_csv,
    open_json_lines,
    open_parquet,
    unify,
    unpack_table,
)
from setsup.errors import DataError, FactorError, short
from setsup.factors.io.arrow import say_left_out
from setsup.factors.io.distinct import is_text, is_usable
from setsup.factors.io.encoding import Commas
from setsup.factors.io.nested import flat_batch, flat_schema
from setsup.files.archives.members import MemberIndex

__all__ = ["FORMATS", "NAMES", "Metadata", "image_column", "read_metadata"]

FORMATS = (".csv", ".jsonl", ".parquet")
"""Endings of metadata, in the order in which they are named."""

NAMES = tuple(f"metadata{ending}" for ending in FORMATS)
"""Names of the files of metadata, in this spelling."""

_ONE, _LIST = "file_name", "file_names"


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
    with unpack_table(members, place) as path, name_table(path, label):
        file = _open(path)
        schema = file.schema
        images = _image_columns(schema, label)
        if images is None:
            return None
        taken = {column for kind in images for column in kind.values()}
        factors = tuple(field.name for field in schema if field.name not in taken and is_usable(field.type))
        others = [name for name in file.names if name not in taken and name not in factors]
        of_json = path.suffix == ".jsonl"
        say_left_out(label, {name: "lists or objects" if of_json else schema.field(name).type for name in others})
        columns = pa.Table.from_batches(unify(file.read([*sorted(taken), *factors])))
        if not len(columns):
            raise FactorError("it has no rows; expected a row for each image")
        return Metadata(label, *images, factors, columns, file.commas or "text")


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


def _open(path: Path) -> TableFile:
    """Open a table of one of the formats; fields of structs are columns."""
    if path.suffix == ".csv":
        return open_csv(path)
    if path.suffix == ".jsonl":
        return open_json_lines(path, lambda rows: [*rows.names, *(one for one in rows.nested if _is_list(one))])
    file = open_parquet(path)
    return replace(
        file,
        schema=flat_schema(file.schema),
        names=tuple(flat_schema(file.schema).names),
        read=lambda names: [flat_batch(batch, names) for batch in file.read(names)],
    )


def _is_list(name: str) -> bool:
    """Whether a column has lists of names of images."""
    return (image_column(name) or ("", False))[1]
