"""Streams of batches, in order, made on demand or prefetched by a thread. Both deliver the same batches."""

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
from setsup.loading.batch import Batch, make_batch
from setsup.loading.resizing.fetch import ResizedRows
from setsup.loading.ring import Allocate, Ring
from setsup.samplers import Draw, Shard

__all__ = ["BatchBuilder", "Job", "Request", "Stream", "inline", "prefetch", "requests"]

Request = tuple[int, Draw]
Buffers = dict[str, npt.NDArray[Any]]
Job = tuple[Request, Buffers | None]
Stream = Generator[Batch, None, None]

_QUICK = 0.02  # seconds per batch up to which a waiting consumer makes batches itself


def requests(shard: Shard) -> Iterator[Request]:
    """Draws of one rank, in order, each with its global number."""
    step = shard.start + shard.rank
    for draw in shard.iterate():
        yield step, draw
        step += shard.world


@dataclass(frozen=True, slots=True)
class BatchBuilder:
    """Turns requests into batches of arrays."""

    dataset: Dataset
    modalities: tuple[str, ...]
    resized: ResizedRows | None = None

    @property
    def copies(self) -> bool:
        """Whether rows are written straight into buffers."""
        if self.resized is not None:
            return True
        # the default fetch_into would copy them twice
        source = self.dataset
        while isinstance(source, Selection):
            source = source.source
        return getattr(type(source), "fetch_into", Dataset.fetch_into) is not Dataset.fetch_into

    def jobs(self, asked: Iterator[Request], allocate: Allocate) -> Generator[Job, None, None]:
        """Requests with buffers for their rows; not thread-safe, since two threads might take the same buffer."""
        rings: dict[str, Ring] | None = None
        for number, request in enumerate(asked):
            if number == 0:
                rings = self.rings(request[1].indices.shape, allocate)  # the same at every step
            yield request, {name: ring.take() for name, ring in rings.items()} if rings else None

    def make(self, request: Request, buffers: Buffers | None = None) -> Batch:
        """Fetch one draw; thread-safe."""
        return make_batch(self.dataset, *request, self.modalities, buffers, self.resized)

    def rings(self, leading: Sequence[int], allocate: Allocate) -> dict[str, Ring] | None:
        """Buffers for the modalities, where rows are copied or resized into them and all have one shape."""
        if not self.copies:
            return None
        if self.resized is not None:
            self.resized.check_memory(tuple(leading))
        rings = {}
        described = self.dataset.modalities if self.resized is None else self.resized.buffered
        for name in self.modalities if self.resized is None else described:
            modality = described[name]
            sizes = [size for size in modality.shape if size is not None]
            if len(sizes) < len(modality.shape):
                return None
            rings[name] = Ring((*leading, *sizes), modality.dtype, allocate)
        return rings


def inline(jobs: Generator[Job, None, None], make: Callable[[Job], Batch]) -> Stream:
    """Batches made on demand."""
    yield from map(make, jobs)  # keeps no reference: a buffer is free when only its ring refers to it


_default_threads = threading.Lock()
"""Held while torch's default number of threads is another: a second loader would read that, and restore it."""


def _renew_lock() -> None:
    global _default_threads
    _default_threads = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)  # a thread of the parent may have held it


def _share_no_cores() -> None:
    """Limit torch to one thread in this thread alone, as in a worker process.

    A transform that uses all cores would wait at each small step for those that training keeps busy.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return
    with _default_threads:
        before = torch.get_num_threads()
        torch.set_num_threads(1)  # in this thread, and by default in threads that start later
        later = threading.Thread(target=torch.set_num_threads, args=(before,))  # restores the default
        later.start()
        later.join()


def _keep_cores() -> None:
    """Make torch read its default number of threads in this thread now, before a loader changes it for a moment."""
    if torch := sys.modules.get("torch"):
        torch.get_num_threads()


_END = object()


def prefetch(
    jobs: Generator[Any, None, None],
    make: Callable[[Any], Batch],
    count: int,
    *,
    consumer_helps: bool = False,
    shutdown: Callable[[], None] = lambda: None,
) -> Stream:
    """Batches made by a thread, up to `count` of them in advance; a waiting consumer may make some itself."""
    ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
    room: queue.SimpleQueue[bool] = queue.SimpleQueue()  # True for each batch that may be made, False for the end
    stopped = threading.Event()
    taking, numbers = threading.Lock(), itertools.count()
    quick = False
    owner = os.getpid()

    def make_next() -> tuple[int, Any]:
        """The next number with its batch, the end, or the error to raise once earlier batches are delivered."""
        nonlocal quick
        with taking:
            number = next(numbers)
            try:
                job = next(jobs, _END)
            except Exception as error:
                return number, error
        if job is _END:
            return number, _END
        began = time.perf_counter()
        try:
            batch = make(job)
        except Exception as error:
            return number, error
        quick = time.perf_counter() - began < _QUICK
        return number, batch

    def work() -> None:
        try:
            _share_no_cores()
            while room.get() and not stopped.is_set():
                ready.put(make_next()[1])  # keeps no reference, as above
        except BaseException as error:  # raised in the consumer
            ready.put(error)
        finally:
            with taking:
                jobs.close()

    def stop() -> None:
        if os.getpid() != owner:  # a fork has no such thread, and its parent ends the workers
            return
        stopped.set()
        room.put(False)
        shutdown()
        if threading.current_thread() is not thread:  # the garbage collector may call this in any thread
            thread.join()

    for _ in range(count):
        room.put(True)
    thread = threading.Thread(target=work, name="setsup-loader", daemon=True)
    _keep_cores()
    thread.start()
    atexit.register(stop)  # a thread in compiled code at interpreter shutdown may abort the process
    own: tuple[int, Any] | None = None  # a batch made by the consumer while the thread made an earlier one
    try:
        for number in itertools.count():
            if consumer_helps and quick and own is None and ready.empty():
                own = make_next()
            if own is not None and own[0] == number:
                item, own = own[1], None
            else:
                item = ready.get()
                room.put(True)
            if item is _END:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
            del item  # a reference here would keep its buffer busy while waiting for the next batch
            if os.getpid() != owner:
                raise SetsupError(
                    "this iterator belongs to the parent process; call iter(loader) in the forked process"
                )
    finally:
        stop()
        atexit.unregister(stop)
