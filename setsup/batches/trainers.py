"""Which process a batch sampler serves, and trainers that would divide its batches again.

accelerate, and with it Hugging Face's Trainer and sentence-transformers, gives whole batches of one sampler to its
processes in turn (``BatchSamplerShard``); Lightning replaces the sampler of a batch sampler. Neither says so to the
batch sampler, so the callers are looked at.
"""

import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import Any

from setsup.checks import check_integer
from setsup.errors import SamplerError
from setsup.samplers.steps import LAST

__all__ = [
    "Deal",
    "announced_by_accelerate",
    "check_rank",
    "epoch_of_skipping",
    "find_deal",
    "refuse_cut_batches",
    "warn_of_lone_ranks",
]

_log = logging.getLogger("setsup")
_ACCELERATE = "accelerate.data_loader"


@dataclass(frozen=True, slots=True)
class Deal:
    """How the draws are divided.

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


def find_deal(rank: int | None, world: int | None) -> Deal:
    """The given rank, or that of an initialised process group of torch; all draws where accelerate divides them."""
    sharded = _shards_of_accelerate()
    if rank is not None and world is not None:
        if world > 1 and sharded is not None and sharded > 1:
            raise SamplerError(
                f"accelerate would divide the batches of rank {rank} among {sharded} processes again, which loses "
                "draws; leave out rank= and world="
            )
        return Deal(rank, world, world)
    if sharded is not None:
        return Deal(0, 1, sharded)
    group = sys.modules.get("torch.distributed")  # a group is only there where it was imported
    if group is not None and group.is_available() and group.is_initialized():
        return Deal(group.get_rank(), group.get_world_size(), group.get_world_size())
    return Deal(0, 1, 1)


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


def refuse_cut_batches() -> None:
    """Refuse trainers that are about to cut batches, or to divide the rows of one: called where they look for that."""
    for frame in _callers():
        name, known = frame.f_code.co_name, frame.f_locals
        if name == "prepare_data_loader" and _module(frame) == _ACCELERATE and (known.get("num_processes") or 1) > 1:
            for option in ("split_batches", "dispatch_batches"):
                if known.get(option):
                    raise _cut(option)
        if name == "_dataloader_init_kwargs_resolve_sampler" and not known.get("is_predicting"):
            raise SamplerError(
                "Lightning would replace the sampler of these batches with a DistributedSampler, which splits batches "
                "into single rows; pass use_distributed_sampler=False to the Trainer (or to Fabric's "
                "setup_dataloaders); each rank then draws its own share"
            )


def announced_by_accelerate() -> bool:
    """Whether a prepared DataLoader of accelerate announces its own count of passes, which starts at 0 in every run."""
    if _ACCELERATE not in sys.modules:
        return False
    return any(_module(frame) == _ACCELERATE and frame.f_code.co_name == "__iter__" for frame in _callers())


def epoch_of_skipping() -> int | None:
    """Number of the pass of which accelerate skips the first batches; None where it skips none.

    Its ``skip_first_batches``, with which Hugging Face's Trainer resumes within an epoch, puts a batch sampler around
    those that divide batches, through which no ``set_epoch`` comes; the DataLoader knows the number.
    """
    if _ACCELERATE not in sys.modules:
        return None
    skips = False
    for frame in _callers():
        if _module(frame) == _ACCELERATE:
            owner = frame.f_locals.get("self")
            skips |= type(owner).__name__ == "SkipBatchSampler"
            if skips and type(owner).__name__ == "DataLoaderShard":
                return int(owner.iteration)  # type: ignore[union-attr]
    return None


def _shards_of_accelerate() -> int | None:
    """Number of processes to which a DataLoader of accelerate among the callers gives batches; None without one."""
    if _ACCELERATE not in sys.modules:
        return None
    for frame in _callers():
        if _module(frame) != _ACCELERATE:
            continue
        owner = frame.f_locals.get("self")
        kind = type(owner).__name__  # not its __class__, which says that it is a DataLoader of torch
        if kind == "BatchSamplerShard":
            sharded: Any = owner
            processes = int(sharded.num_processes)
            if processes > 1 and sharded.split_batches:
                raise _cut("split_batches")
            return processes
        if kind == "DataLoaderDispatcher":
            if sys.modules["accelerate.state"].PartialState().num_processes > 1:
                raise _cut("dispatch_batches")
            return 1
        if kind == "DataLoaderShard":  # of one process, or of processes that share the batches of one
            return 1
    return None


def _cut(option: str) -> SamplerError:
    return SamplerError(
        f"accelerate's {option}=True cuts batches into parts for its processes, so that no part keeps its classes; "
        f"leave out {option}=: whole batches then go to the processes in turn"
    )


def _callers() -> Iterator[FrameType]:
    """Frames of the callers, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> Any:
    return frame.f_globals.get("__name__")
