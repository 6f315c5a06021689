"""What trainers among the callers do with draws, where they tell nobody: read from the frames of the stack.

A frame is found by module and function. What is read of it has no default: where a library was changed, there is an
error that names what is missing, and not another division of the draws.
"""

import sys
from collections.abc import Iterator
from importlib import metadata
from operator import attrgetter
from types import FrameType
from typing import Any

from setsup.errors import SamplerError, UsageError

__all__ = [
    "epoch_of_lightning",
    "epoch_of_skipping",
    "is_announced_by_accelerate",
    "is_announced_by_lightning",
    "processes_of_accelerate",
    "refuse_cut_batches",
    "refuse_sampler_of_rows",
]

_ACCELERATE = "accelerate.data_loader"
_SHARES = {"BatchSamplerShard", "IterableDatasetShard"}
"""Classes of accelerate that give each process its share."""

_OTHERS = {"SkipBatchSampler", "SkipDataLoader", "SeedableRandomSampler", "MpDeviceLoaderWrapper"}
"""Classes of accelerate that divide nothing."""

_REQUESTS = {
    (f"{package}.loops.{module}", function)
    for package in ("lightning.pytorch", "pytorch_lightning")
    for module, function in (("fit_loop", "setup_data"), ("training_epoch_loop", "on_run_start"))
}
"""Functions of Lightning's loops that make an iterator over a DataLoader."""

_BATCHING = ("torch.utils.data.sampler", "torchdata.stateful_dataloader.sampler")
"""Modules of the batch samplers that a DataLoader puts around its ``sampler=``."""

_FABRIC = ("lightning.fabric.utilities.data", "lightning_fabric.utilities.data")


def processes_of_accelerate(batches: bool = False) -> int | None:
    """Number of processes that share the draws which a calling DataLoader of accelerate reads; None without one.

    `batches`: whether these draws are whole batches, so that cutting them is an error. SamplerError also where several
    processes share by a class of accelerate that is not known.
    """
    for frame in _frames(_ACCELERATE):
        if "self" not in frame.f_locals:
            continue
        # not its __class__, which says that it is a DataLoader of torch; a subclass is what it derives from
        kind = type(frame.f_locals["self"])
        names = {one.__name__ for one in kind.__mro__}
        if names & _SHARES:
            processes = int(_read(frame, "self.num_processes"))
            if batches and processes > 1 and _read(frame, "self.split_batches"):
                raise _cut("split_batches")
            return processes
        if "DataLoaderDispatcher" in names:
            if batches and _started() > 1:
                raise _cut("dispatch_batches")
            return _started()
        if "DataLoaderShard" in names:  # of one process, or of processes that share the draws of one
            return 1
        if not names & _OTHERS and _started() > 1:
            raise SamplerError(
                f"{_release(_ACCELERATE)} divides draws by its class {kind.__name__}, which setsup does not know; do "
                "not pass this DataLoader to accelerator.prepare, so that each process takes its share by itself"
            )
    return None


def is_announced_by_accelerate() -> bool:
    """Whether a prepared DataLoader of accelerate announces its own count of passes, which starts at 0 in every run."""
    return any(frame.f_code.co_name == "__iter__" for frame in _frames(_ACCELERATE))


def epoch_of_skipping() -> int | None:
    """Number of the pass of which accelerate skips the first batches; None where it skips none.

    Its ``skip_first_batches``, with which Hugging Face's Trainer resumes within an epoch, puts a batch sampler around
    those that divide batches, through which no ``set_epoch`` comes; the DataLoader knows the number.
    """
    skips = False
    for frame in _frames(_ACCELERATE):
        name = type(frame.f_locals.get("self")).__name__  # a function has no self
        skips |= name == "SkipBatchSampler"
        if skips and name == "DataLoaderShard":
            return int(_read(frame, "self.iteration"))
    return None


def epoch_of_lightning() -> int | None:
    """Number of the epoch for which a calling training loop of Lightning requests batches; None without one.

    With worker processes, torch's DataLoader requests indices as soon as its iterator is made, and Lightning calls
    ``set_epoch`` in a run that resumes after that only (Lightning's issue 21938). A loop that begins with a later epoch
    makes a second iterator, where it starts to run.
    """
    for frame in _frames(*{module for module, _ in _REQUESTS}):
        if (frame.f_globals["__name__"], frame.f_code.co_name) in _REQUESTS:
            return int(_read(frame, "self.trainer.fit_loop.epoch_progress.current.processed"))  # as for its set_epoch
    return None


def is_announced_by_lightning() -> bool:
    """Whether a loop of Lightning announces the number of its epoch."""
    return any(frame.f_code.co_name == "_set_sampler_epoch" for frame in _frames(*_FABRIC))


def refuse_cut_batches() -> None:
    """Refuse trainers that are about to cut batches, or to divide the rows of one: called where they look for that."""
    for frame in _frames(_ACCELERATE):
        if frame.f_code.co_name == "prepare_data_loader" and (_read(frame, "num_processes") or 1) > 1:
            for option in ("split_batches", "dispatch_batches"):
                if _read(frame, option):
                    raise _cut(option)
    for frame in _frames(*_FABRIC, "lightning.pytorch.utilities.data", "pytorch_lightning.utilities.data"):
        # of Fabric it has no is_predicting
        if frame.f_code.co_name == "_dataloader_init_kwargs_resolve_sampler" and not frame.f_locals.get(
            "is_predicting"
        ):
            raise SamplerError(
                "Lightning would replace the sampler of these batches with a DistributedSampler, which splits batches "
                "into single rows; pass use_distributed_sampler=False to the Trainer (or to Fabric's "
                "setup_dataloaders); each rank then draws its own share"
            )


def refuse_sampler_of_rows(batches: object) -> None:
    """Refuse to be the ``sampler=`` of a DataLoader, which collects rows: called where batches begin, or are counted.

    With ``batch_size=None``, a DataLoader collects nothing, and ``sampler=`` is a sampler of batches.
    """
    for frame in _frames(*_BATCHING):
        if getattr(frame.f_locals.get("self"), "sampler", None) is batches:
            raise UsageError(
                f"a DataLoader takes each item of sampler= for one row, but an item of this {type(batches).__name__} "
                "is a batch of rows; pass it as batch_sampler=, without batch_size=, shuffle= and drop_last="
            )


def _cut(option: str) -> SamplerError:
    return SamplerError(
        f"accelerate's {option}=True cuts batches into parts for its processes, so that no part keeps its classes; "
        f"leave out {option}=: whole batches then go to the processes in turn"
    )


def _frames(*modules: str) -> Iterator[FrameType]:
    """Frames of the callers in some modules, innermost first."""
    if not any(module in sys.modules for module in modules):
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in modules:
            yield frame
        frame = frame.f_back


def _read(frame: FrameType, path: str) -> Any:
    """A local variable of a caller, or an attribute of one; SamplerError where the library has no such name."""
    first, _, rest = path.partition(".")
    try:
        value = frame.f_locals[first]
        return attrgetter(rest)(value) if rest else value
    except (KeyError, AttributeError):
        function = f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"
        raise SamplerError(
            f"{_release(function)} has no {path} in {function}, by which setsup finds the draws of this process; "
            "install an earlier version"
        ) from None


def _started() -> int:
    """Number of processes that accelerate started."""
    return int(sys.modules["accelerate.state"].PartialState().num_processes)


def _release(module: str) -> str:
    """Name and version of the package that a module is of."""
    package = module.partition(".")[0]
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package
