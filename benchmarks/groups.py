"""Group index of large tables that are no grid, against pandas and a compiled counting sort; time and memory."""

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_most, compare, duration
from benchmarks.tables import NAMES, SIZES, factors, random_columns
from setsup import FactorTable
from setsup.files import cache_folder

__all__ = ["peak", "rows"]

TOPIC = "groups"
ROWS = sized(10_000_000, 100_000)
KEYS = {10: NAMES[1:2], 1_000: NAMES[:3], 32_000: NAMES[:5], 480_000: NAMES}
"""Factors grouped by, and how many groups they make."""


def rows(full: bool) -> Iterator[Row]:
    columns = random_columns(ROWS)
    yield from against_pandas(columns)
    yield from against_counting_sort(columns, "10 M")
    del columns
    if full:
        yield from against_counting_sort(random_columns(100_000_000), "100 M")
        yield memory(100_000_000)


def index(columns: dict[str, Any], names: Sequence[str]) -> Side:
    """Group a table as if for the first time: neither its fingerprint nor an index in the cache is there to help."""
    tables: list[FactorTable] = []

    def before() -> None:
        shutil.rmtree(cache_folder() / "groups", ignore_errors=True)
        tables[:] = [FactorTable(factors(), columns)]

    return Side(lambda: tables[0].group_by(names), before=before)


def against_pandas(columns: dict[str, Any]) -> Iterator[Row]:
    pandas = peer("pandas")
    if pandas is None:
        return
    frame = pandas.DataFrame(columns)
    for groups in (480_000, 32_000, 1_000):
        names = list(KEYS[groups])
        ours = index(columns, names)
        other = Side(lambda names=names: frame.groupby(names).indices)
        what = f"index of 10 M rows, {groups:,} groups"
        yield compare(TOPIC, what, "pandas groupby().indices", ours, other, None, blocks=5)


def against_counting_sort(columns: dict[str, Any], name: str) -> Iterator[Row]:
    """Columns to offsets and order, on both sides; numba is a yardstick here, not a dependency."""
    if peer("numba") is None:
        return
    for groups in (480_000, 1_000, 10):
        names = KEYS[groups]
        sides = {"ours": index(columns, names), "other": Side(counting_sort(columns, names))}
        found = alternate(sides, blocks=3)
        what = f"index of {name} rows, {groups:,} groups"
        bound = at_most(1.3) if groups == 480_000 else None
        times = ratio(found["ours"], found["other"])
        other = duration(found["other"])
        yield Row(TOPIC, what, duration(found["ours"]), "numba: pack, counting sort", other, times, "×", bound)


def counting_sort(columns: dict[str, Any], names: Sequence[str]) -> Callable[[], object]:
    """Key of every row in the narrowest type, then a compiled counting sort of the rows by it."""
    sizes = [SIZES[NAMES.index(name)] for name in names]
    sort = _compiled_sort()

    def run() -> object:
        key = columns[names[0]].astype(np.uint32)
        for name, size in zip(names[1:], sizes[1:], strict=True):
            key *= np.uint32(size)
            key += columns[name]
        return sort(key, int(np.prod(sizes)))

    return run


def _compiled_sort() -> Callable[[Any, int], object]:
    module: Any = peer("numba")

    @module.njit
    def sort(key, groups):
        offsets = np.zeros(groups + 1, np.int64)
        for i in range(key.size):
            offsets[key[i] + 1] += 1
        for group in range(groups):
            offsets[group + 1] += offsets[group]
        place = offsets[:-1].copy()
        order = np.empty(key.size, np.uint32)
        for i in range(key.size):
            order[place[key[i]]] = i
            place[key[i]] += 1
        return offsets, order

    return sort


def memory(rows: int) -> Row:
    """Peak of a process that makes the table and its index, and nothing else."""
    command = [sys.executable, "-c", f"from benchmarks.groups import peak; peak({rows})"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    what = f"index of {rows // 1_000_000} M rows, 480,000 groups: peak memory"
    peak = Spread.of([found["peak"] / 2**30])
    base = f"{found['base'] / 2**30:.2g} GiB"
    return Row(TOPIC, what, f"{peak.median:.3g} GiB", "the table alone", base, peak, "GiB", at_most(8))


def peak(rows: int) -> None:
    """Print the peak resident bytes before and after the index, as JSON."""
    side = index(random_columns(rows), NAMES)
    side.before()
    base = _resident()
    side.run()
    print(json.dumps({"base": base, "peak": _resident()}))


def _resident() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had when it started this process
        return int(status.read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
