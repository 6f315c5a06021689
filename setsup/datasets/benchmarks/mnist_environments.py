"""Environments of digits as in DomainBed: MNIST's 70,000 images in a random order, assigned in turn."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.checks import check_array
from setsup.datasets.formats.array_file import ArrayFile
from setsup.datasets.formats.npy import read_npy_head
from setsup.errors import DataError
from setsup.random import permute

__all__ = ["Permutation", "deal"]

Permutation = Path | str | Sequence[int] | None
"""An order of the rows of MNIST, train and then test: numbers, or a ``.npy`` of them; None for one that a seed keys."""


def deal(rows: int, environments: int, key: int, permutation: Permutation) -> npt.NDArray[np.uint8]:
    """Environment of each row: the row at position i of the order is in environment i mod `environments`.

    The published code shuffles with ``torch.randperm`` without a seed; pass its permutation if you have saved it.

    Returns (rows,) uint8.

    Raises
    ------
    DataError
        When the permutation is not one of the numbers 0 … rows − 1.

    Examples
    --------
    >>> deal(6, 3, 0, [5, 4, 3, 2, 1, 0])
    array([2, 1, 0, 2, 1, 0], dtype=uint8)

    """
    order = permute(key, rows, np.arange(rows)) if permutation is None else _given(permutation, rows)
    codes = np.empty(rows, np.uint8)
    codes[order] = np.arange(rows) % environments
    return codes


def _given(permutation: Path | str | Sequence[int], rows: int) -> npt.NDArray[np.int64]:
    if isinstance(permutation, Path | str):
        where, order = str(permutation), ArrayFile(Path(permutation), read_npy_head).array()
    else:
        where, order = "permutation", check_array(permutation, "permutation", DataError)
    if order.dtype.kind not in "iu" or order.shape != (rows,) or not np.array_equal(np.sort(order), np.arange(rows)):
        raise DataError(
            f"{where} has dtype {order.dtype} and shape {order.shape}; expected a permutation of the integers 0 to "
            f"{rows - 1:,}, the indices of the MNIST images (training images first)"
        )
    return np.asarray(order, np.int64)
