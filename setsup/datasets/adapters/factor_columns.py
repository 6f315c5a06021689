"""Factor tables from columns of codes, and codes from values."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from setsup.arrays import Array, Rows
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["nominal", "table_of"]


def table_of(columns: Mapping[Factor, Array] | Iterable[tuple[Factor, Array]]) -> FactorTable:
    """Make a table of columns by factor; codes are integers, with −1 for unknown, or booleans."""
    columns = dict(columns)
    stored = {factor: column.astype(np.uint8) if column.dtype == bool else column for factor, column in columns.items()}
    return FactorTable(list(stored), {factor.name: column for factor, column in stored.items()})


def nominal(
    name: str,
    values: Sequence[str | int | None],
    within: str | None = None,
    role: str = "variation",
    levels: Sequence[str | int] | None = None,
) -> tuple[Factor, Rows]:
    """Make a nominal factor of values, with their codes; None and empty texts are unknown.

    Examples
    --------
    >>> nominal("action", ["walk", None, "run"])[1].tolist()
    [1, -1, 0]

    """
    if levels is None:
        known = {value for value in values if value is not None and value != ""}
        levels = sorted(known, key=lambda value: (str(type(value)), value)) or ["unknown"]
    code: dict[str | int | None, int] = {level: number for number, level in enumerate(levels)}
    codes = np.array([code.get(value, -1) for value in values], np.int64)
    return Factor(name, Kind.NOMINAL, tuple(levels), within=within, role=role), codes
