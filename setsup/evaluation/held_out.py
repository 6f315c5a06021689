"""Rows held out of a fit: keyed splits of n rows."""

import numpy as np
import numpy.typing as npt

from setsup.checks import check_integer
from setsup.errors import DataError, FactorError, SetsupError
from setsup.factors import Factor, FactorTable, Kind, split

__all__ = ["assign_folds", "held_out"]


def held_out(rows: int, seed: int, labels: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.bool_]:
    """Whether each of n rows is among the 10 % that a fit does not see, by :func:`setsup.factors.split`.

    `labels` (rows,) int64, optional; returns (rows,) bool.
    """
    return np.asarray(_parts(rows, {"fit": 0.9, "held out": 0.1}, seed, labels) == 1)


def assign_folds(rows: int, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """Fold of each of n rows, 0 … folds − 1, of sizes that differ by one at most.

    Returns (rows,) int64.
    """
    check_integer(folds, "folds", SetsupError, 2)
    return _parts(rows, {str(fold): 1 / folds for fold in range(folds)}, seed, None)


def _parts(
    rows: int, shares: dict[str, float], seed: int, labels: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    codes = np.zeros(rows, dtype=np.int64) if labels is None else labels
    level = Factor("label", Kind.NOMINAL, tuple(range(int(codes.max(initial=0)) + 1)))
    try:
        parted = split(FactorTable([level], {"label": codes}), shares, seed, stratify="label")
    except FactorError as error:
        if "no row falls" not in str(error):
            raise
        raise DataError(
            f"{rows:,} rows are too few for {len(shares)} parts, the smallest of which is {min(shares.values()):.0%}; "
            "pass more rows, or use fewer and larger classes"
        ) from None
    return np.asarray(parted.codes("split"), dtype=np.int64)
