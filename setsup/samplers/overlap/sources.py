"""Overlap tables as samplers take them: in memory, as the path of a file, or as plain data of either."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_path
from setsup.errors import SamplerError, SetsupError, abbreviate
from setsup.factors.counting import with_outer
from setsup.factors.table import FactorTable
from setsup.samplers.overlap.table import OverlapTable
from setsup.samplers.spelling import spell_name

__all__ = ["Overlaps", "read_overlaps", "shared_factors", "without_nan"]

Overlaps = OverlapTable | str | Path | Mapping[str, Any]
"""An overlap table, the path of its file, or plain data of one of these."""

_FILE = {"path", "digest"}  # what plain data have of a file
_MEASURES = ("overlap", "angle", "scale", "unknown")
_COLUMNS = [one.name for one in fields(OverlapTable) if one.init and one.name != "path"]


def read_overlaps(source: Any) -> tuple[OverlapTable, dict[str, Any]]:
    """An overlap table, and the plain data of which it is made again: its path and digest, or its columns."""
    expected = None
    if isinstance(source, Mapping):
        if set(source) == set(_COLUMNS):
            try:
                expected = source["digest"]
                measures = {name: np.array(source[name], np.float32) for name in _MEASURES}  # None is NaN
                source = OverlapTable(**{**source, **measures, "digest": ""})
            except SetsupError:
                raise
            except Exception as error:  # numpy raises many kinds
                raise SamplerError(
                    f"{spell_name('overlaps')} is not plain data of an overlap table ({error}); save the table, and "
                    "pass the path of its file"
                ) from None
        elif set(source) == _FILE:
            source, expected = source["path"], source["digest"]
    if not isinstance(source, OverlapTable):
        if not isinstance(source, str | Path):
            raise SamplerError(
                f"{spell_name('overlaps')} must be an overlap table or the path of its file, not {abbreviate(source)}; "
                "setsup.correspondence.overlap measures one"
            )
        source = OverlapTable.open(check_path(source, spell_name("overlaps"), SamplerError))
    if expected is not None and source.digest != expected:
        raise SamplerError(
            f"{source.path or 'the overlap table'} has changed: it had the digest {expected} and now has "
            f"{source.digest}, which would change the draws; restore the old one, or create another sampler"
        )
    if source.path is not None:
        return source, {"path": str(source.path), "digest": source.digest}
    return source, {name: getattr(source, name) for name in _COLUMNS}


def without_nan(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data of a table with None for unknown measures, as JSON has them."""
    return {
        name: [None if number != number else number for number in column] if name in _MEASURES else column
        for name, column in plain.items()
    }


def shared_factors(overlaps: OverlapTable, table: FactorTable) -> tuple[str, ...]:
    """Factors in which the views of each scene agree; SamplerError where they do not."""
    named = overlaps.about["settings"].get("scene")
    known = [name for name in named if name in table.names] if isinstance(named, list) else []
    names = with_outer(table, [name for name in known if not table[name].continuous])
    first = np.repeat(overlaps.views[overlaps.starts[:-1]], np.diff(overlaps.starts))
    for name in names:
        differ = np.flatnonzero(table.codes(name, overlaps.views) != table.codes(name, first))
        if len(differ):
            one, other = int(first[differ[0]]), int(overlaps.views[differ[0]])
            raise SamplerError(
                f"rows {one} and {other} are of one scene in the overlap table, but differ in {name}; measure the "
                "overlaps of this dataset again"
            )
    return names
