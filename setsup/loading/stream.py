"""Streams of batches, in order, made where they are asked for or by a thread ahead. Both give the same batches."""

import atexit
import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from setsup.datasets.dataset import Dataset, Selection
from setsup.errors import SetsupError
from setsup.loading.batch import Batch, batch_of
from setsup.loading.ring import Allocate, Ring
from setsup.samplers import Draw, Shard

__all__ = ["Job", "Maker", "Request", "Stream", "ahead", "inline", "requests"]

Request = tuple[int, Draw]
Buffers = dict[str, npt.NDArray[Any]]
Job = tuple[Request, Buffers | None]
Stream = Generator[Batch, None, None]

_QUICK = 0.02  # seconds: who waits for a batch makes one meanwhile where that takes no longer


def requests(shard: Shard) -> Iterator[Request]:
    """Draws of one rank, in order, each with its global number."""
    step = shard.start + shard.rank
    for draw in shard:
        yield step, draw
        step += shard.world


@dataclass(frozen=True, slots=True)
class Maker:
    """Turns requests into batches of arrays."""

    dataset: Dataset
    modalities: tuple[str, ...]

    @property
    def copies(self) -> bool:
        """Whether the dataset copies rows to where they are wanted."""
        # what only fetches would gain nothing: its rows would be copied twice
        source = self.dataset
        while isinstance(source, Selection):  # which hands on what it is asked for
            source = source.source
        return getattr(type(source), "fetch_into", Dataset.fetch_into) is not Dataset.fetch_into

    def jobs(self, asked: Iterator[Request], allocate: Allocate) -> Generator[Job, None, None]:
        """Requests with buffers for their rows, for one thread at a time: two might find the same buffer free."""
        rings: dict[str, Ring] | None = None
        for number, request in enumerate(asked):
            if number == 0:
                rings = self.rings(request[1].indices.shape, allocate)  # the same at every step
            yield request, {name: ring.take() for name, ring in rings.items()} if rings else None

    def make(self, request: Request, buffers: Buffers | None = None) -> Batch:
        """Fetch one draw, for any number of threads at once."""
        return batch_of(self.dataset, *request, self.modalities, buffers)

    def rings(self, slots: Sequence[int], allocate: Allocate) -> dict[str, Ring] | None:
        """Buffers for the modalities, where the dataset copies rows and all have one shape."""
        if not self.copies:
            return None
        found = {}
        for name in self.modalities:
            modality = self.dataset.modalities[name]
            sizes = [size for size in modality.shape if size is not None]
            if len(sizes) < len(modality.shape):
                return None
            found[name] = Ring((*slots, *sizes), modality.dtype, allocate)
        return found


def inline(jobs: Generator[Job, None, None], make: Callable[[Job], Batch]) -> Stream:
    """Batches made when they are asked for."""
    yield from map(make, jobs)  # which keeps none: a buffer is free when only its ring refers to it


def _share_no_cores() -> None:
    """Let torch compute here with one thread, as in a worker process, and elsewhere with as many as before.

    A transform that wants every core at each of its small steps waits for those on which training is busy.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # for this thread, and as the default of those that begin later
    later = threading.Thread(target=torch.set_num_threads, args=(before,))  # which gives the default back
    later.start()
    later.join()


_END = object()


def ahead(
    jobs: Generator[Any, None, None],
    make: Callable[[Any], Batch],
    prefetch: int,
    *,
    helps: bool = False,
    let_go: Callable[[], None] = lambda: None,
) -> Stream:
    """Batches made by one thread, ``prefetch`` of them ahead."""
    ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
    room: queue.SimpleQueue[bool] = queue.SimpleQueue()  # True for each batch that may be made, False for the end
    stopped = threading.Event()
    taking, numbers = threading.Lock(), itertools.count()
    quick = False
    home = os.getpid()

    def one() -> tuple[int, Any]:
        """The next number and its batch, or the end, or the error that is raised when those before are delivered."""
        nonlocal quick
        with taking:
            number = next(numbers)
            try:
                job = next(jobs, _END)
            except Exception as error:
                return number, error
        if job is _END:
            return number, _END
        begun = time.perf_counter()
        try:
            batch = make(job)
        except Exception as error:
            return number, error
        quick = time.perf_counter() - begun < _QUICK
        return number, batch

    def work() -> None:
        try:
            _share_no_cores()
            while room.get() and not stopped.is_set():
                ready.put(one()[1])  # not kept here: a buffer is free when only its ring refers to it
        except BaseException as error:  # handed over, to be raised where the batch is asked for
            ready.put(error)
        finally:
            with taking:
                jobs.close()

    def stop() -> None:
        if os.getpid() != home:  # a fork has no such thread, and leaves the workers to its parent
            return
        stopped.set()
        room.put(False)
        let_go()
        if threading.current_thread() is not thread:  # where the garbage collector may find the stream
            thread.join()

    for _ in range(prefetch):
        room.put(True)
    thread = threading.Thread(target=work, name="setsup-loader", daemon=True)
    thread.start()
    atexit.register(stop)  # a thread amid compiled code while the interpreter ends may abort the process
    mine: tuple[int, Any] | None = None  # what was made here, while the thread was at an earlier one
    try:
        for number in itertools.count():
            if helps and quick and mine is None and ready.empty():
                mine = one()
            if mine is not None and mine[0] == number:
                item, mine = mine[1], None
            else:
                item = ready.get()
                room.put(True)
            if item is _END:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
            del item  # the buffer must not be held by a variable here while the next batch is waited for
            if os.getpid() != home:
                raise SetsupError("this iterator is of the process that was forked: call iter(loader) in this one")
    finally:
        stop()
        atexit.unregister(stop)
