"""The loader: an iterable of batches with one position, the same for any number of workers and ranks."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from setsup.datasets.dataset import Dataset, fetch_request
from setsup.errors import SamplerError, SetsupError
from setsup.loading.batch import Batch
from setsup.loading.stream import Source, by_processes, by_thread, inline
from setsup.loading.torch import Door
from setsup.samplers import Sampler

__all__ = ["Loader", "loader"]

Transform = Callable[[Batch], Batch]


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
        Changes a batch after it has arrived where ``to`` says; it must keep the number of sets and slots.
    start : int
        Global draw to begin with.
    rank, world : int
        This process's share: draws start + rank, start + rank + world, …
    workers : int or str
        0 makes batches when they are asked for, ``"thread"`` in one thread ahead, a number in so many processes.
        ``"auto"`` is a thread: moving batches between processes costs several times what copying rows does, and data
        sets that decode images do so in threads of their own.
    prefetch : int
        Batches made ahead, by each worker.
    to : str
        ``"torch"``, ``"numpy"``, or a torch device such as ``"cuda:0"``. In torch images are uint8
        (sets, size, channels, height, width), a view of the same memory.

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
        if sampler.table.fingerprint != dataset.factors.fingerprint:
            raise SamplerError(
                f"the sampler was made of another table (fingerprint {sampler.table.fingerprint}) than that of "
                f"{dataset.name} ({dataset.factors.fingerprint}): make it of dataset.factors"
            )
        sampler.shard(rank, world, start)  # checks the three
        self.dataset, self.sampler, self.rank, self.world = dataset, sampler, rank, world
        self.modalities = fetch_request(dataset, [], modalities)[1]
        self._transform, self._door = transform, _door(to)
        self._workers, self._prefetch = _checked_workers(workers), _positive(prefetch)
        self._delivered = start

    def __iter__(self) -> Iterator[Batch]:
        """Batches from the first global draw that was not delivered yet."""
        shard = self.sampler.shard(self.rank, self.world, self._delivered)
        door = self._door
        for batch in self._stream(Source(self.dataset, shard, self.modalities)):
            shape = batch["indices"].shape
            given = door.deliver(batch, self.dataset.modalities, self.modalities) if door else batch
            del batch
            if self._transform is not None:
                given = _same_slots(self._transform(given), self.modalities, shape)
            self._delivered += self.world
            if self.sampler.length is not None:
                self._delivered = min(self._delivered, self.sampler.length)
            yield given
            del given  # so that its buffer is free once the consumer lets go of it

    def _stream(self, source: Source) -> Iterator[Batch]:
        allocate = self._door.allocate if self._door else np.empty
        if self._workers == 0:
            return inline(source, allocate)
        if self._workers == "thread":
            return by_thread(source, allocate, self._prefetch)
        _check_picklable(source)
        return by_processes(source, int(self._workers), self._prefetch)

    def __len__(self) -> int:
        """Count the batches that are left for this rank; TypeError for an endless sampler."""
        return len(self.sampler.shard(self.rank, self.world, self._delivered))

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
        delivered = state.get("delivered") if isinstance(state, Mapping) else None
        if not isinstance(delivered, int) or isinstance(delivered, bool):
            raise SetsupError(f"the state of a loader is {{'delivered': number of draws}}, not {state!r}")
        self.sampler.shard(self.rank, self.world, delivered)
        self._delivered = delivered


loader = Loader


def _door(to: str) -> Door | None:
    """What turns batches of arrays into tensors; None where they stay arrays."""
    return None if to == "numpy" else Door(to)


def _checked_workers(workers: int | str) -> int | str:
    if workers == "auto":
        return "thread"
    if workers == "thread" or (isinstance(workers, int) and not isinstance(workers, bool) and workers >= 0):
        return workers
    raise SetsupError(f"workers must be 'auto', 'thread' or a whole number from 0 on, not {workers!r}")


def _positive(prefetch: int) -> int:
    if isinstance(prefetch, bool) or not isinstance(prefetch, int) or prefetch < 1:
        raise SetsupError(f"prefetch must be a whole number from 1 on, not {prefetch!r}")
    return prefetch


def _check_picklable(source: Source) -> None:
    try:
        pickle.dumps(source)
    except Exception as error:
        raise SetsupError(
            f"the data set cannot be sent to worker processes ({error}): make it picklable, or pass workers='thread'"
        ) from None


def _same_slots(batch: Batch, modalities: Sequence[str], shape: tuple[int, ...]) -> Batch:
    """The batch a transform gave, if it kept the sets and slots."""
    for name in modalities:
        if name in batch and tuple(batch[name].shape[:2]) != shape:
            raise SetsupError(
                f"the transform changed {name!r} from {shape[0]} sets of {shape[1]} to {tuple(batch[name].shape[:2])}: "
                "keep one array a slot; further copies go under names of their own"
            )
    return batch
