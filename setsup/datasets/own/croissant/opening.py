"""Open the records that a Croissant description describes, by setsup's own readers."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_arguments
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.croissant.vocabulary import TERMS
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.npy import read_npy
from setsup.datasets.images import check_size
from setsup.datasets.own.arrays.dataset import ArrayDataset
from setsup.datasets.own.arrays.stored import hold
from setsup.datasets.own.contents import Content, PackedColumn, content_reader
from setsup.datasets.own.croissant.columns import Tables
from setsup.datasets.own.croissant.dataset import CroissantDataset
from setsup.datasets.own.croissant.files import Files, Part
from setsup.datasets.own.croissant.joins import Joined, join_fields, match_rows
from setsup.datasets.own.croissant.levels import described_factor, enumeration
from setsup.datasets.own.croissant.nodes import LARGEST, Field, RecordSet, parse
from setsup.errors import DataError, SetsupError, advice, did_you_mean, listed
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import need_readable
from setsup.files.downloads.document import read_document
from setsup.files.expand_user import expanded

__all__ = ["open_croissant"]

_log = logging.getLogger("setsup")
_MOST_PARTS = 65_536


def open_croissant(
    source: Path | str,
    records: str | None = None,
    root: Path | str | None = None,
    download: bool = False,
    kinds: Mapping[str, Kind | str] | None = None,
    size: tuple[int, int] | None = None,
) -> CroissantDataset | ArrayDataset:
    """Open the records that a Croissant description describes: images and arrays as modalities, columns as factors.

    Versions 1.0 and 1.1 are read: files beside the description or in zips and tars, tables in Parquet, CSV, TSV, JSON
    lines and Arrow, and values at JSON paths. Images are files of a set, or bytes in a column of a table; columns of
    other tables are joined by keys. Kinds of factors come from data types and enumerations, or are those that setsup
    wrote. Levels of an enumeration are its names. Fields that cannot be read are named in a warning.

    Parameters
    ----------
    source : Path or str
        Path or address (``https://…``) of the description.
    records : str, optional
        Record set, where several have images and columns.
    root : Path or str, optional
        Folder that has the files under their names, instead of their addresses; for a Git repository, its folder.
    download : bool
        Whether to download files that are not on this machine, into the cache folder. Their size and digest are
        checked, and addresses in private networks are refused.
    kinds : mapping of str to Kind, optional
        Kinds of factors, in place of those above.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.

    Returns
    -------
    CroissantDataset
        An :class:`~setsup.datasets.ArrayDataset` for a description of a rendering.

    Raises
    ------
    DataError
        When the description is damaged or of another version, when there are several record sets or none, when files
        are missing, damaged or others, or lie outside the folder of the description.
    FactorError
        When the values of a column are not levels of its factor.

    Examples
    --------
    >>> import setsup, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> shapes = setsup.load("shapes3d-procedural").select(range(0, 480_000, 48_000))
    >>> _ = setsup.write_shards(shapes, folder)
    >>> described = open_croissant(folder / "croissant.json")
    >>> described.factors.factors == shapes.factors.factors, described.modalities == shapes.modalities
    (True, True)

    """
    check_arguments(open_croissant, locals(), DataError)
    size = check_size(size)
    label = str(source)
    base: Path | str
    if isinstance(source, str) and "://" in source:
        content, base = read_document(source, LARGEST), source
    else:
        path = expanded(source)
        need_readable(path, "a Croissant description")
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path} has more bytes than the limit of {LARGEST:,} for a Croissant description")
        content, base = path.read_bytes(), path.absolute().parent
    described = parse(content, label)
    files = Files(label, described, base, None if root is None else expanded(root), download)
    chosen = _chosen(described.records, records, label)
    tables = Tables(files)
    if chosen.arrays:
        return _open_arrays(chosen, tables, kinds)
    images = [field for field in chosen.fields if _is_content(field)]
    joined = join_fields(chosen, tables, images)
    contents = {field.name: _content(field, joined, tables, size) for field in images}
    contents |= _further(chosen, joined, tables, size)
    if not joined.rows:
        raise DataError(f"{label}: the record set {chosen.node!r} has no records; expected at least one")
    return CroissantDataset(described.name, chosen.node, _factors(chosen, joined, tables, kinds, images), contents)


def _chosen(records: Mapping[str, RecordSet], name: str | None, label: str) -> RecordSet:
    """The record set that is meant: the only one with images and columns."""
    if name is not None:
        if name not in records:
            raise DataError(f"{label} has no record set {name!r}{did_you_mean(name, records)}")
        return records[name]
    fitting = [one for one in records.values() if one.arrays or _has_images_and_columns(one)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = listed([one.node for one in fitting])
        choice = advice("records=NAME", "--option records=NAME")
        raise DataError(f"{label} has several record sets with images and columns: {names}; choose one with {choice}")
    others = listed(list(records)) if records else "none"
    raise DataError(f"{label} has no record set with images and columns; its record sets are {others}")


def _has_images_and_columns(one: RecordSet) -> bool:
    images = [field for field in one.fields if _is_content(field)]
    joins = [field for field in one.fields if field.references is not None and field.references.how]
    return bool(images) and not one.data and len(one.fields) > len(images) + len(joins)


def _is_content(field: Field) -> bool:
    """Whether a field has images or arrays, one in a file or in a cell."""
    source = field.source
    if source is None or field.is_array:
        return False
    if source.how == "fileProperty":
        return source.what == "content"
    return field.is_image and source.how == "column"


def _content(field: Field, joined: Joined, tables: Tables, size: tuple[int, int] | None) -> Content:
    source, label = field.source, f"{field.node!r} of {tables.files.label}"
    if source is None or source.node != joined.base:
        raise DataError(f"{label} has other files than the first image of its record set; choose another record set")
    if source.how == "column":
        return _measured(content_reader(PackedColumn(tables.column(source, label), label), label, size), field, size)
    return _measured(content_reader(_members(joined.parts, label), label, size), field, size)


def _members(parts: Sequence[Part], label: str, rows: Any = None) -> MemberImages:
    if len(parts) > _MOST_PARTS:
        raise DataError(f"{label} has files in {len(parts):,} archives; expected at most {_MOST_PARTS:,}")
    places = np.concatenate([part.places for part in parts])
    numbers = np.repeat(np.arange(len(parts)), [len(part.places) for part in parts])
    if rows is not None:
        places, numbers = places[rows], numbers[rows]
    return MemberImages([part.members for part in parts], places, numbers)


def _measured(content: Content, field: Field, size: tuple[int, int] | None) -> Content:
    """The same with the unit, the color and the shape that setsup described, where they fit."""
    told, had = field.about, content.modality
    shape = had.shape
    if "setsup:shape" in told and size is None:
        words = [word for word in str(told["setsup:shape"]).split(",") if word]
        lengths = [int(word) if word.isdecimal() and int(word) > 0 else None for word in words]
        if len(lengths) == len(shape) and all(one in (None, two) for one, two in zip(lengths, shape, strict=True)):
            shape = tuple(lengths)
    unit, color = str(told.get(TERMS["unit"], "")), str(told.get("setsup:color", had.color))
    content.modality = Modality(shape, had.dtype, unit, color)
    return content


def _further(chosen: RecordSet, joined: Joined, tables: Tables, size: tuple[int, int] | None) -> dict[str, Content]:
    """Modalities of other record sets whose key refers to the same column as that of the chosen one."""
    keys = [field for field in chosen.fields if field.references is not None and field.references.how]
    found: dict[str, Content] = {}
    for one in tables.files.described.records.values():
        contents = [field for field in one.fields if _is_content(field)]
        matching = [
            (ours, theirs)
            for ours in keys
            for theirs in one.fields
            if theirs.references is not None and theirs.references == ours.references and ours.node in joined.columns
        ]
        if one.node == chosen.node or not matching or len(contents) != 1:
            continue
        (ours, theirs), [content] = matching[0], contents
        other = join_fields(one, tables, contents)
        rows = match_rows(
            joined.columns[ours.node], other.columns[theirs.node], f"{one.node!r} of {tables.files.label}"
        )
        if (rows < 0).any():
            lost = int((rows < 0).sum())
            _log.warning("%s: %s has no file for %s rows; left out", tables.files.label, one.node, f"{lost:,}")
            continue
        label = f"{content.node!r} of {tables.files.label}"
        found[content.name] = _measured(content_reader(_members(other.parts, label, rows), label, size), content, size)
    return found


def _factors(
    chosen: RecordSet,
    joined: Joined,
    tables: Tables,
    kinds: Mapping[str, Kind | str] | None,
    images: Sequence[Field],
) -> FactorTable:
    import pyarrow as pa

    label, given = tables.files.label, {} if kinds is None else kinds
    keys = {field.node for field in chosen.fields if field.references is not None and field.references.how}
    columns: dict[str, Any] = {}
    known: list[Factor] = []
    inferred: dict[str, Kind | str] = {}
    left_out: list[str] = []
    for field in chosen.fields:
        if field in images or (field.node in keys and len(chosen.fields) - len(images) > len(keys)):
            continue
        column = joined.columns.get(field.node)
        if column is None or field.is_array or not _is_plain(column.type):
            left_out.append(field.node)
            continue
        if field.name in columns:
            raise DataError(
                f"{label}: two fields of {chosen.node!r} have the name {field.name!r}; expected distinct names"
            )
        levels = enumeration(field, tables.files.described.records, label)
        values = column if levels is None else _translated(column, levels[0], field, label)
        columns[field.name] = values
        factor = described_factor(field, levels, field.name, label)
        if factor is not None and field.name not in given:
            known.append(factor)
        elif field.name not in given and "setsup:kind" in field.about:
            inferred[field.name] = str(field.about["setsup:kind"])
        elif field.name not in given and field.types and set(field.types) & {"Text", "URL", "Date", "DateTime", "Time"}:
            columns[field.name] = column.cast(pa.large_string())
    if left_out:
        _log.warning("%s: fields that setsup cannot read are left out: %s", label, listed(left_out))
    if not columns:
        raise DataError(f"{label}: the record set {chosen.node!r} has no column that can be a factor")
    table = FactorTable.from_arrow(pa.table(columns), known, kinds={**inferred, **given})
    return _settled(table, {field.name: field for field in chosen.fields if field.name in inferred}, label)


def _settled(table: FactorTable, fields: Mapping[str, Field], label: str) -> FactorTable:
    """The same with what is described of factors whose levels are too many to be listed."""
    if not fields:
        return table
    factors = []
    for factor in table.factors:
        field, levels = fields.get(factor.name), factor.levels
        settled = None
        if field is not None and levels is not None:
            settled = described_factor(field, ({}, levels), factor.name, label)
        factors.append(factor if settled is None else settled)
    return FactorTable(factors, {name: table.column(name) for name in table.names})


def _is_plain(kind: Any) -> bool:
    import pyarrow.types as of

    tests = (of.is_string, of.is_large_string, of.is_integer, of.is_floating, of.is_boolean, of.is_null, of.is_temporal)
    return any(test(kind) for test in tests)


def _translated(column: Any, levels: Mapping[Any, Any], field: Field, label: str) -> Any:
    """Levels of the values of a column."""
    import pyarrow as pa

    distinct = column.dictionary_encode()
    names = []
    for value in distinct.dictionary.to_pylist():
        if value not in levels:
            raise DataError(
                f"{label}: {field.node!r} has the value {value!r}, which is none of the enumeration that it refers to"
                f"{did_you_mean(value, [*levels])}"
            )
        names.append(levels[value])
    try:
        return pa.array(names).take(distinct.indices) if names else column
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"{label}: the levels of {field.node!r} are of several types: {error}") from None


def _open_arrays(chosen: RecordSet, tables: Tables, kinds: Mapping[str, Kind | str] | None) -> ArrayDataset:
    """A rendering: arrays with a row for each record."""
    joined = join_fields(chosen, tables, [])
    factors = _factors(chosen, joined, tables, kinds, [])
    label = tables.files.label
    arrays, modalities = {}, {}
    for one in chosen.arrays:
        name, file = one.get("name"), one.get("file")
        if not isinstance(name, str) or not isinstance(file, str):
            raise DataError(f"{label}: setsup:arrays of {chosen.node!r} must have a name and a file, not {one!r}")
        array = read_npy(tables.files.path(file))
        if not array.ndim or len(array) != len(factors):
            raise DataError(f"{label}: {file!r} has the shape {array.shape}; expected {len(factors):,} rows")
        arrays[name] = hold(array)
        try:
            modalities[name] = Modality(array.shape[1:], array.dtype.name, one.get("unit", ""), one.get("color", ""))
        except SetsupError as error:
            raise DataError(f"{label}: setsup:arrays of {chosen.node!r}: {error}") from None
    dataset = ArrayDataset(tables.files.described.name, factors, arrays, channels_first=False)
    dataset.modalities = modalities
    return dataset
