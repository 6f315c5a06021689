"""Batches made by worker processes, in order.

Workers are new Python processes (:mod:`setsup.jobs.process`), each connected to the loader by a socket. Workers exit
when the socket closes, which it does when the loader exits for any reason.
"""

from collections import deque
from collections.abc import Iterator
from itertools import cycle, islice
from typing import IO, Any

import cloudpickle
import numpy.typing as npt

from setsup.errors import DataError, SetsupError, advice
from setsup.jobs.process import Process, cause
from setsup.loading import ipc
from setsup.loading.batch import Batch
from setsup.loading.postprocess import Finish
from setsup.loading.ring import Allocate, Ring
from setsup.loading.stream import BatchBuilder, Request, Stream

__all__ = ["WorkerPool"]

_QUEUED = 2  # requests per worker: the current one and the next
_SIZES = 16  # array sizes whose buffers are kept


def _for_workers(maker: BatchBuilder, finish: Finish | None) -> IO[bytes]:
    """What every worker needs, pickled once."""
    try:
        return ipc.store((maker, finish))
    except Exception as error:
        culprit = "the transform" if finish is not None and not _pickles(finish.transform) else "the dataset"
        thread = advice("workers='thread'", "--workers thread")
        raise SetsupError(
            f"{culprit} cannot be sent to worker processes ({type(error).__name__}: {error}); remove open files, locks "
            f"and generators, or pass {thread}"
        ) from None


class WorkerPool:
    """Worker processes that make batches in turn."""

    def __init__(self, maker: BatchBuilder, finish: Finish | None, workers: int, allocate: Allocate) -> None:
        self._maker, self._finish, self._count = maker, finish, workers
        self._buffers = _Buffers(allocate)
        self._workers: list[_Worker] = []
        self._closed = False

    def batches(self, asked: Iterator[Request]) -> Stream:
        """Batches in the order of the requests."""
        pending: deque[_Worker] = deque()
        try:
            with _for_workers(self._maker, self._finish) as things:
                for _ in range(self._count):  # one by one, so that a failure ends those before it as well
                    self._workers.append(_Worker("setsup.loading.worker", things))
            if self._closed:  # while workers were being started
                return
            turns = cycle(self._workers)
            for request in islice(asked, self._count * _QUEUED):
                pending.append(next(turns))
                pending[-1].ask(request)
            while pending:
                batch = pending.popleft().answer(self._buffers)
                for request in islice(asked, 1):
                    pending.append(next(turns))
                    pending[-1].ask(request)
                yield batch
                del batch
        finally:
            self.shutdown()
            for worker in self._workers:
                worker.end()

    def shutdown(self) -> None:
        """Stop the workers at once, and all that wait for their batches."""
        self._closed = True
        for worker in self._workers:
            worker.shutdown()


class _Buffers:
    """Memory for large arrays: one ring for each recently used size."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._rings: dict[tuple[int, ...], Ring] = {}

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Return an array that nobody refers to."""
        ring = self._rings.pop(shape, None)
        if ring is None:
            ring = Ring(shape, dtype.name, self._allocate)
            if len(self._rings) == _SIZES:
                del self._rings[next(iter(self._rings))]
        self._rings[shape] = ring
        return ring.take()


class _Worker(Process):
    """The loader's end of a worker process."""

    def ask(self, request: Request) -> None:
        try:
            ipc.send(self.socket, ipc.pack(request))
        except OSError:
            raise self._ended() from None

    def answer(self, buffers: _Buffers) -> Batch:
        try:
            answer = ipc.receive(self.socket, buffers)
        except (EOFError, OSError):
            raise self._ended() from None
        if isinstance(answer, BaseException):
            raise answer
        batch: Batch = answer
        return batch

    def _ended(self) -> DataError:
        how = self.end()
        remedy = advice(
            "lower workers= or prefetch=, or pass workers=0 to see the original error",
            "lower --workers, or pass --workers 0 to see the original error",
        )
        return DataError(
            f"a worker process of the loader ended {how} while it was building a batch, {cause(how, remedy)}"
        )


def _pickles(thing: Any) -> bool:
    try:
        cloudpickle.dumps(thing)
    except Exception:
        return False
    return True
