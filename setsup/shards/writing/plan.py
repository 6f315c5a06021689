"""What shards are to be, before one is written: the order of the rows, and where it is cut.

A plan has everything that the bytes of the shards depend on, except the arrays. It is stored next to the shards
while they are unfinished, so that the work resumes as it started, and its digest in the catalogue of finished ones.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows
from setsup.checks import check_integer
from setsup.errors import DataError, FactorError, advice
from setsup.factors import FactorTable
from setsup.factors.counting import counting_sort, number_cells
from setsup.random import permute, stream_key
from setsup.shards.layout import Member, key_digits

__all__ = ["Order", "ShardPlan", "cut", "keys", "order_rows", "rows_a_shard"]


_STREAM = "setsup.shards"
_BYTES = 256 << 20  # of arrays in a shard
_MOST = 100_000  # its rows


@dataclass(frozen=True)
class Order:
    """Which row of a dataset comes at which place; made by :func:`order_rows`.

    `sorted` (rows,) integer array or None; `starts` (groups + 1,) int64 or None.
    """

    text: str
    rows: int
    seed: int = 0
    sorted: Array | None = None
    starts: Rows | None = None

    def at(self, start: int, stop: int) -> Rows:
        """Rows at the places from `start` to `stop`, the last left out.

        Returns (stop - start,) int64.
        """
        if self.sorted is not None:
            return self.sorted[start:stop].astype(np.int64)
        ranks = np.arange(start, stop, dtype=np.int64)
        if self.text == "shuffle":
            return permute(np.uint64(stream_key(self.seed, _STREAM)), self.rows, ranks)
        return ranks


def order_rows(table: FactorTable, order: str, seed: int = 0) -> Order:
    """Order the rows of a table.

    `order`: ``"keep"``; ``"shuffle"``, a keyed permutation; or ``"by:"`` and names of factors with commas between
    them: sorted by the codes of their levels, the first name first, unknown values last; equal rows stay in their
    order. Before a factor come those that it is nested in, so that its groups lie together.
    """
    if order == "keep":
        return Order(order, len(table))
    if order == "shuffle":
        stream_key(seed, _STREAM)  # refuses what is no seed
        return Order(order, len(table), int(seed))
    kind, _, listed = order.partition(":") if isinstance(order, str) else ("", "", "")
    names = [name.strip() for name in listed.split(",")] if listed else []
    if kind != "by" or not names:
        raise DataError(
            f"{advice('order', '--order')} must be 'keep', 'shuffle', or 'by:' followed by names of factors, not "
            f"{order!r}"
        )
    chosen: dict[str, None] = {}
    for name in names:
        if table[name].continuous:
            how = advice(
                f"order by {name + '_bin'!r} of table.binned({name!r}, width)",
                f"declare it as ordinal, --kinds {name}=ordinal",
            )
            raise FactorError(f"factor {name!r} is continuous and has no levels to order by; {how}")
        chosen |= dict.fromkeys([*reversed(table.outer(name)), name])
    columns, radix = [], []
    for name in chosen:
        levels = len(table[name])
        column = table.column(name)
        columns.append(np.minimum(column, np.array(levels, column.dtype)))  # unknown as one level more
        radix.append(levels + 1)
    cell, cells, _ = number_cells(columns, radix)
    offsets, rows = counting_sort(cell, cells)
    starts = np.append(offsets[:-1][np.diff(offsets) > 0], len(table))
    return Order(f"by:{','.join(names)}", len(table), sorted=rows, starts=starts)


def cut(rows: int, per_shard: int, starts: Rows | None = None) -> tuple[int, ...]:
    """Cut an order into shards.

    `starts` (groups + 1,) int64, optional.
    """
    per_shard = check_integer(per_shard, advice("per_shard", "--per-shard"), DataError, 1)
    if starts is None:
        return (*range(0, rows, per_shard), rows)
    cuts = [0]
    while (end := cuts[-1] + per_shard) < rows:
        group = int(np.searchsorted(starts, end, side="right")) - 1  # the one that row `end` belongs to
        first, after = int(starts[group]), int(starts[group + 1])
        # a group that no shard could hold is cut wherever a shard is full
        cuts.append(first if cuts[-1] < first and after - first <= per_shard else end)
    return (*cuts, rows)


def rows_a_shard(row_bytes: float) -> int:
    """Rows of a shard where nothing else was asked for: 256 MiB of arrays, and 100,000 rows at most."""
    return int(np.clip(_BYTES // max(row_bytes, 1), 1, _MOST))


def keys(rows: int, start: int, stop: int) -> list[str]:
    """Keys of the samples at some places: their numbers with zeros before them, all of one length."""
    digits = key_digits(rows)
    return [f"{row:0{digits}}" for row in range(start, stop)]


@dataclass(frozen=True)
class ShardPlan:
    """What shards are to be: equal plans of equal data, equal bytes."""

    name: str
    factors: str
    content: str
    members: Mapping[str, Member]
    order: str
    seed: int
    cuts: tuple[int, ...]
    setsup: str

    @property
    def rows(self) -> int:
        """Rows in all shards."""
        return self.cuts[-1]

    @property
    def shards(self) -> int:
        """How many there are."""
        return len(self.cuts) - 1

    def shard_name(self, number: int) -> str:
        """Name of a tar."""
        if not 0 <= number < self.shards:
            raise IndexError(f"shard {number} is out of range for {self.shards:,} shards")
        return f"data-{number:05}.tar"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan, in hexadecimal."""
        return hashlib.sha256(json.dumps(self._dict(), sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def to_json(self) -> str:
        """Text of the file that stands beside shards which are not finished."""
        return json.dumps(self._dict(), indent=1, ensure_ascii=False) + "\n"

    def _dict(self) -> dict[str, Any]:
        return {**asdict(self), "cuts": list(self.cuts)}

    def against(self, content: bytes, source: str) -> str:
        """Say how this plan differs from the one in a file: nothing where it does not."""
        try:
            started = json.loads(content)
            there = {name: started[name] for name in _DIFFERENCES}
            there["cuts"] = list(map(int, there["cuts"]))
        except (ValueError, RecursionError, TypeError, KeyError, IndexError):
            raise DataError(f"{source} is damaged; remove its folder and start again") from None
        here = json.loads(self.to_json())
        for name, what in _DIFFERENCES.items():
            if there[name] != here[name]:
                return what + (f" ({there[name]} there, {here[name]} here)" if name in _SHORT else "")
        return ""


_DIFFERENCES = {
    "name": "another dataset",
    "setsup": "another version of setsup, which may write differently",
    "order": "another order",
    "seed": "another seed",
    "members": "another format, or other modalities",
    "factors": "other rows, or other factors",
    "cuts": "another number of rows, in total or per shard",
    "content": "other arrays or other rows of the same dataset",
}
_SHORT = ("name", "setsup", "order", "seed")
