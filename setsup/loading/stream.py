"""Streams of batches, in order, made here, by a thread, or by worker processes. All give the same batches."""

import itertools
import multiprocessing
import os
import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, SetsupError
from setsup.loading.batch import Batch, batch_of
from setsup.loading.ring import Allocate, Ring
from setsup.samplers import Draw, Shard

__all__ = ["Source", "by_processes", "by_thread", "inline"]


class Source:
    """What batches are made of: a dataset, one rank's draws of it, and what to fetch."""

    def __init__(self, dataset: Dataset, shard: Shard, modalities: Sequence[str]) -> None:
        self.dataset, self.shard, self.modalities = dataset, shard, tuple(modalities)

    def draws(self) -> Iterator[Draw]:
        """Draws of this rank, in order."""
        return iter(self.shard)

    def batch(self, draw: Draw, rings: dict[str, Ring] | None = None) -> Batch:
        """Fetch one draw."""
        buffers = {name: ring.take() for name, ring in rings.items()} if rings else None
        return batch_of(self.dataset, draw, self.modalities, buffers)

    def rings(self, allocate: Allocate) -> dict[str, Ring] | None:
        """Buffers for the modalities, where the dataset copies rows and all have one shape."""
        if type(self.dataset).fetch_into is Dataset.fetch_into:  # nothing to gain: rows would be copied twice
            return None
        shape = self.shard.sampler[0].indices.shape  # the same at every step
        found = {}
        for name in self.modalities:
            modality = self.dataset.modalities[name]
            sizes = [size for size in modality.shape if size is not None]
            if len(sizes) < len(modality.shape):
                return None
            found[name] = Ring((*shape, *sizes), modality.dtype, allocate)
        return found


def inline(source: Source, allocate: Allocate) -> Iterator[Batch]:
    """Batches made when they are asked for."""
    rings = source.rings(allocate)
    for draw in source.draws():
        yield source.batch(draw, rings)


_END = object()


def by_thread(source: Source, allocate: Allocate, prefetch: int) -> Iterator[Batch]:
    """Batches made by one thread, ``prefetch`` of them ahead."""
    ready: queue.Queue[Any] = queue.Queue(prefetch)
    stopped = threading.Event()

    def put(item: Any) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            batches = inline(source, allocate)
            while put(batch := next(batches, _END)) and batch is not _END:
                del batch  # a buffer is free when only its ring refers to it
        except BaseException as error:  # handed over, to be raised where the batch is asked for
            put(error)

    thread = threading.Thread(target=work, name="setsup-loader", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item
            del item  # the buffer must not be held by a variable here while the next batch is waited for
    finally:
        stopped.set()
        thread.join()


_source: Source | None = None  # of a worker process


def _begin(source: Source) -> None:
    """Prepare a worker process: it ends with its parent, however that ends."""
    global _source
    _source = source
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(draw: Draw) -> Batch:
    if _source is None:
        raise SetsupError("a loader's worker was asked for a batch before it was given a data set")
    return _source.batch(draw)


def by_processes(source: Source, workers: int, prefetch: int) -> Iterator[Batch]:
    """Batches made by worker processes, up to ``workers · prefetch`` ahead."""
    context = multiprocessing.get_context("spawn")  # a fork would inherit threads' locks, open files and GL contexts
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(source,))
    try:
        draws = source.draws()
        futures = deque(pool.submit(_work, draw) for draw in itertools.islice(draws, workers * prefetch))
        while futures:
            batch = futures.popleft().result()
            futures.extend(pool.submit(_work, draw) for draw in itertools.islice(draws, 1))
            yield batch
    except BrokenProcessPool:  # from a result, or from giving out more work
        raise DataError(
            "a worker process of the loader ended while it made a batch (killed, or out of memory): lower workers= or "
            "prefetch=, or pass workers=0 to see the error itself"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
