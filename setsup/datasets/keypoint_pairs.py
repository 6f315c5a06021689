"""Keypoints that two images share, and the pairs of images that a benchmark publishes."""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import getattr_static
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.checks import check_array
from setsup.datasets.dataset import Dataset, Selection
from setsup.errors import DataError
from setsup.factors.column_storage import check_rows
from setsup.factors.table import FactorTable

__all__ = ["KeypointPairs", "Keypoints", "PairList", "has_keypoints", "listed_pairs"]


@dataclass(frozen=True, slots=True, eq=False)
class KeypointPairs:
    """Keypoints of image 1 and the same keypoints of image 2.

    Parameters
    ----------
    points1, points2 : (n, 2) float64
        Positions (x, y) in pixels of the images as fetched; centers of pixels are integers.
    status : (n,) uint8
        Numbers of :class:`setsup.correspondence.Status`: 0 where image 2 shows the keypoint.
    names : sequence of str
        Names of the keypoints, n.

    Raises
    ------
    DataError
        When lengths or shapes disagree, or a status is not from 0 to 4.

    Examples
    --------
    >>> pairs = KeypointPairs([[3, 4]], [[7, 5]], [0], ["left eye"])
    >>> len(pairs), pairs.points2.tolist()
    (1, [[7.0, 5.0]])

    """

    points1: Reals
    points2: Reals
    status: npt.NDArray[np.uint8]
    names: Sequence[str]

    def __post_init__(self) -> None:
        """Check the shapes, and convert to arrays of the documented dtypes."""
        count = len(self.names)
        for name, dtype, shape in (
            ("points1", np.float64, (count, 2)),
            ("points2", np.float64, (count, 2)),
            ("status", np.uint8, (count,)),
        ):
            values = np.asarray(check_array(getattr(self, name), f"{name} of keypoints", DataError, dtype))
            if values.shape != shape and not (count == 0 == values.size):
                raise DataError(f"{name} of {count:,} keypoints must have shape {shape}, not {values.shape}")
            object.__setattr__(self, name, values.reshape(shape))
        if count and self.status.max() > 4:
            raise DataError(f"the status of keypoints must be from 0 to 4, not {self.status.max()}")

    def __len__(self) -> int:
        """Count the keypoints."""
        return len(self.names)


@dataclass(frozen=True, slots=True, eq=False)
class PairList:
    """Pairs of images that a benchmark publishes.

    Parameters
    ----------
    rows : (n, 2) int64
        Rows of image 1 (source) and image 2 (target).
    factors : FactorTable
        Factors of the pairs, n rows, such as split, category and difficulty.

    Raises
    ------
    DataError
        When the rows are not pairs, or the table has another length.

    Examples
    --------
    >>> pairs = PairList([[0, 1], [1, 0]], FactorTable.from_values({"split": ["train", "test"]}))
    >>> pairs.where("split == 'test'").rows.tolist()
    [[1, 0]]

    """

    rows: Rows
    factors: FactorTable

    def __post_init__(self) -> None:
        """Check the shapes."""
        rows = np.asarray(check_array(self.rows, "rows of pairs", DataError, np.int64))
        if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) != len(self.factors):
            raise DataError(
                f"rows of pairs must have the shape ({len(self.factors)}, 2), two rows for each row of the factors, "
                f"not {rows.shape}"
            )
        object.__setattr__(self, "rows", rows)

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.rows)

    def select(self, numbers: npt.ArrayLike) -> "PairList":
        """Take pairs by their numbers (k,) int, in the given order."""
        index = check_rows(numbers, len(self))
        return PairList(self.rows[index], self.factors.select(index))

    def where(self, expression: str) -> "PairList":
        """Take the pairs that satisfy an expression over their factors."""
        return self.select(self.factors.rows(expression))


class Keypoints(Protocol):
    """Members of a dataset with keypoints, in addition to those of every dataset."""

    @property
    def published_pairs(self) -> PairList:
        """Pairs of rows that the benchmark publishes; a property, or an attribute."""
        ...

    def keypoint_pairs(self, rows: Sequence[int]) -> KeypointPairs:
        """Keypoints that two rows (2,) share."""
        ...


def has_keypoints(dataset: Any) -> bool:
    """Whether a dataset has keypoints and published pairs; does not compute the pairs."""
    source = dataset.source if isinstance(dataset, Selection) else dataset
    return hasattr(source, "keypoint_pairs") and getattr_static(source, "published_pairs", None) is not None


def listed_pairs(dataset: Dataset) -> PairList:
    """Published pairs of a dataset; for a selection, those whose rows are both selected, with its row numbers.

    Raises
    ------
    DataError
        When the dataset has no published pairs.

    """
    found: Any = getattr(dataset, "published_pairs", None)
    if not isinstance(found, PairList):
        raise DataError(f"{dataset.name} has no published pairs of images")
    if not isinstance(dataset, Selection):
        return found
    place = np.full(len(dataset.source), -1, dtype=np.int64)
    rows = dataset.rows
    place[rows[::-1]] = np.arange(len(rows))[::-1]  # of a repeated row, its first occurrence
    numbered = place[found.rows]
    kept = np.flatnonzero((numbered >= 0).all(axis=1))
    return PairList(numbered[kept], found.factors.select(kept))
