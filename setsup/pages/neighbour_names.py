"""Tables of neighbours and overlaps by names: a page names no file, and large tables stay out of its questions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setsup.errors import SamplerError

__all__ = ["name_tables", "with_names", "with_tables"]

_SHORT = 512  # numbers of a table that needs no name
_TABLES = ("neighbours", "overlaps")


def name_tables(described: Any) -> dict[str, Any]:
    """Tables of what :meth:`Sampler.to_dict` gives, by names: those of files, large ones, and those of overlaps.

    The last part of a path is the name of its file, whatever folder it is in; of several alike, with a number.
    """
    tables: dict[str, Any] = {}

    def add(table: Any, argument: str) -> Any:
        if isinstance(table, Mapping) or np.size(table) > _SHORT:
            base = Path(str(table["path"])).name if isinstance(table, Mapping) and "path" in table else argument
            names = [base, *(f"{base} {number}" for number in range(2, len(tables) + 2))]
            if not any(_is_same(table, known) for known in tables.values()):
                tables[next(name for name in names if name not in tables)] = table
        return table

    _mapped(described, add)
    return tables


def with_names(described: Any, tables: Mapping[str, Any]) -> Any:
    """What :meth:`Sampler.to_dict` gives, with their names for those of its tables that have one."""

    def name(given: Any, _: str) -> Any:
        return next((name for name, table in tables.items() if _is_same(table, given)), given)

    return _mapped(described, name)


def with_tables(given: Any, tables: Mapping[str, Any]) -> Any:
    """Data of a sampler with tables for names; SamplerError for a name that is none of `tables`: no file is read."""

    def look_up(table: Any, argument: str) -> Any:
        if argument == "neighbours" and isinstance(table, list):  # the numbers themselves
            return table
        if isinstance(table, str) and table in tables:
            return tables[table]
        known = f"one of {', '.join(tables)}" if tables else "the name of a table that the page knows"
        if argument == "neighbours":
            known = f"{known}, or rows of numbers, [[1, 2], …]" if tables else "rows of numbers, [[1, 2], …]"
        raise SamplerError(
            f"{argument} on a page must be {known}; to use a file, start the page with --sampler FILE, the JSON of "
            "sampler.to_dict()"
        )

    return _mapped(given, look_up)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two tables are the same; those of overlaps by their digests, since what is unknown equals nothing."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys() and "first" in one:
        return bool(one["digest"] == other["digest"])
    return bool(one == other)


def _mapped(given: Any, change: Any) -> Any:
    """Data of a sampler, and of those within it, with each table changed."""
    if isinstance(given, list):
        return [_mapped(part, change) for part in given]
    if not isinstance(given, Mapping):
        return given
    inner = {name: _mapped(part, change) for name, part in given.items() if name not in _TABLES}
    if "neighbours" in given:
        by_step = given["neighbours"]
        is_file = isinstance(by_step, Mapping) and "path" in by_step
        if isinstance(by_step, Mapping) and not is_file:
            inner["neighbours"] = {step: change(part, "neighbours") for step, part in by_step.items()}
        else:
            inner["neighbours"] = change(by_step, "neighbours")
    if "overlaps" in given:
        inner["overlaps"] = change(given["overlaps"], "overlaps")
    return {name: inner[name] for name in given}
