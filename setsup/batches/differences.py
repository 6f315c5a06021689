"""What a state says of the labels it was saved with, so that other labels can be told apart in words."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setsup.checks import is_integer
from setsup.errors import abbreviate
from setsup.factors.table import FactorTable

__all__ = ["describe_labels", "list_differences"]


def describe_labels(table: FactorTable, names: Sequence[str]) -> dict[str, Any]:
    """Number of rows and, of each column of classes, their number and digests of their values and sizes.

    Examples
    --------
    >>> about = describe_labels(FactorTable.from_values({"label": ["cat", "dog", "cat"]}), ["label"])
    >>> about["rows"], about["columns"]["label"]["count"]
    (3, 2)

    """
    return {"rows": len(table), "columns": {name: _describe_column(table, name) for name in names}}


def _describe_column(table: FactorTable, name: str) -> dict[str, Any]:
    levels = list(table[name].levels or ())
    about: dict[str, Any] = {"count": len(levels), "values": _digest(json.dumps(levels).encode())}
    if not table.is_grid:  # of which the numbers of levels say it
        codes = table.column(name)
        sizes = np.bincount(codes[codes != np.iinfo(codes.dtype).max], minlength=len(levels))
        about["sizes"] = _digest(sizes.astype("<i8").tobytes())
    return about


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def list_differences(saved: Any, present: Mapping[str, Any], noun: str) -> list[str]:
    """What differs between labels, in words: as far as what is saved says it; none where it does not.

    Parameters
    ----------
    saved, present : mapping
        What :func:`describe_labels` returned; `saved` may be anything.
    noun : str
        What the values are called: ``classes`` or ``domains``.

    Examples
    --------
    >>> few, more = (describe_labels(FactorTable.from_values({"label": [0, 1] * n}), ["label"]) for n in (3, 4))
    >>> list_differences(few, more, "classes")
    ['6 rows then, 8 now']

    """
    if not isinstance(saved, Mapping):
        return []
    found = []
    if saved.get("rows") != present["rows"]:
        found.append(f"{_count(saved, 'rows')} rows then, {_count(present, 'rows')} now")
    columns = saved.get("columns")
    for name, now in present["columns"].items():
        then = columns.get(name) if isinstance(columns, Mapping) else None
        if not isinstance(then, Mapping):
            continue
        if then.get("count") != now["count"]:
            found.append(f"{_count(then, 'count')} {noun} of {name} then, {_count(now, 'count')} now")
        elif then.get("values") != now["values"]:
            found.append(f"as many {noun} of {name}, but other values")
        elif then.get("sizes") != now.get("sizes") and not found:
            found.append(f"as many rows, but other numbers of rows in the {noun} of {name}")
    return found


def _count(about: Mapping[str, Any], key: str) -> str:
    number = about.get(key)
    return f"{number:,}" if is_integer(number) else abbreviate(number)
