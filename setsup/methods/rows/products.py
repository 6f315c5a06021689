"""Dot products of queries with rows where these live: only queries and products travel."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setsup.methods.rows.exchange import Route, gather_queries, return_sums
from setsup.methods.rows.history import History

__all__ = ["Products"]

_BLOCK = 1 << 18  # numbers of rows that are copied at a time on a CPU: they stay in its cache
_LARGE_BLOCK = 1 << 24  # on other devices, where many small operations take longer


class Products(torch.autograd.Function):
    """Products (n, m) of queries (n, d) with rows (n, m), of which `values` are those of this rank.

    They are differentiable in the queries. The gradient is that of the values that were read, whatever has been written
    since.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, rows: Tensor, values: Tensor, history: History) -> Tensor:
        """Send queries to all ranks, and products back."""
        count, many = rows.shape
        route = Route(rows.reshape(-1))
        everyone, most = gather_queries(queries)
        if len(route.source) == 1:
            table: _Whole | _Table = _Whole(rows)
        else:
            number = torch.arange(count, device=rows.device).repeat_interleave(many)
            table = _Table(route, route.send(number), most)
        ctx.values, ctx.history, ctx.moment = values, history, history.now()
        ctx.route, ctx.table = route, table
        ctx.shape, ctx.most = (count, many), most
        return route.answer(table.take(_dots(values, table.places, everyone))).view(count, many)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *weights: Tensor) -> tuple[Tensor, None, None, None]:
        """Send weights of products to the ranks of their rows, and weighted sums of rows back."""
        table = ctx.table.put(ctx.route.send(weights[0].reshape(-1)))
        with ctx.history.as_of(ctx.moment, ctx.values):
            sums = _weighted(ctx.values, ctx.table.places, table)
        return return_sums(sums, ctx.most, ctx.shape[0]), None, None, None


class _Whole:
    """Rows of one process, which are a table already."""

    def __init__(self, rows: Tensor) -> None:
        self.places = rows

    def put(self, values: Tensor) -> Tensor:
        """Values (p,) as a table."""
        return values.view(self.places.shape)

    def take(self, table: Tensor) -> Tensor:
        """Values (p,) of a table."""
        return table.reshape(-1)


class _Table:
    """Rows that all ranks named here, as a table with a line for each of their queries, padded with place 0.

    Attributes
    ----------
    places : (queries of all ranks, most rows that one of them named here) int64
        Places of rows.

    """

    def __init__(self, route: Route, number: Tensor, most: int) -> None:
        source = torch.tensor(route.source, device=number.device)
        lines = len(source) * most
        self._line = number + most * torch.arange(len(source), device=number.device).repeat_interleave(source)
        counts = torch.bincount(self._line, minlength=lines)  # lines are in ascending order
        self._column = torch.arange(len(number), device=number.device) - (counts.cumsum(0) - counts)[self._line]
        self._shape = lines, int(counts.max()) if lines else 0
        self.places = self.put(route.places)

    def put(self, values: Tensor) -> Tensor:
        """Values (p,) as a table, with 0 where there is none."""
        table = values.new_zeros(self._shape)
        table[self._line, self._column] = values
        return table

    def take(self, table: Tensor) -> Tensor:
        """Values (p,) of a table."""
        return table[self._line, self._column]


def _dots(values: Tensor, places: Tensor, queries: Tensor) -> Tensor:
    """Products (n, m) of queries (n, d) with values at places (n, m)."""
    products = queries.new_empty(places.shape)
    with torch.autocast(queries.device.type, enabled=False):
        for part, some in _blocks(values, places, queries.dtype):
            torch.matmul(some, queries[part].unsqueeze(-1), out=products[part].unsqueeze(-1))
    return products


def _weighted(values: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """Sums (n, d) of values at places (n, m), with weights (n, m)."""
    sums = weights.new_empty(len(places), values.shape[1])
    with torch.autocast(weights.device.type, enabled=False):
        for part, some in _blocks(values, places, weights.dtype):
            torch.matmul(weights[part].unsqueeze(1), some, out=sums[part].unsqueeze(1))
    return sums


def _blocks(values: Tensor, places: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
    """Values (lines, m, d) at places (lines, m), some lines at a time, in one buffer."""
    parts = _parts(places, values)
    buffer = values.new_empty(places[parts[0]].numel() if parts else 0, values.shape[1])
    for part in parts:
        some = places[part]
        copied = buffer[: some.numel()]
        torch.index_select(values, 0, some.reshape(-1), out=copied)  # faster than by an index of two axes
        yield part, copied.view(*some.shape, values.shape[1]).to(dtype)


def _parts(places: Tensor, values: Tensor) -> list[slice]:
    block = _BLOCK if values.device.type == "cpu" else _LARGE_BLOCK
    lines = max(1, block // max(1, places.shape[1] * values.shape[1]))
    return [slice(start, start + lines) for start in range(0, len(places), lines)]
