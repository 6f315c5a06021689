"""Neighbour tables of samplers by names: a page names no file, and large tables stay out of its questions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setsup.errors import SamplerError

__all__ = ["name_tables", "with_names", "with_tables"]

_SHORT = 512  # numbers of a table that needs no name


def name_tables(described: Any) -> dict[str, Any]:
    """Neighbour tables of what :meth:`Sampler.to_dict` gives, by names: those of files, and large ones.

    The last part of a path is the name of its file, whatever folder it is in; of several alike, with a number.
    """
    tables: dict[str, Any] = {}

    def add(table: Any) -> Any:
        is_file = isinstance(table, Mapping)
        if (is_file or np.size(table) > _SHORT) and table not in tables.values():
            base = Path(str(table["path"])).name if is_file else "neighbours"
            names = [base, *(f"{base} {number}" for number in range(2, len(tables) + 2))]
            tables[next(name for name in names if name not in tables)] = table
        return table

    _mapped(described, add)
    return tables


def with_names(described: Any, tables: Mapping[str, Any]) -> Any:
    """What :meth:`Sampler.to_dict` gives, with their names for those of its neighbour tables that have one."""
    return _mapped(described, lambda given: next((name for name, table in tables.items() if table == given), given))


def with_tables(given: Any, tables: Mapping[str, Any]) -> Any:
    """Data of a sampler with tables for names; SamplerError for a name that is none of `tables`: no file is read."""

    def look_up(neighbours: Any) -> Any:
        if isinstance(neighbours, list):  # the numbers themselves
            return neighbours
        if isinstance(neighbours, str) and neighbours in tables:
            return tables[neighbours]
        known = f"one of {', '.join(tables)}, or " if tables else ""
        raise SamplerError(
            f"neighbours on a page must be {known}rows of numbers, [[1, 2], …]; to use a file, start the page "
            "with --sampler FILE, the JSON of sampler.to_dict()"
        )

    return _mapped(given, look_up)


def _mapped(given: Any, change: Any) -> Any:
    """Data of a sampler, and of those within it, with each neighbour table changed."""
    if isinstance(given, list):
        return [_mapped(part, change) for part in given]
    if not isinstance(given, Mapping):
        return given
    inner = {name: _mapped(part, change) for name, part in given.items() if name != "neighbours"}
    if "neighbours" in given:
        by_step = given["neighbours"]
        is_file = isinstance(by_step, Mapping) and "path" in by_step
        if isinstance(by_step, Mapping) and not is_file:
            inner["neighbours"] = {step: change(part) for step, part in by_step.items()}
        else:
            inner["neighbours"] = change(by_step)
    return {name: inner[name] for name in given}
