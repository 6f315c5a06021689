"""Which process a batch sampler serves.

accelerate, and with it Hugging Face's Trainer and sentence-transformers, gives whole batches of one sampler to its
processes in turn (``BatchSamplerShard``), and does not say so to the batch sampler: :mod:`setsup.samplers.callers`.
"""

import logging
import os
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from setsup.checks import check_integer
from setsup.errors import SamplerError
from setsup.samplers.callers import processes_of_accelerate
from setsup.samplers.steps import LAST

__all__ = ["Ranks", "check_rank", "find_ranks", "warn_of_lone_ranks"]

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class Ranks:
    """How the draws are divided among ranks.

    Attributes
    ----------
    rank, world : int
        This share, and the number of shares that the batch sampler makes itself.
    processes : int
        The number of processes that draw, whoever divides the draws.

    """

    rank: int
    world: int
    processes: int


def check_rank(rank: Any, world: Any) -> tuple[int | None, int | None]:
    """Rank and number of ranks, both or neither; SamplerError otherwise."""
    if (rank is None) != (world is None):
        given, other = ("rank", "world") if world is None else ("world", "rank")
        raise SamplerError(f"{given}= requires {other}=; pass both, or neither to use those of torch's process group")
    if rank is None:
        return None, None
    world = check_integer(world, "world", SamplerError, 1, LAST - 1)
    return check_integer(rank, "rank", SamplerError, 0, world - 1), world


def find_ranks(rank: int | None, world: int | None) -> Ranks:
    """The given rank, or that of an initialised process group of torch; all draws where accelerate divides them."""
    sharded = processes_of_accelerate(batches=True)
    if rank is not None and world is not None:
        if world > 1 and sharded is not None and sharded > 1:
            raise SamplerError(
                f"accelerate would divide the batches of rank {rank} among {sharded} processes again, which loses "
                "draws; leave out rank= and world="
            )
        return Ranks(rank, world, world)
    if sharded is not None:
        return Ranks(0, 1, sharded)
    group = sys.modules.get("torch.distributed")  # a group is only there where it was imported
    if group is not None and group.is_available() and group.is_initialized():
        return Ranks(group.get_rank(), group.get_world_size(), group.get_world_size())
    return Ranks(0, 1, 1)


@cache
def warn_of_lone_ranks() -> None:
    """Say once that this is one of several processes, as torchrun tells it, which all draw the same."""
    processes = os.environ.get("WORLD_SIZE", "1")
    if processes != "1":
        _log.warning(
            "WORLD_SIZE=%s, but no process group is initialised, so each process draws all batches; call "
            "torch.distributed.init_process_group before the loop, or pass rank= and world=",
            processes,
        )
