"""The loader: an iterable of batches with one position, the same for any number of workers and ranks."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from setsup.checks import check_arguments, is_integer
from setsup.datasets.dataset import Dataset, fetch_request
from setsup.errors import SamplerError, SetsupError, brief
from setsup.loading.batch import Batch, Finish, Transform, check_names
from setsup.loading.processes import WorkerPool
from setsup.loading.stream import Job, Maker, Stream, ahead, inline, requests
from setsup.loading.torch import TensorConverter, accelerated_processes
from setsup.samplers import Sampler

__all__ = ["Loader", "loader"]

_MOST = 8  # processes that "auto" starts


class Loader:
    """Batches of a sampler's draws, in order, from one position on.

    The position is the first global draw that was not delivered yet; a batch is delivered when ``next`` returns it.
    ``iter(loader)`` always goes on there. One training step of ``world`` ranks delivers ``world`` draws.

    Parameters
    ----------
    dataset : Dataset
        Whose table the sampler was made of.
    sampler : Sampler
        What to draw.
    modalities : sequence of str, optional
        What to fetch; everything by default.
    transform : callable of a batch, optional
        Changes a batch, see :mod:`setsup.loading.transforms`. What keeps its name keeps its sets and slots; names that
        it adds are its own. It must depend on the batch alone. It runs where the batch is made, in the thread or the
        worker process; with batches on a device, in this process.
    start : int
        Global draw to begin with.
    rank, world : int
        This process's share: draws start + rank, start + rank + world, …
    workers : int or str
        0 makes batches when they are asked for, ``"thread"`` in one thread ahead, a number in so many processes.
        Where rows are copied and nothing else is done to them, whoever waits for the thread makes a batch meanwhile.
        ``"auto"`` is the thread for data sets that copy rows, for which processes cost several times the copy; and for
        those that decode or render (``dataset.computes``) one process a core, at most 8.
    prefetch : int
        Batches made ahead.
    to : str
        ``"torch"``, ``"numpy"``, or a torch device such as ``"cuda:0"``. In torch pictures, which are modalities that
        say their ``color``, are (sets, size, channels, height, width), a view of the same memory.

    Raises
    ------
    SamplerError
        When the sampler was made of another table.
    DataError
        When there is no such modality.

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

    def __init__(
        self,
        dataset: Dataset,
        sampler: Sampler,
        *,
        modalities: Sequence[str] | None = None,
        transform: Transform | None = None,
        start: int = 0,
        rank: int = 0,
        world: int = 1,
        workers: int | str = "auto",
        prefetch: int = 2,
        to: str = "torch",
    ) -> None:
        if not isinstance(sampler, Sampler):
            raise SamplerError(f"the loader takes a data set and then a sampler, not {type(sampler).__name__}")
        _check_transform(transform)
        check_arguments(Loader.__init__, locals(), SamplerError)
        if not dataset.factors.has_fingerprint(sampler.table.fingerprint):
            raise SamplerError(
                f"the sampler was made of another table (fingerprint {sampler.table.fingerprint}) than that of "
                f"{dataset.name} ({dataset.factors.fingerprint}): make it of dataset.factors"
            )
        share = sampler.shard(rank, world, start)  # which checks the three, and makes them Python's own numbers
        self.dataset, self.sampler, self.rank, self.world = dataset, sampler, share.rank, share.world
        self.modalities = fetch_request(dataset, [], modalities)[1]
        check_names(dataset.name, self.modalities)
        self._door = _door(to)
        self._finish = Finish(self._door, transform, dataset.modalities, self.modalities)
        self._workers, self._prefetch = _checked_workers(workers, dataset), _positive(prefetch)
        self._delivered = share.start
        self._made_in = os.getpid()  # which one that is pickled or forked keeps
        self._turn = 0  # of the iterator that may go on; others would take batches away from it

    def __iter__(self) -> Iterator[Batch]:
        """Batches from the first global draw that was not delivered yet; an iterator made before ends here.

        Raises
        ------
        SetsupError
            In one of several worker processes of torch's DataLoader, where the loader was made before them: each would
            give every draw. One that a worker makes itself takes its share by ``rank`` and ``world``. In a DataLoader
            that accelerate prepared on several processes, which would shard the draws once more.

        """
        _check_sharded_once()
        if self._made_in != os.getpid():
            _check_no_other_workers()
        self._turn += 1
        return self._batches(self._turn)

    def _batches(self, turn: int) -> Iterator[Batch]:
        with closing(self._stream()) as stream:
            while turn == self._turn:
                batch = next(stream, None)
                if batch is None:
                    return
                delivered, last = self._delivered + self.world, self.sampler.length
                delivered = delivered if last is None else min(delivered, last)
                self._delivered = delivered  # last: an interrupt between this and the yield would lose a draw
                yield batch
                del batch  # so that its buffer is free once the consumer lets go of it
        raise SetsupError(
            "this iterator has ended: the loader went on with another one, or to another position; a loader has one "
            "position, so make a second loader for a second stream"
        )

    def _stream(self) -> Stream:
        asked = requests(self.sampler.shard(self.rank, self.world, self._delivered))
        maker, finish = Maker(self.dataset, self.modalities), self._finish
        allocate = self._door.allocate if self._door else np.empty
        on_device = self._door is not None and self._door.device is not None
        if self._workers in (0, "thread"):
            jobs = maker.jobs(asked, allocate)

            def make(job: Job) -> Batch:
                return finish(maker.make(*job))

            if self._workers == 0:
                return inline(jobs, make)
            plain = finish.transform is None and not on_device
            helps = plain and maker.copies and not _computes(self.dataset)
            return ahead(jobs, make, self._prefetch, helps=helps)
        crew = WorkerPool(maker, None if on_device else finish, int(self._workers), allocate)
        here = finish if on_device else _as_it_is
        return ahead(crew.batches(asked), here, self._prefetch, let_go=crew.let_go)

    def __len__(self) -> int:
        """Count the batches that are left for this rank; TypeError for an endless sampler."""
        if self.sampler.length is None:
            raise TypeError(
                "a loader of an endless sampler has no length: choose the number of steps yourself, and iterate over "
                "it without torch's DataLoader, or with one of an IterableDataset, batch_size=None and num_workers=0"
            )
        return len(self.sampler.shard(self.rank, self.world, self._delivered))

    def __repr__(self) -> str:
        """Show what is loaded, and from where on."""
        rank = f", rank {self.rank} of {self.world}" if self.world > 1 else ""
        return f"Loader({self.dataset!r}, {self.sampler!r}, {self._delivered} delivered{rank})"

    def state_dict(self) -> dict[str, Any]:
        """Position: the number of global draws delivered, the same on every rank."""
        return {"delivered": self._delivered}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position; the number of ranks may be another one than before.

        Raises
        ------
        SetsupError
            When it is no position of this sampler.

        """
        delivered: Any = state.get("delivered") if isinstance(state, Mapping) else None
        if not is_integer(delivered):
            raise SetsupError(f"the state of a loader is {{'delivered': number of draws}}, not {brief(state)}")
        self._delivered = self.sampler.shard(self.rank, self.world, delivered).start
        self._turn += 1


loader = Loader


def _door(to: str) -> TensorConverter | None:
    """What turns batches of arrays into tensors; None where they stay arrays."""
    return None if to == "numpy" else TensorConverter(to)


def _checked_workers(workers: int | str, dataset: Dataset) -> int | str:
    if workers == "auto":
        return _processes() if _computes(dataset) else "thread"
    if workers == "thread":
        return workers
    if not isinstance(workers, str) and is_integer(workers) and workers >= 0:  # which numpy's numbers are as well
        return int(workers)
    raise SetsupError(f"workers must be 'auto', 'thread' or a whole number from 0 on, not {brief(workers)}")


def _computes(dataset: Dataset) -> bool:
    return bool(getattr(dataset, "computes", False))


def _as_it_is(batch: Batch) -> Batch:
    return batch


def _processes() -> int | str:
    """One process for each core that this rank may use; the thread where there is but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # torchrun's number of ranks on this machine
    return min(share, _MOST) if share > 1 else "thread"


