"""Labels of any container as a factor table: equal labels make equal tables, whatever holds them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.batches.columns import LABEL, check_length, encode_column, has_length
from setsup.errors import FactorError, SamplerError, abbreviate, did_you_mean, listed
from setsup.factors.factor import Factor, Kind
from setsup.factors.table import FactorTable

__all__ = ["column_names", "label_table"]

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
    known = {str(name): name for name in names}  # columns of pandas may be integers
    if len(known) < len(names):
        raise SamplerError(f"labels has two columns of the same name ({listed(names)}); rename one")
    classes = tuple(map(str, _chosen(labels, names, option, columns)))
    wanted = dict.fromkeys([*classes, *([] if weights is None else [weights])])
    for name in wanted:
        if name not in known:
            raise SamplerError(f"labels has no column {abbreviate(name)}{did_you_mean(name, known)}")
    if isinstance(labels, FactorTable):
        return labels, classes
    made = [encode_column(name, _column(labels, known[name]), name in classes) for name in wanted]
    if weights is not None:
        _check_weights(*made[list(wanted).index(weights)])
    lengths = {factor.name: len(column) for factor, column in made}
    if not wanted:  # only their number is needed
        lengths = _lengths(labels, names)
        made = [_rows(next(iter(lengths.values())))]
    if len(set(lengths.values())) > 1:
        raise SamplerError(f"the columns of labels must have the same length, not {lengths}; pass one value per row")
    return _table(made), classes


def _check_weights(factor: Factor, column: Array) -> None:
    """Refuse weights above 0 that are 0 as float32, as tables have numbers: their rows would never be drawn."""
    if factor.kind is not Kind.CONTINUOUS:
        return
    with np.errstate(over="ignore"):  # the table refuses what is too large
        lost = (column != 0) & (column.astype(np.float32) == 0)
    if lost.any():
        row = int(lost.argmax())
        raise SamplerError(
            f"column {factor.name!r} of labels has the weight {float(column[row])!r} in row {row}, which float32 "
            "rounds to 0; multiply all weights by the same number, or pass them as an array in weights="
        )


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
            f"{option} names the column {listed(map(str, columns))}, but labels is a single column; leave out the "
            f"name, or pass labels as a mapping such as {{{str(columns[0])!r}: …}}"
        )
    if weights is not None:
        raise SamplerError(
            f"weights={weights!r} names a column, but labels is a single column; pass one number per row, or labels as "
            f"a mapping such as {{{LABEL!r}: …, {weights!r}: …}}"
        )
    if columns is None:
        return _table([encode_column(LABEL, labels, True)]), (LABEL,)
    try:
        return _table([encode_column(LABEL, labels, False)]), ()
    except (FactorError, SamplerError):  # rows without a class may be anything of which there is a number
        return _table([_rows(check_length(LABEL, labels))]), ()


def _chosen(labels: Any, names: Columns, option: str, columns: Columns | None) -> Columns:
    """Columns of the classes, where labels has several columns."""
    if columns is not None:
        return columns
    if not names:
        raise _no_columns()
    if len(names) != 1:
        if isinstance(labels, Mapping):
            _column(labels, names[0])
        raise SamplerError(
            f"labels has several columns ({listed(map(str, names))}), and {option}= applies to one of them; name it, "
            f"as in {option}={{{str(names[0])!r}: …}}"
        )
    return names


def _column(labels: Any, name: Any) -> Any:
    """A column of several; SamplerError where a mapping is from rows to labels."""
    column = labels[name]
    if isinstance(labels, Mapping) and not has_length(column):
        raise SamplerError(
            f"labels maps {abbreviate(name)} to {abbreviate(column)}, which is not a column; of a mapping from rows to "
            "labels, pass list(labels.values())"
        )
    return column


def _lengths(labels: Any, names: Columns) -> dict[str, int]:
    """Rows of each column of a mapping; of a data frame, of the whole."""
    if not names:
        raise _no_columns()
    if isinstance(labels, Mapping):
        return {str(name): check_length(str(name), _column(labels, name)) for name in names}
    return {LABEL: check_length(LABEL, labels)}


def _no_columns() -> SamplerError:
    return SamplerError("labels has no columns; pass one label per row, or a mapping of column names to labels")


def _rows(number: int) -> tuple[Factor, Array]:
    """A column that is the same in all rows: a way of drawing without classes needs only their number."""
    return Factor("rows", Kind.NOMINAL, ("all",)), np.zeros(number, np.uint8)


def _table(made: Sequence[tuple[Factor, Array]]) -> FactorTable:
    return FactorTable([factor for factor, _ in made], {factor.name: column for factor, column in made})
