"""Labels of any container as a factor table, by numpy alone.

A list, an array or a tensor imports no other library; a column of pandas, Arrow or Hugging Face is read by what its own
library offers. Equal labels make equal tables, whatever holds them.

Convention
----------
None, NaN, pandas' NA and empty strings are unknown. The values of a column of classes are its levels, in order: strings
and booleans make a nominal factor, numbers an ordinal one; numbers that are all whole are integers, also where they
came as floats. Of other columns, floats are numbers without levels.
"""

from collections.abc import Mapping, Sequence, Set
from itertools import repeat
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.errors import FactorError, SamplerError, abbreviate, did_you_mean, listed
from setsup.factors.column_storage import as_array, freeze
from setsup.factors.factor import PLURAL, Factor, Kind, level_sort
from setsup.factors.io.fields import ROLE_OF
from setsup.factors.table import FactorTable

__all__ = ["LABEL", "column_names", "label_table", "plain_weights"]

LABEL = "label"
"""Name of the factor of labels that are one column."""

Columns = tuple[Any, ...]


def label_table(labels: Any, option: str, columns: Columns | None, weights: str | None) -> tuple[FactorTable, Columns]:
    """Table of the columns that a way of drawing needs, and the names of those whose values are its classes.

    Parameters
    ----------
    labels : object
        One column, a mapping or data frame of several, or a table.
    option : str
        The way of drawing, for messages.
    columns : tuple, optional
        Columns that it names; None for the only one, () where rows need no class.
    weights : str, optional
        A column of weights.

    """
    names = labels.names if isinstance(labels, FactorTable) else column_names(labels)
    if names is None:
        return _single(labels, option, columns, weights)
    classes = _chosen(names, option, columns)
    for name in [*classes, *([] if weights is None else [weights])]:
        if name not in names:
            raise SamplerError(f"labels has no column {abbreviate(name)}{did_you_mean(name, list(map(str, names)))}")
    if isinstance(labels, FactorTable):
        return labels, classes
    wanted = dict.fromkeys([*classes, *([] if weights is None else [weights])])
    made = [encode(str(name), labels[name], name in classes) for name in wanted] or [_of_rows(labels, names)]
    lengths = {factor.name: len(column) for factor, column in made}
    if len(set(lengths.values())) > 1:
        raise SamplerError(f"the columns of labels must have the same length, not {lengths}; pass one value per row")
    return _table(made), tuple(map(str, classes))


def column_names(labels: Any) -> Columns | None:
    """Names of the columns of a mapping or a data frame; None for a single column."""
    names = getattr(labels, "column_names", None)  # of Arrow and of Hugging Face
    if isinstance(names, Mapping):
        raise SamplerError(
            f"labels has several splits ({listed(map(str, names))}); pass one of them, as in dataset['train']"
        )
    if isinstance(labels, Mapping):
        return tuple(labels)
    if names is None and not callable(getattr(labels, "columns", None)):
        names = getattr(labels, "columns", None)  # of pandas and polars
    return None if names is None else tuple(names)


def _single(labels: Any, option: str, columns: Columns | None, weights: str | None) -> tuple[FactorTable, Columns]:
    if columns:
        raise SamplerError(
            f"{option} names the column {listed(map(str, columns))}, but labels is a single column; pass the number "
            f"alone, or labels as a mapping such as {{{str(columns[0])!r}: …}}"
        )
    if weights is not None:
        raise SamplerError(
            f"weights={weights!r} names a column, but labels is a single column; pass one number per row, or labels as "
            f"a mapping such as {{{LABEL!r}: …, {weights!r}: …}}"
        )
    return _table([encode(LABEL, labels, columns is None)]), (LABEL,) if columns is None else ()


