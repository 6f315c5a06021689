"""Factors that a user passes in addition to the images: a table, columns by name, a pandas frame, or a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.errors import DataError, FactorError, abbreviate
from setsup.factors import FactorTable, Kind
from setsup.factors.column_storage import as_array
from setsup.factors.io.text_file import PARQUET
from setsup.files.expand_user import expanded

__all__ = ["Kinds", "plain_column", "read_factors"]

Kinds = Mapping[str, Kind | str] | None


def read_factors(factors: Any, rows: int, what: str, kinds: Kinds = None) -> FactorTable:
    """Make a table of the argument ``factors=``, with one row per image.

    `factors` is a FactorTable, a mapping of names to (rows,) values, a ``pandas.DataFrame``, or the path of a CSV or
    Parquet file; `what` names the images in messages.
    """
    table = _table(factors, kinds)
    if len(table) != rows:
        raise DataError(f"{what} has {rows:,} rows, but the factors have {len(table):,} values; pass one value per row")
    return table


def _table(factors: Any, kinds: Kinds) -> FactorTable:
    if isinstance(factors, FactorTable):
        if kinds:
            raise FactorError("a FactorTable already defines the kinds of its factors; leave out kinds=")
        return factors
    if isinstance(factors, Mapping):
        if not factors:
            raise FactorError("factors must contain at least one name with its values")
        return FactorTable.from_values({name: plain_column(values) for name, values in factors.items()}, kinds=kinds)
    if isinstance(factors, str | Path):
        path = expanded(factors)
        read = FactorTable.from_parquet if path.suffix.lower() in PARQUET else FactorTable.from_csv
        return read(path, kinds=kinds)
    if hasattr(factors, "iloc") and hasattr(factors, "columns"):
        return FactorTable.from_pandas(factors, kinds=kinds)
    raise FactorError(
        "factors must be a FactorTable, a mapping of names to values, a pandas.DataFrame, or the path of a CSV or "
        f"Parquet file, not {abbreviate(factors)}"
    )


def plain_column(values: Any) -> Any:
    """Convert values for pyarrow: to the byte order of this machine, with byte strings decoded."""
    if hasattr(values, "detach"):
        values = as_array(values, "a column of factors")
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind == "S":
        return _decoded(values)
    return values.astype(values.dtype.newbyteorder("=")) if not values.dtype.isnative else values


def _decoded(values: Array) -> Array:
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError as error:
        raise FactorError(f"a column of bytes is not valid UTF-8: {error}; decode it first") from None
