"""Streams of batches, in order, made where they are asked for or by a thread ahead. Both give the same batches."""

import atexit
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from setsup.datasets.dataset import Dataset
from setsup.errors import SetsupError
from setsup.loading.batch import Batch, Finish, batch_of
from setsup.loading.ring import Allocate, Ring
from setsup.samplers import Draw, Shard

__all__ = ["Maker", "Request", "Stream", "ahead", "inline", "requests"]

Request = tuple[int, Draw]
Stream = Generator[Batch, None, None]


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

    def make(self, request: Request, rings: dict[str, Ring] | None = None) -> Batch:
        """Fetch one draw."""
        buffers = {name: ring.take() for name, ring in rings.items()} if rings else None
        return batch_of(self.dataset, *request, self.modalities, buffers)

    def rings(self, slots: Sequence[int], allocate: Allocate) -> dict[str, Ring] | None:
        """Buffers for the modalities, where the dataset copies rows and all have one shape."""
        if type(self.dataset).fetch_into is Dataset.fetch_into:  # nothing to gain: rows would be copied twice
            return None
        found = {}
        for name in self.modalities:
            modality = self.dataset.modalities[name]
            sizes = [size for size in modality.shape if size is not None]
            if len(sizes) < len(modality.shape):
                return None
            found[name] = Ring((*slots, *sizes), modality.dtype, allocate)
        return found


def inline(maker: Maker, asked: Iterator[Request], allocate: Allocate, finish: Finish) -> Stream:
    """Batches made when they are asked for."""
    rings: dict[str, Ring] | None = None
    for number, request in enumerate(asked):
        if number == 0:
            rings = maker.rings(request[1].indices.shape, allocate)  # the same at every step
        yield finish(maker.make(request, rings))


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


def ahead(batches: Stream, prefetch: int, let_go: Callable[[], None] = lambda: None) -> Stream:
    """The same batches, made by one thread, ``prefetch`` of them ahead; ``let_go`` ends the wait for the next one."""
    ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
    room: queue.SimpleQueue[bool] = queue.SimpleQueue()  # True for each batch that may be made, False for the end
    stopped = threading.Event()
    home = os.getpid()

    def work() -> None:
        try:
            _share_no_cores()
            while room.get() and not stopped.is_set():
                ready.put(next(batches, _END))  # not kept here: a buffer is free when only its ring refers to it
        except BaseException as error:  # handed over, to be raised where the batch is asked for
            ready.put(error)
        finally:
            batches.close()

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
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            room.put(True)
            yield item
            del item  # the buffer must not be held by a variable here while the next batch is waited for
            if os.getpid() != home:
                raise SetsupError("this iterator is of the process that was forked: call iter(loader) in this one")
    finally:
        stop()
        atexit.unregister(stop)
