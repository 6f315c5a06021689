"""Rows that are read one by one: each distinct row once, in several threads."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from setsup.datasets.base import Array, Rows
from setsup.datasets.images import parallel

__all__ = ["read_distinct"]

S = TypeVar("S")


def read_distinct(
    rows: Rows, out: Sequence[Array], take: Callable[[Rows], Sequence[S]], put: Callable[[S, int], object]
) -> None:
    """Fill arrays of rows: ``take(distinct)`` gives an item for each distinct row, ``put(item, slot)`` writes it.

    `rows` (n,) int64; `out` arrays (n, ...), in which repeated rows are copied.

    Examples
    --------
    >>> squares = np.empty(3, np.int64)
    >>> read_distinct(np.array([5, 2, 5]), [squares], np.ndarray.tolist, lambda row, slot: squares.put(slot, row**2))
    >>> squares
    array([25,  4, 25])

    """
    distinct, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    items = take(distinct)
    parallel(lambda turn: put(items[turn], int(first[turn])), range(len(items)))
    origin = first[inverse]
    repeats = np.flatnonzero(origin != np.arange(len(origin)))
    for array in out:
        array[repeats] = array[origin[repeats]]
