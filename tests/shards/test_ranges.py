"""Which ranges are read together: brute force over bytes, and what must hold for any ranges."""

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setsup.shards.stores.ranges import GAP, MOST, merge_ranges

SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400), st.integers(1, 60)), max_size=40)


def reads_of(spans, **how):
    files, starts, sizes = (np.array([span[k] for span in spans], np.int64) for k in range(3))
    return merge_ranges(files, starts, starts + sizes, **how)


@given(SPANS, st.integers(0, 50), st.integers(1, 300))
def test_the_way_back_gives_the_bytes_that_were_wanted(spans, gap, most):
    reads = reads_of(spans, gap=gap, most=most)
    content = [bytes((one * 37 + place * 11) % 256 for place in range(500)) for one in range(4)]
    brought = [content[file][start:stop] for file, start, stop in zip(reads.file, reads.start, reads.stop, strict=True)]
    for (file, start, size), read, offset in zip(spans, reads.read, reads.offset, strict=True):
        assert brought[read][offset : offset + size] == content[file][start : start + size]


@given(SPANS, st.integers(0, 50), st.integers(1, 300))
def test_reads_bring_nothing_twice_and_no_byte_that_lies_beyond_the_gap(spans, gap, most):
    reads = reads_of(spans, gap=gap, most=most)
    wanted = {(file, start + k) for file, start, size in spans for k in range(size)}
    found = Counter(
        (file, place)
        for file, start, stop in zip(reads.file.tolist(), reads.start.tolist(), reads.stop.tolist(), strict=True)
        for place in range(start, stop)
    )
    assert set(found.values()) <= {1}
    assert wanted <= set(found)
    for file, place in set(found) - wanted:  # it lies in a hole between two wanted bytes that is no wider than the gap
        before = max(one for number, one in wanted if number == file and one < place)
        after = min(one for number, one in wanted if number == file and one > place)
        assert after - before - 1 <= gap


@given(SPANS, st.integers(0, 50), st.integers(1, 300))
def test_a_read_is_longer_than_most_only_where_ranges_overlap_or_are(spans, gap, most):
    reads = reads_of(spans, gap=gap, most=most)
    for number, (start, stop) in enumerate(zip(reads.start.tolist(), reads.stop.tolist(), strict=True)):
        if stop - start > most:
            inside = sorted({spans[k][1:] for k in np.flatnonzero(reads.read == number)})
            # what is not within `most` of the start is held together by overlaps alone
            ends = np.maximum.accumulate([first + size for first, size in inside])
            late = [k for k in range(1, len(inside)) if max(ends[k], ends[k - 1]) - start > most]
            assert all(inside[k][0] < ends[k - 1] for k in late)


@given(SPANS)
def test_without_a_bound_the_reads_are_the_components_of_brute_force(spans):
    gap = 7
    reads = reads_of(spans, gap=gap, most=1 << 40)
    cells = sorted({(file, start + k) for file, start, size in spans for k in range(size)})
    breaks = sum(one[0] != two[0] or two[1] - one[1] > gap + 1 for one, two in pairwise(cells))
    assert len(reads.file) == (breaks + 1 if cells else 0)


def test_the_order_of_the_ranges_does_not_matter():
    rng = np.random.default_rng(0)
    spans = list(zip(rng.integers(0, 3, 100), rng.integers(0, 10**6, 100), rng.integers(1, 5000, 100), strict=True))
    one = reads_of(spans, gap=1000, most=50_000)
    two = reads_of(spans[::-1], gap=1000, most=50_000)
    for a, b in zip(one[:3], two[:3], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.read, two.read[::-1])


def test_a_group_that_lies_together_is_one_read_and_scattered_samples_are_read_one_by_one():
    size, step = 13_000, 13_824
    together = np.arange(64) * step
    assert len(merge_ranges(np.zeros(64), together, together + size).file) == 1
    scattered = np.arange(64) * 40 * step
    assert scattered[1] - size > GAP
    assert len(merge_ranges(np.zeros(64), scattered, scattered + size).file) == 64


def test_a_long_stretch_is_shared_out():
    starts = np.arange(4096) * 13_824
    reads = merge_ranges(np.zeros(4096), starts, starts + 13_000)
    assert len(reads.file) == 7  # 56.6 MB in reads of at most 8 MiB
    assert (reads.stop - reads.start).max() <= MOST


def test_no_ranges():
    assert [len(one) for one in merge_ranges([], [], [])] == [0] * 5