def _check_transform(transform: Any) -> None:
    if transform is None:
        return
    if type(transform).__module__.startswith("setsup.loading.transforms.operations"):
        raise SetsupError(f"{transform!r} is an operation on images, no transform of batches: put it into Augment")
    if not callable(transform):
        raise SetsupError(
            f"the transform must be a callable that takes a batch and returns it, not {brief(transform)}: "
            "several go into Compose([…]), operations on images into Augment([…])"
        )


def _positive(prefetch: int) -> int:
    if not is_integer(prefetch) or prefetch < 1:
        raise SetsupError(f"prefetch must be a whole number from 1 on, not {brief(prefetch)}")
    return int(prefetch)


def _check_no_other_workers() -> None:
    data = sys.modules.get("torch.utils.data")  # which whoever is such a worker has imported
    worker = None if data is None else data.get_worker_info()
    if worker is not None and worker.num_workers > 1:
        raise SetsupError(
            f"each of the {worker.num_workers} worker processes of torch's DataLoader would give every draw of this "
            "loader: pass num_workers=0 there, and workers= to setsup.loader, or make the loader in each worker, with "
            "its rank= and world="
        )


def _check_sharded_once() -> None:
    """Refuse to be read by a DataLoader of accelerate, which is among the callers, for several processes."""
    if (processes := accelerated_processes()) > 1:
        raise SetsupError(
            f"accelerate would read this loader in its main process alone, and shard it among {processes} processes "
            "again, so that draws are lost: leave it out of accelerator.prepare, and make it with "
            "rank=accelerator.process_index, world=accelerator.num_processes"
        )