def _chosen(names: Columns, option: str, columns: Columns | None) -> Columns:
    """Columns of the classes, where labels has several columns."""
    if columns is not None:
        return columns
    if not names:
        raise SamplerError("labels has no columns; pass one label per row, or a mapping of column names to labels")
    if len(names) != 1:
        example = str(names[0])
        raise SamplerError(
            f"labels has several columns ({listed(map(str, names))}), and {option}= applies to one of them; name it, "
            f"as in {option}={{{example!r}: …}}"
        )
    return names


def _of_rows(labels: Any, names: Columns) -> tuple[Factor, Array]:
    """A column that is the same in all rows: a way of drawing without classes needs only their number."""
    first = labels[names[0]] if isinstance(labels, Mapping) and names else labels
    if not hasattr(first, "__len__"):
        raise _no_column(str(names[0]), first)
    rows = len(first)
    if not rows:
        raise SamplerError("labels has no rows; pass one label per row")
    return Factor("rows", Kind.NOMINAL, ("all",)), np.zeros(rows, np.uint8)


def _table(made: Sequence[tuple[Factor, Array]]) -> FactorTable:
    return FactorTable([factor for factor, _ in made], {factor.name: column for factor, column in made})


def encode(name: str, values: Any, classes: bool) -> tuple[Factor, Array]:
    """A column as a factor and its codes, -1 where unknown; or as numbers.

    `classes`: whether its values are classes, of which also floats are levels. Returns (rows,) integers or floats.
    """
    column = _plain(name, values)
    if not len(column):
        raise SamplerError("labels has no rows; pass one label per row")
    if isinstance(column, np.ndarray):
        return _numbers(name, column, classes)
    return _objects(name, column, classes)


def plain_weights(weights: Any) -> Any:
    """Weights as numpy takes them: a tensor may lie on a device, or have a gradient."""
    return as_array(weights, "weights") if hasattr(weights, "detach") else weights


# -- containers --------------------------------------------------------------------------------------------------------


def _plain(name: str, values: Any) -> Array | list[Any]:
    """A column as an array of numbers or booleans, or as a list."""
    if isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__len__"):
        raise _no_column(name, values)
    if isinstance(values, list | tuple):
        return list(values)
    if isinstance(values, np.ma.MaskedArray) and values.ndim == 1:
        return list(values.tolist())  # None where masked
    dtype = getattr(values, "dtype", None)
    if hasattr(values, "detach"):  # a tensor
        array = as_array(values, _of(name))
    elif isinstance(values, np.ndarray | range) or isinstance(dtype, np.dtype):
        array = np.asarray(values)
    else:
        return _of_library(name, values)
    if array.ndim != 1:
        raise SamplerError(
            f"{_of(name)} must be 1-D, one label per row, not of shape {array.shape}; flatten it, or pass a mapping of "
            "several columns"
        )
    if array.dtype.kind == "M":
        return [None if text == "NaT" else text for text in np.datetime_as_string(array).tolist()]
    return array if array.dtype.kind in "biuf" else array.tolist()


def _no_column(name: str, values: Any) -> SamplerError:
    return SamplerError(
        f"{_of(name)} must be a list, an array or a column, not {abbreviate(values)}; pass one label per row"
    )


