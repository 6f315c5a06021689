"""Folders of images with ``metadata.csv``, ``metadata.jsonl`` or ``metadata.parquet``, as rows of images and factors.

Convention
----------
Rows are those of the tables, as ``load_dataset("imagefolder")`` of ``datasets`` has them: the column ``file_name`` is
the image, ``mask_file_name`` the modality ``mask``, a list in ``file_names`` several images of a row; all others are
factors. Names are relative to the folder of their table, in a folder or in a zip in it, and do not lead out of it.
"""

import logging
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Places
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.named_files import find_instead
from setsup.datasets.formats.image_formats import ending_pattern
from setsup.datasets.own.beside import name_some, outputs_among
from setsup.datasets.own.contents import Content, ContentDataset, StackedContent, content_reader
from setsup.datasets.own.image_metadata.splits import find_splits, visible
from setsup.datasets.own.image_metadata.tables import NAMES, Metadata, read_metadata
from setsup.errors import DataError, FactorError, listed, short
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.io.infer import from_blocks
from setsup.files import open_members
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.names import shown

__all__ = ["open_metadata"]

_SPLIT = "split"
_TABLE = rf"(?:^|/)(?:{'|'.join(name.replace('.', '[.]') for name in NAMES)})$"
_ZIP = r"(?i)[.]zip$"
_MOST = 1000  # zips of a folder
_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class _Part:
    """A table, the folder or archive that it is in, the folder within, and its split."""

    metadata: Metadata
    container: int
    folder: str
    split: str


def open_metadata(
    name: str,
    members: MemberIndex,
    size: tuple[int, int] | None,
    kinds: Mapping[str, Kind | str] | None,
    relist: bool = False,
) -> ContentDataset | None:
    """Open a folder or archive by the metadata in it; None where it has none that names images and has factors."""
    containers = [members]
    parts, said = _read_parts(containers, relist)
    if not parts:
        return None
    label = shown(str(members.source))
    table = _factors(parts, said, label, kinds)
    if table is None:
        return None
    contents: dict[str, Content] = {}
    used: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
    for modality in dict.fromkeys(name for part in parts for name in (*part.metadata.images, *part.metadata.lists)):
        found = _places(modality, parts, containers, label)
        if found is None:
            continue
        numbers, places, length = found
        used.append((numbers, places))
        images = MemberImages(containers, places, numbers)
        inner = content_reader(images, f"{modality} of {label}", size)
        contents[modality] = inner if length is None else StackedContent(inner, length)
    if not contents:
        raise DataError(f"{label}: no column of images has one for each row; fill in the images, or remove these rows")
    _say_unused(containers, used, label)
    return ContentDataset(name, table, contents)


# -- tables ------------------------------------------------------------------------------------------------------------


def _read_parts(containers: list[MemberIndex], relist: bool) -> tuple[list[_Part], bool]:
    """Tables of all splits, and whether paths say the splits; zips with tables are added to the containers."""
    members = containers[0]
    names = visible(members.names)
    splits, said = find_splits(names)
    parts: list[_Part] = []
    damaged: list[DataError] = []
    without: list[str] = []
    zips: dict[str, int] = {}
    for split, places in splits.items():
        files = names.take(places)
        chosen = [(0, name) for name in _tables(files)]
        for name in files.filter(_matches(files, _ZIP)).to_pylist()[:_MOST]:
            path = members.path(members.place(name))
            if path is None:
                continue  # a zip in an archive
            try:
                if name not in zips:
                    inner = open_members(path, relist=relist, hidden=True)
                    zips[name] = len(containers)
                    containers.append(inner)
                chosen += [(zips[name], one) for one in _tables(visible(containers[zips[name]].names))]
            except DataError as error:
                damaged.append(error)
        for container, name in chosen:
            metadata = read_metadata(containers[container], containers[container].place(name))
            if metadata is None:
                without.append(containers[container].label(containers[container].place(name)))
            else:
                parts.append(_Part(metadata, container, name.rpartition("/")[0], split))
    if parts and damaged:
        raise damaged[0]
    if parts and without:
        raise DataError(
            f"{name_some(without)}: no column file_name, *_file_name, file_names or *_file_names has names of files; "
            f"expected one, as in {parts[0].metadata.label}"
        )
    endings = {part.metadata.label.rpartition(".")[2]: part.metadata.label for part in parts}
    if len(endings) > 1:
        raise DataError(f"metadata of two formats: {listed(endings.values())}; keep one of them")
    return parts, said


def _tables(names: Any) -> list[str]:
    return [str(name) for name in names.filter(_matches(names, _TABLE)).to_pylist()]


def _matches(names: Any, pattern: str) -> Any:
    import pyarrow.compute as pc

    return pc.match_substring_regex(names, pattern)


