"""Ranks as threads of one process: the collective operations that state by row uses, by a barrier and a shared list."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from setsup.methods.rows import exchange

__all__ = ["on_ranks"]


class Group:
    """In place of ``torch.distributed``."""

    def __init__(self, world: int) -> None:
        self.world, self.own = world, threading.local()
        self.barrier, self.shared = threading.Barrier(world, timeout=20), [None] * world

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return hasattr(self.own, "rank")

    def get_rank(self) -> int:
        return int(self.own.rank)

    def get_world_size(self) -> int:
        return self.world

    def _share(self, value: Any) -> list[Any]:
        """What all ranks give, on all of them."""
        self.barrier.wait()
        self.shared[self.own.rank] = value
        self.barrier.wait()
        return list(self.shared)

    def all_reduce(self, tensor: torch.Tensor) -> None:
        found = sum(self._share(tensor.clone()))
        tensor.copy_(found)

    def all_gather(self, out: list[torch.Tensor], tensor: torch.Tensor) -> None:
        for here, there in zip(out, self._share(tensor.clone()), strict=True):
            here.copy_(there)

    def gather(self, tensor: torch.Tensor, out: list[torch.Tensor] | None) -> None:
        found = self._share(tensor.clone())
        assert (out is None) == (self.own.rank != 0)
        for here, there in zip(out or [], found if out else [], strict=True):
            here.copy_(there)

    def all_to_all_single(
        self, out: torch.Tensor, tensor: torch.Tensor, arriving: Any = None, leaving: Any = None
    ) -> None:
        assert out.is_contiguous()
        assert tensor.is_contiguous()
        blocks = tensor.clone().split(leaving or [len(tensor) // self.world] * self.world)
        found = [blocks[self.own.rank] for blocks in self._share(blocks)]
        assert arriving is None or [len(block) for block in found] == arriving
        out.copy_(torch.cat(found))


def on_ranks(world: int, work: Callable[[int], Any]) -> list[Any]:
    """What `work` returns on each of so many ranks, or the error it raises there."""
    group = Group(world)

    def run(rank: int) -> Any:
        group.own.rank = rank
        try:
            return work(rank)
        except threading.BrokenBarrierError:
            raise
        except Exception as error:
            return error

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(world) as pool:
        patch.setattr(exchange, "dist", group)
        return list(pool.map(run, range(world)))
