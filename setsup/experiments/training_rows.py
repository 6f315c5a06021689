"""Rows of the training data that images of a dataset are."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setsup.datasets import Selection
from setsup.errors import SetsupError

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.factors import FactorTable

__all__ = ["find_origin", "find_training_rows"]

Rows = npt.NDArray[np.int64]


def find_training_rows(
    dataset: "Dataset", rows: Rows, name: str | None, table: "FactorTable", open_training: Callable[[], "Dataset"]
) -> Rows:
    """Rows (n,) of the training data that rows of a dataset are, -1 where they are none of it.

    They are known for a dataset with the table of the training, for one that was selected from it, and for one that
    was selected from the same dataset as the training data. These are opened for the last case only. Data of another
    name than those of the training, if that is known, are other images, even with the same table as a substitute has.
    """
    if name is not None and name != dataset.name:
        return np.full(len(rows), -1)
    if dataset.factors.has_fingerprint(table.fingerprint):
        return rows
    source, there = find_origin(dataset)
    if source is not dataset and source.factors.has_fingerprint(table.fingerprint):
        return there[rows]
    try:
        known, held = find_origin(open_training())
    except SetsupError:  # their files are elsewhere, so that these images are others
        return np.full(len(rows), -1)
    if not source.factors.has_fingerprint(known.factors.fingerprint):
        return np.full(len(rows), -1)
    number = np.full(len(known), -1)
    number[held[::-1]] = np.arange(len(held))[::-1]  # the first one, where a row was selected twice
    return number[there[rows]]


def find_origin(dataset: "Dataset") -> tuple["Dataset", Rows]:
    """The dataset that a selection is of, and its rows there; any other dataset itself."""
    if isinstance(dataset, Selection):
        return dataset.source, dataset.rows
    return dataset, np.arange(len(dataset))
