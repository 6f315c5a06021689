"""A sampler of the audit, and how the ranks of a training get their batches from it."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from benchmarks.audit.tasks import Task

__all__ = [
    "ACCELERATE",
    "LIGHTNING",
    "OWN",
    "TRAINER",
    "Batches",
    "Fixed",
    "Line",
    "in_accelerate",
    "in_lightning",
    "on_their_own",
    "seed_everything",
    "window",
]

OWN, LIGHTNING, ACCELERATE = "a process each", "Lightning's Trainer", "accelerate's prepare"
TRAINER = "its trainer, by accelerate"
"""How ranks get their batches."""
_WRAPPERS = {LIGHTNING: "lightning", ACCELERATE: "accelerate", TRAINER: "accelerate"}
Batches = Iterator[tuple[int, int, Sequence[int]]]
"""Epoch, rank and rows of each batch."""


class Line(NamedTuple):
    """A sampler, how it is used on several ranks, and which promises are its own.

    ``depends_on`` is what its draws depend on next to the library: by default the version of what wraps it for ranks.
    """

    name: str
    ranks: str
    family: str
    own: tuple[str, ...]
    version: str
    draw: Callable[[Task], Batches]
    depends_on: str | None = None

    @property
    def dependency(self) -> str:
        """What its draws depend on next to the library, as it is kept; empty where that is nothing."""
        if self.depends_on is not None:
            return self.depends_on
        wrapper = _WRAPPERS.get(self.ranks)
        return "" if wrapper is None else f"{wrapper} {metadata.version(wrapper)}"


class Fixed:
    """What a sampler yields, drawn once: rows, or batches."""

    def __init__(self, sampler: Any) -> None:
        self.batch_size, self.drop_last = getattr(sampler, "batch_size", None), getattr(sampler, "drop_last", False)
        self._items = list(sampler)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        """Number of rows or batches."""
        return len(self._items)


def seed_everything(seed: int) -> None:
    """Seed the global generators, from which most peers draw."""
    import torch

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def window(task: Task) -> int:
    """Batches among which an epoch over the labels would have each label once: ⌊L/P⌋."""
    return max(1, task.cell.classes // task.ways)


def on_their_own(task: Task, make: Callable[[], Iterable[Sequence[int]]]) -> Batches:
    """Each rank is a process with a seed of its own, and iterates over a sampler of its own again and again."""
    for rank in range(task.ranks):
        seed_everything(1_000 * task.seed + rank)
        for step, batch in enumerate(islice(_passes(make()), task.steps)):
            yield step // window(task) * task.ranks + rank, rank, batch


def _passes(batches: Iterable[Sequence[int]]) -> Iterator[Sequence[int]]:
    """Batches of pass after pass, unless one is empty."""
    while True:
        count = 0
        for batch in batches:
            count += 1
            yield batch
        if not count:
            return


def in_lightning(task: Task, make: Callable[[], Any]) -> Batches:
    """Batches of a flat sampler as Lightning's Trainer shards it while it trains: a wrapper for it, with shuffle=True.

    Like ``seed_everything``, all ranks have the same seed. A single process gets the sampler as it is.
    """
    from lightning.fabric.utilities.distributed import DistributedSamplerWrapper
    from torch.utils.data import BatchSampler

    seed_everything(task.seed)
    drawn = Fixed(make())  # the same on every rank
    for rank in range(task.ranks):
        sampler: Any = drawn
        if task.ranks > 1:
            sampler = DistributedSamplerWrapper(drawn, num_replicas=task.ranks, rank=rank, shuffle=True, seed=task.seed)
        for step, batch in enumerate(BatchSampler(sampler, task.size, False)):
            yield step // window(task) * task.ranks + rank, rank, batch


def in_accelerate(task: Task, make: Callable[[], Any], *, even_batches: bool = True) -> Batches:
    """Batches as accelerate shards them, whole ones; a single process gets them as they are.

    Like ``set_seed``, all ranks have the same seed.
    """
    from accelerate.data_loader import BatchSamplerShard

    seed_everything(task.seed)
    batches = Fixed(make())  # the same on every rank
    for rank in range(task.ranks):
        sharded = BatchSamplerShard(batches, task.ranks, rank, even_batches=even_batches) if task.ranks > 1 else batches
        for step, batch in enumerate(sharded):
            yield (step * task.ranks + rank) // window(task), rank, batch
