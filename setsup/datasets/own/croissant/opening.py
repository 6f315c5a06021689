"""Open the records that a Croissant description describes, by setsup's own readers."""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_arguments
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.croissant.document import LARGEST
from setsup.datasets.croissant.vocabulary import TERMS
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.npy import read_npy
from setsup.datasets.images import check_size
from setsup.datasets.own.arrays.dataset import ArrayDataset
from setsup.datasets.own.arrays.stored import hold
from setsup.datasets.own.contents import Content, ContentDataset, PackedColumn, content_reader
from setsup.datasets.own.croissant.columns import Tables, place_of
from setsup.datasets.own.croissant.files import Files, Part
from setsup.datasets.own.croissant.joins import Joined, join_fields, match_rows
from setsup.datasets.own.croissant.levels import column_factor, enumeration
from setsup.datasets.own.croissant.nodes import Field, RecordSet
from setsup.datasets.own.croissant.parsing import parse
from setsup.errors import DataError, FactorError, SetsupError, advice, did_you_mean, listed
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.io.distinct import is_usable
from setsup.files import need_readable
from setsup.files.downloads.document import read_document
from setsup.files.expand_user import expanded

__all__ = ["CroissantDataset", "open_croissant"]

_log = logging.getLogger("setsup")
_MOST_PARTS = 65_536


class CroissantDataset(ContentDataset):
    """Records that a Croissant description describes; made by :func:`open_croissant`.

    Attributes
    ----------
    records : str
        The record set.

    """

    def __init__(self, name: str, records: str, factors: FactorTable, contents: Mapping[str, Content]) -> None:
        super().__init__(name, factors, contents)
        self.records = records


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
    address = ""
    if isinstance(source, str) and "://" in source:
        content, base = read_document(source, LARGEST)
        address = source
    else:
        path = expanded(source)
        need_readable(path, "a Croissant description")
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path} has more bytes than the limit of {LARGEST:,} for a Croissant description")
        content, base = path.read_bytes(), path.absolute().parent
    described = parse(content, label)
    files = Files(label, described, base, None if root is None else expanded(root), download, address)
    chosen = _chosen(described.records, records, label)
    tables = Tables(files)
    if chosen.arrays:
        if size is not None:
            raise DataError(f"{label} describes a rendering, which cannot be resized; leave out size=")
        return _open_arrays(chosen, tables, kinds)
    images = [field for field in chosen.fields if _is_content(field)]
    joined = join_fields(chosen, tables, images)
    if not joined.rows:
        raise DataError(f"{label}: the record set {chosen.node!r} has no records; expected at least one")
    contents = {field.name: _content(field, joined, tables, size) for field in images}
    contents |= _further(chosen, joined, tables, size)
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
    return bool(images) and not one.data and len(one.fields) > len(images) + sum(map(_is_key, one.fields))


def _is_key(field: Field) -> bool:
    """Whether a field is part of a name of a file that joins it to a table."""
    source, target = field.source, field.references
    return bool(source and source.extract == "fileProperty" and target and target.extract)


def _is_content(field: Field) -> bool:
    """Whether a field has images or arrays, one in a file or in a cell."""
    source = field.source
    if source is None or field.is_array:
        return False
    if source.extract == "fileProperty":
        return source.name == "content"
    return field.is_image and source.extract == "column"


def _content(field: Field, joined: Joined, tables: Tables, size: tuple[int, int] | None) -> Content:
    source, label = field.source, f"{field.node!r} of {tables.files.label}"
    if source is None or place_of(source, label) != joined.base:
        raise DataError(
            f"{label}: the images of a record set must come from one source; choose another record set with "
            f"{advice('records=NAME', '--option records=NAME')}"
        )
    foreign = next((kind for kind, value in source.transforms if (kind, value) != ("jsonPath", "bytes")), None)
    if foreign is not None:
        raise DataError(
            f"{label} has the transform {foreign!r}, which setsup does not apply to images; choose another record set"
        )
    if source.extract == "column":
        return _restore(content_reader(PackedColumn(tables.images(source), label), label, size), field, size)
    return _restore(content_reader(_members(joined.parts, label), label, size), field, size)