def _of_library(name: str, values: Any) -> Array | list[Any]:
    """A column of pandas, polars, Arrow or Hugging Face, by what it offers itself."""
    if hasattr(values, "to_pylist"):  # Arrow
        return list(values.to_pylist()) if values.null_count else _plain(name, np.asarray(values))
    for method in ("to_list", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    if hasattr(values, "__array__"):
        return _plain(name, np.asarray(values))
    if not isinstance(values, Sequence):
        raise _no_column(name, values)
    whole = values[:]
    return list(values) if type(whole) is type(values) else _plain(name, whole)


# -- values ------------------------------------------------------------------------------------------------------------


def _numbers(name: str, column: Array, classes: bool) -> tuple[Factor, Array]:
    if column.dtype.kind == "b":
        return _factor(name, Kind.NOMINAL, (False, True)), column.astype(np.uint8)
    if column.dtype.kind == "f" and not classes:
        return _factor(name, Kind.CONTINUOUS, None), column
    known = column == column
    levels, index = np.unique(column[known], return_inverse=True)
    codes = np.full(len(column), -1, np.int64)
    codes[known] = index
    return _factor(name, Kind.ORDINAL, _whole(name, levels.tolist())), freeze(codes)


def _objects(name: str, values: list[Any], classes: bool) -> tuple[Factor, Array]:
    kinds = set(map(type, values))
    if any(hasattr(kind, "item") for kind in kinds):  # numpy's scalars, tensors without an axis
        values = [value.item() if hasattr(value, "item") else value for value in values]
        kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= {bool, int, float}:
        array = np.asarray(values)
        if array.dtype.kind in "biuf":  # not of integers beyond 64 bits
            return _numbers(name, array, classes)
    try:
        known = [value for value in set(values) if not _is_unknown(value)]
    except TypeError:
        raise SamplerError(
            f"{_of(name)} must have one string, number or boolean per row, not {abbreviate(values[0])}"
        ) from None
    if not all(isinstance(value, str | int | float) for value in known):
        return _by_arrow(name, values)
    sorts = {level_sort(value) for value in known}
    mixed = bool in kinds and any(type(value) in (int, float) and not _is_unknown(value) for value in values)
    if len(sorts) > 1 or mixed:  # True and 1 are one element of a set
        raise _mixture(name, values)
    kind = Kind.ORDINAL if sorts == {"number"} else Kind.NOMINAL
    levels = (False, True) if sorts == {"boolean"} else sorted(known)
    if kind is Kind.ORDINAL:
        if not classes and not all(isinstance(value, int) for value in known):
            numbers = np.array([np.nan if _is_unknown(value) else value for value in values], np.float64)
            return _factor(name, Kind.CONTINUOUS, None), numbers
        levels = list(dict.fromkeys(_whole(name, levels)))
    factor = _factor(name, kind, levels)
    code_of = {level: code for code, level in enumerate(levels)}
    return factor, freeze(np.fromiter(map(code_of.get, values, repeat(-1)), np.int64, len(values)))


def _by_arrow(name: str, values: list[Any]) -> tuple[Factor, Array]:
    """Dates, times and decimal numbers, as any table reads them."""
    table = FactorTable.from_values({name: [None if _is_unknown(value) else value for value in values]})
    return table[name], table.column(name)


def _factor(name: str, kind: Kind, levels: Sequence[Any] | None) -> Factor:
    if levels is not None and not len(levels):
        raise SamplerError(f"{_of(name)} has no known label; pass labels that are not all None or NaN")
    return Factor(name, kind, None if levels is None else tuple(levels), role=ROLE_OF.get(name, "variation"))


def _whole(name: str, levels: Sequence[Any]) -> list[Any]:
    """Numbers as integers, if all are whole."""
    if any(level in (np.inf, -np.inf) for level in levels):
        raise FactorError(f"{_of(name)} has an infinite label; expected finite numbers, or NaN for unknown labels")
    return list(map(int, levels)) if all(int(level) == level for level in levels) else list(map(float, levels))


def _is_unknown(value: Any) -> bool:
    """Whether a value is None, pandas' NA, NaN or an empty string."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value) or value == ""


def _mixture(name: str, values: list[Any]) -> SamplerError:
    firsts: dict[str, str] = {}
    for row, value in enumerate(values):
        if not _is_unknown(value):
            firsts.setdefault(PLURAL[level_sort(value)], f"{abbreviate(value)} in row {row}")
    parts = " and ".join(f"{sort} ({first})" for sort, first in firsts.items())
    return SamplerError(f"{_of(name)} has {parts}; expected labels of one type; make them all strings or all numbers")


def _of(name: str) -> str:
    return "labels" if name == LABEL else f"column {name!r} of labels"
