"""The loader: an iterable of batches with one position, independent of the number of workers and ranks."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from setsup.checks import check_arguments, check_integer, explains_foreign, is_integer
from setsup.datasets.dataset import Dataset, check_modalities, is_cpu_bound
from setsup.errors import SamplerError, SetsupError, abbreviate, advice
from setsup.loading.batch import Batch, Transform, check_names
from setsup.loading.postprocess import Finish
from setsup.loading.processes import WorkerPool
from setsup.loading.resizing.fetch import ResizedRows
from setsup.loading.resizing.kinds import find_kinds
from setsup.loading.resizing.resizes import Resize
from setsup.loading.stream import BatchBuilder, Job, Stream, inline, prefetch, requests
from setsup.loading.torch import TensorConverter
from setsup.samplers import Sampler, Shard
from setsup.samplers.callers import processes_of_accelerate
from setsup.samplers.iteration import log_pass, steps_to_pass
from setsup.samplers.steps import check_position, pass_end

__all__ = ["Loader", "loader"]

_MOST = 8  # processes started by "auto"


class Loader:
    """Batches of a sampler's draws, in order, starting at a position.

    The position is the first global draw that is not delivered yet; a batch is delivered when ``next`` returns it.
    ``iter(loader)`` always resumes at the position. One training step of ``world`` ranks delivers ``world`` draws.

    Over a finite sampler, one loop is one pass: pass p over a sampler of n draws has the steps p·n to (p + 1)·n − 1, so
    that each pass over an :class:`setsup.EpochSampler` with ``epochs=1`` has its own order. A loop ends at the end of
    the current pass, and the next loop begins the next pass; after an interrupted loop, the next one resumes there.

    Parameters
    ----------
    dataset : Dataset
        The dataset that the sampler was made for.
    sampler : Sampler
        The sampler to draw from.
    modalities : sequence of str, optional
        Modalities to fetch; all by default.
    resize : Resize, optional
        Resizes each image to a common size when it is decoded, before images are stacked, such as
        ``RandomResizedCrop(224)`` of :mod:`setsup.loading.resizing`; other modalities follow the same geometry. Batches
        then have ``homographies``.
    transform : callable of a batch, optional
        Applied to each batch, see :mod:`setsup.loading.transforms` and :mod:`setsup.loading.views`. Arrays that keep
        their name must keep their axes of sets and positions; new names are unrestricted. It must depend only on the
        batch. It runs in the prefetching thread or worker process; for batches on a device, in this process.
    start : int
        First global draw, counted over all passes.
    rank, world : int
        This process's share: draws start + rank, start + rank + world, …
    workers : int or str
        0 makes batches on demand, ``"thread"`` prefetches them in a thread, and another number prefetches them in that
        many processes, but in no more processes than there are batches. If rows are only copied, a consumer that waits
        for the thread makes a batch itself. ``"auto"`` is the thread for datasets that copy rows, for which processes
        cost several times as much as the copy, and one process per core, at most 8, for datasets that decode or render
        (``dataset.cpu_bound``), unless only one batch is left.
    prefetch : int
        Number of batches to prefetch.
    to : str
        ``"torch"``, ``"numpy"``, or a torch device such as ``"cuda:0"``. In torch, images (modalities with a ``color``)
        have the shape (sets, size, channels, height, width), as views of the same memory.

    Raises
    ------
    SamplerError
        If the sampler was made for another table.
    DataError
        If a modality is unknown.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2)
    >>> batches = setsup.loader(shapes, sets, to="numpy", workers=0)
    >>> batch = next(iter(batches))
    >>> batch["image"].shape, batch["factors"]["wall_hue"].shape, batches.state_dict()
    ((2, 4, 64, 64, 3), (2, 4), {'delivered': 1})

    """

    @explains_foreign()
    def __init__(
        self,
        dataset: Dataset,
        sampler: Sampler,
        *,
        modalities: Sequence[str] | None = None,
        resize: Resize | None = None,
        transform: Transform | None = None,
        start: int = 0,
        rank: int = 0,
        world: int = 1,
        workers: int | str = "auto",
        prefetch: int = 2,
        to: str = "torch",
    ) -> None:
        if not isinstance(sampler, Sampler):
            within = "; pass its sampler, as in batches.sampler" if hasattr(sampler, "sampler") else ""
            raise SamplerError(
                f"the second argument of the loader must be a sampler, such as setsup.SetSampler, not "
                f"{type(sampler).__name__}{within}"
            )
        _check_transform(transform)
        _check_resize(resize)
        check_arguments(Loader.__init__, locals(), SamplerError)
        if not dataset.factors.has_fingerprint(sampler.table.fingerprint):
            raise SamplerError(
                f"the sampler was created for a table with fingerprint {sampler.table.fingerprint}, but the table of "
                f"{dataset.name} has fingerprint {dataset.factors.fingerprint}; create the sampler from "
                "dataset.factors, or load dataset.with_factors(table)"
            )
        share = sampler.shard(rank, world)  # checks both, and makes them Python integers
        self.dataset, self.sampler, self.rank, self.world = dataset, sampler, share.rank, share.world
        self.modalities = check_modalities(dataset, modalities)
        check_names(dataset.name, self.modalities)
        self._resized = None
        if resize is not None:
            kinds = find_kinds(resize, dataset.modalities, self.modalities, dataset.name)
            self._resized = ResizedRows(dataset, resize, kinds)
        self._converter = None if to == "numpy" else TensorConverter(to)
        self._finish = Finish(self._converter, transform, dataset.modalities, self.modalities)
        self._workers, self._prefetch = (
            _check_workers(workers, resize is not None or is_cpu_bound(dataset)),
            check_integer(prefetch, "prefetch", SetsupError, 1),
        )
        self._auto = workers == "auto"
        self._delivered = check_position(start, sampler.length)
        self.tells_passes = True  # in the log, where the first pass over an endless EpochSampler ends
        self._made_in = os.getpid()  # copied by pickling and forks
        self._turn = 0  # of the only valid iterator

    def __iter__(self) -> Iterator[Batch]:
        """Batches from the first undelivered draw to the end of its pass; earlier iterators become invalid.

        Raises
        ------
        SetsupError
            In one of several worker processes of torch's DataLoader, unless the worker made the loader itself (with its
            own ``rank`` and ``world``): each worker would deliver every draw. In a DataLoader that accelerate prepared
            for several processes, which would shard the draws again.

        """
        _check_sharded_once()
        if self._made_in != os.getpid():
            _check_no_other_workers()
        self._turn += 1
        return self._batches(self._turn)

    def _batches(self, turn: int) -> Iterator[Batch]:
        end = pass_end(self._delivered, self.sampler.length)
        until_told = steps_to_pass(self.sampler, self._delivered, self.world) if self.tells_passes else None
        with closing(self._stream()) as stream:
            while turn == self._turn:
                if until_told is not None:
                    if until_told == 0:
                        log_pass(self.sampler)
                        self.tells_passes, until_told = False, None
                    else:
                        until_told -= 1
                batch = next(stream, None)
                if batch is None:
                    return
                delivered = self._delivered + self.world
                self._delivered = delivered if end is None else min(delivered, end)
                yield batch  # the position is there before: an interrupt in between would lose a draw
                del batch  # its buffer is free once the consumer drops it
        raise SetsupError(
            "this iterator is no longer valid, because the loader was iterated again or moved to another position; "
            "create a second loader for a second stream"
        )

    def _share(self) -> Shard:
        """Draws of this rank from the position to the end of its pass."""
        end = pass_end(self._delivered, self.sampler.length)
        return Shard(self.sampler, self.rank, self.world, self._delivered, end=end)

    def _stream(self) -> Stream:
        requested = requests(self._share())
        maker, finish = BatchBuilder(self.dataset, self.modalities, self._resized), self._finish
        allocate = self._converter.allocate if self._converter else np.empty
        on_device = self._converter is not None and self._converter.device is not None
        workers = self._needed_workers()
        if workers in (0, "thread"):
            jobs = maker.jobs(requested, allocate)

            def make(job: Job) -> Batch:
                return finish(maker.make(*job))

            if workers == 0:
                return inline(jobs, make)
            plain = finish.transform is None and not on_device
            helps = plain and maker.copies and self._resized is None and not is_cpu_bound(self.dataset)
            return prefetch(jobs, make, self._prefetch, consumer_helps=helps)
        # tensors are views of arrays: made here, they spare each worker the import of torch, which takes seconds
        in_workers = finish.transform is not None and not on_device
        pool = WorkerPool(maker, finish if in_workers else None, int(workers), allocate)
        here = _identity if in_workers else finish
        return prefetch(pool.batches(requested), here, self._prefetch, shutdown=pool.shutdown)

    def _needed_workers(self) -> int | str:
        """Workers for the batches that are left: to start a process takes longer than to make most batches."""
        if isinstance(self._workers, str) or not self._workers or self.sampler.length is None:
            return self._workers
        left = max(1, len(self))
        return "thread" if self._auto and left == 1 else min(self._workers, left)

    def __len__(self) -> int:
        """Number of this rank's batches in the next loop, or left in this one; TypeError for an endless sampler."""
        if self.sampler.length is None:
            raise TypeError(
                "a loader of an infinite sampler has no length; choose the number of steps, and iterate over the "
                "loader directly, or pass it to a DataLoader as an IterableDataset with batch_size=None and "
                "num_workers=0"
            )
        return len(self._share())

    def __repr__(self) -> str:
        """Show dataset, sampler and position."""
        rank = f", rank {self.rank} of {self.world}" if self.world > 1 else ""
        return f"Loader({self.dataset!r}, {self.sampler!r}, {self._delivered} delivered{rank})"

    def state_dict(self) -> dict[str, Any]:
        """Position: the number of global draws delivered over all passes, the same on every rank."""
        return {"delivered": self._delivered}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position; the number of ranks may differ from before.

        Raises
        ------
        SetsupError
            If it is not a position of this sampler.

        """
        delivered: Any = state.get("delivered") if isinstance(state, Mapping) else None
        if not is_integer(delivered):
            raise SetsupError(
                f"the state of a loader must be {{'delivered': number of draws}}, not {abbreviate(state)}"
            )
        self._delivered = check_position(delivered, self.sampler.length)
        self._turn += 1


loader = Loader


def _check_workers(workers: int | str, cpu_bound: bool) -> int | str:
    if workers == "auto":
        return _processes() if cpu_bound else "thread"
    if workers == "thread":
        return workers
    if not isinstance(workers, str) and is_integer(workers) and workers >= 0:  # or numpy's integers
        return int(workers)
    name = advice("workers", "--workers")
    raise SetsupError(f"{name} must be 'auto', 'thread' or an integer of at least 0, not {abbreviate(workers)}")


def _identity(batch: Batch) -> Batch:
    return batch


def _processes() -> int | str:
    """One process per core available to this rank; the thread if there is only one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # set by torchrun: ranks on this machine
    return min(share, _MOST) if share > 1 else "thread"


