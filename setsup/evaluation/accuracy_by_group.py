"""Accuracy by group, and that of the worst: what benchmarks of spurious correlations and of shifted groups report.

References
----------
.. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto, P. Liang, "Distributionally Robust Neural Networks for Group Shifts",
   ICLR 2020 (arXiv 1911.08731), section 2.

"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.checks import check_array, check_instance
from setsup.errors import DataError
from setsup.factors.table import FactorTable

__all__ = ["GroupAccuracy", "group_accuracy"]


@dataclass(frozen=True, slots=True)
class GroupAccuracy:
    """Accuracies of predictions.

    Attributes
    ----------
    average : float
        Over all rows.
    worst : float
        In the group that has the smallest.
    groups : tuple of str
        What each group is: ``"bird = land, place = water"``.
    accuracy : (groups,) float64
        In each group.
    rows : (groups,) int64
        Rows of each group.

    """

    average: float
    worst: float
    groups: tuple[str, ...]
    accuracy: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]

    def reweighted(self, rows: npt.ArrayLike) -> float:
        """Average accuracy where groups are as frequent as elsewhere: in training, for Waterbirds.

        Parameters
        ----------
        rows : (groups,) float
            Rows of each group there.

        """
        weights = check_array(rows, "rows", DataError, np.float64)
        if weights.shape != self.rows.shape or not (weights >= 0).all() or not weights.sum() > 0:
            raise DataError(f"rows must be {len(self.rows)} non-negative counts, one per group, and not all 0")
        return float(weights @ self.accuracy / weights.sum())


def group_accuracy(correct: npt.ArrayLike, table: FactorTable, groups: Iterable[str]) -> GroupAccuracy:
    """Accuracy in each group, and in the worst.

    Parameters
    ----------
    correct : (rows,) bool
        Whether the prediction of each row is right.
    table : FactorTable
        Factors of these rows, in the same order.
    groups : iterable of str
        Factors whose combinations are the groups; rows where one is unknown are in none, but count for the average.
        Without factors, all rows are one group.

    Raises
    ------
    DataError, FactorError
        `correct` is not an array of booleans of the table's length, or no row is in a group.

    Examples
    --------
    >>> import setsup
    >>> birds = setsup.FactorTable.from_values({"bird": list("aabbb"), "place": list("xyyyx")})
    >>> found = group_accuracy([True, False, True, True, True], birds, ["bird", "place"])
    >>> found.average, found.worst, found.groups[1]
    (0.8, 0.0, 'bird = a, place = y')

    """
    check_instance(table, FactorTable, "table", DataError)
    right = check_array(correct, "correct", DataError)
    if right.dtype != bool or right.shape != (len(table),):
        raise DataError(
            f"correct must be a boolean array of shape ({len(table)},), one value per row of the table, not "
            f"{right.dtype} of shape {right.shape}"
        )
    if not len(table):
        raise DataError("correct must contain at least one row")
    grouped = table.group_by(list(groups))
    of_rows = grouped.of_rows()
    known = of_rows >= 0
    rows = np.bincount(of_rows[known], minlength=len(grouped))
    if not known.any():
        raise DataError(
            "no row belongs to a group, because in every row at least one of the factors is unknown; choose other "
            "factors"
        )
    accuracy = np.bincount(of_rows[known], right[known].astype(np.float64), minlength=len(grouped)) / rows
    names = tuple(grouped.describe(table, group) for group in range(len(grouped)))
    return GroupAccuracy(float(right.mean()), float(accuracy.min()), names, accuracy, rows)
