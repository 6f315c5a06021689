"""Rows from the names of images, whose groups are columns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from setsup.arrays import Places
from setsup.datasets.described.columns import Columns
from setsup.datasets.described.schema import Layout
from setsup.datasets.described.values import named_groups
from setsup.errors import DamagedFile, DataError, advice
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.members import MemberIndex
from setsup.files.roots import some

__all__ = ["read_image_names"]


def read_image_names(name: str, release: MemberIndex, layout: Layout) -> tuple[Places, Columns]:
    """Find the images by their names; the groups of the expression are columns.

    Rows are sorted by the order of the layout, then by the bytes of the names.

    Raises
    ------
    DataError
        When no image is found, or other images belong to another dataset.

    """
    places, groups = release.matching(layout.images or "")
    if not len(places):
        raise DamagedFile(f"{release.source} contains no image such as {layout.example or layout.images}")
    columns = Columns(groups, dict.fromkeys(groups, str(release.source)), layout.types)
    if layout.others is not None:
        _refuse_others(name, release, layout, layout.others, places, columns)
    for group, spellings in layout.spellings.items():
        columns = replace(columns, values={**columns.values, group: _spelled(columns.values[group], spellings)})
    if layout.unique:
        rows = _firsts(columns)
        places, columns = places[rows], columns.take(rows)
    for group, values in reversed(list(layout.order.items())):
        rows = _sorted(columns, group, values)
        places, columns = places[rows], columns.take(rows)
    return places, columns


def _refuse_others(
    name: str, release: MemberIndex, layout: Layout, others: str, places: Places, columns: Columns
) -> None:
    """Refuse images with further values of a group that have the same values of the other groups as some row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    left = np.ones(len(release), bool)
    left[places] = False
    names = release.names.take(pa.array(np.flatnonzero(left)))
    groups = pc.extract_regex(names, f"^(?:{others})$").drop_null()
    further, *shared = named_groups(others)
    theirs = _tuples({group: pc.struct_field(groups, group) for group in shared}, len(groups))
    mine = _tuples({group: columns.values[group] for group in shared}, len(columns))
    foreign = pc.struct_field(groups, further).filter(pc.is_in(theirs, value_set=mine.unique()))
    if len(foreign):
        known = layout.order.get(further) or columns.values[further].unique().to_pylist()
        same = f", with the same {' and '.join(shared)}" if shared else ""
        raise DataError(
            f"{name}: {release.source} contains images of another {further}{same}: "
            f"{some(sorted(foreign.unique().to_pylist()))}; expected {', '.join(known)}; pass the folder of {name} "
            f"({advice('root=', '--root')}), or remove the other images"
        )


def _spelled(texts: Any, spellings: Mapping[str, str]) -> Any:
    """Texts, of which those that match an expression are the text that it stands for."""
    import pyarrow.compute as pc

    encoded = texts.dictionary_encode()
    words = encoded.dictionary
    for word, expression in reversed(list(spellings.items())):  # the first that matches counts
        words = pc.if_else(pc.match_substring_regex(encoded.dictionary, f"^(?:{expression})$"), word, words)
    return words.take(encoded.indices)


def _firsts(columns: Columns) -> Places:
    """First rows of those that are equal in all columns."""
    encoded = _tuples(columns.values, len(columns)).dictionary_encode()
    return np.sort(np.unique(as_numpy(encoded.indices), return_index=True)[1]).astype(np.int64)


def _tuples(values: Mapping[str, Any], rows: int) -> Any:
    """Texts that are equal where all values of rows are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_string()
    parts = [column.cast(kind) for column in values.values()]
    return pc.binary_join_element_wise(*parts, pa.scalar("\0", kind)) if parts else pa.repeat(pa.scalar("", kind), rows)


def _sorted(columns: Columns, name: str, order: Sequence[str] | None) -> Places:
    """Rows by a column: in a given order of its texts, or by its values."""
    import pyarrow.compute as pc

    if order is None and name not in columns.types:
        return as_numpy(pc.array_sort_indices(columns.values[name])).astype(np.int64)
    values, places = (columns if order is None else replace(columns, types={})).encode(name)
    wanted = sorted(values) if order is None else list(order)
    rank = {value: number for number, value in enumerate(wanted)}
    unknown = [at for at, value in enumerate(values) if value not in rank]
    if unknown:
        row = int(np.argmax(np.isin(places, unknown)))
        raise columns.wrong(name, row, f"expected one of {', '.join(wanted)}")
    ranks = np.array([rank[value] for value in values] or [0], np.int64)
    return np.argsort(ranks[places], kind="stable").astype(np.int64)
