"""Exchange of values between the ranks that ask for rows and those that have them.

Row i lives on rank i mod W, at place i // W there. With one process nothing is sent.
"""

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["Route", "add_up", "gather_first", "gather_queries", "ranks", "return_sums"]


def ranks() -> tuple[int, int]:
    """Rank of this process, and how many there are."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def add_up(counts: Tensor) -> Tensor:
    """Sum of a tensor over ranks, in place."""
    if ranks()[1] > 1:
        dist.all_reduce(counts)
    return counts


class Route:
    """The way from rows that a rank names to the ranks that have them, and back; all ranks make one together.

    What arrives is in the order of the ranks that sent it, and of each in the order it named.

    Parameters
    ----------
    rows : (k,) int64
        Row numbers, which exist; another rank may name more or fewer.

    Attributes
    ----------
    places : (p,) int64
        Places here of the rows that all ranks named, each as often as it was named.
    source : list of int
        How many of them each rank named.

    """

    def __init__(self, rows: Tensor) -> None:
        _, self._world = ranks()
        if self._world == 1:
            self.places, self.source = rows, [len(rows)]
            return
        owner = rows % self._world
        self._order = owner.argsort(stable=True)
        counts = torch.bincount(owner, minlength=self._world)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts)
        self._leaving, self.source = counts.tolist(), arriving.tolist()
        self.places = self.send(rows // self._world)

    def send(self, values: Tensor) -> Tensor:
        """Values (k, …) of the named rows, to the ranks that have these: (p, …)."""
        if self._world == 1:
            return values
        return _exchange(values[self._order], self._leaving, self.source)

    def answer(self, values: Tensor) -> Tensor:
        """Values (p, …) for :attr:`places`, to the ranks that named the rows: (k, …), in the order named."""
        if self._world == 1:
            return values
        received = _exchange(values, self.source, self._leaving)
        return torch.empty_like(received).index_copy_(0, self._order, received)


def _exchange(values: Tensor, leaving: list[int], arriving: list[int]) -> Tensor:
    """Send blocks of values to all ranks; as bytes, since backends lack some dtypes."""
    width = values[:1].numel() if len(values) else values.new_empty((1, *values.shape[1:])).numel()
    block = values.reshape(len(values), width).contiguous().view(torch.uint8)
    received = block.new_empty(sum(arriving), width * values.element_size())
    dist.all_to_all_single(received, block, arriving, leaving)
    return received.view(values.dtype).view(-1, *values.shape[1:])


def gather_queries(queries: Tensor) -> tuple[Tensor, int]:
    """Queries (n, d) of all ranks, (W · most, d), and `most`: those of rank r begin at r · most."""
    _, world = ranks()
    if world == 1:
        return queries, len(queries)
    counts = [torch.zeros(1, dtype=torch.int64, device=queries.device) for _ in range(world)]
    dist.all_gather(counts, torch.full_like(counts[0], len(queries)))
    most = max(int(count) for count in counts)
    padded = queries.new_zeros(most, queries.shape[1])
    padded[: len(queries)] = queries
    gathered = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(gathered, padded)
    return torch.cat(gathered), most


def return_sums(parts: Tensor, most: int, count: int) -> Tensor:
    """Sums over ranks of what each has for all queries, (W · most, d): those of this rank's queries, (count, d)."""
    _, world = ranks()
    if world == 1:
        return parts
    received = torch.empty_like(parts)
    dist.all_to_all_single(received, parts.contiguous())
    return received.view(world, most, parts.shape[1]).sum(0)[:count]


def gather_first(values: Tensor) -> list[Tensor]:
    """Values of all ranks, which have one shape, on the first of them; none on the others."""
    rank, world = ranks()
    block = values.reshape(len(values), -1).contiguous().view(torch.uint8)
    parts = [torch.empty_like(block) for _ in range(world)] if rank == 0 else None
    dist.gather(block, parts)
    return [part.view(values.dtype).view(values.shape) for part in parts or []]
