"""Which ranges of files are read together.

A request costs a store some 20 to 100 ms before the first byte, whatever it is for. With 64 of them under way at once
(:data:`AT_ONCE`) that is about 1 ms a request, and so is what a Python client spends on one. In 1 ms a connection that
brings 250 MB/s brings 256 KiB: to read through a gap of at most that (:data:`GAP`) is no dearer than a request of its
own; on a line of 10 MB/s it costs 26 ms, still no more than one request waits. Reads end at 8 MiB (:data:`MOST`), so
that what lies together is shared out to several connections.

The sum is that of the systems that read columns from stores, with other figures: Apache Arrow's ``CacheOptions``
(``MakeFromNetworkMetrics``) takes latency × throughput of one connection, and hence larger gaps, since it does not
count on other requests under way.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Integers

__all__ = ["AT_ONCE", "GAP", "MOST", "Reads", "merge_ranges"]

AT_ONCE = 64
"""Requests under way."""

GAP = 256 << 10
"""Bytes read for nothing rather than asked for apart."""

MOST = 8 << 20
"""Bytes of a read."""


class Reads(NamedTuple):
    """Reads that contain the requested ranges.

    Attributes
    ----------
    file, start, stop : (m,) int64
        Bytes ``start … stop − 1`` of a file, in the order of files and bytes; they do not overlap within a file.
    read, offset : (n,) int64
        For each requested range: the read that contains it, and its offset in that read.

    """

    file: Integers
    start: Integers
    stop: Integers
    read: Integers
    offset: Integers


def merge_ranges(
    file: npt.ArrayLike, start: npt.ArrayLike, stop: npt.ArrayLike, gap: int = GAP, most: int = MOST
) -> Reads:
    """Merge ranges that are close to each other.

    Parameters
    ----------
    file : (n,) integer array
        Numbers of files.
    start, stop : (n,) integer array, bytes
        Ranges, in any order; they may overlap.
    gap : int, bytes
        Maximum gap between two ranges of a read.
    most : int, bytes
        Maximum length of a read. Ranges are never split: a longer range, or overlapping ranges that are longer
        together, are a read of their own.

    Examples
    --------
    >>> reads = merge_ranges([0, 1, 0], [100, 5, 0], [110, 10, 40], gap=64)
    >>> reads.file, reads.start, reads.stop
    (array([0, 1]), array([0, 5]), array([110,  10]))
    >>> reads.read, reads.offset
    (array([0, 1, 0]), array([100,   0,   0]))

    """
    files, starts, stops = (np.asarray(numbers, np.int64).reshape(-1) for numbers in (file, start, stop))
    order = np.lexsort((stops, starts, files))
    firsts: list[int] = []  # of each read, its rank in the order
    ends: list[int] = []
    begin = end = current = -1
    wanted = zip(files[order].tolist(), starts[order].tolist(), stops[order].tolist(), strict=True)
    for rank, (number, low, high) in enumerate(wanted):
        near = number == current and low <= end + gap and max(high, end) - begin <= most
        if near or (number == current and low < end):
            end = ends[-1] = max(end, high)
        else:
            firsts.append(rank)
            ends.append(high)
            current, begin, end = number, low, high
    first = np.array(firsts, np.int64)
    chosen = order[first]
    read = np.empty(len(order), np.int64)
    read[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
    begins = starts[chosen]
    return Reads(files[chosen], begins, np.array(ends, np.int64), read, starts - begins[read])
