"""Neighbour tables of samplers by names: a page names no file, and large tables stay out of its questions."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np

from setsup.errors import SamplerError

__all__ = ["with_names", "with_tables"]

_SHORT = 512  # numbers of a table that stays as it is


def with_names(described: Any, tables: MutableMapping[str, Any]) -> Any:
    """What :meth:`Sampler.to_dict` gives, with names for neighbour tables of files and for large ones.

    The tables are added to `tables` by these names; the last part of a path is one, whatever folder it is in.
    """
    return _mapped(described, lambda one: _named(one, tables))


def with_tables(given: Any, tables: Mapping[str, Any]) -> Any:
    """The same with tables for names; SamplerError for a name that is none of `tables`, so that no file is read."""

    def found(one: Any) -> Any:
        if isinstance(one, list):  # the numbers themselves
            return one
        if isinstance(one, str) and one in tables:
            return tables[one]
        known = f"one of {', '.join(tables)}, or " if tables else ""
        raise SamplerError(
            f"on a page, neighbours are {known}rows of numbers, [[1, 2], …]; to use a file, start the page with "
            "--sampler FILE, of what to_dict of the sampler gives"
        )

    return _mapped(given, found)


def _mapped(given: Any, change: Any) -> Any:
    """Data of a sampler, and of those within it, with each neighbour table changed."""
    if isinstance(given, list):
        return [_mapped(one, change) for one in given]
    if not isinstance(given, Mapping):
        return given
    inner = {name: _mapped(one, change) for name, one in given.items() if name != "neighbours"}
    if "neighbours" in given:
        by_step = given["neighbours"]
        is_file = isinstance(by_step, Mapping) and "path" in by_step
        if isinstance(by_step, Mapping) and not is_file:
            inner["neighbours"] = {step: change(one) for step, one in by_step.items()}
        else:
            inner["neighbours"] = change(by_step)
    return {name: inner[name] for name in given}


def _named(table: Any, tables: MutableMapping[str, Any]) -> Any:
    if isinstance(table, Mapping):
        base = Path(str(table["path"])).name
    elif np.size(table) > _SHORT:
        base = "neighbours"
    else:
        return np.asarray(table).tolist()
    names = [base, *(f"{base} {number}" for number in range(2, len(tables) + 2))]
    name: str = next(name for name in names if name not in tables or tables[name] == table)
    tables[name] = table
    return name
