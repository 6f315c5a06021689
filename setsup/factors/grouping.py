"""Groups of a table's rows: by arithmetic for a grid, else by an index, which is kept on disk for large tables."""

import hashlib
import json
import logging
import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from setsup.arrays import Array, Bools, Rows
from setsup.checks import check_memory
from setsup.errors import FactorError
from setsup.factors.column_storage import code_dtype
from setsup.factors.columns import FactorColumns
from setsup.factors.counting import counting_sort, known_rows, number_cells, row_dtype, with_outer
from setsup.factors.groups import GridLayout, Groups, IndexLayout, terms
from setsup.factors.where import check_where, evaluate
from setsup.files import cache_folder, written_folder
from setsup.files.builds import build_once

__all__ = ["group_by"]

CACHED_FROM = 50_000_000
"""Rows from which an index of columns is kept on disk."""

_VERSION = 1  # of the index on disk
_MOST = 2**60  # groups, of whose numbers numpy can make arrays
_log = logging.getLogger("setsup")


def group_by(table: FactorColumns, names: Iterable[str], where: str | Bools | None = None) -> Groups:
    """Partition rows by the levels of the named factors and of those they are nested in."""
    chosen = with_outer(table, names)
    check_where(where, len(table))
    if table.is_grid and where is None:
        return _of_grid(table, chosen)
    if len(table) >= CACHED_FROM and chosen and not isinstance(where, np.ndarray):
        return _find_or_index(table, chosen, where)
    return _index(table, chosen, evaluate(where, table) if isinstance(where, str) else where)


def _of_grid(table: FactorColumns, names: tuple[str, ...]) -> Groups:
    fixed = [factor.name in names for factor in table.factors]
    sizes = [len(factor) for factor in table.factors]
    radix = tuple(len(table[name]) for name in names)
    count = math.prod(radix)
    if count >= _MOST:
        raise FactorError(
            f"the factors {', '.join(names)} have {count:,} combinations of levels, but there must be fewer than "
            f"{_MOST:,} groups; choose fewer factors"
        )
    layout = GridLayout(radix, terms(sizes, fixed), terms(sizes, [not is_fixed for is_fixed in fixed]))
    return Groups(names, np.broadcast_to(np.int64(len(table) // count), (count,)), layout)


def _index(table: FactorColumns, names: tuple[str, ...], mask: Bools | None) -> Groups:
    included = len(table) if mask is None else int(np.count_nonzero(mask))
    check_memory(16 * included, f"an index of {included:,} rows", "the rows", FactorError)
    excluded = len(table) - included
    radix = [len(table[name]) for name in names]
    if table.is_grid and mask is not None:  # codes of the rows that are kept follow from their numbers
        rows: Rows | None = np.flatnonzero(mask)
        columns: list[Array] = [table.codes(name, rows).astype(code_dtype(len(table[name]))) for name in names]
    else:
        columns = [table.column(name) for name in names]
        rows = known_rows(columns, mask)
        if rows is not None:
            columns = [column[rows] for column in columns]
    count = len(table) if rows is None else len(rows)
    if not names:
        sizes = np.array([count] if count else [], dtype=np.int64)
        layout = IndexLayout(np.empty((len(sizes), 0), dtype=np.uint8), np.zeros(len(sizes), np.int64), rows)
        return Groups(names, sizes, layout, excluded=excluded)
    cell, cells, ranked = number_cells(columns, radix)
    offsets, order = counting_sort(cell, cells)
    sizes = np.diff(offsets)
    filled = np.flatnonzero(sizes)
    if ranked:
        first = order[offsets[filled]]
        codes = [column[first] for column in columns]
    else:
        digits = np.unravel_index(filled, radix)
        codes = [digit.astype(column.dtype) for digit, column in zip(digits, columns, strict=True)]
    if rows is not None:
        order = rows.astype(row_dtype(len(table)))[order]
    layout = IndexLayout(np.stack(codes, axis=-1), offsets[filled], order)
    return Groups(names, sizes[filled], layout, unknown=len(table) - excluded - count, excluded=excluded)


def _find_or_index(table: FactorColumns, names: tuple[str, ...], where: str | None) -> Groups:
    """Index of a large table from the cache on disk, built there first where it is missing or damaged."""
    identity = json.dumps([_VERSION, table.fingerprint, names, where])
    folder = cache_folder() / "groups" / hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()

    def build(folder: Path) -> None:
        _log.info("indexing %s rows by %s into %s", f"{len(table):,}", ", ".join(names), folder)
        _save(_index(table, names, None if where is None else evaluate(where, table)), folder)

    # mapped pages of the saved index cost no memory of their own
    return build_once(folder, partial(_load, table, names), build)


def _save(groups: Groups, folder: Path) -> None:
    index = groups.layout
    if not isinstance(index, IndexLayout) or index.order is None:
        raise FactorError("the groups of a grid cannot be stored on disk; only those of a table with columns can")
    arrays = {"sizes": groups.sizes, "codes": index.codes, "offsets": index.offsets, "order": index.order}
    with written_folder(folder) as temporary:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        counts = {"unknown": groups.unknown, "excluded": groups.excluded}
        (temporary / "counts.json").write_text(json.dumps(counts), encoding="utf-8")


def _load(table: FactorColumns, names: tuple[str, ...], folder: Path) -> Groups | None:
    """Index as it was stored; None where there is none, or an incomplete one."""
    if not folder.exists():
        return None

    def array(name: str) -> Array:
        return np.lib.format.open_memmap(folder / f"{name}.npy", mode="r").view(np.ndarray)

    try:
        counts = json.loads((folder / "counts.json").read_text(encoding="utf-8"))
        unknown, excluded = int(counts["unknown"]), int(counts["excluded"])
        codes, offsets, order = (array(name) for name in ("codes", "offsets", "order"))
        sizes = np.array(array("sizes"))  # in memory, as samplers keep as much of each group themselves
        whole = codes.shape == (len(sizes), len(names)) and sizes.shape == offsets.shape
        whole = whole and order.shape == (int(sizes.sum()),) and len(order) + unknown + excluded == len(table)
    except Exception as error:  # whatever is wrong with a cached file, it is rebuilt
        _log.warning("the index %s is damaged and will be rebuilt: %s", folder, error)
        return None
    if not whole:
        _log.warning("the index %s does not match the table and will be rebuilt", folder)
        return None
    return Groups(names, sizes, IndexLayout(codes, offsets, order), unknown=unknown, excluded=excluded)