def _members(parts: Sequence[Part], label: str, rows: Any = None) -> MemberImages:
    if len(parts) > _MOST_PARTS:
        raise DataError(f"{label} has files in {len(parts):,} archives; expected at most {_MOST_PARTS:,}")
    places = np.concatenate([part.places for part in parts])
    numbers = np.repeat(np.arange(len(parts)), [len(part.places) for part in parts])
    if rows is not None:
        places, numbers = places[rows], numbers[rows]
    return MemberImages([part.members for part in parts], places, numbers)


def _restore(content: Content, field: Field, size: tuple[int, int] | None) -> Content:
    """The same with the unit, the color and the shape that setsup described, where they fit."""
    told, had = field.annotations, content.modality
    shape = had.shape
    if "setsup:shape" in told and size is None:
        words = [word for word in str(told["setsup:shape"]).split(",") if word]
        lengths = [int(word) if re.fullmatch("[1-9][0-9]{0,8}", word) else None for word in words]
        if len(lengths) == len(shape) and all(one in (None, two) for one, two in zip(lengths, shape, strict=True)):
            shape = tuple(lengths)
    unit, color = str(told.get(TERMS["unit"], "")), str(told.get("setsup:color", had.color))
    content.modality = Modality(shape, had.dtype, unit, color)
    return content


def _further(chosen: RecordSet, joined: Joined, tables: Tables, size: tuple[int, int] | None) -> dict[str, Content]:
    """Modalities of other record sets whose key refers to the same column as that of the chosen one."""
    keys = [field for field in chosen.fields if field.references is not None and field.references.extract]
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
        if theirs.node not in other.columns or not other.parts:
            _log.warning("%s: the images of %s cannot be joined; left out", tables.files.label, one.node)
            continue
        rows = match_rows(
            joined.columns[ours.node], other.columns[theirs.node], f"{one.node!r} of {tables.files.label}"
        )
        if (rows < 0).any():
            lost = int((rows < 0).sum())
            _log.warning("%s: %s has no file for %s rows; left out", tables.files.label, one.node, f"{lost:,}")
            continue
        label = f"{content.node!r} of {tables.files.label}"
        found[content.name] = _restore(content_reader(_members(other.parts, label, rows), label, size), content, size)
    return found


def _factors(
    chosen: RecordSet,
    joined: Joined,
    tables: Tables,
    kinds: Mapping[str, Kind | str] | None,
    images: Sequence[Field],
) -> FactorTable:
    label, given = tables.files.label, dict({} if kinds is None else kinds)
    keys = [field for field in chosen.fields if _is_key(field)]
    passed = [*images, *(keys if len(chosen.fields) - len(images) > len(keys) else ())]
    factors: list[Factor] = []
    columns: dict[str, Array] = {}
    left_out: list[str] = []
    for field in chosen.fields:
        if field in passed:
            continue
        values = joined.columns.get(field.node)
        if values is None:
            left_out.append(f"{field.node} ({joined.left_out.get(field.node, 'no source')})")
        elif field.is_array or not is_usable(values.array.type):
            left_out.append(f"{field.node} ({'lists' if field.is_array else 'lists or objects'})")
        elif "setsup:dtype" in field.annotations:
            left_out.append(f"{field.node} (a modality of one number)")
        elif field.name in columns:
            raise DataError(
                f"{label}: two fields of {chosen.node!r} have the name {field.name!r}; expected distinct names"
            )
        else:
            levels = enumeration(field, tables.files.described.records, label)
            factor, columns[field.name] = column_factor(field, values, levels, given.pop(field.name, None), label)
            factors.append(factor)
    if left_out:
        _log.warning("%s: fields that setsup cannot read are left out: %s", label, listed(left_out))
    if not columns:
        raise DataError(f"{label}: the record set {chosen.node!r} has no column that can be a factor")
    if given:
        name = next(iter(given))
        raise FactorError(f"kinds= names {name!r}, which is no factor of {label}{did_you_mean(name, columns)}")
    return FactorTable(factors, columns)


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