def _check_transform(transform: Any) -> None:
    if transform is None:
        return
    if type(transform).__module__.startswith("setsup.loading.transforms.operations"):
        raise SetsupError(
            f"{transform!r} is an operation on images, not a transform of batches; pass Augment([{transform!r}])"
        )
    if not callable(transform):
        raise SetsupError(
            f"the transform must be a callable that takes and returns a batch, not {abbreviate(transform)}; combine "
            "several with Compose([…]), and operations on images with Augment([…])"
        )


def _check_resize(resize: Any) -> None:
    if resize is None or isinstance(resize, Resize):
        return
    module, name = type(resize).__module__, type(resize).__name__
    instead = "RandomResizedCrop(224)"
    if module.startswith("setsup.loading.transforms"):
        raise SetsupError(
            f"resize= cannot be {name}, which requires images of the same size; pass a resize of "
            f"setsup.loading.resizing, such as {instead}, and {name} in transform="
        )
    raise SetsupError(
        f"resize must be a resize of setsup.loading.resizing, such as {instead}, not {abbreviate(resize)}; for a size "
        "alone pass ShortSide(size)"
    )


def _check_no_other_workers() -> None:
    data = sys.modules.get("torch.utils.data")  # imported in every such worker
    worker = None if data is None else data.get_worker_info()
    if worker is not None and worker.num_workers > 1:
        raise SetsupError(
            f"each of the {worker.num_workers} worker processes of torch's DataLoader would deliver all draws of this "
            "loader; pass num_workers=0 to the DataLoader and workers= to setsup.loader, or create the loader in each "
            "worker, with its rank= and world="
        )


def _check_sharded_once() -> None:
    """Raise if a DataLoader of accelerate for several processes is among the callers."""
    if (processes := processes_of_accelerate() or 1) > 1:
        raise SetsupError(
            f"accelerate would read this loader only in its main process and shard it among {processes} processes "
            "again, which loses draws; create the loader with rank=accelerator.process_index, "
            "world=accelerator.num_processes, and do not pass it to accelerator.prepare"
        )
