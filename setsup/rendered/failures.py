"""Rows of a rendering that cannot be rendered: reported after all others, and left out on request.

Convention
----------
``failed.json`` is a list; each entry has the ``error``, the values of the ``scene`` factors, and the ``rows`` of the
requested table. The other rows are then compacted, to the bytes that they would have by themselves: first
``rendered.json`` is replaced, then array by array, whose headers tell which are done, so that a killed job resumes.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Rows
from setsup.errors import DamagedFile, DataError
from setsup.factors.table import FactorTable
from setsup.files import need_space, written
from setsup.rendered.layout import ABOUT, FAILED, FIX, TABLE, Layout, Rendering, RowArray, reading

__all__ = ["Failure", "compact", "failure_report", "leave_out", "write_failures"]


_SHOWN = 3  # errors in a message
_BLOCK = 16 << 20  # bytes that are copied at once
_LARGEST = 1 << 30  # bytes of failed.json


class Failure(NamedTuple):
    """A row that cannot be rendered, and the error."""

    row: int
    error: str


def write_failures(folder: Path, dataset: Rendering, failures: Iterable[Failure]) -> list[dict[str, Any]]:
    """Write ``failed.json`` and return its content, grouped by scene and error."""
    table, scene = dataset.factors, dataset.recipe.scene_factors
    rows_by_failure: dict[tuple[str, tuple[Any, ...]], list[int]] = {}
    for row, error in sorted(failures):
        rows_by_failure.setdefault((error, tuple(table.row(row)[name] for name in scene)), []).append(row)
    content = [
        {"error": error, "scene": dict(zip(scene, values, strict=True)), "rows": rows}
        for (error, values), rows in rows_by_failure.items()
    ]
    with written(folder / FAILED) as part:
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return content


def failure_report(folder: Path, layout: Layout, content: Sequence[dict[str, Any]]) -> DataError:
    """Error that names rows which could not be rendered, and what to do."""
    count = sum(len(failure["rows"]) for failure in content)
    some = [_line(failure) for failure in content[:_SHOWN]]
    more = f"; and {len(content) - _SHOWN:,} more" if len(content) > _SHOWN else ""
    return DataError(
        f"{count:,} of {layout.rows:,} rows of {layout.recipe} cannot be rendered, all others are in {folder}: "
        f"{'; '.join(some)}{more}. {folder / FAILED} lists them all. For temporary faults, such as too little memory, "
        "run the same `setsup render` again, which renders these rows alone. For others, such as broken meshes, leave "
        "the rows out with --skip-broken (skip_broken=True), which keeps the rest; editing a mesh changes the recipe, "
        "and needs another --out"
    )


def _line(entry: dict[str, Any]) -> str:
    rows, scene = entry["rows"], ", ".join(f"{name} {value!r}" for name, value in entry["scene"].items())
    which = f"row {rows[0]}" if len(rows) == 1 else f"{len(rows):,} rows from {rows[0]} on"
    return f"{which}{f' ({scene})' if scene else ''}: {entry['error']}"


# -- left out ----------------------------------------------------------------------------------------------------------


def leave_out(folder: Path, dataset: Rendering, layout: Layout, failures: Sequence[Failure]) -> Layout:
    """Record that rows are left out of a folder in which all others are rendered; returns its new layout."""
    reasons = dict(failures)
    gone = np.unique(dataset.bound(np.array(sorted(reasons), np.int64)))
    others = [Failure(row, "belongs to a row that cannot be rendered") for row in gone.tolist() if row not in reasons]
    content = write_failures(folder, dataset, [*failures, *others])
    if len(gone) == layout.rows:
        raise failure_report(folder, layout, content)
    table = dataset.factors.select(np.setdiff1d(np.arange(layout.rows), gone))
    asked = (layout.rows, layout.factors)
    left = replace(layout, rows=len(table), factors=table.fingerprint, asked=asked)
    with written(folder / ABOUT) as part:
        part.write_text(left.to_json(), "utf-8")
    return left


def compact(folder: Path, dataset: Rendering, layout: Layout) -> None:
    """Remove the rows that are left out from the arrays and the table of a folder."""
    from pyarrow import parquet

    kept = np.setdiff1d(np.arange(len(dataset)), _failed_rows(folder / FAILED))
    table: FactorTable = dataset.factors.select(kept)
    if len(table) != layout.rows or not table.has_fingerprint(layout.factors):
        raise DamagedFile(
            f"{folder / FAILED} does not match {ABOUT} in the same folder: it lists other rows as left out", FIX
        )
    need_space(folder, max(array.size for array in layout.arrays.values()), f"leaving out rows of {layout.recipe}")
    for name, array in layout.arrays.items():
        path = folder / f"{name}.npy"
        if not _has(path, array):
            before = replace(array, rows=len(dataset))
            before.check(path)
            _copy(path, before, array, kept)
    with written(folder / TABLE) as part:
        parquet.write_table(table.to_arrow(), part)


def _has(path: Path, array: RowArray) -> bool:
    try:
        array.check(path)
    except DataError:
        return False
    return True


def _copy(path: Path, before: RowArray, after: RowArray, kept: Rows) -> None:
    """Replace an array by some of its rows."""
    rows, step = before.map(path), max(1, _BLOCK // max(1, after.row_bytes))
    with written(path) as fresh, fresh.open("wb") as file:
        file.write(after.header)
        for start in range(0, len(kept), step):
            file.write(rows[kept[start : start + step]].tobytes())


def _failed_rows(path: Path) -> Rows:
    with reading(path, f"the list of rows that could not be rendered; {FIX}"):
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is too large")
        rows = np.array([row for failure in json.loads(path.read_bytes()) for row in failure["rows"]], np.int64)
    return rows