def _factors(
    parts: Sequence[_Part], said: bool, label: str, kinds: Mapping[str, Kind | str] | None
) -> FactorTable | None:
    """Factors of all tables, and the split where paths say it; None where there are neither."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for part in parts for name in part.metadata.factors))
    commas = {part.metadata.commas for part in parts}
    if len(commas) > 1:
        raise DataError(f"{label}: its tables of metadata have different delimiters; separate all by commas")

    def blocks() -> Iterator[Any]:
        for part in parts:
            for batch in part.metadata.columns.to_batches():
                there = batch.schema.names
                columns = [batch.column(name) if name in there else pa.nulls(len(batch)) for name in names]
                yield pa.RecordBatch.from_arrays(columns, names=names)

    factors: list[Factor] = []
    columns: dict[str, Any] = {}
    if names:
        written = parts[0].metadata.label.endswith(".csv")
        try:
            table = from_blocks(blocks, names, kinds=kinds, written=written, commas=commas.pop())
        except FactorError as error:
            raise DataError(f"{listed(part.metadata.label for part in parts)}: {error}") from None
        factors, columns = list(table.factors), {name: table.column(name) for name in table.names}
    if said and _SPLIT in columns:
        _log.warning(
            "%s: the factor split is the column of the metadata, not what folders or names of files say", label
        )
    elif said:
        levels = tuple(dict.fromkeys(part.split for part in parts))
        factors.append(Factor(_SPLIT, Kind.NOMINAL, levels, role=_SPLIT))
        counts = [len(part.metadata.columns) for part in parts]
        columns[_SPLIT] = np.repeat([levels.index(part.split) for part in parts], counts)
    return FactorTable(factors, columns) if factors else None


# -- images ------------------------------------------------------------------------------------------------------------


def _places(
    modality: str, parts: Sequence[_Part], containers: Sequence[MemberIndex], label: str
) -> tuple[Any, Places, int | None] | None:
    """Container and place of each image of a modality, and how many a row has where it has several.

    None, with a warning, where some rows have none, or rows have different numbers of them.
    """
    import pyarrow.compute as pc

    several = any(modality in part.metadata.lists for part in parts)
    numbers, places, lengths = [], [], set()
    for part in parts:
        metadata = part.metadata
        column = metadata.lists.get(modality) if several else metadata.images.get(modality)
        if column is None:
            _leave_out(modality, f"{metadata.label} has no column of them", label)
            return None
        names = metadata.columns.column(column).combine_chunks()
        if several:
            lengths |= set(pc.unique(pc.list_value_length(names)).to_pylist())
            names = names.flatten()
        empty = np.flatnonzero(as_numpy(pc.fill_null(pc.equal(pc.utf8_length(names), 0), True).cast("uint8")))
        if len(empty) and len(parts[0].metadata.images) + len(parts[0].metadata.lists) > 1:
            _leave_out(modality, f"{len(empty):,} of {len(names):,} names are missing in {metadata.label}", label)
            return None
        if len(empty):
            raise DataError(
                f"{metadata.label}: {len(empty):,} of {len(names):,} rows have no image, such as row {empty[0]} "
                "(counting from 0, without the header); fill in the images, or remove these rows"
            )
        places.append(_find(names, part, containers[part.container]))
        numbers.append(np.full(len(names), part.container))
    if several and (len(lengths) > 1 or not sum(length or 0 for length in lengths)):
        _leave_out(modality, "rows have different numbers of them, or none", label)
        return None
    return np.concatenate(numbers), np.concatenate(places), lengths.pop() if lengths else None


def _leave_out(modality: str, why: str, label: str) -> None:
    _log.warning("%s is opened without the images %r: %s", label, modality, why)


def _find(names: Any, part: _Part, members: MemberIndex) -> Places:
    """Places of named files, relative to the folder of their table."""
    distinct = names.dictionary_encode()
    texts = distinct.dictionary.to_pylist()
    paths = [_inside(text, part) for text in texts]
    found = members.places(paths)
    if (found < 0).any():
        missing = [texts[place] for place in np.flatnonzero(found < 0).tolist()]
        folder = members.label(0)[: -len(members.names[0].as_py())] + part.folder
        count = "1 image file is" if len(missing) == 1 else f"{len(missing):,} image files are"
        instead = find_instead(folder, missing[0]) if members.path(0) is not None else ""
        raise DataError(
            f"{part.metadata.label}: {count} missing: {name_some([shown(name) for name in missing])}; paths are "
            f"relative to {folder}; {instead or 'add the files, or correct the table'}"
        )
    return np.asarray(found[as_numpy(distinct.indices)])


def _inside(name: str, part: _Part) -> str:
    """Path of a named file below the folder of its table."""
    plain = posixpath.normpath(posixpath.normpath(name).replace("\\", "/"))
    if "://" in name or plain.startswith(("/", "../")) or plain in ("..", ".") or "\0" in name:
        raise DataError(
            f"{part.metadata.label}: the file name {short(shown(name))!r} does not stay in the folder of the table; "
            "expected a path below it"
        )
    return f"{part.folder}/{plain}" if part.folder else plain


def _say_unused(containers: Sequence[MemberIndex], used: Sequence[tuple[Any, Places]], label: str) -> None:
    """Warn about images that no row names; sheets that setsup wrote are none."""
    left: list[str] = []
    count = 0
    for number, members in enumerate(containers):
        images = members.matching(f"(?:[^/.][^/]*/)*[^/.][^/]*{ending_pattern()}")[0]
        named = [places[numbers == number] for numbers, places in used]
        unused = np.setdiff1d(images, np.concatenate(named))
        unused = np.setdiff1d(unused, outputs_among(members, unused))
        count += len(unused)
        left += [members.label(int(place)) for place in unused[:3]]
    if count:
        _log.warning(
            "%s: %s in no table of metadata, and left out: %s",
            label,
            "1 image is" if count == 1 else f"{count:,} images are",
            listed(left[:3]),
        )
